//! Tests that a plan says of a body what the library says, for schemas and bodies that nobody chose.
//!
//! Why it is the test that counts: a plan that says "fits" is not asked again. The vocabularies are
//! small on purpose, so that schemas and bodies meet: few keys, numbers around each other's limits, and
//! the same string in every spelling.

use super::super::library::Library;
use super::super::plan::Plan;
use super::super::{survey, value};
use gleaner_protocol::RawJson;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const DRAFTS: [&str; 4] = [
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-06/schema#",
];

/// As schemas name them; U+FFFD is what half a surrogate pair is read as.
const NAMES: [&str; 8] = ["a", "b", "", "é", "x/y~", "\u{fffd}", "a_longer_name_1", "a_longer_name_2"];

/// As bodies write them. Some of them are the same name, and some only look so.
const KEYS: [&str; 13] = [
    "a",
    r"\u0061",
    "b",
    "A",
    "",
    "é",
    r"\u00e9",
    r"e\u0301",
    r"x\/y~",
    r"\ud800",
    "a_longer_name_1",
    r"a_longer_name\u005f2",
    "a_longer_name_3",
];

const NUMBERS: [&str; 20] = [
    "0",
    "-0",
    "-0.0",
    "1",
    "1.0",
    "10e-1",
    "1.5",
    "-1",
    "2",
    "100",
    "1e2",
    "1e400",
    "-1e400",
    "1e-400",
    "9007199254740993",
    "9007199254740992.0",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775809",
];

const STRINGS: [&str; 11] =
    ["", "a", r"\u0061", "é", r"\u00e9", "😀", r"\ud83d\ude00", r"\ud83d", r"\u0000", "abcdefgh\\\"ijk", "abcd"];

fn number() -> impl Strategy<Value = Value> {
    prop::sample::select(&NUMBERS[..]).prop_map(|number| value::read(number).unwrap())
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => number(),
        3 => prop::sample::select(&STRINGS[..]).prop_map(|inside| value::read(&format!("\"{inside}\"")).unwrap()),
        1 => prop::sample::select(vec![json!(null), json!(true), json!(false)]),
    ]
}

fn types() -> impl Strategy<Value = Value> {
    let names = ["null", "boolean", "integer", "number", "string", "array", "object"];
    prop_oneof![
        3 => prop::sample::select(names.to_vec()).prop_map(Value::from),
        3 => prop::sample::subsequence(names.to_vec(), 1..=4).prop_map(Value::from),
    ]
}

