//! Decisions of conditions, sets and lists.

use adit_wire::Target;

use crate::{
    AddError, Addresses, Condition, Decision, Entry, Outcome, Request, Rule, RuleList, RuleSet,
    RuleSetBuilder, SharedRuleSet, Transport,
};

fn set(conditions: &[&str]) -> RuleSet {
    let parsed = conditions
        .iter()
        .map(|text| Condition::parse(text).unwrap());
    RuleSet::compile(parsed).unwrap()
}

fn target(text: &str) -> Target {
    text.parse().unwrap()
}

#[test]
fn conditions_match_what_they_say() {
    for (rule, to, matches) in [
        ("*", "a:1", true),
        ("*.lan", "db.lan:1", true),
        ("*.lan", "DB.LAN.:1", true),
        ("*.lan", "lan:1", false),
        ("*.lan", ".lan:1", false),
        ("*.lan", "dblan:1", false),
        ("*.lan", "10.0.0.1:1", false),
        ("*.bücher.example", "www.bücher.example:1", true),
        ("*.bücher.example", "www.xn--bcher-kva.EXAMPLE:1", true),
        ("*.lan", "ü:1", false),
        ("DB.lan", "db.LAN:1", true),
        (r"regex:^ads?\d*\.", "AD7.example:1", true),
        (r"regex:^ads?\d*\.", "www.ad7.example:1", false),
        ("regex:.", "10.0.0.1:1", false),
        (r"regex:\.lan$", "a.lan.:1", true),
        ("db.lan", "x.db.lan:1", false),
        ("10.0.0.0/8", "10.1.2.3:1", true),
        ("10.0.0.0/8", "11.1.2.3:1", false),
        ("10.0.0.0/8", "10.lan:1", false),
        ("::1", "[::1]:1", true),
        (":25", "a:25", true),
        (":25", "a:26", false),
        (":6000-6063", "[::1]:6063", true),
        (":6000-6063", "[::1]:6064", false),
        ("suffix:lan", "lan:1", true),
        ("suffix:lan", "a.b.lan:1", true),
        ("suffix:lan", "xlan:1", false),
        ("keyword:Ads", "my-ADS.example:1", true),
        ("keyword:ads", "ad.example:1", false),
        ("glob:*.lan", "a.lan:1", true),
        ("glob:*.lan", "a.b.lan:1", false),
        ("network:tcp", "a:1", true),
        ("network:UDP", "a:1", false),
        ("source:192.0.2.0/24", "a:1", true),
        ("source:192.0.3.0/24", "a:1", false),
        ("source-port:5000-5001", "a:1", true),
        ("source-port:1", "a:1", false),
        ("user:alice", "a:1", true),
        ("user:Alice", "a:1", false),
        ("listener:socks", "a:1", true),
        ("listener:http", "a:1", false),
    ] {
        let read = Condition::parse(rule).unwrap();
        let to = target(to);
        let request = Request::new(&to)
            .with_transport(Transport::Tcp)
            .with_source("192.0.2.1:5000".parse().unwrap())
            .with_user("alice")
            .with_listener("socks");
        let compiled = RuleSet::compile([read.clone()]).unwrap();
        assert_eq!(compiled.matches(&request), matches, "{rule} {to}");
        assert_eq!(compiled.len(), 1, "{rule}");
        assert_eq!(Condition::parse(&read.to_string()), Ok(read));
    }
}

#[test]
fn a_missing_fact_does_not_match() {
    let to = target("a:1");
    let request = Request::new(&to);
    for rule in [
        "network:tcp",
        "source:0.0.0.0/0",
        "source-port:0-65535",
        "user:a",
        "listener:a",
    ] {
        assert!(!set(&[rule]).matches(&request), "{rule}");
    }
}

