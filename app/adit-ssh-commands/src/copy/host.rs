//! A host with a session and an SFTP channel.

use adit_cli::{Failure, FailureCode};
use adit_sftp::{SftpError, is_entry_name};
use adit_ssh::client::Session;

use super::{CopyError, Remote, base_name};
use crate::args::HostArgs;
use crate::ssh::connect::{ConnectRequest, ConnectedHost, connect};

/// Exit code if the connection failed, as in OpenSSH.
const CONNECTION_FAILED_STATUS: u8 = 255;

/// A session with a host, and an SFTP channel.
#[derive(Debug)]
pub(crate) struct SftpHost {
    /// The session.
    pub(crate) session: Session,
    /// The first SFTP channel.
    pub(crate) remote: Remote,
    /// Host name from the configuration.
    pub(crate) name: String,
}

impl SftpHost {
    /// Connects to `[user@]host` or `ssh://…`; a port in the destination takes precedence over `port`.
    pub(crate) async fn connect_to(
        destination: &str,
        port: Option<u16>,
        way: &HostArgs,
    ) -> Result<Self, Failure> {
        let reached = async {
            let mut asked = ConnectRequest::new(destination, way)?;
            if let Some(port) = port {
                asked.port.get_or_insert(port);
            }
            let asked_settings = asked.resolve_settings()?;
            let ConnectedHost {
                session, settings, ..
            } = connect(&asked, &asked_settings).await?;
            let name = settings.host_name;
            let remote = Remote::open(&session)
                .await
                .map_err(|why| to_failure(&name, &why.into()))?;
            Ok(Self {
                session,
                remote,
                name,
            })
        };
        reached
            .await
            .map_err(|why: Failure| why.with_status(CONNECTION_FAILED_STATUS))
    }

    /// Returns the name for a copy of `path` in the target folder: its last component or, if that is `.` or `..`,
    /// the name that the server reports. (OpenSSH's scp copies `host:..` to `folder/..`, beside the folder.) For
    /// the root it is empty, and its contents go into the folder itself.
    ///
    /// # Errors
    /// The server reports no name, or one that leads out of the folder.
    pub(crate) async fn copy_name(&self, path: &[u8]) -> Result<Vec<u8>, CopyError> {
        let name = match base_name(path) {
            b"" | b"." | b".." => {
                let real = self.remote.real_path(path).await?;
                match &*real {
                    b"/" => return Ok(Vec::new()),
                    real => base_name(real).to_vec(),
                }
            }
            name => name.to_vec(),
        };
        match is_entry_name(&name) {
            true => Ok(name),
            false => Err(CopyError::other(
                "the server reports no name for the copy; choose one with a target that does not exist yet",
            )),
        }
    }
}

/// Converts a fault to the failure that ends the program.
pub(crate) fn to_failure(host: &str, fault: &CopyError) -> Failure {
    let code = match fault {
        CopyError::Sftp(SftpError::ConnectionLost(_)) => FailureCode::Network,
        _ => FailureCode::Failure,
    };
    let failure = Failure::new(code, format!("{host}: {fault}"));
    match fault.is_fatal() {
        true => failure.with_status(CONNECTION_FAILED_STATUS),
        false => failure,
    }
}
