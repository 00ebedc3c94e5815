//! The proxy injects exactly the fault that it was given, and forwards all else unchanged.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use testkit::proxy::{Fault, Proxy, Request};

/// Heads of the upstream's responses, and bodies.
const LENGTH: &str = "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 10\r\n\r\n";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const CHUNKS: &str = "4\r\n0123\r\n6;x=y\r\n456789\r\n0\r\nT: t\r\n\r\n";
const TEN: &str = "0123456789";
const EMPTY: &str = "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n";
const PUT: &str = "PUT /length HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc";
const HEAD: &str = "HEAD /length HTTP/1.1\r\n\r\n";

/// A server that chooses its response by the path of the request, and records the requests.
#[derive(Default)]
struct Upstream {
    connections: AtomicUsize,
    /// Requests, head and body, as received.
    received: Mutex<Vec<String>>,
}

impl Upstream {
    fn start() -> (SocketAddr, Arc<Self>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let upstream = Arc::new(Self::default());
        let serving = Arc::clone(&upstream);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let serving = Arc::clone(&serving);
                serving.connections.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || serving.serve(stream.unwrap()));
            }
        });
        (address, upstream)
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    fn received(&self) -> Vec<String> {
        self.received.lock().unwrap().clone()
    }

    fn serve(&self, mut stream: TcpStream) {
        for served in 0.. {
            let mut text = read_until(&mut stream, |text| text.contains("\r\n\r\n"));
            if text.contains(": chunked") {
                text += &read_until(&mut stream, |text| text.ends_with("0\r\n\r\n"));
            } else if let Some((_, rest)) = text.split_once("Content-Length: ") {
                let length = rest.lines().next().unwrap().parse().unwrap();
                text += &read_until(&mut stream, |text| text.len() == length);
            }
            if text.is_empty() {
                return;
            }
            self.received.lock().unwrap().push(text.clone());
            let (head, body) = match text.split(' ').nth(1).unwrap() {
                "/chunked" => (CHUNKED, CHUNKS),
                "/close" => ("HTTP/1.1 200 OK\r\n\r\n", TEN),
                "/empty" => (EMPTY, ""),
                "/first" if served > 0 => return,
                _ => (LENGTH, TEN),
            };
            // The proxy may have closed already.
            let body = if text.starts_with("HEAD") { "" } else { body };
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
            if text.contains("/close") || text.contains("/last") {
                return;
            }
        }
    }
}

/// Reads byte by byte until `enough` accepts the text, or the connection ends.
fn read_until(stream: &mut TcpStream, enough: impl Fn(&str) -> bool) -> String {
    let (mut text, mut byte) = (String::new(), [0]);
    while !enough(&text) {
        match stream.read(&mut byte) {
            Ok(1) => text.push(char::from(byte[0])),
            Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
            _ => break,
        }
    }
    text
}

fn start(fault: Fault) -> (Proxy, Arc<Upstream>) {
    let (address, upstream) = Upstream::start();
    let proxy = Proxy::start(address, move |_| fault.clone());
    (proxy.unwrap(), upstream)
}

fn connect(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect(proxy.address()).unwrap();
    set_read_timeout(&stream, 10_000);
    stream
}

fn set_read_timeout(stream: &TcpStream, millis: u64) {
    let time = Duration::from_millis(millis);
    stream.set_read_timeout(Some(time)).unwrap();
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: h\r\n\r\n")
}

/// Sends requests one after the other on one connection; fails unless each gets its expected response.
fn converse(stream: &mut TcpStream, turns: &[(&str, &str)]) {
    for (request, expected) in turns {
        stream.write_all(request.as_bytes()).unwrap();
        let response = read_until(stream, |text| text.len() == expected.len());
        assert_eq!(response, *expected, "{request}");
    }
}

/// Returns all bytes that the proxy sends for one request until it closes.
fn read_all(fault: Fault, request: &str) -> String {
    let (proxy, _upstream) = start(fault);
    let mut stream = connect(&proxy);
    stream.write_all(request.as_bytes()).unwrap();
    read_until(&mut stream, |_| false)
}

