//! The tests, by what of the contract they are about.

mod access;
mod bodies_at_limits;
mod catalogue;
mod concurrency;
mod constraints;
mod deletion;
mod facts;
mod immutable;
mod isolation;
mod lifecycle;
mod lists;
mod mutations;
mod parents;
mod power;
mod references;
mod regions;
mod requests;

use crate::Case;

/// All tests.
pub(crate) fn all() -> impl Iterator<Item = &'static Case> {
    let modules = [
        access::CASES,
        bodies_at_limits::CASES,
        catalogue::CASES,
        concurrency::CASES,
        constraints::CASES,
        constraints::COMMON,
        constraints::SPECS,
        deletion::CASES,
        facts::CASES,
        immutable::CASES,
        isolation::CASES,
        lifecycle::OF_KINDS,
        lists::CASES,
        lists::OF_KINDS,
        mutations::CASES,
        parents::CASES,
        power::CASES,
        references::CASES,
        regions::CASES,
        requests::CASES,
    ];
    modules.into_iter().flatten()
}
