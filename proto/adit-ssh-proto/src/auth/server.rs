//! Server: asks the driver who may log in, and verifies here that users have the keys they claim.

use adit_crypto::Secret;

use super::config::ServerAuthConfig;
use super::message::{AuthMethod, InteractivePrompt};
use super::outgoing::{AuthOutbox, AuthPayload};
use super::progress::AuthProgress;
use crate::algorithm::KeyAlgorithm;
use crate::error::SshError;
use crate::key::{AnyKey, UserPresence};
use crate::msg;
use crate::wire::SshBufMut;

/// Maximum number of requests in a connection, including those that do not count as failed.
const MAX_REQUESTS: u32 = 128;

/// A question to the driver, which answers with [`ServerAuth::answer_query`].
///
/// For a user that does not exist, answer [`ServerAnswer::Reject`] after the same time.
#[derive(Debug)]
pub enum ServerAuthQuery {
    /// Asks whether the user needs no authentication. Only with [`ServerAuthConfig::ask_none`].
    NoAuthentication {
        /// User name.
        user: String,
    },
    /// Asks whether this key would be accepted. Nothing is proved yet: [`ServerAnswer::Accept`]
    /// does not log the user in.
    KeyQuery {
        /// User name.
        user: String,
        /// Key.
        key: AnyKey,
    },
    /// Asks whether the key belongs to the user. The peer has the private key: its signature was
    /// verified. For a certificate, only possession of its key was verified; check the authority.
    Key {
        /// User name.
        user: String,
        /// Key.
        key: AnyKey,
        /// User presence as reported by a security key.
        presence: Option<UserPresence>,
    },
    /// Asks whether this is the user's password. See [`super::passwords_equal`].
    Password {
        /// User name.
        user: String,
        /// Password.
        password: Secret<String>,
    },
    /// Asks whether to change the user's password to the new one.
    NewPassword {
        /// User name.
        user: String,
        /// Current password, which has to be verified.
        old: Secret<String>,
        /// New password.
        new: Secret<String>,
    },
    /// Asks for the prompts. Answer with [`ServerAnswer::Questions`], or a refusal.
    Interactive {
        /// User name.
        user: String,
        /// Submethods that the client prefers, a list that is usually empty.
        submethods: String,
    },
    /// Passes the responses, one for each prompt. More prompts may follow.
    Responses {
        /// User name.
        user: String,
        /// Responses.
        responses: Vec<Secret<String>>,
    },
}

/// An answer of the driver.
#[derive(Debug)]
pub enum ServerAnswer {
    /// Yes.
    Accept,
    /// No.
    Reject,
    /// Answers [`ServerAuthQuery::Interactive`] and [`ServerAuthQuery::Responses`] with prompts, 32 at most.
    Questions {
        /// Title.
        name: String,
        /// Text before the prompts.
        instruction: String,
        /// Prompts.
        prompts: Vec<InteractivePrompt>,
    },
    /// No, or not sufficient: from now on, offer these methods.
    Continue {
        /// Methods to offer.
        methods: Vec<AuthMethod>,
        /// True if this attempt was a partial success. It does not count as a failure then, and a
        /// key that was accepted does not count again.
        partial: bool,
    },
    /// Answers [`ServerAuthQuery::Password`] and [`ServerAuthQuery::NewPassword`]: the password has to be
    /// changed first.
    ChangePassword {
        /// Text for the user.
        prompt: String,
    },
}

/// The next step of the driver.
#[derive(Debug)]
#[must_use]
pub enum ServerStep {
    /// Send the output, then pass the peer's next payload.
    Wait,
    /// Answer this; pass no payload before.
    Query(ServerAuthQuery),
    /// The user is authenticated. The message that reports it is ready to be sent.
    Success(AuthenticatedUser),
}

/// An authenticated user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthenticatedUser {
    /// User name.
    pub user: String,
    /// Methods that succeeded, in order.
    pub methods: Vec<AuthMethod>,
    /// Key that signed last, if any; its permissions apply to the user.
    pub key: Option<AnyKey>,
}

