//! Reads the IETF fields `RateLimit` and `RateLimit-Policy`, which are structured fields (RFC 9651).
//!
//! Why not split at commas as for the other formats: a structured field has quoted names and typed numbers, and a
//! field with one error counts as absent. Skips quotas that count anything but requests, never guesses, never
//! decides.

use std::convert::Infallible;
use std::time::Duration;

use sfv::visitor::{
    DictionaryVisitor, EntryVisitor, Ignored, InnerListVisitor, ItemVisitor, ListVisitor, ParameterVisitor,
};
use sfv::{BareItemFromInput, KeyRef, Parser};

use crate::signals::classify::HeaderSource;
use crate::signals::outcome::{QUOTAS_MAX, QuotaReading};
use crate::signals::quota_headers::{NOTHING, Places, believable};

/// `RateLimit` and `RateLimit-Policy`: quotas and their policies, matched by name; before version 8
/// of the draft a dictionary and a list of limits, matched by the limit.
pub(crate) fn read_structured(headers: &dyn HeaderSource) -> Places {
    let mut quotas = Vec::new();
    headers.for_each_value("ratelimit", &mut |value| quotas.extend(parse_fields(value)));
    let mut policies = Vec::new();
    headers.for_each_value("ratelimit-policy", &mut |value| policies.extend(parse_fields(value)));

    let mut used = vec![false; policies.len()];
    let mut found = Vec::new();
    for quota in quotas {
        let policy = policies.iter().position(|policy| quota.belongs_to(policy));
        if let Some(policy) = policy {
            used[policy] = true;
        }
        found.extend(quota.reading(policy.map(|policy| &policies[policy])));
    }
    let unused = policies.iter().zip(used).filter(|(_, used)| !used);
    found.extend(unused.filter_map(|(policy, _)| policy.reading(None)));
    let mut places = [NOTHING; QUOTAS_MAX];
    places.iter_mut().zip(found).for_each(|(place, reading)| *place = reading);
    places
}

/// One member of either structured field, numbers in thousandths as `sfv` counts them.
#[derive(Default)]
struct Field {
    name: Option<String>,
    limit: Option<i64>,
    remaining: Option<i64>,
    reset: Option<i64>,
    window: Option<i64>,
    counts_something_else: bool,
}

impl Field {
    fn belongs_to(&self, policy: &Self) -> bool {
        match (&self.name, &policy.name) {
            (Some(name), Some(policy)) => name == policy,
            (None, None) => self.limit.is_some() && self.limit == policy.limit,
            _ => false,
        }
    }

    /// `None` for a quota of bytes or connections: the governor paces requests.
    fn reading(&self, policy: Option<&Self>) -> Option<QuotaReading> {
        if self.counts_something_else || policy.is_some_and(|policy| policy.counts_something_else) {
            return None;
        }
        let limit = self.limit.or_else(|| policy?.limit);
        let window = self.window.or_else(|| policy?.window);
        Some(QuotaReading {
            limit: limit.and_then(|limit| u64::try_from(limit / 1_000).ok()).filter(|limit| *limit > 0),
            remaining: self.remaining.and_then(|remaining| u64::try_from(remaining.max(0) / 1_000).ok()),
            resets_in: self.reset.and_then(thousandths),
            window: window.and_then(thousandths).filter(|window| !window.is_zero()),
        })
    }
}

fn thousandths(number: i64) -> Option<Duration> {
    believable(Duration::from_millis(u64::try_from(number).ok()?))
}

/// A malformed field counts as absent, as structured fields require.
fn parse_fields(value: &[u8]) -> Vec<Field> {
    let list = Parser::new(value).parse_list_with_visitor(FieldList(Vec::new()));
    list.or_else(|_| Parser::new(value).parse_dictionary_with_visitor(FieldDictionary(Field::default())))
        .unwrap_or_default()
}

// Custom visitors instead of `sfv`'s parsed types, because those use hash maps seeded by the operating system, and
// nothing in this crate draws random numbers.

/// `"name";r=50;t=30, …`
struct FieldList(Vec<Field>);

impl<'de> ListVisitor<'de> for FieldList {
    type Out = Vec<Field>;
    type Error = Infallible;

    fn entry(&mut self) -> Result<impl EntryVisitor<'de>, Infallible> {
        if self.0.len() == QUOTAS_MAX {
            return Ok(None);
        }
        self.0.push(Field::default());
        Ok(self.0.last_mut())
    }

    fn finish(self) -> Result<Vec<Field>, Infallible> {
        Ok(self.0)
    }
}

impl<'de> EntryVisitor<'de> for &mut Field {
    type Error = Infallible;

    fn item(self) -> Result<impl ItemVisitor<'de>, Infallible> {
        Ok(self)
    }

    fn inner_list(self) -> Result<impl InnerListVisitor<'de>, Infallible> {
        Ok(Ignored)
    }
}

impl<'de> ItemVisitor<'de> for &mut Field {
    type Out = ();
    type Error = Infallible;

