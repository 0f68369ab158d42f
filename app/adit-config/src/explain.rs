//! The plan as a drawing: what a byte passes on its way.

mod carried;
mod server;
mod ssh;
mod ssr;

use core::fmt::Write;

use adit_shadowsocks::{Edition, Method};
use adit_wire::Room;

use crate::plan::{Chain, Plan, Route, Stage};
use crate::scheme::typed::{
    Datagrams, Hop, HopKind, Listen, ListenKind, Plugin, PluginMode, Private, Proxy, SsRole,
    Steering, Transparent, identity_headers,
};
use crate::text::{printable, write_duration as time, write_net};

/// Bytes that IPv4 and UDP leave in an Ethernet packet.
const UDP_ROOM: usize = 1500 - 28;

/// Draws every route: listeners with limits and access, hops with their overhead, and whether UDP
/// passes and the kernel can splice. Holds no secret.
#[must_use]
pub fn explain(plan: &Plan) -> String {
    let mut text = String::new();
    for (i, route) in plan.routes.iter().enumerate() {
        if i > 0 {
            text.push('\n');
        }
        draw(&mut text, route);
    }
    text
}

fn draw(text: &mut String, route: &Route) {
    line(text, &format!("route {}", route.name));
    let mut listens = route.listen.iter().peekable();
    while let Some(listen) = listens.next() {
        // Of a range of ports each has a listener of its own, all alike.
        let first = listen.addr.port;
        let mut last = first;
        while let Some(next) = last.checked_add(1)
            && listens
                .next_if(|other| listen.on_ports(&(next..=next)).as_ref() == Some(*other))
                .is_some()
        {
            last = next;
        }
        let range = listen.on_ports(&(first..=last)).filter(|_| last > first);
        let shown = range.as_ref().unwrap_or(listen);
        line(text, &format!("  ● {shown}"));
        for detail in listener(listen) {
            line(text, &format!("  │   {detail}"));
        }
    }
    for rule in &route.rules {
        let matches: Vec<String> = rule.matches.iter().map(ToString::to_string).collect();
        let way = way(&rule.via);
        let resolve = if rule.resolve {
            " (names looked up)"
        } else {
            ""
        };
        line(
            text,
            &format!("  ├─ {}{resolve} ─▶ {way}", matches.join(", ")),
        );
    }
    if route.via.hops == [Stage::One(Hop::Reject)] {
        line(text, "  ▼");
        line(text, "  ✗ nothing");
        return;
    }
    for (i, stage) in route.via.hops.iter().enumerate() {
        line(text, "  ▼");
        let number = i + 1;
        if let Stage::Group(hops) = stage {
            line(
                text,
                &format!("  ○ hop {number}: the first of {} that works", hops.len()),
            );
            for hop in hops {
                line(text, &format!("  │   {}", hop_line(hop)));
            }
        } else {
            for hop in stage.hops() {
                line(text, &format!("  ○ hop {number}: {}", hop_line(hop)));
            }
        }
    }
    line(text, "  ▼");
    line(text, "  ◎ target");
    line(text, &format!("  UDP     {}", udp(route)));
    line(text, &format!("  splice  {}", splice(route)));
}

fn listener(listen: &Listen) -> Vec<String> {
    let mut lines = match &listen.kind {
        ListenKind::Proxy(proxy) => vec![languages(proxy)],
        ListenKind::Shadowsocks(server) => server::lines(server),
        ListenKind::ShadowsocksR(server) => ssr::lines(server),
        ListenKind::Ssh(server) => ssh::lines(server),
        ListenKind::Forward(forward) => vec![
            match (forward.tcp, forward.udp) {
                (true, true) => "TCP and UDP, as they are",
                (true, false) => "TCP, as it is",
                _ => "UDP, as it is",
            }
            .to_owned(),
        ],
        ListenKind::Transparent(transparent) => vec![turned(transparent)],
    };
    lines.extend(carried::listener(listen));
    lines.push(limits(listen));
    lines.push(match &listen.access.private {
        Private::All => "access: every destination".to_owned(),
        Private::Deny => "access: public destinations".to_owned(),
        Private::Nets(nets) => {
            let nets: Vec<String> = nets.iter().map(write_net).collect();
            format!("access: public destinations, and {}", nets.join(", "))
        }
    });
    lines
}

