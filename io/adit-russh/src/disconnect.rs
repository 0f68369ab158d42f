//! Reasons to end a session (RFC 4253 section 11.1).

use adit_ssh_proto::Disconnect as Reason;

use crate::Error;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal => $reason:ident,)*) => {
        /// A reason to end a session.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u32)]
        pub enum Disconnect { $($(#[$doc])* $name = $code,)* }

        impl Disconnect {
            pub(crate) const fn reason(self) -> Reason {
                match self { $(Self::$name => Reason::$reason,)* }
            }
        }

        impl TryFrom<u32> for Disconnect {
            type Error = Error;

            /// Fails with [`Error::Inconsistent`] for an unknown code.
            fn try_from(code: u32) -> Result<Self, Error> {
                match code {
                    $($code => Ok(Self::$name),)*
                    _ => Err(Error::Inconsistent),
                }
            }
        }
    };
}

reasons! {
    /// The peer's host is not allowed to connect.
    HostNotAllowedToConnect = 1 => HostNotAllowed,
    /// The peer violated the protocol.
    ProtocolError = 2 => ProtocolError,
    /// The key exchange failed.
    KeyExchangeFailed = 3 => KeyExchangeFailed,
    /// A packet failed authentication.
    MACError = 5 => MacError,
    /// Compressed data could not be decompressed.
    CompressionError = 6 => CompressionError,
    /// The requested service is not available.
    ServiceNotAvailable = 7 => ServiceNotAvailable,
    /// The protocol version is not supported.
    ProtocolVersionNotSupported = 8 => VersionNotSupported,
    /// The host key could not be verified.
    HostKeyNotVerifiable = 9 => HostKeyNotVerifiable,
    /// The connection was lost or abandoned.
    ConnectionLost = 10 => ConnectionLost,
    /// The application ended the session, without an error.
    ByApplication = 11 => ByApplication,
    /// Too many connections.
    TooManyConnections = 12 => TooManyConnections,
    /// The user cancelled authentication.
    AuthCancelledByUser = 13 => CancelledByUser,
    /// No authentication method is left to try.
    NoMoreAuthMethodsAvailable = 14 => NoMoreAuthMethods,
    /// The user name is invalid.
    IllegalUserName = 15 => IllegalUserName,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_same_below() {
        for code in 0..20 {
            if let Ok(reason) = Disconnect::try_from(code) {
                assert_eq!((reason as u32, reason.reason() as u32), (code, code));
            }
        }
    }
}
