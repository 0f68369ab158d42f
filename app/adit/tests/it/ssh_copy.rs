//! `adit scp` and `adit sftp` with OpenSSH's server and adit's.

mod copies;
mod desk;
mod names;
mod outside;
