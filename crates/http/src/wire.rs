//! The level below the governor: what everyone who sends HTTP shares, whatever decides when to send.
//!
//! | | |
//! |---|---|
//! | [`client_builder`], [`public_only`] | connections: TLS, no redirects and retries of their own, public addresses only |
//! | [`redirect_target`], [`is_redirect`], [`names_private_address`] | where a redirect leads to, and whether it may |
//! | [`Body`], [`BodyLimits`], [`ACCEPTED`] | bodies: decoded piece by piece, bounded in size, ratio and idle time |
//! | [`NoAnswer`] | why there is no answer, for a governor and for a person |
//! | [`causes`], [`cause`] | what lies under an error |
//!
//! Never waits before a send and never sends again. Needs the feature `client`, except for the causes of errors.

#[cfg(feature = "client")]
mod address;
#[cfg(feature = "client")]
mod body;
mod causes;
#[cfg(feature = "client")]
mod connections;
#[cfg(feature = "client")]
mod decode;
#[cfg(feature = "client")]
mod no_answer;
#[cfg(feature = "client")]
mod redirect;

pub use causes::{cause, causes};
#[cfg(feature = "client")]
pub use {
    body::{Body, BodyEnd, BodyError, BodyFault, BodyLimits},
    causes::Cause,
    connections::{client_builder, public_only},
    decode::ACCEPTED,
    no_answer::{NoAnswer, TransportKind},
    redirect::{RedirectFault, is_redirect, names_private_address, redirect_target},
};

#[cfg(feature = "client")]
pub(crate) use no_answer::Why;
