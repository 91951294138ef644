//! A real Chromium, driven: what a connector asks for happens, within its time, whatever the page does.

#![expect(clippy::unwrap_used, reason = "a test whose parts cannot be built has failed")]
#![allow(clippy::print_stdout, reason = "that a test was left out is said")]

mod engines;
mod site;

use engines::over_engines;
use gleaner_browser::{Browser, BrowserError, EngineChoice, Notice, Page, PageRequest, acquire_isolated_browser};
use serde_json::{Value, json};
use site::{SOON, Site, request};
use std::fs;
use std::time::{Duration, Instant};
use tempfile::TempDir;

over_engines! {
    both: [
        a_page_is_opened_read_and_drawn,
        forms_are_filled_as_a_person_would,
        a_click_waits_until_the_page_is_drawn_with_what_is_clicked_in_its_place,
        the_page_asks_with_its_own_session,
        a_wedged_renderer_never_blocks_the_caller,
        dialogs_are_dismissed_counted_and_end_a_page_that_floods_them,
        downloads_are_kept_in_their_folder_and_bounded_in_number_and_size,
    ],
    patchright_at_full_size: [
        what_fails_says_why,
        popups_are_handed_out_and_closed_beyond_the_bound,
        a_page_whose_renderer_dies_is_gone_and_the_browser_is_not,
        a_browser_that_takes_too_much_memory_is_ended_with_a_reason,
        a_profile_that_grows_too_large_during_the_run_ends_the_browser_with_a_reason,
        an_answer_that_is_too_large_fails_alone,
        root_is_told_that_there_is_no_sandbox,
    ]
}

/// Take all of it apart but the folder: what is left out is gone at once, the browser too.
struct Bench {
    site: Site,
    browser: Browser,
    page: Page,
    folder: TempDir,
}

fn bench(engine: EngineChoice, change: impl FnOnce(&mut gleaner_browser::BrowserRequest)) -> Bench {
    let (site, folder) = (Site::start(), tempfile::tempdir().unwrap());
    let mut request = request(engine, folder.path(), "shop");
    change(&mut request);
    let browser = acquire_isolated_browser(&request).unwrap();
    let page = browser.new_page(SOON).unwrap();
    Bench { site, browser, page, folder }
}

fn a_page_is_opened_read_and_drawn(engine: EngineChoice) {
    let Bench { site, browser, page, folder: _folder } = bench(engine, |_| {});
    assert_eq!(browser.engine().to_string(), engines::word(engine));
    assert!(!browser.has_window());
    let there = page.navigate(&site.at("/"), SOON).unwrap();
    assert_eq!((there.url.as_str(), there.status), (site.at("/").as_str(), Some(200)));
    assert_eq!(page.title(SOON).unwrap(), "A shop");
    assert_eq!(page.url(SOON).unwrap(), site.at("/"));
    assert_eq!(page.evaluate::<u32>("Promise.resolve(6 * 7)", SOON).unwrap(), 42);
    assert_eq!(page.evaluate::<Value>("undefined", SOON).unwrap(), Value::Null);
    let same = "(() => { const one = {a: [1, null, 1.5, 'x']}; return {one, again: one, not: undefined} })()";
    let one = json!({"a": [1, null, 1.5, "x"]});
    assert_eq!(page.evaluate::<Value>(same, SOON).unwrap(), json!({"one": one, "again": one}));
    // Which engine drives is for the page to see: our own does not hide.
    assert_eq!(page.evaluate::<bool>("navigator.webdriver", SOON).unwrap(), engine == EngineChoice::Pipe);
    assert!(page.screenshot(SOON).unwrap().starts_with(b"\x89PNG"));
    // Only the place in the document changes.
    assert_eq!(page.navigate(&site.at("/#more"), SOON).unwrap().url, site.at("/#more"));
    let there = page.navigate(&site.at("/nothing-here"), SOON).unwrap();
    assert_eq!(there.status, Some(404));
    assert_eq!(page.navigate(&site.at("/redirect"), SOON).unwrap().url, site.at("/late"));
    page.navigate(&site.at("/js-redirect"), SOON).unwrap();
    page.wait_until("location.pathname === '/form'", SOON).unwrap();
}

