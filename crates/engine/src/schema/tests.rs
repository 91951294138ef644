//! What the schemas of a manifest promise as a whole.

mod agreement;

use super::*;
use gleaner_protocol::ManifestOrigin;

fn schemas(schema: &str) -> Result<Schemas, SchemaFault> {
    let text = format!(
        r#"{{"connector_id":"c","connector_key":"c","version":"1","streams":[
            {{"name":"plain","semantics":"append_only"}},
            {{"name":"trips","semantics":"append_only","schema":{schema}}}]}}"#
    );
    Schemas::new(&Manifest::parse(text.as_bytes(), ManifestOrigin::Foreign).unwrap())
}

fn check(schema: &str, body: &str) -> Result<(), String> {
    schemas(schema).unwrap().check("trips", &RawJson::new(body).unwrap()).map_err(|misfit| misfit.pointer)
}

fn refused(schema: &str) -> (SchemaFaultCode, String) {
    let fault = schemas(schema).unwrap_err();
    assert_eq!(fault.stream, "trips");
    (fault.code, fault.path)
}

#[test]
fn a_body_that_does_not_fit_is_told_with_the_place_of_the_fault() {
    let schema = r#"{"type":"object","required":["id"],"properties":{
        "id":{"type":"string"},"a/b":{"items":{"type":"integer"}},"at":{"type":["string","null"],"format":"date-time"}}}"#;
    assert_eq!(check(schema, r#"{"id":"1","a/b":[1,2.0],"at":null}"#), Ok(()));
    assert_eq!(check(schema, r#"{"id":1}"#), Err("/id".to_owned()));
    assert_eq!(check(schema, r#"{"id":"1","a/b":[1,2.5]}"#), Err("/a~1b/1".to_owned()));
    assert_eq!(check(schema, "{}"), Err(String::new()));
    assert_eq!(check(schema, r#"{"id":"1","at":"soon"}"#), Ok(()), "a format is a remark");
}

#[test]
fn a_stream_without_a_schema_takes_everything() {
    let schemas = schemas("{}").unwrap();
    for stream in ["plain", "unknown"] {
        assert_eq!(schemas.check(stream, &RawJson::new("[1e400]").unwrap()), Ok(()));
    }
}

#[test]
fn keywords_outside_of_a_plan_are_checked_too() {
    let schema = r#"{"properties":{"a":{"pattern":"^x+$"}},"minProperties":1}"#;
    assert_eq!(check(schema, r#"{"a":"xx"}"#), Ok(()));
    assert_eq!(check(schema, r#"{"a":"xy"}"#), Err("/a".to_owned()));
    assert_eq!(check(schema, "{}"), Err(String::new()));
}

#[test]
fn numbers_of_any_size_and_half_characters_are_no_fault() {
    let digits = "9".repeat(400);
    // The second schema has no plan, so both ways are taken.
    for extra in ["", r#","minProperties":1"#] {
        let schema = format!(
            r#"{{"properties":{{"i":{{"type":"integer"}},"n":{{"type":"number"}},"s":{{"type":"string","maxLength":2}}}}{extra}}}"#
        );
        for number in ["1e400", "-1e400", "9223372036854775808", "18446744073709551616", &digits] {
            assert_eq!(check(&schema, &format!(r#"{{"i":{number},"n":{number}}}"#)), Ok(()), "{number}");
        }
        assert_eq!(check(&schema, r#"{"i":1e-400}"#), Err("/i".to_owned()));
        assert_eq!(check(&schema, r#"{"s":"\u0000\ud800"}"#), Ok(()));
        assert_eq!(check(&schema, r#"{"s":"\u0000\ud800\ud800"}"#), Err("/s".to_owned()));
    }
    assert_eq!(check(r#"{"properties":{"s":{"pattern":"^\ufffd$"}}}"#, r#"{"s":"\udc00"}"#), Ok(()));
}

#[test]
fn references_within_the_schema_work_and_nothing_is_fetched() {
    let schema = r##"{"$defs":{"node":{"properties":{"next":{"$ref":"#/$defs/node"},"n":{"type":"integer"}}}},"$ref":"#/$defs/node"}"##;
    assert_eq!(check(schema, r#"{"n":1,"next":{"n":2,"next":{}}}"#), Ok(()));
    assert_eq!(check(schema, r#"{"next":{"next":{"n":"x"}}}"#), Err("/next/next/n".to_owned()));
    for remote in ["https://example.com/a.json", "file:///etc/passwd", "other.json#/a", "urn:uuid:1", ""] {
        let schema = format!(r#"{{"properties":{{"a":{{"items":{{"$ref":"{remote}"}}}}}}}}"#);
        let place = "/properties/a/items/$ref".to_owned();
        assert_eq!(refused(&schema), (SchemaFaultCode::RemoteReference, place), "{remote}");
    }
    assert_eq!(refused(r##"{"not":{"$ref":"#name"}}"##), (SchemaFaultCode::NamedReference, "/not/$ref".to_owned()));
    assert_eq!(refused(r##"{"not":{"$ref":"#/a"}}"##), (SchemaFaultCode::NothingThere, "/not/$ref".to_owned()));
    let nested = r##"{"$defs":{"a":{"$id":"http://a/"}},"$ref":"#/$defs/a"}"##;
    assert_eq!(refused(nested), (SchemaFaultCode::NestedIdentifier, "/$defs/a".to_owned()));
}

#[test]
fn a_reference_may_be_percent_encoded() {
    let schema = r##"{"$defs":{"a b":{"type":"null"}},"$ref":"#/$defs/a%20b"}"##;
    assert_eq!((check(schema, "null"), check(schema, "1")), (Ok(()), Err(String::new())));
}

#[test]
fn the_schemas_own_name_does_not_matter() {
    for id in ["https://example.com/trips.json", "trips.json", "http://[", "#", "urn:x", "http://a/#b"] {
        let schema = format!(r##"{{"$id":"{id}","$defs":{{"a":{{"type":"null"}}}},"items":{{"$ref":"#/$defs/a"}}}}"##);
        assert_eq!(check(&schema, "[null]"), Ok(()), "{id}");
        assert_eq!(check(&schema, "[1]"), Err("/0".to_owned()), "{id}");
    }
}

#[test]
fn what_is_no_schema_is_refused_with_stream_place_and_advice() {
    let fault = schemas(r#"{"properties":{"a":{"type":"strin"}}}"#).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "the schema of stream \"trips\" cannot be used, at /properties/a/type: \
         JSON Schema does not allow what stands there. Correct it, or remove it"
    );
    assert_eq!(refused(r#"{"required":"a"}"#), (SchemaFaultCode::NotASchema, "/required".to_owned()));
    assert_eq!(
        refused(r#"{"$schema":"https://example.com/mine"}"#),
        (SchemaFaultCode::UnknownDraft, "/$schema".to_owned())
    );
    let large = format!(r#"{{"description":"{}"}}"#, "x".repeat(bounds::SCHEMA_BYTES_MAX));
    assert_eq!(refused(&large), (SchemaFaultCode::TooLarge, String::new()));
}

#[test]
fn drafts_mean_what_they_say() {
    let integer = |draft: &str| check(&format!(r#"{{"$schema":"{draft}","type":"integer"}}"#), "1.0");
    assert_eq!(integer("http://json-schema.org/draft-07/schema#"), Ok(()));
    assert_eq!(integer("http://json-schema.org/draft-04/schema#"), Err(String::new()));
    // Until draft 7 what stands beside a reference is ignored.
    let beside = |draft: &str| {
        let schema = format!(
            r##"{{"$schema":"{draft}","definitions":{{"a":{{}}}},"items":{{"$ref":"#/definitions/a","type":"null"}}}}"##
        );
        check(&schema, "[1]")
    };
    assert_eq!(beside("http://json-schema.org/draft-07/schema#"), Ok(()));
    assert_eq!(beside("https://json-schema.org/draft/2020-12/schema"), Err("/0".to_owned()));
}

#[test]
fn a_pattern_that_is_large_or_looks_around_is_refused() {
    let place = "/properties/a/pattern".to_owned();
    for pattern in ["(a{1000}){1000}", "((((a{99}){99}){99}){99})", "(?=a)b", r"(a)\\1", "[", r"(\\p{L}{100}){100}"] {
        let schema = format!(r#"{{"properties":{{"a":{{"pattern":"{pattern}"}}}}}}"#);
        assert_eq!(refused(&schema), (SchemaFaultCode::PatternRefused, place.clone()), "{pattern}");
    }
    let key = r#"{"patternProperties":{"(a{1000}){1000}":true}}"#;
    assert_eq!(refused(key).0, SchemaFaultCode::PatternRefused);
    let long = format!(r#"{{"properties":{{"a":{{"pattern":"{}"}}}}}}"#, "a".repeat(1025));
    assert_eq!(refused(&long), (SchemaFaultCode::PatternTooLong, place));
    let many = (0..257).map(|n| format!(r#""{n}":{{"pattern":"{n}"}}"#)).collect::<Vec<_>>().join(",");
    assert_eq!(refused(&format!(r#"{{"properties":{{{many}}}}}"#)).0, SchemaFaultCode::TooManyPatterns);
}

#[test]
fn ordinary_patterns_are_accepted() {
    for pattern in [
        r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
        r"^[^\\s@]+@[^\\s@]+\\.[^\\s@]+$",
        r"^\\d{4}-\\d{2}-\\d{2}$",
        r"^\\w{1,255}$",
        r"^\\S{1,255}$",
        r"^\\p{L}{1,10}$",
        r"^[^/]{1,1000}$",
    ] {
        let schema = format!(r#"{{"properties":{{"a":{{"pattern":"{pattern}"}}}}}}"#);
        assert!(schemas(&schema).is_ok(), "{pattern}");
    }
}

#[test]
fn a_pattern_that_ruins_a_backtracking_matcher_is_matched_at_once() {
    let body = format!(r#"{{"a":"{}!"}}"#, "a".repeat(100_000));
    for pattern in ["^(a+)+$", "^(a|aa)+$", "^(.*)*x$"] {
        let schema = format!(r#"{{"properties":{{"a":{{"pattern":"{pattern}"}}}}}}"#);
        assert_eq!(check(&schema, &body), Err("/a".to_owned()), "{pattern}");
    }
}

/// Two references to the next schema, as often as asked.
fn doubling(levels: usize, wrap: &str) -> String {
    let defs = (0..levels)
        .map(|n| {
            let one = wrap.replace('@', &format!(r##"{{"$ref":"#/$defs/a{}"}}"##, n + 1));
            format!(r#""a{n}":{{"allOf":[{one},{one}]}},"#)
        })
        .collect::<String>();
    format!(r##"{{"$defs":{{{defs}"a{levels}":{{"type":"object"}}}},"$ref":"#/$defs/a0"}}"##)
}

#[test]
fn schemas_whose_check_would_not_end_are_refused() {
    for wrap in ["@", r#"{"properties":{"x":@}}"#, r#"{"items":@}"#, r#"{"additionalProperties":@}"#] {
        assert_eq!(refused(&doubling(25, wrap)).0, SchemaFaultCode::TooEntangled, "{wrap}");
        assert!(schemas(&doubling(4, wrap)).is_ok(), "{wrap}");
    }
    let chain = (0..200).map(|n| format!(r##""a{n}":{{"$ref":"#/$defs/a{}"}},"##, n + 1)).collect::<String>();
    let chain = format!(r##"{{"$defs":{{{chain}"a200":{{}}}},"$ref":"#/$defs/a0"}}"##);
    assert_eq!(refused(&chain).0, SchemaFaultCode::TooEntangled);
    let endless = (0..5000).map(|n| format!(r##""a{n}":{{"items":{{"$ref":"#/$defs/a{}"}}}},"##, n + 1));
    let endless = format!(r##"{{"$defs":{{{}"a5000":{{}}}},"$ref":"#/$defs/a0"}}"##, endless.collect::<String>());
    assert_eq!(refused(&endless).0, SchemaFaultCode::TooEntangled);
}

fn nested(open: &str, leaf: &str, close: &str) -> String {
    format!("{}{leaf}{}", open.repeat(126), close.repeat(126))
}

/// On a thread as small as any that this will run on.
fn on_a_small_stack(check: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn_scoped(scope, check).unwrap().join().unwrap();
    });
}

#[test]
fn the_deepest_bodies_and_the_longest_chains_fit_the_stack() {
    on_a_small_stack(|| {
        let (objects, arrays) = (nested(r#"{"x":"#, "1", "}"), nested("[", "1", "]"));
        for length in [0, 3, 7, 14, 20, 28] {
            let mut inner = r##"{"properties":{"x":{"$ref":"#"}},"items":{"$ref":"#"}}"##.to_owned();
            for n in 0..length {
                inner = match n % 4 {
                    0 => format!(r#"{{"allOf":[{inner}]}}"#),
                    1 => format!(r#"{{"anyOf":[{inner}]}}"#),
                    2 => format!(r#"{{"oneOf":[{inner}]}}"#),
                    _ => format!(r#"{{"if":true,"then":{inner}}}"#),
                };
            }
            let schemas = schemas(&format!(r#"{{"type":["object","array"],"allOf":[{inner}]}}"#)).unwrap();
            for body in [&objects, &arrays] {
                assert!(schemas.check("trips", &RawJson::new(body.as_str()).unwrap()).is_err(), "{length}");
            }
        }
        // The plan skips, the library recurses.
        assert_eq!(check(r#"{"type":"object"}"#, &objects), Ok(()));
        assert_eq!(check(r#"{"type":"object","minProperties":1}"#, &objects), Ok(()));
    });
}

#[test]
fn the_deepest_schemas_are_compiled_or_refused() {
    on_a_small_stack(|| {
        for (open, close, levels) in [
            (r#"{"not":"#, "}", 110),
            (r#"{"items":"#, "}", 110),
            (r#"{"allOf":["#, "]}", 55),
            (r#"{"properties":{"a":"#, "}}", 55),
            (r#"{"$defs":{"a":"#, "}}", 55),
            (r#"{"x-any":"#, "}", 110),
        ] {
            let _outcome = schemas(&format!("{}{{}}{}", open.repeat(levels), close.repeat(levels)));
        }
    });
}

#[test]
fn schemas_that_go_round_get_an_answer_at_once() {
    let body = nested(r#"{"x":"#, "{}", "}");
    for schema in [
        r##"{"$ref":"#"}"##,
        r##"{"allOf":[{"$ref":"#"}]}"##,
        r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}"##,
        r##"{"allOf":[{"properties":{"x":{"$ref":"#"}}},{"properties":{"x":{"$ref":"#"}}}]}"##,
    ] {
        assert_eq!(check(schema, &body), Ok(()), "{schema}");
    }
    // Where the fault is would take for ever to say: two ways at each of 126 levels.
    let branch = r##"{"properties":{"x":{"$ref":"#"}},"required":["x"]}"##;
    assert_eq!(check(&format!(r#"{{"anyOf":[{branch},{branch}]}}"#), &body), Err(String::new()));
    let unevaluated = format!(r#"{{"anyOf":[{branch},{branch},{{}}],"unevaluatedProperties":true}}"#);
    assert_eq!(check(&unevaluated, &body), Ok(()));
}

#[test]
fn a_pointer_is_bounded_and_stays_a_pointer() {
    let schema = r##"{"additionalProperties":{"$ref":"#"},"type":"object"}"##;
    let (short, long) = ("k".repeat(500), "k".repeat(5000));
    assert_eq!(check(schema, &format!(r#"{{"{short}":{{"{long}":1}}}}"#)), Err(format!("/{short}")));
    assert_eq!(check(schema, &format!(r#"{{"{long}":1}}"#)), Err(String::new()));
}

#[test]
fn every_fault_says_what_to_do() {
    use SchemaFaultCode as Code;
    for code in [
        Code::TooLarge,
        Code::NotASchema,
        Code::UnknownDraft,
        Code::RemoteReference,
        Code::NamedReference,
        Code::NothingThere,
        Code::NestedIdentifier,
        Code::PatternTooLong,
        Code::TooManyPatterns,
        Code::PatternRefused,
        Code::TooEntangled,
    ] {
        let text = code.to_string();
        let (wrong, to_do) = text.split_once(". ").unwrap();
        assert!(!wrong.is_empty() && to_do.starts_with(char::is_uppercase), "{code:?}");
    }
}
