//! The plan of kcptun's options: a file overrides the command line, which overrides the defaults.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use adit_cli::{Failure, FailureCode};
use adit_config::text::escape;
use adit_config::{Plan, Problem, WarningKind, nearest_word};
use adit_kcp_proto::Config;
use anyhow::Context;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::args::kcp::{Both, ClientOwn, KcpClientArgs, KcpServerArgs, ServerOwn};

/// The buffer size that adit's sockets request, in bytes, which is also kcptun's default.
const SOCKBUF: u32 = 4 << 20;
/// Seconds after which a half-closed connection without traffic is closed if the option is 0, as in
/// kcptun.
const CLOSE_WAIT: u32 = 60;

/// An end of a tunnel.
pub(super) struct Tunnel {
    pub(super) plan: Plan,
    /// The file of the counters, and the period of its rows.
    pub(super) snmp: Option<(PathBuf, Duration)>,
    /// Warnings to print before the start.
    pub(super) warnings: Vec<String>,
}

/// Returns the tunnel of the client: each connection becomes a stream in one of its sessions.
pub(super) fn client_tunnel(typed: KcpClientArgs) -> Result<Tunnel, Failure> {
    let (own, both): (ClientOwn, _) = read_file(typed.config.as_deref(), ClientOwn::NAMES)?;
    let (own, both) = (own.or(typed.own), both.or(typed.both));
    let local = own.localaddr.as_deref().unwrap_or(":12948");
    let Some(remote) = own.remoteaddr.as_deref() else {
        return Err(
            Failure::new(FailureCode::Usage, "--remoteaddr, the server, is missing")
                .with_hint("-r HOST:29900"),
        );
    };
    let mut url = TunnelUrl::new(&both)?;
    url.add_number("conn", own.conn);
    url.add_seconds("autoexpire", own.autoexpire.filter(|s| *s > 0));
    url.add_seconds("scavengettl", own.scavengettl.map(|s| s.max(1)));
    let words = [
        format!(
            "tcp://{}",
            check_address("localaddr", &listen_address(local, "tcp", "127.0.0.1"))?
        ),
        url.with_address(check_address("remoteaddr", remote)?, ""),
    ];
    build_tunnel(&words, &both, both.closewait.unwrap_or(0))
}

/// Returns the tunnel of the server: each stream becomes a connection to the target.
pub(super) fn server_tunnel(typed: KcpServerArgs) -> Result<Tunnel, Failure> {
    let (own, both): (ServerOwn, _) = read_file(typed.config.as_deref(), ServerOwn::NAMES)?;
    let (own, both) = (own.or(typed.own), both.or(typed.both));
    let listen = listen_address(own.listen.as_deref().unwrap_or(":29900"), "kcptun", "");
    let listen = check_address("listen", &listen)?;
    let target = own.target.as_deref().unwrap_or("127.0.0.1:12948");
    let target = format!("/{}", check_address("target", target)?);
    let words = [TunnelUrl::new(&both)?.with_address(listen, &target)];
    build_tunnel(&words, &both, both.closewait.unwrap_or(30))
}

/// Returns an address in kcptun's form. A port alone is a port of `host`, and `scheme://` may precede the address.
fn listen_address<'a>(text: &'a str, scheme: &str, host: &str) -> Cow<'a, str> {
    let address = text
        .strip_prefix(scheme)
        .and_then(|rest| rest.strip_prefix("://"));
    let address = address.map_or(text, |rest| rest.strip_suffix('/').unwrap_or(rest));
    let digits = |b: u8| b.is_ascii_digit() || b == b'-';
    match !address.is_empty() && address.bytes().all(digits) {
        true => Cow::Owned(format!("{host}:{address}")),
        false => Cow::Borrowed(address),
    }
}

/// Checks an address in kcptun's form: `host:port`, `:port` for all addresses, or `host:min-max`.
fn check_address<'a>(name: &str, text: &'a str) -> Result<&'a str, Failure> {
    if text.contains('/') || !text.contains(':') {
        let what = format!("--{name} {text}: expected HOST:PORT; Unix sockets are not supported");
        return Err(Failure::new(FailureCode::Config, what));
    }
    Ok(text)
}

