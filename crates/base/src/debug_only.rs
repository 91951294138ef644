//! `Debug` for types that hold secrets, private data or what nobody wants to read: it shows the named values alone.

/// Implements `Debug` with these fields and no other: `debug_only!(Type, |it| name = it.value)`. A type parameter stands
/// behind `for`: `debug_only!(Type<E> for E, …)`.
#[macro_export]
macro_rules! debug_only {
    ($name:ident $(<$($argument:tt),+>)? $(for $generic:ident)? $(, |$it:ident| $($field:ident = $value:expr),+)?) => {
        impl$(<$generic>)? ::std::fmt::Debug for $name$(<$($argument),+>)? {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                $(let $it = self;)?
                f.debug_struct(stringify!($name))$($(.field(stringify!($field), &$value))+)?.finish_non_exhaustive()
            }
        }
    };
}
