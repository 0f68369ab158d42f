//! The SOCKS4a client: IPv4 addresses are sent as plain SOCKS4, names with the 4a extension.

use adit_socks::Command;
use adit_socks::client::Socks4Connect;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, ToSocketAddrs};

use crate::dial::connect_to_proxy;
use crate::handshake::run;
use crate::{Error, IntoTarget};

/// Connects to `proxy` and requests a connection to `target`, which must not be an IPv6 address.
/// `user` is the USERID, which is sent in cleartext and proves nothing.
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
    user: Option<&str>,
) -> Result<TcpStream, Error> {
    let target = target.into_target()?;
    connect_over(connect_to_proxy(proxy).await?, target, user).await
}

/// Requests a connection to `target` over a stream to the proxy, and returns the stream, which is
/// connected to the target.
///
/// # Errors
///
/// As [`connect`]. The stream is dropped; pass `&mut` to keep it.
///
/// # Cancel safety
/// If the call is cancelled, the stream is dropped. If you passed `&mut`, close the stream: part of a handshake was
/// exchanged.
pub async fn connect_over<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    target: impl IntoTarget,
    user: Option<&str>,
) -> Result<S, Error> {
    let target = target.into_target()?;
    let mut core = Socks4Connect::new(Command::Connect, target, user.map(str::to_owned));
    run(&mut stream, &mut core, Vec::new()).await?;
    Ok(stream)
}
