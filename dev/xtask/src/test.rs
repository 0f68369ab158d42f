//! `test`: what CI runs, in the order in which a fault shows soonest.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::install::{self, Scope};
use crate::run::{Run, find_program, log_path, root};
use crate::steps::Steps;
use crate::{fuzz, release, supply, tidy};

/// Lines shown of a test's panic.
const PANIC_LINES: usize = 6;
/// Tests at the same time: those of the binary mostly wait for other processes. On two processors
/// they need 478 s by four and 322 s by eight.
const THREADS: &str = "8";
/// Who is measured to see that every suite works: one rival for each, since all take four minutes.
const SMOKE: &str = "adit,sing-box,OpenSSH,kcp-go";
/// Seconds for each fuzz target.
const FUZZ_SECONDS: u32 = 4;

/// What has a fast path, and what carries bytes above it; of each, the modules of tests that carry
/// none, or wait for most of their time.
const PORTABLE: &[(&str, &[&str])] = &[
    ("adit-crypto", &[]),
    ("adit-net", &[]),
    ("adit-stream", &[]),
    ("adit-engine", &[]),
    (
        "adit",
        &[
            "admin",
            "bench",
            "bench_ssh",
            "browser",
            "cli",
            "convert",
            "crowd",
            "doctor",
            "group",
            "health",
            "kcp_link",
            "kept_files",
            "legacy",
            "manager",
            "names",
            "online",
            "plugin",
            "probes",
            "probes_apart",
            "process",
            "proxied",
            "replay",
            "ssh_client",
            "ssh_copy",
            "ssh_hop_fails",
            "ssh_server",
            "ssr",
            "ssr_hostile",
            "users",
        ],
    ),
];

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wish {
    scope: Scope,
    install: bool,
}

impl Wish {
    pub(crate) fn from_args(args: &[String]) -> Result<Self> {
        let mut wish = Self {
            scope: Scope::Usual,
            install: true,
        };
        for arg in args {
            match arg.as_str() {
                "--all" => wish.scope = Scope::All,
                "--no-install" => wish.install = false,
                other => bail!("`test` takes `--all` and `--no-install`, got `{other}`"),
            }
        }
        Ok(wish)
    }
}

/// All of it; whether everything passed.
pub(crate) fn run(steps: &mut Steps, wish: Wish) -> bool {
    if wish.install {
        install::run(steps, wish.scope);
    }
    steps.step("fmt", || {
        Run::cargo(["fmt", "--all", "--check"]).quiet("fmt")?;
        fmt_fuzz()
    });
    steps.step("clippy", || {
        let lint = [
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ];
        Run::cargo(lint).limit(20).quiet("clippy")?;
        Ok(String::new())
    });
    steps.step("tidy", tidy::check);
    steps.step("licences", supply::check);
    if wish.scope == Scope::All {
        steps.step("cargo-deny", deny);
    }
    steps.step("tests", || {
        // Interop tests mostly wait for others.
        let all = Run::cargo(["test", "--workspace", "--no-fail-fast"]);
        let passed = tests("tests", wish.scope, all)?;
        let left_out = match wish.scope {
            Scope::Usual => " (shadowsocks-rust as a peer: with --all)",
            Scope::All => "",
        };
        Ok(format!("{passed} tests{left_out}"))
    });
    steps.step("tests, portable", || portable(wish.scope));
    steps.step("release", release::check);
    steps.step("instructions", instructions);
    docs(steps);
    steps.step("bench smoke", || {
        release::bench(["--smoke", "--only", SMOKE])?
            .limit(10)
            .quiet("bench")?;
        Ok("every suite ran with tiny amounts; its figures mean nothing".to_owned())
    });
    fuzz::run(steps, &fuzz::Wish::each(FUZZ_SECONDS));
    steps.finish()
}

/// What hot loops cost, against what was committed.
fn instructions() -> Result<String> {
    let told = release::bench(["--instructions"])?
        .limit(30)
        .quiet("instructions")?;
    Ok(told.lines().last().unwrap_or_default().to_owned())
}

