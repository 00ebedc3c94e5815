//! `serve`: lookups over HTTP, under good requests and bad ones.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::helpers::certificates::certificate;
use crate::helpers::days::*;
use crate::helpers::servers::tool;
use crate::helpers::support::*;

/// A server on a free port.
struct Serving {
    child: Child,
    address: SocketAddr,
    log: Option<std::thread::JoinHandle<String>>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Of a test that failed; otherwise it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Serving {
    fn start(index: &str, options: &str) -> Self {
        Self::start_at("127.0.0.1:0", index, options)
    }

    fn start_at(listen: &str, index: &str, options: &str) -> Self {
        let mut child = command()
            .args(
                format!("serve --index {index} --listen {listen} --refresh 100ms {options}")
                    .split_whitespace(),
            )
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("listening on ") {
            line.clear();
            assert!(
                errors.read_line(&mut line).unwrap() > 0,
                "the server has ended"
            );
        }
        let address = line.trim().rsplit_once("//").unwrap().1.parse().unwrap();
        // The pipe must not fill up.
        let log = std::thread::spawn(move || {
            let mut rest = String::new();
            errors.read_to_string(&mut rest).unwrap();
            rest
        });
        Self {
            child,
            address,
            log: Some(log),
        }
    }

    /// Resident memory in bytes.
    fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let kibibytes = status.lines().find_map(|line| {
            let number = line.strip_prefix("VmRSS:")?.trim().strip_suffix("kB")?;
            number.trim().parse::<u64>().ok()
        });
        kibibytes.unwrap() * 1024
    }

    /// Waits until the number of its open files satisfies `is_wanted`.
    #[track_caller]
    fn wait_for_open_files(&self, is_wanted: impl Fn(u64) -> bool) {
        let begin = Instant::now();
        loop {
            let open = std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap();
            let open = open.count() as u64;
            if is_wanted(open) {
                return;
            }
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "the server has {open} open files"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn client(&self) -> Client {
        Client(BufReader::new(TcpStream::connect(self.address).unwrap()))
    }

    /// One request on a connection of its own.
    fn ask(&self, method: &str, path: &str, body: &str) -> Reply {
        self.client().ask(method, path, "", body)
    }

    #[track_caller]
    fn look_up(&self, body: &Value) -> Value {
        let reply = self.ask("POST", "/v1/lookup", &body.to_string());
        assert_eq!(reply.status, 200, "{}", reply.body);
        serde_json::from_str(&reply.body).unwrap()
    }

    /// Stops the server; asserts that it ends by itself. Returns its log.
    fn stop(mut self) -> String {
        signal(&self.child, "TERM");
        let status = self.child.wait().unwrap();
        let log = self.log.take().unwrap().join().unwrap();
        assert!(status.success(), "{status}: {log}");
        assert!(!log.contains("panicked"), "{log}");
        log
    }
}

struct Reply {
    status: u16,
    headers: String,
    body: String,
}

struct Client(BufReader<TcpStream>);

impl Client {
    fn ask(&mut self, method: &str, path: &str, headers: &str, body: &str) -> Reply {
        let length = body.len();
        let kind = if headers.contains("content-type") {
            ""
        } else {
            "content-type: application/json\r\n"
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n{kind}{headers}\r\n{body}"
        );
        self.0.get_mut().write_all(request.as_bytes()).unwrap();
        self.reply().expect("an answer")
    }

    /// Reads an answer; `None` if the server has closed the connection.
    fn reply(&mut self) -> Option<Reply> {
        let mut headers = String::new();
        while !headers.ends_with("\r\n\r\n") {
            if self.0.read_line(&mut headers).ok()? == 0 {
                return None;
            }
        }
        let status = headers.split(' ').nth(1)?.parse().ok()?;
        let headers = headers.to_lowercase();
        let length = headers
            .lines()
            .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())?;
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).ok()?;
        let body = String::from_utf8(body).unwrap();
        Some(Reply {
            status,
            headers,
            body,
        })
    }
}

