//! The completer of each argument, selected by the name of its value in the help.

use adit_config::schemes;
use adit_crypto::packet::PacketKind;
use adit_obfs::ObfsKind;
use adit_shadowsocks::Method;
use adit_shadowsocksr::ProtocolKind;
use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter};

use super::{algorithms, files, hosts, urls};
use crate::command::help_topic;

/// Returns the command with a completer at every argument whose values are known.
pub(super) fn with_completers(mut command: Command) -> Command {
    // The options of commands are built when they are used.
    command.build();
    let topics = help_topics(&command);
    add_completers(command, &topics)
}

fn add_completers(command: Command, topics: &[String]) -> Command {
    command
        .mut_args(|arg| match find_completer(&arg, topics) {
            Some(completer) => arg.add(completer),
            None => arg,
        })
        .mut_subcommands(|command| add_completers(command, topics))
}

/// Returns the name of an argument's value in the help.
pub(super) fn value_name(arg: &Arg) -> String {
    let name = arg.get_value_names().and_then(<[_]>::first);
    name.map_or_else(
        || arg.get_id().as_str().to_uppercase(),
        |name| name.to_string(),
    )
}

fn find_completer(arg: &Arg, topics: &[String]) -> Option<ArgValueCompleter> {
    if !arg.get_action().takes_values() {
        return None;
    }
    let new = |complete: fn(&str) -> Vec<CompletionCandidate>| {
        Some(ArgValueCompleter::new(move |word: &std::ffi::OsStr| {
            word.to_str().map_or_else(Vec::new, complete)
        }))
    };
    match (value_name(arg).as_str(), arg.get_id().as_str()) {
        ("METHOD", _) => new(|word| candidates_starting_with(method_names(), word)),
        ("URL" | "URL|NAME|FILE|-" | "URL|[HOST:]PORT", _) => new(urls::complete_url),
        #[cfg(feature = "admin")]
        ("FORMAT", "from") => new(|word| {
            let formats = adit_convert::users::UserFormat::names().chain(["auto"]);
            candidates_starting_with(formats, word)
        }),
        // Of a service: a command, or URLs.
        ("ARGS", _) => new(|word| {
            let mut found = candidates_starting_with(["run", "server", "client"], word);
            found.extend(urls::complete_url(word));
            found
        }),
        ("CIPHER,…", _) | ("LIST", "ciphers") => new(algorithms::complete_ciphers),
        ("MAC,…", _) | ("LIST", "macs") => new(algorithms::complete_macs),
        ("LIST", "kex") => new(algorithms::complete_kex),
        ("KEY=VALUE", _) => new(algorithms::complete_ssh_option),
        ("PROTOCOL", _) => {
            new(|word| candidates_starting_with(ProtocolKind::ALL.map(ProtocolKind::name), word))
        }
        ("OBFS", _) => {
            new(|word| candidates_starting_with(ObfsKind::ALL.map(ObfsKind::name), word))
        }
        ("NAME", "crypt") => {
            new(|word| candidates_starting_with(PacketKind::ALL.map(PacketKind::name), word))
        }
        ("NAME", "mode") => new(|word| candidates_starting_with(param_words("mode"), word)),
        ("NAME", "cc") => new(|word| candidates_starting_with(param_words("cc"), word)),
        ("[USER@]HOST" | "[USER@]HOST[:PATH]" | "[USER@]HOST[:PORT]", _) => {
            new(hosts::complete_host)
        }
        ("[USER@]HOST[:PORT],…", _) => {
            new(|word| algorithms::complete_last(word, hosts::complete_host))
        }
        ("SOURCE… TARGET", _) => new(hosts::complete_scp_path),
        ("TOPIC" | "PAGE", id) => {
            let mut words = topics.to_vec();
            if id == "page" {
                words.extend(help_topic::PAGES.iter().map(|page| page.name.to_owned()));
            }
            Some(ArgValueCompleter::new(move |word: &std::ffi::OsStr| {
                let word = word.to_str().unwrap_or_default();
                candidates_starting_with(words.iter().map(String::as_str), word)
            }))
        }
        ("FILE" | "PATH", _) => Some(ArgValueCompleter::new(PathCompleter::any())),
        ("DIR", _) => Some(ArgValueCompleter::new(PathCompleter::dir())),
        ("@FILE", _) => new(files::complete_at_file),
        _ => None,
    }
}

/// Returns the words that start with `typed`.
pub(super) fn candidates_starting_with<'a>(
    words: impl IntoIterator<Item = &'a str>,
    typed: &str,
) -> Vec<CompletionCandidate> {
    let words = words.into_iter().filter(|word| word.starts_with(typed));
    words.map(CompletionCandidate::new).collect()
}

/// Returns the names of the Shadowsocks methods, current methods first.
pub(super) fn method_names() -> impl Iterator<Item = &'static str> {
    let of = |legacy| {
        let all = Method::ALL.into_iter();
        all.filter(move |method| method.is_legacy() == legacy)
    };
    of(false).chain(of(true)).map(Method::name)
}

/// Returns the words that a parameter of a scheme or carrier accepts; empty if its values are not
/// words.
pub(super) fn param_words(key: &str) -> Vec<&'static str> {
    let schemes = schemes().iter().flat_map(|scheme| {
        let carried = scheme.carriers.iter().flat_map(|carrier| carrier.params);
        scheme.params.iter().chain(carried)
    });
    let mut named = schemes.filter(|param| param.setting.is_named(key));
    let kind = named.next().map_or("", |param| param.setting.type_name());
    let is_word = |word: &&str| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
        !word.is_empty() && word.chars().all(plain)
    };
    let words: Vec<&str> = kind.split('|').collect();
    match words.len() > 1 && words.iter().all(is_word) {
        true => words,
        false => Vec::new(),
    }
}

/// Returns the topics of `adit help`.
fn help_topics(command: &Command) -> Vec<String> {
    let commands = command.get_subcommands().filter(|one| !one.is_hide_set());
    let commands = commands.map(|command| command.get_name().to_owned());
    let schemes = schemes().iter().map(|scheme| scheme.name.to_owned());
    let all = commands.chain(help_topic::topic_names()).chain(schemes);
    all.chain(["URLS".to_owned()]).collect()
}
