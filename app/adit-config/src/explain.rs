//! Draws a plan as text: the path of a byte from listener to target.

mod carried;
mod dns;
mod document;
mod lines;
mod server;
mod ssh;
mod ssr;

use core::fmt::Write;

use adit_shadowsocks::{Edition, Method};
use adit_wire::Overhead;

pub use self::document::{ExplainedPlan, explain_plan_as_document};
use self::lines::{conditions_text, write_line};
use crate::plan::{Chain, GroupKind, NamedGroup, Plan, Route, SYSTEM_DNS, Stage};
use crate::scheme::endpoint_types::{
    DatagramSupport, Hop, HopKind, InterceptMethod, ListenerConfig, ListenerKind, Plugin,
    PluginMode, PrivateAccess, ProxyListener, SsRole, TransparentListener, identity_headers,
};
use crate::text::{format_duration as time, format_network, sanitize_for_terminal};

/// Maximum UDP payload in an Ethernet packet over IPv4, in bytes.
const UDP_ROOM: usize = 1500 - 28;

/// Draws every route: listeners with limits and access, hops with their overhead, whether UDP can pass
/// and whether the kernel can splice. The drawing contains no secrets.
#[must_use]
pub fn explain_plan(plan: &Plan) -> String {
    let mut text = String::new();
    for (i, route) in plan.routes.iter().enumerate() {
        if i > 0 {
            text.push('\n');
        }
        draw_route(&mut text, route);
    }
    dns::draw_tables(&mut text, plan, describe_chain);
    if !plan.sets.is_empty() {
        text.push('\n');
    }
    for set in &plan.sets {
        write_line(&mut text, &format!("set {}  {}", set.name, set.source));
    }
    text
}

/// Appends one route.
fn draw_route(text: &mut String, route: &Route) {
    write_line(text, &format!("route {}", route.name));
    let mut listens = route.listen.iter().peekable();
    while let Some(listen) = listens.next() {
        // A range of ports became one listener for each port: draw it as a range again.
        let first = listen.addr.port;
        let mut last = first;
        while let Some(next) = last.checked_add(1)
            && listens
                .next_if(|other| listen.with_ports(&(next..=next)).as_ref() == Some(*other))
                .is_some()
        {
            last = next;
        }
        let range = listen.with_ports(&(first..=last)).filter(|_| last > first);
        let shown = range.as_ref().unwrap_or(listen);
        write_line(text, &format!("  ● {shown}"));
        for detail in listener_lines(listen) {
            write_line(text, &format!("  │   {detail}"));
        }
    }
    for rule in &route.rules {
        let matches = conditions_text(&rule.matches, &rule.and);
        let way = describe_chain(&rule.via);
        let resolve = if rule.resolve {
            " (names resolved)"
        } else {
            ""
        };
        write_line(text, &format!("  ├─ {matches}{resolve} ─▶ {way}"));
    }
    if let Some(dns) = &route.dns {
        write_line(text, &format!("  │   names are looked up with dns {dns}"));
    }
    let is_dns = |listen: &ListenerConfig| matches!(listen.kind, ListenerKind::Dns(_));
    if route.listen.iter().all(is_dns) {
        write_line(text, "  ▼");
        let servers = route.dns.as_deref().unwrap_or(SYSTEM_DNS);
        write_line(text, &format!("  ◎ dns {servers}"));
        return;
    }
    if route.via.stages == [Stage::Single(Hop::Reject)] {
        write_line(text, "  ▼");
        write_line(text, "  ✗ nothing");
        return;
    }
    for (i, stage) in route.via.stages.iter().enumerate() {
        write_line(text, "  ▼");
        let number = i + 1;
        if let Stage::Group(hops) = stage {
            write_line(
                text,
                &format!("  ○ hop {number}: the first of {} that works", hops.len()),
            );
            for hop in hops {
                write_line(text, &format!("  │   {}", hop_line(hop)));
            }
        } else if let Stage::Named(group) = stage {
            draw_group(text, number, group);
        } else {
            for hop in stage.hops() {
                write_line(text, &format!("  ○ hop {number}: {}", hop_line(hop)));
            }
        }
    }
    write_line(text, "  ▼");
    write_line(text, "  ◎ target");
    write_line(text, &format!("  UDP     {}", describe_udp(route)));
    write_line(text, &format!("  splice  {}", describe_splice(route)));
}

