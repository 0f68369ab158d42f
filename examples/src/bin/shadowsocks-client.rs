//! Shadowsocks: connects standard input and output to a target through a server.
//!
//! METHOD and KEY are those of the server: `2022-blake3-aes-128-gcm` with base64 of 16 bytes, or
//! `chacha20-ietf-poly1305` with a password.

use std::sync::Arc;

use adit_net::system::{SystemClock, ThreadRng};
use adit_shadowsocks::tcp::client_codecs;
use adit_shadowsocks::{KeyChain, Method};
use adit_stream::{Layered, Stream, Tcp};
use adit_wire::Target;
use anyhow::{Context, Result, bail};
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional, join, stdin, stdout};
use tokio::net::TcpStream;

const USAGE: &str = "usage: shadowsocks-client SERVER_HOST:PORT METHOD KEY TARGET_HOST:PORT";

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [server, method, key, target] = args.as_slice() else {
        bail!(USAGE);
    };
    let method: Method = method.parse().context(USAGE)?;
    let keys = KeyChain::parse(method, key).context(USAGE)?;
    let target: Target = target.parse().context(USAGE)?;
    let mut stream = connect(server, &keys, &target).await?;
    // Ends when both directions have ended.
    copy_bidirectional(&mut join(stdin(), stdout()), &mut stream).await?;
    Ok(())
}

/// Returns a stream to the target. The request is sent with the first write or flush, and nothing
/// is known about the server's answer until the first read.
async fn connect(
    server: &str,
    keys: &KeyChain,
    target: &Target,
) -> Result<impl AsyncRead + AsyncWrite + Unpin + use<>> {
    let socket = TcpStream::connect(server).await?;
    let clock = Arc::new(SystemClock);
    let (seal, open) = client_codecs(keys, target, clock, &mut ThreadRng)?;
    Ok(Layered::new(Tcp::from(socket), seal, open).into_tokio())
}
