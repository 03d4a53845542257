//! The servers that the other tests rely on do what these expect of them.

use std::time::{Duration, Instant};

use ecp_upstream::{Cluster, Registry};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::api::{Api, DeleteParams, ObjectMeta, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};

const DEADLINE: Duration = Duration::from_secs(60);

fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.into()),
        ..ObjectMeta::default()
    }
}

#[tokio::test]
async fn a_cluster_grants_nothing_to_a_new_account_and_empties_a_namespace_that_goes() {
    let Some(cluster) = Cluster::start().await.unwrap() else {
        return;
    };
    let client = cluster.client().await.unwrap();
    let params = PostParams::default();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = Namespace {
        metadata: named("here"),
        ..Namespace::default()
    };
    namespaces.create(&params, &namespace).await.unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "here");
    let account = ServiceAccount {
        metadata: named("somebody"),
        ..ServiceAccount::default()
    };
    accounts.create(&params, &account).await.unwrap();

    let file = cluster.kubeconfig_of("here", "somebody").await.unwrap();
    let config = Kubeconfig::read_from(file).unwrap();
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(config, &options).await;
    let somebody = kube::Client::try_from(config.unwrap()).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(somebody, "here");
    let Err(kube::Error::Api(refusal)) = maps.list(&Default::default()).await else {
        panic!("it may read");
    };
    assert_eq!(refusal.code, 403);
    let user = "\"system:serviceaccount:here:somebody\"";
    assert!(refusal.message.contains(user), "{refusal}");

    let params = DeleteParams::default();
    namespaces.delete("here", &params).await.unwrap();
    let started = Instant::now();
    while namespaces.get_opt("here").await.unwrap().is_some() {
        assert!(started.elapsed() < DEADLINE, "the namespace does not go");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(accounts.get_opt("somebody").await.unwrap().is_none());
}

#[tokio::test]
async fn a_registry_says_where_it_is() {
    let Some(registry) = Registry::start().await.unwrap() else {
        return;
    };
    let address: std::net::SocketAddr = registry.address.parse().unwrap();
    assert!(address.ip().is_loopback());
    let url = format!("http://{address}/v2/");
    let answer = reqwest::Client::builder().no_proxy().build().unwrap();
    let answer = answer.get(url).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 200);
}
