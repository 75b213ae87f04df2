//! The processes of a run: what they are told, what they do, what they say.

mod acker;
mod assignment;
mod broker;
mod consumer;
mod journal;
mod naive;
mod producer;
mod source;

use std::io::{BufRead, Read};
use std::process::ExitCode;

use aftercommit::core::chain;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::LabError;

pub(crate) use assignment::{Assignment, Consume, Method, Part};
pub(crate) use journal::{Journal, now, snapshot};

/// As a process that was killed by a signal looks to its shell.
pub(crate) const HALTED: u8 = 137;
/// It could not do its part.
const FAILED: u8 = 3;

/// What the program does when it is started as a process of a run: reads from its input what it is to do, does it, and
/// writes a line per event. It ends in good order on SIGTERM, and when its input ends because the run is gone.
///
/// # Cancel safety
/// A dropped future leaves the part half done.
pub async fn run() -> ExitCode {
    match play().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", chain(&error));
            ExitCode::from(FAILED)
        }
    }
}

async fn play() -> Result<(), LabError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(LabError::doing("waiting for SIGTERM"))?;
    let (told, ended) = input();
    let text = told.await.map_err(LabError::doing("reading what to do"))?;
    // The parser's own text may repeat what it read, and that has passwords in it.
    let told: Assignment = serde_json::from_str(&text)
        .map_err(|_| LabError::failed("this is started by the lab, which says on the input what to do"))?;
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = ended => {}
        }
    };
    match told.part {
        Part::Producer { sends, at_once } => producer::run(&told.site, sends, at_once, stop).await,
        Part::Consumer(part) => consumer::run(&told.site, part, stop).await,
    }
}

/// The first line of the input, and a future that is ready when the input has ended. A thread of our own reads it, since
/// a runtime waits at its end for the threads that it reads with.
fn input() -> (oneshot::Receiver<String>, oneshot::Receiver<()>) {
    let (tell, told) = oneshot::channel();
    let (end, ended) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        // Dropped with the thread, however that ends.
        let _end = end;
        let mut input = std::io::stdin().lock();
        let mut text = String::new();
        if input.read_line(&mut text).is_ok() && tell.send(text).is_ok() {
            let mut byte = [0];
            while input.read(&mut byte).is_ok_and(|read| read > 0) {}
        }
    });
    (told, ended)
}
