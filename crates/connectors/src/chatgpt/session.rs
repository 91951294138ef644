//! The way to a session of the owner's, on the page: does what `sign_in.rs` decides, and says how far it is.
//!
//! Every call on the page has a bound, so that a page that hangs shows as no progress, which the watchdog sees. A
//! password is typed into the page and nowhere else.

use super::parse;
use super::service::Service;
use super::sign_in::{self, Action, CODE, EMAIL, LOOK_EVERY, MARK, Next, PASSWORD, Seen, SignIn, Way};
use gleaner_browser::session::SessionFlow;
use gleaner_browser::{BrowserError, PageRequest};
use gleaner_sdk::protocol::RecoveryAction;
use gleaner_sdk::{Question, Stop};
use std::time::Duration;

/// How long a page may take to come. Slow lines take ten seconds.
const NAVIGATE_WITHIN: Duration = Duration::from_secs(30);
/// How long the page may take to answer a question about itself.
const LOOK_WITHIN: Duration = Duration::from_secs(5);
/// How long the service may take to say whether there is a session.
const SESSION_WITHIN: Duration = Duration::from_secs(15);
/// It is asked whether there is a session by now at the first look at a page that wants nothing, and after every so many
/// more: two seconds.
const ASK_SESSION_EVERY: u32 = 20;
/// How long a page gets to move on by itself after the owner has done something.
const SETTLE: Duration = Duration::from_secs(1);
/// The path that tells.
pub(super) const SESSION_PATH: &str = "/api/auth/session";

const FIELDS: [&str; 2] = ["username", "password"];

/// What the owner signs in with. Prints nothing.
pub(super) struct SignInAs {
    pub(super) username: String,
    pub(super) password: String,
}

/// Signs in unless that is so already, and gives the token of the session.
pub(super) fn ensure(flow: &mut SessionFlow, service: &Service, known: Option<SignInAs>) -> Result<String, Stop> {
    flow.checkpoint("open_service")?;
    flow.page().navigate(service.home.as_str(), NAVIGATE_WITHIN)?;
    flow.checkpoint("service_opened")?;
    let way = if flow.has_window() { Way::Window } else { Way::Form };
    let mut sign_in = SignIn::new(way, known.is_some());
    let (mut known, mut blank_looks) = (known, 0);
    loop {
        let Some(seen) = look(flow)? else { continue };
        let is_blank = !(seen.email || seen.password || seen.code || seen.challenge);
        if is_blank
            && blank_looks % ASK_SESSION_EVERY == 0
            && let Some(token) = token(flow, service)?
        {
            flow.mask([token.clone()])?;
            flow.checkpoint("signed_in")?;
            return Ok(token);
        }
        blank_looks = if is_blank { blank_looks + 1 } else { 0 };
        match sign_in.next(seen) {
            Next::Wait => flow.pause(LOOK_EVERY),
            Next::AskCredentials => {
                known = Some(ask_credentials(flow)?);
                sign_in.know_credentials();
            }
            Next::Enter { email, password } => {
                if let Some(known) = &known {
                    enter(flow, known, email, password)?;
                }
            }
            Next::AskCode => enter_code(flow)?,
            Next::Act(action) => act(flow, action)?,
            Next::GiveUp(why) => return Err(refused(why)),
        }
    }
}

/// What the page shows; `None` when it is just being replaced.
fn look(flow: &SessionFlow) -> Result<Option<Seen>, Stop> {
    match flow.page().evaluate(&sign_in::look(), LOOK_WITHIN) {
        Ok(seen) => Ok(Some(seen)),
        Err(BrowserError::Gone(why) | BrowserError::PageGone(why)) => Err(BrowserError::Gone(why).into()),
        // It hangs, or is on its way: it is looked at again until the watchdog has seen enough.
        Err(_) => {
            flow.pause(LOOK_EVERY);
            // A flow that nobody listens to any more ends here.
            flow.mask([]).map(|()| None)
        }
    }
}

