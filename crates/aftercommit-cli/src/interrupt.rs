use tokio::signal::unix::{SignalKind, signal};

use aftercommit_lab::LabError;

use crate::say;

/// Ready at the first Ctrl-C, SIGTERM or end of the terminal after this call. From then on those signals no longer end
/// the process by themselves: it is cleaning up.
pub(crate) fn interrupted() -> Result<impl Future<Output = ()>, LabError> {
    let wait = |kind| {
        signal(kind).map_err(|error| LabError::Failed {
            what: "waiting for signals".to_owned(),
            source: Some(error.into()),
        })
    };
    let mut int = wait(SignalKind::interrupt())?;
    let mut term = wait(SignalKind::terminate())?;
    let mut hangup = wait(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = int.recv() => {}
            _ = term.recv() => {}
            _ = hangup.recv() => {}
        }
        say::err("interrupted: ending its processes and removing what it made");
    })
}
