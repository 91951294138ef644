//! Adding a connection through the console of the real service: pages in a real Chromium, and the API; a check that fails
//! with a bad token and then works, against a service on loopback that looks at tokens.
//!
//! The browser is driven by `crates/console/tests/browser/add.mjs`, which says what went wrong.

use super::Served;
use super::console::ask;
use crate::place::{PRELUDE, is_full_size, python};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What the service accepts, and what it does not.
const GOOD: &str = "tok-good-4711";
const BAD: &str = "tok-bad-0815";

/// Orders are asked for one by one.
const CONNECTOR: &str = r#"
import urllib.request, urllib.error
say(type="PROGRESS", message="begins")
token, url = os.environ.get("SHOP_TOKEN", ""), os.environ["SHOP_URL"]
n, limit = 0, int(os.environ.get("GLEANER_MAX_REQUESTS", "1000"))
while n < limit:
    try:
        ask = urllib.request.Request(url + f"/orders/{n}", headers={"authorization": "Bearer " + token})
        body = json.load(urllib.request.urlopen(ask))
    except urllib.error.HTTPError as error:
        if error.code == 404: break
        # A connector that is careless with what it knows.
        done(0, "failed", error={"message": f"HTTP {error.code} for the token {token} <b>x</b>", "retryable": False, "code": "shop_auth_failed"}); end(1)
    except urllib.error.URLError as error:
        done(0, "failed", error={"message": f"nobody listens at {url}", "retryable": True}); end(1)
    record(body["id"], note=body["note"])
    slice(n)
    say(type="PROGRESS", message=f"order {n}", count=n + 1)
    n += 1
done(n); end()
"#;

/// A service with so many orders, which takes its time for each.
fn shop(orders: usize, latency: Duration) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let seen = Arc::clone(&seen);
            thread::spawn(move || serve_order(&stream, orders, latency, &seen));
        }
    });
    (address, asked)
}

fn serve_order(stream: &TcpStream, orders: usize, latency: Duration, seen: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    let head = lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>();
    let is_known = head.iter().any(|line| line.eq_ignore_ascii_case(&format!("authorization: Bearer {GOOD}")));
    let number = first.split(['/', ' ']).find_map(|part| part.parse::<usize>().ok()).unwrap_or(orders);
    let (status, body) = match (is_known, number < orders) {
        (false, _) => ("401 Unauthorized", json!({})),
        (true, false) => ("404 Not Found", json!({})),
        (true, true) => ("200 OK", json!({"id": number, "note": format!("=order({number})")})),
    };
    seen.lock().unwrap().push(status.to_owned());
    thread::sleep(latency);
    let body = body.to_string();
    let mut stream = stream;
    let _gone =
        write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
}

fn manifest(key: &str, more: &Value) -> String {
    let mut manifest = json!({
        "connector_id": format!("test/{key}"), "connector_key": key, "version": "1", "display_name": "Shop",
        "command": [python(), "-Su", "connector.py"],
        "runtime_requirements": {"environment_variables": [
            {"name": "SHOP_URL", "label": "Address of the shop", "description": "With http:// before it."},
            "SHOP_REGION", "SHOP_ADMIN_PASSWORD", "PATH", "OTHER_DIR"]},
        "capabilities": {"auth": {"kind": "env", "required": ["SHOP_TOKEN"]},
            "refresh_policy": {"recommended_mode": "manual", "rationale": "a test"}},
        "streams": [{"name": "orders", "semantics": "mutable_state", "primary_key": "id",
            "schema": {"type": "object", "required": ["id"],
                       "properties": {"id": {"type": "integer"}, "note": {"type": "string"}}}}],
    });
    if let (Some(manifest), Some(more)) = (manifest.as_object_mut(), more.as_object()) {
        manifest.extend(more.clone());
    }
    manifest.to_string()
}

/// A connector in the place where its owner puts connectors.
fn install(served: &Served, key: &str, more: &Value, script: &str) {
    let folder = served.place.home().join("connectors").join(key);
    fs::create_dir_all(&folder).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(served.place.home(), mode).unwrap();
    fs::write(folder.join("manifest.json"), manifest(key, more)).unwrap();
    fs::write(folder.join("connector.py"), format!("{PRELUDE}{script}")).unwrap();
}

