//! Records without a type of their own: each field is named once, beside its value.

/// A value that serializes as an object with these fields, in this order.
macro_rules! record {
    ($($field:ident $(: $value:expr)?),+ $(,)?) => {{
        #[expect(non_camel_case_types, reason = "each field has a type parameter of its own name")]
        mod generated {
            #[derive(serde::Serialize)]
            pub(super) struct Record<$($field),+> {
                $(pub(super) $field: $field),+
            }
        }
        generated::Record { $($field $(: $value)?),+ }
    }};
}

pub(crate) use record;
