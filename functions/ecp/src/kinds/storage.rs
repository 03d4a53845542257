//! Block storages and images.

use ecp_xrds::reference::Resolved;
use ecp_xrds::{BlockStorageSpec, ImageSpec};

use super::resolve::{self, Owner};
use super::{Inputs, Plan, Wait};
use crate::clouds;

pub(super) fn block_storage(
    inputs: &mut Inputs<'_, '_>,
    owner: &Result<Owner, Wait>,
    plan: &mut Plan,
) -> Result<(), Wait> {
    let spec: BlockStorageSpec = resolve::typed(inputs.xr.object, "spec")?;
    let region = resolve::region(inputs);
    let sku = resolve::storage_sku(
        inputs,
        &spec.sku_ref,
        region.as_ref().ok().map(|(region, _)| region),
    );
    let owner = owner.as_ref().map_err(Wait::clone)?;
    let (region, cloud) = region?;
    plan.cloud = Some(cloud);
    let workspace = workspace_of(owner)?;
    let workspace = resolve::cloud_id(inputs, plan, (&region, cloud), &workspace);
    let source_image = spec.source_image_ref.as_ref().map(|reference| {
        let image = resolve::kind("Image")?;
        let image = resolve::resolve(reference, image, owner, "spec.sourceImageRef")?;
        resolve::cloud_id(inputs, plan, (&region, cloud), &image)
    });
    let (mut sku, sku_spec) = sku?;
    sku.tenant.clone_from(&owner.tenant);
    let known = cloud
        .identity(sku.kind)
        .map(|_| resolve::cloud_id(inputs, plan, (&region, cloud), &sku));
    let (workspace, source_image) = (workspace?, source_image.transpose()?);
    known.transpose()?;
    plan.managed = cloud.block_storage(&clouds::BlockStorage {
        region: &region,
        name: inputs.xr.name,
        workspace,
        size_gb: spec.size_gb,
        sku: clouds::StorageSku {
            region: &region,
            name: &sku.name,
            kind: sku_spec.kind,
            iops: sku_spec.iops,
            min_volume_size_gb: sku_spec.min_volume_size,
        },
        source_image,
    });
    Ok(())
}

pub(super) fn image(
    inputs: &mut Inputs<'_, '_>,
    owner: &Result<Owner, Wait>,
    plan: &mut Plan,
) -> Result<(), Wait> {
    let spec: ImageSpec = resolve::typed(inputs.xr.object, "spec")?;
    let region = resolve::region(inputs);
    let owner = owner.as_ref().map_err(Wait::clone)?;
    let (region, cloud) = region?;
    plan.cloud = Some(cloud);
    let storage = resolve::kind("BlockStorage")?;
    let storage = resolve::resolve(
        &spec.block_storage_ref,
        storage,
        owner,
        "spec.blockStorageRef",
    )?;
    let source_volume = resolve::cloud_id(inputs, plan, (&region, cloud), &storage)?;
    plan.managed = cloud.image(&clouds::Image {
        region: &region,
        name: inputs.xr.name,
        source_volume,
        cpu_architecture: spec.cpu_architecture,
        boot: spec.boot,
        initializer: spec.initializer,
    });
    Ok(())
}

/// The workspace that a resource is in, as if referred to.
fn workspace_of(owner: &Owner) -> Result<Resolved, Wait> {
    let kind = resolve::kind("Workspace")?;
    Ok(Resolved {
        kind,
        tenant: owner.tenant.clone(),
        workspace: None,
        network: None,
        region: None,
        name: owner
            .workspace
            .clone()
            .ok_or_else(|| Wait("waiting for the workspace to be known".into()))?,
    })
}
