//! `auth_aes128_*`: frames with one MAC over the length and one over the whole frame, keyed with
//! the user's key and the frame's number.
//!
//! If several frames of one length are available, their MACs are computed together with SIMD, in a
//! fraction of the time: for received frames when the first of them is opened, and for sent frames
//! before the first of them is sealed.

use core::ops::Range;

use adit_crypto::{MAC_LANES, Secret, ct_eq};
use adit_wire::{Entropy, Overhead, ProtocolError, subslice};
use zeroize::Zeroizing;

use super::bounds::{FRAME_LIMIT, MAX_DATA, MAX_NOISE, MIN_BULK_LEN, OpenedFrame};
use super::crc::data_after_pad;
use super::padding::{LengthEncoding, PaddingBlock};
use crate::field::{
    check_frame_len, get_field, length_field, put_field, range_around, range_mut, range_ref,
};
use crate::mac::{Mac, MacBatch, MacKind};

const HEAD: usize = 4;
const TAG: usize = 4;
/// Maximum length of a key: that of a cipher, and a number.
const LONGEST_KEY: usize = 32 + 4;
/// Minimum length of data without noise.
const NOISELESS: usize = MIN_BULK_LEN;
pub(crate) const STYLE: LengthEncoding = LengthEncoding::Little;

/// One direction, sealing or opening.
pub(crate) struct TaggedCodec {
    kind: MacKind,
    key: NumberedKey,
    /// The length of the frame at the front, once its MAC was checked.
    verified_len: Option<usize>,
    /// Number of frames from the front whose MACs were all checked, or that are already written.
    verified_ahead: usize,
}

impl TaggedCodec {
    pub(super) const ROOM: Overhead = Overhead {
        head: HEAD + PaddingBlock::max_len(MAX_NOISE),
        tail: TAG,
        max_payload: MAX_DATA,
    };

    pub(crate) fn new(kind: MacKind, user_key: &[u8]) -> Self {
        Self {
            kind,
            key: NumberedKey::new(user_key),
            verified_len: None,
            verified_ahead: 0,
        }
    }

    /// True if the MACs of several frames can be computed together.
    pub(super) fn looks_ahead(&self) -> bool {
        self.least_batch().is_some()
    }

    fn least_batch(&self) -> Option<usize> {
        let fits = self.key.as_bytes().len() <= LONGEST_KEY;
        self.kind.least_batch().filter(|_| fits)
    }

    /// Writes the leading frames around `payloads` that have no noise and one common length.
    pub(super) fn pack_ahead(&mut self, slot: &mut [u8], payloads: &[Range<usize>]) {
        self.verified_ahead = 0;
        let Some(len) = payloads.first().map(Range::len) else {
            return;
        };
        let alike = |payload: &&Range<usize>| payload.len() == len && len >= NOISELESS;
        let count = payloads.iter().take_while(alike).count().min(MAC_LANES);
        if self.least_batch().is_none_or(|least| count < least) {
            return;
        }
        let payloads = subslice(payloads, ..count);
        if self.write_ahead(slot, payloads, len).is_ok() {
            self.verified_ahead = count;
        }
    }

    fn write_ahead(
        &self,
        slot: &mut [u8],
        payloads: &[Range<usize>],
        len: usize,
    ) -> Result<(), ProtocolError> {
        let total = HEAD + PaddingBlock::NONE.len() + len + TAG;
        let field = length_field(total)?.to_le_bytes();
        let macs = self.next_batch()?;
        let tags = macs.compute_tags([&field; MAC_LANES]);
        let mut places = [const { 0..0 }; MAC_LANES];
        for ((place, payload), tag) in places.iter_mut().zip(payloads).zip(&tags) {
            *place = range_around(slot, payload, total - len - TAG, TAG)?;
            let frame = range_mut(slot, place.clone())?;
            put_field(frame, 0, &field)?;
            put_field(frame, field.len(), &tag[..2])?;
            put_field(frame, HEAD, &[1])?;
        }
        let first = range_ref(slot, places[0].clone())?;
        let frames = places.each_ref().map(|place| match place.len() {
            0 => first,
            _ => slot.get(place.clone()).unwrap_or(first),
        });
        let tags = macs.compute_tags(frames.map(|frame| frame.split_at(frame.len() - TAG).0));
        for (payload, tag) in payloads.iter().zip(&tags) {
            put_field(slot, payload.end, tag)?;
        }
        Ok(())
    }

    /// Prepares the keys of the next frames.
    fn next_batch(&self) -> Result<MacBatch, ProtocolError> {
        let mut places = Zeroizing::new([[0; LONGEST_KEY]; MAC_LANES]);
        let mut ahead = 0;
        let keys = places.each_mut().map(|place| {
            let key = self.key.write_later_key(ahead, place);
            ahead += 1;
            key
        });
        MacBatch::new(self.kind, keys).ok_or(ProtocolError::NoRoom("a batch"))
    }

