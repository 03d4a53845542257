//! Tests of the generated XRDs: that the committed files are fresh, that Crossplane drops nothing
//! of them, and that their schemas accept and refuse what SECA does.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod crds;
mod crossplane_rules;
mod generated;
mod validation;