#[test]
fn many_requests_share_a_connection_and_pass_unchanged() {
    let (proxy, upstream) = start(Fault::Pass);
    let head = "HEAD /length?a=%2F HTTP/1.1\r\nHOST:  h\r\nAuthorization: key\r\n\r\n";
    let head_of_post = "POST /chunked HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    let turns = [
        (head, LENGTH),
        (
            &*format!("{head_of_post}3\r\nabc\r\n0\r\n\r\n"),
            &*format!("{CHUNKED}{CHUNKS}"),
        ),
        (&PUT.replace("length", "empty"), EMPTY),
        (
            "GET / HTTP/1.1\r\nrAnge: bytes=0-9\r\n\r\n",
            &format!("{LENGTH}{TEN}"),
        ),
        (&get("/close"), &format!("HTTP/1.1 200 OK\r\n\r\n{TEN}")),
    ];
    let mut stream = connect(&proxy);
    converse(&mut stream, &turns);
    assert_eq!(read_until(&mut stream, |_| false), "");
    assert_eq!(upstream.received(), turns.map(|(request, _)| request));
    assert_eq!(upstream.connections(), 1);

    let requests = proxy.requests();
    let numbers: Vec<_> = requests.iter().map(|request| request.number).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
    assert_eq!(requests[0].method, "HEAD");
    assert_eq!(requests[0].target, "/length?a=%2F");
    assert_eq!(requests[0].path(), "/length");
    assert_eq!(requests[0].header("authorization"), Some("key"));
    let shown = format!("{:?}", requests[0]);
    assert!(shown.contains("***") && !shown.contains("key"), "{shown}");
    assert_eq!(requests[3].range.as_deref(), Some("bytes=0-9"));
}

#[test]
fn a_lost_upstream_connection_is_replaced() {
    let (proxy, upstream) = start(Fault::Pass);
    let whole = &*format!("{LENGTH}{TEN}");
    let mut stream = connect(&proxy);
    converse(&mut stream, &[(&get("/length"), whole)]);
    // Upstream closes after the request was forwarded.
    converse(&mut stream, &[(&get("/first"), whole)]);
    assert_eq!(upstream.connections(), 2);
    // Upstream closes before the next request.
    converse(&mut stream, &[(&get("/last"), whole)]);
    thread::sleep(Duration::from_millis(50));
    converse(&mut stream, &[(PUT, whole)]);
    assert_eq!(upstream.connections(), 3);
}

#[test]
fn without_upstream_the_proxy_responds_502() {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let proxy = Proxy::start(address, |_| Fault::Pass).unwrap();
    let mut stream = connect(&proxy);
    for request in [PUT, PUT] {
        stream.write_all(request.as_bytes()).unwrap();
        let answer = read_until(&mut stream, |text| text.ends_with("upstream"));
        assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    }
}

#[test]
fn a_client_may_wait_for_100_continue() {
    for (fault, status) in [(Fault::Pass, "200 OK"), (busy(), "503 Injected")] {
        let (proxy, _upstream) = start(fault);
        let mut stream = connect(&proxy);
        let head = "PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
        converse(&mut stream, &[(head, "HTTP/1.1 100 Continue\r\n\r\n")]);
        converse(&mut stream, &[("abc", &format!("HTTP/1.1 {status}\r\n"))]);
    }
}

fn busy() -> Fault {
    let body = "busy".to_owned();
    Fault::Status { code: 503, body }
}

#[test]
fn an_injected_status_keeps_the_connection() {
    let headers = "Content-Type: application/xml\r\nContent-Length: 4\r\n";
    let bare = &*format!("HTTP/1.1 503 Injected\r\n{headers}\r\n");
    let answer = &*format!("{bare}busy");
    let body = "busy".to_owned();
    for (fault, forwarded) in [(busy(), 0), (Fault::StatusAfter { code: 503, body }, 3)] {
        let (proxy, upstream) = start(fault);
        let turns = [(PUT, answer), (HEAD, bare), (&get("/chunked"), answer)];
        converse(&mut connect(&proxy), &turns);
        assert_eq!(upstream.received().len(), forwarded);
    }
}

