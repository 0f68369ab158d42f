//! `redir://`, `tproxy://`: traffic for other hosts that the firewall redirects to adit (Linux).

use crate::schema::{EndpointRoles, Key, listener};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::definition::Scheme;
use crate::scheme::keys;
use crate::scheme::typed::{Listen, ListenKind, Prefer, Private, Steering, Transparent};
use crate::text::Flaw;

/// `allow_private` for TPROXY. Clients are other machines even if the address is loopback, so loopback
/// allows no private destinations here.
static ALLOW_PRIVATE: Key<Option<Private>> = Key {
    name: keys::ALLOW_PRIVATE.name,
    alias: None,
    default: None,
    otherwise: "none",
    doc: keys::ALLOW_PRIVATE.doc,
};

pub(crate) static SCHEME_REDIR: Scheme = Scheme {
    name: "redir",
    form: "redir://[HOST]:PORT",
    doc: "TCP that this machine's firewall redirects to the port with `REDIRECT`; connections keep \
          their destination. Linux only; for UDP use `tproxy`.",
    roles: EndpointRoles::Listener,
    params: &[
        listener(&keys::ALLOW_OPEN_PROXY),
        listener(&keys::ALLOW_PRIVATE),
        listener(&keys::DIAL),
        listener(&keys::IDLE),
        listener(&keys::HALF_CLOSE_IDLE),
        listener(&keys::MAX_CONNECTIONS),
    ],
    listen: |builder| listen(builder, Steering::Redirect),
    ..Scheme::BLANK
};

pub(crate) static SCHEME_TPROXY: Scheme = Scheme {
    name: "tproxy",
    form: "tproxy://[HOST]:PORT",
    doc: "TCP and UDP that this machine's firewall redirects to the port with `TPROXY`; they keep \
          their destination. Linux only; requires the capability CAP_NET_ADMIN.",
    roles: EndpointRoles::Listener,
    params: &[
        listener(&keys::ALLOW_OPEN_PROXY),
        listener(&ALLOW_PRIVATE),
        listener(&keys::TCP),
        listener(&keys::UDP),
        listener(&keys::DIAL),
        listener(&keys::IDLE),
        listener(&keys::HALF_CLOSE_IDLE),
        listener(&keys::UDP_IDLE),
        listener(&keys::MAX_CONNECTIONS),
        listener(&keys::FULL_CONE),
    ],
    listen: |builder| listen(builder, Steering::Tproxy),
    ..Scheme::BLANK
};

/// Builds a transparent listener.
fn listen(builder: &mut EndpointBuilder<'_, '_>, steering: Steering) -> Option<Listen> {
    builder.no_user();
    builder.no_target();
    let addr = builder.listen_addr();
    let open = builder.get(&keys::ALLOW_OPEN_PROXY);
    let tproxy = steering == Steering::Tproxy;
    let kind = Transparent {
        steering,
        tcp: !tproxy || builder.get(&keys::TCP),
        udp: tproxy && builder.get(&keys::UDP),
        full_cone: builder.get(&keys::FULL_CONE),
    };
    if !kind.tcp && !kind.udp {
        let span = builder.value_span(&keys::UDP);
        builder.problem(Flaw::new(span, "both TCP and UDP are off"));
    }
    let private = builder.get(&keys::ALLOW_PRIVATE);
    let limits = builder.limits();
    let addr = addr?;
    if addr.port == 0 {
        let flaw = Flaw::new(
            builder.endpoint().address,
            "the port of a transparent listener cannot be 0",
        )
        .help("write the port that the firewall rule names");
        builder.problem(flaw);
    }
    if !addr.is_loopback() && !open {
        builder.problem(open_to_all(builder, steering, addr.port));
    }
    Some(Listen {
        access: addr.access(private, !tproxy),
        addr,
        kind: ListenKind::Transparent(kind),
        limits,
        // Targets are addresses.
        prefer: Prefer::Auto,
        carried: None,
        proxy_protocol: false,
    })
}

/// Returns the error of a listener that would serve everyone (SEC-E1).
fn open_to_all(builder: &EndpointBuilder<'_, '_>, steering: Steering, port: u16) -> Flaw {
    let scheme = builder.scheme();
    let flaw = Flaw::new(
        builder.endpoint().address,
        "refusing to serve everyone: a transparent listener has no passwords",
    )
    .label("not a loopback address")
    .help(match steering {
        Steering::Redirect => {
            format!("for this machine's own traffic: `{scheme}://127.0.0.1:{port}`")
        }
        Steering::Tproxy => format!(
            "`{scheme}://127.0.0.1:{port}` also works on a gateway: `TPROXY --on-ip 127.0.0.1`"
        ),
    });
    flaw.help("for everyone whose traffic the firewall redirects here: `?allow_open_proxy=true`")
}
