//! From what was typed to options of ssh_config(5).

use std::os::unix::ffi::OsStrExt;

use crate::ssh_config::SshSettings;
use adit_cli::{Code, Failure};

use super::connect::{Asked, option};
use super::spec;
use crate::args::Ssh;

/// The question that was typed.
pub(super) fn asked(typed: &Ssh) -> Result<Asked, Failure> {
    if let Some((option, why, instead)) = typed.refused.first() {
        let failure = Failure::new(Code::Usage, format!("adit ssh has no {option}: {why}"));
        return Err(match instead {
            "" => failure,
            instead => failure.hint(instead),
        });
    }
    // There is one, or the arguments were refused.
    let destination = typed.destination.as_deref().unwrap_or_default();
    let mut asked = Asked::new(destination, &typed.way)?;
    if let Some(user) = typed.login.first() {
        asked.user.get_or_insert_with(|| user.clone());
    }
    if let Some(port) = typed.port.first() {
        asked.port.get_or_insert(*port);
    }
    let mut more = Vec::new();
    for (keyword, value) in [
        ("MACs", &typed.mac),
        ("BindAddress", &typed.bind),
        ("EscapeChar", &typed.escape),
    ] {
        if let Some(value) = value {
            more.push(option(keyword, &[value])?);
        }
    }
    for (keyword, value, wanted) in [
        ("GatewayPorts", "yes", typed.gateway),
        ("ForwardAgent", "yes", typed.agent),
        ("ForwardAgent", "no", typed.no_agent),
        ("RequestTTY", "no", typed.no_terminal),
        ("RequestTTY", "yes", typed.terminal == 1),
        ("RequestTTY", "force", typed.terminal > 1),
        // Whoever wants streams alone wants none that is silently missing.
        ("ExitOnForwardFailure", "yes", typed.stdio.is_some()),
    ] {
        if wanted {
            more.push(option(keyword, &[value])?);
        }
    }
    for (keyword, values) in [
        ("LocalForward", &typed.local),
        ("RemoteForward", &typed.remote),
        ("DynamicForward", &typed.dynamic),
    ] {
        for value in values {
            let words = spec::words(keyword, value)?;
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            more.push(option(keyword, &words)?);
        }
    }
    asked.prefer(more);
    Ok(asked)
}

/// What is to be run: the words with blanks between them, or what the configuration says.
pub(super) fn command(typed: &Ssh, settings: &SshSettings) -> Option<Vec<u8>> {
    if typed.command.is_empty() {
        return settings.remote_command.clone().map(String::into_bytes);
    }
    let words: Vec<&[u8]> = typed.command.iter().map(|word| word.as_bytes()).collect();
    Some(words.join(&b' '))
}
