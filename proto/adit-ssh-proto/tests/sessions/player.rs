//! The local side of a session, which is deterministic: its messages depend only on the plan and
//! the peer's messages.
//!
//! A client logs in with a key, runs a program that echoes its input, sends one half of a text and,
//! after its echo, the other. A server accepts every key and is that program.

use std::sync::Arc;

use adit_crypto::sha256;
use adit_ssh_proto::Role;
use adit_ssh_proto::algorithm::{AlgorithmPreferences, Compression, KeyAlgorithm};
use adit_ssh_proto::auth::{
    AuthPayload, ClientAnswer, ClientAuth, ClientAuthConfig, ClientAuthQuery, ClientIdentity,
    ClientStep, ServerAnswer, ServerAuth, ServerAuthConfig, ServerAuthQuery, ServerStep,
};
use adit_ssh_proto::connection::{
    self, ChannelId, ChannelKind, Connection, ConnectionLimits, DataKind, GlobalAnswer,
    HandledInput, SshChannelRequest, WantReply,
};
use adit_ssh_proto::key::{AnyKey, KeySet, PrivateKey};
use adit_ssh_proto::transport::{
    Event, Extensions, OpenStep, StrictKex, Transport, TransportConfig,
};
use adit_ssh_proto::{Disconnect, SshError};
use adit_wire::{Entropy, Time};

use crate::plan::{Plan, Rekey};

/// Length of each half of the text, in bytes.
pub(crate) const HALF: usize = 2500;
/// Exit status of the program.
pub(crate) const STATUS: u32 = 7;

/// Key of both roles.
pub(crate) const KEY: &str = include_str!("../../vectors/ssh/keys/ed25519");

/// The text that is echoed.
pub(crate) fn text() -> Vec<u8> {
    (0..)
        .flat_map(|n: u32| format!("{n:x},").into_bytes())
        .take(HALF * 2)
        .collect()
}

/// Returns pseudo-random bytes, the same in each run.
struct TestRng(u64);

impl Entropy for TestRng {
    fn fill(&mut self, out: &mut [u8]) {
        for octet in out {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            *octet = self.0.to_be_bytes()[0];
        }
    }
}

/// The local side.
pub(crate) struct Player {
    plan: Plan,
    user: String,
    transport: Transport,
    above: Above,
    /// Received and not opened yet.
    inbox: Vec<u8>,
    events: Vec<String>,
    /// Number of bytes of the text that have arrived.
    got: Vec<u8>,
    sent: usize,
    over: bool,
}

/// State of the layers above the transport.
enum Above {
    Nothing,
    Client(ClientAuth),
    Server(ServerAuth),
    Connection(Connection),
}

impl Player {
    pub(crate) fn new(plan: Plan, user: &str) -> Self {
        let mut config = TransportConfig::new(AlgorithmPreferences {
            kex: vec![plan.kex],
            host_key: vec![KeyAlgorithm::Ed25519],
            cipher: vec![plan.cipher],
            mac: vec![plan.mac],
            compression: vec![Compression::None],
        });
        // Not the local version, which changes.
        config.software = "adit_recorded".to_owned();
        config.strict = StrictKex::Always;
        config.user_algorithms = vec![KeyAlgorithm::Ed25519];
        let (config, rng) = (Arc::new(config), Box::new(TestRng(1)));
        let transport = match plan.role {
            Role::Client => Transport::new_client(config, rng),
            Role::Server => {
                let keys = KeySet::from(vec![key()]);
                Transport::new_server(config, Arc::new(keys), rng)
            }
        };
        Self {
            plan,
            user: user.to_owned(),
            transport: transport.unwrap(),
            above: Above::Nothing,
            inbox: Vec::new(),
            events: Vec::new(),
            got: Vec::new(),
            sent: 0,
            over: false,
        }
    }

    /// Returns the bytes to send.
    pub(crate) fn said(&mut self) -> Vec<u8> {
        core::mem::take(self.transport.take_output())
    }

    /// Returns the events since the last call.
    pub(crate) fn events(&mut self) -> Vec<String> {
        core::mem::take(&mut self.events)
    }

    /// True if the session has ended as expected.
    pub(crate) const fn is_over(&self) -> bool {
        self.over
    }

    /// Takes the peer's bytes. An error is the last event.
    pub(crate) fn hear(&mut self, octets: &[u8]) {
        self.inbox.extend_from_slice(octets);
        let mut inbox = core::mem::take(&mut self.inbox);
        let mut at = 0;
        while !self.over {
            match self.open(&mut inbox[at..]) {
                Ok(Some(consumed)) => at += consumed,
                Ok(None) => break,
                Err(why) => {
                    let bye = matches!(why, SshError::Disconnected { reason: 11, .. });
                    self.over = bye && self.got == text();
                    self.tell(format!("the end: {why}"));
                    break;
                }
            }
        }
        inbox.drain(..at);
        self.inbox = inbox;
    }

