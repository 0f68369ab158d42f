//! Which arguments have which values: by what the help calls the value.

use adit_config::schemes;
use adit_crypto::packet::PacketKind;
use adit_obfs::ObfsKind;
use adit_shadowsocks::Method;
use adit_shadowsocksr::ProtocolKind;
use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter};

use super::{files, hosts, lists, urls};
use crate::command::topic;

/// Returns the command in which every argument with known values completes them.
pub(super) fn with_values(command: Command) -> Command {
    let topics = topics(&command);
    below(command, &topics)
}

fn below(command: Command, topics: &[String]) -> Command {
    command
        .mut_args(|arg| match completer(&arg, topics) {
            Some(completer) => arg.add(completer),
            None => arg,
        })
        .mut_subcommands(|command| below(command, topics))
}

/// What the help of an argument calls its value.
pub(super) fn value_name(arg: &Arg) -> String {
    let name = arg.get_value_names().and_then(<[_]>::first);
    name.map_or_else(
        || arg.get_id().as_str().to_uppercase(),
        |name| name.to_string(),
    )
}

fn completer(arg: &Arg, topics: &[String]) -> Option<ArgValueCompleter> {
    if !arg.get_action().takes_values() {
        return None;
    }
    let new = |complete: fn(&str) -> Vec<CompletionCandidate>| {
        Some(ArgValueCompleter::new(move |word: &std::ffi::OsStr| {
            word.to_str().map_or_else(Vec::new, complete)
        }))
    };
    match (value_name(arg).as_str(), arg.get_id().as_str()) {
        ("METHOD", _) => new(|word| beginning(methods(), word)),
        ("URL", _) => new(urls::complete),
        ("CIPHER,…", _) | ("LIST", "ciphers") => new(lists::ciphers),
        ("MAC,…", _) | ("LIST", "macs") => new(lists::macs),
        ("LIST", "kex") => new(lists::kex),
        ("KEY=VALUE", _) => new(lists::ssh_options),
        ("PROTOCOL", _) => new(|word| beginning(ProtocolKind::ALL.map(ProtocolKind::name), word)),
        ("OBFS", _) => new(|word| beginning(ObfsKind::ALL.map(ObfsKind::name), word)),
        ("NAME", "crypt") => new(|word| beginning(PacketKind::ALL.map(PacketKind::name), word)),
        ("NAME", "mode") => new(|word| beginning(words_of("mode"), word)),
        ("NAME", "cc") => new(|word| beginning(words_of("cc"), word)),
        ("[USER@]HOST" | "[USER@]HOST[:PATH]" | "[USER@]HOST[:PORT]", _) => new(hosts::complete),
        ("[USER@]HOST[:PORT],…", _) => new(|word| lists::last(word, hosts::complete)),
        ("SOURCE… TARGET", _) => new(hosts::complete_places),
        ("TOPIC" | "PAGE", id) => {
            let mut words = topics.to_vec();
            if id == "page" {
                words.extend(topic::PAGES.iter().map(|page| page.name.to_owned()));
            }
            Some(ArgValueCompleter::new(move |word: &std::ffi::OsStr| {
                let word = word.to_str().unwrap_or_default();
                beginning(words.iter().map(String::as_str), word)
            }))
        }
        ("FILE" | "PATH", _) => Some(ArgValueCompleter::new(PathCompleter::any())),
        ("DIR", _) => Some(ArgValueCompleter::new(PathCompleter::dir())),
        ("@FILE", _) => new(files::named),
        _ => None,
    }
}

/// The words that begin like what was typed.
pub(super) fn beginning<'a>(
    words: impl IntoIterator<Item = &'a str>,
    typed: &str,
) -> Vec<CompletionCandidate> {
    let words = words.into_iter().filter(|word| word.starts_with(typed));
    words.map(CompletionCandidate::new).collect()
}

/// The methods of Shadowsocks, current ones first.
pub(super) fn methods() -> impl Iterator<Item = &'static str> {
    let of = |legacy| {
        let all = Method::ALL.into_iter();
        all.filter(move |method| method.is_legacy() == legacy)
    };
    of(false).chain(of(true)).map(Method::name)
}

/// The words that a key of a scheme or carrier takes; none if its values are not words.
pub(super) fn words_of(key: &str) -> Vec<&'static str> {
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

/// What `adit help` knows.
fn topics(command: &Command) -> Vec<String> {
    let commands = command.get_subcommands().filter(|one| !one.is_hide_set());
    let commands = commands.map(|command| command.get_name().to_owned());
    let schemes = schemes().iter().map(|scheme| scheme.name.to_owned());
    let all = commands.chain(topic::names()).chain(schemes);
    all.chain(["URLS".to_owned()]).collect()
}
