//! SFTP clients and servers for tokio, over SSH channels or any other stream.
//!
//! Version 3 of the protocol ([draft-ietf-secsh-filexfer-02]) with the extensions of OpenSSH, compatible
//! with its `sftp`, `scp` and `sftp-server`. The state machines are those of `adit-ssh-proto`; this crate
//! moves their bytes.
//!
//! * [`SftpSession`]: a client, whose clones share one stream. Operations on paths and open
//!   [`File`](client::File)s run at the same time, with many requests in flight; whole files are copied at
//!   the rate of the link by [`get`](SftpSession::get) and [`put`](SftpSession::put), in steps by
//!   [`start_get`](SftpSession::start_get) and [`start_put`](SftpSession::start_put), and as
//!   streams of tokio by [`FileReader`](client::FileReader) and [`FileWriter`](client::FileWriter).
//! * [`server::serve_files`]: a server of a directory, which confines clients to it, or of the whole file
//!   system.
//! * [`server::serve`]: a server of your own [`Handler`](server::Handler): files that are in a database, an
//!   object store or memory.
//!
//! Errors of the client are [`SftpError`]s with the server's status code; a handler refuses requests with a
//! [`Refusal`](server::Refusal). Lengths and numbers that come from the peer are bounded before memory is
//! allocated.
//!
//! [draft-ietf-secsh-filexfer-02]: https://datatracker.ietf.org/doc/html/draft-ietf-secsh-filexfer-02
//!
//! # Examples
//!
//! A client, over a session of `adit-ssh`:
//!
//! ```no_run
//! use adit_sftp::SftpSession;
//! use adit_ssh::client::Session;
//!
//! # async fn example(session: Session) -> Result<(), adit_sftp::SftpError> {
//! let sftp = SftpSession::open(&session).await?;
//! for entry in sftp.read_dir("logs").await? {
//!     println!("{}", entry.name.escape_ascii());
//! }
//! sftp.get("logs/today", "today.log").await?;
//! match sftp.read("motd", 64 << 10).await {
//!     Ok(text) => println!("{}", text.escape_ascii()),
//!     Err(why) if why.is_not_found() => sftp.write("motd", b"welcome\n").await?,
//!     Err(why) => return Err(why),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A server of one directory, for a session channel that an `adit-ssh` server accepted:
//!
//! ```no_run
//! use adit_sftp::server::{FileTreeOptions, ServeError, serve_files};
//! use adit_ssh::server::ServerSession;
//! use adit_ssh_proto::connection::SshChannelRequest;
//!
//! # async fn example(session: ServerSession) -> Result<(), ServeError> {
//! while let Some(request) = session.next_request().await {
//!     match request.request {
//!         SshChannelRequest::Subsystem(name) if name == "sftp" => {
//!             request.reply.grant();
//!             let (control, channel, _stderr) = session.into_parts();
//!             let options = FileTreeOptions {
//!                 root: Some("/srv/files".into()),
//!                 read_only: true,
//!                 ..FileTreeOptions::default()
//!             };
//!             let served = serve_files(channel, options).await;
//!             control.send_exit_status(u32::from(served.is_err()));
//!             return served;
//!         }
//!         _ => request.reply.refuse(),
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A handler of your own, here of a single file in memory:
//!
//! ```
//! use adit_sftp::SftpSession;
//! use adit_sftp::server::{Answer, Entries, Handler, Refusal, serve_tokio};
//! use adit_ssh_proto::sftp::{FileAttrs, OpenFlags};
//!
//! struct Motd(&'static [u8]);
//!
//! impl Motd {
//!     fn attrs(&self) -> FileAttrs {
//!         FileAttrs {
//!             size: Some(self.0.len() as u64),
//!             permissions: Some(0o100_444),
//!             ..FileAttrs::default()
//!         }
//!     }
//! }
//!
//! impl Handler for Motd {
//!     type File = ();
//!     /// True after the entries were listed.
//!     type Directory = bool;
//!
//!     async fn open(&mut self, path: &[u8], flags: OpenFlags, _: FileAttrs) -> Answer<()> {
//!         match (path, flags) {
//!             (b"/motd" | b"motd", OpenFlags::READ) => Ok(()),
//!             (b"/motd" | b"motd", _) => Err(Refusal::DENIED),
//!             _ => Err(Refusal::NOT_FOUND),
//!         }
//!     }
//!
//!     async fn read(&mut self, _: &mut (), offset: u64, buffer: &mut [u8]) -> Answer<usize> {
//!         let start = usize::try_from(offset).unwrap_or(usize::MAX);
//!         let rest = self.0.get(start..).unwrap_or_default();
//!         let n = rest.len().min(buffer.len());
//!         buffer[..n].copy_from_slice(&rest[..n]);
//!         Ok(n)
//!     }
//!
//!     async fn stat_open(&mut self, _: &mut ()) -> Answer<FileAttrs> {
//!         Ok(self.attrs())
//!     }
//!
//!     async fn stat(&mut self, path: &[u8]) -> Answer<FileAttrs> {
//!         match path {
//!             b"/motd" | b"motd" => Ok(self.attrs()),
//!             _ => Err(Refusal::NOT_FOUND),
//!         }
//!     }
//!
//!     async fn open_dir(&mut self, _: &[u8]) -> Answer<bool> {
//!         Ok(false)
//!     }
//!
//!     async fn read_dir(&mut self, listed: &mut bool, entries: &mut Entries<'_>) -> Answer<()> {
//!         if !std::mem::replace(listed, true) {
//!             entries.push(b"motd", &self.attrs());
//!         }
//!         Ok(())
//!     }
//!
//!     async fn real_path(&mut self, path: &[u8]) -> Answer<Vec<u8>> {
//!         Ok(if path == b"." { b"/".to_vec() } else { path.to_vec() })
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (client, server) = tokio::io::duplex(64 << 10);
//! let server = tokio::spawn(serve_tokio(server, Motd(b"welcome\n")));
//! let sftp = SftpSession::from_tokio(client).await?;
//! assert_eq!(sftp.read("motd", 100).await?, b"welcome\n");
//! assert!(sftp.write("motd", b"other").await.is_err());
//! drop(sftp);
//! server.await??;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod client;
mod error;
pub mod listing;
#[cfg(unix)]
pub mod local;
mod names;
pub mod server;

pub use client::SftpSession;
pub use error::SftpError;
pub use names::is_entry_name;
