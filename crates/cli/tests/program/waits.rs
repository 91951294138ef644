//! A back-off is seen while it lasts (issue 18, point 13): by `why`, by `status`, and on the lines of the run itself.

use crate::collect::Shop;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

/// How long something that happens at once may take on a machine with other work.
const SOON: Duration = Duration::from_secs(30);

/// Reports one wait after the other, each when a file of its name is there.
const WAITS: &str = r#"
import datetime
def at(minutes): return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=minutes)).isoformat()
def wait(minutes, reason): say(type="PROGRESS", message="x", waiting={"object": "waiting", "until": at(minutes), "reason": reason})
def step(name):
    while not os.path.exists(name): time.sleep(0.05)
say(type="PROGRESS", message="fast", collection_rate={"object":"collection_rate","current_interval_ms":20,"effective_rate_per_min":3000,"ceiling_interval_ms":20,"ceiling_rate_per_min":3000,"last_backoff":None})
wait(600, "retry_after")
step("other")
wait(600, "moon_phase")
say(type="PROGRESS", message="this says nothing about a \"waiting\": at all")
for wrong in ("soon", 7, {"object": "waiting", "until": "soon", "reason": "ban"}, {"object": "rest", "until": at(9), "reason": "ban"}):
    say(type="PROGRESS", message="x", waiting=wrong)
step("past")
wait(-1, "quota")
step("over")
wait(600, "throttle")
say(type="PROGRESS", message="x", waiting=None)
step("again")
wait(600, "circuit")
step("never")
"#;

fn status(shop: &Shop) -> Value {
    serde_json::from_str(shop.gleaner(&["status", "--json"]).stdout.lines().next().unwrap_or("null"))
        .unwrap_or_default()
}

fn until(shop: &Shop, what: &str, is_so: impl Fn(&Value) -> bool) {
    let began = Instant::now();
    while !is_so(&status(shop)) {
        assert!(began.elapsed() < SOON, "never {what}: {}", status(shop));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_wait_that_a_connector_reports_is_shown_while_it_lasts_and_its_pace_is_not() {
    let shop = Shop::new("waits");
    let mut run = shop.start(WAITS);
    let lines = BufReader::new(run.stdout.take().unwrap()).lines();
    let said = std::thread::spawn(move || lines.map_while(Result::ok).collect::<Vec<_>>());
    let reason = |reason: &'static str| move |status: &Value| status["waiting"]["reason"] == reason;
    until(&shop, "a wait", reason("retry_after"));
    let text = shop.gleaner(&["status"]).stdout;
    assert!(text.contains("  waiting until ") && text.contains(": the provider sent Retry-After"), "{text}");
    let why = shop.gleaner(&["why", "shop"]).stdout;
    assert!(why.contains("It is waiting until ") && why.contains(": the provider sent Retry-After."), "{why}");
    assert!(!why.contains("times a minute"), "it asks for nothing: {why}");
    let why = shop.gleaner(&["why", "shop", "--json"]).stdout;
    assert!(why.contains(r#""code":"waiting""#) && !why.contains("rate_per_min"), "{why}");

    fs::write(shop.root.join("other"), "").unwrap();
    until(&shop, "a reason of its own", reason("moon_phase"));
    assert!(shop.gleaner(&["status"]).stdout.contains(": the connector says moon_phase"));
    fs::write(shop.root.join("past"), "").unwrap();
    until(&shop, "a wait that is over by its time", |status| status["waiting"].is_null());
    assert!(shop.gleaner(&["why", "shop"]).stdout.contains("It asks 3000 times a minute"));
    fs::write(shop.root.join("over"), "").unwrap();
    fs::write(shop.root.join("again"), "").unwrap();
    until(&shop, "the next wait", reason("circuit"));
    run.kill().unwrap();
    run.wait().unwrap();
    until(&shop, "a run that was killed and waits for nothing", |status| status["waiting"].is_null());
    let said = said.join().unwrap().join("\n");
    assert!(said.contains(r#""waiting":{"object":"waiting""#) && said.contains(r#""waiting":null"#), "{said}");
    assert!(!said.contains("soon"), "what cannot be a wait is dropped: {said}");
}
