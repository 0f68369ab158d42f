//! `ssr://`: ShadowsocksR. A listener is a server, a hop is a client.

mod link;
mod text;

use adit_crypto::StreamKind;
use adit_obfs::{Browser, ObfsKind};
use adit_shadowsocksr::{ClientParam, Protocol, ProtocolKind, ServerParam};

use crate::grammar::UrlSyntax;
use crate::schema::{EndpointRoles, ParamKey, hop_param as for_hop, listener_param, shared_param};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::definition::Scheme;
use crate::scheme::endpoint_types::{
    Hop, HopKind, ListenerConfig, ListenerKind, ServerHop, SsrHop, SsrServer, UdpTransport,
};
use crate::scheme::key_files::MAX_USERS_FILE;
use crate::scheme::{kcp, shared_keys};
use crate::text::{ConfigError, Secret, WarningKind};
use text::{ObfsParamText, ProtocolParamText, RedirectText, ServerObfs};

static PROTOCOL: ParamKey<Protocol> = ParamKey::new(
    "protocol",
    Protocol {
        kind: ProtocolKind::Origin,
        compatible: false,
    },
    "Protocol: origin, verify_simple, verify_deflate, verify_sha1, auth_simple, auth_sha1, \
     auth_sha1_v2, auth_sha1_v4, auth_aes128_md5, auth_aes128_sha1, auth_aes128_fast, \
     auth_chain_a to auth_chain_f. With `_compatible` after verify_sha1 or auth_sha1…, a \
     server also serves clients of origin.",
);
static PROTOCOL_PARAM: ParamKey<ProtocolParamText> = ParamKey {
    name: "protocol_param",
    alias: None,
    default: ProtocolParamText(String::new()),
    default_note: "none",
    doc: "For a client its user, `ID:PASSWORD`; for a server its users, \
          `CLIENTS#ID:PASSWORD,ID:PASSWORD`, where CLIENTS limits the devices of each user (64). \
          `@FILE` contains one user per line. For auth_aes128_* and auth_chain_*.",
};
static OBFS: ParamKey<ServerObfs> = ParamKey::new(
    "obfs",
    ServerObfs::PLAIN,
    "Disguise of connections: plain, http_simple, http_post, random_head, \
     tls1.2_ticket_auth, tls1.2_ticket_fastauth, go_quiet. With `_compatible` (not go_quiet), \
     a server also serves clients without it.",
);
static OBFS_PARAM: ParamKey<ObfsParamText> = ParamKey {
    name: "obfs_param",
    alias: None,
    default: ObfsParamText(String::new()),
    default_note: "the server's host",
    doc: "For a client the host names to send, `HOST,HOST[#HEADERS]`; for a server the hosts to \
          accept (http_*) or the allowed difference of clocks in seconds (tls1.2_*).",
};
static REDIRECT: ParamKey<RedirectText> = ParamKey {
    name: "redirect",
    alias: None,
    default: RedirectText::NONE,
    default_note: "none",
    doc: "Servers to which connections that are not accepted are forwarded, before `reject` applies: \
          `[PATTERN[:PORT]#]HOST:PORT`, separated by commas. The first one whose pattern occurs in \
          the received bytes is used.",
};