/// Asks out of the page whether there is a session. A page of somebody else's cannot be asked.
fn token(flow: &SessionFlow, service: &Service) -> Result<Option<String>, Stop> {
    let Ok(url) = flow.page().url(LOOK_WITHIN) else { return Ok(None) };
    if !service.is_ours(&url) {
        return Ok(None);
    }
    let request = PageRequest::get(service.at(SESSION_PATH).as_str());
    match flow.page().fetch(&request, SESSION_WITHIN) {
        Ok(answer) if answer.status == 200 => Ok(parse::token(answer.body.as_bytes())),
        Err(error @ BrowserError::Gone(_)) => Err(error.into()),
        Ok(_) | Err(_) => Ok(None),
    }
}

fn ask_credentials(flow: &SessionFlow) -> Result<SignInAs, Stop> {
    let question =
        Question::sign_in("ChatGPT asks to sign in. What you enter is typed into its page and not kept.", FIELDS);
    let reply = flow.ask(question)?;
    let value = |field: &str| reply.get(field).unwrap_or_default().to_owned();
    flow.checkpoint("credentials_given")?;
    Ok(SignInAs { username: value(FIELDS[0]), password: value(FIELDS[1]) })
}

fn enter(flow: &SessionFlow, known: &SignInAs, email: bool, password: bool) -> Result<(), Stop> {
    let fields = [(EMAIL, known.username.as_str(), email), (PASSWORD, &known.password, password)];
    submit(flow, fields.into_iter().filter(|(_, _, is_there)| *is_there).map(|(field, text, _)| (field, text)))?;
    flow.checkpoint(if password { "password_sent" } else { "name_sent" })
}

fn enter_code(flow: &SessionFlow) -> Result<(), Stop> {
    flow.checkpoint("code_wanted")?;
    let reply =
        flow.ask(Question::code("ChatGPT asks for a code: look at your phone, your mail or your authenticator."))?;
    submit(flow, [(CODE, reply.code().trim())])?;
    flow.checkpoint("code_sent")
}

/// Fills fields in, and sends them.
fn submit<'t>(flow: &SessionFlow, fields: impl IntoIterator<Item = (&'t str, &'t str)>) -> Result<(), Stop> {
    let page = flow.page();
    let mut fields = fields.into_iter();
    let submitted = fields.try_for_each(|(field, text)| page.fill(field, text, LOOK_WITHIN)).and_then(|()| {
        page.evaluate::<bool>(MARK, LOOK_WITHIN)?;
        page.press("Enter", LOOK_WITHIN)
    });
    submitted.or_else(unless_replaced)
}

fn act(flow: &mut SessionFlow, action: Action) -> Result<(), Stop> {
    let (phase, what) = match action {
        Action::SignIn => ("sign_in_wanted", "Please sign in to ChatGPT."),
        Action::Challenge => ("challenge", "ChatGPT wants to see that you are a person. Please pass its check."),
        Action::Unknown => ("unknown_page", "ChatGPT shows a page that is not known here. Please do what it asks for."),
    };
    flow.checkpoint(phase)?;
    // If the page is still the same afterwards, what was done on it has not come through yet.
    let marked = flow.page().evaluate::<bool>(MARK, LOOK_WITHIN).map(drop);
    marked.or_else(unless_replaced)?;
    flow.act(what)?;
    flow.checkpoint(&format!("{phase}_done"))?;
    flow.pause(SETTLE);
    Ok(())
}

/// A page that changed under our hands is looked at again.
fn unless_replaced(error: BrowserError) -> Result<(), Stop> {
    match error {
        BrowserError::Gone(_) | BrowserError::PageGone(_) => Err(error.into()),
        _ => Ok(()),
    }
}

fn refused(why: &str) -> Stop {
    let message = format!("not signed in to ChatGPT: {why}; run again, and sign in");
    Stop::for_good(message, RecoveryAction::RefreshCredentials).with_code("sign_in_failed")
}
