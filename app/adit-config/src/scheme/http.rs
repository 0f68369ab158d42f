//! `http://`: an HTTP proxy, as listener and hop.

use crate::schema::{EndpointRoles, listener_param, shared_param};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::carrier_table::STREAM_CARRIERS;
use crate::scheme::definition::Scheme;
use crate::scheme::endpoint_types::{Hop, HopKind, ServerHop};
use crate::scheme::mixed_proxy::{self, ProxyProtocols};
use crate::scheme::shared_keys;

pub(crate) static SCHEME: Scheme = Scheme {
    name: "http",
    form: "http://[USER:PASSWORD@][HOST]:PORT",
    doc: "HTTP proxy: CONNECT and plain requests (RFC 9110). It carries TCP only.",
    roles: EndpointRoles::Both,
    params: &[
        listener_param(&shared_keys::ALLOW_OPEN_PROXY),
        listener_param(&shared_keys::USERS),
        listener_param(&shared_keys::ALLOW_PRIVATE),
        listener_param(&shared_keys::SNIFF),
        listener_param(&shared_keys::PREFER),
        listener_param(&shared_keys::HANDSHAKE),
        shared_param(&shared_keys::DIAL),
        listener_param(&shared_keys::IDLE),
        listener_param(&shared_keys::HALF_CLOSE_IDLE),
        listener_param(&shared_keys::MAX_CONNECTIONS),
        listener_param(&shared_keys::PROXY_PROTOCOL),
        listener_param(&shared_keys::VERBOSE_ERRORS),
    ],
    carriers: STREAM_CARRIERS,
    listen: |builder| mixed_proxy::build_proxy(builder, ProxyProtocols::Http),
    hop: build_hop,
    ..Scheme::BASE
};

/// Builds an HTTP hop.
fn build_hop(builder: &mut EndpointBuilder<'_, '_>) -> Option<Hop> {
    builder.check_no_target();
    let login = builder.read_login();
    let server = builder.server();
    let dial = builder.get(&shared_keys::DIAL);
    let login = login?;
    if login.as_ref().is_some_and(|login| login.user.contains(':')) {
        builder.report_error(mixed_proxy::basic_user_error(builder.user_span()));
    }
    Some(Hop::Server(ServerHop {
        server: server?,
        kind: HopKind::Http { login },
        dial,
        carrier: None,
    }))
}
