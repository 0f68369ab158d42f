//! Users that are removed while connected.

use std::time::Duration;

use adit_interop::TempFolder;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use crate::world::{KEY, METHOD, echo, socks, start, talk};

const ALICE: &str = "ICEiIyQlJicoKSorLC0uLw==";
const BOB: &str = "MDEyMzQ1Njc4OTo7PD0+Pw==";

#[tokio::test]
async fn their_sessions_end_and_no_others() {
    let folder = TempFolder::new("removal").unwrap();
    let users = format!("alice:{ALICE}\nbob:{BOB}\n");
    let users = folder.write_file("users", users).unwrap();
    let listen = format!(
        "ss://{METHOD}:{KEY}@127.0.0.1:0?allow_private=all&restart=lenient&users=@{}",
        users.display()
    );
    let (server, at) = start(&[&listen]).await;
    let target = echo().await;
    let mut engines = Vec::new();
    let mut sessions = Vec::new();
    for key in [ALICE, BOB] {
        let hop = format!("ss://{METHOD}:{KEY}:{key}@{at}");
        let (client, proxy) = start(&["socks5://127.0.0.1:0", &hop]).await;
        let mut session = socks(proxy, target).await.unwrap();
        assert_eq!(talk(&mut session, b"hello").await.unwrap(), b"hello");
        engines.push(client);
        sessions.push((proxy, session));
    }
    let user_table = server.keyed_servers().remove(0).user_table;
    let before = user_table.total_usage(false);
    user_table.change_users(&["alice"], &[]).unwrap();

    let [(proxy, alice), (_, bob)] = sessions.as_mut_slice() else {
        panic!("two sessions");
    };
    let end = timeout(Duration::from_secs(5), alice.read(&mut [0; 8])).await;
    let end = end.expect("a removed user keeps their session");
    assert!(!matches!(end, Ok(1..)), "{end:?}");
    assert_eq!(talk(bob, b"still here").await.unwrap(), b"still here");
    assert!(
        user_table.total_usage(false).up >= before.up,
        "it stays counted"
    );

    // They cannot open new sessions either.
    if let Ok(mut again) = socks(*proxy, target).await {
        assert!(talk(&mut again, b"hello").await.is_err());
    }
}
