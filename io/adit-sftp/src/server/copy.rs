//! Copies inside the server (`copy-data`).

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

use adit_wire::{subslice, subslice_mut, u64_from};
use rustix::io::Errno;

use super::refusal::errno;

/// Maximum number of bytes that one system call copies.
const MAX_CHUNK: usize = 1024 * 1024;

/// Copies `len` bytes, or up to the end of the source if `len` is 0; fewer if it ends earlier.
///
/// The source must be a regular file, which certainly ends, and not the target: a file that is copied
/// behind its own end never ends.
pub(super) fn copy(
    (from, mut at): (&File, u64),
    len: u64,
    (to, mut there): (&File, u64),
) -> Result<(), Errno> {
    let about = |file: &File| file.metadata().map_err(|why| errno(&why));
    let (source, target) = (about(from)?, about(to)?);
    let same = (source.dev(), source.ino()) == (target.dev(), target.ino());
    if same || !source.is_file() {
        return Err(Errno::INVAL);
    }
    let mut left = if len == 0 { u64::MAX } else { len };
    let mut buffer = Vec::new();
    while left > 0 {
        let most = usize::try_from(left).map_or(MAX_CHUNK, |left| left.min(MAX_CHUNK));
        let copied = match copy_in_kernel((from, at), (to, there), most) {
            Some(copied) => copied?,
            None => {
                buffer.resize(MAX_CHUNK, 0);
                copy_buffered((from, at), (to, there), subslice_mut(&mut buffer, ..most))?
            }
        };
        if copied == 0 {
            break;
        }
        let copied = u64_from(copied);
        left = left.saturating_sub(copied);
        at = at.saturating_add(copied);
        there = there.saturating_add(copied);
    }
    Ok(())
}

/// Copies in the kernel, which may share blocks. `None` if it cannot, which includes copies of 0 bytes:
/// files of `/proc` report no length.
#[cfg(target_os = "linux")]
fn copy_in_kernel(
    (from, mut at): (&File, u64),
    (to, mut there): (&File, u64),
    most: usize,
) -> Option<Result<usize, Errno>> {
    match rustix::fs::copy_file_range(from, Some(&mut at), to, Some(&mut there), most) {
        Ok(0) | Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::BADF) => {
            None
        }
        outcome => Some(outcome),
    }
}

#[cfg(not(target_os = "linux"))]
fn copy_in_kernel(_: (&File, u64), _: (&File, u64), _: usize) -> Option<Result<usize, Errno>> {
    None
}

/// Copies through a buffer.
fn copy_buffered(
    (from, at): (&File, u64),
    (to, there): (&File, u64),
    buffer: &mut [u8],
) -> Result<usize, Errno> {
    let read = from.read_at(buffer, at).map_err(|why| errno(&why))?;
    let data = subslice(buffer, ..read);
    to.write_all_at(data, there).map_err(|why| errno(&why))?;
    Ok(read)
}
