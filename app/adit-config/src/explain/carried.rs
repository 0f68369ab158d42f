//! Carriers in the drawing of a plan.

use core::fmt::Write;

use super::counted;
use crate::scheme::mode_name;
use crate::scheme::typed::{Carried, Fec, Kcp, Listen, ListenKind, PacketSeal};
use crate::text::write_duration as time;

/// Describes the carrier of a listener, if it has one.
pub(super) fn listener(listen: &Listen) -> Option<String> {
    Some(match (listen.carried.as_ref()?, &listen.kind) {
        (Carried::Kcp(kcp), ListenKind::Shadowsocks(server)) if server.udp => {
            format!("{}; UDP in streams only", streams(kcp))
        }
        (Carried::Kcp(kcp), _) => streams(kcp),
        (Carried::Fec(fec), _) => datagrams(fec),
    })
}

/// Describes the carrier of a hop.
pub(super) fn hop(carried: &Carried) -> String {
    match carried {
        Carried::Kcp(kcp) => {
            let mut text = format!(
                "{}; {} kept open",
                streams(kcp),
                counted(kcp.sessions, "session")
            );
            if let Some(age) = kcp.expire {
                let _ = write!(text, ", renewed after {}", time(age));
            }
            text
        }
        Carried::Fec(fec) => datagrams(fec),
    }
}

/// Describes the settings of KCP.
fn streams(kcp: &Kcp) -> String {
    let fec = match kcp.fec {
        Some(shards) => format!("FEC {}+{}", shards.data, shards.parity),
        None => "no FEC".to_owned(),
    };
    let comp = if kcp.compress { ", compressed" } else { "" };
    let qpp = match kcp.qpp {
        Some(pads) => format!(", QPP with {pads} pads"),
        None => String::new(),
    };
    format!(
        "KCP {}, mtu {} ({} for KCP), {fec}, crypt {}, smux {}{comp}{qpp}",
        mode_name(&kcp.arq),
        kcp.mtu,
        kcp.mtu.saturating_sub(kcp.overhead()),
        crypt(&kcp.seal),
        kcp.smux.version.number(),
    )
}

/// Describes the settings of datagrams with error correction.
fn datagrams(fec: &Fec) -> String {
    format!(
        "datagrams of at most {} bytes, mtu {}, FEC {}+{} after {}, crypt {}; no retransmission",
        fec.mtu.saturating_sub(fec.overhead()),
        fec.mtu,
        fec.shards.data,
        fec.shards.parity,
        time(fec.wait),
        crypt(&fec.seal),
    )
}

/// Describes the encryption of packets.
fn crypt(seal: &PacketSeal) -> String {
    match seal {
        PacketSeal::Session(_) => "aead, clients may change their address".to_owned(),
        PacketSeal::Packets { kind, check, .. } => match check {
            adit_crypto::packet::Check::HighwayHash => format!("{kind} of kcp9"),
            adit_crypto::packet::Check::Crc32 => kind.to_string(),
        },
    }
}
