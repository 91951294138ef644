//! What to do next on the way to a session, from what the page shows. Pure.
//!
//! Why a decision of its own: the sign-in of such a service changes its pages and their order, so nothing here follows
//! a script. It looks at what is there, does the one thing that this asks for, and looks again. Whatever it does not
//! know is the owner's, who can see the page. Nothing is tried for ever: a form that comes back has refused what was
//! entered, and three times is enough for a person to see that something else is wrong.

use serde::Deserialize;
use std::time::Duration;

/// How often a password or a code may be entered: services lock an account after more.
const TRIES_MAX: u32 = 3;
/// How often the owner is asked to do something by hand.
const ACTIONS_MAX: u32 = 5;
/// How often one looks at a page on which nothing happens before the owner is asked: with [`LOOK_EVERY`] 20 s, which
/// no page of a sign-in takes.
const LOOKS_MAX: u32 = 200;
/// How often the page is looked at. A person does not notice a tenth of a second.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(100);

const REFUSED_CREDENTIALS: &str = "the service did not take the name and password, three times";
const REFUSED_CODE: &str = "the service did not take the code, three times";
const NOT_SIGNED_IN: &str = "the service still asks for something after five actions by hand";

/// What the page shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Seen {
    pub(super) email: bool,
    pub(super) password: bool,
    pub(super) code: bool,
    pub(super) challenge: bool,
    /// Something was done on this very page, and it has not changed since.
    pub(super) is_done: bool,
}

/// The fields by what they are for.
pub(super) const EMAIL: &str =
    "input[type=email], input[name=email], input[name=username], input[autocomplete=username]";
pub(super) const PASSWORD: &str = "input[type=password]";
pub(super) const CODE: &str = "input[autocomplete=one-time-code], input[name=code], input[inputmode=numeric]";
const CHALLENGE: &str = "#challenge, #challenge-form, #challenge-stage, iframe[src*=challenge]";

/// Marks the page as one on which something was done. A page that complains is another one.
pub(super) const MARK: &str = "(() => { window.__gleanerDone = location.href; \
     for (const e of document.querySelectorAll('[role=alert]')) e.dataset.gleanerOld = '1'; return true })()";

/// The script that looks. Fields that cannot be seen are not there.
pub(super) fn look() -> String {
    format!(
        "(() => {{ const shown = s => [...document.querySelectorAll(s)].some(e => e.getClientRects().length > 0); \
         return {{email: shown('{EMAIL}'), password: shown('{PASSWORD}'), code: shown('{CODE}'), \
         challenge: shown('{CHALLENGE}') || /^just a moment/i.test(document.title), \
         is_done: window.__gleanerDone === location.href && !shown('[role=alert]:not([data-gleaner-old])')}} }})()"
    )
}

/// How the owner signs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// In the window, by hand.
    Window,
    /// Through questions, and we fill in the answers.
    Form,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Ask for name and password.
    AskCredentials,
    /// Fill in what there are fields for, and send it.
    Enter { email: bool, password: bool },
    /// Ask for the code, and fill it in.
    AskCode,
    /// The owner does it.
    Act(Action),
    /// Look again.
    Wait,
    /// It does not work.
    GiveUp(&'static str),
}

/// What the owner is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    SignIn,
    Challenge,
    Unknown,
}

/// What was done so far.
#[derive(Clone, Debug)]
pub(super) struct SignIn {
    way: Way,
    has_credentials: bool,
    /// Entered since they were asked for.
    emails: u32,
    passwords: u32,
    refusals: u32,
    codes: u32,
    actions: u32,
    looks: u32,
}

impl SignIn {
    pub(super) const fn new(way: Way, has_credentials: bool) -> Self {
        Self { way, has_credentials, emails: 0, passwords: 0, refusals: 0, codes: 0, actions: 0, looks: 0 }
    }

    /// The owner said name and password.
    pub(super) const fn know_credentials(&mut self) {
        (self.has_credentials, self.emails, self.passwords) = (true, 0, 0);
    }

    /// What to do about a page that shows this and has no session.
    pub(super) const fn next(&mut self, seen: Seen) -> Next {
        let is_known = seen.challenge || seen.code || seen.email || seen.password;
        if seen.is_done || !is_known {
            self.looks += 1;
            return if self.looks > LOOKS_MAX { self.act(Action::Unknown) } else { Next::Wait };
        }
        self.looks = 0;
        if seen.challenge {
            self.act(Action::Challenge)
        } else if seen.code {
            self.codes += 1;
            if self.codes > TRIES_MAX { Next::GiveUp(REFUSED_CODE) } else { Next::AskCode }
        } else {
            self.enter(seen)
        }
    }

