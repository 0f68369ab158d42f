//! What an end runs with: the command line, a file over it, defaults below it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use adit_cli::{Code, Failure};
use adit_config::nearest;
use adit_crypto::Secret;
use adit_crypto::packet::qpp::{self, Pads};
use adit_crypto::packet::{Check, PacketKey, PacketKind, key_from_password};
use adit_kcp::{Fec, Settings};
use adit_kcp_proto::{Config, Congestion};
use adit_smux_proto::{Role, Version};
use adit_stream::Limits;
use anyhow::Context;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::args::kcp::Both;

/// The password of kcptun where none is given.
const DEFAULT_KEY: &str = "it's a secrect";
/// What the sockets of adit ask for, and kcptun by default.
const SOCKBUF: u32 = 4 << 20;

/// What both ends need.
pub(super) struct Plan {
    pub(super) kcp: Settings,
    pub(super) smux: adit_smux::Settings,
    /// What of that nobody asked for, so that it may become as the peer has it.
    pub(super) open: Open,
    pub(super) key: Arc<Secret<[u8; 32]>>,
    pub(super) crypt: PacketKind,
    pub(super) limits: Limits,
    /// Where the counters go, and how often.
    pub(super) snmp: Option<(PathBuf, Duration)>,
    /// What should be known before it starts.
    pub(super) warnings: Vec<String>,
}

/// What was not said of the manner of smux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Open {
    pub(super) version: bool,
    pub(super) compress: bool,
}

impl Open {
    /// Whether anything is.
    pub(super) const fn any(self) -> bool {
        self.version || self.compress
    }

    /// The settings as the peer has it, as far as they may be changed.
    pub(super) fn adapt(
        self,
        settings: &adit_smux::Settings,
        to: adit_smux::Manner,
    ) -> adit_smux::Settings {
        let mut settings = settings.clone();
        if self.version {
            settings.config.version = to.version;
        }
        if self.compress {
            settings.compress = to.compress;
        }
        settings
    }
}

/// A file's values as those of one end and those of both.
pub(super) fn file<Own: DeserializeOwned + Default>(
    path: Option<&Path>,
    names: &[&str],
) -> Result<(Own, Both), Failure> {
    let Some(path) = path else {
        return Ok((Own::default(), Both::default()));
    };
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("reading {shown}"))
        .map_err(|why| Failure::new(Code::Config, format!("{why:#}")))?;
    read(&text, names).map_err(|why| Failure::new(Code::Config, format!("{shown}: {why}")))
}

fn read<Own: DeserializeOwned>(text: &str, names: &[&str]) -> Result<(Own, Both), String> {
    let found: Map<String, Value> = serde_json::from_str(text).map_err(|why| why.to_string())?;
    // Go reads names without regard to case.
    let found: Map<String, Value> = found
        .into_iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .collect();
    let known = || Both::NAMES.iter().chain(names).copied();
    for name in found.keys() {
        // Field names have an underscore where the file has a dash.
        if !known().any(|known| known.replace('_', "-") == *name) {
            let near = nearest(name, known());
            let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            return Err(format!("unknown name `{name}`{hint}"));
        }
    }
    let value = Value::Object(found);
    let own = serde_json::from_value(value.clone()).map_err(|why| why.to_string())?;
    let both = serde_json::from_value(value).map_err(|why| why.to_string())?;
    Ok((own, both))
}

