//! A cache of lookup results, for their time to live, and of failures.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use adit_dns::{FailureCache, RecordType};
use adit_wire::Time;

use super::lookup_result::LookupResult;

/// Maximum number of cached names; about 200 bytes each.
const MAX: usize = 4096;
/// Maximum time for which addresses are cached, in seconds, regardless of their time to live.
const MAX_TTL: u32 = 15 * 60;
/// Maximum time for which a negative answer is cached, in seconds: a name that was just created should be
/// found soon.
const MAX_NEGATIVE_TTL: u32 = 30;

/// Maximum number of failures that are kept.
const MAX_FAILURES: usize = 1024;
/// The type of failures: a lookup is one of both families.
const BOTH_FAMILIES: RecordType = RecordType::ANY;

#[derive(Debug)]
pub(super) struct LookupCache {
    found: HashMap<Box<str>, (LookupResult, Time)>,
    failures: FailureCache<Arc<str>>,
}

impl Default for LookupCache {
    fn default() -> Self {
        Self {
            found: HashMap::new(),
            failures: FailureCache::new(MAX_FAILURES),
        }
    }
}

impl LookupCache {
    pub(super) fn get(&self, name: &str, now: Time) -> Option<LookupResult> {
        let (found, until) = self.found.get(name)?;
        (*until > now).then(|| found.clone())
    }

    /// Returns the reason of a failure that is too recent for another lookup.
    pub(super) fn failure(&mut self, name: &str, now: Time) -> Option<Arc<str>> {
        self.failures.get(name, BOTH_FAMILIES, now)
    }

    pub(super) fn insert_failure(&mut self, name: &str, why: Arc<str>, now: Time) {
        self.failures.insert(name, BOTH_FAMILIES, why, now);
    }

    pub(super) fn insert(&mut self, name: &str, found: &LookupResult, now: Time) {
        self.failures.remove(name, BOTH_FAMILIES);
        self.failures.shorten_pauses();
        let seconds = match found {
            LookupResult::Addresses(_, ttl) => (*ttl).min(MAX_TTL),
            LookupResult::NoAddress { ttl, .. } => (*ttl).min(MAX_NEGATIVE_TTL),
        };
        if seconds == 0 {
            return;
        }
        if self.found.len() >= MAX {
            self.found.retain(|_, (_, until)| *until > now);
            // A quarter is removed in one pass, so that this is rare; the hasher decides which one.
            let mut left = MAX / 4 * 3;
            self.found.retain(|_, _| {
                let stays = left > 0;
                left = left.saturating_sub(1);
                stays
            });
        }
        let until = now + Duration::from_secs(u64::from(seconds));
        self.found.insert(name.into(), (found.clone(), until));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(ttl: u32) -> LookupResult {
        LookupResult::Addresses(vec!["1.1.1.1:0".parse().unwrap()].into(), ttl)
    }

    #[test]
    fn kept_as_long_as_it_holds_and_no_longer_than_the_bounds() {
        let at = |seconds: u64| Time(seconds * 1_000_000);
        let mut cache = LookupCache::default();
        cache.insert("a", &found(10), at(0));
        cache.insert("zero", &found(0), at(0));
        cache.insert("day", &found(86_400), at(0));
        let nothing = LookupResult::NoAddress {
            exists: false,
            ttl: 3600,
        };
        cache.insert("none", &nothing, at(0));
        assert!(cache.get("a", at(9)).is_some() && cache.get("a", at(10)).is_none());
        assert!(cache.get("zero", at(0)).is_none());
        assert!(cache.get("day", at(899)).is_some() && cache.get("day", at(900)).is_none());
        assert!(cache.get("none", at(29)).is_some() && cache.get("none", at(30)).is_none());
    }

    #[test]
    fn the_number_of_names_is_bounded() {
        let mut cache = LookupCache::default();
        for n in 0..3 * MAX {
            cache.insert(&format!("n{n}"), &found(60), Time(0));
            assert!(cache.found.len() <= MAX);
        }
        assert!(cache.found.len() > MAX / 2);
    }
}
