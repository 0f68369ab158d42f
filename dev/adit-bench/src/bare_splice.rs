//! The least that a relay can cost: `splice(2)` and nothing else, for the suites `ss-relay` and
//! `socks`.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

use anyhow::{Result, ensure};
use rustix::pipe::{SpliceFlags, fcntl_setpipe_size, pipe, splice};

/// Maximum number of bytes in a pipe.
const PIPE_LEN: usize = 1 << 20;

/// The SOCKS5 greeting of the load generator, and its answer: no password.
const GREETING: ([u8; 3], [u8; 2]) = ([5, 1, 0], [5, 0]);
/// The beginning of its request, to an IPv4 address, and the answer after connecting.
const CONNECT: ([u8; 4], [u8; 10]) = ([5, 1, 0, 1], [5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);

/// Relays until the process is ended: to one address, or as a SOCKS5 client requests.
pub(crate) fn run_relay(at: SocketAddr, to: Option<SocketAddr>) -> Result<()> {
    for near in TcpListener::bind(at)?.incoming() {
        let near = near?;
        // An error here is a connection that one side aborted.
        thread::spawn(move || relay_connection(near, to));
    }
    Ok(())
}

fn relay_connection(mut near: TcpStream, to: Option<SocketAddr>) -> Result<()> {
    near.set_nodelay(true)?;
    let to = match to {
        Some(to) => to,
        None => answer_socks_request(&mut near)?,
    };
    let far = TcpStream::connect(to)?;
    far.set_nodelay(true)?;
    let (near_back, far_back) = (near.try_clone()?, far.try_clone()?);
    thread::spawn(move || splice_all(&far_back, &near_back));
    splice_all(&near, &far)
}

/// Reads the destination of a SOCKS5 client, and answers that it is connected.
fn answer_socks_request(near: &mut TcpStream) -> Result<SocketAddr> {
    let (mut greeting, mut head, mut to) = ([0; 3], [0; 4], [0; 6]);
    near.read_exact(&mut greeting)?;
    ensure!(
        greeting == GREETING.0,
        "only SOCKS5 without a password is supported"
    );
    near.write_all(&GREETING.1)?;
    near.read_exact(&mut head)?;
    ensure!(
        head == CONNECT.0,
        "the request is not CONNECT to an IPv4 address"
    );
    near.read_exact(&mut to)?;
    near.write_all(&CONNECT.1)?;
    let [a, b, c, d, high, low] = to;
    Ok((Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low])).into())
}

fn splice_all(from: &TcpStream, to: &TcpStream) -> Result<()> {
    let (read, write) = pipe()?;
    fcntl_setpipe_size(&write, PIPE_LEN)?;
    loop {
        let mut held = match splice(from, None, &write, None, PIPE_LEN, SpliceFlags::MOVE) {
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            held => held?,
        };
        if held == 0 {
            to.shutdown(Shutdown::Write)?;
            return Ok(());
        }
        while held > 0 {
            held -= splice(&read, None, to, None, held, SpliceFlags::MOVE)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use adit_interop::socks_client::{self, Destination};
    use adit_interop::traffic;

    use super::*;

    #[test]
    fn it_goes_where_it_is_told() {
        let far = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpListener::bind("127.0.0.1:0").unwrap();
        let (at, to) = (near.local_addr().unwrap(), far.local_addr().unwrap());
        let relay = |ends: Option<SocketAddr>| {
            let near = near.try_clone().unwrap();
            thread::spawn(move || relay_connection(near.accept().unwrap().0, ends))
        };
        for told in [true, false] {
            let relay = relay((!told).then_some(to));
            let mut client = match told {
                true => socks_client::connect_through(at, None, &Destination::Addr(to)).unwrap(),
                false => traffic::connect_directly(at).unwrap(),
            };
            let (mut target, _) = far.accept().unwrap();
            client.write_all(b"there").unwrap();
            target.write_all(b"back").unwrap();
            let (mut there, mut back) = ([0; 5], [0; 4]);
            target.read_exact(&mut there).unwrap();
            client.read_exact(&mut back).unwrap();
            assert_eq!((&there, &back), (b"there", b"back"));
            drop((client, target));
            // Its end, or a reset.
            let _ = relay.join().unwrap();
        }
    }
}
