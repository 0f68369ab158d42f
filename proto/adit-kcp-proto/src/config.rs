//! The settings of a session and the four named modes.

use crate::segment::HEADER_LEN;

/// The family of implementations whose behavior a session follows.
///
/// Sessions of different families can talk to each other. They differ in the round-trip estimator,
/// the timing of flushes, the back-off, a few limits, and the acknowledgements that are omitted as
/// redundant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compat {
    /// KCP in C: all output happens at ticks of [`Config::interval_ms`] from the session's start.
    C,
    /// kcp-go and kcptun: writes and acknowledged data cause output immediately; the interval only
    /// limits the delay of acknowledgements.
    #[default]
    Go,
}

/// Limit of the sender besides the two windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum CongestionControl {
    /// No limit, as in all named modes.
    #[default]
    Off,
    /// KCP's congestion window: slow start, one step per round trip, halved by each loss.
    Reno,
    /// A pace measured from acknowledgements: the bottleneck's rate and the shortest round trip.
    /// Loss alone does not slow it down; loss together with a growing delay does.
    Bbr,
    /// No limit until the sender overruns the path: much of its data is lost while the round trip
    /// has grown, or most of its data. From then on as [`Self::Bbr`].
    Auto,
}

/// The settings of a session. Both ends may differ in all of them except `stream`.
///
/// Later versions may add fields: start from a preset, as in `Config { stream: true, ..Config::fast3() }`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// 0: patient (time-outs of at least 100 ms, doubled); 1: hasty (30 ms, increased by half);
    /// 2: as 1, with a back-off of half the estimate instead of half the last time-out.
    pub nodelay: u8,
    /// Interval of flushes in milliseconds, limited to 10..=5000.
    pub interval_ms: u32,
    /// Number of later segments acknowledged before a missing one is sent again; 0 waits for its
    /// time-out.
    pub resend: u16,
    /// Congestion control.
    pub congestion: CongestionControl,
    /// Maximum number of segments in flight, in stream mode including queued ones; limited to
    /// 1..=65535.
    pub send_window: u32,
    /// Maximum number of segments received and not read; limited to 1..=65535, and with
    /// [`Compat::C`] to 128..=65535, as its fragments need.
    pub recv_window: u32,
    /// Maximum size of a datagram in bytes, without the overhead of FEC, encryption and UDP;
    /// limited to 50..=65507.
    pub mtu: usize,
    /// True for a byte stream, false for messages. Must be equal at both ends.
    pub stream: bool,
    /// Number of transmissions of one segment after which the peer counts as gone, if it has also
    /// been silent for [`Self::silence_ms`]; 0 means never.
    pub dead_link: u16,
    /// Required silence in milliseconds. Hasty modes send a segment many times within the few
    /// seconds for which a path may be down. The default is the keep-alive time-out of kcptun's
    /// smux.
    pub silence_ms: u32,
    /// True to send acknowledgements as soon as data arrives.
    pub ack_nodelay: bool,
    /// With [`Compat::Go`]: true to let written data wait for the interval, to fill segments.
    pub write_delay: bool,
    /// The family of implementations to follow.
    pub compat: Compat,
}

impl Config {
    /// Mode `normal` of kcptun: 40 ms.
    #[must_use]
    pub const fn normal() -> Self {
        Self::with_mode(0, 40)
    }

    /// Mode `fast` of kcptun: 30 ms.
    #[must_use]
    pub const fn fast() -> Self {
        Self::with_mode(0, 30)
    }

    /// Mode `fast2` of kcptun: 20 ms, hasty time-outs.
    #[must_use]
    pub const fn fast2() -> Self {
        Self::with_mode(1, 20)
    }

    /// Mode `fast3` of kcptun: 10 ms, hasty time-outs.
    #[must_use]
    pub const fn fast3() -> Self {
        Self::with_mode(1, 10)
    }

    const fn with_mode(nodelay: u8, interval_ms: u32) -> Self {
        Self {
            nodelay,
            interval_ms,
            resend: 2,
            congestion: CongestionControl::Off,
            send_window: 128,
            recv_window: 512,
            mtu: 1400,
            stream: true,
            dead_link: 20,
            silence_ms: 30_000,
            ack_nodelay: false,
            write_delay: false,
            compat: Compat::Go,
        }
    }

    /// Checks that every value is within its bounds. [`KcpSession::new`](crate::KcpSession::new) sets the others
    /// to the nearest bound.
    ///
    /// # Errors
    ///
    /// The first value that is out of bounds.
    pub fn check(&self) -> Result<(), ConfigError> {
        let held = self.clamped();
        if self.nodelay != held.nodelay {
            Err(ConfigError::Nodelay(self.nodelay))
        } else if self.interval_ms != held.interval_ms {
            Err(ConfigError::Interval(self.interval_ms))
        } else if self.send_window != held.send_window {
            Err(ConfigError::SendWindow(self.send_window))
        } else if self.recv_window != held.recv_window {
            let (given, least) = (self.recv_window, self.min_recv_window());
            Err(ConfigError::RecvWindow { given, least })
        } else if self.mtu != held.mtu {
            Err(ConfigError::Mtu(self.mtu))
        } else {
            Ok(())
        }
    }

