//! The server's machine: who may come in is asked, that he is who he says is checked here.

use adit_crypto::Secret;

use super::config::ServerConfig;
use super::message::{Method, Prompt};
use super::outgoing::{Outbox, Outgoing};
use super::progress::Progress;
use crate::algorithm::KeyAlgorithm;
use crate::error::SshError;
use crate::key::{AnyKey, Presence};
use crate::msg;
use crate::wire::Put;

/// Requests of a connection, those that don't count as failed included.
const MAX_REQUESTS: u32 = 128;

/// A question to the driver, who answers with [`ServerAuth::answer`].
///
/// For a user who does not exist the answer is [`ServerAnswer::Reject`], after the same time.
#[derive(Debug)]
pub enum ServerAsk {
    /// Does the user need no authentication? Only with [`ServerConfig::ask_none`].
    Nothing {
        /// The user.
        user: String,
    },
    /// Would this key do? Nothing is proven: [`ServerAnswer::Accept`] lets nobody in.
    KeyQuery {
        /// The user.
        user: String,
        /// The key.
        key: AnyKey,
    },
    /// The peer has this key, its signature was verified. Is the key the user's? Of a certificate
    /// nothing but the possession of its key is known: the authority is to be checked.
    Key {
        /// The user.
        user: String,
        /// The key.
        key: AnyKey,
        /// What a token says of its user.
        presence: Option<Presence>,
    },
    /// Is this the user's password? See [`super::password_eq`].
    Password {
        /// The user.
        user: String,
        /// The password.
        password: Secret<String>,
    },
    /// May the user's password become this one?
    NewPassword {
        /// The user.
        user: String,
        /// The password that has to be right.
        old: Secret<String>,
        /// The new one.
        new: Secret<String>,
    },
    /// What is to be asked? The answer is [`ServerAnswer::Questions`], or a refusal.
    Interactive {
        /// The user.
        user: String,
        /// What the client would like, a list that is mostly empty.
        submethods: String,
    },
    /// The answers to the questions, as many as there were. More questions may follow.
    Responses {
        /// The user.
        user: String,
        /// The answers.
        responses: Vec<Secret<String>>,
    },
}

/// The driver's answer.
#[derive(Debug)]
pub enum ServerAnswer {
    /// Yes.
    Accept,
    /// No.
    Reject,
    /// To [`ServerAsk::Interactive`] and [`ServerAsk::Responses`]: these are the questions, 32 at
    /// most.
    Questions {
        /// A title.
        name: String,
        /// Words before the questions.
        instruction: String,
        /// The questions.
        prompts: Vec<Prompt>,
    },
    /// No, or not all of it: from now on these methods are offered.
    GoOn {
        /// The methods.
        methods: Vec<Method>,
        /// Whether this try was right, as one part of several. It counts as no failure then, and a
        /// key that was right does not do again.
        partial: bool,
    },
    /// To [`ServerAsk::Password`] and [`ServerAsk::NewPassword`]: it has to be changed first.
    ChangePassword {
        /// What the user is told.
        prompt: String,
    },
}

/// What comes next.
#[derive(Debug)]
#[must_use]
pub enum ServerStep {
    /// The peer's next payload, after what is to be sent was sent.
    Wait,
    /// The answer to this; no payload before.
    Ask(ServerAsk),
    /// The user is in. The message that tells him waits to be sent.
    Success(Login),
}

/// A user who is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// The user.
    pub user: String,
    /// The methods that succeeded, in their order.
    pub methods: Vec<Method>,
    /// The key that signed last, if one did; its permissions are the user's.
    pub key: Option<AnyKey>,
}

/// What an answer is waited for, or a message.
#[derive(Debug)]
pub(super) enum Pending {
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
    /// INFO_RESPONSE with as many answers; a request gives it up.
    Response {
        count: u32,
    },
}

/// Authenticates the user of one connection.
#[derive(Debug)]
pub struct ServerAuth {
    pub(super) config: ServerConfig,
    pub(super) session_id: Vec<u8>,
    pub(super) host_key: Vec<u8>,
    pub(super) out: Outbox,
    pub(super) stage: Stage,
    pub(super) progress: Progress,
    pub(super) pending: Pending,
    /// What the key that was shown last is used with.
    pub(super) algorithm: Option<KeyAlgorithm>,
    requests: u32,
    failures: u32,
    tried_none: bool,
}

/// Where the connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Service,
    Auth,
    Done,
}

impl ServerAuth {
    /// For a connection with this session id and host key (its blob).
    #[must_use]
    pub fn new(config: ServerConfig, session_id: &[u8], host_key: &[u8]) -> Self {
        Self {
            config,
            session_id: session_id.to_vec(),
            host_key: host_key.to_vec(),
            out: Outbox::default(),
            stage: Stage::Service,
            progress: Progress::default(),
            pending: Pending::Request,
            algorithm: None,
            requests: 0,
            failures: 0,
            tried_none: false,
        }
    }

    /// The next payload to be sent.
    pub fn poll_output(&mut self) -> Option<Outgoing> {
        self.out.pop()
    }

