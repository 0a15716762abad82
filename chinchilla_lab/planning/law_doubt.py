"""What a plan would be under other laws: resamples of its own, and those of others."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.allocation.solving import additive, needs_loss, optimum
from chinchilla_lab.laws.families import (
    AdditiveLaw,
    DirectLaw,
    Law,
    LossLaw,
    UniqueDataLaw,
)
from chinchilla_lab.laws.published import DEFAULT, LOSS_LAWS, PUBLISHED, SPREAD
from chinchilla_lab.planning.any_size import smooth_scores
from chinchilla_lab.planning.losses import DataLimit, silent
from chinchilla_lab.planning.problem import Problem
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.sources import read_rows
from chinchilla_lab.units import FLOP_PER_ND

__all__: list[str] = []

Array = NDArray[np.float64]
L = TypeVar("L", bound=Law)

# resamples that are solved for, each anew
MOST_RESAMPLES = 256
# grid in ln N around the first guess, then around its best
REACH, COARSE, FINE = np.log(30.0), 61, 23


@cache
def _stored() -> AdditiveLaw:
    """Resamples of the runs behind the default law, refitted with Huber 1e-3."""
    rows = read_rows("besiroglu2024_resamples.csv")
    names = ("E", "A", "B", "alpha", "beta")
    columns = {k: np.array([float(r[k]) for r in rows]) for k in names}
    return AdditiveLaw(label="resamples of the published runs", **columns)  # type: ignore[arg-type]


@lru_cache(maxsize=64)
def _quiet(law: LossLaw) -> LossLaw:
    return silent(law)


def pick(law: L, which: NDArray[np.int64]) -> L:
    """Return a resampled law with some of its resamples."""
    made: dict[str, Any] = {}
    for f in fields(law):
        value = getattr(law, f.name)
        if isinstance(value, Law) and f.name != "resampled":
            made[f.name] = pick(value, which)
        elif isinstance(value, np.ndarray) and value.ndim == 1:
            made[f.name] = value[which]
    return replace(law, **made)


def count_of(many: Law) -> int:
    """Return how many resamples a resampled law holds."""
    values = [getattr(many, f.name) for f in fields(many) if f.name != "resampled"]
    sizes = [count_of(v) for v in values if isinstance(v, Law)]
    sizes += [v.size for v in values if isinstance(v, np.ndarray)]
    return max(sizes, default=1)


def resamples_of(law: LossLaw, most: int) -> tuple[LossLaw | None, str]:
    """Return the resamples of a law, evenly thinned, and where they come from."""
    many, note = law.resampled, "resamples of the fit"
    if many is None and law is DEFAULT:
        many, note = _stored(), "resamples of the published runs"
    if not isinstance(many, LossLaw):
        return None, "no resamples of this law"
    n = count_of(many)
    if n > most:
        many = pick(many, np.linspace(0, n - 1, most).astype(np.int64))
    return silent(many), note


def alike(law: LossLaw) -> list[Law]:
    """Return the published laws of the spread that count the same parameters."""
    others = (PUBLISHED[name] for name in SPREAD)
    return [o for o in others if o is not law and o.N_counts == law.N_counts]


def same_runs(law: LossLaw) -> list[LossLaw]:
    """Return other laws of the same data, whose losses mean the same."""
    found = []
    for name in dict.fromkeys((*SPREAD, *LOSS_LAWS)):
        one = PUBLISHED[name]
        same = one.corpus == law.corpus and one.N_counts == law.N_counts
        if isinstance(one, LossLaw) and same and one.rounding != "rounded":
            found.append(one)
    return [one for one in found if one is not law] if law.corpus else []


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a law answers.

    Parameters
    ----------
    N : numpy.ndarray
        Best size, [parameter]
    D : numpy.ndarray
        Its tokens, [token]
    work : numpy.ndarray
        Compute, or that over the one of the plan's own law, [any]
    """

    N: Array
    D: Array
    work: Array


def _free(plan: Plan, active: float) -> Problem:
    """Return what the plan answers, in a form that any law can be asked."""
    p = plan.problem
    if p.objective == "loss" and not (p.budget is not None and p.inference_tokens):
        return p.with_(compute=plan.C / active, deadline=None, budget=None)
    return p if p.compute is None else p.with_(compute=p.compute / active)


