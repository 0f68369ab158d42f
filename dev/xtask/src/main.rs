//! The command of developers and of CI: `cargo xtask help`.
//!
//! The same command runs on a developer's machine and in CI. Each step prints one line with its
//! duration in seconds; its output is shown only if it fails.

mod book_build;
mod command;
mod dependants;
mod dist;
mod doc_links;
mod documented;
mod emulated_tests;
mod feature_check;
mod fuzz;
mod install;
mod license_expression;
mod license_texts;
mod oldest_rust;
mod package;
mod package_graph;
mod packages;
mod privilege;
mod public_api;
mod release;
mod release_check;
mod source_files;
mod steps;
mod supply_chain;
mod test_command;
mod test_run;
mod tidy;
mod toolchain;
mod windows;
mod workflows;

use std::process::ExitCode;

use anyhow::{Result, bail};

use command::CommandRun;
use steps::StepRunner;

const HELP: &str = "\
cargo xtask COMMAND

  test [--all] [--no-install]   run everything that CI checks: peers, fmt, clippy, tidy, workflows,
                                licences, the public API, the oldest Rust, cores without std,
                                builds with one feature each, Windows (in wine), crates that need
                                russh, tests, the commands of the documentation for this
                                repository, the release binary, the static binary in an empty
                                root, packages of other systems, instruction counts of hot loops,
                                docs, links, the book, a tiny benchmark, and a short run of every
                                fuzz target
                                --all: also shadowsocks-rust as a peer, cargo-deny, `emulated`, and
                                documented commands that install rivals or build other archives
                                --no-install: the peers are installed already
  install [--all|--rivals]      install what the tests need, and run nothing else
                                --rivals: also the programs that `bench` measures against adit
  package --check               build packages of the archive or the release binary of this machine,
                                and check all of them
  package [FORMAT...]           make packages in target/package from the archives in target/dist: deb,
                                rpm, arch, homebrew, nix, scoop, winget, openwrt, container,
                                installer (default: all)
                                --dist DIR: the folder of the archives
                                --release-key FILE: the public key of the installer (default:
                                packaging/release-key.pub)
  documented [--all]            run only the commands of the documentation for this repository
  dependants                    test only the crates that need russh, on adit-russh
  tidy                          check the rules that lints cannot: dependencies between rings,
                                module cycles, module docs, purity of proto, unsafe, file sizes,
                                paths
  api [--bless]                 compare the public API of each library with its snapshot in api/
                                --bless: write the snapshots
  msrv                          check all libraries and adit with the oldest Rust they promise
  no-std                        check the cores that need no standard library without one
  features                      check `adit` with each of its features alone, and what such a
                                build says about the others
  dist [--run] [--twice] [--all|TARGET...]
                                build archives of the program with its pages, completions,
                                licences and list of crates in target/dist (default: the static
                                binary for this processor); installs what it needs
                                --run: and run each, in an empty root or in wine: self-test, errors,
                                transfers, the SSH client
                                --twice: and build each again, and compare the bytes
  dist --check [--all|TARGET...]
                                compile adit for targets without an archive (--all: for all)
  emulated                      run the tests of vector code for 64-bit ARM in an emulator, with and
                                without cryptographic instructions
  windows                       check adit for Windows, and run the tests of portable libraries and
                                of adit-net in wine
  licenses                      write the licences of all crates in adit to
                                THIRD-PARTY-LICENSES.txt, and check them and their number
  fuzz [--seconds N] [TARGET]   run fuzz targets (default: all of them, 60 s each)
  release VERSION [--dry-run]   check that the tree can be released, set its version, commit and tag
                                --dry-run: change nothing
                                --tagged: check the release that the current commit is tagged as
                                --notes: print the section of the changelog
  workflows                     check the workflows of CI with actionlint
  bench ...                     run adit-bench in the release profile, with these arguments
                                --instructions: count instructions and allocations of hot
                                loops instead (--bless: and write the counts)
  link ...                      start a slow, lossy link between two network namespaces, until
                                Ctrl-C; needs root (see `cargo xtask link --help`)
  docs                          build the docs of all crates without warnings, check the links of
                                all documents, and build the book in target/book
  links                         check the links of all documents, and the error index's messages
  book                          build only the book
  help                          show this text
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run_command(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("error: {why:#}\n\nhint: `cargo xtask help`");
            ExitCode::from(2)
        }
    }
}

