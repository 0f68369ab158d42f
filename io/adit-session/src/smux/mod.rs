//! smux.
