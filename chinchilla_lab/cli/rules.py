"""Which options go together: what would change nothing is refused, never ignored."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from typer.core import TyperCommand

__all__: list[str] = []


@dataclass(frozen=True, kw_only=True)
class Typed:
    """What a user typed.

    Parameters
    ----------
    names : frozenset of str
        Long names of the options that were typed, [-]
    values : dict
        Values of all options by the name of their parameter, [any]
    """

    names: frozenset[str]
    values: dict[str, Any]

    def has(self, *names: str) -> bool:
        """Say whether any of some options was typed."""
        return any(name in self.names for name in names)

    def lacks(self, *names: str) -> bool:
        """Say whether none of some options was typed."""
        return not self.has(*names)


@dataclass(frozen=True, kw_only=True)
class Mode:
    """One way in which a command answers, and the options that have no part in it.

    Parameters
    ----------
    when : callable
        Whether a command line is of this kind, [-]
    idle : tuple of str
        Options that would change nothing, [-]
    why : str
        Why, and the way out, [-]
    names : tuple of str, optional
        Options that make it this way, for the message, [-]
    """

    when: Callable[[Typed], bool]
    idle: tuple[str, ...]
    why: str
    names: tuple[str, ...] = ()


def given(*names: str, idle: tuple[str, ...], why: str) -> Mode:
    """Return the mode of some options."""
    return Mode(when=lambda typed: typed.has(*names), idle=idle, why=why, names=names)


def lacking(*names: str, idle: tuple[str, ...], why: str) -> Mode:
    """Return the mode without some options."""
    return Mode(when=lambda typed: typed.lacks(*names), idle=idle, why=why)


SIZES = (
    "--layers", "--d-model", "--d-ff", "--heads", "--kv-heads", "--head-dim",
    "--vocab", "--experts", "--top-k",
)  # fmt: skip
KIND = ("--mlp", "--tied")
OUTPUT = given("--json", idle=("--csv",), why="give --json or --csv, not both")
PUBLISHED_SHAPE = given(
    "--arch", idle=(*SIZES, "--mlp"),
    why="--arch is a whole published shape; leave it out and type all sizes",
)  # fmt: skip
MACHINE = given(
    "--cluster", idle=("--gpu", "--gpus"),
    why="a cluster names its chip and their number; give --cluster or --gpu and "
    "--gpus, not both",
)  # fmt: skip
DRAWS = Mode(
    when=lambda t: t.values.get("resamples") == 0, idle=("--seed",),
    why="without resamples nothing is drawn; leave out --resamples 0",
)  # fmt: skip

MODES: dict[str, tuple[Mode, ...]] = {
    "optimal": (
        given("--compute", idle=("--params", "--loss"),
              why="give one of --compute, --params and --loss"),
        given("--params", idle=("--loss",),
              why="give one of --compute, --params and --loss"),
    ),
    "tokens": (
        given("--rule", idle=("--law", "--loss"),
              why="a rule is a law of its own and knows no loss; leave --rule out"),
    ),
    "fit": (DRAWS,),
    "isoflop": (DRAWS,),
    "flops": (
        given(
            "--params", "--active-params",
            idle=("--arch", *SIZES, *KIND, "--seq", "--convention", "--recompute"),
            why="a number of parameters has no shape to count; describe the shape "
            "without --params, or leave these out",
        ),
        PUBLISHED_SHAPE,
    ),
    "params": (PUBLISHED_SHAPE,),
    "memory": (
        given("--bytes", idle=("--recipe",),
              why="give --recipe or --bytes, not both: each sets the bytes"),
        given(
            "--params",
            idle=("--arch", *SIZES, *KIND, "--tp", "--pp", "--dp", "--cp", "--ep",
                  "--micro-batch", "--seq", "--recompute", "--attention",
                  "--sequence-parallel", "--dropout", "--rule"),
            why="--params knows states only; use --gpus for replicas, or describe the "
            "shape without --params",
        ),
        lacking("--params", idle=("--gpus",),
                why="a shape counts replicas by --dp; use --dp"),
        PUBLISHED_SHAPE,
        Mode(
            when=lambda t: t.values.get("rule") == "zero-paper",
            idle=("--tp", "--pp", "--cp", "--ep", "--recompute", "--attention",
                  "--sequence-parallel", "--dropout"),
            why="the rule of the ZeRO paper knows neither cuts nor recomputation; "
            "leave out --rule",
        ),
    ),
    "mfu": (
        given("--tokens-per-second",
              idle=("--achieved", "--params", "--active-params", "--tokens",
                    "--gpu-hours", "--peak"),
              why="a speed is judged with --arch, --gpu and --gpus alone"),
        lacking("--tokens-per-second", idle=("--arch", "--seq", "--count", "--gpus"),
                why="these belong to --tokens-per-second; give it, or leave them out"),
        given("--achieved",
              idle=("--params", "--active-params", "--tokens", "--gpu-hours"),
              why="a rate needs no run; leave out --achieved to judge whole hours"),
        given("--active-params", idle=("--params",),
              why="a token uses the active parameters only; leave out --params"),
        given("--peak", idle=("--gpu", "--dtype"),
              why="--peak is the peak itself; leave it out to take the chip's"),
    ),
    "time": (
        MACHINE,
        given("--arch", idle=("--params", "--mfu", "--calibrate-from"),
              why="a shape has its own size, and its fastest layout the utilisation; "
              "leave out --arch to give them"),
        lacking("--arch", idle=("--batch", "--seq", "--stack"),
                why="these ask the step model, which needs a shape; give --arch"),
        given("--calibrate-from", idle=("--mfu",),
              why="give --mfu or --calibrate-from, not both: each sets the other"),
    ),
    "layouts": (MACHINE, PUBLISHED_SHAPE),
    "calibrate": (MACHINE,),
    "hardware": (
        given("--example", idle=("--gpu", "--json", "--csv"),
              why="the example is a TOML file of its own; leave out --example for the "
              "table"),
    ),
    "serve": (
        given("--params", idle=("--arch", "--cache-bytes"),
              why="give --arch, or --params with --cache, the bytes of a token"),
        lacking("--params",
                idle=("--active-params", "--cache", "--experts", "--top-k"),
                why="a shape knows its own; they belong to --params"),
        lacking("--active-params", idle=("--experts", "--top-k"),
                why="experts tell all parameters from the active ones; give "
                "--active-params too"),
        given("--calibrate", idle=("--slowdown",),
              why="measurements give the slowdown; leave out --slowdown"),
        given("--tokens-per-day", idle=("--requests-per-day",),
              why="give --tokens-per-day or --requests-per-day, not both"),
    ),
    "plan": (
        MACHINE,
        given("--levers", idle=("--binding",),
              why="give --levers or --binding, not both: each is a table"),
        given("--levers", "--binding", idle=("--keep", "--out"),
              why="this table is about the best plan alone; leave out --levers and "
              "--binding for the plans"),
        Mode(
            when=lambda t: t.values.get("objective") == "loss",
            idle=("--target-loss",),
            why="--target-loss needs --objective time, cost or lifetime; the "
            "objective loss looks for the least loss",
        ),
        Mode(
            when=lambda t: t.values.get("objective") != "lifetime"
            and t.lacks("--budget"),
            idle=("--inference", "--serving-utilisation"),
            why="serving counts with --budget or --objective lifetime",
        ),
        given("--mfu", idle=("--stack", "--seq", "--levers", "--memory-limit"),
              why="a given utilisation stands for layout, software and sequences; "
              "leave out --mfu to search them"),
        Mode(
            when=lambda t: t.values.get("family") == "none",
            idle=("--batch-limit", "--critical-batch", "--keep"), names=("--family",),
            why="one size without a shape has no batch and no alternatives; name a "
            "family, such as llama",
        ),
        Mode(
            when=lambda t: t.values.get("failures") == 0, idle=("--restart",),
            names=("--failures",),
            why="a machine that never fails is never restarted; leave out --failures 0",
        ),
        Mode(
            when=lambda t: t.has("--binding") and t.lacks("--budget")
            and t.values.get("objective") in ("loss", "time"),
            idle=("--price",), names=("--binding",),
            why="no limit and no objective counts dollars here; give --budget or "
            "--objective cost",
        ),
    ),
    "check": (
        lacking("--loss", idle=("--law",),
                why="a law is asked for the floor of a claimed --loss only"),
        lacking("--params", idle=("--loss",),
                why="a loss is held against the floor of a size; give --params"),
    ),
}  # fmt: skip


class Command(TyperCommand):
    """A command that refuses options given twice, and options that change nothing."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words, then hold them against the rules."""
        typed_again = list(args)  # the parser takes words out of the list
        rest: list[str] = super().parse_args(ctx, args)
        if ctx.resilient_parsing:
            return rest
        _, _, order = self.make_parser(ctx).parse_args(args=typed_again)
        for param in order:
            if order.count(param) > 1 and not param.multiple:
                ctx.fail(
                    f"{longest(param)} is given twice; give it once, several values "
                    "parted by commas where it takes several"
                )
        names = frozenset(
            longest(param)
            for param in self.params
            if param.name is not None
            and getattr(ctx.get_parameter_source(param.name), "name", "")
            == "COMMANDLINE"
        )
        typed = Typed(names=names, values=ctx.params)
        for mode in (OUTPUT, *MODES.get(str(self.name), ())):
            idle = [name for name in mode.idle if name in names]
            if idle and mode.when(typed):
                several = "do" if len(idle) > 1 else "does"
                also = ", ".join(name for name in mode.names if name in names)
                ctx.fail(
                    f"{', '.join(idle)} {several} not apply"
                    f"{f' with {also}' if also else ''}: {mode.why}"
                )
        return rest


def longest(param: Any) -> str:
    """Return the long name of an option."""
    return max(param.opts, key=len)