/// Appends a group with a name: each member with the hops that it passes.
fn draw_group(text: &mut String, number: usize, group: &NamedGroup) {
    let how = match group.kind {
        GroupKind::Failover => "the first that works",
        GroupKind::Fastest => "the one that answers fastest",
        GroupKind::LeastLoaded => "the one with the fewest open streams",
        GroupKind::Spread => "each connection uses the next one",
        GroupKind::SpreadByDestination => "each destination has one of its own",
        GroupKind::Manual => "the one that is selected",
    };
    let (name, count) = (&group.name, group.hops.len());
    let members = format_count(count, "member");
    write_line(
        text,
        &format!("  ○ hop {number}: group {name}, {members}: {how}"),
    );
    for (at, member) in group.member_names.iter().enumerate() {
        let mark = match group.kind == GroupKind::Manual && at == group.selected {
            true => " (selected)",
            false => "",
        };
        write_line(
            text,
            &format!("  │   {}. {}{mark}", at + 1, sanitize_for_terminal(member)),
        );
        for hop in group.member_hops(at) {
            write_line(text, &format!("  │        {}", hop_line(hop)));
        }
    }
    if let Some(check) = &group.check {
        write_line(text, &format!("  │   probes request {check}"));
    }
}

/// Returns the lines below a listener.
fn listener_lines(listen: &ListenerConfig) -> Vec<String> {
    let mut lines = match &listen.kind {
        ListenerKind::Proxy(proxy) => vec![proxy_line(proxy)],
        ListenerKind::Shadowsocks(server) => server::server_lines(server),
        ListenerKind::ShadowsocksR(server) => ssr::server_lines(server),
        ListenerKind::Ssh(server) => ssh::server_lines(server),
        ListenerKind::Forward(forward) => vec![
            match (forward.tcp, forward.udp) {
                (true, true) => "TCP and UDP, unchanged",
                (true, false) => "TCP, unchanged",
                _ => "UDP, unchanged",
            }
            .to_owned(),
        ],
        ListenerKind::Transparent(transparent) => vec![transparent_line(transparent)],
        ListenerKind::Dns(server) => return dns::server_lines(server, &listen.limits),
    };
    lines.extend(carried::carrier_line(listen));
    lines.push(limits_line(listen));
    lines.push(match &listen.access.private {
        PrivateAccess::All => "access: every destination".to_owned(),
        PrivateAccess::Deny => "access: public destinations".to_owned(),
        PrivateAccess::Nets(nets) => {
            let nets: Vec<String> = nets.iter().map(format_network).collect();
            format!("access: public destinations, and {}", nets.join(", "))
        }
    });
    lines
}

/// Describes a transparent listener.
fn transparent_line(transparent: &TransparentListener) -> String {
    let answers = if transparent.full_cone {
        "UDP replies from any address"
    } else {
        "UDP replies only from addresses that the client has contacted"
    };
    let taken = match (transparent.tcp, transparent.udp) {
        (true, true) => "TCP and UDP",
        (false, true) => "UDP",
        (_, false) => "TCP",
    };
    let steered = match transparent.method {
        InterceptMethod::Redirect => "REDIRECT",
        InterceptMethod::Tproxy => "TPROXY",
    };
    let what = format!("{taken} redirected by the firewall with {steered}");
    match transparent.udp {
        true => format!("{what}; {answers}"),
        false => what,
    }
}

/// Describes a proxy listener: its protocols and the number of users.
fn proxy_line(proxy: &ProxyListener) -> String {
    let spoken: Vec<&str> = [
        (proxy.socks5, "SOCKS5"),
        (proxy.socks4, "SOCKS4"),
        (proxy.http, "HTTP"),
    ]
    .into_iter()
    .filter_map(|(spoken, name)| spoken.then_some(name))
    .collect();
    let users = match proxy.users.len() {
        0 if proxy.fleet_users => "the users of the fleet".to_owned(),
        0 => "without users".to_owned(),
        n if proxy.fleet_users => format!("{}, and those of the fleet", format_count(n, "user")),
        n => format_count(n, "user"),
    };
    format!("{}; {users}", spoken.join(", "))
}

