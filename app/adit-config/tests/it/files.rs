//! Configuration files.

use adit_config::{Condition, Hop, Stage, WarningKind};

use crate::shortcuts::{shown, toml};

const HOME: &str = r#"
# The way home.
[route.home]
listen = ["mixed://127.0.0.1:1080", "http://127.0.0.1:8080"]
via    = [["ss://aes-128-gcm:a@a:8388", "ss://aes-128-gcm:b@b:8388"], "socks5://c:1080"]
rules  = [
  { match = ["*.lan", "10.0.0.0/8"], via = ["direct://"] },
  { match = ":25", via = "reject://" },
]

[route.dns]
listen = 'tcp+udp://127.0.0.1:53/9.9.9.9:53'
"#;

#[test]
fn a_file_is_read() {
    let plan = toml(HOME).unwrap();
    assert_eq!(plan.warnings, []);
    let names: Vec<_> = plan
        .routes
        .iter()
        .map(|route| route.name.as_str())
        .collect();
    assert_eq!(names, ["home", "dns"]);
    let home = &plan.routes[0];
    assert_eq!(home.listen.len(), 2);
    assert_eq!(home.via.stages.len(), 2);
    assert!(matches!(&home.via.stages[0], Stage::Group(hops) if hops.len() == 2));
    assert_eq!(home.via.stages[0].to_string(), "ss://a:8388 | ss://b:8388");
    assert_eq!(
        home.rules[0].matches,
        [
            Condition::NameSuffix("lan".into()).into(),
            Condition::Network("10.0.0.0/8".parse().unwrap()).into(),
        ]
    );
    assert!(home.rules[0].via.stages.is_empty());
    assert_eq!(home.rules[1].matches, [Condition::Ports(25..=25).into()]);
    assert_eq!(home.rules[1].via.stages, [Stage::Single(Hop::Reject)]);
    assert!(plan.routes[1].via.stages.is_empty() && plan.routes[1].rules.is_empty());
}

#[test]
fn groups_are_made_simple() {
    let via = |via: &str| {
        let text = format!("[route.a]\nlisten = \"http://127.0.0.1:1\"\nvia = {via}\n");
        toml(&text).map(|mut plan| plan.routes.remove(0).via.stages)
    };
    assert!(matches!(
        via("[['http://a:1']]").unwrap()[..],
        [Stage::Single(Hop::Server(_))]
    ));
    assert!(via("[['direct://']]").unwrap().is_empty());
    assert!(via("[]").unwrap().is_empty());
    let first = via("[['http://a:1', 'direct://'], 'http://b:1']").unwrap();
    assert!(matches!(&first[0], Stage::Group(hops) if hops[1] == Hop::Direct));
    for (text, title) in [
        ("[[]]", "a group without hops"),
        (
            "[['http://a:1', 'reject://']]",
            "`reject://` has no effect in a group",
        ),
        (
            "['http://b:1', ['http://a:1', 'direct://']]",
            "`direct://` in this group would bypass the hops before it",
        ),
        ("[[['http://a:1']]]", "a group must be a list of URLs"),
        (
            "{ a = 1 }",
            "a hop must be a URL, and a group a list of URLs",
        ),
    ] {
        assert_eq!(via(text).unwrap_err()[0].title, title, "{text}");
    }
}

