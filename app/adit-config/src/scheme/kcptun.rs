//! `kcptun://`: either end of a kcptun tunnel.

use adit_crypto::packet::PacketKind;

use crate::grammar::UrlSyntax;
use crate::schema::{EndpointRoles, SchemeParam, concat_params, listener_param, shared_param};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::definition::Scheme;
use crate::scheme::endpoint_types::{
    CarrierSettings, Hop, HopKind, KcpSettings, ListenerConfig, ServerHop,
};
use crate::scheme::kcp::text::KcpCrypt;
use crate::scheme::{forward, kcp, shared_keys};
use crate::text::ConfigError;

/// The defaults of kcptun.
const DEFAULTS: kcp::KcpDefaults = kcp::KcpDefaults {
    kcptun: true,
    crypt: KcpCrypt::Packets(PacketKind::Aes),
    password: Some("it's a secrect"),
    nc: Some(0),
    compress: true,
    session_buffer: 4 << 20,
    stream_buffer: 2 << 20,
};
/// Maximum number of ports of a listener. Each is a socket.
const MAX_PORTS: u16 = 1024;

/// Keys in addition to those of KCP, which are in `kcp/keys.rs`.
const OWN: [SchemeParam; 6] = [
    listener_param(&shared_keys::PREFER),
    shared_param(&shared_keys::DIAL),
    listener_param(&shared_keys::FIRST_WAIT),
    listener_param(&shared_keys::IDLE),
    listener_param(&shared_keys::HALF_CLOSE_IDLE),
    listener_param(&shared_keys::MAX_CONNECTIONS),
];
/// All keys of `kcptun`.
static PARAMS: [SchemeParam; kcp::PARAMS.len() + OWN.len()] = concat_params(&kcp::PARAMS, &OWN);

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
    syntax: UrlSyntax {
        secret_only: true,
        port_range: true,
        ..UrlSyntax::PLAIN
    },
    listen: build_listener,
    hop: build_hop,
    ..Scheme::BASE
};

/// Builds the server of a tunnel.
fn build_listener(builder: &mut EndpointBuilder<'_, '_>) -> Option<ListenerConfig> {
    let kcp = read_settings(builder);
    let mut listen = forward::build_listener(builder, true, false, true)?;
    let count = builder.last_port().saturating_sub(listen.addr.port) + 1;
    if count > MAX_PORTS {
        let span = builder.port_span();
        let flaw = ConfigError::new(span, format!("a listener has at most {MAX_PORTS} ports"))
            .with_label(format!("these are {count}"))
            .with_help("each port is a socket: use a shorter range at both ends");
        builder.report_error(flaw);
        return None;
    }
    listen.carrier = Some(CarrierSettings::Kcp(Box::new(kcp?)));
    Some(listen)
}

/// Builds the client of a tunnel.
fn build_hop(builder: &mut EndpointBuilder<'_, '_>) -> Option<Hop> {
    builder.check_no_target();
    let kcp = read_settings(builder);
    let server = builder.server();
    let dial = builder.get(&shared_keys::DIAL);
    Some(Hop::Server(ServerHop {
        server: server?,
        kind: HopKind::RemoteTarget,
        dial,
        carrier: Some(CarrierSettings::Kcp(Box::new(kcp?))),
    }))
}

/// Reads the keys. The secret can be in the user part or in `key`, but not in both.
fn read_settings(builder: &mut EndpointBuilder<'_, '_>) -> Option<KcpSettings> {
    let own = match &builder.endpoint().secret {
        Some(_) if builder.param(&kcp::KEY).is_some() => {
            let span = builder.key_span(&kcp::KEY);
            let flaw = ConfigError::new(span, "the key is written twice")
                .with_label("the part before `@` is the key, too")
                .with_help("remove one of them");
            builder.report_error(flaw);
            return None;
        }
        Some(written) => Some(builder.read_secret(&written.value, written.span)?),
        None => None,
    };
    let last_port = builder.last_port();
    kcp::read_settings(builder, &DEFAULTS, own, last_port)
}