/// An index of three days.
fn index() -> (Days, String) {
    let (days, _) = Days::three();
    let index = days.dir.at("index");
    build(&days, &index);
    (days, index)
}

fn build(days: &Days, index: &str) {
    dedup_ok(&format!(
        "index build --base {} --output {index}",
        days.archive
    ));
}

fn ids(answer: &Value) -> Vec<&str> {
    answer["hits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| hit["id"].as_str().unwrap())
        .collect()
}

#[test]
fn requests_are_answered_as_the_description_says() {
    let (days, index) = index();
    let served = Serving::start(&index, "");
    let fp = |number: u64| format!("{:016x}", far(number));
    let answer = served.look_up(&json!({ "fp": fp(1) }));
    assert_eq!(
        answer["hits"],
        json!([
            { "id": "a1", "distance": 0, "day": "2026-01-01", "fp": fp(1) },
            { "id": "b1", "distance": 1, "day": "2026-01-02", "fp": format!("{:016x}", far(1) ^ 1) },
            { "id": "c1", "distance": 1, "day": "2026-01-03", "fp": format!("{:016x}", far(1) ^ 4) },
        ])
    );
    assert_eq!(
        (&answer["more"], &answer["fp"]),
        (&json!(false), &json!(fp(1)))
    );
    assert_eq!(
        ids(&served.look_up(&json!({ "fp": far(1).cast_signed(), "k": 0 }))),
        ["a1"]
    );
    let limited = served.look_up(&json!({ "fp": fp(1), "limit": 2 }));
    assert_eq!((ids(&limited).len(), ids(&limited)[0]), (2, "a1"));
    assert_eq!(limited["more"], true);
    let batch = served.look_up(
        &json!({ "queries": [{ "fp": fp(9) }, { "text": "two words" }, { "fp": fp(6) }], "k": 8 }),
    );
    let results = batch["results"].as_array().unwrap();
    assert_eq!(
        (ids(&results[0]), &results[1]["fp"], ids(&results[2])),
        (vec![], &Value::Null, vec!["c4"])
    );

    let get = |path: &str| served.ask("GET", path, "");
    let info: Value = serde_json::from_str(&get("/v1/info").body).unwrap();
    assert_eq!(
        (
            &info["rows"],
            &info["days"],
            &info["max_distance"],
            &info["k"],
            &info["id_type"]
        ),
        (
            &json!(13),
            &json!(3),
            &json!(8),
            &json!(3),
            &json!("string")
        )
    );
    assert_eq!(get("/healthz").body, "ok\n");
    assert_eq!(get("/readyz").status, 200);
    let page = get("/");
    assert!(
        page.body.contains("<!doctype html>")
            && page
                .headers
                .contains("content-security-policy: default-src 'none'")
    );
    for path in ["/page.css", "/page.js", "/openapi.json"] {
        assert_eq!(get(path).status, 200, "{path}");
    }
    let metrics = get("/metrics").body;
    for line in [
        "dedup_job_lookup_queries_total 6",
        "dedup_job_index_documents 13",
        "dedup_job_lookup_seconds_count 4",
        "# EOF",
    ] {
        assert!(metrics.contains(line), "{line:?} is not in {metrics}");
    }

    let post = |body: &str| served.ask("POST", "/v1/lookup", body);
    let said = |reply: Reply| {
        serde_json::from_str::<Value>(&reply.body).unwrap()["error"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    for (body, reason) in [
        ("{", "openapi.json"),
        ("{}", "neither"),
        ("{\"fp\": \"12\"}", "16 hexadecimal"),
        ("{\"fp\": 1.5}", "16 hexadecimal"),
        ("{\"fp\": 1, \"k\": 9}", "from 0 to 8"),
        ("{\"fp\": 1, \"limit\": 0}", "limit"),
        ("{\"fp\": 1, \"min_similarity\": 2}", "min_similarity"),
        ("[null, null, null, 1]", "openapi.json"),
        ("{\"queries\": [[\"text\"]]}", "openapi.json"),
        ("{\"fp\": 1, \"K\": 3}", "unknown field"),
        ("{\"fp\": 1, \"queries\": []}", "not both"),
        ("\"\u{0}\"", "openapi.json"),
    ] {
        let reply = post(body);
        assert_eq!(reply.status, 400, "{body}");
        let reason_given = said(reply);
        assert!(reason_given.contains(reason), "{body}: {reason_given}");
        // Options are the command line's.
        assert!(!reason_given.contains("--"), "{body}: {reason_given}");
    }
    assert_eq!(post("{\"queries\": []}").status, 200);
    let many = format!(
        "{{\"queries\": [{}]}}",
        vec!["{\"fp\":1}"; 10_001].join(",")
    );
    assert_eq!(post(&many).status, 413);
    assert_eq!(
        post(&format!("{{\"text\": \"{}\"}}", "x".repeat(1 << 20))).status,
        413
    );
    let html = served
        .client()
        .ask("POST", "/v1/lookup", "content-type: text/html\r\n", "{}");
    assert_eq!(html.status, 415);
    // A web page whose name was made to point to this machine.
    let mut rebound = served.client();
    let request = "GET /v1/info HTTP/1.1\r\nhost: evil.example:8080\r\n\r\n";
    rebound.0.get_mut().write_all(request.as_bytes()).unwrap();
    let reply = rebound.reply().unwrap();
    assert_eq!(reply.status, 421);
    assert!(said(reply).contains("--host-name"));
    assert_eq!(get("/v1/lookup").status, 405);
    assert_eq!(get("/nothing").status, 404);
    assert!(said(served.ask("POST", "/v1/seen", "{}")).contains("--remember"));
    served.stop();
    drop(days);
}

#[test]
fn a_new_version_answers_without_a_restart() {
    let (days, index) = index();
    let served = Serving::start(&index, "");
    let query = json!({ "fp": format!("{:016x}", far(7)) });
    assert!(ids(&served.look_up(&query)).is_empty());
    // One connection asks all the time, and each of its requests is answered.
    let mut client = served.client();
    let body = json!({ "fp": format!("{:016x}", far(1)) }).to_string();
    let asking = std::thread::spawn(move || {
        let begin = Instant::now();
        let mut asked = 0;
        while begin.elapsed() < Duration::from_secs(3) {
            let reply = client.ask("POST", "/v1/lookup", "", &body);
            assert!(
                reply.status == 200 && reply.body.contains("\"a1\""),
                "{}",
                reply.body
            );
            asked += 1;
        }
        asked
    });
    for day in &DAYS[3..] {
        days.commit(day, &[(&format!("of {day}"), far(7))]);
        build(&days, &index);
    }
    let begin = Instant::now();
    while ids(&served.look_up(&query)).len() < 3 {
        assert!(begin.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(asking.join().unwrap() > 100);
    served.stop();
}

#[test]
fn the_token_is_required_and_never_shown() {
    let (days, index) = index();
    let file = days.dir.at("token");
    std::fs::write(&file, "s3cret-token\n").unwrap();
    let served = Serving::start(&index, &format!("--token-file {file} -vv"));
    let body = "{\"fp\": 1}";
    let mut client = served.client();
    for headers in [
        "",
        "authorization: Bearer s3cret-toke\r\n",
        "authorization: Basic s3cret-token\r\n",
    ] {
        let reply = client.ask("POST", "/v1/lookup", headers, body);
        assert_eq!(reply.status, 401);
        assert!(reply.headers.contains("www-authenticate: bearer"));
    }
    assert_eq!(
        client
            .ask(
                "POST",
                "/v1/lookup",
                "authorization: Bearer s3cret-token\r\n",
                body
            )
            .status,
        200
    );
    assert_eq!(client.ask("GET", "/healthz", "", "").status, 200);
    let log = served.stop();
    assert!(!log.contains("s3cret"));
    assert!(log.contains("read the index ahead"), "{log}");
    std::fs::write(&file, "").unwrap();
    dedup(&format!("serve --index {index} --token-file {file}")).fails(78, &["token"]);
    dedup(&format!("serve --index {index} --listen 0.0.0.0:0"))
        .fails(64, &["--insecure", "--tls-cert", "--token-file"]);
}

#[test]
fn copies_that_arrive_before_a_build_find_each_other() {
    let (days, index) = index();
    let seen = days.dir.at("seen");
    let crashes: u64 =
        std::env::var("DEDUP_JOB_CRASHES").map_or(200, |number| number.parse().unwrap());
    let entry = |number: u64| json!({ "id": format!("page {number}"), "fp": format!("{:016x}", far(100 + number)) });
    let mut answered = 0;
    for crash in 0..crashes {
        let served = Serving::start(&index, &format!("--remember {seen}"));
        // What was answered before the kill is remembered.
        let known: Vec<Value> = (0..answered)
            .map(|number| json!({ "id": "other", "fp": entry(number)["fp"] }))
            .collect();
        let mut client = served.client();
        for (number, known) in known
            .iter()
            .enumerate()
            .skip(answered.saturating_sub(40) as usize)
        {
            let reply = client.ask(
                "POST",
                "/v1/seen",
                "",
                &json!({ "queries": [known], "k": 0 }).to_string(),
            );
            let reply: Value = serde_json::from_str(&reply.body).unwrap();
            let found = &reply["results"][0]["hits"];
            let found = found
                .as_array()
                .unwrap()
                .iter()
                .any(|hit| hit["id"] == format!("page {number}") && hit["remembered"] == true);
            assert!(found, "{number} was answered, but not remembered: {reply}");
        }
        // Asks until it is killed.
        let child = served.child.id();
        let killing = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20 + far(crash) % 60));
            let killed = Command::new("sh")
                .args(["-c", &format!("kill -9 {child}")])
                .status();
            assert!(killed.unwrap().success());
        });
        let body = |number| entry(number).to_string();
        loop {
            let request = body(answered);
            let length = request.len();
            let text = format!(
                "POST /v1/seen HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{request}"
            );
            if client.0.get_mut().write_all(text.as_bytes()).is_err() {
                break;
            }
            match client.reply() {
                Some(reply) => assert_eq!(reply.status, 200, "{}", reply.body),
                None => break,
            }
            answered += 1;
        }
        killing.join().unwrap();
        drop(served);
    }
    say(&format!(
        "copies_that_arrive_before_a_build_find_each_other: {crashes} kills, {answered} answers"
    ));
    let served = Serving::start(&index, &format!("--remember {seen}"));
    let near = json!({ "id": "new", "fp": format!("{:016x}", far(1) ^ 2), "k": 3 });
    let reply = served.ask("POST", "/v1/seen", &near.to_string());
    let reply: Value = serde_json::from_str(&reply.body).unwrap();
    assert_eq!(ids(&reply), ["a1", "b1", "c1"]);
    assert_eq!(served.ask("POST", "/v1/seen", "{\"fp\": 1}").status, 400);
    // A second server must not write to the same log.
    dedup(&format!(
        "serve --index {index} --listen 127.0.0.1:0 --remember {seen}"
    ))
    .fails(75, &["another server"]);
    served.stop();
}

#[test]
fn slow_clients_and_bursts_leave_room_for_others() {
    let (_days, index) = index();
    let served = Serving::start(&index, "--timeout 2s --queue 4 --threads 2");
    let body = json!({ "fp": format!("{:016x}", far(1)) }).to_string();
    // Half a header, half a body.
    let mut half_header = TcpStream::connect(served.address).unwrap();
    half_header
        .write_all(b"POST /v1/lookup HTTP/1.1\r\nhost")
        .unwrap();
    let mut half_body = served.client();
    half_body
        .0
        .get_mut()
        .write_all(b"POST /v1/lookup HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{")
        .unwrap();
    // Asks for many answers, and reads none.
    let mut reads_nothing = TcpStream::connect(served.address).unwrap();
    let batch =
        json!({ "queries": vec![json!({ "fp": format!("{:016x}", far(1)) }); 2000], "k": 8 })
            .to_string();
    let request = format!(
        "POST /v1/lookup HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{batch}",
        batch.len()
    );
    reads_nothing.set_nonblocking(true).unwrap();
    for _ in 0..50 {
        let _ = reads_nothing.write(request.as_bytes());
    }
    let mut client = served.client();
    for _ in 0..50 {
        assert_eq!(client.ask("POST", "/v1/lookup", "", &body).status, 200);
    }
    assert_eq!(half_body.reply().unwrap().status, 408);
    assert_eq!(served.ask("POST", "/v1/lookup", &body).status, 200);

    // A burst beyond the queue: each request is answered, or refused at once.
    let heavy =
        json!({ "queries": vec![json!({ "fp": "0123456789abcdef" }); 3000], "k": 8 }).to_string();
    let replies: Vec<u16> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..24)
            .map(|_| scope.spawn(|| served.ask("POST", "/v1/lookup", &heavy)))
            .collect();
        asking
            .into_iter()
            .map(|reply| {
                let reply = reply.join().unwrap();
                assert_eq!(
                    reply.status == 429,
                    reply.headers.contains("retry-after: 1") && reply.status != 503
                );
                reply.status
            })
            .collect()
    });
    assert!(
        replies
            .iter()
            .all(|status| [200, 429, 503].contains(status)),
        "{replies:?}"
    );
    assert!(replies.contains(&200));
    served.stop();
}

