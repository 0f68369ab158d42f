//! The address of the API, and of the listener for servers' managers: a port, or the path of a Unix socket or of a named
//! pipe.

use std::fmt;
use std::io;
use std::path::PathBuf;

use adit_wire::Target;

/// The prefix of the paths of named pipes of Windows.
const PIPE: &str = r"\\.\pipe\";

/// An address of the form `HOST:PORT`, `unix:PATH`, or a path: with `/` or `.sock`, or on Windows `\\.\pipe\NAME`.
/// `Display` writes a form that [`Self::parse`] reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiAddress {
    /// A port.
    Port(Target),
    /// A Unix socket, or a named pipe on Windows.
    Path(PathBuf),
}

/// The error of a text that is not an [`ApiAddress`]: the forms of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected {}", self.expected())]
pub struct ApiAddressError;

impl ApiAddressError {
    const fn expected(self) -> &'static str {
        match cfg!(windows) {
            true => r"HOST:PORT or \\.\pipe\NAME",
            false => "HOST:PORT or the path of a Unix socket",
        }
    }
}

impl From<ApiAddressError> for io::Error {
    fn from(why: ApiAddressError) -> Self {
        Self::new(io::ErrorKind::InvalidInput, why)
    }
}

impl ApiAddress {
    /// Reads an address.
    ///
    /// # Errors
    /// The text has none of the forms. Text without `/` is not a path: an address without its port must not become a
    /// file.
    pub fn parse(text: &str) -> Result<Self, ApiAddressError> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Self::Path(path.into()));
        }
        if let Ok(target) = text.parse() {
            return Ok(Self::Port(target));
        }
        let is_pipe = cfg!(windows) && text.starts_with(PIPE);
        match text.contains('/') || text.ends_with(".sock") || is_pipe {
            true => Ok(Self::Path(text.into())),
            false => Err(ApiAddressError),
        }
    }
}

impl fmt::Display for ApiAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(target) => target.fmt(f),
            Self::Path(path) => write!(f, "unix:{}", path.display()),
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
                matches!(ApiAddress::parse(text).unwrap(), ApiAddress::Port(_)),
                "{text}"
            );
        }
        for (text, path) in [
            ("/run/adit.sock", "/run/adit.sock"),
            ("unix:/run/a:1", "/run/a:1"),
            ("unix:x", "x"),
            ("adit.sock", "adit.sock"),
            ("./x", "./x"),
        ] {
            assert_eq!(
                ApiAddress::parse(text).unwrap(),
                ApiAddress::Path(path.into()),
                "{text}"
            );
        }
        for text in ["127.0.0.1", "localhost", "6001", ""] {
            assert_eq!(ApiAddress::parse(text), Err(ApiAddressError), "{text}");
        }
    }

    #[test]
    fn pipes_are_those_of_windows() {
        let text = r"\\.\pipe\adit";
        let pipe = match cfg!(windows) {
            true => Ok(ApiAddress::Path(text.into())),
            // It would be a file of this name in the current folder.
            false => Err(ApiAddressError),
        };
        assert_eq!(ApiAddress::parse(text), pipe);
    }

    #[test]
    fn what_is_displayed_is_read() {
        for text in ["127.0.0.1:6001", "[::1]:0", "unix:/run/adit.sock"] {
            assert_eq!(ApiAddress::parse(text).unwrap().to_string(), text);
        }
    }
}
