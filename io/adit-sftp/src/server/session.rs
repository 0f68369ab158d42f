//! One client: its requests, passed to a handler one by one.

use adit_ssh_proto::SshError;
use adit_ssh_proto::sftp::{
    ExtendedRequest, HandleId, OpenFlags, ReplyTicket, SftpRequest, SftpServer, SftpServerStep,
    SftpStatus,
};
use adit_wire::usize_from;

use super::entries::Entries;
use super::{Answer, Handler, Refusal};

pub(super) struct Session<H: Handler> {
    handler: H,
    server: SftpServer<Open<H>>,
    /// For reads that wait.
    buffer: Vec<u8>,
}

/// The state of a handle.
enum Open<H: Handler> {
    File(H::File),
    Directory(H::Directory),
}

type Request<'a> = SftpRequest<'a, HandleId>;

impl<H: Handler> Session<H> {
    pub(super) fn new(handler: H) -> Self {
        Self {
            server: SftpServer::new(handler.extensions()),
            handler,
            buffer: Vec::new(),
        }
    }

    /// Executes one message; the answer is appended to `out`.
    pub(super) async fn execute(
        &mut self,
        frame: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), SshError> {
        let SftpServerStep::Execute(ticket, request) = self.server.handle_input(frame, out)? else {
            return Ok(());
        };
        if self.handler.is_read_only() && changes(&request) {
            Refusal::DENIED.answer(ticket, out);
            return Ok(());
        }
        match request {
            SftpRequest::Read {
                handle,
                offset,
                len,
            } => self.read(ticket, handle, offset, len, out).await,
            SftpRequest::Open { path, flags, attrs } => {
                let opened = self.handler.open(path, flags, attrs).await;
                self.opened(ticket, opened.map(Open::File), out);
            }
            SftpRequest::Opendir { path } => {
                let opened = self.handler.open_dir(path).await;
                self.opened(ticket, opened.map(Open::Directory), out);
            }
            SftpRequest::Readdir { handle } => self.list(ticket, handle, out).await,
            SftpRequest::Lstat { .. } | SftpRequest::Stat { .. } | SftpRequest::Fstat { .. } => {
                match self.stat(&request).await {
                    Ok(attrs) => ticket.answer_attrs(&attrs, out),
                    Err(why) => why.answer(ticket, out),
                }
            }
            SftpRequest::Realpath { .. }
            | SftpRequest::Readlink { .. }
            | SftpRequest::Extended(
                ExtendedRequest::ExpandPath { .. } | ExtendedRequest::HomeDirectory { .. },
            ) => match self.path(&request).await {
                Ok(path) => ticket.answer_path(&path, out),
                Err(why) => why.answer(ticket, out),
            },
            SftpRequest::Extended(
                ExtendedRequest::StatVfs { .. } | ExtendedRequest::FStatVfs { .. },
            ) => match self.file_system(&request).await {
                Ok(stat) => ticket.answer_stat_vfs(&stat, out),
                Err(why) => why.answer(ticket, out),
            },
            SftpRequest::Extended(ExtendedRequest::UsersGroupsById { users, groups }) => {
                match self.handler.owner_names(users, groups).await {
                    Ok([users, groups]) => {
                        ticket.answer_users_groups(users.iter(), groups.iter(), out);
                    }
                    Err(why) => why.answer(ticket, out),
                }
            }
            other => match self.change(&other).await {
                Ok(()) => ticket.answer_status(SftpStatus::Ok, out),
                Err(why) => why.answer(ticket, out),
            },
        }
        Ok(())
    }

    fn opened(&mut self, ticket: ReplyTicket, opened: Answer<Open<H>>, out: &mut Vec<u8>) {
        match opened {
            Ok(open) => self.server.answer_opened(ticket, open, out),
            Err(why) => why.answer(ticket, out),
        }
    }

    async fn read(
        &mut self,
        ticket: ReplyTicket,
        handle: HandleId,
        offset: u64,
        len: u32,
        out: &mut Vec<u8>,
    ) {
        let file = match file(&mut self.server, handle) {
            Ok(file) => file,
            Err(why) => return why.answer(ticket, out),
        };
        let handler = &mut self.handler;
        let read = ticket.answer_data(len, out, |room| {
            match handler.read_now(file, offset, room) {
                Some(read) => read.map_err(Some),
                None => Err(None),
            }
        });
        let ticket = match read {
            Ok(()) => return,
            Err((ticket, Some(why))) => return why.answer(ticket, out),
            Err((ticket, None)) => ticket,
        };
        self.buffer.resize(usize_from(len), 0);
        let read = handler.read(file, offset, &mut self.buffer).await;
        let data = read.map(|n| self.buffer.get(..n).unwrap_or(&self.buffer));
        let answered = ticket.answer_data(len, out, |room| {
            let data = data?;
            let n = data.len().min(room.len());
            if let (Some(room), Some(data)) = (room.get_mut(..n), data.get(..n)) {
                room.copy_from_slice(data);
            }
            Ok::<_, Refusal>(n)
        });
        if let Err((ticket, why)) = answered {
            why.answer(ticket, out);
        }
    }

