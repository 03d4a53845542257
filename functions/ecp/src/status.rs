//! The status of an XR: its state, how it got there, and which intent it speaks of (DESIGN D5).
//!
//! ```text
//!            dependencies there       settled
//!  pending ────────────────▶ creating ──────▶ active ◀──┐
//!                                │   changed    │       │ settled
//!                                └─────────┐    │changed│
//!                                refused   ▼    ▼       │
//!                     error ◀───────────── updating ────┘
//! ```
//!
//! Only two things move a resource: the user's change of its intent, and reaching or being refused
//! what the intent wants. Once that is reached, nothing the cloud does moves it: that a managed
//! resource is unready for a while, or that the cloud refuses it later, is told in the message.

use ecp_meta::limits::HISTORY_LEN_MAX;
use ecp_xrds::{HistoryEntry, Intent, State, Status};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::numbers::whole;

/// How far the control plane is with the intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Something it depends on is not there; it says what.
    Waiting(String),
    /// The cloud is working on it; it says at what.
    Working(String),
    /// The cloud did not do it, and is asked again; in its words.
    Failing(String),
    /// The cloud refuses; in its words.
    Refused(String),
    /// All is as far as it can be, but something it refers to is not there, so that a part has no
    /// effect yet; it says what.
    Lacking(String),
    /// All is as the user wants it.
    Settled,
    /// It is being deleted.
    Deleting,
}

impl Phase {
    /// What the user should read, if anything.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Waiting(m)
            | Self::Working(m)
            | Self::Failing(m)
            | Self::Refused(m)
            | Self::Lacking(m) => Some(m),
            Self::Settled | Self::Deleting => None,
        }
    }
}

/// Reads the status fields of an object. What makes no sense is left out.
pub fn read(object: &Value) -> Status {
    fn field<T: DeserializeOwned>(status: Option<&Value>, name: &str) -> Option<T> {
        serde_json::from_value(whole(status?.get(name)?)).ok()
    }
    let status = object.get("status");
    let history: Vec<Value> = field(status, "history").unwrap_or_default();
    Status {
        state: field(status, "state"),
        history: history
            .into_iter()
            .filter_map(|entry| serde_json::from_value(entry).ok())
            .take(HISTORY_LEN_MAX)
            .collect(),
        intent: field(status, "intent"),
        message: field(status, "message"),
    }
}

/// The status that follows `previous`, given the digest of the intent now and how far it is.
pub fn advance(previous: &Status, digest: &str, phase: &Phase, now: Timestamp) -> Status {
    let changed = previous.intent.as_ref().is_some_and(|i| i.digest != digest);
    let mut history = History {
        entries: previous.history.clone(),
        now,
    };
    if history.entries.is_empty() {
        history.push(State::Pending);
    }
    if changed && *phase != Phase::Deleting {
        match history.state() {
            State::Active | State::Creating => history.push(State::Updating),
            State::Error if history.was_active() => history.push(State::Updating),
            State::Error => history.push(State::Creating),
            // Nothing of the intent has been acted on, or all of it is being.
            State::Pending | State::Updating | State::Deleting => {}
        }
    }
    match phase {
        Phase::Waiting(_) => {}
        Phase::Working(_) | Phase::Failing(_) => history.begin(),
        // What the intent wanted has been reached: that the cloud no longer has it so is no step
        // in its life, however often it comes and goes. The message tells it.
        Phase::Refused(_) if history.state() == State::Active => {}
        Phase::Refused(words) => {
            history.begin();
            history.push(State::Error);
            history.explain("Refused", words);
        }
        Phase::Settled | Phase::Lacking(_) => {
            history.begin();
            history.push(State::Active);
        }
        Phase::Deleting => history.push(State::Deleting),
    }
    Status {
        state: Some(history.state()),
        intent: Some(next_intent(previous.intent.as_ref(), digest, now)),
        message: phase.message().map(Into::into),
        history: history.entries,
    }
}

fn next_intent(previous: Option<&Intent>, digest: &str, now: Timestamp) -> Intent {
    match previous {
        Some(same) if same.digest == digest => same.clone(),
        Some(old) => Intent {
            digest: digest.into(),
            revision: old.revision.saturating_add(1),
            last_modified_at: text(now),
        },
        None => Intent {
            digest: digest.into(),
            revision: 1,
            last_modified_at: text(now),
        },
    }
}

/// RFC 3339 with milliseconds.
pub(crate) fn text(time: Timestamp) -> String {
    format!("{time:.3}")
}

struct History {
    entries: Vec<HistoryEntry>,
    now: Timestamp,
}

impl History {
    fn state(&self) -> State {
        self.entries.first().map(|e| e.state).unwrap_or_default()
    }

    fn was_active(&self) -> bool {
        let active = |s| matches!(s, State::Active | State::Updating);
        self.entries.iter().any(|e| active(e.state))
    }

    /// The cloud is asked for the first time.
    fn begin(&mut self) {
        if self.state() == State::Pending {
            self.push(State::Creating);
        }
    }

    /// Goes into a state, unless it is in it. Times never go back, whatever the clock does.
    fn push(&mut self, state: State) {
        if !self.entries.is_empty() && self.state() == state {
            return;
        }
        let last = self
            .entries
            .first()
            .and_then(|e| e.last_transition_at.parse::<Timestamp>().ok());
        let at = last.map_or(self.now, |last| last.max(self.now));
        let entry = HistoryEntry {
            state,
            last_transition_at: text(at),
            reason: None,
            message: None,
        };
        self.entries.insert(0, entry);
        self.entries.truncate(HISTORY_LEN_MAX);
    }

    /// Says why the newest state was gone into, once.
    fn explain(&mut self, reason: &str, message: &str) {
        if let Some(newest) = self.entries.first_mut()
            && newest.reason.is_none()
        {
            newest.reason = Some(reason.into());
            newest.message = Some(message.into());
        }
    }
}
