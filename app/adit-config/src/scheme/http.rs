//! `http://`: an HTTP proxy, as listener and hop.

use crate::schema::{EndpointRoles, both, listener};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::definition::Scheme;
use crate::scheme::mixed::{self, Languages};
use crate::scheme::typed::{Hop, HopKind, ServerHop};
use crate::scheme::{kcp, keys};

pub(crate) static SCHEME: Scheme = Scheme {
    name: "http",
    form: "http://[USER:PASSWORD@][HOST]:PORT",
    doc: "HTTP proxy: CONNECT and plain requests (RFC 9110). It carries TCP only.",
    roles: EndpointRoles::Both,
    params: &[
        listener(&keys::ALLOW_OPEN_PROXY),
        listener(&keys::USERS),
        listener(&keys::ALLOW_PRIVATE),
        listener(&keys::PREFER),
        listener(&keys::HANDSHAKE),
        both(&keys::DIAL),
        listener(&keys::IDLE),
        listener(&keys::HALF_CLOSE_IDLE),
        listener(&keys::MAX_CONNECTIONS),
        listener(&keys::PROXY_PROTOCOL),
        listener(&keys::VERBOSE_ERRORS),
    ],
    carriers: &[&kcp::CARRIER],
    listen: |builder| mixed::proxy(builder, Languages::Http),
    hop,
    ..Scheme::BLANK
};

/// Builds an HTTP hop.
fn hop(builder: &mut EndpointBuilder<'_, '_>) -> Option<Hop> {
    builder.no_target();
    let login = builder.login();
    let server = builder.server();
    let dial = builder.get(&keys::DIAL);
    let login = login?;
    if login.as_ref().is_some_and(|login| login.user.contains(':')) {
        builder.problem(mixed::basic_user(builder.user_span()));
    }
    Some(Hop::Server(ServerHop {
        server: server?,
        kind: HopKind::Http { login },
        dial,
        carried: None,
    }))
}
