//! The client's side: requests a tunnel from an upstream proxy with CONNECT.

use core::fmt;

use adit_wire::{
    Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress, ProtocolError, Target, subslice,
};
use zeroize::Zeroizing;

use crate::head::StatusLine;
use crate::{MAX_HEAD, authority, basic};

/// A request for a tunnel to one target. Bytes after the proxy's answer are left in `rx`: they come
/// from the target.
pub struct HttpConnect {
    target: Target,
    auth: Option<(Zeroizing<String>, Zeroizing<String>)>,
    opened: bool,
    /// Number of bytes already searched for the end of the head.
    searched: usize,
    /// Number of bytes of 1xx answers.
    interim: usize,
}

/// The reason a tunnel was not established.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The proxy answered with a status other than 2xx. 407 means that it requires a password, or
    /// another one.
    #[error("the proxy answered with status {0}")]
    Status(u16),
    /// The proxy's answer is not HTTP/1.
    #[error("malformed {0}")]
    Malformed(&'static str),
    /// The head of the proxy's answer does not end within 16 KiB.
    #[error("the head of the proxy's answer is longer than {MAX_HEAD} bytes")]
    TooLarge,
    /// A request line cannot contain the target's name.
    #[error("the target's host name is not valid in a URI")]
    Target,
    /// The Basic scheme cannot encode a user name with a colon.
    #[error("the user name contains a colon")]
    UserName,
}

impl From<ClientError> for ProtocolError {
    fn from(why: ClientError) -> Self {
        match why {
            ClientError::Status(status) => Self::Refused(match status {
                400 => "bad request (HTTP status 400)",
                403 => "forbidden (HTTP status 403)",
                405 | 501 => "no CONNECT (HTTP status 405 or 501)",
                407 => "wrong or missing password (HTTP status 407)",
                429 | 503 => "overloaded (HTTP status 429 or 503)",
                502 => "target unreachable (HTTP status 502)",
                504 => "target timed out (HTTP status 504)",
                _ => "HTTP status other than 2xx",
            }),
            ClientError::Malformed(what) => Self::Malformed(what),
            ClientError::TooLarge => Self::TooLong {
                what: "head of the proxy's answer",
                limit: MAX_HEAD,
            },
            ClientError::Target => Self::Malformed("host name"),
            ClientError::UserName => Self::Malformed("user name"),
        }
    }
}

impl HttpConnect {
    /// Creates a request for a tunnel to `target`, with the user name and password of `auth`.
    #[must_use]
    pub fn new(target: Target, auth: Option<(String, String)>) -> Self {
        Self {
            target,
            auth: auth.map(|(user, password)| (user.into(), password.into())),
            opened: false,
            searched: 0,
            interim: 0,
        }
    }

    fn write_request(&mut self, tx: &mut HandshakeOutput<'_>) -> Result<(), ClientError> {
        let to = authority::format_authority(&self.target).ok_or(ClientError::Target)?;
        let auth = match self.auth.take() {
            None => None,
            Some((user, password)) => {
                Some(basic::format_basic(&user, &password).ok_or(ClientError::UserName)?)
            }
        };
        tx.extend_from_slice(format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n").as_bytes());
        if let Some(auth) = auth {
            tx.extend_from_slice(b"Proxy-Authorization: ");
            tx.extend_from_slice(auth.as_bytes());
            tx.extend_from_slice(b"\r\n");
        }
        tx.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// Returns the length of the head at the front of `bytes`. Header lines are not parsed: only
    /// the proxy's status matters.
    fn head_len(&mut self, bytes: &[u8]) -> Option<usize> {
        // The end may have started in the part searched before.
        let from = self.searched.saturating_sub(3);
        self.searched = bytes.len();
        let new = subslice(bytes, from..);
        let at = new.windows(4).position(|four| four == b"\r\n\r\n")?;
        Some(from + at + 4)
    }
}

impl Handshake for HttpConnect {
    type Output = ();
    type Error = ClientError;

    fn step(
        &mut self,
        rx: &mut HandshakeInput<'_>,
        tx: &mut HandshakeOutput<'_>,
    ) -> Result<HandshakeProgress<()>, ClientError> {
        if !self.opened {
            self.write_request(tx)?;
            self.opened = true;
        }
        loop {
            let limit = MAX_HEAD.saturating_sub(self.interim);
            let held = rx.bytes().len();
            // A server of another protocol might send forever without ending a head.
            if rx
                .bytes()
                .iter()
                .zip(b"HTTP/1.")
                .any(|(got, want)| got != want)
            {
                return Err(ClientError::Malformed("version"));
            }
            let len = match self.head_len(rx.bytes()) {
                Some(len) if len <= limit => len,
                None if held < limit => return Ok(HandshakeProgress::NeedMore { total: held + 1 }),
                _ => return Err(ClientError::TooLarge),
            };
            let head = subslice(rx.bytes(), ..len);
            let (line, _) = crate::head::split_head(head);
            let status = StatusLine::parse(line)
                .map_err(ClientError::Malformed)?
                .status;
            match status {
                // 101 would end HTTP on this connection, but not in our tunnel.
                100 | 102..=199 => {
                    rx.consume(len);
                    self.searched = 0;
                    self.interim += len;
                }
                200..=299 => {
                    rx.consume(len);
                    return Ok(HandshakeProgress::Done(()));
                }
                other => return Err(ClientError::Status(other)),
            }
        }
    }
}

impl fmt::Debug for HttpConnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connect")
            .field("target", &self.target)
            .field("opened", &self.opened)
            .finish_non_exhaustive()
    }
}
