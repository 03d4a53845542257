//! Why a step of a reconcile failed.

use std::error::Error;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::external::{ErrorClass, Readiness};

/// A failed step.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The object changed meanwhile: start again, say nothing.
    Conflict,
    /// The object is gone.
    Gone,
    /// The cloud deletes it only when something else is gone, in its words.
    Held(String),
    /// Shown on the object.
    Reported {
        /// Event reason.
        reason: &'static str,
        /// `Synced` message and event message.
        message: String,
        /// What can be done about it.
        class: ErrorClass,
        /// `Ready`, where the failure says something about it.
        ready: Option<Readiness>,
    },
}

impl Failure {
    /// A failure to be shown and tried again.
    pub(crate) fn reported(reason: &'static str, message: impl Into<String>) -> Self {
        Self::Reported {
            reason,
            message: message.into(),
            class: ErrorClass::Transient { retry_after: None },
            ready: None,
        }
    }

    /// What the Kubernetes API said.
    pub(crate) fn of_api(error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) if status.code == 409 => Self::Conflict,
            kube::Error::Api(status) if status.code == 404 => Self::Gone,
            kube::Error::Api(status) => {
                Self::reported("CannotUpdateManagedResource", status.message.clone())
            }
            other => Self::reported("CannotUpdateManagedResource", chain(other)),
        }
    }

    /// The Kubernetes API did not answer.
    pub(crate) fn api_timeout() -> Self {
        Self::reported(
            "CannotUpdateManagedResource",
            "the Kubernetes API did not answer in time",
        )
    }

    /// Whether nothing is known but that there was no good answer.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Reported {
                class: ErrorClass::Transient { .. },
                ..
            }
        )
    }

    /// The same with another event reason.
    pub(crate) fn or_reason(mut self, new: &'static str) -> Self {
        if let Self::Reported { reason, .. } = &mut self {
            *reason = new;
        }
        self
    }

    /// The same, saying something about `Ready`.
    pub(crate) fn with_ready(mut self, new: Readiness) -> Self {
        if let Self::Reported { ready, .. } = &mut self {
            *ready = Some(new);
        }
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict => f.write_str("the object has changed"),
            Self::Gone => f.write_str("the object is gone"),
            Self::Held(message) | Self::Reported { message, .. } => f.write_str(message),
        }
    }
}

/// An error and its sources, joined by colons.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        source = inner.source();
    }
    text
}

/// A hash of an event.
pub(crate) fn hash(reason: &str, message: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (reason, message).hash(&mut hasher);
    hasher.finish()
}
