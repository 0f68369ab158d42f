//! `adit bench`: all rows are printed, with valid figures.

use std::process::Command;
use std::time::Duration;

use adit_crypto::packet::PacketKind;
use adit_fec::FecLevel;
use adit_interop::external_tools;
use adit_shadowsocks::Method;

use crate::setup::{bin, ended};

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
