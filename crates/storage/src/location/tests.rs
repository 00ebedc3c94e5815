//! Expansion of paths, in the file system and in a store.

use std::path::Path as FsPath;
use std::sync::Arc;

use object_store::ObjectStoreExt as _;
use object_store::memory::InMemory;
use object_store::path::Path;
use url::Url;

use super::{Expansion, Location};
use crate::error::{Result, StorageError};
use crate::error_kind::ErrorKind;
use crate::store::Stores;

/// The files that a path without a table stands for.
async fn files(stores: &Stores, given: &str) -> Result<Vec<Location>> {
    match stores.expand(given, &[".parquet"]).await? {
        Expansion::Files(files, _) => Ok(files),
        Expansion::Table(table) => panic!("{table} is a table"),
    }
}

const NAMES: [&str; 7] = [
    "b.parquet",
    "a.parquet",
    "_log.parquet",
    "c.txt",
    "day=2026-01-01/d.parquet",
    "day=2026-01-01/.x/e.parquet",
    "day=2026-01-01/_y/f.parquet",
];

/// The names that a path below `root` expands to.
async fn names(stores: &Stores, root: &str, below: &str) -> Result<Vec<String>> {
    let files = files(stores, &format!("{root}{below}")).await?;
    let root = stores.locate(root)?;
    let name = |file: Location| {
        let path = file.path().as_ref().strip_prefix(root.path().as_ref());
        path.unwrap().trim_start_matches('/').to_owned()
    };
    Ok(files.into_iter().map(name).collect())
}

