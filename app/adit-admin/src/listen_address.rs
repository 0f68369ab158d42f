//! Addresses to listen on: a port, or the path of a Unix socket or of a named pipe.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use adit_net::dial::{self, Family};
use adit_wire::{Host, Target};

/// The prefix of the paths of named pipes.
const PIPE: &str = r"\\.\pipe\";

/// An address of the form `HOST:PORT`, `unix:PATH`, a path with `/` or `.sock`, or `\\.\pipe\NAME`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ListenAddress {
    /// A port.
    Port(Target),
    /// A Unix socket, or a named pipe on Windows.
    Path(PathBuf),
}

impl ListenAddress {
    pub(crate) fn parse(text: &str) -> io::Result<Self> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Self::Path(path.into()));
        }
        if let Ok(target) = text.parse() {
            return Ok(Self::Port(target));
        }
        // An address without its port must not become a file.
        if text.contains('/') || text.ends_with(".sock") || text.starts_with(PIPE) {
            return Ok(Self::Path(text.into()));
        }
        let why = match cfg!(windows) {
            true => r"expected HOST:PORT or \\.\pipe\NAME",
            false => "expected HOST:PORT or the path of a Unix socket",
        };
        Err(io::Error::new(io::ErrorKind::InvalidInput, why))
    }
}

/// Resolves the address of a port.
pub(crate) async fn resolve_address(target: &Target) -> io::Result<SocketAddr> {
    match &target.host {
        Host::Ip(ip) => Ok(SocketAddr::new(*ip, target.port)),
        Host::Name(name) => {
            let found = dial::resolve(name.as_str(), target.port, Family::V4First).await?;
            let first = found.first().copied();
            first.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_and_paths_are_told_apart() {
        for text in ["127.0.0.1:6001", "[::1]:6001", "localhost:0"] {
            assert!(
                matches!(ListenAddress::parse(text).unwrap(), ListenAddress::Port(_)),
                "{text}"
            );
        }
        for (text, path) in [
            ("/run/adit.sock", "/run/adit.sock"),
            ("unix:/run/a:1", "/run/a:1"),
            ("unix:x", "x"),
            ("adit.sock", "adit.sock"),
            ("./x", "./x"),
            (r"\\.\pipe\adit", r"\\.\pipe\adit"),
        ] {
            assert_eq!(
                ListenAddress::parse(text).unwrap(),
                ListenAddress::Path(path.into()),
                "{text}"
            );
        }
        for text in ["127.0.0.1", "localhost", "6001", ""] {
            assert!(ListenAddress::parse(text).is_err(), "{text}");
        }
    }
}
