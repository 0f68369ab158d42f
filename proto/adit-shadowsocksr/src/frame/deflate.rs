//! `verify_deflate`: each frame is its own zlib stream (RFC 1950) without the two header bytes.

use core::ops::Range;

use adit_wire::{Overhead, ProtocolError, subslice};
use miniz_oxide::DataFormat;
use miniz_oxide::deflate::core::{CompressorOxide, TDEFLFlush, TDEFLStatus, compress};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

use super::bounds::OpenedFrame;
use crate::field::{
    check_frame_len, get_field, length_field, put_field, range_around, range_mut, range_ref,
};

const LENGTH: usize = 2;
const SUM: usize = 4;

/// Length of the header of a stored block (RFC 1951 section 3.2.4).
const STORED: usize = 5;

/// Maximum length of data; incompressible data of this length still results in a frame below
/// [`LIMIT`].
const MAX: usize = 32_000;

const LIMIT: usize = 32_768;

/// Maximum length of a frame's inflated data, against decompression bombs.
const INFLATED_MAX: usize = 32_768;

/// zlib's default compression level.
const LEVEL: u8 = 6;

/// The sealing side. Compressed data is built outside the record, because it refers to the data
/// that it replaces.
pub(crate) struct Deflater {
    core: CompressorOxide,
    out: Vec<u8>,
}

impl Deflater {
    pub(super) const ROOM: Overhead = Overhead {
        head: LENGTH + STORED,
        tail: SUM,
        max_payload: MAX,
    };

    pub(crate) fn new() -> Box<Self> {
        let mut core = CompressorOxide::default();
        core.set_format_and_level(DataFormat::Raw, LEVEL);
        Box::new(Self {
            core,
            out: vec![0; MAX],
        })
    }

    pub(super) fn seal_frame(
        &mut self,
        record: &mut [u8],
        payload: Range<usize>,
    ) -> Result<Range<usize>, ProtocolError> {
        let data = range_ref(record, payload.clone())?;
        let sum = simd_adler32::adler32(&data).to_be_bytes();
        let limit = data.len().min(self.out.len());
        self.core.reset();
        let place = range_mut(&mut self.out, 0..limit)?;
        let (status, _, written) = compress(&mut self.core, data, place, TDEFLFlush::Finish);
        if status == TDEFLStatus::Done {
            // Not longer than the data was, so it fits in its place.
            let start = payload.start;
            put_field(record, start, range_ref(&self.out, 0..written)?)?;
            return write_fields(record, start..start + written, sum);
        }
        // Incompressible: one stored block, which is also the last block.
        let len = length_field(payload.len())?;
        let ([a, b], [c, d]) = (len.to_le_bytes(), (!len).to_le_bytes());
        let block = range_around(record, &payload, STORED, 0)?;
        put_field(record, block.start, &[1, a, b, c, d])?;
        write_fields(record, block, sum)
    }
}

/// Writes length and checksum around the compressed data.
fn write_fields(
    record: &mut [u8],
    z: Range<usize>,
    sum: [u8; 4],
) -> Result<Range<usize>, ProtocolError> {
    let range = range_around(record, &z, LENGTH, SUM)?;
    let len = length_field(range.len())?;
    put_field(record, range.start, &len.to_be_bytes())?;
    put_field(record, z.end, &sum)?;
    Ok(range)
}

/// The opening side.
pub(crate) struct Inflater {
    core: DecompressorOxide,
    out: Vec<u8>,
    len: usize,
}

impl Inflater {
    pub(crate) fn new() -> Box<Self> {
        Box::new(Self {
            core: DecompressorOxide::new(),
            out: vec![0; INFLATED_MAX],
            len: 0,
        })
    }

    pub(super) fn inflated_data(&self) -> &[u8] {
        subslice(&self.out, ..self.len)
    }

