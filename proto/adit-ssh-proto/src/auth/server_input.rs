//! Server: messages from the client.

use adit_crypto::Secret;

use super::message::{
    AuthAttempt, AuthMethod, CONNECTION, USERAUTH, UserAuthRequest, check_auth_service,
    data_to_sign, put_key, service_message,
};
use super::progress::AuthProgress;
use super::server::{PendingAnswer, ServerAuth, ServerAuthQuery, ServerAuthStage, ServerStep};
use crate::algorithm::KeyAlgorithm;
use crate::error::SshError;
use crate::key::AnyKey;
use crate::msg;
use crate::wire::{MessageReader, SshBufMut};

/// An authentication attempt of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptedLogin<'a> {
    /// User name that the client claims: any text.
    pub user: &'a str,
    /// Method by its name in RFC 4252 and 4256, including `none`, or `another`.
    pub method: &'static str,
    /// True if it contains a signature, which [`ServerAuth::handle_input`] verifies: with RSA, that
    /// takes up to milliseconds.
    pub signed: bool,
}

impl ServerAuth {
    /// Handles a payload from the client, messages 5 and 50 to 79.
    ///
    /// # Errors
    /// [`SshError::Malformed`] or [`SshError::Unexpected`] if the client violates the protocol;
    /// [`SshError::Policy`] after too many failures, or if the requested service is not available.
    pub fn handle_input(&mut self, payload: &[u8]) -> Result<ServerStep, SshError> {
        let number = payload.first().copied().unwrap_or_default();
        if self.is_asking() {
            return Err(SshError::Unexpected(number));
        }
        match (number, self.stage) {
            (msg::SERVICE_REQUEST, ServerAuthStage::Service | ServerAuthStage::Auth) => {
                check_auth_service(payload)?;
                self.count_request()?;
                self.out
                    .push(service_message(msg::SERVICE_ACCEPT, USERAUTH));
                self.stage = ServerAuthStage::Auth;
                Ok(ServerStep::Wait)
            }
            (msg::USERAUTH_REQUEST, ServerAuthStage::Auth) => {
                self.count_request()?;
                self.on_request(UserAuthRequest::parse(payload)?)
            }
            (msg::USERAUTH_INFO_RESPONSE, ServerAuthStage::Auth) => {
                self.count_request()?;
                self.on_info_response(payload)
            }
            // RFC 4252 section 5.3: requests after the success are ignored.
            (msg::USERAUTH_REQUEST, ServerAuthStage::Done) => Ok(ServerStep::Wait),
            _ => Err(SshError::Unexpected(number)),
        }
    }