/// Checks everything, and says what is not had.
pub(super) fn plan(options: Both, role: Role) -> Result<Plan, Failure> {
    let wrong = |what: String| Failure::new(Code::Config, what);
    if options.tcp == Some(true) {
        return Err(wrong("the tcp mode is not supported".into())
            .hint("leave it out at both ends: the tunnel goes over UDP"));
    }
    let server = role == Role::Server;
    let kcp = arq(&options, server)?;
    let (key, kind, mut warnings) = key(&options)?;
    let pads = pads(&options, &key, &mut warnings)?;
    let key = Arc::new(key_from_password(key.as_bytes()));
    let kcp9 = options.kcp9 == Some(true);
    if kcp9 && kind == PacketKind::Null {
        return Err(wrong(
            "--kcp9 seals with the cipher, and --crypt null is none".into(),
        ));
    }
    let (check, matrix) = match kcp9 {
        true => (Check::HighwayHash, adit_fec::Matrix::Cauchy),
        false => (Check::Crc32, adit_fec::Matrix::Vandermonde),
    };
    let packets = PacketKey::from_key(kind, check, key.expose())
        .map_err(|why| wrong(format!("--crypt {kind}: {why}")))?;
    let (data, parity) = (
        options.datashard.unwrap_or(10),
        options.parityshard.unwrap_or(3),
    );
    let fec = (data > 0 && parity > 0).then_some(Fec {
        data,
        parity,
        matrix,
    });
    let mtu = options.mtu.unwrap_or(1350);
    let kcp = Settings {
        mtu,
        fec,
        fec_follows: options.datashard.is_none() && options.parityshard.is_none(),
        key: (kind != PacketKind::Null).then(|| Arc::new(packets)),
        rate: options.ratelimit.unwrap_or(0),
        // Numbers out of bounds are brought to them, as kcptun does.
        ..Settings::new(Config { mtu, ..kcp }.bounded())
    };
    kcp.check().map_err(|why| wrong(why.to_string()))?;
    warnings.extend(without_effect(&options));
    let seconds = |n: u32| Duration::from_secs(n.into());
    let wait = options.closewait.unwrap_or(if server { 30 } else { 0 });
    let limits = Limits {
        idle: Duration::ZERO,
        half_close_idle: seconds(if wait == 0 { 60 } else { wait }),
    };
    let period = seconds(options.snmpperiod.unwrap_or(60).max(1));
    let snmp = options.snmplog.clone();
    let snmp = snmp.filter(|path| !path.as_os_str().is_empty());
    Ok(Plan {
        kcp,
        smux: adit_smux::Settings {
            pads,
            ..smux(&options, role)?
        },
        open: Open {
            version: options.smuxver.is_none(),
            compress: options.nocomp.is_none(),
        },
        key,
        crypt: kind,
        limits,
        snmp: snmp.map(|path| (path, period)),
        warnings,
    })
}

fn arq(options: &Both, server: bool) -> Result<Config, Failure> {
    let named = match options.mode.as_deref().unwrap_or("fast") {
        "normal" => Config::normal(),
        "fast" => Config::fast(),
        "fast2" => Config::fast2(),
        "fast3" => Config::fast3(),
        "manual" => Config {
            nodelay: options.nodelay.unwrap_or(0),
            interval_ms: options.interval.unwrap_or(50),
            resend: options.resend.unwrap_or(0),
            congestion: match options.nc.unwrap_or(0) {
                0 => Congestion::Reno,
                _ => Congestion::Off,
            },
            ..Config::fast()
        },
        other => {
            let known = ["normal", "fast", "fast2", "fast3", "manual"];
            let what = format!("--mode {other} is none of {}", known.join(", "));
            return Err(Failure::new(Code::Config, what));
        }
    };
    let (send, receive) = if server { (1024, 1024) } else { (128, 512) };
    // The named modes of kcptun never hold anything back, and lose most of it on a full path.
    let congestion = match (options.cc.as_deref(), options.mode.as_deref()) {
        (Some("auto"), _) => Congestion::Auto,
        (Some("off"), _) => Congestion::Off,
        (Some("reno"), _) => Congestion::Reno,
        (Some("bbr"), _) => Congestion::Bbr,
        (Some(other), _) => {
            let what = format!("--cc {other} is none of auto, off, reno, bbr");
            return Err(Failure::new(Code::Config, what));
        }
        (None, Some("manual")) => named.congestion,
        (None, _) => Congestion::Auto,
    };
    Ok(Config {
        congestion,
        send_window: options.sndwnd.unwrap_or(send),
        recv_window: options.rcvwnd.unwrap_or(receive),
        ack_nodelay: options.acknodelay.unwrap_or(false),
        ..named
    })
}

