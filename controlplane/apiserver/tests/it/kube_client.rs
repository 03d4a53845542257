//! `kube::Client` over the service, without a socket.

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use kube::core::GroupVersionKind;
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::json;

use crate::api::{DEADLINE, foo, foo_crd, with_foos};

#[tokio::test]
async fn typed_objects_go_round() {
    let api = crate::api::Api::start().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(api.kube());
    let map: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).unwrap();
    let made = maps.create(&PostParams::default(), &map).await.unwrap();
    assert_eq!(made.data, map.data);
    let listed = maps.list(&ListParams::default()).await.unwrap();
    assert_eq!(listed.items, std::slice::from_ref(&made));
    let err = maps.create(&PostParams::default(), &map).await.unwrap_err();
    assert!(matches!(err, kube::Error::Api(s) if s.code == 409 && s.reason == "AlreadyExists"));
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(maps.get_opt("a").await.unwrap(), None);
    let spaces: Api<Namespace> = Api::all(api.kube());
    let names: Vec<_> = spaces
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .into_iter()
        .filter_map(|n| n.metadata.name)
        .collect();
    assert_eq!(names, ["default", "kube-system"]);
}

#[tokio::test]
async fn a_definition_is_applied_and_its_objects_watched() {
    let api = crate::api::Api::start().await;
    let client = api.kube();
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let patch = Patch::Apply(foo_crd(|_| {}));
    crds.patch("foos.ex.test", &PatchParams::apply("t").force(), &patch)
        .await
        .unwrap();
    let established = await_condition(crds, "foos.ex.test", conditions::is_crd_established());
    tokio::time::timeout(DEADLINE, established)
        .await
        .unwrap()
        .unwrap();
    let kind =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("ex.test", "v1", "Foo"), "foos");
    let foos: Api<DynamicObject> = Api::default_namespaced_with(client, &kind);
    for streaming in [false, true] {
        let config = if streaming {
            watcher::Config::default().streaming_lists()
        } else {
            watcher::Config::default()
        };
        let name = format!("s{streaming}").to_lowercase();
        let mut events = watcher(foos.clone(), config).applied_objects().boxed();
        foos.patch(
            &name,
            &PatchParams::apply("t"),
            &Patch::Apply(foo(&name, json!({"n": 1}))),
        )
        .await
        .unwrap();
        let wait = async {
            while let Some(object) = events.try_next().await.unwrap() {
                if object.metadata.name.as_deref() == Some(&name) {
                    return;
                }
            }
        };
        tokio::time::timeout(DEADLINE, wait).await.unwrap();
    }
}

#[tokio::test]
async fn status_and_secrets_work_as_controllers_use_them() {
    let api = with_foos().await;
    let client = api.kube();
    let kind =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("ex.test", "v1", "Foo"), "foos");
    let foos: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &kind);
    let object: DynamicObject = serde_json::from_value(foo("a", json!({"n": 1}))).unwrap();
    foos.create(&PostParams::default(), &object).await.unwrap();
    let status = json!({"apiVersion": "ex.test/v1", "kind": "Foo", "status": {"phase": "ok"}});
    let v = foos
        .patch_status("a", &PatchParams::apply("c"), &Patch::Apply(&status))
        .await
        .unwrap();
    assert_eq!(v.data["status"]["phase"], "ok");
    let v = foos
        .patch_status(
            "a",
            &PatchParams::default(),
            &Patch::Merge(json!({"status": {"phase": "two"}})),
        )
        .await
        .unwrap();
    assert_eq!(v.data["status"]["phase"], "two");
    let secrets: Api<Secret> = Api::default_namespaced(client);
    let secret: Secret =
        serde_json::from_value(json!({"metadata": {"name": "s"}, "stringData": {"k": "v"}}))
            .unwrap();
    let made = secrets
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
    assert_eq!(made.data.unwrap()["k"].0, b"v");
}
