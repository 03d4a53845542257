//! The same job with `kubectl`.

use std::path::Path;

use ecp_harness::{Ecp, states, volume, volume_spec};

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name);
    path.canonicalize().unwrap().to_str().unwrap().into()
}

#[tokio::test]
async fn an_example_applied_with_kubectl_is_seen_over_rest_and_the_other_way_round() {
    let ecp = Ecp::start(&["--ephemeral"]).await;
    let Some(applied) = ecp.kubectl(&["apply", "-f", &example("first-volume")]) else {
        return;
    };
    applied.done();
    let wait = [
        "wait",
        "--for=condition=Ready",
        "block-storages",
        "--all",
        "-A",
        "--timeout=60s",
    ];
    ecp.kubectl(&wait).unwrap().done();
    let table = ecp
        .kubectl(&["get", "block-storages", "-A"])
        .unwrap()
        .done();
    assert!(
        table.contains("STATE") && table.contains("active"),
        "{table}"
    );
    let list = ecp
        .get("seca.workspace/v1/tenants/acme/workspaces")
        .await
        .body;
    let ws = list["items"][0]["metadata"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("seca.storage/v1/tenants/acme/workspaces/{ws}/block-storages");
    let disks = ecp.get(&path).await.body;
    assert_eq!(
        states(&disks["items"][0]),
        ["active", "creating", "pending"],
        "{disks:#}"
    );

    assert_eq!(
        ecp.put(&volume(&ws, "from-rest"), volume_spec(10))
            .await
            .status,
        201
    );
    let table = ecp
        .kubectl(&["get", "block-storages", "-A"])
        .unwrap()
        .done();
    assert!(table.contains("from-rest"), "{table}");

    let explained = ecp
        .kubectl(&["explain", "block-storages.spec.sizeGB"])
        .unwrap()
        .done();
    assert!(explained.contains("sizeGB <integer>"), "{explained}");
    let described = ecp
        .kubectl(&["describe", "block-storages", "-A"])
        .unwrap()
        .done();
    assert!(described.contains("Events:"), "{described}");

    ecp.kubectl(&["delete", "block-storages", "--all", "-A", "--timeout=60s"])
        .unwrap()
        .done();
    ecp.kubectl(&[
        "delete",
        "-f",
        &example("first-volume"),
        "--ignore-not-found",
        "--timeout=60s",
    ])
    .unwrap()
    .done();
    assert_eq!(ecp.managed().await, Vec::<String>::new());
}

#[tokio::test]
async fn kubectl_gets_the_same_refusals_as_rest() {
    let ecp = Ecp::start(&["--ephemeral"]).await;
    let manifest = |size: i64| {
        format!(
            "apiVersion: storage.v1.secapi.cloud/v1\nkind: BlockStorage\nmetadata:\n  name: bad\n  \
             namespace: default\nspec:\n  sizeGB: {size}\n  skuRef:\n    resource: skus/RD500\n"
        )
    };
    let apply = ["apply", "-f", "-"];
    let Some(refused) = ecp.kubectl_with(&apply, Some(&manifest(0))) else {
        return;
    };
    assert!(
        !refused.ok && refused.err.contains("spec.sizeGB"),
        "{refused:?}"
    );
    ecp.kubectl_with(&apply, Some(&manifest(10)))
        .unwrap()
        .done();
    let shrunk = ecp.kubectl_with(&apply, Some(&manifest(5))).unwrap();
    assert!(!shrunk.ok && shrunk.err.contains("sizeGB"), "{shrunk:?}");
}