async fn check_expansions(stores: &Stores, root: &str) {
    let names = async |below: &str| names(stores, root, below).await;
    let of_day = ["day=2026-01-01/_y/f.parquet", "day=2026-01-01/d.parquet"];
    let all = ["a.parquet", "b.parquet", of_day[0], of_day[1]];
    assert_eq!(names("").await.unwrap(), all);
    assert_eq!(names("/").await.unwrap(), all);
    assert_eq!(
        names("/[ab].parquet").await.unwrap(),
        ["a.parquet", "b.parquet"]
    );
    assert_eq!(names("/day=*").await.unwrap(), of_day);
    assert_eq!(
        names("/*/d.parquet").await.unwrap(),
        ["day=2026-01-01/d.parquet"]
    );
    assert_eq!(names("/c.txt").await.unwrap(), ["c.txt"]);
    assert_eq!(
        names("/*.parquet").await.unwrap(),
        ["a.parquet", "b.parquet"]
    );
    assert_eq!(names("/_*").await.unwrap(), ["_log.parquet"]);
    for missing in ["/x*", "/missing", "/missing/"] {
        let error = names(missing).await.unwrap_err();
        assert!(matches!(error, StorageError::NotFound { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn expands_files_directories_and_patterns() {
    let directory = tempfile::tempdir().unwrap();
    write_files(directory.path(), NAMES.map(str::to_owned));
    let root = directory.path().to_str().unwrap();
    check_expansions(&Stores::default(), root).await;
}

#[tokio::test]
async fn expands_objects_as_it_does_files() {
    let stores = stores_with_objects(NAMES.map(|name| format!("crawl/{name}"))).await;
    check_expansions(&stores, "s3://bucket/crawl").await;
}

/// Stores with objects in `s3://bucket`, each with its path as its content.
async fn stores_with_objects(paths: impl IntoIterator<Item = String>) -> Stores {
    let store = InMemory::new();
    for path in paths {
        let content = path.clone().into_bytes();
        let path = Path::parse(path).unwrap();
        store.put(&path, content.into()).await.unwrap();
    }
    let stores = Stores::default();
    stores.register(&Url::parse("s3://bucket").unwrap(), Arc::new(store));
    stores
}

/// Writes local files, each with its path below `root` as its content.
fn write_files(root: &FsPath, paths: impl IntoIterator<Item = String>) {
    for name in paths {
        let path = root.join(&name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, name).unwrap();
    }
}

/// Names that decoding, or reading them as patterns, would confuse with other names.
const ODD_NAMES: [&str; 10] = [
    "x%3Ay.parquet",
    "x:y.parquet",
    "a+b c.parquet",
    "a b c.parquet",
    "中.parquet",
    "100%.parquet",
    "a?b.parquet",
    "acb.parquet",
    "[d].parquet",
    "d.parquet",
];

/// Expands by name, by directory and by patterns, and reads what is found.
async fn check_odd_names(stores: &Stores, root: &str) {
    let directory = format!("{root}/100% p+q 中");
    let content = |name: &str| format!("100% p+q 中/{name}");
    let read = async |given: String| {
        let mut contents = Vec::new();
        for file in files(stores, &given).await.unwrap() {
            let bytes = file.read().await.unwrap();
            contents.push(String::from_utf8(bytes.to_vec()).unwrap());
        }
        contents
    };
    let mut all: Vec<String> = ODD_NAMES.map(content).into();
    all.sort();
    for name in ODD_NAMES {
        let found = read(format!("{directory}/{name}")).await;
        assert_eq!(found, [content(name)], "{root}");
    }
    for whole in ["", "/", "/*", "/*.parquet"] {
        assert_eq!(read(format!("{directory}{whole}")).await, all, "{whole}");
    }
    for (pattern, name) in [
        ("/x%3A*", "x%3Ay.parquet"),
        ("/a+*", "a+b c.parquet"),
        ("/中*", "中.parquet"),
        ("/100%*", "100%.parquet"),
        ("/a[?]b*", "a?b.parquet"),
        ("/[[]d*", "[d].parquet"),
    ] {
        let found = read(format!("{directory}{pattern}")).await;
        assert_eq!(found, [content(name)], "{pattern}");
    }
}

/// Fault 43 (docs/faults.md).
#[tokio::test]
async fn odd_names_are_neither_decoded_nor_expanded() {
    let paths = |prefix: &str| {
        let prefix = format!("{prefix}100% p+q 中");
        ODD_NAMES.map(|name| format!("{prefix}/{name}"))
    };
    let directory = tempfile::tempdir().unwrap();
    write_files(directory.path(), paths(""));
    let root = directory.path().to_str().unwrap();
    check_odd_names(&Stores::default(), root).await;
    check_odd_names(&stores_with_objects(paths("")).await, "s3://bucket").await;
}

/// Fault 44 (docs/faults.md).
#[tokio::test]
async fn links_are_followed_and_files_read_once() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(root.join(target), root.join(name)).unwrap();
    };
    write_files(
        root,
        ["d/b.parquet", "d/sub/c.parquet", "e.parquet"].map(str::to_owned),
    );
    link("d/b.parquet", "d/a.parquet");
    std::fs::hard_link(root.join("d/b.parquet"), root.join("d/sub/z.parquet")).unwrap();
    link("e.parquet", "d/e.parquet");
    // Two cycles, and a second name of a directory.
    link("d", "d/sub/up");
    link("d/sub", "d/sub/self");
    link("d/sub", "d/same");
    let stores = Stores::default();
    let given = root.to_str().unwrap();
    let names = async |below: &str| names(&stores, given, below).await.unwrap();
    let once = ["d/a.parquet", "d/e.parquet", "d/same/c.parquet"];
    assert_eq!(names("/d").await, once);
    assert_eq!(names("/d/*").await, once);
    assert_eq!(names("/*").await, once);
    assert_eq!(names("/d/*.parquet").await, once[..2]);
    assert_eq!(names("/d/**/*.parquet").await, once);
    assert_eq!(names("/**/c.parquet").await.len(), 1);
    assert_eq!(names("/d/b.parquet").await, ["d/b.parquet"]);
    // A dangling link is listed, not left out silently.
    link("missing.parquet", "d/gone.parquet");
    assert!(names("/d").await.contains(&"d/gone.parquet".to_owned()));
}

/// Paths to a table's files are refused with an error that names the table; paths beside it are expanded.
async fn check_table_refusals(stores: &Stores, root: &str) {
    for below in [
        "/t/day=1",
        "/t/day=1/x.parquet",
        "/t/day=*",
        "/t/*/*.parquet",
        "/t/**",
        "/t/missing.parquet",
        "/[t]/day=1/*.parquet",
        "/*/day=1/x.parquet",
        "/**/x.parquet",
        "/t/_delta_log/*.json",
    ] {
        let error = files(stores, &format!("{root}{below}")).await;
        let error = error.unwrap_err();
        assert!(matches!(error, StorageError::InTable { .. }), "{error}");
        assert_eq!(error.kind(), ErrorKind::Usage);
        let named = format!("the Delta table {root}/t,");
        assert!(error.to_string().contains(&named), "{below}: {error}");
    }
    for below in ["", "/"] {
        let error = files(stores, &format!("{root}{below}")).await;
        let error = error.unwrap_err();
        assert!(matches!(error, StorageError::HoldsTable { .. }), "{error}");
        assert!(error.to_string().contains(&format!("{root}/t,")), "{error}");
    }
    // Beside the table, beside a hidden table, and beside a log without an entry.
    for (below, expected) in [
        ("/pages", "pages/p.parquet"),
        ("/pages/*", "pages/p.parquet"),
        ("/*/p.parquet", "pages/p.parquet"),
        ("/empty/day=1", "empty/day=1/y.parquet"),
        ("/empty/day=*", "empty/day=1/y.parquet"),
    ] {
        let found = names(stores, root, below).await.unwrap();
        assert_eq!(found, [expected], "{below}");
    }
}

const WITH_TABLES: [&str; 6] = [
    "root/t/_delta_log/00000000000000000000.json",
    "root/t/day=1/x.parquet",
    "root/pages/p.parquet",
    "root/pages/.old/_delta_log/00000000000000000000.json",
    "root/empty/_delta_log/00000000000000000000.json#123000001",
    "root/empty/day=1/y.parquet",
];

/// Fault 49 (docs/faults.md).
#[tokio::test]
async fn files_of_tables_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    write_files(&root, WITH_TABLES.map(str::to_owned));
    let given = root.join("root");
    let given = given.to_str().unwrap();
    let stores = stores_with_objects(WITH_TABLES.map(str::to_owned)).await;
    check_table_refusals(&stores, given).await;
    check_table_refusals(&stores, "s3://bucket/root").await;

    // Links to a day, and to a file of the table, are refused, too.
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(root.join(target), root.join(name)).unwrap();
    };
    std::fs::create_dir(root.join("links")).unwrap();
    for (target, name) in [
        ("root/t/day=1", "links/day"),
        ("root/t/day=1/x.parquet", "links/x.parquet"),
    ] {
        link(target, name);
        for below in ["/links", "/links/*", &format!("/{name}")] {
            let given = format!("{}{below}", root.display());
            let error = files(&stores, &given).await.unwrap_err();
            assert!(matches!(error, StorageError::InTable { .. }), "{error}");
        }
        std::fs::remove_file(root.join(name)).unwrap();
    }
    link("root/t", "links/t");
    let given = root.join("links");
    let error = files(&stores, given.to_str().unwrap()).await;
    let error = error.unwrap_err();
    assert!(matches!(error, StorageError::HoldsTable { .. }), "{error}");
}
