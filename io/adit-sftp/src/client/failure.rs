//! Failures that end a session.

use std::io;
use std::sync::Arc;

use adit_ssh_proto::SshError;

use crate::SftpError;

/// The reason why a session is over.
#[derive(Debug, Clone)]
pub(super) enum Failure {
    Protocol(SshError),
    Lost(Arc<io::Error>),
}

impl From<Failure> for SftpError {
    fn from(why: Failure) -> Self {
        match why {
            Failure::Protocol(why) => Self::Protocol(why),
            Failure::Lost(why) => Self::ConnectionLost(why),
        }
    }
}

impl From<SshError> for Failure {
    fn from(why: SshError) -> Self {
        Self::Protocol(why)
    }
}

impl From<io::Error> for Failure {
    fn from(why: io::Error) -> Self {
        Self::Lost(Arc::new(why))
    }
}