    /// Opens the packet in front; returns its length.
    fn open(&mut self, wire: &mut [u8]) -> Result<Option<usize>, SshError> {
        let consumed = match self.transport.open_next(wire)? {
            OpenStep::NeedMore { .. } => return Ok(None),
            OpenStep::Consumed { consumed } => consumed,
            OpenStep::Blocked => 0,
            OpenStep::Payload { consumed, payload } => {
                let payload = self.transport.payload(wire, &payload).to_vec();
                self.payload(&payload)?;
                consumed
            }
        };
        while let Some(event) = self.transport.poll_event() {
            self.transport_event(event)?;
        }
        self.pump()?;
        Ok(Some(consumed))
    }

    fn tell(&mut self, event: impl Into<String>) {
        self.events.push(event.into());
    }

    fn transport_event(&mut self, event: Event) -> Result<(), SshError> {
        match event {
            Event::HostKey { blob, .. } => {
                let key = AnyKey::parse(&blob)?;
                self.tell(format!("host key {}", key.key().fingerprint()));
                self.transport.accept_host_key()?;
            }
            Event::Ready(negotiated) => {
                self.tell(format!("keys: {negotiated}"));
                self.begin_auth();
            }
            Event::Rekeyed(negotiated) => self.tell(format!("new keys: {negotiated}")),
            Event::ExtInfo(Extensions {
                user_algorithms,
                hostbound,
                ping,
                ..
            }) => {
                self.tell(format!("extensions: {hostbound} {ping}"));
                if let Above::Client(auth) = &mut self.above {
                    auth.set_server_extensions(user_algorithms.as_deref(), hostbound);
                }
            }
            // Its text may contain names of the peer's files.
            Event::Debug(_) => self.tell("debug"),
            other => self.tell(format!("{other:?}")),
        }
        Ok(())
    }

    fn begin_auth(&mut self) {
        let id = self.transport.session_id().unwrap().to_vec();
        let host_key = self.transport.host_key().unwrap().to_vec();
        self.above = match self.plan.role {
            Role::Client => {
                let mut config = ClientAuthConfig::new(self.user.clone());
                let identity = AnyKey::Plain(key().public_key().clone());
                config
                    .identities
                    .push(ClientIdentity::new(identity).with_query(true));
                Above::Client(ClientAuth::new(config, &id, &host_key))
            }
            Role::Server => {
                Above::Server(ServerAuth::new(ServerAuthConfig::default(), &id, &host_key))
            }
        };
    }

    fn payload(&mut self, payload: &[u8]) -> Result<(), SshError> {
        match core::mem::replace(&mut self.above, Above::Nothing) {
            Above::Nothing => Err(SshError::Unexpected(payload[0])),
            Above::Client(mut auth) => {
                let mut step = auth.handle_input(payload)?;
                while let ClientStep::Query(ClientAuthQuery::Signature {
                    algorithm, data, ..
                }) = step
                {
                    self.tell("a signature is wanted");
                    let signature = key().sign(algorithm, &data)?;
                    step = auth.answer_query(ClientAnswer::Signature(signature))?;
                }
                say_all(&mut self.transport, || auth.poll_output())?;
                self.above = match step {
                    ClientStep::Success => {
                        self.tell("the user is in");
                        let mut connection =
                            Connection::new(Role::Client, ConnectionLimits::default());
                        connection.open_channel(&ChannelKind::Session).unwrap();
                        Above::Connection(connection)
                    }
                    ClientStep::Wait => Above::Client(auth),
                    other => panic!("{other:?}"),
                };
                Ok(())
            }
            Above::Server(mut auth) => {
                let mut step = auth.handle_input(payload)?;
                while let ServerStep::Query(ask) = step {
                    let known = |key: &AnyKey| key.key().fingerprint();
                    let (told, answer) = match &ask {
                        ServerAuthQuery::KeyQuery { key, .. } => {
                            (format!("would {} do?", known(key)), ServerAnswer::Accept)
                        }
                        ServerAuthQuery::Key { key, .. } => {
                            (format!("{} has signed", known(key)), ServerAnswer::Accept)
                        }
                        other => (format!("{other:?}"), ServerAnswer::Reject),
                    };
                    self.tell(told);
                    step = auth.answer_query(answer)?;
                }
                say_all(&mut self.transport, || auth.poll_output())?;
                self.above = match step {
                    ServerStep::Success(login) => {
                        self.tell(format!("the user is in: {}", login.user));
                        Above::Connection(Connection::new(
                            Role::Server,
                            ConnectionLimits::default(),
                        ))
                    }
                    _ => Above::Server(auth),
                };
                Ok(())
            }
            Above::Connection(mut connection) => {
                let done = self.message(&mut connection, payload);
                self.above = Above::Connection(connection);
                done
            }
        }
    }

