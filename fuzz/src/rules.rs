//! Rule lists: the properties of everything that a reader returns.

use adit_rules::read::{Limits, Loaded, ReadError};
use adit_rules::{Addresses, Outcome, Request, RuleSet, Transport};
use adit_wire::Target;

/// Bounds that small inputs reach.
pub const LIMITS: Limits = Limits {
    bytes: 1 << 20,
    entries: 2000,
    depth: 8,
    notes: 20,
};

/// Checks a list that was read, or the error.
pub fn check(read: Result<Loaded, ReadError>) {
    match read {
        Ok(loaded) => {
            assert!(loaded.accepted <= LIMITS.entries && loaded.notes.len() <= LIMITS.notes);
            for note in &loaded.notes {
                assert!(!note.to_string().is_empty());
            }
            check_set(&loaded.set);
        }
        Err(why) => assert!(!why.to_string().is_empty()),
    }
}

/// Checks that a set answers, and that its cache is the same set.
pub fn check_set(set: &RuleSet) {
    let again = RuleSet::from_cache(&set.to_cache());
    assert_eq!(again.as_ref(), Ok(set), "a cache is another set");
    assert!(set.memory() < 1 << 28, "{} bytes", set.memory());
    let ip = [[10, 1, 2, 3].into()];
    for target in [
        "www.a.example:443",
        "a:80",
        "10.1.2.3:25",
        "[2001:db8::1]:1",
    ] {
        let target: Target = target.parse().expect("a target");
        let request = Request::new(&target)
            .with_transport(Transport::Tcp)
            .with_user("a")
            .with_listener("b");
        let known = set.evaluate(&request, Addresses::Known(&ip));
        assert!(known != Outcome::NeedsLookup);
        let unknown = set.evaluate(&request, Addresses::Unknown);
        assert!(unknown == known || unknown == Outcome::NeedsLookup);
        assert!(unknown != Outcome::NeedsLookup || (request.has_name() && set.has_networks()));
    }
    assert!(set.networks().take(10_000).all(|net| net == net.trunc()));
}