    async fn list(&mut self, ticket: ReplyTicket, handle: HandleId, out: &mut Vec<u8>) {
        let Some(Open::Directory(directory)) = self.server.get_mut(handle) else {
            return Refusal::NOT_FOUND.answer(ticket, out);
        };
        let mut entries = Entries::new(ticket.begin_names(out));
        let listed = self.handler.read_dir(directory, &mut entries).await;
        match listed {
            Ok(()) => entries.into_answer().finish(),
            Err(why) => entries.into_answer().answer_status(why.status()),
        }
    }

    async fn stat(&mut self, request: &Request<'_>) -> Answer<adit_ssh_proto::sftp::FileAttrs> {
        let handler = &mut self.handler;
        match request {
            SftpRequest::Lstat { path } => handler.lstat(path).await,
            SftpRequest::Stat { path } => handler.stat(path).await,
            SftpRequest::Fstat { handle } => match self.server.get_mut(*handle) {
                Some(Open::File(file)) => handler.stat_open(file).await,
                Some(Open::Directory(directory)) => handler.stat_open_dir(directory).await,
                None => Err(Refusal::NOT_FOUND),
            },
            _ => Err(Refusal::UNSUPPORTED),
        }
    }

    async fn path(&mut self, request: &Request<'_>) -> Answer<Vec<u8>> {
        let handler = &mut self.handler;
        match request {
            SftpRequest::Realpath { path: b"" } => handler.real_path(b".").await,
            SftpRequest::Realpath { path } => handler.real_path(path).await,
            SftpRequest::Readlink { path } => handler.read_link(path).await,
            SftpRequest::Extended(ExtendedRequest::ExpandPath { path }) => {
                handler.expand_path(path).await
            }
            SftpRequest::Extended(ExtendedRequest::HomeDirectory { user }) => {
                handler.home_directory(user).await
            }
            _ => Err(Refusal::UNSUPPORTED),
        }
    }

    async fn file_system(
        &mut self,
        request: &Request<'_>,
    ) -> Answer<adit_ssh_proto::sftp::StatVfs> {
        match request {
            SftpRequest::Extended(ExtendedRequest::StatVfs { path }) => {
                self.handler.stat_vfs(path).await
            }
            SftpRequest::Extended(ExtendedRequest::FStatVfs { handle }) => {
                let file = file(&mut self.server, *handle)?;
                self.handler.stat_vfs_open(file).await
            }
            _ => Err(Refusal::UNSUPPORTED),
        }
    }

    /// Executes a request that is answered with a status alone.
    async fn change(&mut self, request: &Request<'_>) -> Answer<()> {
        let handler = &mut self.handler;
        match *request {
            SftpRequest::Close { handle } => match self.server.close(handle) {
                Some(Open::File(file)) => handler.close(file).await,
                Some(Open::Directory(_)) => Ok(()),
                None => Err(Refusal::NOT_FOUND),
            },
            SftpRequest::Write {
                handle,
                offset,
                data,
            } => {
                let file = file(&mut self.server, handle)?;
                handler.write(file, offset, data).await
            }
            SftpRequest::Setstat { path, attrs } => handler.set_stat(path, attrs).await,
            SftpRequest::Fsetstat { handle, attrs } => match self.server.get_mut(handle) {
                Some(Open::File(file)) => handler.set_stat_open(file, attrs).await,
                Some(Open::Directory(directory)) => {
                    handler.set_stat_open_dir(directory, attrs).await
                }
                None => Err(Refusal::NOT_FOUND),
            },
            SftpRequest::Remove { path } => handler.remove_file(path).await,
            SftpRequest::Rmdir { path } => handler.remove_dir(path).await,
            SftpRequest::Mkdir { path, attrs } => handler.create_dir(path, attrs).await,
            SftpRequest::Rename { from, to } => handler.rename(from, to).await,
            SftpRequest::Symlink { target, link } => handler.symlink(target, link).await,
            SftpRequest::Extended(extended) => self.change_more(&extended).await,
            _ => Err(Refusal::UNSUPPORTED),
        }
    }

    async fn change_more(&mut self, request: &ExtendedRequest<'_, HandleId>) -> Answer<()> {
        let handler = &mut self.handler;
        match *request {
            ExtendedRequest::PosixRename { from, to } => handler.posix_rename(from, to).await,
            ExtendedRequest::HardLink { from, to } => handler.hard_link(from, to).await,
            ExtendedRequest::LSetStat { path, attrs } => handler.set_lstat(path, attrs).await,
            ExtendedRequest::FSync { handle } => {
                let file = file(&mut self.server, handle)?;
                handler.sync(file).await
            }
            ExtendedRequest::CopyData {
                from,
                from_offset,
                len,
                to,
                to_offset,
            } => match (self.server.get(from), self.server.get(to)) {
                (Some(Open::File(from)), Some(Open::File(to))) => {
                    let copied = handler.copy_data(from, from_offset, len, to, to_offset);
                    copied.await
                }
                _ => Err(not_a_file()),
            },
            _ => Err(Refusal::UNSUPPORTED),
        }
    }
}

fn file<H: Handler>(server: &mut SftpServer<Open<H>>, handle: HandleId) -> Answer<&mut H::File> {
    match server.get_mut(handle) {
        Some(Open::File(file)) => Ok(file),
        Some(Open::Directory(_)) => Err(not_a_file()),
        None => Err(Refusal::NOT_FOUND),
    }
}

fn not_a_file() -> Refusal {
    Refusal::with_message(SftpStatus::Failure, "Is a directory")
}

/// True for requests that a read-only server refuses.
fn changes(request: &Request<'_>) -> bool {
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
