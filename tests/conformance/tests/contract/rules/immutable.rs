//! What cannot change, and what can though it looks as if it could not (contract, section 3.6).

use serde_json::{Value, json};

use crate::bodies::{self, reference};
use crate::cases;
use crate::kinds::*;
use crate::site::Site;
use crate::world::{REGIONS, Refusal};

cases!(
    Two sizes_do_not_shrink_and_skus_stay,
    Two a_resource_stays_in_its_region,
    One nothing_has_to_be_unique,
);

async fn sizes_do_not_shrink_and_skus_stay(site: Site) {
    for kind in [&BLOCK_STORAGE, &INSTANCE, &NIC] {
        site.prepare(kind).await;
    }
    let sku = |name: &str| reference(&format!("skus/{name}"));
    for (kind, field, first, second) in [
        (&BLOCK_STORAGE, "sizeGB", json!(20), json!(19)),
        (&BLOCK_STORAGE, "skuRef", sku("RD500"), sku("RD100")),
        (&INSTANCE, "skuRef", sku("DS"), sku("DXS")),
        (&NIC, "skuRef", sku("N1K"), sku("N5K")),
    ] {
        let mut spec = bodies::minimal(&site, kind);
        spec[field] = first;
        site.make(kind, "x", &spec).await;
        let before = site.get(kind, "x").await.ok(200);
        spec[field] = second;
        let answer = site.put(kind, "x", &spec).await;
        assert_eq!(
            answer.status,
            site.world.code(Refusal::Invalid),
            "{answer:#?}"
        );
        let blamed = |s: &&str| s.starts_with(&format!("/spec/{field}")) || *s == "/spec";
        assert!(answer.sources().iter().any(blamed), "{answer:#?}");
        assert_eq!(site.get(kind, "x").await.ok(200), before);
        site.remove(kind, "x").await;
    }
}

async fn a_resource_stays_in_its_region(site: Site) {
    site.sample(&WORKSPACE).await;
    let spec = bodies::minimal(&site, &PUBLIC_IP);
    let body = |region: &str| json!({ "metadata": { "region": region }, "spec": spec });
    site.put_body(&PUBLIC_IP, "x", &body(REGIONS[0]))
        .await
        .ok(201);
    let moved = site.put_body(&PUBLIC_IP, "x", &body(REGIONS[1])).await;
    assert_eq!(
        moved.status,
        site.world.code(Refusal::Invalid),
        "{moved:#?}"
    );
    assert_eq!(moved.sources(), ["/metadata/region"]);
    // Without a region, and with an empty one, it stays too.
    for body in [json!({ "spec": spec }), body("")] {
        let answer = site.put_body(&PUBLIC_IP, "x", &body).await.ok(200);
        assert_eq!(answer["metadata"]["region"], REGIONS[0]);
    }
}

/// One boot volume of three instances, one range of two networks and two subnets, one address of
/// two NICs and two public IPs, one public IP of two NICs; sizes below the SKU's.
async fn nothing_has_to_be_unique(site: Site) {
    site.prepare(&INSTANCE).await;
    site.prepare(&NIC).await;
    site.sample(&PUBLIC_IP).await;
    let mut made: Vec<(&Kind, Value)> = Vec::new();
    for kind in [&INSTANCE, &NETWORK, &SUBNET] {
        made.push((kind, bodies::minimal(&site, kind)));
    }
    let mut nic = bodies::minimal(&site, &NIC);
    nic["publicIpRefs"] = json!([reference("pip")]);
    made.push((&NIC, nic));
    let address = json!({ "version": "IPv4", "address": "52.93.126.9" });
    made.push((&PUBLIC_IP, address));
    for (kind, spec) in made {
        for name in ["one", "two", "three"] {
            site.make(kind, name, &spec).await;
        }
    }
}
