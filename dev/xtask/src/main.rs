//! The command of developers and of CI: `cargo xtask help`.
//!
//! The same command runs on a developer's machine and in CI. Each step prints one line with its
//! duration in seconds; its output is shown only if it fails.

mod book;
mod fuzz;
mod graph;
mod install;
mod links;
mod packages;
mod release;
mod run;
mod steps;
mod suite;
mod supply;
mod test;
mod tidy;

use std::process::ExitCode;

use anyhow::{Result, bail};

use run::Run;
use steps::Steps;

const HELP: &str = "\
cargo xtask COMMAND

  test [--all] [--no-install]   run everything that CI checks: peers, fmt, clippy, tidy, licences,
                                tests, the release binary, instruction counts of hot loops, docs,
                                links, the book, a tiny benchmark, and a short run of every fuzz
                                target
                                --all: also shadowsocks-rust as a peer, and cargo-deny
                                --no-install: the peers are installed already
  install [--all|--rivals]      install what the tests need, and run nothing else
                                --rivals: also the programs that `bench` measures against adit
  tidy                          check the rules that lints cannot: dependencies between rings,
                                module cycles, module docs, purity of proto, unsafe, file sizes,
                                paths
  fuzz [--seconds N] [TARGET]   run fuzz targets (default: all of them, 60 s each)
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
    match dispatch(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("error: {why:#}\n\nhint: `cargo xtask help`");
            ExitCode::from(2)
        }
    }
}

/// Runs the command. Returns true if all steps passed; an error is a wrong use of the command.
fn dispatch(args: &[String]) -> Result<bool> {
    let (command, rest) = match args.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", args),
    };
    match command {
        "test" => {
            let wish = test::Wish::from_args(rest)?;
            Ok(test::run(&mut Steps::default(), wish))
        }
        "install" => {
            let mut steps = Steps::default();
            match rest {
                [] => install::run(&mut steps, install::Scope::Usual),
                [all] if all == "--all" => install::run(&mut steps, install::Scope::All),
                [rivals] if rivals == "--rivals" => install::rivals(&mut steps),
                _ => bail!("`install` takes `--all` or `--rivals`, nothing else"),
            }
            Ok(steps.finish())
        }
        "tidy" => {
            no_more(command, rest)?;
            let mut steps = Steps::default();
            steps.step("tidy", tidy::check);
            Ok(steps.finish())
        }
        "fuzz" => {
            let wish = fuzz::Wish::from_args(rest)?;
            let mut steps = Steps::default();
            fuzz::run(&mut steps, &wish);
            Ok(steps.finish())
        }
        "bench" => release::bench(rest)?.inherit(),
        "link" => {
            let run = ["run", "--quiet", "--release", "-p", "adit-link", "--"];
            Run::cargo(run).args(rest).inherit()
        }
        "docs" => {
            no_more(command, rest)?;
            let mut steps = Steps::default();
            test::docs(&mut steps);
            Ok(steps.finish())
        }
        "links" => {
            no_more(command, rest)?;
            Ok(Steps::default().step("links", links::check))
        }
        "book" => {
            no_more(command, rest)?;
            Ok(Steps::default().step("book", book::build))
        }
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(true)
        }
        other => bail!("unknown command `{other}`"),
    }
}

fn no_more(command: &str, rest: &[String]) -> Result<()> {
    match rest.first() {
        Some(extra) => bail!("`{command}` takes no argument, not `{extra}`"),
        None => Ok(()),
    }
}
