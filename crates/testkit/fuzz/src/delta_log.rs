//! Fuzzes the readers of a Delta log with entries, checkpoints and records that are damaged or that
//! another program wrote. Every reader returns a value or an error, and no error is internal.
#![no_main]

use std::sync::Arc;

use archive::{Archive, ArchiveError, Scope, Snapshot};
use inputs::fixture::{self, ARCHIVE, Fixture};
use inputs::{Input, assert_not_internal, block_on, edited, json_edits, run};
use libfuzzer_sys::fuzz_target;
use object_store::memory::InMemory;
use object_store::path::Path;
use storage::Stores;

fuzz_target!(|bytes: &[u8]| run(|| {
    let fixture = fixture::fixture();
    block_on(async {
        let store = tampered_archive(fixture, Input::new(bytes)).await;
        let stores = fixture::stores(Arc::new(store));
        ok(read_all(fixture, &stores).await);
    });
}));

/// Returns the archive with one object edited or added.
async fn tampered_archive(fixture: &Fixture, mut input: Input<'_>) -> InMemory {
    let store = fixture.store.fork();
    let (texts, checkpoint) = (&fixture.texts, &fixture.checkpoint);
    let which = input.below(texts.len() + checkpoint.len() + 1);
    let with_checkpoint = (texts.len()..texts.len() + checkpoint.len()).contains(&which);
    if with_checkpoint || input.byte() % 4 == 0 {
        for (name, bytes) in checkpoint {
            fixture::put(&store, name, bytes.clone()).await;
        }
    }
    let (name, template) = match texts.iter().chain(checkpoint).nth(which) {
        Some((name, bytes)) => (name.clone(), bytes),
        // Adds an entry: an edited copy of the last one.
        None => {
            let entries = texts.iter().filter(|(name, _)| is_log_entry(name));
            let (_, last) = entries.last().expect("a log");
            let next = format!("archive/_delta_log/{:020}.json", fixture.days.len() + 1);
            (Path::from(next), last)
        }
    };
    // With its digest, each edited entry would be refused at once.
    let template = &without_digest(template);
    let text = std::str::from_utf8(template).ok();
    let bytes = match (input.byte() % 8, text) {
        (0, _) => input.rest().to_vec(),
        (1 | 2, _) | (_, None) => edited(template, &mut input),
        (_, Some(text)) => json_edits::edited_lines(text, &mut input).into_bytes(),
    };
    fixture::put(&store, &name, bytes).await;
    store
}

/// Returns an entry without the field that has its digest.
fn without_digest(entry: &[u8]) -> Vec<u8> {
    const FIELD: &[u8] = b"\"dedup-job.digest\":\"";
    const DIGITS: usize = 64;
    const END: &[u8] = b"\",";
    match entry.windows(FIELD.len()).position(|bytes| bytes == FIELD) {
        Some(at) => [&entry[..at], &entry[at + FIELD.len() + DIGITS + END.len()..]].concat(),
        None => entry.to_vec(),
    }
}

fn is_log_entry(name: &Path) -> bool {
    name.as_ref().contains("/_delta_log/")
}

/// Reads everything that a run and `archive info --verify` read.
async fn read_all(fixture: &Fixture, stores: &Stores) -> Result<(), ArchiveError> {
    let location = stores.locate(ARCHIVE)?;
    let archive = Archive::open(&location).await?;
    ok(archive.info());
    ok(archive.model().await);
    ok(archive.verify().await);
    ok(archive.rulings().await);
    ok(archive.later_batches(fixture.days[0].date, None));
    let mut scopes = vec![Scope::All];
    for day in &fixture.days {
        ok(archive.committed(day.date).await);
        ok(archive.committed_as(&day.file.digest).await);
        ok(archive.read_batch(day.date.into(), |_| {}).await);
        let scope = archive.scope_for(Some(day.date.into()), &day.file, None, None).await;
        scopes.extend(ok(scope).map(|(scope, _)| scope));
        scopes.push(Scope::Without(day.date.into()));
    }
    for scope in scopes {
        if let Some(base) = ok(Snapshot::open_archive(&archive, scope).await) {
            let _ = base.rows();
            let _ = base.days();
            let _ = engine::work_items::of_run(&base, 1000, 2);
        }
    }
    Ok(())
}

/// Returns the value of a result. Fails if its error is internal.
fn ok<T>(result: Result<T, ArchiveError>) -> Option<T> {
    result
        .map_err(|error| assert_not_internal(error.kind(), &error))
        .ok()
}
