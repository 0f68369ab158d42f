//! Peers as subprocesses, for interop tests.
