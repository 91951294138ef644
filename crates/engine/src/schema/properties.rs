//! The fields of an object in a plan, and which of them must be there.
//!
//! Why a table of its own: a body has a dozen keys and each is looked up, so a key costs one
//! multiplication and one comparison. The order is fixed and no seed is drawn, so a plan is the same in
//! every process. It never grows after it was made.

use super::node::NodeId;
use super::text::word_at;

/// How many fields may be required: one bit each.
pub(super) const REQUIRED_MAX: usize = 64;
/// How many fields a table has at most. Beyond that the library's own index is as good.
pub(super) const PROPERTIES_MAX: usize = 1024;
/// An empty place in the table.
const EMPTY: u16 = u16::MAX;

/// A field while the table is made.
#[derive(Debug)]
pub(super) struct Property {
    pub(super) name: String,
    pub(super) node: NodeId,
    pub(super) required: bool,
}

/// What an object must satisfy.
#[derive(Debug)]
pub(super) struct ObjectRule {
    fields: Box<[Field]>,
    /// At least half of it is empty, so a search ends soon.
    table: Box<[u16]>,
    shift: u32,
    /// One bit for each required field.
    pub(super) required: u64,
    /// For every other key.
    pub(super) others: Field,
}

/// What is known about a key.
#[derive(Clone, Debug)]
pub(super) struct Field {
    name: Box<[u8]>,
    ends: Ends,
    pub(super) node: NodeId,
    /// Its bit, if it must be there.
    pub(super) bit: u64,
}

impl ObjectRule {
    /// `None` when there are more fields than a table is for.
    pub(super) fn new(properties: Vec<Property>, others: NodeId) -> Option<Self> {
        let required = properties.iter().filter(|property| property.required).count();
        if required > REQUIRED_MAX || properties.len() > PROPERTIES_MAX {
            return None;
        }
        let places = (properties.len() * 2).next_power_of_two().max(4);
        let shift = u64::BITS - places.trailing_zeros();
        let mut rule = Self {
            fields: Box::new([]),
            table: vec![EMPTY; places].into(),
            shift,
            required: 0,
            others: Field { name: Box::new([]), ends: Ends::of(&[]), node: others, bit: 0 },
        };
        let mut fields = Vec::with_capacity(properties.len());
        let mut next_bit = 1_u64;
        for (index, property) in properties.into_iter().enumerate() {
            let name: Box<[u8]> = property.name.into_bytes().into();
            let ends = Ends::of(&name);
            let mut place = rule.place(ends);
            while *rule.table.get(place)? != EMPTY {
                place = (place + 1) & (places - 1);
            }
            *rule.table.get_mut(place)? = u16::try_from(index).ok()?;
            let bit = if property.required { next_bit } else { 0 };
            if property.required {
                rule.required |= bit;
                next_bit = next_bit.wrapping_shl(1);
            }
            fields.push(Field { name, ends, node: property.node, bit });
        }
        rule.fields = fields.into();
        Some(rule)
    }

    /// The field with this name, or what holds for every other key.
    #[inline]
    pub(super) fn find(&self, name: &[u8]) -> &Field {
        let ends = Ends::of(name);
        let mut place = self.place(ends);
        while let Some(field) = self.table.get(place).and_then(|&index| self.fields.get(usize::from(index))) {
            if field.ends == ends && (name.len() <= Ends::WHOLE_UP_TO || *field.name == *name) {
                return field;
            }
            place = (place + 1) & (self.table.len() - 1);
        }
        &self.others
    }

    #[inline]
    fn place(&self, ends: Ends) -> usize {
        // The length goes to the top, where short names have no bytes.
        let mixed = ends.head ^ ends.tail.rotate_left(29) ^ (ends.len as u64) << 56;
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }
}

/// Both ends of a name and its length, which is all of it for most names. Longer names that differ
/// in the middle only share a place, which costs a comparison each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ends {
    head: u64,
    tail: u64,
    len: usize,
}

impl Ends {
    /// Up to this length the two ends touch, so equal ends mean equal names.
    const WHOLE_UP_TO: usize = 16;

    #[inline]
    fn of(name: &[u8]) -> Self {
        let len = name.len();
        let half = |at: usize| {
            name.get(at..).and_then(<[u8]>::first_chunk::<4>).map_or(0, |half| u64::from(u32::from_le_bytes(*half)))
        };
        let byte = |at: usize| name.get(at).map_or(0, |&byte| u64::from(byte));
        let (head, tail) = match len {
            8.. => (word_at(name, 0).unwrap_or(0), word_at(name, len - 8).unwrap_or(0)),
            4..8 => (half(0), half(len - 4)),
            1..4 => (byte(0) | byte(len / 2) << 8 | byte(len - 1) << 16, 0),
            0 => (0, 0),
        };
        Self { head, tail, len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rule(names: &[String]) -> Option<ObjectRule> {
        let property = |(index, name): (usize, &String)| Property {
            name: name.clone(),
            node: NodeId(u32::try_from(index).unwrap()),
            required: index % 2 == 0 && index < 128,
        };
        ObjectRule::new(names.iter().enumerate().map(property).collect(), NodeId(u32::MAX))
    }

    #[test]
    fn names_that_differ_in_the_middle_only_are_told_apart() {
        let names = (0..200).map(|n| format!("abcdefgh{n:03}stuvwxyz")).collect::<Vec<_>>();
        let rule = rule(&names).unwrap();
        for (index, name) in names.iter().enumerate() {
            assert_eq!(rule.find(name.as_bytes()).node.0 as usize, index);
        }
        assert_eq!(rule.find(b"abcdefgh200stuvwxyz").node, NodeId(u32::MAX));
        assert_eq!(rule.required, u64::MAX);
    }

    #[test]
    fn too_many_fields_are_not_for_a_table() {
        let names = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
        assert!(rule(&names(PROPERTIES_MAX)).is_some());
        assert!(rule(&names(PROPERTIES_MAX + 1)).is_none());
        let required = |count: usize| {
            let all = names(count).into_iter().map(|name| Property { name, node: NodeId(0), required: true });
            ObjectRule::new(all.collect(), NodeId(0))
        };
        assert!(required(REQUIRED_MAX).is_some_and(|rule| rule.required == u64::MAX));
        assert!(required(REQUIRED_MAX + 1).is_none());
    }

    proptest! {
        #[test]
        fn every_name_is_found_and_no_other(
            names in prop::collection::btree_set("[a-b]{0,4}|[a-b]{7,9}|[a-b]{15,18}", 0..60),
            other in "[a-b]{0,4}|[a-b]{7,9}|[a-b]{15,18}",
        ) {
            let names = names.into_iter().collect::<Vec<_>>();
            let rule = rule(&names).unwrap();
            for (index, name) in names.iter().enumerate() {
                prop_assert_eq!(rule.find(name.as_bytes()).node.0 as usize, index);
            }
            if !names.contains(&other) {
                prop_assert_eq!(rule.find(other.as_bytes()).node, NodeId(u32::MAX));
            }
        }
    }
}
