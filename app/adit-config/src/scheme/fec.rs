//! `udp+fec://`: datagrams with forward error correction, without retransmission.

use core::time::Duration;

use crate::schema::{Count, Key, Wait, Whole, both};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::definition::Carrier;
use crate::scheme::kcp::{self, text::Crypt};
use crate::scheme::typed::{Carried, Fec, Hop, Listen, ServerHop};
use crate::text::Flaw;

static DATA: Key<Count> = Key::new("data", Count(3), "Number of datagrams in a group.");
static PARITY: Key<Count> = Key::new(
    "parity",
    Count(1),
    "Number of datagrams of a group that can be lost.",
);
static MTU: Key<Count> = Key::new(
    "mtu",
    Count(1472),
    "Maximum UDP payload in bytes, up to 1500. Longer datagrams are dropped.",
);
static WAIT: Key<Wait> = Key::new(
    "wait",
    Wait(Duration::from_millis(10)),
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
        both(&kcp::KEY),
        both(&kcp::CRYPT),
        both(&kcp::KCP9),
        both(&DATA),
        both(&PARITY),
        both(&MTU),
        both(&WAIT),
    ],
    listen,
    hop,
};

/// Maximum of `wait`. A longer wait would not help.
const LONGEST_WAIT: Duration = Duration::from_millis(450);

/// Adds error correction to a listener.
fn listen(builder: &mut EndpointBuilder<'_, '_>, mut listen: Listen) -> Option<Listen> {
    listen.carried = Some(read(builder)?);
    Some(listen)
}

/// Adds error correction to a hop.
fn hop(builder: &mut EndpointBuilder<'_, '_>, mut hop: ServerHop) -> Option<Hop> {
    hop.carried = Some(read(builder)?);
    Some(Hop::Server(hop))
}

/// Reads all keys of the carrier.
fn read(builder: &mut EndpointBuilder<'_, '_>) -> Option<Carried> {
    let seal = kcp::seal(builder, Crypt::Aead, None);
    let count = |count: Count| Whole(u32::try_from(count.0).unwrap_or(u32::MAX)).0;
    let (data, parity) = (count(builder.get(&DATA)), count(builder.get(&PARITY)));
    let span = builder.value_span(&PARITY);
    let shards = kcp::shards(builder, data, parity, span)?;
    let wait = builder.get(&WAIT).0;
    if wait > LONGEST_WAIT {
        let span = builder.value_span(&WAIT);
        builder.problem(Flaw::new(span, "a datagram waits at most 450ms"));
    }
    let fec = Fec {
        shards: shards?,
        mtu: builder.get(&MTU).0,
        wait,
        seal: seal?,
    };
    let span = builder.value_span(&MTU);
    kcp::check_mtu(builder, fec.mtu, fec.overhead(), span)?;
    kcp::clear(builder, &fec.seal);
    Some(Carried::Fec(Box::new(fec)))
}
