//! Carriers in the drawing of a plan.

use core::fmt::Write;

use super::format_count;
use crate::scheme::endpoint_types::{
    CarrierSettings, FecSettings, KcpSettings, ListenerConfig, ListenerKind, PacketSeal,
};
use crate::scheme::mode_name;
use crate::text::format_duration as time;

/// Describes the carrier of a listener, if it has one.
pub(super) fn carrier_line(listen: &ListenerConfig) -> Option<String> {
    Some(match (listen.carrier.as_ref()?, &listen.kind) {
        (CarrierSettings::Kcp(kcp), ListenerKind::Shadowsocks(server)) if server.udp => {
            format!("{}; UDP in streams only", describe_kcp(kcp))
        }
        (CarrierSettings::Kcp(kcp), _) => describe_kcp(kcp),
        (CarrierSettings::Fec(fec), _) => describe_fec(fec),
    })
}

/// Describes the carrier of a hop.
pub(super) fn hop_carrier_text(carried: &CarrierSettings) -> String {
    match carried {
        CarrierSettings::Kcp(kcp) => {
            let mut text = format!(
                "{}; {} kept open",
                describe_kcp(kcp),
                format_count(kcp.sessions, "session")
            );
            if let Some(age) = kcp.expire {
                let _ = write!(text, ", renewed after {}", time(age));
            }
            text
        }
        CarrierSettings::Fec(fec) => describe_fec(fec),
    }
}

/// Describes the settings of KCP.
fn describe_kcp(kcp: &KcpSettings) -> String {
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
        describe_crypt(&kcp.seal),
        kcp.smux.version.number(),
    )
}

/// Describes the settings of datagrams with error correction.
fn describe_fec(fec: &FecSettings) -> String {
    format!(
        "datagrams of at most {} bytes, mtu {}, FEC {}+{} after {}, crypt {}; no retransmission",
        fec.mtu.saturating_sub(fec.overhead()),
        fec.mtu,
        fec.shards.data,
        fec.shards.parity,
        time(fec.wait),
        describe_crypt(&fec.seal),
    )
}

/// Describes the encryption of packets.
fn describe_crypt(seal: &PacketSeal) -> String {
    match seal {
        PacketSeal::Session(_) => "aead, clients may change their address".to_owned(),
        PacketSeal::Packets { kind, check, .. } => match check {
            adit_crypto::packet::PacketCheck::HighwayHash => format!("{kind} of kcp9"),
            adit_crypto::packet::PacketCheck::Crc32 => kind.to_string(),
        },
    }
}
