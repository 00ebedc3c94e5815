//! Object storage for the tests. Real servers on loopback start when the first test needs
//! them.
//!
//! The tests look for the servers' programs beside the interpreter that `PYTHON` names, in the
//! directories of `DEDUP_JOB_TEST_TOOLS` and in `PATH`. If one is missing, the tests that need it
//! print that and pass; under `CI` they fail.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures::TryStreamExt as _;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt as _};
use testkit::proxy::{Fault, Proxy, Request};

use crate::helpers::support::*;

/// Secrets that no message may contain.
pub const ACCESS_KEY: &str = "CANARYACCESSKEY00001";
pub const SECRET_KEY: &str = "/canary/Secret+Key/0123456789abcdefghijkl";
const AZURE_ACCOUNT: &str = "canaryaccount";
/// Arbitrary bytes in Base64.
const AZURE_KEY: &str = "Y2FuYXJ5LWtleS1vZi1henVyZS0wMTIzNDU2Nzg5YWJjZGVmZ2hpamtsbW5vcHFy";
const BUCKET: &str = "crawl";

/// The path of a program that a test needs.
pub fn tool(name: &str) -> Option<PathBuf> {
    let python = std::env::var_os("PYTHON").map(PathBuf::from);
    let beside = python.and_then(|python| Some(python.parent()?.to_owned()));
    let lists = ["DEDUP_JOB_TEST_TOOLS", "PATH"].map(std::env::var_os);
    let listed = lists.iter().flatten().flat_map(std::env::split_paths);
    let found = beside
        .into_iter()
        .chain(listed)
        .map(|directory| directory.join(name))
        .find(|path| path.is_file());
    if found.is_none() {
        assert!(std::env::var("CI").is_err(), "there is no {name}");
        say(&format!(
            "SKIPPED: a test that needs {name}, which is not there"
        ));
    }
    found
}

/// A server process that ends when the test process ends, even if that is killed.
struct Served {
    process: Child,
}

impl Served {
    fn start(command: &str) -> Self {
        // The shell waits for the end of its input, which the system closes when this process ends.
        let script = format!("{command} & server=$!; read -r _; kill -9 $server; wait");
        let process = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { process }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// A free port `p`; `p` + 10,000 is free, too, because SeaweedFS uses it for its own calls.
fn port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let seed = std::process::id().wrapping_mul(31) + NEXT.fetch_add(1, Ordering::Relaxed);
        // Below the ports that the system assigns to connections.
        let port = 11_000 + (seed.wrapping_mul(2_654_435_761) >> 8) % 10_000;
        let port = port as u16;
        let free = |port| TcpListener::bind(("127.0.0.1", port)).is_ok();
        if free(port) && free(port + 10_000) {
            return port;
        }
    }
}

