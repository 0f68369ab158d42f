//! `adit sshd` under OpenSSH's client tools, and others'.

mod access;
mod algorithms;
mod files;
mod files_alone;
mod floods;
mod forwarding;
mod host_keys;
mod libraries;
mod programs;
mod terminals;
mod world;
