//! Rule providers of mihomo and Clash.

use adit_wire::Target;

use super::{assert_matches, noted};
use crate::read::{ClashBehavior, Limits, Loaded, read_clash};
use crate::{Request, Transport};

fn read(text: &str, behavior: ClashBehavior) -> Loaded {
    read_clash(text.as_bytes(), behavior, &Limits::default()).unwrap()
}

#[test]
fn names_are_read_from_text_and_yaml() {
    let text = "# names\n+.example.com\n.below.example\nexact.example\n*.one.example\na.*.b\n+.w.*.c\nbad*label.example\n";
    let yaml = "# names\npayload:\n  # in the list\n  - '+.example.com'\n  - \".below.example\"\n  - exact.example # exact\n\
        - '*.one.example'\n  - 'a.*.b'\n  - '+.w.*.c'\n  - bad*label.example\n  - 'open\n  no item\nother:\n  - not.read\n";
    let from_text = read(text, ClashBehavior::Domain);
    let from_yaml = read(yaml, ClashBehavior::Domain);
    assert_eq!(from_text.set, from_yaml.set);
    assert_eq!((from_text.accepted, from_yaml.accepted), (6, 6));
    assert_eq!(
        (noted(&from_text), noted(&from_yaml)),
        (vec![8], vec![10, 11, 12])
    );
    assert_matches(
        &from_text.set,
        &[
            "example.com",
            "a.b.example.com",
            "x.below.example",
            "exact.example",
            "x.one.example",
            "a.x.b",
            "w.x.c",
            "y.w.x.c",
        ],
        &[
            "below.example",
            "x.exact.example",
            "one.example",
            "x.y.one.example",
            "a.x.y.b",
            "w.c",
            "not.read",
        ],
    );
    let flow = read(
        "payload: ['a.example', \"+.b.example\"]\n",
        ClashBehavior::Domain,
    );
    assert_matches(&flow.set, &["a.example", "x.b.example"], &["x.a.example"]);
    assert!(read("payload: []\n", ClashBehavior::Domain).set.is_empty());
}

#[test]
fn networks_are_read() {
    let loaded = read(
        "10.0.0.0/8\n2001:db8::/32\n192.0.2.1,no-resolve\n10.0.0.0.1/32\n",
        ClashBehavior::IpCidr,
    );
    assert_eq!((loaded.accepted, noted(&loaded)), (3, vec![4]));
    assert_matches(
        &loaded.set,
        &["10.9.9.9", "[2001:db8::1]", "192.0.2.1"],
        &["11.0.0.1", "192.0.2.2"],
    );
}

#[test]
fn rules_are_read() {
    let text = "payload:\n- DOMAIN-SUFFIX,google.example\n- DOMAIN-KEYWORD,tube\n- DOMAIN,ad.example\n\
        - 'DOMAIN-REGEX,^x{1,2}\\.example$'\n- DOMAIN-WILDCARD,*cdn?.example\n- SRC-IP-CIDR,192.168.1.201/32\n\
        - IP-CIDR,127.0.0.0/8,no-resolve\n- IP-CIDR6,2001:db8::/32\n- GEOIP,CN\n- DST-PORT,80/8000-9000\n- SRC-PORT,7777\n\
        - IN-USER,alice/bob\n- IN-NAME,ss\n- NETWORK,UDP\n- PROCESS-NAME,curl\n- DST-PORT,x\n- nonsense\n";
    let loaded = read(text, ClashBehavior::Classical);
    assert_eq!(loaded.accepted, 13);
    assert_eq!(noted(&loaded), [10, 16, 17, 18]);
    assert_matches(
        &loaded.set,
        &[
            "www.google.example",
            "youtube.test",
            "ad.example",
            "xx.example",
            "a.cdn7.example",
            "127.0.0.1",
            "[2001:db8::1]",
        ],
        &["xgoogle.example", "xxx.example", "cdn.example", "8.8.8.8"],
    );
    let other: Target = "other.example:443".parse().unwrap();
    let request = Request::new(&other);
    assert!(!loaded.set.matches(&request));
    assert!(loaded.set.matches(&request.clone().with_user("bob")));
    assert!(loaded.set.matches(&request.clone().with_listener("ss")));
    assert!(
        loaded
            .set
            .matches(&request.clone().with_transport(Transport::Udp))
    );
    assert!(
        loaded.set.matches(
            &request
                .clone()
                .with_source("192.168.1.201:1".parse().unwrap())
        )
    );
    assert!(
        loaded
            .set
            .matches(&request.with_source("1.1.1.1:7777".parse().unwrap()))
    );
    assert!(
        loaded
            .set
            .matches(&Request::new(&"other.example:8443".parse().unwrap()))
    );
}

#[test]
fn rules_of_rules_are_read() {
    let text = "AND,((DOMAIN-SUFFIX,example),(DST-PORT,443))\nOR,((DOMAIN,a.test),(DOMAIN,b.test))\n\
        AND,((NOT,((DOMAIN-SUFFIX,internal))),(DOMAIN-SUFFIX,net))\nAND,((DOMAIN,x)\nNOT,((DOMAIN,a),(DOMAIN,b))\n\
        AND,((DOMAIN,a),(PROCESS-NAME,b))\n";
    let loaded = read(text, ClashBehavior::Classical);
    assert_eq!(loaded.accepted, 3);
    assert_eq!(noted(&loaded), [4, 5, 6]);
    assert_matches(
        &loaded.set,
        &["www.example", "a.test", "b.test", "www.net"],
        &["c.test", "x", "internal"],
    );
    assert!(!super::matches(&loaded.set, "www.example:80"));
    let deep = format!("{}DOMAIN,a{}\n", "NOT,((".repeat(1000), "))".repeat(1000));
    assert_eq!(noted(&read(&deep, ClashBehavior::Classical)), [1]);
}
