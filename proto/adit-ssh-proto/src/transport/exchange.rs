//! A key exchange from the first KEXINIT to the last NEWKEYS, started by either side.

use adit_wire::{Role, Time};

use super::{Event, SessionInfo, StrictKex, Transport, ext_info};
use crate::algorithm::Cipher;
use crate::error::{Disconnect, SshError};
use crate::kex::{
    ClientKex, EXT_INFO_CLIENT, EXT_INFO_SERVER, KexInit, KexSecret, KeyDerivation, Negotiated,
    STRICT_CLIENT, STRICT_SERVER, ServerKex, ServerKexReply, guess_is_wrong, negotiate,
    write_kexinit,
};
use crate::key::AnyKey;
use crate::msg;
use crate::packet::DirectionKeys;

/// A running key exchange.
#[derive(Debug)]
pub(super) struct KeyExchange {
    pub(super) stage: ExchangeStage,
    /// Local KEXINIT, empty while it is withheld.
    pub(super) ours: Vec<u8>,
    /// The peer's KEXINIT, empty until it arrives.
    pub(super) theirs: Vec<u8>,
    /// The next message of the method is a wrong guess and will be ignored.
    drop_guess: bool,
    /// Start time; set by the first call of `poll_timeout`.
    pub(super) since: Option<Time>,
}

/// State of a key exchange.
#[derive(Debug)]
pub(super) enum ExchangeStage {
    /// A server waits for the client's KEXINIT before it sends its own.
    AwaitingPeerInit,
    /// The local KEXINIT is sent.
    Sent,
    Client(Negotiated, ClientKex),
    Server(Negotiated, ServerKex),
    /// A server's computation is running; nothing is read meanwhile.
    Computing,
    /// The application checks the host key.
    CheckingHostKey(Box<ExchangeResult>),
    /// The local NEWKEYS is sent; `incoming` takes effect with the peer's.
    Switching {
        incoming: DirectionKeys,
        negotiated: Negotiated,
    },
}

/// Result of an exchange, before it takes effect.
#[derive(Debug)]
pub(super) struct ExchangeResult {
    pub(super) negotiated: Negotiated,
    pub(super) agreed: KexSecret,
    pub(super) hash: Vec<u8>,
    pub(super) host_key: Vec<u8>,
    /// The host's signature of `hash`.
    pub(super) signature: Vec<u8>,
}

impl KeyExchange {
    pub(super) const fn awaiting_peer_init() -> Self {
        Self {
            stage: ExchangeStage::AwaitingPeerInit,
            ours: Vec::new(),
            theirs: Vec::new(),
            drop_guess: false,
            since: None,
        }
    }
}

impl Transport {
    /// Starts a re-key. Does nothing if an exchange is running or the user is not authenticated
    /// yet.
    ///
    /// # Errors
    /// [`SshError::Crypto`] if a packet cannot be sealed.
    pub fn rekey(&mut self) -> Result<(), SshError> {
        self.check_open()?;
        if self.may_rekey() {
            self.start_exchange()?;
        }
        Ok(())
    }

    /// True if a re-key may start. Servers, OpenSSH's among them, refuse a second exchange before
    /// authentication, so neither a timer nor a counter may start one.
    pub(super) const fn may_rekey(&self) -> bool {
        self.exchange.is_none() && self.authenticated
    }

    /// Accepts the host key of [`Event::HostKey`].
    ///
    /// # Errors
    /// [`SshError::Crypto`] if the new keys cannot be used. Does nothing if no host key is pending.
    pub fn accept_host_key(&mut self) -> Result<(), SshError> {
        self.check_open()?;
        let Some(exchange) = &mut self.exchange else {
            return Ok(());
        };
        match core::mem::replace(&mut exchange.stage, ExchangeStage::Sent) {
            ExchangeStage::CheckingHostKey(finish) => self
                .apply_exchange(*finish)
                .map_err(|why| self.fail_with(why)),
            other => {
                exchange.stage = other;
                Ok(())
            }
        }
    }

