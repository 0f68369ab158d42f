//! An SSH server that runs commands with `sh -c`, as the user who started it, for the owner of one
//! key. `ssh-keygen -t ed25519 -f host_key` makes a host key.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt, sync::Arc};

use adit_ssh::BoxFuture;
use adit_ssh::server::{AuthPolicy, Incoming, KeyProof, Server, ServerConfig, ServerSession};
use adit_ssh_proto::connection::SshChannelRequest;
use adit_ssh_proto::key::{AnyKey, KeySet, PrivateKey, PublicKey};
use anyhow::{Context, Result, bail};
use tokio::{io::AsyncWriteExt, net::TcpListener, process::Command};

const USAGE: &str = "usage: ssh-server LISTEN_ADDRESS:PORT HOST_KEY_FILE USER_KEY_FILE.pub";

struct OneKey(AnyKey);

impl AuthPolicy for OneKey {
    fn check_public_key<'a>(
        &'a self,
        _user: &'a str,
        key: &'a AnyKey,
        _proof: KeyProof,
    ) -> BoxFuture<'a, bool> {
        Box::pin(async move { key == &self.0 })
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [listen, host_key, user_key] = args.as_slice() else {
        bail!(USAGE);
    };
    let host_key = PrivateKey::from_text(&fs::read_to_string(host_key).context(USAGE)?, None)?;
    let config = ServerConfig::new(Arc::new(KeySet::from(vec![host_key])));
    let (user_key, _) = PublicKey::from_line(&fs::read_to_string(user_key).context(USAGE)?)?;
    let setup = Arc::new((config, OneKey(AnyKey::Plain(user_key))));
    let listener = TcpListener::bind(listen).await.context(USAGE)?;
    println!("listening on {}", listener.local_addr()?);
    loop {
        let (stream, setup) = (listener.accept().await?.0, Arc::clone(&setup));
        tokio::spawn(async move {
            let mut connection = Server::accept(stream.into(), &setup.0, &setup.1).await?;
            while let Some(incoming) = connection.accept().await {
                if let Incoming::Session(opening) = incoming {
                    tokio::spawn(run(opening.accept()?));
                } // All other requests are refused when they are dropped.
            }
            anyhow::Ok(())
        });
    }
}

async fn run(session: ServerSession) -> Result<()> {
    while let Some(next) = session.next_request().await {
        if let SshChannelRequest::Exec(command) = next.request {
            next.reply.grant();
            let command = OsStr::from_bytes(&command);
            let output = Command::new("sh").arg("-c").arg(command).output().await?;
            let (control, mut stdout, mut stderr) = session.into_parts();
            stderr.write_all(&output.stderr).await?;
            stdout.write_all(&output.stdout).await?;
            stdout.shutdown().await?;
            control.send_exit_status(output.status.code().map_or(255, i32::unsigned_abs));
            return Ok(());
        }
    }
    Ok(())
}
