//! Checks what a store answers to a list, before anything is left out or deleted on its word.
//!
//! An answer with status 200 may be no list: an error, or a proxy's page. Without a check it is an empty last page. And one key
//! that has no [`Path`], such as `a//b`, makes a whole list unreadable.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use object_store::client::{HttpError, HttpRequest, HttpResponse};
use object_store::path::Path;
use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, Event};

/// Requests for a page, after which an answer that is no list is an error.
const TRIES: u32 = 8;

/// What is wrong with a list, or with two pages of it, that show an object twice.
const TWICE: &str = "has an entry twice";

/// What the lists of all stores showed.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// Keys that are left out, because no [`Path`] can name them.
    odd_keys: Mutex<BTreeSet<String>>,
    /// How many answers to a request, by its URL, were no list.
    no_lists: Mutex<HashMap<String, u32>>,
    /// For each page of a list, the one before it, by the marks where they begin.
    before: Mutex<HashMap<(String, String), String>>,
    /// For each page of a list that is read next, the keys of the page before it.
    keys_before: Mutex<HashMap<(String, String), HashSet<String>>>,
}

impl Lists {
    /// The keys below `prefix` that are left out.
    pub(super) fn odd_keys(&self, prefix: &str) -> Vec<String> {
        let keys = self.odd_keys.lock().unwrap_or_else(PoisonError::into_inner);
        let below = keys.iter().filter(|key| key.starts_with(prefix));
        below.cloned().collect()
    }

    /// Notes that a page leads to the one at `next`; whether that is one before it.
    fn leads_back(&self, request: &PageRequest, next: &str) -> bool {
        let Some(mark) = &request.mark else {
            return false;
        };
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let mut at = mark.clone();
        loop {
            if at == next {
                return true;
            }
            match before.get(&(request.list.clone(), at)) {
                Some(earlier) => at = earlier.clone(),
                None => break,
            }
        }
        before.insert((request.list.clone(), next.to_owned()), mark.clone());
        false
    }

    /// Notes the keys of a page for the one behind it; whether the page before it has one of them.
    fn repeats(&self, request: &PageRequest, page: &List) -> bool {
        let mut all = self
            .keys_before
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let at = |mark: &str| (request.list.clone(), mark.to_owned());
        if let Some(mark) = &request.mark {
            let before = all.get(&at(mark));
            if before.is_some_and(|keys| !keys.is_disjoint(&page.keys)) {
                return true;
            }
            all.remove(&at(mark));
        }
        if !page.next.is_empty() {
            all.insert(at(&page.next), page.keys.clone());
        }
        false
    }

    /// Notes a page that is right, and its keys that are left out.
    fn note(&self, url: &str, odd: Vec<String>) {
        let mut no_lists = self.no_lists.lock().unwrap_or_else(PoisonError::into_inner);
        no_lists.remove(url);
        let mut odd_keys = self.odd_keys.lock().unwrap_or_else(PoisonError::into_inner);
        odd_keys.extend(odd);
    }

    /// Notes an answer that is no list; whether to ask again.
    fn is_asked_again(&self, url: &str) -> bool {
        let mut all = self.no_lists.lock().unwrap_or_else(PoisonError::into_inner);
        let number = all.entry(url.to_owned()).or_default();
        *number += 1;
        !number.is_multiple_of(TRIES)
    }
}

pub(super) struct PageRequest {
    url: String,
    /// The list, whatever its page.
    list: String,
    /// Where its page begins.
    mark: Option<String>,
}

