//! The SOCKS5 client (RFC 1928), with user name and password (RFC 1929).

use adit_socks::Command;
use adit_socks::client::Socks5Connect;
use adit_wire::Target;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, ToSocketAddrs};

use crate::dial::connect_to_proxy;
use crate::handshake::run;
use crate::{Error, IntoTarget};

/// Connects to `proxy` and requests a connection to `target`. `login` is a user name and a password,
/// of at most 255 bytes each; they are sent in cleartext.
///
/// # Errors
///
/// See [`Error`]; [`Error::SocksProxy`] has the proxy's reply.
///
/// # Cancel safety
/// If the call is cancelled, the stream is closed.
pub async fn connect(
    proxy: impl ToSocketAddrs,
    target: impl IntoTarget,
    login: Option<(&str, &str)>,
) -> Result<TcpStream, Error> {
    let target = target.into_target()?;
    connect_over(connect_to_proxy(proxy).await?, target, login).await
}

/// Requests a connection to `target` over a stream to the proxy, and returns the stream, which is
/// connected to the target.
///
/// # Errors
///
/// As [`connect`]. The stream is dropped; pass `&mut` to keep it.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use adit_proxy::{Users, accept, socks5};
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// // A proxy at the other end of a pipe; usually a TCP connection.
/// let (client, proxy) = tokio::io::duplex(1024);
/// tokio::spawn(async move {
///     let request = accept(proxy, &Users::new([("ann", "secret")])).await?;
///     request.grant(None).await?.write_all(b"hello").await?;
///     Ok::<(), adit_proxy::Error>(())
/// });
///
/// let login = Some(("ann", "secret"));
/// let mut stream = socks5::connect_over(client, "example.test:80", login).await?;
/// let mut text = String::new();
/// stream.read_to_string(&mut text).await?;
/// assert_eq!(text, "hello");
/// # Ok(())
/// # }
/// ```
///
/// # Cancel safety
/// If the call is cancelled, the stream is dropped. If you passed `&mut`, close the stream: part of a handshake was
/// exchanged.
pub async fn connect_over<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    target: impl IntoTarget,
    login: Option<(&str, &str)>,
) -> Result<S, Error> {
    request(&mut stream, Command::Connect, target, login).await?;
    Ok(stream)
}

/// Sends a request of any command and returns the address that the proxy has bound (BND.ADDR,
/// BND.PORT): for [`Command::UdpAssociate`] the address for datagrams, for [`Command::Bind`] the
/// one where it listens. After BIND, [`second_reply`] waits for the peer.
///
/// # Errors
///
/// As [`connect`].
///
/// # Cancel safety
/// Not cancel safe: part of a handshake was exchanged. Close the stream.
pub async fn request<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    command: Command,
    target: impl IntoTarget,
    login: Option<(&str, &str)>,
) -> Result<Target, Error> {
    let login = login.map(|(user, password)| (user.to_owned(), password.to_owned()));
    let mut core = Socks5Connect::new(command, target.into_target()?, login);
    Ok(run(stream, &mut core, Vec::new()).await?)
}

/// Waits for the second reply of BIND and returns the address of the peer that has connected.
///
/// # Errors
///
/// As [`connect`].
///
/// # Cancel safety
/// Not cancel safe: part of the reply may have been read. Close the stream.
pub async fn second_reply<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
) -> Result<Target, Error> {
    let mut core = adit_socks::client::second_reply(adit_socks::Version::V5);
    Ok(run(stream, &mut core, Vec::new()).await?)
}
