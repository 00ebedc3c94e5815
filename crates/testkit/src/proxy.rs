//! An HTTP/1.1 proxy that injects the faults of networks and loaded object stores; a test chooses the fault of each
//! request.
//!
//! The proxy stands in front of one server. Heads are forwarded byte for byte in both directions, so signed requests
//! stay valid and a `Connection: close` from either side reaches the other. Bodies are streamed.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufReader, ErrorKind, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

mod http;

use http::*;

const BUFFER: usize = 256 * 1024;
const MAX_HEADERS: usize = 128;

type Headers = Vec<(String, String)>;
type Reader = BufReader<TcpStream>;
type Sink<'a> = &'a mut dyn Write;

/// What the proxy does to one request and its response.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Forwards both unchanged.
    Pass,
    /// Forwards the request after a delay, even if the client has disconnected meanwhile.
    Delay(Duration),
    /// Responds without asking upstream; reads and drops the body of the request.
    Status { code: u16, body: String },
    /// Lets upstream carry out the request, then responds with this instead of upstream's response.
    StatusAfter { code: u16, body: String },
    /// Closes the connection at once, without asking upstream. A client that is still sending sees a reset, others see
    /// the connection end without a response.
    Reset,
    /// Lets upstream carry out the request, then closes the connection without a response.
    LoseResponse,
    /// Forwards the head of the response and at most this many bytes of its body, then closes the connection.
    CutBody(u64),
    /// Truncates the body to at most this many bytes, and sets `Content-Length` to match: the response is well-formed.
    /// Other headers are untouched.
    ShortBody(u64),
    /// Reads the request, then neither forwards it nor responds; ends when the client closes.
    Hang,
    /// Forwards the head of the response and at most this many bytes of its body, then sends nothing until the client
    /// closes.
    HangBody(u64),
    /// Forwards upstream's status and headers, with this body and its length.
    ReplaceBody(Vec<u8>),
}

/// The head of a request, as the client sent it.
#[derive(Clone)]
pub struct Request {
    /// The number of earlier requests, on all connections.
    pub number: u64,
    pub method: String,
    /// Path and query, exactly as sent.
    pub target: String,
    /// The value of `Range`, or of `x-ms-range` if there is none.
    pub range: Option<String>,
    /// Names and values, in the order sent.
    pub headers: Vec<(String, String)>,
}

impl Request {
    /// Returns the first value of a header; the case of its name is ignored.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// Returns the target without its query.
    #[must_use]
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secret = ["authorization", "x-amz-security-token"];
        let shown = self.headers.iter().map(|(name, value)| {
            let hide = secret
                .iter()
                .any(|secret| name.eq_ignore_ascii_case(secret));
            (name, if hide { "***" } else { value })
        });
        f.debug_struct("Request")
            .field("number", &self.number)
            .field("method", &self.method)
            .field("target", &self.target)
            .field("range", &self.range)
            .field("headers", &shown.collect::<Vec<_>>())
            .finish()
    }
}

/// A running proxy on a port of its own. Dropping it closes every connection; nothing is sent upstream afterwards.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy in front of `upstream`, on a free loopback port. Each request calls `decide` once, from the
    /// thread of its connection.
    pub fn start(
        upstream: SocketAddr,
        decide: impl Fn(&Request) -> Fault + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            upstream,
            decide: Box::new(decide),
            state: Mutex::default(),
            stopped: Condvar::new(),
        });
        let accepting = Arc::clone(&shared);
        let listener = thread::Builder::new().spawn(move || accept(&listener, &accepting))?;
        Ok(Self {
            address,
            shared,
            listener: Some(listener),
        })
    }

    /// Returns the address at which the proxy listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns all requests so far, in order of arrival.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.state().requests.clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let open = {
            let mut state = self.shared.state();
            state.stopped = true;
            std::mem::take(&mut state.open)
        };
        for stream in open.values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.shared.stopped.notify_all();
        // Only a new connection wakes a blocked `accept`. If none can be made, its thread cannot be joined.
        if TcpStream::connect(self.address).is_ok()
            && let Some(listener) = self.listener.take()
        {
            let _ = listener.join();
        }
    }
}

