//! Records at the edges of what is damaged.

use super::*;

/// The header of a record does not end within the limit, and the next record starts just there.
#[test]
fn a_record_behind_a_header_of_the_limit_is_read() {
    let good = response(b"good");
    for length in MAX_HEADER - 12..MAX_HEADER + 3 {
        let mut bad = b"WARC/1.0\r\n".to_vec();
        while bad.len() + 100 < length {
            bad.extend([b'x'; 79]);
            bad.push(b'\n');
        }
        bad.resize(length - 1, b'x');
        bad.push(b'\n');
        let expected = [owned(&good), Owned::Broken(Fault::Header), owned(&good)];
        let file = [&good[..], &bad, &good].concat();
        for step in [1, 1 << 20] {
            assert_eq!(read(&file, step, LIMITS).0, expected, "{length} {step}");
        }
    }
}

/// A member of many records, whose checksum is wrong: a record with a wrong length waits for it, as in a short member.
#[test]
fn a_record_that_seems_cut_short_waits_for_the_checksum_of_a_long_member() {
    let records: Vec<Vec<u8>> = (0..60).map(|n| response(&noise(n, 3_000))).collect();
    let mut short = response(&noise(99, 3_000));
    let length = memmem::find(&short, b"3000").unwrap();
    short[length..length + 4].copy_from_slice(b"2000");
    let content = [records.concat(), short, records[..40].concat()].concat();
    let member = gzip_member(&content);
    let is_short =
        |event: &Owned| matches!(event, Owned::Record { block, .. } if block.len() == 2_000);
    assert_eq!(
        events(&member)
            .iter()
            .filter(|event| is_short(event))
            .count(),
        1
    );
    let found = events(&damaged_member(&content));
    assert!(!found.iter().any(is_short));
    assert!(found.contains(&Owned::Broken(Fault::Damaged)));
    assert_eq!(
        found[..50],
        records[..50]
            .iter()
            .map(|raw| owned(raw))
            .collect::<Vec<_>>()
    );
}

/// A record quotes another, and the member in which the quoted one goes on is damaged: what is behind that is no part of it.
#[test]
fn a_record_does_not_go_on_behind_a_damaged_member() {
    let good = response(b"good");
    let quoted = response(&noise(1, 600));
    let block = [b"quoted:\r\n", &quoted[..], &noise(2, 5_000)].concat();
    let whole = response(&block);
    let start = memmem::find(&whole, &quoted).unwrap() + 200;
    let parts = [
        &whole[..start],
        &whole[start..start + 1_000],
        &whole[start + 1_000..],
    ];
    let file = [
        gzip_member(&good),
        gzip_member(parts[0]),
        damaged_member(parts[1]),
        gzip_member(parts[2]),
        gzip_member(&good),
    ]
    .concat();
    let found = events(&file);
    assert_eq!(
        (&found[0], found.last()),
        (&owned(&good), Some(&owned(&good)))
    );
    let records = found
        .iter()
        .filter(|event| matches!(event, Owned::Record { .. }));
    assert_eq!(records.count(), 2, "{found:?}");
}