    /// Checks the MACs of all leading frames that are complete and have one common length.
    fn check_ahead(&mut self, plain: &[u8]) {
        let total = plain
            .first_chunk()
            .map_or(0, |len| usize::from(u16::from_le_bytes(*len)));
        // `open` reports invalid lengths.
        let Some(least) = self.least_batch() else {
            return;
        };
        if total <= NOISELESS || total >= FRAME_LIMIT {
            return;
        }
        let (field, _) = plain.split_at(2);
        let mut frames = plain.chunks_exact(total);
        let is_alike = |frame: &&[u8]| frame.starts_with(field);
        let count = frames.by_ref().take(MAC_LANES).take_while(is_alike).count();
        if count < least {
            return;
        }
        let Ok(macs) = self.next_batch() else {
            return;
        };
        let frame = |lane: usize| {
            let lane = if lane < count { lane } else { 0 };
            subslice(plain, lane * total..(lane + 1) * total)
        };
        let frames = core::array::from_fn::<_, MAC_LANES, _>(frame);
        let lengths = macs.compute_tags([field; MAC_LANES]);
        let tags = macs.compute_tags(frames.map(|frame| frame.split_at(total - TAG).0));
        let shown = frames.iter().zip(&lengths).zip(&tags).take(count);
        // All of them, or each is checked on its own.
        let good = shown.fold(true, |good, ((frame, length), tag)| {
            let head = ct_eq(&length[..2], subslice(frame, 2..HEAD));
            good & head & ct_eq(tag, subslice(frame, total - TAG..))
        });
        if good {
            self.verified_ahead = count;
        }
    }

    /// Writes the frame around `record[payload]`.
    pub(crate) fn pack_frame(
        &mut self,
        record: &mut [u8],
        payload: Range<usize>,
        pad: PaddingBlock,
        rng: &mut dyn Entropy,
    ) -> Result<Range<usize>, ProtocolError> {
        let range = range_around(record, &payload, HEAD + pad.len(), TAG)?;
        if let Some(left) = self.verified_ahead.checked_sub(1) {
            debug_assert!(pad == PaddingBlock::NONE, "written ahead without noise");
            self.verified_ahead = left;
            self.key.advance_number();
            return Ok(range);
        }
        let frame = range_mut(record, range.clone())?;
        let len = length_field(frame.len())?.to_le_bytes();
        pad.write_block(frame, HEAD, STYLE, rng)?;
        let mac = Mac::new(self.kind, self.key.as_bytes());
        put_field(frame, 0, &len)?;
        put_field(frame, 2, &mac.tag::<2>(&len))?;
        let end = frame.len() - TAG;
        let tag = mac.tag::<TAG>(range_ref(frame, 0..end)?);
        put_field(frame, end, &tag)?;
        self.key.advance_number();
        Ok(range)
    }

    /// Opens the frame at the front.
    pub(super) fn open_frame(&mut self, plain: &[u8]) -> Result<OpenedFrame, ProtocolError> {
        let Some(fields) = plain.get(..HEAD) else {
            return Ok(OpenedFrame::NeedMore { total: HEAD });
        };
        if self.verified_ahead == 0 && self.verified_len.is_none() {
            self.check_ahead(plain);
        }
        if let Some(left) = self.verified_ahead.checked_sub(1) {
            self.verified_ahead = left;
            let total = usize::from(u16::from_le_bytes(get_field(fields, 0)?));
            return self.accept_frame(range_ref(plain, 0..total)?);
        }
        let mac = Mac::new(self.kind, self.key.as_bytes());
        let total = if let Some(total) = self.verified_len {
            total
        } else {
            let len: [u8; 2] = get_field(fields, 0)?;
            if !ct_eq(&mac.tag::<2>(&len), &get_field::<2>(fields, 2)?) {
                return Err(ProtocolError::Unauthentic);
            }
            let total = check_frame_len(u16::from_le_bytes(len), HEAD + 1 + TAG, FRAME_LIMIT)?;
            self.verified_len = Some(total);
            total
        };
        let Some(frame) = plain.get(..total) else {
            return Ok(OpenedFrame::NeedMore { total });
        };
        let end = total - TAG;
        let tag = mac.tag::<TAG>(range_ref(frame, 0..end)?);
        if !ct_eq(&tag, &get_field::<TAG>(frame, end)?) {
            return Err(ProtocolError::Unauthentic);
        }
        self.verified_len = None;
        self.accept_frame(frame)
    }

    /// Returns a frame whose MACs are valid.
    fn accept_frame(&mut self, frame: &[u8]) -> Result<OpenedFrame, ProtocolError> {
        let payload = data_after_pad(frame, HEAD, TAG, STYLE)?;
        self.key.advance_number();
        Ok(OpenedFrame::Plain {
            consumed: frame.len(),
            payload,
        })
    }
}

/// A user's key followed by the number of a frame, which starts at 1.
pub(super) struct NumberedKey {
    bytes: Secret<Vec<u8>>,
    number: u32,
}

