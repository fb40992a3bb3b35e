//! The threads on which the steps of a call run. Only this module blocks a thread for a call.

use kitbag_host::{Account, CallError, Cancellation, Host};

/// Runs one part of a call, from its start or an answer to its end or a question.
pub(crate) trait Edge {
    /// Runs `work` once `ready` has completed, with a permit that is charged to an account.
    async fn perform<T: Send + 'static, F: Future<Output = T>>(
        &self,
        host: &Host,
        account: &Account,
        cancellation: &Cancellation,
        ready: impl Future<Output = ()>,
        work: impl FnOnce() -> F + Send + 'static,
    ) -> Result<T, CallError>;
}

/// Runs on a thread that is reserved for calls, so that any executor can wait for the call.
pub(crate) struct Offloaded;

/// Runs on the thread that polls the call, within [`Host::block_on`].
pub(crate) struct Inline;

/// Runs on the thread that polls the call, with the permit of its outer call.
pub(crate) struct Nested;

impl Edge for Offloaded {
    async fn perform<T: Send + 'static, F: Future<Output = T>>(
        &self,
        host: &Host,
        account: &Account,
        _: &Cancellation,
        ready: impl Future<Output = ()>,
        work: impl FnOnce() -> F + Send + 'static,
    ) -> Result<T, CallError> {
        host.offload_when(account, ready, move || Host::block_on(work)).await?
    }
}

impl Edge for Inline {
    async fn perform<T: Send + 'static, F: Future<Output = T>>(
        &self,
        host: &Host,
        account: &Account,
        cancellation: &Cancellation,
        ready: impl Future<Output = ()>,
        work: impl FnOnce() -> F + Send + 'static,
    ) -> Result<T, CallError> {
        let _permit = host.permit(account, cancellation).await?;
        ready.await;
        Ok(work().await)
    }
}

impl Edge for Nested {
    async fn perform<T: Send + 'static, F: Future<Output = T>>(
        &self,
        _: &Host,
        _: &Account,
        _: &Cancellation,
        ready: impl Future<Output = ()>,
        work: impl FnOnce() -> F + Send + 'static,
    ) -> Result<T, CallError> {
        ready.await;
        // A call is large. Without the box, every future that awaits it would contain it again.
        Ok(Host::nested(Box::pin(work())).await)
    }
}
