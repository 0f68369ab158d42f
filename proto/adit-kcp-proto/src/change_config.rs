//! Changes of the settings during a session.

use alloc::boxed::Box;

use adit_wire::Time;

use crate::bbr::{BbrModel, PaceMode};
use crate::config::{Config, ConfigError, CongestionControl};
use crate::reno::RenoWindow;
use crate::session::KcpSession;

/// Error of [`KcpSession::change_config`].
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

impl KcpSession {
    /// Changes the settings of a running session, like `SetNoDelay`, `SetWindowSize`, `SetMtu`,
    /// `SetACKNoDelay`, `SetWriteDelay` and `SetStreamMode` of kcp-go. A window that becomes
    /// smaller than its content accepts nothing until there is space.
    ///
    /// # Errors
    ///
    /// See [`ChangeError`]. On an error nothing is changed.
    pub fn change_config(&mut self, now: Time, config: Config) -> Result<(), ChangeError> {
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
        if sends && !self.is_drained() || stream && self.readable_len() > 0 {
            return Err(ChangeError::Busy);
        }
        self.advance_clock(now);
        self.config = config;
        self.send.set_limits(&config);
        self.recv.set_limits(config.recv_window, config.stream);
        self.rtt.set_limits(config.nodelay != 0, config.interval_ms);
        if congestion || config.mtu != old.mtu {
            self.reno = RenoWindow::new(&config);
            self.bbr = BbrModel::for_config(&config).map(Box::new);
        }
        self.schedule_flush();
        Ok(())
    }
}

impl BbrModel {
    /// Returns the model for the configured congestion control, if it needs one.
    pub(crate) fn for_config(config: &Config) -> Option<Self> {
        match config.congestion {
            CongestionControl::Off | CongestionControl::Reno => None,
            CongestionControl::Bbr => Some(Self::new(config.mss(), PaceMode::Holding)),
            CongestionControl::Auto => Some(Self::new(config.mss(), PaceMode::Watching)),
        }
    }
}