    fn min_recv_window(&self) -> u32 {
        match self.compat {
            Compat::C => Compat::C.default_recv_window(),
            Compat::Go => 1,
        }
    }

    /// Returns the settings with every value limited to its bounds.
    #[must_use]
    pub fn clamped(mut self) -> Self {
        let least = self.min_recv_window();
        self.nodelay = self.nodelay.min(2);
        self.interval_ms = self.interval_ms.clamp(10, 5000);
        self.send_window = self.send_window.clamp(1, WINDOW_MAX);
        self.recv_window = self.recv_window.clamp(least, WINDOW_MAX);
        self.mtu = self.mtu.clamp(MTU_BOUNDS.0, MTU_BOUNDS.1);
        self
    }

    /// Returns the payload of a full segment in bytes, with the MTU limited to its bounds.
    #[must_use]
    pub fn mss(&self) -> usize {
        self.mtu.clamp(MTU_BOUNDS.0, MTU_BOUNDS.1) - HEADER_LEN
    }

    /// Returns the maximum payload of a received segment in bytes. The peer's MTU need not be ours:
    /// that of a kcp-go peer is 1500 at most, and a larger one is configured at both ends.
    pub(crate) fn max_received_data(&self) -> usize {
        self.mtu.max(1500) - HEADER_LEN
    }
}

/// Error of settings that are out of bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// An unknown value of [`Config::nodelay`].
    #[error("nodelay must be 0, 1 or 2, not {0}")]
    Nodelay(u8),
    /// A flush interval out of bounds, in milliseconds.
    #[error("the interval must be between 10 and 5000 ms, not {0}")]
    Interval(u32),
    /// A send window out of bounds, in segments.
    #[error("the send window must be between 1 and 65535 segments, not {0}")]
    SendWindow(u32),
    /// A receive window out of bounds, in segments.
    #[error("the receive window must be between {least} and 65535 segments, not {given}")]
    RecvWindow {
        /// The configured value.
        given: u32,
        /// The minimum with this [`Compat`].
        least: u32,
    },
    /// An MTU out of bounds, in bytes.
    #[error("the MTU of KCP must be between 50 and 65507 bytes, not {0}")]
    Mtu(usize),
}

/// Bounds of a datagram in bytes: two nearly empty segments, and the maximum of UDP.
const MTU_BOUNDS: (usize, usize) = (50, 65_507);
/// The window field has 16 bits.
const WINDOW_MAX: u32 = 65_535;

impl Compat {
    /// Returns the default receive window, which is also assumed of a peer that has not sent its
    /// own.
    pub(crate) const fn default_recv_window(self) -> u32 {
        match self {
            Self::C => 128,
            Self::Go => 32,
        }
    }

    /// Returns the milliseconds between the closing of a window and the first probe.
    pub(crate) const fn first_probe_wait(self) -> u64 {
        match self {
            Self::C => 5000,
            Self::Go => 500,
        }
    }

    /// Returns the maximum number of segments in a message.
    pub(crate) const fn max_fragments(self) -> usize {
        match self {
            Self::C => 127,
            Self::Go => 255,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_held_in_their_bounds() {
        let wild = Config {
            interval_ms: 0,
            send_window: 0,
            recv_window: 0,
            mtu: 0,
            ..Config::fast3()
        };
        let held = wild.clamped();
        assert_eq!((held.interval_ms, held.send_window), (10, 1));
        assert_eq!((held.recv_window, held.mtu), (1, 50));
        let c = Config {
            compat: Compat::C,
            ..wild
        };
        assert_eq!(c.clamped().recv_window, 128);
        assert_eq!(wild.mss(), 26, "no underflow");
        let errors = [
            (Config { nodelay: 9, ..wild }, ConfigError::Nodelay(9)),
            (wild, ConfigError::Interval(0)),
            (
                Config {
                    interval_ms: 10,
                    ..wild
                },
                ConfigError::SendWindow(0),
            ),
            (
                Config {
                    recv_window: 127,
                    compat: Compat::C,
                    ..Config::fast()
                },
                ConfigError::RecvWindow {
                    given: 127,
                    least: 128,
                },
            ),
            (
                Config {
                    mtu: 49,
                    ..Config::fast()
                },
                ConfigError::Mtu(49),
            ),
        ];
        for (config, why) in errors {
            assert_eq!(config.check(), Err(why));
            assert_eq!(config.clamped().check(), Ok(()));
        }
        assert_eq!(Config::normal().clamped(), Config::normal());
    }
}
