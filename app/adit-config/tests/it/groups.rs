//! Groups with a name.

use adit_config::{GroupKind, Hop, NamedGroup, Plan, Stage, explain_plan};

use crate::shortcuts::{shown, toml};

const FILE: &str = r#"
[route.a]
listen = "mixed://127.0.0.1:1080"
via = ["abroad", "http://last:1"]
rules = [{ match = "*.lan", via = "manual.1" }]

[group.abroad]
kind = "fastest"
check = "example.com:443"
members = [
  "ss://aes-128-gcm:x@one:8388#one",
  ["socks5://near:1080", "ss://aes-128-gcm:x@two:8388"],
]

[group."manual.1"]
kind = "manual"
selected = 2
members = ["http://one:1#a", "http://two:1#b", "http://two:1#b"]
"#;

fn group(stage: &Stage) -> &NamedGroup {
    match stage {
        Stage::Named(group) => group,
        other => panic!("{other:?}"),
    }
}

fn named(plan: &Plan) -> (&NamedGroup, &NamedGroup) {
    let route = &plan.routes[0];
    (
        group(&route.via.stages[0]),
        group(&route.rules[0].via.stages[0]),
    )
}

#[test]
fn chains_refer_to_groups() {
    let plan = toml(FILE).unwrap();
    assert_eq!(plan.warnings, []);
    let (abroad, manual) = named(&plan);
    assert_eq!(abroad.name, "abroad");
    assert_eq!(abroad.kind, GroupKind::Fastest);
    assert_eq!(
        abroad.check.as_ref().unwrap().to_string(),
        "example.com:443"
    );
    assert_eq!(abroad.member_names, ["one", "ss://two:8388"]);
    let hops: Vec<String> = abroad.member_hops(1).map(Hop::to_string).collect();
    assert_eq!(hops, ["socks5://near:1080", "ss://two:8388"]);
    assert_eq!(manual.kind, GroupKind::Manual);
    assert_eq!(manual.selected, 1);
    assert_eq!(manual.member_names, ["a", "b", "b (2)"]);
    assert_eq!(plan.routes[0].via.stages[0].to_string(), "group abroad");
}

#[test]
fn a_group_can_be_used_several_times_and_not_at_all() {
    let text = r#"
[group.g]
members = ["http://a:1"]
[group.unused]
members = ["http://b:1"]
[route.a]
listen = "mixed://127.0.0.1:1"
via = "g"
[route.b]
listen = "mixed://127.0.0.1:2"
via = "g"
"#;
    let plan = toml(text).unwrap();
    assert_eq!(plan.routes[0].via, plan.routes[1].via);
    assert_eq!(
        group(&plan.routes[0].via.stages[0]).kind,
        GroupKind::Failover
    );
}

#[test]
fn a_group_is_drawn() {
    let drawn = explain_plan(&toml(FILE).unwrap());
    for line in [
        "  ├─ *.lan ─▶ group manual.1 ─▶ target",
        "  ○ hop 1: group abroad, 2 members: the one that answers fastest",
        "  │   1. one",
        "  │   2. ss://two:8388",
        "  │   probes request example.com:443",
    ] {
        assert!(drawn.lines().any(|drawn| drawn == line), "{line}\n{drawn}");
    }
    assert!(
        drawn.contains("\n  │        socks5://near:1080  ("),
        "{drawn}"
    );
}

/// Returns the problems of a file with this group and a route that uses it.
fn problems(group: &str, via: &str) -> String {
    shown(toml(&format!(
        "[group.g]\n{group}\n[route.a]\nlisten = \"mixed://127.0.0.1:1\"\nvia = {via}\n"
    )))
}

#[test]
fn errors_name_the_line() {
    let good = "members = [\"http://a:1\"]";
    for (group, via, expected) in [
        (
            good,
            "\"h\"",
            "\
error: no group is called `h`
 --> adit.toml:5:7
5 | via = \"h\"
  |       ^^^ did you mean `g`?",
        ),
        (
            "kind = \"fallback\"\nmembers = [\"http://a:1\"]",
            "\"g\"",
            "error: unknown kind of group `fallback`\n --> adit.toml:2:8\n",
        ),
        (
            "kind = \"manual\"\nselected = \"b\"\nmembers = [\"http://a:1#a\"]",
            "\"g\"",
            "error: no member of the group has this name or number\n --> adit.toml:3:12\n",
        ),
        (
            "selected = 1\nmembers = [\"http://a:1\"]",
            "\"g\"",
            "error: `selected` needs a group that you select by hand\n --> adit.toml:2:12\n",
        ),
        (
            "members = [[\"http://b:1\", \"direct://\"]]",
            "\"g\"",
            "error: `direct://` has no effect with other hops\n --> adit.toml:2:27\n",
        ),
        (
            "members = [\"reject://\"]",
            "\"g\"",
            "error: `reject://` has no effect in a group\n",
        ),
        (
            "members = [\"g\"]",
            "\"g\"",
            "error: a group cannot be a member of a group\n --> adit.toml:2:12\n",
        ),
        (
            "check = \"x\"\nmembers = [\"http://a:1\"]",
            "\"g\"",
            "error: `check` must be `HOST:PORT`\n --> adit.toml:2:9\n",
        ),
        (
            "members = []",
            "\"g\"",
            "error: group `g` has no members\n --> adit.toml:1:8\n",
        ),
        (
            "member = []",
            "\"direct://\"",
            "error: unknown key `member`\n --> adit.toml:2:1\n",
        ),
        (
            good,
            "[\"http://b:1\", \"g\", \"h\"]",
            "error: no group is called `h`\n --> adit.toml:5:27\n",
        ),
    ] {
        let shown = problems(group, via);
        assert!(shown.starts_with(expected), "{group}\n{shown}");
    }
}

/// An error in a group is reported once, and hides no other.
#[test]
fn an_error_in_a_group_is_reported_once() {
    let shown = problems("members = [\"htpp://a:1\"]", "[\"g\", \"g\"]");
    assert_eq!(shown.matches("error: ").count(), 1, "{shown}");
    assert!(shown.contains("adit.toml:2:"), "{shown}");
}

#[test]
fn a_loop_through_a_group_is_found() {
    let text = "\
[group.g]
members = [\"http://a:1\", [\"http://127.0.0.1:1080\", \"http://b:1\"]]
[route.a]
listen = \"mixed://127.0.0.1:1080\"
via = \"g\"
";
    let shown = shown(toml(text));
    assert!(shown.contains("leads back to its own listener"), "{shown}");
}
