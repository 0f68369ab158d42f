//! Listener, acceptor, router, hop chain, pump.
