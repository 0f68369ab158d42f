//! The event stream and the history.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use adit_interop::TEST_TIMEOUT;
use serde_json::Value;

use super::world::{World, echoes};

/// Reads the data of the next event.
fn next_event(stream: &mut impl BufRead) -> Value {
    let mut event = String::new();
    loop {
        let mut line = String::new();
        assert!(
            stream.read_line(&mut line).unwrap() > 0,
            "the stream has ended"
        );
        match line.split_once(": ") {
            Some(("event", name)) => event = name.trim().to_owned(),
            Some(("data", data)) => {
                assert_eq!(event, "overview");
                return serde_json::from_str(data).unwrap();
            }
            _ => {}
        }
    }
}

#[test]
fn events_show_the_traffic_of_now_and_the_history_that_of_the_past() {
    let world = World::start_proxy();
    let mut events = BufReader::new(world.open_events());
    let first = next_event(&mut events);
    assert_eq!(
        (&first["upRate"], &first["sessionsOpen"]),
        (&0.into(), &0.into())
    );
    // A transfer of unlimited size, in another thread.
    let mut session = world.session();
    let transfer = thread::spawn(move || {
        session.write_all(b"GET 400000000 1\n").unwrap();
        let mut buffer = vec![0; 100_000];
        let mut sum = 0;
        while let Ok(n @ 1..) = session.read(&mut buffer) {
            sum += n;
            thread::sleep(Duration::from_millis(2));
        }
        sum
    });
    let deadline = Instant::now() + TEST_TIMEOUT;
    let busy = loop {
        let event = next_event(&mut events);
        if event["downRate"].as_u64().unwrap() > 100_000 {
            break event;
        }
        assert!(Instant::now() < deadline, "{event:#}");
    };
    assert_eq!(busy["sessionsOpen"], 1);
    let history = world.wait_for("/history", |found| {
        let down = found["down"].as_array().unwrap();
        down.iter().any(|rate| rate.as_u64() > Some(100_000))
    });
    assert_eq!(history["interval"], 5);
    assert_eq!(
        history["up"].as_array().unwrap().len(),
        history["down"].as_array().unwrap().len()
    );
    let list = world.json("/sessions");
    let id = &list["sessions"][0]["id"];
    assert_eq!(world.say(&format!("DELETE /sessions/{id}")).status, 204);
    assert!(transfer.join().unwrap() > 100_000);
    world.adit.stop().unwrap();
}

/// 64 streams whose clients never read: the next one is refused, and everything else continues.
#[test]
fn streams_are_limited_and_slow_readers_delay_nothing() {
    let world = World::start_proxy();
    let streams: Vec<TcpStream> = (0..64).map(|_| world.open_events()).collect();
    let refused = world.say("GET /events");
    assert_eq!(refused.status, 503, "{}", refused.body);
    thread::sleep(Duration::from_secs(3));
    let mut session = world.session();
    session.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    session.write_all(b"ECHO\n").unwrap();
    assert!(echoes(&mut session));
    assert_eq!(world.json("/overview")["sessionsOpen"], 1);
    let mut one = BufReader::new(streams.into_iter().next().unwrap());
    next_event(&mut one);
    drop(one);
    // The slots of closed streams are free again.
    let deadline = Instant::now() + TEST_TIMEOUT;
    let stream = loop {
        let mut stream = TcpStream::connect(world.api).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let token = super::world::TOKEN;
        let request = format!(
            "GET /events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\r\n",
            world.api
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        if &head == b"HTTP/1.1 200" {
            break stream;
        }
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(50));
    };
    next_event(&mut BufReader::new(stream));
    world.adit.stop().unwrap();
}
