//! The two things an XRD makes: composite resources and claims.

use std::sync::Arc;

use ecp_xr::crd::{CrdError, claim_crd, composite_crd};
use ecp_xr::xrd::Xrd;
use serde_json::Value;

use crate::api::Kind;
use crate::claim;
use crate::composite::{self, Running, composite_kind};
use crate::context::Context;

/// One of the two things an XRD makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// The XRs.
    Composite,
    /// The claims.
    Claim,
}

impl Part {
    pub(super) fn finalizer(self) -> &'static str {
        match self {
            Self::Composite => "defined.apiextensions.crossplane.io",
            Self::Claim => "offered.apiextensions.crossplane.io",
        }
    }

    pub(super) fn condition(self) -> &'static str {
        match self {
            Self::Composite => "Established",
            Self::Claim => "Offered",
        }
    }

    /// Reasons of its condition while it is served and while it goes away.
    pub(super) fn condition_reasons(self) -> (&'static str, &'static str) {
        match self {
            Self::Composite => ("WatchingCompositeResource", "TerminatingCompositeResource"),
            Self::Claim => (
                "WatchingCompositeResourceClaim",
                "TerminatingCompositeResourceClaim",
            ),
        }
    }

    /// Reasons of its events while it comes and goes.
    pub(super) fn event_reasons(self) -> (&'static str, &'static str) {
        match self {
            Self::Composite => ("EstablishComposite", "TerminateComposite"),
            Self::Claim => ("OfferClaim", "RedactClaim"),
        }
    }

    /// Core's name of the controller, from which Events come.
    pub(crate) fn component(self) -> &'static str {
        match self {
            Self::Composite => "defined/compositeresourcedefinition.apiextensions.crossplane.io",
            Self::Claim => "offered/compositeresourcedefinition.apiextensions.crossplane.io",
        }
    }

    pub(super) fn what(self) -> &'static str {
        match self {
            Self::Composite => "composite resource",
            Self::Claim => "composite resource claim",
        }
    }

    /// Field of `status.controllers`.
    pub(super) fn controller_field(self) -> &'static str {
        match self {
            Self::Composite => "compositeResourceType",
            Self::Claim => "compositeResourceClaimType",
        }
    }

    pub(super) fn crd(self, xrd: &Xrd) -> Result<Value, CrdError> {
        match self {
            Self::Composite => composite_crd(xrd),
            Self::Claim => claim_crd(xrd),
        }
    }

    pub(super) fn kind(self, xrd: &Xrd) -> Option<Kind> {
        match self {
            Self::Composite => Some(composite_kind(xrd)),
            Self::Claim => claim::claim_kind(xrd),
        }
    }

    pub(super) fn start(self, context: &Arc<Context>, xrd: Arc<Xrd>) -> Option<Running> {
        match self {
            Self::Composite => Some(composite::start(context, xrd)),
            Self::Claim => claim::start(context, xrd),
        }
    }
}
