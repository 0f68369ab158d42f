//! Conversions to a target.

use std::net::SocketAddr;

use adit_wire::{Host, Target, TargetError};

/// A target, or text and addresses that can be converted to one.
pub trait IntoTarget {
    /// Converts to a target. Names are not resolved: the proxy does that.
    ///
    /// # Errors
    ///
    /// See [`TargetError`].
    fn into_target(self) -> Result<Target, TargetError>;
}

impl IntoTarget for Target {
    fn into_target(self) -> Result<Target, TargetError> {
        Ok(self)
    }
}

impl IntoTarget for &Target {
    fn into_target(self) -> Result<Target, TargetError> {
        Ok(self.clone())
    }
}

impl IntoTarget for SocketAddr {
    fn into_target(self) -> Result<Target, TargetError> {
        Ok(self.into())
    }
}

/// `host:port`, with IPv6 addresses in brackets.
impl IntoTarget for &str {
    fn into_target(self) -> Result<Target, TargetError> {
        self.parse()
    }
}

/// `host:port`, with IPv6 addresses in brackets.
impl IntoTarget for &String {
    fn into_target(self) -> Result<Target, TargetError> {
        self.parse()
    }
}

/// `host:port`, with IPv6 addresses in brackets.
impl IntoTarget for String {
    fn into_target(self) -> Result<Target, TargetError> {
        self.parse()
    }
}

/// A name or an address, and a port.
impl IntoTarget for (&str, u16) {
    fn into_target(self) -> Result<Target, TargetError> {
        Ok(Target::new(Host::parse(self.0)?, self.1))
    }
}
