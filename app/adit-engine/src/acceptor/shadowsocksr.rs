//! ShadowsocksR clients.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use adit_net::system::{SystemClock, ThreadRng};
use adit_net::tcp;
use adit_obfs::ServerState;
use adit_shadowsocksr::{ServerStack, StackAccepted};
use adit_stream::{BoxStream, Layered, Stream, flush_stream};
use adit_wire::ProtocolError;

use super::closing_reply::close_with_reply;
use super::header::{ConnectionProgress, drive_handshake, run_in_time};
use super::obfs_handshake::accept_obfs;
use super::shadowsocks::{CHECK_ANSWER, SilentReply, is_self_check};
use super::{InboundRequest, PendingRequest, RejectHandler, RequestAcceptor, UdpOverTcpRequest};
use crate::fleet::FleetLogins;
use crate::inflated_stream::InflatedStream;
use crate::udp::UdpOverTcp;
use crate::user_account::UserAccount;
use crate::{
    AcceptError, BoxFuture, ConnectionAddrs, FilterClaims, HandshakeSlot, Request, UserRegistry,
};

/// Maximum segment size in bytes where the system does not report it.
const DEFAULT_MSS: u16 = 1460;

/// Reads the obfs handshake and requests of ShadowsocksR. Everything else is passed to [`RejectHandler`].
pub struct ShadowsocksRAcceptor {
    /// Cipher, protocol and users.
    pub stack: Arc<ServerStack>,
    /// The obfs, and the hellos it has seen.
    pub obfs: Arc<ServerState>,
    /// The claims of hellos, and those of first messages, where a successor may have to confirm them.
    pub claims: Option<[Arc<FilterClaims>; 2]>,
    /// The accounts of the users.
    pub accounts: Arc<SsrAccounts>,
    /// Handles everything that is not a valid request.
    pub rejects: Arc<RejectHandler>,
    /// Time limit for a complete request.
    pub deadline: Duration,
}

/// The accounts of the users of a ShadowsocksR port.
#[derive(Debug, Default)]
pub struct SsrAccounts {
    users: BTreeMap<u32, Arc<UserAccount>>,
    /// The account of all clients where there are no users.
    shared_account: Arc<UserAccount>,
    /// The users of the process, by the text of their IDs.
    registry: Arc<UserRegistry>,
    /// The users of the fleet, if the port has them.
    fleet: Option<Arc<FleetLogins>>,
}

fn account_of_user(uid: u32, registry: &UserRegistry) -> Arc<UserAccount> {
    let name = uid.to_string();
    registry.new_account(&name, &name)
}

impl SsrAccounts {
    /// Creates an account for each user ID in `users`, which has the limits that `registry` has for it.
    #[must_use]
    pub fn new(users: impl Iterator<Item = u32>, registry: Arc<UserRegistry>) -> Self {
        Self {
            users: users
                .map(|uid| (uid, account_of_user(uid, &registry)))
                .collect(),
            shared_account: Arc::default(),
            registry,
            fleet: None,
        }
    }

    /// Creates the accounts of `users`; those for which `kept` returns true are shared with these.
    pub(crate) fn successor(
        &self,
        users: impl Iterator<Item = u32>,
        kept: impl Fn(u32) -> bool,
    ) -> Self {
        let account = |uid: u32| {
            let known = self.users.get(&uid).filter(|_| kept(uid)).cloned();
            let account = known.unwrap_or_else(|| account_of_user(uid, &self.registry));
            (uid, account)
        };
        Self {
            users: users.map(account).collect(),
            shared_account: self.shared_account.clone(),
            registry: self.registry.clone(),
            fleet: None,
        }
    }

    /// Takes the accounts of users of a fleet from there.
    pub(crate) fn with_fleet(self, users: Arc<FleetLogins>) -> Self {
        Self {
            fleet: Some(users),
            ..self
        }
    }

    /// Returns the name of a user for logs and rules: that in the fleet, or the text of the ID.
    fn name_of(&self, uid: u32) -> String {
        let of_fleet = self
            .fleet
            .as_ref()
            .and_then(|fleet| fleet.account_of_id(uid));
        of_fleet.map_or_else(
            || uid.to_string(),
            |(_, name)| name.escape_debug().to_string(),
        )
    }

    /// Ends the sessions of all users whose account is not one of `successor`.
    pub(crate) fn end_sessions_missing_in(&self, successor: Option<&Self>) {
        for (uid, account) in &self.users {
            let kept = successor.and_then(|next| next.users.get(uid));
            if kept.is_none_or(|kept| !Arc::ptr_eq(kept, account)) {
                account.end_sessions();
            }
        }
        let shared = successor.map(|next| &next.shared_account);
        if shared.is_none_or(|shared| !Arc::ptr_eq(shared, &self.shared_account)) {
            self.shared_account.end_sessions();
        }
    }

