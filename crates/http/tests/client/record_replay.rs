//! Recording and replaying: every hop and attempt is seen as it was, and nobody but the recording is asked.

use crate::support::{Act, Answer, Provider, answer, builder, head};
use gleaner_http::client::{Asked, BodyEnd, Error, NoReply, Player, Recorder, Reply, TerminalReason};
use gleaner_http::governor::{DeferReason, PressureReason};
use gleaner_http::{Refusal, Refused};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Recorded exchanges, as texts.
#[derive(Debug, Default)]
struct Notebook(Mutex<Vec<String>>);

const BODY_MAX: usize = 1000;

impl Recorder for Notebook {
    fn body_bytes_max(&self) -> usize {
        BODY_MAX
    }

    fn record(&self, asked: &Asked, came: Result<&Reply, NoReply>, _took: Duration) {
        let path = asked.url.rsplit('/').next().unwrap_or_default();
        let sent = String::from_utf8_lossy(&asked.body).into_owned();
        let cookie = asked.headers.iter().any(|(name, _)| name == "cookie");
        let came = match came {
            Ok(reply) => format!("{} {:?} {} bytes", reply.status, reply.body_end, reply.body.len()),
            Err(no_reply) => format!("{no_reply:?}"),
        };
        let cookie = if cookie { " with a cookie" } else { "" };
        self.0.lock().unwrap().push(format!("{} {path} {sent}{cookie}: {came}", asked.method));
    }
}

