//! Requests that go on though nobody waits for the answer any more.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

/// A future that, once begun, goes on in a task of its own when it is dropped.
///
/// A client that goes away, or loses patience, drops its request's future wherever it waits. What follows a commit, such
/// as taking back what may not stay, has to happen all the same.
pub(crate) struct Finish<T: 'static> {
    future: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    begun: bool,
}

impl<T: 'static> Finish<T> {
    pub(crate) fn new(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self {
            future: Some(Box::pin(future)),
            begun: false,
        }
    }
}

impl<T: 'static> Future for Finish<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        self.begun = true;
        let Some(future) = &mut self.future else {
            return Poll::Pending;
        };
        let polled = future.as_mut().poll(cx);
        if polled.is_ready() {
            self.future = None;
        }
        polled
    }
}

impl<T: 'static> Drop for Finish<T> {
    fn drop(&mut self) {
        let Some(future) = self.future.take().filter(|_| self.begun) else {
            return;
        };
        // Without a runtime the process is going, and its next start finds the rest.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { drop(future.await) });
        }
    }
}
