//! The SOCKS5 client (RFC 1928, RFC 1929).

use alloc::string::String;
use core::fmt;

use adit_wire::{
    Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress, Target, encode_addr, narrow_int,
};
use zeroize::Zeroizing;

use super::{ClientError, read_reply};
use crate::{Command, Version};

const VERSION: u8 = 0x05;
const NO_AUTH: u8 = 0x00;
const PASSWORD: u8 = 0x02;
const NONE_ACCEPTABLE: u8 = 0xff;

/// A request to an upstream proxy. The handshake returns the address that the proxy bound
/// (BND.ADDR, BND.PORT).
///
/// By default each message waits for the answer to the previous one, and exactly one method is
/// offered: the password if there is one.
pub struct Socks5Connect {
    command: Command,
    target: Target,
    auth: Option<Login>,
    optional: bool,
    pipelined: bool,
    state: State,
}

struct Login {
    user: Zeroizing<String>,
    password: Zeroizing<String>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Opening,
    Method,
    LoggingIn,
    Reply,
}

impl Socks5Connect {
    /// Creates a request for `command` to `target`, with the user name and password of `auth`.
    #[must_use]
    pub fn new(command: Command, target: Target, auth: Option<(String, String)>) -> Self {
        Self {
            command,
            target,
            auth: auth.map(|(user, password)| Login {
                user: user.into(),
                password: password.into(),
            }),
            optional: false,
            pipelined: false,
            state: State::Opening,
        }
    }

    /// Also offers "no authentication" if there is a password, and lets the proxy choose.
    #[must_use]
    pub const fn with_optional_auth(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Sends greeting, password and request together: one round trip. Data that the caller appends
    /// to this first flight is the first payload. Exactly one method is offered in this mode. Some
    /// servers discard data that arrives before their answer.
    #[must_use]
    pub const fn with_pipelining(mut self) -> Self {
        self.pipelined = true;
        self
    }

    fn write_opening(&self, tx: &mut HandshakeOutput<'_>) -> Result<(), ClientError> {
        let fits = |text: &str| text.len() <= usize::from(u8::MAX);
        match &self.auth {
            Some(login) if !fits(&login.user) || !fits(&login.password) => {
                return Err(ClientError::CredentialsForm);
            }
            Some(_) if self.optional && !self.pipelined => {
                tx.extend_from_slice(&[VERSION, 2, NO_AUTH, PASSWORD]);
            }
            Some(_) => tx.extend_from_slice(&[VERSION, 1, PASSWORD]),
            None => tx.extend_from_slice(&[VERSION, 1, NO_AUTH]),
        }
        if self.pipelined {
            self.put_login(tx);
            self.put_request(tx);
        }
        Ok(())
    }

    fn put_login(&self, tx: &mut HandshakeOutput<'_>) {
        let Some(login) = &self.auth else { return };
        tx.extend_from_slice(&[0x01]);
        for text in [&login.user, &login.password] {
            // `open` has checked both lengths.
            tx.extend_from_slice(&[narrow_int(text.len())]);
            tx.extend_from_slice(text.as_bytes());
        }
    }

    fn put_request(&self, tx: &mut HandshakeOutput<'_>) {
        tx.extend_from_slice(&[VERSION, self.command.to_byte(), 0x00]);
        encode_addr(&self.target, tx.as_vec_mut());
    }

    /// Handles the proxy's choice of a method and returns the next state.
    fn handle_method(
        &self,
        method: u8,
        tx: &mut HandshakeOutput<'_>,
    ) -> Result<State, ClientError> {
        let offered_none = self.auth.is_none() || (self.optional && !self.pipelined);
        match method {
            NO_AUTH if offered_none => {
                if !self.pipelined {
                    self.put_request(tx);
                }
                Ok(State::Reply)
            }
            PASSWORD if self.auth.is_some() => {
                if !self.pipelined {
                    self.put_login(tx);
                }
                Ok(State::LoggingIn)
            }
            NONE_ACCEPTABLE => Err(ClientError::NoMethod),
            other => Err(ClientError::Method(other)),
        }
    }
}

impl Handshake for Socks5Connect {
    type Output = Target;
    type Error = ClientError;

    fn step(
        &mut self,
        rx: &mut HandshakeInput<'_>,
        tx: &mut HandshakeOutput<'_>,
    ) -> Result<HandshakeProgress<Target>, ClientError> {
        loop {
            self.state = match (self.state, rx.bytes()) {
                (State::Opening, _) => {
                    self.write_opening(tx)?;
                    State::Method
                }
                (State::Method, [VERSION, method, ..]) => {
                    let next = self.handle_method(*method, tx)?;
                    rx.consume(2);
                    next
                }
                (State::Method, [] | [VERSION]) => {
                    return Ok(HandshakeProgress::NeedMore { total: 2 });
                }
                (State::Method, _) => return Err(ClientError::Malformed("SOCKS version")),
                // The version of this answer should be 01, but some servers send 05, so it is not
                // checked.
                (State::LoggingIn, [_, 0x00, ..]) => {
                    rx.consume(2);
                    self.auth = None;
                    if !self.pipelined {
                        self.put_request(tx);
                    }
                    State::Reply
                }
                (State::LoggingIn, [_, _, ..]) => return Err(ClientError::BadCredentials),
                (State::LoggingIn, _) => return Ok(HandshakeProgress::NeedMore { total: 2 }),
                (State::Reply, _) => return read_reply(Version::V5, rx),
            };
        }
    }
}

impl fmt::Debug for Socks5Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connect")
            .field("command", &self.command)
            .field("target", &self.target)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
