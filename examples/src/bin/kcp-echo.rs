//! KCP: a server that sends back all it receives, and its client.
//!
//! Both work with programs of kcp-go too, which have no end of a stream.

use std::net::SocketAddr;

use adit_kcp::{Config, KcpListener, KcpStream, Settings};
use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};

const USAGE: &str = "usage: kcp-echo serve LISTEN_ADDRESS:PORT | kcp-echo ask HOST:PORT TEXT";

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["serve", listen] => serve(listen.parse().context(USAGE)?).await,
        ["ask", server, text] => ask(server, text).await,
        _ => bail!(USAGE),
    }
}

/// Returns settings for low latency, without encryption. Both ends need the same cipher.
fn settings() -> Settings {
    Settings::new(Config::fast3())
}

async fn serve(listen: SocketAddr) -> Result<()> {
    let mut listener = KcpListener::bind(listen, settings())?;
    println!("listening on {}", listener.local_addr()?);
    loop {
        let (stream, peer) = listener.accept().await?;
        tokio::spawn(async move {
            let (mut reader, mut writer) = stream.into_split();
            let echoed = copy(&mut reader, &mut writer).await;
            println!("{peer}: {echoed:?}");
            writer.shutdown().await
        });
    }
}

async fn ask(server: &str, text: &str) -> Result<()> {
    let mut stream = KcpStream::connect(server, settings()).await?;
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    println!("{answer}");
    Ok(())
}
