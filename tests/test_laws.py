"""Laws give back what their sources claim, and are what they say they are."""

import dataclasses
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chinchilla_lab as lab
from chinchilla_lab import allocation
from chinchilla_lab.laws import (
    BESIROGLU_2024,
    HOFFMANN_2022,
    HOFFMANN_2022_PRINTED,
    KAPLAN_2020_JOINT,
    LLAMA_2024_PRINTED,
    LOSS_LAWS,
    MUENNIGHOFF_2023_C4,
    MUENNIGHOFF_2023_REPEATED,
    PEARCE_2024,
    PUBLISHED,
    SPREAD,
    AdditiveLaw,
    LossLaw,
    variants,
)

quiet = pytest.mark.filterwarnings("ignore::chinchilla_lab.ExtrapolationWarning")

CLAIMS = [
    pytest.param(law, claim, id=f"{name}: {claim.quantity}, {claim.where}")
    for name, law in PUBLISHED.items()
    for claim in law.claims
    if not claim.quantity.startswith("slope")  # tested as golden row L072
]


def recall(law, claim):
    """What the law says where its source makes a claim."""
    if claim.quantity == "loss":
        extra = () if claim.unique is None else (claim.unique,)
        return law.loss(claim.N, claim.D, *extra)
    if claim.C is None:
        return getattr(law, claim.quantity)
    plan = allocation.compute_optimal(law, claim.C)
    return getattr(plan, claim.quantity)


@quiet
@pytest.mark.parametrize(("law", "claim"), CLAIMS)
def test_law_gives_back_its_own_claims(law, claim):
    assert recall(law, claim) == pytest.approx(claim.value, rel=claim.rtol)


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_law_says_what_it_is(name):
    law = PUBLISHED[name]
    assert law.name == name
    assert law.corpus
    assert law.source.where
    # a law whose own print contradicts its source claims nothing, and warns instead
    assert law.claims or (law.rounding == "rounded" and law.caution)


@pytest.mark.parametrize("name", PUBLISHED)
def test_laws_are_frozen(name):
    with pytest.raises(dataclasses.FrozenInstanceError):
        PUBLISHED[name].name = "mine"


def test_a_changed_copy_says_so():
    mine = BESIROGLU_2024.with_(alpha=0.35)
    assert mine.source.note == "modified"
    assert not mine.claims
    assert "modified" in mine.label
    assert BESIROGLU_2024.alpha == 0.3478


def test_default_and_its_company():
    assert lab.DEFAULT is BESIROGLU_2024
    assert next(iter(PUBLISHED)) == SPREAD[0] == LOSS_LAWS[0] == lab.DEFAULT.name
    assert set(SPREAD) | set(LOSS_LAWS) <= set(PUBLISHED)


def test_printed_coefficients_are_a_trap():
    """Hoffmann et al., Figure 4 says 40B; two-digit exponents say 32B."""
    with pytest.warns(lab.ExtrapolationWarning):
        printed = allocation.compute_optimal(HOFFMANN_2022_PRINTED, 5.76e23)
    with pytest.warns(lab.ExtrapolationWarning):
        source = allocation.compute_optimal(HOFFMANN_2022, 5.76e23)
    assert pytest.approx(40e9, rel=0.02) == source.N
    assert pytest.approx(32.2e9, rel=0.002) == printed.N
    assert HOFFMANN_2022_PRINTED.rounding == "rounded"


@quiet
def test_llama_print_is_a_trap():
    """Section 3.2.1 of the paper prints (.53, .29) and states 16.55T at 3.8e25."""
    assert LLAMA_2024_PRINTED.optimum(3.8e25)[1] == pytest.approx(10.46e12, rel=1e-3)
    assert "10.5T" in LLAMA_2024_PRINTED.caution


def test_kaplan_joint_law_is_additive_in_other_letters():
    N, D = np.geomspace(1e6, 1e12, 7)[:, None], np.geomspace(1e8, 1e13, 6)
    same = KAPLAN_2020_JOINT.as_additive().loss(N, D)
    np.testing.assert_allclose(KAPLAN_2020_JOINT.loss(N, D), same, rtol=1e-12)
    assert KAPLAN_2020_JOINT.as_additive().N_counts == "non_embedding"


