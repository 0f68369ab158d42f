//! One client: its requests, executed one by one.

use std::fs::File;
use std::os::unix::fs::FileExt;

use adit_ssh_proto::SshError;
use adit_ssh_proto::sftp::{
    ExtendedRequest, Extension, ExtensionSet, FileAttrs, HandleId, OpenFlags, ReplyTicket,
    SftpRequest, SftpServer, SftpServerStep, SftpStatus,
};
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::fault::{done, errno, refuse};
use super::options::{Options, ServeError};
use super::people::{self, People};
use super::tree::{At, Tree};
use super::{attributes, copy, folder};

#[derive(Debug)]
pub(super) struct Session {
    tree: Tree,
    server: SftpServer<Open>,
    people: People,
    read_only: bool,
}

/// What is behind a handle.
#[derive(Debug)]
enum Open {
    File(File),
    Folder(Dir),
}

impl Session {
    pub(super) fn new(options: &Options) -> Result<Self, ServeError> {
        let mut extensions = ExtensionSet::ALL;
        if options.read_only {
            extensions = extensions
                .without(Extension::PosixRename)
                .without(Extension::HardLink)
                .without(Extension::LSetStat)
                .without(Extension::CopyData);
        }
        Ok(Self {
            tree: Tree::new(options)?,
            server: SftpServer::new(extensions),
            people: People::default(),
            read_only: options.read_only,
        })
    }

