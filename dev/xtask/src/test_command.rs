//! `test`: the checks of CI, in the order that shows a fault soonest.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::command::{CommandRun, find_program, root};
use crate::install::{self, InstallScope};
use crate::source_files::file_stems;
use crate::steps::{LaneStep, StepRunner};
use crate::test_run::{self, PassedTests};
use crate::{
    book_build, dependants, dist, doc_links, documented, feature_check, fuzz, license_texts,
    oldest_rust, package, packages, public_api, release, release_check, supply_chain, tidy,
    windows, workflows,
};

/// Number of tests that run at the same time. Those of the binary mostly wait for other processes:
/// on two processors they need 478 s with four threads and 322 s with eight.
const THREADS: &str = "8";
/// The implementations measured to check that every suite works: one rival for each, since all of
/// them take four minutes.
const SMOKE: &str = "adit,sing-box,OpenSSH,kcp-go";
/// The suite that has no rivals, so that its documented command measures all of it; it takes one and a half minutes.
const WITHOUT_RIVALS: &str = "fleet";
/// The tests of the workspace. With the feature that is off by default, which a build of its own would take minutes for:
/// the program of users is tested without it by the steps of the release.
const WORKSPACE: [&str; 4] = ["test", "--workspace", "--features", "adit/otlp"];
/// Duration of each fuzz target, in seconds: enough for its corpus and some thousand inputs. The nightly job has more time.
const FUZZ_SECONDS: u32 = 2;

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
            "broken",
            "browser",
            "cli",
            "clock",
            "completion",
            "convert",
            "crowd",
            "dashboard",
            "dns_leak",
            "doctor",
            "doctor_schemes",
            "documented",
            "documented_commands",
            "file_settings",
            "fleet_chaos",
            "group",
            "group_link",
            "health",
            "help_pages",
            "interrupt",
            "json",
            "kcp_link",
            "kept_files",
            "legacy",
            "listen_forms",
            "manager",
            "names",
            "observe",
            "online",
            "plugin",
            "probes",
            "probes_apart",
            "process",
            "profiles",
            "proxied",
            "reload",
            "replay",
            "rule_sets",
            "selections",
            "service",
            "ssh_client",
            "ssh_copy",
            "ssh_hop_fails",
            "ssh_server",
            "ssr",
            "ssr_hostile",
            "system_proxy",
            "top",
            "upgrade",
            "user_commands",
            "users",
            "walkthrough",
        ],
    ),
];

/// The tests that need a store server, and that run again with Valkey: crates, and the beginnings of the tests' names.
const VALKEY: [(&str, &[&str]); 2] = [
    ("adit-fleet", &[]),
    ("adit", &["fleet::", "fleet_commands::"]),
];

/// The arguments of `test`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TestOptions {
    scope: InstallScope,
    install: bool,
}

impl TestOptions {
    pub(crate) fn from_args(args: &[String]) -> Result<Self> {
        let mut wish = Self {
            scope: InstallScope::Default,
            install: true,
        };
        for arg in args {
            match arg.as_str() {
                "--all" => wish.scope = InstallScope::All,
                "--no-install" => wish.install = false,
                other => bail!("`test` takes `--all` and `--no-install`, not `{other}`"),
            }
        }
        Ok(wish)
    }
}

