//! Running a pipeline of functions, as a state machine: the caller does what each [`Effect`] says
//! and feeds back the result (upstream `FunctionComposer.Compose` and `FetchingFunctionRunner`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::composition::{SecretRef, Step, hex};
use crate::event::{Event, TargetedEvent, reason};
use crate::function::{
    Capability, FunctionCondition, FunctionResult, Request, Requirements, Resource,
    ResourceSelector, Response, Severity, State, Target,
};
use crate::limits::CALLS_PER_STEP_MAX;

/// A pipeline that is being run for one XR.
#[derive(Debug)]
pub struct Pipeline {
    steps: Vec<Step>,
    observed: State,
    /// Identifies what the functions see; part of each request's tag.
    identity: String,
    seeds: Seeds,
    index: usize,
    stage: Stage,
    call: Call,
    outcome: Outcome,
    context: Map<String, Value>,
}

/// Requirements that functions had in the XR's previous reconcile, by step and requirement name.
pub type Seeds = BTreeMap<String, BTreeMap<String, ResourceSelector>>;

/// Where in a step the pipeline is.
#[derive(Debug, PartialEq, Eq)]
enum Stage {
    /// Before the first call: bootstrap requirements and credentials are being fetched.
    Bootstrap,
    /// A call is out.
    Calling,
    /// What the function asked for is being fetched.
    Fetching,
    /// Done, or failed.
    Over,
}

/// The call that is out, or about to be.
#[derive(Debug, Default)]
struct Call {
    count: usize,
    bootstrap: BTreeMap<String, Vec<Resource>>,
    bootstrap_schemas: BTreeMap<String, Option<Value>>,
    required: BTreeMap<String, Vec<Resource>>,
    schemas: BTreeMap<String, Option<Value>>,
    credentials: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    /// The last answer, while what it asks for is fetched.
    response: Option<Response>,
    requirements: Requirements,
}

/// What the caller must do next.
#[derive(Debug, PartialEq)]
pub enum Effect {
    /// Fetch these, then call [`Pipeline::fetched`].
    Fetch(Wanted),
    /// Call this function, then [`Pipeline::replied`].
    Call {
        /// Step.
        step: String,
        /// Function.
        function: String,
        /// Request.
        request: Box<Request>,
    },
    /// All steps have run.
    Done(Box<Outcome>),
}

/// Objects, schemas and Secrets to fetch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Objects.
    pub resources: BTreeSet<ResourceSelector>,
    /// Schemas of kinds: `apiVersion` and kind.
    pub schemas: BTreeSet<(String, String)>,
    /// Secrets.
    pub secrets: BTreeSet<SecretRef>,
}

impl Wanted {
    fn is_empty(&self) -> bool {
        self.resources.is_empty() && self.schemas.is_empty() && self.secrets.is_empty()
    }
}

/// What was fetched. The messages of errors are the API's.
#[derive(Clone, Debug, Default)]
pub struct Fetched {
    /// Objects, sorted by namespace and name; none where nothing matches.
    pub resources: BTreeMap<ResourceSelector, Result<Vec<Arc<Value>>, String>>,
    /// Schemas; `None` for unknown kinds.
    pub schemas: BTreeMap<(String, String), Result<Option<Value>, String>>,
    /// Data of Secrets.
    pub secrets: BTreeMap<SecretRef, Result<BTreeMap<String, Vec<u8>>, String>>,
}

/// What a pipeline came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Desired state after the last step.
    pub desired: State,
    /// The shortest time a function wants its answer to be kept.
    pub ttl: Option<Duration>,
    /// Events from results.
    pub events: Vec<TargetedEvent>,
    /// Conditions, in order.
    pub conditions: Vec<FunctionCondition>,
    /// Requirements by step: what to watch, and the seeds of the next run.
    pub requirements: Seeds,
}

/// Why a pipeline stopped.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum PipelineError {
    /// A function answered with a fatal result.
    #[error("pipeline step {step:?} returned a fatal result: {message}")]
    Fatal {
        /// Step.
        step: String,
        /// The function's words.
        message: String,
        /// Events and conditions up to there; nothing of the desired state counts.
        partial: Box<Outcome>,
    },
    /// A function could not be run.
    #[error("cannot run Composition pipeline step {step:?}: {reason}")]
    Run {
        /// Step.
        step: String,
        /// Why.
        reason: String,
    },
    /// A credential is missing.
    #[error(
        "cannot get Composition pipeline step {step:?} credential {name:?} from Secret: {reason}"
    )]
    Credential {
        /// Step.
        step: String,
        /// Credential.
        name: String,
        /// Why.
        reason: String,
    },
    /// A bootstrap requirement cannot be fetched.
    #[error("cannot fetch bootstrap required {what} for requirement {name:?}: {reason}")]
    Bootstrap {
        /// `resources` or `schema`.
        what: &'static str,
        /// Requirement.
        name: String,
        /// Why.
        reason: String,
    },
    /// The caller fed back something that was not asked for.
    #[error("pipeline was driven out of order")]
    OutOfOrder,
}

