//! Channel types of RFC 4254 and of OpenSSH, with the fields of CHANNEL_OPEN.

use super::CustomMessage;
use crate::error::SshError;
use crate::wire::{MessageReader, SshBufMut};

/// Maximum length of a host from a peer, in bytes; host names are not longer.
const MAX_HOST: usize = 255;
/// Maximum length of a path from a peer, in bytes.
const MAX_PATH: usize = 4096;

/// Names of the built-in types.
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

/// Type of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChannelKind {
    /// A program, a shell or a subsystem (RFC 4254 section 6).
    Session,
    /// A connection that the server opens to a host (section 7.2).
    DirectTcpip {
        /// Host to connect to, as written.
        host: String,
        /// Port to connect to.
        port: u16,
        /// Origin of the connection.
        originator: Originator,
    },
    /// A connection to an address on which the server listens for the client (section 7.2).
    ForwardedTcpip {
        /// Address that was connected to.
        address: String,
        /// Port that was connected to.
        port: u16,
        /// Origin of the connection.
        originator: Originator,
    },
    /// OpenSSH: a connection that the server opens to a Unix socket.
    DirectStreamlocal {
        /// Path of the socket.
        path: Vec<u8>,
    },
    /// OpenSSH: a connection to a Unix socket on which the server listens for the client.
    ForwardedStreamlocal {
        /// Path of the socket.
        path: Vec<u8>,
    },
    /// An X11 connection to the client's display (section 6.3.2).
    X11 {
        /// Origin of the connection.
        originator: Originator,
    },
    /// OpenSSH: a connection to the client's agent.
    Agent,
    /// OpenSSH: packets of a tunnel device.
    Tun {
        /// Layer of the packets: 1 is layer 3, 2 is layer 2.
        mode: u32,
        /// Unit of the device; 0x7fffffff is any.
        unit: u32,
    },
    /// An application-defined type, whose name must not be one of the above.
    Custom(CustomMessage),
}

/// Origin of a connection as reported by the peer: for logs only.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Originator {
    /// Address of the origin.
    pub address: String,
    /// Port of the origin, which may be wrong.
    pub port: u32,
}

/// Reason why a channel is not opened (RFC 4254 section 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpenFailureReason {
    /// The policy forbids it.
    Prohibited,
    /// The connection to the target failed.
    ConnectFailed,
    /// The type is unknown.
    UnknownType,
    /// Too many channels.
    Shortage,
    /// An unknown reason code.
    Other(u32),
}

impl OpenFailureReason {
    /// Returns the code on the wire.
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

    /// Returns the reason for a code.
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
    /// Returns the type's name on the wire.
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
            Self::Custom(own) => own.name(),
        }
    }

    /// True if `name` is a built-in type, which an application-defined one must not use.
    #[must_use]
    pub fn is_builtin(name: &str) -> bool {
        KNOWN.contains(&name)
    }

    /// Parses the fields of a type. The inner error is the answer to the peer: the connection
    /// continues.
    pub(super) fn parse(
        name: &[u8],
        r: &mut MessageReader<'_>,
    ) -> Result<Result<Self, OpenFailureReason>, SshError> {
        let kind = match name {
            b"session" => Ok(Self::Session),
            b"direct-tcpip" => {
                parse_host_port(r)?.map(|(host, port, originator)| Self::DirectTcpip {
                    host,
                    port,
                    originator,
                })
            }
            b"forwarded-tcpip" => {
                parse_host_port(r)?.map(|(address, port, originator)| Self::ForwardedTcpip {
                    address,
                    port,
                    originator,
                })
            }
            b"direct-streamlocal@openssh.com" => {
                let path = check_path(r.read_string()?);
                // Reserved fields in place of the originator.
                r.read_string()?;
                r.read_u32()?;
                path.map(|path| Self::DirectStreamlocal { path })
            }
            b"forwarded-streamlocal@openssh.com" => {
                let path = check_path(r.read_string()?);
                r.read_string()?;
                path.map(|path| Self::ForwardedStreamlocal { path })
            }
            b"x11" => parse_originator(r)?.map(|originator| Self::X11 { originator }),
            b"auth-agent@openssh.com" => Ok(Self::Agent),
            b"tun@openssh.com" => Ok(Self::Tun {
                mode: r.read_u32()?,
                unit: r.read_u32()?,
            }),
            _ => return Ok(Err(OpenFailureReason::UnknownType)),
        };
        r.expect_end()?;
        Ok(kind)
    }

    pub(super) fn encode_fields(&self, out: &mut Vec<u8>) {
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
                originator.encode(out);
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
            Self::X11 { originator } => originator.encode(out),
            Self::Tun { mode, unit } => {
                out.put_u32(*mode);
                out.put_u32(*unit);
            }
            Self::Custom(own) => out.put_raw(own.data()),
        }
    }
}

impl Originator {
    fn encode(&self, out: &mut Vec<u8>) {
        out.put_string(self.address.as_bytes());
        out.put_u32(self.port);
    }
}

type HostPort = (String, u16, Originator);

fn parse_host_port(
    r: &mut MessageReader<'_>,
) -> Result<Result<HostPort, OpenFailureReason>, SshError> {
    let (host, port, originator) = (
        check_host(r.read_string()?),
        r.read_u32()?,
        parse_originator(r)?,
    );
    let port = u16::try_from(port).map_err(|_| OpenFailureReason::ConnectFailed);
    Ok(host.and_then(|host| Ok((host, port?, originator?))))
}

fn parse_originator(
    r: &mut MessageReader<'_>,
) -> Result<Result<Originator, OpenFailureReason>, SshError> {
    let (address, port) = (check_host(r.read_string()?), r.read_u32()?);
    Ok(address.map(|address| Originator { address, port }))
}

fn check_host(text: &[u8]) -> Result<String, OpenFailureReason> {
    let text = core::str::from_utf8(text).ok();
    text.filter(|text| text.len() <= MAX_HOST)
        .map(str::to_owned)
        .ok_or(OpenFailureReason::ConnectFailed)
}

fn check_path(path: &[u8]) -> Result<Vec<u8>, OpenFailureReason> {
    if path.is_empty() || path.len() > MAX_PATH || path.contains(&0) {
        return Err(OpenFailureReason::ConnectFailed);
    }
    Ok(path.to_vec())
}
