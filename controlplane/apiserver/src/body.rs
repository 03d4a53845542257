//! Response bodies.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use http_body::{Body, Frame, SizeHint};

/// A response body: whole, or a stream of chunks.
pub struct ApiBody(Inner);

enum Inner {
    Whole(Option<Bytes>),
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl ApiBody {
    /// A body without bytes.
    pub fn empty() -> Self {
        Self(Inner::Whole(None))
    }

    /// A body whose chunks are sent as they come.
    pub fn stream(chunks: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Inner::Stream(Box::pin(chunks)))
    }
}

impl Default for ApiBody {
    fn default() -> Self {
        Self::empty()
    }
}

impl From<Bytes> for ApiBody {
    fn from(bytes: Bytes) -> Self {
        Self(Inner::Whole(Some(bytes).filter(|b| !b.is_empty())))
    }
}

impl From<Vec<u8>> for ApiBody {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<String> for ApiBody {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

impl From<&'static str> for ApiBody {
    fn from(text: &'static str) -> Self {
        Bytes::from_static(text.as_bytes()).into()
    }
}

impl fmt::Debug for ApiBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Inner::Whole(bytes) => {
                write!(f, "ApiBody({} bytes)", bytes.as_ref().map_or(0, Bytes::len))
            }
            Inner::Stream(_) => f.write_str("ApiBody(stream)"),
        }
    }
}

impl Body for ApiBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Inner::Whole(bytes) => Poll::Ready(bytes.take().map(|b| Ok(Frame::data(b)))),
            Inner::Stream(stream) => stream
                .poll_next_unpin(cx)
                .map(|chunk| chunk.map(|b| Ok(Frame::data(b)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Inner::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64))
            }
            Inner::Stream(_) => SizeHint::default(),
        }
    }
}
