//! The counters of kcp-go, under its names and in its order.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($(#[doc = $help:literal] $kind:ident $field:ident $name:literal,)+) => {
        /// What was counted, as kcp-go's `Snmp`: the columns of kcptun's log.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Counts {
            $(#[doc = $help] pub $field: u64,)+
        }

        impl Counts {
            /// The names, in the order of the columns.
            pub const NAMES: [&'static str; 30] = [$($name),+];

            /// The values, in the order of the columns.
            #[must_use]
            pub const fn values(&self) -> [u64; 30] {
                [$(self.$field),+]
            }

            /// Everything that is known of each, in the order of the columns.
            #[must_use]
            pub const fn all(&self) -> [Count; 30] {
                [$(Count {
                    key: stringify!($field),
                    help: $help.trim_ascii(),
                    kind: stringify!($kind),
                    value: self.$field,
                }),+]
            }
        }

        /// Counters that all sockets they are given to add to.
        #[derive(Debug, Default)]
        pub struct Counters {
            $(pub(super) $field: AtomicU64,)+
        }

        impl Counters {
            /// The counts now.
            #[must_use]
            pub fn counts(&self) -> Counts {
                Counts {
                    $($field: self.$field.load(Ordering::Relaxed),)+
                }
            }
        }
    };
}

/// One of [`Counts`], for those who publish them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// In the way of Prometheus: `bytes_sent`
    pub key: &'static str,
    /// What it counts, in a sentence
    pub help: &'static str,
    /// `counter`, or `gauge` for what may become less
    pub kind: &'static str,
    /// How many
    pub value: u64,
}

counters! {
    /// Bytes from the application.
    counter bytes_sent "BytesSent",
    /// Bytes to the application.
    counter bytes_received "BytesReceived",
    /// Most sessions at a time.
    gauge max_conn "MaxConn",
    /// Sessions begun here.
    counter active_opens "ActiveOpens",
    /// Sessions begun by peers.
    counter passive_opens "PassiveOpens",
    /// Sessions now.
    gauge curr_estab "CurrEstab",
    /// Failures of the socket.
    counter in_errs "InErrs",
    /// Datagrams that did not pass the check: another key, or damaged.
    counter in_csum_errors "InCsumErrors",
    /// Datagrams that were not, or not to their end, KCP.
    counter kcp_in_errors "KCPInErrors",
    /// Datagrams that came.
    counter in_pkts "InPkts",
    /// Datagrams that were sent.
    counter out_pkts "OutPkts",
    /// Segments that came.
    counter in_segs "InSegs",
    /// Segments that were sent.
    counter out_segs "OutSegs",
    /// Bytes of the datagrams that came.
    counter in_bytes "InBytes",
    /// Bytes of the datagrams that were sent.
    counter out_bytes "OutBytes",
    /// Segments sent again.
    counter retrans_segs "RetransSegs",
    /// Of these, since later ones had arrived.
    counter fast_retrans_segs "FastRetransSegs",
    /// Of these, since there was nothing else to send.
    counter early_retrans_segs "EarlyRetransSegs",
    /// Of these, after a time-out.
    counter lost_segs "LostSegs",
    /// Segments that came twice.
    counter repeat_segs "RepeatSegs",
    /// Groups of which all data came.
    counter fec_full_shards "FECFullShards",
    /// Parity that came.
    counter fec_parity_shards "FECParityShards",
    /// Shards and groups that make no sense.
    counter fec_errs "FECErrs",
    /// Datagrams that correction restored.
    counter fec_recovered "FECRecovered",
    /// Groups of which shards wait for others, of the session that received last.
    gauge fec_shard_set "FECShardSet",
    /// The number of the newest group, of the session that received last.
    gauge fec_shard_min "FECShardMin",
    /// Segments that wait for a window, of the session that sent last.
    gauge ring_snd_queue "RingBufferSndQueue",
    /// Bytes that wait for the application, of the session that received last.
    gauge ring_rcv_queue "RingBufferRcvQueue",
    /// Segments in flight, of the session that sent last.
    gauge ring_snd_buffer "RingBufferSndBuffer",
    /// Datagrams beside the stream that came.
    counter oob_packets "OOBPackets",
}

/// Adds, and leaves the line of cache alone where there is nothing to add.
pub(super) fn add(counter: &AtomicU64, n: u64) {
    if n > 0 {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}

impl Counters {
    pub(super) fn opened(&self, by_peer: bool) {
        add(
            if by_peer {
                &self.passive_opens
            } else {
                &self.active_opens
            },
            1,
        );
        let now = self.curr_estab.fetch_add(1, Ordering::Relaxed) + 1;
        self.max_conn.fetch_max(now, Ordering::Relaxed);
    }

    pub(super) fn closed(&self) {
        self.curr_estab.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_in_kcp_gos_order() {
        let counters = Counters::default();
        counters.opened(false);
        counters.opened(true);
        counters.closed();
        add(&counters.oob_packets, 7);
        let counts = counters.counts();
        assert_eq!(counts.values()[2..6], [2, 1, 1, 1]);
        assert_eq!((Counts::NAMES[29], counts.values()[29]), ("OOBPackets", 7));
        assert_eq!(
            (Counts::NAMES[0], Counts::NAMES[14]),
            ("BytesSent", "OutBytes")
        );
        let [first, .., last] = counts.all();
        assert_eq!((first.key, first.kind), ("bytes_sent", "counter"));
        assert_eq!(first.help, "Bytes from the application.");
        assert_eq!((last.key, last.value), ("oob_packets", 7));
        let gauges = counts.all().into_iter().filter(|one| one.kind == "gauge");
        assert_eq!(gauges.count(), 7);
    }
}
