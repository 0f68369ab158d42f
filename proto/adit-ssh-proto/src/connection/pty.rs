//! Terminals: sizes and modes (RFC 4254 sections 6.2, 6.7 and 8).

use crate::error::SshError;
use crate::wire::{MessageReader, SshBufMut};

/// A requested terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PtyRequest {
    /// Terminal type, as in the variable TERM.
    pub term: String,
    /// Size of the terminal.
    pub size: TerminalSize,
    /// Terminal modes.
    pub modes: TerminalModes,
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TerminalSize {
    /// Width in characters.
    pub columns: u32,
    /// Height in rows.
    pub rows: u32,
    /// Width in pixels; 0 if unknown.
    pub width: u32,
    /// Height in pixels; 0 if unknown.
    pub height: u32,
}

/// Terminal modes as pairs of number and value, with unique numbers from 1 to 159.
///
/// 128 and 129 are the line speeds; the others are in RFC 4254 section 8 and RFC 8160.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TerminalModes(Vec<(u8, u32)>);

/// First mode number whose arguments have no defined format: reading stops there (section 8).
const FIRST_UNDEFINED: u8 = 160;

impl TerminalModes {
    /// Creates an empty set of modes.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Sets a mode. Modes outside of 1 to 159 have no encoding and are ignored.
    pub fn set(&mut self, mode: u8, value: u32) {
        if mode == 0 || mode >= FIRST_UNDEFINED {
            return;
        }
        match self.0.iter_mut().find(|(other, _)| *other == mode) {
            Some((_, old)) => *old = value,
            None => self.0.push((mode, value)),
        }
    }

    /// Returns the value of a mode.
    #[must_use]
    pub fn get(&self, mode: u8) -> Option<u32> {
        let found = self.0.iter().find(|(other, _)| *other == mode);
        found.map(|(_, value)| *value)
    }

    /// Iterates over the modes in order.
    pub fn iter(&self) -> impl Iterator<Item = (u8, u32)> {
        self.0.iter().copied()
    }

    /// Parses encoded modes. Their number is limited by the number of different modes.
    fn parse(bytes: &[u8]) -> Result<Self, SshError> {
        let mut r = MessageReader::new(bytes, "terminal modes");
        let mut modes = Self::new();
        // Some clients omit the terminating 0.
        while !r.remaining().is_empty() {
            match r.read_u8()? {
                0 | FIRST_UNDEFINED.. => break,
                mode => modes.set(mode, r.read_u32()?),
            }
        }
        Ok(modes)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        for (mode, value) in self.iter() {
            out.put_u8(mode);
            out.put_u32(value);
        }
        out.put_u8(0);
    }
}

impl TerminalSize {
    pub(super) fn parse(r: &mut MessageReader<'_>) -> Result<Self, SshError> {
        Ok(Self {
            columns: r.read_u32()?,
            rows: r.read_u32()?,
            width: r.read_u32()?,
            height: r.read_u32()?,
        })
    }

    pub(super) fn encode(self, out: &mut Vec<u8>) {
        for number in [self.columns, self.rows, self.width, self.height] {
            out.put_u32(number);
        }
    }
}

impl PtyRequest {
    pub(super) fn parse(r: &mut MessageReader<'_>) -> Result<Self, SshError> {
        Ok(Self {
            term: r.read_text()?.to_owned(),
            size: TerminalSize::parse(r)?,
            modes: TerminalModes::parse(r.read_string()?)?,
        })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.put_string(self.term.as_bytes());
        self.size.encode(out);
        out.put_nested(|out| self.modes.encode(out));
    }
}