/// Raises this process's limit on open files to `wanted`, or to the system's maximum if that is lower. Returns the limit.
fn allow_open_files(wanted: u64) -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current.unwrap_or(u64::MAX);
    let raised = wanted.min(limit.maximum.unwrap_or(u64::MAX));
    if current >= raised {
        return current;
    }
    let raised_limit = Rlimit {
        current: Some(raised),
        ..limit
    };
    setrlimit(Resource::Nofile, raised_limit).unwrap();
    raised
}

#[test]
fn ten_thousand_idle_connections_leave_room_for_others() {
    /// Descriptors for other purposes, such as the tests that run beside this one.
    const OTHERS: u64 = 500;
    const MOST_MEMORY: u64 = 300 << 20;
    let (_days, index) = index();
    // All must be open before the first is closed. The server starts with the limit that this process was given, so it has to
    // raise its own.
    let served = Serving::start(&index, "--timeout 15s --threads 2");
    let wanted = 10_000;
    let limit = allow_open_files(wanted + 2 * OTHERS);
    let count = limit.saturating_sub(OTHERS).clamp(2000, wanted);
    if count < wanted {
        say(&format!(
            "SKIPPED in part: at most {limit} open files are allowed, so {count} idle connections instead of {wanted}"
        ));
    }
    let idle: Vec<TcpStream> = (0..count)
        .map(|_| TcpStream::connect(served.address).unwrap())
        .collect();
    served.wait_for_open_files(|open| open >= count);
    let query = json!({ "fp": format!("{:016x}", far(1)) });
    for _ in 0..50 {
        // On a connection of its own.
        assert_eq!(ids(&served.look_up(&query)), ["a1", "b1", "c1"]);
    }
    let memory = served.memory();
    say(&format!(
        "{count} idle connections: the server takes {} MiB",
        memory >> 20
    ));
    assert!(memory < MOST_MEMORY, "{memory} bytes");
    // The timeout closes all of them, and frees their descriptors.
    for mut stream in idle {
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let end = stream.read_to_end(&mut Vec::new());
        end.expect("a connection that the server closes");
    }
    served.wait_for_open_files(|open| open < OTHERS);
    assert_eq!(ids(&served.look_up(&query)), ["a1", "b1", "c1"]);
    served.stop();
}

