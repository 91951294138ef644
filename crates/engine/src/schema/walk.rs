//! Walks a plan along the text of a body, once, without building anything.
//!
//! Why it trusts the text: the decoder has checked its grammar, its depth and its keys. Where the text
//! is not what was promised, the answer is "does not fit", which only means that the library is asked.
//! So a mistake here costs time and never a record, as long as it never says "fits" of what does not:
//! that is what `tests/agreement.rs` tests. It allocates nothing, but for strings and keys with escapes that
//! must be compared or counted.

use super::node::{ArrayRule, Bounds, Node, NodeId, NumberRule, StringRule, Types};
use super::number::Worth;
use super::plan::Plan;
use super::properties::{Field, ObjectRule};
use super::text;
use std::borrow::Cow;
use std::cmp::Ordering;

impl Plan {
    /// Whether a body fits. `false` is an opinion, `true` is a promise.
    pub(super) fn fits(&self, body: &str) -> bool {
        let walk = Walk { nodes: &self.nodes, text: body, bytes: body.as_bytes() };
        let start = text::skip_whitespace(walk.bytes, 0);
        walk.value(start, self.root).is_some_and(|end| text::skip_whitespace(walk.bytes, end) == body.len())
    }
}

struct Walk<'a> {
    nodes: &'a [Node],
    text: &'a str,
    bytes: &'a [u8],
}

/// Each step takes the place where something begins and answers where it ends, or `None` when it does
/// not fit. A step down in the recursion is a step down in the text, whose depth the decoder bounds.
impl Walk<'_> {
    fn value(&self, at: usize, node: NodeId) -> Option<usize> {
        let node = self.nodes.get(node.0 as usize)?;
        match *self.bytes.get(at)? {
            b'"' if node.types.meets(Types::STRING) => {
                let (end, escaped) = text::string_end(self.bytes, at)?;
                match &node.strings {
                    None => Some(end),
                    Some(rule) => self.string_fits(rule, at, end, escaped).then_some(end),
                }
            }
            b'-' | b'0'..=b'9' => self.number(node, at),
            b'{' if node.types.meets(Types::OBJECT) => match &node.objects {
                None => text::skip_value(self.bytes, at),
                Some(rule) => self.object(rule, at),
            },
            b'[' if node.types.meets(Types::ARRAY) => match &node.arrays {
                None => text::skip_value(self.bytes, at),
                Some(rule) => self.array(rule, at),
            },
            b't' if node.types.meets(Types::TRUE) => text::word_end(self.bytes, at, b"true"),
            b'f' if node.types.meets(Types::FALSE) => text::word_end(self.bytes, at, b"false"),
            b'n' if node.types.meets(Types::NULL) => text::word_end(self.bytes, at, b"null"),
            _ => None,
        }
    }

    fn string_fits(&self, rule: &StringRule, at: usize, end: usize, escaped: bool) -> bool {
        let Some(inside) = self.text.get(at + 1..end - 1) else { return false };
        if let Some(one_of) = &rule.one_of {
            let said = if escaped { text::decode(inside) } else { Cow::Borrowed(inside) };
            if one_of.binary_search_by(|one| one.as_str().cmp(&said)).is_err() {
                return false;
            }
        }
        rule.length == Bounds::ANY || rule.length.contain(text::count_chars(inside, escaped))
    }

    fn number(&self, node: &Node, at: usize) -> Option<usize> {
        let (end, pointed) = text::number_end(self.bytes, at);
        // Most numbers are decided by what they look like.
        let undecided = node.numbers.is_some() || (pointed && !node.types.contains(Types::NUMBER));
        if !undecided {
            return node.types.meets(Types::INTEGER).then_some(end);
        }
        let worth = Worth::read(self.text.get(at..end)?)?;
        let kind = if worth.is_integer() { Types::INTEGER } else { Types::FRACTION };
        let fits = node.types.meets(kind) && node.numbers.as_ref().is_none_or(|rule| rule.allows(worth));
        fits.then_some(end)
    }

    fn object(&self, rule: &ObjectRule, at: usize) -> Option<usize> {
        let mut seen = 0_u64;
        let mut at = text::skip_whitespace(self.bytes, at + 1);
        if self.bytes.get(at) == Some(&b'}') {
            return (rule.required == 0).then_some(at + 1);
        }
        loop {
            if self.bytes.get(at) != Some(&b'"') {
                return None;
            }
            let (end, escaped) = text::string_end(self.bytes, at)?;
            let field = if escaped {
                self.find_escaped(rule, at + 1, end - 1)?
            } else {
                rule.find(self.bytes.get(at + 1..end - 1)?)
            };
            seen |= field.bit;
            at = text::skip_whitespace(self.bytes, end);
            if self.bytes.get(at) != Some(&b':') {
                return None;
            }
            at = self.value(text::skip_whitespace(self.bytes, at + 1), field.node)?;
            at = text::skip_whitespace(self.bytes, at);
            match self.bytes.get(at)? {
                b',' => at = text::skip_whitespace(self.bytes, at + 1),
                b'}' => return (seen & rule.required == rule.required).then_some(at + 1),
                _ => return None,
            }
        }
    }

    /// An escape is no disguise.
    #[cold]
    fn find_escaped<'r>(&self, rule: &'r ObjectRule, start: usize, end: usize) -> Option<&'r Field> {
        Some(rule.find(text::decode(self.text.get(start..end)?).as_bytes()))
    }

    fn array(&self, rule: &ArrayRule, at: usize) -> Option<usize> {
        let mut count = 0_u64;
        let mut at = text::skip_whitespace(self.bytes, at + 1);
        if self.bytes.get(at) == Some(&b']') {
            return rule.count.contain(0).then_some(at + 1);
        }
        loop {
            at = self.value(at, rule.items)?;
            count += 1;
            at = text::skip_whitespace(self.bytes, at);
            match self.bytes.get(at)? {
                b',' => at = text::skip_whitespace(self.bytes, at + 1),
                b']' => return rule.count.contain(count).then_some(at + 1),
                _ => return None,
            }
        }
    }
}

impl NumberRule {
    fn allows(&self, worth: Worth) -> bool {
        let is = |limit: Option<Worth>, allowed: fn(Ordering) -> bool| {
            limit.is_none_or(|limit| allowed(worth.compare(limit)))
        };
        is(self.minimum, Ordering::is_ge)
            && is(self.maximum, Ordering::is_le)
            && is(self.above, Ordering::is_gt)
            && is(self.below, Ordering::is_lt)
            && self.one_of.as_ref().is_none_or(|list| list.iter().any(|one| worth.compare(*one).is_eq()))
    }
}
