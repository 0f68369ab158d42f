//! online