fn turned(transparent: &Transparent) -> String {
    let answers = if transparent.full_cone {
        "answers to UDP from everyone"
    } else {
        "answers to UDP from whom a client has written to"
    };
    let taken = match (transparent.tcp, transparent.udp) {
        (true, true) => "TCP and UDP",
        (false, true) => "UDP",
        (_, false) => "TCP",
    };
    let steered = match transparent.steering {
        Steering::Redirect => "REDIRECT",
        Steering::Tproxy => "TPROXY",
    };
    let what = format!("{taken} that the firewall turns here by {steered}");
    match transparent.udp {
        true => format!("{what}; {answers}"),
        false => what,
    }
}

fn languages(proxy: &Proxy) -> String {
    let spoken: Vec<&str> = [
        (proxy.socks5, "SOCKS5"),
        (proxy.socks4, "SOCKS4"),
        (proxy.http, "HTTP"),
    ]
    .into_iter()
    .filter_map(|(spoken, name)| spoken.then_some(name))
    .collect();
    let users = match proxy.users.len() {
        0 => "without users".to_owned(),
        n => counted(n, "user"),
    };
    format!("{}; {users}", spoken.join(", "))
}

fn counted(number: usize, of: &str) -> String {
    match number {
        1 => format!("1 {of}"),
        n => format!("{n} {of}s"),
    }
}

fn limits(listen: &Listen) -> String {
    let limits = &listen.limits;
    let mut shown = Vec::new();
    let fixed = matches!(
        &listen.kind,
        ListenKind::Forward(_) | ListenKind::Transparent(_)
    );
    if !fixed {
        shown.push(format!("handshake {}", time(limits.handshake)));
    }
    shown.push(format!("dial {}", time(limits.dial)));
    if !matches!(&listen.kind, ListenKind::Forward(forward) if !forward.tcp) {
        shown.push(format!("idle {}", time(limits.idle)));
        shown.push(format!("half-closed {}", time(limits.half_close_idle)));
        shown.push(limits.max_connections.map_or_else(
            || "connections by the descriptor limit".to_owned(),
            |max| format!("{max} connections"),
        ));
        if listen.proxy_protocol {
            shown.push("clients named by the PROXY protocol".to_owned());
        }
    }
    if listen.kind.offers_udp() {
        shown.push(format!("UDP idle {}", time(limits.udp_idle)));
    }
    format!("limits: {}", shown.join(", "))
}

fn hop_line(hop: &Hop) -> String {
    let Hop::Server(server) = hop else {
        return hop.to_string();
    };
    let what = match &server.kind {
        HopKind::Socks5 { login, .. } | HopKind::Http { login } if login.is_some() => {
            "with a login; bare after the handshake".to_owned()
        }
        HopKind::Socks5 { .. } | HopKind::Http { .. } | HopKind::Socks4a { .. } => {
            "bare after the handshake".to_owned()
        }
        HopKind::Shadowsocks {
            method,
            secret,
            first_wait,
            fast_open,
            plugin,
            ..
        } => {
            let mut what = seal(*method);
            let headers = identity_headers(*method, secret.expose());
            if headers > 0 {
                let _ = write!(what, "; {}", counted(headers, "identity header"));
            }
            if let Some(plugin) = plugin {
                let _ = write!(what, "; {}", through(plugin));
            }
            let _ = write!(what, "; first bytes waited for {}", time(*first_wait));
            if *fast_open {
                what.push_str(", then sent with the SYN");
            }
            what
        }
        HopKind::ShadowsocksR(hop) => ssr::hop(hop),
        HopKind::Ssh(hop) => ssh::hop(hop),
        HopKind::Far => "to the target of its far end".to_owned(),
    };
    let what = match &server.carried {
        Some(carried) => format!("{what}; {}", carried::hop(carried)),
        None => what,
    };
    let udp = match hop.datagrams() {
        Datagrams::InStream if server.carried.is_some() => "UDP in a stream".to_owned(),
        Datagrams::InStream => "UDP in a connection".to_owned(),
        Datagrams::Packets { overhead } => format!("UDP +{overhead} bytes"),
        Datagrams::Stopped => "no UDP".to_owned(),
    };
    let dial = time(server.dial);
    format!("{hop}  ({what}; {udp}; dial {dial})")
}

