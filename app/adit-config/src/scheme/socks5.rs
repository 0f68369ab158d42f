//! `socks5://` as listener and hop, `socks4a://` as hop.

use crate::schema::{EndpointRoles, hop_param as for_hop, listener_param, shared_param};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::carrier_table::STREAM_CARRIERS;
use crate::scheme::definition::Scheme;
use crate::scheme::endpoint_types::{Hop, HopKind, ServerHop};
use crate::scheme::mixed_proxy::{self, ProxyProtocols};
use crate::scheme::shared_keys;
use crate::text::ConfigError;

pub(crate) static SCHEME: Scheme = Scheme {
    name: "socks5",
    form: "socks5://[USER:PASSWORD@][HOST]:PORT",
    doc: "SOCKS5 (RFC 1928). The listener also accepts SOCKS4 and SOCKS4a, unless it has users.",
    roles: EndpointRoles::Both,
    params: &[
        listener_param(&shared_keys::ALLOW_OPEN_PROXY),
        listener_param(&shared_keys::USERS),
        listener_param(&shared_keys::ALLOW_PRIVATE),
        listener_param(&shared_keys::SNIFF),
        shared_param(&shared_keys::UDP),
        listener_param(&shared_keys::BIND),
        listener_param(&shared_keys::SOCKS4),
        listener_param(&shared_keys::PREFER),
        listener_param(&shared_keys::HANDSHAKE),
        shared_param(&shared_keys::DIAL),
        listener_param(&shared_keys::IDLE),
        listener_param(&shared_keys::HALF_CLOSE_IDLE),
        listener_param(&shared_keys::UDP_IDLE),
        listener_param(&shared_keys::MAX_CONNECTIONS),
        listener_param(&shared_keys::PROXY_PROTOCOL),
        listener_param(&shared_keys::UDP_ADVERTISE),
        listener_param(&shared_keys::UDP_REASSEMBLY),
        listener_param(&shared_keys::FULL_CONE),
        listener_param(&shared_keys::HIDE_BIND),
    ],
    carriers: STREAM_CARRIERS,
    listen: |builder| mixed_proxy::build_proxy(builder, ProxyProtocols::Socks),
    hop: build_hop,
    ..Scheme::BASE
};

pub(crate) static SCHEME_4A: Scheme = Scheme {
    name: "socks4a",
    form: "socks4a://[USER@]HOST:PORT",
    doc: "A SOCKS4a server. It carries TCP only and has no passwords.",
    roles: EndpointRoles::Hop,
    params: &[for_hop(&shared_keys::DIAL)],
    carriers: STREAM_CARRIERS,
    hop: build_socks4a_hop,
    ..Scheme::BASE
};

/// Builds a SOCKS5 hop.
fn build_hop(builder: &mut EndpointBuilder<'_, '_>) -> Option<Hop> {
    builder.check_no_target();
    let login = builder.read_login();
    let server = builder.server();
    let udp = builder.get(&shared_keys::UDP);
    let dial = builder.get(&shared_keys::DIAL);
    let login = login?;
    if let Some(login) = login.as_ref().filter(|login| !login.fits_socks5()) {
        let title = format!("user `{}` is too long for SOCKS5", login.user);
        let flaw = ConfigError::new(builder.user_span(), title)
            .with_help("user and password must have 1 to 255 bytes each (RFC 1929)");
        builder.report_error(flaw);
    }
    Some(Hop::Server(ServerHop {
        server: server?,
        kind: HopKind::Socks5 { login, udp },
        dial,
        carrier: None,
    }))
}

/// Builds a SOCKS4a hop.
fn build_socks4a_hop(builder: &mut EndpointBuilder<'_, '_>) -> Option<Hop> {
    builder.check_no_target();
    if let Some(secret) = &builder.endpoint().secret {
        let flaw = ConfigError::new(secret.span, "SOCKS4a has no passwords")
            .with_help("remove `:PASSWORD`, or use `socks5://`");
        builder.report_error(flaw);
    }
    let user = builder.endpoint().user.as_ref();
    let user = user.map_or_else(String::new, |user| user.value.clone());
    // The field ends with a zero byte, and peers limit its length.
    if user.len() > 255 || user.contains('\0') {
        let flaw = ConfigError::new(builder.user_span(), "not a valid user for SOCKS4a")
            .with_label("at most 255 bytes, none of them zero");
        builder.report_error(flaw);
    }
    let dial = builder.get(&shared_keys::DIAL);
    Some(Hop::Server(ServerHop {
        server: builder.server()?,
        kind: HopKind::Socks4a { user },
        dial,
        carrier: None,
    }))
}
