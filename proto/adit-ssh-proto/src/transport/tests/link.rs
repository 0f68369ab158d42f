//! A client and a server, with bytes in between that a test may cut, alter and extend.

use std::sync::Arc;

use super::super::{Event, OpenStep, Transport, TransportConfig};
use crate::SshError;
use crate::algorithm::{Kex, KeyAlgorithm};
use crate::kex::tests::{TestRng, preferred};
use crate::key::{CertifiedKey, KeySet, PrivateKey, Signer};
use crate::msg;
use crate::packet::Sealer;

/// Settings with the cheapest method, for tests that are not about the method.
pub(super) fn settings() -> TransportConfig {
    let mut names = preferred();
    names.kex = vec![Kex::Curve25519];
    names.host_key = vec![KeyAlgorithm::Ed25519];
    TransportConfig::new(names)
}

pub(super) fn host_key() -> Arc<dyn Signer> {
    let key = include_str!("../../../vectors/ssh/keys/ed25519");
    let key = PrivateKey::from_text(key, None).unwrap();
    Arc::new(KeySet::new(vec![CertifiedKey::new(key, None).unwrap()]))
}

/// Returns a channel message with `len` bytes that depend on `number`.
pub(super) fn data(number: usize, len: usize) -> Vec<u8> {
    let mut out = vec![msg::CHANNEL_DATA];
    out.extend((0..len).map(|i| (i.wrapping_mul(37) ^ number.wrapping_mul(101)) as u8));
    out
}

/// Returns an unencrypted packet.
pub(super) fn clear(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Sealer::new().seal(payload, &mut out).unwrap();
    out
}

/// One side, with its input and results.
pub(super) struct End {
    pub(super) transport: Transport,
    /// Received and not opened yet.
    inbox: Vec<u8>,
    pub(super) payloads: Vec<Vec<u8>>,
    pub(super) events: Vec<Event>,
    /// True if host keys are accepted immediately.
    pub(super) trusting: bool,
}

impl End {
    pub(super) fn new(transport: Transport) -> Self {
        Self {
            transport,
            inbox: Vec::new(),
            payloads: Vec::new(),
            events: Vec::new(),
            trusting: true,
        }
    }

    pub(super) fn client(config: TransportConfig) -> Self {
        Self::new(Transport::new_client(Arc::new(config), Box::new(TestRng(1))).unwrap())
    }

    pub(super) fn server(config: TransportConfig) -> Self {
        let rng = Box::new(TestRng(2));
        Self::new(Transport::new_server(Arc::new(config), host_key(), rng).unwrap())
    }

    /// Returns the bytes to send.
    pub(super) fn said(&mut self) -> Vec<u8> {
        core::mem::take(self.transport.take_output())
    }

    /// Takes `bytes` and opens complete packets, unless a computation is pending.
    pub(super) fn hear_until_blocked(&mut self, bytes: &[u8]) -> Result<(), SshError> {
        self.trusting = false;
        self.hear(bytes)
    }

    /// Takes `bytes` and opens complete packets.
    pub(super) fn hear(&mut self, bytes: &[u8]) -> Result<(), SshError> {
        self.inbox.extend_from_slice(bytes);
        let mut at = 0;
        loop {
            let rest = &mut self.inbox[at..];
            let had = rest.len();
            match self.transport.open_next(rest)? {
                OpenStep::NeedMore { total } => {
                    assert!(total > had, "no more is needed");
                    break;
                }
                OpenStep::Consumed { consumed } => at += consumed,
                OpenStep::Payload { consumed, payload } => {
                    let payload = self.transport.payload(rest, &payload).to_vec();
                    self.payloads.push(payload);
                    at += consumed;
                }
                OpenStep::Blocked => {
                    self.collect()?;
                    if !self.trusting {
                        break;
                    }
                }
            }
        }
        self.inbox.drain(..at);
        self.collect()
    }

    fn collect(&mut self) -> Result<(), SshError> {
        while let Some(event) = self.transport.poll_event() {
            if matches!(event, Event::HostKey { .. }) && self.trusting {
                self.transport.accept_host_key()?;
            }
            self.events.push(event);
        }
        Ok(())
    }

    /// Returns the number of key exchanges, including the first.
    pub(super) fn keys(&self) -> usize {
        let keys = |event: &&Event| matches!(event, Event::Ready(_) | Event::Rekeyed(_));
        self.events.iter().filter(keys).count()
    }
}

/// Both sides.
pub(super) struct Link {
    pub(super) client: End,
    pub(super) server: End,
}

impl Link {
    /// Creates two sides before their first message.
    pub(super) fn new(client: TransportConfig, server: TransportConfig) -> Self {
        Self {
            client: End::client(client),
            server: End::server(server),
        }
    }

    /// Marks the user as authenticated, which allows re-keys.
    pub(super) fn let_in(&mut self) {
        self.client.transport.on_authenticated();
        self.server.transport.on_authenticated();
    }

    /// Exchanges bytes until both sides are silent.
    pub(super) fn settle(&mut self) -> Result<(), SshError> {
        self.settle_in(usize::MAX)
    }

    /// Exchanges bytes in turns of at most `most` bytes per direction.
    pub(super) fn settle_in(&mut self, most: usize) -> Result<(), SshError> {
        for _ in 0..1_000_000 {
            let up = piece(self.client.transport.take_output(), most);
            self.server.hear(&up)?;
            let down = piece(self.server.transport.take_output(), most);
            self.client.hear(&down)?;
            if up.is_empty() && down.is_empty() {
                return Ok(());
            }
        }
        panic!("they never fall silent");
    }
}

fn piece(out: &mut Vec<u8>, most: usize) -> Vec<u8> {
    out.drain(..out.len().min(most)).collect()
}

/// Returns two sides with keys and an authenticated user.
pub(super) fn pair_in(client: TransportConfig, server: TransportConfig) -> Link {
    let mut link = pair(client, server);
    link.let_in();
    link
}

/// Returns two sides with keys.
pub(super) fn pair(client: TransportConfig, server: TransportConfig) -> Link {
    let mut link = Link::new(client, server);
    link.settle().unwrap();
    assert_eq!((link.client.keys(), link.server.keys()), (1, 1));
    link
}