/// Accepts connections, each served by a thread of its own, until the proxy stops.
fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    loop {
        let accepted = listener.accept();
        if shared.state().stopped {
            return;
        }
        let Ok((stream, _)) = accepted else {
            // Probably out of file descriptors: wait until other connections close.
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        let shared = Arc::clone(shared);
        // The client of a failed connection sees it close; nobody else needs the error.
        let _ = thread::Builder::new().spawn(move || serve(shared, stream));
    }
}

struct Shared {
    upstream: SocketAddr,
    decide: Box<dyn Fn(&Request) -> Fault + Send + Sync>,
    state: Mutex<State>,
    stopped: Condvar,
}

#[derive(Default)]
struct State {
    stopped: bool,
    next_peer: u64,
    /// Handles of all connections, to clients and upstream, so that another thread can shut them down.
    open: HashMap<u64, TcpStream>,
    requests: Vec<Request>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Numbers a request and keeps a copy.
    fn record(&self, request: &mut Request) {
        let mut state = self.state();
        request.number = state.requests.len() as u64;
        state.requests.push(request.clone());
    }

    /// Sleeps for `time`, or until the proxy stops.
    fn wait(&self, time: Duration) {
        let running = |state: &mut State| !state.stopped;
        drop(self.stopped.wait_timeout_while(self.state(), time, running));
    }
}

/// A connection to a client or upstream, registered so that dropping the proxy shuts it down.
struct Peer {
    reader: Reader,
    id: u64,
    shared: Arc<Shared>,
}

impl Peer {
    fn new(shared: Arc<Shared>, stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let handle = stream.try_clone()?;
        let reader = BufReader::with_capacity(BUFFER, stream);
        let mut state = shared.state();
        if state.stopped {
            return Err(ErrorKind::ConnectionAborted.into());
        }
        let id = state.next_peer;
        state.next_peer += 1;
        state.open.insert(id, handle);
        drop(state);
        Ok(Self { reader, id, shared })
    }

