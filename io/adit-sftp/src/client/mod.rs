//! SFTP clients.
//!
//! ```text
//! SftpSession ─▶ Operation ─▶ ┐                      wakers: whichever operation is polled
//! File        ─▶ Operation ─▶ ├─ Connection ─▶ Wire  moves the bytes of all
//! Get, Put, … ─▶ Operation ─▶ ┘
//! ```

mod connection;
mod directory;
mod failure;
mod file;
mod file_reader;
mod file_writer;
#[cfg(unix)]
mod get;
mod paths;
#[cfg(unix)]
mod put;
mod range;
mod remote_copy;
mod reply;
mod session;
mod transfer;
mod wakers;
mod whole;
mod wire;

pub use directory::DirEntry;
pub use file::File;
pub use file_reader::FileReader;
pub use file_writer::FileWriter;
#[cfg(unix)]
pub use get::Get;
#[cfg(unix)]
pub use put::Put;
pub use remote_copy::RemoteCopy;
pub use session::SftpSession;
pub use transfer::TransferOptions;
