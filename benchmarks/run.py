"""Figures of merit as ratios to a peer or a floor: ``make bench``.

Candidates and floors run interleaved in one process, or in alternating processes, so a
busy machine slows both. Each line prints its goal and whether it is met.
"""

import gc
import json
import resource
import statistics
import subprocess
import sys
import time
import warnings

import numpy as np

import chinchilla_lab as lab

warnings.simplefilter("ignore", lab.ExtrapolationWarning)


def report(what, value, goal, unit="x"):
    """Print one line and return whether the goal is met."""
    met = value <= goal
    print(
        f"{what:48} {value:8.2f} {unit:4} goal {goal:g}  {'met' if met else 'MISSED'}"
    )
    return met


def interleaved(*candidates, rounds=15):
    """Return the median seconds of each candidate, run in turns."""
    spent = [[] for _ in candidates]
    for _ in range(rounds):
        for times, run in zip(spent, candidates, strict=True):
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
    return [statistics.median(times) for times in spent]


def process(code):
    """Run code in a fresh interpreter; its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def imports(rounds=15):
    """Compare a first law value and a first optimum with the import of numpy."""
    first_value = "import chinchilla_lab as l; l.DEFAULT.loss(1e9, 1e11)"
    optimum = "import chinchilla_lab as l; l.compute_optimal(l.DEFAULT, 1e21)"
    names = {"floor": "import numpy", "value": first_value, "optimum": optimum}
    spent = {name: [] for name in names}
    for _ in range(rounds):
        for name, code in names.items():
            spent[name].append(process(code))
    median = {name: statistics.median(times) for name, times in spent.items()}
    yield report(
        "import and first law value / import numpy",
        median["value"] / median["floor"],
        1.2,
    )
    ratio = median["optimum"] / median["floor"]
    print(f"{'import and first optimum / import numpy':48} {ratio:8.2f} x")


def law():
    """Compare a law on a million points, and on a grid, with the bare expression."""
    rng = np.random.default_rng(0)
    N, D = 10 ** rng.uniform(8, 10, 10**6), 10 ** rng.uniform(9, 11, 10**6)
    p = lab.DEFAULT

    def bare():
        return p.E + p.A * N**-p.alpha + p.B * D**-p.beta

    floor, ours = interleaved(bare, lambda: p.loss(N, D))
    yield report("law on 1e6 points / bare numpy expression", ours / floor, 1.2)
    n, d = np.geomspace(1e8, 1e10, 1000)[:, None], np.geomspace(1e9, 1e11, 1000)

    def bare_grid():
        return p.E + p.A * n**-p.alpha + p.B * d**-p.beta

    floor, ours = interleaved(bare_grid, lambda: p.loss(n, d))
    yield report("law on a 1000 x 1000 grid / bare expression", ours / floor, 1.2)
    C = np.geomspace(1e17, 1e27, 10**6)
    floor, ours = interleaved(lambda: C**0.5, lambda: lab.compute_optimal(p, C))
    print(f"{'optimum of 1e6 budgets / one numpy power':48} {ours / floor:8.2f} x")


def places(control):
    """Every value that a control can be moved to; a box that is typed has its ends."""
    if hasattr(control, "at"):
        return [control.at(i) for i in range(control.steps + 1)]
    if hasattr(control, "options"):
        return list(control.options)
    if hasattr(control, "low"):
        return [control.low, control.high]
    return [True, False] if isinstance(control.value, bool) else [control.value]


# CPU milliseconds of the first answer and of any later one; those that plan search
# shapes and layouts and must stay below 300
FIRST, MOVE = 30, 10
PLANS = (300, 300)
SLOW = dict.fromkeys(("one_plan", "cluster_optimal", "levers", "replicate"), PLANS)


def moves(name):
    """Move every control of an explorer over its whole range; CPU ms of each answer."""
    from chinchilla_lab.explorers import get
    from chinchilla_lab.explorers.page import pack

    spent = []
    states = [{}]
    for control in get(name).controls:
        states += [{control.name: value} for value in places(control)]
    gc.collect()
    gc.freeze()  # what other explorers left behind is not looked through again
    for state in states:
        text = json.dumps(state)
        start = time.process_time()
        pack(name, text)
        spent.append(1e3 * (time.process_time() - start))
    return spent[0], spent[1:]


def explorers():
    """Time the answers of each explorer, and one move of its kernel face."""
    from chinchilla_lab.explorers import NAMES, get
    from chinchilla_lab.explorers.kernel import KernelFace

    for name in NAMES:
        first, later = moves(name)
        goal, each = SLOW.get(name, (FIRST, MOVE))
        yield report(f"first answer, CPU: {name}", first, goal, "ms")
        yield report(f"  worst of {len(later)} moves, CPU", max(later), each, "ms")
        print(f"{'  their median':48} {statistics.median(later):8.2f} ms")
        face = KernelFace(get(name))
        inputs = face.inputs.values()
        slider = next((w for w in inputs if hasattr(w, "max")), None)
        if slider is not None:
            low = slider.min
            values = range(low + 1, min(slider.max, low + 20) + 1)
        else:
            slider = next(iter(inputs))
            # pairs of words and value, the present one last
            values = sorted(
                (value for _, value in slider.options), key=lambda v: v == slider.value
            )
        times = []
        for value in values:
            start = time.perf_counter()
            slider.value = value
            times.append(time.perf_counter() - start)
        yield report(
            "  kernel face, one move", 1e3 * statistics.median(times), 100, "ms"
        )


if __name__ == "__main__":
    results = [*imports(), *law(), *explorers()]
    print(f"{sum(results)} of {len(results)} goals met")