    fn stream(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    /// Returns whether the other side has neither closed the connection nor sent anything.
    fn is_idle(&self) -> bool {
        let stream = self.stream();
        let peeked = stream
            .set_nonblocking(true)
            .and_then(|()| stream.peek(&mut [0]));
        let silent = peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        silent && self.reader.buffer().is_empty() && stream.set_nonblocking(false).is_ok()
    }

    /// Reads the head of the final response to a request; `None` if the connection ends before it begins.
    fn read_response(mut self, to: &Incoming) -> io::Result<Option<Response>> {
        while let Some(raw) = read_head(&mut self.reader)? {
            let mut space = [httparse::EMPTY_HEADER; MAX_HEADERS];
            let mut parsed = httparse::Response::new(&mut space);
            parsed.parse(&raw).map_err(|_| malformed())?;
            let code = parsed.code.unwrap_or_default();
            // Interim responses are dropped: the proxy itself sends `100 Continue`.
            if code < 200 {
                continue;
            }
            let headers = to_owned_headers(parsed.headers);
            let framing = if to.request.method == "HEAD" || forbids_body(code) {
                Framing::Empty
            } else {
                framing(&headers, Framing::UntilClose)?
            };
            let keep_alive = to.keep_alive && is_keep_alive(parsed.version, &headers);
            let upstream = self;
            return Ok(Some(Response {
                upstream,
                code,
                raw,
                framing,
                keep_alive,
            }));
        }
        Ok(None)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.shared.state().open.remove(&self.id);
    }
}

/// A request whose body is still to be read.
struct Incoming {
    request: Request,
    raw: Vec<u8>,
    framing: Framing,
    /// Whether the client will reuse the connection.
    keep_alive: bool,
}

/// A response whose body is still to be read.
struct Response {
    upstream: Peer,
    code: u16,
    raw: Vec<u8>,
    framing: Framing,
    /// Whether both client and upstream will reuse their connections.
    keep_alive: bool,
}

/// A client's connection, and the upstream connection that all its requests use.
struct Connection {
    client: Peer,
    upstream: Option<Peer>,
}

/// Handles the requests of one client's connection, one after the other.
fn serve(shared: Arc<Shared>, stream: TcpStream) -> io::Result<()> {
    let mut connection = Connection {
        client: Peer::new(Arc::clone(&shared), stream)?,
        upstream: None,
    };
    while let Some(raw) = read_head(&mut connection.client.reader)? {
        let mut incoming = parse_request(raw)?;
        shared.record(&mut incoming.request);
        let fault = (shared.decide)(&incoming.request);
        if !connection.handle(&incoming, fault)? {
            break;
        }
    }
    Ok(())
}

impl Connection {
    /// Applies `fault` to a request; returns whether the client's connection stays open.
    fn handle(&mut self, incoming: &Incoming, fault: Fault) -> io::Result<bool> {
        match &fault {
            Fault::Delay(time) => self.client.shared.wait(*time),
            Fault::Status { code, body } => {
                self.forward(incoming, None)?;
                return self.respond(incoming, *code, body);
            }
            Fault::Reset => return Ok(false),
            Fault::Hang => {
                self.forward(incoming, None)?;
                return self.hang();
            }
            _ => {}
        }
        let Some(response) = self.ask_upstream(incoming)? else {
            return self.respond(incoming, 502, "no response from upstream");
        };
        match fault {
            Fault::StatusAfter { code, body } => {
                self.discard(response)?;
                self.respond(incoming, code, &body)
            }
            Fault::LoseResponse => self.discard(response).and(Ok(false)),
            Fault::CutBody(limit) => self.pass(response, limit).and(Ok(false)),
            Fault::ShortBody(limit) => self.shorten(response, limit),
            Fault::HangBody(limit) => {
                self.pass(response, limit)?;
                self.hang()
            }
            Fault::ReplaceBody(body) => self.replace(response, &body),
            _ => self.pass(response, u64::MAX),
        }
    }

    /// Forwards a request upstream and reads the head of the response; `None` if there is no response.
    fn ask_upstream(&mut self, incoming: &Incoming) -> io::Result<Option<Response>> {
        let reused = self.upstream.take().filter(Peer::is_idle);
        // A body that was forwarded cannot be read again.
        let mut may_retry = reused.is_some() && incoming.framing == Framing::Empty;
        let mut peer = reused.or_else(|| self.connect());
        loop {
            self.forward(incoming, peer.as_ref())?;
            let response = peer.map_or(Ok(None), |peer| peer.read_response(incoming));
            if !may_retry || !matches!(response, Ok(None)) {
                return Ok(response.unwrap_or(None));
            }
            may_retry = false;
            peer = self.connect();
        }
    }

    /// Opens a connection to upstream; `None` if that fails.
    fn connect(&self) -> Option<Peer> {
        let shared = Arc::clone(&self.client.shared);
        let stream = TcpStream::connect(shared.upstream).ok()?;
        Peer::new(shared, stream).ok()
    }

