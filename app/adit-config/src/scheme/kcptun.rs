//! `kcptun://`: either end of a kcptun tunnel.

use adit_crypto::packet::PacketKind;

use crate::grammar::Syntax;
use crate::schema::{EndpointRoles, Param, both, joined, listener};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::definition::Scheme;
use crate::scheme::kcp::text::Crypt;
use crate::scheme::typed::{Carried, Hop, HopKind, Kcp, Listen, ServerHop};
use crate::scheme::{forward, kcp, keys};
use crate::text::Flaw;

/// The defaults of kcptun.
const DEFAULTS: kcp::Defaults = kcp::Defaults {
    kcptun: true,
    crypt: Crypt::Packets(PacketKind::Aes),
    password: Some("it's a secrect"),
    nc: Some(0),
    compress: true,
    session_buffer: 4 << 20,
    stream_buffer: 2 << 20,
};
/// Maximum number of ports of a listener. Each is a socket.
const MAX_PORTS: u16 = 1024;

/// Keys in addition to those of KCP, which are in `kcp/keys.rs`.
const OWN: [Param; 6] = [
    listener(&keys::PREFER),
    both(&keys::DIAL),
    listener(&keys::FIRST_WAIT),
    listener(&keys::IDLE),
    listener(&keys::HALF_CLOSE_IDLE),
    listener(&keys::MAX_CONNECTIONS),
];
/// All keys of `kcptun`.
static PARAMS: [Param; kcp::PARAMS.len() + OWN.len()] = joined(&kcp::PARAMS, &OWN);

pub(crate) static SCHEME: Scheme = Scheme {
    name: "kcptun",
    form: "kcptun://[KEY@][HOST]:PORT[-LAST][/TARGET:PORT]",
    doc: "A kcptun tunnel: streams over KCP to one target, which the listener names. Use it as \
          the last hop after `tcp://HOST:PORT` without a target; hops after it connect to the \
          server at its remote end. The keys are those of `+kcp` with kcptun's defaults; between \
          two adits prefer `+kcp`. A listener opens all ports of a range, up to 1024, and each \
          session of a hop uses one at random.",
    roles: EndpointRoles::Both,
    params: &PARAMS,
    syntax: Syntax {
        secret_alone: true,
        port_range: true,
        ..Syntax::PLAIN
    },
    listen,
    hop,
    ..Scheme::BLANK
};

/// Builds the server of a tunnel.
fn listen(builder: &mut EndpointBuilder<'_, '_>) -> Option<Listen> {
    let kcp = read(builder);
    let mut listen = forward::listen(builder, true, false, true)?;
    let count = builder.last_port().saturating_sub(listen.addr.port) + 1;
    if count > MAX_PORTS {
        let span = builder.port_span();
        let flaw = Flaw::new(span, format!("a listener has at most {MAX_PORTS} ports"))
            .label(format!("these are {count}"))
            .help("each port is a socket: use a shorter range at both ends");
        builder.problem(flaw);
        return None;
    }
    listen.carried = Some(Carried::Kcp(Box::new(kcp?)));
    Some(listen)
}

/// Builds the client of a tunnel.
fn hop(builder: &mut EndpointBuilder<'_, '_>) -> Option<Hop> {
    builder.no_target();
    let kcp = read(builder);
    let server = builder.server();
    let dial = builder.get(&keys::DIAL);
    Some(Hop::Server(ServerHop {
        server: server?,
        kind: HopKind::Far,
        dial,
        carried: Some(Carried::Kcp(Box::new(kcp?))),
    }))
}

/// Reads the keys. The secret can be in the user part or in `key`, but not in both.
fn read(builder: &mut EndpointBuilder<'_, '_>) -> Option<Kcp> {
    let own = match &builder.endpoint().secret {
        Some(_) if builder.param(&kcp::KEY).is_some() => {
            let span = builder.key_span(&kcp::KEY);
            let flaw = Flaw::new(span, "the key is written twice")
                .label("the part before `@` is the key, too")
                .help("remove one of them");
            builder.problem(flaw);
            return None;
        }
        Some(written) => Some(builder.secret(&written.value, written.span)?),
        None => None,
    };
    let last_port = builder.last_port();
    kcp::read(builder, &DEFAULTS, own, last_port)
}
