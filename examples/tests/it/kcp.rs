//! KCP.

use crate::support::{run, serve};

#[tokio::test]
async fn kcp_echo_asks_its_own_server() {
    let server = serve("kcp-echo", &["serve", "127.0.0.1:0"]).await;
    let text = "there and back ".repeat(2000);
    let answer = run("kcp-echo", &["ask", &server.addr.to_string(), &text]).await;
    assert_eq!(answer, format!("{text}\n"));
}

#[tokio::test]
async fn kcp_frames_come_back_one_by_one() {
    let server = serve("kcp-frames", &["serve", "127.0.0.1:0", "secret"]).await;
    let addr = server.addr.to_string();
    let args = ["send", &addr, "secret", "one", "two and three", "four"];
    assert_eq!(run("kcp-frames", &args).await, "ONE\nTWO AND THREE\nFOUR\n");
}
