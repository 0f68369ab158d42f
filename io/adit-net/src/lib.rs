//! Sockets: TCP options, UDP batches, resolver.
