//! Streams: borrow to read, reserve to write; record layers, buffer pool, relay.