    /// The algorithm of the key that was shown last.
    #[must_use]
    pub const fn algorithm(&self) -> Option<KeyAlgorithm> {
        self.algorithm
    }

    /// Whether an answer is waited for, and no payload may be fed.
    #[must_use]
    pub const fn is_asking(&self) -> bool {
        !matches!(self.pending, Pending::Request | Pending::Response { .. })
    }

    /// Takes the driver's answer.
    ///
    /// # Errors
    /// [`SshError::Policy`] after too many failures, and for an answer that does not belong to
    /// what was asked.
    pub fn answer(&mut self, answer: ServerAnswer) -> Result<ServerStep, SshError> {
        use ServerAnswer::{Accept, ChangePassword, GoOn, Questions, Reject};
        let pending = core::mem::replace(&mut self.pending, Pending::Request);
        match (pending, answer) {
            (Pending::Request | Pending::Response { .. }, _) => {
                Err(SshError::Policy("an answer that was not asked for"))
            }
            (Pending::Nothing, Accept) => Ok(self.login()),
            (Pending::Query { algorithm, blob }, Accept) => {
                let mut out = vec![msg::USERAUTH_PK_OK];
                out.put_string(&algorithm);
                out.put_string(&blob);
                self.out.push(out);
                Ok(ServerStep::Wait)
            }
            (Pending::Key(key), Accept) => {
                self.progress.keys.push(key);
                self.succeed(Method::PublicKey)
            }
            (Pending::Password, Accept) => self.succeed(Method::Password),
            (Pending::Responses, Accept) => self.succeed(Method::KeyboardInteractive),
            (Pending::Password, ChangePassword { prompt }) => {
                let mut out = vec![msg::USERAUTH_PASSWD_CHANGEREQ];
                out.put_string(prompt.as_bytes());
                out.put_string(b"");
                self.out.push(out);
                Ok(ServerStep::Wait)
            }
            (
                Pending::Interactive | Pending::Responses,
                Questions {
                    name,
                    instruction,
                    prompts,
                },
            ) => self.question(&name, &instruction, &prompts),
            (pending, GoOn { methods, partial }) => {
                self.config.methods = methods;
                match pending {
                    Pending::Nothing => return self.fail_nothing(),
                    _ if !partial => return self.fail(),
                    Pending::Key(key) => self.progress.keys.push(key),
                    // Of what is only asked about, or was never answered, nothing was right.
                    Pending::Query { .. } | Pending::Interactive => return self.fail(),
                    _ => {}
                }
                self.put_failure(true);
                Ok(ServerStep::Wait)
            }
            (Pending::Nothing, Reject) => self.fail_nothing(),
            (_, Reject) => self.fail(),
            // Nobody is let in by questions that were not asked.
            _ => Err(SshError::Policy("an answer to another question")),
        }
    }

    fn succeed(&mut self, method: Method) -> Result<ServerStep, SshError> {
        if self.progress.succeed(method, &self.config) {
            return Ok(self.login());
        }
        self.put_failure(true);
        Ok(ServerStep::Wait)
    }

    fn login(&mut self) -> ServerStep {
        self.out.push(vec![msg::USERAUTH_SUCCESS]);
        self.stage = Stage::Done;
        let progress = core::mem::take(&mut self.progress);
        ServerStep::Success(Login {
            user: progress.user,
            methods: progress.done,
            key: progress.keys.into_iter().next_back(),
        })
    }

    /// Counts a failed try and tells the peer.
    pub(super) fn fail(&mut self) -> Result<ServerStep, SshError> {
        self.failures += 1;
        if self.failures >= self.config.tries {
            return Err(SshError::Policy("too many failed tries to authenticate"));
        }
        self.put_failure(false);
        Ok(ServerStep::Wait)
    }

    /// The first `none` is how a client asks for the methods, and no failed try.
    pub(super) fn fail_nothing(&mut self) -> Result<ServerStep, SshError> {
        if core::mem::replace(&mut self.tried_none, true) {
            return self.fail();
        }
        self.put_failure(false);
        Ok(ServerStep::Wait)
    }

    /// Counts a message that makes work.
    pub(super) const fn count(&mut self) -> Result<(), SshError> {
        self.requests += 1;
        if self.requests > MAX_REQUESTS {
            return Err(SshError::Policy("too many requests to authenticate"));
        }
        Ok(())
    }

    fn put_failure(&mut self, partial: bool) {
        let mut out = vec![msg::USERAUTH_FAILURE];
        let next = self.progress.next(&self.config);
        out.put_names(next.into_iter().map(Method::name));
        out.put_bool(partial);
        self.out.push(out);
    }

    fn question(
        &mut self,
        name: &str,
        instruction: &str,
        prompts: &[Prompt],
    ) -> Result<ServerStep, SshError> {
        let count = u32::try_from(prompts.len()).unwrap_or(u32::MAX);
        if count > super::message::MAX_PROMPTS {
            return Err(SshError::Policy("too many questions"));
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
        self.pending = Pending::Response { count };
        Ok(ServerStep::Wait)
    }
}
