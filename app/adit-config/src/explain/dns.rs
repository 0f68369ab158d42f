//! The DNS tables of a plan, and DNS listeners.

use super::lines::{conditions_text, write_line};
use crate::plan::{Chain, DnsAction, DnsConfig, Plan};
use crate::scheme::endpoint_types::{DnsListener, ListenerLimits};
use crate::text::{format_duration as time, format_network};

/// Appends the tables; `describe_chain` formats a chain.
pub(super) fn draw_tables(text: &mut String, plan: &Plan, describe_chain: fn(&Chain) -> String) {
    for table in &plan.dns {
        text.push('\n');
        draw_table(text, table, describe_chain);
        if plan.default_dns.as_ref() == Some(&table.name) {
            write_line(
                text,
                "  │   looks up the names of hops in chains of DNS tables",
            );
        }
        write_line(text, "  ▼");
        let servers: Vec<String> = table.servers.iter().map(ToString::to_string).collect();
        write_line(text, &format!("  ◎ {}", servers.join(", then ")));
    }
}

fn draw_table(text: &mut String, table: &DnsConfig, describe_chain: fn(&Chain) -> String) {
    write_line(text, &format!("dns {}", table.name));
    let cache = match table.cache {
        0 => "no cache".to_owned(),
        1 => "cache: 1 answer".to_owned(),
        answers => format!("cache: {answers} answers"),
    };
    write_line(text, &format!("  ● {cache}"));
    for rule in &table.rules {
        let matches = conditions_text(&rule.matches, &rule.and);
        let to = match &rule.action {
            DnsAction::Use(name) => format!("dns {name}"),
            DnsAction::Reject => "does not exist".to_owned(),
        };
        write_line(text, &format!("  ├─ {matches} ─▶ {to}"));
    }
    if !table.via.stages.is_empty() {
        write_line(text, &format!("  │   via {}", describe_chain(&table.via)));
    }
}

/// Returns the lines below a DNS listener.
pub(super) fn server_lines(server: &DnsListener, limits: &ListenerLimits) -> Vec<String> {
    let served = match (server.tcp, server.udp) {
        (true, true) => "queries over UDP and TCP",
        (true, false) => "queries over TCP",
        (false, _) => "queries over UDP",
    };
    let mut lines = vec![served.to_owned()];
    if !server.fake_ip.is_empty() {
        let nets: Vec<String> = server.fake_ip.iter().map(format_network).collect();
        let mut line = format!("answers with addresses of {}", nets.join(" and "));
        if let Some(state) = &server.state {
            line.push_str(&format!(", kept in {}", state.display()));
        }
        lines.push(line);
    }
    if server.tcp {
        let connections = limits.max_connections.map_or_else(
            || "connections up to the descriptor limit".to_owned(),
            |max| format!("{max} connections"),
        );
        lines.push(format!("limits: idle {}, {connections}", time(limits.idle)));
    }
    lines
}
