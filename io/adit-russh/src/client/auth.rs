//! The task while the user is not in: one try after the other, as the handle wants.

use std::time::Duration;

use adit_crypto::Secret;
use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::auth::{ClientAnswer, ClientAsk, ClientAuth, ClientStep};
use adit_ssh_proto::transport::Event;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::login::{Outcome, Prompt, Try, Wish, With};
use super::run::Stop;
use super::{Handler, Session};
use crate::engine::{Came, Wire};
use crate::keys::HashAlg;
use crate::{AuthResult, Error, MethodSet};

/// How long the server may take to tell its algorithms, which it does with its first packets.
const EXTENSIONS: Duration = Duration::from_secs(1);

/// The login of one session.
pub(super) struct Auth<'a, H, IO> {
    pub(super) wire: &'a mut Wire<IO>,
    pub(super) handler: &'a mut H,
    pub(super) session: &'a mut Session,
    machine: Option<ClientAuth>,
    /// The machine waits for answers to the server's questions.
    asked: bool,
}

impl<'a, H: Handler, IO: AsyncRead + AsyncWrite + Unpin> Auth<'a, H, IO> {
    pub(super) const fn new(
        wire: &'a mut Wire<IO>,
        handler: &'a mut H,
        session: &'a mut Session,
    ) -> Self {
        Self {
            wire,
            handler,
            session,
            machine: None,
            asked: false,
        }
    }

    /// Goes on until the user is in; false if the handle is gone.
    pub(super) async fn run(
        &mut self,
        wishes: &mut mpsc::Receiver<Wish>,
        mut is_in: impl FnMut(),
    ) -> Result<bool, Stop<H::Error>> {
        loop {
            let wish = tokio::select! {
                wish = wishes.recv() => wish,
                came = self.wire.next() => {
                    self.unasked(came?)?;
                    continue;
                }
            };
            let (done, reply) = match wish {
                None => return Ok(false),
                Some(Wish::RsaHash(reply)) => {
                    let hash = self.rsa_hash().await?;
                    // Whoever asked may be gone.
                    let _ = reply.send(hash);
                    continue;
                }
                Some(Wish::Answers(answers, reply)) => (self.go_on(answers).await, reply),
                Some(Wish::Try(wish, reply)) => (self.begin(wish).await, reply),
            };
            let outcome = match done {
                Ok(outcome) => outcome,
                // The session goes on: it was the call that was wrong.
                Err(Stop::Error(why @ Error::Inconsistent)) => {
                    let _ = reply.send(Err(why));
                    continue;
                }
                Err(why) => return Err(why),
            };
            let success = matches!(outcome, Outcome::Done(AuthResult::Success));
            if success {
                is_in();
            }
            // Whoever asked may be gone.
            drop(reply.send(Ok(outcome)));
            if success {
                return Ok(true);
            }
        }
    }

    /// Something came that nobody has asked for.
    fn unasked(&mut self, came: Came) -> Result<(), Error> {
        match came {
            Came::Event(event) => self.heard(event),
            Came::Payload(payload) => {
                let number = payload.first().copied().unwrap_or_default();
                return Err(adit_ssh_proto::SshError::Unexpected(number).into());
            }
        }
        Ok(())
    }

    fn heard(&mut self, event: Event) {
        if let (Event::ExtInfo(told), Some(machine)) = (event, &mut self.machine) {
            machine.server_extensions(told.user_algorithms.as_deref(), told.hostbound);
        }
    }

    /// The best hash that the server takes of RSA keys.
    async fn rsa_hash(&mut self) -> Result<Option<Option<HashAlg>>, Error> {
        let told = timeout(EXTENSIONS, async {
            while self.wire.transport.extensions().user_algorithms.is_none() {
                let came = self.wire.next().await?;
                self.unasked(came)?;
            }
            Ok::<_, Error>(())
        });
        if let Ok(done) = told.await {
            done?;
        }
        let known = &self.wire.transport.extensions().user_algorithms;
        Ok(known.as_ref().map(|known| {
            let hashes = [
                (KeyAlgorithm::RsaSha512, HashAlg::Sha512),
                (KeyAlgorithm::RsaSha256, HashAlg::Sha256),
            ];
            let found = hashes.iter().find(|(name, _)| known.contains(name));
            found.map(|(_, hash)| *hash)
        }))
    }

