//! Numbers, names and keys as bytes.

use std::io::Read as _;

/// The most bytes that a file has without zstd.
const MOST_BYTES: u64 = 1 << 33;
const LEVEL: i32 = 3;

/// Why bytes are not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no templates, or damaged ones")]
pub struct Damaged;

/// `magic`, then `body` with zstd.
pub(crate) fn compress(body: &[u8], magic: &[u8]) -> Vec<u8> {
    let mut bytes = magic.to_vec();
    // Writing to memory does not fail.
    let written = zstd::stream::copy_encode(body, &mut bytes, LEVEL);
    debug_assert!(written.is_ok());
    bytes
}

/// What [`compress`] made bytes of.
pub(crate) fn decompress(bytes: &[u8], magic: &[u8]) -> Result<Vec<u8>, Damaged> {
    let body = bytes.strip_prefix(magic).ok_or(Damaged)?;
    let decoder = zstd::stream::Decoder::new(body).map_err(|_| Damaged)?;
    let mut found = Vec::new();
    let read = decoder.take(MOST_BYTES + 1).read_to_end(&mut found);
    match read {
        Ok(bytes) if bytes as u64 <= MOST_BYTES => Ok(found),
        _ => Err(Damaged),
    }
}

pub(crate) fn write(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(crate) fn read(bytes: &mut &[u8]) -> Result<u64, Damaged> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or(Damaged)?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(Damaged)
}

pub(crate) fn read_u32(bytes: &mut &[u8]) -> Result<u32, Damaged> {
    u32::try_from(read(bytes)?).map_err(|_| Damaged)
}

pub(crate) fn write_name(out: &mut Vec<u8>, name: &str) {
    write(out, name.len() as u64);
    out.extend_from_slice(name.as_bytes());
}

pub(crate) fn read_name<'b>(bytes: &mut &'b [u8]) -> Result<&'b str, Damaged> {
    let len = usize::try_from(read(bytes)?).map_err(|_| Damaged)?;
    let (name, rest) = bytes.split_at_checked(len).ok_or(Damaged)?;
    *bytes = rest;
    std::str::from_utf8(name).map_err(|_| Damaged)
}

/// Writes ascending keys.
pub(crate) fn write_keys(out: &mut Vec<u8>, keys: &[u32]) {
    write(out, keys.len() as u64);
    let mut last = 0;
    for key in keys {
        write(out, u64::from(key - last));
        last = *key;
    }
}

pub(crate) fn read_keys(bytes: &mut &[u8]) -> Result<Vec<u32>, Damaged> {
    let count = read(bytes)?;
    // Each takes a byte at least.
    if count > bytes.len() as u64 {
        return Err(Damaged);
    }
    let mut keys = Vec::with_capacity(count as usize);
    let mut last = 0_u32;
    for number in 0..count {
        let step = read_u32(bytes)?;
        if step == 0 && number > 0 {
            return Err(Damaged);
        }
        last = last.checked_add(step).ok_or(Damaged)?;
        keys.push(last);
    }
    Ok(keys)
}