/// One keyword with what belongs to it.
fn keyword(inner: impl Strategy<Value = Value> + Clone + 'static) -> impl Strategy<Value = (&'static str, Value)> {
    let names = || prop::sample::subsequence(NAMES.to_vec(), 0..=3);
    let properties = prop::collection::btree_map(prop::sample::select(&NAMES[..]), inner.clone(), 0..4)
        .prop_map(|named| Value::Object(named.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()));
    let branches = prop::collection::vec(inner.clone(), 1..=3).prop_map(Value::Array);
    let reference = prop::sample::select(vec!["#/$defs/one", "#/definitions/two"]).prop_map(Value::from);
    prop_oneof![
        6 => types().prop_map(|types| ("type", types)),
        5 => properties.prop_map(|properties| ("properties", properties)),
        3 => names().prop_map(|names| ("required", json!(names))),
        2 => inner.clone().prop_map(|schema| ("additionalProperties", schema)),
        3 => inner.prop_map(|schema| ("items", schema)),
        1 => prop::collection::vec(scalar(), 1..=3).prop_map(|mut list| {
            list.dedup();
            ("enum", Value::Array(list[..1].to_vec()))
        }),
        1 => Just(("enum", json!(["a", "é", 1, 1.5, true, null]))),
        1 => scalar().prop_map(|value| ("const", value)),
        3 => (prop::sample::select(vec!["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]), number()),
        3 => (
            prop::sample::select(vec!["minLength", "maxLength", "minItems", "maxItems"]),
            (0_u64..4).prop_map(Value::from)
        ),
        2 => (prop::sample::select(vec!["anyOf", "oneOf", "allOf"]), branches),
        1 => reference.prop_map(|reference| ("$ref", reference)),
        1 => Just(("title", json!("nothing"))),
    ]
}

fn schema() -> impl Strategy<Value = Value> + Clone {
    let leaf = prop_oneof![
        2 => Just(json!(true)),
        1 => Just(json!(false)),
        8 => types().prop_map(|types| json!({"type": types})),
        2 => Just(json!({"type": "integer"})),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop::collection::vec(keyword(inner), 0..4)
            .prop_map(|keywords| {
                let named = keywords.into_iter().map(|(name, value)| (name.to_owned(), value));
                Value::Object(named.collect::<Map<_, _>>())
            })
            .boxed()
    })
    .boxed()
}

/// A whole schema, with something to refer to.
fn document() -> impl Strategy<Value = Value> {
    (schema(), schema(), schema(), prop::sample::select(&DRAFTS[..])).prop_map(|(root, one, two, draft)| {
        let mut members = root.as_object().cloned().unwrap_or_default();
        members.insert("$schema".to_owned(), json!(draft));
        members.insert("$defs".to_owned(), json!({"one": one}));
        members.insert("definitions".to_owned(), json!({"two": two}));
        Value::Object(members)
    })
}

fn body() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        3 => prop::sample::select(&NUMBERS[..]).prop_map(str::to_owned),
        3 => prop::sample::select(&STRINGS[..]).prop_map(|inside| format!("\"{inside}\"")),
        2 => prop::sample::select(vec!["null", "true", "false"]).prop_map(str::to_owned),
        1 => Just("9".repeat(400)),
    ];
    scalar.prop_recursive(3, 16, 4, |inner| {
        let space = || prop::sample::select(vec!["", "", "", " ", " \t "]);
        let member = (prop::sample::select(&KEYS[..]), inner.clone(), space(), space())
            .prop_map(|(key, value, before, after)| format!("{before}\"{key}\"{after}:{before}{value}{after}"));
        let element = (inner, space()).prop_map(|(value, after)| format!("{after}{value}{after}"));
        prop_oneof![
            2 => prop::collection::vec(member, 0..5).prop_map(|members| format!("{{{}}}", members.join(","))),
            1 => prop::collection::vec(element, 0..4).prop_map(|elements| format!("[{}]", elements.join(","))),
        ]
    })
}

/// How often each happened, so that a test that tests nothing is seen.
#[derive(Debug, Default)]
struct Seen {
    planned: u32,
    fitting: u32,
    refused: u32,
}

/// Whether both say the same of every body; the first body of which they do not.
fn disagreement(schema: &Value, bodies: &[String], seen: &mut Seen) -> Option<String> {
    let surveyed = survey::survey(schema).ok()?;
    // Some of what is generated is no schema: a list with the same value twice, for instance.
    let library = Library::new(schema.clone(), surveyed.can_be_located, 0).ok()?;
    let plan = Plan::new(schema, library.beside_ref()?)?;
    seen.planned += 1;
    // A key twice never gets here.
    for body in bodies.iter().filter(|body| RawJson::new(body.as_str()).is_ok()) {
        let last_word = library.check(&value::read(body).unwrap()).is_ok();
        if plan.fits(body) != last_word {
            return Some(format!("the library says {last_word} of {body}"));
        }
        *if last_word { &mut seen.fitting } else { &mut seen.refused } += 1;
    }
    None
}

#[test]
fn a_plan_says_what_the_library_says() {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let cases_run = config.cases;
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let seen = std::cell::RefCell::new(Seen::default());
    let cases = (document(), prop::collection::vec(body(), 24));
    let outcome = runner.run(&cases, |(schema, bodies)| {
        let disagreement = disagreement(&schema, &bodies, &mut seen.borrow_mut());
        prop_assert_eq!(disagreement, None, "{}", schema);
        Ok(())
    });
    let seen = seen.into_inner();
    println!("{seen:?}");
    if let Err(error) = outcome {
        panic!("{error}");
    }
    assert!(seen.planned > cases_run / 2 && seen.fitting > cases_run && seen.refused > cases_run, "{seen:?}");
}

