//! Futures over a borrowed database connection cannot be shown to be `Send` for every lifetime
//! (a limit of the compiler), so they cannot stand in a spawned task. They
//! are driven on a blocking thread instead, within the same runtime.

use tokio::runtime::Handle;
use tokio::task::JoinError;

/// Makes a future on a blocking thread and drives it there.
///
/// # Errors
/// [`JoinError`] when it panicked or the runtime shuts down.
pub(crate) async fn off_thread<T, F>(
    make: impl FnOnce() -> F + Send + 'static,
) -> Result<T, JoinError>
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || runtime.block_on(make())).await
}