#[test]
fn wrong_conditions_are_refused() {
    for text in [
        "",
        "*lan",
        "*.",
        "a b",
        ":",
        ":2-1",
        ":70000",
        "10.0.0.0/33",
        ":+1",
        "http://a",
        "keyword:",
        "keyword:a b",
        "glob:",
        "regex:(",
        "user:",
        "network:sctp",
        "source:a",
        "suffix:",
        "10.0.0.1.",
    ] {
        assert!(Condition::parse(text).is_err(), "{text}");
    }
    let long = format!("user:{}", "a".repeat(256));
    assert_eq!(Condition::parse(&long), Err(AddError::Text));
}

#[test]
fn groups_are_and_and_not() {
    let mut builder = RuleSetBuilder::new();
    builder
        .add_all(vec![set(&["suffix:example"]), set(&[":443", ":80"])])
        .unwrap();
    let mut not = RuleSetBuilder::new();
    not.add_not(set(&["suffix:internal"])).unwrap();
    let both = builder.build();
    let not = not.build();
    for (to, first, second) in [
        ("www.example:443", true, true),
        ("www.example:22", false, true),
        ("internal:80", false, false),
    ] {
        let to = target(to);
        assert_eq!(both.matches(&Request::new(&to)), first, "{to}");
        assert_eq!(not.matches(&Request::new(&to)), second, "{to}");
    }
}

#[test]
fn the_depth_is_bounded() {
    let mut deep = set(&["a"]);
    for _ in 0..16 {
        let mut builder = RuleSetBuilder::new();
        builder.add_not(deep).unwrap();
        deep = builder.build();
    }
    assert!(deep.matches(&Request::new(&target("a:1"))));
    assert_eq!(
        RuleSetBuilder::new().add_not(deep.clone()),
        Err(AddError::Depth)
    );
    assert_eq!(
        RuleSetBuilder::new().add_all(vec![deep]),
        Err(AddError::Depth)
    );
}

#[test]
fn addresses_decide_only_where_they_matter() {
    let name = target("db.example:1");
    let request = Request::new(&name);
    let nets = set(&["10.0.0.0/8", "web.example"]);
    let ten = ["10.1.1.1".parse().unwrap()];
    let eleven = ["11.1.1.1".parse().unwrap()];
    assert_eq!(
        nets.evaluate(&request, Addresses::Unknown),
        Outcome::NeedsLookup
    );
    assert_eq!(
        nets.evaluate(&request, Addresses::Known(&ten)),
        Outcome::Match
    );
    assert_eq!(
        nets.evaluate(&request, Addresses::Known(&eleven)),
        Outcome::NoMatch
    );
    let web = target("web.example:1");
    assert_eq!(
        nets.evaluate(&Request::new(&web), Addresses::Unknown),
        Outcome::Match
    );
    // Inside of a negation, too.
    let mut builder = RuleSetBuilder::new();
    builder.add_not(nets.clone()).unwrap();
    let not = builder.build();
    assert!(not.has_networks());
    assert_eq!(
        not.evaluate(&request, Addresses::Unknown),
        Outcome::NeedsLookup
    );
    assert_eq!(
        not.evaluate(&request, Addresses::Known(&eleven)),
        Outcome::Match
    );
    // A part that cannot match decides without a lookup.
    let mut builder = RuleSetBuilder::new();
    builder.add_all(vec![nets, set(&[":443"])]).unwrap();
    assert_eq!(
        builder.build().evaluate(&request, Addresses::Unknown),
        Outcome::NoMatch
    );
}