#[test]
fn every_mistake_has_line_and_column() {
    let text = r#"
[route.home]
listen = ["mixed://127.0.0.1:1080?mod=fast", "http://127.0.0.1:1081"]
via    = ["ss://2022-blake3-aes-128-gcm:AAEC@a:8388"]
listenport = 8388
rules  = [{ match = "a b", via = [] }]

[rout.x]
"#;
    assert_eq!(
        shown(toml(text)),
        "\
error: unknown key `rout`
 --> adit.toml:8:2
8 | [rout.x]
  |  ^^^^ did you mean `route`?
  = help: keys of the file: version, include, log, admin, fleet, webhook, run, group, set, dns, route
error: unknown key `listenport`
 --> adit.toml:5:1
5 | listenport = ***
  | ^^^^^^^^^^ did you mean `listen`?
  = help: keys of a route: listen, via, rules, dns, users, relay
error: unknown key `mod`
 --> adit.toml:3:35
3 | listen = [\"mixed://127.0.0.1:1080?mod=***\", \"http://127.0.0.1:1081\"]
  |                                   ^^^
  = help: `adit help mixed` lists the keys
error: the key has the wrong length
 --> adit.toml:4:41
4 | via    = [\"ss://2022-blake3-aes-128-gcm:***@a:8388\"]
  |                                         ^^^ `2022-blake3-aes-128-gcm` needs 16 bytes, this is 3
  = help: `adit keygen 2022-blake3-aes-128-gcm` makes one
error: bad condition `a b`
 --> adit.toml:6:21
6 | rules  = [{ match = \"a b\", via = [] }]
  |                     ^^^^^ expected a network, a name, `*.suffix`, `suffix:…`, `keyword:…`, `glob:…`, `regex:…`, `:port`, `:from-to`, `network:tcp`, `network:udp`, `source:…`, `user:…`, `listener:…` or `*`"
    );
}

#[test]
fn broken_toml_is_shown_where_it_breaks() {
    assert_eq!(
        shown(toml(
            "[route.a]\nlisten = [\"http://127.0.0.1:1\"\nvia = []\n"
        )),
        "\
error: missing comma between array elements, expected `,`
 --> adit.toml:3:1
3 | via = []
  | ^
  = help: a list ends with `]`, and its items are separated by commas"
    );
    assert_eq!(
        shown(toml("[route.a]\nlisten = 1\nlisten = 2\n")),
        "\
error: duplicate key
 --> adit.toml:3:1
3 | listen = ***
  | ^^^^^^
  = help: a table or a key occurs once: rename one, or remove it"
    );
}

#[test]
fn a_url_with_escapes_is_shown_as_a_whole() {
    let text = "[route.a]\nlisten = \"http://127.0.0.1:\\u0031x\"\n";
    assert_eq!(
        shown(toml(text)),
        "\
error: the port is not a number from 0 to 65535
 --> adit.toml:2:10
2 | listen = \"http://127.0.0.1:***\"
  |          ^^^^^^^^^^^^^^^^^^^^^^
  = help: in a secret, write `@`, `?` and `#` as `%40`, `%3F` and `%23`"
    );
}

#[test]
fn wrong_shapes_are_named() {
    for (text, title) in [
        ("", "no route in `adit.toml`"),
        ("[route]\n", "no route in `adit.toml`"),
        ("route = 1\n", "`route` must be a table"),
        ("[route]\na = 1\n", "`a` must be a table"),
        ("[route.a]\n", "route `a` has no listener"),
        (
            "[route.\"a b\"]\nlisten = 'http://127.0.0.1:1'\n",
            "not a valid name for a route",
        ),
        (
            "[route.a]\nlisten = 1\n",
            "`listen` must be a URL or a list of URLs",
        ),
        (
            "[route.a]\nlisten = [1]\n",
            "`listen` must be a URL or a list of URLs",
        ),
        ("[route.a]\nlisten = []\n", "route `a` has no listener"),
        (
            "[route.a]\nlisten = 'http://127.0.0.1:1'\nrules = 1\n",
            "`rules` must be a list of `{ match, via }`",
        ),
        (
            "[route.a]\nlisten = 'http://127.0.0.1:1'\nrules = [1]\n",
            "a rule must be `{ match = [...], via = [...] }`",
        ),
        (
            "[route.a]\nlisten = 'http://127.0.0.1:1'\nrules = [{ via = [] }]\n",
            "a rule without `match`",
        ),
        (
            "[route.a]\nlisten = 'http://127.0.0.1:1'\nrules = [{ match = [], via = [] }]\n",
            "a rule that matches nothing",
        ),
        (
            "[route.a]\nlisten = 'http://127.0.0.1:1'\nrules = [{ match = 1, via = [] }]\n",
            "`match` must be a condition or a list of conditions",
        ),
    ] {
        assert_eq!(toml(text).unwrap_err()[0].title, title, "{text}");
    }
}

#[test]
fn two_listeners_cannot_share_a_port() {
    let text = "\
[route.a]
listen = \"mixed://127.0.0.1:1080\"
[route.b]
listen = \"http://127.0.0.1:1080\"
";
    assert_eq!(
        shown(toml(text)),
        "\
error: `mixed://127.0.0.1:1080` and `http://127.0.0.1:1080` use the same port
 --> adit.toml:4:18
4 | listen = \"http://127.0.0.1:1080\"
  |                  ^^^^^^^^^^^^^^
  = help: use another port for one of them"
    );
}

#[test]
fn rules_behind_a_catch_all_are_never_reached() {
    let text = "\
[route.a]
listen = \"mixed://127.0.0.1:1080\"
rules = [
  { match = \"*\", via = \"reject://\" },
  { match = \"a\", via = \"direct://\" },
]
";
    let plan = toml(text).unwrap();
    assert_eq!(plan.warnings[0].kind, WarningKind::NeverReached);
    assert_eq!(
        plan.warnings[0].to_string(),
        "\
warning: this rule is never reached
 --> adit.toml:5:3
5 |   { match = \"a\", via = \"direct://\" },
  |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  = help: a rule before it matches everything (`*`)"
    );
}

#[test]
fn rules_about_names_need_names() {
    let warnings = |listen: &str, condition: &str| -> Vec<String> {
        let text = format!(
            "[route.a]\nlisten = \"{listen}\"\nrules = [\n  {{ match = \"{condition}\", via = \"reject://\" }},\n]\n\
             [set.x]\nfile = \"x\"\n"
        );
        let plan = toml(&text).unwrap();
        let about = plan.warnings.iter();
        let about = about.filter(|about| about.kind == WarningKind::NamelessRules);
        about.map(ToString::to_string).collect()
    };
    for (listen, condition) in [
        ("redir://127.0.0.1:1080?sniff=true", "*.lan"),
        ("redir://127.0.0.1:1080?sniff=true", "set:x"),
        ("redir://127.0.0.1:1080", "10.0.0.0/8"),
        ("tproxy://127.0.0.1:1080?tcp=false", "*.lan"),
        ("mixed://127.0.0.1:1080", "*.lan"),
    ] {
        assert_eq!(warnings(listen, condition), [""; 0], "{listen} {condition}");
    }
    assert_eq!(
        warnings("redir://127.0.0.1:1080", "*.lan"),
        ["\
warning: `*.lan` does not match requests of `redir://127.0.0.1:1080`
 --> adit.toml:2:19
2 | listen = \"redir://127.0.0.1:1080\"
  |                   ^^^^^^^^^^^^^^ targets are addresses here
  = help: `?sniff=true` finds names in the first bytes of connections"]
    );
    let idle = warnings("mixed://127.0.0.1:1080?sniff=true", ":25");
    assert!(
        idle[0].contains("`sniff=true` has no effect at `mixed://127.0.0.1:1080`"),
        "{idle:?}"
    );
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "(\\[route\\.a\\]\n)?[ -~\n\"'=\\[\\]{}ä]{0,80}") {
        let _ = toml(&text);
    }
}
