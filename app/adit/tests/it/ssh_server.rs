//! `adit sshd` with the client tools of OpenSSH and others.

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
