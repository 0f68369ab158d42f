//! Client: tries the methods one after the other.

use adit_crypto::Secret;
use adit_wire::narrow_int;

use super::config::ClientAuthConfig;
use super::message::{
    AuthMethod, InteractivePrompt, data_to_sign, put_key, put_request, service_message,
};
use super::outgoing::{AuthOutbox, AuthPayload};
use crate::algorithm::KeyAlgorithm;
use crate::error::SshError;
use crate::msg;
use crate::wire::{MessageReader, SshBufMut};

/// A question to the driver, which answers with [`ClientAuth::answer_query`].
#[derive(Debug)]
pub enum ClientAuthQuery {
    /// Asks for a signature of `data` by this identity.
    Signature {
        /// Index in [`ClientAuthConfig::identities`].
        identity: usize,
        /// Signature algorithm.
        algorithm: KeyAlgorithm,
        /// Data to sign.
        data: Vec<u8>,
    },
    /// Asks for the password.
    Password {
        /// Number of failed attempts so far.
        failed: u32,
    },
    /// Asks for a new password, because the server requires a change.
    NewPassword {
        /// Text from the server.
        prompt: String,
    },
    /// Asks for responses to the server's prompts. There may be no prompts, only text to display.
    Questions {
        /// Title, which may be empty.
        name: String,
        /// Text before the prompts, which may be empty.
        instruction: String,
        /// Prompts.
        prompts: Vec<InteractivePrompt>,
    },
}

/// An answer of the driver.
#[derive(Debug)]
pub enum ClientAnswer {
    /// Signature with its algorithm name, as returned by [`crate::key::Signer::sign_data`] and by
    /// agents.
    Signature(Vec<u8>),
    /// Password.
    Password(Secret<String>),
    /// Old and new password.
    NewPassword {
        /// Current password.
        old: Secret<String>,
        /// New password.
        new: Secret<String>,
    },
    /// Response to each prompt.
    Responses(Vec<Secret<String>>),
    /// No answer: the next method is tried.
    Decline,
}

/// The next step of the driver.
#[derive(Debug)]
#[must_use]
pub enum ClientStep {
    /// Send the output, then pass the server's next payload.
    Wait,
    /// Text from the server, safe to display; then pass its next payload.
    Banner(String),
    /// Answer this; pass no payload before.
    Query(ClientAuthQuery),
    /// The user is authenticated.
    Success,
    /// No method is left to try.
    Failed {
        /// Methods that the server would accept.
        methods: Vec<String>,
    },
}

/// The message or answer that the client waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientAuthState {
    /// SERVICE_ACCEPT.
    Service,
    /// The result of `none`.
    None,
    /// PK_OK.
    Query(SigningAttempt),
    /// The driver's signature.
    Signing(SigningAttempt),
    /// The result of a signature.
    Signed(SigningAttempt),
    /// The driver's password.
    AskPassword,
    /// The result of a password.
    Password,
    /// The driver's new password.
    AskNewPassword,
    /// Prompts, or a result. Contains the number of rounds so far.
    Interactive(u32),
    /// The driver's responses: their number, and the number of rounds.
    AskResponses(usize, u32),
    Done,
    Failed,
}

/// An identity that is being tried, with its algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SigningAttempt {
    pub(super) identity: usize,
    pub(super) algorithm: KeyAlgorithm,
}

/// Client side of the authentication of one user at one server.
#[derive(Debug)]
pub struct ClientAuth {
    pub(super) config: ClientAuthConfig,
    session_id: Vec<u8>,
    host_key: Vec<u8>,
    /// Key algorithms that the server accepts, if it announced them.
    algorithms: Option<Vec<KeyAlgorithm>>,
    hostbound: bool,
    pub(super) out: AuthOutbox,
    pub(super) state: ClientAuthState,
    /// Methods that can continue, as listed by the server.
    pub(super) allowed: Vec<String>,
    /// For each identity, true if it was tried.
    pub(super) tried_identities: Vec<bool>,
    /// Indices of the identities that were part of a partial success.
    pub(super) accepted_identities: Vec<usize>,
    pub(super) passwords: u32,
    pub(super) interactives: u32,
    pub(super) partials: u32,
    pub(super) banners: u32,
    /// The last attempt was a partial success.
    pub(super) partial: bool,
}

