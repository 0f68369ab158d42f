//! Requests for addresses that stand for names: they are sent to the names.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use adit_net::PacketBuf;
use adit_wire::{Host, Target};

use super::{BoundSocket, ConnectedStream, Connector};
use crate::dns::{FakeIps, FakeTarget};
use crate::udp::{BoxDatagramPath, DatagramPath};
use crate::{BoxFuture, DialError, ServerHealth};

/// Maximum number of targets that one association remembers for its replies.
const MAX_CONTACTS: usize = 64;

/// A chain whose targets can be made-up addresses.
pub(crate) struct FakeTargets {
    chain: Arc<dyn Connector>,
    fake_ips: Arc<FakeIps>,
    /// The name of the target that the chain was selected for, if that is a made-up address.
    named: Option<Target>,
}

impl FakeTargets {
    /// Wraps the chain that was selected for `named`.
    pub(crate) fn new(
        chain: Arc<dyn Connector>,
        fake_ips: Arc<FakeIps>,
        named: Option<Target>,
    ) -> Self {
        Self {
            chain,
            fake_ips,
            named,
        }
    }
}

impl Connector for FakeTargets {
    fn connect<'a>(
        &'a self,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<ConnectedStream, DialError>> {
        self.chain.connect(self.named.as_ref().unwrap_or(to), first)
    }

    fn server_health(&self) -> Option<Arc<ServerHealth>> {
        self.chain.server_health()
    }

    fn open_datagrams(&self) -> BoxFuture<'_, Result<BoxDatagramPath, DialError>> {
        Box::pin(async move {
            let path = self.chain.open_datagrams().await?;
            let fake_ips = self.fake_ips.clone();
            let contacts = Mutex::default();
            Ok(Box::new(FakeDatagrams {
                path,
                fake_ips,
                contacts,
            }) as BoxDatagramPath)
        })
    }

    fn rejects_all(&self) -> bool {
        self.chain.rejects_all()
    }

    fn listen_for_one<'a>(
        &'a self,
        near: SocketAddr,
    ) -> BoxFuture<'a, Result<BoundSocket, DialError>> {
        self.chain.listen_for_one(near)
    }
}

/// A target that datagrams were sent to, and the name that its address stood for then; itself if it is an ordinary one.
struct FakeContact {
    address: Target,
    named: Target,
}

/// A path whose targets can be made-up addresses. Replies have the address that the client sent to.
struct FakeDatagrams {
    path: BoxDatagramPath,
    fake_ips: Arc<FakeIps>,
    /// The latest first.
    contacts: Mutex<VecDeque<FakeContact>>,
}

fn remember(contacts: &mut VecDeque<FakeContact>, address: Target, named: Target) {
    contacts.truncate(MAX_CONTACTS - 1);
    contacts.push_front(FakeContact { address, named });
}

impl FakeDatagrams {
    /// Returns the name that a made-up address stands for, and remembers it for replies.
    fn named(&self, to: &Target) -> io::Result<Option<Target>> {
        let mut contacts = self.contacts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = contacts.iter().position(|known| known.address == *to) {
            // An association keeps its names, even if their addresses have others meanwhile.
            if at > 0
                && let Some(known) = contacts.remove(at)
            {
                contacts.push_front(known);
            }
            return Ok(contacts.front().map(|known| known.named.clone()));
        }
        match self.fake_ips.find_target(to) {
            None => {
                // Its replies keep their address.
                remember(&mut contacts, to.clone(), to.clone());
                Ok(None)
            }
            Some(FakeTarget::Unknown) => Err(io::Error::new(
                io::ErrorKind::HostUnreachable,
                unknown_text(),
            )),
            Some(FakeTarget::Name(host)) => {
                let named = Target::new(host, to.port);
                remember(&mut contacts, to.clone(), named.clone());
                Ok(Some(named))
            }
        }
    }
}

impl DatagramPath for FakeDatagrams {
    fn send(&self, packet: &mut PacketBuf, to: &Target) -> io::Result<()> {
        match self.named(to)? {
            Some(named) => self.path.send(packet, &named),
            None => self.path.send(packet, to),
        }
    }

    fn flush(&self) -> io::Result<()> {
        self.path.flush()
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        packet: &mut PacketBuf,
        each: &mut dyn FnMut(&mut PacketBuf, &Target),
    ) -> Poll<io::Result<()>> {
        self.path.poll_recv(cx, packet, &mut |packet, from| {
            let contacts = self.contacts.lock().unwrap_or_else(PoisonError::into_inner);
            // A chain reports the name or, in most cases, the address that it was looked up as. That one belongs to the
            // latest name with the same port: most associations have a single target.
            let by_port = |known: &&FakeContact| {
                matches!(&from.host, Host::Ip(_))
                    && matches!(&known.named.host, Host::Name(_))
                    && known.named.port == from.port
            };
            let exact = contacts.iter().find(|known| known.named == *from);
            let known = exact.or_else(|| contacts.iter().find(by_port));
            let shown = known.map(|known| known.address.clone());
            drop(contacts);
            each(packet, shown.as_ref().unwrap_or(from));
        })
    }
}

/// Refuses a made-up address that stands for no name.
pub(crate) struct UnknownFakeTarget;

const fn unknown_text() -> &'static str {
    "a made-up address that stands for no name any more: look the name up again"
}

impl Connector for UnknownFakeTarget {
    fn connect<'a>(
        &'a self,
        to: &'a Target,
        _first: &'a [u8],
    ) -> BoxFuture<'a, Result<ConnectedStream, DialError>> {
        let why = format!("{} is {}", to.host, unknown_text());
        Box::pin(async move { Err(DialError::denied_by_rule(why)) })
    }

    fn open_datagrams(&self) -> BoxFuture<'_, Result<BoxDatagramPath, DialError>> {
        Box::pin(async { Err(DialError::denied_by_rule(unknown_text())) })
    }
}
