//! Requests outside of channels (RFC 4254 sections 4 and 7.1, OpenSSH's `PROTOCOL`).

use adit_wire::Role;

use super::{CustomMessage, WantReply};
use crate::error::SshError;
use crate::wire::{MessageReader, SshBufMut};

/// Maximum number of keys in one message; hosts usually have fewer than ten.
const MAX_KEYS: usize = 64;

/// Names of the built-in requests.
pub(super) const KNOWN: [&str; 8] = [
    "tcpip-forward",
    "cancel-tcpip-forward",
    "streamlocal-forward@openssh.com",
    "cancel-streamlocal-forward@openssh.com",
    KEEPALIVE,
    "hostkeys-00@openssh.com",
    "hostkeys-prove-00@openssh.com",
    "no-more-sessions@openssh.com",
];

/// A keepalive, outside of channels or in one.
pub(super) const KEEPALIVE: &str = "keepalive@openssh.com";

/// A request or a statement outside of channels.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GlobalRequest {
    /// Asks the server to listen, and to forward connections.
    TcpipForward {
        /// Address to listen on: empty, `0.0.0.0`, `::`, `localhost` or any other, as written.
        address: String,
        /// Port to listen on; 0 lets the server choose.
        port: u16,
    },
    /// Asks the server to stop listening.
    CancelTcpipForward {
        /// Address as it was requested.
        address: String,
        /// Port as it was bound.
        port: u16,
    },
    /// OpenSSH: asks the server to listen on a Unix socket.
    StreamlocalForward {
        /// Path of the socket.
        path: Vec<u8>,
    },
    /// OpenSSH: asks the server to stop listening on a Unix socket.
    CancelStreamlocalForward {
        /// Path of the socket.
        path: Vec<u8>,
    },
    /// OpenSSH: any answer proves that the peer is alive. The peer's keepalives are answered here.
    KeepAlive,
    /// OpenSSH: lists all keys of the host.
    HostKeys(Vec<Vec<u8>>),
    /// OpenSSH: asks the server to prove possession of these keys. The answer's data is the
    /// signatures.
    HostKeysProve(Vec<Vec<u8>>),
    /// OpenSSH: no more sessions will be requested; from now on, they are refused here.
    NoMoreSessions,
    /// An application-defined request, whose name must not be one of the above.
    Custom {
        /// Name and data.
        own: CustomMessage,
        /// Indicates if an answer is wanted.
        want: WantReply,
    },
}

/// Identifies a local request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GlobalRequestId(pub(super) u64);

/// The obligation to answer a request of the peer. If it is dropped, the peer waits for this answer
/// and for those to later requests.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct PendingGlobalReply {
    pub(super) sequence: u64,
    /// The peer asked the server to choose a port.
    pub(super) chooses_port: bool,
}

/// The answer to a request outside of channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GlobalAnswer {
    /// The request was refused.
    Refused,
    /// The request was granted.
    Granted {
        /// Data of the answer, which is usually empty.
        data: Vec<u8>,
    },
    /// The request was granted: the server listens on this port.
    Bound {
        /// Bound port.
        port: u16,
    },
}

impl GlobalRequest {
    /// Returns the name on the wire.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        match self {
            Self::TcpipForward { .. } => b"tcpip-forward",
            Self::CancelTcpipForward { .. } => b"cancel-tcpip-forward",
            Self::StreamlocalForward { .. } => b"streamlocal-forward@openssh.com",
            Self::CancelStreamlocalForward { .. } => b"cancel-streamlocal-forward@openssh.com",
            Self::KeepAlive => KEEPALIVE.as_bytes(),
            Self::HostKeys(_) => b"hostkeys-00@openssh.com",
            Self::HostKeysProve(_) => b"hostkeys-prove-00@openssh.com",
            Self::NoMoreSessions => b"no-more-sessions@openssh.com",
            Self::Custom { own, .. } => own.name().as_bytes(),
        }
    }

    /// True if `name` is a built-in request, which an application-defined one must not use.
    #[must_use]
    pub fn is_builtin(name: &str) -> bool {
        KNOWN.contains(&name)
    }

    /// Returns whether the request asks for an answer.
    #[must_use]
    pub const fn want_reply(&self) -> WantReply {
        match self {
            Self::HostKeys(_) | Self::NoMoreSessions => WantReply::No,
            Self::Custom { want, .. } => *want,
            _ => WantReply::Yes,
        }
    }

    /// True if an end with this role may receive the request.
    pub(super) const fn is_for(&self, role: Role) -> bool {
        match self {
            Self::KeepAlive | Self::Custom { .. } => true,
            Self::HostKeys(_) => matches!(role, Role::Client),
            _ => matches!(role, Role::Server),
        }
    }

    /// Parses the fields of a request; `None` if the name is not valid or the data is too long.
    pub(super) fn parse(
        name: &[u8],
        want: WantReply,
        r: &mut MessageReader<'_>,
    ) -> Result<Option<Self>, SshError> {
        let request = match name {
            b"tcpip-forward" => {
                let (address, port) = parse_address(r)?;
                Self::TcpipForward { address, port }
            }
            b"cancel-tcpip-forward" => {
                let (address, port) = parse_address(r)?;
                Self::CancelTcpipForward { address, port }
            }
            b"streamlocal-forward@openssh.com" => Self::StreamlocalForward {
                path: r.read_string()?.to_vec(),
            },
            b"cancel-streamlocal-forward@openssh.com" => Self::CancelStreamlocalForward {
                path: r.read_string()?.to_vec(),
            },
            b"keepalive@openssh.com" => return Ok(Some(Self::KeepAlive)),
            b"hostkeys-00@openssh.com" => Self::HostKeys(parse_keys(r)?),
            b"hostkeys-prove-00@openssh.com" => Self::HostKeysProve(parse_keys(r)?),
            b"no-more-sessions@openssh.com" => Self::NoMoreSessions,
            _ => {
                let own = CustomMessage::from_wire(name, r.remaining());
                return Ok(own.map(|own| Self::Custom { own, want }));
            }
        };
        r.expect_end()?;
        Ok(Some(request))
    }

    pub(super) fn encode_fields(&self, out: &mut Vec<u8>) {
        match self {
            Self::TcpipForward { address, port } | Self::CancelTcpipForward { address, port } => {
                out.put_string(address.as_bytes());
                out.put_u32(u32::from(*port));
            }
            Self::StreamlocalForward { path } | Self::CancelStreamlocalForward { path } => {
                out.put_string(path);
            }
            Self::KeepAlive | Self::NoMoreSessions => {}
            Self::HostKeys(keys) | Self::HostKeysProve(keys) => {
                for key in keys {
                    out.put_string(key);
                }
            }
            Self::Custom { own, .. } => out.put_raw(own.data()),
        }
    }
}

fn parse_address(r: &mut MessageReader<'_>) -> Result<(String, u16), SshError> {
    let address = r.read_text()?.to_owned();
    let port = u16::try_from(r.read_u32()?).map_err(|_| r.malformed_error())?;
    Ok((address, port))
}

fn parse_keys(r: &mut MessageReader<'_>) -> Result<Vec<Vec<u8>>, SshError> {
    let mut keys = Vec::new();
    while !r.remaining().is_empty() {
        if keys.len() == MAX_KEYS {
            return Err(SshError::TooMuch {
                what: "number of host keys",
                limit: MAX_KEYS,
            });
        }
        keys.push(r.read_string()?.to_vec());
    }
    Ok(keys)
}
