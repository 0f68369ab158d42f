//! ShadowsocksR clients.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use adit_net::ambient::{Chance, SystemClock};
use adit_net::tcp;
use adit_obfs::ServerState;
use adit_shadowsocksr::{ServerStack, StackAccepted};
use adit_stream::{BoxStream, Layered, Stream, flush};
use adit_wire::Broken;

use super::farewell::farewell;
use super::header::{Seen, in_time, step_through};
use super::hello::undress;
use super::keyed::{CHECK_ANSWER, Silent, is_check};
use super::{Acceptor, InStream, Inbound, Pending, Rejects};
use crate::account::Account;
use crate::inflate::Inflated;
use crate::udp::OverTcp;
use crate::{AcceptError, BoxFuture, Peer, Place, Request};

/// Maximum segment size in bytes where the system does not report it.
const MSS: u16 = 1460;

/// Reads the obfs handshake and requests of ShadowsocksR. Everything else is passed to [`Rejects`].
pub struct ShadowsocksR {
    /// Cipher, protocol and users.
    pub stack: Arc<ServerStack>,
    /// The obfs, and the hellos it has seen.
    pub obfs: ServerState,
    /// The accounts of the users.
    pub accounts: Arc<Accounts>,
    /// Handles everything that is not a valid request.
    pub rejects: Arc<Rejects>,
    /// Time limit for a complete request.
    pub deadline: Duration,
}

/// The accounts of the users of a ShadowsocksR port.
#[derive(Debug, Default)]
pub struct Accounts {
    users: BTreeMap<u32, Arc<Account>>,
    /// The account of all clients where there are no users.
    anyone: Arc<Account>,
}

impl Accounts {
    /// Creates an account for each user ID in `users`.
    #[must_use]
    pub fn new(users: impl Iterator<Item = u32>) -> Self {
        Self {
            users: users
                .map(|uid| (uid, Arc::new(Account::of_a_user())))
                .collect(),
            anyone: Arc::default(),
        }
    }

    /// Returns the account of a user; that of all clients if `uid` is `None` or unknown.
    pub(crate) fn of(&self, uid: Option<u32>) -> Arc<Account> {
        let user = uid.and_then(|uid| self.users.get(&uid));
        user.unwrap_or(&self.anyone).clone()
    }
}

impl Acceptor for ShadowsocksR {
    fn accept(
        &self,
        io: BoxStream,
        peer: Peer,
        place: Place,
    ) -> BoxFuture<'_, Result<Inbound, AcceptError>> {
        Box::pin(async move {
            let mut io = io;
            let port = peer.local.port();
            let mss = io
                .bare()
                .and_then(|tcp| tcp::max_segment(tcp.socket().ok()?));
            let mut seen = Seen::new(self.deadline, place.clone(), &self.rejects);
            let until = seen.deadline();
            let undressed = undress(&self.obfs, &mut io, &mut seen);
            let codecs = match in_time(until, &place, undressed).await {
                Ok(codecs) => codecs.joined(),
                Err(why) => return seen.reject(io, why, &self.rejects, port),
            };
            let mss = mss.unwrap_or(MSS);
            let mut core = self
                .stack
                .handshake(mss, Arc::new(SystemClock), &mut Chance);
            // If bytes arrive unchanged, the codecs are added later: a decoy then needs no translation.
            let read = if codecs.open.is_raw() {
                let read = step_through(&mut io, &mut core, &mut seen);
                match in_time(until, &place, read).await {
                    Err(why) => Err((io, why)),
                    Ok(accepted) if codecs.seal.is_raw() => Ok((io, accepted)),
                    Ok(accepted) => {
                        let io = Layered::new(io, codecs.seal, codecs.open);
                        Ok((Box::new(io) as BoxStream, accepted))
                    }
                }
            } else {
                let mut layered = Layered::new(io, codecs.seal, codecs.open);
                let read = step_through(&mut layered, &mut core, &mut seen);
                match in_time(until, &place, read).await {
                    // The bytes are still read and discarded, which must not fail on invalid records.
                    Err(why) => Err((layered.into_below(), why)),
                    Ok(accepted) => Ok((Box::new(layered) as BoxStream, accepted)),
                }
            };
            match read {
                Ok((io, accepted)) => self.inbound(io, accepted).await,
                Err((io, AcceptError::Io(e))) if is_broken(&e) => {
                    let why = AcceptError::Rejected(Broken::Malformed("the obfs's records"));
                    seen.reject(io, why, &self.rejects, port)
                }
                Err((io, why)) => seen.reject(io, why, &self.rejects, port),
            }
        })
    }
}

/// Returns true if a layer could not decode the input: an error of the peer, not of the connection.
fn is_broken(e: &std::io::Error) -> bool {
    e.kind() == std::io::ErrorKind::InvalidData
}

impl ShadowsocksR {
    async fn inbound(
        &self,
        io: BoxStream,
        accepted: StackAccepted,
    ) -> Result<Inbound, AcceptError> {
        let StackAccepted {
            target,
            datagrams,
            uid,
            first,
            open,
            seal,
        } = accepted;
        let mut io: BoxStream = if self.stack.kind().in_place() {
            Box::new(Layered::new(io, seal, open))
        } else {
            Box::new(Inflated::new(io, seal, open))
        };
        if !datagrams && is_check(&target) {
            farewell(&mut io, CHECK_ANSWER).await;
            return Ok(Inbound::Served);
        }
        // Clients wait for a first frame, even if the target sends nothing.
        if io.owes_head() {
            flush(&mut io).await?;
        }
        if datagrams {
            return Ok(Inbound::InStream(InStream {
                datagrams: OverTcp::flagged_server(io, first),
                account: Some(self.accounts.of(uid)),
            }));
        }
        let request = Request {
            target,
            first,
            account: Some(self.accounts.of(uid)),
            user: uid.map(|uid| uid.to_string()),
        };
        Ok(Inbound::Stream(Pending::new(request, Silent { io })))
    }
}
