//! `metadata.managedFields`: who owns which fields.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::fieldset::FieldSet;
use crate::limits::UPDATE_MANAGERS_MAX;
use crate::path::PathElement;
use crate::typed::{Changes, reconcile};
use crate::types::Type;

/// The manager that old `Update` entries are folded into.
const ANCIENT_CHANGES: &str = "ancient-changes";

/// How a manager came to own its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// What makes an entry one and the same: an applier has one entry whatever version it uses, an
/// updater one a version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity<'a> {
    pub(crate) manager: Cow<'a, str>,
    pub(crate) operation: Operation,
    /// Of updaters only.
    pub(crate) api_version: Cow<'a, str>,
    pub(crate) subresource: Cow<'a, str>,
}

impl<'a> Identity<'a> {
    pub(crate) fn new(
        manager: &'a str,
        operation: Operation,
        api_version: &'a str,
        subresource: &'a str,
    ) -> Self {
        Self {
            manager: Cow::Borrowed(manager),
            operation,
            api_version: Cow::Borrowed(match operation {
                Operation::Apply => "",
                Operation::Update => api_version,
            }),
            subresource: Cow::Borrowed(subresource),
        }
    }

    /// The words of conflict messages (apimachinery, `printManager`).
    pub(crate) fn describe(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            text += &format!(" with subresource {:?}", self.subresource);
        }
        if self.operation == Operation::Update {
            text += &format!(" using {}", self.api_version);
        }
        text
    }
}

/// What a manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owned<'a> {
    pub(crate) api_version: Cow<'a, str>,
    /// When the entry last changed.
    pub(crate) time: Option<Cow<'a, str>>,
    pub(crate) fields: FieldSet<'a>,
}

impl Owned<'_> {
    fn seconds(&self) -> i64 {
        self.time
            .as_deref()
            .and_then(|time| time.parse::<Timestamp>().ok())
            .map_or(0, Timestamp::as_second)
    }
}

/// The owners of an object's fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Managed<'a> {
    pub(crate) owners: BTreeMap<Identity<'a>, Owned<'a>>,
}

impl<'a> Managed<'a> {
    /// Reads `metadata.managedFields`; absent and null are no owners.
    ///
    /// # Errors
    /// What cannot be decoded.
    pub(crate) fn decode(entries: Option<&'a Value>) -> Result<Self, String> {
        let entries = match entries {
            None | Some(Value::Null) => return Ok(Self::default()),
            Some(Value::Array(entries)) => entries,
            Some(_) => return Err("managedFields must be a list".to_owned()),
        };
        let owners = entries
            .iter()
            .enumerate()
            .map(|(index, entry)| {
                decode_entry(entry).map_err(|reason| format!("entry {index}: {reason}"))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { owners })
    }

    /// Writes `metadata.managedFields`; `None` when nobody owns anything.
    pub(crate) fn encode(&self) -> Option<Value> {
        let mut entries: Vec<_> = self.owners.iter().collect();
        entries.sort_by_cached_key(|(id, owned)| {
            (
                id.operation,
                owned.seconds(),
                id.manager.clone(),
                owned.api_version.clone(),
            )
        });
        let entries: Vec<Value> = entries
            .into_iter()
            .map(|(id, owned)| encode_entry(id, owned))
            .collect();
        (!entries.is_empty()).then_some(Value::Array(entries))
    }

    /// Folds the oldest `Update` entries of each version into one, until there are few enough.
    pub(crate) fn cap_updates(&mut self) {
        let mut updates: Vec<(i64, Identity<'a>)> = self
            .owners
            .iter()
            .filter(|(id, _)| id.operation == Operation::Update)
            .map(|(id, owned)| (owned.seconds(), id.clone()))
            .collect();
        let mut count = updates.len();
        if count <= UPDATE_MANAGERS_MAX {
            return;
        }
        updates.sort();
        let mut first_of: BTreeMap<Cow<'a, str>, Identity<'a>> = BTreeMap::new();
        for (_, id) in updates {
            if count <= UPDATE_MANAGERS_MAX {
                return;
            }
            let version = id.api_version.clone();
            let Some(first) = first_of.get(&version) else {
                first_of.insert(version, id);
                continue;
            };
            let bucket = Identity {
                manager: Cow::Borrowed(ANCIENT_CHANGES),
                operation: Operation::Update,
                api_version: version,
                subresource: Cow::Borrowed(""),
            };
            if !self.owners.contains_key(&bucket)
                && let Some(owned) = self.owners.remove(first)
            {
                self.owners.insert(bucket.clone(), owned);
            }
            if id == bucket {
                continue;
            }
            if let Some(folded) = self.owners.remove(&id)
                && let Some(owned) = self.owners.get_mut(&bucket)
            {
                owned.fields = folded.fields.union(&owned.fields);
                owned.time = folded.time;
                count -= 1;
            }
        }
    }
}

fn decode_entry(entry: &Value) -> Result<(Identity<'_>, Owned<'_>), String> {
    let Value::Object(entry) = entry else {
        return Err("not an object".to_owned());
    };
    let text = |field: &str| match entry.get(field) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(_) => Err(format!("{field} must be a string")),
    };
    let operation = match text("operation")? {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".to_owned()),
    };
    let api_version = text("apiVersion")?;
    if api_version.is_empty() {
        return Err("apiVersion must not be empty".to_owned());
    }
    match text("fieldsType")? {
        "FieldsV1" => {}
        "" => return Err("missing fieldsType".to_owned()),
        other => return Err(format!("invalid fieldsType {other:?}")),
    }
    let fields = match entry.get("fieldsV1") {
        None | Some(Value::Null) => FieldSet::default(),
        Some(fields) => {
            FieldSet::decode(fields).ok_or_else(|| "fieldsV1 cannot be decoded".to_owned())?
        }
    };
    let id = Identity::new(
        text("manager")?,
        operation,
        api_version,
        text("subresource")?,
    );
    let owned = Owned {
        api_version: Cow::Borrowed(api_version),
        time: decode_time(text("time")?)?,
        fields,
    };
    Ok((id, owned))
}

/// A time in UTC and whole seconds, as Kubernetes writes it.
fn decode_time(text: &str) -> Result<Option<Cow<'_, str>>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let time: Timestamp = text
        .parse()
        .map_err(|_| format!("time {text:?} is not an RFC 3339 time"))?;
    // "2026-01-01T00:00:00Z" is canonical already.
    if text.len() == 20 && text.ends_with('Z') {
        return Ok(Some(Cow::Borrowed(text)));
    }
    let time = Timestamp::from_second(time.as_second()).unwrap_or(time);
    Ok(Some(Cow::Owned(time.to_string())))
}

