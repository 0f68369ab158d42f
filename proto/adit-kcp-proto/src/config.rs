//! The settings of a session and the four named modes.

use crate::segment::HEADER_LEN;

/// Whose ways the session has where the two families of implementations differ.
///
/// A session of one speaks with a peer of the other; what differs is the estimator, the pace of
/// flushes, the back-off, a few limits, and which acknowledgements are left out as needless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compat {
    /// KCP in C: everything goes out at ticks of [`Config::interval_ms`] from the session's start.
    C,
    /// kcp-go and kcptun: writes and acknowledged data are answered at once, the interval bounds
    /// only how late an acknowledgement may be.
    #[default]
    Go,
}

/// What limits the sender besides the two windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Congestion {
    /// Nothing, as in every named mode.
    #[default]
    Off,
    /// KCP's window: slow start, one step per round trip, halved by each loss.
    Reno,
    /// A pace measured from acknowledgements: the bottleneck's rate and the shortest round trip.
    /// Loss alone does not slow it down; loss together with a growing delay does.
    Bbr,
    /// Nothing, until the sender is seen to overrun the path: much of what it sends is lost while
    /// the round trip has grown, or most of it. From then on as [`Self::Bbr`].
    Auto,
}

/// The settings of a session. Both ends may differ in all of them except `stream`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// 0: patient (time-outs of 100 ms and more, doubled); 1: hasty (30 ms, half as much again);
    /// 2: as 1 with a back-off of a half of the estimate, not of the last time-out.
    pub nodelay: u8,
    /// Pace of flushes in milliseconds, held in 10..=5000.
    pub interval_ms: u32,
    /// Later segments acknowledged before a missing one is sent again; 0 waits for its time-out.
    pub resend: u16,
    /// What limits the sender.
    pub congestion: Congestion,
    /// Segments in flight at most, and in stream mode also queued; held in 1..=65535.
    pub send_window: u32,
    /// Segments received and not read at most; held in 1..=65535, with [`Compat::C`] in
    /// 128..=65535 as its fragments need.
    pub recv_window: u32,
    /// Bytes of the largest datagram, what FEC, encryption and UDP add left out; held in
    /// 50..=65507.
    pub mtu: usize,
    /// Bytes without boundaries instead of messages. Must be equal at both ends.
    pub stream: bool,
    /// Transmissions of one segment after which the peer counts as gone, if it has been silent for
    /// [`Self::silence_ms`]; 0 never gives up.
    pub dead_link: u16,
    /// Milliseconds of silence that belong to it: hasty modes send a segment often within the few
    /// seconds for which a path may be down. By default as long as kcptun's smux waits.
    pub silence_ms: u32,
    /// Sends acknowledgements as soon as data arrives.
    pub ack_nodelay: bool,
    /// With [`Compat::Go`]: lets written data wait for the interval, to fill segments.
    pub write_delay: bool,
    /// Whose ways the session has.
    pub compat: Compat,
}

impl Config {
    /// Mode `normal` of kcptun: 40 ms.
    #[must_use]
    pub const fn normal() -> Self {
        Self::mode(0, 40)
    }

    /// Mode `fast` of kcptun: 30 ms.
    #[must_use]
    pub const fn fast() -> Self {
        Self::mode(0, 30)
    }

    /// Mode `fast2` of kcptun: 20 ms, hasty time-outs.
    #[must_use]
    pub const fn fast2() -> Self {
        Self::mode(1, 20)
    }

    /// Mode `fast3` of kcptun: 10 ms, hasty time-outs.
    #[must_use]
    pub const fn fast3() -> Self {
        Self::mode(1, 10)
    }

