//! SOCKS5, SOCKS4, SOCKS4a and HTTP on one port, told apart by the first byte.

use std::sync::Arc;
use std::time::Duration;

use adit_stream::{BoxStream, RunError, Stream, fill};
use adit_wire::Broken;
use tokio::time::{sleep, timeout};

use super::reject::farewell;
use super::{Acceptor, Inbound, http, socks};
use crate::credentials::Credentials;
use crate::{AcceptError, BoxFuture, Peer, Place};

/// A wrong password is answered after this long, whatever was wrong with it.
const WRONG_LOGIN_DELAY: Duration = Duration::from_millis(500);

/// Reads proxy requests.
pub struct Proxy {
    pub(crate) languages: Languages,
    pub(crate) credentials: Arc<Credentials>,
    pub(crate) deadline: Duration,
    /// Whether UDP ASSOCIATE is served.
    pub(crate) udp: bool,
    /// Whether BIND is served.
    pub(crate) bind: bool,
    /// Whether replies keep our outgoing address to themselves.
    pub(crate) hide_bind: bool,
    /// Whether HTTP errors carry their reason.
    pub(crate) verbose_errors: bool,
}

/// Which languages are spoken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Languages {
    pub(crate) socks5: bool,
    pub(crate) socks4: bool,
    pub(crate) http: bool,
}

impl Proxy {
    async fn read(&self, mut io: BoxStream, peer: Peer) -> Result<Inbound, AcceptError> {
        if fill(&mut io, 1).await? == 0 {
            return Err(AcceptError::Eof);
        }
        match io.filled().first() {
            Some(0x05) if self.languages.socks5 => socks::read5(self, io, peer).await,
            Some(0x04) if self.languages.socks5 => socks::read4(self, io, peer).await,
            Some(b'A'..=b'Z') if self.languages.http => {
                let pending = http::read(http::Rules::of(self), io).await?;
                Ok(Inbound::Stream(pending))
            }
            // Nothing is said to what is none of our languages.
            first => Err(AcceptError::Refused(format!(
                "first byte {:#04x} begins no request that this listener speaks",
                first.copied().unwrap_or(0)
            ))),
        }
    }
}

impl Acceptor for Proxy {
    fn accept(
        &self,
        io: BoxStream,
        peer: Peer,
        place: Place,
    ) -> BoxFuture<'_, Result<Inbound, AcceptError>> {
        Box::pin(async move {
            let read = async {
                timeout(self.deadline, self.read(io, peer))
                    .await
                    .unwrap_or(Err(AcceptError::Deadline))
            };
            place.keep(read).await
        })
    }
}

/// Ends a dialogue that failed: says what the core has to say; a wrong login waits first.
pub(super) async fn give_up<E: Into<Broken> + std::fmt::Display>(
    mut io: BoxStream,
    why: RunError<E>,
    is_login: impl Fn(&E) -> bool,
) -> AcceptError {
    match why {
        RunError::Core { error, unsent } => {
            if is_login(&error) {
                sleep(WRONG_LOGIN_DELAY).await;
                farewell(&mut io, &unsent).await;
                return AcceptError::Login(error.to_string());
            }
            farewell(&mut io, &unsent).await;
            AcceptError::Refused(error.to_string())
        }
        RunError::Eof => AcceptError::Eof,
        RunError::Io(e) => AcceptError::Io(e),
    }
}
