//! The pipeline on a virtual clock: a wire that is a function, and hours in milliseconds.

use crate::bodies::Bodies;
use crate::discovery::{Discovered, FoundUrl};
use crate::exchange::Shared;
use crate::pipeline::{Parts, Pipeline};
use crate::progress::{PipelineEvent, Progress};
use crate::url_list::{LineFile, ListLine};
use crate::wire::{Ask, Head, Wire};
use crate::{ResultLine, Settings, Stop};
use gleaner_http::governor::keyed::RegistryConfig;
use gleaner_http::governor::{RetryBudgetConfig, Strategy};
use gleaner_http::wire::{Body, BodyEnd, BodyLimits, NoAnswer, TransportKind};
use gleaner_http::{DomainSettings, Domains};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use std::fs::File;
use std::future::pending;
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc::channel;
use tokio::time::{Instant, timeout};

/// A host's answer: a status, headers, a body; `None`: no connection.
type Reply = Option<(u16, Vec<(&'static str, String)>, String)>;

fn ok(body: &str) -> Reply {
    Some((200, vec![], body.to_owned()))
}

fn status(status: u16) -> Reply {
    Some((status, vec![], String::new()))
}

fn moved(to: &str) -> Reply {
    Some((302, vec![("location", to.to_owned())], String::new()))
}

/// Requests with host and time.
type Log = Arc<Mutex<Vec<(Duration, String)>>>;

/// A wire whose hosts are a function of the URL and of how often it was asked for.
struct Script<F> {
    reply: F,
    log: Log,
    started: Instant,
    latency: Duration,
    under_way: Arc<AtomicUsize>,
}

struct UnderWay(Arc<AtomicUsize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<F: Fn(&str, usize) -> Reply + Send + Sync + 'static> Wire for Script<F> {
    async fn ask(&self, ask: Ask) -> Result<Head, NoAnswer> {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        let _under_way = UnderWay(Arc::clone(&self.under_way));
        let url = ask.url.to_string();
        let count = {
            let mut log = self.log.lock().unwrap();
            let count = log.iter().filter(|(_, known)| *known == url).count();
            log.push((self.started.elapsed(), url.clone()));
            count
        };
        assert!(timeout(self.latency, pending::<()>()).await.is_err());
        let (status, headers, body) = (self.reply)(&url, count).ok_or(NoAnswer::new(TransportKind::Connect))?;
        let header = |(name, value): (&'static str, String)| (HeaderName::from_static(name), value);
        let headers = headers.into_iter().map(header);
        let headers: HeaderMap = headers.map(|(name, value)| (name, HeaderValue::try_from(value).unwrap())).collect();
        let body = Body::recorded(body.into(), BodyEnd::Complete, BodyLimits::default());
        Ok(Head { status: StatusCode::from_u16(status).unwrap(), headers, body })
    }
}

/// Result of a fetch.
struct Done {
    lines: Vec<ResultLine>,
    /// When each request was sent.
    log: Vec<(Duration, String)>,
    under_way: usize,
}

impl Done {
    fn line(&self, url: &str) -> &ResultLine {
        self.lines.iter().find(|line| line.url == url).unwrap_or_else(|| panic!("no line for {url}"))
    }

    fn times(&self, part: &str) -> Vec<Duration> {
        self.log.iter().filter(|(_, url)| url.contains(part)).map(|(at, _)| *at).collect()
    }

    fn fetched(&self, part: &str) -> usize {
        self.lines.iter().filter(|line| line.url.contains(part) && line.is_fetched()).count()
    }
}

fn settings() -> Settings {
    Settings { obeys_robots: false, ..Settings::new("unused".into()) }
}

fn robots() -> Settings {
    Settings::new("unused".into())
}

fn fixed(per_s: f64) -> RegistryConfig {
    let mut config = RegistryConfig::default();
    config.key.strategy = Strategy::Fixed;
    config.key.discovery_interval = Duration::from_secs_f64(1.0 / per_s);
    config.key.ceiling_interval = Duration::from_secs_f64(1.0 / per_s.max(50.0));
    config
}

async fn run(
    urls: &[String],
    settings: Settings,
    reply: impl Fn(&str, usize) -> Reply + Send + Sync + 'static,
) -> Done {
    run_until(urls, settings, Duration::from_secs(100_000), reply).await
}

async fn run_until(
    urls: &[String],
    settings: Settings,
    stop_after: Duration,
    reply: impl Fn(&str, usize) -> Reply + Send + Sync + 'static,
) -> Done {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list");
    let mut file = File::create(&list).unwrap();
    let (found, receiver) = channel(urls.len().max(1));
    let mut at = 0;
    for url in urls {
        writeln!(file, "{url}").unwrap();
        let ListLine::Target(target) = ListLine::parse(url.as_bytes()) else { panic!("{url}") };
        let url_found = FoundUrl { origin: target.origin(), domain: target.domain, at, previous: None };
        found.try_send(Discovered::Url(Box::new(url_found))).unwrap();
        at += url.len() as u64 + 1;
    }
    drop(found);
    let (heard_sender, heard) = channel(settings.concurrency);
    let (told, mut lines) = channel(8);
    let (log, under_way, stop) = (Log::default(), Arc::new(AtomicUsize::new(0)), Stop::default());
    let wire = Script {
        reply,
        log: Arc::clone(&log),
        started: Instant::now(),
        latency: Duration::from_millis(20),
        under_way: Arc::clone(&under_way),
    };
    let hosts = DomainSettings { config: settings.governor.clone(), ..DomainSettings::default() };
    let shared = Shared {
        wire,
        domains: Domains::remembering(hosts, &folder.path().join("hosts.txt")).unwrap(),
        bodies: Arc::new(Bodies::open(folder.path()).unwrap()),
        heard: heard_sender,
    };
    let parts = Parts {
        shared: Arc::new(shared),
        heard,
        found: receiver,
        told,
        list: LineFile(File::open(list).unwrap()),
        previous: None,
        stop: stop.clone(),
    };
    let pipeline = tokio::spawn(Pipeline::new(settings, parts, Progress::default()).run());
    let taking = async {
        let mut finished = Vec::new();
        while let Some(told) = lines.recv().await {
            if let PipelineEvent::Line(line) = told {
                finished.push(*line);
            }
        }
        finished
    };
    tokio::pin!(taking);
    let finished = match timeout(stop_after, &mut taking).await {
        Ok(finished) => finished,
        Err(_elapsed) => {
            stop.stop();
            taking.await
        }
    };
    pipeline.await.unwrap().unwrap();
    let log = log.lock().unwrap().clone();
    Done { lines: finished, log, under_way: under_way.load(Ordering::Relaxed) }
}

fn urls(host: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("http://{host}/{number}")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_limiter_slows_the_pipeline_down_and_the_waits_are_told() {
    let slow = Settings { governor: fixed(2.0), ..settings() };
    let done = run(&urls("a.example", 10), slow, |_, _| ok("x")).await;
    assert_eq!(done.fetched(""), 10);
    let times = done.times("a.example");
    assert!(times[9] >= Duration::from_millis(4400) && times[9] <= Duration::from_secs(6), "{times:?}");
    assert!(done.lines.iter().filter(|line| line.waited_ms >= 400).count() >= 8, "{:?}", done.lines);
    assert!(done.lines.iter().all(|line| line.waited_ms <= 600 && line.latency_ms == Some(20)), "{:?}", done.lines);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_has_to_wait_holds_no_place_that_another_could_use() {
    let mut list = urls("shut.example", 30);
    list.extend(urls("open.example", 30));
    let narrow = Settings { concurrency: 2, governor: fixed(10.0), ..settings() };
    let done = run(&list, narrow, |url, count| {
        if url.contains("shut") && count == 0 && url.ends_with("/0") {
            return Some((429, vec![("retry-after", "120".to_owned())], String::new()));
        }
        ok(url)
    })
    .await;
    let last = *done.times("open").last().unwrap();
    assert!(last < Duration::from_secs(5), "{last:?}");
    assert_eq!((done.fetched("open"), done.fetched("shut")), (30, 30), "and who waited is fetched, too");
    assert!(done.times("shut")[1] >= Duration::from_secs(120), "{:?}", done.times("shut"));
}

#[tokio::test(start_paused = true)]
async fn a_long_queue_of_one_host_delays_no_other() {
    let mut list = urls("long.example", 500);
    list.extend(urls("short.example", 5));
    let done = run(&list, Settings { governor: fixed(10.0), ..settings() }, |_, _| ok("x")).await;
    assert_eq!(done.fetched(""), 505);
    assert!(*done.times("short").last().unwrap() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn dead_hosts_leave_half_of_the_places_to_the_living() {
    let mut list: Vec<String> = (0..40).flat_map(|host| urls(&format!("dead{host}.example"), 2)).collect();
    list.extend(urls("alive.example", 40));
    let few = Settings { concurrency: 4, governor: fixed(20.0), ..settings() };
    let done = run(&list, few, |url, _| if url.contains("dead") { None } else { ok("x") }).await;
    assert_eq!(done.fetched("alive"), 40);
    assert!(*done.times("alive").last().unwrap() < Duration::from_secs(4), "{:?}", done.times("alive"));
    assert_eq!(done.lines.len(), 120);
    assert!(done.lines.iter().all(|line| line.attempts <= 4));
    assert_eq!(done.line("http://dead0.example/0").error.as_deref(), Some("no connection"));
}

#[tokio::test(start_paused = true)]
async fn what_fails_for_a_moment_is_sent_again_with_a_permit_each() {
    let done = run(&urls("a.example", 4), Settings { governor: fixed(5.0), ..settings() }, |_, count| {
        if count == 0 { status(500) } else { ok("x") }
    })
    .await;
    assert_eq!(done.fetched(""), 4);
    assert!(done.lines.iter().all(|line| line.attempts == 2), "{:?}", done.lines);
    let times = done.times("a.example");
    assert!(times.windows(2).all(|two| two[1] - two[0] >= Duration::from_millis(199)), "{times:?}");
    let missing = run(&urls("a.example", 1), settings(), |_, _| status(404)).await;
    let line = &missing.lines[0];
    assert_eq!((line.status, line.attempts, line.error.as_deref()), (Some(404), 1, Some("the host answered 404")));
}

#[tokio::test(start_paused = true)]
async fn what_was_too_much_goes_behind_the_others_when_the_retry_budget_is_used_up() {
    let budget = RetryBudgetConfig { successes_per_retry: 200 };
    let mut governor = fixed(10.0);
    governor.key.retry_budget = Some(budget);
    let done = run(&urls("a.example", 60), Settings { governor, ..settings() }, |url, count| {
        let number: usize = url.rsplit_once('/').unwrap().1.parse().unwrap();
        if count == 0 && number.is_multiple_of(5) { status(429) } else { ok("x") }
    })
    .await;
    assert_eq!((done.fetched(""), done.log.len()), (60, 72), "twelve were refused once, and three retries are free");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_wants_to_be_left_alone_for_long_is_left_to_another_pass() {
    let done = run(&urls("a.example", 50), settings(), |_, _| {
        Some((429, vec![("retry-after", "3600".to_owned())], String::new()))
    })
    .await;
    assert_eq!((done.lines.len(), done.log.len()), (50, 1), "it was asked once");
    assert!(
        done.lines
            .iter()
            .all(|line| line.error.as_ref().is_some_and(|why| why.contains("3600") || why.contains("359")))
    );
}

#[tokio::test(start_paused = true)]
async fn rules_are_asked_for_once_before_everything_else_and_obeyed() {
    let mut list = urls("a.example", 5);
    list.push("http://a.example/private/1".to_owned());
    let done = run(&list, robots(), |url, _| {
        if url.ends_with("/robots.txt") { ok("user-agent: *\ndisallow: /private\ncrawl-delay: 3") } else { ok("x") }
    })
    .await;
    assert_eq!(done.log[0].1, "http://a.example/robots.txt");
    assert_eq!(done.times("robots.txt").len(), 1);
    assert_eq!(done.fetched(""), 5);
    let private = done.line("http://a.example/private/1");
    assert_eq!((private.attempts, private.error.as_deref()), (0, Some("robots.txt does not allow it")));
    let times = done.times("a.example");
    assert!(times.windows(2).all(|two| two[1] - two[0] >= Duration::from_secs(3)), "Crawl-delay is a floor: {times:?}");
}

#[tokio::test(start_paused = true)]
async fn no_rules_allow_everything_and_rules_that_cannot_be_had_nothing() {
    let mut list = urls("none.example", 3);
    list.extend(urls("broken.example", 3));
    list.extend(urls("dead.example", 3));
    list.extend(urls("ring.example", 3));
    list.extend(urls("busy.example", 3));
    let done = run(&list, robots(), |url, _| match url {
        "http://none.example/robots.txt" => status(404),
        "http://broken.example/robots.txt" => status(500),
        "http://busy.example/robots.txt" => status(429),
        "http://ring.example/robots.txt" => moved("http://ring2.example/robots.txt"),
        "http://ring2.example/robots.txt" => moved("http://ring.example/robots.txt"),
        url if url.contains("dead") => None,
        _ => ok("x"),
    })
    .await;
    assert_eq!((done.fetched("none"), done.fetched(""), done.lines.len()), (3, 3, 15));
    for host in ["broken", "dead", "ring", "busy"] {
        let line = done.line(&format!("http://{host}.example/1"));
        assert!(line.error.as_ref().unwrap().starts_with("robots.txt cannot be fetched: "), "{line:?}");
        assert_eq!(line.attempts, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_redirect_waits_for_the_host_that_it_leads_to_and_a_loop_ends() {
    let list = ["http://a.example/1", "http://a.example/loop", "http://a.example/no"].map(str::to_owned);
    let done = run(&list, robots(), |url, _| match url {
        "http://a.example/1" => moved("http://b.example/2"),
        "http://a.example/loop" => moved("/loop2"),
        "http://a.example/loop2" => moved("/loop"),
        "http://a.example/no" => moved("http://b.example/private"),
        "http://b.example/robots.txt" => ok("user-agent: *\ndisallow: /private"),
        url if url.ends_with("robots.txt") => status(404),
        _ => ok("x"),
    })
    .await;
    let line = done.line("http://a.example/1");
    assert_eq!((line.final_url.as_deref(), line.attempts), (Some("http://b.example/2"), 2));
    assert!(line.is_fetched());
    let looping = done.line("http://a.example/loop");
    assert!(looping.error.as_ref().unwrap().contains("redirected before"), "{looping:?}");
    assert_eq!((looping.attempts, looping.status), (2, Some(302)));
    let no = done.line("http://a.example/no");
    assert_eq!(no.error.as_deref(), Some("robots.txt does not allow it"), "the rules of where it leads to count");
    assert_eq!(done.times("b.example/robots.txt").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn to_stop_leaves_nothing_running_and_nothing_half_told() {
    let slow = Settings { governor: fixed(10.0), ..settings() };
    let done = run_until(&urls("a.example", 100), slow, Duration::from_millis(2010), |_, _| ok("x")).await;
    assert_eq!(done.under_way, 0);
    assert!(done.lines.len() >= 15 && done.lines.len() <= 21, "{}", done.lines.len());
    assert!(done.lines.iter().all(|line| line.is_fetched() && line.sha256.is_some()));
}