/// Runs all checks. Returns true if everything passed.
pub(crate) fn run_all(steps: &mut StepRunner, wish: TestOptions) -> bool {
    if wish.install {
        install::install_all(steps, wish.scope);
    }
    steps.run_step("fmt", || {
        CommandRun::cargo(["fmt", "--all", "--check"]).run_captured("fmt")?;
        check_separate_format()
    });
    steps.run_step("tidy", tidy::check_tree);
    steps.run_step("workflows", workflows::check_workflows);
    // Both lanes compile one crate after the other for most of their time; the second has build folders of its own.
    let mut checks = vec![
        LaneStep::new("clippy", run_clippy),
        LaneStep::new("public api", || public_api::check_api(false)),
        LaneStep::new("features", feature_check::check_features),
    ];
    checks.extend(doc_steps());
    let others = vec![
        LaneStep::new("licences", supply_chain::check_supply_chain),
        LaneStep::new("licence texts", license_texts::check_texts),
        LaneStep::new("packages", packages::check_packages),
        LaneStep::new("msrv", oldest_rust::check_msrv),
        LaneStep::new("no_std", oldest_rust::check_no_std),
        LaneStep::new("windows", windows::check_adit),
        LaneStep::new("fuzz build", fuzz::build_all),
    ];
    steps.run_lanes(vec![checks, others]);
    steps.run_step("crates on russh", dependants::check_dependants);
    if wish.scope == InstallScope::All {
        steps.run_step("cargo-deny", run_cargo_deny);
    }
    // The time limit of the tests is not that of their compilation, which takes longer than they do on a slow machine.
    steps.run_step("tests build", || {
        test_binaries().map(|built| format!("{} binaries", built.len()))
    });
    let scope = wish.scope;
    let tests = vec![
        LaneStep::new("tests", move || run_workspace_tests(scope)),
        LaneStep::new("tests, portable", move || run_portable_tests(scope)),
        LaneStep::new("tests, Valkey", move || run_valkey_tests(scope)),
    ];
    // The tests use two thirds of two processors: the builds of the steps below have the rest.
    let builds = vec![
        LaneStep::new("release build", release_check::build_ahead),
        LaneStep::new("dist build", dist::build_ahead),
    ];
    steps.run_lanes(vec![tests, builds]);
    // What these build is up to date for the steps after them.
    documented::run(steps, wish.scope);
    steps.run_step("release", release_check::check_release);
    match dist::DistOptions::of_host() {
        Ok(wish) => dist::run(steps, &wish),
        Err(why) => {
            steps.run_step("dist", || Err(why));
        }
    }
    steps.run_step("packages of systems", package::check_packages);
    steps.run_step("instructions", check_instructions);
    steps.run_step("bench smoke", || {
        let suites = suites_with_rivals()?.join(",");
        release_check::bench_command(["--smoke", "--only", SMOKE, "--suite", &suites])?
            .with_limit(10)
            .run_captured("bench")?;
        Ok("every suite ran with tiny amounts; its figures mean nothing".to_owned())
    });
    fuzz::run(steps, &fuzz::FuzzOptions::all_targets(FUZZ_SECONDS));
    let passed = steps.print_summary();
    // For `cargo xtask release`.
    if passed && let Err(why) = release::record_passed_tests() {
        eprintln!("warning: cannot record that the tests passed: {why:#}");
    }
    passed
}

