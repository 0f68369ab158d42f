//! From what was typed to options of ssh_config(5).

use std::os::unix::ffi::{OsStrExt, OsStringExt};

use adit_config::ssh_config::SshSettings;

use super::connect::{Asked, option};
use crate::args::ssh::Ssh;
use crate::report::Failure;

/// The question that was typed.
pub(super) fn asked(typed: &Ssh) -> Result<Asked, Failure> {
    let mut asked = Asked::new(&typed.destination, &typed.way)?;
    if let Some(user) = &typed.login {
        asked.user.get_or_insert_with(|| user.clone());
    }
    if let Some(port) = typed.port {
        asked.port.get_or_insert(port);
    }
    let mut more = Vec::new();
    for (keyword, value) in [("MACs", &typed.mac), ("BindAddress", &typed.bind)] {
        if let Some(value) = value {
            more.push(option(keyword, &[value])?);
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
    Some(std::ffi::OsString::from_vec(words.join(&b' ')).into_vec())
}
