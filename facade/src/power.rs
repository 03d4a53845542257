//! POST of start, stop and restart (SECA section 3.5, DESIGN D6).
//!
//! The intent is `spec.power`, applied under a field manager of its own, so that a PUT neither
//! clears it nor takes it over. Conflicts are answered from the intent: of calls that follow each
//! other, each sees what the one before asked for, whether or not the cloud is done with it.

use axum::body::Body;
use ecp_xrds::KindInfo;
use http::{HeaderMap, Response};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::cache::Entry;
use crate::control::{CallError, POWER_MANAGER};
use crate::error::{ApiError, ErrorKind};
use crate::facade::{Facade, Slot, not_found};
use crate::limits;
use crate::path::Target;
use crate::writes::{
    Opened, accepted, changed_too_often, check_condition, refuse_deleting, settle,
};

/// What can be asked of something that has power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Turn on what is off.
    Start,
    /// Turn off what is on.
    Stop,
    /// Turn off and on what is on.
    Restart,
}

impl Action {
    /// Every action.
    pub(crate) const ALL: [Self; 3] = [Self::Start, Self::Stop, Self::Restart];

    /// Its name in the path.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
        }
    }

    /// The action of a kind with this name in the path.
    pub(crate) fn of(info: &KindInfo, name: &str) -> Option<Self> {
        let all = Self::ALL.into_iter().filter(|_| has_power(info));
        all.into_iter().find(|action| action.as_str() == name)
    }

    /// The `spec.power` that carries the action out, or why the present one forbids it.
    fn next(self, power: Option<&Value>, now: Timestamp) -> Result<Value, &'static str> {
        let restarted_at = power.and_then(|p| p.get("restartedAt"));
        let (state, restarted_at) = match (self, is_on(power)) {
            (Self::Start, false) => ("on", restarted_at.cloned()),
            (Self::Stop, true) => ("off", restarted_at.cloned()),
            (Self::Restart, true) => {
                let last = restarted_at.and_then(Value::as_str);
                let at = strictly_after(last, now)?;
                ("on", Some(at.into()))
            }
            (Self::Start, true) => return Err("it is on"),
            (Self::Stop | Self::Restart, false) => return Err("it is off"),
        };
        let mut next = json!({"state": state});
        if let Some(at) = restarted_at.filter(|at| !at.is_null()) {
            next["restartedAt"] = at;
        }
        Ok(next)
    }
}

/// Whether resources of a kind can be turned on and off.
pub(crate) fn has_power(info: &KindInfo) -> bool {
    info.kind == "Instance"
}

/// Whether `spec.power` asks for on. Without one, nothing is on.
pub(crate) fn is_on(power: Option<&Value>) -> bool {
    let state = power.and_then(|p| p.get("state"));
    state.and_then(Value::as_str) == Some("on")
}

/// `now` in milliseconds, or the first one after `last`: what is marked by it is an edge, and must
/// differ from the one before.
pub(crate) fn strictly_after(last: Option<&str>, now: Timestamp) -> Result<String, &'static str> {
    let last = last.and_then(|text| text.parse::<Timestamp>().ok());
    let step = SignedDuration::from_millis(1);
    let whole = |t: Timestamp| Timestamp::from_millisecond(t.as_millisecond()).ok();
    let next = match last {
        Some(last) if whole(now).is_none_or(|now| now <= last) => {
            last.checked_add(step).ok().and_then(whole)
        }
        _ => whole(now),
    };
    let next = next.ok_or("the time of its last restart or repetition cannot be passed")?;
    Ok(format!("{next:.3}"))
}

