//! Typed values: which fields they hold, how two differ, how they combine.
//!
//! The rules are those of structured-merge-diff's `typed` package.

mod check;
mod compare;
mod fields;
mod merge;
mod reconcile;
mod remove;

pub(crate) use check::check;
pub(crate) use compare::{Changes, compare};
pub(crate) use fields::{fields, with_named_fields};
pub(crate) use merge::merge;
pub(crate) use reconcile::reconcile;
pub(crate) use remove::{Emptied, remove};
