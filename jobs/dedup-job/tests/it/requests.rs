//! How many requests commands send to a store, at two sizes of an archive. Counts, never times: what grows is what a night would
//! wait for after ten years.

use std::fs;

use testkit::proxy::{Fault, Request};

use crate::helpers::servers::*;
use crate::helpers::support::*;

/// Requests of a command: those for data files of the archive, those that read records of days, and all others.
#[derive(Debug)]
struct Sent {
    to_data: usize,
    of_records: usize,
    others: usize,
}

/// Sends the command `line` through a proxy, and counts its requests.
fn sent(storage: &Storage, line: &str) -> Sent {
    let (through, proxy) = storage.through(|_| Fault::Pass);
    through.dedup_ok(line);
    let requests = proxy.requests();
    let is_data = |path: &str| path.contains("/part-") && path.ends_with(".parquet");
    let to_data = requests.iter().filter(|sent| is_data(sent.path())).count();
    let is_record =
        |sent: &&Request| sent.method == "GET" && sent.path().contains("/_dedup-job/days/");
    let of_records = requests.iter().filter(is_record).count();
    Sent {
        to_data,
        of_records,
        others: requests.len() - to_data - of_records,
    }
}

/// Faults 108 to 110: the log is read once, a small data file is fetched once, and nothing else grows with the days.
#[test]
fn requests_grow_by_one_for_each_day_at_most() {
    let Some(storage) = seaweed() else { return };
    let dir = Dir::new();
    let (index, ids) = (dir.at("index"), dir.at("ids.txt"));
    fs::write(&ids, "nobody\n").unwrap();
    let sizes = [20, 100];
    let at = sizes.map(|days| {
        let at = storage.unique(&format!("days-{days}"));
        let of = format!("--new 50 --base {} --days {days}", 20 * days);
        storage.dedup_ok(&format!("generate fingerprints --output {at} {of} -q"));
        at
    });
    // Each with the requests that it sends for each data file.
    let commands: [(&str, usize); 8] = [
        (
            "run {at}/day.parquet --base {at}/archive --output {at}/hits.parquet",
            1,
        ),
        (
            "run {at}/day.parquet --base {at}/archive --output {at}/again.parquet --append --day 2030-01-01",
            1,
        ),
        ("archive info {at}/archive", 0),
        ("archive vacuum {at}/archive --dry-run", 0),
        ("archive info {at}/archive --verify", 1),
        ("archive remove {at}/archive --ids {ids}", 1),
        ("history {at}/archive nobody", 1),
        ("index build --base {at}/archive --output {index}-{days}", 1),
    ];
    for (command, of_file) in commands {
        let [few, many] = [0, 1].map(|size| {
            let line = command
                .replace("{at}", &at[size])
                .replace("{ids}", &ids)
                .replace("{index}", &index)
                .replace("{days}", &sizes[size].to_string());
            sent(&storage, &line)
        });
        println!("{command}: {few:?} {many:?}");
        // The files that a run itself writes are a few more.
        let files = |days: usize| of_file * days + 6;
        assert!(few.to_data <= files(sizes[0]), "{command}: {few:?}");
        assert!(many.to_data <= files(sizes[1]), "{command}: {many:?}");
        assert!(
            many.of_records <= of_file * sizes[1] + 6,
            "{command}: {many:?}"
        );
        assert!(many.others <= few.others + 4, "{command}: {few:?} {many:?}");
        assert!(many.others <= 80, "{command}: {many:?}");
    }
}
