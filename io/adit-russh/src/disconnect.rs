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

            /// Fails for a code that has no name.
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
    /// The peer's host may not connect.
    HostNotAllowedToConnect = 1 => HostNotAllowed,
    /// The peer broke the protocol.
    ProtocolError = 2 => ProtocolError,
    /// The key exchange failed.
    KeyExchangeFailed = 3 => KeyExchangeFailed,
    /// A tag was wrong.
    MACError = 5 => MacError,
    /// Compressed bytes that cannot be read.
    CompressionError = 6 => CompressionError,
    /// A service that is not there.
    ServiceNotAvailable = 7 => ServiceNotAvailable,
    /// A version of the protocol that is not spoken.
    ProtocolVersionNotSupported = 8 => VersionNotSupported,
    /// The host key is not the expected one.
    HostKeyNotVerifiable = 9 => HostKeyNotVerifiable,
    /// The connection is lost or given up.
    ConnectionLost = 10 => ConnectionLost,
    /// Nothing went wrong.
    ByApplication = 11 => ByApplication,
    /// Too many connections.
    TooManyConnections = 12 => TooManyConnections,
    /// The user has given up.
    AuthCancelledByUser = 13 => CancelledByUser,
    /// No further method of authentication.
    NoMoreAuthMethodsAvailable = 14 => NoMoreAuthMethods,
    /// A name that no user can have.
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