/// The message or answer that the server waits for.
#[derive(Debug)]
pub(super) enum PendingAnswer {
    /// A request.
    Request,
    Nothing,
    Query {
        algorithm: Vec<u8>,
        blob: Vec<u8>,
    },
    Key(AnyKey),
    Password,
    Interactive,
    Responses,
    /// An INFO_RESPONSE with `count` responses; a request cancels it.
    Response {
        count: u32,
    },
}

/// Server side of the authentication of one connection.
#[derive(Debug)]
pub struct ServerAuth {
    pub(super) config: ServerAuthConfig,
    pub(super) session_id: Vec<u8>,
    pub(super) host_key: Vec<u8>,
    pub(super) out: AuthOutbox,
    pub(super) stage: ServerAuthStage,
    pub(super) progress: AuthProgress,
    pub(super) pending: PendingAnswer,
    /// Algorithm of the key that was presented last.
    pub(super) algorithm: Option<KeyAlgorithm>,
    requests: u32,
    failures: u32,
    tried_none: bool,
}

/// Stage of a connection's authentication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerAuthStage {
    Service,
    Auth,
    Done,
}

impl ServerAuth {
    /// Creates the server side for a connection with this session identifier and host key (its
    /// blob).
    #[must_use]
    pub fn new(config: ServerAuthConfig, session_id: &[u8], host_key: &[u8]) -> Self {
        Self {
            config,
            session_id: session_id.to_vec(),
            host_key: host_key.to_vec(),
            out: AuthOutbox::default(),
            stage: ServerAuthStage::Service,
            progress: AuthProgress::default(),
            pending: PendingAnswer::Request,
            algorithm: None,
            requests: 0,
            failures: 0,
            tried_none: false,
        }
    }

    /// Returns the next payload to send.
    pub fn poll_output(&mut self) -> Option<AuthPayload> {
        self.out.pop()
    }

    /// Returns the algorithm of the key that was presented last.
    #[must_use]
    pub const fn algorithm(&self) -> Option<KeyAlgorithm> {
        self.algorithm
    }

    /// True if an answer is pending, and no payload may be passed.
    #[must_use]
    pub const fn is_asking(&self) -> bool {
        !matches!(
            self.pending,
            PendingAnswer::Request | PendingAnswer::Response { .. }
        )
    }

    /// Handles the driver's answer.
    ///
    /// # Errors
    /// [`SshError::Policy`] after too many failures, or if the answer does not match the question.
    pub fn answer_query(&mut self, answer: ServerAnswer) -> Result<ServerStep, SshError> {
        use ServerAnswer::{Accept, ChangePassword, Continue, Questions, Reject};
        let pending = core::mem::replace(&mut self.pending, PendingAnswer::Request);
        match (pending, answer) {
            (PendingAnswer::Request | PendingAnswer::Response { .. }, _) => {
                Err(SshError::Policy("an answer without a question"))
            }
            (PendingAnswer::Nothing, Accept) => Ok(self.log_in()),
            (PendingAnswer::Query { algorithm, blob }, Accept) => {
                let mut out = vec![msg::USERAUTH_PK_OK];
                out.put_string(&algorithm);
                out.put_string(&blob);
                self.out.push(out);
                Ok(ServerStep::Wait)
            }
            (PendingAnswer::Key(key), Accept) => {
                self.progress.keys.push(key);
                self.on_method_success(AuthMethod::PublicKey)
            }
            (PendingAnswer::Password, Accept) => self.on_method_success(AuthMethod::Password),
            (PendingAnswer::Responses, Accept) => {
                self.on_method_success(AuthMethod::KeyboardInteractive)
            }
            (PendingAnswer::Password, ChangePassword { prompt }) => {
                let mut out = vec![msg::USERAUTH_PASSWD_CHANGEREQ];
                out.put_string(prompt.as_bytes());
                out.put_string(b"");
                self.out.push(out);
                Ok(ServerStep::Wait)
            }
            (
                PendingAnswer::Interactive | PendingAnswer::Responses,
                Questions {
                    name,
                    instruction,
                    prompts,
                },
            ) => self.send_prompts(&name, &instruction, &prompts),
            (pending, Continue { methods, partial }) => {
                self.config.methods = methods;
                match pending {
                    PendingAnswer::Nothing => return self.fail_none_request(),
                    _ if !partial => return self.fail_attempt(),
                    PendingAnswer::Key(key) => self.progress.keys.push(key),
                    // A query or an unanswered prompt cannot be a success.
                    PendingAnswer::Query { .. } | PendingAnswer::Interactive => {
                        return self.fail_attempt();
                    }
                    _ => {}
                }
                self.put_failure(true);
                Ok(ServerStep::Wait)
            }
            (PendingAnswer::Nothing, Reject) => self.fail_none_request(),
            (_, Reject) => self.fail_attempt(),
            // Prompts that were not asked for do not log anyone in.
            _ => Err(SshError::Policy("the answer does not match the question")),
        }
    }

