//! `adit bench`: all rows are printed, with valid figures.

use std::process::Command;
use std::time::Duration;

use adit_crypto::packet::PacketKind;
use adit_fec::FecLevel;
use adit_interop::external_tools;
use adit_shadowsocks::Method;

use crate::setup::{bin, ended, says};

#[test]
fn bench_mac_prints_an_object_for_each_code_and_length() {
    let mut rows = bench_rows_within("mac", "20");
    for name in [
        "umac-64",
        "umac-128",
        "hmac-sha2-256",
        "hmac-md5",
        "hmac-md5-of-8",
        "siphash-1-3",
        "siphash-1-3-of-8",
    ] {
        for bytes in [32, 1024] {
            let row = (name.to_owned(), bytes);
            let at = rows.iter().position(|known| *known == row);
            rows.remove(at.unwrap_or_else(|| panic!("no {row:?} in {rows:?}")));
        }
    }
    assert!(rows.is_empty(), "{rows:?}");
    let shown = ended(&["bench", "mac", "--bytes", "64", "--millis", "20"]);
    let shown = shown.expect_success().unwrap();
    for word in ["umac-128", "hmac-md5", "64"] {
        assert!(shown.contains(word), "{shown}");
    }
}

/// Returns the names and lengths of the rows of `adit bench WHAT --json`; each figure must be a number.
fn bench_rows(what: &str) -> Vec<(String, u64)> {
    bench_rows_within(what, "1")
}

/// The same, with this time for each row.
fn bench_rows_within(what: &str, millis: &str) -> Vec<(String, u64)> {
    let output = ended(&["bench", what, "--json", "--millis", millis]);
    let output = output.expect_success().unwrap();
    let row = |line: &str| {
        let document: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(document["command"], format!("bench {what}"), "{line}");
        assert_eq!(document["event"], "row", "{line}");
        let row = &document["result"];
        let fields = row.as_object().unwrap();
        assert_eq!(fields.len(), 3, "{line}");
        assert!(row["nsPerOp"].as_f64().unwrap() > 0.0, "{line}");
        (
            row["name"].as_str().unwrap().to_owned(),
            row["bytes"].as_u64().unwrap(),
        )
    };
    output.lines().map(row).collect()
}

#[test]
fn bench_fec_prints_an_object_for_each_code() {
    let rows = bench_rows("fec");
    // Each shape has rows for encoding of code and stage, and for decoding of as many losses as it allows.
    assert_eq!(rows.len(), 2 * (6 + 4 + 6), "{rows:?}");
    for name in [
        "code-encode-vandermonde-10+3",
        "code-decode-3-cauchy-20+10",
        "stage-encode-cauchy-3+1",
        "stage-decode-1-vandermonde-3+1",
    ] {
        assert!(rows.contains(&(name.to_owned(), 1400)), "{name}: {rows:?}");
    }
}

#[test]
fn bench_ss_prints_an_object_for_each_step_and_method() {
    let rows = bench_rows("ss");
    for method in Method::ALL {
        if matches!(method, Method::Stream(_) | Method::None) {
            continue;
        }
        for what in ["seal", "open"] {
            let row = (format!("packet-{what}-{method}"), 1400);
            assert!(rows.contains(&row), "{row:?}: {rows:?}");
        }
    }
    for row in [
        ("salt", 16),
        ("subkey-hkdf-sha1", 32),
        ("subkey-blake3", 16),
        ("header-aes-128", 16),
        ("header-aes-256", 16),
        ("cipher-aes-128-gcm", 16_384),
        ("cipher-chacha20-poly1305", 1400),
    ] {
        assert!(rows.contains(&(row.0.to_owned(), row.1)), "{row:?}");
    }
}

#[test]
fn bench_kcp_prints_an_object_for_each_step_and_cipher() {
    let rows = bench_rows("kcp");
    let ciphers = PacketKind::ALL.map(PacketKind::name);
    let kcp9 = ["aes-kcp9", "aes-128-kcp9", "salsa20-kcp9"];
    let sessions = ["adit-aes-128-gcm", "adit-chacha20-poly1305"];
    for name in ciphers.into_iter().chain(kcp9).chain(sessions) {
        for what in ["seal", "open"] {
            let row = (format!("{what}-{name}"), 1400);
            assert!(rows.contains(&row), "{row:?}: {rows:?}");
        }
    }
    for row in [
        ("flush-1023-in-flight", 0),
        ("input-ack", 24),
        ("input-data", 1376),
        ("send-and-flush", 1376),
        ("crc32", 1400),
        ("crc32-one", 1400),
        ("highwayhash", 1400),
        ("highwayhash-one", 1400),
        ("nonce", 16),
    ] {
        assert!(rows.contains(&(row.0.to_owned(), row.1)), "{row:?}");
    }
    assert_eq!(rows.len(), 9 + 4 * 18 + 2 * 2);
}

