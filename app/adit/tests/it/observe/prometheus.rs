//! The board, the rules and the example configuration, with a real Prometheus that scrapes adit.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{fs, thread};

use adit_interop::external_tools;
use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::percent_encode;
use adit_interop::socks_client::{self, Destination};
use adit_interop::{AditProcess, ChildProcess, TempFolder, free_port, loopback_addr};
use serde_json::Value;

use crate::admin::world::{ask, session};
use crate::setup::{ALLOW, bin};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
/// Time for a scrape, and for the rates of two scrapes.
const PATIENCE: Duration = Duration::from_secs(90);

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

fn read(path: &str) -> String {
    fs::read_to_string(packaging().join(path)).unwrap()
}

/// Runs `promtool check` on a file, or on text at its standard input.
fn check(args: &[&str], input: &str) {
    let mut command = Command::new("promtool");
    command.arg("check").args(args);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(
        output.status.success(),
        "promtool check {args:?}: {text}\n{input}"
    );
}

/// Returns the expressions of all panels, with the values that Grafana would use for its variables.
fn board_queries(board: &Value) -> Vec<(String, String)> {
    let mut queries = Vec::new();
    for panel in board["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expr = target["expr"].as_str().unwrap();
            let expr = expr
                .replace("$__rate_interval", "10s")
                .replace("$job", ".*");
            let title = panel["title"].as_str().unwrap().to_owned();
            queries.push((title, expr.replace("$instance", ".*")));
        }
    }
    queries
}

/// Returns the names of adit's metrics in an expression or a line.
fn metric_names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':');
    let named = words.filter(|word| word.starts_with("adit_"));
    named.map(str::to_owned).collect()
}

/// An adit with everything that has metrics, and its clients.
struct Observed {
    adit: AditProcess,
    api: SocketAddr,
    origin: OriginServer,
}

impl Observed {
    fn start(folder: &TempFolder) -> Self {
        let (dead, dns) = (free_port(), free_port());
        let proxy = free_port();
        let key = percent_encode("AAECAwQFBgcICQoLDA0ODw==");
        let text = format!(
            "[admin]\nlisten = \"127.0.0.1:0\"\ntokens = \"@token\"\nmetrics_users = true\n\n\
             [group.some]\nmembers = [\"socks5://ann:one@127.0.0.1:{proxy}\", \"socks5://127.0.0.1:{dead}\"]\n\n\
             [dns.far]\nserver = \"udp://127.0.0.1:{dns}\"\n\n\
             [route.far]\nlisten = \"mixed://ann:one@127.0.0.1:{proxy}?{ALLOW}\"\ndns = \"far\"\n\n\
             [route.near]\nlisten = \"mixed://127.0.0.1:0\"\nvia = \"some\"\n\n\
             [route.users]\nlisten = \"ss://2022-blake3-aes-128-gcm:{key}@127.0.0.1:0\"\n\
             users = {{ bert = \"EBESExQVFhcYGRobHB0eHw==\" }}\n"
        );
        folder.write_file("token", format!("{TOKEN}\n")).unwrap();
        let file = folder.write_file("adit.toml", text).unwrap();
        let args = ["run", "-c", file.to_str().unwrap()];
        let mut adit = AditProcess::start_with(&bin(), &args, 3).unwrap();
        let line = adit.process().wait_lines("api at ", 1, PATIENCE).unwrap();
        let api = line[0].rsplit(' ').next().unwrap().parse().unwrap();
        let origin = OriginServer::start().unwrap();
        Self { adit, api, origin }
    }

    /// Sends requests of which some fail.
    fn make_traffic(&self, near: SocketAddr, far: SocketAddr) {
        drop(session(near, &Destination::Addr(self.origin.addr())));
        let nowhere = Destination::Addr(loopback_addr(free_port()));
        let _ = socks_client::connect_through(near, None, &nowhere);
        let _ = socks_client::connect_through(far, Some(("ann", "two")), &nowhere);
    }

