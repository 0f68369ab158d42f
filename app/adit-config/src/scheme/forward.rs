//! `tcp://`, `udp://`, `tcp+udp://`: ports that forward to one target.

use adit_wire::Target;

use crate::schema::{EndpointRoles, listener};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::definition::Scheme;
use crate::scheme::typed::{Access, Forward, Hop, HopKind, Listen, ListenKind, Private, ServerHop};
use crate::scheme::{fec, kcp, keys};
use crate::text::{Flaw, Span};

pub(crate) static SCHEME: Scheme = Scheme {
    name: "tcp+udp",
    form: "tcp+udp://[HOST]:PORT/TARGET:PORT",
    doc: "Forwards a TCP and a UDP port to one target. The target may be private: you chose it.",
    roles: EndpointRoles::Listener,
    params: &[
        listener(&keys::PREFER),
        listener(&keys::DIAL),
        listener(&keys::FIRST_WAIT),
        listener(&keys::IDLE),
        listener(&keys::HALF_CLOSE_IDLE),
        listener(&keys::UDP_IDLE),
        listener(&keys::MAX_CONNECTIONS),
    ],
    listen: |builder| port(builder, true, true),
    ..Scheme::BLANK
};

pub(crate) static SCHEME_TCP: Scheme = Scheme {
    name: "tcp",
    form: "tcp://[HOST]:PORT[/TARGET:PORT]",
    doc: "Forwards a TCP port to one target. The target may be private: you chose it. Omit it \
          before a hop whose remote end has the target (`kcptun`, `tcp+kcp`).",
    roles: EndpointRoles::Listener,
    params: &[
        listener(&keys::PREFER),
        listener(&keys::DIAL),
        listener(&keys::FIRST_WAIT),
        listener(&keys::IDLE),
        listener(&keys::HALF_CLOSE_IDLE),
        listener(&keys::MAX_CONNECTIONS),
    ],
    carriers: &[&kcp::CARRIER],
    has_far_end: true,
    listen: |builder| port(builder, true, false),
    hop,
    ..Scheme::BLANK
};

pub(crate) static SCHEME_UDP: Scheme = Scheme {
    name: "udp",
    form: "udp://[HOST]:PORT[/TARGET:PORT]",
    doc: "Forwards a UDP port to one target. The target may be private: you chose it. Omit it \
          before `udp+fec`, whose remote end has the target.",
    roles: EndpointRoles::Listener,
    params: &[
        listener(&keys::PREFER),
        listener(&keys::DIAL),
        listener(&keys::UDP_IDLE),
    ],
    carriers: &[&fec::CARRIER],
    has_far_end: true,
    listen: |builder| port(builder, false, true),
    hop,
    ..Scheme::BLANK
};

/// Builds a forwarding port. Its URL cannot have a user.
fn port(builder: &mut EndpointBuilder<'_, '_>, tcp: bool, udp: bool) -> Option<Listen> {
    builder.no_user();
    let is_end = builder.carrier().is_some();
    listen(builder, tcp, udp, is_end)
}

/// Builds a forwarding listener. Its target may be left to the remote end of its chain, unless it is
/// that end (`is_end`).
pub(crate) fn listen(
    builder: &mut EndpointBuilder<'_, '_>,
    tcp: bool,
    udp: bool,
    is_end: bool,
) -> Option<Listen> {
    let target = target(builder, is_end);
    let addr = builder.listen_addr();
    let first_wait = builder.first_wait();
    let limits = builder.limits();
    Some(Listen {
        addr: addr?,
        kind: ListenKind::Forward(Forward {
            tcp,
            udp,
            target: target?,
            first_wait,
        }),
        limits,
        access: Access {
            private: Private::All,
        },
        prefer: builder.get(&keys::PREFER),
        carried: None,
        proxy_protocol: false,
    })
}

/// Builds a hop with a carrier, whose remote end has the target.
fn hop(builder: &mut EndpointBuilder<'_, '_>) -> Option<Hop> {
    builder.no_user();
    if let Some(target) = &builder.endpoint().target {
        let flaw = Flaw::new(
            target.span,
            "a hop has no target: its remote end determines it",
        );
        builder.problem(flaw.help("remove the target"));
    }
    Some(Hop::Server(ServerHop {
        server: builder.server()?,
        kind: HopKind::Far,
        dial: keys::DIAL.default,
        carried: None,
    }))
}

/// Returns the target: `None` if it is wrong, `Some(None)` if it is omitted. The remote end of the chain
/// must then have it, which is checked when the chain is known. It cannot be omitted if this is that end.
#[expect(clippy::option_option, reason = "wrong, or omitted")]
fn target(builder: &mut EndpointBuilder<'_, '_>, is_end: bool) -> Option<Option<Target>> {
    let flaw = match &builder.endpoint().target {
        None if !is_end => return Some(None),
        None => no_target(builder.endpoint().address, &builder.form()),
        Some(text) => match text.value.parse::<Target>() {
            Ok(target) if target.port != 0 => return Some(Some(target)),
            Ok(_) => Flaw::new(text.span, "the port of a target cannot be 0"),
            Err(why) => Flaw::new(text.span, "not a target").label(why.to_string()),
        },
    };
    builder.problem(flaw);
    None
}

/// Returns the error of a missing target.
fn no_target(span: Span, form: &str) -> Flaw {
    Flaw::new(span, "the target is missing").help(format!("write `{form}`"))
}
