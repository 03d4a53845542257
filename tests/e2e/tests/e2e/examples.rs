//! Every folder of `examples/` is applied, looked at, and deleted, in both flavours.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use ecp_harness::{Answer, DEADLINE, Ecp, Output, volume, volume_spec, workspace};

/// Examples of which the tests below apply and delete everything.
pub(crate) const FOLDERS: [&str; 5] = [
    "first-volume",
    "private-network",
    "public-web-server",
    "two-roles",
    "two-workspaces",
];

/// What a REST document says at a JSON pointer, when an example is there.
struct Fact {
    path: &'static str,
    pointer: &'static str,
    begins: &'static str,
}

const fn fact(path: &'static str, pointer: &'static str, begins: &'static str) -> Fact {
    Fact {
        path,
        pointer,
        begins,
    }
}

pub(crate) fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    path.join(name).canonicalize().unwrap()
}

/// The objects of an example, in the order `kubectl apply -f` has.
pub(crate) fn objects(name: &str) -> Vec<Value> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder(name))
        .unwrap()
        .map(|f| f.unwrap().path())
        .filter(|f| f.extension().is_some_and(|e| e == "yaml"))
        .collect();
    files.sort();
    files
        .into_iter()
        .flat_map(|f| {
            let text = std::fs::read_to_string(f).unwrap();
            serde_saphyr::from_multiple::<Value>(&text).unwrap()
        })
        .collect()
}

pub(crate) fn is_namespace(object: &Value) -> bool {
    object["kind"] == "Namespace"
}

/// `kubectl` with some objects on its standard input.
pub(crate) fn kubectl(ecp: &Ecp, args: &[&str], items: &[Value]) -> Option<Output> {
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
    let args = [args, &["-f", "-"]].concat();
    ecp.kubectl_with(&args, Some(&list.to_string()))
}