/// The password and the cipher, and what is to be said of them.
fn key(options: &Both) -> Result<(String, PacketKind, Vec<String>), Failure> {
    let environment = || std::env::var("KCPTUN_KEY").ok();
    let key = options.key.clone().or_else(environment);
    let key = key.unwrap_or_else(|| DEFAULT_KEY.to_owned());
    let name = options.crypt.as_deref().unwrap_or("aes");
    let Ok(kind) = name.parse::<PacketKind>() else {
        let failure = Failure::new(Code::Config, format!("--crypt {name}: no such cipher"));
        let all = PacketKind::ALL.map(PacketKind::name);
        return Err(match nearest(name, all) {
            Some(near) => failure.hint(format!("did you mean `{near}`?")),
            None => failure.hint(format!("there are {}", all.join(", "))),
        });
    };
    let mut warnings = Vec::new();
    match kind {
        PacketKind::None | PacketKind::Null => {
            warnings.push(format!("crypt {kind}: everybody on the way can read along"));
        }
        _ if key == DEFAULT_KEY => {
            warnings.push("the key is kcptun's default, which everybody knows".to_owned());
        }
        PacketKind::Aes128Gcm => {}
        _ => warnings.push(format!(
            "crypt {kind} hides what is said, but who knows it can change it; aes-128-gcm \
             authenticates, where both ends have it"
        )),
    }
    Ok((key, kind, warnings))
}

/// The pads of QPP, if it is switched on, from the password as kcptun has it.
fn pads(
    options: &Both,
    key: &str,
    warnings: &mut Vec<String>,
) -> Result<Option<Arc<Pads>>, Failure> {
    if options.qpp != Some(true) {
        return Ok(None);
    }
    let count = options.qpp_count.unwrap_or(61);
    let Some(pads) = Pads::new(key.as_bytes(), count) else {
        let what = "--QPPCount must be greater than 0 when QPP is enabled";
        return Err(Failure::new(Code::Config, what));
    };
    warnings.extend(qpp::doubts(key.len(), count));
    Ok(Some(Arc::new(pads)))
}

/// Options of kcptun that are read and change nothing.
fn without_effect(options: &Both) -> Vec<String> {
    let mut found = Vec::new();
    if options.dscp.unwrap_or(0) != 0 {
        found.push("dscp has no effect: datagrams are not marked");
    }
    if options.sockbuf.unwrap_or(SOCKBUF) != SOCKBUF {
        found.push("sockbuf has no effect: sockets ask for 4 MiB");
    }
    if options.pprof == Some(true) {
        found.push("pprof has no effect: there is no profiling server");
    }
    if options
        .log
        .as_ref()
        .is_some_and(|path| !path.as_os_str().is_empty())
    {
        found.push("log has no effect: redirect the standard error");
    }
    found.into_iter().map(str::to_owned).collect()
}

