//! Draws a plan as text: the path of a byte from listener to target.

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

/// Maximum UDP payload in an Ethernet packet over IPv4, in bytes.
const UDP_ROOM: usize = 1500 - 28;

/// Draws every route: listeners with limits and access, hops with their overhead, whether UDP can pass
/// and whether the kernel can splice. The drawing contains no secrets.
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

/// Appends one route.
fn draw(text: &mut String, route: &Route) {
    line(text, &format!("route {}", route.name));
    let mut listens = route.listen.iter().peekable();
    while let Some(listen) = listens.next() {
        // A range of ports became one listener for each port: draw it as a range again.
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
            " (names resolved)"
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

/// Returns the lines below a listener.
fn listener(listen: &Listen) -> Vec<String> {
    let mut lines = match &listen.kind {
        ListenKind::Proxy(proxy) => vec![languages(proxy)],
        ListenKind::Shadowsocks(server) => server::lines(server),
        ListenKind::ShadowsocksR(server) => ssr::lines(server),
        ListenKind::Ssh(server) => ssh::lines(server),
        ListenKind::Forward(forward) => vec![
            match (forward.tcp, forward.udp) {
                (true, true) => "TCP and UDP, unchanged",
                (true, false) => "TCP, unchanged",
                _ => "UDP, unchanged",
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

/// Describes a transparent listener.
fn turned(transparent: &Transparent) -> String {
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
    let steered = match transparent.steering {
        Steering::Redirect => "REDIRECT",
        Steering::Tproxy => "TPROXY",
    };
    let what = format!("{taken} redirected by the firewall with {steered}");
    match transparent.udp {
        true => format!("{what}; {answers}"),
        false => what,
    }
}

/// Describes a proxy listener: its protocols and the number of users.
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

/// Formats a number with a noun, in the plural unless it is 1.
fn counted(number: usize, of: &str) -> String {
    match number {
        1 => format!("1 {of}"),
        n => format!("{n} {of}s"),
    }
}

/// Describes the limits of a listener.
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
            || "connections up to the descriptor limit".to_owned(),
            |max| format!("{max} connections"),
        ));
        if listen.proxy_protocol {
            shown.push("client addresses from the PROXY protocol".to_owned());
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
            let mut what = seal(*method);
            let headers = identity_headers(*method, secret.expose());
            if headers > 0 {
                let _ = write!(what, "; {}", counted(headers, "identity header"));
            }
            if let Some(plugin) = plugin {
                let _ = write!(what, "; {}", through(plugin));
            }
            let _ = write!(what, "; waits {} for first bytes", time(*first_wait));
            if *fast_open {
                what.push_str(", sends them with the SYN");
            }
            what
        }
        HopKind::ShadowsocksR(hop) => ssr::hop(hop),
        HopKind::Ssh(hop) => ssh::hop(hop),
        HopKind::Far => "to the target of the remote end".to_owned(),
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

/// Returns the chain of a rule in one line.
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

/// Describes the encryption of a Shadowsocks method and its overhead.
fn seal(method: Method) -> String {
    match record_room(method) {
        Some(room) => format!(
            "{method}, records of at most {} bytes + {}",
            room.max,
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

/// Describes a plugin. Its options are not shown because they can hold secrets.
fn through(plugin: &Plugin) -> String {
    let what = match plugin.mode {
        PluginMode::TcpOnly => "TCP",
        PluginMode::UdpOnly => "UDP",
        PluginMode::TcpAndUdp => "TCP and UDP",
    };
    format!("{what} through plugin `{}`", printable(&plugin.program))
}

/// Describes whether UDP passes a route, and the largest payload.
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
    // A connection has no packet size: only the overhead after the last connection counts.
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

/// Describes whether the kernel can splice the connections of a route.
fn splice(route: &Route) -> String {
    let sealing = route.listen.iter().find(|listen| match &listen.kind {
        // A relay passes sealed bytes on unchanged.
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
        return format!("no: {listen} does not run over TCP");
    }
    let mut hops = route.via.hops.iter().flat_map(Stage::hops);
    if let Some(hop) = hops.clone().find(|hop| hop.carried().is_some()) {
        return format!("no: {hop} does not run over TCP");
    }
    match hops.find(sealed) {
        Some(hop) => format!("no: {hop} seals every byte"),
        None => "yes, if the system supports it".to_owned(),
    }
}

/// True if the method encrypts or authenticates its bytes.
fn seals(method: Method) -> bool {
    method.edition() != Edition::None
}

/// Appends a line.
fn line(text: &mut String, content: &str) {
    let _ = writeln!(text, "{content}");
}
