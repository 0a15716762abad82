"""The program: its commands, its errors on one line, its exit codes."""

import sys
import warnings
from typing import Any

import typer

from chinchilla_lab import __version__
from chinchilla_lab.checks import InfeasibleError
from chinchilla_lab.cli import (
    commands_laws,
    commands_machine,
    commands_model,
    commands_plans,
)
from chinchilla_lab.cli.output import note
from chinchilla_lab.fitting.refusals import RefusedFitError
from chinchilla_lab.planning.closure import ClosureError

__all__ = ["app", "run"]

# answered; nothing meets what was asked; asked wrongly
DONE, REFUSED, WRONG = 0, 1, 2

app = typer.Typer(
    name="chinchilla-lab",
    help="Plan training runs: scaling laws, clusters, and both joined. Quantities as "
    "people write them: 3e24, 400B, 0.4T, 80GiB, 16k, '30 days', $2M.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for group in (commands_laws, commands_model, commands_machine, commands_plans):
    for name, function in group.COMMANDS.items():
        app.command(name)(function)


def _version(asked: bool) -> None:
    """Print the version and stop."""
    if asked:
        sys.stdout.write(f"{__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="print the version"
    ),
) -> None:
    """Plan training runs: scaling laws, clusters, and both joined."""


def run(args: list[str]) -> int:
    """Run the program.

    Parameters
    ----------
    args : list of str
        Words after its name, [-]

    Returns
    -------
    int
        Exit code: 0, 1 if nothing meets what was asked, 2 if it was asked wrongly, [-]
    """
    command: Any = typer.main.get_command(app)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        code = _guarded(command, args)
    for words in dict.fromkeys(
        str(w.message) for w in caught if issubclass(w.category, UserWarning)
    ):
        note(words)
    return code


def _guarded(command: Any, args: list[str]) -> int:
    try:
        code = command.main(
            args=args, prog_name="chinchilla-lab", standalone_mode=False
        )
    except (InfeasibleError, RefusedFitError, ClosureError) as refusal:
        return _say(refusal, REFUSED)
    except (ValueError, TypeError, KeyError, OSError) as fault:
        return _say(fault, WRONG)
    except typer.Abort:
        return REFUSED
    except Exception as fault:
        # what the parser of options has against them, whichever click it is
        if not hasattr(fault, "format_message"):
            raise
        words = fault.format_message()
        if words:
            return _say(words, getattr(fault, "exit_code", WRONG))
        return DONE
    return code if isinstance(code, int) else DONE


def _say(fault: Exception | str, code: int) -> int:
    words = fault.args[0] if isinstance(fault, KeyError) and fault.args else fault
    sys.stderr.write(f"error: {' '.join(str(words).split())}\n")
    return code