impl Pipeline {
    /// A pipeline over observed state. Call [`Pipeline::start`] first.
    ///
    /// `identity` must differ whenever anything observed differs.
    pub fn new(steps: Vec<Step>, observed: State, identity: String, seeds: Seeds) -> Self {
        Self {
            steps,
            observed,
            identity,
            seeds,
            index: 0,
            stage: Stage::Over,
            call: Call::default(),
            outcome: Outcome::default(),
            context: Map::new(),
        }
    }

    /// Begins with the first step.
    pub fn start(&mut self) -> Effect {
        self.begin_step()
    }

    /// Feeds back what an [`Effect::Fetch`] asked for.
    ///
    /// # Errors
    /// See [`PipelineError`].
    pub fn fetched(&mut self, fetched: &Fetched) -> Result<Effect, PipelineError> {
        match self.stage {
            Stage::Bootstrap => {
                self.take_bootstrap(fetched)?;
                Ok(self.next_call())
            }
            Stage::Fetching => self.take_required(fetched),
            Stage::Calling | Stage::Over => Err(PipelineError::OutOfOrder),
        }
    }

    /// Feeds back what a function answered, or why it could not be run.
    ///
    /// # Errors
    /// See [`PipelineError`].
    pub fn replied(&mut self, reply: Result<Response, String>) -> Result<Effect, PipelineError> {
        if self.stage != Stage::Calling {
            return Err(PipelineError::OutOfOrder);
        }
        let response = reply.map_err(|reason| self.run_error(reason))?;
        self.call.count += 1;
        let fatal = response
            .results
            .iter()
            .any(|r| r.severity == Severity::Fatal);
        if fatal || response.requirements == self.call.requirements {
            return self.finish_step(response);
        }
        let wanted = Wanted {
            resources: response.requirements.resources.values().cloned().collect(),
            schemas: response.requirements.schemas.values().cloned().collect(),
            secrets: BTreeSet::new(),
        };
        self.call.response = Some(response);
        self.stage = Stage::Fetching;
        if wanted.is_empty() {
            return self.take_required(&Fetched::default());
        }
        Ok(Effect::Fetch(wanted))
    }

    fn begin_step(&mut self) -> Effect {
        self.call = Call::default();
        let Some(step) = self.steps.get(self.index) else {
            self.stage = Stage::Over;
            return Effect::Done(Box::new(std::mem::take(&mut self.outcome)));
        };
        let seeds = self.seeds.get(&step.name).into_iter().flatten();
        let wanted = Wanted {
            resources: step
                .resources
                .iter()
                .chain(seeds)
                .map(|(_, selector)| selector.clone())
                .collect(),
            schemas: step.schemas.values().cloned().collect(),
            secrets: step.credentials.iter().map(|c| c.secret.clone()).collect(),
        };
        if wanted.is_empty() {
            return self.next_call();
        }
        self.stage = Stage::Bootstrap;
        Effect::Fetch(wanted)
    }

    fn take_bootstrap(&mut self, fetched: &Fetched) -> Result<(), PipelineError> {
        let Some(step) = self.steps.get(self.index) else {
            return Err(PipelineError::OutOfOrder);
        };
        for credential in &step.credentials {
            let data = lookup(&fetched.secrets, &credential.secret).map_err(|reason| {
                PipelineError::Credential {
                    step: step.name.clone(),
                    name: credential.name.clone(),
                    reason,
                }
            })?;
            self.call.credentials.insert(credential.name.clone(), data);
        }
        for (name, selector) in &step.resources {
            let objects = lookup(&fetched.resources, selector).map_err(|reason| {
                PipelineError::Bootstrap {
                    what: "resources",
                    name: name.clone(),
                    reason,
                }
            })?;
            self.call.bootstrap.insert(name.clone(), resources(objects));
            self.outcome
                .requirements
                .entry(step.name.clone())
                .or_default()
                .insert(name.clone(), selector.clone());
        }
        for (name, kind) in &step.schemas {
            let schema =
                lookup(&fetched.schemas, kind).map_err(|reason| PipelineError::Bootstrap {
                    what: "schema",
                    name: name.clone(),
                    reason,
                })?;
            self.call.bootstrap_schemas.insert(name.clone(), schema);
        }
        // What was asked for last time is supplied at once where it can be: it spares a call.
        for (name, selector) in self.seeds.get(&step.name).into_iter().flatten() {
            if let Ok(objects) = lookup(&fetched.resources, selector) {
                self.call
                    .bootstrap
                    .entry(name.clone())
                    .or_insert_with(|| resources(objects));
            }
        }
        self.call.required = self.call.bootstrap.clone();
        self.call.schemas = self.call.bootstrap_schemas.clone();
        Ok(())
    }

