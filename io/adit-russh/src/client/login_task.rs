//! The session's task before authentication: runs the handle's login attempts one after the other.

use std::pin::pin;
use std::time::Duration;

use adit_ssh::client::{LoginOutcome, PendingLogin};
use adit_ssh_proto::algorithm::KeyAlgorithm;
use tokio::sync::mpsc::{self, Receiver};

use super::login_request::{LoginAttempt, LoginReply, LoginRequest, ServerMessage};
use super::task::StopReason;
use super::{Handler, KeyboardInteractiveAuthResponse, Session};
use crate::keys::HashAlg;
use crate::session_core::SessionCore;
use crate::{Error, MethodSet};

/// Maximum time for the server to announce its algorithms, which it does with its first packets.
const EXTENSION_TIMEOUT: Duration = Duration::from_secs(1);
/// Capacity of the queue of unread server messages: more than the banners that it may send in total.
const MAX_SERVER_MESSAGES: usize = 64;

/// The login of one session.
pub(super) struct LoginRunner<'a, H> {
    pub(super) pending_login: &'a mut PendingLogin,
    pub(super) handler: &'a mut H,
    pub(super) session: &'a mut Session,
    pub(super) core: &'a SessionCore,
}

impl<H: Handler> LoginRunner<'_, H> {
    /// Runs until the user is authenticated, and returns the channel for the result.
    pub(super) async fn run_logins(
        &mut self,
        wishes: &mut Receiver<LoginRequest>,
    ) -> Result<LoginReply, StopReason<H::Error>> {
        let mut next = None;
        loop {
            let wish = match next.take() {
                Some(wish) => wish,
                None => tokio::select! {
                    wish = wishes.recv() => wish.ok_or(StopReason::Closed)?,
                    end = self.pending_login.wait_closed() => match end? {},
                    () = self.core.leave_requested.notified() => return Err(StopReason::Closed),
                },
            };
            match wish {
                LoginRequest::RsaHash(reply) => {
                    // The caller may be gone, here and below.
                    let _ = reply.send(self.best_rsa_hash(EXTENSION_TIMEOUT).await?);
                }
                LoginRequest::Answers(_, reply) => drop(reply.send(Err(Error::Inconsistent))),
                LoginRequest::Attempt(wish, reply) => {
                    let (tried, reply) = self.run_attempt(wish, reply, wishes, &mut next).await?;
                    match (tried, reply) {
                        (LoginOutcome::LoggedIn, Some(reply)) => return Ok(reply),
                        (LoginOutcome::Failed { methods, partial }, Some(reply)) => {
                            let failure = KeyboardInteractiveAuthResponse::Failure {
                                remaining_methods: MethodSet::from_names(&methods),
                                partial_success: partial,
                            };
                            let _ = reply.send(Ok(failure));
                        }
                        (_, None) => {}
                    }
                }
            }
        }
    }

    /// Returns the best hash for RSA keys that the server accepts; the outer `None` means that it does
    /// not say.
    async fn best_rsa_hash(
        &mut self,
        patience: Duration,
    ) -> Result<Option<Option<HashAlg>>, Error> {
        let known = self.pending_login.user_algorithms(patience).await?;
        Ok(known.map(|known| {
            let hashes = [
                (KeyAlgorithm::RsaSha512, HashAlg::Sha512),
                (KeyAlgorithm::RsaSha256, HashAlg::Sha256),
            ];
            let found = hashes.iter().find(|(name, _)| known.contains(name));
            found.map(|(_, hash)| *hash)
        }))
    }

    /// Runs one attempt, with the server's prompts and their answers. Returns the channel for the
    /// result, or `None` if the attempt was abandoned for `next`.
    async fn run_attempt(
        &mut self,
        wish: LoginAttempt,
        reply: LoginReply,
        wishes: &mut Receiver<LoginRequest>,
        next: &mut Option<LoginRequest>,
    ) -> Result<(LoginOutcome, Option<LoginReply>), StopReason<H::Error>> {
        let hash = self.best_rsa_hash(Duration::ZERO).await?;
        let (tell, mut told) = mpsc::channel(MAX_SERVER_MESSAGES);
        let login = wish.into_login(tell);
        let mut trying = pin!(self.pending_login.log_in(&login));
        let (mut reply, mut asked) = (Some(reply), None);
        let tried = loop {
            tokio::select! {
                biased;
                Some(said) = told.recv() => match said {
                    ServerMessage::Banner(text) => {
                        let told = self.handler.auth_banner(&text, self.session).await;
                        told.map_err(StopReason::Handler)?;
                    }
                    ServerMessage::Questions(questions, count, answer) => {
                        asked = Some((count, answer));
                        if let Some(reply) = reply.take() {
                            let _ = reply.send(Ok(questions));
                        }
                    }
                },
                wish = wishes.recv(), if asked.is_some() => match wish.ok_or(StopReason::Closed)? {
                    LoginRequest::RsaHash(reply) => drop(reply.send(hash)),
                    LoginRequest::Answers(answers, to) => match asked.take() {
                        Some((count, answer)) if count == answers.len() => {
                            let _ = answer.send(answers);
                            reply = Some(to);
                        }
                        // The prompts stay open.
                        open => {
                            asked = open;
                            let _ = to.send(Err(Error::Inconsistent));
                        }
                    },
                    // Another request abandons open prompts.
                    other => (asked, *next) = (None, Some(other)),
                },
                () = self.core.leave_requested.notified() => return Err(StopReason::Closed),
                done = &mut trying => break done?,
            }
        };
        while let Ok(said) = told.try_recv() {
            if let ServerMessage::Banner(text) = said {
                let told = self.handler.auth_banner(&text, self.session).await;
                told.map_err(StopReason::Handler)?;
            }
        }
        Ok((tried, reply))
    }
}
