//! The release build that users get: the binary, its size, its memory at rest, and the README's
//! first command.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::command::{CommandRun, root, target_dir};

/// Maximum size of the stripped binary, in bytes. It includes five protocols with all their
/// ciphers, TLS with its trust roots, the readers of rule lists and subscriptions, which take 0.9 MB, DNS over
/// HTTPS with HTTP/2, the store of users, the dashboard, the live view of a terminal, and
/// fleets with a client of Valkey. A limit on growth, not the aim.
const MAX_SIZE: u64 = 24 << 20;
/// Maximum size of the same without the features that a build can leave out, in bytes.
const MAX_MINIMAL_SIZE: u64 = 9 << 20;
/// Maximum resident memory of an idle client, in bytes.
const MAX_IDLE: u64 = 10_000_000;
const KEY: &str = "AAECAwQFBgcICQoLDA0ODw==";

/// Returns the command that builds the binary together with the benchmarks: the last part of each build has one thread,
/// and alone the benchmarks would request other features of the crates that both depend on, and have most of them built
/// again.
fn release_build() -> CommandRun {
    CommandRun::cargo(["build", "--release", "--package", "adit"])
        .args(["--package", "adit-bench"])
        .with_limit(60)
}

/// Returns the command that builds the binary without the features that can be left out.
fn minimal_build() -> CommandRun {
    CommandRun::cargo(["build", "--release", "--package", "adit"])
        .args(["--no-default-features", "--features", "minimal"])
        .with_limit(60)
}

/// Builds what the steps `release` and `bench smoke` use, beside the tests, which wait for most of their time.
pub(crate) fn build_ahead() -> Result<String> {
    for (build, log) in [
        (minimal_build(), "release-minimal-ahead"),
        (release_build(), "release-ahead"),
    ] {
        build.at_idle_priority().run_captured(log)?;
    }
    Ok(String::new())
}

/// Returns a command that runs the benchmarks, built, with these arguments.
pub(crate) fn bench_command<S: AsRef<OsStr>>(
    args: impl IntoIterator<Item = S>,
) -> Result<CommandRun> {
    release_build().run_captured("release")?;
    let program = target_dir().join("release").join("adit-bench");
    let run = CommandRun::new(program, args);
    Ok(run.env("CARGO_MANIFEST_DIR", root().join("dev/adit-bench")))
}

/// Command lines that need a feature which the minimal build leaves out, and the feature: a command of each, the
/// spellings of schemes and carriers, and a cipher.
const LEFT_OUT: [(&[&str], &str); 19] = [
    (&["bench"], "bench"),
    (&["-v", "completion", "bash"], "manual"),
    (&["convert", "x.json"], "convert"),
    (&["fleet", "status"], "fleet"),
    (&["kcp", "server"], "kcp"),
    (&["scp", "a", "b:"], "ssh"),
    (&["ss-local", "-h"], "classic"),
    (&["ssh", "localhost"], "ssh"),
    (&["sshd"], "ssh"),
    (&["status"], "admin"),
    (&["top"], "top"),
    (&["user", "list"], "admin"),
    (&["check", "ssh://127.0.0.1:0"], "ssh"),
    (&["check", "mixed://127.0.0.1:0", "ssr://YQ"], "ssr"),
    (&["check", "mixed://127.0.0.1:0", "SSH://h:1"], "ssh"),
    (&["check", "mixed://127.0.0.1:0", "kcptun://h:1"], "kcp"),
    (
        &["check", "mixed://127.0.0.1:0", "ss+kcp://none@h:1"],
        "kcp",
    ),
    (&["check", "udp+fec://127.0.0.1:0/h:1"], "kcp"),
    (
        &["check", "mixed://127.0.0.1:0", "ss://rc4-md5:a@h:1"],
        "legacy-ciphers",
    ),
];

/// Builds `adit` without the features that can be left out, and checks that it works and what it says about the others.
/// Returns its size.
fn check_minimal() -> Result<u64> {
    minimal_build().run_captured("release-minimal")?;
    let release = target_dir().join("release");
    let binary = release.join("adit-minimal");
    // The build with all features has the same name.
    fs::copy(release.join("adit"), &binary)?;
    let size = fs::metadata(&binary)?.len();
    ensure!(
        size <= MAX_MINIMAL_SIZE,
        "the minimal binary has {size} bytes, more than {MAX_MINIMAL_SIZE}"
    );
    let said = CommandRun::new(&binary, ["up", "--once"]).run_captured("up-minimal")?;
    ensure!(
        said.contains("every byte correct"),
        "the minimal `adit up` transferred nothing:\n{said}"
    );
    let version = CommandRun::new(&binary, ["--version"]).run_captured("version-minimal")?;
    for (words, feature) in LEFT_OUT {
        let output = Command::new(&binary)
            .args(words)
            .stdin(Stdio::null())
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        let reason = format!("it was built without the feature `{feature}`");
        ensure!(
            !output.status.success() && said.contains(&reason),
            "the minimal `adit {}` does not name the feature `{feature}`:\n{said}",
            words.join(" ")
        );
        ensure!(
            left_out_features(&version).any(|name| name == feature),
            "the minimal `adit --version` does not list `{feature}` as left out:\n{version}"
        );
    }
    Ok(size)
}

