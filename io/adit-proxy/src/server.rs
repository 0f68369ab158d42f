//! The server's side: SOCKS5, SOCKS4a and HTTP CONNECT clients on one port.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use adit_http::server::{ESTABLISHED, Request as HttpRequest, RequestHandshake};
use adit_http::server::{explained_failure, failure_response};
use adit_socks::server::{Credentials, Socks4, Socks5, encode_reply};
use adit_socks::{Command, Reply, Request as SocksRequest, Version};
use adit_wire::Target;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Error;
use crate::dial::{connect_to_target, reply_of};
use crate::handshake::{run, send};
use crate::users::HttpCredentials;

/// The protocol of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// SOCKS5 (RFC 1928).
    Socks5,
    /// SOCKS4 and SOCKS4a.
    Socks4,
    /// HTTP CONNECT (RFC 9110 section 9.3.6).
    Http,
}

/// A client whose request waits for an answer. Dropping it closes the connection.
pub struct AcceptedClient<S> {
    stream: S,
    protocol: Protocol,
    command: Command,
    target: Target,
    user: Option<Vec<u8>>,
}

/// Reads the request of a client. The protocol is detected by its first byte.
///
/// A client that is refused here, for a wrong login or a malformed request, receives the answer that
/// its protocol has. SOCKS4 has no password, so it is refused where a login is required.
///
/// # Errors
///
/// [`Error::SocksClient`], [`Error::HttpClient`] or [`Error::NotConnect`] for clients that were
/// refused, [`Error::Eof`] for those that left, and [`Error::Io`].
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use adit_proxy::{Protocol, Users, accept, socks4};
///
/// let (client, proxy) = tokio::io::duplex(1024);
/// let client = tokio::spawn(socks4::connect_over(client, "example.test:80", None));
///
/// let request = accept(proxy, &Users::anyone()).await?;
/// assert_eq!(request.protocol(), Protocol::Socks4);
/// assert_eq!(request.target().to_string(), "example.test:80");
/// request.grant(None).await?;
/// client.await??;
/// # Ok(())
/// # }
/// ```
///
/// # Cancel safety
/// If the call is cancelled, the stream is dropped. If you passed `&mut`, close the stream: part of a handshake was
/// exchanged.
pub async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    credentials: &dyn Credentials,
) -> Result<AcceptedClient<S>, Error> {
    let mut first = [0];
    if stream.read(&mut first).await? == 0 {
        return Err(Error::Eof);
    }
    let read = match first {
        [5] => {
            read_socks(
                &mut stream,
                Socks5::new(credentials),
                Protocol::Socks5,
                first,
            )
            .await
        }
        [4] => {
            let core = Socks4::new(!credentials.is_required());
            read_socks(&mut stream, core, Protocol::Socks4, first).await
        }
        _ => read_http(&mut stream, credentials, first).await,
    };
    match read {
        Ok(request) => Ok(request.with_stream(stream)),
        Err(why) => {
            // Otherwise the close could become a reset, and the answer would be lost.
            let _ = stream.shutdown().await;
            Err(why)
        }
    }
}

async fn read_socks<S, H>(
    stream: &mut S,
    mut core: H,
    protocol: Protocol,
    first: [u8; 1],
) -> Result<AcceptedClient<()>, Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
    H: adit_wire::Handshake<Output = SocksRequest, Error = adit_socks::server::Refusal>,
{
    let request = run(stream, &mut core, first.to_vec()).await?;
    Ok(AcceptedClient {
        stream: (),
        protocol,
        command: request.command,
        target: request.target,
        user: request.user.filter(|_| request.verified),
    })
}

async fn read_http<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    credentials: &dyn Credentials,
    first: [u8; 1],
) -> Result<AcceptedClient<()>, Error> {
    let users = HttpCredentials(credentials);
    let mut core = RequestHandshake::new(&users);
    match run(stream, &mut core, first.to_vec()).await? {
        HttpRequest::Connect { target, user } => Ok(AcceptedClient {
            stream: (),
            protocol: Protocol::Http,
            command: Command::Connect,
            target,
            user,
        }),
        HttpRequest::Forward { .. } => {
            let answer = explained_failure(405, None, "This proxy supports only CONNECT.");
            send(stream, &answer).await?;
            Err(Error::NotConnect)
        }
    }
}