/// The tests once more without the fast paths: of the crates that have one, and of what carries
/// bytes above them.
fn portable(scope: Scope) -> Result<String> {
    // The binaries of the step before: for other packages cargo would choose other features, and
    // build most of them again.
    let list = [
        "test",
        "--workspace",
        "--no-run",
        "--message-format=json-render-diagnostics",
    ];
    let told = Run::cargo(list).limit(25).quiet("tests-built")?;
    let (mut passed, mut failed) = (0, Vec::new());
    for (name, _) in PORTABLE {
        ensure!(
            binaries(&told).any(|binary| binary.package == *name),
            "no tests of {name}"
        );
    }
    for binary in binaries(&told) {
        let Some((_, spared)) = PORTABLE.iter().find(|(name, _)| *name == binary.package) else {
            continue;
        };
        let run = Run::new(&binary.path, skips(spared))
            .dir(&binary.folder)
            .env("CARGO_MANIFEST_DIR", &binary.folder)
            .env("ADIT_IO", "portable")
            .env("ADIT_CPU", "portable");
        let log = format!("portable-{}-{}", binary.package, binary.target);
        match tests(&log, scope, run) {
            Ok(count) => passed += count,
            Err(why) => failed.push(format!("{why:#}")),
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(format!("{passed} tests"))
}

/// Arguments of a test binary that leave out the tests of these modules.
fn skips(modules: &[&str]) -> Vec<String> {
    let skip = |module: &&str| ["--skip".to_owned(), format!("{module}::")];
    modules.iter().flat_map(skip).collect()
}

/// A built binary of tests.
#[derive(Debug, PartialEq, Eq)]
struct Binary {
    /// The name of its package, which is that of its folder.
    package: String,
    folder: PathBuf,
    target: String,
    path: PathBuf,
}

/// The binaries that cargo tells of, in its messages.
fn binaries(messages: &str) -> impl Iterator<Item = Binary> {
    let objects = messages.lines().filter(|line| line.starts_with('{'));
    objects.filter_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        if message["profile"]["test"] != true {
            return None;
        }
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
        Some(Binary {
            package: folder.file_name()?.to_str()?.to_owned(),
            folder: folder.to_owned(),
            target: message["target"]["name"].as_str()?.to_owned(),
            path: message["executable"].as_str()?.into(),
        })
    })
}

/// Unit, property, vector and interop tests, as `run` says; returns how many there were.
fn tests(name: &str, scope: Scope, run: Run) -> Result<usize> {
    let mut run = run.env("RUST_TEST_THREADS", THREADS).limit(25);
    if scope == Scope::All {
        run = run.env("ADIT_ALL_PEERS", "1");
    }
    match run.quiet(name) {
        Ok(told) => Ok(count_tests(&told)),
        Err(why) => {
            let told = fs::read_to_string(log_path(name)).unwrap_or_default();
            let failed = failures(&told);
            // Without a failed test something else is wrong: a build, a crash, the limit.
            if failed.is_empty() {
                Err(why)
            } else {
                bail!("{failed}\nwhole output in {}", log_path(name).display())
            }
        }
    }
}

/// The failed tests of all binaries, and where and why each panicked.
fn failures(output: &str) -> String {
    let mut shown: Vec<&str> = Vec::new();
    let mut more = 0;
    for line in output.lines() {
        if line.contains("panicked at ") {
            more = PANIC_LINES;
        }
        if more > 0 && !line.is_empty() || line.starts_with("test ") && line.ends_with(" FAILED") {
            shown.push(line);
        }
        more = more.saturating_sub(1);
    }
    if shown.iter().any(|line| line.ends_with(" FAILED")) {
        shown.join("\n")
    } else {
        String::new()
    }
}

/// `cargo doc`, warnings are errors.
pub(crate) fn docs(steps: &mut Steps) {
    steps.step("docs", || {
        let doc = ["doc", "--workspace", "--no-deps"];
        Run::cargo(doc)
            .env("RUSTDOCFLAGS", "-D warnings")
            .limit(20)
            .quiet("docs")?;
        Ok(String::new())
    });
}

