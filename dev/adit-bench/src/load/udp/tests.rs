//! Datagrams through relays that lose, duplicate and change them.

use super::*;
use crate::load::in_flight::LOST_AFTER;

/// A relay of datagrams that drops, duplicates or changes some by their number.
fn relay(to: SocketAddr, fate: impl Fn(u64) -> u32 + Send + 'static, flip: bool) -> SocketAddr {
    let near = UdpSocket::bind(loopback_addr(0)).unwrap();
    let addr = near.local_addr().unwrap();
    let far = bind_socket().unwrap();
    far.connect(to).unwrap();
    let (near_back, far_back) = (near.try_clone().unwrap(), far.try_clone().unwrap());
    let pass = move |packet: &mut [u8], send: &dyn Fn(&[u8])| {
        let number = u64::from_be_bytes(*packet.first_chunk().unwrap());
        if flip && number != HELLO_NUMBER {
            packet[20] ^= 1;
        }
        let copies = if number == HELLO_NUMBER {
            1
        } else {
            fate(number)
        };
        (0..copies).for_each(|_| send(packet));
    };
    let pass = std::sync::Arc::new(std::sync::Mutex::new(pass));
    let client = std::sync::Arc::new(std::sync::Mutex::new(None));
    let (pass_back, client_back) = (pass.clone(), client.clone());
    thread::spawn(move || {
        let mut buf = [0; 2048];
        while let Ok((len, from)) = near.recv_from(&mut buf) {
            *client.lock().unwrap() = Some(from);
            pass.lock().unwrap()(&mut buf[..len], &|p| drop(far.send(p)));
        }
    });
    thread::spawn(move || {
        let mut buf = [0; 2048];
        while let Ok(len) = far_back.recv(&mut buf) {
            let to = client_back.lock().unwrap().unwrap();
            pass_back.lock().unwrap()(&mut buf[..len], &|p| drop(near_back.send_to(p, to)));
        }
    });
    addr
}

fn run(
    fate: impl Fn(u64) -> u32 + Send + 'static,
    flip: bool,
    direction: LoadDirection,
    count: u64,
) -> Result<DatagramDelivery> {
    let origin = UdpOrigin::bind().unwrap();
    let entry = relay(origin.addr().unwrap(), fate, flip);
    origin
        .open_session(entry)?
        .send_one_way(direction, count, SendPace::Window(32))
}

#[test]
fn all_arrive_both_ways() {
    for direction in LoadDirection::BOTH {
        let delivery = run(|_| 1, false, direction, 500).unwrap();
        assert_eq!(
            (delivery.sent, delivery.delivered, delivery.duplicates),
            (500, 500, 0)
        );
    }
}

#[test]
fn loss_and_doubling_are_counted() {
    let delivery = run(
        |n| if n % 100 == 7 { 0 } else { 1 },
        false,
        LoadDirection::Up,
        500,
    )
    .unwrap();
    assert_eq!((delivery.delivered, delivery.duplicates), (495, 0));
    let delivery = run(
        |n| if n % 100 == 7 { 2 } else { 1 },
        false,
        LoadDirection::Down,
        500,
    )
    .unwrap();
    assert_eq!((delivery.delivered, delivery.duplicates), (500, 5));
}

#[test]
fn a_standstill_is_paid_once() {
    // Two windows are lost in all: each time one has filled up costs a standstill, and the sender
    // is woken in between.
    let start = Instant::now();
    let fate = |n: u64| u32::from(!n.is_multiple_of(50));
    let delivery = run(fate, false, LoadDirection::Up, 3000).unwrap();
    assert_eq!(delivery.delivered, 2940);
    assert!(
        start.elapsed() < 16 * LOST_AFTER + STRAGGLER_WAIT,
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn a_steady_run_is_as_long_as_its_rate_says() {
    let origin = UdpOrigin::bind().unwrap();
    let entry = relay(origin.addr().unwrap(), |_| 1, false);
    let session = origin.open_session(entry).unwrap();
    let pace = SendPace::Bits(20_000_000);
    let delivery = session.send_one_way(LoadDirection::Up, 200, pace).unwrap();
    // 199 gaps of 556 µs are 110 ms. If the machine stalls, the sender catches up, and the first
    // arrival may be late itself; a flood takes a millisecond.
    assert!(
        delivery.elapsed >= Duration::from_millis(40),
        "{delivery:?}"
    );
    assert_eq!(delivery.delivered, 200);
}

#[test]
fn changed_bytes_fail() {
    assert!(run(|_| 1, true, LoadDirection::Up, 500).is_err());
}

#[test]
fn a_flood_ends_even_if_much_is_lost() {
    let origin = UdpOrigin::bind().unwrap();
    let entry = relay(origin.addr().unwrap(), |n| u32::from(n % 2 == 0), false);
    let session = origin.open_session(entry).unwrap();
    let delivery = session
        .send_one_way(LoadDirection::Up, 400, SendPace::Flood)
        .unwrap();
    assert!(
        delivery.delivered <= 200 && delivery.delivered > 0,
        "{delivery:?}"
    );
}

#[test]
fn silence_is_an_error() {
    let deaf = UdpSocket::bind(loopback_addr(0)).unwrap();
    let origin = UdpOrigin::bind().unwrap();
    assert!(origin.open_session(deaf.local_addr().unwrap()).is_err());
}
