//! The RunFunction protocol as plain types: the same shape as `apiextensions.fn.proto.v1`, with
//! objects as JSON. `ecp-fnproto` turns them into protobuf and back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

/// What a function is asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Opaque tag, to be copied into the response.
    pub tag: String,
    /// What the caller can do; empty for Crossplane before 2.2.
    pub capabilities: Vec<Capability>,
    /// Observed state.
    pub observed: State,
    /// Desired state so far.
    pub desired: State,
    /// The step's input.
    pub input: Option<Value>,
    /// Context from earlier steps.
    pub context: Map<String, Value>,
    /// Required resources by requirement name. A name that is absent has not been fetched yet; an
    /// empty list means that nothing matched.
    pub required: BTreeMap<String, Vec<Resource>>,
    /// Required schemas by requirement name; `None` where the kind is unknown.
    pub schemas: BTreeMap<String, Option<Value>>,
    /// Credentials by name.
    pub credentials: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
}

/// What a function answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Response {
    /// The request's tag.
    pub tag: String,
    /// How long the answer may be cached.
    pub ttl: Option<Duration>,
    /// Desired state: all of the request's, plus changes.
    pub desired: State,
    /// Results, in order.
    pub results: Vec<FunctionResult>,
    /// Context for later steps; `None` drops it.
    pub context: Option<Map<String, Value>>,
    /// What the function needs to see before its answer counts.
    pub requirements: Requirements,
    /// Conditions for the XR.
    pub conditions: Vec<FunctionCondition>,
}

/// A composite resource and its composed resources.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// The XR.
    pub composite: Option<Resource>,
    /// Composed resources by their name in the composition.
    pub resources: BTreeMap<String, Resource>,
}

/// One resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resource {
    /// The object; shared, since the same one is seen by many calls.
    pub object: Arc<Value>,
    /// Connection details.
    pub connection: BTreeMap<String, Vec<u8>>,
    /// Whether it is ready; only meaningful in desired state.
    pub ready: Ready,
}

impl Resource {
    /// A resource that is an object and nothing else.
    pub fn of(object: impl Into<Arc<Value>>) -> Self {
        Self {
            object: object.into(),
            ..Self::default()
        }
    }
}

/// Readiness of a desired resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ready {
    /// The function did not say; counts as not ready.
    #[default]
    Unspecified,
    /// Ready.
    True,
    /// Not ready.
    False,
}

/// Resources and schemas a function asks for, by requirement name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// Resources.
    pub resources: BTreeMap<String, ResourceSelector>,
    /// Schemas: `apiVersion` and kind.
    pub schemas: BTreeMap<String, (String, String)>,
}

impl Requirements {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.resources.is_empty() && self.schemas.is_empty()
    }
}

/// Which resources a requirement means.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceSelector {
    /// `apiVersion`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; `None` for cluster-scoped kinds, or all namespaces with labels.
    pub namespace: Option<String>,
    /// By name or by labels.
    pub matching: Match,
}

/// How a requirement selects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Match {
    /// The object of this name.
    Name(String),
    /// All objects that have these labels.
    Labels(BTreeMap<String, String>),
}

/// Something a function wants to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionResult {
    /// Severity.
    pub severity: Severity,
    /// Message.
    pub message: String,
    /// Event reason; the caller's default when absent.
    pub reason: Option<String>,
    /// Whom it concerns.
    pub target: Target,
}

/// Severity of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Stops the pipeline; nothing is applied or deleted.
    Fatal,
    /// A warning event.
    Warning,
    /// A normal event.
    Normal,
    /// Not set; treated as a warning.
    Unspecified,
}

/// Whom a result or condition concerns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// The XR alone.
    #[default]
    Composite,
    /// The XR and its claim.
    CompositeAndClaim,
}

/// A condition a function sets on the XR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCondition {
    /// Type.
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Reason.
    pub reason: String,
    /// Message.
    pub message: String,
    /// Whom it concerns.
    pub target: Target,
}

/// What a caller of functions can do (Crossplane 2.2 and later say so).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// It states its capabilities.
    Capabilities,
    /// It fetches required resources.
    RequiredResources,
    /// It passes credentials.
    Credentials,
    /// It takes conditions.
    Conditions,
    /// It fetches required schemas.
    RequiredSchemas,
}
