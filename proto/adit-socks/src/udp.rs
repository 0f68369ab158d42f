//! The datagrams of UDP ASSOCIATE (RFC 1928 section 7).
//!
//! Both directions have the same header in front of the data. The caller decides whose datagrams
//! are accepted and where they are sent.

mod header;
mod reassembly;

pub use header::{
    DatagramHeader, MAX_HEADER, header_len, parse_header, put_header, write_in_place,
};
pub use reassembly::{FRAGMENT_TIMEOUT, MAX_DATAGRAM, Reassembly, ReassemblyResult};
