//! What the cloud allows, and how its objects come and go.

use super::Inner;
use super::error::CloudError;
use super::object::{Kind, Object, Spec, State, VolumeSpec};
use super::settings::Settings;
use crate::limits::VOLUME_SIZE_GB_MAX;

/// What time did to an object.
pub(super) enum Settled {
    Same,
    Changed(Box<Object>),
    Gone,
}

/// Where an object is by the clock.
pub(super) fn settled(object: &Object, settings: &Settings, now: i64) -> Settled {
    let delay = match object.state {
        _ if object.spec.kind().is_catalogue() => 0,
        State::Creating => settings.create_ms,
        State::Updating => settings.update_ms,
        State::Deleting => settings.delete_ms,
        State::Active => return drifted(object, settings, now),
    };
    if now < object.since_ms.saturating_add(delay) {
        return Settled::Same;
    }
    if object.state == State::Deleting {
        return Settled::Gone;
    }
    let mut done = object.clone();
    done.state = State::Active;
    done.since_ms = now;
    done.drifted_ms = now;
    if let Spec::Volume(volume) = &done.spec {
        done.size_gb = Some(volume.size_gb);
    }
    Settled::Changed(Box::new(done))
}

/// Changes an active volume that has not been changed for a while, if the account is so set.
fn drifted(object: &Object, settings: &Settings, now: i64) -> Settled {
    let (Some(drift), Some(size)) = (settings.drift, object.size_gb) else {
        return Settled::Same;
    };
    if now < object.drifted_ms.saturating_add(drift.interval_ms) {
        return Settled::Same;
    }
    let mut changed = object.clone();
    changed.drifted_ms = now;
    changed.size_gb = Some(size.saturating_add(drift.delta_gb).max(1));
    if changed.size_gb == object.size_gb {
        return Settled::Same;
    }
    Settled::Changed(Box::new(changed))
}

/// What the cloud fills in: a volume has the operations a second of its type.
pub(super) fn completed(inner: &Inner, mut spec: Spec) -> Spec {
    if let Spec::Volume(volume) = &mut spec
        && volume.iops.is_none()
    {
        volume.iops = listed_type(inner, volume).map(|(iops, _)| iops);
    }
    spec
}

/// Operations a second and smallest size of a volume's type, if its location lists it.
fn listed_type(inner: &Inner, volume: &VolumeSpec) -> Option<(i64, i64)> {
    inner.of_kind(Kind::VolumeType).find_map(|o| match &o.spec {
        Spec::VolumeType {
            location,
            name,
            iops,
            min_size_gb,
        } if *location == volume.location && *name == volume.volume_type => {
            Some((*iops, *min_size_gb))
        }
        _ => None,
    })
}

/// A new object with an id of its own.
pub(super) fn new_object(inner: &Inner, account: &str, tag: &str, spec: Spec, now: i64) -> Object {
    let unique = uuid::Uuid::new_v4().simple().to_string();
    let id = format!("{}{}", spec.kind().prefix(), &unique[..16]);
    let (size_gb, size_mb) = match &spec {
        Spec::Volume(volume) => (Some(volume.size_gb), None),
        Spec::Image(image) => {
            let source = inner.objects.get(&image.source_volume);
            (
                None,
                source
                    .and_then(|v| v.size_gb)
                    .map(|gb| gb.saturating_mul(1024)),
            )
        }
        Spec::Location { .. } | Spec::Project { .. } | Spec::VolumeType { .. } => (None, None),
    };
    Object {
        id,
        tag: tag.into(),
        account: account.into(),
        spec,
        state: State::Creating,
        since_ms: now,
        size_gb,
        size_mb,
        attached_to: None,
        drifted_ms: now,
    }
}

/// Whether a new object may be made.
pub(super) fn may_create(
    inner: &mut Inner,
    account: &str,
    spec: &Spec,
    now: i64,
) -> Result<(), CloudError> {
    let location = spec.location();
    if !inner.offers(account, location) {
        return refuse(format!("location {location:?} is not offered"));
    }
    match spec {
        Spec::Location { .. } | Spec::Project { .. } => Ok(()),
        Spec::VolumeType { min_size_gb, .. } => check_size(*min_size_gb),
        Spec::Volume(volume) => may_create_volume(inner, account, volume, now),
        Spec::Image(image) => {
            let source = usable(inner, &image.source_volume, Kind::Volume, now)?;
            same_place(&source, location)
        }
    }
}

