//! Times that cannot be read, gaps that are retried, and what a run is handed during a cooldown: with a foreign connector,
//! from the command line to the store and back.

use crate::place::{Place, last_line};
use serde_json::Value;

const MANIFEST: &str = r#"{"connector_id":"shop","connector_key":"shop","version":"1","display_name":"Shop","streams":[
    {"name":"orders","semantics":"mutable_state","primary_key":"id","consent_time_field":"at"}]}"#;

fn shop() -> Place {
    let place = Place::new();
    place.write("manifest.json", MANIFEST);
    place
}

/// Point 2 of issue 18: all of these but the first were quarantined, and the cursor was committed past them.
#[test]
fn with_since_no_record_is_lost_because_of_its_time() {
    let shop = shop();
    let script = r#"
times = ["2031-01-15T00:00:00Z", 1926201600, 1926201600000, "2031-01-15T00:00:00", "2031-01-15", None, "soon"]
for n, at in enumerate(times):
    say(type="RECORD", stream="orders", key=str(n), data={"id": n, "at": at}, emitted_at="2031-01-01T00:00:00Z")
say(type="RECORD", stream="orders", key="old", op="delete", data={"id": 9, "at": "2001-01-01"})
say(type="STATE", stream="orders", cursor={"to": 9}, slice=True)
done(len(times) + 1); end()"#;
    let answer = shop.run(script, &["--since", "2031-01-01", "--json"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    let end = last_line(&answer.stdout);
    assert_eq!((&end["records_accepted"], &end["records_rejected"]), (&7.into(), &0.into()), "{end}");
    assert_eq!((&end["records_deleted"], &end["times_unreadable"]), (&1.into(), &2.into()), "{end}");
    let listed = shop.gleaner(&["records", "shop.orders", "--time-unreadable"]).stdout;
    assert_eq!(listed.lines().map(|line| line.split(' ').next().unwrap()).collect::<Vec<_>>(), ["5", "6"]);
    let coverage = shop.gleaner(&["coverage", "shop", "--json"]).stdout;
    assert_eq!(last_line(&coverage)["times_unreadable"], 2, "{coverage}");
    assert_eq!(last_line(&shop.gleaner(&["runs", "shop", "--json"]).stdout)["times_unreadable"], 2);
}

/// Writes down which gaps it is handed, in START and in answer to a request, and puts them back.
const HANDED: &str = r#"
def gap(key, reason, **more): say(type="DETAIL_GAP", stream="orders", record_key=key, reason=reason, status="pending", reference_only=True, **more)
handed = list(start["detail_gaps"])
say(type="DETAIL_GAPS_PAGE_REQUEST", request_id="p", reference_only=True)
handed += json.loads(sys.stdin.readline())["detail_gaps"]
open("handed", "w").write(" ".join(sorted(one["record_key"] for one in handed)))
reasons = {"a": "rate_limited", "b": "upstream_pressure", "c": "temporary_unavailable"}
for one in handed: gap(one["record_key"], reasons[one["record_key"]], gap_id=one["gap_id"], lease_id=one["lease_id"])
if not start.get("recovery_only"): [gap(key, reason) for key, reason in reasons.items() if key not in {one["record_key"] for one in handed}]
done(0); end()"#;

/// Point 21 of issue 18.
#[test]
fn a_run_during_a_cooldown_is_handed_no_gap_of_the_provider_and_says_until_when() {
    let shop = shop();
    assert_eq!(shop.run(HANDED, &[]).code, 3);
    assert_eq!(shop.read("handed"), "", "the first run finds them");
    let resting = shop.run(HANDED, &["--json"]);
    assert_eq!(resting.code, 5, "{resting:?}");
    assert_eq!(shop.read("handed"), "c", "what the provider rate-limited is left alone");
    let until = last_line(&resting.stdout)["cooldown_until"].as_str().map(str::to_owned);
    let until = until.unwrap_or_else(|| panic!("{resting:?}"));
    // It was tried and waits, so there is nothing that may be done meanwhile.
    let refused = shop.run(HANDED, &[]);
    assert!(refused.code == 5 && refused.stderr.contains(&format!("is in a cooldown until {until}")), "{refused:?}");
    let retried = shop.gleaner(&["gaps", "retry", "shop", "--reason", "temporary_unavailable"]);
    assert_eq!((retried.code, retried.stdout.as_str()), (0, "shop: the next run tries 1 gap\n"), "{retried:?}");
    let text = shop.run(HANDED, &[]);
    assert!(text.code == 5 && text.stdout.contains(&format!("cooldown until {until}")), "{text:?}");
    let all = shop.gleaner(&["gaps", "retry", "--all"]).stdout;
    let said = "shop: the next run tries 1 gap; 2 gaps that the provider refused when the cooldown ends at ";
    assert!(all.starts_with(said), "{all}");
    assert_eq!(shop.run(HANDED, &["--now"]).code, 3);
    assert_eq!(shop.read("handed"), "a b c", "--now overrides");
}

/// Point 7 of issue 18: a gap that the provider failed on was given up after eight tries.
#[test]
fn a_gap_that_fails_is_put_off_and_never_given_up_and_the_owner_can_retry_it() {
    let shop = shop();
    let script = r#"
open("handed", "a").write(str(len(start["detail_gaps"])))
more = {"gap_id": one["gap_id"] for one in start["detail_gaps"]}
say(type="DETAIL_GAP", stream="orders", record_key="k", reason="retry_exhausted", last_error={"class": "http", "http_status": 503}, status="pending", reference_only=True, **more)
done(0); end()"#;
    let gap = || last_line(&shop.gleaner(&["gaps", "shop", "--json"]).stdout);
    assert_eq!(shop.run(script, &[]).code, 3);
    for tries in 1..10_u64 {
        shop.run(script, &[]);
        let known: Value = gap();
        assert_eq!((&known["state"], &known["attempts"]), (&"pending".into(), &tries.into()), "{known}");
        assert!(known["not_before"].is_string(), "{known}");
        shop.run(script, &[]);
        assert_eq!(gap()["attempts"], tries, "it is not due");
        let what: &[&str] = match tries % 3 {
            0 => &["gaps", "retry", "--all"],
            1 => &["gaps", "retry", "shop", "--stream", "orders", "--reason", "retry_exhausted"],
            _ => &["gaps", "retry", "shop"],
        };
        assert_eq!(shop.gleaner(what).code, 0);
    }
    assert_eq!(shop.gleaner(&["gaps", "retry", "shop", "--reason", "bad-luck"]).code, 2);
    assert_eq!(shop.gleaner(&["gaps", "retry", "shop", "--stream", "nothing"]).code, 2);
    let id = gap()["gap_id"].as_str().unwrap().to_owned();
    assert_eq!(shop.gleaner(&["gaps", "retry", &id]).code, 0);
}
