//! `redir://`, `tproxy://`: traffic for other hosts that the firewall redirects to adit (Linux).

use crate::schema::{EndpointRoles, ParamKey, listener_param};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::definition::Scheme;
use crate::scheme::endpoint_types::{
    AddressPreference, InterceptMethod, ListenerConfig, ListenerKind, PrivateAccess,
    TransparentListener,
};
use crate::scheme::shared_keys;
use crate::text::ConfigError;

/// `allow_private` for TPROXY. Clients are other machines even if the address is loopback, so loopback
/// allows no private destinations here.
static ALLOW_PRIVATE: ParamKey<Option<PrivateAccess>> = ParamKey {
    name: shared_keys::ALLOW_PRIVATE.name,
    alias: None,
    default: None,
    default_note: "none",
    doc: shared_keys::ALLOW_PRIVATE.doc,
};

pub(crate) static SCHEME_REDIR: Scheme = Scheme {
    name: "redir",
    form: "redir://[HOST]:PORT",
    doc: "TCP that this machine's firewall redirects to the port with `REDIRECT`; connections keep \
          their destination. Linux only; for UDP use `tproxy`.",
    roles: EndpointRoles::Listener,
    params: &[
        listener_param(&shared_keys::ALLOW_OPEN_PROXY),
        listener_param(&shared_keys::ALLOW_PRIVATE),
        listener_param(&shared_keys::SNIFF),
        listener_param(&shared_keys::DIAL),
        listener_param(&shared_keys::IDLE),
        listener_param(&shared_keys::HALF_CLOSE_IDLE),
        listener_param(&shared_keys::MAX_CONNECTIONS),
    ],
    listen: |builder| build_listener(builder, InterceptMethod::Redirect),
    ..Scheme::BASE
};

pub(crate) static SCHEME_TPROXY: Scheme = Scheme {
    name: "tproxy",
    form: "tproxy://[HOST]:PORT",
    doc: "TCP and UDP that this machine's firewall redirects to the port with `TPROXY`; they keep \
          their destination. Linux only; requires the capability CAP_NET_ADMIN.",
    roles: EndpointRoles::Listener,
    params: &[
        listener_param(&shared_keys::ALLOW_OPEN_PROXY),
        listener_param(&ALLOW_PRIVATE),
        listener_param(&shared_keys::SNIFF),
        listener_param(&shared_keys::TCP),
        listener_param(&shared_keys::UDP),
        listener_param(&shared_keys::DIAL),
        listener_param(&shared_keys::IDLE),
        listener_param(&shared_keys::HALF_CLOSE_IDLE),
        listener_param(&shared_keys::UDP_IDLE),
        listener_param(&shared_keys::MAX_CONNECTIONS),
        listener_param(&shared_keys::FULL_CONE),
    ],
    listen: |builder| build_listener(builder, InterceptMethod::Tproxy),
    ..Scheme::BASE
};

/// Builds a transparent listener.
fn build_listener(
    builder: &mut EndpointBuilder<'_, '_>,
    steering: InterceptMethod,
) -> Option<ListenerConfig> {
    builder.check_no_user();
    builder.check_no_target();
    if !cfg!(target_os = "linux") {
        let what = format!(
            "`{}` listeners are available on Linux only",
            builder.scheme()
        );
        let flaw = ConfigError::new(builder.endpoint().address, what).with_help(
            "`mixed://127.0.0.1:1080` is a proxy that programs are set to use, on every system",
        );
        builder.report_error(flaw);
    }
    let addr = builder.listen_addr();
    let open = builder.get(&shared_keys::ALLOW_OPEN_PROXY);
    let tproxy = steering == InterceptMethod::Tproxy;
    let kind = TransparentListener {
        method: steering,
        tcp: !tproxy || builder.get(&shared_keys::TCP),
        udp: tproxy && builder.get(&shared_keys::UDP),
        full_cone: builder.get(&shared_keys::FULL_CONE),
    };
    if !kind.tcp && !kind.udp {
        let span = builder.value_span(&shared_keys::UDP);
        builder.report_error(ConfigError::new(span, "both TCP and UDP are off"));
    }
    let private = builder.get(&shared_keys::ALLOW_PRIVATE);
    let limits = builder.read_limits();
    let addr = addr?;
    if addr.port == 0 {
        let flaw = ConfigError::new(
            builder.endpoint().address,
            "the port of a transparent listener cannot be 0",
        )
        .with_help("write the port that the firewall rule names");
        builder.report_error(flaw);
    }
    if !addr.is_loopback() && !open {
        builder.report_error(open_listener_error(builder, steering, addr.port));
    }
    Some(ListenerConfig {
        access: addr.access_rules(private, !tproxy),
        addr,
        kind: ListenerKind::Transparent(kind),
        limits,
        // Targets are addresses.
        prefer: AddressPreference::Auto,
        carrier: None,
        proxy_protocol: false,
        sniff: builder.get(&shared_keys::SNIFF),
    })
}

/// Returns the error of a listener that would serve everyone (SEC-E1).
fn open_listener_error(
    builder: &EndpointBuilder<'_, '_>,
    steering: InterceptMethod,
    port: u16,
) -> ConfigError {
    let scheme = builder.scheme();
    let flaw = ConfigError::new(
        builder.endpoint().address,
        "refusing to serve everyone: a transparent listener has no passwords",
    )
    .with_label("not a loopback address")
    .with_help(match steering {
        InterceptMethod::Redirect => {
            format!("for this machine's own traffic: `{scheme}://127.0.0.1:{port}`")
        }
        InterceptMethod::Tproxy => format!(
            "`{scheme}://127.0.0.1:{port}` also works on a gateway: `TPROXY --on-ip 127.0.0.1`"
        ),
    });
    flaw.with_help(
        "for everyone whose traffic the firewall redirects here: `?allow_open_proxy=true`",
    )
}