    fn bare_item(self, item: BareItemFromInput<'de>) -> Result<impl ParameterVisitor<'de, Out = ()>, Infallible> {
        self.limit = number(&item);
        self.name = match item {
            BareItemFromInput::String(name) => Some(name.as_str().to_owned()),
            BareItemFromInput::Token(name) => Some(name.as_str().to_owned()),
            _ => None,
        };
        Ok(self)
    }
}

impl<'de> ParameterVisitor<'de> for &mut Field {
    type Out = ();
    type Error = Infallible;

    fn parameter(&mut self, key: &'de KeyRef, value: BareItemFromInput<'de>) -> Result<(), Infallible> {
        match key.as_str() {
            "q" => self.limit = number(&value),
            "r" => self.remaining = number(&value),
            "t" => self.reset = number(&value),
            "w" => self.window = number(&value),
            "qu" => self.counts_something_else = value.as_string().is_none_or(|unit| unit.as_str() != "requests"),
            _ => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// `limit=100, remaining=50, reset=5`
struct FieldDictionary(Field);

impl<'de> DictionaryVisitor<'de> for FieldDictionary {
    type Out = Vec<Field>;
    type Error = Infallible;

    fn entry(&mut self, key: &'de KeyRef) -> Result<impl EntryVisitor<'de>, Infallible> {
        Ok(match key.as_str() {
            "limit" => Some(NumberSlot(&mut self.0.limit)),
            "remaining" => Some(NumberSlot(&mut self.0.remaining)),
            "reset" => Some(NumberSlot(&mut self.0.reset)),
            _ => None,
        })
    }

    fn finish(self) -> Result<Vec<Field>, Infallible> {
        Ok(vec![self.0])
    }
}

struct NumberSlot<'a>(&'a mut Option<i64>);

impl<'de> EntryVisitor<'de> for NumberSlot<'_> {
    type Error = Infallible;

    fn item(self) -> Result<impl ItemVisitor<'de>, Infallible> {
        Ok(|item: BareItemFromInput<'de>| {
            *self.0 = number(&item);
            Ok::<_, Infallible>(Ignored)
        })
    }

    fn inner_list(self) -> Result<impl InnerListVisitor<'de>, Infallible> {
        *self.0 = None;
        Ok(Ignored)
    }
}

/// An integer or a decimal in thousandths; integers have at most 15 digits, so this cannot overflow.
fn number(item: &BareItemFromInput<'_>) -> Option<i64> {
    match item {
        BareItemFromInput::Integer(whole) => i64::from(*whole).checked_mul(1_000),
        BareItemFromInput::Decimal(decimal) => Some(i64::from(decimal.as_integer_scaled_1000())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::signals::quota_headers::tests::check;

    #[test]
    fn structured_quotas_are_matched_with_their_policies_by_name() {
        let policy = ("RateLimit-Policy", r#""burst";q=100;w=60, "daily";q=1000;w=86400"#);
        check(
            &[("RateLimit", r#""daily";r=500;t=3600, "burst";r=50;t=30"#), policy],
            &[(Some(1000), Some(500), Some(3_600_000), Some(86_400)), (Some(100), Some(50), Some(30_000), Some(60))],
        );
        check(
            &[("RateLimit", r#""burst";r=0"#), policy],
            &[(Some(100), Some(0), None, Some(60)), (Some(1000), None, None, Some(86_400))],
        );
        check(&[("RateLimit", "default;r=50;t=30")], &[(None, Some(50), Some(30_000), None)]);
        check(
            &[("RateLimit", r#""a";r=1;t=2"#), ("RateLimit", r#""b";r=3;t=4.5"#)],
            &[(None, Some(1), Some(2_000), None), (None, Some(3), Some(4_500), None)],
        );
    }

    #[test]
    fn the_older_dictionary_form_is_matched_with_its_policy_by_limit() {
        check(
            &[("RateLimit", "limit=100, remaining=50, reset=5"), ("RateLimit-Policy", "100;w=60")],
            &[(Some(100), Some(50), Some(5_000), Some(60))],
        );
        check(&[("RateLimit", "limit=100,remaining=-2,reset=(1 2)")], &[(Some(100), Some(0), None, None)]);
    }

    #[test]
    fn structured_nonsense_is_not_told() {
        for value in ["", "\"open", "\"a\";r=;t=5", "1,", "(", "\u{e9}", "\"a\";r=9999999999999999"] {
            check(&[("RateLimit", value)], &[]);
        }
        check(&[("RateLimit", r#""a";r=-3;t=-1;w=0"#)], &[(None, Some(0), None, None)]);
        check(&[("RateLimit", r#""a";r="5";t=99999999999"#)], &[]);
        // Bytes and connections are not requests.
        check(&[("RateLimit", r#""a";r=5"#), ("RateLimit-Policy", r#""a";q=10;qu="content-bytes""#)], &[]);
        check(
            &[("RateLimit", r#""a";r=5"#), ("RateLimit-Policy", r#""a";q=10;qu="requests""#)],
            &[(Some(10), Some(5), None, None)],
        );
    }
}
