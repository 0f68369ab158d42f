//! The facts of a request that rules can ask for.

use core::net::{IpAddr, SocketAddr};

use adit_wire::{Host, Target};

use crate::name::NameKey;

/// The transport of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// A stream over TCP.
    Tcp,
    /// Datagrams over UDP.
    Udp,
}

impl Transport {
    pub(crate) const fn bit(self) -> u8 {
        match self {
            Self::Tcp => 1,
            Self::Udp => 2,
        }
    }

    /// Parses `tcp` or `udp` in any case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.eq_ignore_ascii_case("tcp") {
            return Some(Self::Tcp);
        }
        text.eq_ignore_ascii_case("udp").then_some(Self::Udp)
    }
}

/// The addresses of the target's name, as far as they are known. A target that is an address has no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addresses<'a> {
    /// The name has not been looked up, and can be.
    Unknown,
    /// The name has these addresses; the slice is empty if it is not to be looked up.
    Known(&'a [IpAddr]),
}

/// A request, prepared for decisions. A condition on a fact that is missing does not match.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The target, if it is an address.
    pub(crate) ip: Option<IpAddr>,
    /// The target, if it is a name, or a name for the address. A name of more than 255 bytes in ASCII is missing:
    /// no rule has it.
    pub(crate) name: Option<NameKey>,
    pub(crate) port: u16,
    pub(crate) source: Option<SocketAddr>,
    pub(crate) transport: Option<Transport>,
    pub(crate) user: Option<&'a str>,
    pub(crate) listener: Option<&'a str>,
}

impl<'a> Request<'a> {
    /// Prepares a request for a target. The name is converted to lower-case ASCII without the dot at its end.
    #[must_use]
    pub fn new(target: &Target) -> Self {
        let (ip, name) = match &target.host {
            Host::Ip(ip) => (Some(*ip), None),
            Host::Name(name) => (None, NameKey::new(name.as_str())),
        };
        Self {
            ip,
            name,
            port: target.port,
            source: None,
            transport: None,
            user: None,
            listener: None,
        }
    }

    /// Adds the address of the client.
    #[must_use]
    pub const fn with_source(mut self, source: SocketAddr) -> Self {
        self.source = Some(source);
        self
    }

    /// Adds the transport.
    #[must_use]
    pub const fn with_transport(mut self, transport: Transport) -> Self {
        self.transport = Some(transport);
        self
    }

    /// Adds the name of the authenticated user.
    #[must_use]
    pub const fn with_user(mut self, user: &'a str) -> Self {
        self.user = Some(user);
        self
    }

    /// Adds a name to a request for an address, for conditions on names; conditions on networks see the address. The
    /// name of a target that has one is not replaced.
    #[must_use]
    pub fn with_sniffed_name(mut self, name: &str) -> Self {
        if self.ip.is_some() {
            self.name = NameKey::new(name);
        }
        self
    }

    /// Adds the name of the listener that accepted the request.
    #[must_use]
    pub const fn with_listener(mut self, listener: &'a str) -> Self {
        self.listener = Some(listener);
        self
    }

    /// True if the target is a name.
    #[must_use]
    pub const fn has_name(&self) -> bool {
        self.ip.is_none()
    }
}