#[test]
fn large_answers_and_many_equal_pages_stay_within_bounds() {
    let days = Days::new();
    let index = days.dir.at("index");
    let ids: Vec<String> = (0..3000).map(|number| format!("{number:0200}")).collect();
    let rows: Vec<(&str, u64)> = ids.iter().map(|id| (id.as_str(), far(1))).collect();
    days.commit(DAYS[0], &rows);
    build(&days, &index);
    let seen = days.dir.at("seen");
    let served = Serving::start(&index, &format!("--remember {seen}"));
    let fp = format!("{:016x}", far(1));
    // 100 queries, each with all documents, are 60 MB of ids: refused, and never cut off in silence.
    let large = json!({ "queries": vec![json!({ "fp": fp }); 100], "limit": 10_000 });
    let reply = served.ask("POST", "/v1/lookup", &large.to_string());
    assert_eq!(
        reply.status,
        413,
        "{}",
        &reply.body[..200.min(reply.body.len())]
    );
    assert!(reply.body.contains("fewer"));
    assert_eq!(
        served.look_up(&json!({ "fp": fp, "limit": 10_000 }))["hits"]
            .as_array()
            .unwrap()
            .len(),
        3000
    );
    // The same page, remembered 20,000 times.
    let begin = Instant::now();
    for batch in 0..10 {
        let queries: Vec<Value> = (0..2000)
            .map(|number| json!({ "fp": 5, "id": format!("{batch}-{number}") }))
            .collect();
        let reply = served.ask(
            "POST",
            "/v1/seen",
            &json!({ "queries": queries, "limit": 2 }).to_string(),
        );
        assert_eq!(reply.status, 200, "{}", reply.body);
    }
    let reply = served.ask(
        "POST",
        "/v1/seen",
        "{\"fp\": 4, \"id\": \"new\", \"limit\": 3}",
    );
    let reply: Value = serde_json::from_str(&reply.body).unwrap();
    assert_eq!(
        (
            reply["hits"].as_array().unwrap().len(),
            &reply["hits"][0]["distance"]
        ),
        (3, &json!(1))
    );
    say(&format!("20,000 equal pages: {:?}", begin.elapsed()));
    let long = json!({ "fp": 4, "id": "x".repeat(5000) });
    assert_eq!(
        served.ask("POST", "/v1/seen", &long.to_string()).status,
        400
    );
    served.stop();
}

