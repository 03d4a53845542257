//! Many resources at once.

use std::time::Duration;

use ecp_harness::Ecp;
use ecp_harness::scale::{Size, fill};

/// Writes for each resource, Events among them: more means that something is written again and
/// again.
const WRITES_MAX: f64 = 17.0;

#[tokio::test]
async fn many_resources_of_many_clients_become_active_and_then_it_is_idle() {
    let ecp = Ecp::start_embedded(&["--ephemeral"]).await;
    let size = Size {
        volumes: 100,
        instances: 20,
        clients: 20,
        idle: Duration::from_secs(5),
    };
    let cost = fill(&ecp.plane(), size).await.unwrap();
    let writes = cost.writes as f64 / (size.volumes + size.instances) as f64;
    assert!(writes < WRITES_MAX, "{writes} writes each: {cost:?}");
}
