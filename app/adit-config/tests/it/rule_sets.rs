//! Rule sets, and the conditions that refer to them.

use std::path::PathBuf;
use std::time::Duration;

use adit_config::text::MemorySources;
use adit_config::{Condition, Plan, RuleCondition, RuleSetSource, explain_plan};

use crate::shortcuts::{shown, toml};

const FILE: &str = r#"
[route.home]
listen = "mixed://127.0.0.1:1080"
rules = [
  { match = ["set:ads", "suffix:ads.example"], via = "reject://" },
  { match = "network:udp", and = [":443", "set:cn"], via = "reject://" },
  { match = ["user:alice", "keyword:x", "listener:mixed"], via = "direct://" },
]

[set.ads]
file = "lists/ads.srs"

[set.cn]
url = "https://lists.example/token/geoip.dat"
format = "geoip"
category = "cn"
refresh = "12h"
sha256 = "00ffabcdef0123456789000000000000000000000000000000000000000000FF"
"#;

#[test]
fn rule_sets_are_read() {
    let plan = Plan::from_toml_with(FILE, "/etc/adit.toml", &MemorySources::default()).unwrap();
    let [ads, cn] = &plan.sets[..] else {
        panic!("{:?}", plan.sets)
    };
    assert_eq!(ads.name, "ads");
    assert_eq!(
        ads.source,
        RuleSetSource::File(PathBuf::from("/etc/lists/ads.srs"))
    );
    assert_eq!((ads.format, &ads.category, ads.sha256), (None, &None, None));
    assert_eq!(ads.place.line, 11);
    assert_eq!(cn.format.unwrap().name(), "geoip");
    assert_eq!(cn.category.as_deref(), Some("cn"));
    assert_eq!(cn.refresh, Duration::from_secs(12 * 3600));
    assert_eq!(cn.sha256.unwrap()[..4], [0, 0xff, 0xab, 0xcd]);
    assert_eq!(cn.source.to_string(), "https://lists.example/…");
    let rules = &plan.routes[0].rules;
    assert_eq!(
        rules[0].matches,
        [
            RuleCondition::Set("ads".into()),
            Condition::Domain("ads.example".into()).into(),
        ]
    );
    assert_eq!(rules[1].and[1], RuleCondition::Set("cn".into()));
    assert_eq!(rules[2].matches[0], Condition::User("alice".into()).into());
    assert_eq!(rules[1].place.line, 6);
    let drawing = explain_plan(&plan);
    for line in [
        "├─ set:ads, suffix:ads.example ─▶ nothing",
        "├─ (network:udp) and (:443, set:cn) ─▶ nothing",
        "set ads  /etc/lists/ads.srs",
        "set cn  https://lists.example/…",
    ] {
        assert!(drawing.contains(line), "{line}\n{drawing}");
    }
    assert!(!drawing.contains("token"));
}

#[test]
fn wrong_rule_sets_have_a_place() {
    let set = |keys: &str| {
        let text = format!(
            "[route.a]\nlisten = \"http://127.0.0.1:1\"\nrules = [{{ match = \"set:x\", via = [] }}]\n[set.x]\n{keys}\n"
        );
        shown(toml(&text))
    };
    for (keys, line, title) in [
        ("", 4, "rule set `x` has no list"),
        (
            "file = 'a'\nurl = 'https://a'",
            4,
            "rule set `x` has both `file` and `url`",
        ),
        ("file = ''", 5, "`file` is empty"),
        ("file = 1", 5, "`file` must be a string"),
        ("url = 'ftp://a/b'", 5, "not the URL of a list"),
        ("url = 'http://a.example/b'", 5, "not the URL of a list"),
        (
            "url = 'http://localhost.example/b'",
            5,
            "not the URL of a list",
        ),
        ("url = 'https://a/b c'", 5, "not the URL of a list"),
        ("file = 'a'\nformat = 'hsts'", 6, "unknown format `hsts`"),
        (
            "file = 'a'\nformat = 'geosite'",
            6,
            "a list of the format `geosite` needs a `category`",
        ),
        (
            "file = 'a'\nformat = 'srs'\ncategory = 'cn'",
            7,
            "lists of the format `srs` have no categories",
        ),
        (
            "file = 'a'\nrefresh = '1d'",
            6,
            "`refresh` applies to lists with a `url`",
        ),
        (
            "url = 'https://a/b'\nrefresh = '1'",
            6,
            "`refresh` must be a duration",
        ),
        (
            "url = 'https://a/b'\nrefresh = '10ms'",
            6,
            "`refresh` must be a duration",
        ),
        (
            "file = 'a'\nsha256 = 'abc'",
            6,
            "`sha256` must have 64 hexadecimal digits",
        ),
        ("file = 'a'\nfiles = 'b'", 6, "unknown key `files`"),
    ] {
        let text = set(keys);
        assert!(
            text.starts_with(&format!("error: {title}")),
            "{keys}\n{text}"
        );
        assert!(
            text.contains(&format!("adit.toml:{line}:")),
            "{keys}\n{text}"
        );
        assert_eq!(text.matches("error:").count(), 1, "{text}");
    }
    for url in [
        "https://a",
        "http://127.0.0.1:80/b",
        "http://[::1]:80/b",
        "http://localhost/b",
    ] {
        let text = format!("[route.a]\nlisten = \"http://127.0.0.1:1\"\n[set.x]\nurl = '{url}'\n");
        assert!(toml(&text).is_ok(), "{url}");
    }
}

#[test]
fn a_rule_names_a_set_that_exists() {
    let text = "[route.a]\nlisten = \"http://127.0.0.1:1\"\nrules = [{ match = \"set:adds\", via = [] }]\n[set.ads]\nfile = 'a'\n";
    assert_eq!(
        shown(toml(text)),
        "\
error: no rule set `adds`
 --> adit.toml:3:20
3 | rules = [{ match = \"set:adds\", via = [] }]
  |                    ^^^^^^^^^^ did you mean `ads`?
  = help: define it: `[set.adds]` with `file = \"…\"` or `url = \"https://…\"`"
    );
}

#[test]
fn a_rule_with_and_does_not_catch_all() {
    let text = |and: &str| {
        format!(
            "[route.a]\nlisten = \"http://127.0.0.1:1\"\nrules = [{{ match = \"*\", {and} via = [] }}, {{ match = \"a\", via = [] }}]\n"
        )
    };
    assert_eq!(toml(&text("and = \":443\",")).unwrap().warnings, []);
    assert_eq!(toml(&text("")).unwrap().warnings.len(), 1);
}
