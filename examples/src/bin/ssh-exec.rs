//! SSH: runs a command on a server, prints its output and exits with its status.
//!
//! The key of the server has to be in the file KNOWN_HOSTS, as `ssh-keyscan -p PORT HOST` prints it.

use std::fs;
use std::io::Write;
use std::path::Path;

use adit_ssh::client::{Client, ClientConfig, Exit, KnownHostsOnly, Login};
use adit_ssh_proto::key::PrivateKey;
use anyhow::{Context, Result, bail};

const USAGE: &str = "usage: ssh-exec HOST PORT USER KEY_FILE KNOWN_HOSTS COMMAND";

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [host, port, user, key, known_hosts, command] = args.as_slice() else {
        bail!(USAGE);
    };
    let port = port.parse().context(USAGE)?;
    let key = fs::read_to_string(key).with_context(|| key.clone())?;
    let key = PrivateKey::from_text(&key, None)?;
    let known = KnownHostsOnly::read(host, port, &[Path::new(known_hosts)])?;
    let config = ClientConfig::for_known_host(known, Login::new(user).with_key(key));
    let session = Client::connect_tcp(host, port, config).await?;

    let program = session.open_session().await?;
    let output = program.collect_output(command.as_str()).await?;
    std::io::stdout().write_all(&output.stdout)?;
    std::io::stderr().write_all(&output.stderr)?;
    match output.exit {
        Some(Exit::Status(status)) => std::process::exit(i32::try_from(status).unwrap_or(255)),
        other => bail!("the command did not exit: {other:?}"),
    }
}
