//! Sequential reading of a file, with requests in flight ahead of the reader.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use adit_ssh_proto::SshError;
use adit_ssh_proto::sftp::{RequestId, SftpRefused, SftpReply, SftpRequest, SftpStatus};
use adit_wire::{subslice, u64_from, usize_from};
use tokio::io::{AsyncRead, ReadBuf};

use super::File;
use super::connection::{ConnectionState, Operation};
use crate::SftpError;

/// Initial number of bytes that are requested ahead of the reader.
const MIN_READ_AHEAD: u64 = 64 << 10;
/// Maximum number of bytes that are requested ahead of the reader, and so buffered.
const MAX_READ_AHEAD: u64 = 16 << 20;

/// A reader of a file from an offset on, for tokio's [`AsyncRead`].
///
/// READ requests are sent ahead of the reader, initially for 64 KiB. Whenever the reader has to wait, twice
/// as much is requested, up to 16 MiB: the reader gets the rate of the link, and a few bytes do not cost
/// the transfer of a whole file. Errors of reading are returned after the bytes before them. After the end
/// of the file or an error, all reads return the same.
///
/// Dropping the reader closes the file, as dropping a [`File`] does.
///
/// # Examples
///
/// ```no_run
/// use adit_sftp::SftpSession;
/// use adit_ssh_proto::sftp::OpenFlags;
///
/// # async fn example(sftp: SftpSession) -> Result<(), Box<dyn std::error::Error>> {
/// let file = sftp.open_file("log", OpenFlags::READ).await?;
/// tokio::io::copy(&mut file.into_reader(0), &mut tokio::io::sink()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FileReader {
    file: File,
    operation: Operation,
    /// The ranges of the file that were requested and not read, without gaps.
    ranges: VecDeque<ReadRange>,
    /// Offset after the last range.
    next: u64,
    read_ahead: u64,
    /// The reader waited for the first range.
    waited: bool,
}

#[derive(Debug)]
struct ReadRange {
    offset: u64,
    len: u32,
    state: ReadState,
}

#[derive(Debug)]
enum ReadState {
    /// The rest of a short reply, which must be requested again.
    Missing,
    Requested(RequestId),
    /// Received bytes, and the number of those that were read.
    Received(Vec<u8>, usize),
    /// The file ends before this range.
    End,
    Refused(SftpRefused),
}

impl File {
    /// Turns the file into a reader from `offset` on, in bytes.
    #[must_use]
    pub fn into_reader(self, offset: u64) -> FileReader {
        FileReader {
            operation: self.start_operation(),
            file: self,
            ranges: VecDeque::new(),
            next: offset,
            read_ahead: MIN_READ_AHEAD,
            waited: false,
        }
    }
}

impl FileReader {
    /// Returns the offset of the next byte that is read.
    #[must_use]
    pub fn position(&self) -> u64 {
        match self.ranges.front() {
            Some(range) => match &range.state {
                ReadState::Received(_, read) => range.offset.saturating_add(u64_from(*read)),
                _ => range.offset,
            },
            None => self.next,
        }
    }

    /// Returns the file. Bytes that were requested ahead are discarded.
    #[must_use]
    pub fn into_file(self) -> File {
        self.file
    }

    /// Appends the requests that should be in flight now. Returns true if there are new ones.
    fn request(&mut self) -> Result<bool, SshError> {
        let (tag, mut any) = (self.operation.tag(), false);
        let mut state = self.operation.lock();
        let chunk = state.client.limits().read_chunk().max(1);
        let missing = |range: &&mut ReadRange| matches!(range.state, ReadState::Missing);
        for range in self.ranges.iter_mut().filter(missing) {
            if !state.has_room(tag) {
                return Ok(any);
            }
            let ConnectionState { client, out, .. } = &mut *state;
            let request = read_request(&self.file, range.offset, range.len);
            range.state = ReadState::Requested(client.send_request(&request, tag, out)?);
            any = true;
        }
        loop {
            let last = self.ranges.back().map(|range| &range.state);
            if matches!(last, Some(ReadState::End | ReadState::Refused(_))) {
                return Ok(any);
            }
            let start = self.ranges.front().map_or(self.next, |range| range.offset);
            let ahead = self.next.saturating_sub(start);
            let len = u32::try_from(self.read_ahead / 2).map_or(chunk, |half| half.min(chunk));
            if ahead + u64::from(len) > self.read_ahead || !state.has_room(tag) {
                return Ok(any);
            }
            let Some(next) = self.next.checked_add(len.into()) else {
                self.ranges.push_back(ReadRange {
                    offset: self.next,
                    len,
                    state: ReadState::End,
                });
                return Ok(any);
            };
            let ConnectionState { client, out, .. } = &mut *state;
            let request = read_request(&self.file, self.next, len);
            let id = client.send_request(&request, tag, out)?;
            self.ranges.push_back(ReadRange {
                offset: self.next,
                len,
                state: ReadState::Requested(id),
            });
            self.next = next;
            any = true;
        }
    }