fn what_fails_says_why(engine: EngineChoice) {
    let Bench { site, page, browser: _browser, folder: _folder } = bench(engine, |_| {});
    let error = page.evaluate::<Value>("null.nothing", SOON).unwrap_err();
    assert!(matches!(&error, BrowserError::Script(message) if message.starts_with("TypeError")), "{error}");
    let error = page.evaluate::<u32>("'secret text'", SOON).unwrap_err();
    assert!(matches!(&error, BrowserError::Protocol { .. }) && !error.to_string().contains("secret"), "{error}");
    // A port on which nobody listens.
    let error = page.navigate("http://127.0.0.1:1/a?token=secret", SOON).unwrap_err();
    assert!(matches!(&error, BrowserError::Navigation { .. }), "{error}");
    assert!(error.to_string().contains("ERR_") && !error.to_string().contains("secret"), "{error}");
    page.navigate(&site.at("/form"), SOON).unwrap();
    let error = page.click("#not-there", Duration::from_secs(4)).unwrap_err();
    assert!(matches!(&error, BrowserError::NotThere { .. }) && error.is_timeout(), "{error}");
    assert!(page.press("Hyper", SOON).is_err());
}

fn forms_are_filled_as_a_person_would(engine: EngineChoice) {
    let Bench { site, page, browser: _browser, folder: _folder } = bench(engine, |_| {});
    page.navigate(&site.at("/form"), SOON).unwrap();
    page.fill("input[name=user]", "Ada \"L\" </script>", SOON).unwrap();
    assert_eq!(page.evaluate::<String>("document.forms[0].user.value", SOON).unwrap(), "Ada \"L\" </script>");
    page.fill("input[name=user]", "", SOON).unwrap();
    assert_eq!(page.evaluate::<String>("document.forms[0].user.value", SOON).unwrap(), "");
    page.click("#go", SOON).unwrap();
    page.wait_until("document.title === 'clicked true'", SOON).unwrap();
    page.fill("input[name=code]", "123456", SOON).unwrap();
    page.press("Enter", SOON).unwrap();
    page.wait_until("document.title === 'sent'", SOON).unwrap();
    page.navigate(&site.at("/late"), SOON).unwrap();
    page.wait_for("#late", SOON).unwrap();
    assert!(page.wait_for("#early", Duration::from_millis(300)).is_err(), "it cannot be seen");
}

/// Its header goes away as soon as somebody scrolls, which is when the page is drawn next: what was found before that
/// is somewhere else by then. Several times, because a frame may also come by chance.
fn a_click_waits_until_the_page_is_drawn_with_what_is_clicked_in_its_place(engine: EngineChoice) {
    let Bench { site, page, browser: _browser, folder: _folder } = bench(engine, |_| {});
    for time in 0..6 {
        page.navigate(&site.at(&format!("/moves?{time}")), SOON).unwrap();
        page.click("button", SOON).unwrap();
        let hit = page.wait_until("document.title === 'clicked'", Duration::from_secs(5));
        assert!(hit.is_ok(), "time {time}: {hit:?}");
    }
}

fn the_page_asks_with_its_own_session(engine: EngineChoice) {
    let Bench { site, page, browser: _browser, folder: _folder } = bench(engine, |_| {});
    page.navigate(&site.at("/set?sid=abc"), SOON).unwrap();
    let asked = PageRequest::new("POST", "/whoami").header("content-type", "text/plain").body("hel\"lo");
    let answer = page.fetch(&asked, SOON).unwrap();
    assert_eq!((answer.status, answer.header("x-shop")), (200, Some("yes")));
    assert_eq!(answer.json::<Value>().unwrap(), json!({"cookies": "sid=abc", "body": "hel\"lo"}));
    assert!(answer.json::<u32>().is_err());
    let answer = page.fetch(&PageRequest::get("/refused"), SOON).unwrap();
    assert_eq!((answer.status, answer.header("Retry-After")), (429, Some("7")));
    let began = Instant::now();
    let error = page.fetch(&PageRequest::get("/slow?secret"), Duration::from_millis(700)).unwrap_err();
    assert!(error.is_timeout() && began.elapsed() < Duration::from_secs(10), "{error}");
    let error = page.fetch(&PageRequest::get("http://127.0.0.1:1/?secret"), SOON).unwrap_err();
    assert!(matches!(&error, BrowserError::Navigation { .. }) && !error.to_string().contains("secret"), "{error}");
    // A page that forbids scripts that are made of texts does not forbid ours.
    page.navigate(&site.at("/strict"), SOON).unwrap();
    assert_eq!(page.fetch(&PageRequest::get("/whoami"), SOON).unwrap().json::<Value>().unwrap()["cookies"], "sid=abc");
}