fn may_create_volume(
    inner: &mut Inner,
    account: &str,
    volume: &VolumeSpec,
    now: i64,
) -> Result<(), CloudError> {
    check_size(volume.size_gb)?;
    check_type(inner, volume)?;
    check_quota(inner, account, volume.size_gb, Growth::NewVolume)?;
    if let Some(project) = &volume.project {
        let project = usable(inner, project, Kind::Project, now)?;
        same_place(&project, &volume.location)?;
    }
    if let Some(image) = &volume.source_image {
        let image = usable(inner, image, Kind::Image, now)?;
        same_place(&image, &volume.location)?;
        if image
            .size_mb
            .is_some_and(|mb| mb > volume.size_gb.saturating_mul(1024))
        {
            return refuse(format!(
                "image {} does not fit in {} GB",
                image.id, volume.size_gb
            ));
        }
    }
    Ok(())
}

/// An object that another one refers to: there, of the right kind, and not on its way.
fn usable(inner: &mut Inner, id: &str, kind: Kind, now: i64) -> Result<Object, CloudError> {
    let noun = kind.noun();
    match inner.settle(id, now) {
        Some(object) if object.spec.kind() == kind => match object.state {
            State::Active | State::Updating => Ok(object),
            State::Creating | State::Deleting => {
                let state = object.state.as_str();
                Err(CloudError::Busy(format!("{noun} {id} is {state}")))
            }
        },
        _ => Err(CloudError::NotFound(format!("{noun} {id} does not exist"))),
    }
}

fn same_place(object: &Object, location: &str) -> Result<(), CloudError> {
    if object.spec.location() == location {
        return Ok(());
    }
    let noun = object.spec.kind().noun();
    refuse(format!(
        "{noun} {} is not in location {location:?}",
        object.id
    ))
}

/// A location whose volume types nobody listed has every one.
fn check_type(inner: &Inner, volume: &VolumeSpec) -> Result<(), CloudError> {
    match listed_type(inner, volume) {
        Some((_, minimum)) if volume.size_gb < minimum => refuse(format!(
            "volumes of type {:?} have at least {minimum} GB, not {}",
            volume.volume_type, volume.size_gb
        )),
        Some(_) => Ok(()),
        None => {
            let here = |o: &Object| o.spec.location() == volume.location;
            if !inner.of_kind(Kind::VolumeType).any(here) {
                return Ok(());
            }
            refuse(format!(
                "unknown volume type {:?} in location {:?}",
                volume.volume_type, volume.location
            ))
        }
    }
}

enum Growth {
    NewVolume,
    Resize,
}

fn check_quota(
    inner: &Inner,
    account: &str,
    added_gb: i64,
    growth: Growth,
) -> Result<(), CloudError> {
    let quota = inner.settings(account).quota;
    if quota.volumes.is_none() && quota.size_gb.is_none() {
        return Ok(());
    }
    let mine = inner.of_kind(Kind::Volume).filter(|o| o.account == account);
    let (mut count, mut total_gb) = (0_i64, added_gb);
    for object in mine {
        count += 1;
        if let Spec::Volume(volume) = &object.spec {
            total_gb = total_gb.saturating_add(volume.size_gb);
        }
    }
    match growth {
        Growth::NewVolume if quota.volumes.is_some_and(|max| count >= max) => {
            return refuse(format!(
                "quota exceeded: {count} volumes are all there may be"
            ));
        }
        Growth::NewVolume | Growth::Resize => {}
    }
    match quota.size_gb {
        Some(max) if total_gb > max => refuse(format!(
            "quota exceeded: {total_gb} GB wanted, {max} GB allowed"
        )),
        _ => Ok(()),
    }
}

fn check_size(size_gb: i64) -> Result<(), CloudError> {
    if (1..=VOLUME_SIZE_GB_MAX).contains(&size_gb) {
        Ok(())
    } else {
        refuse(format!(
            "size must be from 1 to {VOLUME_SIZE_GB_MAX} GB, not {size_gb}"
        ))
    }
}