    fn poll_turn(&mut self, cx: &Context<'_>) -> Poll<Result<(), SftpError>> {
        let ranges = &mut self.ranges;
        let mut take = |id, reply: &SftpReply<'_>| handle_reply(ranges, id, reply);
        self.operation.poll_turn(cx, &mut take)
    }

    /// Copies received bytes into `buffer`. Returns false if the first range was not received.
    fn read_received(&mut self, buffer: &mut ReadBuf<'_>) -> Result<bool, SftpError> {
        let Some(range) = self.ranges.front_mut() else {
            return Ok(false);
        };
        match &mut range.state {
            ReadState::Missing | ReadState::Requested(_) => Ok(false),
            ReadState::End => Ok(true),
            ReadState::Refused(refused) => Err(refused.clone().into()),
            ReadState::Received(data, read) => {
                let rest = subslice(data, *read..);
                let n = rest.len().min(buffer.remaining());
                buffer.put_slice(subslice(rest, ..n));
                *read += n;
                if *read == data.len() {
                    self.ranges.pop_front();
                    if std::mem::take(&mut self.waited) {
                        self.read_ahead = (self.read_ahead * 2).min(MAX_READ_AHEAD);
                    }
                }
                Ok(true)
            }
        }
    }
}

fn read_request(file: &File, offset: u64, len: u32) -> SftpRequest<'_> {
    SftpRequest::Read {
        handle: file.handle(),
        offset,
        len,
    }
}

fn handle_reply(
    ranges: &mut VecDeque<ReadRange>,
    id: RequestId,
    reply: &SftpReply<'_>,
) -> Result<(), SshError> {
    let is_requested =
        |range: &ReadRange| matches!(range.state, ReadState::Requested(other) if other == id);
    let Some(index) = ranges.iter().position(is_requested) else {
        // A request after the end of the file, or after an error.
        return Ok(());
    };
    let Some(range) = ranges.get_mut(index) else {
        return Ok(());
    };
    match reply {
        SftpReply::Data(data) if (1..=usize_from(range.len)).contains(&data.len()) => {
            range.state = ReadState::Received(data.to_vec(), 0);
            let received = u32::try_from(data.len()).unwrap_or(range.len);
            let (offset, len) = (range.offset, range.len);
            range.len = received;
            if received < len {
                let rest = ReadRange {
                    offset: offset.saturating_add(received.into()),
                    len: len - received,
                    state: ReadState::Missing,
                };
                ranges.insert(index + 1, rest);
            }
        }
        SftpReply::Status(reply) => {
            range.state = match reply.status {
                SftpStatus::Eof => ReadState::End,
                _ => ReadState::Refused((*reply).into()),
            };
            ranges.truncate(index + 1);
        }
        _ => return Err(SshError::Malformed("SFTP DATA")),
    }
    Ok(())
}

impl AsyncRead for FileReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            let mut more = this.request().map_err(SftpError::from)?;
            if this.read_received(buffer)? {
                more |= this.request().map_err(SftpError::from)?;
                if more {
                    // Sends the requests. A failure of the session is returned by the next turn, too.
                    let _ = this.poll_turn(cx);
                }
                return Poll::Ready(Ok(()));
            }
            this.waited = true;
            ready!(this.poll_turn(cx))?;
        }
    }
}
