//! Connections to the services, with credentials from the environment.

use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{BackoffConfig, ClientConfigKey, ObjectStore, RetryConfig};
use url::Url;

use super::options::StoreOptions;
use super::traffic::{Traffic, WatchedConnector};
use crate::error::{Result, StorageError};
use crate::explain::explain;

/// Timeout for opening a connection to a service.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout for opening a connection to the machine's metadata service, which is nearby.
const METADATA_TIMEOUT: Duration = Duration::from_secs(1);

/// Builds the client for the store of `url`. Sends no request to the store.
pub(super) fn connect(
    url: &Url,
    options: &StoreOptions,
    traffic: &Arc<Traffic>,
) -> Result<Arc<dyn ObjectStore>> {
    let connection = Connection {
        url,
        options,
        traffic,
    };
    match url.scheme() {
        "s3" | "s3a" => connection.s3(),
        "az" | "azure" | "abfs" | "abfss" => connection.azure(),
        "gs" => connection.google(),
        scheme => {
            let reason = format!("{scheme}:// is none of file://, s3://, az:// and gs://");
            Err(StorageError::bad_path(url, reason))
        }
    }
}

/// Whether the value of a setting means yes.
fn is_on(value: Option<&str>) -> bool {
    value.is_some_and(|value| {
        ["1", "true", "yes", "on", "y"].contains(&value.to_ascii_lowercase().as_str())
    })
}

/// Gives a builder the variables that begin with `$prefix` without the line ends that some files of secrets have. A macro because the
/// builders share no trait.
macro_rules! without_line_ends {
    ($connection:ident, $builder:ident, $prefix:literal) => {
        for (name, value) in $connection.trimmed_variables($prefix)? {
            if let Ok(key) = name.to_ascii_lowercase().parse() {
                $builder = $builder.with_config(key, value);
            }
        }
    };
}

/// Adds the client's settings to a builder, and builds its store. A macro because the builders share no trait.
macro_rules! build {
    ($connection:ident, $builder:ident, $key:ident, $http:expr) => {{
        for (key, value) in $connection.client_settings($http) {
            $builder = $builder.with_config($key::Client(key), value);
        }
        let store = $builder
            .with_retry($connection.retry())
            .with_http_connector(WatchedConnector(Arc::clone($connection.traffic)))
            .build();
        Ok(Arc::new(
            store.map_err(|error| $connection.unusable(&error))?,
        ))
    }};
}

struct Connection<'a> {
    url: &'a Url,
    options: &'a StoreOptions,
    traffic: &'a Arc<Traffic>,
}