/// Whether an object may become what `new` says.
pub(super) fn may_update(
    inner: &Inner,
    account: &str,
    object: &Object,
    new: &Spec,
) -> Result<(), CloudError> {
    let (noun, id) = (object.spec.kind().noun(), &object.id);
    match object.state {
        State::Active | State::Updating => {}
        State::Creating | State::Deleting => {
            let state = object.state.as_str();
            return Err(CloudError::Busy(format!("{noun} {id} is {state}")));
        }
    }
    let fixed = |what: &str| refuse(format!("the {what} of {noun} {id} cannot be changed"));
    if object.spec.location() != new.location() {
        return fixed("location");
    }
    match (&object.spec, new) {
        (Spec::Volume(old), Spec::Volume(new)) => {
            if old.project != new.project {
                return fixed("project");
            }
            if old.volume_type != new.volume_type {
                return fixed("volume type");
            }
            if old.source_image != new.source_image {
                return fixed("source image");
            }
            let real_gb = object.size_gb.unwrap_or(old.size_gb).max(old.size_gb);
            if new.size_gb < real_gb {
                return refuse(format!(
                    "volume {id} cannot shrink from {real_gb} GB to {} GB",
                    new.size_gb
                ));
            }
            check_size(new.size_gb)?;
            check_quota(inner, account, new.size_gb - old.size_gb, Growth::Resize)
        }
        (Spec::Image(old), Spec::Image(new)) => {
            if old.source_volume != new.source_volume {
                return fixed("source volume");
            }
            // What an image runs on is a label here: SECA lets users change it.
            Ok(())
        }
        (Spec::VolumeType { name: old, .. }, Spec::VolumeType { name: new, .. }) => {
            if old == new {
                Ok(())
            } else {
                fixed("name")
            }
        }
        (old, new) if old.kind() == new.kind() => Ok(()),
        _ => fixed("kind"),
    }
}

/// Whether an object may be removed.
pub(super) fn may_delete(inner: &mut Inner, object: &Object, now: i64) -> Result<(), CloudError> {
    let id = &object.id;
    if let Some(instance) = &object.attached_to {
        let text = format!("volume {id} is attached to {instance}");
        return Err(CloudError::Busy(text));
    }
    let users: Vec<String> = match object.spec.kind() {
        Kind::Location | Kind::VolumeType => return Ok(()),
        Kind::Project => ids(
            inner,
            Kind::Volume,
            |spec| matches!(spec, Spec::Volume(v) if v.project.as_ref() == Some(id)),
        ),
        Kind::Volume => ids(
            inner,
            Kind::Image,
            |spec| matches!(spec, Spec::Image(i) if i.source_volume == *id),
        ),
        Kind::Image => ids(
            inner,
            Kind::Volume,
            |spec| matches!(spec, Spec::Volume(v) if v.source_image.as_ref() == Some(id)),
        ),
    };
    // A project holds what is in it; a copy needs its source only while it is made.
    let is_project = object.spec.kind() == Kind::Project;
    let blocking: Vec<String> = users
        .into_iter()
        .filter_map(|user| inner.settle(&user, now))
        .filter(|user| is_project || user.state == State::Creating)
        .map(|user| user.id)
        .collect();
    match blocking.first() {
        None => Ok(()),
        Some(first) if is_project => Err(CloudError::Busy(format!(
            "project {id} is not empty: {} volumes, {first} among them",
            blocking.len()
        ))),
        Some(first) => {
            let noun = object.spec.kind().noun();
            Err(CloudError::Busy(format!(
                "{noun} {id} is being copied to {first}"
            )))
        }
    }
}

fn ids(inner: &Inner, kind: Kind, uses: impl Fn(&Spec) -> bool) -> Vec<String> {
    let objects = inner.of_kind(kind).filter(|o| uses(&o.spec));
    objects.map(|o| o.id.clone()).collect()
}

fn refuse<T>(text: String) -> Result<T, CloudError> {
    Err(CloudError::Refused(text))
}
