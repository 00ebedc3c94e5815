//! Lookups over HTTP: one fingerprint a request, on connections that are kept alive. The client is one thread, which shares the cores
//! with the server.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use url::Url;

use crate::{data, latency};

/// Queries without `--queries`.
const RANDOM_QUERIES: usize = 100_000;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Address of the server
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    url: Url,
    /// Number of connections; each sends its next request when it has the answer to the last
    #[arg(long, default_value_t = 32)]
    connections: usize,
    /// Seconds that are measured
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Seconds before, that are not measured
    #[arg(long, default_value_t = 2)]
    warm_up: u64,
    /// File of the queries, little-endian 64-bit numbers, as `bench lookup` writes it beside the archive [default: random numbers]
    #[arg(long, value_name = "FILE")]
    queries: Option<PathBuf>,
}

/// What all connections share.
struct Load {
    /// Host and port of the server.
    host: String,
    queries: Vec<u64>,
    /// Requests that begin in between are measured.
    begin: Instant,
    end: Instant,
}

pub fn run(args: &Args) -> Vec<Value> {
    let host = args.url.host_str().expect("a host in --url");
    let port = args.url.port_or_known_default().expect("a port in --url");
    let begin = Instant::now() + Duration::from_secs(args.warm_up);
    let load = Load {
        host: format!("{host}:{port}"),
        queries: match &args.queries {
            Some(file) => data::read_numbers(file),
            None => data::random_batch(RANDOM_QUERIES),
        },
        begin,
        end: begin + Duration::from_secs(args.seconds),
    };
    assert!(!load.queries.is_empty(), "no queries");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let nanoseconds = runtime.block_on(async {
        let load = std::sync::Arc::new(load);
        let mut connections = tokio::task::JoinSet::new();
        for number in 0..args.connections {
            // Connections begin apart from each other.
            let first = load.queries.len() * number / args.connections;
            connections.spawn(connection(std::sync::Arc::clone(&load), first));
        }
        connections.join_all().await.concat()
    });
    let requests = nanoseconds.len();
    let per_second = requests as f64 / args.seconds as f64;
    let mut row = latency::Latencies::new(nanoseconds).json();
    row["method"] = "HTTP, one lookup a request".into();
    row["connections"] = args.connections.into();
    row["seconds"] = args.seconds.into();
    row["lookups_per_second"] = per_second.into();
    println!(
        "{} connections, {requests} requests, {per_second:.0} per second",
        args.connections
    );
    println!("{}\n{}", latency::titles(), latency::columns(&row));
    latency::print_histogram(&row);
    vec![row]
}

/// Sends request after request, from query `first` on. Returns the nanoseconds of those that are measured.
async fn connection(load: std::sync::Arc<Load>, first: usize) -> Vec<u64> {
    let mut stream = TcpStream::connect(&load.host).await.expect("the server");
    stream.set_nodelay(true).expect("a socket");
    let mut nanoseconds = Vec::new();
    let mut buffer = Vec::with_capacity(1 << 14);
    for query in load.queries.iter().cycle().skip(first) {
        let body = format!("{{\"fp\":\"{query:016x}\"}}");
        let request = format!(
            "POST /v1/lookup HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            load.host,
            body.len()
        );
        let begin = Instant::now();
        if begin >= load.end {
            break;
        }
        stream
            .write_all(request.as_bytes())
            .await
            .expect("the server");
        let status = response(&mut stream, &mut buffer).await;
        assert!(
            status == 200,
            "{body}: status {status}: {}",
            String::from_utf8_lossy(&buffer)
        );
        if begin >= load.begin {
            nanoseconds.push(begin.elapsed().as_nanos() as u64);
        }
    }
    nanoseconds
}

/// Reads a response into `buffer`, and returns its status.
async fn response(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> u16 {
    buffer.clear();
    let (status, length) = loop {
        read_more(stream, buffer).await;
        if let Some(head) = parse_head(buffer) {
            break head;
        }
    };
    while buffer.len() < length {
        read_more(stream, buffer).await;
    }
    status
}

async fn read_more(stream: &mut TcpStream, buffer: &mut Vec<u8>) {
    let read = stream.read_buf(buffer).await.expect("the server");
    assert!(read > 0, "the server closed a connection");
}

/// Returns the status and the length of a response with its head; `None` while the head is not complete.
fn parse_head(bytes: &[u8]) -> Option<(u16, usize)> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let parsed = response.parse(bytes).expect("HTTP");
    let httparse::Status::Complete(head) = parsed else {
        return None;
    };
    let length = response
        .headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|header| {
        let text = std::str::from_utf8(header.value).ok()?;
        text.trim().parse::<usize>().ok()
    });
    Some((
        response.code?,
        head + length.expect("a response with its length"),
    ))
}

#[cfg(test)]
mod tests {
    use super::parse_head;

    #[test]
    fn heads_are_parsed_once_complete() {
        let whole = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
        let head = whole.len() - 5;
        assert_eq!(parse_head(&whole[..head - 1]), None);
        assert_eq!(parse_head(&whole[..head]), Some((200, whole.len())));
        assert_eq!(parse_head(whole), Some((200, whole.len())));
    }
}
