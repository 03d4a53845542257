//! What to do next with a managed resource: the decision, without doing it.
//!
//! The order is that of crossplane-runtime's managed reconciler
//! (`pkg/reconciler/managed/reconciler.go`). [`decide`] is called again after each step with what
//! was learned, until it says [`Step::Stop`].
//!
//! Where this differs: an unrecorded creation is looked for by tag before it is refused; the
//! resource is observed again at once after create, update and delete, so that a fast cloud
//! needs one reconcile.

use crate::policy::{Policies, PolicyError};

/// What is known before anything is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The pause annotation is `"true"`.
    pub paused: bool,
    /// Management policies.
    pub policies: Result<Policies, PolicyError>,
    /// The object is being deleted.
    pub deleting: bool,
    /// Finalizers other than the runtime's are present.
    pub other_finalizers: bool,
    /// The external name must be set from the object's name first.
    pub unnamed: bool,
    /// A creation was begun whose result is unknown.
    pub create_incomplete: bool,
    /// A creation succeeded within the grace period, and no deletion was asked for since.
    pub in_grace: bool,
    /// Creating twice is harmless.
    pub deterministic: bool,
    /// An unrecorded creation can be looked for by tag.
    pub finds_by_tag: bool,
}

/// What was done and learned so far in this reconcile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// A tag lookup has settled whether the unrecorded creation happened, and that is recorded.
    pub create_settled: bool,
    /// Connected to the cloud.
    pub connected: bool,
    /// What the last observation saw; `None` before it and after a change.
    pub seen: Option<Seen>,
    /// Connection details are published and the finalizer is there.
    pub prepared: bool,
    /// Fields were late-initialized.
    pub late_initialized: bool,
    /// The resource was created.
    pub created: bool,
    /// It was updated.
    pub updated: bool,
    /// Its deletion was asked for.
    pub deleted: bool,
}

/// What an observation saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// No external resource.
    Missing,
    /// There is one.
    Exists {
        /// Nothing needs to be changed.
        up_to_date: bool,
        /// It has values for fields that the user left out.
        late_init: bool,
        /// The cloud is working on it.
        settling: bool,
    },
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Set the external name to the object's name.
    Initialize,
    /// Track the use of the configuration, then connect.
    Connect,
    /// Look for the unrecorded creation by tag and record what is found.
    FindByTag,
    /// Look at the external resource.
    Observe,
    /// Publish connection details and add the finalizer.
    Prepare,
    /// Mark a creation as pending, create, record the result.
    Create,
    /// Fill in fields of `forProvider`.
    LateInitialize,
    /// Update the external resource.
    Update,
    /// Delete the external resource.
    Delete,
    /// Unpublish connection details and remove the finalizer.
    Release,
    /// Write the status and wait.
    Stop(Stop),
}

/// Why a reconcile ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Paused by annotation or by an empty list of policies.
    Paused,
    /// The policies are no accepted set.
    InvalidPolicies(PolicyError),
    /// A creation has an unknown result: refused until a person says it is safe.
    CreateIncomplete,
    /// There is no external resource and it may not be created.
    MissingNotCreated,
    /// Created a moment ago and not visible yet. No status is written.
    Pending,
    /// Being deleted, but others' finalizers come first.
    OtherFinalizers,
    /// The cloud is deleting it.
    Deleting,
    /// Created; the cloud does not show it yet.
    Created,
    /// In order.
    Synced {
        /// The cloud is working on it.
        settling: bool,
    },
}

/// The next step.
pub fn decide(facts: &Facts, progress: &Progress) -> Step {
    let policies = match &facts.policies {
        _ if facts.paused => return Step::Stop(Stop::Paused),
        Ok(policies) if policies.paused() => return Step::Stop(Stop::Paused),
        Ok(policies) => *policies,
        Err(e) => return Step::Stop(Stop::InvalidPolicies(e.clone())),
    };
    if facts.deleting && !policies.delete() {
        return Step::Release;
    }
    if facts.unnamed {
        return Step::Initialize;
    }
    let unknown = facts.create_incomplete && !facts.deterministic && !progress.create_settled;
    if unknown && !facts.finds_by_tag {
        return Step::Stop(Stop::CreateIncomplete);
    }
    if !progress.connected {
        return Step::Connect;
    }
    if unknown {
        return Step::FindByTag;
    }
    let Some(seen) = progress.seen else {
        return Step::Observe;
    };
    match seen {
        Seen::Missing if !facts.deleting && !policies.create() => {
            Step::Stop(Stop::MissingNotCreated)
        }
        Seen::Missing if facts.in_grace && !progress.deleted => Step::Stop(Stop::Pending),
        _ if facts.deleting => decide_deletion(facts, progress, seen),
        Seen::Missing if progress.created => Step::Stop(Stop::Created),
        Seen::Missing => Step::Create,
        Seen::Exists { .. } if !progress.prepared => Step::Prepare,
        Seen::Exists {
            late_init: true, ..
        } if policies.late_initialize() && !progress.late_initialized => Step::LateInitialize,
        Seen::Exists {
            up_to_date: false,
            settling,
            ..
        } => {
            if policies.update() && !progress.updated {
                Step::Update
            } else {
                Step::Stop(Stop::Synced { settling })
            }
        }
        Seen::Exists { settling, .. } => Step::Stop(Stop::Synced { settling }),
    }
}

fn decide_deletion(facts: &Facts, progress: &Progress, seen: Seen) -> Step {
    if facts.other_finalizers {
        return Step::Stop(Stop::OtherFinalizers);
    }
    match seen {
        Seen::Missing => Step::Release,
        Seen::Exists { .. } if progress.deleted => Step::Stop(Stop::Deleting),
        Seen::Exists { .. } => Step::Delete,
    }
}

#[cfg(test)]
mod tests;