/// Waits until nothing is left of some objects, below and beside them.
pub(crate) async fn until_nothing_is_left(ecp: &Ecp, items: &[Value]) {
    let started = Instant::now();
    loop {
        let mut left = ecp.managed().await;
        if left.is_empty() {
            let get = ["get", "--ignore-not-found", "-o", "name"];
            let composite = ["get", "composite", "-A", "-o", "name"];
            let told = kubectl(ecp, &get, items).unwrap().done();
            let composites = ecp.kubectl(&composite).unwrap().done();
            let of_user = |name: &&str| !name.contains("sku") && !name.starts_with("region.");
            left.extend(told.lines().map(Into::into));
            left.extend(composites.lines().filter(of_user).map(Into::into));
        }
        if left.is_empty() {
            return;
        }
        assert!(started.elapsed() < DEADLINE, "left: {left:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Applies an example, looks at it and deletes it, again and again in other orders.
async fn lives(name: &str, facts: &[Fact]) {
    for flavour in ["v2", "claims"] {
        let ecp = Ecp::start(&["--ephemeral", "--flavour", flavour]).await;
        let (namespaces, resources): (Vec<_>, Vec<_>) =
            objects(name).into_iter().partition(is_namespace);
        let path = folder(name);
        let Some(applied) = ecp.kubectl(&["apply", "-f", path.to_str().unwrap()]) else {
            return;
        };
        applied.done();
        look(&ecp, &resources, facts).await;
        let delete = ["delete", "--wait=false", "--ignore-not-found"];
        let all = [namespaces.clone(), resources.clone()].concat();
        kubectl(&ecp, &delete, &all).unwrap().done();
        until_nothing_is_left(&ecp, &all).await;

        // What is used comes after what uses it, and goes before it.
        let backwards: Vec<Value> = resources.iter().rev().cloned().collect();
        let apply = [namespaces.clone(), backwards.clone()].concat();
        kubectl(&ecp, &["apply"], &apply).unwrap().done();
        look(&ecp, &resources, facts).await;
        kubectl(&ecp, &delete, &resources).unwrap().done();
        until_nothing_is_left(&ecp, &resources).await;

        // And the other way round.
        kubectl(&ecp, &["apply"], &all).unwrap().done();
        look(&ecp, &resources, facts).await;
        kubectl(&ecp, &delete, &backwards).unwrap().done();
        kubectl(&ecp, &delete, &namespaces).unwrap().done();
        until_nothing_is_left(&ecp, &all).await;
    }
}

async fn look(ecp: &Ecp, resources: &[Value], facts: &[Fact]) {
    let wait = ["wait", "--for=condition=Ready", "--timeout=60s"];
    kubectl(ecp, &wait, resources).unwrap().done();
    for Fact {
        path,
        pointer,
        begins,
    } in facts
    {
        let holds = |document: &Value| {
            let found = document.pointer(pointer);
            found.is_some_and(|v| {
                v.as_str()
                    .map_or(v.to_string(), Into::into)
                    .starts_with(begins)
            })
        };
        let what = format!("{begins} at {pointer}");
        ecp.until(path, &what, |a| holds(&a.body)).await;
    }
}

#[test]
fn every_example_is_run() {
    let apart = ["slow-cloud", "terraform"];
    let run: BTreeSet<String> = FOLDERS
        .iter()
        .chain(&apart)
        .map(ToString::to_string)
        .collect();
    let found: BTreeSet<String> = std::fs::read_dir(folder("."))
        .unwrap()
        .map(|f| f.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(found, run);
    for name in found {
        let readme = std::fs::read_to_string(folder(&name).join("README.md")).unwrap();
        assert!(readme.contains(&format!("examples/{name}")), "{name}");
    }
}

#[tokio::test]
async fn the_first_volume_lives_and_goes() {
    let facts = [
        fact(
            "seca.storage/v1/tenants/acme/workspaces/prod/block-storages/data",
            "/status/sizeGB",
            "10",
        ),
        fact(
            "seca.storage/v1/tenants/acme/images/golden",
            "/status/sizeMB",
            "10240",
        ),
    ];
    lives("first-volume", &facts).await;
}

#[tokio::test]
async fn two_workspaces_live_and_go() {
    let facts = [
        fact(
            "seca.storage/v1/tenants/acme/workspaces/prod/block-storages/data",
            "/status/sizeGB",
            "10",
        ),
        fact(
            "seca.storage/v1/tenants/acme/workspaces/dev/block-storages/data",
            "/status/sizeGB",
            "5",
        ),
    ];
    lives("two-workspaces", &facts).await;
}

#[tokio::test]
async fn a_private_network_with_a_server_lives_and_goes() {
    let facts = [
        fact(
            "seca.compute/v1/tenants/acme/workspaces/backend/instances/server",
            "/status/powerState",
            "on",
        ),
        fact(
            "seca.network/v1/tenants/acme/workspaces/backend/nics/server",
            "/status/addresses/0",
            "10.20.1.",
        ),
        fact(
            "seca.network/v1/tenants/acme/workspaces/backend/networks/internal/subnets/apps",
            "/status/cidr/ipv4",
            "10.20.1.0/24",
        ),
        fact(
            "seca.network/v1/tenants/acme/workspaces/backend/networks/internal/route-tables/internal",
            "/status/routes/0/state",
            "active",
        ),
        fact(
            "seca.storage/v1/tenants/acme/workspaces/backend/block-storages/server-boot",
            "/status/attachedTo/resource",
            "seca.compute/v1/tenants/acme/workspaces/backend/instances/server",
        ),
    ];
    lives("private-network", &facts).await;
}

#[tokio::test]
async fn a_public_web_server_lives_and_goes() {
    let facts = [
        fact(
            "seca.compute/v1/tenants/acme/workspaces/web/instances/web",
            "/status/powerState",
            "on",
        ),
        fact(
            "seca.network/v1/tenants/acme/workspaces/web/nics/web",
            "/status/addresses/0",
            "10.30.1.10",
        ),
        fact(
            "seca.network/v1/tenants/acme/workspaces/web/nics/web",
            "/status/publicIpRefs/0/resource",
            "",
        ),
        fact(
            "seca.network/v1/tenants/acme/workspaces/web/public-ips/www",
            "/status/ipAddress",
            "",
        ),
        fact(
            "seca.network/v1/tenants/acme/workspaces/web/public-ips/www",
            "/status/attachedTo/resource",
            "seca.network/v1/tenants/acme/workspaces/web/nics/web",
        ),
        fact(
            "seca.network/v1/tenants/acme/workspaces/web/security-groups/web",
            "/status/rules/1/state",
            "active",
        ),
        fact(
            "seca.storage/v1/tenants/acme/workspaces/web/block-storages/web-data",
            "/status/attachedTo/resource",
            "seca.compute/v1/tenants/acme/workspaces/web/instances/web",
        ),
    ];
    lives("public-web-server", &facts).await;
}

#[tokio::test]
async fn two_roles_live_and_go() {
    let facts = [
        fact(
            "seca.authorization/v1/tenants/acme/roles/operator",
            "/status/state",
            "active",
        ),
        fact(
            "seca.authorization/v1/tenants/acme/role-assignments/everybody-reads",
            "/status/conditions/0/state",
            "active",
        ),
    ];
    lives("two-roles", &facts).await;
}

#[tokio::test]
async fn users_may_do_what_the_two_roles_say() {
    let users = folder("two-roles").join("users.csv");
    let ecp = Ecp::start(&["--ephemeral", "--users", users.to_str().unwrap()]).await;
    let Some(applied) = kubectl(&ecp, &["apply"], &objects("two-roles")) else {
        return;
    };
    applied.done();
    for name in ["dev", "prod"] {
        ecp.until_active(&workspace(name)).await;
    }
    let (dana, eve) = ("token-of-dana", "token-of-eve");
    let call = async |token: &str, method: &str, workspace: &str| {
        let mut request = ecp.request(method, &volume(workspace, "disk-1"));
        if method == "PUT" {
            request = request.json(&json!({ "spec": volume_spec(10) }));
        }
        Ecp::send(request.bearer_auth(token)).await.status
    };
    // Assignments take effect when the server has heard of them.
    let started = Instant::now();
    while call(dana, "PUT", "dev").await == 403 || call(eve, "GET", "dev").await == 403 {
        assert!(started.elapsed() < DEADLINE, "no roles");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    ecp.until_active(&volume("dev", "disk-1")).await;
    assert_eq!(call(dana, "PUT", "prod").await, 403);
    assert_eq!(call(eve, "GET", "dev").await, 200);
    assert_eq!(call(eve, "DELETE", "dev").await, 403);
    assert_eq!(call(dana, "GET", "prod").await, 404, "allowed, but absent");
    assert_eq!(call(dana, "DELETE", "dev").await, 202);
    assert_eq!(call("token-of-nobody", "GET", "dev").await, 401);
}

#[tokio::test]
async fn a_slow_cloud_shows_the_states_on_the_way() {
    let ecp = Ecp::start(&["--ephemeral"]).await;
    let slow = folder("slow-cloud");
    let apply = ["apply", "--server-side", "--force-conflicts", "-f"];
    let Some(applied) = ecp.kubectl(&[&apply[..], &[slow.to_str().unwrap()]].concat()) else {
        return;
    };
    applied.done();
    let path = folder("first-volume");
    ecp.kubectl(&["apply", "-f", path.to_str().unwrap()])
        .unwrap()
        .done();
    let data = volume("prod", "data");
    let creating = |a: &Answer| a.body["status"]["state"] == "creating";
    ecp.until(&data, "creating", creating).await;
    let fast = r#"{"spec": {"createDelay": null, "updateDelay": null, "deleteDelay": null}}"#;
    ecp.kubectl(&[
        "patch",
        "clusterproviderconfigs.dummy.m.secapi.cloud",
        "default",
        "--type=merge",
        "-p",
        fast,
    ])
    .unwrap()
    .done();
    ecp.until_active(&data).await;
}
