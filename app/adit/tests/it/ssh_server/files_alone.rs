//! `internal-sftp`, forced by a key or by the server: files, and no access to anything else.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;

use super::files::client;
use super::world::{Guard, Host, destination, ended, until};

/// Runs a batch of commands, each of which may fail.
fn batch(host: &Host, commands: &[String]) {
    let lines: String = commands.iter().map(|one| format!("-{one}\n")).collect();
    let batch = host.folder.write_file("batch", lines).unwrap();
    let mut sftp = client(host, "sftp", &["-b", batch.to_str().unwrap()]);
    sftp.arg(destination());
    let output = ended(sftp, b"");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn who_gets_in_cannot_be_changed_by_files() {
    for by_key in [true, false] {
        let forced = "internal-sftp";
        let options: &[&str] = if by_key { &[] } else { &["--command", forced] };
        let host = Host::with_keys(options, |line| match by_key {
            true => format!("command=\"{forced}\" {line}\n"),
            false => format!("{line}\n"),
        });
        let (keys, folder) = (host.path("keys"), host.folder.path().display().to_string());
        let line = fs::read_to_string(host.path("id.pub")).unwrap();
        let evil = format!("environment=\"LD_PRELOAD=/x.so\" {line}");
        let evil = host.folder.write_file("evil", evil).unwrap();
        let evil = evil.display().to_string();
        let about = |path: &Path| {
            let found = fs::metadata(path).unwrap();
            (found.ino(), found.mode(), fs::read(path).unwrap())
        };
        let before = about(&keys);
        let secret = fs::read(host.path("host")).unwrap();
        let proc = format!("/proc/self/root{folder}");
        let attempts = [
            "put {evil} {folder}/keys",
            "put -a {evil} {folder}/keys",
            "put {evil} {folder}/../{name}/keys",
            "put {evil} {proc}/keys",
            "symlink {folder}/keys {folder}/soft",
            "put {evil} {folder}/soft",
            "ln {folder}/keys {folder}/hard",
            "put {evil} {folder}/hard",
            "chmod 666 {folder}/keys",
            "put {evil} {folder}/new",
            "rename {folder}/new {folder}/keys",
            "rename {folder}/keys {folder}/old",
            "rm {folder}/keys",
            "put {evil} {folder}/keys",
            "rename {folder} {folder}-old",
            "put {evil} {folder}/host",
            "rm {folder}/host.pub",
            "get {folder}/host {folder}/stolen",
            "get /proc/self/environ {folder}/stolen",
            "put {evil} /proc/self/mem",
        ];
        let name = host.folder.path().file_name().unwrap().to_string_lossy();
        let commands = attempts.map(|attempt| {
            attempt
                .replace("{evil}", &evil)
                .replace("{folder}", &folder)
                .replace("{proc}", &proc)
                .replace("{name}", &name)
        });
        batch(&host, &commands);
        let after = about(&keys);
        assert!(before == after, "{:?}", String::from_utf8_lossy(&after.2));
        for name in ["soft", "hard"] {
            // A file that was put there must be a separate file.
            let other = fs::metadata(host.path(name)).map(|found| found.ino());
            assert!(name == "soft" || other.ok() != Some(after.0), "{name}");
        }
        assert!(fs::read(host.path("host")).unwrap() == secret);
        assert!(host.path("host.pub").exists());
        assert!(!host.path("stolen").exists());
        // Other files next to them are created and removed.
        let mut listed = client(&host, "sftp", &["-b", "-"]);
        listed.arg(destination());
        let commands = format!("ls {folder}\nrename {folder}/new {folder}/renamed\n");
        let listed = ended(listed, commands.as_bytes());
        assert!(listed.status.success(), "{listed:?}");
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        assert!(listed.contains("/evil"), "{listed}");
        assert_eq!(
            fs::read(host.path("renamed")).unwrap(),
            fs::read(evil).unwrap()
        );
    }
}

#[test]
fn files_alone_are_no_forwards_and_no_terminal() {
    let by_key = Host::with_keys(&["--permit-user-environment"], |line| {
        format!("command=\"internal-sftp\",environment=\"MARK=a\" {line}\n")
    });
    let by_server = Host::start(&["--command", "internal-sftp"]);
    for mut host in [by_key, by_server] {
        let place = host.adit.addr().to_string();
        let through = ended(host.ssh(&["-W", &place], ""), b"");
        assert_eq!(
            (through.status.code(), &*through.stdout),
            (Some(255), &b""[..])
        );
        let back = ["-o", "ExitOnForwardFailure=yes", "-R", "0:127.0.0.1:1"];
        assert_eq!(host.run(&back, "true").0, Some(255));
        assert_eq!(host.run(&["-tt"], "tty").0, Some(255));
        // The process that serves the files has no variables, neither the key's nor the client's.
        let mut sftp = client(&host, "sftp", &["-o", "SetEnv=LANG=C LC_MARK=b"]);
        sftp.arg(destination()).stdin(Stdio::piped());
        let _sftp = Guard::spawn(sftp.stdout(Stdio::null()).stderr(Stdio::null()));
        let adit = host.adit.process().id();
        let mut served = None;
        until("a server of files", || {
            served = children(adit).find(|pid| {
                let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                line.windows(11).any(|word| word == b"sftp-server")
            });
            served.is_some()
        });
        let environment = fs::read(format!("/proc/{}/environ", served.unwrap())).unwrap();
        assert_eq!(String::from_utf8_lossy(&environment), "");
    }
}

/// Returns the child processes of a process.
fn children(of: u32) -> impl Iterator<Item = u32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    all.filter(move |pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let behind = stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned());
        let parent = behind.and_then(|rest| rest.split(' ').nth(1)?.parse::<u32>().ok());
        parent == Some(of)
    })
}
