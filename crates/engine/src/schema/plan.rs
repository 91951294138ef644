//! A schema as a plan: what each type of value must satisfy, resolved once.
//!
//! Why it exists: the library wants a tree of values, and building one alone takes four times as long as
//! walking a plan. Most schemas say little: types, fields, which of them must be
//! there. Those become a plan of nodes (`node.rs`) that is walked along the raw text (`walk.rs`).
//!
//! A plan never says more than the schema does: whatever is not understood completely makes no plan,
//! and the library is asked for every body instead. It never has a cycle, so walking it is bounded.

use super::node::{ArrayRule, Bounds, Node, NodeId, NumberRule, StringRule, Types};
use super::number::Worth;
use super::properties::{ObjectRule, PROPERTIES_MAX, Property, REQUIRED_MAX};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many schemas may stand inside each other: they are read recursively.
const DEPTH_MAX: usize = 48;
/// How many numbers are compared one after the other.
const NUMBERS_MAX: usize = 64;

/// What stands beside a `$ref`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BesideRef {
    /// Counts, too: from 2019-09 on.
    Counts,
    /// Is ignored: drafts 6 and 7.
    Ignored,
}

/// A schema that was understood completely.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) nodes: Vec<Node>,
    pub(super) root: NodeId,
}

impl Plan {
    /// `None` when the schema says anything that a plan cannot.
    pub(super) fn new(schema: &Value, beside_ref: BesideRef) -> Option<Self> {
        let mut planner = Planner { root: schema, beside_ref, nodes: Vec::new(), targets: BTreeMap::new() };
        let node = planner.node(schema, DEPTH_MAX)?;
        let root = planner.place(node)?;
        Some(Self { nodes: planner.nodes, root })
    }
}

struct Planner<'a> {
    root: &'a Value,
    beside_ref: BesideRef,
    nodes: Vec<Node>,
    /// What was referred to; `None` while it is being read, which is how a ring shows.
    targets: BTreeMap<&'a str, Option<Node>>,
}

impl<'a> Planner<'a> {
    fn place(&mut self, node: Node) -> Option<NodeId> {
        let id = u32::try_from(self.nodes.len()).ok()?;
        self.nodes.push(node);
        Some(NodeId(id))
    }

    fn child(&mut self, schema: &'a Value, depth: usize) -> Option<NodeId> {
        let node = self.node(schema, depth)?;
        self.place(node)
    }

    fn node(&mut self, schema: &'a Value, depth: usize) -> Option<Node> {
        let depth = depth.checked_sub(1)?;
        let schema = match schema {
            Value::Bool(true) => return Some(Node::of(Types::ALL)),
            Value::Bool(false) => return Some(Node::of(Types::NONE)),
            Value::Object(schema) => schema,
            _ => return None,
        };
        let is_root = self.root.as_object().is_some_and(|root| std::ptr::eq(root, schema));
        let mut node = Node::of(Types::ALL);
        if let Some(reference) = schema.get("$ref") {
            node = self.target(reference.as_str()?, depth)?;
            if self.beside_ref == BesideRef::Ignored {
                return Some(node);
            }
        }
        if !schema.keys().all(|keyword| is_understood(keyword, is_root)) {
            return None;
        }
        node = node.and(self.assertions(schema, depth)?)?;
        for all in schema.get("allOf").map_or(Some(&[][..]), |all| all.as_array().map(Vec::as_slice))? {
            node = node.and(self.node(all, depth)?)?;
        }
        for (keyword, exactly_one) in [("anyOf", false), ("oneOf", true)] {
            if let Some(branches) = schema.get(keyword) {
                node = node.and(self.union(branches.as_array()?, exactly_one, depth)?)?;
            }
        }
        Some(node)
    }

    /// Only the common form: a name in a list of definitions. A ring makes no plan.
    fn target(&mut self, reference: &'a str, depth: usize) -> Option<Node> {
        if let Some(known) = self.targets.get(reference) {
            return known.clone();
        }
        let (list, name) = reference.strip_prefix("#/")?.split_once('/')?;
        if !matches!(list, "$defs" | "definitions") || name.contains(['/', '~', '%']) {
            return None;
        }
        let target = self.root.get(list)?.as_object()?.get(name)?;
        self.targets.insert(reference, None);
        let node = self.node(target, depth)?;
        self.targets.insert(reference, Some(node.clone()));
        Some(node)
    }

    fn union(&mut self, branches: &'a [Value], exactly_one: bool, depth: usize) -> Option<Node> {
        let mut union = Node::of(Types::NONE);
        for branch in branches {
            union = union.or(self.node(branch, depth)?, exactly_one)?;
        }
        Some(union)
    }

    fn assertions(&mut self, schema: &'a Map<String, Value>, depth: usize) -> Option<Node> {
        let mut node = Node::of(match schema.get("type") {
            None => Types::ALL,
            Some(Value::Array(names)) => {
                names.iter().try_fold(Types::NONE, |types, name| Some(types.or(Types::named(name)?)))?
            }
            Some(name) => Types::named(name)?,
        });
        node.strings = strings(schema)?;
        node.numbers = numbers(schema)?;
        node.arrays = self.arrays(schema, depth)?;
        node.objects = self.objects(schema, depth)?;
        // A list and other rules for the same type would have to be joined; nobody writes both.
        if let Some(list) = schema.get("enum") {
            node = node.and(listed(list.as_array()?)?)?;
        }
        if let Some(value) = schema.get("const") {
            node = node.and(listed(std::slice::from_ref(value))?)?;
        }
        Some(node.tidy())
    }

