//! Queries over a stream, several at a time (RFC 7766).

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adit_dns::{Answer, AnswerError, UpstreamQuery};
use adit_net::system::ThreadRng;
use adit_wire::{Entropy, narrow_int};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::error::ServerError;
use crate::path::BoxDnsStream;

/// Time after which a connection is closed on which nothing arrives: below the idle limits of most servers
/// (RFC 7766 section 6.2.3).
const IDLE: Duration = Duration::from_secs(20);
/// Maximum number of queries that wait for their answers on a connection.
const MAX_PENDING: usize = 256;
/// Number of queries that wait to be written.
const WRITE_QUEUE: usize = 32;
/// Size of reads, in bytes.
const READ_LEN: usize = 4096;

/// A connection to a server, with one task; it closes when it is dropped, when it is idle, or when a message
/// is not an answer.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pending: Arc<Mutex<Pending>>,
    queries: mpsc::Sender<Vec<u8>>,
    task: AbortHandle,
}

/// The outcome of a query on a connection.
type Outcome = Result<Answer, ServerError>;

#[derive(Debug, Default)]
struct Pending {
    /// The queries that wait for their answers, by number.
    by_id: HashMap<u16, (UpstreamQuery, oneshot::Sender<Outcome>)>,
    /// True once the connection has ended.
    ended: bool,
}

/// A waiting query; dropping it frees its number.
struct Waiting<'a> {
    pending: &'a Mutex<Pending>,
    id: u16,
    answer: oneshot::Receiver<Outcome>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.answer.close();
        let mut pending = lock(self.pending);
        // After the answer, the number may be that of another query.
        let entry = pending.by_id.get(&self.id);
        if entry.is_some_and(|(_, sender)| sender.is_closed()) {
            pending.by_id.remove(&self.id);
        }
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(pending: &Mutex<Pending>) -> MutexGuard<'_, Pending> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}

fn closed() -> ServerError {
    ServerError::Closed(io::ErrorKind::UnexpectedEof.into())
}

impl Pipeline {
    /// Starts the task of a connection.
    pub(crate) fn new(stream: BoxDnsStream) -> Self {
        let pending: Arc<Mutex<Pending>> = Arc::default();
        let (queries, written) = mpsc::channel(WRITE_QUEUE);
        let state = pending.clone();
        let task = tokio::spawn(async move {
            let (from, to) = tokio::io::split(stream);
            let why = tokio::select! {
                why = read_answers(from, &state) => why,
                why = write_queries(to, written) => why,
            };
            tracing::trace!("a connection to a DNS server ends: {why}");
            let mut state = lock(&state);
            state.ended = true;
            // Each waiting query learns of the end from its channel.
            state.by_id.clear();
        });
        Self {
            pending,
            queries,
            task: task.abort_handle(),
        }
    }

    /// True if queries can be sent on this connection.
    pub(crate) fn is_open(&self) -> bool {
        let pending = lock(&self.pending);
        !pending.ended && pending.by_id.len() < MAX_PENDING
    }

    /// Sends a query, and returns its answer.
    ///
    /// # Errors
    /// [`ServerError::Closed`] if the connection ends before the answer: it may have been idle for too long, so
    /// the query is worth another connection.
    pub(crate) async fn ask(&self, query: &UpstreamQuery) -> Outcome {
        let (sender, answer) = oneshot::channel();
        let (bytes, mut waiting) = {
            let mut pending = lock(&self.pending);
            if pending.ended || pending.by_id.len() >= MAX_PENDING {
                return Err(closed());
            }
            let id = loop {
                let mut id = [0; 2];
                ThreadRng.fill(&mut id);
                let id = u16::from_be_bytes(id);
                // At most 256 of 65,536 are taken.
                if !pending.by_id.contains_key(&id) {
                    break id;
                }
            };
            let query = query.clone().with_id(id);
            let message = query.to_bytes();
            let mut bytes = narrow_int::<u16>(message.len()).to_be_bytes().to_vec();
            bytes.extend(message);
            pending.by_id.insert(id, (query, sender));
            let waiting = Waiting {
                pending: &self.pending,
                id,
                answer,
            };
            (bytes, waiting)
        };
        self.queries.send(bytes).await.map_err(|_| closed())?;
        (&mut waiting.answer).await.map_err(|_| closed())?
    }
}

/// Writes queries until the connection fails.
async fn write_queries(
    mut to: WriteHalf<BoxDnsStream>,
    mut queries: mpsc::Receiver<Vec<u8>>,
) -> io::Error {
    while let Some(mut bytes) = queries.recv().await {
        // Length and message in one packet, and all that wait.
        while let Ok(more) = queries.try_recv() {
            bytes.extend(more);
        }
        let written = async {
            to.write_all(&bytes).await?;
            to.flush().await
        };
        if let Err(why) = written.await {
            return why;
        }
    }
    io::ErrorKind::BrokenPipe.into()
}

/// Reads answers until the connection ends, fails or is idle.
async fn read_answers(mut from: ReadHalf<BoxDnsStream>, pending: &Mutex<Pending>) -> io::Error {
    let mut buffer = Vec::with_capacity(READ_LEN);
    loop {
        while let Some(message) = first_message(&buffer) {
            let len = 2 + message.len();
            if let Err(why) = deliver(message, pending) {
                return io::Error::new(io::ErrorKind::InvalidData, why);
            }
            buffer.drain(..len);
        }
        buffer.reserve(READ_LEN);
        match timeout(IDLE, from.read_buf(&mut buffer)).await {
            Ok(Ok(0)) => return io::ErrorKind::UnexpectedEof.into(),
            Ok(Ok(_)) => {}
            Ok(Err(why)) => return why,
            Err(_) => return io::ErrorKind::TimedOut.into(),
        }
    }
}

/// Returns the first message of a buffer, if it is complete.
fn first_message(buffer: &[u8]) -> Option<&[u8]> {
    let (len, rest) = buffer.split_first_chunk()?;
    rest.get(..usize::from(u16::from_be_bytes(*len)))
}

/// Passes an answer to the query that waits for it. Answers to queries that have been given up are dropped.
///
/// # Errors
/// The message is not the answer to the query with its number.
fn deliver(message: &[u8], pending: &Mutex<Pending>) -> Result<(), AnswerError> {
    let id = *message.first_chunk().ok_or(AnswerError::Malformed)?;
    let found = lock(pending).by_id.remove(&u16::from_be_bytes(id));
    let Some((query, sender)) = found else {
        return Ok(());
    };
    let answer = query.check_answer(message);
    let failed = answer.as_ref().err().copied();
    // The query may have been given up just now.
    let _ = sender.send(answer.map_err(ServerError::from));
    failed.map_or(Ok(()), Err)
}