def test_kaplan_exponent_does_not_follow_from_the_joint_law():
    """The joint law gives .575 (.556 with the one-variable alpha_D), never .73."""
    assert KAPLAN_2020_JOINT.as_additive().a == pytest.approx(0.575, abs=5e-4)
    mixed = KAPLAN_2020_JOINT.with_(alpha_D=0.095).as_additive()
    assert mixed.a == pytest.approx(0.556, abs=5e-4)


def test_one_epoch_reduces_to_the_base_law():
    N, D = 1e9, 1e11  # below the size that the tokens can use
    assert MUENNIGHOFF_2023_REPEATED.loss(N, D) == pytest.approx(
        MUENNIGHOFF_2023_C4.loss(N, D), rel=1e-14
    )
    with pytest.raises(ValueError, match=r"epochs=0\.5 must be at least 1"):
        MUENNIGHOFF_2023_REPEATED.effective_tokens(1e9, 0.5)


def test_recounted_law_keeps_the_loss_of_its_base():
    total = PEARCE_2024.total(1e8)
    with pytest.warns(lab.ExtrapolationWarning):
        expected = PEARCE_2024.base.loss(total, 1e9 / 2)
    assert PEARCE_2024.loss(1e8, 1e9 / 2) == pytest.approx(float(expected), rel=1e-14)


def test_extrapolation_warning_names_both_ranges():
    message = r"N=70B leaves the fitted range 57M to 16.2B by 0\.6 decades"
    with pytest.warns(lab.ExtrapolationWarning, match=message):
        BESIROGLU_2024.loss(70e9, 1e11)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BESIROGLU_2024.loss(1e9, 1e11)


@pytest.mark.parametrize("bad", [0, -1, np.nan, np.inf, "7B", None, []])
def test_bad_input_is_refused_by_name(bad):
    with pytest.raises(ValueError, match=r"^N"):
        BESIROGLU_2024.loss(bad, 1e11)


def test_bad_coefficients_are_refused_by_name():
    with pytest.raises(ValueError, match=r"^alpha=-0\.3"):
        BESIROGLU_2024.with_(alpha=-0.3)
    with pytest.raises(ValueError, match="N_counts='params' is not known"):
        BESIROGLU_2024.with_(N_counts="params")


exponent = st.floats(0.1, 0.9)
scale = st.floats(10.0, 1e5)


@given(exponent, exponent, scale, scale, st.floats(0.3, 1.0))
def test_outer_exponent_leaves_the_optimum(alpha, beta, A, B, k):
    plain = AdditiveLaw(E=1.8, A=A, B=B, alpha=alpha, beta=beta)
    outer = plain.with_(k=k)
    C = 1e21
    assert (
        allocation.compute_optimal(outer, C).N == allocation.compute_optimal(plain, C).N
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_any_number_type_gives_float64(dtype):
    loss = BESIROGLU_2024.loss(np.array([10**9], dtype), np.array([2 * 10**10], dtype))
    assert loss.dtype == np.float64
    assert loss[0] == pytest.approx(float(BESIROGLU_2024.loss(1e9, 2e10)), rel=1e-7)


def test_scalars_stay_scalars_and_grids_broadcast():
    assert np.ndim(BESIROGLU_2024.loss(1e9, 1e11)) == 0
    grid = BESIROGLU_2024.loss(np.full((3, 1), 1e9), np.full((1, 4), 1e11))
    assert grid.shape == (3, 4)


def test_experts_lower_the_loss():
    """A copy in circulation flips four signs: its loss rises with experts."""
    losses = [variants.LUDZIEJEWSKI_2025.at(e).loss(1e9, 1e12) for e in (1, 2, 8, 32)]
    assert losses == sorted(losses, reverse=True)


def test_a_rule_says_what_it_misses():
    with pytest.raises(ValueError, match=r"D is missing: the learning rate"):
        variants.STEPLAW_2025_LR(N=1e9)


def test_laws_with_a_loss_are_typed_as_such():
    for law in PUBLISHED.values():
        assert law.has_loss == isinstance(law, LossLaw)