    fn metrics(&self) -> String {
        let bearer = format!("Authorization: Bearer {TOKEN}");
        let host = format!("Host: {}", self.api);
        let stream = TcpStream::connect(self.api).unwrap();
        ask(stream, "GET /metrics", &[&host, &bearer], "").body
    }
}

/// A running Prometheus.
struct Prometheus {
    _process: ChildProcess,
    addr: SocketAddr,
}

impl Prometheus {
    /// Starts it with the example configuration, which it uses for `api` each second.
    fn start(folder: &TempFolder, api: SocketAddr) -> Self {
        let config = read("prometheus/prometheus.yml")
            .replace("127.0.0.1:6002", &api.to_string())
            .replace("15s", "1s");
        let config = folder.write_file("prometheus.yml", config).unwrap();
        folder
            .write_file("adit.token", format!("{TOKEN}\n"))
            .unwrap();
        folder
            .write_file("adit.rules.yml", read("prometheus/adit.rules.yml"))
            .unwrap();
        check(&["config", config.to_str().unwrap()], "");
        let mut command = Command::new("prometheus");
        command
            .arg(format!("--config.file={}", config.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.path().join("data").display()
            ))
            .arg("--web.listen-address=127.0.0.1:0");
        let mut process = ChildProcess::spawn(command).unwrap();
        let line = process.wait_lines("Listening on", 1, PATIENCE).unwrap();
        let (_, addr) = line[0].split_once("address=").unwrap();
        let addr = addr.trim().parse().unwrap();
        process
            .wait_lines("ready to receive web requests", 1, PATIENCE)
            .unwrap();
        Self {
            _process: process,
            addr,
        }
    }

    fn get(&self, path: &str) -> Value {
        let stream = TcpStream::connect(self.addr).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // HTTP/1.0, so that the body is not in chunks.
        let mut stream = stream;
        let request = format!("GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.addr);
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut stream, &mut text).unwrap();
        let (_, body) = text.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap_or_else(|why| panic!("{path}: {why}\n{text}"))
    }

    /// Returns the number of series that an expression selects now; it must be valid.
    fn query(&self, expr: &str) -> usize {
        let reply = self.get(&format!("/api/v1/query?query={}", percent_encode(expr)));
        assert_eq!(reply["status"], "success", "{expr}: {reply}");
        reply["data"]["result"].as_array().unwrap().len()
    }

    fn wait_for<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = look() {
                return found;
            }
            let targets = || self.get("/api/v1/targets");
            assert!(Instant::now() < deadline, "{what}: {}", targets());
            sleep(Duration::from_millis(200));
        }
    }
}

/// Read strictly, by the schema that Grafana publishes for Go.
#[test]
fn the_board_is_one_of_grafana() {
    let read_board = |path: &Path| {
        let program = external_tools::peer_path("grafanaboard");
        let what = external_tools::missing_program_message("grafanaboard");
        assert!(program.is_file(), "{what}");
        let mut command = Command::new(program);
        command.arg(path);
        external_tools::run_to_end(command, Duration::from_secs(30)).unwrap()
    };
    let board = packaging().join("grafana/adit.json");
    read_board(&board).expect_success().unwrap();
    // It would find a mistake.
    let folder = TempFolder::new("board").unwrap();
    let text = read("grafana/adit.json");
    for (right, wrong) in [
        ("\"panels\"", "\"pannels\""),
        ("\"refresh\": \"", "\"refresh\": 5, \"x\": \""),
    ] {
        assert!(text.contains(right), "{right}");
        let file = folder.write_file("board.json", text.replacen(right, wrong, 1));
        assert_ne!(read_board(&file.unwrap()).code, Some(0), "{wrong}");
    }
}

