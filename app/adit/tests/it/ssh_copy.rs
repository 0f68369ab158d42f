//! `adit scp` and `adit sftp` against OpenSSH's server.

mod copies;
mod desk;
mod names;