impl NumberedKey {
    pub(super) fn new(user_key: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(user_key.len() + 4);
        bytes.extend_from_slice(user_key);
        bytes.extend_from_slice(&1u32.to_le_bytes());
        Self {
            bytes: Secret::new(bytes),
            number: 1,
        }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.bytes.expose()
    }

    /// Writes the key of the frame that is `ahead` frames after the next one.
    fn write_later_key<'p>(&self, ahead: u32, place: &'p mut [u8; LONGEST_KEY]) -> &'p [u8] {
        let key = self.as_bytes();
        let place = place.get_mut(..key.len()).unwrap_or_default();
        debug_assert_eq!(
            place.len(),
            key.len(),
            "keys that are too long have no batch"
        );
        place.copy_from_slice(key);
        if let Some(number) = place.last_chunk_mut() {
            *number = self.number.wrapping_add(ahead).to_le_bytes();
        }
        place
    }

    /// Advances the number, which wraps after 2³² frames, as in other implementations.
    pub(super) fn advance_number(&mut self) {
        self.number = self.number.wrapping_add(1);
        let number = self.number.to_le_bytes();
        if let Some(place) = self.bytes.expose_mut().last_chunk_mut() {
            *place = number;
        }
    }
}

#[cfg(test)]
mod tests {
    use adit_wire::FixedEntropy;

    use super::*;

    const KINDS: [MacKind; 3] = [MacKind::Md5, MacKind::Sha1, MacKind::Fast];

    fn pair(kind: MacKind) -> [TaggedCodec; 2] {
        [(); 2].map(|()| TaggedCodec::new(kind, &[7; 32]))
    }

    fn noise() -> FixedEntropy {
        FixedEntropy::new(Vec::new())
    }

    /// Returns frames for payloads of these lengths, arranged as in the slot of a stream.
    fn frames(seal: &mut TaggedCodec, lens: &[usize], ahead: bool) -> Vec<u8> {
        let (head, mut slot, mut payloads) = (HEAD + 20, Vec::new(), Vec::new());
        for (number, len) in lens.iter().enumerate() {
            let begin = slot.len() + head;
            slot.resize(begin, 0);
            slot.extend((0..*len).map(|at| (at + 3 * number) as u8));
            payloads.push(begin..slot.len());
            slot.extend([0; TAG]);
        }
        if ahead {
            seal.pack_ahead(&mut slot, &payloads);
        }
        let mut wire = Vec::new();
        for payload in payloads {
            let frame = seal.pack_frame(&mut slot, payload, PaddingBlock::NONE, &mut noise());
            wire.extend_from_slice(&slot[frame.unwrap()]);
        }
        wire
    }

    fn open_all(open: &mut TaggedCodec, mut wire: &[u8]) -> (Vec<Vec<u8>>, Option<ProtocolError>) {
        let mut payloads = Vec::new();
        loop {
            match open.open_frame(wire) {
                Ok(OpenedFrame::Plain { consumed, payload }) => {
                    payloads.push(wire[payload].to_vec());
                    wire = &wire[consumed..];
                }
                Ok(OpenedFrame::NeedMore { .. }) => return (payloads, None),
                other => return (payloads, Some(other.unwrap_err())),
            }
        }
    }

    #[test]
    fn frames_are_the_same_together() {
        let lens = [
            &[8100; 8][..],
            &[8100, 8100, 8100, 8100, 2000],
            &[1000; 7],
            &[8100, 50],
            &[],
        ];
        for kind in KINDS {
            let [mut one, mut many] = pair(kind);
            for lens in lens {
                assert_eq!(frames(&mut one, lens, false), frames(&mut many, lens, true));
                assert_eq!(many.verified_ahead, 0);
            }
        }
    }

    #[test]
    fn frames_open_together_up_to_the_first_that_is_wrong() {
        let lens = [
            &[8100; 9][..],
            &[8100, 8100, 8100, 8100, 950, 950],
            &[2000; 5],
        ]
        .concat();
        for kind in KINDS {
            let [mut seal, mut open] = pair(kind);
            let wire = frames(&mut seal, &lens, false);
            let (whole, fault) = open_all(&mut open, &wire);
            assert!(fault.is_none(), "{kind:?}: {fault:?}");
            assert_eq!(whole.iter().map(Vec::len).collect::<Vec<_>>(), lens);
            // One bit of each part of the sixth frame.
            let begin = 5 * (8100 + HEAD + 1 + TAG);
            for at in [0, 1, 2, 3, 4, 5, 4000, 8104, 8105, 8108] {
                let mut wire = wire.clone();
                wire[begin + at] ^= 4;
                let [_, mut open] = pair(kind);
                let (payloads, fault) = open_all(&mut open, &wire);
                assert_eq!(payloads, whole[..5], "{kind:?}, byte {at}");
                assert_eq!(
                    fault,
                    Some(ProtocolError::Unauthentic),
                    "{kind:?}, byte {at}"
                );
            }
        }
    }
}
