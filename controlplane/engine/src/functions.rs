//! Compositions to revisions, and what of the functions they name is installed.

use std::collections::BTreeMap;
use std::sync::Arc;

use ecp_meta::{keys, object};
use ecp_xr::composition::{self, RevisionChange};
use ecp_xr::event::Event;
use ecp_xr::status::Conditions;
use serde_json::Value;

use crate::context::{Context, composition_kind, function_revision_kind, revision_kind};
use crate::controller::{self, Failure, Next, Reconciler};
use crate::events::Recorder;
use crate::informer::{Handler, Subscription};
use crate::queue::Queue;

/// Label of a package revision: its package.
const PACKAGE_LABEL: &str = "pkg.crossplane.io/package";
/// What a function must be able to do.
const COMPOSITION_CAPABILITY: &str = "composition";
/// What is told of a revision whose functions have it.
const CAPABLE: &str = "All functions have required composition capability";
/// Core's names of the two controllers, from which Events come.
const COMPOSITIONS: &str = "revisions/composition.apiextensions.crossplane.io";
const REVISIONS: &str = "revision/compositionrevision.apiextensions.crossplane.io";

/// Runs both controllers until the context stops.
pub(crate) async fn run(context: Arc<Context>) {
    let compositions: Arc<Queue<String>> = Arc::new(Queue::new());
    let revisions: Arc<Queue<String>> = Arc::new(Queue::new());
    let functions = watch_functions(&context, &revisions);
    let _subscriptions = (
        watch_compositions(&context, &compositions),
        watch_revisions(&context, &compositions, &revisions),
    );
    tokio::select! {
        () = context.stop.cancelled() => return,
        () = context.catalogue.wait_synced() => {}
    }
    let stop = context.stop.clone();
    let run = (
        controller::run(
            Arc::new(Compositions {
                recorder: context.recorder.of_component(COMPOSITIONS),
                context: Arc::clone(&context),
            }),
            compositions,
            context.reconciles_max,
            context.metrics.clone(),
            stop.clone(),
        ),
        controller::run(
            Arc::new(Revisions {
                recorder: context.recorder.of_component(REVISIONS),
                context: Arc::clone(&context),
                functions,
            }),
            revisions,
            context.reconciles_max,
            context.metrics.clone(),
            stop,
        ),
    );
    tokio::join!(run.0, run.1);
}

fn watch_compositions(context: &Context, queue: &Arc<Queue<String>>) -> Subscription {
    let queue = Arc::clone(queue);
    let handler: Handler = Arc::new(move |change| {
        if let Some(composition) = change.new {
            queue.add(object::name(composition).to_owned());
        }
    });
    context.informers.subscribe(&composition_kind(), handler)
}

fn watch_revisions(
    context: &Context,
    compositions: &Arc<Queue<String>>,
    revisions: &Arc<Queue<String>>,
) -> Subscription {
    let (compositions, revisions) = (Arc::clone(compositions), Arc::clone(revisions));
    let handler: Handler = Arc::new(move |change| {
        if let Some(revision) = change.new {
            revisions.add(object::name(revision).to_owned());
        }
        let of = change
            .object()
            .and_then(|r| object::label(r, keys::COMPOSITION_NAME));
        if let Some(composition) = of {
            compositions.add(composition.to_owned());
        }
    });
    context.informers.subscribe(&revision_kind(), handler)
}

fn watch_functions(context: &Arc<Context>, revisions: &Arc<Queue<String>>) -> Subscription {
    let queue = Arc::clone(revisions);
    let weak = Arc::downgrade(context);
    let kind = function_revision_kind();
    let gvk = kind.gvk.clone();
    let handler: Handler = Arc::new(move |_| {
        let Some(context) = weak.upgrade() else {
            return;
        };
        for name in context.catalogue.revisions().keys() {
            queue.add(name.clone());
        }
        if let (Some(runner), Some(known)) = (&context.endpoints, context.informers.get(&gvk)) {
            runner.set_endpoints(&endpoints(&known.select(None, is_active)));
        }
    });
    context.informers.subscribe(&kind, handler)
}

fn is_active(revision: &Value) -> bool {
    revision
        .pointer("/spec/desiredState")
        .and_then(Value::as_str)
        == Some("Active")
}

/// Endpoints of active revisions by function name.
fn endpoints(revisions: &[Arc<Value>]) -> BTreeMap<String, String> {
    revisions
        .iter()
        .filter_map(|revision| {
            let package = object::label(revision, PACKAGE_LABEL)?;
            let endpoint = revision.pointer("/status/endpoint")?.as_str()?;
            (!endpoint.is_empty()).then(|| (package.to_owned(), endpoint.to_owned()))
        })
        .collect()
}

/// Gives each Composition the revision of its content.
struct Compositions {
    recorder: Recorder,
    context: Arc<Context>,
}

impl Reconciler for Compositions {
    type Key = String;

    #[expect(clippy::unnecessary_literal_bound, reason = "the trait's signature")]
    fn name(&self) -> &str {
        "revisions/composition"
    }

