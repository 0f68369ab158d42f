//! A fleet for tests and benchmarks: a real store server, an operator with adit's writer, nodes that are processes of
//! adit, and users who send bytes to sinks that count them.
//!
//! ```text
//!  Uploads ──SOCKS5──▶ FleetNode (process of adit) ──▶ CountingSink
//!                          │ users, usage
//!  Operator ─────────▶ StoreServer (redis-server)
//! ```

mod chaos;
mod node;
mod operator;
mod sink;
mod store_proxy;
mod upload;
mod world;

pub use chaos::{ChaosReport, run_chaos};
pub use node::{FleetNode, NodeOptions};
pub use operator::Operator;
pub use sink::CountingSink;
pub use store_proxy::StoreProxy;
pub use upload::{Upload, UploadCounts, open_stream};
pub use world::FleetWorld;