def answer(plan: Plan, law: Law, guess: float) -> Answer | None:
    """Return what a law would have answered, on a machine of the plan's utilisation.

    No shapes, so that the luck of one shape does not count. Arrays for a resampled
    law, NaN where no size is left. None where the law knows no loss and one is asked.
    """
    # a mixture uses fewer parameters than it has
    active = plan.C / (FLOP_PER_ND * plan.N * plan.D)
    p, share = _free(plan, active), plan.utilisation / active
    short = p.unique_tokens is not None and p.unique_tokens < 4.0 * plan.D
    if isinstance(law, DirectLaw) and (p.compute is None or short):
        return None
    if p.objective == "loss" and p.compute is not None and not short:
        if isinstance(law, DirectLaw):
            N, D = law.optimum(p.compute)
        else:
            N, D = optimum(silent(needs_loss(law, "plan")), np.asarray(p.compute))
        return Answer(N=np.asarray(N), D=np.asarray(D), work=np.ones(np.shape(N)))
    if isinstance(law, DirectLaw):
        return None
    try:
        asked = p.with_(law=silent(needs_loss(law, "plan")))
        N = _least(asked, share, guess)
        late = np.isnan(N)
        if p.objective != "loss" and np.any(late):
            # out of reach in time: the soonest that this law knows
            free = asked.with_(deadline=None, budget=None, compute=None)
            soon = _least(free.with_(objective="time"), share, guess)
            N = np.where(late, soon, N)
    except TypeError:
        return None  # a law that repeats cannot wear
    reached = np.isfinite(N)
    N = np.where(reached, N, guess)
    if p.objective == "loss":
        seconds = np.asarray(p.usable_seconds(N, share))
        D = p.peak * share * p.goodput.share * seconds / (FLOP_PER_ND * N)
        if p.compute is not None:
            D = np.minimum(D, p.compute / (FLOP_PER_ND * N))
    else:
        assert p.target_loss is not None  # the problem was checked
        limit = DataLimit(law=asked.law, unique=p.unique_tokens)
        D = np.asarray(limit.tokens(N, p.target_loss)) * plan.waste
    D = np.where(reached, D, np.nan)
    return Answer(N=np.where(reached, N, np.nan), D=D, work=N * D)


def answers(plan: Plan, laws: list[Law], guess: float) -> list[Answer | None]:
    """Return what each law would have answered; additive ones are asked at once."""
    shapes = [
        additive(law)
        if isinstance(law, LossLaw) and not isinstance(law, UniqueDataLaw)
        else None
        for law in laws
    ]
    closed = [law for law in shapes if law is not None]
    found: list[Answer | None] = []
    split: Iterator[tuple[Array, ...]] = iter(())
    if closed:
        sizes = [count_of(law) for law in closed]
        columns: dict[str, Any] = {
            name: np.concatenate(
                [np.broadcast_to(getattr(law, name), n)
                 for law, n in zip(closed, sizes, strict=True)]
            )
            for name in ("E", "A", "B", "alpha", "beta", "k")
        }  # fmt: skip
        joint = AdditiveLaw(N_counts=closed[0].N_counts, **columns)
        made = answer(plan, joint, guess)
        assert made is not None  # additive laws always answer, if only with NaN
        ends = np.cumsum(sizes)[:-1]
        parts = [np.split(np.ravel(x), ends) for x in (made.N, made.D, made.work)]
        split = zip(*parts, strict=True)
    for law, shape in zip(laws, shapes, strict=True):
        one = answer(plan, law, guess) if shape is None else _answer(*next(split))
        ok = one is not None and np.all(np.isfinite(one.work))
        found.append(one if ok else None)
    return found


def _answer(N: Array, D: Array, work: Array) -> Answer:
    return Answer(N=N, D=D, work=work)


def _least(p: Problem, share: float, guess: float) -> Array:
    """Return the best size under each resample; NaN where there is none."""
    middle = np.asarray(np.log(guess))
    found = np.empty(0)
    for reach, points in ((REACH, COARSE), (2.0 * REACH / (COARSE - 1), FINE)):
        x = middle + np.linspace(-reach, reach, points)[:, None]
        scores = np.asarray(smooth_scores(p, np.exp(x), share))
        scores = np.where(np.isfinite(scores), scores, np.inf)
        best = np.argmin(scores, axis=0)[None]
        found = np.take_along_axis(scores, best, axis=0)[0]
        middle = np.take_along_axis(np.broadcast_to(x, scores.shape), best, axis=0)[0]
    return np.where(np.isfinite(found), np.exp(middle), np.nan)


@dataclass(frozen=True, kw_only=True)
class LawDraws:
    """Draws over laws.

    Parameters
    ----------
    N : numpy.ndarray
        Best sizes, [parameter]
    D : numpy.ndarray
        Their tokens, [token]
    work : numpy.ndarray
        Compute over that of the plan's own law, [-]
    """

    N: Array
    D: Array
    work: Array


