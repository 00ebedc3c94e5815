//! An HTTP/1.1 proxy in front of one server that does harm on demand: what a network and a loaded
//! object store do to a client, one request at a time.
//!
//! Heads are forwarded byte for byte in both directions, so that signed requests stay valid and a
//! `Connection: close` of either side means the same on the other. Bodies are streamed.

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

/// What is done to one request.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Nothing: the request and its response are passed on.
    Pass,
    /// Passed on after a wait, even if the client has gone away meanwhile.
    Delay(Duration),
    /// Answered without asking upstream; the body of the request is read and dropped.
    Status {
        /// The status code.
        code: u16,
        /// The body of the answer.
        body: String,
    },
    /// Carried out upstream, then answered with this instead of upstream's response.
    StatusAfter {
        /// The status code.
        code: u16,
        /// The body of the answer.
        body: String,
    },
    /// The connection is closed at once, without asking upstream. The client sees a reset if it is
    /// still sending, else an end without a response.
    Reset,
    /// Carried out upstream, then the connection is closed without a response.
    LoseResponse,
    /// The true head of the response and at most so many bytes of its body, then the connection is
    /// closed.
    CutBody(u64),
    /// A well-formed response with at most so many bytes of the body, and a `Content-Length` that
    /// says so; other headers are untouched.
    ShortBody(u64),
    /// The request is read but never answered nor passed on, until the client closes.
    Hang,
    /// The true head of the response and at most so many bytes of its body, then silence until the
    /// client closes.
    HangBody(u64),
    /// The status and headers of upstream, but this body and its length.
    ReplaceBody(Vec<u8>),
}

/// The head of a request as the client sent it.
#[derive(Clone)]
pub struct Request {
    /// How many requests came before it, on any connection.
    pub number: u64,
    /// The method.
    pub method: String,
    /// Path and query, exactly as sent.
    pub target: String,
    /// The value of `Range`, or else of `x-ms-range`.
    pub range: Option<String>,
    /// Names and values in the order sent.
    pub headers: Vec<(String, String)>,
}

