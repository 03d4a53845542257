//! Tests of the generated XRDs: that the committed files are fresh, that Crossplane drops nothing
//! of them, and that their schemas accept and refuse what SECA does.

mod crds;
mod crossplane_rules;
mod generated;
mod validation;
