//! `ss://`: Shadowsocks. A listener is a server, a hop is a client.

mod keyed;

use adit_shadowsocks::{Edition, Method};

use crate::schema::{EndpointRoles, both, hop as for_hop, listener};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::definition::Scheme;
use crate::scheme::typed::{Hop, HopKind, Listen, ListenKind, ServerHop, SsServer, UdpWay};
use crate::scheme::{kcp, keys, share};
use crate::text::{Flaw, WarningKind};

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
        listener(&keys::SS_USERS),
        listener(&keys::RELAY),
        listener(&keys::ALLOW_PRIVATE),
        listener(&keys::REJECT),
        listener(&keys::RESTART),
        listener(&keys::STATE),
        listener(&keys::TCP),
        both(&keys::SS_UDP),
        listener(&keys::PREFER),
        for_hop(&keys::FIRST_WAIT),
        both(&keys::FAST_OPEN),
        listener(&keys::HANDSHAKE),
        both(&keys::DIAL),
        listener(&keys::IDLE),
        listener(&keys::HALF_CLOSE_IDLE),
        listener(&keys::UDP_IDLE),
        listener(&keys::MAX_CONNECTIONS),
        listener(&keys::PROXY_PROTOCOL),
        both(&keys::PLUGIN),
        both(&keys::PLUGIN_MODE),
    ],
    lists: || {
        let (methods, legacy) = method_names();
        vec![
            ("Methods", methods),
            ("Legacy methods, broken, for old peers only", legacy),
        ]
    },
    carriers: &[&kcp::CARRIER],
    is_shared: true,
    has_key_table: true,
    syntax: share::SYNTAX,
    normalize: share::name_method,
    listen,
    hop,
    ..Scheme::BLANK
};

/// Builds a Shadowsocks server.
fn listen(builder: &mut EndpointBuilder<'_, '_>) -> Option<Listen> {
    builder.no_target();
    let keyed = keyed::role(builder);
    let addr = builder.listen_addr();
    let (tcp, udp, plugin) = builder.served();
    let reject = builder.get(&keys::REJECT);
    let restart = builder.get(&keys::RESTART);
    let state = builder.get(&keys::STATE);
    let fast_open = builder.get(&keys::FAST_OPEN);
    let limits = builder.limits();
    let proxy_protocol = builder.proxy_protocol(addr.as_ref(), plugin.is_some());
    let private = builder.get(&keys::ALLOW_PRIVATE);
    let prefer = builder.get(&keys::PREFER);
    let (method, role) = keyed?;
    let addr = addr?;
    if !addr.is_loopback() {
        plain_text(builder, method);
    }
    legacy(builder, method);
    let state = state.filter(|_| {
        // The 2022 edition has timestamps, and ciphers without an IV have nothing to remember.
        let kept = match method.edition() {
            Edition::Aead => true,
            Edition::Stream => method.salt_len() > 0,
            Edition::Aead2022 | Edition::None => false,
        };
        if !kept {
            let about = Flaw::new(
                builder.key_span(&keys::STATE),
                "`state` is for the AEAD edition and for legacy methods with an IV",
            )
            .label("ignored here");
            builder.warn(WarningKind::IgnoredKey, about);
        }
        kept
    });
    Some(Listen {
        access: addr.access(private, false),
        addr,
        kind: ListenKind::Shadowsocks(SsServer {
            method,
            role,
            tcp,
            udp,
            reject,
            restart,
            fast_open,
            plugin,
            state: state.map(|path| builder.resolve(&path.0)),
        }),
        limits,
        prefer,
        carried: None,
        proxy_protocol,
    })
}

/// Builds a Shadowsocks client.
fn hop(builder: &mut EndpointBuilder<'_, '_>) -> Option<Hop> {
    builder.no_target();
    let keyed = keyed::hop(builder);
    let server = builder.server();
    let udp = builder.get(&keys::SS_UDP);
    let plugin = builder.plugin(true, udp == UdpWay::Native);
    let first_wait = builder.first_wait();
    let fast_open = builder.get(&keys::FAST_OPEN);
    let dial = builder.get(&keys::DIAL);
    let (method, secret) = keyed?;
    let server = server?;
    if !crate::text::is_this_machine(&server.host) {
        plain_text(builder, method);
    }
    legacy(builder, method);
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
        carried: None,
    }))
}

/// Warns about method `none`.
fn plain_text(builder: &mut EndpointBuilder<'_, '_>, method: Method) {
    if method.edition() == Edition::None {
        let about = Flaw::new(builder.user_span(), "method `none` does not encrypt")
            .label("everyone on the path can read and change the traffic")
            .help("`adit keygen 2022-blake3-aes-128-gcm` makes a key for a method that does");
        builder.warn(WarningKind::NoEncryption, about);
    }
}

/// Warns about a legacy method. Writing its name is the consent, so there is no key to confirm it.
fn legacy(builder: &mut EndpointBuilder<'_, '_>, method: Method) {
    if method.is_legacy() {
        let about = Flaw::new(
            builder.user_span(),
            format!("the cipher `{method}` is broken"),
        )
        .label("everyone on the path can read and change the traffic")
        .help(
            "nothing is authenticated: an attacker can replay recorded traffic to the server with \
                 a different target address and receive it decrypted (redirect attack)",
        )
        .help(
            "use it only for peers that support nothing better; for others, \
                 `adit keygen 2022-blake3-aes-128-gcm` makes a key for a secure method",
        );
        builder.warn(WarningKind::LegacyCipher, about);
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