    /// Executes one message; the answer is appended to `out`.
    pub(super) fn execute(&mut self, frame: &[u8], out: &mut Vec<u8>) -> Result<(), SshError> {
        let SftpServerStep::Execute(ticket, request) = self.server.handle_input(frame, out)? else {
            return Ok(());
        };
        if self.read_only && changes(&request) {
            ticket.answer_status(SftpStatus::PermissionDenied, out);
            return Ok(());
        }
        match request {
            SftpRequest::Read {
                handle,
                offset,
                len,
            } => self.read(ticket, handle, offset, len, out),
            SftpRequest::Open { path, flags, attrs } => {
                let opened = open(&self.tree, path, flags, &attrs);
                self.opened(ticket, opened.map(Open::File), out);
            }
            SftpRequest::Opendir { path } => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY;
                let opened = self
                    .tree
                    .open(path, flags, Mode::empty())
                    .and_then(Dir::new);
                self.opened(ticket, opened.map(Open::Folder), out);
            }
            SftpRequest::Readdir { handle } => match self.server.get_mut(handle) {
                Some(Open::Folder(dir)) => {
                    let now = i64::try_from(adit_net::system::unix_now().0).unwrap_or(i64::MAX);
                    folder::list(ticket, dir, &mut self.people, now, out);
                }
                _ => refuse(ticket, Errno::NOTDIR, out),
            },
            SftpRequest::Lstat { .. } | SftpRequest::Stat { .. } | SftpRequest::Fstat { .. } => {
                match self.stat(&request) {
                    Ok(stat) => ticket.answer_attrs(&attributes::attrs(&stat), out),
                    Err(why) => refuse(ticket, why, out),
                }
            }
            SftpRequest::Realpath { .. }
            | SftpRequest::Readlink { .. }
            | SftpRequest::Extended(
                ExtendedRequest::ExpandPath { .. } | ExtendedRequest::HomeDirectory { .. },
            ) => match self.path(&request) {
                Ok(path) => ticket.answer_path(&path, out),
                Err(why) => refuse(ticket, why, out),
            },
            SftpRequest::Extended(
                ExtendedRequest::StatVfs { .. } | ExtendedRequest::FStatVfs { .. },
            ) => match self.file_system(&request) {
                Ok(stat) => ticket.answer_stat_vfs(&stat, out),
                Err(why) => refuse(ticket, why, out),
            },
            SftpRequest::Extended(ExtendedRequest::UsersGroupsById { users, groups }) => {
                let name = |name: Option<&str>| name.unwrap_or_default().to_owned();
                let users: Vec<String> =
                    users.iter().map(|id| name(self.people.user(id))).collect();
                let groups: Vec<String> = groups
                    .iter()
                    .map(|id| name(self.people.group(id)))
                    .collect();
                ticket.answer_users_groups(users.iter(), groups.iter(), out);
            }
            other => done(ticket, self.change(&other), out),
        }
        Ok(())
    }

    fn opened(&mut self, ticket: ReplyTicket, opened: Result<Open, Errno>, out: &mut Vec<u8>) {
        match opened {
            Ok(open) => self.server.answer_opened(ticket, open, out),
            Err(why) => refuse(ticket, why, out),
        }
    }

    fn read(
        &self,
        ticket: ReplyTicket,
        handle: HandleId,
        offset: u64,
        len: u32,
        out: &mut Vec<u8>,
    ) {
        let file = match self.file(handle) {
            Ok(file) => file,
            Err(why) => return refuse(ticket, why, out),
        };
        let read = ticket.answer_data(len, out, |room| {
            loop {
                match file.read_at(room, offset) {
                    Err(why) if why.kind() == std::io::ErrorKind::Interrupted => {}
                    outcome => return outcome,
                }
            }
        });
        if let Err((ticket, why)) = read {
            refuse(ticket, errno(&why), out);
        }
    }

    fn file(&self, handle: HandleId) -> Result<&File, Errno> {
        match self.server.get(handle) {
            Some(Open::File(file)) => Ok(file),
            Some(Open::Folder(_)) => Err(Errno::ISDIR),
            None => Err(Errno::BADF),
        }
    }

    fn stat(&self, request: &SftpRequest<'_, HandleId>) -> Result<Stat, Errno> {
        match request {
            SftpRequest::Lstat { path } => {
                let at = self.tree.at(path)?;
                rustix::fs::statat(at.dir(), at.name(), AtFlags::SYMLINK_NOFOLLOW)
            }
            SftpRequest::Stat { path } => {
                let file = self.tree.reach(path)?;
                rustix::fs::statat(CWD, file.path(), AtFlags::empty())
            }
            SftpRequest::Fstat { handle } => match self.server.get(*handle) {
                Some(Open::File(file)) => rustix::fs::fstat(file),
                Some(Open::Folder(dir)) => dir.stat(),
                None => Err(Errno::BADF),
            },
            _ => Err(Errno::NOSYS),
        }
    }

    fn path(&self, request: &SftpRequest<'_, HandleId>) -> Result<Vec<u8>, Errno> {
        match request {
            SftpRequest::Realpath { path: b"" } => self.tree.real(b"."),
            SftpRequest::Realpath { path } => self.tree.real(path),
            SftpRequest::Readlink { path } => {
                let at = self.tree.at(path)?;
                let target = rustix::fs::readlinkat(at.dir(), at.name(), Vec::new())?;
                Ok(target.into_bytes())
            }
            SftpRequest::Extended(ExtendedRequest::ExpandPath { path }) => {
                let Some(rest) = path.strip_prefix(b"~") else {
                    return self.tree.real(path);
                };
                let slash = rest.iter().position(|b| *b == b'/').unwrap_or(rest.len());
                let (user, below) = rest.split_at_checked(slash).unwrap_or((rest, b""));
                let mut home = self.home(user)?;
                home.extend_from_slice(below);
                self.tree.real(&home)
            }
            SftpRequest::Extended(ExtendedRequest::HomeDirectory { user }) => self.home(user),
            _ => Err(Errno::NOSYS),
        }
    }

    /// The home of a user; with a root everyone's is where a session begins.
    fn home(&self, user: &[u8]) -> Result<Vec<u8>, Errno> {
        if self.tree.is_confined() {
            return Ok(self.tree.start().to_vec());
        }
        people::home(user).ok_or(Errno::NOENT)
    }

    fn file_system(
        &self,
        request: &SftpRequest<'_, HandleId>,
    ) -> Result<adit_ssh_proto::sftp::StatVfs, Errno> {
        match request {
            SftpRequest::Extended(ExtendedRequest::StatVfs { path }) => {
                attributes::file_system(&self.tree, path)
            }
            SftpRequest::Extended(ExtendedRequest::FStatVfs { handle }) => {
                attributes::file_system_of(self.file(*handle)?)
            }
            _ => Err(Errno::NOSYS),
        }
    }

    /// Does what gives nothing but how it ended.
    fn change(&mut self, request: &SftpRequest<'_, HandleId>) -> Result<(), Errno> {
        let tree = &self.tree;
        match *request {
            SftpRequest::Close { handle } => self.server.close(handle).map(drop).ok_or(Errno::BADF),
            SftpRequest::Write {
                handle,
                offset,
                data,
            } => {
                let file = self.file(handle)?;
                file.write_all_at(data, offset).map_err(|why| errno(&why))
            }
            SftpRequest::Setstat { path, attrs } => attributes::set(tree, path, &attrs),
            SftpRequest::Fsetstat { handle, attrs } => match self.server.get(handle) {
                Some(Open::File(file)) => attributes::set_open(file, &attrs),
                Some(Open::Folder(dir)) => attributes::set_open(dir.fd()?, &attrs),
                None => Err(Errno::BADF),
            },
            SftpRequest::Remove { path } => unlink(&tree.at_to_change(path)?, AtFlags::empty()),
            SftpRequest::Rmdir { path } => unlink(&tree.at_to_change(path)?, AtFlags::REMOVEDIR),
            SftpRequest::Mkdir { path, attrs } => {
                let at = tree.at_to_change(path)?;
                let mode = attributes::new_mode(&attrs, 0o777);
                rustix::fs::mkdirat(at.dir(), at.name(), mode)
            }
            SftpRequest::Rename { from, to } => {
                rename_new(&tree.at_to_change(from)?, &tree.at_to_change(to)?)
            }
            SftpRequest::Symlink { target, link } => {
                let at = tree.at_to_change(link)?;
                rustix::fs::symlinkat(target, at.dir(), at.name())
            }
            SftpRequest::Extended(extended) => self.change_more(&extended),
            _ => Err(Errno::NOSYS),
        }
    }

    fn change_more(&self, request: &ExtendedRequest<'_, HandleId>) -> Result<(), Errno> {
        let tree = &self.tree;
        match *request {
            ExtendedRequest::PosixRename { from, to } => {
                let (from, to) = (tree.at_to_change(from)?, tree.at_to_change(to)?);
                rustix::fs::renameat(from.dir(), from.name(), to.dir(), to.name())
            }
            ExtendedRequest::HardLink { from, to } => {
                link(&tree.at_to_change(from)?, &tree.at_to_change(to)?)
            }
            ExtendedRequest::LSetStat { path, attrs } => attributes::set_link(tree, path, &attrs),
            ExtendedRequest::FSync { handle } => rustix::fs::fsync(self.file(handle)?),
            ExtendedRequest::CopyData {
                from,
                from_offset,
                len,
                to,
                to_offset,
            } => copy::copy(
                (self.file(from)?, from_offset),
                len,
                (self.file(to)?, to_offset),
            ),
            _ => Err(Errno::NOSYS),
        }
    }
}

