//! What happens between a check and its commit.

use std::sync::Arc;

use async_trait::async_trait;
use ecp_apiserver::Config;
use ecp_store::{
    CommitError, Committed, Entry, Expect, ListRequest, ListResponse, MemoryStore, Op, Revision,
    Store, StoreError, Watch,
};
use parking_lot::Mutex;
use serde_json::json;

use crate::api::{Api, config_map};

/// A store in which something else is committed just before the first commit of a key.
#[derive(Debug, Default)]
struct Interleaved {
    inner: MemoryStore,
    before: Mutex<Option<(String, Vec<Op>)>>,
}

#[async_trait]
impl Store for Interleaved {
    fn revision(&self) -> Revision {
        self.inner.revision()
    }

    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.inner.get(key).await
    }

    async fn list(&self, request: ListRequest) -> Result<ListResponse, StoreError> {
        self.inner.list(request).await
    }

    async fn commit(&self, ops: Vec<Op>) -> Result<Committed, CommitError> {
        let concerns = |key: &str| {
            ops.iter().any(|op| match op {
                Op::Put { key: k, .. } | Op::Delete { key: k, .. } => &**k == key,
            })
        };
        let first = self.before.lock().take_if(|(key, _)| concerns(key));
        if let Some((_, first)) = first {
            self.inner.commit(first).await?;
        }
        self.inner.commit(ops).await
    }

    async fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        self.inner.watch(prefix, after).await
    }

    async fn compact(&self, before: Revision) -> Result<(), StoreError> {
        self.inner.compact(before).await
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

const KEY: &str = "/core/configmaps/root/t/a";
const NAMESPACE: &str = "/core/namespaces/root/-/t";

async fn with_namespace() -> (Arc<Interleaved>, Api) {
    let store = Arc::new(Interleaved::default());
    let api = Api::of(store.clone(), Config::default()).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "t"}});
    api.post("/api/v1/namespaces", namespace).await.expect(201);
    (store, api)
}

#[tokio::test]
async fn an_object_is_not_left_in_a_namespace_that_went_meanwhile() {
    let (store, api) = with_namespace().await;
    let gone = Op::Delete {
        key: NAMESPACE.into(),
        expect: Expect::Any,
    };
    *store.before.lock() = Some((KEY.into(), vec![gone]));
    let answer = api
        .post("/api/v1/namespaces/t/configmaps", config_map("a"))
        .await;
    assert_eq!((answer.code, answer.reason()), (404, "NotFound"));
    assert_eq!(store.get(KEY).await.unwrap(), None);
}

#[tokio::test]
async fn an_object_is_not_left_in_a_namespace_that_began_to_go() {
    let (store, api) = with_namespace().await;
    let live = store.get(NAMESPACE).await.unwrap().unwrap();
    api.delete("/api/v1/namespaces/t").await.expect(200);
    let going = store.get(NAMESPACE).await.unwrap().unwrap();
    let put = |value| {
        vec![Op::Put {
            key: NAMESPACE.into(),
            value,
            expect: Expect::Any,
        }]
    };
    store.commit(put(live.value)).await.unwrap();
    *store.before.lock() = Some((KEY.into(), put(going.value)));
    let answer = api
        .post("/api/v1/namespaces/t/configmaps", config_map("a"))
        .await;
    assert_eq!((answer.code, answer.reason()), (403, "Forbidden"));
    assert_eq!(store.get(KEY).await.unwrap(), None);
}

#[tokio::test]
async fn a_write_that_loses_a_race_is_made_again_on_what_won() {
    let (store, api) = with_namespace().await;
    let path = "/api/v1/namespaces/t/configmaps";
    api.post(path, config_map("a")).await.expect(201);
    let before = store.get(KEY).await.unwrap().unwrap();
    let patch = json!({"data": {"theirs": "1"}});
    api.merge(&format!("{path}/a"), patch).await.expect(200);
    let theirs = store.get(KEY).await.unwrap().unwrap();
    let put = |value| Op::Put {
        key: KEY.into(),
        value,
        expect: Expect::Any,
    };
    store.commit(vec![put(before.value)]).await.unwrap();
    *store.before.lock() = Some((KEY.into(), vec![put(theirs.value)]));
    let patch = json!({"data": {"ours": "2"}});
    let merged = api.merge(&format!("{path}/a"), patch).await.expect(200);
    assert_eq!(merged["data"], json!({"theirs": "1", "ours": "2"}));
}
