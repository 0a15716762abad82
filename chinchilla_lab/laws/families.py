"""The equations of scaling laws, each a frozen class.

The published constants that fill them stand in :mod:`chinchilla_lab.laws.published`.

A law that knows a loss has ``loss(N, D)``; a law that only knows where the optimum
lies has ``optimum(C)``. Which parameters N counts, and which FLOP the budget C counts,
is part of every law, because the same digits mean something else under another count.
"""

import warnings
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.checks import (
    ExtrapolationWarning,
    one_of,
    positive,
    positive_span,
)
from chinchilla_lab.sources import Claim, Source
from chinchilla_lab.units import FLOP_PER_ND, text

__all__ = [
    "N_COUNTS",
    "AdditiveLaw",
    "AllocationLaw",
    "DirectLaw",
    "Fitted",
    "KaplanLaw",
    "Law",
    "LossLaw",
    "RatioLaw",
    "RecountedLaw",
    "RepeatedDataLaw",
    "UniqueDataLaw",
]

Array = NDArray[np.float64]
NCount = Literal["total", "non_embedding", "body_and_head", "active"]
N_COUNTS: tuple[NCount, ...] = ("total", "non_embedding", "body_and_head", "active")

_OWN = Source(
    cite="chinchilla_lab", where="your own coefficients", evidence="recomputed"
)


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """The range of the runs behind a law; ``None`` where the source does not say.

    Parameters
    ----------
    N : tuple of float, optional
        Smallest and largest model, [parameter]
    D : tuple of float, optional
        Fewest and most tokens, [token]
    C : tuple of float, optional
        Smallest and largest budget, [FLOP]
    """

    N: tuple[float, float] | None = None
    D: tuple[float, float] | None = None
    C: tuple[float, float] | None = None

    def outside(self, **asked: ArrayLike) -> list[str]:
        """Say for each quantity how far it leaves the range, if it does.

        Parameters
        ----------
        **asked : array_like
            ``N``, ``D`` or ``C``, in base units, [any]

        Returns
        -------
        list of str
            One sentence a quantity outside; empty inside, [-]
        """
        units = {"N": "parameter", "D": "token", "C": "FLOP"}
        notes = []
        for name, values in asked.items():
            limits = getattr(self, name)
            if limits is None:
                continue
            low, high = float(np.min(values)), float(np.max(values))
            if low >= limits[0] and high <= limits[1]:
                continue
            unit = units[name]
            far = max(np.log10(limits[0] / low), np.log10(high / limits[1]))
            wanted = text(low, unit)
            if high > low:
                wanted += f" to {text(high, unit)}"
            notes.append(
                f"{name}={wanted} leaves the fitted range {text(limits[0], unit)} to "
                f"{text(limits[1], unit)} by {far:.1f} decades"
            )
        return notes


