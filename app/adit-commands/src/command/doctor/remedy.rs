//! What a finding means, and what to do about it.

use std::io;

use adit_config::HopKind;
use adit_engine::probe::ProbeResult;
use adit_engine::{DialError, DialStage, FailureCause};
use adit_shadowsocks::Edition;

use super::super::run::key_id;

/// Beyond this a clock is worth a word.
pub(super) const SKEW_WARN: u64 = 15;

/// What is left when no settings are understood.
pub(super) const PASSWORD: &str = "the password, then, or the user in `protocol_param`; or a clock that is off by more than \
     the server allows; or the server is another program";

/// What the URL says we speak, without secrets.
pub(super) fn ours(kind: &HopKind) -> String {
    match kind {
        HopKind::Socks5 { login, .. } => with_login("SOCKS5", login.is_some()),
        HopKind::Socks4a { .. } => "SOCKS4a".to_owned(),
        HopKind::Http { login } => with_login("HTTP CONNECT", login.is_some()),
        HopKind::Shadowsocks { method, secret, .. } => {
            format!("{method} with key-id {}", key_id(*method, secret.expose()))
        }
        HopKind::ShadowsocksR(hop) => format!(
            "{} with {} and {}, and our password",
            hop.method, hop.protocol, hop.obfs
        ),
        HopKind::Ssh(hop) => format!("SSH as {}", hop.user),
        HopKind::RemoteTarget => "its carrier alone".to_owned(),
    }
}

fn with_login(name: &str, login: bool) -> String {
    let login = if login { "our login" } else { "no login" };
    format!("{name} with {login}")
}

/// Whether the server has understood us. A proxy that has not found a name has.
pub(super) fn is_fine(kind: &HopKind, heard: &ProbeResult) -> bool {
    let plain = matches!(
        kind,
        HopKind::Socks5 { .. } | HopKind::Socks4a { .. } | HopKind::Http { .. } | HopKind::Ssh(_)
    );
    match heard {
        ProbeResult::Answer { .. } => true,
        ProbeResult::Failed(why) => {
            let replied = matches!(
                why.cause,
                FailureCause::HostUnreachable
                    | FailureCause::UnknownName
                    | FailureCause::NetworkUnreachable
                    | FailureCause::ConnectionRefused
                    | FailureCause::FailedAtServer
            );
            plain && replied && matches!(why.stage, DialStage::Dialect { .. })
        }
        // The way was open, whatever the proxy did with a name that nobody has.
        ProbeResult::Closed => plain,
        ProbeResult::Undecodable | ProbeResult::Silent => false,
    }
}

/// Whether it is the way to the server that failed.
pub(super) const fn is_network(why: &DialError) -> bool {
    !matches!(why.stage, DialStage::Dialect { .. })
}

/// What no connection means.
pub(super) fn unreachable(why: &io::Error) -> &'static str {
    match why.kind() {
        io::ErrorKind::ConnectionRefused => {
            "the machine is there and nobody listens on that port: is the server running, and is \
             the port right?"
        }
        io::ErrorKind::TimedOut => {
            "nothing comes back: the firewall of the server or its provider, or something on the \
             way, drops the connection; or the address is wrong"
        }
        _ => "is this machine online, and are host and port right?",
    }
}

/// What is wrong in words, and what to do. `site` tells whether a target was asked for too.
pub(super) fn told(kind: &HopKind, heard: &ProbeResult, site: bool) -> (String, String) {
    let ours = ours(kind);
    let what = match heard {
        ProbeResult::Failed(why) if is_network(why) => format!("no way to the server: {why}"),
        ProbeResult::Failed(why) => match kind {
            HopKind::ShadowsocksR(hop) => {
                format!(
                    "the server does not answer in the obfs {}: {}",
                    hop.obfs, why.source_error
                )
            }
            _ => format!("the server refuses {ours}: {}", why.source_error),
        },
        ProbeResult::Undecodable => format!("the server answers in something else than {ours}"),
        ProbeResult::Closed => format!("the server closes without an answer to {ours}"),
        ProbeResult::Silent | ProbeResult::Answer { .. } => {
            format!("the server takes connections and is silent to {ours}")
        }
    };
    (what, advice(kind, heard, site))
}

fn advice(kind: &HopKind, heard: &ProbeResult, site: bool) -> String {
    let other = if site {
        ""
    } else {
        "; or a server that is not adit, which `--to HOST:PORT` (a web server) finds out"
    };
    match kind {
        HopKind::ShadowsocksR(_) if matches!(heard, ProbeResult::Failed(_)) => {
            "compare `obfs` and `obfs_param` with the server's; with tls1.2_* and go_quiet the \
             password and the clocks too"
                .to_owned()
        }
        HopKind::ShadowsocksR(hop) => {
            let quiet = if hop.protocol.is_authenticated() {
                ""
            } else {
                other
            };
            format!(
                "compare password, method, `protocol` and `obfs` with the server's, and the user \
                 in `protocol_param`; clocks may differ by a day{quiet}"
            )
        }
        HopKind::Shadowsocks { method, secret, .. } => {
            let clock = match method.edition() {
                Edition::Aead2022 => {
                    "; or a clock is off by more than 30 s: compare what `date -u` says on both \
                     machines"
                }
                _ => "",
            };
            format!(
                "compare method and key with the server's: ours is {method} with key-id {}, and \
                 `adit server` prints its own{clock}{other}",
                key_id(*method, secret.expose())
            )
        }
        HopKind::Ssh(_) => "`ssh -v` to the same server says what it takes; as hop it needs \
                            `AllowTcpForwarding yes`, and its host key in `known_hosts`, or in \
                            `host_key`"
            .to_owned(),
        _ => "is this the proxy's port and its dialect, and is a login needed, or another one?"
            .to_owned(),
    }
}

/// What to do where streams pass and datagrams do not.
pub(super) const fn no_datagrams(kind: &HopKind) -> &'static str {
    match kind {
        HopKind::Shadowsocks { .. } | HopKind::ShadowsocksR(_) => {
            "does the server carry UDP, and do both firewalls let UDP in on that port? \
             `udp=over-tcp` puts datagrams into a connection, `udp=false` does without"
        }
        HopKind::Ssh(_) => {
            "SSH carries no UDP; `udp=over-tcp` puts it into a stream, which a server of adit's knows"
        }
        _ => "does the proxy offer UDP ASSOCIATE, and do firewalls let UDP pass to it?",
    }
}
