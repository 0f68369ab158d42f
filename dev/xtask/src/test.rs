//! `test`: the checks of CI, in the order that shows a fault soonest.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::install::{self, Scope};
use crate::run::{Run, find_program, root};
use crate::steps::Steps;
use crate::suite::{self, Passed};
use crate::{book, fuzz, links, packages, release, supply, tidy};

/// Number of tests that run at the same time. Those of the binary mostly wait for other processes:
/// on two processors they need 478 s with four threads and 322 s with eight.
const THREADS: &str = "8";
/// The implementations measured to check that every suite works: one rival for each, since all of
/// them take four minutes.
const SMOKE: &str = "adit,sing-box,OpenSSH,kcp-go";
/// Duration of each fuzz target, in seconds.
const FUZZ_SECONDS: u32 = 4;

/// Crates with a fast path, and crates that carry bytes above one; for each, the test modules that
/// carry none, or that wait for most of their time.
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

/// The arguments of `test`.
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
                other => bail!("`test` takes `--all` and `--no-install`, not `{other}`"),
            }
        }
        Ok(wish)
    }
}

/// Runs all checks. Returns true if everything passed.
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
    steps.step("packages", packages::check);
    if wish.scope == Scope::All {
        steps.step("cargo-deny", deny);
    }
    steps.step("tests", || {
        // Interop tests mostly wait for other processes.
        let all = || Run::cargo(["test", "--workspace", "--no-fail-fast"]);
        let alone = |names: &[String]| all().args(["--", "--exact"]).args(names);
        let passed = suite::run(
            "tests",
            || prepare(all(), wish.scope),
            |names| prepare(alone(names), wish.scope),
        )?;
        let left_out = match wish.scope {
            Scope::Usual => " (shadowsocks-rust as a peer: with --all)",
            Scope::All => "",
        };
        Ok(format!("{passed}{left_out}"))
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

/// Compares the cost of hot loops with the committed counts.
fn instructions() -> Result<String> {
    let told = release::bench(["--instructions"])?
        .limit(30)
        .quiet("instructions")?;
    Ok(told.lines().last().unwrap_or_default().to_owned())
}

/// Runs the tests again without the fast paths: those of the crates that have one, and of the
/// crates that carry bytes above them.
fn portable(scope: Scope) -> Result<String> {
    // The binaries of the previous step: for other packages, cargo would choose other features and
    // build most of them again.
    let list = [
        "test",
        "--workspace",
        "--no-run",
        "--message-format=json-render-diagnostics",
    ];
    let told = Run::cargo(list).limit(25).quiet("tests-built")?;
    let (mut passed, mut failed) = (Passed::default(), Vec::new());
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
        let with = |args: Vec<String>| {
            let run = Run::new(&binary.path, args)
                .dir(&binary.folder)
                .env("CARGO_MANIFEST_DIR", &binary.folder)
                .env("ADIT_IO", "portable")
                .env("ADIT_CPU", "portable");
            prepare(run, scope)
        };
        let alone = |names: &[String]| {
            with(
                ["--exact".to_owned()]
                    .iter()
                    .chain(names)
                    .cloned()
                    .collect(),
            )
        };
        let log = format!("portable-{}-{}", binary.package, binary.target);
        match suite::run(&log, || with(skips(spared)), alone) {
            Ok(one) => passed.add(one),
            Err(why) => failed.push(format!("{why:#}")),
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(passed.to_string())
}

/// Applies the settings of all test runs.
fn prepare(run: Run, scope: Scope) -> Run {
    let run = run.env("RUST_TEST_THREADS", THREADS).limit(25);
    match scope {
        Scope::All => run.env("ADIT_ALL_PEERS", "1"),
        _ => run,
    }
}

/// Returns the arguments of a test binary that skip the tests of these modules.
fn skips(modules: &[&str]) -> Vec<String> {
    let skip = |module: &&str| ["--skip".to_owned(), format!("{module}::")];
    modules.iter().flat_map(skip).collect()
}

/// A built test binary.
#[derive(Debug, PartialEq, Eq)]
struct Binary {
    /// Name of its package, which is that of its folder.
    package: String,
    folder: PathBuf,
    target: String,
    path: PathBuf,
}

/// Returns the binaries that cargo reports in its messages.
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

/// Runs `cargo doc` without warnings, the link check of all documents, and the build of the book.
pub(crate) fn docs(steps: &mut Steps) {
    steps.step("docs", || {
        let doc = ["doc", "--workspace", "--no-deps"];
        Run::cargo(doc)
            .env("RUSTDOCFLAGS", "-D warnings")
            .limit(20)
            .quiet("docs")?;
        Ok(String::new())
    });
    steps.step("links", links::check);
    steps.step("book", book::build);
}

/// The fuzz targets are a separate workspace, which `cargo fmt --all` does not include.
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
            .context("cannot install cargo-deny with cargo")?;
    }
    let check = ["deny", "check", "--allow", "license-not-encountered"];
    Run::cargo(check)
        .args(["bans", "licenses", "sources"])
        .quiet("cargo-deny")?;
    // The advisory database is downloaded each time; if it is unreachable, the step's line says so.
    match Run::cargo(check).args(["advisories"]).quiet("advisories") {
        Ok(_) => Ok(String::new()),
        Err(why) if format!("{why:#}").contains("failed to fetch advisory database") => {
            Ok("advisories NOT checked: their database cannot be reached".to_owned())
        }
        Err(why) => Err(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