    fn take_required(&mut self, fetched: &Fetched) -> Result<Effect, PipelineError> {
        let Some(response) = self.call.response.take() else {
            return Err(PipelineError::OutOfOrder);
        };
        let mut required = self.call.bootstrap.clone();
        for (name, selector) in &response.requirements.resources {
            let objects = lookup(&fetched.resources, selector)
                .map_err(|e| self.run_error(format!("fetching resources for {name}: {e}")))?;
            required.insert(name.clone(), resources(objects));
        }
        let mut schemas = self.call.bootstrap_schemas.clone();
        for (name, kind) in &response.requirements.schemas {
            let schema = lookup(&fetched.schemas, kind)
                .map_err(|e| self.run_error(format!("fetching schema for {name}: {e}")))?;
            schemas.insert(name.clone(), schema);
        }
        if self.call.count == 1 && required == self.call.required && schemas == self.call.schemas {
            return self.finish_step(response);
        }
        if self.call.count >= CALLS_PER_STEP_MAX {
            let most = CALLS_PER_STEP_MAX - 1;
            return Err(self.run_error(format!(
                "requirements didn't stabilize after the maximum number of iterations ({most})"
            )));
        }
        self.call.required = required;
        self.call.schemas = schemas;
        self.call.requirements = response.requirements;
        self.context = response.context.unwrap_or_default();
        Ok(self.next_call())
    }

    fn next_call(&mut self) -> Effect {
        let Some(step) = self.steps.get(self.index) else {
            return self.begin_step();
        };
        self.stage = Stage::Calling;
        let mut tag = Sha256::new();
        for part in [&self.identity, &step.name, &self.call.count.to_string()] {
            tag.update(part);
            tag.update([0]);
        }
        let request = Request {
            tag: hex(&tag.finalize()),
            capabilities: vec![
                Capability::Capabilities,
                Capability::RequiredResources,
                Capability::Credentials,
                Capability::Conditions,
                Capability::RequiredSchemas,
            ],
            observed: self.observed.clone(),
            desired: self.outcome.desired.clone(),
            input: step.input.clone(),
            context: self.context.clone(),
            required: self.call.required.clone(),
            schemas: self.call.schemas.clone(),
            credentials: self.call.credentials.clone(),
        };
        Effect::Call {
            step: step.name.clone(),
            function: step.function.clone(),
            request: Box::new(request),
        }
    }

    fn finish_step(&mut self, response: Response) -> Result<Effect, PipelineError> {
        let Some(step) = self.steps.get(self.index) else {
            return Err(PipelineError::OutOfOrder);
        };
        let step = step.name.clone();
        self.outcome
            .requirements
            .entry(step.clone())
            .or_default()
            .extend(response.requirements.resources);
        self.outcome.ttl = match (self.outcome.ttl, response.ttl.filter(|t| !t.is_zero())) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.outcome.conditions.extend(response.conditions);
        for result in response.results {
            if result.severity == Severity::Fatal {
                self.stage = Stage::Over;
                let partial = Outcome {
                    events: std::mem::take(&mut self.outcome.events),
                    conditions: std::mem::take(&mut self.outcome.conditions),
                    ..Outcome::default()
                };
                return Err(PipelineError::Fatal {
                    step,
                    message: result.message,
                    partial: Box::new(partial),
                });
            }
            self.outcome.events.push(result_event(&step, result));
        }
        self.outcome.desired = response.desired;
        self.context = response.context.unwrap_or_default();
        self.index += 1;
        Ok(self.begin_step())
    }

    fn run_error(&mut self, reason: String) -> PipelineError {
        self.stage = Stage::Over;
        let step = self.steps.get(self.index);
        PipelineError::Run {
            step: step.map(|s| s.name.clone()).unwrap_or_default(),
            reason,
        }
    }
}

fn lookup<K: Ord, V: Clone>(map: &BTreeMap<K, Result<V, String>>, key: &K) -> Result<V, String> {
    map.get(key)
        .cloned()
        .unwrap_or_else(|| Err("it was not fetched".into()))
}

fn resources(objects: Vec<Arc<Value>>) -> Vec<Resource> {
    objects.into_iter().map(Resource::of).collect()
}

fn result_event(step: &str, result: FunctionResult) -> TargetedEvent {
    let reason = result.reason.as_deref().unwrap_or(reason::COMPOSE);
    let message = result.message;
    let detailed = format!("Pipeline step {step:?}: {message}");
    let make: fn(&str, String) -> Event = match result.severity {
        Severity::Normal => |reason, message| Event::normal(reason, message),
        Severity::Warning | Severity::Fatal => |reason, message| Event::warning(reason, message),
        Severity::Unspecified => {
            return TargetedEvent::composite(Event::warning(
                reason,
                format!(
                    "Pipeline step {step:?} returned a result of unknown severity \
                     (assuming warning): {message}"
                ),
            ));
        }
    };
    TargetedEvent {
        composite: make(reason, detailed),
        claim: (result.target == Target::CompositeAndClaim).then(|| make(reason, message)),
    }
}

#[cfg(test)]
#[path = "pipeline_tests.rs"]
mod tests;
