//! Names: as text, on the wire, and compressed within a message.

use adit_wire::{EndOfInput, narrow_int, subslice};

/// Maximum length of a name on the wire, in bytes, with its last label (RFC 1035 section 2.3.4).
pub(crate) const MAX_NAME: usize = 255;
/// Maximum length of a label.
const MAX_LABEL: usize = 63;
/// Length of a message's header, in bytes; no name starts before its end.
pub(crate) const HEADER_LEN: usize = 12;

/// The reason why a text is not a name of DNS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// A label is empty or longer than 63 bytes.
    #[error("a label of the name is empty or longer than 63 bytes")]
    Label,
    /// The name is longer than 253 bytes.
    #[error("the name is longer than 253 bytes")]
    Long,
    /// A character other than visible ASCII, or a backslash.
    #[error("the name contains a character other than visible ASCII: write it in Punycode (xn--…)")]
    Character,
}

/// True for the bytes that labels may have here: no text has the others without an escape.
const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b'.' && byte != b'\\'
}

/// Appends a name to a message, in lower case and without compression. The empty text and `.` are the root.
pub(crate) fn encode_name(name: &str, out: &mut Vec<u8>) -> Result<(), NameError> {
    let name = name.strip_suffix('.').unwrap_or(name);
    // A byte before the first label and the last, empty one.
    if name.len() + 2 > MAX_NAME {
        return Err(NameError::Long);
    }
    if !name.is_empty() {
        for label in name.as_bytes().split(|byte| *byte == b'.') {
            if label.is_empty() || label.len() > MAX_LABEL {
                return Err(NameError::Label);
            }
            if !label.iter().copied().all(is_name_byte) {
                return Err(NameError::Character);
            }
            out.push(narrow_int(label.len()));
            out.extend(label.iter().map(u8::to_ascii_lowercase));
        }
    }
    out.push(0);
    Ok(())
}

/// Checks that a text is a name of DNS in ASCII, with or without the dot at its end; the empty text and `.` are the
/// root.
///
/// # Errors
/// A label or the name is too long, a label is empty, or a character is not visible ASCII.
pub fn check_name(name: &str) -> Result<(), NameError> {
    encode_name(name, &mut Vec::with_capacity(MAX_NAME))
}

/// The labels of a name within a message, with its pointers followed.
///
/// Each pointer has to point to a place before the name or the part of it that it ends, and the labels there have to
/// end before it too: no name is a loop, or depends on bytes after it.
#[derive(Debug, Clone)]
pub(crate) struct Labels<'a> {
    /// The message up to the position where the part that is read now has to end.
    message: &'a [u8],
    at: usize,
    /// Where that part starts: pointers are below.
    part: usize,
    /// Bytes of the name so far.
    len: usize,
    /// The position after the name in the message, once it is known.
    end: Option<usize>,
}

impl<'a> Labels<'a> {
    pub(crate) const fn new(message: &'a [u8], at: usize) -> Self {
        Self {
            message,
            at,
            part: at,
            len: 0,
            end: None,
        }
    }

    /// Returns the next label; `None` after the last one.
    pub(crate) fn next_label(&mut self) -> Result<Option<&'a [u8]>, EndOfInput> {
        loop {
            let first = *self.message.get(self.at).ok_or(EndOfInput)?;
            let len = usize::from(first);
            match first >> 6 {
                0 if len == 0 => {
                    self.end.get_or_insert(self.at + 1);
                    return Ok(None);
                }
                0 => {
                    let label = self.message.get(self.at + 1..self.at + 1 + len);
                    self.at += 1 + len;
                    self.len += 1 + len;
                    if self.len >= MAX_NAME {
                        return Err(EndOfInput);
                    }
                    return label.map(Some).ok_or(EndOfInput);
                }
                3 => {
                    let second = *self.message.get(self.at + 1).ok_or(EndOfInput)?;
                    let to = usize::from(u16::from_be_bytes([first & 0x3f, second]));
                    self.end.get_or_insert(self.at + 2);
                    if to < HEADER_LEN || to >= self.part {
                        return Err(EndOfInput);
                    }
                    self.message = subslice(self.message, ..self.part);
                    (self.at, self.part) = (to, to);
                }
                // Extended labels were withdrawn (RFC 6891 section 5).
                _ => return Err(EndOfInput),
            }
        }
    }

    /// Reads the rest, and returns the position after the name.
    pub(crate) fn skip(mut self) -> Result<usize, EndOfInput> {
        while self.next_label()?.is_some() {}
        self.end.ok_or(EndOfInput)
    }
}

/// Reads the name at `at` as text in lower case without the dot at its end.
///
/// Returns it and the position after it; an error also for a name that no text has.
pub(crate) fn read_text(message: &[u8], at: usize) -> Result<(String, usize), EndOfInput> {
    let mut labels = Labels::new(message, at);
    let mut text = String::with_capacity(64);
    while let Some(label) = labels.next_label()? {
        if !text.is_empty() {
            text.push('.');
        }
        for byte in label {
            if !is_name_byte(*byte) {
                return Err(EndOfInput);
            }
            text.push(byte.to_ascii_lowercase().into());
        }
    }
    Ok((text, labels.end.ok_or(EndOfInput)?))
}

/// True if the names at two places of a message are equal, regardless of the case of ASCII letters.
pub(crate) fn are_equal(message: &[u8], one: usize, other: usize) -> Result<bool, EndOfInput> {
    // Nearly all names of an answer are pointers to its question.
    if one == other {
        return Ok(true);
    }
    let (mut one, mut other) = (Labels::new(message, one), Labels::new(message, other));
    loop {
        match (one.next_label()?, other.next_label()?) {
            (None, None) => return Ok(true),
            (Some(a), Some(b)) if a.eq_ignore_ascii_case(b) => {}
            _ => return Ok(false),
        }
    }
}
