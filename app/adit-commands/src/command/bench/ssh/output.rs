//! Output of the findings, as text or as one JSON document per line.

use adit_ssh_proto::algorithm::{Cipher, Compression, Kex, KeyAlgorithm, Mac};
use adit_wire::Target;
use serde_json::{Value, json};

use super::cost::CipherCost;
use super::offer::{DirectionalNames, ServerOffer};
use super::recommendation::CipherRecommendation;
use crate::json;

/// The mark of an algorithm that adit does not support.
const UNKNOWN: &str = "~";

pub(super) fn print_offer(target: &Target, offer: &ServerOffer) {
    println!("{target} is {}", offer.version);
    let strict = if offer.strict { "yes" } else { "no" };
    println!("{:<22} {strict}", "strict key exchange");
    print_names("key exchange", &offer.kex, |name| {
        Kex::by_name(name).is_some()
    });
    print_names("host keys", &offer.host_keys, |name| {
        KeyAlgorithm::by_name(name).is_some()
    });
    print_both("ciphers", &offer.ciphers, |name| {
        Cipher::by_name(name).is_some()
    });
    print_both("MACs", &offer.macs, |name| Mac::by_name(name).is_some());
    print_both("compression", &offer.compression, |name| {
        Compression::by_name(name).is_some()
    });
    println!("({UNKNOWN}: not supported by adit)");
}

fn print_both(what: &str, names: &DirectionalNames, known: fn(&str) -> bool) {
    if names.to_server == names.to_client {
        return print_names(what, &names.to_server, known);
    }
    print_names(&format!("{what} to it"), &names.to_server, known);
    print_names(&format!("{what} from it"), &names.to_client, known);
}

fn print_names(what: &str, names: &[String], known: fn(&str) -> bool) {
    let shown = names.iter().map(|name| match known(name) {
        true => name.clone(),
        false => format!("{UNKNOWN}{name}"),
    });
    println!("{what:<22} {}", shown.collect::<Vec<_>>().join(" "));
}

pub(super) fn print_cost(cost: &CipherCost, first: bool) {
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
pub(super) fn print_recommendation(
    target: &Target,
    user: Option<&str>,
    recommendation: &CipherRecommendation,
) {
    println!();
    if let Some(take) = &recommendation.take {
        let place = match user {
            None => target.host.to_string(),
            Some(user) => format!("{user}@{}", target.host),
        };
        println!("take: ssh -p {} {} {place}", target.port, ssh_options(take));
    }
    for warning in &recommendation.warnings {
        println!("warning: {warning}");
    }
}

/// Returns the options of `ssh` for the pair.
fn ssh_options(cost: &CipherCost) -> String {
    match cost.mac {
        None => format!("-c {}", cost.cipher),
        Some(mac) => format!("-c {} -m {mac}", cost.cipher),
    }
}

pub(super) fn print_offer_json(target: &Target, offer: &ServerOffer) {
    let both = |names: &DirectionalNames| json!([names.to_server, names.to_client]);
    print_event(
        "offer",
        &json!({
            "server": target.to_string(),
            "version": offer.version,
            "strictKex": offer.strict,
            "kex": offer.kex,
            "hostKeys": offer.host_keys,
            "ciphers": both(&offer.ciphers),
            "macs": both(&offer.macs),
            "compression": both(&offer.compression),
        }),
    );
}

pub(super) fn print_cost_json(cost: &CipherCost) {
    let thousandths = |seconds: f64| (seconds * 1000.0).round() / 1000.0;
    print_event(
        "cost",
        &json!({
            "cipher": cost.cipher.name(),
            "mac": cost.mac.map(Mac::name),
            "tagBits": cost.tag_bits(),
            "sendCpuSecondsPerGib": thousandths(cost.send),
            "receiveCpuSecondsPerGib": thousandths(cost.receive),
        }),
    );
}

pub(super) fn print_recommendation_json(recommendation: &CipherRecommendation) {
    let named = |cost: &Option<CipherCost>| match cost {
        None => Value::Null,
        Some(cost) => json!({"cipher": cost.cipher.name(), "mac": cost.mac.map(Mac::name)}),
    };
    print_event(
        "advice",
        &json!({
            "take": named(&recommendation.take),
            "warnings": recommendation.warnings,
        }),
    );
}

fn print_event(event: &str, result: &Value) {
    json::print_event("bench ssh", event, result);
}
