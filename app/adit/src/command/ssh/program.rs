//! A program on the host: what it needs, its streams, its end.

use adit_session::ssh::client::Exit;
use adit_ssh::auth::visible;

use super::connect::Reached;
use super::{OWN, stdio};
use crate::report::{Code, Failure};

/// Runs a command, or a shell, to its end; gives its exit code.
pub(super) async fn run(reached: &Reached, command: Option<Vec<u8>>) -> Result<u8, Failure> {
    let session = &reached.session;
    let refused = |why: &dyn std::fmt::Display| {
        let what = format!("{}: {why}", reached.settings.host_name);
        Failure::new(Code::Failure, what)
    };
    let program = session.open_session().await.map_err(|why| refused(&why))?;
    match command {
        Some(command) => program.exec(command).await,
        None => program.shell().await,
    }
    .map_err(|why| refused(&why))?;
    let (control, channel, errors) = program.into_parts();
    let (reader, writer) = channel.into_split();
    stdio::input(writer);
    let (out, err) = (stdio::output(reader), stdio::errors(errors));
    let (out, err) = (out.await, err.await);
    let exit = control.wait().await;
    if let Some(end) = session.end().filter(|_| exit.is_none()) {
        return Err(refused(&end));
    }
    for done in [out, err] {
        done.map_err(|why| Failure::new(Code::Failure, why.to_string()))?;
    }
    match exit {
        Some(Exit::Status(status)) => Ok(u8::try_from(status & 0xff).unwrap_or(OWN)),
        Some(Exit::Signal { name, message, .. }) => {
            let mut what = format!("the program was ended by SIG{}", visible(&name));
            if !message.is_empty() {
                what = format!("{what}: {}", visible(&message));
            }
            Err(Failure::new(Code::Failure, what))
        }
        None => Err(refused(
            &"the channel closed without a word about the program's end",
        )),
    }
}