    /// Rejects the host key of [`Event::HostKey`] and ends the connection.
    pub fn reject_host_key(&mut self) {
        if self.is_checking_host_key() {
            self.disconnect(Disconnect::HostKeyNotVerifiable, "host key not accepted");
        }
    }

    pub(super) fn is_checking_host_key(&self) -> bool {
        let stage = self.exchange.as_ref().map(|exchange| &exchange.stage);
        matches!(stage, Some(ExchangeStage::CheckingHostKey(_)))
    }

    /// True until the first keys are in use in both directions.
    pub(super) const fn in_first_exchange(&self) -> bool {
        !self.ready
    }

    /// Restarts the exchange's timeout.
    pub(super) const fn restart_exchange_timeout(&mut self) {
        if let Some(exchange) = &mut self.exchange {
            exchange.since = None;
        }
    }

    /// Starts a re-key if enough was sent or received under the current keys.
    pub(super) fn rekey_if_due(&mut self) -> Result<(), SshError> {
        let (sent, received) = self.rekey_due_bytes;
        let packets = self.config.rekey_packets;
        let due = self.sealer.bytes() >= sent
            || self.opener.bytes() >= received
            || self.sealer.packets() >= packets
            || self.opener.packets() >= packets;
        if due && self.may_rekey() {
            self.start_exchange()?;
        }
        Ok(())
    }

    /// Sends the local KEXINIT.
    pub(super) fn start_exchange(&mut self) -> Result<(), SshError> {
        let strict = self.config.strict != StrictKex::Never;
        let markers: &[&str] = match (self.session.is_some(), self.role, strict) {
            (true, ..) => &[],
            (false, Role::Client, true) => &[EXT_INFO_CLIENT, STRICT_CLIENT],
            (false, Role::Client, false) => &[EXT_INFO_CLIENT],
            (false, Role::Server, true) => &[EXT_INFO_SERVER, STRICT_SERVER],
            (false, Role::Server, false) => &[EXT_INFO_SERVER],
        };
        let mut cookie = [0; 16];
        self.rng_mut()?.fill(&mut cookie);
        let mut ours = Vec::with_capacity(2048);
        write_kexinit(&self.offered, markers, cookie, &mut ours);
        self.sealer.seal(&ours, &mut self.out)?;
        self.exchange = Some(KeyExchange {
            stage: ExchangeStage::Sent,
            ours,
            ..KeyExchange::awaiting_peer_init()
        });
        Ok(())
    }

    pub(super) fn on_kexinit(&mut self, message: &[u8]) -> Result<(), SshError> {
        let theirs = KexInit::parse(message)?;
        if self.exchange.as_ref().is_some_and(|x| !x.theirs.is_empty()) {
            return Err(SshError::Unexpected(msg::KEXINIT));
        }
        if self.session.is_none() {
            self.settle_strict(&theirs)?;
        } else if self.role == Role::Server && !self.authenticated {
            // Each exchange costs a server far more than a client, which is still unauthenticated
            // here.
            return Err(SshError::Policy(
                "a second key exchange before authentication",
            ));
        }
        let begin = match &self.exchange {
            None => true,
            Some(exchange) => matches!(exchange.stage, ExchangeStage::AwaitingPeerInit),
        };
        if begin {
            self.start_exchange()?;
        }
        let Some(exchange) = &mut self.exchange else {
            return Err(SshError::Unexpected(msg::KEXINIT));
        };
        exchange.theirs = message.to_vec();
        let ours = KexInit::parse(&exchange.ours)?;
        let negotiated = negotiate(self.role, &ours, &theirs)?;
        exchange.drop_guess = guess_is_wrong(&ours, &theirs);
        let exposed = [negotiated.client_to_server, negotiated.server_to_client]
            .iter()
            .any(|direction| direction.cipher == Cipher::ChaCha20Poly1305);
        if exposed && !self.strict && self.config.strict == StrictKex::WhenExposed {
            return Err(SshError::Policy(
                "chacha20-poly1305@openssh.com with a peer that does not support strict key exchange (CVE-2023-48795)",
            ));
        }
        let mut payload = Vec::new();
        let stage = match self.role {
            Role::Client => {
                let method = ClientKex::start(negotiated.kex, self.rng_mut()?, &mut payload)?;
                ExchangeStage::Client(negotiated, method)
            }
            Role::Server => ExchangeStage::Server(negotiated, ServerKex::new(negotiated.kex)),
        };
        if let Some(exchange) = &mut self.exchange {
            exchange.stage = stage;
        }
        self.seal_method(&payload)
    }

