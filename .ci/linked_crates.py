"""The crates that a program links, for .ci/licences and .ci/sbom.

`cargo tree` lists them, because only it resolves features as a build does: the normal dependencies of one package on
one target, without procedural macros, which run inside the compiler. `cargo metadata` and Cargo.lock describe them.
"""

import argparse
import json
import re
import subprocess
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Crate:
    """A crate and the crates that it uses. Crates of this workspace have no checksum."""

    name: str
    version: str
    # An SPDX expression.
    licence: str
    authors: list[str]
    repository: str | None
    folder: Path
    checksum: str | None
    # Keys of other crates: name and version.
    dependencies: set[tuple[str, str]] = field(default_factory=set)

    @property
    def key(self):
        return (self.name, self.version)

    @property
    def is_ours(self):
        return self.checksum is None

    def __str__(self):
        return f"{self.name} {self.version}"


def arguments(description):
    """A parser with the options that choose the program and the output file."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", default="dedup-job", help="the package of the program or module: %(default)s")
    parser.add_argument("--target", default=host(), help="the target that it is built for: %(default)s")
    parser.add_argument("--features", default="", help="features that it is built with, beside the default ones")
    parser.add_argument("--output", type=Path, required=True, help="the file to write")
    return parser


def linked_crates(package, target, features=""):
    """The crates by key, in alphabetical order, the package itself included."""
    options = ["--locked", "--features", features] if features else ["--locked"]
    tree = command("cargo", "tree", *options, "--package", package, "--target", target, "--charset", "ascii",
                   "--edges", "normal,no-proc-macro", "--prefix", "depth", "--format", " {p}")  # fmt: skip
    used = {}
    # The path from the package to the crate of the current line.
    path = []
    for line in tree.splitlines():
        depth, name, version = re.match(r"(\d+) (\S+) v(\S+)", line).groups()
        key = (name, version)
        # The tree shows the dependencies of a crate only where it first lists the crate.
        used.setdefault(key, set())
        path[int(depth) :] = [key]
        if len(path) > 1:
            used[path[-2]].add(key)
    # It describes an optional crate only if the feature that needs it is on.
    metadata = json.loads(
        command("cargo", "metadata", "--locked", "--all-features", "--format-version", "1", "--filter-platform", target)
    )
    described = {(one["name"], one["version"]): one for one in metadata["packages"]}
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    checksums = {(one["name"], one["version"]): one.get("checksum") for one in locked}
    crates = {}
    for key in sorted(used):
        one = described[key]
        crates[key] = Crate(
            name=one["name"],
            version=one["version"],
            licence=spdx(one["license"] or ""),
            authors=one["authors"],
            repository=one["repository"],
            folder=Path(one["manifest_path"]).parent,
            checksum=checksums[key],
            dependencies=used[key],
        )
    return crates


def spdx(licence):
    """A manifest's licence as an SPDX expression: old manifests write a slash for `OR`."""
    return re.sub(r"\s*/\s*", " OR ", licence)


def rust_version():
    """The version of the compiler, and so of the standard library that it links."""
    return command("rustc", "--version").split()[1]


def host():
    return command("rustc", "--print", "host-tuple").strip()


def command(*words):
    return subprocess.run(words, cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout
