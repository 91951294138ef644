//! `Debug` for types with secrets or private data: shows only the named values.

/// Implements `Debug` with only these fields: `debug_only!(Type, |it| name = it.value)`. A type parameter follows
/// `for`: `debug_only!(Type<E> for E, …)`.
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
