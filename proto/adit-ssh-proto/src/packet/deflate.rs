//! Compression: one stream of zlib (RFC 1950) per direction, flushed at the end of each packet.

use adit_wire::{subslice, subslice_mut};
use miniz_oxide::deflate::core::{CompressorOxide, create_comp_flags_from_zip_params};
use miniz_oxide::deflate::stream::deflate;
use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};

use super::MAX_PAYLOAD;
use crate::SshError;
use crate::algorithm::Compression;

/// zlib's default, which OpenSSH takes too.
const LEVEL: i32 = 6;
/// A window of 32 KiB, with zlib's header.
const WINDOW_BITS: i32 = 15;

/// What the buffers begin with, in octets: a payload of channel data.
const FIRST: usize = 40 * 1024;

/// When compression is on.
#[derive(Clone, Copy)]
pub(super) struct Switch {
    kind: Compression,
    authenticated: bool,
}

impl Switch {
    pub(super) const fn off() -> Self {
        Self {
            kind: Compression::None,
            authenticated: false,
        }
    }

    /// New keys; whether there is compression now.
    pub(super) fn negotiated(&mut self, kind: Compression) -> bool {
        self.kind = kind;
        self.is_on()
    }

    /// The user is in; whether compression begins by that.
    pub(super) fn authenticated(&mut self) -> bool {
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

/// The sending side.
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

    /// Compresses the payload that begins at `start` and goes to the end of `packet`, in its
    /// place.
    pub(super) fn replace(&mut self, packet: &mut Vec<u8>, start: usize) -> Result<(), SshError> {
        let mut rest = subslice(packet, start..);
        let mut filled = 0;
        loop {
            let room = subslice_mut(&mut self.out, filled..);
            let result = deflate(&mut self.state, rest, room, MZFlush::Sync);
            rest = subslice(rest, result.bytes_consumed..);
            filled += result.bytes_written;
            if result.status != Ok(MZStatus::Ok) {
                return Err(SshError::Crypto("compression"));
            }
            if filled < self.out.len() && rest.is_empty() {
                break;
            }
            grow(&mut self.out, filled)?;
        }
        packet.truncate(start);
        packet.extend_from_slice(subslice(&self.out, ..filled));
        Ok(())
    }
}

/// The receiving side, and the last payload.
pub(super) struct Inflater {
    state: Box<InflateState>,
    out: Vec<u8>,
    filled: usize,
}

impl Inflater {
    pub(super) fn new() -> Self {
        Self {
            // A stream of SSH never ends, so that its checksum never comes.
            state: InflateState::new_boxed(DataFormat::ZLibIgnoreChecksum),
            out: vec![0; FIRST],
            filled: 0,
        }
    }

    /// Inflates what one packet brings.
    pub(super) fn inflate(&mut self, mut packet: &[u8]) -> Result<(), SshError> {
        self.filled = 0;
        loop {
            let room = subslice_mut(&mut self.out, self.filled..);
            let result = inflate(&mut self.state, packet, room, MZFlush::None);
            packet = subslice(packet, result.bytes_consumed..);
            self.filled += result.bytes_written;
            match result.status {
                Ok(MZStatus::Ok) => {}
                // No octets in, none out: all was there before. That no octets are left is not
                // enough: at the end of its window the inflater stops in the middle of a match, and
                // it may hold the last bits of a partial flush already.
                Err(MZError::Buf) if packet.is_empty() => break,
                _ => return Err(SshError::Malformed("compressed payload")),
            }
            grow(&mut self.out, self.filled)?;
        }
        if self.filled == 0 {
            return Err(SshError::Malformed("empty payload"));
        }
        if self.filled > MAX_PAYLOAD {
            return Err(too_much());
        }
        Ok(())
    }

    /// The payload of the last packet.
    pub(super) fn payload(&self) -> &[u8] {
        subslice(&self.out, ..self.filled)
    }
}

/// Twice the room if there is none left behind `filled`; the bound and one octet at most, by which
/// what is too much is known.
fn grow(out: &mut Vec<u8>, filled: usize) -> Result<(), SshError> {
    if filled > MAX_PAYLOAD {
        return Err(too_much());
    }
    if filled == out.len() {
        out.resize((2 * filled).min(MAX_PAYLOAD + 1), 0);
    }
    Ok(())
}

const fn too_much() -> SshError {
    SshError::TooMuch {
        what: "payload with compression",
        limit: MAX_PAYLOAD,
    }
}