/// Serves, and answers with the link that it prints.
fn begin(served: &mut Served) -> (String, Arc<Mutex<String>>) {
    let mut command = served.place.command(&["serve", "--notify-desktop=no", "--listen=127.0.0.1:0"]);
    let mut service = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(service.stderr.take().unwrap()).lines().map_while(Result::ok);
    served.service = Some(service);
    let link = said.find_map(|line| line.strip_prefix("console: ").map(str::to_owned)).unwrap();
    let heard = Arc::new(Mutex::new(String::new()));
    let hears = Arc::clone(&heard);
    thread::spawn(move || said.for_each(|line| hears.lock().unwrap().push_str(&line)));
    (link, heard)
}

struct Api<'a> {
    served: &'a Served,
    address: String,
}

impl Api<'_> {
    fn send(&self, method: &str, path: &str, body: &Value) -> (u16, Value, String) {
        let token = self.served.place.read("home/console/token");
        let headers = format!("authorization: Bearer {}\r\ncontent-type: application/json\r\n", token.trim());
        let body = if method == "GET" { String::new() } else { body.to_string() };
        let answer = ask(&self.address, method, path, &headers, &body);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or_default(), answer.clone())
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let (status, value, whole) = self.send("POST", path, body);
        assert!(!whole.contains(GOOD) && !whole.contains(BAD), "no answer has a credential: {whole}");
        (status, value)
    }
}

/// No file of the data root has one of these, and neither does what the service printed.
fn has_no_secret(served: &Served, heard: &Mutex<String>) {
    fn files(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                files(&entry.path(), found);
            } else if entry.file_type().unwrap().is_file() {
                found.push(entry.path());
            }
        }
    }
    let mut found = Vec::new();
    files(&served.place.home(), &mut found);
    assert!(found.len() > 5, "{found:?}");
    for file in found {
        let bytes = fs::read(&file).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(GOOD) && !text.contains(BAD), "{} has a credential", file.display());
    }
    let heard = heard.lock().unwrap();
    assert!(!heard.contains(GOOD) && !heard.contains(BAD), "{heard}");
}

fn offers_what_a_page_may_set(api: &Api<'_>) {
    let (status, offered, _) = api.send("GET", "/api/v1/connectors", &Value::Null);
    assert_eq!(status, 200);
    let items = offered["items"].as_array().unwrap();
    let keys = items.iter().map(|item| item["connector"].as_str().unwrap()).collect::<Vec<_>>();
    assert!(keys.contains(&"ical") && keys.contains(&"shop") && !keys.contains(&"demo"), "{keys:?}");
    let offer = items.iter().find(|item| item["connector"] == "shop").unwrap();
    let names = offer["settings"].as_array().unwrap().iter().map(|field| field["name"].as_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["SHOP_URL", "SHOP_REGION"], "what is its own and no secret");
    assert_eq!(offer["settings"][0]["label"], "Address of the shop");
    let chatgpt = items.iter().find(|item| item["connector"] == "chatgpt").unwrap();
    let settings = chatgpt["settings"].to_string();
    assert!(!settings.contains("BROWSER_PATH") && !settings.contains("CHATGPT_PASSWORD"), "{settings}");
    assert_eq!(chatgpt["credentials"][0]["name"], "CHATGPT_PASSWORD", "kept as a secret, though it can do without");
}

/// A page cannot say which program runs, nor set what is not the connector's own.
fn refuses_what_a_page_may_not_say(api: &Api<'_>, check: &str) {
    for (settings, part) in [
        (json!({"PATH": "/tmp/evil"}), "PATH"),
        (json!({"OTHER_DIR": "x"}), "OTHER_DIR"),
        (json!({"SHOP_ADMIN_PASSWORD": "x"}), "SHOP_ADMIN_PASSWORD"),
        (json!({"SHOP_TOKEN": "x"}), "SHOP_TOKEN"),
        (json!({"LD_PRELOAD": "x"}), "LD_PRELOAD"),
    ] {
        let (status, refused) = api.post(check, &json!({"settings": settings}));
        assert!(status == 422 && refused["error"]["message"].as_str().unwrap().contains(part), "{refused}");
    }
    assert_eq!(api.post(check, &json!({"credentials": {"HOME": "x"}})).0, 422);
    assert_eq!(api.post(check, &json!({"command": ["sh"]})).0, 400);
    assert_eq!(api.post("/api/v1/connectors/none/check", &json!({})).0, 404);
    let long = json!({"settings": {"SHOP_URL": "x".repeat(5000)}});
    assert_eq!(api.post(check, &long).0, 422);
    assert_eq!(api.post("/api/v1/connectors/..%2F..%2Fetc/check", &json!({})).0, 404);
}

