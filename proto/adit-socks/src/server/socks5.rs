//! The SOCKS5 handshake of RFC 1928 with the passwords of RFC 1929.
//!
//! Greeting, method, optionally user and password, then the request. A client may send all of it
//! together, followed by its first payload.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;

use adit_wire::{
    AddrError, Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress, parse_addr,
};
use zeroize::Zeroize;

use super::{Credentials, Refusal, encode_reply};
use crate::{Command, Reply, Request, Version};

const VERSION: u8 = 0x05;
const NO_AUTH: u8 = 0x00;
const PASSWORD: u8 = 0x02;
const NONE_ACCEPTABLE: u8 = 0xff;

/// Version of the user name and password message (RFC 1929 section 2).
const LOGIN_VERSION: u8 = 0x01;

/// The handshake with one client, from its greeting to its request.
///
/// # Examples
///
/// ```
/// use adit_socks::server::{Credentials, Socks5, encode_reply};
/// use adit_socks::{Command, Reply};
/// use adit_wire::{Handshake, HandshakeInput, HandshakeProgress, HandshakeOutput};
///
/// struct Anyone;
///
/// impl Credentials for Anyone {
///     fn is_required(&self) -> bool {
///         false
///     }
///
///     fn check_password(&self, _: &[u8], _: &[u8]) -> bool {
///         true
///     }
/// }
///
/// let mut server = Socks5::new(&Anyone);
/// let mut sent = Vec::new();
///
/// // The greeting: SOCKS5, one method, no authentication. The server agrees.
/// let mut greeting = *b"\x05\x01\x00";
/// server.step(&mut HandshakeInput::new(&mut greeting), &mut HandshakeOutput::new(&mut sent))?;
/// assert_eq!(sent, b"\x05\x00");
///
/// let mut request = *b"\x05\x01\x00\x03\x0cexample.test\x00\x50";
/// let step = server.step(&mut HandshakeInput::new(&mut request), &mut HandshakeOutput::new(&mut sent))?;
/// let HandshakeProgress::Done(request) = step else { panic!("the request is complete") };
/// assert_eq!((request.command, request.target.to_string().as_str()), (Command::Connect, "example.test:80"));
///
/// // The answer, once the target is connected.
/// let bound = Some("192.0.2.1:4000".parse().unwrap());
/// assert_eq!(encode_reply(request.version, Reply::Succeeded, bound)[..2], [5, 0]);
/// # Ok::<(), adit_socks::server::Refusal>(())
/// ```
pub struct Socks5<'c> {
    credentials: &'c dyn Credentials,
    state: State,
    user: Option<Vec<u8>>,
    verified: bool,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Greeting,
    Login,
    Request,
}

/// The user and password of one RFC 1929 message.
struct Login<'a> {
    user: &'a [u8],
    password: &'a [u8],
    len: usize,
}

impl<'c> Socks5<'c> {
    /// Creates a handshake. `credentials` decides if the client must log in.
    #[must_use]
    pub const fn new(credentials: &'c dyn Credentials) -> Self {
        Self {
            credentials,
            state: State::Greeting,
            user: None,
            verified: false,
        }
    }

    /// True if a wrong password ends the handshake.
    fn must_log_in(&self) -> bool {
        self.credentials.is_required()
    }

    /// Chooses a method by the server's preference; the order of the offer is irrelevant. Firefox
    /// with a stored user name offers only the password method, so that method must work on
    /// listeners without users too.
    fn choose_method(&self, offered: &[u8]) -> Option<State> {
        if !self.must_log_in() && offered.contains(&NO_AUTH) {
            Some(State::Request)
        } else if offered.contains(&PASSWORD) {
            Some(State::Login)
        } else {
            None
        }
    }

    fn read_greeting(
        &mut self,
        rx: &mut HandshakeInput<'_>,
        tx: &mut HandshakeOutput<'_>,
    ) -> Result<HandshakeProgress<()>, Refusal> {
        let total = match rx.bytes() {
            [] => 1,
            [VERSION] => 2,
            [VERSION, count, ..] => 2 + usize::from(*count),
            _ => return Err(Refusal::Malformed("SOCKS version")),
        };
        let Some(offered) = rx.bytes().get(..total).and_then(|m| m.get(2..)) else {
            return Ok(HandshakeProgress::NeedMore { total });
        };
        let Some(next) = self.choose_method(offered) else {
            tx.extend_from_slice(&[VERSION, NONE_ACCEPTABLE]);
            return Err(Refusal::NoMethod);
        };
        let method = match next {
            State::Login => PASSWORD,
            State::Greeting | State::Request => NO_AUTH,
        };
        tx.extend_from_slice(&[VERSION, method]);
        rx.consume(total);
        self.state = next;
        Ok(HandshakeProgress::Done(()))
    }

