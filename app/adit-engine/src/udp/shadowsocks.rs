//! Shadowsocks datagrams, both ends.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use adit_net::PacketBuf;
use adit_net::ambient::{self, Chance};
use adit_shadowsocks::udp::{ClientSession, Incoming, ServerOpener, ServerSealer};
use adit_shadowsocks::{KeyChain, Users};
use adit_wire::{Broken, Target};

use super::{BoxDatagrams, Datagrams, Key, PacketCodec, ReplySeal};

/// A client session with one server, over whatever leads to it.
pub struct ShadowsocksUdp {
    session: Mutex<ClientSession>,
    server: Target,
    below: BoxDatagrams,
}

impl ShadowsocksUdp {
    /// A new session.
    #[must_use]
    pub fn new(keys: &KeyChain, server: Target, below: BoxDatagrams) -> Self {
        Self {
            session: Mutex::new(ClientSession::new(keys, &mut Chance)),
            server,
            below,
        }
    }

    fn session(&self) -> std::sync::MutexGuard<'_, ClientSession> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Datagrams for ShadowsocksUdp {
    fn send(&self, packet: &mut PacketBuf, to: &Target) -> io::Result<()> {
        let (bytes, payload) = packet.parts();
        let sealed = self
            .session()
            .seal(bytes, payload, to, ambient::unix(), &mut Chance);
        packet.set_payload(sealed.map_err(io::Error::other)?);
        self.below.send(packet, &self.server)
    }

    fn flush(&self) -> io::Result<()> {
        self.below.flush()
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        packet: &mut PacketBuf,
        each: &mut dyn FnMut(&mut PacketBuf, &Target),
    ) -> Poll<io::Result<()>> {
        let now = ambient::unix();
        self.below.poll_recv(cx, packet, &mut |packet, _| {
            let opened = self.session().open(packet.payload_mut(), now);
            // What does not open is not for us (SEC-P5).
            if let Ok((source, part)) = opened {
                packet.narrow(part);
                each(packet, &source);
            }
        })
    }
}

/// The server's end.
pub struct KeyedPackets {
    opener: ServerOpener,
}

impl KeyedPackets {
    /// A server of these users.
    #[must_use]
    pub fn new(users: &Arc<Users>) -> Self {
        Self {
            opener: ServerOpener::new(users),
        }
    }
}

impl PacketCodec for KeyedPackets {
    fn open(&mut self, packet: &mut PacketBuf, from: SocketAddr) -> Result<(Key, Target), Broken> {
        let Incoming {
            session,
            target,
            payload,
            ..
        } = self.opener.open(packet.payload_mut(), ambient::unix())?;
        packet.narrow(payload);
        Ok((session.map_or(Key::Source(from), Key::Session), target))
    }

    fn sealer(&mut self, key: Key) -> Option<Box<dyn ReplySeal>> {
        let session = match key {
            Key::Session(id) => Some(id),
            Key::Source(_) => None,
        };
        Some(Box::new(Back {
            sealer: self.opener.sealer(session, &mut Chance)?,
        }))
    }

    fn forget(&mut self, key: Key) {
        if let Key::Session(id) = key {
            self.opener.forget(id);
        }
    }
}

struct Back {
    sealer: ServerSealer,
}

impl ReplySeal for Back {
    fn seal(&mut self, packet: &mut PacketBuf, source: &Target) -> Result<(), Broken> {
        let (bytes, payload) = packet.parts();
        let sealed = self
            .sealer
            .seal(bytes, payload, source, ambient::unix(), &mut Chance)?;
        packet.set_payload(sealed);
        Ok(())
    }
}