/// The chain of a rule in one line.
fn way(chain: &Chain) -> String {
    if chain.hops.is_empty() {
        return "target".to_owned();
    }
    if chain.hops == [Stage::One(Hop::Reject)] {
        return "nothing".to_owned();
    }
    let stages: Vec<String> = chain.hops.iter().map(ToString::to_string).collect();
    format!("{} ─▶ target", stages.join(" ─▶ "))
}

fn seal(method: Method) -> String {
    match record_room(method) {
        Some(room) => format!(
            "{method}, records of at most {} bytes + {}",
            room.max,
            room.head + room.tail
        ),
        None if method.is_legacy() => format!(
            "{method}, broken and for old peers alone; no records, + {} bytes",
            method.salt_len()
        ),
        None => format!("{method}, not encrypted"),
    }
}

/// The room of one record on TCP: sealed length before, tag behind.
const fn record_room(method: Method) -> Option<Room> {
    match method.edition() {
        // SIP022, TCP: a length of 2 bytes, each chunk with a tag of 16.
        Edition::Aead2022 => Some(Room {
            head: 18,
            tail: 16,
            max: 0xFFFF,
        }),
        // SIP004: the length has 14 bits.
        Edition::Aead => Some(Room {
            head: 18,
            tail: 16,
            max: 0x3FFF,
        }),
        Edition::Stream | Edition::None => None,
    }
}

/// What goes through a plugin. Its options stay unseen: they can hold secrets.
fn through(plugin: &Plugin) -> String {
    let what = match plugin.mode {
        PluginMode::TcpOnly => "TCP",
        PluginMode::UdpOnly => "UDP",
        PluginMode::TcpAndUdp => "TCP and UDP",
    };
    format!("{what} through plugin `{}`", printable(&plugin.program))
}

fn udp(route: &Route) -> String {
    if !route.listen.iter().any(|listen| listen.kind.offers_udp()) {
        return "not offered".to_owned();
    }
    if let Some(stage) = route.via.hops.iter().find(|stage| !stage.carries_udp()) {
        return format!("stops at {stage}");
    }
    let overhead = |hop: &Hop| match hop.datagrams() {
        Datagrams::Packets { overhead } => overhead,
        Datagrams::InStream | Datagrams::Stopped => 0,
    };
    let worst = |stage: &Stage| stage.hops().iter().map(overhead).max().unwrap_or(0);
    // A connection has no packets to fill: only what comes behind the last one counts.
    let bytes = route.via.hops.iter().fold(0, |bytes, stage| {
        let mut carrying = stage.hops().iter().filter(|hop| hop.carries_udp());
        if carrying.all(|hop| hop.datagrams() == Datagrams::InStream) {
            0
        } else {
            bytes + worst(stage)
        }
    });
    let room = UDP_ROOM.saturating_sub(bytes);
    format!("passes, {room} bytes of payload in a packet of 1500")
}

fn splice(route: &Route) -> String {
    let sealing = route.listen.iter().find(|listen| match &listen.kind {
        // A relay passes sealed bytes on as they are.
        ListenKind::Shadowsocks(server) => {
            seals(server.method) && !matches!(server.role, SsRole::Relay { .. })
        }
        ListenKind::ShadowsocksR(_) | ListenKind::Ssh(_) => true,
        ListenKind::Proxy(_) | ListenKind::Transparent(_) | ListenKind::Forward(_) => false,
    });
    if let Some(listen) = sealing {
        return format!("no: {listen} seals every byte");
    }
    let sealed = |hop: &&Hop| match hop {
        Hop::Server(server) => match &server.kind {
            HopKind::Shadowsocks { method, .. } => seals(*method),
            HopKind::ShadowsocksR(_) | HopKind::Ssh(_) => true,
            _ => false,
        },
        Hop::Direct | Hop::Reject => false,
    };
    if let Some(listen) = route.listen.iter().find(|listen| listen.carried.is_some()) {
        return format!("no: {listen} has no connections of its own");
    }
    let mut hops = route.via.hops.iter().flat_map(Stage::hops);
    if let Some(hop) = hops.clone().find(|hop| hop.carried().is_some()) {
        return format!("no: {hop} has no connections of its own");
    }
    match hops.find(sealed) {
        Some(hop) => format!("no: {hop} seals every byte"),
        None => "yes, where the system can".to_owned(),
    }
}

fn seals(method: Method) -> bool {
    method.edition() != Edition::None
}

fn line(text: &mut String, content: &str) {
    let _ = writeln!(text, "{content}");
}
