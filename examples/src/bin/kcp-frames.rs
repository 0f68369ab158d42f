//! Messages over encrypted KCP with forward error correction, framed by a codec of tokio-util.
//!
//! Of 13 datagrams any 3 may be lost without a retransmission.

use std::net::SocketAddr;
use std::sync::Arc;

use adit_kcp::{CodeMatrix, Config, Fec, KcpListener, KcpStream, Settings};
use adit_kcp::{PacketCheck, PacketKey, PacketKind};
use anyhow::{Context, Result, bail};
use futures_util::{SinkExt, StreamExt};
use tokio_util::codec::{Framed, LinesCodec};

const USAGE: &str = "usage: kcp-frames serve LISTEN_ADDRESS:PORT PASSWORD\n       \
    kcp-frames send HOST:PORT PASSWORD MESSAGE...";

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["serve", listen, password] => serve(listen.parse().context(USAGE)?, password).await,
        ["send", server, password, messages @ ..] => send(server, password, messages).await,
        _ => bail!(USAGE),
    }
}

/// Returns the settings of `kcptun --crypt aes --datashard 10 --parityshard 3`.
fn settings(password: &str) -> Result<Settings> {
    let key = PacketKey::new(PacketKind::Aes, PacketCheck::Crc32, password.as_bytes())?;
    let mut settings = Settings::new(Config::fast3());
    settings.key = Some(Arc::new(key));
    settings.fec = Some(Fec {
        data: 10,
        parity: 3,
        matrix: CodeMatrix::Vandermonde,
    });
    Ok(settings)
}

async fn serve(listen: SocketAddr, password: &str) -> Result<()> {
    let mut listener = KcpListener::bind(listen, settings(password)?)?;
    println!("listening on {}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(async move {
            let mut frames = Framed::new(stream, LinesCodec::new_with_max_length(4096));
            while let Some(Ok(message)) = frames.next().await {
                frames.send(message.to_uppercase()).await?;
            }
            anyhow::Ok(())
        });
    }
}

async fn send(server: &str, password: &str, messages: &[&str]) -> Result<()> {
    let stream = KcpStream::connect(server, settings(password)?).await?;
    let mut frames = Framed::new(stream, LinesCodec::new_with_max_length(4096));
    for message in messages {
        frames.send(*message).await?;
        println!("{}", frames.next().await.context("the server left")??);
    }
    Ok(())
}
