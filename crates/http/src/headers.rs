//! Adapts the headers of the `http` crate for the governor's classifier, without a copy.

use gleaner_governor::HeaderSource;
use http::HeaderMap;

/// A view of a [`HeaderMap`] for a classifier.
#[derive(Clone, Copy, Debug)]
pub struct Headers<'a>(pub &'a HeaderMap);

/// Up to this many headers a linear scan is faster than hashing: a classifier asks for some twenty names that most
/// answers do not have.
const FEW: usize = 12;

/// Whether there is a header of this name.
#[cfg(feature = "client")]
pub(crate) fn has(map: &HeaderMap, name: &http::HeaderName) -> bool {
    if map.len() <= FEW { map.keys().any(|own| own == name) } else { map.contains_key(name) }
}

impl HeaderSource for Headers<'_> {
    fn for_each_value(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        if self.0.len() <= FEW {
            self.0.iter().filter(|(own, _)| own.as_str() == name).for_each(|(_, value)| visit(value.as_bytes()));
            return;
        }
        for value in self.0.get_all(name) {
            visit(value.as_bytes());
        }
    }

    fn may_name(&self, part: &str) -> bool {
        let Some((&first, rest)) = part.as_bytes().split_first() else { return true };
        // Compares one byte first, and only where the part fits: most comparisons fail there.
        let names_it = |name: &[u8]| {
            let places = name.len().saturating_sub(rest.len());
            name[..places].iter().enumerate().any(|(at, &byte)| byte == first && name[at + 1..].starts_with(rest))
        };
        self.0.keys().any(|name| names_it(name.as_str().as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_by_its_part() {
        let map = HeaderMap::from_iter([(http::HeaderName::from_static("x-rate-limit"), "1".parse().unwrap())]);
        assert!(["limit", "x-rate-limit", "x", ""].iter().all(|part| Headers(&map).may_name(part)));
        assert!(!Headers(&map).may_name("x-rate-limits") && !Headers(&HeaderMap::new()).may_name("limit"));
    }

    #[test]
    fn few_and_many_headers_are_read_alike() {
        for others in [0, FEW * 2] {
            let mut map = HeaderMap::new();
            for number in 0..others {
                map.append(http::HeaderName::try_from(format!("x-other-{number}")).unwrap(), "0".parse().unwrap());
            }
            map.append("Retry-After", "1".parse().unwrap());
            map.append("retry-after", "2".parse().unwrap());
            let mut seen = Vec::new();
            Headers(&map).for_each_value("retry-after", &mut |value| seen.push(value.to_vec()));
            assert_eq!(seen, [b"1", b"2"], "{others}");
            Headers(&map).for_each_value("retry", &mut |value| panic!("{value:?}"));
        }
    }
}