    /// One try.
    async fn begin(&mut self, wish: Try) -> Result<Outcome, Stop<H::Error>> {
        let config = wish.config();
        let told = self.wire.transport.extensions().clone();
        if self.asked {
            // Questions that are left open are given up.
            self.asked = false;
            if let Some(machine) = &mut self.machine {
                let _ = machine.answer(ClientAnswer::Decline)?;
            }
        }
        let step = if let Some(machine) = &mut self.machine {
            machine.again(config)?
        } else {
            let transport = &self.wire.transport;
            let (id, key) = (transport.session_id(), transport.host_key());
            let machine = ClientAuth::new(config, id.unwrap_or_default(), key.unwrap_or_default());
            self.machine = Some(machine);
            ClientStep::Wait
        };
        let mut algorithms = told.user_algorithms;
        if let With::Key {
            algorithm: Some(wanted),
            ..
        } = &wish.with
        {
            algorithms = Some(vec![*wanted]);
        }
        if let Some(machine) = &mut self.machine {
            machine.server_extensions(algorithms.as_deref(), told.hostbound);
        }
        self.steps(step, Some(wish.with)).await
    }

    /// Answers to the server's questions.
    async fn go_on(&mut self, answers: Vec<Secret<String>>) -> Result<Outcome, Stop<H::Error>> {
        let machine = self.machine.as_mut().filter(|_| self.asked);
        let machine = machine.ok_or(Error::Inconsistent)?;
        // A wrong number of answers leaves the question open.
        let step = machine.answer(ClientAnswer::Responses(answers));
        let step = step.map_err(|_| Error::Inconsistent)?;
        self.asked = false;
        self.steps(step, None).await
    }

    async fn steps(
        &mut self,
        mut step: ClientStep,
        with: Option<With>,
    ) -> Result<Outcome, Stop<H::Error>> {
        let mut password = None;
        let mut key = None;
        match with {
            Some(With::Password(secret)) => password = Some(secret),
            Some(With::Key { signer, .. }) => key = Some(signer),
            _ => {}
        }
        loop {
            let Some(machine) = &mut self.machine else {
                return Err(Error::Inconsistent.into());
            };
            step = match step {
                ClientStep::Wait => {
                    while let Some(message) = machine.poll_output() {
                        self.wire.say(&message)?;
                    }
                    match self.wire.next().await? {
                        Came::Event(event) => {
                            self.heard(event);
                            ClientStep::Wait
                        }
                        Came::Payload(payload) => machine.handle(&payload)?,
                    }
                }
                ClientStep::Banner(text) => {
                    let told = self.handler.auth_banner(&text, self.session).await;
                    told.map_err(Stop::Handler)?;
                    ClientStep::Wait
                }
                ClientStep::Ask(ClientAsk::Signature {
                    algorithm, data, ..
                }) => {
                    let signature = key.as_ref().and_then(|key| key.sign(algorithm, &data).ok());
                    machine
                        .answer(signature.map_or(ClientAnswer::Decline, ClientAnswer::Signature))?
                }
                ClientStep::Ask(ClientAsk::Password { .. }) => {
                    let answer = password.take();
                    machine.answer(answer.map_or(ClientAnswer::Decline, ClientAnswer::Password))?
                }
                ClientStep::Ask(ClientAsk::NewPassword { .. }) => {
                    machine.answer(ClientAnswer::Decline)?
                }
                ClientStep::Ask(ClientAsk::Questions {
                    name,
                    instruction,
                    prompts,
                }) => {
                    self.asked = true;
                    let prompts = prompts.into_iter().map(|prompt| Prompt {
                        prompt: prompt.text,
                        echo: prompt.echo,
                    });
                    return Ok(Outcome::Asked {
                        name,
                        instructions: instruction,
                        prompts: prompts.collect(),
                    });
                }
                ClientStep::Success => return Ok(Outcome::Done(AuthResult::Success)),
                ClientStep::Failed { methods } => {
                    return Ok(Outcome::Done(AuthResult::Failure {
                        remaining_methods: MethodSet::of(&methods),
                        partial_success: machine.was_partial(),
                    }));
                }
            };
        }
    }
}
