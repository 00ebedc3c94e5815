//! Digests of records: `algorithm:value`, the value in base32 as a rule, or in hexadecimal or base64.

use md5::Md5;
use memchr::memchr;
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha512};

/// Whether `digest` is the digest of `bytes`; `None` if its algorithm is unknown.
pub(crate) fn is_digest_of(digest: &[u8], bytes: &[u8]) -> Option<bool> {
    let colon = memchr(b':', digest)?;
    let (algorithm, value) = (
        digest[..colon].trim_ascii(),
        digest[colon + 1..].trim_ascii(),
    );
    let is = |name: &str| algorithm.eq_ignore_ascii_case(name.as_bytes());
    if is("sha1") || is("sha-1") {
        Some(is_encoding_of(value, &Sha1::digest(bytes)))
    } else if is("sha256") || is("sha-256") {
        Some(is_encoding_of(value, &Sha256::digest(bytes)))
    } else if is("sha512") || is("sha-512") {
        Some(is_encoding_of(value, &Sha512::digest(bytes)))
    } else if is("md5") {
        Some(is_encoding_of(value, &Md5::digest(bytes)))
    } else {
        None
    }
}

/// Whether `value` is `digest` in hexadecimal, base32 or base64, which their lengths tell apart. MD5 in base32 is as long as in hexadecimal, because it is padded.
fn is_encoding_of(value: &[u8], digest: &[u8]) -> bool {
    if value.len() == 2 * digest.len() && !value.ends_with(b"=") {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        let is_byte = |(pair, byte): (&[u8], &u8)| {
            let (high, low) = (digit(pair[0]), digit(pair[1]));
            high.zip(low).map(|(high, low)| 16 * high + low) == Some(u32::from(*byte))
        };
        return value.chunks_exact(2).zip(digest).all(is_byte);
    }
    let padding = value.iter().rev().take_while(|byte| **byte == b'=');
    let value = &value[..value.len() - padding.count()];
    let has_length = |bits: usize| value.len() == (8 * digest.len()).div_ceil(bits);
    let mut digits = value.iter().enumerate();
    if has_length(5) {
        return digits.all(|(number, digit)| {
            let expected = BASE32[bits_of_digit(digest, 5, number)];
            digit.eq_ignore_ascii_case(&expected)
        });
    }
    has_length(6)
        && digits.all(|(number, &digit)| {
            let expected = BASE64[bits_of_digit(digest, 6, number)];
            // Of URLs and files, the other alphabet.
            digit == expected || matches!((digit, expected), (b'-', b'+') | (b'_', b'/'))
        })
}

/// The digits of base32 and base64 (RFC 4648).
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The value of one digit, `number` from 0 on, when `bytes` are written in digits of `bits` bits each. The last digit may have fewer
/// bits of `bytes`, and then zeros.
fn bits_of_digit(bytes: &[u8], bits: usize, number: usize) -> usize {
    let (at, shift) = (bits * number / 8, bits * number % 8);
    let next = bytes.get(at + 1).copied().unwrap_or(0);
    let both = u16::from_be_bytes([bytes[at], next]);
    usize::from(both >> (16 - bits - shift)) & ((1 << bits) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_compared_in_either_encoding() {
        // Of the empty text, from the RFCs and FIPS 180.
        for digest in [
            "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
            "sha1:3i42h3s6nnfq2msvx7xzkyayscx5qbyj",
            "SHA-1: DA39A3EE5E6B4B0D3255BFEF95601890AFD80709",
            "md5:d41d8cd98f00b204e9800998ecf8427e",
            "md5:2QOYZWMPACZAJ2MABGMOZ6CCPY",
            "md5:2QOYZWMPACZAJ2MABGMOZ6CCPY======",
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "sha256:4OYMIQUY7QOBJGX36TEJS35ZEQT24QPEMSNZGTFESWMRW6CSXBKQ====",
            "sha256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
            "sha256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU",
        ] {
            assert_eq!(is_digest_of(digest.as_bytes(), b""), Some(true), "{digest}");
            assert_eq!(
                is_digest_of(digest.as_bytes(), b"x"),
                Some(false),
                "{digest}"
            );
        }
        let sha512 = format!("sha512:cf83e1357eefb8bd{}", "0".repeat(112));
        assert_eq!(is_digest_of(sha512.as_bytes(), b""), Some(false));
    }

    #[test]
    fn unknown_algorithms_are_no_answer() {
        for digest in ["", "sha1", "crc32:00000000", "xxh3:1"] {
            assert_eq!(is_digest_of(digest.as_bytes(), b""), None, "{digest}");
        }
        for wrong in [
            "",
            "3I42",
            "hello",
            "zz39a3ee5e6b4b0d3255bfef95601890afd80709",
        ] {
            let digest = format!("sha1:{wrong}");
            assert_eq!(is_digest_of(digest.as_bytes(), b""), Some(false), "{wrong}");
        }
    }
}