/// Builds the URL of a tunnel, with kcptun's spelling of the keys.
struct TunnelUrl {
    secret: String,
    keys: String,
}

impl TunnelUrl {
    fn new(options: &Both) -> Result<Self, Failure> {
        if options.tcp == Some(true) {
            let failure = Failure::new(FailureCode::Config, "the tcp mode is not supported");
            return Err(failure.with_hint("remove it at both ends: the tunnel uses UDP"));
        }
        let environment = || std::env::var("KCPTUN_KEY").ok();
        let key = options.key.clone().or_else(environment);
        let secret = key.map_or_else(String::new, |key| format!("{}@", escape::encode_part(&key)));
        let keys = String::new();
        let mut url = Self { secret, keys };
        url.add_text("crypt", options.crypt.as_deref());
        url.add_flag("nocomp", options.nocomp);
        url.add_number("smuxver", options.smuxver);
        url.add_text("mode", options.mode.as_deref());
        url.add_text("cc", options.cc.as_deref());
        // Numbers out of range are clamped, as in kcptun.
        let usual = Config::fast();
        let bounded = Config {
            nodelay: options.nodelay.unwrap_or(0),
            interval_ms: options.interval.unwrap_or(50),
            send_window: options.sndwnd.unwrap_or(usual.send_window),
            recv_window: options.rcvwnd.unwrap_or(usual.recv_window),
            ..usual
        };
        let bounded = bounded.clamped();
        // Other modes ignore them, although files often contain them.
        if options.mode.as_deref() == Some("manual") {
            url.add_number("nodelay", Some(bounded.nodelay));
            url.add_number("interval", Some(bounded.interval_ms));
            url.add_number("resend", options.resend);
            url.add_number("nc", Some(options.nc.unwrap_or(0)));
        }
        url.add_number("sndwnd", options.sndwnd.and(Some(bounded.send_window)));
        url.add_number("rcvwnd", options.rcvwnd.and(Some(bounded.recv_window)));
        url.add_flag("acknodelay", options.acknodelay);
        url.add_number("mtu", options.mtu);
        url.add_number("datashard", options.datashard);
        url.add_number("parityshard", options.parityshard);
        url.add_number("ratelimit", options.ratelimit);
        url.add_number("smuxbuf", options.smuxbuf);
        url.add_number("streambuf", options.streambuf);
        url.add_number("framesize", options.framesize);
        url.add_seconds("keepalive", options.keepalive);
        url.add_flag("kcp9", options.kcp9);
        url.add_flag("qpp", options.qpp);
        if options.qpp == Some(true) {
            url.add_number("qppcount", options.qpp_count);
        }
        Ok(url)
    }

    fn add_text(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            let mark = if self.keys.is_empty() { '?' } else { '&' };
            self.keys += &format!("{mark}{key}={}", escape::encode_value(value));
        }
    }

    fn add_number<N: ToString>(&mut self, key: &str, value: Option<N>) {
        self.add_text(key, value.map(|n| n.to_string()).as_deref());
    }

    fn add_flag(&mut self, key: &str, value: Option<bool>) {
        self.add_number(key, value);
    }

    fn add_seconds(&mut self, key: &str, value: Option<u32>) {
        self.add_text(key, value.map(|n| format!("{n}s")).as_deref());
    }

    fn with_address(&self, addr: &str, target: &str) -> String {
        format!("kcptun://{}{addr}{target}{}", self.secret, self.keys)
    }
}