impl Connection<'_> {
    /// The variables that begin with `prefix` and whose values have white space around them, without it. A header of HTTP can have no
    /// control character.
    fn trimmed_variables(&self, prefix: &str) -> Result<Vec<(String, String)>> {
        let all = std::env::vars_os();
        let text = all.filter_map(|(name, value)| {
            Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()))
        });
        let mut trimmed = Vec::new();
        for (name, value) in text.filter(|(name, _)| name.starts_with(prefix)) {
            let content = value.trim();
            if content.contains(char::is_control) {
                let reason = format!("{name} has a line break or another control character");
                return Err(self.no_credentials(&reason));
            }
            if content.len() < value.len() {
                trimmed.push((name, content.to_owned()));
            }
        }
        Ok(trimmed)
    }

    fn s3(&self) -> Result<Arc<dyn ObjectStore>> {
        use AmazonS3ConfigKey as Key;
        let mut builder = AmazonS3Builder::from_env().with_url(self.url.as_str());
        without_line_ends!(self, builder, "AWS_");
        if let Some(endpoint) = &self.options.endpoint {
            // `S3Endpoint` wins over `Endpoint`, and either may be set in the environment.
            builder = builder
                .with_config(Key::Endpoint, endpoint)
                .with_config(Key::S3Endpoint, endpoint);
        }
        let is_set = |value: &String| !value.is_empty();
        let get = |key: &Key| builder.get_config_value(key).filter(is_set);
        let http = self.allows_http(
            get(&Key::S3Endpoint).or(get(&Key::Endpoint)).as_deref(),
            "AWS_ALLOW_HTTP",
            "AWS_ENDPOINT_URL",
        )?;
        match (get(&Key::AccessKeyId), get(&Key::SecretAccessKey)) {
            (Some(_), None) => return Err(self.no_credentials("AWS_SECRET_ACCESS_KEY is not set")),
            (None, Some(_)) => return Err(self.no_credentials("AWS_ACCESS_KEY_ID is not set")),
            _ => {}
        }
        let credential_keys = [
            Key::AccessKeyId,
            Key::WebIdentityTokenFile,
            Key::ContainerCredentialsRelativeUri,
            Key::ContainerCredentialsFullUri,
        ];
        let signed = !is_on(get(&Key::SkipSignature).as_deref());
        if signed && credential_keys.iter().all(|key| get(key).is_none()) {
            let metadata = get(&Key::MetadataEndpoint);
            self.require_metadata_service(
                metadata.as_deref().unwrap_or("http://169.254.169.254"),
                "neither AWS_ACCESS_KEY_ID (with AWS_SECRET_ACCESS_KEY) nor AWS_WEB_IDENTITY_TOKEN_FILE is set, and this machine offers no role",
            )?;
        }
        build!(self, builder, Key, http)
    }

    fn azure(&self) -> Result<Arc<dyn ObjectStore>> {
        use AzureConfigKey as Key;
        let mut builder = MicrosoftAzureBuilder::from_env().with_url(self.url.as_str());
        without_line_ends!(self, builder, "AZURE_");
        if let Some(endpoint) = &self.options.endpoint {
            builder = builder.with_endpoint(endpoint.clone());
        }
        let is_set = |value: &String| !value.is_empty();
        let get = |key: &Key| builder.get_config_value(key).filter(is_set);
        let emulator = is_on(get(&Key::UseEmulator).as_deref());
        let http = self.allows_http(
            get(&Key::Endpoint).as_deref(),
            "AZURE_ALLOW_HTTP",
            "AZURE_ENDPOINT",
        )?;
        if !emulator && get(&Key::AccountName).is_none() && get(&Key::Endpoint).is_none() {
            return Err(self.no_credentials("AZURE_STORAGE_ACCOUNT_NAME is not set"));
        }
        let credential_keys = [
            Key::AccessKey,
            Key::SasKey,
            Key::Token,
            Key::ClientSecret,
            Key::FederatedTokenFile,
            Key::MsiEndpoint,
        ];
        let anonymous =
            is_on(get(&Key::SkipSignature).as_deref()) || is_on(get(&Key::UseAzureCli).as_deref());
        if !emulator && !anonymous && credential_keys.iter().all(|key| get(key).is_none()) {
            self.require_metadata_service(
                "http://169.254.169.254",
                "none of AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN, AZURE_CLIENT_SECRET and AZURE_FEDERATED_TOKEN_FILE is set, and this machine offers no identity",
            )?;
        }
        // The emulator runs on this machine without a certificate.
        build!(self, builder, Key, http || emulator)
    }

    fn google(&self) -> Result<Arc<dyn ObjectStore>> {
        use GoogleConfigKey as Key;
        let mut builder = GoogleCloudStorageBuilder::from_env().with_url(self.url.as_str());
        without_line_ends!(self, builder, "GOOGLE_");
        let http = self.allows_http(
            self.options.endpoint.as_deref(),
            "GOOGLE_ALLOW_HTTP",
            "--endpoint",
        )?;
        if let Some(endpoint) = &self.options.endpoint {
            builder = builder.with_base_url(endpoint);
        }
        let is_set = |value: &String| !value.is_empty();
        let get = |key: &Key| builder.get_config_value(key).filter(is_set);
        let credential_keys = [
            Key::ServiceAccount,
            Key::ServiceAccountKey,
            Key::ApplicationCredentials,
        ];
        let signed = !is_on(get(&Key::SkipSignature).as_deref());
        let well_known = std::env::home_dir()
            .map(|home| home.join(".config/gcloud/application_default_credentials.json"))
            .is_some_and(|path| path.is_file());
        if signed && !well_known && credential_keys.iter().all(|key| get(key).is_none()) {
            let host = std::env::var("GCE_METADATA_HOST");
            let host = host.unwrap_or_else(|_| "metadata.google.internal".into());
            self.require_metadata_service(
                &format!("http://{host}"),
                "neither GOOGLE_APPLICATION_CREDENTIALS nor GOOGLE_SERVICE_ACCOUNT is set, and this machine offers no service account",
            )?;
        }
        build!(self, builder, Key, http)
    }

    /// Whether the options or the environment variable `variable` allow `http://`. Refuses an
    /// `http://` endpoint if they do not; the error names `source`, the option or variable that
    /// sets the endpoint.
    fn allows_http(&self, endpoint: Option<&str>, variable: &str, source: &str) -> Result<bool> {
        let allowed = self.options.allow_http || is_on(std::env::var(variable).ok().as_deref());
        let Some(endpoint) = endpoint else {
            return Ok(allowed);
        };
        let refused = |reason: &str| {
            Err(StorageError::StoreOptions {
                url: self.url.to_string(),
                reason: format!("the endpoint ({source}) {reason}"),
            })
        };
        match Url::parse(endpoint) {
            Ok(url) if !url.username().is_empty() || url.password().is_some() => {
                refused("has a user in it; credentials are given by environment variables")
            }
            Ok(url) if url.scheme() == "http" && !allowed => refused(
                "is http://, where anyone on the way can read along; allow that with --allow-http",
            ),
            Ok(_) => Ok(allowed),
            Err(error) => refused(&format!("is no URL: {error}")),
        }
    }

    /// Settings of the HTTP client; others, such as a proxy, come from the environment.
    fn client_settings(&self, http: bool) -> [(ClientConfigKey, String); 3] {
        let milliseconds = |time: Duration| format!("{}ms", time.as_millis());
        let timeout = self.options.request_timeout;
        [
            (ClientConfigKey::AllowHttp, http.to_string()),
            (ClientConfigKey::Timeout, milliseconds(timeout)),
            (
                ClientConfigKey::ConnectTimeout,
                milliseconds(CONNECT_TIMEOUT.min(timeout)),
            ),
        ]
    }

    fn retry(&self) -> RetryConfig {
        RetryConfig {
            backoff: BackoffConfig::default(),
            max_retries: self.options.retries,
            retry_timeout: self.options.deadline,
        }
    }

    /// Requires that the machine's metadata service accepts a connection: the client asks this
    /// service if it has no other credentials. Without this test, each request would wait minutes
    /// for a missing service.
    ///
    /// # Errors
    /// [`StorageError::Credentials`] with `reason`.
    fn require_metadata_service(&self, endpoint: &str, reason: &str) -> Result<()> {
        let address = Url::parse(endpoint).ok().and_then(|url| {
            let host = url.host_str()?.to_owned();
            (host, url.port_or_known_default()?)
                .to_socket_addrs()
                .ok()?
                .next()
        });
        let reached = address
            .is_some_and(|address| TcpStream::connect_timeout(&address, METADATA_TIMEOUT).is_ok());
        if reached {
            Ok(())
        } else {
            Err(self.no_credentials(reason))
        }
    }

    fn no_credentials(&self, reason: &str) -> StorageError {
        StorageError::Credentials {
            url: self.url.to_string(),
            reason: format!("no credentials: {reason}"),
        }
    }

    fn unusable(&self, error: &object_store::Error) -> StorageError {
        StorageError::StoreOptions {
            url: self.url.to_string(),
            reason: explain(error).text,
        }
    }
}
