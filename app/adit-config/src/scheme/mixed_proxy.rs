//! `mixed://`: SOCKS and HTTP on one port. Also the code that all three proxy listeners share.

use std::path::PathBuf;

use crate::schema::{EndpointRoles, Tristate, UserSource, listener_param};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::carrier_table::STREAM_CARRIERS;
use crate::scheme::definition::Scheme;
use crate::scheme::endpoint_types::{ListenerConfig, ListenerKind, ProxyListener, UserPassword};
use crate::scheme::{kcp, shared_keys};
use crate::text::{ConfigError, Span, WarningKind};

pub(crate) static SCHEME: Scheme = Scheme {
    name: "mixed",
    form: "mixed://[USER:PASSWORD@][HOST]:PORT",
    doc: "SOCKS5, SOCKS4 and HTTP on one port, distinguished by the first byte. `:PORT` without a \
          host means all addresses.",
    roles: EndpointRoles::Listener,
    params: &[
        listener_param(&shared_keys::ALLOW_OPEN_PROXY),
        listener_param(&shared_keys::USERS),
        listener_param(&shared_keys::ALLOW_PRIVATE),
        listener_param(&shared_keys::SNIFF),
        listener_param(&shared_keys::UDP),
        listener_param(&shared_keys::BIND),
        listener_param(&shared_keys::SOCKS4),
        listener_param(&shared_keys::PREFER),
        listener_param(&shared_keys::HANDSHAKE),
        listener_param(&shared_keys::DIAL),
        listener_param(&shared_keys::IDLE),
        listener_param(&shared_keys::HALF_CLOSE_IDLE),
        listener_param(&shared_keys::UDP_IDLE),
        listener_param(&shared_keys::MAX_CONNECTIONS),
        listener_param(&shared_keys::PROXY_PROTOCOL),
        listener_param(&shared_keys::UDP_ADVERTISE),
        listener_param(&shared_keys::UDP_REASSEMBLY),
        listener_param(&shared_keys::FULL_CONE),
        listener_param(&shared_keys::HIDE_BIND),
        listener_param(&shared_keys::VERBOSE_ERRORS),
    ],
    carriers: STREAM_CARRIERS,
    listen: |builder| build_proxy(builder, ProxyProtocols::SocksAndHttp),
    ..Scheme::BASE
};

/// The protocols of a proxy listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProxyProtocols {
    /// SOCKS5, SOCKS4 and HTTP.
    SocksAndHttp,
    /// SOCKS5 and SOCKS4.
    Socks,
    /// HTTP.
    Http,
}

/// Builds a proxy listener. Keys that the scheme's table does not have keep their defaults.
pub(crate) fn build_proxy(
    builder: &mut EndpointBuilder<'_, '_>,
    languages: ProxyProtocols,
) -> Option<ListenerConfig> {
    builder.check_no_target();
    let users = collect_users(builder, languages);
    let addr = builder.listen_addr();
    let socks = languages != ProxyProtocols::Http;
    let http = languages != ProxyProtocols::Socks;
    let mut kind = ProxyListener {
        socks5: socks,
        socks4: socks && builder.get(&shared_keys::SOCKS4) != Tristate::Off,
        http,
        users: Vec::new(),
        users_file: None,
        has_url_user: false,
        fleet_users: false,
        udp: socks && builder.get(&shared_keys::UDP),
        bind: socks && builder.get(&shared_keys::BIND),
        udp_advertise: builder.get(&shared_keys::UDP_ADVERTISE),
        udp_reassembly: builder.get(&shared_keys::UDP_REASSEMBLY),
        full_cone: builder.get(&shared_keys::FULL_CONE),
        hide_bind: false,
        verbose_errors: builder.get(&shared_keys::VERBOSE_ERRORS),
    };
    let hide_bind = builder.get(&shared_keys::HIDE_BIND);
    let open = builder.get(&shared_keys::ALLOW_OPEN_PROXY);
    let limits = builder.read_limits();
    let proxy_protocol = builder.read_proxy_protocol(addr.as_ref(), false);
    let private = builder.get(&shared_keys::ALLOW_PRIVATE);
    let sniff = builder.get(&shared_keys::SNIFF);
    let prefer = builder.get(&shared_keys::PREFER);

    let (users, addr) = (users?, addr?);
    let has_users = !users.all.is_empty() || users.fleet;
    if has_users {
        turn_off_socks4(builder, &mut kind);
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
        if !has_users && !open {
            builder.report_error(open_proxy_error(builder));
        } else if has_users {
            let about = ConfigError::new(
                span,
                "passwords of this listener cross the network in clear text",
            )
            .with_label("not a loopback address")
            .with_help("listen on 127.0.0.1 behind `ss://`, unless you trust the network");
            builder.add_warning(WarningKind::ClearPassword, about);
        }
    }
    kind.users = users.all;
    kind.users_file = users.file;
    kind.has_url_user = users.has_url_user;
    kind.fleet_users = users.fleet;
    Some(ListenerConfig {
        access: addr.access_rules(private, true),
        addr,
        kind: ListenerKind::Proxy(kind),
        limits,
        prefer,
        carrier: None,
        proxy_protocol,
        sniff,
    })
}

