//! Regions and SKUs.

use ecp_xrds::StorageSkuSpec;

use super::{Inputs, Plan, Wait, resolve};
use crate::clouds::StorageSku;

pub(super) fn region(inputs: &mut Inputs<'_, '_>, plan: &mut Plan) -> Result<(), Wait> {
    let (region, cloud) = resolve::region_of(inputs.xr.object, inputs.pinned)?;
    plan.cloud = Some(cloud);
    plan.managed = cloud.region(&region);
    Ok(())
}

pub(super) fn storage_sku(inputs: &mut Inputs<'_, '_>, plan: &mut Plan) -> Result<(), Wait> {
    let (region, cloud) = resolve::region(inputs)?;
    plan.cloud = Some(cloud);
    let spec: StorageSkuSpec = resolve::typed(inputs.xr.object, "spec")?;
    plan.managed = cloud.storage_sku(&StorageSku {
        region: &region,
        name: inputs.xr.name,
        kind: spec.kind,
        iops: spec.iops,
        min_volume_size_gb: spec.min_volume_size,
    });
    Ok(())
}
