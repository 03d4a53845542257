//! Leader election over a Lease, for a controller that runs in more than one pod.
//!
//! Only the holder reconciles; it ends its process when it cannot renew in time, so that two never
//! reconcile at the same time. Replicas judge age by their own clocks and by when they saw the
//! Lease change, never by the times written in it (as client-go's `leaderelection`).

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::limits::{LEASE_DURATION, LEASE_RENEW_DEADLINE, LEASE_RETRY};

/// Who stands for election, and where.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub lease: String,
    /// Name of this replica; unique.
    pub identity: String,
}

/// What a look at the Lease says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It is ours, or free: write it.
    Take,
    /// Another replica holds it.
    Wait,
}

fn judge(spec: Option<&LeaseSpec>, identity: &str, unchanged_for: Duration) -> Verdict {
    let holder = spec
        .and_then(|s| s.holder_identity.as_deref())
        .unwrap_or_default();
    let duration = spec
        .and_then(|s| s.lease_duration_seconds)
        .and_then(|s| u64::try_from(s).ok())
        .map_or(LEASE_DURATION, Duration::from_secs);
    if holder.is_empty() || holder == identity || unchanged_for >= duration {
        Verdict::Take
    } else {
        Verdict::Wait
    }
}

impl Candidate {
    /// This process, under a name that no other one has.
    pub fn new(namespace: &str, lease: &str) -> Self {
        // The pod's name, where there is one; the rest makes it unique in any case.
        let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "local".into());
        Self {
            namespace: namespace.to_owned(),
            lease: lease.to_owned(),
            identity: format!(
                "{host}_{}_{:08x}",
                std::process::id(),
                rand::random::<u32>()
            ),
        }
    }

    /// Does `work` once this replica leads, and no longer than it leads. The work must end by
    /// itself after `shutdown`; the Lease is given up then.
    ///
    /// # Errors
    /// The work fails, or the Lease is lost: then the process must end at once.
    pub async fn lead<F>(
        &self,
        client: &Client,
        shutdown: CancellationToken,
        work: impl FnOnce() -> F,
    ) -> anyhow::Result<()>
    where
        F: Future<Output = anyhow::Result<()>>,
    {
        tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            () = self.win(client) => {}
        }
        // The lease is given up only when nothing is reconciled any more.
        let released = CancellationToken::new();
        let holding = self.hold(client, released.clone());
        let working = async {
            let result = work().await;
            released.cancel();
            result
        };
        tokio::pin!(holding, working);
        tokio::select! {
            result = &mut working => {
                holding.await;
                result
            }
            () = &mut holding => {
                // Not a graceful end: another replica may be at work already.
                anyhow::bail!("lost the leadership");
            }
        }
    }

    fn api(&self, client: &Client) -> Api<Lease> {
        Api::namespaced(client.clone(), &self.namespace)
    }

    /// Waits until this replica leads.
    pub async fn win(&self, client: &Client) {
        let api = self.api(client);
        let mut seen: Option<(String, Instant)> = None;
        info!(
            lease = self.lease,
            identity = self.identity,
            "stands for election"
        );
        loop {
            match self.attempt(&api, &mut seen).await {
                Ok(true) => {
                    info!(lease = self.lease, identity = self.identity, "leads");
                    return;
                }
                Ok(false) => {}
                Err(error) => debug!(%error, "the lease cannot be had"),
            }
            sleep(LEASE_RETRY).await;
        }
    }

    /// Renews until `shutdown`, then gives the Lease up. Ends early when it is lost: then the
    /// caller must stop reconciling at once.
    pub async fn hold(&self, client: &Client, shutdown: CancellationToken) {
        let api = self.api(client);
        let mut renewed = Instant::now();
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = sleep(LEASE_RETRY) => {}
            }
            let left = LEASE_RENEW_DEADLINE.saturating_sub(renewed.elapsed());
            match timeout(left, self.attempt(&api, &mut None)).await {
                Ok(Ok(true)) => renewed = Instant::now(),
                Ok(Ok(false)) => {
                    warn!(lease = self.lease, "another replica leads");
                    return;
                }
                Ok(Err(error)) => debug!(%error, "the lease is not renewed"),
                Err(_) => {}
            }
            if renewed.elapsed() >= LEASE_RENEW_DEADLINE {
                warn!(lease = self.lease, "the lease could not be renewed in time");
                return;
            }
        }
        if let Err(error) = self.release(&api).await {
            debug!(%error, "the lease is not given up");
        }
    }

    /// Tries once to write the Lease; says whether it is ours.
    async fn attempt(
        &self,
        api: &Api<Lease>,
        seen: &mut Option<(String, Instant)>,
    ) -> kube::Result<bool> {
        let now = MicroTime(Timestamp::now());
        let Some(mut lease) = api.get_opt(&self.lease).await? else {
            let lease = Lease {
                metadata: ObjectMeta {
                    name: Some(self.lease.clone()),
                    ..ObjectMeta::default()
                },
                spec: Some(self.spec(&now, None)),
            };
            return written(api.create(&PostParams::default(), &lease).await);
        };
        let version = lease.metadata.resource_version.clone().unwrap_or_default();
        let since = match seen {
            Some((known, since)) if *known == version => *since,
            _ => {
                let since = Instant::now();
                *seen = Some((version, since));
                since
            }
        };
        match judge(lease.spec.as_ref(), &self.identity, since.elapsed()) {
            Verdict::Wait => Ok(false),
            Verdict::Take => {
                lease.spec = Some(self.spec(&now, lease.spec.as_ref()));
                // The resource version makes sure that only one replica takes it.
                written(
                    api.replace(&self.lease, &PostParams::default(), &lease)
                        .await,
                )
            }
        }
    }

    fn spec(&self, now: &MicroTime, old: Option<&LeaseSpec>) -> LeaseSpec {
        let mine = old.is_some_and(|s| s.holder_identity.as_ref() == Some(&self.identity));
        let transitions = old.and_then(|s| s.lease_transitions).unwrap_or(0);
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(LEASE_DURATION.as_secs()).ok(),
            acquire_time: old
                .filter(|_| mine)
                .and_then(|s| s.acquire_time.clone())
                .or_else(|| Some(now.clone())),
            renew_time: Some(now.clone()),
            lease_transitions: Some(transitions.saturating_add(i32::from(!mine && old.is_some()))),
            ..LeaseSpec::default()
        }
    }

    async fn release(&self, api: &Api<Lease>) -> kube::Result<()> {
        let Some(mut lease) = api.get_opt(&self.lease).await? else {
            return Ok(());
        };
        let Some(spec) = &mut lease.spec else {
            return Ok(());
        };
        if spec.holder_identity.as_ref() != Some(&self.identity) {
            return Ok(());
        }
        spec.holder_identity = None;
        spec.renew_time = Some(MicroTime(Timestamp::now()));
        api.replace(&self.lease, &PostParams::default(), &lease)
            .await
            .map(|_| ())
    }
}

