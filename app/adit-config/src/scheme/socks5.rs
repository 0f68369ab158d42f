//! `socks5://` as listener and hop, `socks4a://` as hop.

use crate::schema::{EndpointRoles, both, hop as for_hop, listener};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::definition::Scheme;
use crate::scheme::mixed::{self, Languages};
use crate::scheme::typed::{Hop, HopKind, ServerHop};
use crate::scheme::{kcp, keys};
use crate::text::Flaw;

pub(crate) static SCHEME: Scheme = Scheme {
    name: "socks5",
    form: "socks5://[USER:PASSWORD@][HOST]:PORT",
    doc: "SOCKS5 (RFC 1928). The listener also accepts SOCKS4 and SOCKS4a, unless it has users.",
    roles: EndpointRoles::Both,
    params: &[
        listener(&keys::ALLOW_OPEN_PROXY),
        listener(&keys::USERS),
        listener(&keys::ALLOW_PRIVATE),
        both(&keys::UDP),
        listener(&keys::BIND),
        listener(&keys::SOCKS4),
        listener(&keys::PREFER),
        listener(&keys::HANDSHAKE),
        both(&keys::DIAL),
        listener(&keys::IDLE),
        listener(&keys::HALF_CLOSE_IDLE),
        listener(&keys::UDP_IDLE),
        listener(&keys::MAX_CONNECTIONS),
        listener(&keys::PROXY_PROTOCOL),
        listener(&keys::UDP_ADVERTISE),
        listener(&keys::UDP_REASSEMBLY),
        listener(&keys::FULL_CONE),
        listener(&keys::HIDE_BIND),
    ],
    carriers: &[&kcp::CARRIER],
    listen: |builder| mixed::proxy(builder, Languages::Socks),
    hop,
    ..Scheme::BLANK
};

pub(crate) static SCHEME_4A: Scheme = Scheme {
    name: "socks4a",
    form: "socks4a://[USER@]HOST:PORT",
    doc: "A SOCKS4a server. It carries TCP only and has no passwords.",
    roles: EndpointRoles::Hop,
    params: &[for_hop(&keys::DIAL)],
    carriers: &[&kcp::CARRIER],
    hop: hop_4a,
    ..Scheme::BLANK
};

/// Builds a SOCKS5 hop.
fn hop(builder: &mut EndpointBuilder<'_, '_>) -> Option<Hop> {
    builder.no_target();
    let login = builder.login();
    let server = builder.server();
    let udp = builder.get(&keys::UDP);
    let dial = builder.get(&keys::DIAL);
    let login = login?;
    if let Some(login) = login.as_ref().filter(|login| !login.fits_socks5()) {
        let title = format!("user `{}` is too long for SOCKS5", login.user);
        let flaw = Flaw::new(builder.user_span(), title)
            .help("user and password must have 1 to 255 bytes each (RFC 1929)");
        builder.problem(flaw);
    }
    Some(Hop::Server(ServerHop {
        server: server?,
        kind: HopKind::Socks5 { login, udp },
        dial,
        carried: None,
    }))
}

/// Builds a SOCKS4a hop.
fn hop_4a(builder: &mut EndpointBuilder<'_, '_>) -> Option<Hop> {
    builder.no_target();
    if let Some(secret) = &builder.endpoint().secret {
        let flaw = Flaw::new(secret.span, "SOCKS4a has no passwords")
            .help("remove `:PASSWORD`, or use `socks5://`");
        builder.problem(flaw);
    }
    let user = builder.endpoint().user.as_ref();
    let user = user.map_or_else(String::new, |user| user.value.clone());
    // The field ends with a zero byte, and peers limit its length.
    if user.len() > 255 || user.contains('\0') {
        let flaw = Flaw::new(builder.user_span(), "not a valid user for SOCKS4a")
            .label("at most 255 bytes, none of them zero");
        builder.problem(flaw);
    }
    let dial = builder.get(&keys::DIAL);
    Some(Hop::Server(ServerHop {
        server: builder.server()?,
        kind: HopKind::Socks4a { user },
        dial,
        carried: None,
    }))
}