#[test]
fn a_connection_is_added_through_the_api_after_a_check_and_no_answer_has_its_credential() {
    let mut served = Served::new();
    install(&served, "shop", &json!({}), CONNECTOR);
    let (url, asked) = shop(3, Duration::ZERO);
    let (link, heard) = begin(&mut served);
    let address = link.trim_start_matches("http://").split('/').next().unwrap().to_owned();
    let api = Api { served: &served, address };

    offers_what_a_page_may_set(&api);
    let with = |token: &str| json!({"settings": {"SHOP_URL": url}, "credentials": {"SHOP_TOKEN": token}});
    let check = "/api/v1/connectors/shop/check";
    let (status, found) = api.post(check, &with(BAD));
    assert_eq!((status, &found["verdict"]), (200, &json!("credentials_refused")), "{found}");
    assert!(found["message"].as_str().unwrap().starts_with("The service did not accept the credentials"), "{found}");
    assert!(found["hint"].as_str().unwrap().contains("try again"), "{found}");
    assert_eq!(asked.lock().unwrap().len(), 1, "a check is one request");
    assert_eq!(api.post(check, &json!({"settings": {"SHOP_URL": url}})).1["verdict"], "credentials_missing");
    assert_eq!(
        api.post(check, &with(GOOD)),
        (
            200,
            json!({"verdict": "works",
        "message": "It works: the service answered.",
        "hint": "Add it; its first run starts on schedule, or when you start it."})
        )
    );
    let nowhere = json!({"settings": {"SHOP_URL": "http://127.0.0.1:9"}, "credentials": {"SHOP_TOKEN": GOOD}});
    assert_eq!(api.post(check, &nowhere).1["verdict"], "service_trouble");

    refuses_what_a_page_may_not_say(&api, check);
    let add = |token: &str, more: &Value| {
        let mut wish = with(token);
        wish["connector"] = json!("shop");
        wish.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        api.post("/api/v1/connections", &wish)
    };
    let (status, refused) = add(BAD, &json!({}));
    assert_eq!((status, &refused["error"]["code"]), (422, &json!("check_failed")), "{refused}");
    let (_, list, _) = api.send("GET", "/api/v1/connections", &Value::Null);
    assert_eq!(list["items"], json!([]), "nothing was added");
    assert_eq!(add(GOOD, &json!({"name": "my shop"})), (201, json!({"name": "my shop"})));
    let (status, again) = add(GOOD, &json!({"name": "my shop", "unchecked": true}));
    assert!(status == 409 && again["error"]["message"].as_str().unwrap().contains("already"), "{again}");
    assert_eq!(add(BAD, &json!({"name": "other", "unchecked": true})).0, 201);
    assert_eq!(add(GOOD, &json!({"name": "a\u{7}b", "unchecked": true})).0, 422);

    // What was added runs with what was filled in.
    let (status, _) = api.post("/api/v1/connections/my%20shop/run", &json!({}));
    assert_eq!(status, 202);
    served.wait("the run", || served.reasons("my shop").first().is_some_and(|reason| reason == "succeeded"));
    let (_, checks, _) = api.send("GET", "/api/v1/doctor", &Value::Null);
    let names = checks["items"].as_array().unwrap().iter().map(|check| check["name"].as_str().unwrap());
    assert!(names.clone().any(|name| name == "store pages") && names.clone().any(|name| name == "data root"));
    has_no_secret(&served, &heard);
    served.stop();
    has_no_secret(&served, &heard);
}

