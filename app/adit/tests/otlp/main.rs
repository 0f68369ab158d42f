//! The export over OTLP, with a receiver that accepts nothing but what the specification allows.
//!
//! A separate test, because the feature is off by default.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod collector;
mod documents;
mod real_collector;

use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_interop::origin::OriginServer;
use adit_interop::socks_client::{self, Destination};
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder, free_port, loopback_addr, traffic};
use serde_json::Value;

use crate::collector::Collector;

/// Lets a listener reach the servers of these tests.
const ALLOW: &str = "allow_private=127.0.0.0/8";

fn bin() -> PathBuf {
    env!("CARGO_BIN_EXE_adit").into()
}

fn start(args: &[&str]) -> AditProcess {
    AditProcess::start_with(&bin(), args, 1).unwrap()
}

/// Starts a proxy that exports to `collector` every 200 ms, with a hop if there is one.
fn start_exporting(
    folder: &TempFolder,
    collector: SocketAddr,
    via: Option<SocketAddr>,
) -> AditProcess {
    let via = via.map_or_else(String::new, |hop| format!("via = \"socks5://{hop}\"\n"));
    let file = format!(
        "[log]\notlp = \"http://{collector}\"\notlp_interval = \"200ms\"\n\n\
         [route.main]\nlisten = \"mixed://127.0.0.1:0?{ALLOW}\"\n{via}"
    );
    let file = folder.write_file("adit.toml", file).unwrap();
    start(&["run", "-c", file.to_str().unwrap()])
}

fn download(proxy: SocketAddr, origin: &OriginServer, len: usize) {
    let to = Destination::Addr(origin.addr());
    let stream = socks_client::connect_through(proxy, None, &to).unwrap();
    traffic::download(stream, len).unwrap();
}

/// Calls `look` until it returns something.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + TEST_TIMEOUT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}");
        sleep(Duration::from_millis(20));
    }
}

/// Returns the fields of a span.
fn fields(span: &Value) -> HashMap<String, Value> {
    let each = span["attributes"].as_array().unwrap().iter();
    each.map(|field| {
        let key = field["key"].as_str().unwrap().to_owned();
        let value = field["value"].as_object().unwrap();
        (key, value.values().next().unwrap().clone())
    })
    .collect()
}

#[test]
fn a_session_and_each_of_its_hops_are_spans_of_one_trace() {
    let folder = TempFolder::new("otlp-trace").unwrap();
    let collector = Collector::start();
    let origin = OriginServer::start().unwrap();
    let hop = start(&["run", &format!("socks5://127.0.0.1:0?{ALLOW}")]);
    let adit = start_exporting(&folder, collector.addr(), Some(hop.addr()));
    download(adit.addr(), &origin, 100_000);
    let spans = wait_for(
        "no trace has a session, a dial, a hop and a connection",
        || {
            let spans = collector.spans();
            let session = spans.iter().find(|span| span["name"] == "session")?;
            let trace = session["traceId"].clone();
            let of_trace: HashMap<String, Value> = spans
                .into_iter()
                .filter(|span| span["traceId"] == trace)
                .map(|span| (span["name"].as_str().unwrap().to_owned(), span))
                .collect();
            (of_trace.len() == 4).then_some(of_trace)
        },
    );
    let around = [("dial", "session"), ("hop", "dial"), ("connect", "hop")];
    for (inner, outer) in around {
        assert_eq!(
            spans[inner]["parentSpanId"], spans[outer]["spanId"],
            "{inner}"
        );
    }
    let session = fields(&spans["session"]);
    assert_eq!(session["adit.route"], "main");
    assert_eq!(session["adit.listen"], adit.addr().to_string());
    assert_eq!(session["adit.end"], "finished");
    let down: u64 = session["adit.down"].as_str().unwrap().parse().unwrap();
    assert!(down >= 100_000, "{down}");
    assert_eq!(
        fields(&spans["hop"])["adit.hop"],
        format!("socks5://{}", hop.addr())
    );
    // A destination that cannot be reached: the steps before it have failed, and say why.
    let nowhere = Destination::Addr(loopback_addr(free_port()));
    socks_client::connect_through(adit.addr(), None, &nowhere).unwrap_err();
    let failed = wait_for("no span of a failed hop", || {
        let is_failed = |span: &Value| span["name"] == "hop" && span["status"]["code"] == 2;
        collector.spans().into_iter().find(is_failed)
    });
    assert_eq!(fields(&failed)["adit.failure"], "connection-refused");
    // Neither destinations nor clients leave the process.
    let text = collector.text();
    for secret in [origin.addr().to_string(), "adit.client".to_owned()] {
        assert!(!text.contains(&secret), "{secret}");
    }
    adit.stop().unwrap();
    hop.stop().unwrap();
}

#[test]
fn metrics_are_those_of_the_api() {
    let folder = TempFolder::new("otlp-metrics").unwrap();
    let collector = Collector::start();
    let origin = OriginServer::start().unwrap();
    let adit = start_exporting(&folder, collector.addr(), None);
    download(adit.addr(), &origin, 50_000);
    let bytes = wait_for("no bytes are counted", || {
        let metrics = collector.metrics();
        let bytes = metrics
            .iter()
            .rfind(|metric| metric["name"] == "adit_bytes")?;
        let points = bytes["sum"]["dataPoints"].as_array().unwrap();
        let is_down = |point: &&Value| {
            let labels = fields(point);
            labels["direction"] == "down" && labels["route"] == "main"
        };
        let point = points.iter().find(is_down)?;
        let count: u64 = point["asInt"].as_str().unwrap().parse().unwrap();
        (count >= 50_000).then(|| bytes.clone())
    });
    assert_eq!(
        (&bytes["unit"], &bytes["sum"]["isMonotonic"]),
        (&"By".into(), &true.into())
    );
    let metrics = collector.metrics();
    let dials = metrics
        .iter()
        .rfind(|metric| metric["name"] == "adit_dial_seconds");
    let point = &dials.unwrap()["histogram"]["dataPoints"][0];
    assert_eq!(point["count"], "1");
    for name in [
        "adit_sessions",
        "adit_rejects",
        "adit_node",
        "adit_start_time_seconds",
    ] {
        assert!(
            metrics.iter().any(|metric| metric["name"] == name),
            "{name}"
        );
    }
    adit.stop().unwrap();
}