#[test]
fn the_first_match_decides() {
    let rule = |conditions: &[&str], resolve| Rule {
        sets: vec![set(conditions).into()],
        and: Vec::new(),
        resolve,
    };
    let list = RuleList::new(vec![
        rule(&["192.0.2.0/24"], false),
        rule(&["www.example"], false),
        rule(&["10.0.0.0/8"], true),
        rule(&["suffix:example"], false),
    ]);
    let decide = |to: &str| list.decide(&Request::new(&target(to)));
    assert_eq!(decide("192.0.2.7:1"), Decision::Rule(0));
    assert_eq!(decide("www.example:1"), Decision::Rule(1));
    assert_eq!(decide("10.0.0.1:1"), Decision::Rule(2));
    assert_eq!(decide("8.8.8.8:1"), Decision::NoRule);
    assert_eq!(decide("db.example:1"), Decision::Lookup(2));
    let to = target("db.example:1");
    let request = Request::new(&to);
    let after = |ip: &str| list.decide_with_addresses(2, &request, &[ip.parse().unwrap()]);
    assert_eq!(after("10.0.0.1"), Decision::Rule(2));
    // The first rule does not look names up.
    assert_eq!(after("192.0.2.7"), Decision::Rule(3));
    assert_eq!(
        list.decide_with_addresses(2, &request, &[]),
        Decision::Rule(3)
    );
}

#[test]
fn a_set_knows_its_size() {
    let set = set(&[
        "a.example",
        "suffix:example",
        "10.0.0.0/9",
        "10.128.0.0/9",
        ":1",
        ":2",
        "*",
    ]);
    assert_eq!(set.len(), 4);
    assert!(!set.is_empty() && RuleSet::default().is_empty());
    let nets: Vec<String> = set.networks().map(|net| net.to_string()).collect();
    assert_eq!(nets, ["10.0.0.0/8"]);
    assert!(set.contains_address("10.9.9.9".parse().unwrap()));
    assert!(set.memory() > 0);
}

#[test]
fn two_lists_of_a_rule_have_to_match() {
    let rule = Rule {
        sets: vec![set(&["suffix:lan", "10.0.0.0/8"]).into()],
        and: vec![set(&[":443"]).into(), set(&["network:udp"]).into()],
        resolve: true,
    };
    let list = RuleList::new(vec![rule]);
    let decide =
        |to: &str, transport| list.decide(&Request::new(&target(to)).with_transport(transport));
    assert_eq!(decide("a.lan:443", Transport::Tcp), Decision::Rule(0));
    assert_eq!(decide("a.lan:80", Transport::Tcp), Decision::NoRule);
    assert_eq!(decide("a.lan:80", Transport::Udp), Decision::Rule(0));
    assert_eq!(decide("a.wan:443", Transport::Tcp), Decision::Lookup(0));
    // The second list cannot match, so that no lookup is necessary.
    assert_eq!(decide("a.wan:80", Transport::Tcp), Decision::NoRule);
}

#[test]
fn a_replaced_set_decides_for_all_that_share_it() {
    let shared = SharedRuleSet::from(set(&["a.example"]));
    let list = RuleList::new(vec![Rule {
        sets: vec![shared.clone()],
        and: Vec::new(),
        resolve: false,
    }]);
    let decide = |to: &str| list.decide(&Request::new(&target(to)));
    assert_eq!(decide("a.example:1"), Decision::Rule(0));
    shared.replace(set(&["b.example", "10.0.0.0/8"]));
    assert_eq!(decide("a.example:1"), Decision::NoRule);
    assert_eq!(decide("b.example:1"), Decision::Rule(0));
    assert_eq!(shared.current().len(), 2);
    assert!(shared.contains_address("10.0.0.1".parse().unwrap()));
}

