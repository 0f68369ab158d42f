//! The host key of a listener, which is created and stored if it does not exist.

use std::io::ErrorKind;
use std::path::Path;

use adit_net::persistent_file::{self, FileOwner};
use adit_net::system::SystemRng;
use adit_ssh_proto::key::{KeyType, MAX_KEY_FILE, PrivateKey};

use super::SshPlanError;

/// Reads the key in a file, or creates it if there is no such file. A file that is not a key is left
/// unchanged.
pub(super) fn load_or_create(path: &Path) -> Result<PrivateKey, SshPlanError> {
    let shown = path.display().to_string();
    let unusable = |why| SshPlanError::Key {
        file: shown.clone(),
        why,
    };
    let unkept = |why| SshPlanError::HostKey {
        file: shown.clone(),
        why,
    };
    match FileOwner::current().read_secret(path, MAX_KEY_FILE) {
        Ok(text) => {
            let text = adit_crypto::Secret::new(text);
            PrivateKey::from_text(text.expose(), None).map_err(unusable)
        }
        Err(why) if why.kind() == ErrorKind::NotFound => {
            let key = PrivateKey::generate(KeyType::Ed25519, &mut SystemRng);
            let key = key.map_err(unusable)?.with_comment("adit");
            let text = key.to_openssh(None, &mut SystemRng).map_err(unusable)?;
            persistent_file::write_atomically(path, text.expose().as_bytes()).map_err(unkept)?;
            let mut public = path.as_os_str().to_owned();
            public.push(".pub");
            let line = key.public_key().to_line(key.comment());
            persistent_file::write_atomically(Path::new(&public), format!("{line}\n").as_bytes())
                .map_err(unkept)?;
            Ok(key)
        }
        Err(why) => Err(unkept(why)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_a_broken_file_left_alone() {
        let name = format!("adit-host-key-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        let path = folder.join("deep").join("key");
        let made = load_or_create(&path).unwrap();
        assert_eq!(
            load_or_create(&path).unwrap().public_key(),
            made.public_key()
        );
        let line = fs::read_to_string(folder.join("deep").join("key.pub")).unwrap();
        assert_eq!(line.trim_end(), made.public_key().to_line("adit"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        fs::write(&path, "torn").unwrap();
        assert!(load_or_create(&path).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "torn");
        fs::remove_dir_all(folder).unwrap();
    }
}
