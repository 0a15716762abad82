"""From tokens of a step to sequences, and to a number of them that divides."""

from chinchilla_lab.cli.output import note

__all__: list[str] = []

CLOSE = 0.05  # how far a batch may be moved so that it divides, as a share


def sequences_of(batch: float, seq: int, n: int) -> int:
    """Return a whole number of sequences near a batch that divides among n."""
    exact = batch / seq
    if exact == int(exact):
        return int(exact)
    if exact < 1.0:
        raise ValueError(
            f"--batch {batch:,.0f} holds no sequence of {seq:,} tokens: a batch counts "
            f"tokens; give at least {seq}, or for {batch:,.0f} sequences "
            f"{batch * seq:.0f}"
        )
    odd = n // (n & -n)
    for factor in dict.fromkeys((odd, 1)):
        # the largest power of two first: it leaves the most ways to cut a batch
        for power in range(int(exact).bit_length(), -1, -1):
            step = factor << power
            near = step * max(1, round(exact / step))
            if abs(near / exact - 1.0) <= CLOSE:
                note(
                    f"--batch {batch:,.0f} is {exact:,.1f} sequences of {seq:,} "
                    f"tokens; taken are {near:,}, {near * seq / batch - 1:+.1%}, which "
                    f"divide better among {n:,} accelerators; to choose the number "
                    f"yourself, give a multiple of {seq:,}, such as --batch "
                    f"{near * seq}"
                )
                return near
    return max(1, round(exact))
