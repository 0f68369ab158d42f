//! The SOCKS4 and SOCKS4a client.

use alloc::string::String;
use core::net::IpAddr;

use adit_wire::{Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress, Host, Target};

use super::{ClientError, read_reply};
use crate::{Command, Version};

const MAX_TEXT_LEN: usize = 255;

/// A request to an upstream SOCKS4a proxy. The handshake returns the address that the proxy bound.
///
/// An IPv4 target is sent as plain SOCKS4, a name with the 4a extension.
#[derive(Debug)]
pub struct Socks4Connect {
    command: Command,
    target: Target,
    user: String,
    opened: bool,
}

impl Socks4Connect {
    /// Creates a request for `command` to `target` with the USERID `user`, which is sent in
    /// cleartext and proves nothing.
    #[must_use]
    pub fn new(command: Command, target: Target, user: Option<String>) -> Self {
        Self {
            command,
            target,
            user: user.unwrap_or_default(),
            opened: false,
        }
    }

    fn write_request(&self, tx: &mut HandshakeOutput<'_>) -> Result<(), ClientError> {
        if self.command == Command::UdpAssociate {
            return Err(ClientError::NotInSocks4("UDP ASSOCIATE"));
        }
        if self.user.len() > MAX_TEXT_LEN || self.user.contains('\0') {
            return Err(ClientError::CredentialsForm);
        }
        // 0.0.0.x announces a name.
        let (ip, name) = match &self.target.host {
            Host::Ip(IpAddr::V4(ip)) => match ip.octets() {
                [0, 0, 0, _] => return Err(ClientError::NotInSocks4("address 0.0.0.x")),
                octets => (octets, None),
            },
            Host::Ip(IpAddr::V6(_)) => return Err(ClientError::NotInSocks4("IPv6")),
            Host::Name(name) => ([0, 0, 0, 1], Some(name)),
        };
        tx.extend_from_slice(&[0x04, self.command.to_byte()]);
        tx.extend_from_slice(&self.target.port.to_be_bytes());
        tx.extend_from_slice(&ip);
        tx.extend_from_slice(self.user.as_bytes());
        tx.extend_from_slice(&[0]);
        if let Some(name) = name {
            // A `Name` has no control characters, hence no NUL.
            tx.extend_from_slice(name.as_str().as_bytes());
            tx.extend_from_slice(&[0]);
        }
        Ok(())
    }
}

impl Handshake for Socks4Connect {
    type Output = Target;
    type Error = ClientError;

    fn step(
        &mut self,
        rx: &mut HandshakeInput<'_>,
        tx: &mut HandshakeOutput<'_>,
    ) -> Result<HandshakeProgress<Target>, ClientError> {
        if !self.opened {
            self.write_request(tx)?;
            self.opened = true;
        }
        read_reply(Version::V4, rx)
    }
}
