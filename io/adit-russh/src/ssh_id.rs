//! The line that a side introduces itself with.

use std::borrow::Cow;

use crate::Error;

/// The identification (RFC 4253 section 4.2).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SshId {
    /// Such as `SSH-2.0-acme_1.0`, without the end of the line. A version has no spaces, minus
    /// signs or comments behind it.
    Standard(Cow<'static, str>),
}

impl SshId {
    /// The name of the software.
    pub(crate) fn software(&self) -> Result<&str, Error> {
        let Self::Standard(line) = self;
        line.strip_prefix("SSH-2.0-")
            .ok_or_else(|| Error::InvalidConfig(format!("`{line}` does not begin with `SSH-2.0-`")))
    }
}

impl Default for SshId {
    /// Adit's own.
    fn default() -> Self {
        Self::Standard(Cow::Borrowed(concat!(
            "SSH-2.0-adit_",
            env!("CARGO_PKG_VERSION")
        )))
    }
}
