//! From one other machine to another, through this one.
//!
//! What comes is kept until it is sent, at most [`HELD`] bytes: the slower of the two sets the
//! pace of both.

use std::collections::BTreeMap;

use adit_ssh_proto::sftp::{
    Download, DownloadedChunk, FileAttrs, FileType, OpenFlags, SftpRequest, Upload,
};
use adit_wire::{subslice_mut, u64_from, usize_from};

use super::meter::ProgressLine;
use super::names::{join, shown};
use super::remote::Tag;
use super::tree::MAX_DEPTH;
use super::{CopyError, CopyOptions, Remote};

/// Nothing more is asked for while so much is held, bytes.
const HELD: usize = 16 << 20;
/// So much is made ready to be sent at once, bytes.
const READY: usize = 512 << 10;

/// Copies a file, or a folder with what is in it; what goes wrong with one is told.
///
/// # Errors
/// One of the sessions failed.
pub(crate) async fn through(
    source: &mut Remote,
    target: &mut Remote,
    from: Vec<u8>,
    to: Vec<u8>,
    how: &CopyOptions,
) -> Result<(), CopyError> {
    let mut jobs = vec![(from, to, 0)];
    let mut folders = Vec::new();
    while let Some((from, to, depth)) = jobs.pop() {
        let outcome = one(source, target, &from, &to, depth, how).await;
        match outcome {
            Ok(None) => {}
            Ok(Some((attrs, names))) => {
                let inner = |name: Vec<u8>| (join(&from, &name), join(&to, &name), depth + 1);
                jobs.extend(names.into_iter().map(inner));
                folders.push((to, attrs));
            }
            Err(fault) => how.report_and_skip(&shown(&from), fault)?,
        }
    }
    for (path, attrs) in folders.iter().rev().filter(|_| how.preserve) {
        let request = SftpRequest::Setstat {
            path,
            attrs: *attrs,
        };
        let outcome = target.perform(&request).await;
        outcome.or_else(|fault| how.report_and_skip(&shown(path), fault))?;
    }
    Ok(())
}

/// Copies a file, or makes a folder and gives its attributes and the names in it.
async fn one(
    source: &mut Remote,
    target: &mut Remote,
    from: &[u8],
    to: &[u8],
    depth: usize,
    how: &CopyOptions,
) -> Result<Option<(FileAttrs, Vec<Vec<u8>>)>, CopyError> {
    let found = source.stat(from).await?;
    match found.file_kind() {
        Some(FileType::Folder) => {}
        Some(FileType::Regular) | None => {
            file(source, target, from, to, &found, how).await?;
            return Ok(None);
        }
        Some(_) => return Err(CopyError::other("is no regular file")),
    }
    if !how.recursive {
        return Err(CopyError::other("is a folder (-r copies folders)"));
    }
    if depth >= MAX_DEPTH {
        return Err(CopyError::other("too many folders in folders"));
    }
    let entries = source.entries(from).await?;
    target
        .make_folder(to, found.permissions.unwrap_or(0o777))
        .await?;
    let attrs = FileAttrs {
        permissions: found.permissions.map(|mode| mode & 0o7777),
        times: found.times,
        ..FileAttrs::default()
    };
    let names = entries.into_iter().map(|entry| entry.name).collect();
    Ok(Some((attrs, names)))
}

async fn file(
    source: &mut Remote,
    target: &mut Remote,
    from: &[u8],
    to: &[u8],
    attrs: &FileAttrs,
    how: &CopyOptions,
) -> Result<(), CopyError> {
    let begin = match how.resume {
        true => target.length(to).await?,
        false => 0,
    };
    if attrs.size.is_some_and(|size| begin > size) {
        return Err(CopyError::other("the copy is longer than the file already"));
    }
    let handle = source
        .open_file(from, OpenFlags::READ, FileAttrs::default())
        .await?;
    let copy = match target.open_copy(to, attrs, how, begin).await {
        Ok(copy) => copy,
        Err(fault) => {
            source.drop_handle(&handle)?;
            return Err(fault);
        }
    };
    let size = attrs.size.filter(|size| *size > 0);
    let mut both = Both {
        download: Download::new(&handle, begin, size, source.client.limits().read_chunk()),
        upload: Upload::new(&copy, begin, target.client.limits().write_chunk()),
        held: Held {
            next: begin,
            ..Held::default()
        },
    };
    let mut line = how.meter.start_file(shown(from), attrs.size, begin);
    let outcome = both.run(source, target, &mut line).await;
    match outcome {
        Err(fault) if fault.is_fatal() => return Err(fault),
        _ => source.drop_handle(&handle)?,
    }
    match outcome {
        Ok(()) => {
            let kept = how.preserve.then_some(attrs);
            target.finish(&copy, kept).await?;
            line.finish();
            Ok(())
        }
        Err(fault) => {
            let cut = FileAttrs {
                size: Some(both.upload.written_to()),
                ..FileAttrs::default()
            };
            match target.finish(&copy, Some(&cut)).await {
                Err(end) if end.is_fatal() => Err(end),
                _ => Err(fault),
            }
        }
    }
}