fn encode_entry(id: &Identity<'_>, owned: &Owned<'_>) -> Value {
    let mut entry = Map::new();
    let mut put = |field: &str, text: &str| {
        if !text.is_empty() {
            entry.insert(field.to_owned(), Value::String(text.to_owned()));
        }
    };
    put("manager", &id.manager);
    put("operation", id.operation.as_str());
    put("apiVersion", &owned.api_version);
    put("time", owned.time.as_deref().unwrap_or_default());
    put("fieldsType", "FieldsV1");
    put("subresource", &id.subresource);
    entry.insert("fieldsV1".to_owned(), owned.fields.encode());
    Value::Object(entry)
}

/// Follows changes of the schema since the sets were written.
pub(crate) fn reconcile_owners(managed: &mut Managed<'_>, ty: Type<'_>) -> bool {
    let mut changed = false;
    for owned in managed.owners.values_mut() {
        if let Some(fields) = reconcile(ty, &owned.fields) {
            owned.fields = fields;
            changed = true;
        }
    }
    changed
}

/// Takes changed and removed fields from their owners; tells whether anybody lost any.
pub(crate) fn disown(managed: &mut Managed<'_>, changes: &Changes<'_>) -> bool {
    let mut changed = false;
    for lost in [&changes.changed, &changes.removed] {
        for owned in managed.owners.values_mut() {
            if owned.fields.intersects(lost) {
                owned.fields = owned.fields.difference(lost);
                changed = true;
            }
        }
    }
    managed.owners.retain(|_, owned| !owned.fields.is_empty());
    changed
}

/// `metadata.managedFields` of an object.
pub(crate) fn managed_fields(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields")
}

/// Takes `metadata.managedFields` out of an object.
pub(crate) fn take_managed_fields(object: &mut Value) -> Option<Value> {
    object
        .get_mut("metadata")?
        .as_object_mut()?
        .remove("managedFields")
}

/// Puts `metadata.managedFields` into an object; `None` leaves it without.
pub(crate) fn set_managed_fields(object: &mut Value, entries: Option<Value>) {
    let Some(entries) = entries else {
        take_managed_fields(object);
        return;
    };
    let Value::Object(object) = object else {
        return;
    };
    let metadata = object
        .entry("metadata")
        .or_insert_with(|| Value::Object(Map::new()));
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    if let Value::Object(metadata) = metadata {
        metadata.insert("managedFields".to_owned(), entries);
    }
}

/// Whether two objects differ in nothing but the times of `managedFields`: such a write is none,
/// or a controller that applies what defaulting or pruning takes back would never come to rest
/// (apiserver, `ignoreManagedFieldsTimestampsTransformer`).
pub fn same_but_times(a: &Value, b: &Value) -> bool {
    fn same_fields(a: &Value, b: &Value, ignored: &str) -> bool {
        let (Value::Object(a), Value::Object(b)) = (a, b) else {
            return a == b;
        };
        let count = |map: &Map<String, Value>| map.len() - usize::from(map.contains_key(ignored));
        count(a) == count(b)
            && a.iter()
                .all(|(name, value)| name == ignored || b.get(name) == Some(value))
    }
    if a == b {
        return true;
    }
    let (Some(Value::Array(a_owners)), Some(Value::Array(b_owners))) =
        (managed_fields(a), managed_fields(b))
    else {
        return false;
    };
    // Times take part in the order, so look for each entry's counterpart.
    let found = |entry| {
        b_owners
            .iter()
            .any(|other| same_fields(entry, other, "time"))
    };
    a_owners.len() == b_owners.len()
        && a_owners.iter().all(found)
        && same_fields(a, b, "metadata")
        && match (a.get("metadata"), b.get("metadata")) {
            (Some(a), Some(b)) => same_fields(a, b, "managedFields"),
            _ => false,
        }
}

/// An object without any field.
pub(crate) static EMPTY: LazyLock<Value> = LazyLock::new(|| Value::Object(Map::new()));

/// Fields that nobody owns (apimachinery, `stripMetaManager`).
pub(crate) static UNOWNED: LazyLock<FieldSet<'static>> = LazyLock::new(|| {
    let metadata = PathElement::field("metadata");
    let top = ["apiVersion", "kind", "metadata"].map(|field| vec![PathElement::field(field)]);
    let nested = [
        "clusterName",
        "creationTimestamp",
        "generation",
        "managedFields",
        "name",
        "namespace",
        "resourceVersion",
        "selfLink",
        "uid",
    ]
    .map(|field| vec![metadata.clone(), PathElement::field(field)]);
    top.iter()
        .chain(&nested)
        .fold(FieldSet::default(), |set, path| {
            set.union(&FieldSet::of(path))
        })
});

#[cfg(test)]
mod tests;
