//! The objects of a JSON array, cut out of the file one by one, so that no array takes more memory than its longest object.

use std::io::{self, BufRead};

/// The byte order mark that some programs write at the start of a UTF-8 file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

pub(super) struct Array {
    /// Number of the line in which the last object begins, from 1 on.
    pub(super) line: u64,
    /// Number of the line that is read.
    next_line: u64,
    objects: u64,
    is_ended: bool,
}

pub(super) enum Element {
    Object,
    /// The end of the array and of the file.
    End,
    TooLong,
    /// Something else, for this reason.
    Bad(&'static str),
}

impl Array {
    /// Skips the byte order mark and the white space at the start of a file, and the bracket if the file is an array. Returns
    /// the number of the line that comes next, from 1 on, and the array, if it is one.
    pub(super) fn begin(bytes: &mut impl BufRead) -> io::Result<(u64, Option<Self>)> {
        // A part of a file may be shorter than the mark.
        for byte in BYTE_ORDER_MARK {
            if bytes.fill_buf()?.first() == Some(byte) {
                bytes.consume(1);
            }
        }
        let mut array = Self {
            line: 1,
            next_line: 1,
            objects: 0,
            is_ended: false,
        };
        let is_array = array.skip_space(bytes)? == Some(b'[');
        if is_array {
            bytes.consume(1);
        }
        array.line = array.next_line;
        Ok((array.line, is_array.then_some(array)))
    }

    /// Appends the next object to `text`. After the end, it ends again.
    pub(super) fn next(
        &mut self,
        bytes: &mut impl BufRead,
        most: usize,
        text: &mut Vec<u8>,
    ) -> io::Result<Element> {
        if self.is_ended {
            return Ok(Element::End);
        }
        let mut next = self.skip_space(bytes)?;
        if self.objects > 0 && next == Some(b',') {
            bytes.consume(1);
            next = self.skip_space(bytes)?;
            if next == Some(b']') {
                return Ok(Element::Bad("an object is missing after the last comma"));
            }
        } else if self.objects > 0 && next == Some(b'{') {
            return Ok(Element::Bad("a comma is missing between two objects"));
        }
        self.line = self.next_line;
        match next {
            Some(b'{') => self.copy_object(bytes, most, text),
            Some(b']') => {
                bytes.consume(1);
                Ok(match self.skip_space(bytes)? {
                    None => {
                        self.is_ended = true;
                        Element::End
                    }
                    Some(_) => Element::Bad("there is more after the end of the array"),
                })
            }
            Some(_) => Ok(Element::Bad("expected an object of the array")),
            None => Ok(Element::Bad("the file ends inside the array")),
        }
    }

    /// Copies an object up to the brace that closes it; strings may have braces.
    fn copy_object(
        &mut self,
        bytes: &mut impl BufRead,
        most: usize,
        text: &mut Vec<u8>,
    ) -> io::Result<Element> {
        let (mut depth, mut in_string, mut is_escaped) = (0_u64, false, false);
        loop {
            let part = bytes.fill_buf()?;
            if part.is_empty() {
                return Ok(Element::Bad("the file ends inside an object"));
            }
            let mut end = None;
            for (at, &byte) in part.iter().enumerate() {
                match byte {
                    _ if is_escaped => is_escaped = false,
                    b'\\' if in_string => is_escaped = true,
                    b'"' => in_string = !in_string,
                    b'{' if !in_string => depth += 1,
                    b'}' if !in_string => {
                        depth -= 1;
                        if depth == 0 {
                            end = Some(at + 1);
                            break;
                        }
                    }
                    b'\n' => self.next_line += 1,
                    _ => {}
                }
            }
            let read = end.unwrap_or(part.len());
            if text.len() + read > most {
                return Ok(Element::TooLong);
            }
            text.extend_from_slice(&part[..read]);
            bytes.consume(read);
            if end.is_some() {
                self.objects += 1;
                return Ok(Element::Object);
            }
        }
    }

    /// Skips white space; returns the byte after it, and `None` at the end of the file.
    fn skip_space(&mut self, bytes: &mut impl BufRead) -> io::Result<Option<u8>> {
        loop {
            let part = bytes.fill_buf()?;
            let found = part.iter().position(|byte| !byte.is_ascii_whitespace());
            let space = &part[..found.unwrap_or(part.len())];
            let lines = space.iter().filter(|&&byte| byte == b'\n');
            self.next_line += lines.count() as u64;
            let (next, read) = (found.map(|at| part[at]), space.len());
            let is_end = part.is_empty();
            bytes.consume(read);
            if next.is_some() || is_end {
                return Ok(next);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    /// The objects of a file that comes in parts of `part` bytes, and how it ends.
    fn read(file: &str, part: usize) -> Option<(Vec<String>, &'static str)> {
        let mut bytes = BufReader::with_capacity(part, file.as_bytes());
        let mut array = Array::begin(&mut bytes).unwrap().1?;
        let mut objects = Vec::new();
        loop {
            let mut text = Vec::new();
            let element = array.next(&mut bytes, 40, &mut text).unwrap();
            match element {
                Element::Object => {
                    let text = String::from_utf8(text).unwrap();
                    objects.push(format!("{}:{text}", array.line));
                }
                Element::End => {
                    let again = array.next(&mut bytes, 40, &mut text).unwrap();
                    assert!(matches!(again, Element::End));
                    return Some((objects, ""));
                }
                Element::TooLong => return Some((objects, "too long")),
                Element::Bad(reason) => return Some((objects, reason)),
            }
        }
    }

    #[test]
    fn objects_are_cut_out_whatever_the_parts() {
        let long = format!("[{{\"a\":\"{}\"}}]", "x".repeat(40));
        let cases: [(&str, &[&str], &str); 11] = [
            ("[]", &[], ""),
            ("\u{feff}[{}]", &["1:{}"], ""),
            (
                "[\n{\"a\":{\"b\":[1]}},\n\n {\"c\":\"}{\\\"\"}\n]\n",
                &["2:{\"a\":{\"b\":[1]}}", "4:{\"c\":\"}{\\\"\"}"],
                "",
            ),
            (
                "[{}{}]",
                &["1:{}"],
                "a comma is missing between two objects",
            ),
            (
                "[{},]",
                &["1:{}"],
                "an object is missing after the last comma",
            ),
            (
                "[{}] x",
                &["1:{}"],
                "there is more after the end of the array",
            ),
            ("[{}", &["1:{}"], "the file ends inside the array"),
            ("[{\"a\":\"}", &[], "the file ends inside an object"),
            ("[,{}]", &[], "expected an object of the array"),
            ("[1]", &[], "expected an object of the array"),
            (&long, &[], "too long"),
        ];
        for (file, objects, end) in cases {
            for part in [1, 2, 3, 7, 1000] {
                let (found, ended) = read(file, part).unwrap();
                assert_eq!(found, objects, "{file}, {part}");
                assert_eq!(ended, end, "{file}, {part}");
            }
        }
        assert!(read("{\"a\":1}\n[", 1000).is_none());
        assert!(read("", 1).is_none());
    }
}
