//! Looks a schema over before it is compiled: what it refers to, and what checking it could cost.
//!
//! Why it exists: a schema comes out of a manifest that a stranger wrote. The library evaluates
//! schemas recursively, so a hundred references in a row, or two at each of thirty levels, end in a stack
//! that overflows or in a check that does not end. Both are computed here, from the schema alone, and
//! refused by name. It never follows a reference out of the document.

use super::{SchemaFaultCode, bounds};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A fault, and the JSON pointer of its place in the schema.
pub(super) type Fault = (SchemaFaultCode, String);

/// What is known about a schema that may be compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Surveyed {
    /// Whether the library may be asked where a fault is. That takes more than asking whether there is one:
    /// several times the stack, and it does not remember what it has seen.
    pub(super) can_be_located: bool,
    /// How many patterns there are.
    pub(super) patterns: usize,
}

/// Looks over a whole schema.
pub(super) fn survey(schema: &Value) -> Result<Surveyed, Fault> {
    let mut surveyor =
        Surveyor { root: schema, seen: BTreeMap::new(), open: 0, patterns: 0, refers: false, nested_id: None };
    let cost = surveyor.visit(schema, "")?;
    if let (true, Some(path)) = (surveyor.refers, surveyor.nested_id) {
        return Err((SchemaFaultCode::NestedIdentifier, path));
    }
    let too_much = cost.effort() > bounds::EFFORT_MAX || cost.stack() > bounds::STACK_MAX;
    if too_much || cost.deepest_chain > bounds::CHAIN_MAX {
        return Err((SchemaFaultCode::TooEntangled, String::new()));
    }
    let can_be_located =
        cost.effort() <= bounds::LOCATE_EFFORT_MAX && cost.stack() <= bounds::LOCATE_STACK_MAX && cost.returns <= 1;
    Ok(Surveyed { can_be_located, patterns: surveyor.patterns })
}

/// What evaluating a schema once can lead to. Sums saturate: they are compared with bounds only.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    /// Evaluations at the value itself.
    here: u64,
    /// Evaluations at any one place below it.
    below: u64,
    /// The longest row of evaluations inside each other at the value itself.
    chain: u64,
    /// The longest such row anywhere in it.
    deepest_chain: u64,
    /// The longest row through all levels.
    path: u64,
    /// How often one evaluation can come back to a schema that it came from, at one place.
    returns: u64,
    recursive: bool,
}

impl Cost {
    const fn effort(self) -> u64 {
        if self.here > self.below { self.here } else { self.below }
    }

    /// How many evaluations can stand inside each other: each level of a body adds one row.
    fn stack(self) -> u64 {
        let by_level = self.deepest_chain.saturating_mul(bounds::BODY_DEPTH_MAX);
        if self.recursive { by_level } else { self.path.min(by_level) }
    }

    /// One more schema for the same value.
    fn add_here(&mut self, other: Self) {
        self.here = self.here.saturating_add(other.here);
        self.below = self.below.saturating_add(other.below);
        self.returns = self.returns.saturating_add(other.returns);
        self.chain = self.chain.max(other.chain);
        self.take_over(other);
    }

    /// Schemas for values below, of which at most one meets any value.
    fn add_below(&mut self, others: &[(Role, Self)]) {
        let most = |of: fn(&Self) -> u64| others.iter().map(|(_, other)| of(other)).max().unwrap_or(0);
        self.below = self.below.saturating_add(most(|other| other.effort()));
        self.returns = self.returns.saturating_add(most(|other| other.returns));
        for (_, other) in others {
            self.take_over(*other);
        }
    }

    /// All that stands in one schema. Those with the same role stand together.
    fn sum(children: &[(Role, Self)]) -> Self {
        let mut sum = Self::default();
        for group in children.chunk_by(|(one, _), (two, _)| one == two) {
            match group.first() {
                Some((Role::Here, _)) => group.iter().for_each(|(_, cost)| sum.add_here(*cost)),
                Some((Role::Below(_), _)) => sum.add_below(group),
                Some((Role::Definition, _)) | None => {}
            }
        }
        sum
    }

