"""What an epoch is worth under the published scale of repetition."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.laws.families import RepeatedDataLaw
from chinchilla_lab.laws.published import MUENNIGHOFF_2023_REPEATED
from chinchilla_lab.repetition.results import needs_discount

__all__ = ["effective_tokens", "marginal_value"]

Array = NDArray[np.float64]


def effective_tokens(
    unique: ArrayLike,
    epochs: ArrayLike,
    law: RepeatedDataLaw = MUENNIGHOFF_2023_REPEATED,
) -> Array:
    r"""Fresh tokens that would serve as well as some epochs of unique ones.

    .. math:: \tilde D = U \left[1 + R_D^* \left(1 - e^{-R_D/R_D^*}\right)\right],
       \qquad R_D = \text{epochs} - 1

    Parameters
    ----------
    unique : array_like
        Unique tokens, [token]
    epochs : array_like
        Passes over them, at least 1, broadcast against ``unique``, [-]
    law : RepeatedDataLaw, optional
        Law with the scale of repetition, by default the published one, [-]

    Returns
    -------
    numpy.ndarray or float
        Effective tokens, at most all trained and at most ``law.ceiling`` times the
        unique ones, [token]

    References
    ----------
    :cite:`muennighoff2023scaling`, equations of section 3

    Examples
    --------
    >>> effective_tokens(1.0, [2, 4, 7, 16]).round(3)
    array([ 1.968,  3.726,  5.969, 10.582])
    """
    return needs_discount(law, "effective tokens").effective_tokens(unique, epochs)


def marginal_value(
    epochs: ArrayLike, law: RepeatedDataLaw = MUENNIGHOFF_2023_REPEATED
) -> Array:
    r"""Worth of the next token after some epochs, relative to a fresh one.

    .. math:: e^{-R_D/R_D^*}, \qquad R_D = \text{epochs} - 1

    Parameters
    ----------
    epochs : array_like
        Passes made, at least 1, [-]
    law : RepeatedDataLaw, optional
        Law with the scale of repetition, by default the published one, [-]

    Returns
    -------
    numpy.ndarray or float
        The share, [-]

    References
    ----------
    :cite:`muennighoff2023scaling`, derivative of the effective tokens

    Examples
    --------
    >>> marginal_value([2, 4, 8]).round(3)
    array([0.937, 0.823, 0.635])
    """
    return needs_discount(law, "worth of a repeat").marginal_value(epochs)
