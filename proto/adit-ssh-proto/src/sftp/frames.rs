//! Boundaries of messages in the data of a channel.

use super::MAX_MESSAGE;
use crate::error::SshError;

/// Splits data into messages: a `uint32` length, then as many bytes.
///
/// A message that is contiguous in the data is lent from it; only split messages are copied.
#[derive(Debug, Default)]
pub struct FrameReader {
    held: Vec<u8>,
    lent: bool,
}

impl FrameReader {
    /// Creates the state for the start of a channel.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            held: Vec::new(),
            lent: false,
        }
    }

    /// Returns the next whole message without its length, and removes it from `data`. Returns
    /// `None` if all of `data` was taken, and more is needed.
    ///
    /// # Errors
    /// [`SshError::TooMuch`] if the length exceeds [`MAX_MESSAGE`], [`SshError::Malformed`] if it
    /// is 0.
    pub fn next_frame<'f, 'd: 'f>(
        &'f mut self,
        data: &mut &'d [u8],
    ) -> Result<Option<&'f [u8]>, SshError> {
        if self.lent {
            self.held.clear();
            self.lent = false;
        }
        if self.held.is_empty()
            && let Some((head, rest)) = data.split_first_chunk()
            && let Some((frame, rest)) = rest.split_at_checked(parse_length(*head)?)
        {
            *data = rest;
            return Ok(Some(frame));
        }
        loop {
            let whole = match self.held.first_chunk() {
                None => 4,
                Some(head) => 4 + parse_length(*head)?,
            };
            let missing = whole.saturating_sub(self.held.len());
            if missing == 0 {
                self.lent = true;
                return Ok(self.held.get(4..));
            }
            if data.is_empty() {
                return Ok(None);
            }
            let (now, later) = data.split_at_checked(missing).unwrap_or((data, &[]));
            self.held.extend_from_slice(now);
            *data = later;
        }
    }

    /// True if the channel may end here: it is not within a message.
    #[must_use]
    pub const fn at_boundary(&self) -> bool {
        self.lent || self.held.is_empty()
    }
}

fn parse_length(head: [u8; 4]) -> Result<usize, SshError> {
    match usize::try_from(u32::from_be_bytes(head)) {
        Ok(0) => Err(SshError::Malformed("SFTP message")),
        Ok(len) if len <= MAX_MESSAGE => Ok(len),
        _ => Err(SshError::TooMuch {
            what: "length of an SFTP message",
            limit: MAX_MESSAGE,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::SshBufMut;
    use proptest::prelude::*;

    fn cut(wire: &[u8], pieces: &[usize]) -> Result<(Vec<Vec<u8>>, bool), SshError> {
        let (mut frames, mut found, mut rest) = (FrameReader::new(), Vec::new(), wire);
        for piece in pieces.iter().cycle() {
            let (mut now, later) = rest.split_at(rest.len().min(*piece));
            while let Some(frame) = frames.next_frame(&mut now)? {
                found.push(frame.to_vec());
            }
            assert!(now.is_empty(), "data was left");
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        Ok((found, frames.at_boundary()))
    }

    proptest! {
        #[test]
        fn any_pieces_give_the_same(
            messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..8),
            pieces in proptest::collection::vec(1usize..50, 1..5),
            cut_off in 0usize..6,
        ) {
            let mut wire = Vec::new();
            for message in &messages {
                wire.put_string(message);
            }
            prop_assert_eq!(cut(&wire, &pieces), Ok((messages.clone(), true)));
            if let Some(last) = messages.last() {
                wire.truncate(wire.len() - cut_off.clamp(1, last.len() + 3));
                let (found, boundary) = cut(&wire, &pieces).unwrap();
                prop_assert_eq!((found.len(), boundary), (messages.len() - 1, false));
            }
        }
    }

    #[test]
    fn lengths_are_bounded() {
        for pieces in [1, 9] {
            assert!(cut(&[0; 9], &[pieces]).is_err());
            assert!(cut(&[0, 4, 0, 1, 7], &[pieces]).is_err());
            let (found, boundary) = cut(&[0, 4, 0, 0, 7], &[pieces]).unwrap();
            assert!(found.is_empty() && !boundary);
        }
    }
}
