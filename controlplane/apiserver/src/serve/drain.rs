//! Bodies that end when the server drains.

use std::pin::Pin;
use std::task::{Context, Poll};

use http::Uri;
use http_body::{Body, Frame, SizeHint};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A body that ends cleanly when a token is cancelled. A watch never ends by itself, and a client
/// whose watch ends takes it up again elsewhere; other bodies are sent to their end.
pub(super) struct Drained<B> {
    body: B,
    stop: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    ended: bool,
}

impl<B> Drained<B> {
    pub(super) fn until(body: B, stop: CancellationToken) -> Self {
        Self {
            body,
            stop: Some(Box::pin(stop.cancelled_owned())),
            ended: false,
        }
    }

    pub(super) fn to_its_end(body: B) -> Self {
        Self {
            body,
            stop: None,
            ended: false,
        }
    }
}

impl<B: Body + Unpin> Body for Drained<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        // What is ready is still sent.
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        let stopped = self
            .stop
            .as_mut()
            .is_some_and(|stop| stop.as_mut().poll(cx).is_ready());
        if stopped {
            self.ended = true;
            return Poll::Ready(None);
        }
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.stop {
            Some(_) => SizeHint::default(),
            None => self.body.size_hint(),
        }
    }
}

/// Whether a request asks for a watch.
pub(super) fn is_watch(uri: &Uri) -> bool {
    let query = uri.query().unwrap_or_default();
    uri.path().split('/').any(|segment| segment == "watch")
        || url::form_urlencoded::parse(query.as_bytes())
            .any(|(key, value)| key == "watch" && !matches!(&*value, "false" | "0"))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::{BodyExt as _, StreamBody};

    use super::*;

    #[test]
    fn watches_are_told_by_query_or_path() {
        let is = |uri: &str| is_watch(&uri.parse().unwrap());
        assert!(is("/api/v1/secrets?watch=true"));
        assert!(is("/api/v1/watch/secrets"));
        assert!(!is("/api/v1/secrets?watch=false"));
        assert!(!is("/api/v1/secrets"));
    }

    #[tokio::test]
    async fn a_watch_ends_on_shutdown_after_what_was_ready() {
        let stop = CancellationToken::new();
        let (sender, receiver) = tokio::sync::mpsc::channel(2);
        let stream = tokio_stream::wrappers::ReceiverStream::new(receiver);
        let body = StreamBody::new(stream);
        let frame = || Ok::<_, std::convert::Infallible>(Frame::data(Bytes::from_static(b"x")));
        sender.send(frame()).await.unwrap();
        stop.cancel();
        let collected = Drained::until(body, stop).collect().await.unwrap();
        assert_eq!(&collected.to_bytes()[..], b"x");
    }
}