    /// Sends the messages of the layers above.
    fn pump(&mut self) -> Result<(), SshError> {
        match &mut self.above {
            Above::Nothing | Above::Server(_) => Ok(()),
            // The session starts.
            Above::Client(auth) => say_all(&mut self.transport, || auth.poll_output()),
            Above::Connection(connection) => flush(&mut self.transport, connection),
        }
    }

    fn message(&mut self, connection: &mut Connection, payload: &[u8]) -> Result<(), SshError> {
        match connection.handle_input(Time(0), payload)? {
            HandledInput::Data {
                channel,
                kind,
                range,
            } => {
                let data = &payload[range];
                let sum = u64::from_be_bytes(*sha256(data).first_chunk().unwrap());
                self.tell(format!("{kind:?} {} {sum:016x}", data.len()));
                connection.consume_data(channel, data.len(), Time(0));
                self.data(connection, channel, data)?;
            }
            HandledInput::Done => {}
            HandledInput::Unknown => self.transport.send_unimplemented()?,
        }
        while let Some(event) = connection.poll_event() {
            self.event(connection, event)?;
        }
        Ok(())
    }

    fn data(
        &mut self,
        connection: &mut Connection,
        channel: ChannelId,
        data: &[u8],
    ) -> Result<(), SshError> {
        let before = self.got.len();
        self.got.extend_from_slice(data);
        assert!(
            text().starts_with(&self.got),
            "the text differs from the one sent"
        );
        let half = before < HALF && self.got.len() >= HALF;
        if half && self.plan.rekey == Rekey::Ours {
            self.transport.rekey()?;
        }
        match self.plan.role {
            Role::Server => self.write(connection, channel, data),
            Role::Client if half => self.write(connection, channel, &text()[HALF..]),
            Role::Client if self.got.len() == HALF * 2 => {
                connection.send_eof(channel).unwrap();
                Ok(())
            }
            Role::Client => Ok(()),
        }
    }

    /// Sends data in one message.
    fn write(
        &mut self,
        connection: &mut Connection,
        channel: ChannelId,
        data: &[u8],
    ) -> Result<(), SshError> {
        // No data is sent before the pending messages.
        flush(&mut self.transport, connection)?;
        let mut message = Vec::new();
        let header = connection.begin_data(channel, DataKind::Stdout, data.len(), &mut message);
        header.unwrap();
        message.extend_from_slice(data);
        self.sent += data.len();
        self.transport.send(&message)
    }

    fn event(
        &mut self,
        connection: &mut Connection,
        event: connection::ConnectionEvent,
    ) -> Result<(), SshError> {
        use connection::ConnectionEvent as Happened;
        match event {
            Happened::Opened(channel) => {
                self.tell("a channel is open");
                let command = SshChannelRequest::Exec(format!("cat; exit {STATUS}").into());
                connection
                    .send_request(channel, &command, WantReply::Yes)
                    .unwrap();
            }
            Happened::RequestDone { channel, ok } => {
                self.tell(format!("the program runs: {ok}"));
                self.write(connection, channel, &text()[..HALF])?;
            }
            Happened::Open { channel, kind } => {
                self.tell(format!("{kind:?} is wanted"));
                connection.confirm_open(channel).unwrap();
            }
            Happened::Request { request, reply, .. } => {
                self.tell(format!("{request:?}"));
                if let Some(reply) = reply {
                    connection.answer_request(reply, matches!(request, SshChannelRequest::Exec(_)));
                }
            }
            Happened::Eof(channel) => {
                self.tell("no more data");
                if self.plan.role == Role::Server {
                    let status = SshChannelRequest::ExitStatus(STATUS);
                    connection
                        .send_request(channel, &status, WantReply::No)
                        .unwrap();
                    connection.send_eof(channel).unwrap();
                    connection.close_channel(channel);
                }
            }
            Happened::Closed(_) => {
                self.tell("the channel is closed");
                if self.plan.role == Role::Client {
                    flush(&mut self.transport, connection)?;
                    self.transport.disconnect(Disconnect::ByApplication, "");
                    self.over = self.got == text();
                }
            }
            Happened::GlobalRequest { request, reply } => {
                let name = String::from_utf8_lossy(request.name()).into_owned();
                self.tell(format!("global {name}"));
                if let Some(reply) = reply {
                    connection.answer_global(reply, GlobalAnswer::Refused);
                }
            }
            other => self.tell(format!("{other:?}")),
        }
        Ok(())
    }
}

fn say_all(
    transport: &mut Transport,
    mut next: impl FnMut() -> Option<AuthPayload>,
) -> Result<(), SshError> {
    while let Some(message) = next() {
        transport.send(message.payload.expose())?;
    }
    Ok(())
}

fn flush(transport: &mut Transport, connection: &mut Connection) -> Result<(), SshError> {
    let mut message = Vec::new();
    while connection.poll_output(&mut message) {
        transport.send(&message)?;
        message.clear();
    }
    Ok(())
}

fn key() -> PrivateKey {
    PrivateKey::from_text(KEY, None).unwrap()
}
