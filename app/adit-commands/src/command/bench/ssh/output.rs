//! Output of the findings: as text, as Markdown, as a chart, or as one JSON document per line.

use adit_ssh_proto::algorithm::{Cipher, Compression, Kex, KeyAlgorithm, Mac};
use adit_wire::Target;
use serde_json::{Value, json};

use super::super::report::{Column, ReportLayout, ReportPrinter};
use super::cost::CipherCost;
use super::offer::{DirectionalNames, ServerOffer};
use super::recommendation::CipherRecommendation;
use crate::args::bench::{BenchFormat, BenchOutput};
use crate::json;

/// The mark of an algorithm that adit does not support.
const UNKNOWN: &str = "~";

fn print_offer(target: &Target, offer: &ServerOffer) {
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

/// The costs, as a table, as Markdown or as a chart.
pub(super) struct CostTable {
    report: ReportPrinter,
    format: BenchFormat,
}

/// The columns of a cost.
const LAYOUT: ReportLayout = ReportLayout {
    columns: &[
        Column {
            head: "tag",
            key: "",
            width: 5,
            digits: 0,
        },
        Column {
            head: "sending",
            key: "",
            width: 9,
            digits: 3,
        },
        Column {
            head: "receiving",
            key: "",
            width: 9,
            digits: 3,
        },
        Column {
            head: "both",
            key: "",
            width: 9,
            digits: 3,
        },
    ],
    chart: 3,
    chart_label: None,
    chart_title: "CPU s/GiB of sending and receiving: less is better",
    name_width: NAME_WIDTH,
};

/// Width of the names of a cipher and a MAC, in characters.
const NAME_WIDTH: usize = 61;

impl CostTable {
    /// Prints what the server offers, and the head of the table. A chart has neither.
    pub(super) fn new(output: &BenchOutput, target: &Target, offer: &ServerOffer) -> Self {
        if !output.is_json() {
            match output.format {
                BenchFormat::Table => {
                    print_offer(target, offer);
                    println!("\none end here, CPU s/GiB:");
                }
                BenchFormat::Markdown => {
                    println!("```text");
                    print_offer(target, offer);
                    println!("```\n\nOne end here, CPU s/GiB:\n");
                }
                BenchFormat::Svg => {}
            }
        }
        Self {
            report: ReportPrinter::new("bench ssh", output, LAYOUT),
            format: output.format,
        }
    }

    /// Shows what is measured next, on a terminal.
    pub(super) fn show_progress(&self, cipher: Cipher, mac: Option<Mac>, total: usize) {
        let name = format!("{cipher} {}", mac.map_or("", Mac::name));
        self.report.show_progress(&name, total);
    }

    pub(super) fn print(&self, cost: &CipherCost) {
        let (cipher, mac) = (cost.cipher.name(), cost.mac.map_or("", Mac::name));
        let name = match (self.format, mac) {
            (BenchFormat::Table, _) => format!("{cipher:<30} {mac}"),
            (_, "") => cipher.to_owned(),
            _ => format!("{cipher}, {mac}"),
        };
        let figures = [cost.tag_bits() as f64, cost.send, cost.receive, cost.sum()];
        self.report.print_row(&name, &figures.map(Some));
    }

    /// Prints the chart, or the advice. `user` is the user of the argument.
    pub(super) fn finish(
        self,
        target: &Target,
        user: Option<&str>,
        recommendation: &CipherRecommendation,
    ) {
        let is_for_people = self.report.is_for_people();
        self.report.finish(None);
        if is_for_people {
            print_recommendation(target, user, recommendation);
        }
    }
}

fn print_recommendation(
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