#[test]
fn kernels_of_correction_keep_to_the_limit_of_the_cpu() {
    let kernels = |limit: &str| {
        let mut command = Command::new(bin());
        command.args(["bench", "fec", "--millis", "1"]);
        command.env("ADIT_CPU", limit);
        let output = external_tools::run_to_end(command, Duration::from_secs(20)).unwrap();
        let output = output.expect_success().unwrap();
        let first = output.lines().next().unwrap().to_owned();
        first.strip_prefix("kernels: ").unwrap().to_owned()
    };
    assert_eq!(kernels("portable"), "portable");
    let narrow = kernels("avx2");
    assert!(
        ["portable", "ssse3", "avx2", "neon"].contains(&narrow.as_str()),
        "{narrow}"
    );
    let widest = FecLevel::available().last().unwrap().name();
    assert_eq!(kernels("avx512"), widest);
}

/// Runs `adit bench proxy` with tiny transfers, and with the installed peers in `PATH`.
fn bench_proxy(args: &[&str]) -> String {
    let peers = external_tools::peer_path("sing-box");
    let mut path = vec![peers.parent().unwrap().to_owned()];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let mut command = Command::new(bin());
    command.args(["bench", "proxy", "--mib", "1"]).args(args);
    command.env("PATH", std::env::join_paths(path).unwrap());
    let output = external_tools::run_to_end(command, Duration::from_secs(120)).unwrap();
    output.expect_success().unwrap()
}

/// Both ends of each protocol carry every byte, and their processor time is more than nothing.
#[test]
fn bench_proxy_measures_each_protocol() {
    let output = bench_proxy(&["--json"]);
    let rows: Vec<serde_json::Value> = output
        .lines()
        .map(|line| {
            let document: serde_json::Value = serde_json::from_str(line).unwrap();
            document["result"].clone()
        })
        .collect();
    let figure = |row: &serde_json::Value, key: &str| row[key].as_f64().unwrap();
    for (name, has_server) in [
        ("adit: socks5", false),
        ("adit: http", false),
        ("adit: ss, 2022-blake3-aes-128-gcm", true),
        ("adit: ss, chacha20-ietf-poly1305", true),
        ("adit: ssr, aes-256-ctr, auth_aes128_sha1", true),
        ("adit: ss+kcp", true),
        ("adit: ssh", true),
    ] {
        let row = rows.iter().find(|row| row["name"] == name);
        let row = row.unwrap_or_else(|| panic!("no `{name}` in {output}"));
        assert!(figure(row, "mbPerS") > 0.0, "{row}");
        let client = figure(row, "cpuSPerGibClient");
        assert!(client > 0.0, "{row}");
        if has_server {
            let server = figure(row, "cpuSPerGibServer");
            let sum = figure(row, "cpuSPerGib");
            assert!(
                server > 0.0 && (client + server - sum).abs() < 0.01,
                "{row}"
            );
        }
    }
}

/// Programs that are installed are measured in the same run, in each format.
#[test]
fn bench_proxy_compares_installed_programs() {
    let only = ["--compare", "--only", "ss, aes-256-gcm"];
    let table = bench_proxy(&only);
    for name in ["adit", "sing-box", "shadowsocks-libev"] {
        let name = format!("{name}: ss, aes-256-gcm");
        let row = table.lines().find(|line| line.starts_with(&name));
        let row = row.unwrap_or_else(|| panic!("no `{name}` in {table}"));
        assert!(!row.contains(" - "), "{row}");
    }
    let markdown = bench_proxy(&[&only[1..], &["--format", "markdown"]].concat());
    assert!(
        markdown.contains("| adit: ss, aes-256-gcm | "),
        "{markdown}"
    );
    let chart = bench_proxy(&[&only[1..], &["--format", "svg"]].concat());
    assert!(
        chart.starts_with("<svg ") && chart.contains("<rect "),
        "{chart}"
    );

    let wrong = ended(&["bench", "proxy", "--only", "nosuch"]);
    assert_eq!(wrong.code, Some(2));
    says(&wrong.output, &["no protocol's name contains `nosuch`"]);
}

/// The last line of a table is a recommendation.
#[test]
fn tables_end_with_advice() {
    for (what, start) in [
        ("ss", "Use 2022-blake3-"),
        ("mac", "Use "),
        ("fec", "One processor adds "),
    ] {
        let output = ended(&["bench", what, "--millis", "5"]);
        let output = output.expect_success().unwrap();
        let last = output.lines().last().unwrap();
        assert!(last.starts_with(start), "{output}");
    }
}