fn run_clippy() -> Result<String> {
    let lint = [
        "clippy",
        "--workspace",
        "--features",
        "adit/otlp",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    CommandRun::cargo(lint)
        .with_limit(20)
        .run_captured("clippy")?;
    Ok(String::new())
}

/// Returns the suites of the benchmarks, each of which has a page, without those that a documented command has run in
/// full before.
fn suites_with_rivals() -> Result<Vec<String>> {
    let mut suites = file_stems(&root().join("docs/benchmarks"), "md")?;
    let count = suites.len();
    suites.retain(|suite| suite != WITHOUT_RIVALS);
    ensure!(
        suites.len() + 1 == count,
        "no page of the suite {WITHOUT_RIVALS}"
    );
    Ok(suites)
}

/// Compares the cost of hot loops with the committed counts.
fn check_instructions() -> Result<String> {
    let told = release_check::bench_command(["--instructions"])?
        .with_limit(30)
        .run_captured("instructions")?;
    Ok(told.lines().last().unwrap_or_default().to_owned())
}

/// Runs the tests of all crates.
fn run_workspace_tests(scope: InstallScope) -> Result<String> {
    // Interop tests mostly wait for other processes.
    let all = || CommandRun::cargo(WORKSPACE).args(["--no-fail-fast"]);
    let alone = |names: &[String]| all().args(["--", "--exact"]).args(names);
    let passed = test_run::run_tests(
        "tests",
        || prepare_test_run(all(), scope),
        |names| prepare_test_run(alone(names), scope),
    )?;
    let left_out = match scope {
        InstallScope::Default => " (shadowsocks-rust as a peer: with --all)",
        InstallScope::All => "",
    };
    Ok(format!("{passed}{left_out}"))
}

/// Runs the tests again without the fast paths: those of the crates that have one, and of the
/// crates that carry bytes above them.
fn run_portable_tests(scope: InstallScope) -> Result<String> {
    let binaries = test_binaries()?;
    let (mut passed, mut failed) = (PassedTests::default(), Vec::new());
    for (name, _) in PORTABLE {
        ensure!(
            binaries.iter().any(|binary| binary.package == *name),
            "no tests of {name}"
        );
    }
    for binary in &binaries {
        let Some((_, spared)) = PORTABLE.iter().find(|(name, _)| *name == binary.package) else {
            continue;
        };
        let with = |args: Vec<String>| {
            let run = CommandRun::new(&binary.path, args)
                .in_folder(&binary.folder)
                .env("CARGO_MANIFEST_DIR", &binary.folder)
                .env("ADIT_IO", "portable")
                .env("ADIT_CPU", "portable");
            prepare_test_run(run, scope)
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
        match test_run::run_tests(&log, || with(skip_args(spared)), alone) {
            Ok(one) => passed.merge(one),
            Err(why) => failed.push(format!("{why:#}")),
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(passed.to_string())
}

/// Returns the test binaries of the workspace, as the step `tests` has built them: for other packages, cargo would choose
/// other features and build most of them again.
fn test_binaries() -> Result<Vec<TestBinary>> {
    let told = CommandRun::cargo(WORKSPACE)
        .args(["--no-run", "--message-format=json-render-diagnostics"])
        .with_limit(50)
        .run_captured("tests-built")?;
    let found: Vec<_> = parse_binaries(&told).collect();
    // Cargo leaves out tests of a feature that is off without a word.
    ensure!(
        found.iter().any(|one| one.target == "otlp"),
        "the tests of the export over OTLP were not built"
    );
    Ok(found)
}

/// Runs the tests of fleets again, with Valkey as the store server.
fn run_valkey_tests(scope: InstallScope) -> Result<String> {
    let binaries = test_binaries()?;
    let mut passed = PassedTests::default();
    for (package, modules) in VALKEY {
        let is_wanted = |binary: &&TestBinary| binary.package == package && binary.target == "it";
        let binary = binaries.iter().find(is_wanted);
        let binary = binary.with_context(|| format!("no tests of {package}"))?;
        let with = |args: &[String]| {
            let run = CommandRun::new(&binary.path, args)
                .in_folder(&binary.folder)
                .env("CARGO_MANIFEST_DIR", &binary.folder)
                .env("ADIT_STORE_SERVER", install::valkey_program());
            prepare_test_run(run, scope)
        };
        let filters: Vec<_> = modules.iter().map(|&name| name.to_owned()).collect();
        let exact = |names: &[String]| [&["--exact".to_owned()], names].concat();
        let one = test_run::run_tests(
            &format!("valkey-{package}"),
            || with(&filters),
            |names| with(&exact(names)),
        )?;
        passed.merge(one);
    }
    Ok(passed.to_string())
}

/// Applies the settings of all test runs.
fn prepare_test_run(run: CommandRun, scope: InstallScope) -> CommandRun {
    let run = run.env("RUST_TEST_THREADS", THREADS).with_limit(25);
    match scope {
        InstallScope::All => run.env("ADIT_ALL_PEERS", "1"),
        _ => run,
    }
}

/// Returns the arguments of a test binary that skip the tests of these modules.
fn skip_args(modules: &[&str]) -> Vec<String> {
    let skip = |module: &&str| ["--skip".to_owned(), format!("{module}::")];
    modules.iter().flat_map(skip).collect()
}

/// A built test binary.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TestBinary {
    /// Name of its package, which is that of its folder.
    pub(crate) package: String,
    pub(crate) folder: PathBuf,
    pub(crate) target: String,
    pub(crate) path: PathBuf,
}

/// Returns the binaries that cargo reports in its messages.
pub(crate) fn parse_binaries(messages: &str) -> impl Iterator<Item = TestBinary> {
    let objects = messages.lines().filter(|line| line.starts_with('{'));
    objects.filter_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        if message["profile"]["test"] != true {
            return None;
        }
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
        Some(TestBinary {
            package: folder.file_name()?.to_str()?.to_owned(),
            folder: folder.to_owned(),
            target: message["target"]["name"].as_str()?.to_owned(),
            path: message["executable"].as_str()?.into(),
        })
    })
}

/// Runs `cargo doc` without warnings, the link check of all documents, and the build of the book.
pub(crate) fn check_docs(steps: &mut StepRunner) {
    steps.run_lanes(vec![doc_steps().into()]);
}

fn doc_steps() -> [LaneStep; 3] {
    // With private items: their links name modules and functions as they were called, and only rustdoc notices when one
    // is renamed. Links of public items to private ones are errors in the step `public api`.
    let docs = || {
        CommandRun::cargo(["doc", "--workspace", "--no-deps"])
            .args(["--document-private-items"])
            .env(
                "RUSTDOCFLAGS",
                "-D warnings -A rustdoc::private_intra_doc_links",
            )
            .with_limit(20)
            .run_captured("docs")?;
        Ok(String::new())
    };
    [
        LaneStep::new("docs", docs),
        LaneStep::new("links", doc_links::check_links),
        LaneStep::new("book", book_build::build_book),
    ]
}

/// Checks the format of what is outside of the workspace, where `cargo fmt --all` does not see it.
fn check_separate_format() -> Result<String> {
    for folder in [
        "fuzz",
        "compat/russh",
        "compat/russh-0.62",
        dependants::FOLDER,
    ] {
        let manifest = root().join(folder).join("Cargo.toml");
        let args = ["fmt", "--check", "--manifest-path"];
        CommandRun::cargo(args)
            .args([&manifest])
            .run_captured("fmt-separate")?;
    }
    Ok(String::new())
}

fn run_cargo_deny() -> Result<String> {
    if find_program("cargo-deny").is_none() {
        let get = ["install", "--locked", "cargo-deny"];
        CommandRun::cargo(get)
            .with_limit(20)
            .run_captured("install-cargo-deny")
            .context("cannot install cargo-deny with cargo")?;
    }
    let check = ["deny", "check", "--allow", "license-not-encountered"];
    CommandRun::cargo(check)
        .args(["bans", "licenses", "sources"])
        .run_captured("cargo-deny")?;
    // The advisory database is downloaded each time; if it is unreachable, the step's line says so.
    match CommandRun::cargo(check)
        .args(["advisories"])
        .run_captured("advisories")
    {
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
        let found: Vec<_> = parse_binaries(&messages.join("\n")).collect();
        let expected = TestBinary {
            package: "adit-net".to_owned(),
            folder: "/w/io/adit-net".into(),
            target: "it".to_owned(),
            path: "/t/it-1".into(),
        };
        assert_eq!(found, [expected]);
        assert_eq!(skip_args(&["cli"]), ["--skip", "cli::"]);
    }

    #[test]
    fn wishes_are_read() {
        let words = |args: &[&str]| TestOptions::from_args(&args.map_owned());
        assert_eq!(
            words(&[]).unwrap(),
            TestOptions {
                scope: InstallScope::Default,
                install: true
            }
        );
        let all = words(&["--all", "--no-install"]).unwrap();
        assert_eq!(
            all,
            TestOptions {
                scope: InstallScope::All,
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
