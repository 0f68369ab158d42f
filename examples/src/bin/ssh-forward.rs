//! SSH: forwards connections to a local port through a server to a target, as `ssh -L` does.
//!
//! The key of the server has to be in the file KNOWN_HOSTS, as `ssh-keyscan -p PORT HOST` prints it.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use adit_ssh::client::{Client, ClientConfig, KnownHostsOnly, Login, Session};
use adit_ssh_proto::connection::Originator;
use adit_ssh_proto::key::PrivateKey;
use anyhow::{Context, Result, bail};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

const USAGE: &str = "usage: ssh-forward LISTEN_ADDRESS:PORT TARGET_HOST:PORT \
    HOST PORT USER KEY_FILE KNOWN_HOSTS";

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [listen, target, host, port, user, key, known_hosts] = args.as_slice() else {
        bail!(USAGE);
    };
    let listen: SocketAddr = listen.parse().context(USAGE)?;
    let target = target.rsplit_once(':').context(USAGE)?;
    let target = (target.0.to_owned(), target.1.parse().context(USAGE)?);
    let key = fs::read_to_string(key).with_context(|| key.clone())?;
    let login = Login::new(user).with_key(PrivateKey::from_text(&key, None)?);
    let port = port.parse().context(USAGE)?;
    let known = KnownHostsOnly::read(host, port, &[Path::new(known_hosts)])?;
    let config = ClientConfig::for_known_host(known, login);
    let session = Client::connect_tcp(host, port, config).await?;
    let listener = TcpListener::bind(listen).await?;
    println!("listening on {}", listener.local_addr()?);
    loop {
        let (socket, from) = listener.accept().await?;
        let (session, (host, port)) = (session.clone(), target.clone());
        // A target that does not answer must not delay the others.
        tokio::spawn(async move {
            if let Err(why) = forward(socket, from, &session, host, port).await {
                eprintln!("{from}: {why}");
            }
        });
    }
}

async fn forward(
    mut socket: TcpStream,
    from: SocketAddr,
    session: &Session,
    host: String,
    port: u16,
) -> Result<()> {
    let originator = Originator {
        address: from.ip().to_string(),
        port: from.port().into(),
    };
    let mut channel = session.open_direct_tcpip(host, port, originator).await?;
    copy_bidirectional(&mut socket, &mut channel).await?;
    Ok(())
}
