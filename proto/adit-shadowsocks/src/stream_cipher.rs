//! The ciphers of the legacy methods, or without the feature `legacy-ciphers` types that have no values.

#[cfg(not(feature = "legacy-ciphers"))]
pub(crate) use absent::{StreamCipher, StreamKey};
#[cfg(feature = "legacy-ciphers")]
pub(crate) use adit_crypto::{StreamCipher, StreamKey};

/// Without values, the code for legacy methods is removed by the compiler.
#[cfg(not(feature = "legacy-ciphers"))]
#[allow(
    clippy::needless_pass_by_ref_mut,
    reason = "the functions are those of the types that they replace"
)]
mod absent {
    use adit_crypto::{CryptoError, Direction, StreamKind};

    #[derive(Debug)]
    pub(crate) enum StreamKey {}

    #[derive(Debug)]
    pub(crate) enum StreamCipher {}

    impl StreamKey {
        pub(crate) const fn new(_: StreamKind, _: &[u8]) -> Result<Self, CryptoError> {
            Err(CryptoError::UnknownCipher)
        }

        pub(crate) const fn start_stream(
            &self,
            _: &[u8],
            _: Direction,
        ) -> Result<StreamCipher, CryptoError> {
            match *self {}
        }
    }

    impl StreamCipher {
        pub(crate) const fn apply(&mut self, _: &mut [u8]) {
            match *self {}
        }
    }
}
