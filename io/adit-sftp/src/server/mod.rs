//! A server: requests in, answers out.
//!
//! ```text
//! stream ─▶ drive ─▶ session ─▶ Handler ─▶ FileTree: tree, attributes, folder, copy, people, protected
//!                                        └▶ your own
//! ```
//!
//! [`serve`] and [`serve_blocking`] move the bytes of one client, and call the [`Handler`] for each
//! request. [`FileTree`] is a handler for the local file system; `tree` resolves paths, inside a root if
//! there is one, and around those that are `protected`.

#[cfg(unix)]
mod attributes;
#[cfg(unix)]
mod copy;
mod drive;
mod entries;
#[cfg(unix)]
mod file_tree;
#[cfg(unix)]
mod folder;
mod handler;
mod options;
#[cfg(unix)]
mod people;
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

pub use drive::{serve, serve_blocking, serve_tokio};
pub use entries::Entries;
#[cfg(unix)]
pub use file_tree::FileTree;
#[cfg(unix)]
pub use folder::OpenDirectory;
pub use handler::{Answer, Handler};
#[cfg(unix)]
pub use options::FileTreeOptions;
pub use options::ServeError;
pub use refusal::Refusal;
#[cfg(unix)]
pub use serve_files::serve_files;