/// What page of a list a request asks for, if it asks for one.
pub(super) fn page_request(request: &HttpRequest) -> Option<PageRequest> {
    let query = request.uri().query().unwrap_or_default();
    let pairs: Vec<_> = url::form_urlencoded::parse(query.as_bytes()).collect();
    let is_list = pairs
        .iter()
        .any(|(key, value)| matches!((&**key, &**value), ("list-type", "2") | ("comp", "list")));
    let marks = ["continuation-token", "marker"];
    let mark = pairs.iter().find(|(key, _)| marks.contains(&&**key));
    (is_list && request.method().as_str() == "GET").then(|| PageRequest {
        url: request.uri().to_string(),
        list: {
            let others = pairs.iter().filter(|(key, _)| !marks.contains(&&**key));
            let others = others.map(|(key, value)| format!("{key}={value}&"));
            format!("{}?{}", request.uri().path(), others.collect::<String>())
        },
        mark: mark.map(|(_, value)| value.to_string()),
    })
}

/// Checks the answer to a request for a page of a list, and takes out the entries that no path can name. An answer that is no list gets
/// status 503, which the client retries, and after [`TRIES`] of them 400, which it does not.
pub(super) async fn checked(
    answer: HttpResponse,
    request: &PageRequest,
    lists: &Lists,
) -> Result<HttpResponse, HttpError> {
    if !answer.status().is_success() {
        return Ok(answer);
    }
    let (mut parts, body) = answer.into_parts();
    let body = body.bytes().await?;
    let checked = check(&body, request.mark.as_deref()).and_then(|list| {
        if !list.next.is_empty() && lists.leads_back(request, &list.next) {
            Err(NoList::Other("leads back to an earlier page"))
        } else if lists.repeats(request, &list) {
            Err(NoList::Other(TWICE))
        } else {
            Ok(list)
        }
    });
    let body = match checked {
        Ok(List { left_out, odd, .. }) => {
            lists.note(&request.url, odd);
            without(body, &left_out)
        }
        Err(reason) => {
            let again = lists.is_asked_again(&request.url);
            let status = if again { 503 } else { 400 };
            parts.status = status.try_into().unwrap_or(parts.status);
            match reason {
                NoList::Error => body,
                NoList::Other(reason) => format!(
                    "<Error><Code>NoList</Code><Message>the answer to a list {reason}</Message></Error>"
                )
                .into(),
            }
        }
    };
    Ok(HttpResponse::from_parts(parts, body.into()))
}

