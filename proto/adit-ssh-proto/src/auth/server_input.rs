//! Server: messages from the client.

use adit_crypto::Secret;

use super::message::{
    Attempt, CONNECTION, Method, Request, USERAUTH, check_service, put_key, service, to_be_signed,
};
use super::progress::Progress;
use super::server::{Pending, ServerAsk, ServerAuth, ServerStep, Stage};
use crate::algorithm::KeyAlgorithm;
use crate::error::SshError;
use crate::key::AnyKey;
use crate::msg;
use crate::wire::{Put, Reader};

/// An authentication attempt of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tried<'a> {
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
            (msg::SERVICE_REQUEST, Stage::Service | Stage::Auth) => {
                check_service(payload)?;
                self.count()?;
                self.out.push(service(msg::SERVICE_ACCEPT, USERAUTH));
                self.stage = Stage::Auth;
                Ok(ServerStep::Wait)
            }
            (msg::USERAUTH_REQUEST, Stage::Auth) => {
                self.count()?;
                self.request(Request::parse(payload)?)
            }
            (msg::USERAUTH_INFO_RESPONSE, Stage::Auth) => {
                self.count()?;
                self.response(payload)
            }
            // RFC 4252 section 5.3: requests after the success are ignored.
            (msg::USERAUTH_REQUEST, Stage::Done) => Ok(ServerStep::Wait),
            _ => Err(SshError::Unexpected(number)),
        }
    }

    /// Returns the attempt that `payload` makes, if it is an authentication request.
    #[must_use]
    pub fn tried(payload: &[u8]) -> Option<Tried<'_>> {
        if payload.first() != Some(&msg::USERAUTH_REQUEST) {
            return None;
        }
        let Request { user, attempt, .. } = Request::parse(payload).ok()?;
        let method = match attempt {
            Attempt::None => "none",
            Attempt::PublicKey { .. } => Method::PublicKey.name(),
            Attempt::Password(_) | Attempt::NewPassword { .. } => Method::Password.name(),
            Attempt::Interactive { .. } => Method::KeyboardInteractive.name(),
            Attempt::Other => "another",
        };
        let signature = match attempt {
            Attempt::PublicKey { signature, .. } => signature,
            _ => None,
        };
        Some(Tried {
            user,
            method,
            signed: signature.is_some(),
        })
    }

    fn request(&mut self, request: Request<'_>) -> Result<ServerStep, SshError> {
        // RFC 4256 section 3.1: a new request cancels open prompts.
        self.pending = Pending::Request;
        if request.service != CONNECTION {
            return Err(SshError::Policy("the requested service is not available"));
        }
        if request.user != self.progress.user {
            self.progress = Progress::of(request.user);
        }
        if let Some(banner) = self.config.banner.take() {
            let mut out = vec![msg::USERAUTH_BANNER];
            out.put_string(banner.as_bytes());
            out.put_string(b"");
            self.out.push(out);
        }
        let user = request.user.to_owned();
        match request.attempt {
            Attempt::None => self.nothing(user),
            Attempt::PublicKey {
                algorithm,
                blob,
                signature,
                host_key,
            } if self.offers(Method::PublicKey) => {
                self.key(user, algorithm, blob, signature, host_key)
            }
            Attempt::Password(password) if self.offers(Method::Password) => {
                let Some(password) = secret(password) else {
                    return self.fail();
                };
                self.pending = Pending::Password;
                Ok(ServerStep::Ask(ServerAsk::Password { user, password }))
            }
            Attempt::NewPassword { old, new } if self.offers(Method::Password) => {
                let (Some(old), Some(new)) = (secret(old), secret(new)) else {
                    return self.fail();
                };
                self.pending = Pending::Password;
                Ok(ServerStep::Ask(ServerAsk::NewPassword { user, old, new }))
            }
            Attempt::Interactive { submethods } if self.offers(Method::KeyboardInteractive) => {
                self.pending = Pending::Interactive;
                let submethods = String::from_utf8_lossy(submethods).into_owned();
                Ok(ServerStep::Ask(ServerAsk::Interactive { user, submethods }))
            }
            _ => self.fail(),
        }
    }

    fn offers(&self, method: Method) -> bool {
        self.progress.next(&self.config).contains(&method)
    }

    fn nothing(&mut self, user: String) -> Result<ServerStep, SshError> {
        if self.config.ask_none && self.progress.done.is_empty() {
            self.pending = Pending::Nothing;
            return Ok(ServerStep::Ask(ServerAsk::Nothing { user }));
        }
        self.fail_nothing()
    }

    fn key(
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
            return self.fail();
        };
        self.algorithm = Some(known);
        let bound = host_key.is_none_or(|host| self.config.hostbound && host == self.host_key);
        let Ok(key) = AnyKey::parse_for(known, blob) else {
            return self.fail();
        };
        if !bound || self.progress.has_used(&key) {
            return self.fail();
        }
        let Some(signature) = signature else {
            self.pending = Pending::Query {
                algorithm: algorithm.to_vec(),
                blob: blob.to_vec(),
            };
            return Ok(ServerStep::Ask(ServerAsk::KeyQuery { user, key }));
        };
        // Rebuilt from the parsed fields: the signature must cover exactly these.
        let mut request = Vec::new();
        put_key(&mut request, &user, true, known.name(), blob, host_key);
        let data = to_be_signed(&self.session_id, &request);
        let least = self.config.rsa_min_bits;
        match key.key().verify_with(least, known, &data, signature) {
            Ok(presence) => {
                self.pending = Pending::Key(key.clone());
                Ok(ServerStep::Ask(ServerAsk::Key {
                    user,
                    key,
                    presence,
                }))
            }
            Err(_) => self.fail(),
        }
    }

    fn response(&mut self, payload: &[u8]) -> Result<ServerStep, SshError> {
        let Pending::Response { count } = self.pending else {
            return Err(SshError::Unexpected(msg::USERAUTH_INFO_RESPONSE));
        };
        self.pending = Pending::Request;
        let mut r = Reader::new(payload, "USERAUTH_INFO_RESPONSE");
        r.u8()?;
        if r.u32()? != count {
            return Err(r.malformed());
        }
        let mut responses = Vec::new();
        for _ in 0..count {
            match secret(r.string()?) {
                Some(text) => responses.push(text),
                None => return self.fail(),
            }
        }
        r.end()?;
        self.pending = Pending::Responses;
        let user = self.progress.user.clone();
        Ok(ServerStep::Ask(ServerAsk::Responses { user, responses }))
    }
}

/// Converts text that has to be kept secret; `None` if it is not UTF-8.
fn secret(bytes: &[u8]) -> Option<Secret<String>> {
    let text = core::str::from_utf8(bytes).ok()?;
    Some(Secret::new(text.to_owned()))
}