/// Runs the command. Returns true if all steps passed; an error is a wrong use of the command.
fn run_command(args: &[String]) -> Result<bool> {
    let (command, rest) = match args.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", args),
    };
    match command {
        "test" => {
            let wish = test_command::TestOptions::from_args(rest)?;
            Ok(test_command::run_all(&mut StepRunner::default(), wish))
        }
        "install" => {
            let mut steps = StepRunner::default();
            match rest {
                [] => install::install_all(&mut steps, install::InstallScope::Default),
                [all] if all == "--all" => {
                    install::install_all(&mut steps, install::InstallScope::All);
                }
                [rivals] if rivals == "--rivals" => install::install_rivals(&mut steps),
                _ => bail!("`install` takes `--all` or `--rivals`, nothing else"),
            }
            Ok(steps.print_summary())
        }
        "package" if rest == ["--check"] => {
            let check = package::check_packages;
            Ok(StepRunner::default().run_step("packages of systems", check))
        }
        "package" => {
            let options = package::PackageOptions::from_args(rest)?;
            let mut steps = StepRunner::default();
            package::build_packages(&mut steps, &options)?;
            Ok(steps.print_summary())
        }
        "documented" => {
            let scope = match rest {
                [] => install::InstallScope::Default,
                [all] if all == "--all" => install::InstallScope::All,
                _ => bail!("`documented` takes `--all`, nothing else"),
            };
            let mut steps = StepRunner::default();
            documented::run(&mut steps, scope);
            Ok(steps.print_summary())
        }
        "dependants" => {
            ensure_no_args(command, rest)?;
            Ok(StepRunner::default().run_step("crates on russh", dependants::check_dependants))
        }
        "tidy" => {
            ensure_no_args(command, rest)?;
            let mut steps = StepRunner::default();
            steps.run_step("tidy", tidy::check_tree);
            Ok(steps.print_summary())
        }
        "api" => {
            let bless = match rest {
                [] => false,
                [bless] if bless == "--bless" => true,
                _ => bail!("`api` takes `--bless`, nothing else"),
            };
            Ok(StepRunner::default().run_step("public api", || public_api::check_api(bless)))
        }
        "msrv" => {
            ensure_no_args(command, rest)?;
            Ok(StepRunner::default().run_step("msrv", oldest_rust::check_msrv))
        }
        "no-std" => {
            ensure_no_args(command, rest)?;
            Ok(StepRunner::default().run_step("no_std", oldest_rust::check_no_std))
        }
        "features" => {
            ensure_no_args(command, rest)?;
            Ok(StepRunner::default().run_step("features", feature_check::check_features))
        }
        "dist" => {
            let wish = dist::DistOptions::from_args(rest)?;
            let mut steps = StepRunner::default();
            dist::run(&mut steps, &wish);
            Ok(steps.print_summary())
        }
        "emulated" => {
            ensure_no_args(command, rest)?;
            let test = emulated_tests::run_emulated_tests;
            Ok(StepRunner::default().run_step("tests, emulated", test))
        }
        "windows" => {
            ensure_no_args(command, rest)?;
            let mut steps = StepRunner::default();
            windows::run_steps(&mut steps);
            Ok(steps.print_summary())
        }
        "licenses" => {
            ensure_no_args(command, rest)?;
            let mut steps = StepRunner::default();
            steps.run_step("licence texts", license_texts::write_texts);
            steps.run_step("licences", supply_chain::check_supply_chain);
            Ok(steps.print_summary())
        }
        "fuzz" => {
            let wish = fuzz::FuzzOptions::from_args(rest)?;
            let mut steps = StepRunner::default();
            fuzz::run(&mut steps, &wish);
            Ok(steps.print_summary())
        }
        "release" => release::run(&release::ReleaseOptions::from_args(rest)?),
        "workflows" => {
            ensure_no_args(command, rest)?;
            Ok(StepRunner::default().run_step("workflows", workflows::check_workflows))
        }
        "bench" => release_check::bench_command(rest)?.run_inherited(),
        "link" => {
            let run = ["run", "--quiet", "--release", "-p", "adit-link", "--"];
            CommandRun::cargo(run).args(rest).run_inherited()
        }
        "docs" => {
            ensure_no_args(command, rest)?;
            let mut steps = StepRunner::default();
            test_command::check_docs(&mut steps);
            Ok(steps.print_summary())
        }
        "links" => {
            ensure_no_args(command, rest)?;
            Ok(StepRunner::default().run_step("links", doc_links::check_links))
        }
        "book" => {
            ensure_no_args(command, rest)?;
            Ok(StepRunner::default().run_step("book", book_build::build_book))
        }
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(true)
        }
        other => bail!("unknown command `{other}`"),
    }
}

/// Returns true if the help lists the command.
fn has_command(name: &str) -> bool {
    let names = HELP.lines().filter_map(|line| line.strip_prefix("  "));
    let mut names = names.filter_map(|line| line.split(' ').next());
    names.any(|known| !known.is_empty() && known == name)
}

fn ensure_no_args(command: &str, rest: &[String]) -> Result<()> {
    match rest.first() {
        Some(extra) => bail!("`{command}` takes no argument, not `{extra}`"),
        None => Ok(()),
    }
}
