//! Records: five bytes in front of up to 65,535 bytes of any data.

use adit_wire::{Opened, ProtocolError, subslice};

use super::be16;

/// Length of type, version and length fields.
pub(crate) const RECORD_HEAD: usize = 5;
/// The whole record, which has only one form.
pub(crate) const CHANGE_CIPHER_SPEC: [u8; 6] = [0x14, 3, 3, 0, 1, 1];
/// The start of a data record's head: application data of TLS 1.2.
const DATA: [u8; 3] = [0x17, 3, 3];

/// Returns the head of a record with `len` bytes of data.
pub(crate) fn record_head(len: usize) -> [u8; RECORD_HEAD] {
    let [kind, major, minor] = DATA;
    let [high, low] = be16(len);
    [kind, major, minor, high, low]
}

/// Parses the record head at the front of `wire`: type and version, and the length of the payload.
pub(crate) fn parse_record_head(wire: &[u8]) -> Option<([u8; 3], usize)> {
    let [kind, major, minor, high, low] = *wire.first_chunk::<RECORD_HEAD>()?;
    let len = usize::from(u16::from_be_bytes([high, low]));
    Some(([kind, major, minor], len))
}

/// Opens data records.
///
/// Records are not authenticated as a whole, so their bytes are passed on as they arrive; long
/// records are not buffered.
#[derive(Debug, Default)]
pub(crate) struct RecordReader {
    /// Number of remaining bytes of the current record.
    left: usize,
    /// True if the data of several records is passed on as one payload.
    joined: bool,
}

impl RecordReader {
    /// Makes the data of all available records one payload from now on.
    pub(crate) fn join_records(&mut self) {
        self.joined = true;
    }

    pub(crate) fn open_records(&mut self, wire: &mut [u8]) -> Result<Opened, ProtocolError> {
        let mut start = 0;
        if self.left == 0 {
            let Some((kind, len)) = parse_record_head(wire) else {
                let total = RECORD_HEAD;
                return Ok(Opened::NeedMore { total });
            };
            if kind != DATA {
                return Err(ProtocolError::Malformed("TLS record: not application data"));
            }
            start = RECORD_HEAD;
            if len > 0 && wire.len() == start {
                let total = RECORD_HEAD + 1;
                return Ok(Opened::NeedMore { total });
            }
            self.left = len;
        } else if wire.is_empty() {
            return Ok(Opened::NeedMore { total: 1 });
        }
        let mut consumed = wire.len().min(start + self.left);
        self.left -= consumed - start;
        let mut payload = start..consumed;
        while self.joined && self.left == 0 {
            // The next call refuses records that are not data.
            let rest = subslice(wire, consumed..);
            let Some((DATA, len)) = parse_record_head(rest) else {
                break;
            };
            let begin = consumed + RECORD_HEAD;
            consumed = wire.len().min(begin + len);
            self.left = begin + len - consumed;
            wire.copy_within(begin..consumed, payload.end);
            payload.end += consumed - begin;
        }
        Ok(Opened::Record { consumed, payload })
    }

    pub(crate) const fn at_boundary(&self) -> bool {
        self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_handed_on_as_it_comes() {
        let mut records = RecordReader::default();
        let wire = [&record_head(4)[..], b"abcd", &record_head(0)].concat();
        let open = |records: &mut RecordReader, wire: &[u8]| {
            records.open_records(&mut wire.to_vec()).unwrap()
        };
        assert_eq!(
            open(&mut records, &wire[..4]),
            Opened::NeedMore { total: 5 }
        );
        assert_eq!(
            open(&mut records, &wire[..5]),
            Opened::NeedMore { total: 6 }
        );
        let (consumed, payload) = (7, 5..7);
        assert_eq!(
            open(&mut records, &wire[..7]),
            Opened::Record { consumed, payload }
        );
        assert!(!records.at_boundary());
        assert_eq!(open(&mut records, b""), Opened::NeedMore { total: 1 });
        let (consumed, payload) = (2, 0..2);
        assert_eq!(
            open(&mut records, &wire[7..]),
            Opened::Record { consumed, payload }
        );
        assert!(records.at_boundary());
        let (consumed, payload) = (5, 5..5);
        assert_eq!(
            open(&mut records, &wire[9..]),
            Opened::Record { consumed, payload }
        );
        assert!(records.at_boundary());
    }

    #[test]
    fn other_records_are_refused() {
        for head in [
            [0x16, 3, 3, 0, 1, 0],
            [0x17, 3, 1, 0, 1, 0],
            [0x15, 3, 3, 0, 2, 0],
        ] {
            assert!(
                RecordReader::default()
                    .open_records(&mut head.clone())
                    .is_err()
            );
        }
    }

    #[test]
    fn records_are_joined() {
        let mut records = RecordReader::default();
        records.join_records();
        let pieces: [&[u8]; 6] = [
            &record_head(4),
            b"abcd",
            &record_head(0),
            &record_head(3),
            b"efg",
            &record_head(9),
        ];
        let mut wire = pieces.concat();
        let consumed = wire.len();
        let payload = 5..12;
        let opened = Opened::Record { consumed, payload };
        assert_eq!(records.open_records(&mut wire), Ok(opened));
        assert_eq!(&wire[5..12], b"abcdefg");
        // The head of the last record is consumed, its data continues with the next call.
        assert!(!records.at_boundary());
        let mut wire = [
            b"012345678",
            &record_head(2)[..],
            b"ab",
            &[0x15, 3, 3, 0, 1],
        ]
        .concat();
        let payload = 0..11;
        let consumed = 16;
        let opened = Opened::Record { consumed, payload };
        assert_eq!(records.open_records(&mut wire), Ok(opened));
        assert_eq!(&wire[..11], b"012345678ab");
        assert!(records.at_boundary());
        assert!(records.open_records(&mut wire[16..]).is_err());
    }
}
