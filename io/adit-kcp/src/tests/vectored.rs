//! Writes of several buffers.

use std::io::IoSlice;

use tokio::io::AsyncWrite;

use super::*;

/// Writes all of `parts`; returns the number of writes.
async fn write_all(to: &mut (impl AsyncWrite + Unpin), parts: &[Vec<u8>]) -> usize {
    assert!(to.is_write_vectored());
    let mut slices: Vec<_> = parts.iter().map(|part| IoSlice::new(part)).collect();
    let (mut rest, mut writes) = (&mut slices[..], 0);
    while !rest.is_empty() {
        let wrote = timeout(PATIENCE, to.write_vectored(rest)).await;
        let wrote = wrote.unwrap().unwrap();
        IoSlice::advance_slices(&mut rest, wrote);
        writes += 1;
    }
    writes
}

#[tokio::test]
async fn a_stream_takes_all_buffers_of_one_write() {
    let (_listener, mut near, mut far) = pair(plain(), plain()).await;
    let mut noise = BytePattern::new(4);
    let small: Vec<Vec<u8>> = (0..300).map(|len| noise.next_bytes(len % 50)).collect();
    let large: Vec<Vec<u8>> = (0..40).map(|_| noise.next_bytes(9_000)).collect();
    let all = [small.concat(), large.concat()].concat();
    let read = tokio::spawn(async move {
        let mut got = vec![0; all.len()];
        timeout(PATIENCE, far.read_exact(&mut got))
            .await
            .unwrap()
            .unwrap();
        assert!(got == all);
        far
    });
    assert_eq!(write_all(&mut near, &small).await, 1);
    let (_reader, mut writer) = near.into_split();
    let writes = write_all(&mut writer, &large).await;
    assert!(writes < large.len(), "{writes}");
    read.await.unwrap();
}

#[tokio::test]
async fn buffers_of_one_write_are_one_message() {
    let messages = Settings {
        kcp: Config {
            stream: false,
            ..Config::fast2()
        },
        ..plain()
    };
    let (_listener, mut near, mut far) = pair(messages.clone(), messages).await;
    let parts = [&b"a header"[..], b"", &[7; 3000], b"trailer"].map(<[u8]>::to_vec);
    assert_eq!(write_all(&mut near, &parts).await, 1);
    let mut got = vec![0; 5000];
    let n = timeout(PATIENCE, far.read(&mut got))
        .await
        .unwrap()
        .unwrap();
    assert!(got[..n] == parts.concat());
    assert_eq!(near.write_vectored(&[IoSlice::new(b"")]).await.unwrap(), 0);
}
