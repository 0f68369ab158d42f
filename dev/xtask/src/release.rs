//! What users get: the release binary, its size, its memory at rest, and the README's first command.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::run::{Run, root, target_dir};

/// The largest binary, stripped, in bytes: five systems with all their ciphers, TLS and its roots of trust, and a resolver included.
const MAX_SIZE: u64 = 16 << 20;
/// The most memory of a client at rest, in KiB.
const MAX_REST: u64 = 12 << 10;
const KEY: &str = "AAECAwQFBgcICQoLDA0ODw==";

/// Builds it, and the benchmarks beside it: the last part of each has one thread, and alone the
/// benchmarks would ask other features of what both stand on, and have most of it built once more.
fn build() -> Result<()> {
    Run::cargo(["build", "--release", "--package", "adit"])
        .args(["--package", "adit-bench"])
        .limit(30)
        .quiet("release")?;
    Ok(())
}

/// The benchmarks with these words, built.
pub(crate) fn bench<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Result<Run> {
    build()?;
    let program = target_dir().join("release").join("adit-bench");
    let run = Run::new(program, args);
    Ok(run.env("CARGO_MANIFEST_DIR", root().join("dev/adit-bench")))
}

/// Builds it and holds it against its limits.
pub(crate) fn check() -> Result<String> {
    build()?;
    let said = Run::cargo(["run", "--release", "--quiet", "--", "up", "--once"]).quiet("up")?;
    ensure!(
        said.contains("every byte correct"),
        "`adit up` carried nothing:\n{said}"
    );
    let binary = target_dir().join("release").join("adit");
    let size = fs::metadata(&binary)?.len();
    ensure!(
        size <= MAX_SIZE,
        "the binary has {size} bytes, {MAX_SIZE} are allowed"
    );
    ensure_vectors(&binary)?;
    let url = format!("ss://2022-blake3-aes-128-gcm:{KEY}@127.0.0.1:9");
    let client = Client::start(Command::new(&binary).args(["run", "mixed://127.0.0.1:0", &url]))?;
    let rest = client.resident()?;
    ensure!(
        rest <= MAX_REST,
        "a client at rest has {rest} KiB, {MAX_REST} are allowed"
    );
    Ok(format!(
        "{:.1} MB, client at rest {:.1} MB",
        size as f64 / 1e6,
        rest as f64 / 1e3
    ))
}

/// Checks that loops are put into vectors. In a thin LTO that is decided by the settings of the program,
/// not by those of the crate with the loop: a wrong profile costs several times the work and fails no
/// other test.
fn ensure_vectors(binary: &Path) -> Result<()> {
    let Some(least) = least_gain() else {
        return Ok(());
    };
    let words = [
        "bench", "mac", "--json", "--bytes", "8100", "--millis", "100",
    ];
    let mut gains = Vec::new();
    // Other processes disturb one run, hardly the best of five.
    for _ in 0..5 {
        let output = Run::new(binary, words).quiet("bench-mac")?;
        let time = |name: &str| {
            let head = format!(r#"{{"name":"{name}","bytes":8100,"ns_per_op":"#);
            let row = output.lines().find_map(|row| row.strip_prefix(&*head));
            let row =
                row.with_context(|| format!("`adit bench mac` has no row {name}:\n{output}"))?;
            Ok::<f64, anyhow::Error>(row.trim_end_matches('}').parse()?)
        };
        gains.push(time("hmac-md5")? / time("hmac-md5-of-8")?);
        if gains.iter().any(|gain| *gain > least) {
            return Ok(());
        }
    }
    bail!(
        "loops are not put into vectors: HMAC-MD5 of 8,100 bytes beside seven others is {gains:.2?} times \
         as fast as alone, at least {least} is expected"
    )
}

/// The gain of eight MACs together that only vectors reach on this processor: measured 3.5 with AVX-512,
/// 1.7 to 1.9 with AVX2 (whose vectors hold eight words, but rotate by three instructions), and 1.2 to 1.3
/// there while other processes use both processors. Without vectors it is below 1.
#[cfg(target_arch = "x86_64")]
fn least_gain() -> Option<f64> {
    if std::arch::is_x86_feature_detected!("avx512f") {
        Some(2.0)
    } else {
        std::arch::is_x86_feature_detected!("avx2").then_some(1.15)
    }
}

#[cfg(not(target_arch = "x86_64"))]
const fn least_gain() -> Option<f64> {
    None
}

/// A client that is ended with us.
struct Client(Child);

impl Client {
    fn start(command: &mut Command) -> Result<Self> {
        let mut child = command
            .stderr(Stdio::piped())
            .spawn()
            .context("starting the binary")?;
        let stderr = child.stderr.take().context("no standard error")?;
        let client = Self(child);
        let heard = BufReader::new(stderr).lines().map_while(Result::ok);
        ensure!(
            heard.into_iter().any(|l| l.starts_with("listening on")),
            "it does not listen"
        );
        // What is allocated at the start has settled then.
        thread::sleep(Duration::from_millis(500));
        Ok(client)
    }

    /// Resident memory in KiB.
    fn resident(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status
            .lines()
            .find_map(|l| l.strip_prefix("VmRSS:"))
            .context("no VmRSS")?;
        Ok(line.trim().trim_end_matches("kB").trim().parse()?)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It is ours and holds nothing.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
