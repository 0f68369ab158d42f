//! The modes of a cipher with 128-bit blocks, behind one type.

use std::sync::Arc;

use aes::cipher::{BlockCipherEncrypt, BlockSizeUser, consts::U16};

use super::{
    Direction, Mode,
    counter::CounterMode,
    feedback::{Feedback, FeedbackSource},
    short_cfb::ShortCfb,
};

/// The state of one direction in any of the modes.
pub(super) enum Blocks<C: BlockCipherEncrypt + BlockSizeUser<BlockSize = U16>> {
    Feedback(Feedback<C>),
    Cfb8(ShortCfb<C, 8>),
    Cfb1(ShortCfb<C, 1>),
    Counter(CounterMode<C>),
}

impl<C: BlockCipherEncrypt + BlockSizeUser<BlockSize = U16>> Blocks<C> {
    pub(super) fn new(cipher: &Arc<C>, mode: Mode, iv: [u8; 16], direction: Direction) -> Self {
        let cipher = Arc::clone(cipher);
        match mode {
            Mode::Cfb => Self::Feedback(Feedback::new(cipher, iv.into(), direction.into())),
            Mode::Ofb => Self::Feedback(Feedback::new(cipher, iv.into(), FeedbackSource::Register)),
            Mode::Cfb8 => Self::Cfb8(ShortCfb::new(cipher, iv, direction)),
            Mode::Cfb1 => Self::Cfb1(ShortCfb::new(cipher, iv, direction)),
            Mode::Ctr => Self::Counter(CounterMode::new(cipher, iv)),
        }
    }

    pub(super) fn apply(&mut self, data: &mut [u8]) {
        match self {
            Self::Feedback(feedback) => feedback.apply(data),
            Self::Cfb8(cfb) => cfb.apply(data),
            Self::Cfb1(cfb) => cfb.apply(data),
            Self::Counter(counter) => counter.apply(data),
        }
    }
}

impl From<Direction> for FeedbackSource {
    /// Returns the feedback of CFB mode.
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Encrypt => Self::Output,
            Direction::Decrypt => Self::Input,
        }
    }
}