#[test]
fn one_check_at_a_time_and_a_connector_that_hangs_ends_with_its_time() {
    let mut served = Served::new();
    // By default it hangs until it is let go, at full size until its time is over.
    let script = "open('began', 'w').write('x')\nwhile not os.path.exists('go'): time.sleep(0.02)\ndone(0); end()";
    install(&served, "shop", &json!({}), script);
    let (link, _) = begin(&mut served);
    let address = link.trim_start_matches("http://").split('/').next().unwrap().to_owned();
    let folder = served.place.home().join("connectors/shop");
    let body = json!({"credentials": {"SHOP_TOKEN": GOOD}});
    thread::scope(|scope| {
        let first = Api { served: &served, address: address.clone() };
        let first_body = body.clone();
        let first = scope.spawn(move || first.post("/api/v1/connectors/shop/check", &first_body));
        served.wait("the connector", || folder.join("began").exists());
        let second = Api { served: &served, address };
        let (status, busy) = second.post("/api/v1/connectors/shop/check", &body);
        assert!(status == 503 && busy["error"]["code"] == "busy", "{busy}");
        // Reading goes on meanwhile.
        assert_eq!(second.send("GET", "/api/v1/connectors", &Value::Null).0, 200);
        assert_eq!(second.send("GET", "/api/v1/doctor", &Value::Null).0, 200);
        if !is_full_size() {
            fs::write(folder.join("go"), "").unwrap();
        }
        let verdict = if is_full_size() { "service_trouble" } else { "works" };
        let (status, found) = first.join().unwrap();
        assert_eq!((status, &found["verdict"]), (200, &json!(verdict)), "{found}");
    });
    assert_eq!(served.processes(), Vec::<u32>::new(), "nothing of it goes on");
}

/// Everything that a test in a browser must find installed: `scripts/test` sees to it.
fn browse(served: &Served, link: &str, script: &str, argument: &Value) -> String {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../console/tests/browser");
    let address = link.split("/open").next().unwrap();
    let artefacts = Path::new(env!("CARGO_TARGET_TMPDIR")).join("console-pictures");
    let chromium = std::env::var("CHROMIUM").unwrap_or_else(|_| "/usr/bin/chromium".to_owned());
    let settings = json!({
        "address": address, "link": link, "token": served.place.read("home/console/token").trim(), "driver": "",
        "root": served.place.home(), "chromium": chromium, "artefacts": artefacts,
    });
    let output = Command::new("node")
        .arg(scripts.join(script))
        .arg(argument.to_string())
        .env("CONSOLE_TEST", settings.to_string())
        .output()
        .expect("node");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    said
}

#[test]
fn a_first_visit_from_the_printed_link_to_a_run_that_was_watched_to_its_end() {
    const PAYLOAD: &str = "\"><img src=x onerror=window.pwned=1></title></textarea><script>window.pwned=1</script>\
        <svg onload=window.pwned=1>'-window.pwned=1-'\u{1b}]8;;http://evil.test\u{7}\u{202e}[x](javascript:window.pwned=1)";
    let mut served = Served::new();
    install(&served, "shop", &json!({}), CONNECTOR);
    let strange = json!({
        "display_name": PAYLOAD, "version": PAYLOAD, "connector_id": PAYLOAD,
        "runtime_requirements": {"environment_variables": [
            {"name": "EVIL_URL", "label": PAYLOAD, "description": PAYLOAD}],
            "bindings": {format!("x:{PAYLOAD}"): {"required": false}}},
        "streams": [{"name": "<img src=x onerror=window.pwned=1>", "semantics": "mutable_state", "primary_key": "id"}],
    });
    let fails = "done(0, 'failed', error={'message': PAYLOAD, 'retryable': False}); end(1)";
    let script = format!("PAYLOAD = json.loads({:?})\n{fails}", serde_json::to_string(PAYLOAD).unwrap());
    install(&served, "evil", &strange, &script);
    install(&served, "broken", &json!({"streams": PAYLOAD}), "");
    let (url, _) = shop(40, Duration::from_millis(120));
    let (link, heard) = begin(&mut served);
    let argument = json!({"url": url, "good": GOOD, "bad": BAD});
    let said = browse(&served, &link, "add.mjs", &argument);
    assert_eq!(said.matches("ok ").count(), 9, "{said}");
    has_no_secret(&served, &heard);
    let pages = json!({"add": "/add", "add-form": "/add/shop", "doctor": "/settings/doctor",
        "lab": "/lab"});
    let said = browse(&served, &link, "pictures.mjs", &pages);
    assert_eq!(said.lines().count(), 3 * 4, "{said}");
}
