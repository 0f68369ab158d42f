//! A host that files are copied from or to.

use adit_cli::{Code, Failure};
use adit_sftp::{SftpError, is_entry_name};
use adit_ssh::client::Session;

use super::{Fault, Remote, base};
use crate::args::Way;
use crate::ssh::connect::{Asked, Reached, connect};

/// The exit code where there is no connection, as in OpenSSH.
const NO_CONNECTION: u8 = 255;

/// A session with a host, and one SFTP channel of it.
#[derive(Debug)]
pub(crate) struct Host {
    /// The session.
    pub(crate) session: Session,
    /// Its first channel.
    pub(crate) remote: Remote,
    /// The host, as the configuration calls it.
    pub(crate) name: String,
}

impl Host {
    /// Goes to `[user@]host` or `ssh://…`; a port that stands there goes before `port`.
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
                .map_err(|why| failure(&name, &why.into()))?;
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

    /// The name that a copy of what is there gets in its folder: its last name, or if that is `.`
    /// or `..`, its own by the server's word. (OpenSSH's scp copies `host:..` to `folder/..`, beside
    /// the folder.) The root has none, and goes into the folder itself.
    ///
    /// # Errors
    /// The server has no word, or one that leads out of the folder.
    pub(crate) async fn own_name(&self, path: &[u8]) -> Result<Vec<u8>, Fault> {
        let name = match base(path) {
            b"" | b"." | b".." => {
                let real = self.remote.real_path(path).await?;
                match &*real {
                    b"/" => return Ok(Vec::new()),
                    real => base(real).to_vec(),
                }
            }
            name => name.to_vec(),
        };
        match is_entry_name(&name) {
            true => Ok(name),
            false => Err(Fault::unfit(
                "the server says no name for the copy; name one by a target that is not there yet",
            )),
        }
    }
}

/// The end of the program because of a fault.
pub(crate) fn failure(host: &str, fault: &Fault) -> Failure {
    let code = match fault {
        Fault::Sftp(SftpError::Lost(_)) => Code::Network,
        _ => Code::Failure,
    };
    let failure = Failure::new(code, format!("{host}: {fault}"));
    match fault.is_end() {
        true => failure.with_status(NO_CONNECTION),
        false => failure,
    }
}
