//! The identification string.

use std::borrow::Cow;

use crate::Error;

/// An identification string (RFC 4253 section 4.2).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SshId {
    /// A string such as `SSH-2.0-acme_1.0`, without the line ending. The software version has no spaces
    /// or minus signs, and no comment follows it.
    Standard(Cow<'static, str>),
}

impl SshId {
    /// Returns the software version.
    pub(crate) fn software_version(&self) -> Result<&str, Error> {
        let Self::Standard(line) = self;
        line.strip_prefix("SSH-2.0-")
            .ok_or_else(|| Error::InvalidConfig(format!("`{line}` does not start with `SSH-2.0-`")))
    }
}

impl Default for SshId {
    /// adit's own identification.
    fn default() -> Self {
        Self::Standard(Cow::Borrowed(concat!(
            "SSH-2.0-adit_",
            env!("CARGO_PKG_VERSION")
        )))
    }
}