/// A conflict means that another replica was faster.
fn written(result: kube::Result<Lease>) -> kube::Result<bool> {
    match result {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held_by(holder: &str) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(holder.into()),
            lease_duration_seconds: Some(10),
            ..LeaseSpec::default()
        }
    }

    #[test]
    fn a_lease_is_taken_when_it_is_free_ours_or_stale() {
        let fresh = Duration::from_secs(9);
        let stale = Duration::from_secs(10);
        assert_eq!(judge(None, "me", fresh), Verdict::Take);
        assert_eq!(
            judge(Some(&LeaseSpec::default()), "me", fresh),
            Verdict::Take
        );
        assert_eq!(judge(Some(&held_by("")), "me", fresh), Verdict::Take);
        assert_eq!(judge(Some(&held_by("me")), "me", fresh), Verdict::Take);
        assert_eq!(judge(Some(&held_by("you")), "me", fresh), Verdict::Wait);
        assert_eq!(judge(Some(&held_by("you")), "me", stale), Verdict::Take);
    }

    #[test]
    fn taking_over_counts_and_renewing_does_not() {
        let me = Candidate {
            namespace: "ns".into(),
            lease: "l".into(),
            identity: "me".into(),
        };
        let now = MicroTime(Timestamp::UNIX_EPOCH);
        let taken = me.spec(&now, Some(&held_by("you")));
        assert_eq!(taken.lease_transitions, Some(1));
        assert_eq!(me.spec(&now, Some(&taken)).lease_transitions, Some(1));
    }
}
