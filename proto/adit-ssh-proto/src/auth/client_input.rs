//! Client: messages from the server.

use super::client::{ClientAsk, ClientAuth, ClientStep, State};
use super::message::{MAX_PROMPTS, Prompt, check_service, put_request};
use super::text::visible;
use crate::error::SshError;
use crate::msg;
use crate::wire::Reader;

/// Maximum number of banners.
const MAX_BANNERS: u32 = 32;
/// Maximum number of rounds of prompts in one attempt.
const MAX_ROUNDS: u32 = 32;
/// Maximum number of partial successes.
const MAX_PARTIALS: u32 = 8;

impl ClientAuth {
    /// Handles a payload from the server, messages 6 and 50 to 79.
    ///
    /// # Errors
    /// [`SshError::Malformed`], [`SshError::Unexpected`] or [`SshError::TooMuch`] if the server
    /// violates the protocol or a limit.
    pub fn handle_input(&mut self, payload: &[u8]) -> Result<ClientStep, SshError> {
        let number = payload.first().copied().unwrap_or_default();
        let unexpected = Err(SshError::Unexpected(number));
        match (number, self.state) {
            (_, State::Done | State::Failed) => unexpected,
            (msg::USERAUTH_BANNER, _) => self.banner(payload),
            (msg::SERVICE_ACCEPT, State::Service) => {
                check_service(payload)?;
                // A `none` request makes the server list its methods.
                let mut request = Vec::new();
                put_request(&mut request, &self.config.user, "none");
                self.out.push(request);
                self.state = State::None;
                Ok(ClientStep::Wait)
            }
            (msg::USERAUTH_SUCCESS, state) if awaits_result(state) => {
                if payload.len() != 1 {
                    return Err(SshError::Malformed("USERAUTH_SUCCESS"));
                }
                self.state = State::Done;
                Ok(ClientStep::Success)
            }
            (msg::USERAUTH_FAILURE, state) if awaits_result(state) => self.failure(state, payload),
            (60, State::Query(signing)) => {
                let mut r = Reader::new(payload, "USERAUTH_PK_OK");
                r.u8()?;
                let (algorithm, blob) = (r.string()?, r.string()?);
                r.end()?;
                let wanted = signing.algorithm.name().as_bytes();
                if algorithm != wanted || blob != self.blob(signing.identity) {
                    return Err(SshError::Malformed(
                        "USERAUTH_PK_OK: another key than in the query",
                    ));
                }
                Ok(self.ask_signature(signing))
            }
            (60, State::Password) => {
                let mut r = Reader::new(payload, "USERAUTH_PASSWD_CHANGEREQ");
                r.u8()?;
                let prompt = visible(&String::from_utf8_lossy(r.string()?));
                r.string()?;
                r.end()?;
                // Counts as an attempt, so that a server cannot ask forever.
                if self.passwords >= self.config.prompts {
                    return Ok(self.next_try());
                }
                self.passwords += 1;
                self.state = State::AskNewPassword;
                Ok(ClientStep::Ask(ClientAsk::NewPassword { prompt }))
            }
            (60, State::Interactive(rounds)) => self.questions(rounds, payload),
            _ => unexpected,
        }
    }

    fn banner(&mut self, payload: &[u8]) -> Result<ClientStep, SshError> {
        let mut r = Reader::new(payload, "USERAUTH_BANNER");
        r.u8()?;
        let text = visible(&String::from_utf8_lossy(r.string()?));
        r.string()?;
        r.end()?;
        self.banners += 1;
        if self.banners > MAX_BANNERS {
            return Err(SshError::TooMuch {
                what: "number of banners",
                limit: MAX_BANNERS as usize,
            });
        }
        Ok(ClientStep::Banner(text))
    }

    fn failure(&mut self, state: State, payload: &[u8]) -> Result<ClientStep, SshError> {
        let mut r = Reader::new(payload, "USERAUTH_FAILURE");
        r.u8()?;
        self.allowed = r.name_list()?.iter().map(str::to_owned).collect();
        let partial = r.boolean()?;
        r.end()?;
        self.partial = partial;
        if partial {
            self.partial(state)?;
        } else if state == State::Interactive(0) {
            // The server sent no prompts, and would not send any in another attempt.
            self.interactives = self.config.prompts;
        }
        Ok(self.next_try())
    }

    /// Handles a partial success: methods that failed before may succeed now, but a key that was
    /// accepted does not count again.
    fn partial(&mut self, state: State) -> Result<(), SshError> {
        self.partials += 1;
        if self.partials > MAX_PARTIALS {
            return Err(SshError::TooMuch {
                what: "number of partial successes",
                limit: MAX_PARTIALS as usize,
            });
        }
        if let State::Signed(signing) = state {
            self.used.push(signing.identity);
        }
        for (at, tried) in self.tried.iter_mut().enumerate() {
            *tried = self.used.contains(&at);
        }
        (self.passwords, self.interactives) = (0, 0);
        Ok(())
    }

    fn questions(&mut self, rounds: u32, payload: &[u8]) -> Result<ClientStep, SshError> {
        let mut r = Reader::new(payload, "USERAUTH_INFO_REQUEST");
        r.u8()?;
        let mut shown =
            || -> Result<String, SshError> { Ok(visible(&String::from_utf8_lossy(r.string()?))) };
        let (name, instruction) = (shown()?, shown()?);
        r.string()?;
        let count = r.u32()?;
        let limit = |what, limit: u32| SshError::TooMuch {
            what,
            limit: limit as usize,
        };
        if count > MAX_PROMPTS {
            return Err(limit("number of prompts", MAX_PROMPTS));
        }
        if rounds >= MAX_ROUNDS {
            return Err(limit("number of rounds of prompts", MAX_ROUNDS));
        }
        let mut prompts = Vec::new();
        for _ in 0..count {
            prompts.push(Prompt {
                text: visible(&String::from_utf8_lossy(r.string()?)),
                echo: r.boolean()?,
            });
        }
        r.end()?;
        self.state = State::AskResponses(prompts.len(), rounds + 1);
        Ok(ClientStep::Ask(ClientAsk::Questions {
            name,
            instruction,
            prompts,
        }))
    }
}

const fn awaits_result(state: State) -> bool {
    matches!(
        state,
        State::None | State::Query(_) | State::Signed(_) | State::Password | State::Interactive(_)
    )
}