/// Formats a number with a noun, in the plural unless it is 1.
fn format_count(number: usize, of: &str) -> String {
    match number {
        1 => format!("1 {of}"),
        n => format!("{n} {of}s"),
    }
}

/// Describes the limits of a listener.
fn limits_line(listen: &ListenerConfig) -> String {
    let limits = &listen.limits;
    let mut shown = Vec::new();
    let fixed = matches!(
        &listen.kind,
        ListenerKind::Forward(_) | ListenerKind::Transparent(_)
    );
    if !fixed {
        shown.push(format!("handshake {}", time(limits.handshake)));
    }
    shown.push(format!("dial {}", time(limits.dial)));
    if !matches!(&listen.kind, ListenerKind::Forward(forward) if !forward.tcp) {
        shown.push(format!("idle {}", time(limits.idle)));
        shown.push(format!("half-closed {}", time(limits.half_close_idle)));
        shown.push(limits.max_connections.map_or_else(
            || "connections up to the descriptor limit".to_owned(),
            |max| format!("{max} connections"),
        ));
        if listen.proxy_protocol {
            shown.push("client addresses from the PROXY protocol".to_owned());
        }
        if listen.sniff {
            shown.push("names for rules from first bytes".to_owned());
        }
    }
    if listen.kind.offers_udp() {
        shown.push(format!("UDP idle {}", time(limits.udp_idle)));
    }
    format!("limits: {}", shown.join(", "))
}

/// Describes a hop: its protocol, carrier, datagrams and timeout.
fn hop_line(hop: &Hop) -> String {
    let Hop::Server(server) = hop else {
        return hop.to_string();
    };
    let what = match &server.kind {
        HopKind::Socks5 { login, .. } | HopKind::Http { login } if login.is_some() => {
            "with a login; no overhead after the handshake".to_owned()
        }
        HopKind::Socks5 { .. } | HopKind::Http { .. } | HopKind::Socks4a { .. } => {
            "no overhead after the handshake".to_owned()
        }
        HopKind::Shadowsocks {
            method,
            secret,
            first_wait,
            fast_open,
            plugin,
            ..
        } => {
            let mut what = describe_seal(*method);
            let headers = identity_headers(*method, secret.expose());
            if headers > 0 {
                let _ = write!(what, "; {}", format_count(headers, "identity header"));
            }
            if let Some(plugin) = plugin {
                let _ = write!(what, "; {}", describe_plugin(plugin));
            }
            let _ = write!(what, "; waits {} for first bytes", time(*first_wait));
            if *fast_open {
                what.push_str(", sends them with the SYN");
            }
            what
        }
        HopKind::ShadowsocksR(hop) => ssr::describe_hop(hop),
        HopKind::Ssh(hop) => ssh::describe_hop(hop),
        HopKind::RemoteTarget => "to the target of the remote end".to_owned(),
    };
    let what = match &server.carrier {
        Some(carried) => format!("{what}; {}", carried::hop_carrier_text(carried)),
        None => what,
    };
    let udp = match hop.datagram_support() {
        DatagramSupport::InStream if server.carrier.is_some() => "UDP in a stream".to_owned(),
        DatagramSupport::InStream => "UDP in a connection".to_owned(),
        DatagramSupport::Packets { overhead } => format!("UDP +{overhead} bytes"),
        DatagramSupport::Stopped => "no UDP".to_owned(),
    };
    let dial = time(server.dial);
    format!("{hop}  ({what}; {udp}; dial {dial})")
}

/// Returns a chain in one line, without secrets.
#[must_use]
pub fn describe_chain(chain: &Chain) -> String {
    if chain.stages.is_empty() {
        return "target".to_owned();
    }
    if chain.stages == [Stage::Single(Hop::Reject)] {
        return "nothing".to_owned();
    }
    let stages: Vec<String> = chain.stages.iter().map(ToString::to_string).collect();
    format!("{} ─▶ target", stages.join(" ─▶ "))
}

/// Describes the encryption of a Shadowsocks method and its overhead.
fn describe_seal(method: Method) -> String {
    match record_overhead(method) {
        Some(room) => format!(
            "{method}, records of at most {} bytes + {}",
            room.max_payload,
            room.head + room.tail
        ),
        None if method.is_legacy() => format!(
            "{method}, broken, for old peers only; no records, + {} bytes",
            method.salt_len()
        ),
        None => format!("{method}, not encrypted"),
    }
}

