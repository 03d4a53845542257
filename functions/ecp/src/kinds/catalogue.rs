//! Regions and SKUs.

use ecp_xrds::{InstanceSkuSpec, NetworkSkuSpec, StorageSkuSpec};

use super::{Draft, Obstacle, place};
use crate::clouds::{Cloud, InstanceSku, NetworkSku, Region, StorageSku};
use crate::managed::Managed;

pub(super) fn region(draft: &mut Draft<'_, '_>) -> Result<(), Obstacle> {
    let (region, cloud) = place::region_of(draft.xr.object, draft.pinned)?;
    draft.plan.cloud = Some(cloud);
    draft.plan.managed = cloud.region(&region);
    Ok(())
}

pub(super) fn storage_sku(draft: &mut Draft<'_, '_>) -> Result<(), Obstacle> {
    let spec: StorageSkuSpec = draft.spec()?;
    let name = draft.xr.name;
    offer(draft, |cloud, region| {
        cloud.storage_sku(&StorageSku {
            region,
            name,
            kind: spec.kind,
            iops: spec.iops,
            min_volume_size_gb: spec.min_volume_size,
        })
    })
}

pub(super) fn instance_sku(draft: &mut Draft<'_, '_>) -> Result<(), Obstacle> {
    let spec: InstanceSkuSpec = draft.spec()?;
    let name = draft.xr.name;
    offer(draft, |cloud, region| {
        cloud.instance_sku(&InstanceSku {
            region,
            name,
            vcpu: spec.vcpu,
            ram_gb: spec.ram,
        })
    })
}

pub(super) fn network_sku(draft: &mut Draft<'_, '_>) -> Result<(), Obstacle> {
    let spec: NetworkSkuSpec = draft.spec()?;
    let name = draft.xr.name;
    offer(draft, |cloud, region| {
        cloud.network_sku(&NetworkSku {
            region,
            name,
            bandwidth_mbps: spec.bandwidth,
            packets_per_second: spec.packets,
        })
    })
}

/// A SKU that says no region is offered in all of them. Each has its own managed resources, so
/// that a region that is out of order does not keep the others from offering it.
fn offer(
    draft: &mut Draft<'_, '_>,
    needs: impl Fn(&dyn Cloud, &Region) -> Vec<Managed>,
) -> Result<(), Obstacle> {
    let mut trouble = None;
    for region in draft.regions()? {
        let (region, cloud) = match region {
            Ok(found) => found,
            Err(why) => {
                trouble.get_or_insert(why);
                continue;
            }
        };
        draft.plan.cloud.get_or_insert(cloud);
        let managed = needs(cloud, &region);
        draft
            .plan
            .managed
            .extend(managed.into_iter().map(|m| Managed {
                key: format!("{}-{}", m.key, region.name),
                ..m
            }));
    }
    trouble.map_or(Ok(()), Err)
}
