//! Leader election between two replicas.

use ecp_provider::Options;
use ecp_provider::leader::Candidate;
use tokio_util::sync::CancellationToken;

use crate::fake::{Cluster, until};

#[tokio::test(flavor = "multi_thread")]
async fn one_leads_and_the_other_takes_over_when_it_leaves() {
    let cluster = Cluster::new(Options::default()).await;
    let candidate = |identity: &str| Candidate {
        namespace: "ns".into(),
        lease: "election".into(),
        identity: identity.into(),
    };
    let leases = cluster.api("coordination.k8s.io/v1", "leases", "ns");
    let holder = async || {
        let lease = leases.get("election").await.ok()?;
        lease.data["spec"]["holderIdentity"]
            .as_str()
            .map(str::to_owned)
    };
    candidate("first").win(&cluster.client()).await;
    assert_eq!(holder().await.as_deref(), Some("first"));
    let leave = CancellationToken::new();
    let holding = tokio::spawn({
        let (client, leave) = (cluster.client(), leave.clone());
        async move { candidate("first").hold(&client, leave).await }
    });
    let second = tokio::spawn({
        let client = cluster.client();
        async move { candidate("second").win(&client).await }
    });
    assert!(!second.is_finished());
    leave.cancel();
    holding.await.expect("gave it up");
    second.await.expect("took over");
    until("the second holds it", async || {
        (holder().await.as_deref() == Some("second")).then_some(())
    })
    .await;
}
