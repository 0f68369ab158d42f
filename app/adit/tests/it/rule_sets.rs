//! Rules of a file with lists of other programs: what they decide, what is said about them, and downloads.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use adit_interop::external_tools::{self, ToolOutput};
use adit_interop::http_server::HttpServer;
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder, free_port};
use rustix::process::Signal;

use crate::online::Provider;
use crate::setup::{bin, ended, says, start};

/// The exit code of curl for a proxy that refuses.
const PROXY_REFUSED: i32 = 97;

fn curl(proxy: SocketAddr, login: &str, url: &str) -> ToolOutput {
    let mut command = Command::new("curl");
    command.args(["-q", "-sS", "--max-time", "30", "--noproxy", ""]);
    command.args(["-x", &format!("socks5h://{login}{proxy}"), url]);
    external_tools::run_to_end(command, Duration::from_secs(40)).unwrap()
}

fn arrives(proxy: SocketAddr, url: &str) {
    let done = curl(proxy, "", url).expect_success().expect(url);
    assert_eq!(done, "a page", "{url}");
}

fn is_refused(proxy: SocketAddr, url: &str) {
    let done = curl(proxy, "", url);
    assert_eq!(done.code, Some(PROXY_REFUSED), "{url}: {}", done.output);
}

fn site() -> HttpServer {
    HttpServer::start(&[("/", "text/plain", b"a page")]).unwrap()
}

/// Starts a configuration file whose state is in the folder.
fn run_file(folder: &TempFolder, toml: &str, listeners: usize) -> AditProcess {
    let file = folder.write_file("adit.toml", toml).unwrap();
    let mut command = Command::new(bin());
    command.arg("run").arg("-c").arg(file);
    command
        .env("XDG_STATE_HOME", folder.path())
        .env_remove("STATE_DIRECTORY");
    AditProcess::start_command(command, listeners).unwrap()
}

/// Runs a command on the configuration file of the folder.
fn on_file(folder: &TempFolder, command: &str, more: &[&str]) -> ToolOutput {
    let mut typed = Command::new(bin());
    typed.arg(command).arg("-c").arg("adit.toml").args(more);
    typed.current_dir(folder.path());
    typed
        .env("XDG_STATE_HOME", folder.path())
        .env_remove("STATE_DIRECTORY");
    external_tools::run_to_end(typed, Duration::from_secs(20)).unwrap()
}

