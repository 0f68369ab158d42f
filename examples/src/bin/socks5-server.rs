//! A SOCKS5 server for one user; HTTP CONNECT clients can use the same port.
//!
//! `curl -x socks5h://ann:secret@127.0.0.1:1080 https://example.com/` is a client.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use adit_proxy::{Users, accept};
use anyhow::{Context, Result, bail};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

const USAGE: &str = "usage: socks5-server LISTEN_ADDRESS:PORT USER PASSWORD";

/// Maximum time until a client has sent its request.
const REQUEST_TIME: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [listen, user, password] = args.as_slice() else {
        bail!(USAGE);
    };
    let listen: SocketAddr = listen.parse().context(USAGE)?;
    let users = Arc::new(Users::new([(user, password)]));
    let listener = TcpListener::bind(listen).await?;
    println!("listening on {}", listener.local_addr()?);
    loop {
        let (client, from) = listener.accept().await?;
        let users = Arc::clone(&users);
        tokio::spawn(async move {
            if let Err(why) = serve(client, &users).await {
                eprintln!("{from}: {why:#}");
            }
        });
    }
}

async fn serve(client: TcpStream, users: &Users) -> Result<()> {
    let request = timeout(REQUEST_TIME, accept(client, users)).await??;
    println!("a connection to {}", request.target());
    // Your users may connect to anything here. Otherwise check `request.target()` first, and
    // `request.refuse(Reply::NotAllowed)`.
    let (mut client, mut target) = request.connect().await?;
    copy_bidirectional(&mut client, &mut target).await?;
    Ok(())
}