/// Why an answer is no list.
#[derive(Debug, PartialEq, Eq)]
enum NoList {
    /// The service says what failed.
    Error,
    Other(&'static str),
}

/// A page of a list.
#[derive(Debug, Default, PartialEq, Eq)]
struct List {
    /// Bytes of the entries that no path can name, and of marks of folders.
    left_out: Vec<Range<usize>>,
    /// The keys that no path can name.
    odd: Vec<String>,
    /// The keys of all objects.
    keys: HashSet<String>,
    /// Where the next page begins; empty behind the last.
    next: String,
}

/// The body without these ranges, which ascend.
fn without(body: Bytes, ranges: &[Range<usize>]) -> Bytes {
    if ranges.is_empty() {
        return body;
    }
    let mut rest = Vec::with_capacity(body.len());
    let mut from = 0;
    for range in ranges {
        rest.extend_from_slice(&body[from..range.start]);
        from = range.end;
    }
    rest.extend_from_slice(&body[from..]);
    rest.into()
}

/// Checks a page that begins at `mark`.
fn check(body: &[u8], mark: Option<&str>) -> Result<List, NoList> {
    let malformed = NoList::Other("is no XML, or is cut off");
    let mut reader = Reader::from_reader(body);
    let mut list = List::default();
    // Names of the open elements, and the text of the innermost.
    let mut open: Vec<Vec<u8>> = Vec::new();
    let mut text = String::new();
    let (mut entry_start, mut key, mut size) = (0, String::new(), String::new());
    let (mut is_whole, mut is_truncated, mut next) = (false, false, String::new());
    loop {
        let start = reader.buffer_position() as usize;
        let event = reader.read_event();
        match event.map_err(|_| NoList::Other("is no XML, or is cut off"))? {
            Event::Start(element) => {
                let name = element.local_name().as_ref().to_vec();
                match (open.len(), name.as_slice()) {
                    (0, b"ListBucketResult" | b"EnumerationResults") => {}
                    (0, b"Error") => return Err(NoList::Error),
                    (0, _) => {
                        return Err(NoList::Other("is something else, such as a proxy's page"));
                    }
                    (_, b"Contents" | b"CommonPrefixes" | b"Blob" | b"BlobPrefix") => {
                        entry_start = start;
                        size.clear();
                    }
                    _ => {}
                }
                open.push(name);
                text.clear();
            }
            Event::End(_) => {
                let name = open.pop().unwrap_or_default();
                let parent = open.last().map_or(&b""[..], Vec::as_slice);
                match (parent, name.as_slice()) {
                    (b"Contents", b"Key")
                    | (b"CommonPrefixes", b"Prefix")
                    | (b"Blob" | b"BlobPrefix", b"Name") => key = std::mem::take(&mut text),
                    (b"Contents", b"Size") | (_, b"Content-Length") => {
                        size = std::mem::take(&mut text);
                    }
                    (_, b"Contents" | b"CommonPrefixes" | b"Blob" | b"BlobPrefix") => {
                        let is_file = matches!(name.as_slice(), b"Contents" | b"Blob");
                        if is_file && !list.keys.insert(key.clone()) {
                            return Err(NoList::Other(TWICE));
                        }
                        // An empty object whose key ends so is the mark of a folder.
                        let is_folder = is_file && key.ends_with('/');
                        let is_mark = is_folder && size.trim() == "0";
                        let is_odd = !is_mark && (is_folder || Path::parse(&key).is_err());
                        if is_odd || is_mark {
                            list.left_out
                                .push(entry_start..reader.buffer_position() as usize);
                        }
                        if is_odd {
                            list.odd.push(std::mem::take(&mut key));
                        }
                    }
                    (b"ListBucketResult", b"IsTruncated") => is_truncated = text.trim() == "true",
                    (b"ListBucketResult", b"NextContinuationToken")
                    | (b"EnumerationResults", b"NextMarker") => next = std::mem::take(&mut text),
                    (b"", _) => is_whole = true,
                    _ => {}
                }
            }
            Event::Text(part) => text.push_str(&part.decode().unwrap_or_default()),
            Event::CData(part) => text.push_str(&part.decode().unwrap_or_default()),
            Event::GeneralRef(reference) => text.push_str(&resolved(&reference)),
            Event::Empty(_) if open.is_empty() => return Err(malformed),
            Event::Eof => break,
            _ => {}
        }
    }
    match next.as_str() {
        _ if !is_whole => Err(malformed),
        "" if is_truncated => Err(NoList::Other("has no token for the pages behind it")),
        next if !next.is_empty() && mark == Some(next) => Err(NoList::Other("leads to itself")),
        _ => Ok(List { next, ..list }),
    }
}

/// The text that a reference such as `&amp;` stands for; nothing if it is unknown.
fn resolved(reference: &BytesRef<'_>) -> String {
    if let Ok(Some(character)) = reference.resolve_char_ref() {
        return character.into();
    }
    let name = reference.decode().unwrap_or_default();
    resolve_predefined_entity(&name).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s3(content: &str) -> String {
        format!(
            "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3/\">{content}</ListBucketResult>"
        )
    }

    #[test]
    fn an_answer_that_is_no_list_is_refused() {
        let whole = s3("<IsTruncated>false</IsTruncated>");
        let other = "is something else, such as a proxy's page";
        let malformed = "is no XML, or is cut off";
        let no_token = s3("<IsTruncated>true</IsTruncated>");
        let twice = s3(&"<Contents><Key>a</Key></Contents>".repeat(2));
        let blob_twice = "<EnumerationResults><Blobs><Blob><Name>a</Name></Blob><Blob><Name>a</Name></Blob></Blobs></EnumerationResults>";
        let same = s3("<NextContinuationToken>a&amp;b</NextContinuationToken>");
        let azure =
            "<EnumerationResults><Blobs/><NextMarker>a&amp;b</NextMarker></EnumerationResults>";
        for (body, reason) in [
            ("", malformed),
            ("upstream timed out", malformed),
            ("<html><body>Sign in</body></html>", other),
            (&whole[..whole.len() - 3], malformed),
            ("<ListBucketResult/>", malformed),
            (&no_token, "has no token for the pages behind it"),
            (&same, "leads to itself"),
            (azure, "leads to itself"),
            (&twice, TWICE),
            (blob_twice, TWICE),
        ] {
            let checked = check(body.as_bytes(), Some("a&b"));
            assert_eq!(checked, Err(NoList::Other(reason)), "{body}");
        }
        let error = check(b"<Error><Code>SlowDown</Code></Error>", None);
        assert_eq!(error, Err(NoList::Error));
        for (body, next) in [(whole.as_str(), ""), (&same, "a&b"), (azure, "a&b")] {
            let next = next.to_owned();
            let list = List {
                next,
                ..List::default()
            };
            assert_eq!(check(body.as_bytes(), None), Ok(list), "{body}");
        }
    }

    #[test]
    fn pages_that_lead_back_are_noticed() {
        let lists = Lists::default();
        let page = |mark: Option<&str>| PageRequest {
            url: String::new(),
            list: "day/".into(),
            mark: mark.map(str::to_owned),
        };
        // A list may be asked for again.
        for _ in 0..2 {
            assert!(!lists.leads_back(&page(None), "a"));
            assert!(!lists.leads_back(&page(Some("a")), "b"));
            assert!(!lists.leads_back(&page(Some("b")), "c"));
        }
        for earlier in ["a", "b", "c"] {
            assert!(lists.leads_back(&page(Some("c")), earlier), "{earlier}");
        }
    }

    #[test]
    fn an_entry_of_the_page_before_is_noticed() {
        let lists = Lists::default();
        let repeats = |mark: Option<&str>, keys: &[&str], next: &str| {
            let request = PageRequest {
                url: String::new(),
                list: "day/".into(),
                mark: mark.map(str::to_owned),
            };
            let page = List {
                keys: keys.iter().map(|key| (*key).to_owned()).collect(),
                next: next.to_owned(),
                ..List::default()
            };
            lists.repeats(&request, &page)
        };
        // A list may be asked for again.
        for _ in 0..2 {
            assert!(!repeats(None, &["a", "b"], "1"));
            assert!(repeats(Some("1"), &["b", "c"], "2"));
            assert!(!repeats(Some("1"), &["c", "d"], "2"));
            assert!(repeats(Some("2"), &["c"], ""));
            assert!(!repeats(Some("2"), &["e"], ""));
        }
        assert!(lists.keys_before.lock().unwrap().is_empty());
    }

    #[test]
    fn keys_without_a_path_and_marks_of_folders_are_left_out() {
        let entry = |key: &str| format!("<Contents><Key>{key}</Key><Size>1</Size></Contents>");
        let kept = [entry("a/b"), entry("a/x&amp;y&#33;"), entry("ä")].concat();
        let body = s3(&[
            &entry("a/b")[..],
            &entry("a//b"),
            &entry("folder/").replace(">1<", ">0<"),
            &entry("no-folder/"),
            &entry("a/x&amp;y&#33;"),
            &entry("a/./&lt;b"),
            &entry("a\tb"),
            &entry("ä"),
            "<CommonPrefixes><Prefix>c/</Prefix></CommonPrefixes>",
            "<CommonPrefixes><Prefix>c//</Prefix></CommonPrefixes>",
        ]
        .concat());
        let list = check(body.as_bytes(), None).unwrap();
        assert_eq!(list.odd, ["a//b", "no-folder/", "a/./<b", "a\tb", "c//"]);
        let rest = without(body.into(), &list.left_out);
        let expected = s3(&format!(
            "{kept}<CommonPrefixes><Prefix>c/</Prefix></CommonPrefixes>"
        ));
        assert_eq!(std::str::from_utf8(&rest).unwrap(), expected);
    }
}
