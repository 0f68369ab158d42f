//! Server-sent events of a response, as the HTML standard defines them.

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use tokio::task::JoinSet;

/// Maximum size of an event, in bytes.
const MAX_EVENT: usize = 16 << 20;

/// An event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerEvent {
    /// Its type; `message` if the server sends none.
    pub kind: String,
    /// Its data.
    pub data: String,
}

/// The events of a response.
#[derive(Debug)]
pub struct EventReader {
    body: Incoming,
    parser: EventParser,
    /// The task of the connection, which ends with this value.
    _connection: JoinSet<()>,
}

/// The end of the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EventReaderEnd {
    /// The connection has ended.
    #[error("the connection has ended")]
    Closed,
    /// The text is not one of events, or an event is too long.
    #[error("the response contains no valid events")]
    Invalid,
}

impl EventReader {
    pub(super) fn new(body: Incoming, connection: JoinSet<()>) -> Self {
        Self {
            body,
            parser: EventParser::default(),
            _connection: connection,
        }
    }

    /// Waits for the next event.
    ///
    /// # Cancel safety
    /// Cancel-safe: no event is lost.
    ///
    /// # Errors
    /// The connection has ended, or sends something else.
    pub async fn next_event(&mut self) -> Result<ServerEvent, EventReaderEnd> {
        loop {
            if let Some(event) = self.parser.next_event()? {
                return Ok(event);
            }
            let Some(Ok(frame)) = self.body.frame().await else {
                return Err(EventReaderEnd::Closed);
            };
            if let Some(data) = frame.data_ref() {
                self.parser.push(data)?;
            }
        }
    }
}

/// Splits the bytes of a response into events.
#[derive(Debug, Default)]
struct EventParser {
    /// The bytes that follow the last event.
    rest: Vec<u8>,
    /// The number of them without the end of an event.
    searched: usize,
}

impl EventParser {
    fn push(&mut self, data: &Bytes) -> Result<(), EventReaderEnd> {
        if self.rest.len() + data.len() > MAX_EVENT {
            return Err(EventReaderEnd::Invalid);
        }
        self.rest.extend(data);
        Ok(())
    }

    /// Returns the next complete event. Comments, which keep a connection alive, are skipped.
    fn next_event(&mut self) -> Result<Option<ServerEvent>, EventReaderEnd> {
        loop {
            let unsearched = self.rest.get(self.searched..).unwrap_or_default();
            let Some(end) = unsearched.windows(2).position(|pair| pair == b"\n\n") else {
                self.searched = self.rest.len().saturating_sub(1);
                return Ok(None);
            };
            let end = self.searched + end + 2;
            let block: Vec<u8> = self.rest.drain(..end).collect();
            self.searched = 0;
            let block = std::str::from_utf8(&block).map_err(|_| EventReaderEnd::Invalid)?;
            if let Some(event) = parse_block(block) {
                return Ok(Some(event));
            }
        }
    }
}

/// Parses the lines of an event; `None` if it has no data.
fn parse_block(block: &str) -> Option<ServerEvent> {
    let (mut kind, mut data) = ("message", Vec::new());
    for line in block.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => kind = value,
            "data" => data.push(value),
            // A comment, or a field that other clients use.
            _ => {}
        }
    }
    (!data.is_empty()).then(|| ServerEvent {
        kind: kind.to_owned(),
        data: data.join("\n"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, data: &str) -> ServerEvent {
        ServerEvent {
            kind: kind.to_owned(),
            data: data.to_owned(),
        }
    }

    #[test]
    fn events_are_found_wherever_the_bytes_are_divided() {
        let text = ": hello\n\nevent: overview\ndata: {\"a\":1}\n\ndata:x\ndata: y\nid: 7\n\n";
        for size in 1..text.len() {
            let mut parser = EventParser::default();
            let mut events = Vec::new();
            for part in text.as_bytes().chunks(size) {
                parser.push(&Bytes::copy_from_slice(part)).unwrap();
                while let Some(event) = parser.next_event().unwrap() {
                    events.push(event);
                }
            }
            let expected = [event("overview", "{\"a\":1}"), event("message", "x\ny")];
            assert_eq!(events, expected, "{size}");
        }
    }

    #[test]
    fn endless_events_are_refused() {
        let mut parser = EventParser::default();
        let part = Bytes::from(vec![b'x'; MAX_EVENT / 2]);
        parser.push(&part).unwrap();
        parser.push(&part).unwrap();
        assert_eq!(parser.next_event(), Ok(None));
        assert_eq!(parser.push(&part), Err(EventReaderEnd::Invalid));
        let mut parser = EventParser::default();
        parser.push(&Bytes::from_static(b"data: \xff\n\n")).unwrap();
        assert_eq!(parser.next_event(), Err(EventReaderEnd::Invalid));
    }
}
