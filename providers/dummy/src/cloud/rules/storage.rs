//! Volumes and images.

use super::{Ask, Rules, refuse, require};
use crate::cloud::error::CloudError;
use crate::cloud::object::{Choices, Kind, Object, Spec, State};
use crate::cloud::settings::Settings;
use crate::cloud::specs::{ImageSpec, VolumeSpec, VolumeTypeSpec};
use crate::cloud::state::Inner;
use crate::limits::VOLUME_SIZE_GB_MAX;

impl Rules for VolumeSpec {
    fn references(&self) -> Vec<&str> {
        let all = self.project.iter().chain(&self.source_image);
        all.map(String::as_str).collect()
    }

    fn check(&self, ask: &Ask<'_>, old: Option<&Self>) -> Result<(), CloudError> {
        check_size(self.size_gb)?;
        ask.project(&self.project, old.map(|old| &old.project))?;
        let source = old.and_then(|old| old.source_image.as_ref());
        if source.is_some() {
            ask.fixed("source image", &source, &self.source_image.as_ref())?;
        } else if let Some(image) = &self.source_image {
            let image = ask.usable(Kind::Image, image)?;
            let fits = |mb: i64| mb <= self.size_gb.saturating_mul(1024);
            require(image.size_mb.is_none_or(fits), || {
                format!("image {} does not fit in {} GB", image.id, self.size_gb)
            })?;
        }
        match (old, ask.me) {
            (Some(old), Some(me)) => {
                ask.fixed("volume type", &old.volume_type, &self.volume_type)?;
                let real_gb = me.size_gb.unwrap_or(old.size_gb).max(old.size_gb);
                require(self.size_gb >= real_gb, || {
                    format!(
                        "volume {} cannot shrink from {real_gb} GB to {} GB",
                        me.id, self.size_gb
                    )
                })?;
                check_quota(ask, self.size_gb - old.size_gb, 0)
            }
            _ => {
                let listed = ask.listed::<VolumeTypeSpec>(&self.volume_type)?;
                let minimum = listed.map_or(1, |t| t.min_size_gb);
                require(self.size_gb >= minimum, || {
                    format!(
                        "volumes of type {:?} have at least {minimum} GB, not {}",
                        self.volume_type, self.size_gb
                    )
                })?;
                check_quota(ask, self.size_gb, 1)
            }
        }
    }

    /// A volume has the operations a second of its type.
    fn choose(
        &mut self,
        ask: &Ask<'_>,
        old: Option<&Self>,
        _choices: &mut Choices,
    ) -> Result<(), CloudError> {
        if old.is_none() && self.iops.is_none() {
            let listed = ask.listed::<VolumeTypeSpec>(&self.volume_type)?;
            self.iops = listed.map(|t| t.iops);
        }
        Ok(())
    }
}

impl Rules for ImageSpec {
    fn references(&self) -> Vec<&str> {
        self.source_volume.iter().map(String::as_str).collect()
    }

    /// What an image runs on is a label here: SECA lets users change it.
    fn check(&self, ask: &Ask<'_>, old: Option<&Self>) -> Result<(), CloudError> {
        let source = old.and_then(|old| old.source_volume.as_ref());
        if source.is_some() {
            return ask.fixed("source volume", &source, &self.source_volume.as_ref());
        }
        ask.needs(Kind::Volume, &self.source_volume, [])
    }
}

/// Size of an image: that of the volume it is a copy of.
pub(super) fn image_size_mb(inner: &Inner, spec: &Spec) -> Option<i64> {
    let Spec::Image(image) = spec else {
        return None;
    };
    let source = inner.objects.get(image.source_volume.as_ref()?)?;
    source.size_gb.map(|gb| gb.saturating_mul(1024))
}

pub(super) fn check_size(size_gb: i64) -> Result<(), CloudError> {
    require((1..=VOLUME_SIZE_GB_MAX).contains(&size_gb), || {
        format!("size must be from 1 to {VOLUME_SIZE_GB_MAX} GB, not {size_gb}")
    })
}

/// Whether so much more, in so many more volumes, is within the account's bounds.
fn check_quota(ask: &Ask<'_>, added_gb: i64, added: i64) -> Result<(), CloudError> {
    let quota = ask.inner.quota(ask.account);
    if quota.volumes.is_none() && quota.size_gb.is_none() {
        return Ok(());
    }
    let (mut count, mut total_gb) = (0_i64, added_gb);
    for object in ask.inner.of_kind(Kind::Volume) {
        if let Spec::Volume(volume) = &object.spec
            && object.account == ask.account
        {
            count += 1;
            total_gb = total_gb.saturating_add(volume.size_gb);
        }
    }
    if added > 0 && quota.volumes.is_some_and(|max| count + added > max) {
        return refuse(format!(
            "quota exceeded: {count} volumes are all there may be"
        ));
    }
    match quota.size_gb {
        Some(max) if total_gb > max => refuse(format!(
            "quota exceeded: {total_gb} GB wanted, {max} GB allowed"
        )),
        _ => Ok(()),
    }
}

/// A volume that has not been changed for a while, changed, if the account is so set.
pub(in crate::cloud) fn drifted(object: &Object, settings: &Settings, now: i64) -> Option<Object> {
    let (drift, size) = (settings.drift?, object.size_gb?);
    let due = object.drifted_ms.saturating_add(drift.interval_ms);
    if object.state != State::Active || now < due {
        return None;
    }
    let mut changed = object.clone();
    changed.drifted_ms = now;
    changed.size_gb = Some(size.saturating_add(drift.delta_gb).max(1));
    (changed.size_gb != object.size_gb).then_some(changed)
}
