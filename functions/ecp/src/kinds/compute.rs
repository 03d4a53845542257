//! Instances: where volumes, NICs and security groups come together.

use ecp_xrds::{InstanceSkuSpec, InstanceSpec, Reference};

use super::refer::{Link, Sku};
use super::{Draft, Obstacle, network};
use crate::clouds::{self, Disk, InstanceSku};

pub(super) fn instance(draft: &mut Draft<'_, '_>) -> Result<(), Obstacle> {
    let spec: InstanceSpec = draft.spec()?;
    let site = draft.site();
    let sku = draft.sku(&spec.sku_ref, "InstanceSKU", &site);
    let workspace = draft.workspace_id(&site)?;
    let boot = draft.must_link("bootVolume.deviceRef", &spec.boot_volume.device_ref, &site);
    let data = spec.data_volumes.unwrap_or_default();
    let devices: Vec<Reference> = data.iter().map(|v| v.device_ref.clone()).collect();
    let devices = draft.links("dataVolumes[].deviceRef", &devices, &site);
    let primary = draft.maybe_link("primaryNicRef", spec.primary_nic_ref.as_ref(), &site);
    let more = spec.additional_nic_refs.unwrap_or_default();
    let more = draft.links("additionalNicRefs[]", &more, &site);
    let group = draft.maybe_link("securityGroupRef", spec.security_group_ref.as_ref(), &site);
    let (region, cloud) = site.placed()?;
    draft.plan.cloud = Some(cloud);
    network::check_zone(&region, &spec.zone)?;
    let (workspace, boot, devices) = (workspace?, boot?, devices?);
    let (primary, more, security_group) = (primary?, more?, group?);
    let sku: Sku<InstanceSkuSpec> = sku?;
    let data_volumes = devices.into_iter().zip(&data).filter_map(|(link, volume)| {
        Some(Disk {
            volume: link.id()?,
            bus: volume.kind,
        })
    });
    let more = more.into_iter().filter_map(Link::id);
    let power = spec.power.unwrap_or_default();
    draft.plan.managed = cloud.instance(&clouds::Instance {
        region: &region,
        name: draft.xr.name,
        workspace,
        zone: &spec.zone,
        sku: InstanceSku {
            region: &region,
            name: &sku.name,
            vcpu: sku.spec.vcpu,
            ram_gb: sku.spec.ram,
        },
        boot_volume: Disk {
            volume: boot,
            bus: spec.boot_volume.kind,
        },
        data_volumes: data_volumes.collect(),
        nics: primary.into_iter().chain(more).collect(),
        security_group,
        anti_affinity_group: spec.anti_affinity_group.as_deref(),
        ssh_keys: spec.ssh_keys.unwrap_or_default(),
        user_data: spec.user_data.as_deref(),
        power: power.state,
        restarted_at: power.restarted_at.as_deref(),
    });
    Ok(())
}