#[test]
fn requests_in_progress_end_before_the_server_does() {
    let (_days, index) = index();
    let served = Serving::start(&index, "--timeout 20s");
    let mut slow = served.client();
    let body = json!({ "fp": format!("{:016x}", far(1)) }).to_string();
    let (first, rest) = body.split_at(5);
    let head = format!(
        "POST /v1/lookup HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{first}",
        body.len()
    );
    slow.0.get_mut().write_all(head.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let (address, process) = (served.address, served.child.id().to_string());
    let stopping = std::thread::spawn(move || served.stop());
    std::thread::sleep(Duration::from_millis(300));
    assert!(TcpStream::connect(address).is_err(), "it still listens");
    // It is stopping already: another signal changes nothing.
    let again = Command::new("kill").args(["-INT", &process]).status();
    assert!(again.unwrap().success());
    slow.0.get_mut().write_all(rest.as_bytes()).unwrap();
    let reply = slow.reply().unwrap();
    assert!(reply.status == 200 && reply.body.contains("\"a1\""));
    let begin = Instant::now();
    stopping.join().unwrap();
    assert!(
        begin.elapsed() < Duration::from_secs(8),
        "it waited for its deadline"
    );
}

#[test]
fn texts_are_shown_beside_hits() {
    let dir = Dir::new();
    let (archive, index, texts) = (dir.at("archive"), dir.at("index"), dir.at("old.parquet"));
    let text = "a page about the ferry that crosses the river every morning at seven";
    write_documents(&texts, &[("ferry", text)]);
    dedup_ok(&format!(
        "archive create --profile paper {archive} --sketch 64"
    ));
    dedup_ok(&format!(
        "archive append {archive} --input {texts} --day 2026-03-04"
    ));
    dedup_ok(&format!("index build --base {archive} --output {index}"));
    let served = Serving::start(&index, &format!("--texts {texts}"));
    let answer = served.look_up(&json!({ "text": text }));
    let hit = &answer["hits"][0];
    assert_eq!(
        (&hit["text"], &hit["similarity"]),
        (&json!(text), &json!(1.0))
    );
    served.stop();
    dedup(&format!(
        "serve --index {index} --listen 127.0.0.1:0 --texts {texts} --memory-limit 100"
    ))
    .fails(75, &["--memory-limit"]);
}

#[test]
fn connections_are_encrypted_and_clients_known() {
    let Some(openssl) = tool("openssl") else {
        return;
    };
    let (days, index) = index();
    let dir = &days.dir;
    let keys = certificate(&openssl, dir, "ours", "server");
    certificate(&openssl, dir, "ours", "client");
    certificate(&openssl, dir, "theirs", "stranger");
    let token = dir.at("token");
    std::fs::write(&token, "t0ken").unwrap();
    // What a client with a certificate, or with none, is answered; nothing if the connection is refused.
    let ask = |served: &Serving, client: Option<&str>, headers: &str| {
        let address = format!("127.0.0.1:{}", served.address.port());
        let mut command = Command::new(&openssl);
        command.args([
            "s_client",
            "-quiet",
            "-verify_return_error",
            "-connect",
            &address,
            "-CAfile",
            &dir.at("ours.pem"),
        ]);
        if let Some(client) = client {
            let (pem, key) = (
                dir.at(&format!("{client}.pem")),
                dir.at(&format!("{client}.key")),
            );
            command.args(["-cert", &pem, "-key", &key]);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let request = format!(
            "GET /v1/info HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n"
        );
        let mut input = child.stdin.take().unwrap();
        // A refused connection may be closed already.
        let _ = input.write_all(request.as_bytes());
        let answer = child.wait_with_output().unwrap().stdout;
        drop(input);
        String::from_utf8(answer).unwrap()
    };
    let served = Serving::start_at("0.0.0.0:0", &index, &keys);
    assert!(ask(&served, Some("client"), "").starts_with("HTTP/1.1 200"));
    for client in [None, Some("stranger")] {
        assert_eq!(ask(&served, client, ""), "");
    }
    served.stop();
    // Without an authority, clients show the token.
    let keys = keys.split_once(" --tls-cert").unwrap().1;
    let options = format!("--tls-cert{keys} --token-file {token}");
    let served = Serving::start_at("0.0.0.0:0", &index, &options);
    assert!(ask(&served, None, "authorization: Bearer t0ken\r\n").starts_with("HTTP/1.1 200"));
    assert!(ask(&served, None, "").starts_with("HTTP/1.1 401"));
    served.stop();
    dedup(&format!(
        "serve --index {index} --listen 0.0.0.0:0 --tls-cert{keys}"
    ))
    .fails(64, &["--token-file"]);
}

/// A signal that comes right after the line that says that the server listens stops it, too.
#[test]
fn a_server_can_be_stopped_as_soon_as_it_listens() {
    let (_days, index) = index();
    for _ in 0..10 {
        Serving::start(&index, "").stop();
    }
}

#[test]
fn remembered_documents_are_cut_off_sorted_and_forgotten() {
    let (days, index) = index();
    let seen = days.dir.at("seen");
    let options = format!("--remember {seen} --remember-for 12s --remember-max 6");
    let served = Serving::start(&index, &options);
    let fp = format!("{:016x}", far(99));
    let ask = |id: &str, limit: usize| {
        let request = json!({ "fp": fp, "id": id, "limit": limit });
        served.ask("POST", "/v1/seen", &request.to_string())
    };
    let ids = |reply: &Reply| -> Vec<String> {
        let answer: Value = serde_json::from_str(&reply.body).unwrap();
        let hits = answer["hits"].as_array().unwrap().iter();
        hits.map(|hit| hit["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let more = |reply: &Reply| -> bool {
        let answer: Value = serde_json::from_str(&reply.body).unwrap();
        answer["more"].as_bool().unwrap()
    };
    for id in ["b", "a!", "a", "c"] {
        assert_eq!(ask(id, 9).status, 200);
    }
    let all = ask("x", 9);
    // By bytes: a text comes before those that begin with it.
    assert_eq!(
        (ids(&all), more(&all)),
        (["a", "a!", "b", "c"].map(str::to_owned).into(), false)
    );
    let some = ask("x", 2);
    assert_eq!((ids(&some).len(), more(&some)), (2, true));
    // What was sent again is written once.
    let bytes = |directory: &str| -> u64 {
        let files = std::fs::read_dir(directory).unwrap();
        files
            .map(|file| file.unwrap().metadata().unwrap().len())
            .sum()
    };
    let before = bytes(&seen);
    for _ in 0..5 {
        ask("x", 2);
    }
    assert_eq!(bytes(&seen), before);
    assert_eq!(ask("y", 9).status, 200);
    assert_eq!(ask("z", 9).status, 503);
    // Forgotten documents are not found, and take no room.
    let begin = Instant::now();
    let mut late = ask("z", 9);
    while late.status == 503 || !ids(&late).is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(500));
        late = ask("z", 9);
    }
    served.stop();
}

/// The texts of an answer that is too large are not copied before it is refused.
#[test]
fn an_answer_with_long_texts_is_refused_within_the_memory() {
    let dir = Dir::new();
    let (archive, index, pages) = (dir.at("archive"), dir.at("index"), dir.at("pages.jsonl"));
    let text = (0..30_000).map(|n| format!("w{n} ")).collect::<String>();
    let line = |n: usize| format!("{}\n", json!({ "id": format!("p{n}"), "text": text }));
    std::fs::write(&pages, (0..600).map(line).collect::<String>()).unwrap();
    dedup_ok(&format!("archive create --profile paper {archive}"));
    dedup_ok(&format!(
        "fingerprint {pages} --append {archive} --day 2026-01-01"
    ));
    dedup_ok(&format!("index build --base {archive} --output {index}"));
    let served = Serving::start(&index, &format!("--texts {pages}"));
    let before = served.memory();
    let request = json!({ "text": text, "limit": 10_000 }).to_string();
    assert_eq!(served.ask("POST", "/v1/lookup", &request).status, 413);
    let grown = served.memory().saturating_sub(before);
    // All texts together have 118 MB.
    assert!(grown < 80 << 20, "{grown}");
    served.stop();
}

/// Clients that claim long bodies, and send nothing, do not keep others out.
#[test]
fn claimed_bodies_take_no_room() {
    let (_days, index) = index();
    let served = Serving::start(&index, "");
    let head = "POST /v1/lookup HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1048576\r\n\r\n";
    let mut waiting: Vec<_> = (0..100).map(|_| served.client()).collect();
    for client in &mut waiting {
        client.0.get_mut().write_all(head.as_bytes()).unwrap();
    }
    std::thread::sleep(Duration::from_millis(300));
    let request = json!({ "fp": format!("{:016x}", far(1)) }).to_string();
    assert_eq!(served.ask("POST", "/v1/lookup", &request).status, 200);
    drop(waiting);
    served.stop();
}

#[test]
fn refusals_say_what_is_allowed() {
    let (days, index) = index();
    let token = days.dir.at("token");
    std::fs::write(&token, "secret").unwrap();
    let served = Serving::start(&index, &format!("--token-file {token}"));
    for (method, path, allowed) in [
        ("POST", "/healthz", "GET, HEAD"),
        ("GET", "/v1/lookup", "POST"),
    ] {
        let reply = served.ask(method, path, "");
        assert_eq!(reply.status, 405);
        assert!(
            reply
                .headers
                .to_lowercase()
                .contains(&format!("allow: {}\r\n", allowed.to_lowercase())),
            "{}",
            reply.headers
        );
    }
    served.stop();
    let served = Serving::start(&index, "");
    let reply = served.ask("POST", "/v1/lookup", "{\"fp\": 18446744073709551616}");
    assert_eq!(reply.status, 400);
    assert!(
        reply.body.contains("16 hexadecimal digits"),
        "{}",
        reply.body
    );
    served.stop();
}