    /// Returns the attempt that `payload` makes, if it is an authentication request.
    #[must_use]
    pub fn peek_attempt(payload: &[u8]) -> Option<AttemptedLogin<'_>> {
        if payload.first() != Some(&msg::USERAUTH_REQUEST) {
            return None;
        }
        let UserAuthRequest { user, attempt, .. } = UserAuthRequest::parse(payload).ok()?;
        let method = match attempt {
            AuthAttempt::None => "none",
            AuthAttempt::PublicKey { .. } => AuthMethod::PublicKey.name(),
            AuthAttempt::Password(_) | AuthAttempt::NewPassword { .. } => {
                AuthMethod::Password.name()
            }
            AuthAttempt::Interactive { .. } => AuthMethod::KeyboardInteractive.name(),
            AuthAttempt::Other => "another",
        };
        let signature = match attempt {
            AuthAttempt::PublicKey { signature, .. } => signature,
            _ => None,
        };
        Some(AttemptedLogin {
            user,
            method,
            signed: signature.is_some(),
        })
    }

    fn on_request(&mut self, request: UserAuthRequest<'_>) -> Result<ServerStep, SshError> {
        // RFC 4256 section 3.1: a new request cancels open prompts.
        self.pending = PendingAnswer::Request;
        if request.service != CONNECTION {
            return Err(SshError::Policy("the requested service is not available"));
        }
        if request.user != self.progress.user {
            self.progress = AuthProgress::for_user(request.user);
        }
        if let Some(banner) = self.config.banner.take() {
            let mut out = vec![msg::USERAUTH_BANNER];
            out.put_string(banner.as_bytes());
            out.put_string(b"");
            self.out.push(out);
        }
        let user = request.user.to_owned();
        match request.attempt {
            AuthAttempt::None => self.on_none_request(user),
            AuthAttempt::PublicKey {
                algorithm,
                blob,
                signature,
                host_key,
            } if self.offers_method(AuthMethod::PublicKey) => {
                self.on_public_key(user, algorithm, blob, signature, host_key)
            }
            AuthAttempt::Password(password) if self.offers_method(AuthMethod::Password) => {
                let Some(password) = secret_text(password) else {
                    return self.fail_attempt();
                };
                self.pending = PendingAnswer::Password;
                Ok(ServerStep::Query(ServerAuthQuery::Password {
                    user,
                    password,
                }))
            }
            AuthAttempt::NewPassword { old, new } if self.offers_method(AuthMethod::Password) => {
                let (Some(old), Some(new)) = (secret_text(old), secret_text(new)) else {
                    return self.fail_attempt();
                };
                self.pending = PendingAnswer::Password;
                Ok(ServerStep::Query(ServerAuthQuery::NewPassword {
                    user,
                    old,
                    new,
                }))
            }
            AuthAttempt::Interactive { submethods }
                if self.offers_method(AuthMethod::KeyboardInteractive) =>
            {
                self.pending = PendingAnswer::Interactive;
                let submethods = String::from_utf8_lossy(submethods).into_owned();
                Ok(ServerStep::Query(ServerAuthQuery::Interactive {
                    user,
                    submethods,
                }))
            }
            _ => self.fail_attempt(),
        }
    }

    fn offers_method(&self, method: AuthMethod) -> bool {
        self.progress.next_methods(&self.config).contains(&method)
    }

    fn on_none_request(&mut self, user: String) -> Result<ServerStep, SshError> {
        if self.config.ask_none && self.progress.done.is_empty() {
            self.pending = PendingAnswer::Nothing;
            return Ok(ServerStep::Query(ServerAuthQuery::NoAuthentication {
                user,
            }));
        }
        self.fail_none_request()
    }

    fn on_public_key(
        &mut self,
        user: String,
        algorithm: &[u8],
        blob: &[u8],
        signature: Option<&[u8]>,
        host_key: Option<&[u8]>,
    ) -> Result<ServerStep, SshError> {
        let named = core::str::from_utf8(algorithm).ok();
        let known = named.and_then(KeyAlgorithm::by_name);
        let Some(known) = known.filter(|a| self.config.algorithms.contains(a)) else {
            return self.fail_attempt();
        };
        self.algorithm = Some(known);
        let bound = host_key.is_none_or(|host| self.config.hostbound && host == self.host_key);
        let Ok(key) = AnyKey::parse_for(known, blob) else {
            return self.fail_attempt();
        };
        if !bound || self.progress.has_used(&key) {
            return self.fail_attempt();
        }
        let Some(signature) = signature else {
            self.pending = PendingAnswer::Query {
                algorithm: algorithm.to_vec(),
                blob: blob.to_vec(),
            };
            return Ok(ServerStep::Query(ServerAuthQuery::KeyQuery { user, key }));
        };
        // Rebuilt from the parsed fields: the signature must cover exactly these.
        let mut request = Vec::new();
        put_key(&mut request, &user, true, known.name(), blob, host_key);
        let data = data_to_sign(&self.session_id, &request);
        let least = self.config.rsa_min_bits;
        match key.key().verify_with(least, known, &data, signature) {
            Ok(presence) => {
                self.pending = PendingAnswer::Key(key.clone());
                Ok(ServerStep::Query(ServerAuthQuery::Key {
                    user,
                    key,
                    presence,
                }))
            }
            Err(_) => self.fail_attempt(),
        }
    }

    fn on_info_response(&mut self, payload: &[u8]) -> Result<ServerStep, SshError> {
        let PendingAnswer::Response { count } = self.pending else {
            return Err(SshError::Unexpected(msg::USERAUTH_INFO_RESPONSE));
        };
        self.pending = PendingAnswer::Request;
        let mut r = MessageReader::new(payload, "USERAUTH_INFO_RESPONSE");
        r.read_u8()?;
        if r.read_u32()? != count {
            return Err(r.malformed_error());
        }
        let mut responses = Vec::new();
        for _ in 0..count {
            match secret_text(r.read_string()?) {
                Some(text) => responses.push(text),
                None => return self.fail_attempt(),
            }
        }
        r.expect_end()?;
        self.pending = PendingAnswer::Responses;
        let user = self.progress.user.clone();
        Ok(ServerStep::Query(ServerAuthQuery::Responses {
            user,
            responses,
        }))
    }
}

/// Converts text that has to be kept secret; `None` if it is not UTF-8.
fn secret_text(bytes: &[u8]) -> Option<Secret<String>> {
    let text = core::str::from_utf8(bytes).ok()?;
    Some(Secret::new(text.to_owned()))
}
