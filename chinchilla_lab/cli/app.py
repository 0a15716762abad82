"""The program: its commands, its errors on one line, its exit codes."""

import os
import re
import sys
import warnings
from importlib import import_module
from typing import Any

import typer

from chinchilla_lab import __version__
from chinchilla_lab.cli.catalogue import CATALOGUE
from chinchilla_lab.cli.rules import Command

__all__ = ["program", "run"]

# answered; nothing meets what was asked; asked wrongly
DONE, REFUSED, WRONG = 0, 1, 2

# ways out that the library words for Python, and how they are typed here
SAID = (
    (r"map it with columns=\{'(\w+)': \.\.\.\} to", r"write --map \1=NAME with"),
    (r"map tokens or compute to", "write --map D=NAME or --map C=NAME with"),
    (r"\bcolumns: ", "--map: "),
    (r", or give Price\(low=.*?source=\.\.\.\)", ""),
    (r" \(Cluster\.from_file\)", ""),
    (r" \(add a row to \S+, or use Cluster\.from_file\)",
     "; or describe it in a file, as hardware --example shows"),
    (r" \(calibrate one of your own: [\w.]+\)", "; or the file of calibrate --save"),
    (r"or one of your own from chinchilla_lab\.cluster\.calibrate",
     "or the file of calibrate --save"),
    (r"\beven_stages=False", "--uneven-stages"),
    (r"the largest (tp|pp|dp|cp|ep) is", r"the largest --\1 is"),
    (r"(?:--)?zero=\((\d),?\)", r"--zero \1"),
    (r"(?:--)?recompute=\('(\w+)',?\)", r"--recompute \1"),
    (r"\blarger tp or pp\b", "larger --tp or --pp"),
    (r"example_cluster\('(\w+)'\)", r"--cluster \1"),
)  # fmt: skip
# names that people try, and the command that answers
MEANT = {
    "effective-tokens": "epochs", "repeat": "epochs", "repeats": "epochs",
    "clusters": "hardware", "gpus": "hardware", "chips": "hardware",
    "shapes": "params", "layout": "layouts", "price": "serve", "inference": "serve",
    "throughput": "mfu", "cost": "time", "isoflops": "isoflop", "batch": "steps",
}  # fmt: skip

# what the library calls a quantity, and the options that may have set it
OPTIONS = {
    "n_layers": ("--layers",), "d_model": ("--d-model",), "d_ff": ("--d-ff",),
    "n_heads": ("--heads",), "n_kv_heads": ("--kv-heads",),
    "head_dim": ("--head-dim",), "vocab_size": ("--vocab",),
    "n_experts": ("--experts",), "n_active_experts": ("--top-k",),
    "seq_len": ("--seq",), "tp": ("--tp",), "pp": ("--pp",), "dp": ("--dp",),
    "cp": ("--cp",), "ep": ("--ep",), "zero": ("--zero",),
    "recompute": ("--recompute",), "attention": ("--attention", "--count"),
    "micro_batch": ("--micro-batch",), "batch": ("--batch",),
    "achieved": ("--achieved", "--calibrate-from"), "dtype": ("--dtype",),
    "utilisation": ("--mfu",), "mfu": ("--mfu",), "objective": ("--objective",),
    "confidence": ("--confidence",),
    "target_loss": ("--target-loss",), "unique_tokens": ("--unique",),
    "shape_family": ("--family",), "batch_limit": ("--batch-limit",),
    "critical_batch": ("--critical-batch",), "resamples": ("--resamples",),
    "N_counts": ("--counts",), "N_active": ("--active-params",),
    "convention": ("--convention",), "price": ("--price",), "epochs": ("--epochs",),
    "memory_limit": ("--memory-limit",),
    "serving_utilisation": ("--serving-utilisation",), "inference_tokens":
    ("--inference",), "deadline": ("--deadline",), "budget": ("--budget",),
    "n_accelerators": ("--gpus",), "slowdown": ("--slowdown", "--calibrate"),
}  # fmt: skip


def _version(asked: bool) -> None:
    """Print the version and stop."""
    if asked:
        sys.stdout.write(f"{__version__}\n")
        raise typer.Exit


def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="print the version"
    ),
) -> None:
    """Plan training runs: scaling laws, clusters, and both joined."""


def _elsewhere() -> None:
    """Stand for a command that was not asked for, so that nothing is loaded for it."""