/// Returns the plan of the URLs, with the settings that only kcptun has.
fn build_tunnel(words: &[String], options: &Both, close_wait: u32) -> Result<Tunnel, Failure> {
    let mut plan = Plan::from_words(words).map_err(|problems| to_failure(&problems))?;
    let seconds = |n: u32| Duration::from_secs(n.into());
    let close_wait = if close_wait == 0 {
        CLOSE_WAIT
    } else {
        close_wait
    };
    for listen in plan.routes.iter_mut().flat_map(|route| &mut route.listen) {
        // An idle connection stays open.
        listen.limits.idle = Duration::ZERO;
        listen.limits.half_close_idle = seconds(close_wait);
    }
    let told = plan.warnings.iter();
    // The help explains how to keep the key off the command line; a file contains it anyway.
    let told = told.filter(|told| told.kind != WarningKind::LiteralSecret);
    let mut warnings: Vec<String> = told.map(|told| describe_problem(&told.about)).collect();
    warnings.extend(ineffective_options(options));
    let period = seconds(options.snmpperiod.unwrap_or(60).max(1));
    let snmp = options.snmplog.clone();
    let snmp = snmp.filter(|path| !path.as_os_str().is_empty());
    Ok(Tunnel {
        plan,
        snmp: snmp.map(|path| (path, period)),
        warnings,
    })
}

/// Returns a failure that names the option.
fn to_failure(problems: &[Problem]) -> Failure {
    let Some(first) = problems.first() else {
        return Failure::new(FailureCode::Config, "the options do not describe a tunnel");
    };
    let failure = Failure::new(FailureCode::Config, describe_problem(first));
    match first.help.first() {
        Some(help) => failure.with_hint(help.clone()),
        None => failure,
    }
}

/// Describes a problem, with the option that caused it, if there is one.
fn describe_problem(problem: &Problem) -> String {
    let mut said = Vec::new();
    let option = problem.place.as_ref().and_then(option_at);
    // The option already shows the wrong value.
    if option.is_none() || !problem.title.starts_with("bad value") {
        said.push(problem.title.clone());
    }
    said.extend(Some(problem.label.clone()).filter(|label| !label.is_empty()));
    let said = said.join(": ");
    match option {
        Some(option) => format!("{option}: {said}"),
        None => said,
    }
}

/// Returns the option of a place in a URL.
fn option_at(place: &adit_config::SourceLocation) -> Option<String> {
    let (at, _) = place.caret;
    let before: String = place.snippet.chars().take(at).collect();
    let behind: String = place.snippet.chars().skip(at).collect();
    let (_, front) = before.rsplit_once(['?', '&'])?;
    let pair = format!("{front}{}", behind.split('&').next().unwrap_or_default());
    let (key, value) = pair.split_once('=')?;
    let name = match key {
        "qpp" => "QPP",
        "qppcount" => "QPPCount",
        key => key,
    };
    Some(format!("--{name} {value}"))
}

/// Reads a file: the values of one end, and those of both ends.
fn read_file<Own: DeserializeOwned + Default>(
    path: Option<&Path>,
    names: &[&str],
) -> Result<(Own, Both), Failure> {
    let Some(path) = path else {
        return Ok((Own::default(), Both::default()));
    };
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("reading {shown}"))
        .map_err(|why| Failure::new(FailureCode::Config, format!("{why:#}")))?;
    parse_file(&text, names)
        .map_err(|why| Failure::new(FailureCode::Config, format!("{shown}: {why}")))
}

fn parse_file<Own: DeserializeOwned>(text: &str, names: &[&str]) -> Result<(Own, Both), String> {
    let found: Map<String, Value> = serde_json::from_str(text).map_err(|why| why.to_string())?;
    // Go ignores the case of names.
    let found: Map<String, Value> = found
        .into_iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .collect();
    let known = || Both::NAMES.iter().chain(names).copied();
    for name in found.keys() {
        // The file spells the underscores of field names as dashes.
        if !known().any(|known| known.replace('_', "-") == *name) {
            let near = nearest_word(name, known());
            let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            return Err(format!("unknown name `{name}`{hint}"));
        }
    }
    let value = Value::Object(found);
    let own = serde_json::from_value(value.clone()).map_err(|why| why.to_string())?;
    let both = serde_json::from_value(value).map_err(|why| why.to_string())?;
    Ok((own, both))
}

