//! `test`: what CI runs, in the order in which a fault shows soonest.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::install::{self, Scope};
use crate::run::{Run, find_program, root};
use crate::steps::Steps;
use crate::suite::{self, Passed};
use crate::{book, dependants, fuzz, links, packages, release, supply, tidy};

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
        fmt_apart()
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
    steps.step("crates on russh", dependants::check);
    if wish.scope == Scope::All {
        steps.step("cargo-deny", deny);
    }
    steps.step("tests", || {
        // Interop tests mostly wait for others.
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

/// What every run of tests gets.
fn prepare(run: Run, scope: Scope) -> Run {
    let run = run.env("RUST_TEST_THREADS", THREADS).limit(25);
    match scope {
        Scope::All => run.env("ADIT_ALL_PEERS", "1"),
        _ => run,
    }
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

/// `cargo doc` without warnings, the links of all documents, and the book.
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

/// What is outside of the workspace, where `cargo fmt --all` does not see it.
fn fmt_apart() -> Result<String> {
    for folder in [
        "fuzz",
        "compat/russh",
        "compat/russh-0.62",
        dependants::FOLDER,
    ] {
        let manifest = root().join(folder).join("Cargo.toml");
        let args = ["fmt", "--check", "--manifest-path"];
        Run::cargo(args).args([&manifest]).quiet("fmt-apart")?;
    }
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
