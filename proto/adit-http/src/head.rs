//! The head of a message: its end, start line and fields.

use adit_wire::subslice_mut;

mod fields;
mod hop_by_hop;
mod scan;
mod start_line;

pub(crate) use fields::{Fields, is_text, is_token, is_token_byte, trim_blanks};
pub(crate) use hop_by_hop::HopByHop;
pub(crate) use scan::{HeadError, HeadScan};
pub(crate) use start_line::{MinorVersion, RequestLine, StatusLine};

/// Joins folded lines (RFC 9112 section 5.2) in place, without moving a byte. A blank after the
/// start line is not a fold.
pub(crate) fn unfold_lines(head: &mut [u8]) {
    let mut folds = false;
    for at in 0..head.len() {
        match subslice_mut(head, at..) {
            [cr @ b'\r', lf @ b'\n', b' ' | b'\t', ..] if folds => (*cr, *lf) = (b' ', b' '),
            [b'\r', b'\n', ..] => folds = true,
            _ => {}
        }
    }
}

/// Splits a complete head into its start line and the block of its fields.
pub(crate) fn split_head(head: &[u8]) -> (&[u8], &[u8]) {
    let end = head.iter().position(|b| *b == b'\n').unwrap_or(head.len());
    let (line, block) = head.split_at(end);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    (line, block.strip_prefix(b"\n").unwrap_or(block))
}