    fn take_over(&mut self, other: Self) {
        self.deepest_chain = self.deepest_chain.max(other.deepest_chain);
        self.path = self.path.max(other.path);
        self.recursive |= other.recursive;
    }

    /// All of it, inside one schema more.
    fn inside_one(mut self) -> Self {
        self.here = self.here.saturating_add(1);
        self.chain = self.chain.saturating_add(1);
        self.path = self.path.saturating_add(1);
        self.deepest_chain = self.deepest_chain.max(self.chain);
        self
    }
}

struct Surveyor<'a> {
    root: &'a Value,
    /// By the place in memory; `None` while it is being looked at, which is how a ring shows.
    seen: BTreeMap<usize, Option<Cost>>,
    /// How many are being looked at.
    open: usize,
    patterns: usize,
    refers: bool,
    nested_id: Option<String>,
}

/// Each holds one schema for the value itself.
const HERE_ONE: [&str; 4] = ["not", "if", "then", "else"];
/// Each holds a list of schemas for the value itself.
const HERE_LIST: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Each holds schemas by name for the value itself.
const HERE_NAMED: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Each holds one schema for the values below.
const BELOW_ONE: [&str; 8] = [
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "contentSchema",
];
/// Each holds schemas that are only referred to.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// A schema inside a schema.
struct Child<'a> {
    role: Role,
    schema: &'a Value,
    path: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// For the value itself.
    Here,
    /// For values below. Of those with the same number, at most one meets any value.
    Below(usize),
    /// For nothing, unless it is referred to.
    Definition,
}

impl<'a> Surveyor<'a> {
    /// The only function that recurses, and it keeps little on the stack.
    fn visit(&mut self, schema: &'a Value, path: &str) -> Result<Cost, Fault> {
        // Booleans cost one, and what is no schema at all is the library's to refuse.
        let Some(members) = schema.as_object() else { return Ok(Cost::default().inside_one()) };
        let place = std::ptr::from_ref(schema) as usize;
        match self.seen.get(&place) {
            Some(Some(cost)) => return Ok(*cost),
            Some(None) => return Ok(Cost { returns: 1, recursive: true, ..Cost::default() }.inside_one()),
            None => {}
        }
        if self.open >= bounds::OPEN_MAX {
            return Err((SchemaFaultCode::TooEntangled, path.to_owned()));
        }
        self.open += 1;
        self.seen.insert(place, None);
        self.look_at_identifier(members, path);
        let children = self.children(members, path)?;
        let mut costs = Vec::with_capacity(children.len());
        for child in children {
            costs.push((child.role, self.visit(child.schema, &child.path)?));
        }
        let cost = Cost::sum(&costs).inside_one();
        self.seen.insert(place, Some(cost));
        self.open -= 1;
        Ok(cost)
    }

