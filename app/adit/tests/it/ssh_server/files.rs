//! Files with sftp and with both kinds of scp.

use std::fs;
use std::path::Path;
use std::process::Command;

use adit_interop::BytePattern;

use super::world::{Host, destination, ended};

/// Returns `scp` or `sftp` as a client of this host.
pub(super) fn client(host: &Host, program: &str, options: &[&str]) -> Command {
    let mut command = Command::new(program);
    let ssh = host.options(&[]);
    let port = host.port().to_string();
    // The same options, except for another letter of the port.
    let words = ssh
        .get_args()
        .map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = words
        .filter(|word| *word != port)
        .filter(|word| word != "-p")
        .collect();
    command.args(options).args(words).args(["-P", &port]);
    command
}

fn remote(path: &Path) -> String {
    format!("{}:{}", destination(), path.display())
}

#[test]
fn both_kinds_of_scp() {
    let host = Host::start(&[]);
    let (here, there, back) = (host.path("here"), host.path("there"), host.path("back"));
    let bytes = BytePattern::new(9).next_bytes(3 << 20);
    fs::write(&here, &bytes).unwrap();
    for kind in ["-O", "-s"] {
        let mut up = client(&host, "scp", &[kind]);
        let output = ended(
            {
                up.arg(&here).arg(remote(&there));
                up
            },
            b"",
        );
        assert!(output.status.success(), "{kind}: {output:?}");
        let mut down = client(&host, "scp", &[kind]);
        let output = ended(
            {
                down.arg(remote(&there)).arg(&back);
                down
            },
            b"",
        );
        assert!(output.status.success(), "{kind}: {output:?}");
        assert!(fs::read(&back).unwrap() == bytes, "{kind}");
        fs::remove_file(&there).unwrap();
        fs::remove_file(&back).unwrap();
    }
}

#[test]
fn sftp_and_nothing_but_sftp() {
    let host = Host::start(&[]);
    let folder = host.path("folder");
    let batch = format!(
        "mkdir {0}\nput {1} {0}/id\nls -l {0}\n",
        folder.display(),
        host.key().display()
    );
    let batch = host.folder.write_file("batch", batch).unwrap();
    let mut sftp = client(&host, "sftp", &["-b", batch.to_str().unwrap()]);
    sftp.arg(destination());
    let output = ended(sftp, b"");
    assert!(output.status.success(), "{output:?}");
    let copied = fs::read(folder.join("id")).unwrap();
    assert!(copied == fs::read(host.key()).unwrap());
    let (status, ..) = host.run(&["-s"], "no-such-subsystem");
    assert_eq!(status, Some(255));

    // If it is forced, it replaces any requested command.
    let host = Host::start(&["--command", "internal-sftp -R"]);
    let target = host.path("new");
    let batch = format!("pwd\n-put {} {}\n", host.key().display(), target.display());
    let batch = host.folder.write_file("batch", batch).unwrap();
    let mut sftp = client(&host, "sftp", &["-b", batch.to_str().unwrap()]);
    sftp.arg(destination());
    let output = ended(sftp, b"");
    assert!(output.status.success(), "{output:?}");
    assert!(!target.exists(), "nothing can be changed");
    let (_, out, _) = host.run(&[], &format!("touch {}", target.display()));
    assert!(!target.exists(), "{out}");
}
