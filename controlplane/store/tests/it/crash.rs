//! What the durable store keeps when its process dies.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use ecp_store::{EmbeddedStore, Expect, ListRequest, Revision, Store, StoreError};

use crate::behaviour::{delete, put};

const CHILD: &str = "ECP_STORE_CRASH_CHILD";

#[tokio::test]
async fn a_reopened_store_has_everything_and_goes_on_from_its_revision() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = EmbeddedStore::open(&path).unwrap();
    store
        .commit(vec![
            put("/a", "1", Expect::Any),
            put("/b", "1", Expect::Any),
        ])
        .await
        .unwrap();
    store
        .commit(vec![put("/a", "2", Expect::Any)])
        .await
        .unwrap();
    store.commit(vec![delete("/b", Expect::Any)]).await.unwrap();
    assert!(matches!(EmbeddedStore::open(&path), Err(StoreError::Io(m)) if m.contains("in use")));
    store.close().await;
    drop(store);

    let store = EmbeddedStore::open(&path).unwrap();
    assert_eq!(store.revision(), Revision(3));
    let a = store.get("/a").await.unwrap().unwrap();
    assert_eq!(
        (&a.value[..], a.created, a.modified),
        (&b"2"[..], Revision(1), Revision(2))
    );
    assert!(store.get("/b").await.unwrap().is_none());
    assert!(matches!(
        store.watch("/", Revision(2)).await,
        Err(StoreError::Compacted { .. })
    ));
    let next = store
        .commit(vec![put("/c", "1", Expect::Absent)])
        .await
        .unwrap();
    assert_eq!(next.revision, Revision(4));
}

#[test]
fn a_file_that_is_no_store_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    std::fs::write(&path, vec![7u8; 8192]).unwrap();
    assert!(matches!(EmbeddedStore::open(&path), Err(StoreError::Io(_))));
}

/// Runs only as the child of the next test: commits pairs until it is killed.
#[tokio::test(flavor = "multi_thread")]
async fn child_that_writes_until_killed() {
    let Ok(path) = std::env::var(CHILD) else {
        return;
    };
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::open(Path::new(&path)).unwrap());
    let writers = (0..4).map(|w| {
        let store = store.clone();
        tokio::spawn(async move {
            for i in 0..u64::MAX {
                let (a, b) = (format!("/a/{w}/{i}"), format!("/b/{w}/{i}"));
                let ops = vec![put(&a, "x", Expect::Absent), put(&b, "x", Expect::Absent)];
                let revision = store.commit(ops).await.unwrap().revision;
                println!("acknowledged {w} {i} {revision}");
            }
        })
    });
    futures::future::join_all(writers).await;
}

#[tokio::test]
async fn a_killed_process_loses_nothing_acknowledged_and_tears_no_commit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    for round in 1..=3u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "child_that_writes_until_killed",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(CHILD, &path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut acknowledged = Vec::new();
        for line in lines.map_while(Result::ok) {
            // The first line follows what the test harness prints without a line break.
            if let Some(at) = line.find("acknowledged ") {
                acknowledged.push(line[at + 13..].to_owned());
            }
            if acknowledged.len() as u64 == 100 * round {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(acknowledged.len() >= 100, "the child wrote");

        let store = EmbeddedStore::open(&path).unwrap();
        for line in &acknowledged {
            let [w, i, revision] = line.split(' ').collect::<Vec<_>>()[..] else {
                continue; // The last line may be cut off.
            };
            for half in ["a", "b"] {
                let entry = store
                    .get(&format!("/{half}/{w}/{i}"))
                    .await
                    .unwrap()
                    .unwrap();
                assert_eq!(entry.modified.to_string(), revision);
            }
        }
        let all = store.list(ListRequest::default()).await.unwrap().entries;
        let halves = |h: &str| all.iter().filter(|e| e.key.starts_with(h)).count();
        assert_eq!(halves("/a/"), halves("/b/"));
        // Each round starts afresh, with the file as the crash left it.
        for entry in all {
            store
                .commit(vec![delete(&entry.key, Expect::Any)])
                .await
                .unwrap();
        }
        store.close().await;
    }
}