impl Request {
    /// The first value of a header, whatever the case of its name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// The target without its query.
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

/// A running proxy on a port of its own. Dropping it ends every connection, and nothing is sent
/// upstream from then on.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Listens on a free loopback port in front of `upstream`. `decide` is called once for each
    /// request, from the thread of its connection.
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

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All requests so far, in order of arrival.
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
        // A blocked accept wakes up only for a connection. If none can be had, do not wait for it.
        if TcpStream::connect(self.address).is_ok()
            && let Some(listener) = self.listener.take()
        {
            let _ = listener.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    loop {
        let accepted = listener.accept();
        if shared.state().stopped {
            return;
        }
        let Ok((stream, _)) = accepted else {
            // Out of descriptors, most likely: others have to be closed first.
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        let shared = Arc::clone(shared);
        // A connection that fails has told its client all there is to tell by ending.
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
    /// A handle on every connection, of clients and upstream, to shut it down from outside.
    open: HashMap<u64, TcpStream>,
    requests: Vec<Request>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, request: &mut Request) {
        let mut state = self.state();
        request.number = state.requests.len() as u64;
        state.requests.push(request.clone());
    }

    /// Waits, but not longer than the proxy runs.
    fn wait(&self, time: Duration) {
        let running = |state: &mut State| !state.stopped;
        drop(self.stopped.wait_timeout_while(self.state(), time, running));
    }
}

/// One end of a connection, which the proxy can shut down as long as this lives.
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

    /// Whether the other side has neither closed nor sent anything.
    fn is_idle(&self) -> bool {
        let stream = self.stream();
        let peeked = stream
            .set_nonblocking(true)
            .and_then(|()| stream.peek(&mut [0]));
        let silent = peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        silent && self.reader.buffer().is_empty() && stream.set_nonblocking(false).is_ok()
    }

    /// Reads the final response's head; `None` if the connection ends before it begins.
    fn response(mut self, to: &Incoming) -> io::Result<Option<Response>> {
        while let Some(raw) = read_head(&mut self.reader)? {
            let mut space = [httparse::EMPTY_HEADER; MAX_HEADERS];
            let mut parsed = httparse::Response::new(&mut space);
            parsed.parse(&raw).map_err(|_| malformed())?;
            let code = parsed.code.unwrap_or_default();
            // Interim responses are dropped: the client had its `100 Continue` from the proxy.
            if code < 200 {
                continue;
            }
            let headers = owned(parsed.headers);
            let framing = if to.request.method == "HEAD" || may_not_have_body(code) {
                Framing::Empty
            } else {
                framing(&headers, Framing::UntilClose)?
            };
            let keep = to.keep && stays_open(parsed.version, &headers);
            let upstream = self;
            return Ok(Some(Response {
                upstream,
                code,
                raw,
                framing,
                keep,
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
    /// The client means to go on using the connection.
    keep: bool,
}

/// A response whose body is still to be read.
struct Response {
    upstream: Peer,
    code: u16,
    raw: Vec<u8>,
    framing: Framing,
    /// Client and upstream mean to go on using their connections.
    keep: bool,
}

/// A client's connection, with the one to upstream that its requests share.
struct Connection {
    client: Peer,
    upstream: Option<Peer>,
}

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
    /// Does to the request what `fault` says, and tells whether the client's connection goes on.
    fn handle(&mut self, incoming: &Incoming, fault: Fault) -> io::Result<bool> {
        match &fault {
            Fault::Delay(time) => self.client.shared.wait(*time),
            Fault::Status { code, body } => {
                self.send(incoming, None)?;
                return self.answer(incoming, *code, body);
            }
            Fault::Reset => return Ok(false),
            Fault::Hang => {
                self.send(incoming, None)?;
                return self.hang();
            }
            _ => {}
        }
        let Some(response) = self.ask(incoming)? else {
            return self.answer(incoming, 502, "no response from upstream");
        };
        match fault {
            Fault::StatusAfter { code, body } => {
                self.finish(response)?;
                self.answer(incoming, code, &body)
            }
            Fault::LoseResponse => self.finish(response).and(Ok(false)),
            Fault::CutBody(most) => self.pass(response, most).and(Ok(false)),
            Fault::ShortBody(most) => self.shorten(response, most),
            Fault::HangBody(most) => {
                self.pass(response, most)?;
                self.hang()
            }
            Fault::ReplaceBody(body) => self.replace(response, &body),
            _ => self.pass(response, u64::MAX),
        }
    }

    /// Sends the request upstream and reads the head of the response; `None` if there is none.
    fn ask(&mut self, incoming: &Incoming) -> io::Result<Option<Response>> {
        let reused = self.upstream.take().filter(Peer::is_idle);
        // A body is gone once it is sent.
        let mut may_retry = reused.is_some() && incoming.framing == Framing::Empty;
        let mut peer = reused.or_else(|| self.connect());
        loop {
            self.send(incoming, peer.as_ref())?;
            let response = peer.map_or(Ok(None), |peer| peer.response(incoming));
            if !may_retry || !matches!(response, Ok(None)) {
                return Ok(response.unwrap_or(None));
            }
            may_retry = false;
            peer = self.connect();
        }
    }

    fn connect(&self) -> Option<Peer> {
        let shared = Arc::clone(&self.client.shared);
        let stream = TcpStream::connect(shared.upstream).ok()?;
        Peer::new(shared, stream).ok()
    }

    /// Sends head and body of the request to `peer`, or reads and drops the body if that is `None`.
    fn send(&mut self, incoming: &Incoming, peer: Option<&Peer>) -> io::Result<()> {
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

    /// Passes the response on with at most `most` bytes of its body.
    fn pass(&mut self, mut response: Response, most: u64) -> io::Result<bool> {
        let mut client = self.client.stream();
        client.write_all(&response.raw)?;
        let reader = &mut response.upstream.reader;
        let whole = response.framing.copy(reader, most, true, &mut client)?;
        Ok(whole && self.reuse(response))
    }

    fn shorten(&mut self, mut response: Response, most: u64) -> io::Result<bool> {
        let mut client = self.client.stream();
        let reader = &mut response.upstream.reader;
        match response.framing {
            Framing::Empty => client.write_all(&response.raw)?,
            Framing::Length(length) => {
                client.write_all(&with_length(&response.raw, length.min(most)))?;
                response.framing.copy(reader, most, false, &mut client)?;
            }
            // The length is known only once the body is there.
            Framing::Chunked | Framing::UntilClose => {
                let mut body = Vec::new();
                response.framing.copy(reader, most, false, &mut body)?;
                client.write_all(&with_length(&response.raw, body.len() as u64))?;
                client.write_all(&body)?;
            }
        }
        Ok(response.keep)
    }

    fn replace(&mut self, response: Response, body: &[u8]) -> io::Result<bool> {
        let mut answer = response.raw.clone();
        if !may_not_have_body(response.code) {
            answer = with_length(&answer, body.len() as u64);
        }
        if response.framing != Framing::Empty {
            answer.extend_from_slice(body);
        }
        let keep = response.keep;
        self.finish(response)?;
        self.client.stream().write_all(&answer)?;
        Ok(keep)
    }

    /// Reads and drops the rest of the response.
    fn finish(&mut self, mut response: Response) -> io::Result<()> {
        let (body, reader) = (response.framing, &mut response.upstream.reader);
        body.copy(reader, u64::MAX, false, &mut io::sink())?;
        self.reuse(response);
        Ok(())
    }

    /// Keeps the connection of a response that was read to its end, if it can be used on.
    fn reuse(&mut self, response: Response) -> bool {
        let keep = response.keep && response.framing != Framing::UntilClose;
        self.upstream = keep.then_some(response.upstream);
        keep
    }

    fn answer(&self, to: &Incoming, code: u16, body: &str) -> io::Result<bool> {
        let length = body.len();
        let headers = format!("Content-Type: application/xml\r\nContent-Length: {length}\r\n");
        let (headers, body) = match &*to.request.method {
            _ if may_not_have_body(code) => ("", ""),
            "HEAD" => (&*headers, ""),
            _ => (&*headers, body),
        };
        let answer = format!("HTTP/1.1 {code} Injected\r\n{headers}\r\n{body}");
        self.client.stream().write_all(answer.as_bytes())?;
        Ok(to.keep)
    }

    /// Keeps silent until the client closes.
    fn hang(&mut self) -> io::Result<bool> {
        self.upstream = None;
        copy(&mut self.client.reader, u64::MAX, &mut io::sink())?;
        Ok(false)
    }
}

/// A stream to which nothing more is written after its first error: a server that refuses a request
/// may close before all of it is sent, and its response is there to be read nevertheless.
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
