//! JSON patch, merge patch, strategic merge patch and server-side apply.
//!
//! Invariant: pure. No I/O, no clock (times are arguments), no `kube`.
//!
//! Entry points: [`json_patch`], [`merge_patch`], [`strategic_merge_patch`], [`apply()`], [`track_update`].

mod apply;
mod error;
mod fieldset;
mod json;
mod last_applied;
pub mod limits;
mod managed;
mod merge;
mod path;
mod strategic;
mod typed;
mod types;
mod update;

pub use apply::{ApplyError, Conflict, Manager, Typing, apply, conflict_message};
pub use error::PatchError;
pub use json::json_patch;
pub use managed::same_but_times;
pub use merge::merge_patch;
pub use strategic::{PatchMeta, strategic_merge_patch};
pub use update::track_update;