fn smux(options: &Both, role: Role) -> Result<adit_smux::Settings, Failure> {
    let wrong = |what: String| Failure::new(Code::Config, what);
    let version = match options.smuxver.unwrap_or(2) {
        1 => Version::V1,
        2 => Version::V2,
        other => return Err(wrong(format!("--smuxver {other} is neither 1 nor 2"))),
    };
    let mut config = adit_smux_proto::Config::new(version, role);
    let keepalive = Duration::from_secs(options.keepalive.unwrap_or(10).into());
    config.session_buffer = options.smuxbuf.unwrap_or(config.session_buffer);
    config.stream_buffer = options.streambuf.unwrap_or(config.stream_buffer);
    config.max_frame = options.framesize.unwrap_or(config.max_frame);
    config.keepalive = Some(keepalive);
    config.timeout = config.timeout.max(keepalive * 3);
    adit_smux_proto::Session::new(config.clone(), adit_net::ambient::now())
        .map_err(|why| wrong(format!("smux: {why}")))?;
    Ok(adit_smux::Settings {
        config,
        compress: !options.nocomp.unwrap_or(false),
        pads: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::kcp::ClientOwn;

    fn client(text: &str) -> Result<(ClientOwn, Both), String> {
        read(text, ClientOwn::NAMES)
    }

    fn made(options: Both, role: Role) -> Plan {
        plan(options, role).unwrap_or_else(|why| panic!("{why:?}"))
    }

    #[test]
    fn a_file_of_kcptun_is_read_and_wins() {
        let (own, file) = client(
            r#"{"remoteaddr": "vps:29900", "Key": "k", "crypt": "salsa20", "mode": "fast3",
                "mtu": 1200, "sndwnd": 2048, "datashard": 0, "nocomp": true, "smuxver": 1,
                "qpp-count": 61, "qpp": false, "conn": 4, "pprof": true, "quiet": true}"#,
        )
        .unwrap();
        assert_eq!(
            (own.remoteaddr.as_deref(), own.conn),
            (Some("vps:29900"), Some(4))
        );
        let typed = Both {
            mtu: Some(1000),
            rcvwnd: Some(77),
            ..Both::default()
        };
        let plan = made(file.or(typed), Role::Client);
        assert_eq!((plan.kcp.mtu, plan.kcp.kcp.recv_window), (1200, 77));
        assert_eq!(
            (plan.kcp.kcp.interval_ms, plan.kcp.kcp.send_window),
            (10, 2048)
        );
        assert_eq!(plan.kcp.fec, None);
        assert!(!plan.smux.compress && plan.smux.config.version == Version::V1);
        assert_eq!(plan.warnings.len(), 2, "{:?}", plan.warnings);
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
            let why = client(text).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn defaults_are_those_of_kcptun() {
        for (role, windows) in [(Role::Client, (128, 512)), (Role::Server, (1024, 1024))] {
            let plan = made(Both::default(), role);
            let arq = plan.kcp.kcp;
            assert_eq!((arq.send_window, arq.recv_window), windows);
            assert_eq!((arq.nodelay, arq.interval_ms, arq.resend), (0, 30, 2));
            assert_eq!((plan.kcp.mtu, plan.smux.compress), (1350, true));
            assert_eq!(
                plan.kcp.fec.map(|fec| (fec.data, fec.parity)),
                Some((10, 3))
            );
            assert_eq!(
                plan.smux.config,
                adit_smux_proto::Config::new(Version::V2, role)
            );
        }
    }

    #[test]
    fn congestion_control_is_as_asked_for() {
        for (cc, mode, nc, wanted) in [
            (None, None, None, Congestion::Auto),
            (None, Some("manual"), None, Congestion::Reno),
            (None, Some("manual"), Some(1), Congestion::Off),
            (Some("bbr"), None, None, Congestion::Bbr),
            (Some("bbr"), Some("manual"), Some(0), Congestion::Bbr),
            (Some("off"), Some("fast3"), None, Congestion::Off),
            (Some("reno"), Some("fast3"), None, Congestion::Reno),
            (Some("auto"), Some("manual"), None, Congestion::Auto),
        ] {
            let options = Both {
                cc: cc.map(str::to_owned),
                mode: mode.map(str::to_owned),
                nc,
                ..Both::default()
            };
            let plan = made(options, Role::Client);
            assert_eq!(plan.kcp.kcp.congestion, wanted, "{cc:?} {mode:?} {nc:?}");
        }
    }

    #[test]
    fn what_cannot_be_had_is_refused() {
        let none = Both::default;
        for wrong in [
            Both {
                qpp: Some(true),
                qpp_count: Some(0),
                ..none()
            },
            Both {
                tcp: Some(true),
                ..none()
            },
            Both {
                crypt: Some("aes-256".into()),
                ..none()
            },
            Both {
                mode: Some("fast4".into()),
                ..none()
            },
            Both {
                cc: Some("cubic".into()),
                ..none()
            },
            Both {
                smuxver: Some(3),
                ..none()
            },
            Both {
                mtu: Some(9000),
                ..none()
            },
            Both {
                datashard: Some(255),
                ..none()
            },
            Both {
                keepalive: Some(0),
                ..none()
            },
            Both {
                smuxbuf: Some(1000),
                ..none()
            },
        ] {
            assert!(plan(wrong.clone(), Role::Client).is_err(), "{wrong:?}");
        }
    }
}
