//! The opening codec: decrypts once, then opens frame by frame.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use adit_crypto::{Direction, StreamCipher, StreamKey};
use adit_wire::{Open, Opened, ProtocolError, subslice_mut};

use super::cipher_fault;
use crate::frame::{FrameOpen, OpenedFrame};

/// Number of bytes that the cipher decrypts ahead of the frames; small enough that they are still
/// cached when the frames are opened.
const DECRYPT_AHEAD: usize = 16 << 10;
/// The same for frames that are verified together: eight of the maximum length.
const DECRYPT_AHEAD_BATCH: usize = 64 << 10;

/// The opening codec of a connection.
pub struct StackOpen {
    cipher: CipherState,
    /// Number of bytes at the front of the stream that are decrypted but not consumed.
    decrypted: usize,
    frames: FrameOpen,
    progress: Arc<StackProgress>,
}

#[allow(
    clippy::large_enum_variant,
    reason = "running but for the first bytes of a connection"
)]
enum CipherState {
    /// The IV has not arrived.
    Awaiting(Arc<StreamKey>),
    Running(StreamCipher),
}

/// The progress of a client's opening codec, readable after the codec was moved into a stream.
#[derive(Debug, Default)]
pub struct StackProgress(AtomicBool);

impl StackProgress {
    /// True if the server has sent a valid frame. A stream that ends before that suggests a wrong
    /// password, method or protocol. `origin` and `verify_sha1` have no frames in this direction;
    /// for them any received byte suffices and proves nothing.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl StackOpen {
    /// Creates a codec for a stream that begins with the IV.
    pub(super) fn awaiting_iv(key: Arc<StreamKey>, frames: FrameOpen) -> Self {
        Self {
            cipher: CipherState::Awaiting(key),
            decrypted: 0,
            frames,
            progress: Arc::default(),
        }
    }

    /// Creates a codec that continues a stream, of which `clear` bytes are already decrypted.
    pub(super) fn with_cipher(cipher: StreamCipher, decrypted: usize, frames: FrameOpen) -> Self {
        Self {
            cipher: CipherState::Running(cipher),
            decrypted,
            frames,
            progress: Arc::default(),
        }
    }

    /// Returns the shared progress.
    #[must_use]
    pub fn progress(&self) -> Arc<StackProgress> {
        self.progress.clone()
    }

    /// Opens the frame at the front of `wire`, with the contract of [`Open::open`]: the next call
    /// must begin with the bytes that this one did not consume.
    ///
    /// # Errors
    ///
    /// Fails if the frame is malformed, too long or not authentic.
    pub fn open_frame(&mut self, wire: &mut [u8]) -> Result<OpenedFrame, ProtocolError> {
        let cipher = match &mut self.cipher {
            CipherState::Running(cipher) => cipher,
            CipherState::Awaiting(key) => {
                let total = key.kind().iv_len();
                let Some(iv) = wire.get(..total) else {
                    return Ok(OpenedFrame::NeedMore { total });
                };
                let cipher = key
                    .start_stream(iv, Direction::Decrypt)
                    .map_err(cipher_fault)?;
                self.cipher = CipherState::Running(cipher);
                if total > 0 {
                    let payload = total..total;
                    return Ok(OpenedFrame::Plain {
                        consumed: total,
                        payload,
                    });
                }
                return self.open_frame(wire);
            }
        };
        let stride = if self.frames.is_raw() {
            usize::MAX
        } else if self.frames.looks_ahead() {
            DECRYPT_AHEAD_BATCH
        } else {
            DECRYPT_AHEAD
        };
        loop {
            // Codecs must also be called without bytes, even if some are already decrypted.
            let clear = wire.get_mut(..self.decrypted).unwrap_or_default();
            let frame = self.frames.open_frame(clear)?;
            let total = match frame {
                OpenedFrame::NeedMore { total } => total,
                OpenedFrame::Plain { consumed, .. } | OpenedFrame::Inflated { consumed } => {
                    self.decrypted = self.decrypted.saturating_sub(consumed);
                    self.progress.0.store(true, Ordering::Relaxed);
                    return Ok(frame);
                }
            };
            if self.decrypted >= wire.len() {
                return Ok(OpenedFrame::NeedMore { total });
            }
            let goal = self
                .decrypted
                .saturating_add(stride)
                .max(total)
                .min(wire.len());
            cipher.apply(subslice_mut(wire, self.decrypted..goal));
            self.decrypted = goal;
        }
    }

    /// Returns the data of the last [`OpenedFrame::Inflated`].
    #[must_use]
    pub fn inflated(&self) -> &[u8] {
        self.frames.inflated()
    }
}

impl Open for StackOpen {
    /// Opens a frame like [`open_frame`](StackOpen::open_frame); inflated data is an error.
    fn open(&mut self, wire: &mut [u8]) -> Result<Opened, ProtocolError> {
        match self.open_frame(wire)? {
            OpenedFrame::NeedMore { total } => Ok(Opened::NeedMore { total }),
            OpenedFrame::Plain { consumed, payload } => Ok(Opened::Record { consumed, payload }),
            OpenedFrame::Inflated { .. } => Err(ProtocolError::NoRoom("inflated data")),
        }
    }
}

impl fmt::Debug for StackOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StackOpen")
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}
