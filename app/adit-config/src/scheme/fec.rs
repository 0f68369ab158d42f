//! `udp+fec://`: datagrams with forward error correction, never sent again.

use core::time::Duration;

use crate::schema::{Count, Key, Wait, Whole, both};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::definition::Carrier;
use crate::scheme::kcp::{self, text::Crypt};
use crate::scheme::typed::{Carried, Fec, Hop, Listen, ServerHop};
use crate::text::Flaw;

static DATA: Key<Count> = Key::new("data", Count(3), "Datagrams of a group.");
static PARITY: Key<Count> = Key::new("parity", Count(1), "How many of a group may be lost.");
static MTU: Key<Count> = Key::new(
    "mtu",
    Count(1472),
    "Bytes of the largest UDP payload, at most 1500. Longer datagrams are dropped.",
);
static WAIT: Key<Wait> = Key::new(
    "wait",
    Wait(Duration::from_millis(10)),
    "How long a datagram waits for its group to fill up; then it is sent once more, or the \
     parity is. Up to 450ms.",
);

pub(crate) static CARRIER: Carrier = Carrier {
    name: "fec",
    doc: "Datagrams with forward error correction, for games and calls: what is lost is restored \
          from the rest of its group, and nothing is ever sent again or waited for. A datagram \
          arrives once or not at all; its order is not kept. The listener names the target; the \
          hop belongs behind `udp://HOST:PORT` without one. Both ends need the same `key`, \
          `crypt` and `kcp9`.",
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

/// A longer wait would help nobody.
const LONGEST_WAIT: Duration = Duration::from_millis(450);

fn listen(builder: &mut EndpointBuilder<'_, '_>, mut listen: Listen) -> Option<Listen> {
    listen.carried = Some(read(builder)?);
    Some(listen)
}

fn hop(builder: &mut EndpointBuilder<'_, '_>, mut hop: ServerHop) -> Option<Hop> {
    hop.carried = Some(read(builder)?);
    Some(Hop::Server(hop))
}

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
