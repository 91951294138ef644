//! The level below the governor: what everyone who sends HTTP shares, whatever decides when to send.
//!
//! | | |
//! |---|---|
//! | [`client_builder`], [`public_only`] | connections: TLS, no redirects and retries of their own, public addresses only |
//! | [`redirect_target`], [`is_redirect`], [`names_private_address`] | where a redirect leads to, and whether it may |
//! | [`Body`], [`BodyLimits`], [`ACCEPTED`] | bodies: decoded piece by piece, bounded in size, ratio and idle time |
//! | [`NoAnswer`] | why there is no answer, for a governor and for a person |
//!
//! Never waits before a send and never sends again. Needs the feature `client`.

mod address;
mod body;
mod connections;
mod decode;
mod no_answer;
mod redirect;

pub use crate::causes::Cause;
pub use body::{Body, BodyEnd, BodyError, BodyFault, BodyLimits};
pub use connections::{client_builder, public_only};
pub use decode::ACCEPTED;
pub use no_answer::{NoAnswer, TransportKind};
pub use redirect::{RedirectFault, is_redirect, names_private_address, redirect_target};

pub(crate) use no_answer::Why;
