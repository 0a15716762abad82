"""The command line ``chinchilla-lab``: every command is one call of the library."""

import sys

__all__ = ["main"]


def main(args: list[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    args : list of str, optional
        Words after the program's name; by default those of the process, [-]

    Returns
    -------
    int
        0 if it answered, 1 if nothing meets what was asked, 2 if it was asked wrongly,
        [-]
    """
    try:
        from chinchilla_lab.cli.app import run
    except ModuleNotFoundError as missing:
        sys.stderr.write(
            f"error: {missing.name} is not installed; the command line needs the extra "
            "cli: pip install 'chinchilla-lab[cli]'\n"
        )
        return 2
    return run(sys.argv[1:] if args is None else args)
