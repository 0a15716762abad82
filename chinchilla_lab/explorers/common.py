"""Controls and readings that several explorers share."""

from collections.abc import Sequence

from chinchilla_lab.explorers.core import Choice, LogSlider, Reading
from chinchilla_lab.laws import LOSS_LAWS, PUBLISHED, Fitted, Law
from chinchilla_lab.units import text

__all__ = ["budget", "fit_note", "law_choice", "quantity", "without_effect"]


def budget(value: float = 1e22) -> LogSlider:
    """Return the control of the training compute."""
    return LogSlider(
        name="C",
        low=1e17,
        high=1e27,
        value=value,
        label="compute budget C",
        unit="FLOP",
        steps=200,
    )


def law_choice(names: Sequence[str] = LOSS_LAWS) -> Choice:
    """Return the control of the law."""
    options = {name: PUBLISHED[name].label for name in names}
    return Choice(name="law", options=options, value=names[0], label="scaling law")


def quantity(label: str, value: float, unit: str, digits: int = 3) -> Reading:
    """Return a reading of a quantity with its unit in words."""
    words = {"parameter": " parameters", "token": " tokens"}.get(unit, "")
    return Reading(label=label, text=text(value, unit, digits) + words, value=value)


def fit_note(law: Law, N: float, D: float, C: float) -> Reading:
    """Return a reading that says whether the law was fitted here."""
    if law.fitted == Fitted():
        return Reading(label="fitted range", text="not stated by the source")
    notes = law.fitted.outside(N=N, D=D, C=C)
    if not notes:
        return Reading(label="fitted range", text="inside")
    return Reading(label="fitted range", text="extrapolated: " + "; ".join(notes))


def without_effect(**idle: str | None) -> tuple[Reading, ...]:
    """Return a reading of the controls that do nothing now, or none.

    Parameters
    ----------
    **idle : str or None
        By name of a control: what it is called and why it does nothing; None where it
        does something, [-]
    """
    words = [why for why in idle.values() if why]
    if not words:
        return ()
    return (Reading(label="without effect here", text="; ".join(words)),)
