//! Which answer a request gets. Every one of them is written down with its time.

use super::Shared;
use super::pages;
use super::world::{Asked, Step, World};
use crate::http::{Request, Response};
use serde_json::{Value, json};
use std::time::Duration;

const COOKIE: &str = "site_session";

pub(crate) fn answer(shared: &Shared, request: &Request) -> Response {
    let delay = shared.world().delay;
    if !request.path.starts_with("/backend-api/") {
        std::thread::sleep(delay);
    }
    let mut world = shared.world();
    // The time is taken under the lock, so that the list is in the order of its times.
    let at = shared.started.elapsed();
    let session = request.cookie(COOKIE).filter(|name| world.books.sessions.contains_key(*name)).map(ToOwned::to_owned);
    let response = route(&mut world, request, session.as_deref(), at);
    world.asked.push(Asked {
        at,
        method: request.method.clone(),
        path: request.path.clone(),
        query: request.query.clone(),
        session,
        status: response.status,
    });
    response
}

fn route(world: &mut World, request: &Request, session: Option<&str>, at: Duration) -> Response {
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/") => home(world, session),
        ("GET", "/auth/login") if world.is_stalled => Response::page(pages::stalled()),
        ("GET", "/auth/login") => Response::page(pages::email()),
        ("POST", "/auth/login") => take_email(world, request),
        ("GET", "/auth/password") => Response::page(pages::password(false)),
        ("POST", "/auth/password") => take_password(world, request, session),
        ("GET", "/auth/code") => Response::page(pages::code(false)),
        ("POST", "/auth/code") => take_code(world, request, session),
        ("GET", "/auth/challenge") if world.is_title_wedged => Response::page(pages::wedged_title()),
        ("GET", "/auth/challenge") => Response::page(pages::challenge()),
        ("GET", "/api/auth/session") => session_of(world, session),
        ("GET", "/wedge") => Response::page(pages::wedge()),
        ("GET", "/storm/file") => Response::of(200, "application/octet-stream", "x".repeat(1000)),
        ("GET", "/storm/popup") => Response::page(pages::page("Popup", "popup")),
        ("GET", path) if path.starts_with("/backend-api/") => api(world, request, path, at),
        _ => Response::bare(404),
    }
}

fn home(world: &mut World, session: Option<&str>) -> Response {
    let Some(name) = session else { return Response::redirect("/auth/login") };
    let step = world.books.sessions.get(name).copied();
    let step = if step == Some(Step::Challenge) && world.is_challenge_passed {
        world.books.sessions.insert(name.to_owned(), Step::SignedIn);
        Some(Step::SignedIn)
    } else {
        step
    };
    match step {
        Some(Step::SignedIn) if world.wedges_after_sign_in => Response::page(pages::wedge()),
        Some(Step::SignedIn) => Response::page(pages::home(name, world)),
        Some(Step::Challenge) => Response::redirect("/auth/challenge"),
        Some(Step::Code) => Response::redirect("/auth/code"),
        Some(Step::Password) | None => Response::redirect("/auth/login"),
    }
}

/// A session begins with a name. Whether it is the right one is not told before the password.
fn take_email(world: &mut World, request: &Request) -> Response {
    let session = world.name("session");
    let is_known = request.field("email") == world.owner.email;
    if is_known {
        world.books.sessions.insert(session.clone(), Step::Password);
    }
    Response::redirect("/auth/password").with("Set-Cookie", cookie(&session))
}

fn cookie(session: &str) -> String {
    format!("{COOKIE}={session}; Path=/; HttpOnly; SameSite=Lax; Max-Age=86400")
}

fn take_password(world: &mut World, request: &Request, session: Option<&str>) -> Response {
    match session.filter(|_| request.field("password") == world.owner.password) {
        Some(name) => pass(world, name, Step::Password),
        None => Response::page(pages::password(true)),
    }
}

fn take_code(world: &mut World, request: &Request, session: Option<&str>) -> Response {
    let is_right = Some(request.field("code")) == world.owner.code;
    match session.filter(|_| is_right) {
        Some(name) => pass(world, name, Step::Code),
        None => Response::page(pages::code(true)),
    }
}

fn pass(world: &mut World, session: &str, step: Step) -> Response {
    let next = world.after(step);
    world.books.sessions.insert(session.to_owned(), next);
    Response::redirect("/")
}

fn is_signed_in(world: &World, session: Option<&str>) -> bool {
    session.is_some_and(|name| world.books.sessions.get(name) == Some(&Step::SignedIn))
}

fn session_of(world: &mut World, session: Option<&str>) -> Response {
    if !is_signed_in(world, session) {
        return json_of(&json!({}));
    }
    let token = world.name("token");
    world.books.tokens.insert(token.clone());
    json_of(&json!({"user": {"email": world.owner.email}, "accessToken": token, "expires": "2099-01-01T00:00:00.000Z"}))
}

fn json_of(value: &Value) -> Response {
    Response::of(200, "application/json", value.to_string())
}

fn api(world: &mut World, request: &Request, path: &str, at: Duration) -> Response {
    // As many services do it: the limit is looked at first, and tells nothing about itself.
    if world.books.bucket.as_mut().is_some_and(|bucket| !bucket.take(at)) {
        return Response::bare(429);
    }
    world.books.api_requests += 1;
    if world.expires_after.take_if(|after| *after < world.books.api_requests).is_some() {
        world.expire_sessions();
    }
    if world.tokens_expire_after.take_if(|after| *after < world.books.api_requests).is_some() {
        world.books.tokens.clear();
    }
    let token = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    if !token.is_some_and(|token| world.books.tokens.contains(token)) {
        return Response::of(401, "application/json", r#"{"detail":"Could not parse your authentication token."}"#);
    }
    if path == "/backend-api/conversations" {
        return list(world, request);
    }
    match path.strip_prefix("/backend-api/conversation/") {
        Some(id) => detail(world, id),
        None => Response::bare(404),
    }
}

fn list(world: &mut World, request: &Request) -> Response {
    world.books.list_requests += 1;
    if world.deletes_after_lists.take_if(|after| *after < world.books.list_requests).is_some() {
        let conversations = &mut world.history.conversations;
        conversations.sort_by_key(|conversation| std::cmp::Reverse(conversation.updated));
        drop(conversations.drain(..conversations.len().min(2)));
    }
    let number = |name: &str| request.asked_for(name).and_then(|text| text.parse::<usize>().ok());
    let limit = number("limit").unwrap_or(28).min(world.page_max);
    json_of(&world.history.page(number("offset").unwrap_or(0), limit))
}

fn detail(world: &mut World, id: &str) -> Response {
    if let Some(left) = world.refused.get_mut(id).filter(|left| **left > 0) {
        *left -= 1;
        return Response::bare(429).with("Retry-After", "1");
    }
    match world.history.detail(id).filter(|_| !world.lost.contains(id)) {
        Some(detail) => json_of(&detail),
        None => Response::of(404, "application/json", r#"{"detail":"conversation_not_found"}"#),
    }
}
