"""Lifetime optima of many demands against a SciPy loop: ``make bench``.

Speed stands beside quality: the largest residual of the tangency condition, and the
largest difference to the roots of the loop.
"""

import sys
import warnings
from math import exp, log1p
from pathlib import Path

import numpy as np

import chinchilla_lab as lab
from chinchilla_lab.inference import lifetime_optimal

sys.path.insert(0, str(Path(__file__).parent))
from run import interleaved, report

warnings.simplefilter("ignore", lab.ExtrapolationWarning)

LAW, LOSS = lab.DEFAULT, 2.0
DEMANDS = np.geomspace(1e6, 1e18, 100_000)


def scalar_loop(optimize):
    """Solve the same condition in ln D for one demand after the other."""
    excess, ratio = LOSS - LAW.E, LAW.beta / LAW.alpha
    best = lab.allocation.optimal_for_loss(LAW, LOSS)
    low, B, beta = float(np.log(best.D)), LAW.B, LAW.beta

    def condition(y, T):
        return B * exp(-beta * y) * (1 + ratio * (1 + T / (3 * exp(y)))) - excess

    tops = [
        low + log1p(T / (3 * (LAW.alpha + beta) * float(best.D))) + 1e-9
        for T in DEMANDS
    ]
    return np.array([
        optimize.brentq(condition, low - 1e-9, top, args=(T,), xtol=1e-13)
        for T, top in zip(DEMANDS.tolist(), tops, strict=True)
    ])  # fmt: skip


def lifetime():
    """Compare one vectorised call with the loop."""
    try:
        from scipy import optimize
    except ImportError:
        print("SciPy is absent: the loop is skipped")
        return
    plan = lifetime_optimal(LAW, DEMANDS, loss=LOSS)
    loop, ours = interleaved(
        lambda: scalar_loop(optimize),
        lambda: lifetime_optimal(LAW, DEMANDS, loss=LOSS),
        rounds=3,
    )
    print(f"{'  SciPy loop over 1e5 demands':48} {1e3 * loop:8.0f} ms")
    print(f"{'  lifetime_optimal of 1e5 demands':48} {1e3 * ours:8.1f} ms")
    yield report("lifetime_optimal / SciPy loop, in hundredths", 100 * ours / loop, 1.0)
    model = LAW.alpha * LAW.A * plan.N**-LAW.alpha
    data = LAW.beta * LAW.B * plan.D**-LAW.beta * (1 + DEMANDS / (3 * plan.D))
    residual = np.max(np.abs(model / data - 1))
    yield report("largest residual, in 1e-12", residual / 1e-12, 1.0)
    off = np.max(np.abs(np.log(plan.D) - scalar_loop(optimize)))
    print(f"{'  largest difference of ln D to the loop':48} {off:8.1e}")


if __name__ == "__main__":
    results = [*lifetime()]
    print(f"{sum(results)} of {len(results)} goals met")