    const fn enter(&mut self, seen: Seen) -> Next {
        let entered = if seen.password { &mut self.passwords } else { &mut self.emails };
        // A form that comes back has refused what was entered.
        if self.has_credentials && *entered > 0 {
            self.refusals += 1;
            self.has_credentials = false;
        }
        if self.refusals >= TRIES_MAX {
            return Next::GiveUp(REFUSED_CREDENTIALS);
        }
        match (self.has_credentials, self.way) {
            (true, _) => {
                *entered += 1;
                Next::Enter { email: seen.email, password: seen.password }
            }
            (false, Way::Form) => Next::AskCredentials,
            (false, Way::Window) => self.act(Action::SignIn),
        }
    }

    const fn act(&mut self, action: Action) -> Next {
        self.actions += 1;
        self.looks = 0;
        if self.actions > ACTIONS_MAX { Next::GiveUp(NOT_SIGNED_IN) } else { Next::Act(action) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Seen = Seen { email: false, password: false, code: false, challenge: false, is_done: false };
    const EMAIL_FORM: Seen = Seen { email: true, ..NOTHING };
    const PASSWORD_FORM: Seen = Seen { password: true, ..NOTHING };
    const CODE_FORM: Seen = Seen { code: true, ..NOTHING };
    const CHALLENGE_PAGE: Seen = Seen { challenge: true, ..NOTHING };
    const ENTER_EMAIL: Next = Next::Enter { email: true, password: false };
    const ENTER_PASSWORD: Next = Next::Enter { email: false, password: true };

    #[test]
    fn a_sign_in_in_steps_is_followed_as_it_is_shown() {
        let mut sign_in = SignIn::new(Way::Form, false);
        assert_eq!(sign_in.next(EMAIL_FORM), Next::AskCredentials);
        sign_in.know_credentials();
        assert_eq!(sign_in.next(EMAIL_FORM), ENTER_EMAIL);
        assert_eq!(sign_in.next(Seen { is_done: true, ..EMAIL_FORM }), Next::Wait, "the next page is on its way");
        assert_eq!(sign_in.next(PASSWORD_FORM), ENTER_PASSWORD);
        assert_eq!(sign_in.next(CODE_FORM), Next::AskCode);
        assert_eq!(sign_in.next(CHALLENGE_PAGE), Next::Act(Action::Challenge));
        assert_eq!(sign_in.next(NOTHING), Next::Wait);
    }

    #[test]
    fn a_form_with_both_fields_gets_both() {
        let mut sign_in = SignIn::new(Way::Form, true);
        let both = Seen { email: true, ..PASSWORD_FORM };
        assert_eq!(sign_in.next(both), Next::Enter { email: true, password: true });
    }

    #[test]
    fn a_refused_password_is_asked_for_again_and_three_times_is_enough() {
        let mut sign_in = SignIn::new(Way::Form, true);
        assert_eq!(sign_in.next(PASSWORD_FORM), ENTER_PASSWORD, "what was stored is tried first");
        for _ in 0..2 {
            assert_eq!(sign_in.next(PASSWORD_FORM), Next::AskCredentials);
            sign_in.know_credentials();
            assert_eq!(sign_in.next(PASSWORD_FORM), ENTER_PASSWORD);
        }
        assert_eq!(sign_in.next(PASSWORD_FORM), Next::GiveUp(REFUSED_CREDENTIALS));
    }

    #[test]
    fn a_refused_code_is_asked_for_again_and_three_times_is_enough() {
        let mut sign_in = SignIn::new(Way::Form, true);
        assert_eq!(
            [(); 4].map(|()| sign_in.next(CODE_FORM)),
            [Next::AskCode, Next::AskCode, Next::AskCode, Next::GiveUp(REFUSED_CODE)]
        );
    }

    #[test]
    fn with_a_window_the_owner_signs_in_there_unless_a_password_is_known() {
        assert_eq!(SignIn::new(Way::Window, false).next(EMAIL_FORM), Next::Act(Action::SignIn));
        assert_eq!(SignIn::new(Way::Window, true).next(EMAIL_FORM), ENTER_EMAIL);
        let mut refused = SignIn::new(Way::Window, true);
        assert_eq!(refused.next(PASSWORD_FORM), ENTER_PASSWORD);
        assert_eq!(refused.next(PASSWORD_FORM), Next::Act(Action::SignIn));
    }

    #[test]
    fn a_page_that_nobody_knows_becomes_the_owners_after_a_while_and_not_for_ever() {
        for seen in [NOTHING, Seen { is_done: true, ..EMAIL_FORM }] {
            let mut sign_in = SignIn::new(Way::Form, true);
            let steps = (0..2000).map(|_| sign_in.next(seen)).collect::<Vec<_>>();
            assert_eq!(steps.iter().position(|next| *next != Next::Wait), Some(200));
            assert_eq!(steps.iter().filter(|next| **next == Next::Act(Action::Unknown)).count(), 5);
            assert!(steps.contains(&Next::GiveUp(NOT_SIGNED_IN)));
        }
    }
}
