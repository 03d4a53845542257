//! The reference cloud (`dummy.m.secapi.cloud`, provider-dummy). Nothing in it costs money.

mod tables;

use ecp_xrds::KindInfo;
use serde_json::{Map, Value, json};

use self::tables::{
    IMAGE, LOCATION, MANAGED, PROJECT, VOLUME, VOLUME_SIZE_GB_MIN, VOLUME_TYPE, volume_type,
};
use crate::clouds::{BlockStorage, Cloud, Image, Observed, Region, StorageSku, Workspace};
use crate::managed::{Managed, ManagedKind, at_provider};

/// See the module.
#[derive(Debug)]
pub(super) struct Dummy;

impl Cloud for Dummy {
    fn name(&self) -> &'static str {
        "dummy"
    }

    fn managed_kinds(&self) -> &'static [ManagedKind] {
        &MANAGED
    }

    fn identity(&self, kind: &KindInfo) -> Option<&'static ManagedKind> {
        match kind.kind {
            "StorageSKU" => Some(VOLUME_TYPE),
            "Workspace" => Some(PROJECT),
            "BlockStorage" => Some(VOLUME),
            "Image" => Some(IMAGE),
            _ => None,
        }
    }

    fn region(&self, region: &Region) -> Vec<Managed> {
        vec![managed(
            "location",
            LOCATION,
            region,
            json!({"location": region.location}),
        )]
    }

    fn workspace(&self, workspace: &Workspace<'_>) -> Vec<Managed> {
        let wanted = json!({
            "location": workspace.region.location,
            "displayName": workspace.name,
        });
        vec![managed("project", PROJECT, workspace.region, wanted)]
    }

    fn storage_sku(&self, sku: &StorageSku<'_>) -> Vec<Managed> {
        let wanted = json!({
            "location": sku.region.location,
            "type": volume_type(sku.name),
            "iops": sku.iops,
            "minSizeGB": VOLUME_SIZE_GB_MIN,
        });
        vec![managed("volume-type", VOLUME_TYPE, sku.region, wanted)]
    }

    fn block_storage(&self, storage: &BlockStorage<'_>) -> Vec<Managed> {
        let wanted = json!({
            "location": storage.region.location,
            "project": storage.workspace,
            "displayName": storage.name,
            "sizeGB": storage.size_gb,
            "volumeType": volume_type(storage.sku.name),
            "iops": storage.sku.iops,
            "sourceImage": storage.source_image,
        });
        vec![managed("volume", VOLUME, storage.region, wanted)]
    }

    fn image(&self, image: &Image<'_>) -> Vec<Managed> {
        let wanted = json!({
            "location": image.region.location,
            "displayName": image.name,
            "sourceVolume": image.source_volume,
            "cpuArchitecture": image.cpu_architecture,
            "boot": image.boot,
            "initializer": image.initializer,
        });
        vec![managed("image", IMAGE, image.region, wanted)]
    }

    fn facts(&self, kind: &KindInfo, observed: &Observed<'_>) -> Map<String, Value> {
        let (key, field) = match kind.kind {
            "BlockStorage" => ("volume", "sizeGB"),
            "Image" => ("image", "sizeMB"),
            _ => return Map::new(),
        };
        observed
            .get(key)
            .and_then(|o| at_provider(o, field))
            .map(|value| Map::from_iter([(field.to_owned(), value.clone())]))
            .unwrap_or_default()
    }
}

fn managed(key: &str, kind: &'static ManagedKind, region: &Region, for_provider: Value) -> Managed {
    Managed {
        key: key.into(),
        kind,
        for_provider,
        region: Some(region.clone()),
    }
}
