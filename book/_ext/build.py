"""Build the site strictly: warnings are errors, and a broken cell is shown."""

import os
import re
import subprocess
import sys
from pathlib import Path

from live_site import pyodide_source

COMMAND = [
    str(Path(sys.executable).with_name("jupyter-book")),
    "build",
    ".",
    "-W",
    "-n",
    "--keep-going",
    "--all",
]
COLOUR = re.compile(r"\x1b\[[\d;]*m")
# what nbclient says of a failed cell, between two tracebacks of the machinery
CELL = re.compile(
    r"^nbclient\.exceptions\.\w+: (.*?)\n+The above exception", re.DOTALL | re.MULTILINE
)
CHAPTER = re.compile(r"\bExecutionError: (.+\.md)$", re.MULTILINE)


def causes(said):
    """Return from a failed build's output what its reader must know."""
    said = COLOUR.sub("", said)
    lines = said.splitlines()
    warned = [
        line for line in lines if re.search(r"\b(WARNING|ERROR|CRITICAL): ", line)
    ]
    parts = ["--- the build failed ---", *dict.fromkeys(warned)]
    chapter, cell = CHAPTER.search(said), CELL.search(said)
    if chapter:
        place = Path(os.path.relpath(chapter.group(1))).as_posix()
        parts.append(f"--- a cell of {place} failed ---")
    if cell:
        parts.append(cell.group(1).strip())
    return "\n".join(parts)


def main():
    """Run Jupyter Book, show its progress, and end with the cause if it fails."""
    try:
        pyodide_source(Path.cwd())
    except FileNotFoundError as wrong:
        return str(wrong)
    said = []
    with subprocess.Popen(
        COMMAND,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as build:
        for line in build.stdout:
            print(line, end="", flush=True)
            said.append(line)
    if build.returncode:
        print(f"\n{causes(''.join(said))}", file=sys.stderr)
    return build.returncode


if __name__ == "__main__":
    sys.exit(main())