/// Sends a plain request; returns the status.
fn http(address: SocketAddr, method: &str, target: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    write!(
        stream,
        "{method} {target} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
    .ok()?;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    answer.split(' ').nth(1)?.parse().ok()
}

/// Waits until a server answers.
fn wait_for(address: SocketAddr, target: &str, status: &[u16]) {
    let begin = Instant::now();
    while !http(address, "GET", target).is_some_and(|got| status.contains(&got)) {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "no server at {address}"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn loopback(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

/// Object storage, as the program reaches it (`environment`) and as the tests read it directly
/// (`client`).
#[derive(Clone)]
pub struct Storage {
    pub address: SocketAddr,
    /// The URL of the bucket.
    root: String,
    environment: BTreeMap<String, String>,
    client: Arc<dyn ObjectStore>,
}

/// A server with the storage that it serves.
pub struct Server {
    pub storage: Storage,
    _served: Vec<Served>,
    _data: tempfile::TempDir,
}

fn s3(address: SocketAddr, served: Vec<Served>, data: tempfile::TempDir) -> Server {
    let client = AmazonS3Builder::new()
        .with_endpoint(format!("http://{address}"))
        .with_allow_http(true)
        .with_bucket_name(BUCKET)
        .with_access_key_id(ACCESS_KEY)
        .with_secret_access_key(SECRET_KEY)
        .build()
        .unwrap();
    let environment = [
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY.to_owned()),
        ("AWS_SECRET_ACCESS_KEY", SECRET_KEY.to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ENDPOINT_URL", format!("http://{address}")),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
    ];
    Server {
        storage: Storage {
            address,
            root: format!("s3://{BUCKET}"),
            environment: environment.map(|(name, value)| (name.into(), value)).into(),
            client: Arc::new(client),
        },
        _served: served,
        _data: data,
    }
}

/// An S3 server that honours conditional requests.
pub fn seaweed() -> Option<Storage> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    let server = SERVER.get_or_init(|| {
        let weed = tool("weed")?;
        let data = tempfile::tempdir().unwrap();
        let config = data.path().join("s3.json");
        let identity = serde_json::json!({ "identities": [{
            "name": "tests",
            "credentials": [{ "accessKey": ACCESS_KEY, "secretKey": SECRET_KEY }],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }]});
        std::fs::write(&config, identity.to_string()).unwrap();
        let [master, volume, filer, s3_port] = [port(), port(), port(), port()];
        let served = Served::start(&format!(
            "{weed} server -ip=127.0.0.1 -ip.bind=127.0.0.1 -dir={data} -master.port={master} \
             -master.volumeSizeLimitMB=64 -volume.port={volume} -volume.max=100 -filer \
             -filer.port={filer} -s3 -s3.port={s3_port} -s3.port.iceberg=0 -s3.port.lance=0 -s3.config={config}",
            weed = weed.display(),
            data = data.path().display(),
            config = config.display(),
        ));
        let address = loopback(s3_port);
        wait_for(loopback(filer), "/", &[200]);
        let made = http(loopback(filer), "POST", &format!("/buckets/{BUCKET}/"));
        assert_eq!(made, Some(201));
        wait_for(address, "/", &[403]);
        Some(s3(address, vec![served], data))
    });
    server.as_ref().map(|server| server.storage.clone())
}

/// An S3 server that ignores `If-None-Match`.
pub fn careless() -> Option<Server> {
    let rclone = tool("rclone")?;
    let data = tempfile::tempdir().unwrap();
    std::fs::create_dir(data.path().join(BUCKET)).unwrap();
    let port = port();
    let served = Served::start(&format!(
        "{} serve s3 --addr 127.0.0.1:{port} --auth-key {ACCESS_KEY},{SECRET_KEY} {}",
        rclone.display(),
        data.path().display()
    ));
    let address = loopback(port);
    wait_for(address, "/", &[403, 200, 400]);
    Some(s3(address, vec![served], data))
}

/// An emulator of Azure's blobs.
pub fn azurite() -> Option<Storage> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    let server = SERVER.get_or_init(|| {
        let (azurite, python) = (tool("azurite-blob")?, tool("python3")?);
        let data = tempfile::tempdir().unwrap();
        let port = port();
        let served = Served::start(&format!(
            "AZURITE_ACCOUNTS={AZURE_ACCOUNT}:{AZURE_KEY} {} --blobHost 127.0.0.1 --blobPort {port} \
             --location {} --silent --skipApiVersionCheck --disableTelemetry",
            azurite.display(),
            data.path().display()
        ));
        let address = loopback(port);
        wait_for(address, "/", &[400, 403]);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/azure_container.py");
        let made = Command::new(python)
            .arg(script)
            .args([
                &format!("http://{address}"),
                AZURE_ACCOUNT,
                AZURE_KEY,
                BUCKET,
            ])
            .output()
            .unwrap();
        Ran::of(made).ok();
        let environment = [
            ("AZURE_STORAGE_USE_EMULATOR", "true".to_owned()),
            ("AZURITE_BLOB_STORAGE_URL", format!("http://{address}")),
            ("AZURE_STORAGE_ACCOUNT_NAME", AZURE_ACCOUNT.to_owned()),
            ("AZURE_STORAGE_ACCOUNT_KEY", AZURE_KEY.to_owned()),
        ];
        // The builder takes the emulator's address only from the environment, which all tests of
        // this process share.
        let client = MicrosoftAzureBuilder::new()
            .with_endpoint(format!("http://{address}/{AZURE_ACCOUNT}"))
            .with_allow_http(true)
            .with_account(AZURE_ACCOUNT)
            .with_access_key(AZURE_KEY)
            .with_container_name(BUCKET)
            .build()
            .unwrap();
        Some(Server {
            storage: Storage {
                address,
                root: format!("az://{BUCKET}"),
                environment: environment.map(|(name, value)| (name.into(), value)).into(),
                client: Arc::new(client),
            },
            _served: vec![served],
            _data: data,
        })
    });
    server.as_ref().map(|server| server.storage.clone())
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| tokio::runtime::Runtime::new().unwrap());
    runtime.block_on(work)
}

impl Storage {
    /// A URL below the bucket that no other test uses.
    pub fn unique(&self, name: &str) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        format!("{}/{name}-{number}", self.root)
    }

    fn path(&self, url: &str) -> ObjectPath {
        let key = url.strip_prefix(&self.root).expect("a URL of this storage");
        ObjectPath::parse(key.trim_matches('/')).unwrap()
    }

    /// The same storage through a proxy, where `decide` decides the fate of each request.
    pub fn through(
        &self,
        decide: impl Fn(&Request) -> Fault + Send + Sync + 'static,
    ) -> (Self, Proxy) {
        let proxy = Proxy::start(self.address, decide).unwrap();
        let mut storage = self.clone();
        let (old, new) = (self.address.to_string(), proxy.address().to_string());
        for value in storage.environment.values_mut() {
            *value = value.replace(&old, &new);
        }
        (storage, proxy)
    }

    /// The same storage with a variable of the environment set or removed.
    pub fn with(&self, name: &str, value: Option<&str>) -> Self {
        let mut storage = self.clone();
        match value {
            Some(value) => storage.environment.insert(name.into(), value.into()),
            None => storage.environment.remove(name),
        };
        storage
    }

    /// The environment variables through which the program reaches the storage.
    pub fn environment(&self) -> BTreeMap<String, String> {
        self.environment.clone()
    }

    /// The program, in an environment that reaches this storage and no other.
    pub fn command(&self) -> Command {
        let mut command = command();
        let is_cloud = |name: &str| {
            ["AWS_", "AZURE_", "AZURITE_", "GOOGLE_"]
                .iter()
                .any(|prefix| name.starts_with(prefix))
        };
        for (name, _) in std::env::vars().filter(|(name, _)| is_cloud(name)) {
            command.env_remove(name);
        }
        command.envs(&self.environment);
        command
    }

    /// Runs a line of arguments, and asserts that its messages have no secret.
    pub fn dedup(&self, line: &str) -> Ran {
        let mut command = self.command();
        without_secrets(Ran::of(
            command.args(line.split_whitespace()).output().unwrap(),
        ))
    }

    /// As [`Self::dedup`], and asserts that the program succeeds.
    #[track_caller]
    pub fn dedup_ok(&self, line: &str) -> Ran {
        self.dedup(line).ok()
    }

    pub fn put(&self, url: &str, bytes: Vec<u8>) {
        block_on(self.client.put(&self.path(url), bytes.into())).unwrap();
    }

    pub fn upload(&self, local: impl AsRef<Path>, url: &str) {
        self.put(url, std::fs::read(local).unwrap());
    }

    pub fn get(&self, url: &str) -> Option<Vec<u8>> {
        block_on(async {
            match self.client.get(&self.path(url)).await {
                Ok(found) => Some(found.bytes().await.unwrap().to_vec()),
                Err(object_store::Error::NotFound { .. }) => None,
                Err(error) => panic!("{error}"),
            }
        })
    }

    pub fn delete(&self, url: &str) {
        block_on(self.client.delete(&self.path(url))).unwrap();
    }

    /// The URLs of all objects below a URL.
    pub fn list(&self, url: &str) -> Vec<String> {
        let prefix = self.path(url);
        let listed: Vec<_> = block_on(self.client.list(Some(&prefix)).try_collect()).unwrap();
        let mut urls: Vec<String> = listed
            .iter()
            .map(|meta| format!("{}/{}", self.root, meta.location))
            .collect();
        urls.sort();
        urls
    }

    /// All objects below a URL, with their bytes.
    pub fn contents(&self, url: &str) -> Vec<(String, Vec<u8>)> {
        let urls = self.list(url).into_iter();
        urls.map(|url| (url.clone(), self.get(&url).unwrap()))
            .collect()
    }

    /// The log of an archive: what must not change when a run fails.
    pub fn log(&self, archive: &str) -> Vec<(String, Vec<u8>)> {
        self.contents(&format!("{archive}/_delta_log"))
    }
}

/// Asserts that a program's messages have no secret.
#[track_caller]
pub fn without_secrets(ran: Ran) -> Ran {
    for secret in [ACCESS_KEY, SECRET_KEY, AZURE_KEY, "canary%2FSecret"] {
        for text in [&ran.stdout, &ran.stderr] {
            assert!(!text.contains(secret), "a secret is in {text}");
        }
    }
    ran
}