/// Returns the features that the output of `adit --version` lists as left out.
fn left_out_features(version: &str) -> impl Iterator<Item = &str> {
    let lists = version
        .lines()
        .filter_map(|line| line.strip_prefix("left out: "));
    lists.flat_map(|list| list.split(", "))
}

/// Builds the binary and checks it against its limits.
pub(crate) fn check_release() -> Result<String> {
    let minimal = check_minimal()?;
    release_build().run_captured("release")?;
    let said = CommandRun::cargo(["run", "--release", "--quiet", "--", "up", "--once"])
        .run_captured("up")?;
    ensure!(
        said.contains("every byte correct"),
        "`adit up` transferred nothing:\n{said}"
    );
    let binary = target_dir().join("release").join("adit");
    let size = fs::metadata(&binary)?.len();
    ensure!(
        size <= MAX_SIZE,
        "the binary has {size} bytes, more than {MAX_SIZE}"
    );
    ensure_vectorized(&binary)?;
    let url = format!("ss://2022-blake3-aes-128-gcm:{KEY}@127.0.0.1:9");
    let client =
        IdleClient::start(Command::new(&binary).args(["run", "mixed://127.0.0.1:0", &url]))?;
    let rest = client.resident_bytes()?;
    ensure!(
        rest <= MAX_IDLE,
        "an idle client has {rest} bytes, more than {MAX_IDLE}"
    );
    Ok(format!(
        "{:.1} MB, minimal {:.1} MB, idle client {:.1} MB",
        size as f64 / 1e6,
        minimal as f64 / 1e6,
        rest as f64 / 1e6
    ))
}

/// Checks that loops are vectorised. In a thin LTO that depends on the settings of the program, not
/// on those of the crate with the loop: a wrong profile costs several times the work, and no other
/// test fails.
fn ensure_vectorized(binary: &Path) -> Result<()> {
    let Some(least) = min_vector_gain() else {
        return Ok(());
    };
    let words = [
        "bench", "mac", "--json", "--bytes", "8100", "--millis", "100",
    ];
    let mut gains = Vec::new();
    // Other processes can disturb one run, but hardly the best of five.
    for _ in 0..5 {
        let output = CommandRun::new(binary, words).run_captured("bench-mac")?;
        let time = |name: &str| {
            let head = format!(
                r#"{{"command":"bench mac","event":"row","result":{{"bytes":8100,"name":"{name}","nsPerOp":"#
            );
            let row = output.lines().find_map(|row| row.strip_prefix(&*head));
            let row =
                row.with_context(|| format!("`adit bench mac` printed no row {name}:\n{output}"))?;
            Ok::<f64, anyhow::Error>(row.trim_end_matches('}').parse()?)
        };
        gains.push(time("hmac-md5")? / time("hmac-md5-of-8")?);
        if gains.iter().any(|gain| *gain > least) {
            return Ok(());
        }
    }
    bail!(
        "loops are not vectorised: HMAC-MD5 of 8,100 bytes beside seven others is {gains:.2?} times \
         as fast as alone, at least {least} is expected"
    )
}

/// Minimum gain of eight MACs computed together, which only vectors reach on this processor.
/// Measured: 3.5 with AVX-512; 1.7 to 1.9 with AVX2 (whose vectors hold eight words, but rotate by
/// three instructions), and 1.2 to 1.3 there while other processes use both processors. Without
/// vectors it is below 1.
#[cfg(target_arch = "x86_64")]
fn min_vector_gain() -> Option<f64> {
    if std::arch::is_x86_feature_detected!("avx512f") {
        Some(2.0)
    } else {
        std::arch::is_x86_feature_detected!("avx2").then_some(1.15)
    }
}

#[cfg(not(target_arch = "x86_64"))]
const fn min_vector_gain() -> Option<f64> {
    None
}

/// A client process that ends with the check.
struct IdleClient(Child);

impl IdleClient {
    fn start(command: &mut Command) -> Result<Self> {
        let mut child = command
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start the binary")?;
        let stderr = child.stderr.take().context("no standard error")?;
        let client = Self(child);
        let heard = BufReader::new(stderr).lines().map_while(Result::ok);
        ensure!(
            heard.into_iter().any(|l| l.starts_with("listening on")),
            "the client does not listen"
        );
        // By now, what is allocated at the start has settled.
        thread::sleep(Duration::from_millis(500));
        Ok(client)
    }

    /// Returns the resident memory, in bytes.
    fn resident_bytes(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status
            .lines()
            .find_map(|l| l.strip_prefix("VmRSS:"))
            .context("no VmRSS")?;
        let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kib << 10)
    }
}

impl Drop for IdleClient {
    fn drop(&mut self) {
        // The process belongs to this check and has no state to save.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