def program(names: set[str] | None = None) -> typer.Typer:
    """Return the program; commands outside ``names`` have their help line only.

    Parameters
    ----------
    names : set of str, optional
        Commands to load with what they need; by default all, [-]

    Returns
    -------
    typer.Typer
        The program, [-]
    """
    app = typer.Typer(
        name="chinchilla-lab",
        help="Plan training runs: scaling laws, clusters, and both joined. Quantities "
        "as people write them: 3e24, 400B, 0.4T, 80GiB, 16k, '30 days', $2M, 40%. "
        "Clusters by name or file. Exit codes: 0 answered, 1 nothing meets what was "
        "asked, 2 asked wrongly.",
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_root)
    for name, entry in CATALOGUE.items():
        function = _elsewhere
        if names is None or name in names:
            module = import_module(f"chinchilla_lab.cli.{entry.module}")
            function = module.COMMANDS[name]
        app.command(
            name,
            cls=Command,
            help=entry.summary,
            short_help=entry.summary,
            epilog=f"Example: chinchilla-lab {entry.example}",
        )(function)
    return app


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
    args = args or ["--help"]
    asked = next((word for word in args if not word.startswith("-")), "")
    command: Any = typer.main.get_command(program({asked}))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            code = command.main(
                args=args, prog_name="chinchilla-lab", standalone_mode=False
            )
            sys.stdout.flush()
        except typer.Abort:
            return REFUSED
        except BrokenPipeError:
            # who reads has read enough; nothing is left to flush at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return DONE
        except (ValueError, TypeError, KeyError, OSError) as fault:
            found = getattr(command, "commands", {}).get(asked)
            return _say(_translated(_words(fault), found), _code(fault))
        except Exception as fault:
            # what the parser of options has against them, whichever click it is
            if not hasattr(fault, "format_message"):
                raise
            words = fault.format_message()
            if not words:
                return DONE
            if words.startswith("No such command") and "mean" not in words:
                words = f"{words.rstrip('.')}{_command_meant(asked)}"
            if words.startswith(("Missing", "No such", "Got unexpected")):
                words = f"{words.rstrip('.')}; see chinchilla-lab "
                words += f"{asked} --help" if asked in CATALOGUE else "--help"
            return _say(words, getattr(fault, "exit_code", WRONG))
    told = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
    for line in dict.fromkeys(told):
        sys.stderr.write(f"note: {' '.join(_upright(line).split())}\n")
    return code if isinstance(code, int) else DONE


def _command_meant(word: str) -> str:
    """Return the question whether another command was meant."""
    near = MEANT.get(word.lower().replace("_", "-"))
    if near is None:
        from difflib import get_close_matches

        near = next(iter(get_close_matches(word.lower(), list(CATALOGUE), n=1)), None)
    return f" (did you mean {near}?)" if near else ""


def _nearest(words: str) -> str:
    """Ask whether the nearest of the names to choose from was meant."""
    found = re.search(r"='([^']+)' is not known(?=; choose from: ([\w., -]+))", words)
    if found is None:
        return words
    from difflib import get_close_matches

    known = [name.strip() for name in found[2].split(",")]
    near = get_close_matches(found[1].lower(), known, n=1)
    if not near:
        return words
    return f"{words[: found.end()]} (did you mean {near[0]}?){words[found.end() :]}"


def _upright(words: str) -> str:
    """Write 5.55e+03 as 5,550 and 1.3e+24 as 1.3e24."""

    def plain(match: re.Match[str]) -> str:
        value = float(match.group())
        return f"{value:,.0f}" if value < 1e7 else f"{match[1]}e{int(match[2])}"

    return re.sub(r"(?<![\w.])(\d+(?:\.\d+)?)e\+(\d+)(?!\w)", plain, words)


def _words(fault: Exception) -> str:
    """Return what a fault says."""
    if isinstance(fault, OSError) and fault.filename is not None:
        return f"{fault.filename}: {fault.strerror}; check the path"
    return str(fault.args[0] if isinstance(fault, KeyError) and fault.args else fault)


def _translated(words: str, command: Any) -> str:
    """Write the names of options for those of the library's arguments."""
    has = {name for param in getattr(command, "params", ()) for name in param.opts}
    for name, options in OPTIONS.items():
        option = next((o for o in options if o in has), None)
        if option is not None:
            # a plain word is an argument only where a value follows it
            end = r"(?!\w)" if "_" in name else "(?==)"
            # and a quoted one is what was typed, or a column of a file
            words = re.sub(rf"(?<![\w'-])(?<!mean ){name}{end}", option, words)
    for python, shell in SAID:
        words = re.sub(python, shell, words)
    words = _upright(_nearest(words))
    # a pair is typed with a colon
    words = re.sub(r"(--[\w-]+)=\(([\d.]+), ([\d.]+)\)", r"\1=\2:\3", words)
    return re.sub(r"(--[\w-]+)=None", r"\1=none", words)


def _code(fault: Exception) -> int:
    """Return 1 if nothing meets what was asked, though it was asked rightly; else 2."""
    # looked up among what a command has loaded: nothing else can raise them, and help
    # need not wait for numpy
    for module, name in (
        ("checks", "InfeasibleError"), ("fitting.refusals", "RefusedFitError"),
        ("planning.closure", "ClosureError"),
    ):  # fmt: skip
        found = sys.modules.get(f"chinchilla_lab.{module}")
        if found is not None and isinstance(fault, getattr(found, name)):
            return REFUSED
    return WRONG


def _say(words: str, code: int) -> int:
    sys.stderr.write(f"error: {' '.join(words.split())}\n")
    return code
