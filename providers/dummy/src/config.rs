//! `ProviderConfig` and `ClusterProviderConfig`: how the cloud should behave.

use ecp_provider::ExternalError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cloud::{Drift, Failure, Operation, Quota, Settings};
use crate::limits::DELAY_MS_MAX;

/// How the dummy cloud behaves towards the resources that use this configuration. Every change
/// takes effect at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ConfigSpec {
    /// How long creations take, such as "5s". None by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create_delay: Option<String>,
    /// How long updates take. None by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_delay: Option<String>,
    /// How long deletions take. None by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_delay: Option<String>,
    /// Calls that fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureSpec>,
    /// Volumes that the cloud changes by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftSpec>,
    /// Locations on offer. Every one by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locations: Option<Vec<String>>,
    /// Bounds. None by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<QuotaSpec>,
}

/// Calls that fail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureSpec {
    /// Which calls fail.
    pub operations: Vec<Operation>,
    /// The cloud's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether the cloud refuses for good, rather than being out of order for a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permanent: Option<bool>,
    /// Share of the calls that fail, from 0 to 1. All of them by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub rate: Option<f64>,
    /// Whether the calls are carried out and only their answers are lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_lost: Option<bool>,
}

/// Volumes that the cloud changes by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriftSpec {
    /// Time between changes of a volume, such as "30s".
    pub interval: String,
    /// What is added to its size. -1 by default, which the provider repairs; growth it cannot.
    #[serde(rename = "deltaGB", default, skip_serializing_if = "Option::is_none")]
    pub delta_gb: Option<i64>,
}

/// Bounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotaSpec {
    /// Number of volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub volumes: Option<i64>,
    /// Sum of the sizes of all volumes.
    #[serde(rename = "sizeGB", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub size_gb: Option<i64>,
}

impl ConfigSpec {
    /// The cloud's settings.
    ///
    /// # Errors
    /// A duration cannot be read.
    pub fn settings(&self) -> Result<Settings, ExternalError> {
        Ok(Settings {
            create_ms: delay_ms("createDelay", self.create_delay.as_deref())?,
            update_ms: delay_ms("updateDelay", self.update_delay.as_deref())?,
            delete_ms: delay_ms("deleteDelay", self.delete_delay.as_deref())?,
            failure: self.failure.as_ref().map(FailureSpec::failure),
            drift: match &self.drift {
                None => None,
                Some(drift) => Some(Drift {
                    interval_ms: delay_ms("drift.interval", Some(&drift.interval))?,
                    delta_gb: drift.delta_gb.unwrap_or(-1),
                }),
            },
            locations: self.locations.clone(),
            quota: self
                .quota
                .as_ref()
                .map_or_else(Quota::default, |quota| Quota {
                    volumes: quota.volumes,
                    size_gb: quota.size_gb,
                }),
        })
    }
}

impl FailureSpec {
    fn failure(&self) -> Failure {
        Failure {
            operations: self.operations.clone(),
            message: self
                .message
                .clone()
                .unwrap_or_else(|| "the dummy cloud was told to fail".into()),
            permanent: self.permanent.unwrap_or(false),
            rate: self.rate.unwrap_or(1.0),
            reply_lost: self.reply_lost.unwrap_or(false),
        }
    }
}

fn delay_ms(field: &str, text: Option<&str>) -> Result<i64, ExternalError> {
    let Some(text) = text else { return Ok(0) };
    let delay = ecp_provider::duration::parse(text)
        .map_err(|e| ExternalError::refused(format!("the configuration's {field}: {e}")))?;
    Ok(i64::try_from(delay.as_millis()).map_or(DELAY_MS_MAX, |ms| ms.min(DELAY_MS_MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_spec_is_a_fast_cloud_that_offers_everything() {
        let spec: ConfigSpec = serde_json::from_str("{}").expect("a spec");
        assert_eq!(spec.settings(), Ok(Settings::default()));
    }

    #[test]
    fn all_of_a_spec_is_read() {
        let spec: ConfigSpec = serde_json::from_value(serde_json::json!({
            "createDelay": "5s", "updateDelay": "1m", "deleteDelay": "250ms",
            "failure": {"operations": ["create", "observe"], "message": "no", "permanent": true,
                        "rate": 0.5, "replyLost": true},
            "drift": {"interval": "10s", "deltaGB": 2},
            "locations": ["eu-1"],
            "quota": {"volumes": 3, "sizeGB": 100},
        }))
        .expect("a spec");
        let settings = spec.settings().expect("settings");
        assert_eq!(
            (settings.create_ms, settings.update_ms, settings.delete_ms),
            (5_000, 60_000, 250)
        );
        let failure = settings.failure.expect("a failure");
        assert_eq!(failure.operations, [Operation::Create, Operation::Observe]);
        assert!(failure.permanent && failure.reply_lost);
        assert_eq!(settings.quota.size_gb, Some(100));
        assert_eq!(settings.drift.expect("drift").delta_gb, 2);
    }

    #[test]
    fn an_unreadable_duration_is_refused_by_name() {
        let spec = ConfigSpec {
            update_delay: Some("soon".into()),
            ..ConfigSpec::default()
        };
        let error = spec.settings().expect_err("an error");
        assert!(error.message.contains("updateDelay"), "{error}");
    }
}
