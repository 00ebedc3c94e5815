//! The names of files below their common directory.

use std::path::Path;

use storage::Location;

use super::Columns;

/// The names of files below their common directory; of those that are kept for this run alone, their own names, with that of the
/// directory where one name repeats.
pub(super) fn short_names(locations: &[Location], columns: &Columns) -> Vec<String> {
    let is_spooled = |location: &&Location| {
        let directory = columns.spooled.as_deref();
        let local = location.local();
        local
            .zip(directory)
            .is_some_and(|(local, directory)| local.starts_with(directory))
    };
    let others = locations.iter().filter(|location| !is_spooled(location));
    let others: Vec<String> = others.map(Location::absolute_name).collect();
    let common = common_directory(&others);
    let mut others = others.iter().map(|path| path[common..].to_owned());
    let name = |location: &Location| {
        if is_spooled(&location) {
            let name = location.file_name();
            let same = locations.iter().filter(is_spooled);
            let is_repeated = same.filter(|other| other.file_name() == name).count() > 1;
            let directory = location
                .local()
                .and_then(Path::parent)
                .and_then(Path::file_name);
            match directory.filter(|_| is_repeated) {
                Some(directory) => format!("{}/{name}", directory.to_string_lossy()),
                None => name,
            }
        } else {
            others.next().unwrap_or_default()
        }
    };
    locations.iter().map(name).collect()
}

/// The length in bytes of the longest directory, with its slash, that all `paths` begin with.
fn common_directory(paths: &[String]) -> usize {
    let Some((first, others)) = paths.split_first() else {
        return 0;
    };
    let directory = |bytes: &[u8]| {
        bytes
            .iter()
            .rposition(|&byte| byte == b'/')
            .map_or(0, |at| at + 1)
    };
    others
        .iter()
        .fold(directory(first.as_bytes()), |common, path| {
            let both = first.as_bytes()[..common].iter().zip(path.as_bytes());
            let same = both.take_while(|(a, b)| a == b).count();
            directory(&first.as_bytes()[..same])
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_directory_is_whole() {
        let common = |paths: &[&str]| {
            let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
            common_directory(&paths)
        };
        assert_eq!(common(&["/a/b/c.csv"]), 5);
        assert_eq!(common(&["/a/b/c.csv", "/a/bc/c.csv"]), 3);
        // These share the first byte of a character.
        assert_eq!(common(&["/a/\u{e4}/c.csv", "/a/\u{f6}/c.csv"]), 3);
        assert_eq!(common(&["/a/b.csv", "s3://x/b.csv"]), 0);
        assert_eq!(common(&[]), 0);
    }
}