    /// Forwards head and body of a request to `peer`; without a peer, reads and drops the body.
    fn forward(&mut self, incoming: &Incoming, peer: Option<&Peer>) -> io::Result<()> {
        let expected = incoming.request.header("expect").unwrap_or_default();
        if expected.eq_ignore_ascii_case("100-continue") && incoming.framing != Framing::Empty {
            let mut client = self.client.stream();
            client.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let mut sink = UntilError(peer.map(Peer::stream));
        sink.write_all(&incoming.raw)?;
        let (body, reader) = (incoming.framing, &mut self.client.reader);
        body.copy(reader, u64::MAX, true, &mut sink).map(drop)
    }

    /// Forwards a response with at most `limit` bytes of its body; returns whether the client's connection stays open.
    fn pass(&mut self, mut response: Response, limit: u64) -> io::Result<bool> {
        let mut client = self.client.stream();
        client.write_all(&response.raw)?;
        let reader = &mut response.upstream.reader;
        let is_whole = response.framing.copy(reader, limit, true, &mut client)?;
        Ok(is_whole && self.keep_upstream(response))
    }

    /// Forwards a response with its body truncated to `limit` bytes and a matching length.
    fn shorten(&mut self, mut response: Response, limit: u64) -> io::Result<bool> {
        let mut client = self.client.stream();
        let reader = &mut response.upstream.reader;
        match response.framing {
            Framing::Empty => client.write_all(&response.raw)?,
            Framing::Length(length) => {
                client.write_all(&with_length(&response.raw, length.min(limit)))?;
                response.framing.copy(reader, limit, false, &mut client)?;
            }
            // The length is known only after the whole body was read.
            Framing::Chunked | Framing::UntilClose => {
                let mut body = Vec::new();
                response.framing.copy(reader, limit, false, &mut body)?;
                client.write_all(&with_length(&response.raw, body.len() as u64))?;
                client.write_all(&body)?;
            }
        }
        Ok(response.keep_alive)
    }

    /// Forwards the head of a response with `body` instead of its own.
    fn replace(&mut self, response: Response, body: &[u8]) -> io::Result<bool> {
        let mut answer = response.raw.clone();
        if !forbids_body(response.code) {
            answer = with_length(&answer, body.len() as u64);
        }
        if response.framing != Framing::Empty {
            answer.extend_from_slice(body);
        }
        let keep_alive = response.keep_alive;
        self.discard(response)?;
        self.client.stream().write_all(&answer)?;
        Ok(keep_alive)
    }

    /// Reads and drops the body of a response.
    fn discard(&mut self, mut response: Response) -> io::Result<()> {
        let (body, reader) = (response.framing, &mut response.upstream.reader);
        body.copy(reader, u64::MAX, false, &mut io::sink())?;
        self.keep_upstream(response);
        Ok(())
    }

    /// Keeps the upstream connection of a response that was read to its end, if it can be reused; returns whether it
    /// can.
    fn keep_upstream(&mut self, response: Response) -> bool {
        let can_reuse = response.keep_alive && response.framing != Framing::UntilClose;
        self.upstream = can_reuse.then_some(response.upstream);
        can_reuse
    }

    /// Responds to a request in place of upstream; returns whether the client's connection stays open.
    fn respond(&self, to: &Incoming, code: u16, body: &str) -> io::Result<bool> {
        let length = body.len();
        let headers = format!("Content-Type: application/xml\r\nContent-Length: {length}\r\n");
        let (headers, body) = match &*to.request.method {
            _ if forbids_body(code) => ("", ""),
            "HEAD" => (&*headers, ""),
            _ => (&*headers, body),
        };
        let answer = format!("HTTP/1.1 {code} Injected\r\n{headers}\r\n{body}");
        self.client.stream().write_all(answer.as_bytes())?;
        Ok(to.keep_alive)
    }

    /// Sends nothing until the client closes.
    fn hang(&mut self) -> io::Result<bool> {
        self.upstream = None;
        copy(&mut self.client.reader, u64::MAX, &mut io::sink())?;
        Ok(false)
    }
}

/// Writes to a stream. Drops all bytes after the stream's first error, or if there is no stream.
///
/// A server that refuses a request may close before it has read all of it; its response can still be read.
struct UntilError<'a>(Option<&'a TcpStream>);

impl Write for UntilError<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self
            .0
            .is_some_and(|mut stream| stream.write_all(bytes).is_err())
        {
            self.0 = None;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
