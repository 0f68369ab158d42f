//! `ss://`: Shadowsocks. A listener is a server, a hop is a client.

mod keyed;

use adit_shadowsocks::{Edition, MAX_TRIAL_USERS, Method};

use crate::schema::{EndpointRoles, hop_param as for_hop, listener_param, shared_param};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::carrier_table::STREAM_CARRIERS;
use crate::scheme::definition::Scheme;
use crate::scheme::endpoint_types::{
    Hop, HopKind, ListenerConfig, ListenerKind, ServerHop, SsRole, SsServer, UdpTransport,
};
use crate::scheme::{shared_keys, ss_share_link};
use crate::text::{ConfigError, WarningKind};

pub(crate) static SCHEME: Scheme = Scheme {
    name: "ss",
    form: "ss://METHOD:KEY@[HOST]:PORT",
    doc: "Shadowsocks: the 2022 edition (SIP022) with a base64 key, the AEAD edition (SIP004) \
          with a password, or for old peers a stream cipher and a password. The same URL works \
          at both ends; share links (SIP002, and the older form) are accepted unchanged. A server \
          with users reads them from a file. With the AES methods of the 2022 edition its URL has \
          its own key, and clients write `KEY:USERKEY` (SIP023; each relay on the path adds a key \
          in front); with the AEAD edition its URL has no password.",
    roles: EndpointRoles::Both,
    params: &[
        listener_param(&shared_keys::SS_USERS),
        listener_param(&shared_keys::IDENTITY),
        listener_param(&shared_keys::RELAY),
        listener_param(&shared_keys::ALLOW_PRIVATE),
        listener_param(&shared_keys::SNIFF),
        listener_param(&shared_keys::REJECT),
        listener_param(&shared_keys::RESTART),
        listener_param(&shared_keys::STATE),
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
    extra_lists: || {
        let (methods, legacy) = method_names();
        vec![
            ("Methods", methods),
            ("Legacy methods, broken, for old peers only", legacy),
        ]
    },
    carriers: STREAM_CARRIERS,
    is_shared: true,
    has_key_table: true,
    syntax: ss_share_link::SYNTAX,
    normalize: ss_share_link::normalize_method,
    listen: build_listener,
    hop: build_hop,
    ..Scheme::BASE
};

/// Builds a Shadowsocks server.
fn build_listener(builder: &mut EndpointBuilder<'_, '_>) -> Option<ListenerConfig> {
    builder.check_no_target();
    let keyed = keyed::read_listener_role(builder);
    let addr = builder.listen_addr();
    let (tcp, udp, plugin) = builder.served_transports();
    let reject = builder.get(&shared_keys::REJECT);
    let restart = builder.get(&shared_keys::RESTART);
    let state = builder.get(&shared_keys::STATE);
    let fast_open = builder.get(&shared_keys::FAST_OPEN);
    let limits = builder.read_limits();
    let proxy_protocol = builder.read_proxy_protocol(addr.as_ref(), plugin.is_some());
    let private = builder.get(&shared_keys::ALLOW_PRIVATE);
    let sniff = builder.get(&shared_keys::SNIFF);
    let prefer = builder.get(&shared_keys::PREFER);
    let (method, role) = keyed?;
    let addr = addr?;
    if !addr.is_loopback() {
        warn_no_encryption(builder, method);
    }
    warn_legacy_method(builder, method);
    if matches!(role, SsRole::Fleet { .. }) {
        warn_trial(builder, method);
    }
    let state = state.filter(|_| {
        // The 2022 edition has timestamps, and ciphers without an IV have nothing to remember.
        let kept = match method.edition() {
            Edition::Aead => true,
            Edition::Stream => method.salt_len() > 0,
            Edition::Aead2022 | Edition::None => false,
        };
        if !kept {
            let about = ConfigError::new(
                builder.key_span(&shared_keys::STATE),
                "`state` is for the AEAD edition and for legacy methods with an IV",
            )
            .with_label("ignored here");
            builder.add_warning(WarningKind::IgnoredKey, about);
        }
        kept
    });
    Some(ListenerConfig {
        access: addr.access_rules(private, false),
        addr,
        kind: ListenerKind::Shadowsocks(SsServer {
            method,
            role,
            tcp,
            udp,
            reject,
            restart,
            fast_open,
            plugin,
            state: state.map(|path| builder.resolve_path(&path.0)),
        }),
        limits,
        prefer,
        carrier: None,
        proxy_protocol,
        sniff,
    })
}

/// Builds a Shadowsocks client.
fn build_hop(builder: &mut EndpointBuilder<'_, '_>) -> Option<Hop> {
    builder.check_no_target();
    let keyed = keyed::read_hop_keys(builder);
    let server = builder.server();
    let udp = builder.get(&shared_keys::SS_UDP);
    let plugin = builder.read_plugin(true, udp == UdpTransport::Native);
    let first_wait = builder.read_first_wait();
    let fast_open = builder.get(&shared_keys::FAST_OPEN);
    let dial = builder.get(&shared_keys::DIAL);
    let (method, secret) = keyed?;
    let server = server?;
    if !crate::text::is_this_machine(&server.host) {
        warn_no_encryption(builder, method);
    }
    warn_legacy_method(builder, method);
    Some(Hop::Server(ServerHop {
        server,
        kind: HopKind::Shadowsocks {
            method,
            secret,
            udp,
            first_wait,
            fast_open,
            plugin,
        },
        dial,
        carrier: None,
    }))
}

/// Warns about method `none`.
fn warn_no_encryption(builder: &mut EndpointBuilder<'_, '_>, method: Method) {
    if method.edition() == Edition::None {
        let about = ConfigError::new(builder.user_span(), "method `none` does not encrypt")
            .with_label("everyone on the path can read and change the traffic")
            .with_help("`adit keygen 2022-blake3-aes-128-gcm` makes a key for a method that does");
        builder.add_warning(WarningKind::NoEncryption, about);
    }
}

/// Warns about a legacy method. Writing its name is the consent, so there is no key to confirm it.
fn warn_legacy_method(builder: &mut EndpointBuilder<'_, '_>, method: Method) {
    if method.is_legacy() {
        let about = ConfigError::new(
            builder.user_span(),
            format!("the cipher `{method}` is broken"),
        )
        .with_label("everyone on the path can read and change the traffic")
        .with_help(
            "nothing is authenticated: an attacker can replay recorded traffic to the server with \
                 a different target address and receive it decrypted (redirect attack)",
        )
        .with_help(
            "use it only for peers that support nothing better; for others, \
                 `adit keygen 2022-blake3-aes-128-gcm` makes a key for a secure method",
        );
        builder.add_warning(WarningKind::LegacyCipher, about);
    }
}

/// Warns about a method that finds the users of a fleet by trial.
fn warn_trial(builder: &mut EndpointBuilder<'_, '_>, method: Method) {
    if method.edition() == Edition::Aead {
        let title = format!("`{method}` serves the first {MAX_TRIAL_USERS} users of the fleet");
        let about = ConfigError::new(builder.user_span(), title)
            .with_label("finds a user by trying every password")
            .with_help(
                "users after these get no URL of this listener, and the log says how many they are",
            )
            .with_help("`2022-blake3-aes-128-gcm` has identity headers, and serves all users");
        builder.add_warning(WarningKind::SomeUsers, about);
    }
}

/// Returns two lists of method names: the recommended ones, and those for old peers.
fn method_names() -> (String, String) {
    let names = |legacy| {
        let some = Method::ALL.into_iter().filter(|m| m.is_legacy() == legacy);
        some.map(Method::name).collect::<Vec<_>>().join(", ")
    };
    (names(false), names(true))
}
