"""Makes a crawl of the HTML in Debian packages: crawl_debian.py --out DIR [--pages N] PACKAGE...

Needs Debian, and the packages of requirements-crawl.txt. Downloads the packages with apt-get and extracts them with dpkg
below --out; nothing is installed. Writes the files that crawl_pages.py writes, without the truth: at most N pages, evenly
spread over all HTML files in their order by path. Files whose bytes occurred before are left out, because a package may have
pages twice.
"""

import argparse
import hashlib
import json
import pathlib
import subprocess

from crawl import files, http


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--pages", type=int, default=3000)
    parser.add_argument("packages", nargs="+")
    args = parser.parse_args()
    downloads, root = args.out.resolve() / "packages", args.out.resolve() / "root"
    for folder in (downloads, root):
        folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["apt-get", "--quiet", "download", *args.packages], cwd=downloads, check=True)
    packages = sorted(downloads.glob("*.deb"))
    for package in packages:
        subprocess.run(["dpkg", "--extract", package, root], check=True)
    paths = sorted(path for path in root.rglob("*.htm*") if path.is_file() and not path.is_symlink())
    step = max(1, len(paths) / args.pages)
    crawl, seen = files.Files(args.out, 1), set()
    for path in (paths[int(at * step)] for at in range(min(args.pages, len(paths)))):
        body = path.read_bytes()
        digest = hashlib.sha256(body).digest()
        if body and digest not in seen:
            seen.add(digest)
            crawl.add(f"https://doc.example/{path.relative_to(root)}", http.plain_response(body))
    counts = crawl.close()
    counts |= {"packages": [package.name for package in packages], "html_files": len(paths)}
    # Written last, as in crawl_pages.py.
    (args.out / "counts.json").write_text(json.dumps(counts, indent=1) + "\n")


main()
