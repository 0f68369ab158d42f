//! `adit scp` and `adit sftp` with OpenSSH's server and adit's.

mod copies;
mod copy_setup;
mod names;
mod outside;