pub(crate) static SCHEME: Scheme = Scheme {
    name: "ssr",
    form: "ssr://METHOD:PASSWORD@[HOST]:PORT",
    doc: "ShadowsocksR: the stream ciphers of old Shadowsocks, with a protocol that frames and \
          authenticates the stream and an obfs that disguises it. Use it only for existing servers \
          and clients; it does not protect as well as `ss://` of the 2022 edition. The same URL \
          works at both ends; share links (base64) are accepted unchanged, and `adit url` converts \
          between the two forms. Write a `#` in a value as `%23`.",
    roles: EndpointRoles::Both,
    params: &[
        shared_param(&PROTOCOL),
        shared_param(&PROTOCOL_PARAM),
        listener_param(&shared_keys::FLEET_USERS),
        shared_param(&OBFS),
        shared_param(&OBFS_PARAM),
        listener_param(&REDIRECT),
        listener_param(&shared_keys::ALLOW_PRIVATE),
        listener_param(&shared_keys::SNIFF),
        listener_param(&shared_keys::REJECT),
        listener_param(&shared_keys::TCP),
        shared_param(&shared_keys::SS_UDP),
        listener_param(&shared_keys::PREFER),
        for_hop(&shared_keys::FIRST_WAIT),
        shared_param(&shared_keys::FAST_OPEN),
        listener_param(&shared_keys::HANDSHAKE),
        shared_param(&shared_keys::DIAL),
        listener_param(&shared_keys::IDLE),
        listener_param(&shared_keys::HALF_CLOSE_IDLE),
        listener_param(&shared_keys::UDP_IDLE),
        listener_param(&shared_keys::MAX_CONNECTIONS),
        listener_param(&shared_keys::PROXY_PROTOCOL),
        shared_param(&shared_keys::PLUGIN),
        shared_param(&shared_keys::PLUGIN_MODE),
    ],
    carriers: &[&kcp::CARRIER],
    is_shared: true,
    syntax: UrlSyntax {
        is_method: Some(is_method),
        hash_in_values: true,
        link: Some(link::LINK_FORM),
        ..UrlSyntax::PLAIN
    },
    normalize: |endpoint| {
        if let Some(user) = &mut endpoint.user
            && is_method(&user.value)
        {
            user.value.make_ascii_lowercase();
        }
    },
    listen: build_listener,
    hop: build_hop,
    ..Scheme::BASE
};

/// True if the text is the name of a method.
fn is_method(text: &str) -> bool {
    text.parse::<StreamKind>().is_ok()
}

/// Builds a ShadowsocksR server.
fn build_listener(builder: &mut EndpointBuilder<'_, '_>) -> Option<ListenerConfig> {
    builder.check_no_target();
    check_split_value(builder);
    let common = CommonSettings::read(builder);
    let addr = builder.listen_addr();
    let (tcp, udp, plugin) = builder.served_transports();
    let reject = builder.get(&shared_keys::REJECT);
    let redirect = builder.get(&REDIRECT).parse_rules();
    let fast_open = builder.get(&shared_keys::FAST_OPEN);
    let limits = builder.read_limits();
    let proxy_protocol = builder.read_proxy_protocol(addr.as_ref(), plugin.is_some());
    let private = builder.get(&shared_keys::ALLOW_PRIVATE);
    let sniff = builder.get(&shared_keys::SNIFF);
    let prefer = builder.get(&shared_keys::PREFER);
    let common = common?;
    let kind = common.protocol.kind;
    let users = server_users(common.param.expose());
    if let Err(why) = ServerParam::parse(kind, users.expose()) {
        let span = builder.value_span(&PROTOCOL_PARAM);
        builder.report_error(
            ConfigError::new(span, "not the users of a server").with_label(why.to_string()),
        );
    }
    let fleet_users = read_fleet_users(builder, kind, users.expose());
    let addr = addr?;
    common.warn_weak_protocol(builder);
    Some(ListenerConfig {
        access: addr.access_rules(private, false),
        addr,
        kind: ListenerKind::ShadowsocksR(SsrServer {
            method: common.method,
            password: common.password,
            protocol: common.protocol,
            protocol_param: users,
            fleet_users: fleet_users?,
            obfs: common.obfs.kind,
            strangers: common.obfs.strangers,
            obfs_param: common.obfs_param.parse_param(),
            tcp,
            udp,
            reject,
            redirect,
            fast_open,
            plugin,
        }),
        limits,
        prefer,
        carrier: None,
        proxy_protocol,
        sniff,
    })
}

/// Returns true if the users of a server are those of the fleet.
fn read_fleet_users(
    builder: &mut EndpointBuilder<'_, '_>,
    kind: ProtocolKind,
    own: &str,
) -> Option<bool> {
    if builder.get(&shared_keys::FLEET_USERS).is_none() {
        return Some(false);
    }
    let span = builder.value_span(&shared_keys::FLEET_USERS);
    let flaw = if !kind.has_users() {
        ConfigError::new(span, format!("the protocol `{kind}` has no users"))
            .with_help("use one of auth_aes128_* or auth_chain_*")
    } else if own.contains(':') {
        ConfigError::new(
            span,
            "a listener has users of its own or of the fleet, not both",
        )
        .with_help("remove the users from `protocol_param`")
    } else {
        return Some(true);
    };
    builder.report_error(flaw);
    None
}

