//! `udp+fec://`: datagrams with forward error correction, without retransmission.

use core::time::Duration;

use crate::schema::{ParamKey, PositiveNumber, ShortWait, WholeNumber, shared_param};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::definition::Carrier;
use crate::scheme::endpoint_types::{CarrierSettings, FecSettings, Hop, ListenerConfig, ServerHop};
use crate::scheme::kcp::{self, text::KcpCrypt};
use crate::text::ConfigError;

static DATA: ParamKey<PositiveNumber> =
    ParamKey::new("data", PositiveNumber(3), "Number of datagrams in a group.");
static PARITY: ParamKey<PositiveNumber> = ParamKey::new(
    "parity",
    PositiveNumber(1),
    "Number of datagrams of a group that can be lost.",
);
static MTU: ParamKey<PositiveNumber> = ParamKey::new(
    "mtu",
    PositiveNumber(1472),
    "Maximum UDP payload in bytes, up to 1500. Longer datagrams are dropped.",
);
static WAIT: ParamKey<ShortWait> = ParamKey::new(
    "wait",
    ShortWait(Duration::from_millis(10)),
    "Maximum time that a datagram waits for its group to fill up, up to 450ms; then it, or the \
     parity, is sent once more.",
);

pub(crate) static CARRIER: Carrier = Carrier {
    name: "fec",
    doc: "Datagrams with forward error correction, for games and calls: lost datagrams are restored \
          from the rest of their group, without retransmission or waiting. A datagram arrives once \
          or not at all, and not necessarily in order. The listener names the target; use the hop \
          after `udp://HOST:PORT` without one. Both ends need the same `key`, `crypt` and `kcp9`.",
    params: &[
        shared_param(&kcp::KEY),
        shared_param(&kcp::CRYPT),
        shared_param(&kcp::KCP9),
        shared_param(&DATA),
        shared_param(&PARITY),
        shared_param(&MTU),
        shared_param(&WAIT),
    ],
    listen: add_to_listener,
    hop: add_to_hop,
};

/// Maximum of `wait`. A longer wait would not help.
const LONGEST_WAIT: Duration = Duration::from_millis(450);

/// Adds error correction to a listener.
fn add_to_listener(
    builder: &mut EndpointBuilder<'_, '_>,
    mut listen: ListenerConfig,
) -> Option<ListenerConfig> {
    listen.carrier = Some(read_settings(builder)?);
    Some(listen)
}

/// Adds error correction to a hop.
fn add_to_hop(builder: &mut EndpointBuilder<'_, '_>, mut hop: ServerHop) -> Option<Hop> {
    hop.carrier = Some(read_settings(builder)?);
    Some(Hop::Server(hop))
}

/// Reads all keys of the carrier.
fn read_settings(builder: &mut EndpointBuilder<'_, '_>) -> Option<CarrierSettings> {
    let seal = kcp::read_seal(builder, KcpCrypt::Aead, None);
    let count = |count: PositiveNumber| WholeNumber(u32::try_from(count.0).unwrap_or(u32::MAX)).0;
    let (data, parity) = (count(builder.get(&DATA)), count(builder.get(&PARITY)));
    let span = builder.value_span(&PARITY);
    let shards = kcp::read_shards(builder, data, parity, span)?;
    let wait = builder.get(&WAIT).0;
    if wait > LONGEST_WAIT {
        let span = builder.value_span(&WAIT);
        builder.report_error(ConfigError::new(span, "a datagram waits at most 450ms"));
    }
    let fec = FecSettings {
        shards: shards?,
        mtu: builder.get(&MTU).0,
        wait,
        seal: seal?,
    };
    let span = builder.value_span(&MTU);
    kcp::check_mtu(builder, fec.mtu, fec.overhead(), span)?;
    kcp::warn_unprotected(builder, &fec.seal);
    Some(CarrierSettings::Fec(Box::new(fec)))
}
