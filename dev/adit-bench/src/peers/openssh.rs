//! OpenSSH's client and server.

use std::net::SocketAddr;

use super::ssh::{Use, client};
use super::{Kind, Programs, Recipe, Role};

pub(super) const KIND: Kind = Kind {
    name: "OpenSSH",
    programs: &["ssh", "sshd"],
    version,
    recipe,
    relay_files: 4,
    ..Kind::USUAL
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
            Some(
                Recipe::new("sshd", "-D -e -f")
                    .with_config(config)
                    .with_keys(),
            )
        }
        Role::SshClient {
            suite,
            server,
            what,
        } => {
            let input = if matches!(what, Use::Exec(_)) {
                ""
            } else {
                "-n"
            };
            let line =
                format!("-F none -o IdentitiesOnly=yes {input} -o BatchMode=yes -o LogLevel=ERROR");
            Some(client(Recipe::new("ssh", &line), at, suite, server, what))
        }
        _ => None,
    }
}
