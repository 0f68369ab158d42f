//! The developers' door: `cargo xtask help`.
//!
//! One command does what CI does, at the desk and there. Each step prints one line with its
//! seconds; the output of a step is shown only when it fails.

mod book;
mod dependants;
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

  test [--all] [--no-install]   everything CI checks: peers, fmt, clippy, tidy, licences, crates
                                that need russh, tests, the release binary, instruction counts of hot loops, docs,
                                links, the book, a tiny benchmark, a short run of every
                                fuzz target
                                --all: also shadowsocks-rust as a peer, and cargo-deny
                                --no-install: the peers are there already
  install [--all|--rivals]      only install what the tests need
                                --rivals: also what only `bench` measures beside adit
  dependants                    only the crates that need russh, on adit-russh
  tidy                          the rules that lints cannot see: arrows between rings, circles
                                of modules, module docs, purity of proto, unsafe, file sizes,
                                paths
  fuzz [--seconds N] [TARGET]   run fuzz targets (default 60 s each, all of them)
  bench ...                     adit-bench in the release profile, with these arguments
                                --instructions: count instructions and allocations of hot
                                loops instead (--bless: and commit to the counts)
  link ...                      a slow and lossy link between two network namespaces, until
                                Ctrl-C; needs root (see `cargo xtask link --help`)
  docs                          cargo doc without warnings, the links of all documents, and the
                                book, in target/book
  links                         the links of all documents, and the messages of the error index
  book                          only the book
  help                          this text
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

/// Whether all went well; an error is a wrong use of the command.
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
                _ => bail!("`install` takes only `--all` or `--rivals`"),
            }
            Ok(steps.finish())
        }
        "dependants" => {
            no_more(command, rest)?;
            Ok(Steps::default().step("crates on russh", dependants::check))
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
        other => bail!("no command `{other}`"),
    }
}

fn no_more(command: &str, rest: &[String]) -> Result<()> {
    match rest.first() {
        Some(extra) => bail!("`{command}` takes no argument, got `{extra}`"),
        None => Ok(()),
    }
}
