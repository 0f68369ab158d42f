//! Client: messages from the server.

use super::client::{ClientAuth, ClientAuthQuery, ClientAuthState, ClientStep};
use super::display_text::sanitize_for_display;
use super::message::{InteractivePrompt, MAX_PROMPTS, check_auth_service, put_request};
use crate::error::SshError;
use crate::msg;
use crate::wire::MessageReader;

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
            (_, ClientAuthState::Done | ClientAuthState::Failed) => unexpected,
            (msg::USERAUTH_BANNER, _) => self.on_banner(payload),
            (msg::SERVICE_ACCEPT, ClientAuthState::Service) => {
                check_auth_service(payload)?;
                // A `none` request makes the server list its methods.
                let mut request = Vec::new();
                put_request(&mut request, &self.config.user, "none");
                self.out.push(request);
                self.state = ClientAuthState::None;
                Ok(ClientStep::Wait)
            }
            (msg::USERAUTH_SUCCESS, state) if awaits_result(state) => {
                if payload.len() != 1 {
                    return Err(SshError::Malformed("USERAUTH_SUCCESS"));
                }
                self.state = ClientAuthState::Done;
                Ok(ClientStep::Success)
            }
            (msg::USERAUTH_FAILURE, state) if awaits_result(state) => {
                self.on_failure(state, payload)
            }
            (60, ClientAuthState::Query(signing)) => {
                let mut r = MessageReader::new(payload, "USERAUTH_PK_OK");
                r.read_u8()?;
                let (algorithm, blob) = (r.read_string()?, r.read_string()?);
                r.expect_end()?;
                let wanted = signing.algorithm.name().as_bytes();
                if algorithm != wanted || blob != self.identity_blob(signing.identity) {
                    return Err(SshError::Malformed(
                        "USERAUTH_PK_OK: another key than in the query",
                    ));
                }
                Ok(self.ask_signature(signing))
            }
            (60, ClientAuthState::Password) => {
                let mut r = MessageReader::new(payload, "USERAUTH_PASSWD_CHANGEREQ");
                r.read_u8()?;
                let prompt = sanitize_for_display(&String::from_utf8_lossy(r.read_string()?));
                r.read_string()?;
                r.expect_end()?;
                // Counts as an attempt, so that a server cannot ask forever.
                if self.passwords >= self.config.prompts {
                    return Ok(self.next_try());
                }
                self.passwords += 1;
                self.state = ClientAuthState::AskNewPassword;
                Ok(ClientStep::Query(ClientAuthQuery::NewPassword { prompt }))
            }
            (60, ClientAuthState::Interactive(rounds)) => self.on_info_request(rounds, payload),
            _ => unexpected,
        }
    }

    fn on_banner(&mut self, payload: &[u8]) -> Result<ClientStep, SshError> {
        let mut r = MessageReader::new(payload, "USERAUTH_BANNER");
        r.read_u8()?;
        let text = sanitize_for_display(&String::from_utf8_lossy(r.read_string()?));
        r.read_string()?;
        r.expect_end()?;
        self.banners += 1;
        if self.banners > MAX_BANNERS {
            return Err(SshError::TooMuch {
                what: "number of banners",
                limit: MAX_BANNERS as usize,
            });
        }
        Ok(ClientStep::Banner(text))
    }

    fn on_failure(
        &mut self,
        state: ClientAuthState,
        payload: &[u8],
    ) -> Result<ClientStep, SshError> {
        let mut r = MessageReader::new(payload, "USERAUTH_FAILURE");
        r.read_u8()?;
        self.allowed = r.read_name_list()?.iter().map(str::to_owned).collect();
        let partial = r.read_bool()?;
        r.expect_end()?;
        self.partial = partial;
        if partial {
            self.on_partial_success(state)?;
        } else if state == ClientAuthState::Interactive(0) {
            // The server sent no prompts, and would not send any in another attempt.
            self.interactives = self.config.prompts;
        }
        Ok(self.next_try())
    }

    /// Handles a partial success: methods that failed before may succeed now, but a key that was
    /// accepted does not count again.
    fn on_partial_success(&mut self, state: ClientAuthState) -> Result<(), SshError> {
        self.partials += 1;
        if self.partials > MAX_PARTIALS {
            return Err(SshError::TooMuch {
                what: "number of partial successes",
                limit: MAX_PARTIALS as usize,
            });
        }
        if let ClientAuthState::Signed(signing) = state {
            self.accepted_identities.push(signing.identity);
        }
        for (at, tried) in self.tried_identities.iter_mut().enumerate() {
            *tried = self.accepted_identities.contains(&at);
        }
        (self.passwords, self.interactives) = (0, 0);
        Ok(())
    }

    fn on_info_request(&mut self, rounds: u32, payload: &[u8]) -> Result<ClientStep, SshError> {
        let mut r = MessageReader::new(payload, "USERAUTH_INFO_REQUEST");
        r.read_u8()?;
        let mut shown = || -> Result<String, SshError> {
            Ok(sanitize_for_display(&String::from_utf8_lossy(
                r.read_string()?,
            )))
        };
        let (name, instruction) = (shown()?, shown()?);
        r.read_string()?;
        let count = r.read_u32()?;
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
            prompts.push(InteractivePrompt {
                text: sanitize_for_display(&String::from_utf8_lossy(r.read_string()?)),
                echo: r.read_bool()?,
            });
        }
        r.expect_end()?;
        self.state = ClientAuthState::AskResponses(prompts.len(), rounds + 1);
        Ok(ClientStep::Query(ClientAuthQuery::Questions {
            name,
            instruction,
            prompts,
        }))
    }
}

const fn awaits_result(state: ClientAuthState) -> bool {
    matches!(
        state,
        ClientAuthState::None
            | ClientAuthState::Query(_)
            | ClientAuthState::Signed(_)
            | ClientAuthState::Password
            | ClientAuthState::Interactive(_)
    )
}