/// Whether a request is one that a server which is read only refuses.
fn changes(request: &SftpRequest<'_, HandleId>) -> bool {
    match request {
        SftpRequest::Open { flags, .. } => {
            *flags != OpenFlags::READ && *flags != OpenFlags::default()
        }
        SftpRequest::Write { .. }
        | SftpRequest::Setstat { .. }
        | SftpRequest::Fsetstat { .. }
        | SftpRequest::Remove { .. }
        | SftpRequest::Mkdir { .. }
        | SftpRequest::Rmdir { .. }
        | SftpRequest::Rename { .. }
        | SftpRequest::Symlink { .. } => true,
        SftpRequest::Extended(extended) => matches!(
            extended,
            ExtendedRequest::PosixRename { .. }
                | ExtendedRequest::HardLink { .. }
                | ExtendedRequest::LSetStat { .. }
                | ExtendedRequest::CopyData { .. }
        ),
        _ => false,
    }
}

fn open(tree: &Tree, path: &[u8], wish: OpenFlags, attrs: &FileAttrs) -> Result<File, Errno> {
    // Opening a pipe must not wait for its other end.
    let mut flags = OFlags::NONBLOCK;
    flags |= match (
        wish.contains(OpenFlags::READ),
        wish.contains(OpenFlags::WRITE),
    ) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        (_, false) => OFlags::RDONLY,
    };
    for (one, flag) in [
        (OpenFlags::APPEND, OFlags::APPEND),
        (OpenFlags::CREATE, OFlags::CREATE),
        (OpenFlags::TRUNCATE, OFlags::TRUNC),
        (OpenFlags::EXCLUSIVE, OFlags::EXCL),
    ] {
        flags.set(flag, wish.contains(one));
    }
    let file = tree.open(path, flags, attributes::new_mode(attrs, 0o666))?;
    Ok(File::from(file))
}

fn unlink(at: &At<'_>, flags: AtFlags) -> Result<(), Errno> {
    rustix::fs::unlinkat(at.dir(), at.name(), flags)
}

fn link(from: &At<'_>, to: &At<'_>) -> Result<(), Errno> {
    let (source, target) = (from.name(), to.name());
    rustix::fs::linkat(from.dir(), source, to.dir(), target, AtFlags::empty())
}

/// Renames, unless the new name is there already.
fn rename_new(from: &At<'_>, to: &At<'_>) -> Result<(), Errno> {
    let (source, target) = (from.name(), to.name());
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{RenameFlags, renameat_with};
        let flags = RenameFlags::NOREPLACE;
        match renameat_with(from.dir(), source, to.dir(), target, flags) {
            // Not every file system has it.
            Err(Errno::INVAL | Errno::NOSYS) => {}
            outcome => return outcome,
        }
    }
    let nofollow = AtFlags::SYMLINK_NOFOLLOW;
    let found = rustix::fs::statat(from.dir(), source, nofollow)?;
    if rustix::fs::FileType::from_raw_mode(found.st_mode).is_file() {
        link(from, to)?;
        return unlink(from, AtFlags::empty());
    }
    match rustix::fs::statat(to.dir(), target, nofollow) {
        Ok(_) => Err(Errno::EXIST),
        Err(Errno::NOENT) => rustix::fs::renameat(from.dir(), source, to.dir(), target),
        Err(why) => Err(why),
    }
}
