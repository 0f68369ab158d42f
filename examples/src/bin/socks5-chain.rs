//! A SOCKS5 client through any number of proxies: connects standard input and output to a target.
//!
//! Each proxy sees only its neighbours: the first one the client, the last one the target.

use adit_proxy::{Target, socks5};
use anyhow::{Context, Result, bail};
use tokio::io::{copy_bidirectional, join, stdin, stdout};
use tokio::net::TcpStream;

const USAGE: &str = "usage: socks5-chain TARGET_HOST:PORT [USER:PASSWORD@]PROXY_HOST:PORT...";

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [target, first, others @ ..] = args.as_slice() else {
        bail!(USAGE);
    };
    let target: Target = target.parse().context(USAGE)?;
    let (mut login, mut proxy) = parse_proxy(first)?;
    let mut stream = TcpStream::connect(proxy).await.context(first.clone())?;
    for next in others {
        let (next_login, next) = parse_proxy(next)?;
        let over = socks5::connect_over(stream, next, login).await;
        stream = over.with_context(|| format!("{proxy} does not connect to {next}"))?;
        (login, proxy) = (next_login, next);
    }
    let over = socks5::connect_over(stream, &target, login).await;
    let mut stream = over.with_context(|| format!("{proxy} does not connect to {target}"))?;
    // Ends when both directions have ended.
    copy_bidirectional(&mut join(stdin(), stdout()), &mut stream).await?;
    Ok(())
}

/// Splits `USER:PASSWORD@HOST:PORT` into the login and the address.
fn parse_proxy(text: &str) -> Result<(Option<(&str, &str)>, &str)> {
    let (login, address) = match text.rsplit_once('@') {
        Some((login, address)) => (Some(login.split_once(':').context(USAGE)?), address),
        None => (None, text),
    };
    address.parse::<Target>().context(USAGE)?;
    Ok((login, address))
}