/// What came and is not sent yet.
#[derive(Debug, Default)]
struct Held {
    pieces: BTreeMap<u64, Vec<u8>>,
    octets: usize,
    /// Everything before this offset is sent.
    next: u64,
}

impl Held {
    fn add(&mut self, offset: u64, data: &[u8]) {
        self.octets += data.len();
        self.pieces.insert(offset, data.to_vec());
    }

    /// Whether the next bytes are here.
    fn is_ready(&self) -> bool {
        self.pieces.contains_key(&self.next)
    }

    /// Moves the next bytes into `room`; gives how many.
    fn take(&mut self, room: &mut [u8]) -> usize {
        let mut filled = 0;
        while let Some(piece) = self.pieces.remove(&self.next) {
            let free = subslice_mut(room, filled..);
            let (now, later) = piece.split_at(piece.len().min(free.len()));
            if let Some(place) = free.get_mut(..now.len()) {
                place.copy_from_slice(now);
            }
            filled += now.len();
            self.octets -= now.len();
            self.next += u64_from(now.len());
            if !later.is_empty() {
                self.pieces.insert(self.next, later.to_vec());
                break;
            }
        }
        filled
    }
}

/// Both halves of a copy.
struct Both {
    download: Download,
    upload: Upload,
    held: Held,
}

impl Both {
    /// Copies to the end; what is in flight is awaited even if something went wrong.
    async fn run(
        &mut self,
        source: &mut Remote,
        target: &mut Remote,
        line: &mut ProgressLine<'_>,
    ) -> Result<(), CopyError> {
        let mut outcome = Ok(());
        loop {
            let mut given = 0;
            if outcome.is_ok() {
                match self.move_on(source, target) {
                    Ok(len) => given = len,
                    Err(fault) if fault.is_fatal() => return Err(fault),
                    Err(fault) => outcome = Err(fault),
                }
            }
            let over = outcome.is_err() || self.upload.is_done();
            if over && self.download.in_flight() == 0 && self.upload.in_flight() == 0 {
                return outcome;
            }
            let (here, there) = (source.now(), target.now());
            let (mut got, mut sent) = (Ok(()), Ok(()));
            let Self {
                download,
                upload,
                held,
            } = self;
            let mut receive = |tag, id, reply: &adit_ssh_proto::sftp::SftpReply<'_>| {
                if tag == Tag::Transfer {
                    match download.handle_reply(here, id, reply) {
                        Ok(DownloadedChunk::Data { offset, data }) => held.add(offset, data),
                        Ok(DownloadedChunk::Nothing) => {}
                        Err(why) => keep(&mut got, why.into())?,
                    }
                }
                Ok(())
            };
            let mut send = |tag, id, reply: &adit_ssh_proto::sftp::SftpReply<'_>| {
                if tag == Tag::Transfer
                    && let Err(why) = upload.handle_reply(there, id, reply)
                {
                    keep(&mut sent, why.into())?;
                }
                Ok(())
            };
            // Whichever is not ready loses nothing: replies are taken without waiting.
            tokio::select! {
                turned = source.turn(&mut receive) => turned,
                turned = target.turn(&mut send) => turned,
            }?;
            outcome = outcome.and(got).and(sent);
            line.add_bytes(given).await;
        }
    }

    /// Asks for more, and sends what is here; gives how much that is.
    fn move_on(&mut self, source: &mut Remote, target: &mut Remote) -> Result<usize, CopyError> {
        let now = source.now();
        if self.held.octets < HELD && !self.download.is_done() {
            let (client, out) = (&mut source.client, &mut source.out);
            self.download
                .send_requests(now, client, &Tag::Transfer, out)?;
        }
        let mut given = 0;
        while self.upload.wants_data()
            && target.out.len() < READY
            && (self.held.is_ready() || self.download.is_done())
        {
            let (now, held) = (target.now(), &mut self.held);
            let fill = |_, room: &mut [u8]| Ok::<_, CopyError>(held.take(room));
            let (client, out) = (&mut target.client, &mut target.out);
            match self
                .upload
                .send_chunk(now, client, Tag::Transfer, out, fill)?
            {
                0 => break,
                len => given += usize_from(len),
            }
        }
        Ok(given)
    }
}

/// Keeps the first fault; one that ends everything is given at once.
fn keep(first: &mut Result<(), CopyError>, fault: CopyError) -> Result<(), CopyError> {
    if fault.is_fatal() {
        return Err(fault);
    }
    if first.is_ok() {
        *first = Err(fault);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_in_any_order_leaves_in_order() {
        let mut held = Held::default();
        let mut room = [0; 4];
        held.add(3, b"defg");
        assert!(!held.is_ready());
        assert_eq!(held.take(&mut room), 0);
        held.add(0, b"abc");
        assert!(held.is_ready());
        assert_eq!((held.take(&mut room), room), (4, *b"abcd"));
        assert_eq!((held.take(&mut room), held.octets), (3, 0));
        assert_eq!(room, *b"efgd");
        assert!(!held.is_ready() && held.next == 7);
    }
}
