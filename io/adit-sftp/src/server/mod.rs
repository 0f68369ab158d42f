//! SFTP servers.
//!
//! ```text
//! stream ─▶ drive ─▶ session ─▶ Handler ─▶ FileTree: tree, attributes, directory, copy, owner_names, protected
//!                                        └▶ your own handler
//! ```
//!
//! [`serve`] and [`serve_blocking`] move the bytes of one client, and call the [`Handler`] for each
//! request. [`FileTree`] is a handler for the local file system; `tree` resolves paths, inside a root if
//! there is one, and around those that are `protected`.

#[cfg(unix)]
mod attributes;
#[cfg(unix)]
mod copy;
#[cfg(unix)]
mod directory;
mod drive;
mod entries;
#[cfg(unix)]
mod file_tree;
mod handler;
mod options;
#[cfg(unix)]
mod owner_names;
#[cfg(unix)]
mod protected;
mod refusal;
#[cfg(unix)]
mod serve_files;
mod session;
#[cfg(test)]
mod tests;
#[cfg(unix)]
mod tree;

#[cfg(unix)]
pub use directory::OpenDirectory;
pub use drive::{serve, serve_blocking, serve_tokio};
pub use entries::Entries;
#[cfg(unix)]
pub use file_tree::FileTree;
pub use handler::{Answer, Handler};
#[cfg(unix)]
pub use options::FileTreeOptions;
pub use options::ServeError;
pub use refusal::Refusal;
#[cfg(unix)]
pub use serve_files::serve_files;
