//! Requests for addresses that stand for names: they are sent to the names.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use adit_net::PacketBuf;
use adit_wire::{Host, Target};

use super::layered_chain::ChainLayer;
use super::{ConnectedStream, Connector};
use crate::dns::{FakeIps, FakeTarget};
use crate::udp::{BoxDatagramPath, DatagramPath};
use crate::{BoxFuture, DialError};

/// Maximum number of targets that one association remembers for its replies.
const MAX_CONTACTS: usize = 64;

/// The layer of a chain whose targets can be made-up addresses.
pub(crate) struct FakeTargets {
    pub(crate) fake_ips: Arc<FakeIps>,
    /// The name of the target that the chain was selected for, if that is a made-up address.
    pub(crate) named: Option<Target>,
}

impl ChainLayer for FakeTargets {
    fn target<'a>(&'a self, to: &'a Target) -> Result<&'a Target, DialError> {
        Ok(self.named.as_ref().unwrap_or(to))
    }

    fn wrap_datagrams(&self, path: BoxDatagramPath) -> BoxDatagramPath {
        Box::new(FakeDatagrams {
            path,
            fake_ips: self.fake_ips.clone(),
            contacts: Mutex::default(),
        })
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

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use adit_dns::RecordType;

    use super::*;

    /// Records targets, and answers from these senders.
    #[derive(Default)]
    struct Recorded {
        sent: Mutex<Vec<Target>>,
        replies: Mutex<Vec<Target>>,
    }

    struct RecordedPath(Arc<Recorded>);

    impl DatagramPath for RecordedPath {
        fn send(&self, _: &mut PacketBuf, to: &Target) -> io::Result<()> {
            self.0.sent.lock().unwrap().push(to.clone());
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }

        fn poll_recv(
            &self,
            _: &mut Context<'_>,
            packet: &mut PacketBuf,
            each: &mut dyn FnMut(&mut PacketBuf, &Target),
        ) -> Poll<io::Result<()>> {
            for from in self.0.replies.lock().unwrap().drain(..) {
                each(packet, &from);
            }
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn replies_come_from_the_address_that_was_sent_to() {
        let fake_ips = Arc::new(FakeIps::default());
        let pool = fake_ips.open(&["198.18.0.0/15".parse().unwrap()], None);
        let pool = pool.unwrap();
        let address = |name: &str, port| {
            let client = [192, 0, 2, 7].into();
            let ip = pool.address_for(name, RecordType::A, client).unwrap();
            Target::new(Host::Ip(ip), port)
        };
        let (a, b) = (address("a.test", 53), address("b.test", 443));
        let recorded = Arc::<Recorded>::default();
        let path = FakeDatagrams {
            path: Box::new(RecordedPath(recorded.clone())),
            fake_ips: fake_ips.clone(),
            contacts: Mutex::default(),
        };
        let parse = |text: &str| text.parse::<Target>().unwrap();
        let plain = parse("192.0.2.9:53");
        let mut packet = PacketBuf::default();
        for to in [&a, &b, &plain, &a] {
            path.send(&mut packet, to).unwrap();
        }
        let sent = std::mem::take(&mut *recorded.sent.lock().unwrap());
        let names = [
            parse("a.test:53"),
            parse("b.test:443"),
            plain.clone(),
            parse("a.test:53"),
        ];
        assert_eq!(sent, names);
        let unknown = parse("198.19.1.1:1");
        let why = path.send(&mut packet, &unknown).unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::HostUnreachable);
        for (from, shown) in [
            (parse("a.test:53"), &a),
            (parse("203.0.113.1:53"), &a),
            (parse("203.0.113.1:443"), &b),
            // An address that was sent to itself.
            (plain.clone(), &plain),
        ] {
            recorded.replies.lock().unwrap().push(from.clone());
            let mut seen = Vec::new();
            let mut each = |_: &mut PacketBuf, from: &Target| seen.push(from.clone());
            poll_fn(|cx| path.poll_recv(cx, &mut packet, &mut each))
                .await
                .unwrap();
            assert_eq!(seen.as_slice(), std::slice::from_ref(shown), "{from}");
        }
    }
}