#[test]
fn every_query_of_the_board_and_the_rules_works() {
    let folder = TempFolder::new("prometheus").unwrap();
    let observed = Observed::start(&folder);
    let addrs = observed.adit.addrs().to_vec();
    let (far, near) = (addrs[0], addrs[1]);
    observed.make_traffic(near, far);
    let rules = packaging().join("prometheus/adit.rules.yml");
    check(&["rules", rules.to_str().unwrap()], "");
    check(&["metrics"], &observed.metrics());

    // No query uses a metric that does not exist.
    let board: Value = serde_json::from_str(&read("grafana/adit.json")).unwrap();
    let queries = board_queries(&board);
    assert!(queries.len() > 30, "{} queries", queries.len());
    let known = metric_names(&observed.metrics());
    let variables = board["templating"]["list"].to_string();
    for text in [&read("prometheus/adit.rules.yml"), &variables]
        .into_iter()
        .chain(queries.iter().map(|(_, expr)| expr))
    {
        for name in metric_names(text) {
            assert!(known.contains(&name), "{name} does not exist: {text}");
        }
    }

    let prometheus = Prometheus::start(&folder, observed.api);
    thread::scope(|scope| {
        let (ended, end) = std::sync::mpsc::channel::<()>();
        scope.spawn(|| {
            let end = end;
            while end
                .recv_timeout(Duration::from_millis(200))
                .is_err_and(|why| why == std::sync::mpsc::RecvTimeoutError::Timeout)
            {
                observed.make_traffic(near, far);
            }
        });
        for (title, expr) in &queries {
            let found = || (prometheus.query(expr) > 0).then_some(());
            prometheus.wait_for(&format!("{title}: no data for {expr}"), found);
        }
        let groups = || {
            let reply = prometheus.get("/api/v1/rules");
            let rules = reply["data"]["groups"][0]["rules"].as_array()?.clone();
            let all = rules.iter().all(|rule| rule["health"] == "ok");
            assert!(rules.iter().all(|rule| rule["health"] != "err"), "{reply}");
            (all && rules.len() > 8).then_some(rules)
        };
        let rules = prometheus.wait_for("the rules are not evaluated", groups);
        for rule in rules.iter().filter(|rule| rule["type"] == "recording") {
            let name = rule["name"].as_str().unwrap();
            let found = || (prometheus.query(name) > 0).then_some(());
            prometheus.wait_for(&format!("{name} was not recorded"), found);
        }
        // It has read OpenMetrics: only there the metrics have units.
        let found = || {
            let reply = prometheus.get("/api/v1/targets/metadata?metric=adit_bytes");
            (reply["data"][0]["unit"] == "bytes").then_some(())
        };
        prometheus.wait_for("no unit", found);
        // One member of the group does not exist.
        let alert = "ALERTS{alertname=\"AditGroupMemberDown\"}";
        let found = || (prometheus.query(alert) > 0).then_some(());
        prometheus.wait_for("no alert for the member that is down", found);
        assert_eq!(prometheus.query("ALERTS{alertname=\"AditDown\"}"), 0);
        drop(ended);
    });
    observed.adit.stop().unwrap();
}

#[test]
fn alerts_fire_for_what_they_are_for() {
    let tests = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/observe/alerts.yml"),
    );
    let folder = TempFolder::new("alerts").unwrap();
    folder
        .write_file("adit.rules.yml", read("prometheus/adit.rules.yml"))
        .unwrap();
    let file = folder.write_file("alerts.yml", tests.unwrap()).unwrap();
    let mut command = Command::new("promtool");
    command.args(["test", "rules"]).arg(file);
    let output = external_tools::run_to_end(command, PATIENCE).unwrap();
    assert_eq!(output.code, Some(0), "{}", output.output);
    // Each alert has a test.
    let tests = fs::read_to_string(folder.path().join("alerts.yml")).unwrap();
    for line in read("prometheus/adit.rules.yml").lines() {
        if let Some((_, alert)) = line.split_once("- alert: ") {
            assert!(tests.contains(&format!("alertname: {alert}\n")), "{alert}");
        }
    }
}
