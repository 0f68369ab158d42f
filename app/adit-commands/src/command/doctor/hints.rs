//! Explanations of findings, with hints.

use std::io;

use adit_config::HopKind;
use adit_engine::probe::ProbeResult;
use adit_engine::{DialError, DialStage, FailureCause};
use adit_shadowsocks::Edition;

use super::super::plan_keys::key_id;

/// The remaining causes when the server does not understand any settings.
pub(super) const REMAINING_CAUSES: &str = "compare the password, or the user in `protocol_param`; or a clock is off by more than \
     the server allows; or the server is another program";

/// Describes the protocol and the key of the URL, without secrets.
pub(super) fn describe_settings(kind: &HopKind) -> String {
    match kind {
        HopKind::Socks5 { login, .. } => describe_login("SOCKS5", login.is_some()),
        HopKind::Socks4a { .. } => "SOCKS4a".to_owned(),
        HopKind::Http { login } => describe_login("HTTP CONNECT", login.is_some()),
        HopKind::Shadowsocks { method, secret, .. } => {
            format!("{method} with key-id {}", key_id(*method, secret.expose()))
        }
        HopKind::ShadowsocksR(hop) => format!(
            "{} with {} and {}, and our password",
            hop.method, hop.protocol, hop.obfs
        ),
        HopKind::Ssh(hop) => format!("SSH as {}", hop.user),
        HopKind::RemoteTarget => "only its carrier".to_owned(),
    }
}

fn describe_login(name: &str, login: bool) -> String {
    let login = if login { "our login" } else { "no login" };
    format!("{name} with {login}")
}

/// Returns true if the server has understood the client. So has a proxy that did not find the name.
pub(super) fn is_understood(kind: &HopKind, heard: &ProbeResult) -> bool {
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
        // The proxy accepted the request, even though the name does not exist.
        ProbeResult::Closed => plain,
        ProbeResult::Undecodable | ProbeResult::Silent => false,
    }
}

/// Returns true if the path to the server failed, not the dialect.
pub(super) const fn is_network_failure(why: &DialError) -> bool {
    !matches!(why.stage, DialStage::Dialect { .. })
}

/// Returns a hint for a connection that failed.
pub(super) fn connect_hint(why: &io::Error) -> &'static str {
    match why.kind() {
        io::ErrorKind::ConnectionRefused => {
            "the machine answers, but nothing listens on that port: is the server running, and is \
             the port correct?"
        }
        io::ErrorKind::TimedOut => {
            "no answer: a firewall of the server, of its provider or in between drops the \
             connection; or the address is wrong"
        }
        _ => "is this machine online, and are host and port correct?",
    }
}

/// Describes what is wrong, and returns a hint. `site` is true if a target was requested too.
pub(super) fn explain_finding(kind: &HopKind, heard: &ProbeResult, site: bool) -> (String, String) {
    let ours = describe_settings(kind);
    let what = match heard {
        ProbeResult::Failed(why) if is_network_failure(why) => {
            format!("cannot reach the server: {why}")
        }
        ProbeResult::Failed(why) => match kind {
            HopKind::ShadowsocksR(hop) => {
                format!(
                    "the server does not answer in the obfs {}: {}",
                    hop.obfs, why.source_error
                )
            }
            _ => format!("the server refuses {ours}: {}", why.source_error),
        },
        ProbeResult::Undecodable => format!("the answer of the server is not valid for {ours}"),
        ProbeResult::Closed => {
            format!("the server closes the connection without an answer to {ours}")
        }
        ProbeResult::Silent | ProbeResult::Answer { .. } => {
            format!("the server accepts connections but does not answer to {ours}")
        }
    };
    (what, dialogue_hint(kind, heard, site))
}

fn dialogue_hint(kind: &HopKind, heard: &ProbeResult, site: bool) -> String {
    let other = if site {
        ""
    } else {
        "; or the server is not adit: check it with `--to HOST:PORT` (a web server)"
    };
    match kind {
        HopKind::ShadowsocksR(_) if matches!(heard, ProbeResult::Failed(_)) => {
                        "compare `obfs` and `obfs_param` with the server's; with tls1.2_* and go_quiet, also \
                         the password and the clocks"
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
                                        "; or a clock is off by more than 30 s: compare `date -u` on both machines, or \
                     `--clock HOST:PORT` compares this machine's with that of a web server"
                }
                _ => "",
            };
            format!(
                "compare method and key with the server's: ours is {method} with key-id {}, and \
                 `adit server` prints its own{clock}{other}",
                key_id(*method, secret.expose())
            )
        }
                HopKind::Ssh(_) => "`ssh -v` to the same server shows what it accepts; a hop needs \
                                    `AllowTcpForwarding yes` there, and its host key in `known_hosts` or \
                                    `host_key`"
            .to_owned(),
        _ => "are the port and the protocol those of the proxy, and does it need a login, or another one?"
            .to_owned(),
    }
}

/// Returns a hint for a server that carries streams, but no datagrams.
pub(super) const fn datagram_hint(kind: &HopKind) -> &'static str {
    match kind {
        HopKind::Shadowsocks { .. } | HopKind::ShadowsocksR(_) => {
            "does the server carry UDP, and do both firewalls allow UDP on that port? \
             `udp=over-tcp` sends datagrams in a connection, `udp=false` turns UDP off"
        }
        HopKind::Ssh(_) => {
            "SSH carries no UDP; `udp=over-tcp` sends it in a stream, which an adit server supports"
        }
        HopKind::RemoteTarget => {
            "does the network of this machine carry UDP, and does its firewall allow it?"
        }
        _ => "does the proxy offer UDP ASSOCIATE, and do the firewalls allow UDP to it?",
    }
}
