//! Requests outside of channels (RFC 4254 sections 4 and 7.1, OpenSSH's `PROTOCOL`).

use adit_wire::Role;

use super::{Own, WantReply};
use crate::error::SshError;
use crate::wire::{Put, Reader};

/// Keys in one message. A host has a handful.
const MAX_KEYS: usize = 64;

/// The requests that are known here.
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

/// A sign of life, outside of channels or in one.
pub(super) const KEEPALIVE: &str = "keepalive@openssh.com";

/// Something wanted, or told, outside of channels.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GlobalRequest {
    /// The server is to listen and to forward what comes.
    TcpipForward {
        /// The address: empty, `0.0.0.0`, `::`, `localhost` or any other, as written.
        address: String,
        /// The port; 0 lets the server choose.
        port: u16,
    },
    /// The server is to stop that.
    CancelTcpipForward {
        /// The address, as it was asked for.
        address: String,
        /// The port, as it was bound.
        port: u16,
    },
    /// OpenSSH: the server is to listen on a socket in its file system.
    StreamlocalForward {
        /// The socket's path.
        path: Vec<u8>,
    },
    /// OpenSSH: the server is to stop that.
    CancelStreamlocalForward {
        /// The socket's path.
        path: Vec<u8>,
    },
    /// OpenSSH: any answer proves that the peer lives. The peer's are answered here.
    KeepAlive,
    /// OpenSSH: all keys of this host.
    HostKeys(Vec<Vec<u8>>),
    /// OpenSSH: the server is to prove that it has these keys. The answer's data are signatures.
    HostKeysProve(Vec<Vec<u8>>),
    /// OpenSSH: no session will be wanted any more; from now on they are refused here.
    NoMoreSessions,
    /// A request of the program's own. The names of those above are not for it.
    Own {
        /// Its name and data.
        own: Own,
        /// Whether an answer is wanted.
        want: WantReply,
    },
}

/// Names a request of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GlobalId(pub(super) u64);

/// The duty to answer a request of the peer. If it is dropped the peer waits, and so do the
/// answers to later requests.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct GlobalReplyTo {
    pub(super) sequence: u64,
    /// The server was to choose a port.
    pub(super) chooses_port: bool,
}

/// The answer to a request outside of channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GlobalAnswer {
    /// Not granted.
    Refused,
    /// Granted.
    Granted {
        /// What belongs to it; mostly nothing.
        data: Vec<u8>,
    },
    /// Granted: the server listens on this port.
    Bound {
        /// The port.
        port: u16,
    },
}

impl GlobalRequest {
    /// The name on the wire.
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
            Self::Own { own, .. } => own.name().as_bytes(),
        }
    }

    /// Whether a name is one that is known here, and so is none of a program's own.
    #[must_use]
    pub fn is_known(name: &str) -> bool {
        KNOWN.contains(&name)
    }

    /// Whether we ask for an answer.
    #[must_use]
    pub const fn want_reply(&self) -> WantReply {
        match self {
            Self::HostKeys(_) | Self::NoMoreSessions => WantReply::No,
            Self::Own { want, .. } => *want,
            _ => WantReply::Yes,
        }
    }

    /// Whether this end may be asked for it.
    pub(super) const fn is_for(&self, role: Role) -> bool {
        match self {
            Self::KeepAlive | Self::Own { .. } => true,
            Self::HostKeys(_) => matches!(role, Role::Client),
            _ => matches!(role, Role::Server),
        }
    }

    /// Reads the fields of a request; `None` if it is no name, or there are too many data.
    pub(super) fn parse(
        name: &[u8],
        want: WantReply,
        r: &mut Reader<'_>,
    ) -> Result<Option<Self>, SshError> {
        let request = match name {
            b"tcpip-forward" => {
                let (address, port) = address(r)?;
                Self::TcpipForward { address, port }
            }
            b"cancel-tcpip-forward" => {
                let (address, port) = address(r)?;
                Self::CancelTcpipForward { address, port }
            }
            b"streamlocal-forward@openssh.com" => Self::StreamlocalForward {
                path: r.string()?.to_vec(),
            },
            b"cancel-streamlocal-forward@openssh.com" => Self::CancelStreamlocalForward {
                path: r.string()?.to_vec(),
            },
            b"keepalive@openssh.com" => return Ok(Some(Self::KeepAlive)),
            b"hostkeys-00@openssh.com" => Self::HostKeys(keys(r)?),
            b"hostkeys-prove-00@openssh.com" => Self::HostKeysProve(keys(r)?),
            b"no-more-sessions@openssh.com" => Self::NoMoreSessions,
            _ => {
                let own = Own::read(name, r.rest());
                return Ok(own.map(|own| Self::Own { own, want }));
            }
        };
        r.end()?;
        Ok(Some(request))
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
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
            Self::Own { own, .. } => out.put_raw(own.data()),
        }
    }
}

fn address(r: &mut Reader<'_>) -> Result<(String, u16), SshError> {
    let address = r.text()?.to_owned();
    let port = u16::try_from(r.u32()?).map_err(|_| r.malformed())?;
    Ok((address, port))
}

fn keys(r: &mut Reader<'_>) -> Result<Vec<Vec<u8>>, SshError> {
    let mut keys = Vec::new();
    while !r.rest().is_empty() {
        if keys.len() == MAX_KEYS {
            return Err(SshError::TooMuch {
                what: "the number of host keys",
                limit: MAX_KEYS,
            });
        }
        keys.push(r.string()?.to_vec());
    }
    Ok(keys)
}
