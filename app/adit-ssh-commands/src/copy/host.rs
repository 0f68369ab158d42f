//! A host with a session and an SFTP channel.

use adit_cli::{Code, Failure};
use adit_ssh::client::Session;

use super::names::is_entry;
use super::{Fault, Remote, base};
use crate::args::Way;
use crate::ssh::connect::{Asked, Reached, connect};

/// Exit code if the connection failed, as in OpenSSH.
const NO_CONNECTION: u8 = 255;

/// A session with a host, and an SFTP channel.
#[derive(Debug)]
pub(crate) struct Host {
    /// The session.
    pub(crate) session: Session,
    /// The first SFTP channel.
    pub(crate) remote: Remote,
    /// Host name from the configuration.
    pub(crate) name: String,
}

impl Host {
    /// Connects to `[user@]host` or `ssh://…`; a port in the destination takes precedence over `port`.
    pub(crate) async fn reach(
        destination: &str,
        port: Option<u16>,
        way: &Way,
    ) -> Result<Self, Failure> {
        let reached = async {
            let mut asked = Asked::new(destination, way)?;
            if let Some(port) = port {
                asked.port.get_or_insert(port);
            }
            let asked_settings = asked.settings()?;
            let Reached {
                session, settings, ..
            } = connect(&asked, &asked_settings).await?;
            let name = settings.host_name;
            let remote = Remote::open(&session)
                .await
                .map_err(|fault| failure(&name, &fault))?;
            Ok(Self {
                session,
                remote,
                name,
            })
        };
        reached
            .await
            .map_err(|why: Failure| why.with_status(NO_CONNECTION))
    }

    /// Returns the name for a copy of `path` in the target folder: its last component or, if that is `.` or `..`,
    /// the name that the server reports. (OpenSSH's scp copies `host:..` to `folder/..`, beside the folder.) For
    /// the root it is empty, and its contents go into the folder itself.
    ///
    /// # Errors
    /// The server has no word, or one that leads out of the folder.
    pub(crate) async fn own_name(&mut self, path: &[u8]) -> Result<Vec<u8>, Fault> {
        let name = match base(path) {
            b"" | b"." | b".." => {
                let real = self.remote.real(path).await?;
                match &*real {
                    b"/" => return Ok(Vec::new()),
                    real => base(real).to_vec(),
                }
            }
            name => name.to_vec(),
        };
        match is_entry(&name) {
            true => Ok(name),
            false => Err(Fault::unfit(
                "the server reports no name for the copy; choose one with a target that does not exist yet",
            )),
        }
    }
}

/// Converts a fault to the failure that ends the program.
pub(crate) fn failure(host: &str, fault: &Fault) -> Failure {
    let code = match fault {
        Fault::Lost(_) => Code::Network,
        _ => Code::Failure,
    };
    let failure = Failure::new(code, format!("{host}: {fault}"));
    match fault.is_end() {
        true => failure.with_status(NO_CONNECTION),
        false => failure,
    }
}
