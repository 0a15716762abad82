"""Laws with one more variable: experts, granularity, precision, and tuning rules.

Each becomes a plain :class:`~chinchilla_lab.laws.AdditiveLaw` once the extra variable
is fixed, so that everything that takes a law takes them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.checks import positive
from chinchilla_lab.laws.families import AdditiveLaw
from chinchilla_lab.sources import Source

__all__ = [
    "DEEPSEEK_2024_BATCH",
    "DEEPSEEK_2024_LR",
    "KRAJEWSKI_2024",
    "KRAJEWSKI_2024_DENSE",
    "KUMAR_2024_GAMMA_W",
    "LUDZIEJEWSKI_2025",
    "STEPLAW_2025_BATCH",
    "STEPLAW_2025_LR",
    "ExpertLaw",
    "GranularLaw",
    "TuningRule",
    "effective_params",
    "kaplan_critical_batch",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ExpertLaw:
    r"""Joint law of a mixture of experts in active parameters and tokens.

    .. math::

       L = a \hat E^{\delta} N^{\alpha + \gamma \ln \hat E}
         + b \hat E^{\omega} D^{\beta + \zeta \ln \hat E} + c

    Parameters
    ----------
    a : float
        Scale of the model term, [-]
    alpha : float
        Exponent of N, negative, [-]
    delta : float
        Exponent of the experts in the model term, [-]
    gamma : float
        How the exponent of N moves with the experts, [-]
    b : float
        Scale of the data term, [-]
    beta : float
        Exponent of D, negative, [-]
    omega : float
        Exponent of the experts in the data term, [-]
    zeta : float
        How the exponent of D moves with the experts, [-]
    E_start : float
        Offset of the effective number of experts, [-]
    E_max : float
        Its ceiling, [-]
    c : float
        Floor, [nats/token]
    source : Source
        Publication and place, [-]

    References
    ----------
    :cite:`ludziejewski2025joint`, appendix B

    Examples
    --------
    >>> f"{LUDZIEJEWSKI_2025.effective_experts(8):.4f}"
    '8.8124'
    """

    a: float
    alpha: float
    delta: float
    gamma: float
    b: float
    beta: float
    omega: float
    zeta: float
    E_start: float
    E_max: float
    c: float
    source: Source

    def effective_experts(self, n_experts: ArrayLike) -> Array:
        r"""Experts after the saturation that the fit allows for.

        .. math:: \frac{1}{\hat E} = \frac{1}{E - 1 + \left(\frac{1}{E_{start}}
           - \frac{1}{E_{max}}\right)^{-1}} + \frac{1}{E_{max}}

        Parameters
        ----------
        n_experts : array_like
            Experts E; 1 is the dense model, [-]

        Returns
        -------
        numpy.ndarray or float
            Effective experts, [-]
        """
        experts = positive("n_experts", n_experts)
        offset = 1.0 / (1.0 / self.E_start - 1.0 / self.E_max)
        return 1.0 / (1.0 / (experts - 1.0 + offset) + 1.0 / self.E_max)

    def at(self, n_experts: float) -> AdditiveLaw:
        """Fix the number of experts.

        Parameters
        ----------
        n_experts : float
            Experts; 1 is the dense model, [-]

        Returns
        -------
        AdditiveLaw
            The law in active N and D, [-]
        """
        log_e = float(np.log(self.effective_experts(n_experts)))
        return AdditiveLaw(
            E=self.c,
            A=self.a * np.exp(self.delta * log_e),
            B=self.b * np.exp(self.omega * log_e),
            alpha=-(self.alpha + self.gamma * log_e),
            beta=-(self.beta + self.zeta * log_e),
            name=f"experts-{n_experts:g}",
            label=f"joint MoE law, {n_experts:g} experts",
            N_counts="active",
            source=self.source,
        )


@dataclass(frozen=True, kw_only=True)
class GranularLaw:
    r"""Law of a mixture of experts of chosen granularity.

    .. math:: L = c + \left(\frac{g}{G^{\gamma}} + a\right) N^{-\alpha} + b D^{-\beta}

    Parameters
    ----------
    c : float
        Floor, [nats/token]
    g : float
        Size of the granularity term; 0 for a dense model, [-]
    gamma : float
        Exponent of the granularity, [-]
    a : float
        Scale of the model term, [-]
    alpha : float
        Exponent of N, [-]
    b : float
        Scale of the data term, [-]
    beta : float
        Exponent of D, [-]
    source : Source
        Publication and place, [-]

    References
    ----------
    :cite:`krajewski2024scaling`, Table 1

    Examples
    --------
    >>> f"{KRAJEWSKI_2024.at(granularity=4).loss(1e9, 2e10):.4f}"
    '3.1691'
    """

    c: float
    g: float
    gamma: float
    a: float
    alpha: float
    b: float
    beta: float
    source: Source

    def at(self, granularity: float = 1.0) -> AdditiveLaw:
        """Fix the granularity.

        Parameters
        ----------
        granularity : float, optional
            How many times smaller an expert is than a dense MLP, [-]

        Returns
        -------
        AdditiveLaw
            The law in active non-embedding N and D, [-]
        """
        fine = float(positive("granularity", granularity))
        return AdditiveLaw(
            E=self.c,
            A=self.g / fine**self.gamma + self.a,
            B=self.b,
            alpha=self.alpha,
            beta=self.beta,
            name=f"granular-{fine:g}",
            label=f"granular MoE law, granularity {fine:g}",
            N_counts="active",
            source=self.source,
        )


@dataclass(frozen=True, kw_only=True)
class TuningRule:
    r"""A power law for a setting of the optimiser.

    .. math:: y = c \, N^{n} D^{d} C^{e}

    Parameters
    ----------
    gives : str
        The setting, with its unit, [-]
    coefficient : float
        Scale c, [any]
    N : float, optional
        Exponent of the non-embedding parameters, [-]
    D : float, optional
        Exponent of the tokens, [-]
    C : float, optional
        Exponent of the training compute, [-]
    source : Source
        Publication and place, [-]

    Examples
    --------
    >>> f"{STEPLAW_2025_LR(N=1e9, D=1e11):.3e}"
    '1.632e-03'
    """

    gives: str
    coefficient: float
    source: Source
    N: float = 0.0
    D: float = 0.0
    C: float = 0.0

    def __call__(
        self,
        N: ArrayLike | None = None,
        D: ArrayLike | None = None,
        C: ArrayLike | None = None,
    ) -> Array:
        """Evaluate the rule.

        Parameters
        ----------
        N : array_like, optional
            Non-embedding parameters, if the rule uses them, [parameter]
        D : array_like, optional
            Tokens, if the rule uses them, [token]
        C : array_like, optional
            Training compute, if the rule uses it, [FLOP]

        Returns
        -------
        numpy.ndarray or float
            The setting, in the unit that ``gives`` names, [any]

        Raises
        ------
        ValueError
            If a quantity that the rule uses is missing.
        """
        value = np.asarray(self.coefficient)
        for name, given in (("N", N), ("D", D), ("C", C)):
            exponent = getattr(self, name)
            if exponent == 0.0:
                continue
            if given is None:
                raise ValueError(f"{name} is missing: the {self.gives} depends on it")
            value = value * positive(name, given) ** exponent
        return value[()]


def effective_params(N: ArrayLike, bits: ArrayLike, gamma: float) -> Array:
    r"""Parameters at full precision that would serve as well as quantised ones.

    .. math:: N_{eff} = N \left(1 - e^{-P/\gamma}\right)

    Parameters
    ----------
    N : array_like
        Parameters, [parameter]
    bits : array_like
        Precision P of the weights, broadcast against ``N``, [bit]
    gamma : float
        Bits after which a further one brings 1/e of the first, [bit]

    Returns
    -------
    numpy.ndarray or float
        Effective parameters, [parameter]

    Notes
    -----
    The published fit has offsets that the text leaves out; its authors do not expect
    the constants to carry over to other set-ups.

    References
    ----------
    :cite:`kumar2024precision`, appendix K, without the offset of the weights

    Examples
    --------
    >>> f"{effective_params(1.0, 4, KUMAR_2024_GAMMA_W):.4f}"
    '0.7759'
    """
    n, p = positive("N", N), positive("bits", bits)
    return n * -np.expm1(-p / positive("gamma", gamma))


def kaplan_critical_batch(L: ArrayLike) -> Array:
    r"""Batch beyond which more data parallelism stops paying, after Kaplan et al.

    .. math:: B_{crit} = \frac{2 \times 10^8}{L^{1/0.21}}

    Parameters
    ----------
    L : array_like
        Loss reached, [nats/token]

    Returns
    -------
    numpy.ndarray or float
        Critical batch, [token]

    References
    ----------
    :cite:`kaplan2020scaling`, section 5.1

    Examples
    --------
    >>> f"{kaplan_critical_batch(3.0):.4g}"
    '1.069e+06'
    """
    return 2e8 / positive("L", L) ** (1.0 / 0.21)


LUDZIEJEWSKI_2025 = ExpertLaw(
    a=35.91,
    alpha=-0.1889,
    delta=-0.2285,
    gamma=0.0098,
    b=35.98,
    beta=-0.1775,
    omega=0.5529,
    zeta=-0.0259,
    E_start=2.0732,
    E_max=290.4521,
    c=1.3637,
    source=Source(
        cite="ludziejewski2025joint",
        where="Table 3",
        note="a copy in circulation flips four signs: its loss rises with experts",
    ),
)

_KRAJEWSKI = Source(
    cite="krajewski2024scaling",
    where="Table 1",
    evidence="secondary",
    note="two secondary sources that agree",
)
KRAJEWSKI_2024 = GranularLaw(
    c=0.47,
    g=2.1,
    gamma=0.58,
    a=18.1,
    alpha=0.115,
    b=30.8,
    beta=0.147,
    source=_KRAJEWSKI,
)
KRAJEWSKI_2024_DENSE = GranularLaw(
    c=0.47,
    g=0.0,
    gamma=0.58,
    a=16.3,
    alpha=0.126,
    b=26.7,
    beta=0.127,
    source=_KRAJEWSKI,
)

KUMAR_2024_GAMMA_W = 2.6745  # bit, :cite:`kumar2024precision`, appendix K

_STEPLAW = Source(
    cite="li2025predictable",
    where="learning rate and batch size of the step law",
    evidence="secondary",
)
STEPLAW_2025_LR = TuningRule(
    gives="learning rate [-]", coefficient=1.79, N=-0.713, D=0.307, source=_STEPLAW
)
STEPLAW_2025_BATCH = TuningRule(
    gives="batch [token]", coefficient=0.58, D=0.571, source=_STEPLAW
)
DEEPSEEK_2024_LR = TuningRule(
    gives="learning rate [-]",
    coefficient=0.3118,
    C=-0.1250,
    source=Source(cite="deepseek2024llm", where="equation 1", evidence="secondary"),
)
DEEPSEEK_2024_BATCH = TuningRule(
    gives="batch [token]",
    coefficient=0.2920,
    C=0.3271,
    source=Source(cite="deepseek2024llm", where="equation 1", evidence="secondary"),
)
