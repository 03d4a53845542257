//! Machines: what they are made of, where they run, and whether they do.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{Ask, Rules, refuse, require};
use crate::cloud::error::CloudError;
use crate::cloud::object::{Choices, Kind, Object, SpecOf as _};
use crate::cloud::specs::{MachineSpec, MachineTypeSpec, Power, VolumeUse};
use crate::limits::{DATA_VOLUMES_MAX, HOSTS_PER_ZONE, INTERFACES_MAX};

impl Rules for MachineSpec {
    fn references(&self) -> Vec<&str> {
        let named = self.project.iter().chain(&self.security_group);
        let all = named.chain(&self.interfaces).chain(self.volumes());
        all.map(String::as_str).collect()
    }

    fn check(&self, ask: &Ask<'_>, old: Option<&Self>) -> Result<(), CloudError> {
        ask.project(&self.project, old.map(|old| &old.project))?;
        match old {
            Some(old) => ask.fixed("machine type", &old.machine_type, &self.machine_type)?,
            None => {
                ask.listed::<MachineTypeSpec>(&self.machine_type)?;
            }
        }
        require(!self.zone.is_empty(), || "a machine is in a zone".into())?;
        require(self.data_volumes.len() <= DATA_VOLUMES_MAX, || {
            format!("at most {DATA_VOLUMES_MAX} data volumes are possible")
        })?;
        require(self.interfaces.len() <= INTERFACES_MAX, || {
            format!("at most {INTERFACES_MAX} network interfaces are possible")
        })?;
        let mut seen = BTreeSet::new();
        for id in self.volumes().chain(&self.interfaces) {
            require(seen.insert(id), || format!("{id} is given twice"))?;
        }
        let volumes = old.into_iter().flat_map(Self::volumes);
        ask.needs(Kind::Volume, self.volumes(), volumes)?;
        let group = old.and_then(|old| old.security_group.as_ref());
        ask.needs(Kind::SecurityGroup, &self.security_group, group)?;
        let interfaces = old.into_iter().flat_map(|old| &old.interfaces);
        ask.needs(Kind::NetworkInterface, &self.interfaces, interfaces)?;
        self.check_interfaces(ask)?;
        if let Some(text) = &self.restarted_at {
            read_time(text)?;
        }
        self.check_boot_volume(ask, old)
    }

    /// The host with the fewest machines of the same anti-affinity group, then with the fewest.
    fn choose(
        &mut self,
        ask: &Ask<'_>,
        old: Option<&Self>,
        choices: &mut Choices,
    ) -> Result<(), CloudError> {
        let same_place = |old: &Self| {
            old.zone == self.zone && old.anti_affinity_group == self.anti_affinity_group
        };
        if choices.host.is_some() && old.is_some_and(same_place) {
            return Ok(());
        }
        let mut hosts: BTreeMap<String, (usize, usize)> = (1..=HOSTS_PER_ZONE)
            .map(|n| (format!("{}-host-{n}", self.zone), (0, 0)))
            .collect();
        let me = ask.me.map(|me| &me.id);
        for object in ask.inner.of_kind(Kind::Machine) {
            let (Some(other), Some(host)) = (Self::of(&object.spec), &object.choices.host) else {
                continue;
            };
            let Some((grouped, all)) = hosts.get_mut(host) else {
                continue;
            };
            if other.location != self.location || Some(&object.id) == me {
                continue;
            }
            *all += 1;
            let same_group = self.anti_affinity_group.is_some()
                && other.anti_affinity_group == self.anti_affinity_group
                && other.project == self.project
                && object.account == ask.account;
            *grouped += usize::from(same_group);
        }
        let best = hosts.into_iter().min_by_key(|(_, load)| *load);
        choices.host = best.map(|(host, _)| host);
        Ok(())
    }
}

impl MachineSpec {
    /// Ids of its volumes, that to boot from first.
    pub(in crate::cloud) fn volumes(&self) -> impl Iterator<Item = &String> {
        let uses = std::iter::once(&self.boot_volume).chain(&self.data_volumes);
        uses.map(|VolumeUse { volume, .. }| volume)
    }

    /// An interface is in one machine at a time.
    fn check_interfaces(&self, ask: &Ask<'_>) -> Result<(), CloudError> {
        for id in &self.interfaces {
            let Some(interface) = ask.inner.owned(ask.account, id) else {
                continue;
            };
            let mut users = ask.users_of(interface);
            if let Some(user) = users.find(|user| user.spec.kind() == Kind::Machine) {
                let text = format!("network interface {id} is in use by machine {}", user.id);
                return Err(CloudError::Busy(text));
            }
        }
        Ok(())
    }

    fn check_boot_volume(&self, ask: &Ask<'_>, old: Option<&Self>) -> Result<(), CloudError> {
        let (Some(old), Some(me)) = (old, ask.me) else {
            return Ok(());
        };
        let stays_on =
            self.power != Some(Power::Off) && me.choices.power.unwrap_or(Power::Off) == Power::On;
        if stays_on && old.boot_volume != self.boot_volume {
            return refuse(format!(
                "machine {} must be off for a change of its boot volume",
                me.id
            ));
        }
        Ok(())
    }
}

/// Switches a machine on or off, or starts it again, as its spec says.
pub(super) fn switch(spec: &MachineSpec, object: &Object, choices: &mut Choices, now: i64) {
    let is = choices.power;
    let wanted = spec.power.or(is).unwrap_or(Power::Off);
    let restarted = match (&object.was, &spec.restarted_at) {
        (Some(was), Some(new)) => {
            let old = MachineSpec::of(was).and_then(|was| was.restarted_at.as_ref());
            let old = old.and_then(|text| read_time(text).ok());
            read_time(new).is_ok_and(|new| old.is_none_or(|old| new > old))
        }
        _ => false,
    };
    choices.power = Some(wanted);
    let started = is.unwrap_or(Power::Off) != wanted;
    if started || (wanted == Power::On && restarted) {
        choices.power_since_ms = Some(now);
    }
}

fn read_time(text: &str) -> Result<Timestamp, CloudError> {
    match text.parse() {
        Ok(time) => Ok(time),
        Err(_) => refuse(format!("{text:?} is no time")),
    }
}