    fn arrays(&mut self, schema: &'a Map<String, Value>, depth: usize) -> Option<Option<Arc<ArrayRule>>> {
        let count = Bounds::read(schema, "minItems", "maxItems")?;
        if count == Bounds::ANY && !schema.contains_key("items") {
            return Some(None);
        }
        let items = schema.get("items").map_or(Some(Node::of(Types::ALL)), |items| self.node(items, depth))?;
        Some(Some(Arc::new(ArrayRule { count, items: self.place(items)? })))
    }

    fn objects(&mut self, schema: &'a Map<String, Value>, depth: usize) -> Option<Option<Arc<ObjectRule>>> {
        if !["properties", "required", "additionalProperties"].iter().any(|keyword| schema.contains_key(*keyword)) {
            return Some(None);
        }
        let others = match schema.get("additionalProperties") {
            None => self.place(Node::of(Types::ALL))?,
            Some(others) => self.child(others, depth)?,
        };
        let mut properties = Vec::new();
        if let Some(named) = schema.get("properties") {
            let named = named.as_object().filter(|named| named.len() <= PROPERTIES_MAX)?;
            for (name, property) in named {
                properties.push(Property { name: name.clone(), node: self.child(property, depth)?, required: false });
            }
        }
        if let Some(required) = schema.get("required") {
            let required = required.as_array().filter(|required| required.len() <= REQUIRED_MAX)?;
            for name in required {
                require(&mut properties, name.as_str()?, others);
            }
        }
        Some(Some(Arc::new(ObjectRule::new(properties, others)?)))
    }
}

/// A field that must be there and has no schema of its own is one of the others.
fn require(properties: &mut Vec<Property>, name: &str, others: NodeId) {
    match properties.iter_mut().find(|property| property.name == name) {
        Some(property) => property.required = true,
        None => properties.push(Property { name: name.to_owned(), node: others, required: true }),
    }
}

fn strings(schema: &Map<String, Value>) -> Option<Option<Arc<StringRule>>> {
    let length = Bounds::read(schema, "minLength", "maxLength")?;
    Some((length != Bounds::ANY).then(|| Arc::new(StringRule { length, one_of: None })))
}

fn numbers(schema: &Map<String, Value>) -> Option<Option<Arc<NumberRule>>> {
    let read = |name: &str| match schema.get(name) {
        None => Some(None),
        Some(Value::Number(number)) => Worth::of(number).map(Some),
        Some(_) => None,
    };
    let (minimum, maximum) = (read("minimum")?, read("maximum")?);
    let (above, below) = (read("exclusiveMinimum")?, read("exclusiveMaximum")?);
    let any = minimum.or(maximum).or(above).or(below).is_some();
    Some(any.then(|| Arc::new(NumberRule { minimum, maximum, above, below, one_of: None })))
}

/// A list of values that are allowed. Arrays and objects are left to the library.
fn listed(values: &[Value]) -> Option<Node> {
    let mut node = Node::of(Types::NONE);
    let (mut texts, mut numbers) = (Vec::new(), Vec::new());
    for value in values {
        let types = match value {
            Value::Null => Types::NULL,
            Value::Bool(true) => Types::TRUE,
            Value::Bool(false) => Types::FALSE,
            Value::Number(number) => {
                numbers.push(Worth::of(number)?);
                Types::NUMBER
            }
            Value::String(text) => {
                texts.push(text.clone());
                Types::STRING
            }
            Value::Array(_) | Value::Object(_) => return None,
        };
        node.types = node.types.or(types);
    }
    if numbers.len() > NUMBERS_MAX {
        return None;
    }
    if !texts.is_empty() {
        texts.sort_unstable();
        node.strings = Some(Arc::new(StringRule { length: Bounds::ANY, one_of: Some(texts.into()) }));
    }
    if !numbers.is_empty() {
        node.numbers = Some(Arc::new(NumberRule { one_of: Some(numbers.into()), ..NumberRule::default() }));
    }
    Some(node)
}

/// Keywords that are part of a plan, or say nothing about a value. An identifier changes what a
/// reference means unless it stands at the root.
fn is_understood(keyword: &str, is_root: bool) -> bool {
    match keyword {
        "type"
        | "enum"
        | "const"
        | "properties"
        | "required"
        | "additionalProperties"
        | "items"
        | "minItems"
        | "maxItems"
        | "minLength"
        | "maxLength"
        | "minimum"
        | "maximum"
        | "exclusiveMinimum"
        | "exclusiveMaximum"
        | "$ref"
        | "allOf"
        | "anyOf"
        | "oneOf" => true,
        "title" | "description" | "format" | "default" | "examples" | "example" | "$comment" | "deprecated"
        | "readOnly" | "writeOnly" | "$defs" | "definitions" => true,
        "$schema" | "$id" => is_root,
        _ => keyword.starts_with("x-"),
    }
}