#[test]
fn the_last_spans_are_sent_at_the_end_and_the_flag_takes_precedence() {
    let folder = TempFolder::new("otlp-end").unwrap();
    let (collector, other) = (Collector::start(), Collector::start());
    let origin = OriginServer::start().unwrap();
    let file = format!(
        "[log]\notlp = \"http://{}\"\notlp_interval = \"1h\"\n\n\
         [route.main]\nlisten = \"mixed://127.0.0.1:0?{ALLOW}\"\n",
        other.addr()
    );
    let file = folder.write_file("adit.toml", file).unwrap();
    let url = format!("http://{}", collector.addr());
    let adit = start(&["run", "-c", file.to_str().unwrap(), "--otlp", &url]);
    download(adit.addr(), &origin, 1000);
    adit.stop().unwrap();
    let names: Vec<Value> = collector
        .spans()
        .iter()
        .map(|span| span["name"].clone())
        .collect();
    assert!(names.contains(&"session".into()), "{names:?}");
    assert!(other.text().is_empty(), "{}", other.text());
}

/// Collectors of providers require a token. A file has it, and no other collector receives it.
#[test]
fn a_collector_receives_the_headers_of_the_file() {
    let folder = TempFolder::new("otlp-headers").unwrap();
    let (collector, other) = (Collector::start(), Collector::start());
    folder.write_file("token", "Bearer 7fd1e\n").unwrap();
    let file = format!(
        "[log]\notlp = \"http://{}\"\notlp_interval = \"100ms\"\n\
         otlp_headers = {{ Authorization = \"@token\", X-Scope-OrgID = \"blue\" }}\n\n\
         [route.main]\nlisten = \"mixed://127.0.0.1:0?{ALLOW}\"\n",
        collector.addr()
    );
    let file = folder.write_file("adit.toml", file).unwrap();
    let file = file.to_str().unwrap();
    let adit = start(&["run", "-c", file]);
    wait_for("no headers", || {
        let headers = collector.headers();
        let is_there = |line| headers.lines().any(|header| header == line);
        (is_there("authorization: Bearer 7fd1e") && is_there("x-scope-orgid: blue")).then_some(())
    });
    adit.stop().unwrap();
    let url = format!("http://{}", other.addr());
    let adit = start(&["run", "-c", file, "--otlp", &url]);
    let headers = wait_for("no request", || {
        Some(other.headers()).filter(|headers| !headers.is_empty())
    });
    assert!(!headers.contains("authorization"), "{headers}");
    adit.stop().unwrap();
}

/// A collector that is down, and one that accepts and never answers.
#[test]
fn a_dead_collector_holds_nothing_up() {
    let folder = TempFolder::new("otlp-dead").unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = OriginServer::start().unwrap();
    for at in [silent.local_addr().unwrap(), loopback_addr(free_port())] {
        let mut adit = start_exporting(&folder, at, None);
        let begun = Instant::now();
        for _ in 0..300 {
            download(adit.addr(), &origin, 2000);
        }
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(20), "{took:?}");
        // It is reported once, and the command ends in time.
        let warning = adit
            .process()
            .wait_lines("nothing is exported to the collector", 1, TEST_TIMEOUT)
            .unwrap();
        assert_eq!(warning.len(), 1, "{warning:?}");
        let begun = Instant::now();
        adit.stop().unwrap();
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(5), "{took:?}");
    }
}

/// A collector that comes back has everything that was counted meanwhile.
#[test]
fn a_collector_that_returns_gets_what_it_has_missed() {
    let folder = TempFolder::new("otlp-return").unwrap();
    let at = loopback_addr(free_port());
    let origin = OriginServer::start().unwrap();
    let mut adit = start_exporting(&folder, at, None);
    download(adit.addr(), &origin, 10_000);
    let lost = "nothing is exported to the collector";
    adit.process().wait_lines(lost, 1, TEST_TIMEOUT).unwrap();
    let collector = Collector::start_at(at);
    adit.process()
        .wait_lines("answers again", 1, TEST_TIMEOUT)
        .unwrap();
    wait_for("the session is lost", || {
        let spans = collector.spans();
        spans.iter().find(|span| span["name"] == "session").cloned()
    });
    adit.stop().unwrap();
}

#[test]
fn addresses_that_are_none_are_refused() {
    for (args, code, says) in [
        (&["--otlp", "127.0.0.1:4318"][..], 2, "--otlp: not a URL"),
        (
            &["--otlp", "http://me:secret@127.0.0.1"],
            2,
            "--otlp: not a URL",
        ),
        (&["--otlp", "ftp://127.0.0.1"], 2, "--otlp: not a URL"),
    ] {
        let mut command = std::process::Command::new(bin());
        command.args(["run", "mixed://127.0.0.1:0"]).args(args);
        let ended = adit_interop::external_tools::run_to_end(command, TEST_TIMEOUT).unwrap();
        assert_eq!(ended.code, Some(code), "{}", ended.output);
        assert!(ended.output.contains(says), "{}", ended.output);
        assert!(!ended.output.contains("secret"), "{}", ended.output);
    }
}
