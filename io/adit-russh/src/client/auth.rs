//! The session's task before authentication: runs the handle's login attempts one after the other.

use std::pin::pin;
use std::time::Duration;

use adit_ssh::client::{Entrance, Tried};
use adit_ssh_proto::algorithm::KeyAlgorithm;
use tokio::sync::mpsc::{self, Receiver};

use super::login::{Reply, Said, Try, Wish};
use super::run::Stop;
use super::{Handler, KeyboardInteractiveAuthResponse, Session};
use crate::core::Core;
use crate::keys::HashAlg;
use crate::{Error, MethodSet};

/// Maximum time for the server to announce its algorithms, which it does with its first packets.
const EXTENSIONS: Duration = Duration::from_secs(1);
/// Capacity of the queue of unread server messages: more than the banners that it may send in total.
const SAID: usize = 64;

/// The login of one session.
pub(super) struct Auth<'a, H> {
    pub(super) entrance: &'a mut Entrance,
    pub(super) handler: &'a mut H,
    pub(super) session: &'a mut Session,
    pub(super) core: &'a Core,
}

impl<H: Handler> Auth<'_, H> {
    /// Runs until the user is authenticated, and returns the channel for the result.
    pub(super) async fn run(
        &mut self,
        wishes: &mut Receiver<Wish>,
    ) -> Result<Reply, Stop<H::Error>> {
        let mut next = None;
        loop {
            let wish = match next.take() {
                Some(wish) => wish,
                None => tokio::select! {
                    wish = wishes.recv() => wish.ok_or(Stop::Left)?,
                    end = self.entrance.idle() => match end? {},
                    () = self.core.left.notified() => return Err(Stop::Left),
                },
            };
            match wish {
                Wish::RsaHash(reply) => {
                    // The caller may be gone, here and below.
                    let _ = reply.send(self.rsa_hash(EXTENSIONS).await?);
                }
                Wish::Answers(_, reply) => drop(reply.send(Err(Error::Inconsistent))),
                Wish::Try(wish, reply) => {
                    let (tried, reply) = self.attempt(wish, reply, wishes, &mut next).await?;
                    match (tried, reply) {
                        (Tried::In, Some(reply)) => return Ok(reply),
                        (Tried::Failed { methods, partial }, Some(reply)) => {
                            let failure = KeyboardInteractiveAuthResponse::Failure {
                                remaining_methods: MethodSet::of(&methods),
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
    async fn rsa_hash(&mut self, patience: Duration) -> Result<Option<Option<HashAlg>>, Error> {
        let known = self.entrance.user_algorithms(patience).await?;
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
    async fn attempt(
        &mut self,
        wish: Try,
        reply: Reply,
        wishes: &mut Receiver<Wish>,
        next: &mut Option<Wish>,
    ) -> Result<(Tried, Option<Reply>), Stop<H::Error>> {
        let hash = self.rsa_hash(Duration::ZERO).await?;
        let (tell, mut told) = mpsc::channel(SAID);
        let login = wish.login(tell);
        let mut trying = pin!(self.entrance.log_in(&login));
        let (mut reply, mut asked) = (Some(reply), None);
        let tried = loop {
            tokio::select! {
                biased;
                Some(said) = told.recv() => match said {
                    Said::Banner(text) => {
                        let told = self.handler.auth_banner(&text, self.session).await;
                        told.map_err(Stop::Handler)?;
                    }
                    Said::Questions(questions, count, answer) => {
                        asked = Some((count, answer));
                        if let Some(reply) = reply.take() {
                            let _ = reply.send(Ok(questions));
                        }
                    }
                },
                wish = wishes.recv(), if asked.is_some() => match wish.ok_or(Stop::Left)? {
                    Wish::RsaHash(reply) => drop(reply.send(hash)),
                    Wish::Answers(answers, to) => match asked.take() {
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
                () = self.core.left.notified() => return Err(Stop::Left),
                done = &mut trying => break done?,
            }
        };
        while let Ok(said) = told.try_recv() {
            if let Said::Banner(text) = said {
                let told = self.handler.auth_banner(&text, self.session).await;
                told.map_err(Stop::Handler)?;
            }
        }
        Ok((tried, reply))
    }
}
