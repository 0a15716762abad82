"""Run the command line with ``python -m chinchilla_lab.cli``."""

import sys

from chinchilla_lab.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
