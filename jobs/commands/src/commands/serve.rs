//! `dedup-job serve`: answers lookups over HTTP.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use documents::Columns;
use lookup::{Index, Remember, ServeSettings, Server, TlsFiles};
use storage::StorageError;

use super::index::files;
use super::{open_texts, required};
use crate::args::{CommonArgs, ServeArgs};
use crate::exit::Failure;
use crate::panics;
use crate::printing::print_aside;
use crate::process::{self, Process};
use crate::signals::StopSignals;

/// Default of --listen.
const LISTEN: &str = "127.0.0.1:8080";

/// The address that HOST:PORT stands for; of several, the first of IPv4.
fn address(given: &str) -> Result<SocketAddr, Failure> {
    let usage = |reason: String| Failure::Usage(format!("--listen {given}: {reason}"));
    let addresses = given
        .to_socket_addrs()
        .map_err(|error| match error.kind() {
            ErrorKind::InvalidInput => usage("it is no HOST:PORT, such as 127.0.0.1:8080".into()),
            _ => usage(error.to_string()),
        })?;
    let addresses: Vec<SocketAddr> = addresses.collect();
    let first = addresses.iter().find(|address| address.is_ipv4());
    let first = first.or(addresses.first()).copied();
    first.ok_or_else(|| usage("the host has no address".into()))
}

pub fn run(common: &CommonArgs, args: &ServeArgs) -> Result<(), Failure> {
    let dir = required(args.index.as_deref(), "--index DIR")?;
    let token = token(args)?;
    let listen = address(args.listen.as_deref().unwrap_or(LISTEN))?;
    panics::log_all();
    process::run_with_signals(
        common,
        async |process: &Process, signals: &mut StopSignals| {
            let start = async {
                let files = files(process, &process.locate(dir)?, &args.cache)?;
                let index = Index::open(&files).await?;
                let texts = texts(common, process, args).await?;
                let settings = settings(common, args, listen, token, texts);
                Ok(Server::bind(&files, index, settings).await?)
            };
            let server = signals
                .interrupt(&process.resources.progress, start)
                .await?;
            // Standard output is for results, and --quiet silences the log, so print this to standard error.
            print_aside(&format!("listening on {}\n", server.url()));
            server.run(signals.wait()).await;
            Ok(())
        },
    )
}

fn settings(
    common: &CommonArgs,
    args: &ServeArgs,
    listen: SocketAddr,
    token: Option<String>,
    texts: HashMap<String, String>,
) -> ServeSettings {
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => Some(TlsFiles {
            authority: args.tls_ca.clone(),
            certificate: certificate.clone(),
            key: key.clone(),
        }),
        _ => None,
    };
    ServeSettings {
        listen,
        tls,
        insecure: args.insecure,
        token,
        threads: process::threads(common),
        max_body: args.max_body.map_or(1 << 20, |size| {
            usize::try_from(size.as_u64()).unwrap_or(usize::MAX)
        }),
        queue: args.queue.unwrap_or(1024) as usize,
        connections: args.connections.unwrap_or(16_384) as usize,
        timeout: args.timeout.unwrap_or(Duration::from_secs(30)),
        drain: args.drain.unwrap_or(Duration::from_secs(10)),
        refresh: args.refresh.unwrap_or(Duration::from_secs(5)),
        // The rest is for texts, requests and other processes.
        read_ahead: process::memory() / 2,
        host_names: args.host_name.clone(),
        remember: args.remember.as_ref().map(|directory| Remember {
            directory: directory.clone(),
            keep: args.remember_for.unwrap_or(Duration::from_secs(48 * 3600)),
            max: args.remember_max.unwrap_or(10_000_000) as usize,
        }),
        texts: Arc::new(texts),
    }
}

/// The token of --token-file.
fn token(args: &ServeArgs) -> Result<Option<String>, Failure> {
    let Some(path) = &args.token_file else {
        return Ok(None);
    };
    let read = std::fs::read_to_string(path).map_err(StorageError::io(path.display()))?;
    let token = read.trim();
    if token.is_empty() || token.contains(char::is_whitespace) {
        Err(Failure::Configuration(format!(
            "{}: must have one token and nothing else",
            path.display()
        )))
    } else {
        Ok(Some(token.to_owned()))
    }
}

/// Reads the texts of --texts; they may take half of the memory limit.
async fn texts(
    common: &CommonArgs,
    process: &Process,
    args: &ServeArgs,
) -> Result<HashMap<String, String>, Failure> {
    if args.texts.is_empty() {
        return Ok(HashMap::new());
    }
    let documents = open_texts(process, &args.texts, Columns::default()).await?;
    let memory = process::memory_limit(common) / 2;
    Ok(documents.all_texts(&process.context, memory).await?)
}
