//! What one place in a body must satisfy, by type of value.
//!
//! Why by type: a value has one, so only the rules of its type are looked at, and "one of these types" or
//! "this or null" are a union of bits. Joining two nodes never guesses: where both have a rule for the
//! same type there is no answer, and so no plan.

use super::number::Worth;
use super::properties::ObjectRule;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Types of values, as bits. `true` and `false` are two, so that a list of values is a set of bits too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const NONE: Self = Self(0);
    pub(super) const NULL: Self = Self(1);
    pub(super) const TRUE: Self = Self(1 << 1);
    pub(super) const FALSE: Self = Self(1 << 2);
    pub(super) const BOOLEAN: Self = Self(Self::TRUE.0 | Self::FALSE.0);
    pub(super) const INTEGER: Self = Self(1 << 3);
    /// A number that is no integer.
    pub(super) const FRACTION: Self = Self(1 << 4);
    pub(super) const NUMBER: Self = Self(Self::INTEGER.0 | Self::FRACTION.0);
    pub(super) const STRING: Self = Self(1 << 5);
    pub(super) const ARRAY: Self = Self(1 << 6);
    pub(super) const OBJECT: Self = Self(1 << 7);
    pub(super) const ALL: Self = Self(u8::MAX);

    #[inline]
    pub(super) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    #[inline]
    pub(super) const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn named(name: &Value) -> Option<Self> {
        Some(match name.as_str()? {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => return None,
        })
    }
}

/// What a value must satisfy. A rule that is absent asks for nothing.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) types: Types,
    pub(super) strings: Option<Arc<StringRule>>,
    pub(super) numbers: Option<Arc<NumberRule>>,
    pub(super) arrays: Option<Arc<ArrayRule>>,
    pub(super) objects: Option<Arc<ObjectRule>>,
}

/// The place of a node in its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeId(pub(super) u32);

#[derive(Debug)]
pub(super) struct StringRule {
    /// In characters.
    pub(super) length: Bounds,
    /// Sorted.
    pub(super) one_of: Option<Box<[String]>>,
}

#[derive(Debug, Default)]
pub(super) struct NumberRule {
    pub(super) minimum: Option<Worth>,
    pub(super) maximum: Option<Worth>,
    pub(super) above: Option<Worth>,
    pub(super) below: Option<Worth>,
    pub(super) one_of: Option<Box<[Worth]>>,
}

#[derive(Debug)]
pub(super) struct ArrayRule {
    pub(super) count: Bounds,
    pub(super) items: NodeId,
}

/// At least, and at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Bounds {
    pub(super) const ANY: Self = Self { min: 0, max: u64::MAX };

    pub(super) const fn contain(self, count: u64) -> bool {
        self.min <= count && count <= self.max
    }

    /// `None` for bounds that are written in a way that only the library knows.
    pub(super) fn read(schema: &Map<String, Value>, min: &str, max: &str) -> Option<Self> {
        let read = |name: &str, default: u64| schema.get(name).map_or(Some(default), Value::as_u64);
        Some(Self { min: read(min, 0)?, max: read(max, u64::MAX)? })
    }
}

impl Node {
    /// These types, and nothing else is asked.
    pub(super) const fn of(types: Types) -> Self {
        Self { types, strings: None, numbers: None, arrays: None, objects: None }
    }

    /// Drops the rules of types that it does not have, so that they are in nobody's way.
    pub(super) fn tidy(mut self) -> Self {
        self.strings = self.strings.filter(|_| self.types.meets(Types::STRING));
        self.numbers = self.numbers.filter(|_| self.types.meets(Types::NUMBER));
        self.arrays = self.arrays.filter(|_| self.types.meets(Types::ARRAY));
        self.objects = self.objects.filter(|_| self.types.meets(Types::OBJECT));
        self
    }

    /// What satisfies both. `None` when both have a rule for the same type.
    pub(super) fn and(self, other: Self) -> Option<Self> {
        let types = self.types.and(other.types);
        let one = Self { types, ..self }.tidy();
        let two = Self { types, ..other }.tidy();
        Some(Self {
            types,
            strings: either(one.strings, two.strings)?,
            numbers: either(one.numbers, two.numbers)?,
            arrays: either(one.arrays, two.arrays)?,
            objects: either(one.objects, two.objects)?,
        })
    }

    /// What satisfies one of both, or exactly one. `None` where that takes more than bits.
    pub(super) fn or(self, other: Self, exactly_one: bool) -> Option<Self> {
        let (one, two) = (self.tidy(), other.tidy());
        if exactly_one && one.types.meets(two.types) {
            return None;
        }
        let both = |types: Types| one.types.meets(types) && two.types.meets(types);
        // A type that both have may have no rule in either: two rules cannot be "or"ed here.
        if (both(Types::STRING) && (one.strings.is_some() || two.strings.is_some()))
            || (both(Types::NUMBER) && (one.numbers.is_some() || two.numbers.is_some()))
            || (both(Types::ARRAY) && (one.arrays.is_some() || two.arrays.is_some()))
            || (both(Types::OBJECT) && (one.objects.is_some() || two.objects.is_some()))
        {
            return None;
        }
        Some(Self {
            types: one.types.or(two.types),
            strings: one.strings.or(two.strings),
            numbers: one.numbers.or(two.numbers),
            arrays: one.arrays.or(two.arrays),
            objects: one.objects.or(two.objects),
        })
    }
}

fn either<T>(one: Option<T>, two: Option<T>) -> Option<Option<T>> {
    match (one, two) {
        (Some(_), Some(_)) => None,
        (one, two) => Some(one.or(two)),
    }
}
