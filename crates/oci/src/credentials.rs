//! Credentials of registries, as Docker keeps them.

use std::path::PathBuf;

use docker_credential::{CredentialRetrievalError, DockerCredential};
use oci_client::secrets::RegistryAuth;

use crate::{Error, Options};

/// Under what Docker Hub's credentials are kept.
const DOCKER_HUB: &str = "https://index.docker.io/v1/";

/// Credentials for a registry: from the pull secrets, then from Docker's file and its helpers.
pub(crate) async fn find(options: &Options, registry: &str) -> Result<RegistryAuth, Error> {
    let names = match registry {
        "docker.io" | "index.docker.io" => vec![DOCKER_HUB.to_owned(), registry.to_owned()],
        registry => vec![registry.to_owned(), format!("https://{registry}")],
    };
    let failed = |why: String| Error::Credentials {
        registry: registry.into(),
        why,
    };
    let mut configs = Vec::new();
    for secret in &options.pull_secrets {
        configs.push(without_helpers(secret).map_err(failed)?);
    }
    if options.docker_config {
        configs.extend(docker_config().map_err(failed)?);
    }
    // A helper is a program, which takes its time.
    let found = tokio::task::spawn_blocking(move || {
        for config in &configs {
            for name in &names {
                let found = docker_credential::get_credential_from_reader(config.as_slice(), name);
                if let Some(auth) = auth(found)? {
                    return Ok(auth);
                }
            }
        }
        Ok(RegistryAuth::Anonymous)
    });
    found
        .await
        .map_err(|error| failed(error.to_string()))?
        .map_err(failed)
}

/// A pull secret with its passwords alone: whoever writes one must not make us run a program.
fn without_helpers(secret: &[u8]) -> Result<Vec<u8>, String> {
    let config: serde_json::Value = serde_json::from_slice(secret)
        .map_err(|error| format!("the pull secret is no config.json of Docker: {error}"))?;
    Ok(serde_json::json!({"auths": config["auths"]})
        .to_string()
        .into_bytes())
}

/// Docker's file, if there is one.
fn docker_config() -> Result<Option<Vec<u8>>, String> {
    let folder = match std::env::var_os("DOCKER_CONFIG") {
        Some(folder) => PathBuf::from(folder),
        None => match std::env::home_dir() {
            Some(home) => home.join(".docker"),
            None => return Ok(None),
        },
    };
    let file = folder.join("config.json");
    match std::fs::read(&file) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{}: {error}", file.display())),
    }
}

fn auth(
    found: Result<DockerCredential, CredentialRetrievalError>,
) -> Result<Option<RegistryAuth>, String> {
    match found {
        Ok(DockerCredential::UsernamePassword(user, password)) if user.is_empty() => {
            // What Docker writes for a registry that was logged out from.
            drop(password);
            Ok(None)
        }
        Ok(DockerCredential::UsernamePassword(user, password)) => {
            Ok(Some(RegistryAuth::Basic(user, password)))
        }
        Ok(DockerCredential::IdentityToken(_)) => {
            Err("an identity token is kept for it: log in with a user name and a password".into())
        }
        Err(CredentialRetrievalError::NoCredentialConfigured) => Ok(None),
        Err(CredentialRetrievalError::HelperFailure { stdout, stderr, .. })
            if (stdout.clone() + &stderr).contains("credentials not found") =>
        {
            Ok(None)
        }
        Err(error) => Err(format!("{error} (config.json of Docker)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn of(secret: &str, registry: &str) -> Result<RegistryAuth, String> {
        let options = Options {
            docker_config: false,
            pull_secrets: vec![secret.as_bytes().to_vec()],
            ..Options::default()
        };
        find(&options, registry)
            .await
            .map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn pull_secrets_are_read_as_docker_writes_them() {
        // "user:pass:word" and "hub:x".
        let secret = r#"{"auths": {
            "x.io:5000": {"auth": "dXNlcjpwYXNzOndvcmQ="},
            "https://index.docker.io/v1/": {"auth": "aHViOng="},
            "token.io": {"identitytoken": "t"},
            "bad.io": {"auth": "!"}
        }}"#;
        let basic = |user: &str, password: &str| RegistryAuth::Basic(user.into(), password.into());
        assert_eq!(
            of(secret, "x.io:5000").await,
            Ok(basic("user", "pass:word"))
        );
        assert_eq!(of(secret, "docker.io").await, Ok(basic("hub", "x")));
        assert_eq!(of(secret, "other.io").await, Ok(RegistryAuth::Anonymous));
        for bad in ["token.io", "bad.io"] {
            let error = of(secret, bad).await.unwrap_err();
            assert!(
                error.starts_with(&format!("credentials for {bad}: ")),
                "{error}"
            );
        }
        let helper = r#"{"credsStore": "none", "credHelpers": {"x.io": "none"}, "auths": {}}"#;
        assert_eq!(of(helper, "x.io").await, Ok(RegistryAuth::Anonymous));
        let error = of("{", "x.io").await.unwrap_err();
        assert!(error.contains("config.json"), "{error}");
    }
}
