//! The chain of causes of an error.
//!
//! Why not `Error::source` alone: the source of an `io::Error` is the source of the error it wraps, not that error
//! itself, and TLS and our resolver wrap theirs in it.

use std::error::Error;
use std::{io, iter};

/// The cause of one of our errors.
#[cfg(feature = "client")]
pub type Cause = Box<dyn Error + Send + Sync>;

/// Maximum depth: TLS, connector, client and two layers make 8.
const CAUSES_MAX: usize = 32;

/// The error and its causes, outermost first.
pub fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(Some(error), |error| cause_of(*error)).take(CAUSES_MAX)
}

/// The first cause of this type.
#[must_use]
pub fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

fn cause_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt;

    #[test]
    fn an_error_inside_an_io_error_is_found() {
        let hidden = io::Error::other(io::Error::other(fmt::Error));
        assert!(causes(&hidden).any(<dyn Error>::is::<fmt::Error>));
        assert!(!causes(&hidden).any(<dyn Error>::is::<std::num::ParseIntError>));
    }

    #[test]
    fn a_chain_without_end_is_not_followed_for_ever() {
        #[derive(Debug)]
        struct Endless;
        impl fmt::Display for Endless {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("endless")
            }
        }
        impl Error for Endless {
            fn source(&self) -> Option<&(dyn Error + 'static)> {
                Some(self)
            }
        }
        static ENDLESS: Endless = Endless;
        assert_eq!(causes(&ENDLESS).count(), CAUSES_MAX);
    }
}