    async fn reconcile(&self, name: &String) -> Result<Next, Failure> {
        let Context {
            api,
            catalogue,
            metrics,
            ..
        } = &*self.context;
        let Some(composition) = catalogue.compositions().get(name).cloned() else {
            return Ok(Next::Wait);
        };
        if object::is_deleting(&composition) {
            return Ok(Next::Wait);
        }
        let revisions: Vec<Value> = catalogue
            .revisions()
            .values()
            .filter(|r| object::label(r, keys::COMPOSITION_NAME) == Some(name))
            .map(|r| Value::clone(r))
            .collect();
        let kind = revision_kind();
        for change in composition::revision_changes(&composition, &revisions) {
            metrics.wrote("revision");
            let (doing, reason, written) = match &change {
                RevisionChange::Create(revision) => (
                    "cannot create CompositionRevision",
                    "CreateRevision",
                    api.create(&kind, revision).await,
                ),
                RevisionChange::Update(revision) => (
                    "cannot update CompositionRevision spec",
                    "UpdateRevision",
                    api.replace(&kind, revision).await,
                ),
            };
            let written = match written {
                // The cache is late: the watch will tell.
                Err(error) if error.already_exists() => return Err(Failure::Conflict),
                Err(error) => {
                    if !error.is_conflict() {
                        self.recorder
                            .record(&composition, &Event::warning(reason, error.to_string()));
                    }
                    return Err(Failure::from_api(doing, &error));
                }
                Ok(written) => written,
            };
            catalogue.learn_revision(&written);
            if matches!(change, RevisionChange::Create(_)) {
                self.recorder.record(
                    &composition,
                    &Event::normal("CreateRevision", "Created new revision"),
                );
            }
        }
        Ok(Next::Wait)
    }
}

/// Says of each revision whether its functions can compose.
struct Revisions {
    recorder: Recorder,
    context: Arc<Context>,
    functions: Subscription,
}

impl Reconciler for Revisions {
    type Key = String;

    #[expect(clippy::unnecessary_literal_bound, reason = "the trait's signature")]
    fn name(&self) -> &str {
        "revision/compositionrevision"
    }

    async fn reconcile(&self, name: &String) -> Result<Next, Failure> {
        let context = &self.context;
        let Some(revision) = context.catalogue.revisions().get(name).cloned() else {
            return Ok(Next::Wait);
        };
        if object::is_deleting(&revision) {
            return Ok(Next::Wait);
        }
        let missing = self.missing_capability(&revision);
        let mut conditions = Conditions::of(&revision, &crate::now());
        conditions.synced();
        match &missing {
            None => {
                conditions.set("ValidPipeline", true, "ValidPipeline", "");
                if conditions.differ_from(&revision) {
                    let event = Event::normal("CheckCapabilities", CAPABLE);
                    self.recorder.record(&revision, &event);
                }
            }
            Some(why) => {
                conditions.set("ValidPipeline", false, "MissingCapabilities", why);
                let event = Event::warning("CheckCapabilities", why.as_str());
                self.recorder.record(&revision, &event);
            }
        }
        if !conditions.differ_from(&revision) {
            return Ok(Next::Wait);
        }
        let mut changed = Value::clone(&revision);
        changed["status"]["conditions"] = conditions.to_json();
        context.metrics.wrote("revision");
        let doing = "cannot update CompositionRevision status";
        match context.api.replace_status(&revision_kind(), &changed).await {
            Ok(written) => {
                context.catalogue.learn_revision(&written);
                Ok(Next::Wait)
            }
            // It went away meanwhile.
            Err(error) if error.is_not_found() => Ok(Next::Wait),
            Err(error) => Err(Failure::from_api(doing, &error)),
        }
    }
}

impl Revisions {
    /// Why a function of the pipeline cannot compose, if so. Functions that are not installed are
    /// not looked at, as upstream.
    fn missing_capability(&self, revision: &Value) -> Option<String> {
        let steps = revision.pointer("/spec/pipeline")?.as_array()?;
        let named: Vec<&str> = steps
            .iter()
            .filter_map(|s| s.pointer("/functionRef/name")?.as_str())
            .collect();
        let active = self.functions.informer().select(None, is_active);
        active.iter().find_map(|function| {
            let package = object::label(function, PACKAGE_LABEL)?;
            if !named.contains(&package) || can_compose(function) {
                return None;
            }
            Some(format!(
                "function {package:?} (active revision {:?}) is missing required capabilities: \
                 {COMPOSITION_CAPABILITY}",
                object::name(function)
            ))
        })
    }
}

/// No capabilities at all means that it can compose; else names are compared by letters and digits.
fn can_compose(function: &Value) -> bool {
    let capabilities: Vec<&str> = function
        .pointer("/status/capabilities")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let plain = |text: &str| -> String {
        text.chars()
            .filter(|c| c.is_ascii_alphanumeric())
            .map(|c| c.to_ascii_lowercase())
            .collect()
    };
    capabilities.is_empty()
        || capabilities
            .iter()
            .any(|c| plain(c) == COMPOSITION_CAPABILITY)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn capabilities_match_loosely_and_none_means_composition() {
        for (capabilities, want) in [
            (json!([]), true),
            (json!(["Compo-sition"]), true),
            (json!(["operation"]), false),
            (json!(["operation", "composition"]), true),
        ] {
            let function = json!({"status": {"capabilities": capabilities}});
            assert_eq!(can_compose(&function), want, "{capabilities}");
        }
        assert!(can_compose(&json!({})));
    }

    #[test]
    fn endpoints_are_those_of_packages() {
        let revision = Arc::new(json!({
            "metadata": {"labels": {"pkg.crossplane.io/package": "function-x"}},
            "status": {"endpoint": "dns:///x:9443"},
        }));
        let without = Arc::new(json!({"metadata": {}, "status": {"endpoint": "y"}}));
        assert_eq!(
            endpoints(&[revision, without]),
            BTreeMap::from([("function-x".to_owned(), "dns:///x:9443".to_owned())])
        );
    }
}
