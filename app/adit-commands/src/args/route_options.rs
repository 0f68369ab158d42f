//! The options `-L` and `-F`, which are parsed together because their order matters.
//!
//! The order comes from the parser. Only the parser can tell that `-vF URL` contains two options, and
//! that the word after `-c` is a value.

use std::ffi::OsString;

use adit_config::RouteOption;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

const LISTEN: &str = "listen";
const FORWARD: &str = "forward";

/// Listeners and hops in the order of the command line.
#[derive(Debug, Clone, Default)]
pub(crate) struct RouteOptions(Vec<RouteOption>);

impl RouteOptions {
    pub(crate) fn items(&self) -> &[RouteOption] {
        &self.0
    }

    pub(crate) fn listener_count(&self) -> usize {
        let listens = |item: &&RouteOption| matches!(item, RouteOption::Listen(_));
        self.0.iter().filter(listens).count()
    }
}

/// Returns the words of the command line, with `run` inserted if they begin with `-L` or `-F`: without a command,
/// `adit -L :1080 -F ss://…` means what it does in gost.
pub(crate) fn insert_run(mut words: Vec<OsString>) -> Vec<OsString> {
    let is_route_option = |word: &str| {
        let short = word
            .strip_prefix('-')
            .map(|rest| rest.trim_start_matches('v'));
        let long = |name: &str| {
            let rest = word
                .strip_prefix("--")
                .and_then(|rest| rest.strip_prefix(name));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        };
        short.is_some_and(|rest| rest.starts_with(['L', 'F'])) || long(LISTEN) || long(FORWARD)
    };
    let is_verbose = |word: &str| {
        let letters = word.strip_prefix('-').filter(|rest| !rest.is_empty());
        word == "--verbose" || letters.is_some_and(|rest| rest.bytes().all(|b| b == b'v'))
    };
    let first = words.iter().skip(1).filter_map(|word| word.to_str());
    if first
        .skip_while(|word| is_verbose(word))
        .take(1)
        .any(is_route_option)
    {
        words.insert(1, "run".into());
    }
    words
}

impl Args for RouteOptions {
    fn augment_args(command: Command) -> Command {
        let arg = |name, letter, value| {
            Arg::new(name)
                .short(letter)
                .long(name)
                .value_name(value)
                .action(ArgAction::Append)
        };
        let listen = arg(LISTEN, 'L', "URL|[HOST:]PORT").help(
            "A listener; starts a route, or joins the route before it if that has no hop yet. \
             A port alone is a mixed:// listener on 127.0.0.1",
        );
        let forward = arg(FORWARD, 'F', "URL").help("A hop of the route that the last -L started");
        command.arg(listen).arg(forward)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for RouteOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut placed = Vec::new();
        for (name, make) in [
            (LISTEN, RouteOption::Listen as fn(String) -> RouteOption),
            (FORWARD, RouteOption::Forward),
        ] {
            let urls = matches.get_many::<String>(name).unwrap_or_default();
            let indices = matches.indices_of(name).unwrap_or_default();
            // With one value missing, traffic could bypass the tunnel: it is better not to start.
            if urls.len() != indices.len() {
                let what = format!("--{name}: the order of its values is unknown");
                return Err(Error::raw(ErrorKind::ValueValidation, what));
            }
            placed.extend(indices.zip(urls.cloned().map(make)));
        }
        placed.sort_by_key(|(index, _)| *index);
        Ok(Self(placed.into_iter().map(|(_, item)| item).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::args;

    /// Returns one option with its value, in each spelling that the parser accepts.
    fn spelled(is_listener: bool, verbose: usize, form: u8, url: &str) -> Vec<String> {
        let (letter, name) = if is_listener {
            ('L', LISTEN)
        } else {
            ('F', FORWARD)
        };
        let group = format!("-{}{letter}", "v".repeat(verbose));
        match form {
            0 => vec![format!("{group}{url}")],
            1 => vec![format!("{group}={url}")],
            2 => vec![group, url.to_owned()],
            3 => vec![format!("--{name}={url}")],
            _ => vec![format!("--{name}"), url.to_owned()],
        }
    }

    #[test]
    fn a_route_without_a_command_is_run() {
        let run = |line: &str| {
            let words = insert_run(line.split(' ').map(OsString::from).collect());
            let words: Vec<_> = words.iter().filter_map(|word| word.to_str()).collect();
            words.join(" ")
        };
        for line in [
            "-L :1",
            "-L=:1 -F x",
            "-L1",
            "-v -L 1",
            "-vvL 1",
            "--listen 1",
            "--forward=x",
        ] {
            assert_eq!(run(&format!("adit {line}")), format!("adit run {line}"));
        }
        for line in [
            "adit",
            "adit -v",
            "adit run -L 1",
            "adit -v up",
            "adit --version",
            "adit ssh -L 1:h:1 h",
        ] {
            assert_eq!(run(line), line);
        }
    }

    proptest! {
        #[test]
        fn order_does_not_depend_on_spelling(
            options in prop::collection::vec(
                (any::<bool>(), 0..3_usize, 0..5_u8, "[a-zLF=]{0,3}://[-LFv=]{0,4}"),
                1..8,
            ),
            others in select(vec![vec![], vec!["-v"], vec!["--verbose"], vec!["--admin", "/L"]]),
        ) {
            let mut typed = vec!["adit".to_owned(), "run".to_owned(), "-L".to_owned(), "a".to_owned()];
            let mut wanted = vec![RouteOption::Listen("a".to_owned())];
            for (is_listener, verbose, form, url) in options {
                // `-L=URL` is the URL without the equals sign.
                let url = url.trim_start_matches('=').to_owned();
                typed.extend(spelled(is_listener, verbose, form, &url));
                wanted.push(match is_listener {
                    true => RouteOption::Listen(url),
                    false => RouteOption::Forward(url),
                });
            }
            typed.extend(others.into_iter().map(str::to_owned));
            let args = args::Args::try_parse_from(&typed).unwrap();
            let args::Command::Run(run) = args.command else {
                panic!("{typed:?}");
            };
            prop_assert_eq!(run.plan.ends.items(), &*wanted, "{:?}", typed);
        }
    }
}
