//! How the connection between the two plugins is disguised.

use std::io;

use adit_stream::{BoxStream, Tcp};

use super::Side;

/// A disguise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Obfs {
    /// None.
    #[default]
    Plain,
}

/// The disguises by the names that the option `obfs` may have.
const NAMES: [(&str, Obfs); 1] = [("plain", Obfs::Plain)];

impl Obfs {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        NAMES
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, obfs)| *obfs)
    }

    /// All names, for error messages.
    pub(super) fn names() -> String {
        NAMES.map(|(name, _)| format!("`{name}`")).join(", ")
    }

    /// Puts the disguise over the remote side: the one place where a layer is added.
    pub(super) async fn dress(self, _side: Side, io: Tcp) -> io::Result<BoxStream> {
        match self {
            Self::Plain => Ok(Box::new(io)),
        }
    }
}