    fn read_login(
        &mut self,
        rx: &mut HandshakeInput<'_>,
        tx: &mut HandshakeOutput<'_>,
    ) -> Result<HandshakeProgress<()>, Refusal> {
        if rx.bytes().first().is_some_and(|v| *v != LOGIN_VERSION) {
            tx.extend_from_slice(&[LOGIN_VERSION, 0x01]);
            return Err(Refusal::Malformed("version of the login"));
        }
        let login = match Login::parse(rx.bytes()) {
            Ok(login) => login,
            Err(total) => return Ok(HandshakeProgress::NeedMore { total }),
        };
        self.verified = self.credentials.is_required()
            && self.credentials.check_password(login.user, login.password);
        let (user, len) = (login.user.to_vec(), login.len);
        // The caller's buffer outlives the need for the password.
        if let Some(spent) = rx.bytes_mut().get_mut(..len) {
            spent.zeroize();
        }
        rx.consume(len);
        if self.must_log_in() && !self.verified {
            tx.extend_from_slice(&[LOGIN_VERSION, 0x01]);
            let user = user.escape_ascii().to_string().into();
            return Err(Refusal::BadCredentials { user });
        }
        tx.extend_from_slice(&[LOGIN_VERSION, 0x00]);
        self.user = Some(user);
        self.state = State::Request;
        Ok(HandshakeProgress::Done(()))
    }

    fn read_request(
        &mut self,
        rx: &mut HandshakeInput<'_>,
        tx: &mut HandshakeOutput<'_>,
    ) -> Result<HandshakeProgress<Request>, Refusal> {
        let fields = match RequestFields::parse(rx.bytes()) {
            Ok(HandshakeProgress::Done(fields)) => fields,
            Ok(HandshakeProgress::NeedMore { total }) => {
                return Ok(HandshakeProgress::NeedMore { total });
            }
            Err(why) => {
                let code = match why {
                    Refusal::UnknownCommand(_) => Reply::CommandNotSupported,
                    Refusal::AddressType(_) => Reply::AddressTypeNotSupported,
                    _ => Reply::GeneralFailure,
                };
                tx.extend_from_slice(&encode_reply(Version::V5, code, None));
                return Err(why);
            }
        };
        rx.consume(fields.len);
        Ok(HandshakeProgress::Done(Request {
            version: Version::V5,
            command: fields.command,
            target: fields.target,
            user: self.user.take(),
            verified: self.verified,
        }))
    }
}

impl<'a> Login<'a> {
    /// Parses `VER ‖ ULEN ‖ UNAME ‖ PLEN ‖ PASSWD`; the error is the number of bytes to wait for.
    fn parse(bytes: &'a [u8]) -> Result<Self, usize> {
        let user_end = 2 + usize::from(*bytes.get(1).ok_or(2_usize)?);
        let password_start = user_end + 1;
        let password_len = bytes.get(user_end).ok_or(password_start)?;
        let len = password_start + usize::from(*password_len);
        Ok(Self {
            user: bytes.get(2..user_end).ok_or(len)?,
            password: bytes.get(password_start..len).ok_or(len)?,
            len,
        })
    }
}

/// The fields of a request message.
struct RequestFields {
    command: Command,
    target: adit_wire::Target,
    len: usize,
}

impl RequestFields {
    /// Parses `VER ‖ CMD ‖ RSV ‖ ATYP ‖ DST.ADDR ‖ DST.PORT`. RSV is ignored.
    fn parse(bytes: &[u8]) -> Result<HandshakeProgress<Self>, Refusal> {
        if bytes.first().is_some_and(|v| *v != VERSION) {
            return Err(Refusal::Malformed("SOCKS version"));
        }
        let [_, command, _, addr @ ..] = bytes else {
            return Ok(HandshakeProgress::NeedMore { total: 4 });
        };
        let (target, len) = match parse_addr(addr) {
            Ok(found) => found,
            Err(AddrError::Incomplete { total }) => {
                return Ok(HandshakeProgress::NeedMore { total: 3 + total });
            }
            Err(AddrError::Type(byte)) => return Err(Refusal::AddressType(byte)),
            Err(AddrError::Name) => return Err(Refusal::Malformed("host name")),
        };
        let command = Command::from_byte(*command).ok_or(Refusal::UnknownCommand(*command))?;
        if command == Command::Connect && target.port == 0 {
            return Err(Refusal::Malformed("port"));
        }
        Ok(HandshakeProgress::Done(Self {
            command,
            target,
            len: 3 + len,
        }))
    }
}

impl Handshake for Socks5<'_> {
    type Output = Request;
    type Error = Refusal;

    fn step(
        &mut self,
        rx: &mut HandshakeInput<'_>,
        tx: &mut HandshakeOutput<'_>,
    ) -> Result<HandshakeProgress<Request>, Refusal> {
        loop {
            let step = match self.state {
                State::Greeting => self.read_greeting(rx, tx)?,
                State::Login => self.read_login(rx, tx)?,
                State::Request => return self.read_request(rx, tx),
            };
            if let HandshakeProgress::NeedMore { total } = step {
                return Ok(HandshakeProgress::NeedMore { total });
            }
        }
    }
}

impl fmt::Debug for Socks5<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socks5")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
