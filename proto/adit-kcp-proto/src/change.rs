//! Changes of the settings during a session.

use adit_wire::Time;

use crate::bbr::{Bbr, Mode};
use crate::config::{Config, ConfigError, Congestion};
use crate::kcp::Kcp;
use crate::reno::Reno;

/// Error of [`Kcp::change`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// A value is out of bounds.
    #[error("{0}")]
    Config(ConfigError),
    /// [`Config::compat`] differs.
    #[error("the compatibility family cannot change during a session")]
    Compat,
    /// [`Config::mtu`], [`Config::stream`] or [`Config::congestion`] differs while there is data
    /// that was split and counted by the old value.
    #[error(
        "the MTU, the stream mode and congestion control can change only while no data is in transit"
    )]
    Busy,
}

impl Kcp {
    /// Changes the settings of a running session, like `SetNoDelay`, `SetWindowSize`, `SetMtu`,
    /// `SetACKNoDelay`, `SetWriteDelay` and `SetStreamMode` of kcp-go. A window that becomes
    /// smaller than its content accepts nothing until there is space.
    ///
    /// # Errors
    ///
    /// See [`ChangeError`]. On an error nothing is changed.
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
    /// Returns the model for the configured congestion control, if it needs one.
    pub(crate) fn for_config(config: &Config) -> Option<Self> {
        match config.congestion {
            Congestion::Off | Congestion::Reno => None,
            Congestion::Bbr => Some(Self::new(config.mss(), Mode::Holding)),
            Congestion::Auto => Some(Self::new(config.mss(), Mode::Watching)),
        }
    }
}
