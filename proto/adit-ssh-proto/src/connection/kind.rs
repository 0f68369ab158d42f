//! What a channel is for: the types of RFC 4254 and of OpenSSH, with the fields of CHANNEL_OPEN.

use super::Own;
use crate::error::SshError;
use crate::wire::{Put, Reader};

/// Longest host of a peer, octets: no name is longer.
const MAX_HOST: usize = 255;
/// Longest path of a peer, octets.
const MAX_PATH: usize = 4096;

/// The types that are known here.
pub(super) const KNOWN: [&str; 8] = [
    "session",
    "direct-tcpip",
    "forwarded-tcpip",
    "direct-streamlocal@openssh.com",
    "forwarded-streamlocal@openssh.com",
    "x11",
    "auth-agent@openssh.com",
    "tun@openssh.com",
];

/// What a channel is for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChannelKind {
    /// A program, a shell or a subsystem (RFC 4254 section 6).
    Session,
    /// A connection from the server to somewhere (section 7.2).
    DirectTcpip {
        /// Host to connect to, as written.
        host: String,
        /// Its port.
        port: u16,
        /// Who wants it.
        originator: Originator,
    },
    /// A connection that came to an address the server listens on for us (section 7.2).
    ForwardedTcpip {
        /// The address that was connected.
        address: String,
        /// Its port.
        port: u16,
        /// Who has connected.
        originator: Originator,
    },
    /// OpenSSH: a connection from the server to a socket in its file system.
    DirectStreamlocal {
        /// The socket's path.
        path: Vec<u8>,
    },
    /// OpenSSH: a connection that came to a socket the server listens on for us.
    ForwardedStreamlocal {
        /// The socket's path.
        path: Vec<u8>,
    },
    /// A window for our display (section 6.3.2).
    X11 {
        /// Who has connected.
        originator: Originator,
    },
    /// OpenSSH: somebody wants our agent.
    Agent,
    /// OpenSSH: packets of a tunnel device.
    Tun {
        /// 1 is layer 3, 2 is layer 2.
        mode: u32,
        /// The unit; 0x7fffffff is any.
        unit: u32,
    },
    /// A type of the program's own. The names of the types above are not for it.
    Own(Own),
}

/// Who is behind a connection, as the peer tells it: for logs alone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Originator {
    /// Its address.
    pub address: String,
    /// Its port, which a peer may get wrong.
    pub port: u32,
}

/// Why a channel is not opened (RFC 4254 section 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpenFailure {
    /// The policy forbids it.
    Prohibited,
    /// The connection behind it failed.
    ConnectFailed,
    /// Nobody knows this type.
    UnknownType,
    /// Too many channels.
    Shortage,
    /// A code without a meaning here.
    Other(u32),
}

impl OpenFailure {
    /// The code on the wire.
    #[must_use]
    pub const fn code(self) -> u32 {
        match self {
            Self::Prohibited => 1,
            Self::ConnectFailed => 2,
            Self::UnknownType => 3,
            Self::Shortage => 4,
            Self::Other(code) => code,
        }
    }

    /// The reason of a code.
    #[must_use]
    pub const fn from_code(code: u32) -> Self {
        match code {
            1 => Self::Prohibited,
            2 => Self::ConnectFailed,
            3 => Self::UnknownType,
            4 => Self::Shortage,
            other => Self::Other(other),
        }
    }
}

