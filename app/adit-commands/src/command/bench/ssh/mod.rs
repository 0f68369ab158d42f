//! `adit bench ssh`: the algorithms of an SSH server, the cost of each of its ciphers and MACs on
//! this machine, and a recommendation. It disconnects after the cleartext lists, without a login.

mod cost;
mod offer;
mod output;
mod recommendation;

use std::time::Duration;

use adit_cli::{CommandResult, Failure, FailureCode};
use adit_net::dial::{self, Family};
use adit_net::system::ThreadRng;
use adit_ssh_proto::algorithm::{Cipher, Mac};
use adit_wire::{Host, Target};
use anyhow::Context;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::args;
use crate::args::bench::BenchOutput;
use offer::{AlgorithmListsReader, ServerOffer};
use recommendation::CipherRecommendation;

/// The default port of SSH.
const PORT: u16 = 22;
/// Time limit of the connection, and of the server's lists.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn bench_ssh(typed: &args::bench::BenchSshArgs) -> CommandResult {
    let (user, host) = split_user(&typed.host)?;
    let target = parse_target(host)?;
    let user = user.map(str::to_owned);
    let (format, spend) = (typed.output, Duration::from_millis(typed.millis.into()));
    adit_cli::block_on(|mut signals| async move {
        let offer = signals.run_until_ended(read_offer(&target)).await?;
        // On another thread, so that an interrupt ends the command meanwhile.
        let measured = tokio::task::spawn_blocking(move || {
            print_measurements(&target, user.as_deref(), &offer, spend, &format);
        });
        let measured = async {
            measured.await.context("measuring")?;
            Ok(())
        };
        signals.run_until_ended(measured).await
    })
}

/// Prints the lists of the server, the cost of each cipher and MAC, and a recommendation.
fn print_measurements(
    target: &Target,
    user: Option<&str>,
    offer: &ServerOffer,
    spend: Duration,
    format: &BenchOutput,
) {
    let json = format.is_json();
    if json {
        output::print_offer_json(target, offer);
    }
    let table = output::CostTable::new(format, target, offer);
    let pairs = common_pairs(offer);
    let mut costs = Vec::new();
    for &(cipher, mac) in &pairs {
        table.show_progress(cipher, mac, pairs.len());
        let cost = cost::measure_cost(cipher, mac, spend);
        if json {
            output::print_cost_json(&cost);
        } else {
            table.print(&cost);
        }
        costs.push(cost);
    }
    let recommendation = CipherRecommendation::from_offer_and_costs(offer, &costs);
    if json {
        output::print_recommendation_json(&recommendation);
    } else {
        table.finish(target, user, &recommendation);
    }
}

/// Splits `[USER@]HOST[:PORT]` into the user and the rest. The user only appears in the recommendation.
fn split_user(text: &str) -> Result<(Option<&str>, &str), Failure> {
    match text.rsplit_once('@') {
        None => Ok((None, text)),
        // A leading `-` would be an option in the recommended command.
        Some((user, host)) if !user.is_empty() && !user.starts_with('-') => Ok((Some(user), host)),
        Some(_) => Err(Failure::new(
            FailureCode::Usage,
            format!("`{text}` has no valid user before `@`"),
        )),
    }
}

/// Parses `HOST` or `HOST:PORT`.
fn parse_target(text: &str) -> Result<Target, Failure> {
    let bare = || {
        let host = Host::parse(text).ok();
        // Text with a colon that is not an IP address has an invalid port.
        host.filter(|host| matches!(host, Host::Ip(_)) || !text.contains(':'))
            .map(|host| Target::new(host, PORT))
    };
    match (bare(), text.parse::<Target>()) {
        (Some(target), _) | (None, Ok(target)) => Ok(target),
        (None, Err(why)) => Err(Failure::new(FailureCode::Usage, format!("`{text}`: {why}"))),
    }
}

/// Connects, and reads the server's lists.
async fn read_offer(target: &Target) -> Result<ServerOffer, Failure> {
    let unreachable = |why| Failure::new(FailureCode::Network, format!("{target}: {why}"));
    let candidates = match (target.socket_addr(), &target.host) {
        (Some(addr), _) => vec![addr],
        (None, host) => dial::resolve(&host.to_string(), target.port, Family::Any)
            .await
            .map_err(unreachable)?,
    };
    let mut tcp = dial::connect_first(&candidates, PATIENCE)
        .await
        .map_err(unreachable)?;
    let mut looker = AlgorithmListsReader::default();
    let heard = timeout(PATIENCE, exchange_lists(&mut tcp, &mut looker)).await;
    match heard {
        Ok(Ok(offer)) => Ok(offer),
        Ok(Err(why)) => Err(to_failure(target, &looker, &why)),
        Err(_) => Err(to_failure(target, &looker, "no further data arrived")),
    }
}

async fn exchange_lists(
    tcp: &mut tokio::net::TcpStream,
    looker: &mut AlgorithmListsReader,
) -> Result<ServerOffer, String> {
    let text = |why: std::io::Error| why.to_string();
    let hello = offer::client_hello(&mut ThreadRng).map_err(|why| why.to_string())?;
    tcp.write_all(&hello).await.map_err(text)?;
    let mut wire = Vec::new();
    loop {
        if tcp.read_buf(&mut wire).await.map_err(text)? == 0 {
            return Err("it closed the connection".to_owned());
        }
        if let Some(offer) = looker.read_from(&mut wire).map_err(|why| why.to_string())? {
            // The server need not read this.
            let _ = tcp.write_all(&offer::disconnect_message()).await;
            let _ = tcp.shutdown().await;
            return Ok(offer);
        }
    }
}

/// Returns a failure with what the server sent instead of the lists.
fn to_failure(target: &Target, looker: &AlgorithmListsReader, why: &str) -> Failure {
    let what = match looker.version() {
        None => format!("{target} is not an SSH server: {why}"),
        Some(version) => format!("{target} ({version}) did not send its algorithms: {why}"),
    };
    let failure = Failure::new(FailureCode::Network, what);
    match looker.first_line() {
        Some(line) => failure.with_hint(format!("it sent `{line}`")),
        None => failure,
    }
}

/// Returns the pairs of cipher and MAC that both sides support in both directions.
fn common_pairs(offer: &ServerOffer) -> Vec<(Cipher, Option<Mac>)> {
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
        assert_eq!(split_user("h:1").unwrap(), (None, "h:1"));
        assert_eq!(split_user("a@b@[::1]:2").unwrap(), (Some("a@b"), "[::1]:2"));
        split_user("@h").unwrap_err();
        split_user("-oX@h").unwrap_err();
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
            let found = parse_target(text).ok().map(|target| target.to_string());
            assert_eq!(found.as_deref(), shown, "{text}");
        }
    }
}
