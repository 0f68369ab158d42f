//! The client's machine: tries the methods one after the other.

use adit_crypto::Secret;
use adit_wire::narrow_int;

use super::config::ClientConfig;
use super::message::{Method, Prompt, put_key, put_request, service, to_be_signed};
use super::outgoing::{Outbox, Outgoing};
use crate::algorithm::KeyAlgorithm;
use crate::error::SshError;
use crate::msg;
use crate::wire::{Put, Reader};

/// A question to the driver, who answers with [`ClientAuth::answer`].
#[derive(Debug)]
pub enum ClientAsk {
    /// The signature of `data` by this identity.
    Signature {
        /// Its place in [`ClientConfig::identities`].
        identity: usize,
        /// The algorithm.
        algorithm: KeyAlgorithm,
        /// What is signed.
        data: Vec<u8>,
    },
    /// The password.
    Password {
        /// How often it was wrong.
        failed: u32,
    },
    /// The server wants the password changed.
    NewPassword {
        /// Its words.
        prompt: String,
    },
    /// The server's questions. There may be none, and words alone, which are shown.
    Questions {
        /// A title, which may be empty.
        name: String,
        /// Words before the questions, which may be empty.
        instruction: String,
        /// The questions.
        prompts: Vec<Prompt>,
    },
}

/// The driver's answer.
#[derive(Debug)]
pub enum ClientAnswer {
    /// The signature with its name, as [`crate::key::PrivateKey::sign`] and agents give it.
    Signature(Vec<u8>),
    /// The password.
    Password(Secret<String>),
    /// The old password and the new.
    NewPassword {
        /// The password so far.
        old: Secret<String>,
        /// The one from now on.
        new: Secret<String>,
    },
    /// An answer to each question.
    Responses(Vec<Secret<String>>),
    /// There is none: another way is tried.
    Decline,
}

/// What comes next.
#[derive(Debug)]
#[must_use]
pub enum ClientStep {
    /// The server's next payload, after what is to be sent was sent.
    Wait,
    /// The server's words, which may be shown as they are; then its next payload.
    Banner(String),
    /// The answer to this; no payload before.
    Ask(ClientAsk),
    /// The user is in.
    Success,
    /// Nothing is left to try.
    Failed {
        /// The methods that the server would go on with.
        methods: Vec<String>,
    },
}

/// What an answer is waited for, or a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// SERVICE_ACCEPT.
    Service,
    /// The result of `none`.
    None,
    /// PK_OK.
    Query(Signing),
    /// The driver's signature.
    Signing(Signing),
    /// The result of a signature.
    Signed(Signing),
    /// The driver's password.
    AskPassword,
    /// The result of a password.
    Password,
    /// The driver's new password.
    AskNewPassword,
    /// Questions, or a result. Rounds so far.
    Interactive(u32),
    /// The driver's answers, this many.
    AskResponses(usize, u32),
    Done,
    Failed,
}

/// An identity that is tried, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Signing {
    pub(super) identity: usize,
    pub(super) algorithm: KeyAlgorithm,
}

/// Authenticates the user at one server.
#[derive(Debug)]
pub struct ClientAuth {
    pub(super) config: ClientConfig,
    session_id: Vec<u8>,
    host_key: Vec<u8>,
    /// What the server takes of keys, if it told.
    algorithms: Option<Vec<KeyAlgorithm>>,
    hostbound: bool,
    pub(super) out: Outbox,
    pub(super) state: State,
    /// The server's list of methods that can go on.
    pub(super) allowed: Vec<String>,
    /// Identities that have been tried, by their places.
    pub(super) tried: Vec<bool>,
    /// Those that were one part of a success.
    pub(super) used: Vec<usize>,
    pub(super) passwords: u32,
    pub(super) interactives: u32,
    pub(super) partials: u32,
    pub(super) banners: u32,
    /// The last answer was one part of a success.
    pub(super) partial: bool,
}

