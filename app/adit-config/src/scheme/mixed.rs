//! `mixed://`: SOCKS and HTTP on one port. Also the code that all three proxy listeners share.

use crate::schema::{EndpointRoles, Tristate, listener};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::definition::Scheme;
use crate::scheme::typed::{Listen, ListenKind, Login, Proxy};
use crate::scheme::{kcp, keys};
use crate::text::{Flaw, Span, WarningKind};

pub(crate) static SCHEME: Scheme = Scheme {
    name: "mixed",
    form: "mixed://[USER:PASSWORD@][HOST]:PORT",
    doc: "SOCKS5, SOCKS4 and HTTP on one port, distinguished by the first byte. `:PORT` without a \
          host means all addresses.",
    roles: EndpointRoles::Listener,
    params: &[
        listener(&keys::ALLOW_OPEN_PROXY),
        listener(&keys::USERS),
        listener(&keys::ALLOW_PRIVATE),
        listener(&keys::UDP),
        listener(&keys::BIND),
        listener(&keys::SOCKS4),
        listener(&keys::PREFER),
        listener(&keys::HANDSHAKE),
        listener(&keys::DIAL),
        listener(&keys::IDLE),
        listener(&keys::HALF_CLOSE_IDLE),
        listener(&keys::UDP_IDLE),
        listener(&keys::MAX_CONNECTIONS),
        listener(&keys::PROXY_PROTOCOL),
        listener(&keys::UDP_ADVERTISE),
        listener(&keys::UDP_REASSEMBLY),
        listener(&keys::FULL_CONE),
        listener(&keys::HIDE_BIND),
        listener(&keys::VERBOSE_ERRORS),
    ],
    carriers: &[&kcp::CARRIER],
    listen: |builder| proxy(builder, Languages::SocksAndHttp),
    ..Scheme::BLANK
};

/// The protocols of a proxy listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Languages {
    /// SOCKS5, SOCKS4 and HTTP.
    SocksAndHttp,
    /// SOCKS5 and SOCKS4.
    Socks,
    /// HTTP.
    Http,
}

/// Builds a proxy listener. Keys that the scheme's table does not have keep their defaults.
pub(crate) fn proxy(builder: &mut EndpointBuilder<'_, '_>, languages: Languages) -> Option<Listen> {
    builder.no_target();
    let users = users(builder, languages);
    let addr = builder.listen_addr();
    let socks = languages != Languages::Http;
    let http = languages != Languages::Socks;
    let mut kind = Proxy {
        socks5: socks,
        socks4: socks && builder.get(&keys::SOCKS4) != Tristate::Off,
        http,
        users: Vec::new(),
        udp: socks && builder.get(&keys::UDP),
        bind: socks && builder.get(&keys::BIND),
        udp_advertise: builder.get(&keys::UDP_ADVERTISE),
        udp_reassembly: builder.get(&keys::UDP_REASSEMBLY),
        full_cone: builder.get(&keys::FULL_CONE),
        hide_bind: false,
        verbose_errors: builder.get(&keys::VERBOSE_ERRORS),
    };
    let hide_bind = builder.get(&keys::HIDE_BIND);
    let open = builder.get(&keys::ALLOW_OPEN_PROXY);
    let limits = builder.limits();
    let proxy_protocol = builder.proxy_protocol(addr.as_ref(), false);
    let private = builder.get(&keys::ALLOW_PRIVATE);
    let prefer = builder.get(&keys::PREFER);

    let (users, addr) = (users?, addr?);
    if !users.is_empty() {
        socks4_cannot_check(builder, &mut kind);
    }
    kind.hide_bind = match hide_bind {
        Tristate::Auto => !addr.is_loopback(),
        Tristate::On => true,
        Tristate::Off => false,
    };
    // Only clients with the key of its datagrams can reach it.
    let keyed = builder.carrier().is_some() && kcp::is_keyed(builder);
    if !addr.is_loopback() && !keyed {
        let span = builder.endpoint().address;
        if users.is_empty() && !open {
            builder.problem(open_proxy(builder));
        } else if !users.is_empty() {
            let about = Flaw::new(
                span,
                "passwords of this listener cross the network in clear text",
            )
            .label("not a loopback address")
            .help("listen on 127.0.0.1 behind `ss://`, unless you trust the network");
            builder.warn(WarningKind::ClearPassword, about);
        }
    }
    kind.users = users;
    Some(Listen {
        access: addr.access(private, true),
        addr,
        kind: ListenKind::Proxy(kind),
        limits,
        prefer,
        carried: None,
        proxy_protocol,
    })
}

/// Returns the error of a listener that would be an open proxy (SEC-E1).
fn open_proxy(builder: &EndpointBuilder<'_, '_>) -> Flaw {
    let endpoint = builder.endpoint();
    let mut flaw = Flaw::new(
        endpoint.address,
        "refusing to be an open proxy: everyone who can reach this address could use it",
    )
    .label("not a loopback address, and no users");
    if let Some(port) = &endpoint.port {
        let (scheme, port) = (builder.scheme(), port.value);
        flaw = flaw.help(format!(
            "for this machine only: `{scheme}://127.0.0.1:{port}`"
        ));
    }
    flaw.help("for users: `USER:PASSWORD@` before the host, or `?users=@FILE`")
        .help("for everyone: `?allow_open_proxy=true`")
}

/// Returns the users of the URL and of the file, checked against the limits of the protocols.
fn users(builder: &mut EndpointBuilder<'_, '_>, languages: Languages) -> Option<Vec<Login>> {
    let mut users: Vec<Login> = builder.login()?.into_iter().collect();
    let from_file = match builder.get(&keys::USERS) {
        Some(path) => builder.users_file(&path.0)?,
        None => Vec::new(),
    };
    for login in from_file {
        if users.iter().any(|other| other.user == login.user) {
            let span = builder.value_span(&keys::USERS);
            let title = format!("user `{}` is defined twice", login.user);
            builder.problem(Flaw::new(span, title));
            return None;
        }
        users.push(login);
    }
    if languages != Languages::Socks && users.iter().any(|login| login.user.contains(':')) {
        builder.problem(basic_user(builder.user_span()));
        return None;
    }
    if let Some(login) = users.iter().find(|login| !login.fits_socks5())
        && languages != Languages::Http
    {
        let title = format!("user `{}` is too long for SOCKS5", login.user);
        let span = builder.endpoint().user.as_ref().map(|user| user.span);
        let span = span.unwrap_or_else(|| builder.value_span(&keys::USERS));
        let flaw = Flaw::new(span, title).help("user and password have 1 to 255 bytes (RFC 1929)");
        builder.problem(flaw);
        return None;
    }
    Some(users)
}

/// Returns the error of a user with a colon: in HTTP Basic the user-id ends at the first one (RFC 7617,
/// section 2).
pub(crate) fn basic_user(span: Span) -> Flaw {
    Flaw::new(span, "a user name for HTTP Basic cannot contain a colon")
}

/// Turns SOCKS4 off for a listener with users, and reports `socks4=true`.
fn socks4_cannot_check(builder: &mut EndpointBuilder<'_, '_>, kind: &mut Proxy) {
    if builder.get(&keys::SOCKS4) == Tristate::On {
        let flaw = Flaw::new(
            builder.value_span(&keys::SOCKS4),
            "SOCKS4 cannot check passwords, and this listener has users",
        )
        .help("remove `socks4`: SOCKS4 is then off");
        builder.problem(flaw);
    }
    kind.socks4 = false;
}
