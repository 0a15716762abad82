"""Build the site strictly: warnings are errors, and a broken cell is shown."""

import subprocess
import sys
from pathlib import Path

COMMAND = [
    str(Path(sys.executable).with_name("jupyter-book")),
    "build",
    ".",
    "-W",
    "-n",
    "--keep-going",
    "--all",
]
REPORTS = Path("_build/html/reports")


def main():
    """Run Jupyter Book; after a failure print what the broken chapters said."""
    code = subprocess.run(COMMAND, check=False).returncode
    if code == 0:
        return 0
    for report in sorted(REPORTS.rglob("*.err.log")):
        chapter = report.relative_to(REPORTS).as_posix().removesuffix(".err.log")
        print(f"\n--- a cell of {chapter}.md failed ---", file=sys.stderr)
        print(report.read_text(encoding="utf-8"), file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
