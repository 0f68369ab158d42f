//! Rule sets that sing-box compiles, and its answers about them, compared with those of adit-rules.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use adit_interop::{TempFolder, external_tools};
use adit_rules::read::{Limits, Loaded, read_sing_box_json, read_srs};
use adit_rules::{Request, RuleSet};
use adit_wire::Target;

const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a command of `sing-box rule-set`, and returns its output.
fn rule_set(args: &[&str], path: &Path, more: &[&str]) -> String {
    let mut command = Command::new(external_tools::peer_path("sing-box"));
    command.arg("rule-set").args(args).arg(path).args(more);
    let ended = external_tools::run_to_end(command, PATIENCE).unwrap();
    assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.output);
    ended.output
}

/// Compiles a document, and reads both forms.
fn compile(folder: &TempFolder, source: &str) -> (Loaded, Loaded) {
    let path = folder.write_file("rules.json", source).unwrap();
    let compiled = path.with_extension("srs");
    let to = compiled.to_str().unwrap();
    rule_set(&["compile", "--output", to], &path, &[]);
    let binary = fs::read(&compiled).unwrap();
    let from_json = read_sing_box_json(source.as_bytes(), &Limits::default()).unwrap();
    let from_srs = read_srs(&binary, &Limits::default()).unwrap();
    (from_json, from_srs)
}

/// True if sing-box finds the name or address in a compiled set.
fn peer_matches(folder: &TempFolder, host: &str) -> bool {
    let path = folder.path().join("rules.srs");
    let output = rule_set(&["match", "--format", "binary"], &path, &[host]);
    output.contains("match rules")
}

fn matches(set: &RuleSet, target: &str) -> bool {
    let target: Target = target.parse().unwrap();
    set.matches(&Request::new(&target))
}

#[test]
fn both_forms_are_the_same_set_in_every_version() {
    for version in 1..=3 {
        let folder = TempFolder::new("rules").unwrap();
        let source = format!(
            r#"{{"version":{version},"rules":[
            {{"domain":["a.example","b.example"],"domain_suffix":["c.example",".d.example"],
              "domain_keyword":["ads"],"domain_regex":["^x[0-9]+\\.test$"],
              "ip_cidr":["10.0.0.0/8","192.0.2.7","2001:db8::/32"]}},
            {{"domain_suffix":"port.example","port":[80,443],"port_range":["1000:2000",":10","60000:"],
              "network":"tcp","source_ip_cidr":"10.0.0.0/8","source_port":5,"source_port_range":"7:9"}},
            {{"type":"logical","mode":"and","rules":[{{"domain_suffix":"q.example"}},{{"port":443,"invert":true}}]}},
            {{"type":"logical","mode":"or","rules":[{{"domain":"one.example"}},{{"domain":"two.example","port":1}}],
              "invert":true}}
            ]}}"#
        );
        let (from_json, from_srs) = compile(&folder, &source);
        assert_eq!(from_json.notes, []);
        assert_eq!(from_srs.notes, []);
        assert_eq!(from_srs.set, from_json.set, "version {version}");
    }
}

#[test]
fn conditions_on_the_device_are_noted() {
    let folder = TempFolder::new("rules").unwrap();
    let source = r#"{"version":3,"rules":[
        {"domain":"a.example","process_name":["curl"],"package_name":"x","wifi_ssid":"y"},
        {"domain":"b.example","network_type":["wifi"],"network_is_expensive":true},
        {"query_type":["A",28],"domain":"c.example"},
        {"domain":"d.example","process_path_regex":"^/usr"},
        {"domain":"e.example"}]}"#;
    let (from_json, from_srs) = compile(&folder, source);
    assert_eq!(from_json.notes.len(), 4);
    assert_eq!(from_srs.notes.len(), 4);
    assert_eq!(from_srs.set, from_json.set);
    for (name, inside) in [
        ("a", false),
        ("b", false),
        ("c", false),
        ("d", false),
        ("e", true),
    ] {
        assert_eq!(
            matches(&from_srs.set, &format!("{name}.example:1")),
            inside,
            "{name}"
        );
    }
}

/// Names that share prefixes, suffixes and labels, and many of them.
fn many_names() -> Vec<String> {
    let mut names: Vec<String> = (0..3000_u32)
        .map(|number| {
            format!(
                "n{:x}.{}",
                number.wrapping_mul(2_654_435_761) >> 12,
                number % 7
            )
        })
        .map(|name| format!("{name}.example"))
        .collect();
    names.push("例え.example".to_owned());
    names
}

#[test]
fn a_large_set_is_read_whole() {
    let folder = TempFolder::new("rules").unwrap();
    let names = many_names();
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    let (exact, suffix) = quoted.split_at(1500);
    let source = format!(
        r#"{{"version":2,"rules":[{{"domain":[{}],"domain_suffix":[{}]}}]}}"#,
        exact.join(","),
        suffix.join(",")
    );
    let (from_json, from_srs) = compile(&folder, &source);
    assert_eq!(from_srs.set, from_json.set);
    assert_eq!(from_srs.notes, []);
    for (at, name) in names.iter().enumerate() {
        assert!(matches(&from_srs.set, &format!("{name}:1")), "{name}");
        assert_eq!(
            matches(&from_srs.set, &format!("x.{name}:1")),
            at >= 1500,
            "{name}"
        );
    }
}

#[test]
fn sing_box_answers_the_same() {
    let folder = TempFolder::new("rules").unwrap();
    let source = r#"{"version":2,"rules":[{"domain":["a.example"],"domain_suffix":["c.example",".d.example"],
        "domain_keyword":["ads"],"domain_regex":["^x[0-9]+\\.test$"],"ip_cidr":["10.0.0.0/9","2001:db8::/32"]}]}"#;
    let (_, ours) = compile(&folder, source);
    for host in [
        "a.example",
        "x.a.example",
        "c.example",
        "x.c.example",
        "xc.example",
        "d.example",
        "x.d.example",
        "myads.test",
        "x7.test",
        "x.test",
        "10.127.255.255",
        "10.128.0.0",
        "2001:db8::7",
        "2001:db9::7",
    ] {
        let target = match host.contains(':') {
            true => format!("[{host}]:1"),
            false => format!("{host}:1"),
        };
        assert_eq!(
            matches(&ours.set, &target),
            peer_matches(&folder, host),
            "{host}"
        );
    }
}

#[test]
fn filters_of_adguard_are_read() {
    let folder = TempFolder::new("rules").unwrap();
    let list = "||ads.example^\n|exact.example^\n||track*.example^\n||open.example\nstart.test^\n@@||good.ads.example^\n";
    let path = folder.write_file("list.txt", list).unwrap();
    let compiled = folder.path().join("rules.srs");
    let to = compiled.to_str().unwrap();
    rule_set(
        &["convert", "--type", "adguard", "--output", to],
        &path,
        &[],
    );
    let ours = read_srs(&fs::read(&compiled).unwrap(), &Limits::default()).unwrap();
    assert_eq!(ours.notes, []);
    for host in [
        "ads.example",
        "x.ads.example",
        "good.ads.example",
        "exact.example",
        "x.exact.example",
        "tracker.example",
        "a.track.example",
        "open.example",
        "x.open.example.org",
        "mystart.test",
        "start.test",
        "other.example",
    ] {
        let own = matches(&ours.set, &format!("{host}:1"));
        assert_eq!(own, peer_matches(&folder, host), "{host}");
    }
}