impl Facade {
    /// Starts, stops or restarts a resource: 202, or a conflict with the present intent.
    ///
    /// Of several calls at once that exclude each other, exactly one is accepted.
    pub(crate) async fn power(
        &self,
        slot: Slot<'_>,
        target: &Target,
        name: &str,
        action: Action,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, ApiError> {
        let missing = || not_found(target, name);
        let Opened {
            condition,
            deadline,
            namespace,
            mut entry,
        } = self.open(target, name, headers).await?;
        entry = self.until_seen(target, entry).await;
        let mut current = false;
        for _ in 0..limits::WRITE_ATTEMPTS_MAX {
            let outcome = match next_power(&entry, target, action, condition) {
                Ok(power) => self.write_power(target, &entry, &power).await,
                // Another replica may know better than this cache.
                Err(_) if !current => Err(CallError::Conflict("read again".into())),
                Err(refusal) => return Err(refusal),
            };
            match outcome {
                Ok(object) => {
                    let kind = self.kind(target.info);
                    let written = kind.written(object);
                    if let Some(_waiting) = self.wait_instead_of(slot) {
                        settle(kind, written, self.wait_over(deadline)).await;
                    }
                    return Ok(accepted());
                }
                Err(CallError::Conflict(_) | CallError::NotFound(_)) => {
                    current = true;
                    entry = self
                        .find_now(target, &namespace, name)
                        .await?
                        .ok_or_else(missing)?;
                }
                Err(error) => return Err(self.failed(error)),
            }
        }
        Err(changed_too_often())
    }

    /// Applies `spec.power`, if the object is still the one that was looked at.
    async fn write_power(
        &self,
        target: &Target,
        entry: &Entry,
        power: &Value,
    ) -> Result<Value, CallError> {
        let kind = self.kind(target.info);
        let object = json!({
            "apiVersion": target.info.api_version(),
            "kind": target.info.kind,
            "metadata": {
                "name": entry.object_name(),
                "namespace": entry.namespace(),
                "uid": entry.uid(),
                "resourceVersion": entry.resource_version().to_string(),
            },
            "spec": {"power": power},
        });
        let (collection, inside) = (kind.collection(), Some(entry.namespace()));
        let name = entry.object_name();
        self.control()
            .apply(POWER_MANAGER, collection, inside, name, &object)
            .await
            .map(|(_, object)| object)
    }
}

fn next_power(
    entry: &Entry,
    target: &Target,
    action: Action,
    condition: Option<i64>,
) -> Result<Value, ApiError> {
    if let Some(wanted) = condition {
        check_condition(entry, wanted)?;
    }
    refuse_deleting(entry, target)?;
    action
        .next(entry.spec("power"), Timestamp::now())
        .map_err(|why| {
            ApiError::new(
                ErrorKind::Conflict,
                format!(
                    "{} {:?} cannot {}: {why}",
                    target.info.noun,
                    entry.name(),
                    action.as_str()
                ),
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("time")
    }

    #[test]
    fn actions_follow_from_the_intent() {
        let now = at("2026-11-30T10:00:00.1234Z");
        let on = json!({"state": "on"});
        let off = json!({"state": "off", "restartedAt": "2026-11-30T09:00:00Z"});
        for (action, power, want) in [
            (Action::Start, None, Ok(on.clone())),
            (
                Action::Start,
                Some(&off),
                Ok(json!({"state": "on", "restartedAt": "2026-11-30T09:00:00Z"})),
            ),
            (Action::Start, Some(&on), Err("it is on")),
            (Action::Stop, Some(&on), Ok(json!({"state": "off"}))),
            (Action::Stop, Some(&off), Err("it is off")),
            (Action::Stop, None, Err("it is off")),
            (
                Action::Restart,
                Some(&on),
                Ok(json!({"state": "on", "restartedAt": "2026-11-30T10:00:00.123Z"})),
            ),
            (Action::Restart, Some(&off), Err("it is off")),
            (Action::Restart, None, Err("it is off")),
        ] {
            assert_eq!(action.next(power, now), want, "{action:?} {power:?}");
        }
    }

    #[test]
    fn a_restart_is_later_than_the_one_before() {
        let now = at("2026-11-30T10:00:00.123Z");
        for (last, want) in [
            (None, "2026-11-30T10:00:00.123Z"),
            (Some("nonsense"), "2026-11-30T10:00:00.123Z"),
            (Some("2026-11-30T09:00:00Z"), "2026-11-30T10:00:00.123Z"),
            (Some("2026-11-30T10:00:00.123Z"), "2026-11-30T10:00:00.124Z"),
            (
                Some("2026-11-30T10:00:00.1234567Z"),
                "2026-11-30T10:00:00.124Z",
            ),
            (
                Some("2026-11-30T12:00:00+01:00"),
                "2026-11-30T11:00:00.001Z",
            ),
        ] {
            let next = strictly_after(last, now).expect("a time");
            assert_eq!(next, want, "{last:?}");
        }
        assert!(strictly_after(Some("9999-12-30T22:00:00.999999999Z"), now).is_err());
    }

    #[test]
    fn only_instances_have_power() {
        let disk = ecp_xrds::by_kind("BlockStorage").expect("kind");
        assert_eq!(Action::of(disk, "start"), None);
    }
}