    /// Decides on strict key exchange from the first KEXINITs. The peer's KEXINIT must have been
    /// its very first packet in that case.
    fn settle_strict(&mut self, theirs: &KexInit<'_>) -> Result<(), SshError> {
        let marker = match self.role {
            Role::Client => STRICT_SERVER,
            Role::Server => STRICT_CLIENT,
        };
        let able = theirs.kex.contains(marker);
        self.wants_extensions = theirs.kex.contains(match self.role {
            Role::Client => EXT_INFO_SERVER,
            Role::Server => EXT_INFO_CLIENT,
        });
        self.strict = able && self.config.strict != StrictKex::Never;
        if self.strict && self.opener.packets() != 1 {
            return Err(SshError::Kex(
                "the peer sent packets before the first KEXINIT of a strict key exchange",
            ));
        }
        if !able && self.config.strict == StrictKex::Always {
            return Err(SshError::Policy(
                "the peer does not support strict key exchange",
            ));
        }
        // A KEXINIT that is not sent yet omits the vulnerable cipher, so that another one is
        // chosen.
        if !able && self.config.strict == StrictKex::WhenExposed {
            self.offered
                .cipher
                .retain(|c| *c != Cipher::ChaCha20Poly1305);
        }
        Ok(())
    }

    /// Handles a message of the method, 30 to 49.
    pub(super) fn on_method(&mut self, message: &[u8]) -> Result<(), SshError> {
        let unexpected = SshError::Unexpected(message.first().copied().unwrap_or_default());
        let Some(exchange) = &mut self.exchange else {
            return Err(unexpected);
        };
        let running = matches!(
            exchange.stage,
            ExchangeStage::Client(..) | ExchangeStage::Server(..)
        );
        if running && core::mem::take(&mut exchange.drop_guess) {
            return Ok(());
        }
        match core::mem::replace(&mut exchange.stage, ExchangeStage::Sent) {
            ExchangeStage::Client(negotiated, mut method) => {
                let mut payload = Vec::new();
                let reply = method.handle_input(message, self.rng_mut()?, &mut payload)?;
                if let (None, Some(exchange)) = (&reply, &mut self.exchange) {
                    exchange.stage = ExchangeStage::Client(negotiated, method);
                }
                self.seal_method(&payload)?;
                match reply {
                    None => Ok(()),
                    Some(reply) => {
                        let finish = self.verify_reply(negotiated, reply)?;
                        self.check_host_key(finish)
                    }
                }
            }
            ExchangeStage::Server(negotiated, method) => {
                exchange.stage = ExchangeStage::Computing;
                self.run_or_defer_computation(negotiated, method, message)
            }
            _ => Err(unexpected),
        }
    }

    /// Seals a message of the method unless it is empty.
    pub(super) fn seal_method(&mut self, payload: &[u8]) -> Result<(), SshError> {
        if payload.is_empty() {
            return Ok(());
        }
        self.sealer.seal(payload, &mut self.out)
    }

