//! `x-kubernetes-validations`: rules in CEL.
//!
//! The language is that of `cel`, the libraries are those of `kube-cel`. Kubernetes' own part is
//! here: which rules run on which value, what `oldSelf` is, how values look to a rule, the static
//! checks when a schema is compiled, and the bound on what a rule may cost.

mod check;
mod cost;
mod escape;
mod evaluate;
mod functions;
mod rule;
mod types;
mod value;
mod visit;

pub(crate) use check::check as check_rules;
pub(crate) use evaluate::{check as evaluate, check_default as evaluate_default};
pub(crate) use rule::Rule;

#[cfg(test)]
mod tests;
