//! SOCKS5, SOCKS4 and SOCKS4a, sans-IO.
