use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ecp_store::{
    CommitError, EmbeddedStore, EventKind, Expect, ListRequest, MemoryStore, Op, Revision, Store,
    StoreError, Watch, WatchError,
};
use futures::StreamExt;

pub(crate) fn put(key: &str, value: &str, expect: Expect) -> Op {
    Op::Put {
        key: key.into(),
        value: Bytes::copy_from_slice(value.as_bytes()),
        expect,
    }
}

pub(crate) fn delete(key: &str, expect: Expect) -> Op {
    Op::Delete {
        key: key.into(),
        expect,
    }
}

/// Runs one test on both stores.
async fn on_both<F: AsyncFn(Arc<dyn Store>)>(test: F) {
    test(Arc::new(MemoryStore::new())).await;
    let dir = tempfile::tempdir().unwrap();
    test(Arc::new(
        EmbeddedStore::open(&dir.path().join("store")).unwrap(),
    ))
    .await;
}

async fn commit(store: &Arc<dyn Store>, ops: Vec<Op>) -> Revision {
    store.commit(ops).await.unwrap().revision
}

async fn next(watch: &mut Watch) -> (EventKind, String, u64) {
    let event = tokio::time::timeout(Duration::from_secs(10), watch.next()).await;
    let event = event
        .expect("an event within the deadline")
        .unwrap()
        .unwrap();
    (event.kind, event.key.to_string(), event.revision.0)
}

fn page(prefix: &str, after: Option<&str>, limit: usize, at: Option<Revision>) -> ListRequest {
    ListRequest {
        prefix: prefix.into(),
        after: after.map(Into::into),
        limit,
        at,
    }
}

async fn keys(store: &Arc<dyn Store>, request: ListRequest) -> (Vec<String>, u64) {
    let found = store.list(request).await.unwrap();
    (
        found
            .entries
            .iter()
            .map(|e| format!("{}@{}", e.key, e.modified))
            .collect(),
        found.remaining,
    )
}

#[tokio::test]
async fn preconditions_hold_for_all_operations_or_none_happens() {
    on_both(async |store| {
        let first = commit(&store, vec![put("/a", "1", Expect::Absent)]).await;
        assert_eq!(first, Revision(1));
        let refused = store
            .commit(vec![
                put("/b", "1", Expect::Any),
                put("/a", "2", Expect::Absent),
            ])
            .await
            .unwrap_err();
        let CommitError::Precondition { key, current } = refused else {
            panic!("{refused:?}")
        };
        assert_eq!((&*key, current.unwrap().modified), ("/a", first));
        assert!(store.get("/b").await.unwrap().is_none());
        assert_eq!(store.revision(), first);

        let second = commit(&store, vec![put("/a", "2", Expect::Modified(first))]).await;
        let entry = store.get("/a").await.unwrap().unwrap();
        assert_eq!((entry.created, entry.modified), (first, second));
        assert!(
            store
                .commit(vec![delete("/a", Expect::Modified(first))])
                .await
                .is_err()
        );
        assert!(
            store
                .commit(vec![delete("/none", Expect::Modified(first))])
                .await
                .is_err()
        );
        let third = commit(&store, vec![delete("/a", Expect::Modified(second))]).await;
        let fourth = commit(&store, vec![put("/a", "3", Expect::Absent)]).await;
        assert_eq!((third, fourth), (Revision(3), Revision(4)));
        assert_eq!(store.get("/a").await.unwrap().unwrap().created, fourth);
    })
    .await;
}

#[tokio::test]
async fn a_commit_that_changes_nothing_takes_no_revision() {
    on_both(async |store| {
        assert_eq!(
            commit(&store, vec![delete("/a", Expect::Any)]).await,
            Revision(0)
        );
        assert_eq!(store.revision(), Revision(0));
        let twice = vec![put("/a", "1", Expect::Any), delete("/a", Expect::Any)];
        assert!(matches!(
            store.commit(twice).await,
            Err(CommitError::DuplicateKey(_))
        ));
    })
    .await;
}

#[tokio::test]
async fn pages_show_one_revision() {
    on_both(async |store| {
        for key in ["/x/a", "/x/b", "/x/c", "/y/a"] {
            commit(&store, vec![put(key, "1", Expect::Any)]).await;
        }
        let at = Some(store.revision());
        assert_eq!(
            keys(&store, page("/x/", None, 2, None)).await,
            (vec!["/x/a@1".into(), "/x/b@2".into()], 1)
        );
        commit(&store, vec![delete("/x/b", Expect::Any)]).await;
        commit(&store, vec![put("/x/bb", "1", Expect::Any)]).await;
        commit(&store, vec![put("/x/c", "2", Expect::Any)]).await;
        assert_eq!(
            keys(&store, page("/x/", Some("/x/a"), 0, at)).await.0,
            ["/x/b@2", "/x/c@3"]
        );
        assert_eq!(
            keys(&store, page("/x/", None, 0, None)).await.0,
            ["/x/a@1", "/x/bb@6", "/x/c@7"]
        );
        assert_eq!(
            keys(&store, page("/x/", Some("/x/b"), 1, None)).await,
            (vec!["/x/bb@6".into()], 1)
        );
    })
    .await;
}

