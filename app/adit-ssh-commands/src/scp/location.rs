//! Locations of files, local or remote.

use std::ffi::OsStr;
use std::path::PathBuf;

use adit_cli::{Failure, FailureCode};

use crate::copy::{path_bytes, path_from_bytes};

/// A path argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Location {
    /// A local path.
    Local(PathBuf),
    /// A path on a remote host.
    Remote {
        /// `[user@]host` or `ssh://[user@]host[:port]`.
        destination: String,
        /// The path; relative to the user's home.
        path: Vec<u8>,
    },
}

impl Location {
    /// Parses an argument: `[user@]host:path` and `scp://[user@]host[:port][/path]` are remote; a path with a slash
    /// before the first colon is local.
    pub(super) fn parse(word: &OsStr) -> Result<Self, Failure> {
        let bytes = path_bytes(std::path::Path::new(word));
        let (destination, path) = match bytes.strip_prefix(b"scp://") {
            Some(rest) => {
                let slash = rest.iter().position(|byte| *byte == b'/');
                let (host, path) = rest.split_at(slash.unwrap_or(rest.len()));
                let path = path.strip_prefix(b"/").unwrap_or(path);
                ([b"ssh://", host].concat(), path)
            }
            None => match host_separator(bytes) {
                Some(at) => {
                    let (host, path) = bytes.split_at(at);
                    (host.to_vec(), path.strip_prefix(b":").unwrap_or(path))
                }
                None => return Ok(Self::Local(path_from_bytes(bytes))),
            },
        };
        let destination = String::from_utf8(destination).map_err(|_| {
            let what = format!("`{}` does not name a host", word.display());
            Failure::new(FailureCode::Usage, what)
                .with_hint("for a local file, write ./ before its name")
        })?;
        Ok(Self::Remote {
            destination,
            path: path.to_vec(),
        })
    }
}

/// Returns the position of the colon after a host.
fn host_separator(word: &[u8]) -> Option<usize> {
    let mut in_brackets = false;
    for (at, byte) in word.iter().enumerate() {
        match byte {
            b'/' => return None,
            b'[' => in_brackets = true,
            b']' => in_brackets = false,
            // The host cannot be empty.
            b':' if !in_brackets => return (at > 0).then_some(at),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_here_and_what_is_there() {
        let there = |destination: &str, path: &str| Location::Remote {
            destination: destination.to_owned(),
            path: path.as_bytes().to_vec(),
        };
        let here = |path: &str| Location::Local(PathBuf::from(path));
        for (word, place) in [
            ("a", here("a")),
            ("./a:b", here("./a:b")),
            ("/a:b", here("/a:b")),
            (":a", here(":a")),
            ("h:", there("h", "")),
            ("u@h:a b", there("u@h", "a b")),
            ("h:a:b", there("h", "a:b")),
            ("u@[::1]:/x", there("u@[::1]", "/x")),
            ("scp://u@h:22/x/y", there("ssh://u@h:22", "x/y")),
            ("scp://h//x", there("ssh://h", "/x")),
            ("scp://h", there("ssh://h", "")),
        ] {
            assert_eq!(Location::parse(OsStr::new(word)).unwrap(), place, "{word}");
        }
    }
}
