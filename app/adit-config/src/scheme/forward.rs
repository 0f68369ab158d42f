//! `tcp://`, `udp://`, `tcp+udp://`: ports that lead to one target.

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
    doc: "A TCP and a UDP port that lead to one target. The target may be private: it is yours.",
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
    doc: "A TCP port that leads to one target. The target may be private: it is yours. Before a \
          hop that has a target at its far end (`kcptun`, `tcp+kcp`) it is left away.",
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
    doc: "A UDP port that leads to one target. The target may be private: it is yours. Before \
          `udp+fec`, which has one at its far end, it is left away.",
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

/// A port, which has a user nowhere.
fn port(builder: &mut EndpointBuilder<'_, '_>, tcp: bool, udp: bool) -> Option<Listen> {
    builder.no_user();
    let is_end = builder.carrier().is_some();
    listen(builder, tcp, udp, is_end)
}

/// A listener whose target may be left to the far end of its chain, unless it is that end.
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

/// A server behind a carrier, which has a target of its own.
fn hop(builder: &mut EndpointBuilder<'_, '_>) -> Option<Hop> {
    builder.no_user();
    if let Some(target) = &builder.endpoint().target {
        let flaw = Flaw::new(
            target.span,
            "a hop has no target: that of the far end counts",
        );
        builder.problem(flaw.help("leave it away"));
    }
    Some(Hop::Server(ServerHop {
        server: builder.server()?,
        kind: HopKind::Far,
        dial: keys::DIAL.default,
        carried: None,
    }))
}

/// The target. Without one the far end of the chain has to have it, which is looked at when the
/// chain is known; not so where this is that end.
#[expect(clippy::option_option, reason = "wrong, or left out")]
fn target(builder: &mut EndpointBuilder<'_, '_>, is_end: bool) -> Option<Option<Target>> {
    let flaw = match &builder.endpoint().target {
        None if !is_end => return Some(None),
        None => no_target(builder.endpoint().address, &builder.form()),
        Some(text) => match text.value.parse::<Target>() {
            Ok(target) if target.port != 0 => return Some(Some(target)),
            Ok(_) => Flaw::new(text.span, "a target has no port 0"),
            Err(why) => Flaw::new(text.span, "not a target").label(why.to_string()),
        },
    };
    builder.problem(flaw);
    None
}

fn no_target(span: Span, form: &str) -> Flaw {
    Flaw::new(span, "the target is missing").help(format!("write `{form}`"))
}