/// Returns the overhead of one record on TCP: the sealed length in front and the tag at the end.
const fn record_overhead(method: Method) -> Option<Overhead> {
    match method.edition() {
        // SIP022, TCP: a length of 2 bytes, each chunk with a tag of 16.
        Edition::Aead2022 => Some(Overhead {
            head: 18,
            tail: 16,
            max_payload: 0xFFFF,
        }),
        // SIP004: the length has 14 bits.
        Edition::Aead => Some(Overhead {
            head: 18,
            tail: 16,
            max_payload: 0x3FFF,
        }),
        Edition::Stream | Edition::None => None,
    }
}

/// Describes a plugin. Its options are not shown because they can hold secrets.
fn describe_plugin(plugin: &Plugin) -> String {
    let what = match plugin.mode {
        PluginMode::TcpOnly => "TCP",
        PluginMode::UdpOnly => "UDP",
        PluginMode::TcpAndUdp => "TCP and UDP",
    };
    format!(
        "{what} through plugin `{}`",
        sanitize_for_terminal(&plugin.program)
    )
}

/// Describes whether UDP passes a route, and the largest payload.
fn describe_udp(route: &Route) -> String {
    if !route.listen.iter().any(|listen| listen.kind.offers_udp()) {
        return "not offered".to_owned();
    }
    if let Some(stage) = route.via.stages.iter().find(|stage| !stage.carries_udp()) {
        return format!("stops at {stage}");
    }
    let overhead = |hop: &Hop| match hop.datagram_support() {
        DatagramSupport::Packets { overhead } => overhead,
        DatagramSupport::InStream | DatagramSupport::Stopped => 0,
    };
    let worst = |stage: &Stage| match stage {
        Stage::Named(group) => {
            let member = |at| group.member_hops(at).map(overhead).sum::<usize>();
            (0..group.hops.len()).map(member).max().unwrap_or(0)
        }
        _ => stage.hops().iter().map(overhead).max().unwrap_or(0),
    };
    // A connection has no packet size: only the overhead after the last connection counts.
    let bytes = route.via.stages.iter().fold(0, |bytes, stage| {
        let mut carrying = stage.hops().iter().filter(|hop| hop.carries_udp());
        if carrying.all(|hop| hop.datagram_support() == DatagramSupport::InStream) {
            0
        } else {
            bytes + worst(stage)
        }
    });
    let room = UDP_ROOM.saturating_sub(bytes);
    format!("passes, {room} bytes of payload in a packet of 1500")
}

/// Describes whether the kernel can splice the connections of a route.
fn describe_splice(route: &Route) -> String {
    let sealing = route.listen.iter().find(|listen| match &listen.kind {
        // A relay passes sealed bytes on unchanged.
        ListenerKind::Shadowsocks(server) => {
            seals_bytes(server.method) && !matches!(server.role, SsRole::Relay { .. })
        }
        ListenerKind::ShadowsocksR(_) | ListenerKind::Ssh(_) => true,
        ListenerKind::Proxy(_)
        | ListenerKind::Transparent(_)
        | ListenerKind::Forward(_)
        | ListenerKind::Dns(_) => false,
    });
    if let Some(listen) = sealing {
        return format!("no: {listen} seals every byte");
    }
    let sealed = |hop: &&Hop| match hop {
        Hop::Server(server) => match &server.kind {
            HopKind::Shadowsocks { method, .. } => seals_bytes(*method),
            HopKind::ShadowsocksR(_) | HopKind::Ssh(_) => true,
            _ => false,
        },
        Hop::Direct | Hop::Reject => false,
    };
    if let Some(listen) = route.listen.iter().find(|listen| listen.carrier.is_some()) {
        return format!("no: {listen} does not run over TCP");
    }
    let mut hops = route.via.stages.iter().flat_map(Stage::all_hops);
    if let Some(hop) = hops.clone().find(|hop| hop.carrier().is_some()) {
        return format!("no: {hop} does not run over TCP");
    }
    match hops.find(sealed) {
        Some(hop) => format!("no: {hop} seals every byte"),
        None => "yes, if the system supports it".to_owned(),
    }
}

/// True if the method encrypts or authenticates its bytes.
fn seals_bytes(method: Method) -> bool {
    method.edition() != Edition::None
}