impl ClientAuth {
    /// Creates the client side for a connection with this session identifier and this host key (its
    /// blob), which must have been accepted. The first payload is ready to be sent.
    #[must_use]
    pub fn new(config: ClientAuthConfig, session_id: &[u8], host_key: &[u8]) -> Self {
        let mut out = AuthOutbox::default();
        out.push(service_message(
            msg::SERVICE_REQUEST,
            super::message::USERAUTH,
        ));
        Self {
            tried_identities: vec![false; config.identities.len()],
            config,
            session_id: session_id.to_vec(),
            host_key: host_key.to_vec(),
            algorithms: None,
            hostbound: false,
            out,
            state: ClientAuthState::Service,
            allowed: Vec::new(),
            accepted_identities: Vec::new(),
            passwords: 0,
            interactives: 0,
            partials: 0,
            banners: 0,
            partial: false,
        }
    }

    /// Sets what the server announced in EXT_INFO: the key algorithms that it accepts, and whether
    /// it accepts signatures that cover its host key. May be called repeatedly.
    pub fn set_server_extensions(&mut self, algorithms: Option<&[KeyAlgorithm]>, hostbound: bool) {
        self.algorithms = algorithms.map(<[_]>::to_vec);
        self.hostbound = hostbound;
    }

    /// Returns the next payload to send.
    pub fn poll_output(&mut self) -> Option<AuthPayload> {
        self.out.pop()
    }

    /// Handles the driver's answer.
    ///
    /// # Errors
    /// [`SshError::Policy`] if the answer does not match the question.
    pub fn answer_query(&mut self, answer: ClientAnswer) -> Result<ClientStep, SshError> {
        match (self.state, answer) {
            (ClientAuthState::Signing(signing), ClientAnswer::Signature(signature)) => {
                let named = MessageReader::new(&signature, "signature").read_string();
                let wanted = signing.algorithm.without_certificate().name();
                if named != Ok(wanted.as_bytes()) {
                    // For example, an agent that only supports SHA-1: the server would reject it.
                    return Ok(self.next_try());
                }
                let mut payload = self.key_request(signing, true);
                payload.put_string(&signature);
                self.out.push(payload);
                self.state = ClientAuthState::Signed(signing);
            }
            (ClientAuthState::AskPassword, ClientAnswer::Password(password)) => {
                let mut payload = self.buffer_for_secrets(&[&password]);
                put_request(&mut payload, &self.config.user, AuthMethod::Password.name());
                payload.put_bool(false);
                payload.put_string(password.expose().as_bytes());
                self.out.push_hidden(payload);
                self.state = ClientAuthState::Password;
            }
            (ClientAuthState::AskNewPassword, ClientAnswer::NewPassword { old, new }) => {
                let mut payload = self.buffer_for_secrets(&[&old, &new]);
                put_request(&mut payload, &self.config.user, AuthMethod::Password.name());
                payload.put_bool(true);
                payload.put_string(old.expose().as_bytes());
                payload.put_string(new.expose().as_bytes());
                self.out.push_hidden(payload);
                self.state = ClientAuthState::Password;
            }
            (ClientAuthState::AskResponses(count, rounds), ClientAnswer::Responses(responses))
                if responses.len() == count =>
            {
                let mut payload = self.buffer_for_secrets(&responses.iter().collect::<Vec<_>>());
                payload.put_u8(msg::USERAUTH_INFO_RESPONSE);
                payload.put_u32(narrow_int(count));
                for response in &responses {
                    payload.put_string(response.expose().as_bytes());
                }
                self.out.push_hidden(payload);
                self.state = ClientAuthState::Interactive(rounds);
            }
            (state, ClientAnswer::Decline) => return self.on_decline(state),
            _ => return Err(SshError::Policy("the answer does not match the question")),
        }
        Ok(ClientStep::Wait)
    }

