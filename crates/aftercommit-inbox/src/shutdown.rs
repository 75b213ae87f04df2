//! When a process is asked to end.

/// Waits until this process is asked to end: by Ctrl-C (SIGINT), or by SIGTERM, which is how service managers and
/// containers ask. For [`Consumer::run`](crate::Consumer::run) and [`Running::until`](crate::Running::until).
///
/// Once it has been polled the signals do not end the process by themselves any more, also after it was dropped.
///
/// # Cancel safety
/// Cancel safe.
pub async fn shutdown_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        // Without a handler the signal ends the process as ever, so there is nothing to wait for.
        if let Ok(mut term) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = term.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