fn a_wedged_renderer_never_blocks_the_caller(engine: EngineChoice) {
    let Bench { site, browser, page, folder: _folder } = bench(engine, |_| {});
    let other = browser.new_page(SOON).unwrap();
    other.navigate(&site.at("/"), SOON).unwrap();
    page.navigate(&site.at("/wedge"), SOON).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(page.url(SOON).unwrap(), site.at("/wedge"), "the browser itself knows where it is");
    let short = Duration::from_millis(500);
    let began = Instant::now();
    for error in [
        page.title(short).map(drop).unwrap_err(),
        page.screenshot(short).map(drop).unwrap_err(),
        page.click("body", short).unwrap_err(),
        page.navigate(&site.at("/"), short).map(drop).unwrap_err(),
        page.fetch(&PageRequest::get("/"), short).map(drop).unwrap_err(),
    ] {
        assert!(error.is_timeout(), "{error}");
    }
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    assert_eq!(page.url(SOON).unwrap(), site.at("/wedge"), "the browser itself knows where it is");
    assert_eq!(other.title(SOON).unwrap(), "A shop", "its neighbour goes on");
    page.close(SOON).unwrap();
    browser.close(SOON).unwrap();
}

fn dialogs_are_dismissed_counted_and_end_a_page_that_floods_them(engine: EngineChoice) {
    let Bench { site, browser, page, folder: _folder } = bench(engine, |request| request.limits.dialogs_max = 20);
    page.navigate(&site.at("/ask"), SOON).unwrap();
    assert_eq!(page.evaluate::<String>("window.answer", SOON).unwrap(), "falsenull");
    assert_eq!(browser.counts().dialogs_dismissed, 2);
    // A page that asks whether one wants to leave is left.
    page.navigate(&site.at("/leave"), SOON).unwrap();
    page.click("input", SOON).unwrap();
    assert_eq!(page.navigate(&site.at("/"), SOON).unwrap().url, site.at("/"));
    let flood = browser.new_page(SOON).unwrap();
    flood.navigate(&site.at("/dialogs"), SOON).unwrap();
    let error = flood.wait_until("false", SOON).unwrap_err();
    assert!(matches!(&error, BrowserError::PageGone(why) if why.contains("20 dialogs")), "{error}");
    assert!(browser.counts().dialogs_dismissed <= 40, "{:?}", browser.counts());
    assert_eq!(page.title(SOON).unwrap(), "A shop", "its neighbour goes on");
}

fn popups_are_handed_out_and_closed_beyond_the_bound(engine: EngineChoice) {
    let Bench { site, browser, page, folder: _folder } = bench(engine, |request| request.limits.pages_max = 4);
    page.navigate(&site.at("/popup"), SOON).unwrap();
    page.click("button", SOON).unwrap();
    let popup = poll(|| browser.popups().pop());
    popup.wait_for("input[name=user]", SOON).unwrap();
    popup.close(SOON).unwrap();
    page.navigate(&site.at("/popups"), SOON).unwrap();
    // Chromium itself lets a page open one for each click.
    for _ in 0..6 {
        page.evaluate::<Value>("window.open('/', '_blank') === null", SOON).unwrap();
    }
    poll(|| (browser.counts().popups_closed > 0).then_some(()));
    assert!(matches!(browser.new_page(SOON), Err(BrowserError::TooMany { max: 4, .. })));
    assert_eq!(browser.popups().len(), 3);
    assert!(browser.popups().is_empty());
    assert_eq!(page.title(SOON).unwrap(), "Popups");
}

