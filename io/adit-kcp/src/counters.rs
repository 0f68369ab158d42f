//! The counters of kcp-go, under its names and in its order.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($(#[doc = $help:literal] $kind:ident $field:ident $name:literal,)+) => {
        /// A snapshot of [`Counters`], as kcp-go's `Snmp`: the columns of kcptun's log.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Counts {
            $(#[doc = $help] pub $field: u64,)+
        }

        impl Counts {
            /// The names, in the order of the columns.
            pub const NAMES: [&'static str; 30] = [$($name),+];

            /// Returns the values, in the order of the columns.
            #[must_use]
            pub const fn values(&self) -> [u64; 30] {
                [$(self.$field),+]
            }

            /// Returns the metadata and the value of each counter, in the order of the columns.
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

        /// Counters of all sockets that share them.
        #[derive(Debug, Default)]
        pub struct Counters {
            $(pub(super) $field: AtomicU64,)+
        }

        impl Counters {
            /// Returns the current values.
            #[must_use]
            pub fn counts(&self) -> Counts {
                Counts {
                    $($field: self.$field.load(Ordering::Relaxed),)+
                }
            }
        }
    };
}

/// One value of [`Counts`] with its metadata, for a metrics exporter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Name in the style of Prometheus: `bytes_sent`.
    pub key: &'static str,
    /// Description, one sentence.
    pub help: &'static str,
    /// `counter`, or `gauge` for a value that may decrease.
    pub kind: &'static str,
    /// The value.
    pub value: u64,
}

counters! {
    /// Bytes from the application.
    counter bytes_sent "BytesSent",
    /// Bytes to the application.
    counter bytes_received "BytesReceived",
    /// Maximum number of sessions at a time.
    gauge max_conn "MaxConn",
    /// Sessions opened by this end.
    counter active_opens "ActiveOpens",
    /// Sessions opened by peers.
    counter passive_opens "PassiveOpens",
    /// Current sessions.
    gauge curr_estab "CurrEstab",
    /// Errors of the socket.
    counter in_errs "InErrs",
    /// Datagrams that did not pass the check: another key, or damaged.
    counter in_csum_errors "InCsumErrors",
    /// Datagrams that were not KCP, or not to their end.
    counter kcp_in_errors "KCPInErrors",
    /// Datagrams received.
    counter in_pkts "InPkts",
    /// Datagrams sent.
    counter out_pkts "OutPkts",
    /// Segments received.
    counter in_segs "InSegs",
    /// Segments sent.
    counter out_segs "OutSegs",
    /// Bytes of the datagrams received.
    counter in_bytes "InBytes",
    /// Bytes of the datagrams sent.
    counter out_bytes "OutBytes",
    /// Segments sent again.
    counter retrans_segs "RetransSegs",
    /// Segments sent again because later ones had arrived.
    counter fast_retrans_segs "FastRetransSegs",
    /// Segments sent again because there was nothing else to send.
    counter early_retrans_segs "EarlyRetransSegs",
    /// Segments sent again after a time-out.
    counter lost_segs "LostSegs",
    /// Segments received twice.
    counter repeat_segs "RepeatSegs",
    /// Groups of which all data was received.
    counter fec_full_shards "FECFullShards",
    /// Parity shards received.
    counter fec_parity_shards "FECParityShards",
    /// Invalid shards and groups.
    counter fec_errs "FECErrs",
    /// Datagrams restored by forward error correction.
    counter fec_recovered "FECRecovered",
    /// Incomplete groups of the session that received last.
    gauge fec_shard_set "FECShardSet",
    /// Number of the newest group of the session that received last.
    gauge fec_shard_min "FECShardMin",
    /// Segments waiting for the window, of the session that sent last.
    gauge ring_snd_queue "RingBufferSndQueue",
    /// Bytes waiting for the application, of the session that received last.
    gauge ring_rcv_queue "RingBufferRcvQueue",
    /// Segments in flight, of the session that sent last.
    gauge ring_snd_buffer "RingBufferSndBuffer",
    /// Out-of-band datagrams received.
    counter oob_packets "OOBPackets",
}

/// Adds `n`. Does not touch the cache line if there is nothing to add.
pub(super) fn add_nonzero(counter: &AtomicU64, n: u64) {
    if n > 0 {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}

impl Counters {
    pub(super) fn count_opened(&self, by_peer: bool) {
        add_nonzero(
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

    pub(super) fn count_closed(&self) {
        self.curr_estab.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_in_kcp_gos_order() {
        let counters = Counters::default();
        counters.count_opened(false);
        counters.count_opened(true);
        counters.count_closed();
        add_nonzero(&counters.oob_packets, 7);
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
