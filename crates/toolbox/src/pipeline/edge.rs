//! Where the steps of a call run: the one place in which a call blocks a thread.

use kitbag_host::{Account, CallError, Cancellation, Host};

/// Runs one stretch of a call, from its begin or an answer to its end or a question.
pub(crate) trait Edge {
    /// Has `work` done once `ready` is, with a permit that is charged to an account.
    async fn perform<T: Send + 'static, F: Future<Output = T>>(
        &self,
        host: &Host,
        account: &Account,
        cancellation: &Cancellation,
        ready: impl Future<Output = ()>,
        work: impl FnOnce() -> F + Send + 'static,
    ) -> Result<T, CallError>;
}

/// On a thread kept for calls, so that any executor can wait for it.
pub(crate) struct Offloaded;

/// On the thread that polls the call, within [`Host::block_on`].
pub(crate) struct Inline;

/// On the thread that polls the call, with the permit of the call that it is part of.
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
        // A call is large, and what waits for it would each hold it once more.
        Ok(Host::nested(Box::pin(work())).await)
    }
}