/// Returns the error of a listener that would be an open proxy (SEC-E1).
fn open_proxy_error(builder: &EndpointBuilder<'_, '_>) -> ConfigError {
    let endpoint = builder.endpoint();
    let mut flaw = ConfigError::new(
        endpoint.address,
        "refusing to be an open proxy: everyone who can reach this address could use it",
    )
    .with_label("not a loopback address, and no users");
    if let Some(port) = &endpoint.port {
        let (scheme, port) = (builder.scheme(), port.value);
        flaw = flaw.with_help(format!(
            "for this machine only: `{scheme}://127.0.0.1:{port}`"
        ));
    }
    flaw.with_help("for users: `USER:PASSWORD@` before the host, or `?users=@FILE`")
        .with_help("for everyone: `?allow_open_proxy=true`")
}

/// The users of a listener, and where they are from.
struct CollectedUsers {
    all: Vec<UserPassword>,
    file: Option<PathBuf>,
    has_url_user: bool,
    fleet: bool,
}

/// Returns the users of the URL and of the file, checked against the limits of the protocols.
fn collect_users(
    builder: &mut EndpointBuilder<'_, '_>,
    languages: ProxyProtocols,
) -> Option<CollectedUsers> {
    let mut users: Vec<UserPassword> = builder.read_login()?.into_iter().collect();
    let has_url_user = !users.is_empty();
    let source = builder.get(&shared_keys::USERS);
    let fleet = source == Some(UserSource::Fleet);
    let (from_file, file) = match source {
        Some(UserSource::File(path)) => (
            builder.read_users_file(&path)?,
            Some(builder.resolve_path(&path)),
        ),
        Some(UserSource::Fleet) | None => (Vec::new(), None),
    };
    for login in from_file {
        if users.iter().any(|other| other.user == login.user) {
            let span = builder.value_span(&shared_keys::USERS);
            let title = format!("user `{}` is defined twice", login.user);
            builder.report_error(ConfigError::new(span, title));
            return None;
        }
        users.push(login);
    }
    if languages != ProxyProtocols::Socks && users.iter().any(|login| login.user.contains(':')) {
        builder.report_error(basic_user_error(builder.user_span()));
        return None;
    }
    if let Some(login) = users.iter().find(|login| !login.fits_socks5())
        && languages != ProxyProtocols::Http
    {
        let title = format!("user `{}` is too long for SOCKS5", login.user);
        let span = builder.endpoint().user.as_ref().map(|user| user.span);
        let span = span.unwrap_or_else(|| builder.value_span(&shared_keys::USERS));
        let flaw = ConfigError::new(span, title)
            .with_help("user and password have 1 to 255 bytes (RFC 1929)");
        builder.report_error(flaw);
        return None;
    }
    Some(CollectedUsers {
        all: users,
        file,
        has_url_user,
        fleet,
    })
}

/// Returns the error of a user with a colon: in HTTP Basic the user-id ends at the first one (RFC 7617,
/// section 2).
pub(crate) fn basic_user_error(span: Span) -> ConfigError {
    ConfigError::new(span, "a user name for HTTP Basic cannot contain a colon")
}

/// Turns SOCKS4 off for a listener with users, and reports `socks4=true`.
fn turn_off_socks4(builder: &mut EndpointBuilder<'_, '_>, kind: &mut ProxyListener) {
    if builder.get(&shared_keys::SOCKS4) == Tristate::On {
        let flaw = ConfigError::new(
            builder.value_span(&shared_keys::SOCKS4),
            "SOCKS4 cannot check passwords, and this listener has users",
        )
        .with_help("remove `socks4`: SOCKS4 is then off");
        builder.report_error(flaw);
    }
    kind.socks4 = false;
}