    /// Returns the account of a user; that of all clients if `uid` is `None` or unknown.
    pub(crate) fn account_of(&self, uid: Option<u32>) -> Arc<UserAccount> {
        if let (Some(uid), Some(fleet)) = (uid, &self.fleet) {
            return match fleet.account_of_id(uid) {
                Some((account, _)) => account,
                None => UserAccount::ended(),
            };
        }
        let user = uid.and_then(|uid| self.users.get(&uid));
        user.unwrap_or(&self.shared_account).clone()
    }
}

impl RequestAcceptor for ShadowsocksRAcceptor {
    fn accept_request(
        &self,
        io: BoxStream,
        peer: ConnectionAddrs,
        place: HandshakeSlot,
    ) -> BoxFuture<'_, Result<InboundRequest, AcceptError>> {
        Box::pin(async move {
            let mut io = io;
            let port = peer.local.port();
            let mss = io
                .bare()
                .and_then(|tcp| tcp::max_segment_size(tcp.socket().ok()?));
            let mut seen = ConnectionProgress::new(self.deadline, place.clone(), &self.rejects);
            let until = seen.deadline();
            let (hello_claims, message_claims) = self.claims.clone().map(<(_, _)>::from).unzip();
            seen.claims = hello_claims;
            let undressed = accept_obfs(&self.obfs, &mut io, &mut seen);
            let codecs = match run_in_time(until, &place, undressed).await {
                Ok(codecs) => codecs.with_joined_records(),
                Err(why) => return seen.reject_connection(io, why, &self.rejects, port),
            };
            seen.claims = message_claims;
            let mss = mss.unwrap_or(DEFAULT_MSS);
            let mut core = self
                .stack
                .new_handshake(mss, Arc::new(SystemClock), &mut ThreadRng);
            // If bytes arrive unchanged, the codecs are added later: a decoy then needs no translation.
            let read = if codecs.open.is_raw() {
                let read = drive_handshake(&mut io, &mut core, &mut seen);
                match run_in_time(until, &place, read).await {
                    Err(why) => Err((io, why)),
                    Ok(accepted) if codecs.seal.is_raw() => Ok((io, accepted)),
                    Ok(accepted) => {
                        let io = Layered::new(io, codecs.seal, codecs.open);
                        Ok((Box::new(io) as BoxStream, accepted))
                    }
                }
            } else {
                let mut layered = Layered::new(io, codecs.seal, codecs.open);
                let read = drive_handshake(&mut layered, &mut core, &mut seen);
                match run_in_time(until, &place, read).await {
                    // The bytes are still read and discarded, which must not fail on invalid records.
                    Err(why) => Err((layered.into_below(), why)),
                    Ok(accepted) => Ok((Box::new(layered) as BoxStream, accepted)),
                }
            };
            match read {
                Ok((io, accepted)) => self.build_request(io, accepted).await,
                Err((io, AcceptError::Io(e))) if is_decode_error(&e) => {
                    let why = AcceptError::Rejected(ProtocolError::Malformed("the obfs's records"));
                    seen.reject_connection(io, why, &self.rejects, port)
                }
                Err((io, why)) => seen.reject_connection(io, why, &self.rejects, port),
            }
        })
    }
}

/// Returns true if a layer could not decode the input: an error of the peer, not of the connection.
fn is_decode_error(e: &std::io::Error) -> bool {
    e.kind() == std::io::ErrorKind::InvalidData
}

impl ShadowsocksRAcceptor {
    async fn build_request(
        &self,
        io: BoxStream,
        accepted: StackAccepted,
    ) -> Result<InboundRequest, AcceptError> {
        let StackAccepted {
            target,
            datagrams,
            uid,
            first,
            open,
            seal,
            ..
        } = accepted;
        let mut io: BoxStream = if self.stack.kind().opens_in_place() {
            Box::new(Layered::new(io, seal, open))
        } else {
            Box::new(InflatedStream::new(io, seal, open))
        };
        if !datagrams && is_self_check(&target) {
            close_with_reply(&mut io, CHECK_ANSWER).await;
            return Ok(InboundRequest::Answered);
        }
        // Clients wait for a first frame, even if the target sends nothing.
        if io.owes_head() {
            flush_stream(&mut io).await?;
        }
        if datagrams {
            return Ok(InboundRequest::UdpOverTcp(UdpOverTcpRequest {
                datagrams: UdpOverTcp::new_ssr_server(io, first),
                account: Some(self.accounts.account_of(uid)),
            }));
        }
        let request = Request {
            target,
            first_bytes: first,
            account: Some(self.accounts.account_of(uid)),
            user: uid.map(|uid| self.accounts.name_of(uid)),
        };
        Ok(InboundRequest::Stream(PendingRequest::new(
            request,
            SilentReply { io },
        )))
    }
}
