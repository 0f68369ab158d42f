//! Groups: several chains for one purpose, tried in order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use adit_wire::Target;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{BoundSocket, ConnectedStream, Connector, MemberHealth};
use crate::udp::BoxDatagramPath;
use crate::{BoxFuture, DialError, FailureCause};

/// Time that a member may take before the next one is tried in parallel: two round trips to the opposite
/// side of the earth.
const HEAD_START: Duration = Duration::from_millis(500);

/// Uses the first member that opens a stream. An error of the local rules ends the search.
///
/// Members that failed are tried last for a while ([`MemberHealth`]). When a member does not answer within
/// the head start, the next one is connected in parallel: nothing has been sent through either that
/// could not be sent again.
pub struct ConnectorGroup {
    members: Vec<Arc<GroupMember>>,
}

struct GroupMember {
    way: Arc<dyn Connector>,
    standing: Arc<MemberHealth>,
}

impl GroupMember {
    /// Opens a stream through this member, and records the result.
    async fn connect(
        self: Arc<Self>,
        to: Target,
        first: Vec<u8>,
    ) -> Result<ConnectedStream, DialError> {
        let since = Instant::now();
        let mut opened = self.way.connect(&to, &first).await;
        self.record_result(&opened, since);
        if let Ok(opened) = &mut opened {
            // A keyed server has proved nothing yet; the relay will find out.
            match opened.watch {
                Some(_) => self.standing.record_answer(),
                None => self.standing.record_success(),
            }
            opened.member_health = Some(self.standing.clone());
        }
        opened
    }

    fn record_result<T>(&self, opened: &Result<T, DialError>, since: Instant) {
        match opened {
            Err(why) if why.blames_hop() => self.standing.record_failure(since),
            // A statement about the target is an answer of the server.
            Err(_) => self.standing.record_answer(),
            Ok(_) => {}
        }
    }
}

impl ConnectorGroup {
    /// Creates a group of at least one member.
    #[must_use]
    pub fn new(members: Vec<Arc<dyn Connector>>) -> Self {
        let member = |way| {
            let standing = Arc::default();
            Arc::new(GroupMember { way, standing })
        };
        Self {
            members: members.into_iter().map(member).collect(),
        }
    }

    /// Returns the members in the order in which they should be tried now.
    fn members_in_order(&self) -> Vec<Arc<GroupMember>> {
        let mut order: Vec<_> = self
            .members
            .iter()
            .map(|member| (member.standing.is_penalized(), member.clone()))
            .collect();
        order.sort_by_key(|(last, _)| *last);
        order.into_iter().map(|(_, member)| member).collect()
    }

    /// Opens a stream through the first member to succeed; each member gets a head start.
    async fn race_members(&self, to: &Target, first: &[u8]) -> Result<ConnectedStream, DialError> {
        let mut waiting = self.members_in_order().into_iter();
        let mut running = JoinSet::new();
        let mut newest: Option<Arc<GroupMember>> = None;
        let mut last = DialError::denied_by_rule("an empty group");
        loop {
            if let Some(member) = waiting.next() {
                member.standing.record_attempt();
                running.spawn(member.clone().connect(to.clone(), first.to_vec()));
                newest = Some(member);
            } else if running.is_empty() {
                return Err(last);
            }
            loop {
                let more = waiting.len() > 0;
                tokio::select! {
                    done = running.join_next() => match done {
                        Some(Ok(Ok(opened))) => {
                            // The remaining attempts still report their results.
                            running.detach_all();
                            return Ok(opened);
                        }
                        Some(Ok(Err(why))) if why.cause == FailureCause::Denied => return Err(why),
                        Some(Ok(Err(why))) => {
                            last = why;
                            if more || running.is_empty() {
                                break;
                            }
                        }
                        Some(Err(_)) | None => break,
                    },
                    () = sleep(HEAD_START), if more => {
                        if let Some(member) = &newest {
                            member.standing.record_late();
                        }
                        break;
                    }
                }
            }
        }
    }

    async fn first_success<T>(
        &self,
        open: impl for<'a> Fn(&'a dyn Connector) -> BoxFuture<'a, Result<T, DialError>>,
    ) -> Result<T, DialError> {
        let mut last = DialError::denied_by_rule("an empty group");
        for member in self.members_in_order() {
            member.standing.record_attempt();
            let since = Instant::now();
            let opened = open(&*member.way).await;
            member.record_result(&opened, since);
            match opened {
                Err(why) if why.cause != FailureCause::Denied => last = why,
                done => return done,
            }
        }
        Err(last)
    }
}

impl Connector for ConnectorGroup {
    fn connect<'a>(
        &'a self,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<ConnectedStream, DialError>> {
        Box::pin(self.race_members(to, first))
    }

    fn open_datagrams(&self) -> BoxFuture<'_, Result<BoxDatagramPath, DialError>> {
        Box::pin(self.first_success(|member| member.open_datagrams()))
    }

    fn listen_for_one<'a>(
        &'a self,
        near: SocketAddr,
    ) -> BoxFuture<'a, Result<BoundSocket, DialError>> {
        Box::pin(self.first_success(move |member| member.listen_for_one(near)))
    }
}
