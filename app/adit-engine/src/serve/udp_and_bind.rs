//! Requests for anything but a stream to a target: UDP over TCP, UDP ASSOCIATE and BIND.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use adit_net::{Udp, ambient, tcp};
use adit_shadowsocks::uot;
use adit_stream::{BoxStream, Count, Tcp, fill};
use adit_wire::{Host, Target};
use tokio::time::timeout;
use tracing::debug;

use super::{About, EARLY, Session, Worker};
use crate::Peer;
use crate::acceptor::{Association, Binding, Pending};
use crate::account::{Account, Open};
use crate::connector::Bound;
use crate::error::{DialError, Stage};
use crate::udp::{Listener, OverTcp, SocksPackets, accept_over_tcp, exchange_datagrams};

/// Maximum time that BIND waits for its connection.
const BIND_WAIT: Duration = Duration::from_secs(120);
/// Maximum number of bytes on the control connection of an association before it is closed.
const CONTROL_NOISE: usize = 4096;

impl Worker {
    /// Serves UDP over TCP in the requested stream.
    pub(super) async fn over_tcp(
        &self,
        mut pending: Pending,
        version: uot::Version,
        account: Option<&Arc<Account>>,
        peer: Peer,
    ) -> std::io::Result<()> {
        let first = std::mem::take(&mut pending.request.first);
        let near = pending.proceed(None).await?;
        let deadline = self.ttl.idle;
        let late = |_| std::io::Error::from(std::io::ErrorKind::TimedOut);
        let (near, target) = timeout(deadline, accept_over_tcp(near, first, version))
            .await
            .map_err(late)??;
        self.carry(near, target, account, peer).await
    }

    /// Relays the datagrams of a stream; `target` is that of the first one, if known.
    pub(super) async fn carry(
        &self,
        near: OverTcp,
        target: Option<Target>,
        account: Option<&Arc<Account>>,
        peer: Peer,
    ) -> std::io::Result<()> {
        let anywhere = Target::from(SocketAddr::from(([0u8; 4], 0)));
        // The stream was counted as a connection, including an outgoing descriptor.
        let place = self.share.enter(account, peer.remote.ip(), 0);
        let place = place.ok_or(std::io::ErrorKind::QuotaExceeded)?;
        let connector = self.router.pick(target.as_ref().unwrap_or(&anywhere));
        let far = connector.associate().await.map_err(std::io::Error::other)?;
        let _open = Open::new(&self.meter);
        if let Some(account) = account {
            account.begin_udp();
        }
        let passed = |n: Option<usize>, up| {
            place.touch(ambient::now());
            let Some(n) = n else {
                if up {
                    self.meter.lose();
                }
                return;
            };
            if up {
                self.meter.add_up(n);
            } else {
                self.meter.add_down(n);
            }
            match account {
                Some(account) if up => account.packet_up(n),
                Some(account) => account.packet_down(n),
                None => {}
            }
        };
        let carried = place
            .during(exchange_datagrams(&near, &*far, self.ttl, &passed))
            .await;
        carried.unwrap_or_else(|| Err(std::io::ErrorKind::QuotaExceeded.into()))
    }

    /// Waits for the incoming connection.
    pub(super) async fn bind(&self, mut binding: Binding, peer: Peer) -> Option<Session> {
        let connector = self.router.pick(&binding.expected);
        let Bound { socket, access } = match connector.listen(peer.local).await {
            Ok(bound) => bound,
            Err(why) => {
                binding.refuse(&why).await;
                return None;
            }
        };
        binding.listening(socket.local_addr().ok()?).await.ok()?;
        let expected = binding.expected.clone();
        let wanted = |from: SocketAddr| {
            let named = match &expected.host {
                Host::Ip(ip) => ip.is_unspecified() || *ip == adit_wire::unmap(from.ip()),
                Host::Name(_) => true,
            };
            named && access.check(from).is_ok()
        };
        let accept = async {
            loop {
                let (stream, from) = socket.accept().await?;
                if wanted(from) {
                    return Ok::<_, std::io::Error>((stream, from));
                }
            }
        };
        let come = tokio::select! {
            come = timeout(BIND_WAIT, accept) => come,
            // Early bytes stay in the buffer and are sent to the peer when it connects.
            gone = closed(binding.control()) => {
                debug!(client = %peer.remote, "the client abandoned BIND: {gone}");
                return None;
            }
        };
        let (stream, from) = match come {
            Ok(Ok(come)) => come,
            failed => {
                let e = match failed {
                    Ok(Err(e)) => e,
                    _ => std::io::ErrorKind::TimedOut.into(),
                };
                binding.refuse(&DialError::new(Stage::Connect, e)).await;
                return None;
            }
        };
        tcp::tune(&stream);
        Some(Session {
            near: binding.accepted(from).await.ok()?,
            far: Box::new(Tcp::new(stream)),
            watch: None,
            standing: None,
            again: None,
            account: None,
            about: Box::new(About {
                peer,
                target: from.into(),
                user: String::new(),
                first: 0,
                rounds: 0,
            }),
        })
    }

    pub(super) async fn datagrams(&self, association: Association) {
        let peer = association.peer;
        // The control connection was counted with an outgoing descriptor, used by the local socket. The
        // outgoing socket is one more.
        let Some(place) = self.share.enter(None, peer.remote.ip(), 1) else {
            let why = DialError::exhausted("too many associations are open");
            return association.refuse(&why).await;
        };
        let opened = Udp::bind(SocketAddr::new(peer.local.ip(), 0))
            .and_then(|socket| Ok((socket.local_addr()?, socket)));
        let (at, socket) = match opened {
            Ok(opened) => opened,
            Err(e) => return association.refuse(&DialError::new(Stage::Connect, e)).await,
        };
        let shown = SocketAddr::new(
            self.associate.advertise.unwrap_or_else(|| at.ip()),
            at.port(),
        );
        let codec = SocksPackets::new(
            peer.remote.ip(),
            &association.declared,
            self.associate.reassemble,
        );
        let Ok(mut control) = association.proceed(shown).await else {
            return;
        };
        debug!(client = %peer.remote, "association open on {at}");
        let place = Arc::new(place);
        let listener = Listener::single(
            Arc::new(socket),
            Box::new(codec),
            self.router.clone(),
            self.meter.clone(),
            self.ttl,
            place.clone(),
        );
        let served = async {
            tokio::select! {
                () = listener.run() => {}
                () = swallow(&mut control) => {}
            }
        };
        if place.during(served).await.is_none() {
            debug!(client = %peer.remote, "the association's slot is needed");
        }
        debug!(client = %peer.remote, "association closed");
    }
}

/// Waits until the client closes the connection, and keeps the bytes read.
async fn closed(io: &mut BoxStream) -> &'static str {
    loop {
        let have = io.filled().len();
        match fill(io, have + 1).await {
            Ok(n) if n > have && n < EARLY => {}
            Ok(n) if n > have => return "too much early data",
            _ => return "closed",
        }
    }
}

/// Waits until the control connection of an association is closed, or too much is sent on it.
async fn swallow(io: &mut BoxStream) {
    let mut noise = 0;
    while let Ok(n) = fill(io, 1).await {
        noise += n;
        if n == 0 || noise > CONTROL_NOISE {
            return;
        }
        io.consume(n);
    }
}
