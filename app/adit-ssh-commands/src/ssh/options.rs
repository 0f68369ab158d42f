//! Translates command-line arguments to options of ssh_config(5).

use crate::ssh_config::SshSettings;
use adit_cli::{Failure, FailureCode};

use super::connect::{ConnectRequest, option_line};
use super::{forward_spec, platform};
use crate::args::SshArgs;

/// Returns the connection request for the arguments.
///
/// Fails with a hint if an unsupported option of OpenSSH was given, or if a value is invalid.
pub(super) fn connect_request(typed: &SshArgs) -> Result<ConnectRequest, Failure> {
    if let Some((option, why, instead)) = typed.unsupported.first_used() {
        let failure = Failure::new(
            FailureCode::Usage,
            format!("adit ssh has no {option}: {why}"),
        );
        return Err(match instead {
            "" => failure,
            instead => failure.with_hint(instead),
        });
    }
    // clap requires a destination, except with `-Q`, which was refused above.
    let destination = typed.destination.as_deref().unwrap_or_default();
    let mut asked = ConnectRequest::new(destination, &typed.host_args)?;
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
            more.push(option_line(keyword, &[value])?);
        }
    }
    for (keyword, value, wanted) in [
        ("GatewayPorts", "yes", typed.gateway),
        ("ForwardAgent", "yes", typed.agent),
        ("ForwardAgent", "no", typed.no_agent),
        ("RequestTTY", "no", typed.no_terminal),
        ("RequestTTY", "yes", typed.terminal == 1),
        ("RequestTTY", "force", typed.terminal > 1),
        // With -W, a forward that is silently missing would be of no use.
        ("ExitOnForwardFailure", "yes", typed.stdio.is_some()),
    ] {
        if wanted {
            more.push(option_line(keyword, &[value])?);
        }
    }
    for (keyword, values) in [
        ("LocalForward", &typed.local),
        ("RemoteForward", &typed.remote),
        ("DynamicForward", &typed.dynamic),
    ] {
        for value in values {
            let words = forward_spec::forward_words(keyword, value)?;
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            more.push(option_line(keyword, &words)?);
        }
    }
    asked.prepend_options(more);
    Ok(asked)
}

/// Returns the command to run: the arguments joined by spaces, or the configured `RemoteCommand`.
pub(super) fn requested_command(typed: &SshArgs, settings: &SshSettings) -> Option<Vec<u8>> {
    if typed.command.is_empty() {
        return settings.remote_command.clone().map(String::into_bytes);
    }
    let words = typed.command.iter();
    let words: Vec<Vec<u8>> = words.map(|word| platform::to_bytes(word)).collect();
    Some(words.join(&b' '))
}
