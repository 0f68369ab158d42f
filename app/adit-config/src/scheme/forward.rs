//! `tcp://`, `udp://`, `tcp+udp://`: ports that forward to one target.

use adit_wire::Target;

use crate::schema::{EndpointRoles, listener_param};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::carrier_table::{DATAGRAM_CARRIERS, STREAM_CARRIERS};
use crate::scheme::definition::Scheme;
use crate::scheme::endpoint_types::{
    AccessRules, ForwardListener, Hop, HopKind, ListenerConfig, ListenerKind, PrivateAccess,
    ServerHop,
};
use crate::scheme::shared_keys;
use crate::text::{ConfigError, Span};

pub(crate) static SCHEME: Scheme = Scheme {
    name: "tcp+udp",
    form: "tcp+udp://[HOST]:PORT/TARGET:PORT",
    doc: "Forwards a TCP and a UDP port to one target. The target may be private: you chose it.",
    roles: EndpointRoles::Listener,
    params: &[
        listener_param(&shared_keys::PREFER),
        listener_param(&shared_keys::DIAL),
        listener_param(&shared_keys::FIRST_WAIT),
        listener_param(&shared_keys::IDLE),
        listener_param(&shared_keys::HALF_CLOSE_IDLE),
        listener_param(&shared_keys::UDP_IDLE),
        listener_param(&shared_keys::MAX_CONNECTIONS),
    ],
    listen: |builder| build_port(builder, true, true),
    ..Scheme::BASE
};

pub(crate) static SCHEME_TCP: Scheme = Scheme {
    name: "tcp",
    form: "tcp://[HOST]:PORT[/TARGET:PORT]",
    doc: "Forwards a TCP port to one target. The target may be private: you chose it. Omit it \
          before a hop whose remote end has the target (`kcptun`, `tcp+kcp`).",
    roles: EndpointRoles::Listener,
    params: &[
        listener_param(&shared_keys::PREFER),
        listener_param(&shared_keys::DIAL),
        listener_param(&shared_keys::FIRST_WAIT),
        listener_param(&shared_keys::IDLE),
        listener_param(&shared_keys::HALF_CLOSE_IDLE),
        listener_param(&shared_keys::MAX_CONNECTIONS),
    ],
    carriers: STREAM_CARRIERS,
    has_remote_target: true,
    listen: |builder| build_port(builder, true, false),
    hop: build_hop,
    ..Scheme::BASE
};

pub(crate) static SCHEME_UDP: Scheme = Scheme {
    name: "udp",
    form: "udp://[HOST]:PORT[/TARGET:PORT]",
    doc: "Forwards a UDP port to one target. The target may be private: you chose it. Omit it \
          before `udp+fec`, whose remote end has the target.",
    roles: EndpointRoles::Listener,
    params: &[
        listener_param(&shared_keys::PREFER),
        listener_param(&shared_keys::DIAL),
        listener_param(&shared_keys::UDP_IDLE),
    ],
    carriers: DATAGRAM_CARRIERS,
    has_remote_target: true,
    listen: |builder| build_port(builder, false, true),
    hop: build_hop,
    ..Scheme::BASE
};

/// Builds a forwarding port. Its URL cannot have a user.
fn build_port(
    builder: &mut EndpointBuilder<'_, '_>,
    tcp: bool,
    udp: bool,
) -> Option<ListenerConfig> {
    builder.check_no_user();
    let is_end = builder.carrier().is_some();
    build_listener(builder, tcp, udp, is_end)
}

/// Builds a forwarding listener. Its target may be left to the remote end of its chain, unless it is
/// that end (`is_end`).
pub(crate) fn build_listener(
    builder: &mut EndpointBuilder<'_, '_>,
    tcp: bool,
    udp: bool,
    is_end: bool,
) -> Option<ListenerConfig> {
    let target = parse_target(builder, is_end);
    let addr = builder.listen_addr();
    let first_wait = builder.read_first_wait();
    let limits = builder.read_limits();
    Some(ListenerConfig {
        addr: addr?,
        kind: ListenerKind::Forward(ForwardListener {
            tcp,
            udp,
            target: target?,
            first_wait,
        }),
        limits,
        access: AccessRules {
            private: PrivateAccess::All,
        },
        prefer: builder.get(&shared_keys::PREFER),
        carrier: None,
        proxy_protocol: false,
        sniff: false,
    })
}

/// Builds a hop with a carrier, whose remote end has the target.
fn build_hop(builder: &mut EndpointBuilder<'_, '_>) -> Option<Hop> {
    builder.check_no_user();
    if let Some(target) = &builder.endpoint().target {
        let flaw = ConfigError::new(
            target.span,
            "a hop has no target: its remote end determines it",
        );
        builder.report_error(flaw.with_help("remove the target"));
    }
    Some(Hop::Server(ServerHop {
        server: builder.server()?,
        kind: HopKind::RemoteTarget,
        dial: shared_keys::DIAL.default,
        carrier: None,
    }))
}

/// Returns the target: `None` if it is wrong, `Some(None)` if it is omitted. The remote end of the chain
/// must then have it, which is checked when the chain is known. It cannot be omitted if this is that end.
#[expect(clippy::option_option, reason = "wrong, or omitted")]
fn parse_target(builder: &mut EndpointBuilder<'_, '_>, is_end: bool) -> Option<Option<Target>> {
    let flaw = match &builder.endpoint().target {
        None if !is_end => return Some(None),
        None => missing_target_error(builder.endpoint().address, &builder.url_form()),
        Some(text) => match text.value.parse::<Target>() {
            Ok(target) if target.port != 0 => return Some(Some(target)),
            Ok(_) => ConfigError::new(text.span, "the port of a target cannot be 0"),
            Err(why) => ConfigError::new(text.span, "not a target").with_label(why.to_string()),
        },
    };
    builder.report_error(flaw);
    None
}

/// Returns the error of a missing target.
fn missing_target_error(span: Span, form: &str) -> ConfigError {
    ConfigError::new(span, "the target is missing").with_help(format!("write `{form}`"))
}