#[tokio::test]
async fn compacted_and_future_revisions_are_refused() {
    on_both(async |store| {
        for i in 0..5 {
            commit(&store, vec![put("/a", &i.to_string(), Expect::Any)]).await;
        }
        store.compact(Revision(3)).await.unwrap();
        let at = |r| page("/", None, 0, Some(Revision(r)));
        assert!(matches!(
            store.list(at(2)).await,
            Err(StoreError::Compacted { .. })
        ));
        assert_eq!(keys(&store, at(3)).await.0, ["/a@3"]);
        assert!(matches!(
            store.list(at(6)).await,
            Err(StoreError::Future { .. })
        ));
        assert!(matches!(
            store.watch("/", Revision(2)).await,
            Err(StoreError::Compacted { .. })
        ));
        assert!(matches!(
            store.compact(Revision(9)).await,
            Err(StoreError::Future { .. })
        ));
        let mut watch = store.watch("/", Revision(3)).await.unwrap();
        assert_eq!(next(&mut watch).await.2, 4);
    })
    .await;
}

#[tokio::test]
async fn watches_replay_then_follow_in_order() {
    on_both(async |store| {
        commit(&store, vec![put("/x/a", "1", Expect::Any)]).await;
        commit(
            &store,
            vec![put("/y/a", "1", Expect::Any), put("/x/b", "1", Expect::Any)],
        )
        .await;
        let mut all = store.watch("/", Revision(0)).await.unwrap();
        let mut some = store.watch("/x/", Revision(1)).await.unwrap();
        let mut odd = store.watch("/x/a", Revision(2)).await.unwrap();
        commit(&store, vec![delete("/x/a", Expect::Any)]).await;
        let (put, del) = (EventKind::Put, EventKind::Delete);
        for want in [
            (put, "/x/a", 1),
            (put, "/y/a", 2),
            (put, "/x/b", 2),
            (del, "/x/a", 3),
        ] {
            assert_eq!(next(&mut all).await, (want.0, want.1.into(), want.2));
        }
        for want in [(put, "/x/b", 2), (del, "/x/a", 3)] {
            assert_eq!(next(&mut some).await, (want.0, want.1.into(), want.2));
        }
        assert_eq!(next(&mut odd).await, (del, "/x/a".into(), 3));
    })
    .await;
}

#[tokio::test]
async fn a_slow_watch_ends_with_an_error_after_the_events_it_has() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut watch = store.watch("/", Revision(0)).await.unwrap();
    for i in 0..20_000 {
        commit(&store, vec![put("/a", &i.to_string(), Expect::Any)]).await;
    }
    let mut seen = 0;
    let end = loop {
        match watch.next().await.unwrap() {
            Ok(event) => {
                seen += 1;
                assert_eq!(event.revision.0, seen);
            }
            Err(end) => break end,
        }
    };
    assert_eq!(end, WatchError::Lagged);
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn a_slow_watch_does_not_keep_large_values_without_bound() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut watch = store.watch("/", Revision(0)).await.unwrap();
    let big = "x".repeat(1 << 20);
    for _ in 0..100 {
        commit(&store, vec![put("/a", &big, Expect::Any)]).await;
    }
    let mut seen = 0;
    let end = loop {
        match watch.next().await.unwrap() {
            Ok(_) => seen += 1,
            Err(end) => break end,
        }
    };
    assert_eq!(end, WatchError::Lagged);
    assert!((20..60).contains(&seen), "{seen}");
    // One that keeps up sees all of them.
    let mut watch = store.watch("/", store.revision()).await.unwrap();
    for _ in 0..100 {
        let at = commit(&store, vec![put("/a", &big, Expect::Any)]).await;
        assert_eq!(next(&mut watch).await.2, at.0);
    }
}

#[tokio::test]
async fn history_is_bounded() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let big = "x".repeat(1 << 20);
    for _ in 0..40 {
        commit(&store, vec![put("/a", &big, Expect::Any)]).await;
    }
    assert!(matches!(
        store.watch("/", Revision(1)).await,
        Err(StoreError::Compacted { .. })
    ));
    assert!(store.watch("/", store.revision()).await.is_ok());
}

#[tokio::test]
async fn closing_ends_watches_and_refuses_commits() {
    on_both(async |store| {
        let mut watch = store.watch("/", Revision(0)).await.unwrap();
        commit(&store, vec![put("/a", "1", Expect::Any)]).await;
        store.close().await;
        assert_eq!(next(&mut watch).await.2, 1);
        assert_eq!(watch.next().await.unwrap().unwrap_err(), WatchError::Closed);
        let refused = store.commit(vec![put("/b", "1", Expect::Any)]).await;
        assert!(matches!(
            refused,
            Err(CommitError::Store(StoreError::Closed(_)))
        ));
    })
    .await;
}