#[test]
fn the_entry_that_matches_is_found() {
    let all = set(&[
        "exact.example",
        "*.below.example",
        "suffix:both.example",
        "keyword:ads",
        "glob:x*.test",
        r"regex:^y\d\.",
        "10.0.0.0/9",
        "10.128.0.0/9",
        "2001:db8::/32",
        ":6000-6063",
        "user:alice",
    ]);
    let known = ["10.1.2.3".parse().unwrap()];
    for (to, entry) in [
        ("EXACT.example.:1", Some("exact.example")),
        ("a.b.below.example:1", Some("*.below.example")),
        ("both.example:1", Some("suffix:both.example")),
        ("a.both.example:1", Some("suffix:both.example")),
        ("my-ads.example:1", Some("keyword:ads")),
        ("xyz.test:1", Some("glob:x*.test")),
        ("y7.test:1", Some(r"regex:^y\d\.")),
        ("10.200.0.1:1", Some("10.0.0.0/8")),
        ("[2001:db8::1]:1", Some("2001:db8::/32")),
        ("other.test:6001", Some(":6000-6063")),
        ("looked-up.test:1", Some("10.0.0.0/8")),
        ("[2001:db9::1]:1", None),
    ] {
        let to = target(to);
        let request = Request::new(&to);
        let found = all.find_entry(&request, Addresses::Known(&known));
        let found = found.map(|entry| entry.to_string());
        assert_eq!(found.as_deref(), entry, "{to}");
        let matches = all.evaluate(&request, Addresses::Known(&known)) == Outcome::Match;
        assert_eq!(matches, entry.is_some(), "{to}");
    }
    let to = target("other.test:1");
    let user = Request::new(&to).with_user("alice");
    let found = all.find_entry(&user, Addresses::Known(&[]));
    assert_eq!(found.unwrap().to_string(), "user:alice");
    let mut not = RuleSetBuilder::new();
    not.add_not(all).unwrap();
    let found = not
        .build()
        .find_entry(&Request::new(&to), Addresses::Known(&[]));
    assert_eq!(found, Some(Entry::Group));
}

#[test]
fn a_sniffed_name_is_for_conditions_on_names_alone() {
    let rule = |conditions: &[&str]| Rule {
        sets: vec![set(conditions).into()],
        and: vec![],
        resolve: true,
    };
    let not = {
        let mut builder = RuleSetBuilder::new();
        builder.add_not(set(&["*.good.example"])).unwrap();
        Rule {
            sets: vec![builder.build().into()],
            and: vec![set(&[":443"]).into()],
            resolve: false,
        }
    };
    let list = RuleList::new(vec![
        rule(&["192.0.2.0/24"]),
        rule(&[":25", "*.ads.example"]),
        rule(&["198.51.100.0/24"]),
        not,
    ]);
    let decide = |to: &str, name: &str| {
        let target = target(to);
        list.decide(&Request::new(&target).with_sniffed_name(name))
    };
    assert_eq!(
        decide("203.0.113.1:443", "a.ADS.example."),
        Decision::Rule(1)
    );
    assert_eq!(
        decide("203.0.113.1:443", "a.good.example"),
        Decision::NoRule
    );
    assert_eq!(
        decide("203.0.113.1:443", "other.example"),
        Decision::Rule(3)
    );
    // Networks see the address, without a lookup.
    assert_eq!(decide("192.0.2.1:443", "a.ads.example"), Decision::Rule(0));
    assert_eq!(
        decide("198.51.100.1:443", "good.example"),
        Decision::Rule(2)
    );
    // The name of a target is not replaced.
    let named = target("b.ads.example:1");
    let asked = Request::new(&named).with_sniffed_name("a.good.example");
    assert_eq!(
        list.decide_with_addresses(0, &asked, &[]),
        Decision::Rule(1)
    );

    // A name is of no use where an address or a port decides before all rules with names.
    let depends = |to: &str| {
        let target = target(to);
        list.depends_on_name(&Request::new(&target))
    };
    assert!(!depends("192.0.2.1:443"));
    assert!(depends("203.0.113.1:443"));
    assert!(depends("203.0.113.1:25"));
    assert!(depends("198.51.100.1:443"));
    assert!(!depends("other.example:443"));
    let networks = RuleList::new(vec![rule(&["192.0.2.0/24"]), rule(&[":25"])]);
    assert!(!networks.depends_on_name(&Request::new(&target("203.0.113.1:443"))));
    assert!(
        networks
            .rules()
            .iter()
            .all(|rule| !rule.sets[0].current().has_names())
    );
}