    const fn mode(nodelay: u8, interval_ms: u32) -> Self {
        Self {
            nodelay,
            interval_ms,
            resend: 2,
            congestion: Congestion::Off,
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

    /// Whether every value is within its bounds. [`Kcp::new`](crate::Kcp::new) brings those that
    /// are not to the nearest that is.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), ConfigError> {
        let held = self.bounded();
        if self.nodelay != held.nodelay {
            Err(ConfigError::Nodelay(self.nodelay))
        } else if self.interval_ms != held.interval_ms {
            Err(ConfigError::Interval(self.interval_ms))
        } else if self.send_window != held.send_window {
            Err(ConfigError::SendWindow(self.send_window))
        } else if self.recv_window != held.recv_window {
            let (given, least) = (self.recv_window, self.least_window());
            Err(ConfigError::RecvWindow { given, least })
        } else if self.mtu != held.mtu {
            Err(ConfigError::Mtu(self.mtu))
        } else {
            Ok(())
        }
    }

    fn least_window(&self) -> u32 {
        match self.compat {
            Compat::C => Compat::C.recv_window(),
            Compat::Go => 1,
        }
    }

    /// Every value brought to its bounds.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        let least = self.least_window();
        self.nodelay = self.nodelay.min(2);
        self.interval_ms = self.interval_ms.clamp(10, 5000);
        self.send_window = self.send_window.clamp(1, WINDOW_MAX);
        self.recv_window = self.recv_window.clamp(least, WINDOW_MAX);
        self.mtu = self.mtu.clamp(MTU.0, MTU.1);
        self
    }

    /// Data bytes of a full segment, with an MTU brought to its bounds.
    #[must_use]
    pub fn mss(&self) -> usize {
        self.mtu.clamp(MTU.0, MTU.1) - HEADER_LEN
    }

    /// The longest data of a segment that is taken. The peer's MTU need not be ours; that of a
    /// kcp-go peer is 1500 at most, and more than ours is agreed on by whoever sets it.
    pub(crate) fn data_max(&self) -> usize {
        self.mtu.max(1500) - HEADER_LEN
    }
}

/// Why settings make no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No such patience.
    #[error("nodelay must be 0, 1 or 2, not {0}")]
    Nodelay(u8),
    /// A pace of flushes, in milliseconds, out of its bounds.
    #[error("the interval must lie between 10 and 5000 ms, not {0}")]
    Interval(u32),
    /// A send window, in segments, out of its bounds.
    #[error("the send window must lie between 1 and 65535 segments, not {0}")]
    SendWindow(u32),
    /// A receive window, in segments, out of its bounds.
    #[error("the receive window must lie between {least} and 65535 segments, not {given}")]
    RecvWindow {
        /// What was set.
        given: u32,
        /// The least with this [`Compat`].
        least: u32,
    },
    /// An MTU, in bytes, out of its bounds.
    #[error("the MTU of KCP must lie between 50 and 65507 bytes, not {0}")]
    Mtu(usize),
}

/// Bytes of a datagram: two segments of nearly nothing, and the most that UDP carries.
const MTU: (usize, usize) = (50, 65_507);
/// The field for the window has 16 bits.
const WINDOW_MAX: u32 = 65_535;

impl Compat {
    /// The receive window an end has by default, and takes the peer's to be until it hears of it.
    pub(crate) const fn recv_window(self) -> u32 {
        match self {
            Self::C => 128,
            Self::Go => 32,
        }
    }

    /// Milliseconds a closed window is waited for before the first question.
    pub(crate) const fn probe_wait(self) -> u64 {
        match self {
            Self::C => 5000,
            Self::Go => 500,
        }
    }

    /// Segments of a message at most.
    pub(crate) const fn fragments(self) -> usize {
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
        let held = wild.bounded();
        assert_eq!((held.interval_ms, held.send_window), (10, 1));
        assert_eq!((held.recv_window, held.mtu), (1, 50));
        let c = Config {
            compat: Compat::C,
            ..wild
        };
        assert_eq!(c.bounded().recv_window, 128);
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
            assert_eq!(config.bounded().check(), Ok(()));
        }
        assert_eq!(Config::normal().bounded(), Config::normal());
    }
}
