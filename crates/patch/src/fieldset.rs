//! Sets of fields, as `managedFields` store them (FieldsV1).

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::{Map, Value};

use crate::path::{ElementError, PathElement};

/// A set of fields: a trie of path elements.
///
/// A field below a member need not be a member, and the other way round, as in
/// structured-merge-diff's `fieldpath.Set`.
/// Invariants: entries are sorted and distinct; none is without a member in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet<'a> {
    entries: Vec<Entry<'a>>,
}

/// What a set holds at and below one path element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) element: PathElement<'a>,
    /// Whether the field itself is in the set.
    pub(crate) member: bool,
    /// The fields below it.
    pub(crate) below: FieldSet<'a>,
}

impl Entry<'_> {
    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl<'a> FieldSet<'a> {
    /// The set without members.
    pub(crate) const EMPTY: Self = Self {
        entries: Vec::new(),
    };

    pub(crate) fn with_capacity(entries: usize) -> Self {
        Self {
            entries: Vec::with_capacity(entries),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn entries(&self) -> &[Entry<'a>] {
        &self.entries
    }

    /// Number of members.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries
            .iter()
            .map(|entry| usize::from(entry.member) + entry.below.len())
            .sum()
    }

    pub(crate) fn get(&self, element: &PathElement<'_>) -> Option<&Entry<'a>> {
        let index = self.find(element).ok()?;
        self.entries.get(index)
    }

    fn find(&self, element: &PathElement<'_>) -> Result<usize, usize> {
        // Elements mostly arrive in order: look at the end first.
        match self.entries.last().map(|last| last.element.cmp(element)) {
            None => Err(0),
            Some(Ordering::Less) => Err(self.entries.len()),
            Some(Ordering::Equal) => Ok(self.entries.len() - 1),
            Some(Ordering::Greater) => self
                .entries
                .binary_search_by(|entry| entry.element.cmp(element)),
        }
    }

    /// Adds what is at and below one element.
    pub(crate) fn insert(&mut self, element: PathElement<'a>, member: bool, below: FieldSet<'a>) {
        if !member && below.is_empty() {
            return;
        }
        match self.find(&element) {
            Ok(index) => {
                if let Some(entry) = self.entries.get_mut(index) {
                    entry.member |= member;
                    entry.below = if entry.below.is_empty() {
                        below
                    } else {
                        entry.below.union(&below)
                    };
                }
            }
            Err(index) => self.entries.insert(
                index,
                Entry {
                    element,
                    member,
                    below,
                },
            ),
        }
    }

    /// Sets what is at and below the entry at an index.
    pub(crate) fn replace(&mut self, index: usize, member: bool, below: FieldSet<'a>) {
        if let Some(entry) = self.entries.get_mut(index) {
            entry.member = member;
            entry.below = below;
        }
    }

    /// A set of one field.
    pub(crate) fn of(path: &[PathElement<'a>]) -> Self {
        let mut set = Self::default();
        let mut member = true;
        for element in path.iter().rev() {
            let mut parent = Self::default();
            parent.insert(element.clone(), member, set);
            set = parent;
            member = false;
        }
        set
    }

    /// Fields in either set.
    pub(crate) fn union(&self, other: &FieldSet<'a>) -> FieldSet<'a> {
        self.zip(other, |element, a, b| match (a, b) {
            (Some(a), Some(b)) => Some(Entry {
                element: element.clone(),
                member: a.member || b.member,
                below: a.below.union(&b.below),
            }),
            (a, b) => a.or(b).cloned(),
        })
    }

    /// Fields in both sets.
    pub(crate) fn intersection(&self, other: &FieldSet<'_>) -> FieldSet<'a> {
        self.keep(other, |a, b| {
            let b = b?;
            Some(Entry {
                element: a.element.clone(),
                member: a.member && b.member,
                below: a.below.intersection(&b.below),
            })
        })
    }

    /// Fields in this set and not in the other; a parent takes no children with it.
    pub(crate) fn difference(&self, other: &FieldSet<'_>) -> FieldSet<'a> {
        self.keep(other, |a, b| {
            let Some(b) = b else {
                return Some(a.clone());
            };
            Some(Entry {
                element: a.element.clone(),
                member: a.member && !b.member,
                below: a.below.difference(&b.below),
            })
        })
    }

    /// Whether the sets share a field.
    pub(crate) fn intersects(&self, other: &FieldSet<'_>) -> bool {
        self.any(other, |a, b| {
            b.is_some_and(|b| (a.member && b.member) || a.below.intersects(&b.below))
        })
    }

    /// Whether every field of this set is in the other.
    pub(crate) fn is_subset(&self, other: &FieldSet<'_>) -> bool {
        !self.any(other, |a, b| match b {
            None => true,
            Some(b) => (a.member && !b.member) || !a.below.is_subset(&b.below),
        })
    }

    /// Calls `visit` with the path of each member, parents first.
    pub(crate) fn for_each(&self, visit: &mut impl FnMut(&[&PathElement<'a>])) {
        fn walk<'s, 'a>(
            set: &'s FieldSet<'a>,
            path: &mut Vec<&'s PathElement<'a>>,
            visit: &mut impl FnMut(&[&PathElement<'a>]),
        ) {
            for entry in &set.entries {
                path.push(&entry.element);
                if entry.member {
                    visit(path);
                }
                walk(&entry.below, path, visit);
                path.pop();
            }
        }
        walk(self, &mut Vec::new(), visit);
    }

    /// Walks both sets in order.
    fn zip<'s, 'b>(
        &'s self,
        other: &'s FieldSet<'b>,
        mut join: impl FnMut(
            &'s PathElement<'a>,
            Option<&'s Entry<'a>>,
            Option<&'s Entry<'b>>,
        ) -> Option<Entry<'a>>,
    ) -> FieldSet<'a>
    where
        'b: 'a,
    {
        let mut entries = Vec::with_capacity(self.entries.len().max(other.entries.len()));
        let (mut left, mut right) = (
            self.entries.iter().peekable(),
            other.entries.iter().peekable(),
        );
        loop {
            let order = match (left.peek(), right.peek()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(a), Some(b)) => a.element.cmp(&b.element),
            };
            let a = if order == Ordering::Greater {
                None
            } else {
                left.next()
            };
            let b = if order == Ordering::Less {
                None
            } else {
                right.next()
            };
            let element = match (a, b) {
                (Some(a), _) => &a.element,
                (None, Some(b)) => &b.element,
                (None, None) => break,
            };
            entries.extend(join(element, a, b).filter(|entry| !entry.is_empty()));
        }
        FieldSet { entries }
    }

    /// The entries of this set that `pick` makes of it and its counterpart in the other.
    fn keep<'b>(
        &self,
        other: &FieldSet<'b>,
        mut pick: impl FnMut(&Entry<'a>, Option<&Entry<'b>>) -> Option<Entry<'a>>,
    ) -> FieldSet<'a> {
        let mut right = other.entries.iter().peekable();
        let entries = self
            .entries
            .iter()
            .filter_map(|a| {
                while right.next_if(|b| b.element < a.element).is_some() {}
                let b = right.next_if(|b| b.element == a.element);
                pick(a, b).filter(|entry| !entry.is_empty())
            })
            .collect();
        FieldSet { entries }
    }

    fn any<'b>(
        &self,
        other: &FieldSet<'b>,
        mut test: impl FnMut(&Entry<'a>, Option<&Entry<'b>>) -> bool,
    ) -> bool {
        let mut right = other.entries.iter().peekable();
        self.entries.iter().any(|a| {
            while right.next_if(|b| b.element < a.element).is_some() {}
            let b = right.next_if(|b| b.element == a.element);
            test(a, b)
        })
    }

    /// Reads FieldsV1; `None` when it is not.
    pub(crate) fn decode(fields: &'a Value) -> Option<Self> {
        let Value::Object(fields) = fields else {
            return None;
        };
        decode(fields).map(|(set, _)| set)
    }

    /// Writes FieldsV1.
    pub(crate) fn encode(&self) -> Value {
        Value::Object(self.encode_below(false))
    }

    fn encode_below(&self, member: bool) -> Map<String, Value> {
        let mut fields = Map::new();
        // A leaf is written `{}`; only members with fields below them need the dot.
        if member && !self.is_empty() {
            fields.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for entry in &self.entries {
            fields.insert(
                entry.element.encode(),
                Value::Object(entry.below.encode_below(entry.member)),
            );
        }
        fields
    }

    /// The same set, borrowing nothing.
    pub(crate) fn into_owned(self) -> FieldSet<'static> {
        let entries = self.entries.into_iter().map(Entry::into_owned).collect();
        FieldSet { entries }
    }
}

impl Entry<'_> {
    fn into_owned(self) -> Entry<'static> {
        let text = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        let value = |value: Cow<'_, Value>| Cow::Owned(value.into_owned());
        Entry {
            element: match self.element {
                PathElement::Field(name) => PathElement::Field(text(name)),
                PathElement::Key(fields) => PathElement::Key(
                    fields
                        .into_iter()
                        .map(|(name, key)| (text(name), value(key)))
                        .collect(),
                ),
                PathElement::Item(item) => PathElement::Item(value(item)),
                PathElement::Index(index) => PathElement::Index(index),
            },
            member: self.member,
            below: self.below.into_owned(),
        }
    }
}

/// The set below one field, and whether the field itself is a member.
fn decode(fields: &Map<String, Value>) -> Option<(FieldSet<'_>, bool)> {
    if fields.is_empty() {
        return Some((FieldSet::EMPTY, true));
    }
    let mut set = FieldSet::with_capacity(fields.len());
    let mut member = false;
    for (name, value) in fields {
        if name == "." {
            member = true;
            continue;
        }
        let element = match PathElement::decode(name) {
            Ok(element) => element,
            // A later version may know what it is; upstream drops it too.
            Err(ElementError::Unknown) => continue,
            Err(ElementError::Malformed) => return None,
        };
        let (below, member) = match value {
            Value::Object(below) => decode(below)?,
            Value::Null => (FieldSet::default(), true),
            _ => return None,
        };
        set.insert(element, member, below);
    }
    let member = member || set.is_empty();
    Some((set, member))
}

/// The notation of conflicts, such as `.spec.containers[name="a"].image`.
pub(crate) fn path_text(path: &[&PathElement<'_>]) -> String {
    path.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests;