impl ClientAuth {
    /// For a connection with this session id and this host key (its blob), which was accepted.
    /// The first payload waits to be sent.
    #[must_use]
    pub fn new(config: ClientConfig, session_id: &[u8], host_key: &[u8]) -> Self {
        let mut out = Outbox::default();
        out.push(service(msg::SERVICE_REQUEST, super::message::USERAUTH));
        Self {
            tried: vec![false; config.identities.len()],
            config,
            session_id: session_id.to_vec(),
            host_key: host_key.to_vec(),
            algorithms: None,
            hostbound: false,
            out,
            state: State::Service,
            allowed: Vec::new(),
            used: Vec::new(),
            passwords: 0,
            interactives: 0,
            partials: 0,
            banners: 0,
            partial: false,
        }
    }

    /// What the server said in EXT_INFO: the algorithms it takes of keys, and whether it takes
    /// signatures that cover its host key. May come again.
    pub fn server_extensions(&mut self, algorithms: Option<&[KeyAlgorithm]>, hostbound: bool) {
        self.algorithms = algorithms.map(<[_]>::to_vec);
        self.hostbound = hostbound;
    }

    /// The next payload to be sent.
    pub fn poll_output(&mut self) -> Option<Outgoing> {
        self.out.pop()
    }

    /// Takes the driver's answer.
    ///
    /// # Errors
    /// [`SshError::Policy`] for an answer that does not belong to what was asked.
    pub fn answer(&mut self, answer: ClientAnswer) -> Result<ClientStep, SshError> {
        match (self.state, answer) {
            (State::Signing(signing), ClientAnswer::Signature(signature)) => {
                let named = Reader::new(&signature, "signature").string();
                let wanted = signing.algorithm.plain().name();
                if named != Ok(wanted.as_bytes()) {
                    // An agent that knows only SHA-1, say: the server would not take it.
                    return Ok(self.next_try());
                }
                let mut payload = self.key_request(signing, true);
                payload.put_string(&signature);
                self.out.push(payload);
                self.state = State::Signed(signing);
            }
            (State::AskPassword, ClientAnswer::Password(password)) => {
                let mut payload = self.room(&[&password]);
                put_request(&mut payload, &self.config.user, Method::Password.name());
                payload.put_bool(false);
                payload.put_string(password.expose().as_bytes());
                self.out.push_hidden(payload);
                self.state = State::Password;
            }
            (State::AskNewPassword, ClientAnswer::NewPassword { old, new }) => {
                let mut payload = self.room(&[&old, &new]);
                put_request(&mut payload, &self.config.user, Method::Password.name());
                payload.put_bool(true);
                payload.put_string(old.expose().as_bytes());
                payload.put_string(new.expose().as_bytes());
                self.out.push_hidden(payload);
                self.state = State::Password;
            }
            (State::AskResponses(count, rounds), ClientAnswer::Responses(responses))
                if responses.len() == count =>
            {
                let mut payload = self.room(&responses.iter().collect::<Vec<_>>());
                payload.put_u8(msg::USERAUTH_INFO_RESPONSE);
                payload.put_u32(narrow_int(count));
                for response in &responses {
                    payload.put_string(response.expose().as_bytes());
                }
                self.out.push_hidden(payload);
                self.state = State::Interactive(rounds);
            }
            (state, ClientAnswer::Decline) => return self.decline(state),
            _ => return Err(SshError::Policy("an answer to another question")),
        }
        Ok(ClientStep::Wait)
    }

    fn decline(&mut self, state: State) -> Result<ClientStep, SshError> {
        match state {
            State::Signing(_) => {}
            // Who has no password now has none the next time.
            State::AskPassword | State::AskNewPassword => self.passwords = self.config.prompts,
            State::AskResponses(..) => self.interactives = self.config.prompts,
            _ => return Err(SshError::Policy("an answer that was not asked for")),
        }
        Ok(self.next_try())
    }

