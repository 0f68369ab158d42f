//! Output of the findings, as text or as one JSON object per line.

use adit_ssh_proto::algorithm::{Cipher, Compression, Kex, KeyAlgorithm, Mac};
use adit_wire::Target;
use serde_json::{Value, json};

use super::advice::Advice;
use super::cost::Cost;
use super::look::{Both, Offer};

/// The mark of an algorithm that adit does not support.
const UNKNOWN: &str = "~";

pub(super) fn offer(target: &Target, offer: &Offer) {
    println!("{target} is {}", offer.version);
    let strict = if offer.strict { "yes" } else { "no" };
    println!("{:<22} {strict}", "strict key exchange");
    line("key exchange", &offer.kex, |name| {
        Kex::by_name(name).is_some()
    });
    line("host keys", &offer.host_keys, |name| {
        KeyAlgorithm::by_name(name).is_some()
    });
    both("ciphers", &offer.ciphers, |name| {
        Cipher::by_name(name).is_some()
    });
    both("MACs", &offer.macs, |name| Mac::by_name(name).is_some());
    both("compression", &offer.compression, |name| {
        Compression::by_name(name).is_some()
    });
    println!("({UNKNOWN}: not supported by adit)");
}

fn both(what: &str, names: &Both, known: fn(&str) -> bool) {
    if names.to_server == names.to_client {
        return line(what, &names.to_server, known);
    }
    line(&format!("{what} to it"), &names.to_server, known);
    line(&format!("{what} from it"), &names.to_client, known);
}

fn line(what: &str, names: &[String], known: fn(&str) -> bool) {
    let shown = names.iter().map(|name| match known(name) {
        true => name.clone(),
        false => format!("{UNKNOWN}{name}"),
    });
    println!("{what:<22} {}", shown.collect::<Vec<_>>().join(" "));
}

pub(super) fn cost(cost: &Cost, first: bool) {
    if first {
        println!(
            "\n{:<30} {:<30} {:>5} {:>9} {:>9}",
            "one end here, CPU s/GiB", "", "tag", "sending", "receiving"
        );
    }
    println!(
        "{:<30} {:<30} {:>5} {:>9.3} {:>9.3}",
        cost.cipher.name(),
        cost.mac.map_or("", Mac::name),
        cost.tag_bits(),
        cost.send,
        cost.receive
    );
}

/// Prints the advice. `user` is the user of the argument.
pub(super) fn advice(target: &Target, user: Option<&str>, advice: &Advice) {
    println!();
    if let Some(take) = &advice.take {
        let place = match user {
            None => target.host.to_string(),
            Some(user) => format!("{user}@{}", target.host),
        };
        println!("take: ssh -p {} {} {place}", target.port, options(take));
    }
    for warning in &advice.warnings {
        println!("warning: {warning}");
    }
}

/// Returns the options of `ssh` for the pair.
fn options(cost: &Cost) -> String {
    match cost.mac {
        None => format!("-c {}", cost.cipher),
        Some(mac) => format!("-c {} -m {mac}", cost.cipher),
    }
}

pub(super) fn offer_json(target: &Target, offer: &Offer) {
    let both = |names: &Both| json!([names.to_server, names.to_client]);
    print(json!({"offer": {
        "server": target.to_string(),
        "version": offer.version,
        "strict_kex": offer.strict,
        "kex": offer.kex,
        "host_keys": offer.host_keys,
        "ciphers": both(&offer.ciphers),
        "macs": both(&offer.macs),
        "compression": both(&offer.compression),
    }}));
}

pub(super) fn cost_json(cost: &Cost) {
    let thousandths = |seconds: f64| (seconds * 1000.0).round() / 1000.0;
    print(json!({"cost": {
        "cipher": cost.cipher.name(),
        "mac": cost.mac.map(Mac::name),
        "tag_bits": cost.tag_bits(),
        "send_cpu_s_per_gib": thousandths(cost.send),
        "receive_cpu_s_per_gib": thousandths(cost.receive),
    }}));
}

pub(super) fn advice_json(advice: &Advice) {
    let named = |cost: &Option<Cost>| match cost {
        None => Value::Null,
        Some(cost) => json!({"cipher": cost.cipher.name(), "mac": cost.mac.map(Mac::name)}),
    };
    print(json!({"advice": {
        "take": named(&advice.take),
        "warnings": advice.warnings,
    }}));
}

fn print(line: Value) {
    println!("{line}");
}
