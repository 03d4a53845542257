//! Events that the engine tells about an XR, claim or definition.

/// An event about one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Normal or warning.
    pub kind: EventKind,
    /// PascalCase reason.
    pub reason: String,
    /// Message.
    pub message: String,
}

/// Kubernetes' event types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// All is well.
    Normal,
    /// Something is wrong.
    Warning,
}

impl EventKind {
    /// The `type` field of an Event.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

impl Event {
    /// A normal event.
    pub fn normal(reason: &str, message: impl Into<String>) -> Self {
        Self {
            kind: EventKind::Normal,
            reason: reason.into(),
            message: message.into(),
        }
    }

    /// A warning.
    pub fn warning(reason: &str, message: impl Into<String>) -> Self {
        Self {
            kind: EventKind::Warning,
            reason: reason.into(),
            message: message.into(),
        }
    }
}

/// An event for the XR, and in other words perhaps for its claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetedEvent {
    /// What the XR is told.
    pub composite: Event,
    /// What the claim is told.
    pub claim: Option<Event>,
}

impl TargetedEvent {
    /// An event for the XR alone.
    pub fn composite(event: Event) -> Self {
        Self {
            composite: event,
            claim: None,
        }
    }
}

/// Reasons of the XR's events.
pub mod reason {
    /// A Composition or revision was chosen, or none can be.
    pub const SELECT_COMPOSITION: &str = "SelectComposition";
    /// A default or enforced Composition was chosen.
    pub const COMPOSITION_SELECTION: &str = "CompositionSelection";
    /// Composing, and the default for what functions say.
    pub const COMPOSE: &str = "ComposeResources";
    /// A connection secret was published.
    pub const PUBLISH: &str = "PublishConnectionSecret";
    /// The XR was made ready for composing.
    pub const INIT: &str = "InitializeCompositeResource";
    /// The XR is being deleted.
    pub const DELETE: &str = "DeleteCompositeResource";
    /// Reconciling is paused.
    pub const PAUSED: &str = "ReconciliationPaused";
    /// A function asked for another namespace than the XR's.
    pub const NAMESPACE_OVERRIDDEN: &str = "NamespaceOverridden";
    /// A reconcile was asked for by annotation.
    pub const RECONCILE_REQUEST_HANDLED: &str = "ReconcileRequestHandled";
    /// Dependencies cannot be watched.
    pub const WATCH: &str = "WatchComposedResources";
    /// A claim was bound to its XR.
    pub const BIND: &str = "BindCompositeResource";
    /// A claim's connection secret was copied.
    pub const PROPAGATE: &str = "PropagateConnectionSecret";
}
