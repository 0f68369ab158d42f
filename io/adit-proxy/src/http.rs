//! The HTTP CONNECT client (RFC 9110 section 9.3.6), with the Basic scheme (RFC 7617).

use adit_http::client::HttpConnect;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, ToSocketAddrs};

use crate::dial::connect_to_proxy;
use crate::handshake::run;
use crate::{Error, IntoTarget};

/// Connects to `proxy` and requests a tunnel to `target`. `login` is a user name without a colon and
/// a password; they are sent in cleartext.
///
/// # Errors
///
/// See [`Error`]; [`Error::HttpProxy`] has the proxy's status.
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

/// Requests a tunnel to `target` over a stream to the proxy, and returns the stream, which is
/// connected to the target. The head of the answer is read byte by byte.
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
/// use adit_proxy::{Error, Reply, Users, accept, http};
///
/// let (client, proxy) = tokio::io::duplex(1024);
/// tokio::spawn(async move {
///     let request = accept(proxy, &Users::anyone()).await?;
///     request.refuse(Reply::NotAllowed).await?;
///     Ok::<(), Error>(())
/// });
///
/// let refused = http::connect_over(client, "example.test:443", None).await;
/// assert!(matches!(refused, Err(Error::HttpProxy(_))));
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
    let login = login.map(|(user, password)| (user.to_owned(), password.to_owned()));
    let mut core = HttpConnect::new(target.into_target()?, login);
    run(&mut stream, &mut core, Vec::new()).await?;
    Ok(stream)
}
