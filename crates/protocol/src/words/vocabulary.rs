//! Fixed vocabularies: a code for programs and a text for people, declared together.
//!
//! Why a macro: a code without a text does not compile, a list of all codes cannot miss one, and a text can change
//! without touching a program. Codes are on the wire and in stores, so they are stable; texts may change. There is no
//! variant "other".

/// Text for people about a code. Three sentences, each with its own purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wording {
    /// The event.
    pub what: &'static str,
    /// Why it happened, or why it matters.
    pub why: &'static str,
    /// The next step, or that nothing needs to be done.
    pub next: &'static str,
}

/// Declares an enum whose variants have a stable code.
#[macro_export]
macro_rules! coded_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $( $(#[$variant_meta:meta])* $variant:ident = $code:literal; )+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $( $(#[$variant_meta])* $variant, )+
        }

        impl $name {
            /// Every member.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable code, as on the wire and in stores.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)+ }
            }

            /// The member with this code.
            #[must_use]
            pub fn from_code(code: &str) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

/// Declares an enum whose variants have a code and a [`Wording`].
macro_rules! vocabulary {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $(
                $(#[$variant_meta:meta])*
                $variant:ident = $code:literal, $what:literal, $why:literal, $next:literal;
            )+
        }
    ) => {
        $crate::coded_enum! {
            $(#[$meta])*
            pub enum $name { $( $(#[$variant_meta])* $variant = $code; )+ }
        }

        impl $name {
            /// Text for people.
            #[must_use]
            pub const fn wording(self) -> $crate::words::vocabulary::Wording {
                match self {
                    $(Self::$variant => $crate::words::vocabulary::Wording { what: $what, why: $why, next: $next },)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.code())
            }
        }
    };
}

/// Declares an enum whose variants have a code only: words of the wire that are not shown to people.
macro_rules! wire_words {
    ($(#[$meta:meta])* pub enum $name:ident $words:tt) => {
        $crate::coded_enum! { $(#[$meta])* pub enum $name $words }

        $crate::messages::wire::code_value!($name);

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.code())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
                // The word itself is not repeated: it may be private.
                Self::from_code(&word).ok_or_else(|| serde::de::Error::custom("not a word of the vocabulary"))
            }
        }
    };
}

/// The same, each with the text after "because" for people.
macro_rules! wire_reasons {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $( $(#[$variant_meta:meta])* $variant:ident = $code:literal, $because:literal; )+ }
    ) => {
        $crate::words::vocabulary::wire_words! {
            $(#[$meta])*
            pub enum $name { $( $(#[$variant_meta])* $variant = $code; )+ }
        }

        impl $name {
            /// The text after "because" for people.
            #[must_use]
            pub const fn because(self) -> &'static str {
                match self { $(Self::$variant => $because,)+ }
            }
        }
    };
}

pub(crate) use {vocabulary, wire_reasons, wire_words};
