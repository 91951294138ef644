//! HTTP below the governor: connections, bodies and redirects, shared by everything that sends.
//!
//! | | |
//! |---|---|
//! | [`client_builder`], [`public_only`] | connections: TLS, without redirects and retries of reqwest, public addresses only |
//! | [`redirect_target`], [`is_redirect`], [`names_private_address`] | the target of a redirect, and whether it is allowed |
//! | [`Body`], [`BodyLimits`], [`ACCEPTED`] | bodies: decoded piece by piece, limited in size, ratio and idle time |
//! | [`NoAnswer`] | why there is no answer, for a governor and for a person |
//!
//! Never waits before a send and never retries. Needs the feature `client`.

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