    fn children(&mut self, members: &'a Map<String, Value>, path: &str) -> Result<Vec<Child<'a>>, Fault> {
        let mut children = Vec::new();
        self.refer(members, path, &mut children)?;
        for keyword in HERE_ONE {
            push_one(&mut children, members, keyword, path, Role::Here);
        }
        for keyword in HERE_LIST {
            push_list(&mut children, members, keyword, path, Role::Here);
        }
        for keyword in HERE_NAMED {
            push_named(&mut children, members, keyword, path, Role::Here);
        }
        push_named(&mut children, members, "properties", path, Role::Below(0));
        push_list(&mut children, members, "prefixItems", path, Role::Below(1));
        // Until 2019-09 `items` may be a list.
        push_list(&mut children, members, "items", path, Role::Below(2));
        for (number, keyword) in BELOW_ONE.into_iter().enumerate() {
            push_one(&mut children, members, keyword, path, Role::Below(3 + number));
        }
        self.match_patterns(members, path, &mut children)?;
        for keyword in DEFINITIONS {
            push_named(&mut children, members, keyword, path, Role::Definition);
        }
        Ok(children)
    }

    fn match_patterns(
        &mut self,
        members: &'a Map<String, Value>,
        path: &str,
        children: &mut Vec<Child<'a>>,
    ) -> Result<(), Fault> {
        if let Some(pattern) = members.get("pattern").and_then(Value::as_str) {
            self.count_pattern(pattern, &join(path, "pattern"))?;
        }
        if let Some(patterns) = members.get("patternProperties").and_then(Value::as_object) {
            let path = join(path, "patternProperties");
            for (number, (pattern, schema)) in patterns.iter().enumerate() {
                self.count_pattern(pattern, &path)?;
                // Any number of them may meet one key, so each has a number of its own.
                let role = Role::Below(3 + BELOW_ONE.len() + number);
                children.push(Child { role, schema, path: join(&path, pattern) });
            }
        }
        Ok(())
    }

    fn count_pattern(&mut self, pattern: &str, path: &str) -> Result<(), Fault> {
        self.patterns += 1;
        if pattern.len() > bounds::PATTERN_BYTES_MAX {
            return Err((SchemaFaultCode::PatternTooLong, path.to_owned()));
        }
        Ok(())
    }

    /// Only within the document.
    fn refer(
        &mut self,
        members: &'a Map<String, Value>,
        path: &str,
        children: &mut Vec<Child<'a>>,
    ) -> Result<(), Fault> {
        for keyword in ["$dynamicRef", "$recursiveRef"] {
            if members.contains_key(keyword) {
                return Err((SchemaFaultCode::NamedReference, join(path, keyword)));
            }
        }
        let Some(reference) = members.get("$ref").and_then(Value::as_str) else { return Ok(()) };
        self.refers = true;
        let fault = |code| Err((code, join(path, "$ref")));
        let Some(pointer) = reference.strip_prefix('#') else { return fault(SchemaFaultCode::RemoteReference) };
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return fault(SchemaFaultCode::NamedReference);
        }
        // A reference is a URI, so its pointer may be written with percent signs.
        let path = percent_decode_str(pointer).decode_utf8_lossy().into_owned();
        let Some(schema) = self.root.pointer(&path) else { return fault(SchemaFaultCode::NothingThere) };
        children.push(Child { role: Role::Here, schema, path });
        Ok(())
    }

    /// An identifier inside changes what `#/` means for everything below it. One that is only a name
    /// (`#name`, as generators for draft 7 write it) does not.
    fn look_at_identifier(&mut self, members: &Map<String, Value>, path: &str) {
        let names = |keyword| members.get(keyword).and_then(Value::as_str).is_some_and(|id| !id.starts_with('#'));
        // Draft 4 has no dollar sign.
        if !path.is_empty() && (names("$id") || names("id")) && self.nested_id.is_none() {
            self.nested_id = Some(path.to_owned());
        }
    }
}

fn push_one<'a>(children: &mut Vec<Child<'a>>, from: &'a Map<String, Value>, keyword: &str, path: &str, role: Role) {
    if let Some(schema) = from.get(keyword) {
        children.push(Child { role, schema, path: join(path, keyword) });
    }
}

fn push_list<'a>(children: &mut Vec<Child<'a>>, from: &'a Map<String, Value>, keyword: &str, path: &str, role: Role) {
    let list = from.get(keyword).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let path = join(path, keyword);
    let child = |(index, schema): (usize, &'a Value)| Child { role, schema, path: join(&path, &index.to_string()) };
    children.extend(list.iter().enumerate().map(child));
}

fn push_named<'a>(children: &mut Vec<Child<'a>>, from: &'a Map<String, Value>, keyword: &str, path: &str, role: Role) {
    let Some(named) = from.get(keyword).and_then(Value::as_object) else { return };
    let path = join(path, keyword);
    children.extend(named.iter().map(|(name, schema)| Child { role, schema, path: join(&path, name) }));
}

fn join(path: &str, segment: &str) -> String {
    format!("{path}/{}", segment.replace('~', "~0").replace('/', "~1"))
}
