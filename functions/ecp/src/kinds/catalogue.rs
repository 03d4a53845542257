//! Regions and SKUs.

use ecp_xrds::StorageSkuSpec;

use super::{Inputs, Plan, Wait, resolve};
use crate::clouds::StorageSku;
use crate::managed::Managed;

pub(super) fn region(inputs: &mut Inputs<'_, '_>, plan: &mut Plan) -> Result<(), Wait> {
    let (region, cloud) = resolve::region_of(inputs.xr.object, inputs.pinned)?;
    plan.cloud = Some(cloud);
    plan.managed = cloud.region(&region);
    Ok(())
}

/// A SKU that says no region is offered in all of them. Each has its own managed resources, so
/// that a region that is out of order does not keep the others from offering it.
pub(super) fn storage_sku(inputs: &mut Inputs<'_, '_>, plan: &mut Plan) -> Result<(), Wait> {
    let spec: StorageSkuSpec = resolve::typed(inputs.xr.object, "spec")?;
    let mut trouble = None;
    for region in resolve::regions(inputs)? {
        let (region, cloud) = match region {
            Ok(found) => found,
            Err(wait) => {
                trouble.get_or_insert(wait);
                continue;
            }
        };
        plan.cloud.get_or_insert(cloud);
        let managed = cloud.storage_sku(&StorageSku {
            region: &region,
            name: inputs.xr.name,
            kind: spec.kind,
            iops: spec.iops,
            min_volume_size_gb: spec.min_volume_size,
        });
        plan.managed.extend(managed.into_iter().map(|m| Managed {
            key: format!("{}-{}", m.key, region.name),
            ..m
        }));
    }
    trouble.map_or(Ok(()), Err)
}
