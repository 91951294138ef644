//! The rules of a manifest: each broken once, with the path, the value and what is allowed.

use gleaner_protocol::{BindingKind, Checkpoint, Manifest, ManifestFaultCode, ManifestOrigin, Semantics};

/// A manifest with these streams and this beside them.
pub(crate) fn manifest(beside: &str, streams: &str) -> String {
    format!(
        r#"{{"connector_id":"https://example.test/ferry","connector_key":"ferry","version":"1.0.0"{beside},"streams":[{streams}]}}"#
    )
}

pub(crate) fn stream(name: &str, rest: &str) -> String {
    format!(r#"{{"name":"{name}","semantics":"mutable_state"{rest}}}"#)
}

pub(crate) fn parse(text: &str) -> Manifest {
    Manifest::parse(text.as_bytes(), ManifestOrigin::Foreign).unwrap_or_else(|rejected| panic!("{rejected}"))
}

/// The first fault, as a person reads it.
#[track_caller]
pub(crate) fn check_fault(text: &str, code: ManifestFaultCode, message: &str) {
    let rejected = Manifest::parse(text.as_bytes(), ManifestOrigin::Foreign).expect_err(text);
    assert_eq!((rejected.faults[0].code, rejected.faults[0].to_string().as_str()), (code, message));
}

#[test]
fn a_manifest_with_everything_is_read() {
    let text = manifest(
        r#","display_name":"Ferry","future":{"x":1},"provider":"ferry.test","command":["node","/opt/ferry.js"],
        "runtime_requirements":{"bindings":{"network":{"required":true},"browser_automation":{},"acme:printer":{"required":true}},
            "environment_variables":["FERRY_DIR",{"name":"FERRY_LANG","label":"Language","description":"Of names."},{"name":"FERRY_SHIP","label":""}]},
        "capabilities":{"human_interaction":["otp"],"auth":{"kind":"env","required":["FERRY_USER",["FERRY_TOKEN","FERRY_KEY"]],"optional":["FERRY_PIN",{"other":1},"two words","LD_PRELOAD"]}}"#,
        r#"{"name":"trips","semantics":"append","required":false,"schema":{"type":"object","maximum":1e400},"primary_key":"id",
            "cursor_field":"at","consent_time_field":"at","incremental":true,"selection":{"fields":true},"coverage_strategy":"full_inventory"},
        {"name":"days","semantics":"mutable_state","primary_key":["y","d"]}"#,
    );
    let manifest = parse(&text);
    assert_eq!((manifest.display_name.as_str(), manifest.provider.as_deref()), ("Ferry", Some("ferry.test")));
    assert_eq!(manifest.command.unwrap(), ["node", "/opt/ferry.js"]);
    let bindings = manifest.bindings.iter().map(|b| (b.name.as_str(), b.kind, b.required)).collect::<Vec<_>>();
    assert_eq!(
        bindings,
        [
            ("network", BindingKind::Network, true),
            ("browser_automation", BindingKind::Browser, false),
            ("acme:printer", BindingKind::Namespaced, true)
        ]
    );
    assert_eq!(manifest.environment_variables, ["FERRY_DIR", "FERRY_LANG", "FERRY_SHIP"]);
    let [about] = &manifest.variable_texts[..] else { panic!("{:?}", manifest.variable_texts) };
    assert_eq!((about.name.as_str(), about.label.as_deref()), ("FERRY_LANG", Some("Language")));
    let auth = manifest.auth.unwrap();
    assert_eq!(auth.required, [vec!["FERRY_USER"], vec!["FERRY_TOKEN", "FERRY_KEY"]]);
    assert_eq!(auth.names().collect::<Vec<_>>(), ["FERRY_USER", "FERRY_TOKEN", "FERRY_KEY", "FERRY_PIN"]);
    let trips = &manifest.streams[0];
    assert_eq!((trips.semantics, trips.required, trips.incremental), (Semantics::AppendOnly, false, true));
    assert_eq!(trips.schema.as_ref().unwrap().as_str(), r#"{"type":"object","maximum":1e400}"#);
    assert_eq!(manifest.streams[1].primary_key, ["y", "d"]);
    assert!(manifest.streams[1].required, "a stream is required unless it says otherwise");
    assert!(manifest.warnings.is_empty());
}

#[test]
fn a_manifest_that_cannot_be_read_says_where() {
    check_fault("{", ManifestFaultCode::NotJson, "$ is wrong at byte 1; allowed: one complete JSON object");
    check_fault(r#"{"a":1,"a":2}"#, ManifestFaultCode::DuplicateKey, "$ is wrong at byte 7; allowed: each key once");
    let huge = manifest("", &stream("s", &format!(r#","x":"{}""#, "x".repeat(5_000_000))));
    check_fault(&huge, ManifestFaultCode::TooLarge, "$ is wrong at byte 4194304; allowed: at most 4 MiB");
    assert!(Manifest::parse(b"\xff{}", ManifestOrigin::Foreign).is_err());
}

#[test]
fn all_faults_are_told_at_once() {
    let text = r#"{"connector_id":"","connector_key":"../x","streams":[{"name":"*","semantics":"liquid"},7]}"#;
    let rejected = Manifest::parse(text.as_bytes(), ManifestOrigin::Foreign).unwrap_err();
    let paths = rejected.faults.iter().map(|fault| fault.path.as_str()).collect::<Vec<_>>();
    assert_eq!(
        paths,
        ["connector_id", "connector_key", "version", "streams[0].name", "streams[0].semantics", "streams[1]"]
    );
}

#[test]
fn the_number_of_streams_and_of_faults_is_bounded() {
    let many = (0..1001).map(|n| stream(&format!("s{n}"), "")).collect::<Vec<_>>();
    let rejected = Manifest::parse(manifest("", &many.join(",")).as_bytes(), ManifestOrigin::Foreign).unwrap_err();
    assert_eq!(rejected.faults[0].code, ManifestFaultCode::TooMany);
    assert_eq!(parse(&manifest("", &many[..1000].join(","))).streams.len(), 1000);
    let bad = (0..900).map(|_| "{}").collect::<Vec<_>>().join(",");
    let rejected = Manifest::parse(manifest("", &bad).as_bytes(), ManifestOrigin::Foreign).unwrap_err();
    assert_eq!(rejected.faults.len(), 100);
}

#[test]
fn values_that_a_terminal_would_obey_are_made_harmless() {
    let text = manifest("", &stream("s", r#","coverage_policy":"\u001b]0;x""#).replace("\\u001b", "\u{9b}\u{202e}"));
    let rejected = Manifest::parse(text.as_bytes(), ManifestOrigin::Foreign).unwrap_err();
    assert!(rejected.to_string().contains("\u{fffd}\u{fffd}]0;x"), "{rejected}");
}

#[test]
fn dangerous_requests_are_refused() {
    for name in ["LD_PRELOAD", "ld_library_path", "NODE_OPTIONS", "DYLD_INSERT_LIBRARIES", "BASH_ENV", "PERL5OPT"] {
        check_fault(
            &manifest(&format!(r#","runtime_requirements":{{"environment_variables":["{name}"]}}"#), ""),
            ManifestFaultCode::Dangerous,
            &format!(
                "runtime_requirements.environment_variables[0] is \"{name}\"; allowed: a variable of the connector's own"
            ),
        );
    }
    for program in ["./collect", "bin/collect", "/opt/../etc/x"] {
        check_fault(
            &manifest(&format!(r#","command":["{program}"]"#), ""),
            ManifestFaultCode::Dangerous,
            &format!(
                "command[0] is \"{program}\"; allowed: an absolute path, or the bare name of a program on the PATH"
            ),
        );
    }
    check_fault(
        &manifest(r#","capabilities":{"auth":{"kind":"env","required":["A B"]}}"#, ""),
        ManifestFaultCode::NotAllowed,
        "capabilities.auth.required[0] is \"A B\"; allowed: letters, digits and `_`, not beginning with a digit",
    );
}

#[test]
fn a_binding_that_nobody_knows_is_a_warning() {
    let manifest = parse(&manifest(r#","runtime_requirements":{"bindings":{"telepathy":{"required":true}}}"#, ""));
    assert_eq!(manifest.bindings[0].kind, BindingKind::Unknown);
    assert_eq!(manifest.warnings[0].path, "runtime_requirements.bindings.telepathy");
}

#[test]
fn refresh_policies_are_checked_in_all_their_ranges() {
    let policy = |rest: &str| {
        manifest(
            &format!(
                r#","capabilities":{{"refresh_policy":{{"recommended_mode":"automatic","rationale":"why"{rest}}}}}"#
            ),
            "",
        )
    };
    assert!(parse(&policy("")).refresh_policy.is_some());
    for (rest, code) in [
        (r#","recommended_interval_seconds":0"#, ManifestFaultCode::OutOfRange),
        (r#","recommended_interval_seconds":1.5"#, ManifestFaultCode::OutOfRange),
        (r#","recommended_interval_seconds":"60""#, ManifestFaultCode::WrongType),
        (r#","recommended_interval_seconds":59,"minimum_interval_seconds":60"#, ManifestFaultCode::OutOfRange),
        (r#","maximum_staleness_seconds":-1"#, ManifestFaultCode::OutOfRange),
        (r#","session_lifetime_seconds":99999999999"#, ManifestFaultCode::OutOfRange),
        (r#","interaction_posture":"maybe""#, ManifestFaultCode::NotAllowed),
        (r#","rate_limit_sensitivity":"extreme""#, ManifestFaultCode::NotAllowed),
        (r#","bot_detection_sensitivity":3"#, ManifestFaultCode::NotAllowed),
        (r#","background_safe":"yes""#, ManifestFaultCode::WrongType),
        (r#","assisted_after_owner_auth":1"#, ManifestFaultCode::WrongType),
        (r#","max_cooldown_cycles":0"#, ManifestFaultCode::OutOfRange),
        (r#","max_cooldown_cycles":25"#, ManifestFaultCode::OutOfRange),
        (r#","max_recovery_attempts":0"#, ManifestFaultCode::OutOfRange),
        (r#","max_recovery_attempts":21"#, ManifestFaultCode::OutOfRange),
    ] {
        let rejected = Manifest::parse(policy(rest).as_bytes(), ManifestOrigin::Foreign).expect_err(rest);
        assert_eq!(rejected.faults[0].code, code, "{rest}");
    }
    for rest in [
        r#","recommended_interval_seconds":60,"minimum_interval_seconds":60"#,
        r#","max_cooldown_cycles":1"#,
        r#","max_cooldown_cycles":24"#,
        r#","max_recovery_attempts":20"#,
        r#","interaction_posture":"otp_likely""#,
    ] {
        assert!(parse(&policy(rest)).refresh_policy.is_some(), "{rest}");
    }
    check_fault(
        &manifest(r#","capabilities":{"refresh_policy":{"recommended_mode":"hourly","rationale":"r"}}"#, ""),
        ManifestFaultCode::NotAllowed,
        "capabilities.refresh_policy.recommended_mode is \"hourly\"; allowed: automatic, manual, paused",
    );
}

#[test]
fn checkpoints_depend_on_one_stream_or_on_several_and_never_in_a_ring() {
    let child = |name: &str, parent: &str| {
        stream(name, &format!(r#","coverage_strategy":"checkpoint_window","state_stream":"{parent}""#))
    };
    let many = |name: &str, parents: &str| {
        stream(name, &format!(r#","coverage_strategy":"parent_detail_accounting","parent_streams":[{parents}]"#))
    };
    let fine = parse(&manifest("", &[stream("a", ""), child("b", "a"), many("c", r#""a","b""#)].join(",")));
    assert_eq!(fine.streams[1].checkpoint, Checkpoint::StateStream("a".to_owned()));
    assert_eq!(fine.streams[2].checkpoint.parents(), ["a", "b"]);
    for (streams, code, message) in [
        (
            vec![child("a", "a")],
            ManifestFaultCode::SelfReference,
            "streams[0].state_stream is a; allowed: another stream",
        ),
        (
            vec![child("a", "z")],
            ManifestFaultCode::UnknownStream,
            "streams[0].state_stream is z; allowed: the name of a stream in this manifest",
        ),
        (
            vec![stream("a", ""), many("b", r#""a","a""#)],
            ManifestFaultCode::Duplicate,
            "streams[1].parent_streams[1] is \"a\"; allowed: each parent once",
        ),
        (
            vec![many("a", "")],
            ManifestFaultCode::WrongType,
            "streams[0].parent_streams is []; allowed: a list of streams that is not empty",
        ),
        (
            vec![child("a", "b"), many("b", r#""c""#), child("c", "a")],
            ManifestFaultCode::Cycle,
            "streams[0].state_stream is a -> b -> c -> a; allowed: dependencies without a ring",
        ),
        (
            vec![stream("a", ""), stream("b", r#","state_stream":"a""#)],
            ManifestFaultCode::Conflict,
            "streams[1].coverage_strategy is missing; allowed: checkpoint_window, because there is a state_stream",
        ),
        (
            vec![stream("a", ""), stream("b", r#","parent_streams":["a"],"coverage_strategy":"checkpoint_window""#)],
            ManifestFaultCode::Conflict,
            "streams[1].coverage_strategy is \"checkpoint_window\"; allowed: parent_detail_accounting, because there is a parent_streams",
        ),
        (
            vec![stream("a", ""), stream("b", r#","parent_streams":["a"],"state_stream":"a""#)],
            ManifestFaultCode::Conflict,
            "streams[1].parent_streams is [\"a\"]; allowed: either state_stream or parent_streams, not both",
        ),
        (
            vec![stream("a", ""), stream("a", "")],
            ManifestFaultCode::Duplicate,
            "streams[1].name is \"a\"; allowed: a name that no other stream has",
        ),
    ] {
        check_fault(&manifest("", &streams.join(",")), code, message);
    }
}