impl AcceptedClient<()> {
    fn with_stream<S>(self, stream: S) -> AcceptedClient<S> {
        AcceptedClient {
            stream,
            protocol: self.protocol,
            command: self.command,
            target: self.target,
            user: self.user,
        }
    }
}

impl<S> AcceptedClient<S> {
    /// Returns the requested target. Its name is not resolved.
    #[must_use]
    pub const fn target(&self) -> &Target {
        &self.target
    }

    /// Returns the requested command; of HTTP clients always [`Command::Connect`].
    #[must_use]
    pub const fn command(&self) -> Command {
        self.command
    }

    /// Returns the name of the user whose password was correct, or `None` if no login is required.
    #[must_use]
    pub fn user(&self) -> Option<&[u8]> {
        self.user.as_deref()
    }

    /// Returns the protocol of the client.
    #[must_use]
    pub const fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Returns the stream to the client, for its address and options.
    #[must_use]
    pub const fn get_ref(&self) -> &S {
        &self.stream
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AcceptedClient<S> {
    /// Grants the request and returns the stream, from which the client's bytes for the target are
    /// read. `bound` is the address that SOCKS clients receive as BND.ADDR and BND.PORT; without it
    /// they receive zeros, which suffices for CONNECT.
    ///
    /// # Errors
    ///
    /// The stream failed.
    ///
    /// # Cancel safety
    /// If the call is cancelled, the stream is closed.
    pub async fn grant(mut self, bound: Option<SocketAddr>) -> io::Result<S> {
        match self.version() {
            Some(version) => {
                let answer = encode_reply(version, Reply::Succeeded, bound);
                send(&mut self.stream, &answer).await?;
            }
            None => send(&mut self.stream, ESTABLISHED).await?,
        }
        Ok(self.stream)
    }

    /// Refuses the request and closes the stream. HTTP clients receive status 403 for
    /// [`Reply::NotAllowed`], 504 for [`Reply::TtlExpired`] and 502 otherwise.
    ///
    /// # Errors
    ///
    /// The stream failed.
    ///
    /// # Cancel safety
    /// If the call is cancelled, the stream is closed.
    pub async fn refuse(mut self, reply: Reply) -> io::Result<()> {
        let answer = match self.version() {
            Some(version) => encode_reply(version, reply, None),
            None => failure_response(http_status(reply), None),
        };
        send(&mut self.stream, &answer).await?;
        self.stream.shutdown().await
    }

    /// Connects to the target, grants the request, and returns both streams; or refuses it with the
    /// reply for the failure. Names are resolved by the system.
    ///
    /// This connects to every address that the server can reach, its own and those of private
    /// networks too. If your clients must not, check [`target`](Self::target), connect on your own
    /// and call [`grant`](Self::grant).
    ///
    /// # Errors
    ///
    /// [`Error::Command`] for a command other than CONNECT, or [`Error::Io`].
    ///
    /// # Cancel safety
    /// If the call is cancelled, the stream is closed.
    pub async fn connect(self) -> Result<(S, TcpStream), Error> {
        let command = self.command;
        if command != Command::Connect {
            self.refuse(Reply::CommandNotSupported).await?;
            return Err(Error::Command(command));
        }
        match connect_to_target(&self.target).await {
            Ok(target) => {
                let bound = target.local_addr().ok();
                Ok((self.grant(bound).await?, target))
            }
            Err(why) => {
                self.refuse(reply_of(&why)).await?;
                Err(why.into())
            }
        }
    }

    /// Returns the version of a SOCKS client.
    const fn version(&self) -> Option<Version> {
        match self.protocol {
            Protocol::Socks5 => Some(Version::V5),
            Protocol::Socks4 => Some(Version::V4),
            Protocol::Http => None,
        }
    }
}

const fn http_status(reply: Reply) -> u16 {
    match reply {
        Reply::NotAllowed => 403,
        Reply::TtlExpired => 504,
        _ => 502,
    }
}

impl<S> fmt::Debug for AcceptedClient<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcceptedClient")
            .field("protocol", &self.protocol)
            .field("command", &self.command)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}
