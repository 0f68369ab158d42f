//! `adit scp` and `adit sftp` against OpenSSH's server and ours.

mod copies;
mod desk;
mod names;
mod outside;
