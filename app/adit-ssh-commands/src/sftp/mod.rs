//! `adit sftp`: commands on remote files.
//!
//! ```text
//! terminal │ pipe │ -b FILE ─▶ input ─▶ words ─▶ command ─▶ interpreter: local, remote ─▶ copy
//! ```

mod command;
mod file_commands;
mod help;
mod input;
mod interpreter;
mod line_words;
mod list;
mod transfers;

use std::path::Path;

use adit_cli::{CommandResult, Failure, FailureCode};

use self::input::CommandInput;
use self::interpreter::Interpreter;
use super::copy::{SftpHost, path_bytes, to_failure};
use super::ssh::connect;
use crate::args::SftpArgs;

/// Runs `adit sftp`.
///
/// # Errors
/// The failure, with its exit code.
pub fn sftp(typed: &SftpArgs) -> CommandResult {
    let (destination, path) = parse_destination(path_bytes(Path::new(&typed.destination)))?;
    let mut input = CommandInput::open(typed.batch.as_deref())?;
    connect::block_on(2, async {
        let host =
            SftpHost::connect_to(&destination, typed.copy_args.port, &typed.host_args).await?;
        let name = host.name.clone();
        let work = async {
            let mut interpreter = Interpreter::new(host, typed).await?;
            if let Some(path) = path
                && interpreter.open_start_path(&path).await?
            {
                return Ok(interpreter.has_failed());
            }
            interpreter.run(&mut input).await
        };
        match work.await {
            Ok(false) => Ok(()),
            Ok(true) => Err(Failure::Exit {
                status: 1,
                why: None,
            }),
            Err(fault) => Err(to_failure(&name, &fault)),
        }
    })
}

/// Splits `[user@]host[:path]` or `sftp://[user@]host[:port][/path]` into destination and path.
fn parse_destination(word: &[u8]) -> Result<(String, Option<Vec<u8>>), Failure> {
    let (destination, path) = match word.strip_prefix(b"sftp://") {
        Some(rest) => {
            let slash = rest.iter().position(|byte| *byte == b'/');
            let (host, path) = rest.split_at(slash.unwrap_or(rest.len()));
            ([b"ssh://", host].concat(), path.strip_prefix(b"/"))
        }
        None => {
            // An IPv6 address is in brackets if a path follows it.
            let behind = word.iter().rposition(|byte| *byte == b']').unwrap_or(0);
            let colons = |part: &[u8]| part.iter().filter(|byte| **byte == b':').count();
            let colon = word
                .iter()
                .skip(behind)
                .position(|byte| *byte == b':')
                .map(|at| at + behind);
            match colon.filter(|_| behind > 0 || colons(word) == 1 || word.contains(&b'/')) {
                Some(at) => {
                    let (host, path) = word.split_at(at);
                    (host.to_vec(), path.strip_prefix(b":"))
                }
                None => (word.to_vec(), None),
            }
        }
    };
    let destination = String::from_utf8(destination)
        .map_err(|_| Failure::new(FailureCode::Usage, "the destination does not name a host"))?;
    let path = path.filter(|path| !path.is_empty());
    Ok((destination, path.map(<[u8]>::to_vec)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations() {
        for (word, host, path) in [
            ("h", "h", None),
            ("u@h:", "u@h", None),
            ("u@h:a b", "u@h", Some("a b")),
            ("h:/a:b", "h", Some("/a:b")),
            ("::1", "::1", None),
            ("u@[::1]:x", "u@[::1]", Some("x")),
            ("u@[::1]", "u@[::1]", None),
            ("sftp://u@h:22/x", "ssh://u@h:22", Some("x")),
            ("sftp://h//x", "ssh://h", Some("/x")),
        ] {
            let read = parse_destination(word.as_bytes()).unwrap();
            let path = path.map(|path| path.as_bytes().to_vec());
            assert_eq!(read, (host.to_owned(), path), "{word}");
        }
    }
}
