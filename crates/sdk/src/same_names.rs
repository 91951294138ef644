//! The governor's words and the protocol's are two lists, because neither crate knows the other.

/// Functions from a governor's enum to the protocol's, whose values have the same names.
macro_rules! same_names {
    ($($function:ident: $name:ident { $($value:ident),+ })+) => {
        $(const fn $function(value: ::gleaner_http::governor::$name) -> $name {
            match value {
                $(::gleaner_http::governor::$name::$value => $name::$value),+
            }
        })+
    };
}

pub(crate) use same_names;