    fn verify_reply(
        &self,
        negotiated: Negotiated,
        reply: ServerKexReply,
    ) -> Result<ExchangeResult, SshError> {
        let hash = self.exchange_hash(&negotiated, &reply.host_key, &reply.agreed);
        let algorithm = negotiated.host_key;
        // The flags that a security key adds to a signature do not matter for a host key.
        AnyKey::parse_for(algorithm, &reply.host_key)?
            .key()
            .verify_with(self.config.min_rsa_bits, algorithm, &hash, &reply.signature)?;
        Ok(ExchangeResult {
            negotiated,
            agreed: reply.agreed,
            hash,
            host_key: reply.host_key,
            signature: reply.signature,
        })
    }

    fn exchange_hash(
        &self,
        negotiated: &Negotiated,
        host_key: &[u8],
        agreed: &KexSecret,
    ) -> Vec<u8> {
        self.transcript()
            .exchange_hash(negotiated, host_key, agreed)
    }

    /// Reports a client's host key once, and checks in later exchanges that it has not changed.
    fn check_host_key(&mut self, finish: ExchangeResult) -> Result<(), SshError> {
        if let Some(session) = &self.session {
            if session.host_key != finish.host_key {
                return Err(SshError::Kex("the host key changed while connected"));
            }
            return self.apply_exchange(finish);
        }
        self.events.push_back(Event::HostKey {
            algorithm: finish.negotiated.host_key,
            blob: finish.host_key.clone(),
        });
        if let Some(exchange) = &mut self.exchange {
            exchange.stage = ExchangeStage::CheckingHostKey(Box::new(finish));
        }
        Ok(())
    }

    /// Sends NEWKEYS and the queued payloads.
    pub(super) fn apply_exchange(&mut self, finish: ExchangeResult) -> Result<(), SshError> {
        let ExchangeResult {
            negotiated,
            agreed,
            hash,
            host_key,
            signature,
        } = finish;
        let first = self.session.is_none();
        let session = match self.session.take() {
            Some(session) => SessionInfo {
                negotiated,
                ..session
            },
            None => SessionInfo {
                id: hash.clone(),
                host_key,
                signature,
                negotiated,
            },
        };
        let source = KeyDerivation {
            kex: negotiated.kex,
            agreed: &agreed,
            exchange_hash: &hash,
            session_id: &session.id,
        };
        let up = source.client_to_server(negotiated.client_to_server);
        let down = source.server_to_client(negotiated.server_to_client);
        let (outgoing, incoming) = match self.role {
            Role::Client => (up, down),
            Role::Server => (down, up),
        };
        self.session = Some(session);
        self.rekey_due_bytes = (
            self.config.rekey_bytes_for(outgoing.cipher),
            self.config.rekey_bytes_for(incoming.cipher),
        );
        self.sealer.seal(&[msg::NEWKEYS], &mut self.out)?;
        self.sealer.set_keys(outgoing, self.strict)?;
        if let Some(exchange) = &mut self.exchange {
            exchange.stage = ExchangeStage::Switching {
                incoming,
                negotiated,
            };
        }
        if first && self.wants_extensions {
            let mut payload = Vec::new();
            match self.role {
                Role::Client => ext_info::write_client_ext_info(&mut payload),
                Role::Server => {
                    ext_info::write_server_ext_info(&self.config.user_algorithms, &mut payload);
                }
            }
            self.seal(&payload)?;
        }
        self.flush_queue()
    }

    pub(super) fn on_newkeys(&mut self, message: &[u8]) -> Result<(), SshError> {
        if message != [msg::NEWKEYS] {
            return Err(SshError::Malformed("NEWKEYS"));
        }
        match self.exchange.take().map(|exchange| exchange.stage) {
            Some(ExchangeStage::Switching {
                incoming,
                negotiated,
            }) => {
                self.opener.set_keys(incoming, self.strict)?;
                self.keys_in_use_since = None;
                let first = !core::mem::replace(&mut self.ready, true);
                if first {
                    self.events.push_back(Event::Ready(negotiated));
                } else {
                    self.push_optional_event(Event::Rekeyed(negotiated));
                }
                self.rekey_if_due()?;
                self.flush_queue()
            }
            _ => Err(SshError::Unexpected(msg::NEWKEYS)),
        }
    }
}