/// Builds a ShadowsocksR client.
fn build_hop(builder: &mut EndpointBuilder<'_, '_>) -> Option<Hop> {
    builder.check_no_target();
    check_split_value(builder);
    let common = CommonSettings::read(builder);
    let server = builder.server();
    let udp = builder.get(&shared_keys::SS_UDP);
    let plugin = builder.read_plugin(true, udp == UdpTransport::Native);
    let first_wait = builder.read_first_wait();
    let fast_open = builder.get(&shared_keys::FAST_OPEN);
    let dial = builder.get(&shared_keys::DIAL);
    let common = common?;
    let kind = common.protocol.kind;
    let user = client_user(common.param.expose());
    if let Err(why) = ClientParam::parse(kind, user.expose()) {
        let span = builder.value_span(&PROTOCOL_PARAM);
        builder.report_error(
            ConfigError::new(span, "not the user of a client").with_label(why.to_string()),
        );
    }
    let obfs_param = common.obfs_param.parse_param();
    let limit = Browser::Chrome.max_name();
    let too_long = obfs_param.hosts().first().is_some_and(|h| h.len() > limit);
    if common.obfs.kind == ObfsKind::GoQuiet && too_long {
        let span = builder.value_span(&OBFS_PARAM);
        let title = format!("the host for `go_quiet` is longer than {limit} bytes");
        builder.report_error(ConfigError::new(span, title));
    }
    let server = server?;
    common.warn_weak_protocol(builder);
    Some(Hop::Server(ServerHop {
        server,
        kind: HopKind::ShadowsocksR(Box::new(SsrHop {
            method: common.method,
            password: common.password,
            protocol: kind,
            protocol_param: user,
            obfs: common.obfs.kind,
            obfs_param,
            udp,
            first_wait,
            fast_open,
            plugin,
        })),
        dial,
        carrier: None,
    }))
}

/// The settings that both ends have in common.
struct CommonSettings {
    method: StreamKind,
    password: Secret,
    protocol: Protocol,
    param: Secret,
    obfs: ServerObfs,
    obfs_param: ObfsParamText,
}

impl CommonSettings {
    /// Reads the settings.
    fn read(builder: &mut EndpointBuilder<'_, '_>) -> Option<Self> {
        let protocol = builder.get(&PROTOCOL);
        let obfs = builder.get(&OBFS);
        let obfs_param = builder.get(&OBFS_PARAM);
        let param = protocol_param(builder);
        let method = parse_method(builder);
        let endpoint = builder.endpoint();
        let password = match &endpoint.secret {
            Some(written) => builder.read_secret(&written.value, written.span)?,
            None => Secret::default(),
        };
        let method = method?;
        let keyless = method == StreamKind::None
            && protocol.kind == ProtocolKind::Origin
            && matches!(
                obfs.kind,
                ObfsKind::Plain | ObfsKind::HttpSimple | ObfsKind::HttpPost | ObfsKind::RandomHead
            );
        if password.expose().is_empty() && !keyless {
            let flaw = ConfigError::new(builder.user_span(), "the password is missing")
                .with_help("write `ssr://METHOD:PASSWORD@HOST:PORT`");
            builder.report_error(flaw);
            return None;
        }
        Some(Self {
            method,
            password,
            protocol,
            param: param?,
            obfs,
            obfs_param,
        })
    }

    /// Warns once about the weakness of the protocol (SEC-C1). Writing its name is the consent.
    fn warn_weak_protocol(&self, builder: &mut EndpointBuilder<'_, '_>) {
        let kind = self.protocol.kind;
        let hidden = self.method != StreamKind::None || kind >= ProtocolKind::AuthChainA;
        let (title, label) = if !hidden {
            (
                format!("method `none` with protocol `{kind}` does not encrypt"),
                "everyone on the path can read and change the traffic",
            )
        } else if kind < ProtocolKind::AuthAes128Md5 {
            (
                format!("protocol `{kind}` does not authenticate its data"),
                "an attacker on the path can change it, and have the server decrypt recorded traffic",
            )
        } else {
            (
                format!("protocol `{kind}` relies on old ciphers and tags of 2 to 4 bytes"),
                "a patient attacker on the path can forge and recognise it",
            )
        };
        let about = ConfigError::new(builder.user_span(), title)
            .with_label(label)
            .with_help("`ss://` with a method of the 2022 edition does not have this weakness");
        builder.add_warning(WarningKind::LegacyCipher, about);
    }
}

