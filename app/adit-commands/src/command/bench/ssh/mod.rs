//! `adit bench ssh`: the algorithms of an SSH server, the cost of each of its ciphers and MACs on
//! this machine, and a recommendation. It disconnects after the cleartext lists, without a login.

mod advice;
mod cost;
mod look;
mod show;

use std::time::Duration;

use adit_cli::{Code, Done, Failure};
use adit_net::dial::{self, Family};
use adit_net::system::ThreadRng;
use adit_ssh_proto::algorithm::{Cipher, Mac};
use adit_wire::{Host, Target};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::args;
use advice::Advice;
use look::{Looker, Offer};

/// The default port of SSH.
const PORT: u16 = 22;
/// Time limit of the connection, and of the server's lists.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn ssh(typed: &args::BenchSsh) -> Done {
    let (user, host) = apart(&typed.host)?;
    let target = target(host)?;
    let mut found = None;
    let (place, wanted) = (&mut found, &target);
    adit_cli::block_on(|mut signals| async move {
        *place = Some(signals.unless_ended(look(wanted)).await?);
        Ok(())
    })?;
    let Some(offer) = found else {
        return Ok(());
    };
    if typed.json {
        show::offer_json(&target, &offer);
    } else {
        show::offer(&target, &offer);
    }
    let spend = Duration::from_millis(typed.millis.into());
    let mut costs = Vec::new();
    for (cipher, mac) in pairs(&offer) {
        let cost = cost::measure(cipher, mac, spend);
        if typed.json {
            show::cost_json(&cost);
        } else {
            show::cost(&cost, costs.is_empty());
        }
        costs.push(cost);
    }
    let advice = Advice::new(&offer, &costs);
    if typed.json {
        show::advice_json(&advice);
    } else {
        show::advice(&target, user, &advice);
    }
    Ok(())
}

/// Splits `[USER@]HOST[:PORT]` into the user and the rest. The user only appears in the advice.
fn apart(text: &str) -> Result<(Option<&str>, &str), Failure> {
    match text.rsplit_once('@') {
        None => Ok((None, text)),
        // A leading `-` would be an option in the recommended command.
        Some((user, host)) if !user.is_empty() && !user.starts_with('-') => Ok((Some(user), host)),
        Some(_) => Err(Failure::new(
            Code::Usage,
            format!("`{text}` has no valid user before `@`"),
        )),
    }
}

/// Parses `HOST` or `HOST:PORT`.
fn target(text: &str) -> Result<Target, Failure> {
    let bare = || {
        let host = Host::parse(text).ok();
        // Text with a colon that is not an IP address has an invalid port.
        host.filter(|host| matches!(host, Host::Ip(_)) || !text.contains(':'))
            .map(|host| Target::new(host, PORT))
    };
    match (bare(), text.parse::<Target>()) {
        (Some(target), _) | (None, Ok(target)) => Ok(target),
        (None, Err(why)) => Err(Failure::new(Code::Usage, format!("`{text}`: {why}"))),
    }
}

/// Connects, and reads the server's lists.
async fn look(target: &Target) -> Result<Offer, Failure> {
    let unreachable = |why| Failure::new(Code::Network, format!("{target}: {why}"));
    let candidates = match (target.socket_addr(), &target.host) {
        (Some(addr), _) => vec![addr],
        (None, host) => dial::resolve(&host.to_string(), target.port, Family::Any)
            .await
            .map_err(unreachable)?,
    };
    let mut tcp = dial::connect_first(&candidates, PATIENCE)
        .await
        .map_err(unreachable)?;
    let mut looker = Looker::default();
    let heard = timeout(PATIENCE, hear(&mut tcp, &mut looker)).await;
    match heard {
        Ok(Ok(offer)) => Ok(offer),
        Ok(Err(why)) => Err(no_ssh(target, &looker, &why)),
        Err(_) => Err(no_ssh(target, &looker, "no further data arrived")),
    }
}

async fn hear(tcp: &mut tokio::net::TcpStream, looker: &mut Looker) -> Result<Offer, String> {
    let text = |why: std::io::Error| why.to_string();
    let hello = look::hello(&mut ThreadRng).map_err(|why| why.to_string())?;
    tcp.write_all(&hello).await.map_err(text)?;
    let mut wire = Vec::new();
    loop {
        if tcp.read_buf(&mut wire).await.map_err(text)? == 0 {
            return Err("it closed the connection".to_owned());
        }
        if let Some(offer) = looker.step(&mut wire).map_err(|why| why.to_string())? {
            // The server need not read this.
            let _ = tcp.write_all(&look::farewell()).await;
            let _ = tcp.shutdown().await;
            return Ok(offer);
        }
    }
}

/// Returns a failure with what the server sent instead of the lists.
fn no_ssh(target: &Target, looker: &Looker, why: &str) -> Failure {
    let what = match looker.version() {
        None => format!("{target} is not an SSH server: {why}"),
        Some(version) => format!("{target} ({version}) did not send its algorithms: {why}"),
    };
    let failure = Failure::new(Code::Network, what);
    match looker.said() {
        Some(line) => failure.hint(format!("it sent `{line}`")),
        None => failure,
    }
}

/// Returns the pairs of cipher and MAC that both sides support in both directions.
fn pairs(offer: &Offer) -> Vec<(Cipher, Option<Mac>)> {
    let mut out = Vec::new();
    for cipher in offer.ciphers.common().filter_map(Cipher::by_name) {
        if cipher.is_aead() {
            out.push((cipher, None));
            continue;
        }
        let macs = offer.macs.common().filter_map(Mac::by_name);
        out.extend(macs.map(|mac| (cipher, Some(mac))));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_may_stand_before_it() {
        assert_eq!(apart("h:1").unwrap(), (None, "h:1"));
        assert_eq!(apart("a@b@[::1]:2").unwrap(), (Some("a@b"), "[::1]:2"));
        apart("@h").unwrap_err();
        apart("-oX@h").unwrap_err();
    }

    #[test]
    fn a_port_may_be_left_out() {
        for (text, shown) in [
            ("host", Some("host:22")),
            ("host:2200", Some("host:2200")),
            ("192.0.2.7", Some("192.0.2.7:22")),
            ("::1", Some("[::1]:22")),
            ("[::1]:23", Some("[::1]:23")),
            ("host:", None),
            ("host:x", None),
            ("", None),
        ] {
            let found = target(text).ok().map(|target| target.to_string());
            assert_eq!(found.as_deref(), shown, "{text}");
        }
    }
}