    fn on_method_success(&mut self, method: AuthMethod) -> Result<ServerStep, SshError> {
        if self.progress.record_success(method, &self.config) {
            return Ok(self.log_in());
        }
        self.put_failure(true);
        Ok(ServerStep::Wait)
    }

    fn log_in(&mut self) -> ServerStep {
        self.out.push(vec![msg::USERAUTH_SUCCESS]);
        self.stage = ServerAuthStage::Done;
        let progress = core::mem::take(&mut self.progress);
        ServerStep::Success(AuthenticatedUser {
            user: progress.user,
            methods: progress.done,
            key: progress.keys.into_iter().next_back(),
        })
    }

    /// Counts a failed attempt and reports it to the peer.
    pub(super) fn fail_attempt(&mut self) -> Result<ServerStep, SshError> {
        self.failures += 1;
        if self.failures >= self.config.tries {
            return Err(SshError::Policy("too many failed authentication attempts"));
        }
        self.put_failure(false);
        Ok(ServerStep::Wait)
    }

    /// The first `none` request asks for the methods and is not counted as a failure.
    pub(super) fn fail_none_request(&mut self) -> Result<ServerStep, SshError> {
        if core::mem::replace(&mut self.tried_none, true) {
            return self.fail_attempt();
        }
        self.put_failure(false);
        Ok(ServerStep::Wait)
    }

    /// Counts a message that causes work.
    pub(super) const fn count_request(&mut self) -> Result<(), SshError> {
        self.requests += 1;
        if self.requests > MAX_REQUESTS {
            return Err(SshError::Policy("too many authentication requests"));
        }
        Ok(())
    }

    fn put_failure(&mut self, partial: bool) {
        let mut out = vec![msg::USERAUTH_FAILURE];
        let next = self.progress.next_methods(&self.config);
        out.put_names(next.into_iter().map(AuthMethod::name));
        out.put_bool(partial);
        self.out.push(out);
    }

    fn send_prompts(
        &mut self,
        name: &str,
        instruction: &str,
        prompts: &[InteractivePrompt],
    ) -> Result<ServerStep, SshError> {
        let count = u32::try_from(prompts.len()).unwrap_or(u32::MAX);
        if count > super::message::MAX_PROMPTS {
            return Err(SshError::Policy("too many prompts"));
        }
        let mut out = vec![msg::USERAUTH_INFO_REQUEST];
        for text in [name, instruction, ""] {
            out.put_string(text.as_bytes());
        }
        out.put_u32(count);
        for prompt in prompts {
            out.put_string(prompt.text.as_bytes());
            out.put_bool(prompt.echo);
        }
        self.out.push(out);
        self.pending = PendingAnswer::Response { count };
        Ok(ServerStep::Wait)
    }
}
