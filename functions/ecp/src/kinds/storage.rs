//! Block storages and images.

use ecp_xrds::{BlockStorageSpec, ImageSpec, StorageSkuSpec};

use super::refer::Sku;
use super::{Draft, Obstacle};
use crate::clouds;

pub(super) fn block_storage(draft: &mut Draft<'_, '_>) -> Result<(), Obstacle> {
    let spec: BlockStorageSpec = draft.spec()?;
    let site = draft.site();
    let sku = draft.sku(&spec.sku_ref, "StorageSKU", &site);
    let workspace = draft.workspace_id(&site)?;
    let source_image = draft.maybe_link("sourceImageRef", spec.source_image_ref.as_ref(), &site);
    let (region, cloud) = site.placed()?;
    draft.plan.cloud = Some(cloud);
    let (workspace, source_image) = (workspace?, source_image?);
    let sku: Sku<StorageSkuSpec> = sku?;
    draft.plan.managed = cloud.block_storage(&clouds::BlockStorage {
        region: &region,
        name: draft.xr.name,
        workspace,
        size_gb: spec.size_gb,
        sku: clouds::StorageSku {
            region: &region,
            name: &sku.name,
            kind: sku.spec.kind,
            iops: sku.spec.iops,
            min_volume_size_gb: sku.spec.min_volume_size,
        },
        source_image,
    });
    Ok(())
}

pub(super) fn image(draft: &mut Draft<'_, '_>) -> Result<(), Obstacle> {
    let spec: ImageSpec = draft.spec()?;
    let site = draft.site();
    let source_volume = draft.link("blockStorageRef", &spec.block_storage_ref, &site);
    draft.owner.as_ref().map_err(Clone::clone)?;
    let (region, cloud) = site.placed()?;
    draft.plan.cloud = Some(cloud);
    draft.plan.managed = cloud.image(&clouds::Image {
        region: &region,
        name: draft.xr.name,
        source_volume: source_volume?,
        cpu_architecture: spec.cpu_architecture,
        boot: spec.boot,
        initializer: spec.initializer,
    });
    Ok(())
}