/// Compiles a list with sing-box.
fn write_srs(folder: &Path, name: &str, rules: &str) {
    let source = folder.join(name).with_extension("json");
    fs::write(&source, format!(r#"{{"version":2,"rules":[{rules}]}}"#)).unwrap();
    let mut command = Command::new(external_tools::peer_path("sing-box"));
    command.args(["rule-set", "compile", "--output"]);
    command.arg(folder.join(name)).arg(&source);
    let done = external_tools::run_to_end(command, Duration::from_secs(30)).unwrap();
    done.expect_success().unwrap();
    fs::remove_file(source).unwrap();
}

#[test]
fn lists_of_other_programs_decide() {
    let web = site();
    let folder = TempFolder::new("rule-sets").unwrap();
    write_srs(
        folder.path(),
        "blocked.srs",
        r#"{"domain_suffix":["blocked.test","localhost"]}"#,
    );
    folder
        .write_file(
            "ads.hosts",
            "# ads\n127.0.0.1 localhost\n0.0.0.0 ads.test www.ads.test\n",
        )
        .unwrap();
    folder
        .write_file(
            "chained.yaml",
            "payload:\n  - '+.localhost'\n  - 'other.test'\n",
        )
        .unwrap();
    // A long list is stored when it is compiled.
    let long = "# a comment\n".repeat(8000);
    folder
        .write_file("nets.txt", format!("127.0.0.1/32\n10.0.0.0/8\n{long}"))
        .unwrap();
    let next = start(&["run", "mixed://127.0.0.1:0", "-v"]);
    let toml = format!(
        r#"
[route.lists]
listen = "mixed://127.0.0.1:0"
via = "reject://"
rules = [
  {{ match = "set:ads", via = "reject://" }},
  {{ match = ["set:chained", "db.test"], via = "socks5://{}" }},
  {{ match = "set:nets", and = ":{}", via = "direct://" }},
]

[route.blocked]
listen = "mixed://127.0.0.1:0"
rules = [{{ match = "set:blocked", via = "reject://" }}]

[set]
ads.file = "ads.hosts"
blocked.file = "blocked.srs"
chained = {{ file = "chained.yaml", format = "clash-domain" }}
nets.file = "nets.txt"
"#,
        next.addr(),
        web.port()
    );
    let adit = run_file(&folder, &toml, 2);
    let (lists, blocked) = (adit.addrs()[0], adit.addrs()[1]);
    let by_name = format!("http://localhost:{}/", web.port());
    let by_address = format!("http://127.0.0.1:{}/", web.port());

    // The chain: the next proxy sees the name.
    arrives(lists, &by_name);
    // Direct, and not on another port.
    arrives(lists, &by_address);
    is_refused(lists, "http://127.0.0.1:9/");
    is_refused(lists, "http://www.ads.test/");
    // The rest is refused by the route.
    is_refused(lists, &format!("http://[::1]:{}/", web.port()));
    // A list of sing-box rejects what would work otherwise.
    is_refused(blocked, &by_name);
    arrives(blocked, &by_address);
    adit.stop().unwrap();
    next.stop().unwrap();

    // The second start loads the compiled list.
    let stored = fs::read_dir(folder.path().join("adit/rule-sets")).unwrap();
    assert_eq!(stored.count(), 1);
    let adit = run_file(&folder, &toml, 2);
    is_refused(adit.addrs()[1], &by_name);
    arrives(adit.addrs()[0], &by_address);
    adit.stop().unwrap();

    let checked = on_file(&folder, "check", &[]).expect_success().unwrap();
    says(
        &checked,
        &[
            "ok: 2 routes, 2 listeners",
            "rule set ads: 2 entries in ads.hosts",
            "rule set blocked: 2 entries in blocked.srs",
            "rule set chained: 2 entries in chained.yaml",
        ],
    );
    let explained = |target: &str| {
        let done = on_file(&folder, "explain", &["--target", target]);
        done.expect_success().unwrap()
    };
    says(
        &explained("www.Blocked.test"),
        &[
            "route lists\n  target  www.Blocked.test:443\n  rule    none matches\n  chain   nothing\n",
            "route blocked\n",
            "  rule    1 of the route, adit.toml:13:10\n",
            "  match   set:blocked, entry suffix:blocked.test\n",
        ],
    );
    says(
        &explained(&format!("10.1.2.3:{}", web.port())),
        &[
            "  rule    3 of the route, adit.toml:8:3\n",
            "  match   set:nets, entry 10.0.0.0/8\n",
            &format!("  match   :{}\n", web.port()),
            "  chain   target\n",
        ],
    );
}

#[test]
fn users_and_transports_are_conditions() {
    let web = site();
    let folder = TempFolder::new("rule-users").unwrap();
    folder.write_file("users", "alice:pw\nbob:pw\n").unwrap();
    let adit = run_file(
        &folder,
        r#"
[route.a]
listen = ["mixed://127.0.0.1:0?users=@users", "mixed://127.0.0.1:0"]
rules = [
  { match = "user:bob", via = "reject://" },
  { match = "network:udp", and = "listener:users", via = "reject://" },
  { match = "suffix:localhost", and = "source:192.0.2.0/24", via = "reject://" },
]
"#,
        2,
    );
    let url = format!("http://127.0.0.1:{}/", web.port());
    let login = |user: &str| curl(adit.addrs()[0], &format!("{user}:pw@"), &url);
    assert_eq!(login("alice").expect_success().unwrap(), "a page");
    assert_eq!(login("bob").code, Some(PROXY_REFUSED));
    adit.stop().unwrap();

    let explained = |more: &[&str]| {
        let args = [&["--target", "localhost:80"], more].concat();
        on_file(&folder, "explain", &args).expect_success().unwrap()
    };
    says(
        &explained(&["--user", "bob"]),
        &["rule    1 of", "match   user:bob"],
    );
    says(
        &explained(&["--source", "192.0.2.9"]),
        &["rule    3 of", "match   source:192.0.2.0/24"],
    );
    says(&explained(&[]), &["none matches"]);
}

#[test]
fn a_list_that_cannot_be_read_prevents_the_start() {
    let folder = TempFolder::new("rule-errors").unwrap();
    folder
        .write_file(
            "broken.json",
            "{\"version\": 1,\n \"rules\": [\n {\"domain\": ]}\n",
        )
        .unwrap();
    folder
        .write_file("page.html", "<!DOCTYPE html>\n<p>Sign in</p>\n")
        .unwrap();
    let fails = |set: &str, words: &[&str]| {
        let toml = format!(
            "[route.a]\nlisten = \"mixed://127.0.0.1:0\"\nrules = [{{ match = \"set:x\", via = [] }}]\n[set.x]\n{set}\n"
        );
        folder.write_file("adit.toml", toml).unwrap();
        for command in ["run", "check"] {
            let done = on_file(&folder, command, &[]);
            assert_eq!(done.code, Some(3), "{set}\n{}", done.output);
            says(&done.output, words);
            assert_eq!(done.output.matches("error:").count(), 1, "{}", done.output);
        }
    };
    fails(
        "file = \"missing.txt\"",
        &["rule set `x`", "missing.txt", "--> adit.toml:5:8"],
    );
    fails(
        "file = \"broken.json\"",
        &["broken.json", "line 3", "--> adit.toml:5:8"],
    );
    fails(
        "file = \"page.html\"",
        &["it has no entry", "line 1", "`format` names the format"],
    );
    fails(
        "file = \"page.html\"\nsha256 = \"00ffabcdef0123456789000000000000000000000000000000000000000000ff\"",
        &["SHA-256 digest is"],
    );
}

#[test]
fn lists_are_downloaded_and_refreshed() {
    let web = site();
    let provider = Provider::start("localhost\n");
    let folder = TempFolder::new("rule-download").unwrap();
    let toml = format!(
        r#"
[route.a]
listen = "mixed://127.0.0.1:0"
rules = [{{ match = "set:list", via = "reject://" }}]

[set.list]
url = "{}"
refresh = "1s"
"#,
        provider.url()
    );
    let url = format!("http://localhost:{}/", web.port());
    let mut adit = run_file(&folder, &toml, 1);
    is_refused(adit.addr(), &url);

    provider.says("other.test\nthird.test\n");
    let changed = "the list has changed, there are now 2 entries";
    adit.process().wait_lines(changed, 1, TEST_TIMEOUT).unwrap();
    arrives(adit.addr(), &url);

    // Neither an error nor another page replaces a list.
    provider.answers("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
    let kept = "the current list stays in use";
    adit.process().wait_lines(kept, 1, TEST_TIMEOUT).unwrap();
    provider.says("<!DOCTYPE html>\n<p>Sign in</p>\n");
    adit.process().wait_lines(kept, 2, TEST_TIMEOUT).unwrap();
    arrives(adit.addr(), &url);
    let log = adit.process().output();
    assert!(!log.contains("secret-path"), "{log}");
    adit.stop().unwrap();

    // The next start has the stored list.
    let adit = run_file(&folder, &toml, 1);
    arrives(adit.addr(), &url);
    adit.stop().unwrap();
    let checked = on_file(&folder, "check", &[]).expect_success().unwrap();
    says(&checked, &["rule set list: 2 entries in http://127.0.0.1:"]);

    // Without it the list is required.
    fs::remove_dir_all(folder.path().join("adit")).unwrap();
    let checked = on_file(&folder, "check", &[]).expect_success().unwrap();
    says(&checked, &["rule set list: not downloaded yet"]);
    let done = on_file(&folder, "run", &[]);
    assert_eq!(done.code, Some(3), "{}", done.output);
    says(&done.output, &["rule set `list`", "--> adit.toml:7:7"]);
}

/// A reload downloads new lists before anything changes, and refreshes those of the new file alone.
#[test]
fn a_reload_follows_the_lists_of_the_new_file() {
    let web = site();
    let provider = Provider::start("other.test\n");
    let folder = TempFolder::new("rule-reload").unwrap();
    let port = free_port();
    let toml = |rule: &str, set: &str| {
        format!(
            "[route.a]\nlisten = \"mixed://127.0.0.1:{port}\"\n\
             rules = [{{ match = \"{rule}\", via = \"reject://\" }}]\n{set}"
        )
    };
    let url = format!("http://localhost:{}/", web.port());
    let mut adit = run_file(&folder, &toml("db.test", ""), 1);
    let proxy = adit.addr();
    arrives(proxy, &url);
    let list = |refresh: &str| {
        let set = format!(
            "[set.x]\nurl = \"{}\"\nrefresh = \"{refresh}\"\n",
            provider.url()
        );
        toml("set:x", &set)
    };

    // It cannot be downloaded.
    provider.answers("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
    folder.write_file("adit.toml", list("1d")).unwrap();
    adit.process().send_signal(Signal::HUP).unwrap();
    let failed = "was not reloaded, the running configuration is unchanged";
    let lines = adit.process().wait_lines(failed, 1, TEST_TIMEOUT).unwrap();
    assert!(
        lines[0].contains("adit.toml:5:7: rule set `x`"),
        "{lines:?}"
    );
    arrives(proxy, &url);

    provider.says("localhost\n");
    let mut reload = |text: String, count: usize| {
        folder.write_file("adit.toml", text).unwrap();
        adit.process().send_signal(Signal::HUP).unwrap();
        let done = adit.process().wait_lines("reloaded /", count, TEST_TIMEOUT);
        done.unwrap().pop().unwrap()
    };
    let line = reload(list("1d"), 1);
    assert!(line.contains("1 changed"), "{line}");
    is_refused(proxy, &url);

    // The same list with another interval: the rules stay, and it is refreshed.
    let line = reload(list("1s"), 2);
    assert!(line.contains("0 changed"), "{line}");
    provider.says("other.test\nthird.test\n");
    let changed = "the list has changed, there are now 2 entries";
    adit.process().wait_lines(changed, 1, TEST_TIMEOUT).unwrap();
    arrives(proxy, &url);
    adit.stop().unwrap();
}

#[test]
fn rules_of_urls_have_no_sets() {
    let done = ended(&["explain", "mixed://127.0.0.1:1080", "--target", "a.example"]);
    says(
        &done.expect_success().unwrap(),
        &[
            "target  a.example:443",
            "rule    none matches",
            "chain   target",
        ],
    );
}

#[test]
fn networks_are_rejected_by_name_behind_a_direct_rule() {
    let web = site();
    let folder = TempFolder::new("rule-order").unwrap();
    folder.write_file("nets.txt", "127.0.0.0/8\n::1\n").unwrap();
    let toml = |networks: &str| {
        format!(
            r#"
[route.a]
listen = "mixed://127.0.0.1:0"
rules = [
  {{ match = "db.test", via = "direct://" }},
  {{ match = {networks}, resolve = true, via = "reject://" }},
]
[set.nets]
file = "nets.txt"
"#
        )
    };
    let url = format!("http://localhost:{}/", web.port());
    for networks in ["[\"127.0.0.0/8\", \"::1\"]", "\"set:nets\""] {
        let adit = run_file(&folder, &toml(networks), 1);
        is_refused(adit.addr(), &url);
        adit.stop().unwrap();
    }
    let explained = on_file(&folder, "explain", &["--target", "localhost"]);
    says(
        &explained.expect_success().unwrap(),
        &[
            "  is      ",
            "127.0.0.1",
            "rule    2 of the route",
            "match   set:nets, entry ",
        ],
    );
}
