//! Settings that change while a session lives.

use adit_wire::Time;

use crate::bbr::{Bbr, Mode};
use crate::config::{Config, ConfigError, Congestion};
use crate::kcp::Kcp;
use crate::reno::Reno;

/// Why a session keeps the settings that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// A value out of its bounds.
    #[error("{0}")]
    Config(ConfigError),
    /// [`Config::compat`] is another one.
    #[error("whose ways a session has is decided at its start")]
    Compat,
    /// [`Config::mtu`], [`Config::stream`] or [`Config::congestion`] is another one while data is
    /// under way, which was cut and counted by the old one.
    #[error(
        "the MTU, the stream mode and the congestion control change only while nothing is under way"
    )]
    Busy,
}

impl Kcp {
    /// Changes the settings from here on: what kcp-go has as `SetNoDelay`, `SetWindowSize`, `SetMtu`,
    /// `SetACKNoDelay`, `SetWriteDelay` and `SetStreamMode`. A window that becomes smaller than what
    /// it holds lets nothing new in until there is room.
    ///
    /// # Errors
    /// See [`ChangeError`]; nothing is changed then.
    pub fn change(&mut self, now: Time, config: Config) -> Result<(), ChangeError> {
        config.check().map_err(ChangeError::Config)?;
        let old = self.config;
        if config.compat != old.compat {
            return Err(ChangeError::Compat);
        }
        let (stream, congestion) = (
            config.stream != old.stream,
            config.congestion != old.congestion,
        );
        let sends = config.mtu != old.mtu || stream || congestion;
        if sends && !self.is_drained() || stream && self.readable() > 0 {
            return Err(ChangeError::Busy);
        }
        self.see(now);
        self.config = config;
        self.send.change(&config);
        self.recv.change(config.recv_window, config.stream);
        self.rtt.change(config.nodelay != 0, config.interval_ms);
        if congestion || config.mtu != old.mtu {
            self.reno = Reno::new(&config);
            self.bbr = Bbr::for_config(&config).map(Box::new);
        }
        self.schedule();
        Ok(())
    }
}

impl Bbr {
    /// The one that the settings ask for.
    pub(crate) fn for_config(config: &Config) -> Option<Self> {
        match config.congestion {
            Congestion::Off | Congestion::Reno => None,
            Congestion::Bbr => Some(Self::new(config.mss(), Mode::Holding)),
            Congestion::Auto => Some(Self::new(config.mss(), Mode::Watching)),
        }
    }
}
