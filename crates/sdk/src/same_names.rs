//! Conversions between the governor's and the protocol's enums, because neither crate depends on the other.

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
