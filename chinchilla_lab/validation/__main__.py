"""Print the validation: ``python -m chinchilla_lab.validation``."""

import sys

from chinchilla_lab.validation.report import report

__all__: list[str] = []

if __name__ == "__main__":
    sys.stdout.write(report() + "\n")
