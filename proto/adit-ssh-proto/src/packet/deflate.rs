//! Compression: one zlib stream (RFC 1950) per direction, flushed at the end of each packet.

use adit_wire::{subslice, subslice_mut};
use miniz_oxide::deflate::core::{CompressorOxide, create_comp_flags_from_zip_params};
use miniz_oxide::deflate::stream::deflate;
use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};

use super::MAX_PAYLOAD;
use crate::SshError;
use crate::algorithm::Compression;

/// Compression level: zlib's default, which OpenSSH uses, too.
const LEVEL: i32 = 6;
/// Window of 32 KiB, with zlib's header.
const WINDOW_BITS: i32 = 15;

/// Initial size of the buffers in bytes: fits a payload of channel data.
const FIRST: usize = 40 * 1024;

/// State that decides when compression is active.
#[derive(Clone, Copy)]
pub(super) struct CompressionSwitch {
    kind: Compression,
    authenticated: bool,
}

impl CompressionSwitch {
    pub(super) const fn disabled() -> Self {
        Self {
            kind: Compression::None,
            authenticated: false,
        }
    }

    /// Sets the method for new keys; returns true if compression is active now.
    pub(super) fn set_method(&mut self, kind: Compression) -> bool {
        self.kind = kind;
        self.is_on()
    }

    /// Marks the user as authenticated; returns true if that activates compression.
    pub(super) fn set_authenticated(&mut self) -> bool {
        let before = self.is_on();
        self.authenticated = true;
        self.is_on() && !before
    }

    const fn is_on(self) -> bool {
        match self.kind {
            Compression::None => false,
            Compression::Zlib => true,
            Compression::ZlibDelayed => self.authenticated,
        }
    }
}

/// Compressor of the sending side.
pub(super) struct Deflater {
    state: Box<CompressorOxide>,
    out: Vec<u8>,
}

impl Deflater {
    pub(super) fn new() -> Self {
        let flags = create_comp_flags_from_zip_params(LEVEL, WINDOW_BITS, 0);
        Self {
            state: Box::new(CompressorOxide::new(flags)),
            out: vec![0; FIRST],
        }
    }

    /// Compresses the payload from `start` to the end of `packet`, in place.
    pub(super) fn compress_in_place(
        &mut self,
        packet: &mut Vec<u8>,
        start: usize,
    ) -> Result<(), SshError> {
        let mut rest = subslice(packet, start..);
        let mut filled = 0;
        loop {
            let room = subslice_mut(&mut self.out, filled..);
            let result = deflate(&mut self.state, rest, room, MZFlush::Sync);
            rest = subslice(rest, result.bytes_consumed..);
            filled += result.bytes_written;
            if result.status != Ok(MZStatus::Ok) {
                return Err(SshError::Crypto("compressing a payload"));
            }
            if filled < self.out.len() && rest.is_empty() {
                break;
            }
            grow_buffer(&mut self.out, filled)?;
        }
        packet.truncate(start);
        packet.extend_from_slice(subslice(&self.out, ..filled));
        Ok(())
    }
}

/// Decompressor of the receiving side, with the last payload.
pub(super) struct Inflater {
    state: Box<InflateState>,
    out: Vec<u8>,
    filled: usize,
}

impl Inflater {
    pub(super) fn new() -> Self {
        Self {
            // An SSH stream never ends, so its checksum never arrives.
            state: InflateState::new_boxed(DataFormat::ZLibIgnoreChecksum),
            out: vec![0; FIRST],
            filled: 0,
        }
    }

    /// Decompresses the contents of one packet.
    pub(super) fn inflate(&mut self, mut packet: &[u8]) -> Result<(), SshError> {
        self.filled = 0;
        loop {
            let room = subslice_mut(&mut self.out, self.filled..);
            let result = inflate(&mut self.state, packet, room, MZFlush::None);
            packet = subslice(packet, result.bytes_consumed..);
            self.filled += result.bytes_written;
            match result.status {
                Ok(MZStatus::Ok) => {}
                // Nothing consumed, nothing produced: all output is there. An empty input is not
                // enough: at the end of its window, the inflater stops within a match, and it may
                // already hold the last bits of a partial flush.
                Err(MZError::Buf) if packet.is_empty() => break,
                _ => return Err(SshError::Malformed("compressed payload")),
            }
            grow_buffer(&mut self.out, self.filled)?;
        }
        if self.filled == 0 {
            return Err(SshError::Malformed("empty payload"));
        }
        if self.filled > MAX_PAYLOAD {
            return Err(payload_too_long());
        }
        Ok(())
    }

    /// Returns the payload of the last packet.
    pub(super) fn payload(&self) -> &[u8] {
        subslice(&self.out, ..self.filled)
    }
}

/// Doubles the buffer if no space is left after `filled`, up to one byte more than the limit: that
/// byte reveals a payload that is too long.
fn grow_buffer(out: &mut Vec<u8>, filled: usize) -> Result<(), SshError> {
    if filled > MAX_PAYLOAD {
        return Err(payload_too_long());
    }
    if filled == out.len() {
        out.resize((2 * filled).min(MAX_PAYLOAD + 1), 0);
    }
    Ok(())
}

const fn payload_too_long() -> SshError {
    SshError::TooMuch {
        what: "decompressed payload",
        limit: MAX_PAYLOAD,
    }
}
