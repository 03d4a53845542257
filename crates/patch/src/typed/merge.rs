//! Merging an applied configuration into a live value.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::path::{PathElement, same};
use crate::types::{Class, List, Type};

/// The live value with the configuration merged in; `None` where that changes nothing, so that the
/// common case copies nothing.
pub(crate) fn merge(ty: Type<'_>, live: &Value, config: &Value) -> Option<Value> {
    // Scalars first: most values are, and they need no type.
    if !(live.is_object() || live.is_array() || config.is_object() || config.is_array()) {
        return (!same(live, config)).then(|| config.clone());
    }
    match (ty.class(live), ty.class(config)) {
        // Null takes nothing from what others have put into a map or list.
        (Class::Map(map), Class::Null) if !map.is_empty() => None,
        (Class::List(list), Class::Null) if !list.items.is_empty() => None,
        (Class::Map(live), Class::Map(config)) => merge_maps(ty, live, config),
        (Class::List(live), Class::List(config)) => merge_lists(ty, &live, &config),
        _ if same(live, config) => None,
        _ => Some(config.clone()),
    }
}

fn merge_maps(
    ty: Type<'_>,
    live: &Map<String, Value>,
    config: &Map<String, Value>,
) -> Option<Value> {
    let mut merged: Option<Map<String, Value>> = None;
    for (name, value) in config {
        let change = match live.get(name) {
            None => Some(value.clone()),
            Some(live) => merge(ty.field(name).ty, live, value),
        };
        if let Some(value) = change {
            merged
                .get_or_insert_with(|| live.clone())
                .insert(name.clone(), value);
        }
    }
    merged.map(Value::Object)
}

/// One item of a merged list.
enum Source {
    /// The live item at this index.
    Live(usize),
    /// The configured item at this index.
    Config(usize),
}

fn merge_lists(ty: Type<'_>, live: &List<'_>, config: &List<'_>) -> Option<Value> {
    let order = Order::new(live, config);
    let sources = order.interleave();
    let mut unchanged = sources.len() == live.items.len();
    let mut out = Vec::with_capacity(sources.len());
    for (position, source) in sources.iter().enumerate() {
        let (from, changed) = match *source {
            Source::Live(index) => (Some(index), live.items.get(index).cloned()),
            Source::Config(index) => {
                let config = config.items.get(index)?;
                match order.live_of(index) {
                    None => (None, Some(config.clone())),
                    Some(live_index) => {
                        let item = live.items.get(live_index)?;
                        match merge(ty.item(), item, config) {
                            None => (Some(live_index), Some(item.clone())),
                            merged => (None, merged),
                        }
                    }
                }
            }
        };
        unchanged &= from == Some(position);
        out.extend(changed);
    }
    (!unchanged).then_some(Value::Array(out))
}

/// Which items of two lists are the same.
struct Order {
    /// For each live item, the configured one.
    live_to_config: Vec<Option<usize>>,
    /// For each configured item, the live one if there is exactly one, and whether there is any.
    config_to_live: Vec<(Option<usize>, bool)>,
}

impl Order {
    fn new(live: &List<'_>, config: &List<'_>) -> Self {
        let config_index: BTreeMap<&PathElement<'_>, usize> =
            config.elements.iter().zip(0..).collect();
        let mut config_to_live = vec![(None, false); config.elements.len()];
        let live_to_config = live
            .elements
            .iter()
            .enumerate()
            .map(|(live_index, element)| {
                let index = *config_index.get(element)?;
                if let Some(counterpart) = config_to_live.get_mut(index) {
                    // A duplicated live item is replaced, for there is no one item to merge with.
                    *counterpart = match *counterpart {
                        (_, false) => (Some(live_index), true),
                        (_, true) => (None, true),
                    };
                }
                Some(index)
            })
            .collect();
        Self {
            live_to_config,
            config_to_live,
        }
    }

    fn live_of(&self, config: usize) -> Option<usize> {
        self.config_to_live.get(config).and_then(|(live, _)| *live)
    }

    /// Interleaves the lists: the configured order wins for items in both, live items keep their
    /// place as far as that allows (structured-merge-diff, `mergingWalker.visitListItems`).
    fn interleave(&self) -> Vec<Source> {
        let (live_len, config_len) = (self.live_to_config.len(), self.config_to_live.len());
        let mut shared = (0..config_len)
            .filter(|index| self.config_to_live.get(*index).is_some_and(|(_, any)| *any));
        let mut next_shared = shared.next();
        let mut merged = vec![false; config_len];
        let mut out = Vec::with_capacity(live_len.max(config_len));
        let (mut l, mut c) = (0, 0);
        while l < live_len || c < config_len {
            let counterpart = self.live_to_config.get(l).copied().flatten();
            if l < live_len && c < config_len {
                if counterpart == Some(c) {
                    merged[c] = true;
                    out.push(Source::Config(c));
                    (l, c) = (l + 1, c + 1);
                    next_shared = shared.next();
                    continue;
                }
                if counterpart.is_some() && next_shared.is_some() && next_shared != counterpart {
                    // In both lists, but not at its turn.
                    l += 1;
                    continue;
                }
            }
            if l < live_len {
                match counterpart {
                    None => {
                        out.push(Source::Live(l));
                        l += 1;
                        continue;
                    }
                    Some(index) if merged.get(index) == Some(&true) => l += 1,
                    Some(_) => {}
                }
            }
            if c < config_len {
                merged[c] = true;
                out.push(Source::Config(c));
                if next_shared == Some(c) {
                    next_shared = shared.next();
                }
                c += 1;
            }
        }
        out
    }
}