    fn on_decline(&mut self, state: ClientAuthState) -> Result<ClientStep, SshError> {
        match state {
            ClientAuthState::Signing(_) => {}
            // A password that is not available now will not be available in the next attempt,
            // either.
            ClientAuthState::AskPassword | ClientAuthState::AskNewPassword => {
                self.passwords = self.config.prompts;
            }
            ClientAuthState::AskResponses(..) => self.interactives = self.config.prompts,
            _ => return Err(SshError::Policy("an answer without a question")),
        }
        Ok(self.next_try())
    }

    /// Tries the next remaining method or key.
    pub(super) fn next_try(&mut self) -> ClientStep {
        for method in self.config.methods.clone() {
            if !self.allowed.iter().any(|name| name == method.name()) {
                continue;
            }
            let next = match method {
                AuthMethod::PublicKey => self.try_key(),
                AuthMethod::KeyboardInteractive => self.try_interactive(),
                AuthMethod::Password => self.try_password(),
            };
            if let Some(step) = next {
                return step;
            }
        }
        self.state = ClientAuthState::Failed;
        ClientStep::Failed {
            methods: self.allowed.clone(),
        }
    }

    fn try_key(&mut self) -> Option<ClientStep> {
        loop {
            let identity = self.tried_identities.iter().position(|tried| !tried)?;
            if let Some(tried) = self.tried_identities.get_mut(identity) {
                *tried = true;
            }
            let Some(algorithm) = self.choose_algorithm(identity) else {
                continue;
            };
            let signing = SigningAttempt {
                identity,
                algorithm,
            };
            if !self.config.identities.get(identity)?.query {
                return Some(self.ask_signature(signing));
            }
            let query = self.key_request(signing, false);
            self.out.push(query);
            self.state = ClientAuthState::Query(signing);
            return Some(ClientStep::Wait);
        }
    }

    /// Returns the algorithm for an identity, by the server's announcement if there was one. Keys
    /// with a single algorithm are tried even if it is not listed, since lists are not always
    /// complete; an RSA key is not, since a server without SHA-2 requires SHA-1.
    fn choose_algorithm(&self, identity: usize) -> Option<KeyAlgorithm> {
        let own = self.config.identities.get(identity)?.key.algorithms();
        let Some(theirs) = &self.algorithms else {
            return own.first().copied();
        };
        let taken =
            |a: &&KeyAlgorithm| theirs.contains(a) || theirs.contains(&a.without_certificate());
        let single = if own.len() == 1 { own.first() } else { None };
        own.iter().find(taken).or(single).copied()
    }

    pub(super) fn ask_signature(&mut self, signing: SigningAttempt) -> ClientStep {
        let request = self.key_request(signing, true);
        self.state = ClientAuthState::Signing(signing);
        ClientStep::Query(ClientAuthQuery::Signature {
            identity: signing.identity,
            algorithm: signing.algorithm,
            data: data_to_sign(&self.session_id, &request),
        })
    }

    pub(super) fn identity_blob(&self, identity: usize) -> Vec<u8> {
        let identity = self.config.identities.get(identity);
        identity.map_or_else(Vec::new, |identity| identity.key.to_blob())
    }

    fn key_request(&self, signing: SigningAttempt, signed: bool) -> Vec<u8> {
        let mut out = Vec::new();
        put_key(
            &mut out,
            &self.config.user,
            signed,
            signing.algorithm.name(),
            &self.identity_blob(signing.identity),
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
        let method = AuthMethod::KeyboardInteractive.name();
        put_request(&mut payload, &self.config.user, method);
        payload.put_string(b"");
        payload.put_string(b"");
        self.out.push(payload);
        self.state = ClientAuthState::Interactive(0);
        Some(ClientStep::Wait)
    }

    fn try_password(&mut self) -> Option<ClientStep> {
        if self.passwords >= self.config.prompts {
            return None;
        }
        self.state = ClientAuthState::AskPassword;
        let failed = self.passwords;
        self.passwords += 1;
        Some(ClientStep::Query(ClientAuthQuery::Password { failed }))
    }

    /// Allocates a buffer for a whole message with these secrets, because growing would leave a
    /// copy of them behind in memory.
    fn buffer_for_secrets(&self, secrets: &[&Secret<String>]) -> Vec<u8> {
        let lens = secrets.iter().map(|secret| secret.expose().len() + 4);
        Vec::with_capacity(self.config.user.len() + 64 + lens.sum::<usize>())
    }
}
