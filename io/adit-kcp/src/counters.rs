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

            /// Creates the counts from their values, in the order of the columns.
            #[must_use]
            pub const fn from_values(values: [u64; 30]) -> Self {
                let [$($field),+] = values;
                Self { $($field),+ }
            }

            /// Returns what was added since `before`, counts of the same counters at an earlier time. Of the gauges,
            /// only the current sessions are included, whose number may have decreased: the difference wraps around.
            #[must_use]
            pub const fn since(&self, before: &Self) -> Self {
                Self {
                    $($field: match Kind::$kind {
                        Kind::counter => self.$field.wrapping_sub(before.$field),
                        Kind::gauge => 0,
                    },)+
                }
                .with_sessions(self.curr_estab.wrapping_sub(before.curr_estab))
            }

            const fn with_sessions(mut self, current: u64) -> Self {
                self.curr_estab = current;
                self
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

            /// Adds what other counters have counted, those of another process for example: the counts themselves, or
            /// [what was added](Counts::since) to them. Of the gauges, only the current sessions are added.
            pub fn add_counts(&self, added: &Counts) {
                $(if matches!(Kind::$kind, Kind::counter) {
                    add_nonzero(&self.$field, added.$field);
                })+
                self.add_sessions(added.curr_estab);
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

/// The kind of a counter, by its name in the table below.
#[derive(Clone, Copy)]
#[allow(non_camel_case_types, reason = "they are the words of the table")]
enum Kind {
    counter,
    gauge,
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
        self.add_sessions(1);
    }

    /// Adds to the current sessions. A number that wraps around reduces them.
    fn add_sessions(&self, n: u64) {
        let before = self.curr_estab.fetch_add(n, Ordering::Relaxed);
        if n.cast_signed() > 0 {
            self.max_conn
                .fetch_max(before.wrapping_add(n), Ordering::Relaxed);
        }
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
        assert_eq!(Counts::from_values(counts.values()), counts);
    }

    /// The counters of a process go on in the next one, while sessions of the first one still count and end.
    #[test]
    fn what_was_added_is_counted_once() {
        let [old, new] = [Counters::default(), Counters::default()];
        old.count_opened(true);
        old.count_opened(true);
        add_nonzero(&old.in_pkts, 5);
        add_nonzero(&old.fec_shard_min, 9);
        let first = old.counts();
        new.add_counts(&first);
        new.count_opened(false);
        add_nonzero(&old.in_pkts, 3);
        old.count_closed();
        let second = old.counts();
        new.add_counts(&second.since(&first));
        old.count_closed();
        new.add_counts(&old.counts().since(&second));
        let sum = new.counts();
        assert_eq!(
            (sum.in_pkts, sum.passive_opens, sum.active_opens),
            (8, 2, 1)
        );
        assert_eq!((sum.curr_estab, sum.max_conn), (1, 3));
        assert_eq!(sum.fec_shard_min, 0, "it describes one session");
        assert_eq!(second.since(&second), Counts::default());
    }
}