#[test]
fn a_connection_can_end_before_the_response() {
    for (fault, forwarded) in [(Fault::Reset, 0), (Fault::LoseResponse, 1)] {
        let (proxy, upstream) = start(fault);
        let mut stream = connect(&proxy);
        stream.write_all(get("/length").as_bytes()).unwrap();
        assert_eq!(read_until(&mut stream, |_| false), "");
        assert_eq!(upstream.received().len(), forwarded);
    }
}

#[test]
fn a_body_can_be_cut() {
    let chunk = &*format!("{CHUNKED}4\r\n0123\r\n6;x=y\r\n");
    for (limit, path, expected) in [
        (0, "/length", LENGTH),
        (4, "/length", &format!("{LENGTH}0123")),
        (99, "/length", &format!("{LENGTH}{TEN}")),
        (5, "/chunked", &format!("{chunk}4")),
        (10, "/chunked", &format!("{chunk}456789\r\n")),
        (5, "/close", "HTTP/1.1 200 OK\r\n\r\n01234"),
    ] {
        assert_eq!(read_all(Fault::CutBody(limit), &get(path)), expected);
    }
}

#[test]
fn a_body_can_be_truncated_or_replaced() {
    let with_length = |head: &str, body: &str| {
        let length = body.len();
        format!("HTTP/1.1 200 OK\r\n{head}Content-Length: {length}\r\n\r\n{body}")
    };
    let tag = "ETag: \"a\"\r\n";
    for (fault, body, head) in [
        (Fault::ShortBody(4), "0123", LENGTH),
        (
            Fault::ReplaceBody(b"other".into()),
            "other",
            &*LENGTH.replace("10", "5"),
        ),
    ] {
        let (proxy, _upstream) = start(fault);
        let turns = [
            (&*get("/length"), &*with_length(tag, body)),
            (&get("/chunked"), &with_length("", body)),
            (HEAD, head),
            (&get("/close"), &with_length("", body)),
            (&get("/empty"), EMPTY),
        ];
        converse(&mut connect(&proxy), &turns);
    }
}

#[test]
fn a_delay_blocks_no_other_connection() {
    let (address, _upstream) = Upstream::start();
    let late = Duration::from_millis(300);
    let decide = move |request: &Request| match &*request.target {
        "/late" => Fault::Delay(late),
        _ => Fault::Pass,
    };
    let proxy = Proxy::start(address, decide).unwrap();
    let (whole, start) = (format!("{LENGTH}{TEN}"), Instant::now());
    let mut delayed = connect(&proxy);
    delayed.write_all(get("/late").as_bytes()).unwrap();
    converse(&mut connect(&proxy), &[(&get("/length"), &whole)]);
    assert!(start.elapsed() < late);
    converse(&mut delayed, &[("", &whole)]);
    assert!(start.elapsed() >= late);
}

#[test]
fn dropping_the_proxy_closes_hanging_connections() {
    let long = Duration::from_secs(600);
    for (fault, before, forwarded) in [
        (Fault::Hang, String::new(), 0),
        (Fault::HangBody(4), format!("{LENGTH}0123"), 1),
        (Fault::Delay(long), String::new(), 0),
        (Fault::Pass, format!("{LENGTH}{TEN}"), 1),
    ] {
        let (proxy, upstream) = start(fault);
        let mut stream = connect(&proxy);
        converse(&mut stream, &[(&get("/length"), &before)]);
        set_read_timeout(&stream, 50);
        assert!(stream.read(&mut [0]).is_err(), "silence was expected");
        set_read_timeout(&stream, 10_000);
        let start = Instant::now();
        drop(proxy);
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        assert!(start.elapsed() < Duration::from_secs(5));
        assert_eq!(upstream.received().len(), forwarded);
    }
}