/// Each of these was written because two implementations could differ there.
#[test]
fn a_plan_says_what_the_library_says_where_it_is_delicate() {
    for (schema, bodies) in [
        (json!({"type": "integer"}), &["1.0", "-0", "1e400", "1.5", "1e-400", "18446744073709551616", "true"][..]),
        (json!({"minLength": 2, "maxLength": 2}), &[r#""éé""#, r#""😀""#, r#""\ud83d\ude00x""#, r#""\ud83dx""#, "1"]),
        (json!({"enum": ["é", 1, null, false]}), &[r#""\u00e9""#, "1.0", "10e-1", "null", "false", "true", "[]", "2"]),
        (json!({"const": 1.0}), &["1", "1.0", "1.5", "\"1\""]),
        (
            json!({"maximum": 18_446_744_073_709_551_615_u64}),
            &["18446744073709551615", "18446744073709551616", "1e400"],
        ),
        (json!({"exclusiveMinimum": 9_007_199_254_740_992.0}), &["9007199254740993", "9007199254740992"]),
        (json!({"properties": {"\u{fffd}": {"type": "null"}}}), &[r#"{"\ud800":null}"#, r#"{"\ud800":1}"#]),
        (json!({"required": ["a"], "additionalProperties": false}), &[r#"{"a":1}"#, "{}", r#"{"\u0061":1}"#, "[]"]),
        (
            json!({"properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "null"}}),
            &[r#"{"a":"","b":null}"#, r#"{"a":null}"#, r#"{"b":1}"#, r#"{"\u0061":1}"#],
        ),
        (json!({"anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}]}), &["null", "\"\"", "\"a\"", "1"]),
        (json!({"oneOf": [{"type": "integer"}, {"type": "string"}]}), &["1", "\"\"", "1.5"]),
        (json!({"$ref": "#/$defs/d", "type": "string", "$defs": {"d": {"minLength": 1}}}), &["\"\"", "\"a\"", "1"]),
        (
            json!({"$schema": DRAFTS[2], "$ref": "#/definitions/d", "type": "string", "definitions": {"d": {"minLength": 1}}}),
            &["\"\"", "\"a\"", "1"],
        ),
        (
            json!({"items": {"type": "integer"}, "minItems": 1, "maxItems": 2}),
            &["[]", "[1]", "[1,2.0]", "[1,2,3]", "[null]"],
        ),
    ] {
        let bodies = bodies.iter().map(|&body| body.to_owned()).collect::<Vec<_>>();
        let mut seen = Seen::default();
        assert_eq!(disagreement(&schema, &bodies, &mut seen), None, "{schema}");
        assert_eq!(seen.planned, 1, "no plan was made of {schema}");
        assert_eq!((seen.fitting + seen.refused) as usize, bodies.len(), "{schema}");
    }
}

#[test]
fn what_is_not_understood_makes_no_plan() {
    for schema in [
        json!({"pattern": "a"}),
        json!({"patternProperties": {}}),
        json!({"if": true}),
        json!({"not": {}}),
        json!({"minProperties": 1}),
        json!({"uniqueItems": true}),
        json!({"properties": {"a": {"multipleOf": 2}}}),
        json!({"items": {"contains": true}}),
        json!({"enum": [[1]]}),
        json!({"const": {}}),
        json!({"prefixItems": [true], "items": false}),
        json!({"properties": {"a": {"$ref": "#"}}}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}}),
        json!({"oneOf": [{"type": "integer"}, {"type": "number"}]}),
        json!({"anyOf": [{"minLength": 1}, {"maxLength": 3}]}),
        json!({"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}),
    ] {
        let library = Library::new(schema.clone(), true, 1 << 20).unwrap();
        let plan = library.beside_ref().and_then(|beside_ref| Plan::new(&schema, beside_ref));
        assert!(plan.is_none(), "{schema}");
    }
}