/// The fuzz targets are a workspace of their own, which `cargo fmt --all` does not see.
fn fmt_fuzz() -> Result<String> {
    let manifest = root().join("fuzz/Cargo.toml");
    let args = ["fmt", "--check", "--manifest-path"];
    Run::cargo(args).args([&manifest]).quiet("fmt-fuzz")?;
    Ok(String::new())
}

fn deny() -> Result<String> {
    if find_program("cargo-deny").is_none() {
        let get = ["install", "--locked", "cargo-deny"];
        Run::cargo(get)
            .limit(20)
            .quiet("install-cargo-deny")
            .context("cannot install cargo-deny")?;
    }
    let check = ["deny", "check", "--allow", "license-not-encountered"];
    Run::cargo(check)
        .args(["bans", "licenses", "sources"])
        .quiet("cargo-deny")?;
    // The database of advisories is fetched each time; where it cannot be, the line says so.
    match Run::cargo(check).args(["advisories"]).quiet("advisories") {
        Ok(_) => Ok(String::new()),
        Err(why) if format!("{why:#}").contains("failed to fetch advisory database") => {
            Ok("advisories NOT checked: their database cannot be reached".to_owned())
        }
        Err(why) => Err(why),
    }
}

/// The sum of the passed tests over all `test result:` lines.
fn count_tests(output: &str) -> usize {
    let passed = |line: &str| -> Option<usize> {
        let (_, rest) = line.split_once("test result: ")?;
        rest.split_once(". ")?
            .1
            .split_once(" passed")?
            .0
            .parse()
            .ok()
    };
    output.lines().filter_map(passed).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passed_tests_are_summed() {
        let output = "running 2 tests\n\
            test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n\
            test result: FAILED. 40 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(count_tests(output), 42);
    }

    #[test]
    fn failed_tests_are_shown_with_their_reason() {
        let output = "test a ... ok\ntest b ... FAILED\n\n---- b stdout ----\n\n\
            thread 'b' panicked at x.rs:1:2:\nassertion failed: c\n\nfailures:\n    b\n";
        let shown = failures(output);
        assert!(
            shown.starts_with("test b ... FAILED\nthread 'b' panicked"),
            "{shown}"
        );
        assert!(
            shown.contains("assertion failed: c") && !shown.contains("test a"),
            "{shown}"
        );
        assert_eq!(failures("error: could not compile `x`\n"), "");
    }

    #[test]
    fn binaries_of_tests_are_found_in_messages() {
        let artifact = |test: bool, path: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/io/adit-net/Cargo.toml",
                "target":{{"name":"it"}},"profile":{{"test":{test}}},"executable":{path}}}"#
            )
            .replace('\n', "")
        };
        let messages = [
            "   Compiling adit-net v0.1.0".to_owned(),
            artifact(true, r#""/t/it-1""#),
            artifact(false, r#""/t/adit""#),
            artifact(true, "null"),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let found: Vec<_> = binaries(&messages.join("\n")).collect();
        let expected = Binary {
            package: "adit-net".to_owned(),
            folder: "/w/io/adit-net".into(),
            target: "it".to_owned(),
            path: "/t/it-1".into(),
        };
        assert_eq!(found, [expected]);
        assert_eq!(skips(&["cli"]), ["--skip", "cli::"]);
    }

    #[test]
    fn wishes_are_read() {
        let words = |args: &[&str]| Wish::from_args(&args.map_owned());
        assert_eq!(
            words(&[]).unwrap(),
            Wish {
                scope: Scope::Usual,
                install: true
            }
        );
        let all = words(&["--all", "--no-install"]).unwrap();
        assert_eq!(
            all,
            Wish {
                scope: Scope::All,
                install: false
            }
        );
        assert!(words(&["--al"]).is_err());
    }

    trait MapOwned {
        fn map_owned(&self) -> Vec<String>;
    }
    impl MapOwned for &[&str] {
        fn map_owned(&self) -> Vec<String> {
            self.iter().map(|&s| s.to_owned()).collect()
        }
    }
}
