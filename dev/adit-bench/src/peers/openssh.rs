//! OpenSSH's client and server.

use std::net::SocketAddr;

use super::ssh_common::{SshUse, client_recipe};
use super::{PeerKind, PeerRole, ProgramPaths, StartRecipe};

pub(super) const KIND: PeerKind = PeerKind {
    name: "OpenSSH",
    programs: &["ssh", "sshd"],
    version: openssh_version,
    recipe: start_recipe,
    relay_files: 4,
    ..PeerKind::DEFAULT
};

fn openssh_version(programs: &ProgramPaths) -> String {
    let told = programs.output_of(&["-V"]);
    told.split(',').next().unwrap_or_default().to_owned()
}

fn start_recipe(role: &PeerRole, at: SocketAddr) -> Option<StartRecipe> {
    match *role {
        PeerRole::SshServer(suite) => {
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
            adit_interop::openssh::create_run_folder();
            Some(
                StartRecipe::new("sshd", "-D -e -f")
                    .with_config(config)
                    .with_keys(),
            )
        }
        PeerRole::SshClient {
            suite,
            server,
            what,
        } => {
            let input = if matches!(what, SshUse::Exec(_)) {
                ""
            } else {
                "-n"
            };
            let line =
                format!("-F none -o IdentitiesOnly=yes {input} -o BatchMode=yes -o LogLevel=ERROR");
            Some(client_recipe(
                StartRecipe::new("ssh", &line),
                at,
                suite,
                server,
                what,
            ))
        }
        _ => None,
    }
}
