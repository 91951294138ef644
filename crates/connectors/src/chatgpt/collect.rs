//! One run: a browser, a session, and the lane of conversations and messages.

use super::api::Api;
use super::service::{self, Service};
use super::session::{self, SignInAs};
use gleaner_browser::session::{SessionOptions, establish};
use gleaner_browser::{Browser, BrowserRequest, acquire_isolated_browser};
use gleaner_sdk::protocol::SkipResult;
use gleaner_sdk::{Collect, Connector, Cursor, SenderSettings, Stop};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The shortest time between two requests, unless the owner says otherwise: four in a second is faster than a person
/// who clicks, and slower than what the service counts as a flood.
const CEILING: Duration = Duration::from_millis(250);
/// Noise against marching in step. Never a floor: the pace is found, and this only moves a request within it.
const LAUNCH_JITTER: Duration = Duration::from_millis(150);
/// One at a time, as a person; and a refusal is a mark on the owner's account.
const SENDER_SETTINGS: SenderSettings =
    SenderSettings { ceiling: CEILING, launch_jitter: LAUNCH_JITTER, max_concurrency: 1, conservative: true };
/// Conversations in a slice. A slice costs a sync, which is nothing beside a request of this service; and the pace that
/// was found rides on it, so that a run that is killed right after a refusal does not forget it.
const SLICE: usize = 1;
/// How long the browser may take to end by itself, so that the session is on the disk.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// The connector.
#[derive(Debug)]
pub(crate) struct ChatGpt;

impl Connector for ChatGpt {
    fn collect(&self, run: &mut Collect<'_>) -> Result<(), Stop> {
        let service = Service::new(run.setting(service::VARIABLE).as_deref())?;
        let browser = browser_for(run)?;
        let options = SessionOptions::read(run, &browser);
        let known = sign_in_as(run);
        let flow_service = service.clone();
        let (browser, page, token) =
            establish(run, browser, &options, move |flow| session::ensure(flow, &flow_service, known))?;
        let way = run.external_sender(SENDER_SETTINGS)?;
        let wants_details = run.scope("messages").is_some();
        let api = Api::new(&browser, page, way, service, token, wants_details);
        let collected = run.lane("conversations", "messages").concurrency(1).slice_of(SLICE).collect_from(&api);
        let unreadable = api.unreadable.load(Ordering::Relaxed);
        drop(api);
        // Whatever came of the run: a session that was begun in it is worth keeping. It is gone all the same.
        drop(browser.close(CLOSE_WITHIN));
        let _: gleaner_sdk::lane::Collected = collected?;
        say_unreadable(run, unreadable)?;
        keep_pace(run)
    }
}

fn browser_for(run: &Collect<'_>) -> Result<Browser, Stop> {
    let variable = |name: &str| run.setting(name);
    let binding = run.binding("browser").or_else(|| run.binding("browser_automation"));
    Ok(acquire_isolated_browser(&BrowserRequest::new(&run.manifest().connector_key, binding, &variable)?)?)
}

/// What the owner has stored for signing in, if anything.
fn sign_in_as(run: &mut Collect<'_>) -> Option<SignInAs> {
    let (username, password) = (run.setting("CHATGPT_USERNAME")?, run.setting("CHATGPT_PASSWORD")?);
    run.mask([username.clone(), password.clone()]);
    Some(SignInAs { username, password })
}

/// The pace rides on the cursor of the messages too: it is their requests that found it.
fn keep_pace(run: &mut Collect<'_>) -> Result<(), Stop> {
    let cursor = run.cursor("messages").cloned().unwrap_or_else(Cursor::new);
    if run.scope("messages").is_some() { run.slice("messages", &cursor) } else { Ok(()) }
}

fn say_unreadable(run: &mut Collect<'_>, count: usize) -> Result<(), Stop> {
    if count == 0 {
        return Ok(());
    }
    run.emitter().skip(SkipResult {
        stream: Some("conversations".to_owned()),
        reason: Some("unusable_key".to_owned()),
        message: Some(format!("{count} items of the list have no id or no time, and nobody could find them again")),
        ..SkipResult::default()
    })
}