fn downloads_are_kept_in_their_folder_and_bounded_in_number_and_size(engine: EngineChoice) {
    let Bench { site, browser, page, folder: _folder } = bench(engine, |request| {
        request.limits.downloads_max = 5;
        request.limits.download_bytes_max = 1 << 20;
    });
    page.navigate(&site.at("/"), SOON).unwrap();
    assert!(page.navigate(&site.at("/file"), SOON).is_err(), "a download is no page");
    let done = browser.wait_for_downloads(1, SOON).unwrap();
    assert_eq!((done[0].suggested_name.as_str(), done[0].bytes), ("report.csv", 8));
    assert_eq!(fs::read(&done[0].path).unwrap(), b"a,b\n1,2\n");
    assert!(done[0].path.starts_with(browser.profile()), "{:?}", done[0].path);
    // More than may be, as one.
    assert!(page.navigate(&site.at("/large"), SOON).is_err());
    poll(|| (browser.counts().downloads_cancelled == 1).then_some(()));
    // More than may be, as many.
    page.navigate(&site.at("/downloads"), SOON).unwrap();
    for at in 0..12 {
        page.evaluate::<Value>(&format!("document.querySelectorAll('a')[{at}].click()"), SOON).unwrap();
    }
    let done = browser.wait_for_downloads(5, SOON).unwrap();
    assert_eq!(done.len(), 5);
    poll(|| (browser.counts().downloads_cancelled > 1).then_some(()));
    let folder = done[0].path.parent().unwrap().to_owned();
    // One that was complete before it could be cancelled is deleted.
    poll(|| (fs::read_dir(&folder).unwrap().count() <= 5).then_some(()));
    browser.close(SOON).unwrap();
    assert!(!folder.exists(), "what nobody took away is gone with the browser");
}

fn a_page_whose_renderer_dies_is_gone_and_the_browser_is_not(engine: EngineChoice) {
    let Bench { site, browser, page, folder: _folder } = bench(engine, |_| {});
    page.navigate("chrome://crash", SOON).unwrap_err();
    let error = poll(|| page.title(SOON).err());
    assert!(matches!(&error, BrowserError::PageGone(why) if why == "its renderer died"), "{error}");
    let page = browser.new_page(SOON).unwrap();
    page.navigate(&site.at("/"), SOON).unwrap();
    assert_eq!(page.title(SOON).unwrap(), "A shop");
}

fn a_browser_that_takes_too_much_memory_is_ended_with_a_reason(engine: EngineChoice) {
    let Bench { site, browser, page, folder: _folder } =
        bench(engine, |request| request.limits.memory_bytes_max = 1 << 30);
    page.navigate(&site.at("/hog"), SOON).unwrap();
    let why = poll(|| browser.gone());
    assert!(why.contains("memory"), "{why}");
    assert!(matches!(page.title(SOON), Err(BrowserError::Gone(_))));
}

fn a_profile_that_grows_too_large_during_the_run_ends_the_browser_with_a_reason(engine: EngineChoice) {
    let Bench { site, browser, page, folder: _folder } = bench(engine, |request| {
        request.limits.profile_bytes_max = 63 << 20;
        request.limits.download_bytes_max = 1 << 20;
    });
    page.navigate(&site.at("/"), SOON).unwrap();
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(browser.gone(), None, "a profile is smaller by far");
    page.navigate(&site.at("/storage"), SOON).unwrap();
    let why = poll(|| browser.gone());
    assert!(why.contains("profile") && why.contains("67108864"), "{why}");
}

fn an_answer_that_is_too_large_fails_alone(engine: EngineChoice) {
    let Bench { page, browser: _browser, folder: _folder, .. } =
        bench(engine, |request| request.limits.message_bytes_max = 1 << 20);
    let error = page.evaluate::<String>("'x'.repeat(3 << 20)", SOON).unwrap_err();
    assert!(matches!(&error, BrowserError::TooLarge { max, .. } if *max == 1 << 20), "{error}");
    assert_eq!(page.evaluate::<u32>("7", SOON).unwrap(), 7);
}

fn root_is_told_that_there_is_no_sandbox(engine: EngineChoice) {
    let Bench { browser, .. } = bench(engine, |_| {});
    let is_root = rustix::process::geteuid().is_root();
    assert_eq!(browser.notices().contains(&Notice::NoSandbox), is_root);
}

/// Looks again until there is something.
fn poll<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < SOON, "it did not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}