@dataclass(frozen=True, kw_only=True, eq=False)
class Law:
    """What every law says of itself.

    Parameters
    ----------
    name : str
        Key in :data:`~chinchilla_lab.laws.PUBLISHED`, [-]
    label : str
        Short name for legends, [-]
    N_counts : {"total", "non_embedding", "body_and_head", "active"}
        Which parameters N counts, [-]
    C_counts : str
        How the source counts training FLOP, [-]
    fitted : Fitted
        Range of the runs behind the law, [-]
    corpus : str
        Training data and, where known, tokenizer, [-]
    rounding : {"unrounded", "as published", "rounded"}
        ``"rounded"`` marks digits too few to compute with, [-]
    source : Source
        Publication and place, [-]
    claims : tuple of Claim
        What the source says of its own law; tests ask the law for it, [-]
    caution : str
        What goes wrong when the law is used carelessly, [-]
    resampled : Law, optional
        The same law refitted on resamples of its runs: a law whose coefficients are
        arrays, one entry a resample; intervals come from it, [-]
    """

    name: str = "own law"
    label: str = "own law"
    N_counts: NCount = "total"
    C_counts: str = "6ND"
    fitted: Fitted = Fitted()
    corpus: str = ""
    rounding: Literal["unrounded", "as published", "rounded"] = "unrounded"
    source: Source = _OWN
    claims: tuple[Claim, ...] = ()
    caution: str = ""
    resampled: "Law | None" = None

    family: ClassVar[str] = ""
    has_loss: ClassVar[bool] = False

    def __post_init__(self) -> None:
        one_of("N_counts", self.N_counts, N_COUNTS)

    def with_(self, **changes: Any) -> Self:
        """Return a changed copy that no longer claims to be the publication.

        Parameters
        ----------
        **changes : float
            New values of the law's own fields, [any]

        Returns
        -------
        Law
            The copy; its ``source.note`` is ``"modified"`` and its claims are gone, [-]

        Examples
        --------
        >>> from chinchilla_lab.laws import BESIROGLU_2024
        >>> BESIROGLU_2024.with_(alpha=0.35).source.note
        'modified'
        """
        marks: dict[str, Any] = {
            "source": replace(self.source, note="modified"),
            "claims": (),
            "resampled": None,
            "label": f"{self.label} (modified)",
        }
        return replace(self, **(marks | changes))

    def warn_outside(self, **asked: Array) -> None:
        """Warn, once per call, about every quantity outside the fitted range.

        Parameters
        ----------
        **asked : numpy.ndarray
            ``N``, ``D`` or ``C``, in base units, [any]
        """
        notes = self.fitted.outside(**asked)
        if notes:
            warnings.warn(
                f"{self.label}: {'; '.join(notes)}; the answer is an extrapolation",
                ExtrapolationWarning,
                stacklevel=3,
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class LossLaw(Law):
    """A law that predicts a loss from N and D."""

    has_loss: ClassVar[bool] = True

    def loss(self, N: ArrayLike, D: ArrayLike) -> Array:
        """Predicted loss of a model of N parameters trained on D tokens.

        Parameters
        ----------
        N : array_like
            Parameters, counted as ``N_counts`` says, [parameter]
        D : array_like
            Training tokens, broadcast against ``N``, [token]

        Returns
        -------
        numpy.ndarray or float
            Loss, float64, [nats/token]

        Raises
        ------
        ValueError
            If a number is not finite and positive.

        Warns
        -----
        ExtrapolationWarning
            If ``N`` or ``D`` leaves the fitted range.
        """
        n, sizes = positive_span("N", N)
        d, tokens = positive_span("D", D)
        self.warn_outside(N=sizes, D=tokens)
        return self._loss(n, d)

    def _loss(self, N: Array, D: Array) -> Array:
        raise TypeError(f"{type(self).__name__} defines no loss")


@dataclass(frozen=True, kw_only=True, eq=False)
class AdditiveLaw(LossLaw):
    r"""A floor plus one term for a finite model and one for finite data.

    .. math:: L(N, D) = E + \left(A N^{-\alpha} + B D^{-\beta}\right)^k

    Parameters
    ----------
    E : float
        Loss that no model and no data remove, [nats/token]
    A : float
        Size of the model term; its unit follows from alpha and k, [-]
    B : float
        Size of the data term; its unit follows from beta and k, [-]
    alpha : float
        Exponent of N, [-]
    beta : float
        Exponent of D, [-]
    k : float, optional
        Outer exponent; 1 is the law of Hoffmann et al. Any k > 0 leaves the optimal
        N and D where they are, since the power is monotone, [-]

    Notes
    -----
    A and alpha are strongly correlated in every fit (0.999 for ln A and alpha): compare
    optima and exponents, never A or B.

    References
    ----------
    :cite:`hoffmann2022training`, equation 2 and section 3.3

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> f"{BESIROGLU_2024.loss(1e9, 2e10):.4f}"
    '2.5301'
    """

    E: float
    A: float
    B: float
    alpha: float
    beta: float
    k: float = 1.0

    family: ClassVar[str] = "additive"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("A", "B", "alpha", "beta", "k"):
            positive(name, getattr(self, name))
        if not np.all(np.isfinite(self.E)):
            raise ValueError(f"E={self.E} must be a finite loss")

    def _loss(self, N: Array, D: Array) -> Array:
        # one expression, so that numpy reuses its temporaries
        if np.all(self.k == 1.0):
            return self.E + self.A * N**-self.alpha + self.B * D**-self.beta
        return self.E + (self.A * N**-self.alpha + self.B * D**-self.beta) ** self.k

    @property
    def a(self) -> float:
        r"""Exponent of the optimal size: :math:`\beta / (\alpha + \beta)`."""
        return self.beta / (self.alpha + self.beta)

    @property
    def b(self) -> float:
        r"""Exponent of the optimal data: :math:`\alpha / (\alpha + \beta)`."""
        return self.alpha / (self.alpha + self.beta)

    @property
    def G(self) -> float:
        r"""Scale of the optimum: :math:`(\alpha A / \beta B)^{1/(\alpha+\beta)}`."""
        ratio = np.log(self.alpha * self.A) - np.log(self.beta * self.B)
        return np.exp(ratio / (self.alpha + self.beta))[()]

    @property
    def gamma(self) -> float:
        r"""Exponent of the frontier: :math:`\alpha\beta / (\alpha + \beta)`."""
        return self.alpha * self.beta / (self.alpha + self.beta)

    @property
    def K(self) -> float:
        r"""Scale of the frontier: :math:`A G^{-\alpha} + B G^{\beta}`."""
        return self.A * self.G**-self.alpha + self.B * self.G**self.beta


@dataclass(frozen=True, kw_only=True, eq=False)
class KaplanLaw(LossLaw):
    r"""The joint law of Kaplan et al.

    .. math::

       L(N, D) = \left[\left(\frac{N_c}{N}\right)^{\alpha_N / \alpha_D}
                 + \frac{D_c}{D}\right]^{\alpha_D}

    It is an additive law without a floor in other letters, see :meth:`as_additive`.

    Parameters
    ----------
    alpha_N : float
        Exponent of N when data is plentiful, [-]
    alpha_D : float
        Exponent of D when the model is large, [-]
    N_c : float
        Scale of N, [parameter]
    D_c : float
        Scale of D, [token]

    References
    ----------
    :cite:`kaplan2020scaling`, equation 1.5 and Table 2

    Examples
    --------
    >>> from chinchilla_lab.laws import KAPLAN_2020_JOINT
    >>> f"{KAPLAN_2020_JOINT.as_additive().a:.3f}"  # not .73: that is a separate fit
    '0.575'
    """

    alpha_N: float
    alpha_D: float
    N_c: float
    D_c: float

    family: ClassVar[str] = "Kaplan joint"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("alpha_N", "alpha_D", "N_c", "D_c"):
            positive(name, getattr(self, name))

    def _loss(self, N: Array, D: Array) -> Array:
        inner = (self.N_c / N) ** (self.alpha_N / self.alpha_D) + self.D_c / D
        return inner**self.alpha_D

    @property
    def overfitting_exponent(self) -> float:
        r"""How fast data must grow with N to keep up: :math:`\alpha_N/\alpha_D`."""
        return self.alpha_N / self.alpha_D

    def as_additive(self) -> AdditiveLaw:
        r"""Return the same law in the letters of :class:`AdditiveLaw`.

        Returns
        -------
        AdditiveLaw
            :math:`E = 0`, :math:`A = N_c^{\alpha_N/\alpha_D}`, :math:`B = D_c`,
            :math:`\alpha = \alpha_N/\alpha_D`, :math:`\beta = 1`,
            :math:`k = \alpha_D`, [-]
        """
        alpha = self.overfitting_exponent
        return AdditiveLaw(
            E=0.0,
            A=self.N_c**alpha,
            B=self.D_c,
            alpha=alpha,
            beta=1.0,
            k=self.alpha_D,
            **_meta(self),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class RecountedLaw(LossLaw):
    r"""A law in total parameters, asked in non-embedding parameters.

    .. math:: L(N, D) = L_\text{base}(N + \omega N^{1/3}, D)

    The vocabulary of a model of fixed aspect ratio grows like the cube root of its
    body. Counting N, and so C = 6ND, without it bends the straight lines of the
    base law: the optimum has no closed form any more.

    Parameters
    ----------
    base : AdditiveLaw
        Law in total parameters, [-]
    omega : float
        Vocabulary parameters per cube root of a body parameter,
        [parameter^(2/3)]

    References
    ----------
    :cite:`pearce2024reconciling`, equation 7

    Examples
    --------
    >>> from chinchilla_lab.laws import PEARCE_2024
    >>> f"{PEARCE_2024.total(1e9):.4g}"
    '1.047e+09'
    """

    base: AdditiveLaw
    omega: float

    N_counts: NCount = "non_embedding"
    family: ClassVar[str] = "recounted"

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("omega", self.omega)

    def total(self, N: ArrayLike) -> Array:
        """Total parameters of a model with N non-embedding parameters.

        Parameters
        ----------
        N : array_like
            Non-embedding parameters, [parameter]

        Returns
        -------
        numpy.ndarray or float
            Total parameters, [parameter]
        """
        n = positive("N", N)
        return n + self.omega * n ** (1.0 / 3.0)

    def _loss(self, N: Array, D: Array) -> Array:
        # a power, not cbrt: derivatives are taken with complex N
        return self.base._loss(N + self.omega * N ** (1.0 / 3.0), D)


def additive_base(base: object) -> AdditiveLaw:
    """Return the base of a law of repeated data, or say which laws can be one."""
    if isinstance(base, AdditiveLaw):
        return base
    raise TypeError(
        f"base={getattr(base, 'label', base)!r} is no additive law of data seen once; "
        "use one such as MUENNIGHOFF_2023_C4"
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class UniqueDataLaw(LossLaw):
    """A law that also asks how many of the tokens are unique.

    Parameters
    ----------
    base : AdditiveLaw
        The law for data seen once, [-]
    """

    base: AdditiveLaw

    def __post_init__(self) -> None:
        super().__post_init__()
        additive_base(self.base)

    def loss(
        self, N: ArrayLike, D: ArrayLike, unique: ArrayLike | None = None
    ) -> Array:
        """Predicted loss of N parameters on D tokens, of which ``unique`` differ.

        Parameters
        ----------
        N : array_like
            Total parameters, [parameter]
        D : array_like
            Training tokens including repeats, broadcast against ``N``, [token]
        unique : array_like, optional
            Unique tokens; by default all of ``D``, [token]

        Returns
        -------
        numpy.ndarray or float
            Loss, float64, [nats/token]

        Raises
        ------
        ValueError
            If a number is not finite and positive.

        Warns
        -----
        ExtrapolationWarning
            If ``N`` or ``D`` leaves the fitted range.
        """
        n, sizes = positive_span("N", N)
        d, tokens = positive_span("D", D)
        self.warn_outside(N=sizes, D=tokens)
        if unique is None:
            return self._loss(n, d)
        return self._repeated(n, d, positive("unique", unique))

    def _repeated(self, N: Array, D: Array, unique: Array) -> Array:
        raise TypeError(f"{type(self).__name__} defines no loss of repeated tokens")


@dataclass(frozen=True, kw_only=True, eq=False)
class RepeatedDataLaw(UniqueDataLaw):
    r"""An additive law in which repeated tokens and surplus parameters wear out.

    .. math::

       L(N, D, U) = E + \frac{A}{\tilde N^{\alpha}} + \frac{B}{\tilde D^{\beta}},
       \qquad \tilde D = U + U R_D^* \left(1 - e^{-R_D / R_D^*}\right)

    with :math:`R_D = D/U - 1` repeats, and :math:`\tilde N` built the same way from
    the parameters that the unique tokens U can use, :math:`N^*(U)`.

    Parameters
    ----------
    base : AdditiveLaw
        The law for data seen once, [-]
    R_D : float
        Repeats after which the next one is worth 1/e of fresh data, [-]
    R_N : float
        The same for surplus parameters, [-]

    References
    ----------
    :cite:`muennighoff2023scaling`, equations of section 3 and the repository's README

    Examples
    --------
    >>> from chinchilla_lab.laws import MUENNIGHOFF_2023_REPEATED as law
    >>> f"{law.effective_tokens(unique=1e9, epochs=4):.4g}"
    '3.726e+09'
    """

    R_D: float
    R_N: float

    family: ClassVar[str] = "repeated data"

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("R_D", self.R_D)
        positive("R_N", self.R_N)

    def _loss(self, N: Array, D: Array) -> Array:
        return self._worn(N, D, D)

    def _repeated(self, N: Array, D: Array, unique: Array) -> Array:
        u = np.minimum(unique, D)
        return self._worn(N, self._tokens(u, D / u), u)

    def useful_params(self, unique: ArrayLike) -> Array:
        r"""Size for which the unique tokens alone are the compute-optimal data.

        .. math:: N^*(U) = G \, (G U)^{\beta / \alpha}

        Parameters
        ----------
        unique : array_like
            Unique tokens, [token]

        Returns
        -------
        numpy.ndarray or float
            Parameters beyond which the law calls a model too large, [parameter]

        Examples
        --------
        >>> from chinchilla_lab.laws import MUENNIGHOFF_2023_REPEATED as law
        >>> f"{law.useful_params(100e6):.0f}"
        '5098652'
        """
        return self._useful(positive("unique", unique))[()]

    def _useful(self, unique: Array) -> Array:
        base = self.base
        return base.G * (base.G * unique) ** (base.beta / base.alpha)

    def marginal_value(self, epochs: ArrayLike) -> Array:
        r"""Worth of the next token after some epochs, relative to a fresh one.

        .. math:: \frac{d \tilde D}{d D} = e^{-R_D / R_D^*}, \qquad
           R_D = \text{epochs} - 1

        Parameters
        ----------
        epochs : array_like
            Passes made, at least 1, [-]

        Returns
        -------
        numpy.ndarray or float
            The share, 1 after the first epoch, [-]

        Raises
        ------
        ValueError
            If fewer than one epoch is asked.

        Notes
        -----
        Repeats are epochs minus one. :math:`R_D^*` is the 1/e point, not a half-life,
        see :attr:`half_life`.

        Examples
        --------
        >>> from chinchilla_lab.laws import MUENNIGHOFF_2023_REPEATED as law
        >>> law.marginal_value([1, 4, 16]).round(3)
        array([1.   , 0.823, 0.377])
        """
        passes = _at_least_one_epoch(epochs)
        return np.exp(-(passes - 1.0) / self.R_D)[()]

    @property
    def half_life(self) -> float:
        r"""Repeats after which a token is worth half: :math:`R_D^* \ln 2`, [-]."""
        return float(self.R_D * np.log(2.0))

    @property
    def ceiling(self) -> float:
        """Most effective tokens that endless epochs give, over the unique ones, [-]."""
        return 1.0 + self.R_D

    def floor(self, unique: ArrayLike) -> Array:
        r"""Loss that no size and no number of epochs go below.

        .. math:: E + \frac{A}{\left[N^*(U) (1 + R_N^*)\right]^{\alpha}}
           + \frac{B}{\left[U (1 + R_D^*)\right]^{\beta}}

        Parameters
        ----------
        unique : array_like
            Unique tokens, [token]

        Returns
        -------
        numpy.ndarray or float
            The floor, [nats/token]

        Examples
        --------
        >>> from chinchilla_lab.laws import MUENNIGHOFF_2023_REPEATED as law
        >>> f"{law.floor(25e9):.4f}"
        '2.1559'
        """
        u = positive("unique", unique)
        size = self._useful(u) * (1.0 + self.R_N)
        return np.asarray(self.base._loss(size, u * self.ceiling))[()]

    def _worn(self, N: Array, effective: Array, unique: Array) -> Array:
        """Loss when surplus parameters wear out and the tokens already did."""
        return self.base._loss(self._params(N, unique), effective)

    def _params(self, N: Array, unique: Array) -> Array:
        """Parameters that would do as well if none were surplus."""
        used = np.minimum(N, self._useful(unique))
        surplus = used * self.R_N * -np.expm1(-(N / used - 1.0) / self.R_N)
        return used + surplus

    def _tokens(self, unique: Array, epochs: Array) -> Array:
        repeats = self.R_D * -np.expm1(-(epochs - 1.0) / self.R_D)
        return unique * (1.0 + repeats)

    def _epochs(self, unique: Array, effective: Array) -> Array:
        """Return the inverse of :meth:`_tokens`; NaN or infinite beyond its ceiling."""
        return 1.0 - self.R_D * np.log1p(-(effective / unique - 1.0) / self.R_D)

    def effective_tokens(self, unique: ArrayLike, epochs: ArrayLike) -> Array:
        """Fresh tokens that would serve as well as some epochs of unique ones.

        Parameters
        ----------
        unique : array_like
            Unique tokens, [token]
        epochs : array_like
            Passes over them, at least 1, broadcast against ``unique``, [-]

        Returns
        -------
        numpy.ndarray or float
            Effective tokens, [token]

        Raises
        ------
        ValueError
            If fewer than one epoch is asked.
        """
        return self._tokens(positive("unique", unique), _at_least_one_epoch(epochs))


@dataclass(frozen=True, kw_only=True, eq=False)
class DirectLaw(Law):
    """A law that says where the optimum lies and knows no loss.

    A family of your own defines ``optimum`` and ``budget``, and the exponent ``a`` if
    the optimal size is a power of compute.
    """

    def optimum(self, C: ArrayLike) -> tuple[Array, Array]:
        """Optimal size and data of a budget.

        Parameters
        ----------
        C : array_like
            Training compute, [FLOP]

        Returns
        -------
        N : numpy.ndarray or float
            Parameters, counted as ``N_counts`` says, [parameter]
        D : numpy.ndarray or float
            Tokens, [token]
        """
        raise TypeError(f"{type(self).__name__} defines no optimum")

    def budget(self, N: ArrayLike) -> Array:
        """Compute for which N is the optimal size: the inverse of :meth:`optimum`.

        Parameters
        ----------
        N : array_like
            Parameters, counted as ``N_counts`` says, [parameter]

        Returns
        -------
        numpy.ndarray or float
            Training compute, [FLOP]
        """
        raise TypeError(f"{type(self).__name__} defines no budget")


@dataclass(frozen=True, kw_only=True, eq=False)
class AllocationLaw(DirectLaw):
    r"""Where the optimum lies, without a loss.

    .. math::

       N^*(C) = c \left(\frac{f C}{C_0}\right)^{a}, \qquad D^*(C) = \frac{C}{6 N^*}

    or the same for :math:`D^*` with the roles exchanged.

    Parameters
    ----------
    coefficient : float
        Value of the law at :math:`f C = C_0`, [parameter or token]
    exponent : float
        Its growth with C, [-]
    gives : {"N", "D"}
        Which of the two the power law gives; the other follows from the budget, [-]
    C_unit : float, optional
        Unit :math:`C_0` in which the source measures compute, [FLOP]
    C_share : float, optional
        Share f of the budget that the source's compute counts, for example 1/2 for
        the minimal compute of Kaplan et al. far below the critical batch, [-]

    Examples
    --------
    >>> from chinchilla_lab.laws import HOFFMANN_2022_ENVELOPE
    >>> N, D = HOFFMANN_2022_ENVELOPE.optimum(1e21)
    >>> f"{N:.3e}"
    '2.860e+09'
    """

    coefficient: float
    exponent: float
    gives: Literal["N", "D"] = "N"
    C_unit: float = 1.0
    C_share: float = 1.0

    family: ClassVar[str] = "allocation"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("gives", self.gives, ("N", "D"))
        for name in ("coefficient", "exponent", "C_unit", "C_share"):
            positive(name, getattr(self, name))
        if np.max(self.exponent) >= 1.0:
            raise ValueError(
                f"exponent={self.exponent:g} must be below 1: N and D both grow with C"
            )

    @property
    def a(self) -> float:
        """Exponent of the optimal size."""
        return self.exponent if self.gives == "N" else 1.0 - self.exponent

    @property
    def b(self) -> float:
        """Exponent of the optimal data."""
        return 1.0 - self.a

    def optimum(self, C: ArrayLike) -> tuple[Array, Array]:
        """Optimal size and data of a budget.

        Parameters
        ----------
        C : array_like
            Training compute, [FLOP]

        Returns
        -------
        N : numpy.ndarray or float
            Parameters, counted as ``N_counts`` says, [parameter]
        D : numpy.ndarray or float
            Tokens, [token]
        """
        c = positive("C", C)
        given = self.coefficient * (self.C_share * c / self.C_unit) ** self.exponent
        other = c / (FLOP_PER_ND * given)
        return (given, other) if self.gives == "N" else (other, given)

    def budget(self, N: ArrayLike) -> Array:
        """Compute for which N is the optimal size: the inverse of :meth:`optimum`.

        Parameters
        ----------
        N : array_like
            Parameters, counted as ``N_counts`` says, [parameter]

        Returns
        -------
        numpy.ndarray or float
            Training compute, [FLOP]
        """
        n = positive("N", N)
        unit_N = self.optimum(1.0)[0]
        return (n / unit_N) ** (1.0 / self.a)


@dataclass(frozen=True, kw_only=True, eq=False)
class RatioLaw(DirectLaw):
    r"""A fixed number of tokens per parameter.

    .. math:: D = r N, \qquad N^*(C) = \sqrt{C / 6 r}

    Parameters
    ----------
    tokens_per_param : float
        The ratio r, [token/parameter]

    Examples
    --------
    >>> from chinchilla_lab.laws import RATIO_20
    >>> f"{RATIO_20.optimum(5.76e23)[0]:.4g}"
    '6.928e+10'
    """

    tokens_per_param: float

    family: ClassVar[str] = "fixed ratio"

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("tokens_per_param", self.tokens_per_param)

    @property
    def a(self) -> float:
        """Exponent of the optimal size: one half by construction."""
        return 0.5

    @property
    def b(self) -> float:
        """Exponent of the optimal data: one half by construction."""
        return 0.5

    def optimum(self, C: ArrayLike) -> tuple[Array, Array]:
        """Size and data of a budget at the fixed ratio.

        Parameters
        ----------
        C : array_like
            Training compute, [FLOP]

        Returns
        -------
        N : numpy.ndarray or float
            Parameters, [parameter]
        D : numpy.ndarray or float
            Tokens, [token]
        """
        n = np.sqrt(positive("C", C) / (FLOP_PER_ND * self.tokens_per_param))
        return n, self.tokens_per_param * n

    def budget(self, N: ArrayLike) -> Array:
        """Compute for which N is the size at the fixed ratio.

        Parameters
        ----------
        N : array_like
            Parameters, [parameter]

        Returns
        -------
        numpy.ndarray or float
            Training compute, [FLOP]
        """
        n = positive("N", N)
        return FLOP_PER_ND * self.tokens_per_param * n * n


def _at_least_one_epoch(epochs: ArrayLike) -> Array:
    passes = positive("epochs", epochs)
    if passes.min() < 1.0:
        raise ValueError(
            f"epochs={passes.min():g} must be at least 1; for part of an epoch "
            "use the tokens seen as unique"
        )
    return passes


def _meta(law: Law) -> dict[str, Any]:
    return {field.name: getattr(law, field.name) for field in fields(Law)}
