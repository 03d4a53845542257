//! Encoded watch events, shared by the watches that send them.
//!
//! Watches of one collection see an event at nearly the same time, so a small table of the latest
//! frames is enough: each is encoded once, and the watches hold references to its bytes.

use std::sync::Arc;

use bytes::Bytes;
use ecp_store::Revision;
use parking_lot::Mutex;

use crate::limits::{FRAME_SHARED_BYTES_MAX, FRAMES_SHARED};
use crate::registry::ResourceInfo;
use crate::storage;

/// What identifies a frame.
#[derive(Clone, Debug)]
pub(crate) struct FrameId<'a> {
    /// `ADDED`, `MODIFIED` or `DELETED`.
    pub(crate) kind: &'static str,
    /// Resource and version.
    pub(crate) info: &'a Arc<ResourceInfo>,
    /// Key of the object.
    pub(crate) key: &'a Arc<str>,
    /// Revision of the event.
    pub(crate) revision: Revision,
}

#[derive(Debug)]
struct Slot {
    kind: &'static str,
    info: Arc<ResourceInfo>,
    key: Arc<str>,
    revision: Revision,
    frame: Bytes,
}

/// The latest frames.
#[derive(Debug)]
pub(crate) struct Frames(Vec<Mutex<Option<Slot>>>);

impl Default for Frames {
    fn default() -> Self {
        Self((0..FRAMES_SHARED).map(|_| Mutex::default()).collect())
    }
}

impl Frames {
    /// The frame of an event that shows `value`.
    pub(crate) fn frame(&self, id: &FrameId<'_>, value: &[u8]) -> Bytes {
        let Some(slot) = self.0.get(id.revision.0 as usize % FRAMES_SHARED) else {
            return encode(id, value);
        };
        if let Some(known) = &*slot.lock()
            && known.revision == id.revision
            && known.kind == id.kind
            && known.key == *id.key
            && Arc::ptr_eq(&known.info, id.info)
        {
            return known.frame.clone();
        }
        let frame = encode(id, value);
        if frame.len() <= FRAME_SHARED_BYTES_MAX {
            *slot.lock() = Some(Slot {
                kind: id.kind,
                info: Arc::clone(id.info),
                key: Arc::clone(id.key),
                revision: id.revision,
                frame: frame.clone(),
            });
        }
        frame
    }
}

fn encode(id: &FrameId<'_>, value: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(value.len() + 96);
    head(&mut out, id.kind);
    storage::write_json(&mut out, id.info, value, id.revision);
    out.extend_from_slice(TAIL);
    out.into()
}

/// What ends a frame.
pub(super) const TAIL: &[u8] = b"}\n";

/// What begins a frame.
pub(super) fn head(out: &mut Vec<u8>, kind: &str) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
}

#[cfg(test)]
mod tests {
    use ecp_meta::cluster::ClusterName;
    use serde_json::json;

    use super::*;
    use crate::registry::Registry;

    #[test]
    fn two_watches_share_the_bytes_of_a_frame() {
        let resources = Registry::new().resources(&ClusterName::root());
        let info = resources.find("", "v1", "secrets").unwrap().info();
        let value = storage::encode(info, &json!({"kind": "Secret", "metadata": {"name": "x"}}));
        let key: Arc<str> = "/core/secrets/root/a/x".into();
        let frames = Frames::default();
        let of = |kind, revision| {
            let id = FrameId {
                kind,
                info,
                key: &key,
                revision: Revision(revision),
            };
            frames.frame(&id, &value)
        };
        let first = of("ADDED", 7);
        assert_eq!(first.as_ptr(), of("ADDED", 7).as_ptr());
        assert_ne!(first, of("MODIFIED", 7));
        assert_ne!(first, of("ADDED", 7 + FRAMES_SHARED as u64));
    }
}