    pub(super) fn open_frame(&mut self, plain: &[u8]) -> Result<OpenedFrame, ProtocolError> {
        let Ok(len) = get_field(plain, 0) else {
            return Ok(OpenedFrame::NeedMore { total: LENGTH });
        };
        let total = check_frame_len(u16::from_be_bytes(len), LENGTH + SUM, LIMIT)?;
        if plain.len() < total {
            return Ok(OpenedFrame::NeedMore { total });
        }
        self.len = 0;
        let end = total - SUM;
        let z = range_ref(plain, LENGTH..end)?;
        self.core.init();
        let flags = TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
        let (status, used, written) = decompress(&mut self.core, z, &mut self.out, 0, flags);
        match status {
            TINFLStatus::Done if used == z.len() => {}
            TINFLStatus::HasMoreOutput => {
                return Err(ProtocolError::TooLong {
                    what: "a frame's data",
                    limit: INFLATED_MAX,
                });
            }
            _ => return Err(ProtocolError::Malformed("compressed data")),
        }
        let sum = simd_adler32::adler32(&range_ref(&self.out, 0..written)?);
        if get_field(plain, end)? != sum.to_be_bytes() {
            return Err(ProtocolError::Unauthentic);
        }
        self.len = written;
        Ok(OpenedFrame::Inflated { consumed: total })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seal(data: &[u8]) -> Vec<u8> {
        let Overhead { head, tail, .. } = Deflater::ROOM;
        let mut record = vec![0; head];
        record.extend_from_slice(data);
        record.resize(head + data.len() + tail, 0);
        let range = Deflater::new().seal_frame(&mut record, head..head + data.len());
        record[range.unwrap()].to_vec()
    }

    #[test]
    fn incompressible_data_is_stored() {
        let mut state = 1u64;
        let mut byte = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state.to_be_bytes()[0]
        };
        let data: Vec<u8> = (0..MAX).map(|_| byte()).collect();
        let wire = seal(&data);
        assert!(wire.len() <= data.len() + LENGTH + STORED + SUM && wire.len() < LIMIT);
        let mut inflater = Inflater::new();
        let consumed = wire.len();
        assert_eq!(
            inflater.open_frame(&wire),
            Ok(OpenedFrame::Inflated { consumed })
        );
        assert_eq!(inflater.inflated_data(), data);
    }

    #[test]
    fn frames_that_blow_up_are_refused() {
        // One frame of a peer without our limit: 64 KiB of zeros.
        let mut core = CompressorOxide::default();
        core.set_format_and_level(DataFormat::Raw, 9);
        let mut z = vec![0; 1000];
        let zeros = vec![0; 65_536];
        let (status, _, n) = compress(&mut core, &zeros, &mut z, TDEFLFlush::Finish);
        assert_eq!(status, TDEFLStatus::Done);
        let mut wire = u16::try_from(n + 6).unwrap().to_be_bytes().to_vec();
        wire.extend_from_slice(&z[..n]);
        wire.extend_from_slice(&simd_adler32::adler32(&&zeros[..]).to_be_bytes());
        let limit = INFLATED_MAX;
        let what = "a frame's data";
        let mut inflater = Inflater::new();
        assert_eq!(
            inflater.open_frame(&wire),
            Err(ProtocolError::TooLong { what, limit })
        );
        assert!(inflater.inflated_data().is_empty());
    }

    proptest! {
        #[test]
        fn any_data_round_trips(data in proptest::collection::vec(0u8..4, 0..5000)) {
            let wire = seal(&data);
            let mut inflater = Inflater::new();
            prop_assert_eq!(inflater.open_frame(&wire), Ok(OpenedFrame::Inflated { consumed: wire.len() }));
            prop_assert_eq!(inflater.inflated_data(), data);
        }

        #[test]
        fn any_bytes_are_handled(z in proptest::collection::vec(any::<u8>(), 0..300)) {
            let len = u16::try_from(z.len() + LENGTH).unwrap().to_be_bytes();
            let _ = Inflater::new().open_frame(&[&len[..], &z].concat());
        }
    }
}