impl Notebook {
    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn every_hop_and_attempt_is_recorded_and_the_caller_sees_nothing_of_it() {
    let provider = Provider::start(|request, number| match request.target.as_str() {
        "/away" => answer(303, &[("location", "/home"), ("set-cookie", "sid=1")], "see there"),
        "/home" if number == 1 => answer(503, &[], "later"),
        _ => answer(200, &[], "here it is"),
    })
    .await;
    let notebook = Arc::new(Notebook::default());
    let client = builder("p").recorder(Arc::clone(&notebook) as _).build().unwrap();
    let response = client.post(provider.url("/away")).body("sent").send().await.unwrap();
    assert_eq!((response.attempts(), response.redirects()), (3, 1));
    assert_eq!(response.text().await.unwrap(), "here it is");
    let expected = [
        "POST away sent: 303 Complete 9 bytes",
        "GET home  with a cookie: 503 Complete 5 bytes",
        "GET home  with a cookie: 200 Complete 10 bytes",
    ];
    assert_eq!(notebook.lines(), expected);
}

#[tokio::test]
async fn what_has_no_answer_or_half_of_one_is_recorded_as_that() {
    let provider = Provider::start(|request, _| match request.target.as_str() {
        "/hangs" => Answer::default().then(Act::Hang),
        "/closes" => Answer::default().then(Act::Close),
        "/breaks" => head(200, &[("content-length", "99")]).write("half").then(Act::Close),
        _ => answer(200, &[], "x".repeat(5 * BODY_MAX)),
    })
    .await;
    let notebook = Arc::new(Notebook::default());
    let client = builder("p").recorder(Arc::clone(&notebook) as _).single_attempt();
    let client = client.attempt_timeout(Duration::from_millis(200)).build().unwrap();
    assert!(client.get(provider.url("/hangs")).send().await.is_err());
    assert!(client.get(provider.url("/closes")).send().await.is_err());
    assert!(client.get("http://127.0.0.1:1/nobody").send().await.is_err());
    let broken = client.get(provider.url("/breaks")).send().await.unwrap();
    assert!(matches!(broken.bytes().await, Err(Error::Body { .. })), "the caller hears of it, too");
    let large = client.get(provider.url("/large")).send().await.unwrap();
    assert_eq!(large.bytes().await.unwrap().len(), 5 * BODY_MAX, "the caller gets all of it");
    let lines = notebook.lines();
    let expected =
        ["GET hangs : Timeout", "GET closes : Lost", "GET nobody : Connect", "GET breaks : 200 Broken 4 bytes"];
    assert_eq!(lines[..4], expected);
    assert!(lines[4].starts_with("GET large : 200 TooLarge "), "{lines:?}");
}

/// Gives out what it was given, and then says no.
#[derive(Debug, Default)]
struct Answers(Mutex<VecDeque<Result<Reply, NoReply>>>);

impl Player for Answers {
    fn play(&self, asked: &Asked) -> Result<Result<Reply, NoReply>, String> {
        self.0.lock().unwrap().pop_front().ok_or_else(|| format!("{} is not there", asked.url))
    }
}

fn reply(status: u16, headers: &[(&str, &str)], body: &str) -> Result<Reply, NoReply> {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Ok(Reply { status, headers, body: body.as_bytes().to_vec(), body_end: BodyEnd::Complete })
}

fn playing(answers: impl IntoIterator<Item = Result<Reply, NoReply>>) -> gleaner_http::client::ClientBuilder {
    let answers = Answers(Mutex::new(answers.into_iter().collect()));
    // With a pace of seconds, which nobody waits for.
    gleaner_http::GovernedClient::builder("p").governors(gleaner_http::Governors::new()).player(Arc::new(answers))
}

/// Nobody listens there, so that whoever opens a socket is found out.
const NOBODY: &str = "http://127.0.0.1:1/here";

#[tokio::test]
async fn what_is_played_is_sent_again_and_redirected_as_ever_and_waits_for_nothing() {
    let began = Instant::now();
    let wait = [("retry-after", "30")];
    let answers =
        [reply(429, &wait, ""), Err(NoReply::Lost), reply(302, &[("location", "/there")], ""), reply(200, &[], "x")];
    let response = playing(answers).build().unwrap().get(NOBODY).send().await.unwrap();
    assert_eq!((response.attempts(), response.redirects(), response.url().path()), (4, 1, "/there"));
    assert_eq!(response.text().await.unwrap(), "x");
    let refused = playing([(); 4].map(|()| reply(429, &wait, ""))).build().unwrap().get(NOBODY).send().await;
    let Err(Error::Terminal(terminal)) = refused else { panic!("{refused:?}") };
    assert_eq!((terminal.reason, terminal.attempts), (TerminalReason::Pressure(PressureReason::RateLimited), 4));
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}

#[tokio::test]
async fn what_is_not_recorded_or_cannot_be_an_answer_is_an_error_of_its_own() {
    let client = playing([reply(200, &[("bad name", "x")], ""), reply(1000, &[], "")]).build().unwrap();
    for expected in [
        "the recorded answer has an invalid header",
        "the recorded answer has an invalid status",
        "http://127.0.0.1:1/here is not there",
    ] {
        let error = client.get(NOBODY).send().await.unwrap_err();
        assert!(matches!(&error, Error::NotRecorded(what) if what.starts_with(expected)), "{error}");
    }
    let broken = Reply { body_end: BodyEnd::Broken, ..reply(200, &[], "half").unwrap() };
    let response = playing([Ok(broken)]).build().unwrap().get(NOBODY).send().await.unwrap();
    assert!(matches!(response.bytes().await, Err(Error::Body { .. })));
}

#[tokio::test]
async fn what_is_played_counts_against_the_budget_of_the_run() {
    let mut settings = gleaner_http::Settings::default();
    settings.config.run_budget.request_cap = Some(3);
    let client = playing([(); 9].map(|()| reply(503, &[], ""))).settings(settings).build().unwrap();
    let refused = client.get(NOBODY).send().await;
    let Err(Error::Refused(Refused { reason, attempts, .. })) = refused else { panic!("{refused:?}") };
    assert_eq!((reason, attempts), (Refusal::Deferred(DeferReason::RequestCap), 3));
}

#[tokio::test]
async fn what_is_played_can_be_recorded_and_shows_no_secret() {
    let notebook = Arc::new(Notebook::default());
    let client = playing([reply(200, &[], "x")]).recorder(Arc::clone(&notebook) as _).build().unwrap();
    client.get(NOBODY).send().await.unwrap();
    assert_eq!(notebook.lines(), ["GET here : 200 Complete 1 bytes"]);
    let asked = Asked {
        method: "GET".into(),
        url: "hush".into(),
        headers: vec![("hush".into(), "hush".into())],
        body: b"hush".into(),
    };
    let came = Reply {
        status: 200,
        headers: vec![("hush".into(), "hush".into())],
        body: b"hush".into(),
        body_end: BodyEnd::Complete,
    };
    assert!(!format!("{asked:?} {came:?}").contains("hush"));
    // A redirect to another origin is judged as ever, although nobody would be asked.
    let away =
        playing([reply(302, &[("location", "http://127.0.0.1:2/")], "")]).build().unwrap().get(NOBODY).send().await;
    assert!(matches!(away, Err(Error::Redirect { .. })), "{away:?}");
}