@dataclass(frozen=True, kw_only=True)
class LawDoubt:
    """The laws that a plan may be drawn from, and what each would answer.

    Parameters
    ----------
    own : Answer
        Answer of the plan's own law, without shapes, [-]
    scatter : Answer, optional
        Answers of its resamples, if it has any, [-]
    others : tuple
        Answers of the other laws that are drawn, by name, [-]
    note : str
        Where the resamples come from, [-]
    law : LossLaw
        The own law, [-]
    resamples : LossLaw, optional
        Its resamples as one law, [-]
    same : tuple of LossLaw
        Other laws of the same data, [-]
    foreign : tuple of LossLaw
        Laws of other data, [-]
    elsewhere : tuple
        Laws that cannot be asked for a loss, by label, taken at their word, [-]
    unreached : tuple of str
        Laws under which no size reaches the target, by label, [-]
    """

    own: Answer
    scatter: Answer | None
    others: tuple[tuple[str, Answer], ...]
    note: str
    law: LossLaw
    resamples: LossLaw | None
    same: tuple[LossLaw, ...]
    foreign: tuple[LossLaw, ...]
    elsewhere: tuple[tuple[str, Answer], ...]
    unreached: tuple[str, ...]

    def scattered(self, rng: np.random.Generator, draws: int) -> LawDraws:
        """Draw resamples of the plan's own law."""
        one = self.own if self.scatter is None else self.scatter
        which = rng.integers(np.size(one.N), size=draws)
        return _drawn(one, which)

    def chosen(self, rng: np.random.Generator, draws: int, whole: bool) -> LawDraws:
        """Draw laws, each as likely; if ``whole``, with the scatter of their runs.

        The others come without resamples: they borrow the scatter of the plan's own.
        """
        first = np.zeros(draws, dtype=np.int64)
        own, other = _drawn(self.own, first), self.scattered(rng, draws)
        parts = [own, *(_drawn(one, first) for _, one in self.others)]
        which = rng.integers(len(parts), size=draws)
        row = np.arange(draws)

        def drawn(name: str) -> Array:
            found = np.stack([getattr(x, name) for x in parts])[which, row]
            if whole:
                found = found * (getattr(other, name) / getattr(own, name))
            return np.asarray(found)

        return LawDraws(N=drawn("N"), D=drawn("D"), work=drawn("work"))

    def losses(
        self, plan: Plan, tokens: Array, rng: np.random.Generator, what: str
    ) -> Array:
        """Draw losses of the plan's size on some tokens by laws of the same data.

        ``what`` is drawn: "resamples" of the own law, "laws", "both" or "nothing".
        """
        draws = len(tokens)
        laws = [self.law, *(self.same if what in ("laws", "both") else ())]
        which = rng.integers(len(laws), size=draws)
        made = np.empty(draws)
        unique = plan.problem.unique_tokens

        def of(law: LossLaw, rows: NDArray[np.bool_]) -> Array:
            size = np.full(int(rows.sum()), plan.N)
            limit = DataLimit(law=law, unique=unique)
            return np.asarray(limit.loss(size, tokens[rows]))

        for i, law in enumerate(laws):
            made[which == i] = of(_quiet(law), which == i)
        if self.resamples is not None and what in ("resamples", "both"):
            everything = np.ones(draws, dtype=bool)
            drawn = rng.integers(count_of(self.resamples), size=draws)
            scattered = of(pick(self.resamples, drawn), everything)
            made += scattered - of(_quiet(self.law), everything)
        return made


def _drawn(one: Answer, which: NDArray[np.int64]) -> LawDraws:
    N, D, work = (
        np.ravel(x)[which] for x in np.broadcast_arrays(one.N, one.D, one.work)
    )
    return LawDraws(N=N, D=D, work=work)


def judged_elsewhere(law: Law) -> bool:
    """Whether the loss of a law is that of other text than its runs trained on."""
    trained, _, judged = law.corpus.partition(", loss on ")
    return bool(judged) and not judged.startswith(trained)


def law_doubt(plan: Plan, most: int = MOST_RESAMPLES) -> LawDoubt:
    """Ask every law what it would have answered."""
    law, others = plan.problem.law, alike(plan.problem.law)
    many, note = resamples_of(law, most)
    asked = [law, *others, *([] if many is None else [many])]
    own, *found = answers(plan, asked, plan.N)
    if own is None:
        # the plan uses room that no smooth machine has: it is its own best
        own = Answer(N=np.asarray(plan.N), D=np.asarray(plan.D), work=np.asarray(1.0))
    base = float(np.ravel(own.work)[0])
    scatter = None if many is None else found.pop()
    if many is not None and scatter is None:
        note = "out of reach under some resamples"
    drawn: list[tuple[str, Answer]] = []
    elsewhere: list[tuple[str, Answer]] = []
    unreached: list[str] = []
    for one, made in zip(others, found, strict=True):
        if made is None:
            if isinstance(one, LossLaw):
                unreached.append(one.label)
            continue
        # a law that only says how to split the compute is not asked for a loss
        if plan.problem.objective != "loss" and judged_elsewhere(one):
            elsewhere.append((one.label, _over(made, base)))
        else:
            drawn.append((one.name, _over(made, base)))
    same = tuple(same_runs(law))
    return LawDoubt(
        own=_over(own, base),
        scatter=None if scatter is None else _over(scatter, base),
        others=tuple(drawn), elsewhere=tuple(elsewhere),
        unreached=tuple(unreached),
        note=note, law=law, resamples=many, same=same,
        foreign=tuple(
            one for one in others if isinstance(one, LossLaw) and one not in same
        ),
    )  # fmt: skip


def _over(one: Answer, base: float) -> Answer:
    return replace(one, work=one.work / base)