/// Returns warnings about kcptun's options that adit accepts without effect.
fn ineffective_options(options: &Both) -> Vec<String> {
    let mut found = Vec::new();
    if options.dscp.unwrap_or(0) != 0 {
        found.push("dscp has no effect: datagrams are not marked");
    }
    if options.sockbuf.unwrap_or(SOCKBUF) != SOCKBUF {
        found.push("sockbuf has no effect: sockets request 4 MiB");
    }
    if options.pprof == Some(true) {
        found.push("pprof has no effect: there is no profiling server");
    }
    if options
        .log
        .as_ref()
        .is_some_and(|path| !path.as_os_str().is_empty())
    {
        found.push("log has no effect: redirect standard error instead");
    }
    found.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use adit_config::{CarrierSettings, Hop, KcpSettings, Stage};
    use adit_kcp_proto::CongestionControl;

    use super::*;

    fn from_file(text: &str) -> Result<(ClientOwn, Both), String> {
        parse_file(text, ClientOwn::NAMES)
    }

    fn end(both: Both, is_server: bool) -> Result<Tunnel, Failure> {
        if is_server {
            let own = ServerOwn::default();
            return server_tunnel(KcpServerArgs {
                own,
                both,
                config: None,
            });
        }
        let own = ClientOwn {
            localaddr: Some("127.0.0.1:0".into()),
            remoteaddr: Some("127.0.0.1:29900-29909".into()),
            ..ClientOwn::default()
        };
        client_tunnel(KcpClientArgs {
            own,
            both,
            config: None,
        })
    }

    /// Returns the carrier of the end of a tunnel.
    fn carrier(tunnel: &Tunnel) -> &KcpSettings {
        let route = &tunnel.plan.routes[0];
        let hops = route.via.stages.iter().flat_map(Stage::hops);
        let hops = hops.filter_map(|hop| match hop {
            Hop::Server(hop) => hop.carrier.as_ref(),
            _ => None,
        });
        let listeners = route.listen.iter().filter_map(|l| l.carrier.as_ref());
        match hops.chain(listeners).next() {
            Some(CarrierSettings::Kcp(kcp)) => kcp,
            other => panic!("{other:?}"),
        }
    }

    fn made(options: Both, is_server: bool) -> Tunnel {
        end(options, is_server).unwrap_or_else(|why| panic!("{why:?}"))
    }

    #[test]
    fn a_file_of_kcptun_is_read_and_wins() {
        let (own, file) = from_file(
            r#"{"remoteaddr": "vps:29900", "Key": "k", "crypt": "salsa20", "mode": "fast3",
                "mtu": 1200, "sndwnd": 2048, "datashard": 0, "nocomp": true, "smuxver": 1,
                "qpp-count": 61, "qpp": false, "conn": 4, "pprof": true, "quiet": true,
                "nodelay": 1}"#,
        )
        .unwrap();
        assert_eq!(
            (own.remoteaddr.as_deref(), own.conn),
            (Some("vps:29900"), Some(4))
        );
        let typed = Both {
            mtu: Some(1000),
            rcvwnd: Some(0),
            ..Both::default()
        };
        let tunnel = made(file.or(typed), false);
        let kcp = carrier(&tunnel);
        // Out of range, and clamped.
        assert_eq!((kcp.mtu, kcp.arq.recv_window), (1200, 1));
        assert_eq!((kcp.arq.interval_ms, kcp.arq.send_window), (10, 2048));
        assert_eq!(kcp.fec, None);
        assert!(!kcp.compress && kcp.smux.version.number() == 1);
        assert!(!kcp.adopts.smux && !kcp.adopts.comp);
        assert_eq!(tunnel.warnings.len(), 2, "{:?}", tunnel.warnings);
    }

    #[test]
    fn what_is_wrong_in_a_file_is_named() {
        for (text, words) in [
            (
                r#"{"remoteadr": "x"}"#,
                "`remoteadr`; did you mean `remoteaddr`?",
            ),
            (r#"{"listen": "x"}"#, "`listen`"),
            (r#"{"mtu": "x"}"#, "invalid type"),
            ("[]", "invalid type"),
        ] {
            let why = from_file(text).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn defaults_are_those_of_kcptun() {
        for (is_server, windows) in [(false, (128, 512)), (true, (1024, 1024))] {
            let tunnel = made(Both::default(), is_server);
            let kcp = carrier(&tunnel);
            assert_eq!((kcp.arq.send_window, kcp.arq.recv_window), windows);
            assert_eq!(
                (kcp.arq.nodelay, kcp.arq.interval_ms, kcp.arq.resend),
                (0, 30, 2)
            );
            assert_eq!((kcp.mtu, kcp.compress), (1350, true));
            assert_eq!(kcp.fec.map(|fec| (fec.data, fec.parity)), Some((10, 3)));
            let learns = kcp.adopts;
            assert!(learns.smux && learns.comp && learns.fec);
            assert_eq!(kcp.smux.stream_buffer, 2 << 20);
            let limits = &tunnel.plan.routes[0].listen[0].limits;
            let wait = Duration::from_secs(if is_server { 30 } else { 60 });
            assert_eq!(
                (limits.idle, limits.half_close_idle),
                (Duration::ZERO, wait)
            );
        }
        assert_eq!(carrier(&made(Both::default(), false)).last_port, 29_909);
    }

    #[test]
    fn congestion_control_is_as_asked_for() {
        for (cc, mode, nc, wanted) in [
            (None, None, None, CongestionControl::Auto),
            (None, Some("manual"), None, CongestionControl::Reno),
            (None, Some("manual"), Some(1), CongestionControl::Off),
            (Some("bbr"), None, None, CongestionControl::Bbr),
            (Some("bbr"), Some("manual"), Some(0), CongestionControl::Bbr),
            (Some("off"), Some("fast3"), None, CongestionControl::Off),
            (Some("reno"), Some("fast3"), None, CongestionControl::Reno),
            (Some("auto"), Some("manual"), None, CongestionControl::Auto),
        ] {
            let options = Both {
                cc: cc.map(str::to_owned),
                mode: mode.map(str::to_owned),
                nc,
                ..Both::default()
            };
            let tunnel = made(options, false);
            let made = carrier(&tunnel).arq.congestion;
            assert_eq!(made, wanted, "{cc:?} {mode:?} {nc:?}");
        }
    }

    #[test]
    fn what_cannot_be_had_is_refused_by_its_option() {
        let text = |text: &str| Some(text.to_owned());
        let none = Both::default;
        for (wrong, words) in [
            (
                Both {
                    qpp: Some(true),
                    qpp_count: Some(0),
                    ..none()
                },
                "--QPPCount 0: ",
            ),
            (
                Both {
                    tcp: Some(true),
                    ..none()
                },
                "the tcp mode",
            ),
            (
                Both {
                    crypt: text("aes-256"),
                    ..none()
                },
                "--crypt aes-256: ",
            ),
            (
                Both {
                    mode: text("fast4"),
                    ..none()
                },
                "--mode fast4: ",
            ),
            (
                Both {
                    cc: text("cubic"),
                    ..none()
                },
                "--cc cubic: ",
            ),
            (
                Both {
                    smuxver: Some(3),
                    ..none()
                },
                "--smuxver 3: ",
            ),
            (
                Both {
                    mtu: Some(9000),
                    ..none()
                },
                "--mtu 9000: ",
            ),
            (
                Both {
                    datashard: Some(255),
                    ..none()
                },
                "a group has at most 256",
            ),
            (
                Both {
                    keepalive: Some(0),
                    ..none()
                },
                "--keepalive 0s: ",
            ),
            (
                Both {
                    smuxbuf: Some(1000),
                    ..none()
                },
                "smux cannot run with this",
            ),
        ] {
            let Err(why) = end(wrong, false) else {
                panic!("{words}");
            };
            assert!(format!("{why:?}").contains(words), "{why:?}");
        }
    }
}
