//! What happens between a check and its commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use ecp_apiserver::Config;
use ecp_store::{
    CommitError, Committed, Entry, Expect, ListRequest, ListResponse, MemoryStore, Op, Revision,
    Store, StoreError, Watch,
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;

use crate::api::{Api, DEADLINE, config_map};

/// A store in which something else is committed just before the first commit of a key, or just
/// after it, before its caller knows.
#[derive(Debug, Default)]
struct Interleaved {
    inner: MemoryStore,
    before: Mutex<Option<(String, Vec<Op>)>>,
    after: Mutex<Option<(String, Arc<Pause>)>>,
    lists: AtomicUsize,
    /// How often the revision that controllers start from is compacted before they watch from it.
    compactions: AtomicUsize,
}

/// Where a commit has happened and its caller does not know it.
#[derive(Debug, Default)]
struct Pause {
    reached: Notify,
    resume: Notify,
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
        self.lists.fetch_add(1, Ordering::Relaxed);
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
        let pause = self.after.lock().take_if(|(key, _)| concerns(key));
        let committed = self.inner.commit(ops).await;
        if let Some((_, pause)) = pause {
            pause.reached.notify_one();
            pause.resume.notified().await;
        }
        committed
    }

    async fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        let left = |n: usize| n.checked_sub(1);
        if prefix == "/"
            && (self.compactions)
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left)
                .is_ok()
        {
            return Err(StoreError::Compacted {
                requested: after,
                oldest: self.inner.revision(),
            });
        }
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
    // Keeps the namespace from going at once.
    let mut held = config_map("held");
    held["metadata"]["finalizers"] = json!(["ex.test/hold"]);
    api.post("/api/v1/namespaces/t/configmaps", held)
        .await
        .expect(201);
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

/// The namespace goes while a create of the paused store has happened; the object must go too.
async fn namespace_goes(store: &Interleaved, pause: &Pause) {
    let gone = Op::Delete {
        key: NAMESPACE.into(),
        expect: Expect::Any,
    };
    assert!(store.get(KEY).await.unwrap().is_some());
    store.commit(vec![gone]).await.unwrap();
    pause.resume.notify_one();
    let left = async {
        while store.get(KEY).await.unwrap().is_some() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, left).await.unwrap();
}

#[tokio::test]
async fn a_create_is_confirmed_though_its_client_has_gone() {
    let (store, api) = with_namespace().await;
    let pause = Arc::new(Pause::default());
    *store.after.lock() = Some((KEY.into(), Arc::clone(&pause)));
    {
        let create = api.post("/api/v1/namespaces/t/configmaps", config_map("a"));
        tokio::select! {
            _ = create => panic!("its commit has not ended"),
            () = pause.reached.notified() => {}
        }
    }
    namespace_goes(&store, &pause).await;
}

#[tokio::test]
async fn a_create_is_confirmed_though_its_client_has_lost_patience() {
    let (store, api) = with_namespace().await;
    let pause = Arc::new(Pause::default());
    *store.after.lock() = Some((KEY.into(), Arc::clone(&pause)));
    let path = "/api/v1/namespaces/t/configmaps?timeout=10ms";
    let answer = api.post(path, config_map("a")).await;
    assert_eq!((answer.code, answer.reason()), (504, "Timeout"));
    namespace_goes(&store, &pause).await;
}

#[tokio::test]
async fn what_a_selector_leaves_out_costs_no_reads_of_its_own() {
    let (store, api) = with_namespace().await;
    let path = "/api/v1/namespaces/t/configmaps";
    for n in 0..20 {
        let mut map = config_map(&format!("m{n:02}"));
        map["metadata"]["labels"] = json!({"odd": (n % 2).to_string()});
        api.post(path, map).await.expect(201);
    }
    let before = store.lists.load(Ordering::Relaxed);
    let query = "limit=3&labelSelector=odd%3D1";
    let page = api.get(&format!("{path}?{query}")).await.expect(200);
    assert_eq!(page["items"].as_array().unwrap().len(), 3);
    assert_eq!(page["items"][2]["metadata"]["name"], "m05");
    assert_eq!(store.lists.load(Ordering::Relaxed) - before, 1);
    let token = page["metadata"]["continue"].as_str().unwrap();
    let rest = format!("{path}?labelSelector=odd%3D1&limit=7&continue={token}");
    let rest = api.get(&rest).await.expect(200);
    assert_eq!(rest["items"].as_array().unwrap().len(), 7);
    assert_eq!(rest["items"][0]["metadata"]["name"], "m07");
    assert_eq!(rest["metadata"].get("continue"), None);
}

#[tokio::test]
async fn controllers_start_again_soon_when_what_they_read_is_compacted() {
    let store = Arc::new(Interleaved::default());
    store.compactions.store(2, Ordering::Relaxed);
    let api = Api::of(store.clone(), Config::default()).await;
    let started = async {
        while store.compactions.load(Ordering::Relaxed) > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, started).await.unwrap();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "t"}});
    api.post("/api/v1/namespaces", namespace).await.expect(201);
    api.delete("/api/v1/namespaces/t").await.expect(200);
    api.until("/api/v1/namespaces/t", 404).await;
}