impl ChannelKind {
    /// The type's name on the wire.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Session => "session",
            Self::DirectTcpip { .. } => "direct-tcpip",
            Self::ForwardedTcpip { .. } => "forwarded-tcpip",
            Self::DirectStreamlocal { .. } => "direct-streamlocal@openssh.com",
            Self::ForwardedStreamlocal { .. } => "forwarded-streamlocal@openssh.com",
            Self::X11 { .. } => "x11",
            Self::Agent => "auth-agent@openssh.com",
            Self::Tun { .. } => "tun@openssh.com",
            Self::Own(own) => own.name(),
        }
    }

    /// Whether a type is one that is known here, and so is none of a program's own.
    #[must_use]
    pub fn is_known(name: &str) -> bool {
        KNOWN.contains(&name)
    }

    /// Reads the fields of a type. The inner error is what the peer is told: it goes on.
    pub(super) fn parse(
        name: &[u8],
        r: &mut Reader<'_>,
    ) -> Result<Result<Self, OpenFailure>, SshError> {
        let kind = match name {
            b"session" => Ok(Self::Session),
            b"direct-tcpip" => host_port(r)?.map(|(host, port, originator)| Self::DirectTcpip {
                host,
                port,
                originator,
            }),
            b"forwarded-tcpip" => {
                host_port(r)?.map(|(address, port, originator)| Self::ForwardedTcpip {
                    address,
                    port,
                    originator,
                })
            }
            b"direct-streamlocal@openssh.com" => {
                let path = path(r.string()?);
                // Reserved, in the place of the originator.
                r.string()?;
                r.u32()?;
                path.map(|path| Self::DirectStreamlocal { path })
            }
            b"forwarded-streamlocal@openssh.com" => {
                let path = path(r.string()?);
                r.string()?;
                path.map(|path| Self::ForwardedStreamlocal { path })
            }
            b"x11" => originator(r)?.map(|originator| Self::X11 { originator }),
            b"auth-agent@openssh.com" => Ok(Self::Agent),
            b"tun@openssh.com" => Ok(Self::Tun {
                mode: r.u32()?,
                unit: r.u32()?,
            }),
            _ => return Ok(Err(OpenFailure::UnknownType)),
        };
        r.end()?;
        Ok(kind)
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Session | Self::Agent => {}
            Self::DirectTcpip {
                host: address,
                port,
                originator,
            }
            | Self::ForwardedTcpip {
                address,
                port,
                originator,
            } => {
                out.put_string(address.as_bytes());
                out.put_u32(u32::from(*port));
                originator.put(out);
            }
            Self::DirectStreamlocal { path } => {
                out.put_string(path);
                out.put_string(b"");
                out.put_u32(0);
            }
            Self::ForwardedStreamlocal { path } => {
                out.put_string(path);
                out.put_string(b"");
            }
            Self::X11 { originator } => originator.put(out),
            Self::Tun { mode, unit } => {
                out.put_u32(*mode);
                out.put_u32(*unit);
            }
            Self::Own(own) => out.put_raw(own.data()),
        }
    }
}

impl Originator {
    fn put(&self, out: &mut Vec<u8>) {
        out.put_string(self.address.as_bytes());
        out.put_u32(self.port);
    }
}

type HostPort = (String, u16, Originator);

fn host_port(r: &mut Reader<'_>) -> Result<Result<HostPort, OpenFailure>, SshError> {
    let (host, port, originator) = (host(r.string()?), r.u32()?, originator(r)?);
    let port = u16::try_from(port).map_err(|_| OpenFailure::ConnectFailed);
    Ok(host.and_then(|host| Ok((host, port?, originator?))))
}

fn originator(r: &mut Reader<'_>) -> Result<Result<Originator, OpenFailure>, SshError> {
    let (address, port) = (host(r.string()?), r.u32()?);
    Ok(address.map(|address| Originator { address, port }))
}

fn host(text: &[u8]) -> Result<String, OpenFailure> {
    let text = core::str::from_utf8(text).ok();
    text.filter(|text| text.len() <= MAX_HOST)
        .map(str::to_owned)
        .ok_or(OpenFailure::ConnectFailed)
}

fn path(path: &[u8]) -> Result<Vec<u8>, OpenFailure> {
    if path.is_empty() || path.len() > MAX_PATH || path.contains(&0) {
        return Err(OpenFailure::ConnectFailed);
    }
    Ok(path.to_vec())
}