/// Reads the method from the user part of the URL.
fn parse_method(builder: &mut EndpointBuilder<'_, '_>) -> Option<StreamKind> {
    let endpoint = builder.endpoint();
    let Some(name) = &endpoint.user else {
        let flaw = ConfigError::new(endpoint.address, "method and password are missing")
            .with_help("write `ssr://METHOD:PASSWORD@HOST:PORT`, or paste a share link unchanged");
        builder.report_error(flaw);
        return None;
    };
    let found = name.value.parse().ok();
    if found.is_none() {
        let names = || StreamKind::ALL.into_iter().map(StreamKind::name);
        let mut flaw = ConfigError::new(name.span, format!("unknown method `{}`", name.value));
        flaw = flaw.with_nearest(&name.value, names());
        if name.value.parse::<adit_shadowsocks::Method>().is_ok() {
            flaw = flaw.with_help("this is a method of `ss://`");
        }
        let all = names().collect::<Vec<_>>().join(", ");
        builder.report_error(flaw.with_help(format!("methods: {all}")));
    }
    found
}

/// Returns `protocol_param`, read from a file if it names one.
fn protocol_param(builder: &mut EndpointBuilder<'_, '_>) -> Option<Secret> {
    let text = builder.get(&PROTOCOL_PARAM).0;
    let Some(path) = text.strip_prefix('@') else {
        return Some(Secret::new(text));
    };
    let span = builder.value_span(&PROTOCOL_PARAM);
    let file = builder.read_long_file(path, span, MAX_USERS_FILE)?;
    let lines = file.text.lines().map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    Some(Secret::new(lines.join(",")))
}

/// Returns the users of a server. The user of a client's URL is accepted as the only user.
fn server_users(text: &str) -> Secret {
    if text.contains(':') && !text.contains('#') {
        return Secret::new(format!("64#{text}"));
    }
    Secret::from(text)
}

/// Returns the user of a client. The only user of a server's URL is accepted, too.
fn client_user(text: &str) -> Secret {
    let alone = text.split_once('#').filter(|(clients, users)| {
        clients.bytes().all(|b| b.is_ascii_digit()) && !users.contains(',')
    });
    Secret::from(alone.map_or(text, |(_, user)| user))
}

/// Reports a raw `#` in a value: it starts the name, and the rest of the query would be lost.
fn check_split_value(builder: &mut EndpointBuilder<'_, '_>) {
    let endpoint = builder.endpoint();
    let Some(name) = &endpoint.name else {
        return;
    };
    let known = |key| {
        SCHEME
            .params
            .iter()
            .any(|param| param.setting.is_named(key))
    };
    let mut parts = name.value.split('&').skip(1);
    let query = parts.any(|part| part.split_once('=').is_some_and(|(key, _)| known(key)));
    let last = endpoint.params.last();
    let last = last.filter(|pair| pair.key.value == PROTOCOL_PARAM.name);
    let last = last.map_or("", |pair| pair.value.value.as_str());
    let digits = !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit());
    if query || (digits && name.value.contains(':')) {
        let flaw = ConfigError::new(name.span, "`#` ends the query: the rest would be a name")
            .with_help("in a value, write `#` as `%23`");
        builder.report_error(flaw);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_parameter_serves_on_both_ends() {
        for (text, on_server, on_client) in [
            ("", "", ""),
            ("64", "64", "64"),
            ("42:pw", "64#42:pw", "42:pw"),
            ("8#42:pw", "8#42:pw", "42:pw"),
            ("8#42:pw,43:x", "8#42:pw,43:x", "8#42:pw,43:x"),
            ("42:p#w", "42:p#w", "42:p#w"),
        ] {
            assert_eq!(server_users(text), Secret::from(on_server), "{text}");
            assert_eq!(client_user(text), Secret::from(on_client), "{text}");
        }
    }
}