    /// Tries the next of what is left.
    pub(super) fn next_try(&mut self) -> ClientStep {
        for method in self.config.methods.clone() {
            if !self.allowed.iter().any(|name| name == method.name()) {
                continue;
            }
            let next = match method {
                Method::PublicKey => self.try_key(),
                Method::KeyboardInteractive => self.try_interactive(),
                Method::Password => self.try_password(),
            };
            if let Some(step) = next {
                return step;
            }
        }
        self.state = State::Failed;
        ClientStep::Failed {
            methods: self.allowed.clone(),
        }
    }

    fn try_key(&mut self) -> Option<ClientStep> {
        loop {
            let identity = self.tried.iter().position(|tried| !tried)?;
            if let Some(tried) = self.tried.get_mut(identity) {
                *tried = true;
            }
            let Some(algorithm) = self.choose(identity) else {
                continue;
            };
            let signing = Signing {
                identity,
                algorithm,
            };
            if !self.config.identities.get(identity)?.query {
                return Some(self.ask_signature(signing));
            }
            let query = self.key_request(signing, false);
            self.out.push(query);
            self.state = State::Query(signing);
            return Some(ClientStep::Wait);
        }
    }

    /// The algorithm for an identity: by what the server told, if it did. Keys that have one
    /// algorithm are tried even so, since lists are not always complete; an RSA key is not, since
    /// a server without SHA-2 wants SHA-1.
    fn choose(&self, identity: usize) -> Option<KeyAlgorithm> {
        let own = self.config.identities.get(identity)?.key.algorithms();
        let Some(theirs) = &self.algorithms else {
            return own.first().copied();
        };
        let taken = |a: &&KeyAlgorithm| theirs.contains(a) || theirs.contains(&a.plain());
        let single = if own.len() == 1 { own.first() } else { None };
        own.iter().find(taken).or(single).copied()
    }

    pub(super) fn ask_signature(&mut self, signing: Signing) -> ClientStep {
        let request = self.key_request(signing, true);
        self.state = State::Signing(signing);
        ClientStep::Ask(ClientAsk::Signature {
            identity: signing.identity,
            algorithm: signing.algorithm,
            data: to_be_signed(&self.session_id, &request),
        })
    }

    pub(super) fn blob(&self, identity: usize) -> Vec<u8> {
        let identity = self.config.identities.get(identity);
        identity.map_or_else(Vec::new, |identity| identity.key.to_blob())
    }

    fn key_request(&self, signing: Signing, signed: bool) -> Vec<u8> {
        let mut out = Vec::new();
        put_key(
            &mut out,
            &self.config.user,
            signed,
            signing.algorithm.name(),
            &self.blob(signing.identity),
            self.hostbound.then_some(&self.host_key),
        );
        out
    }

    fn try_interactive(&mut self) -> Option<ClientStep> {
        if self.interactives >= self.config.prompts {
            return None;
        }
        self.interactives += 1;
        let mut payload = Vec::new();
        let method = Method::KeyboardInteractive.name();
        put_request(&mut payload, &self.config.user, method);
        payload.put_string(b"");
        payload.put_string(b"");
        self.out.push(payload);
        self.state = State::Interactive(0);
        Some(ClientStep::Wait)
    }

    fn try_password(&mut self) -> Option<ClientStep> {
        if self.passwords >= self.config.prompts {
            return None;
        }
        self.state = State::AskPassword;
        let failed = self.passwords;
        self.passwords += 1;
        Some(ClientStep::Ask(ClientAsk::Password { failed }))
    }

    /// Room for a whole message with these secrets, so that no copy of them is left behind when
    /// it grows.
    fn room(&self, secrets: &[&Secret<String>]) -> Vec<u8> {
        let lens = secrets.iter().map(|secret| secret.expose().len() + 4);
        Vec::with_capacity(self.config.user.len() + 64 + lens.sum::<usize>())
    }
}
