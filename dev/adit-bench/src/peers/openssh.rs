//! OpenSSH's client and server.

use std::net::SocketAddr;

use super::ssh::{Use, client};
use super::{Kind, Programs, Recipe, Role, Source};

pub(super) const KIND: Kind = Kind {
    name: "OpenSSH",
    programs: &["ssh", "sshd"],
    version,
    recipe,
    threads: None,
    relay_files: 4,
    most_held: None,
    slower: 1,
    source: Source::Installed,
};

fn version(programs: &Programs) -> String {
    let told = programs.ask(&["-V"]);
    told.split(',').next().unwrap_or_default().to_owned()
}

fn recipe(role: &Role, at: SocketAddr) -> Option<Recipe> {
    match *role {
        Role::SshServer(suite) => {
            let macs = suite
                .mac
                .map_or(String::new(), |mac| format!("MACs {mac}\n"));
            let config = format!(
                "Port {}\nListenAddress {}\nHostKey FOLDER/host\n\
                 AuthorizedKeysFile FOLDER/authorized_keys\nPidFile none\nStrictModes no\n\
                 Ciphers {}\n{macs}PermitRootLogin yes\nPasswordAuthentication no\nUsePAM no\n\
                 AllowTcpForwarding yes\n",
                at.port(),
                at.ip(),
                suite.cipher,
            );
            adit_interop::openssh::make_room();
            let recipe = Recipe::new("sshd", ["-D", "-e", "-f"]).with_config(config);
            Some(recipe.with_keys())
        }
        Role::SshClient {
            suite,
            server,
            what,
        } => {
            let mut words: Vec<String> = ["-F", "none", "-o", "IdentitiesOnly=yes"]
                .map(str::to_owned)
                .into();
            if !matches!(what, Use::Exec(_)) {
                words.push("-n".to_owned());
            }
            words.extend(["-o", "BatchMode=yes", "-o", "LogLevel=ERROR"].map(str::to_owned));
            words.extend(client(at, suite, server, what));
            Some(Recipe::new("ssh", words).with_keys())
        }
        _ => None,
    }
}
