"""Published laws as frozen constants, each with source, counts and claims.

Names are ``AUTHOR_YEAR_VARIANT``. Where a paper prints fewer digits than its own
numbers need, the printed set stands apart as ``_PRINTED`` and says so in ``caution``.
"""

from math import exp

from chinchilla_lab.laws.families import (
    AdditiveLaw,
    AllocationLaw,
    Fitted,
    KaplanLaw,
    Law,
    RatioLaw,
    RecountedLaw,
    RepeatedDataLaw,
)
from chinchilla_lab.sources import Claim, Source
from chinchilla_lab.units import PF_DAY

__all__ = [
    "BESIROGLU_2024",
    "BESIROGLU_2024_HUBER",
    "BESIROGLU_2024_NOTEBOOK",
    "DEEPSEEK_2024",
    "DEFAULT",
    "GADRE_2024_C4",
    "GADRE_2024_RPJ",
    "GADRE_2024_RW",
    "HOFFMANN_2022",
    "HOFFMANN_2022_ENVELOPE",
    "HOFFMANN_2022_ISOFLOP",
    "HOFFMANN_2022_PRINTED",
    "KAPLAN_2020_CMIN",
    "KAPLAN_2020_JOINT",
    "KAPLAN_2020_RAW",
    "LLAMA_2024_PRINTED",
    "LLAMA_2024_REFIT",
    "LOSS_LAWS",
    "MUENNIGHOFF_2023_C4",
    "MUENNIGHOFF_2023_REPEATED",
    "PEARCE_2024",
    "PORIAN_2024_COSINE",
    "PORIAN_2024_HEAD",
    "PORIAN_2024_KAPLAN",
    "PORIAN_2024_TUNED",
    "PORIAN_2024_WARMUP",
    "PUBLISHED",
    "RATIO_20",
    "SARDANA_2024",
    "SPREAD",
]

_MASSIVETEXT = "MassiveText, SentencePiece 32,000"

# The 240 digitised runs that the replication kept, not the 400 of the original fit.
_CHINCHILLA_RUNS = Fitted(N=(5.7e7, 1.62e10), D=(8.2e8, 3.18e11), C=(1.4e18, 1.3e22))

# --- Hoffmann et al. 2022 ---------------------------------------------------------

HOFFMANN_2022 = AdditiveLaw(
    name="hoffmann-2022",
    label="Hoffmann 2022, approach 3",
    E=exp(0.5267228),
    A=exp(6.0073404),
    B=exp(6.0179186),
    alpha=0.33917084,
    beta=0.2849083,
    N_counts="total",
    corpus=_MASSIVETEXT,
    fitted=_CHINCHILLA_RUNS,
    rounding="unrounded",
    source=Source(
        cite="hoffmann2022training",
        where="TeX source of equation 10, logarithms of E, A and B",
        note="quoted by the replication notebook of Besiroglu et al.",
    ),
    claims=(
        Claim(quantity="N", C=5.76e23, value=40e9, rtol=0.02, where="Figure 4 caption"),
        Claim(quantity="a", value=0.46, rtol=0.011, where="Table 2, approach 3"),
        Claim(quantity="b", value=0.54, rtol=0.01, where="Table 2, approach 3"),
    ),
    caution="Stopped short of the optimum of its own objective; asks for more tokens "
    "per parameter than approaches 1 and 2 of the same paper.",
)

HOFFMANN_2022_PRINTED = AdditiveLaw(
    name="hoffmann-2022-printed",
    label="Hoffmann 2022, as printed",
    E=1.69,
    A=406.4,
    B=410.7,
    alpha=0.34,
    beta=0.28,
    N_counts="total",
    corpus=_MASSIVETEXT,
    fitted=_CHINCHILLA_RUNS,
    rounding="rounded",
    source=Source(cite="hoffmann2022training", where="equation 10"),
    caution="Two-digit exponents move the optimum at 5.76e23 FLOP from 40B to 32B "
    "parameters and from 59 to 93 tokens per parameter. Use hoffmann-2022.",
)

SARDANA_2024 = AdditiveLaw(
    name="sardana-2024",
    label="Hoffmann 2022, exponents .336 and .283",
    E=1.69,
    A=406.4,
    B=410.7,
    alpha=0.336,
    beta=0.283,
    N_counts="total",
    corpus=_MASSIVETEXT,
    fitted=_CHINCHILLA_RUNS,
    rounding="as published",
    source=Source(
        cite="sardana2024beyond",
        where="repository, commit 190f70e, coefficients of the calculators",
        note="exponents less rounded than in the print of Hoffmann et al.; also those "
        "of the calculator of de Vries 2023",
    ),
    claims=(
        Claim(
            quantity="loss",
            N=70e9,
            D=1e12,
            value=1.9472727897172717,
            rtol=1e-10,
            where="output of model_calculator",
        ),
        Claim(
            quantity="N",
            C=1e24,
            value=5.368e10,
            rtol=1e-4,
            where="output of model_calculator",
        ),
        Claim(
            quantity="D",
            C=2.46e22,
            value=415.53e9,
            rtol=1e-4,
            where="de Vries 2023, table of the post",
        ),
    ),
    caution="Three-digit exponents. Published work on lifetime cost uses it; at 70B it "
    "asks for 61 tokens per parameter, besiroglu-2024 for 18.",
)

HOFFMANN_2022_ENVELOPE = AllocationLaw(
    name="hoffmann-2022-envelope",
    label="Hoffmann 2022, approach 1",
    coefficient=0.09915893230794971,
    exponent=0.4980986857771881,
    gives="N",
    N_counts="total",
    corpus=_MASSIVETEXT,
    rounding="as published",
    source=Source(
        cite="hoffmann2022training",
        where="Table 3, log-log regression of its nine rows",
        evidence="recomputed",
    ),
    claims=(
        Claim(quantity="a", value=0.50, rtol=0.01, where="Table 2, approach 1"),
        Claim(quantity="N", C=1e21, value=2.86e9, rtol=0.002, where="appendix D.4"),
        Claim(quantity="N", C=1.92e19, value=400e6, rtol=0.015, where="Table 3"),
        Claim(quantity="N", C=1.27e26, value=1e12, rtol=0.015, where="Table 3"),
    ),
    caution="Table 3 is rounded to two or three digits; its 67B row closes 6ND = C "
    "only to 5 %.",
)

HOFFMANN_2022_ISOFLOP = AllocationLaw(
    name="hoffmann-2022-isoflop",
    label="Hoffmann 2022, approach 2",
    coefficient=0.1448770518112787,
    exponent=0.48994161286254634,
    gives="N",
    N_counts="total",
    corpus=_MASSIVETEXT,
    fitted=Fitted(C=(6e18, 3e21)),
    rounding="as published",
    source=Source(
        cite="hoffmann2022training",
        where="Table A3, approach 2, log-log regression of its nine rows",
        evidence="recomputed",
    ),
    claims=(
        Claim(quantity="a", value=0.49, rtol=0.01, where="Table 2, approach 2"),
        Claim(quantity="N", C=1.84e19, value=400e6, rtol=0.035, where="Table A3"),
        Claim(quantity="N", C=6.88e23, value=67e9, rtol=0.035, where="Table A3"),
    ),
)

# --- Besiroglu et al. 2024 --------------------------------------------------------

BESIROGLU_2024 = AdditiveLaw(
    name="besiroglu-2024",
    label="Besiroglu 2024",
    E=1.8172,
    A=482.01,
    B=2085.43,
    alpha=0.3478,
    beta=0.3658,
    N_counts="total",
    corpus=_MASSIVETEXT,
    fitted=_CHINCHILLA_RUNS,
    rounding="as published",
    source=Source(
        cite="besiroglu2024chinchilla",
        where="refit of the digitised runs, coefficients as published",
        note="least absolute deviations, although the text describes Huber 1e-3",
    ),
    claims=(
        Claim(quantity="a", value=0.513, rtol=0.001, where="replication notebook"),
        Claim(
            quantity="tokens_per_param",
            C=1e18,
            value=25.66,
            rtol=0.005,
            where="notebook cell 69, printed for another budget by an index slip",
        ),
    ),
    caution="The optimum is known to about a factor 1.5: see the bootstrap interval.",
)

BESIROGLU_2024_NOTEBOOK = AdditiveLaw(
    name="besiroglu-2024-notebook",
    label="Besiroglu 2024, all digits",
    E=exp(0.5971119597824348),
    A=exp(6.177955975826981),
    B=exp(7.6427323622433505),
    alpha=0.34781302903942635,
    beta=0.3658541172951044,
    N_counts="total",
    corpus=_MASSIVETEXT,
    fitted=_CHINCHILLA_RUNS,
    rounding="unrounded",
    source=Source(
        cite="besiroglu2024chinchilla",
        where="replication notebook, digits before rounding",
    ),
    claims=(
        Claim(quantity="A", value=482.01, rtol=2e-5, where="published coefficients"),
        Claim(quantity="B", value=2085.43, rtol=1e-5, where="published coefficients"),
        Claim(
            quantity="alpha", value=0.3478, rtol=2e-4, where="published coefficients"
        ),
        Claim(quantity="beta", value=0.3658, rtol=2e-4, where="published coefficients"),
    ),
)

BESIROGLU_2024_HUBER = AdditiveLaw(
    name="besiroglu-2024-huber",
    label="Besiroglu data, Huber optimum",
    E=1.81722,
    A=477.826,
    B=2143.42,
    alpha=0.347310,
    beta=0.367172,
    N_counts="total",
    corpus=_MASSIVETEXT,
    fitted=_CHINCHILLA_RUNS,
    rounding="unrounded",
    source=Source(
        cite="besiroglu2024chinchilla",
        where="minimum of the objective that the paper describes, Huber 1e-3, 240 runs",
        evidence="recomputed",
    ),
    claims=(
        Claim(
            quantity="E", value=1.817236, rtol=1e-4, where="notebook cells 18 and 72"
        ),
        Claim(quantity="A", value=477.84, rtol=1e-3, where="notebook cells 18 and 72"),
        Claim(quantity="B", value=2143.86, rtol=1e-3, where="notebook cells 18 and 72"),
        Claim(
            quantity="alpha",
            value=0.347313,
            rtol=1e-4,
            where="notebook cells 18 and 72",
        ),
        Claim(
            quantity="beta", value=0.367183, rtol=1e-4, where="notebook cells 18 and 72"
        ),
    ),
)

# --- Muennighoff et al. 2023 ------------------------------------------------------

MUENNIGHOFF_2023_C4 = AdditiveLaw(
    name="muennighoff-2023-c4",
    label="Muennighoff 2023, C4",
    E=exp(0.6254804),
    A=exp(6.255414),
    B=exp(7.3049974),
    alpha=0.3526596,
    beta=0.3526596,
    N_counts="total",
    corpus="C4, one epoch",
    rounding="as published",
    source=Source(
        cite="muennighoff2023scaling", where="README of the repository, exponents tied"
    ),
    claims=(Claim(quantity="a", value=0.5, rtol=1e-12, where="exponents are tied"),),
    caution="Exponents tied by choice: the ratio of tokens to parameters is constant.",
)

MUENNIGHOFF_2023_REPEATED = RepeatedDataLaw(
    name="muennighoff-2023-repeated",
    label="Muennighoff 2023, repeated data",
    base=MUENNIGHOFF_2023_C4,
    R_D=15.387756,
    R_N=5.309743,
    N_counts="total",
    corpus="C4, up to many epochs",
    rounding="as published",
    source=Source(cite="muennighoff2023scaling", where="README of the repository"),
    claims=(
        Claim(
            quantity="loss",
            N=6.34e9,
            D=242e9,
            unique=25e9,
            value=2.2256440889984477,
            rtol=1e-10,
            where="README, check value",
        ),
    ),
    caution="The scale of repetition is weakly identified by the runs.",
)

# --- Gadre et al. 2024 ------------------------------------------------------------

GADRE_2024_RPJ = AdditiveLaw(
    name="gadre-2024-rpj",
    label="Gadre 2024, RedPajama",
    E=1.83665,
    A=166.21,
    B=366.69 * 6 ** (-0.27285 / 2),
    alpha=0.27285,
    beta=0.27285,
    N_counts="total",
    corpus="RedPajama, loss on C4 validation",
    fitted=Fitted(N=(1.06e7, 4.12e8), D=(2.1e8, 8.24e9)),
    rounding="as published",
    source=Source(
        cite="gadre2024language",
        where="repository, fit of five RedPajama runs",
        evidence="recomputed",
    ),
    claims=(
        Claim(
            quantity="loss",
            N=1439795200,
            D=921468928000,
            value=2.502053562117363,
            rtol=0.0072,
            where="repository, measured loss of the 1.4B run at 640 tokens per "
            "parameter, predicted within 0.71 %",
        ),
        Claim(
            quantity="loss",
            N=6889410560,
            D=137788211200,
            value=2.424993099368689,
            rtol=0.01,
            where="repository, measured loss of the 6.9B run, predicted within 1 %",
        ),
    ),
    caution="Five runs at 20 or more tokens per parameter; its optimum of 7.4 lies "
    "outside its own grid.",
)

GADRE_2024_C4 = AdditiveLaw(
    name="gadre-2024-c4",
    label="Gadre 2024, C4",
    E=1.5083,
    A=113.7,
    B=189.5 * 6 ** (-0.24247 / 2),
    alpha=0.24247,
    beta=0.24247,
    N_counts="total",
    corpus="C4, loss on C4 validation",
    fitted=Fitted(N=(1.06e7, 4.12e8), D=(2.1e8, 8.24e9)),
    rounding="as published",
    source=Source(
        cite="gadre2024language",
        where="repository, fit of five C4 runs",
        evidence="recomputed",
    ),
    claims=(
        Claim(
            quantity="loss",
            N=6889410560,
            D=137788211200,
            value=2.3822204228774595,
            rtol=0.044,
            where="repository, measured loss of the 6.9B run, predicted within 4.3 %",
        ),
    ),
    caution="Five runs at 20 or more tokens per parameter; its optimum lies outside "
    "its own grid.",
)

GADRE_2024_RW = AdditiveLaw(
    name="gadre-2024-rw",
    label="Gadre 2024, RefinedWeb",
    E=1.7345,
    A=125.1,
    B=246.2 * 6 ** (-0.25439 / 2),
    alpha=0.25439,
    beta=0.25439,
    N_counts="total",
    corpus="RefinedWeb, loss on C4 validation",
    fitted=Fitted(N=(1.06e7, 4.12e8), D=(2.1e8, 8.24e9)),
    rounding="as published",
    source=Source(
        cite="gadre2024language",
        where="repository, fit of five RefinedWeb runs",
        evidence="recomputed",
    ),
    claims=(
        Claim(
            quantity="loss",
            N=6889410560,
            D=137788211200,
            value=2.454721561962622,
            rtol=0.017,
            where="repository, measured loss of the 6.9B run, predicted within 1.6 %",
        ),
    ),
    caution="Five runs at 20 or more tokens per parameter; its optimum lies outside "
    "its own grid.",
)

# --- Kaplan et al. 2020 -----------------------------------------------------------

_KAPLAN_NOTE = "constants read in several secondary sources that agree"

KAPLAN_2020_JOINT = KaplanLaw(
    name="kaplan-2020-joint",
    label="Kaplan 2020, joint law",
    alpha_N=0.076,
    alpha_D=0.103,
    N_c=6.4e13,
    D_c=1.8e13,
    N_counts="non_embedding",
    corpus="WebText2, byte-pair 50,257",
    rounding="as published",
    source=Source(
        cite="kaplan2020scaling",
        where="Table 2",
        evidence="secondary",
        note=_KAPLAN_NOTE,
    ),
    claims=(
        Claim(
            quantity="overfitting_exponent",
            value=0.74,
            rtol=0.01,
            where="equation 4.4, D grows at least like N^0.74",
        ),
    ),
    caution="Not the constants of the one-variable fits. Its own optimum grows like "
    "C^0.575, not C^0.73: the latter is a separate fit.",
)

KAPLAN_2020_CMIN = AllocationLaw(
    name="kaplan-2020-cmin",
    label="Kaplan 2020, C_min",
    coefficient=1.3e9,
    exponent=0.73,
    gives="N",
    C_unit=PF_DAY,
    C_share=0.5,
    N_counts="non_embedding",
    C_counts="6NBS; the law counts C_min, taken as C/2",
    corpus="WebText2, byte-pair 50,257",
    rounding="as published",
    source=Source(cite="kaplan2020scaling", where="Table 6"),
    claims=(
        Claim(quantity="a", value=0.73, rtol=1e-9, where="Table 6"),
        Claim(
            quantity="N",
            C=2 * PF_DAY,
            value=1.3e9,
            rtol=1e-9,
            where="Table 6, one PF-day of C_min",
        ),
    ),
    caution="C_min is the compute at a batch far below the critical one. Half of C "
    "reproduces how Hoffmann et al. draw it.",
)

KAPLAN_2020_RAW = AllocationLaw(
    name="kaplan-2020-raw",
    label="Kaplan 2020, raw C",
    coefficient=1.6e9,
    exponent=0.88,
    gives="N",
    C_unit=PF_DAY,
    N_counts="non_embedding",
    C_counts="6NBS, not adjusted for the batch size",
    corpus="WebText2, byte-pair 50,257",
    rounding="as published",
    source=Source(cite="kaplan2020scaling", where="Table 6, unadjusted"),
    claims=(
        Claim(quantity="a", value=0.88, rtol=1e-9, where="Table 6, unadjusted"),
        Claim(quantity="N", C=PF_DAY, value=1.6e9, rtol=1e-9, where="Table 6"),
    ),
)

# --- Pearce and Song 2024 ---------------------------------------------------------

PEARCE_2024 = RecountedLaw(
    name="pearce-2024",
    label="Pearce and Song 2024",
    base=BESIROGLU_2024,
    omega=47491.0,
    C_counts="6ND with non-embedding N",
    corpus=_MASSIVETEXT,
    rounding="as published",
    source=Source(
        cite="pearce2024reconciling",
        where="vocabulary of 32,000 and aspect ratio 39.2; repository",
    ),
    claims=(
        Claim(
            quantity="slope over the range of Kaplan et al.",
            value=0.78,
            rtol=0.002,
            where="simulation of 20 models",
        ),
    ),
    caution="A simulation: it shows what counting alone does to the exponent.",
)

# --- Porian et al. 2024 -----------------------------------------------------------


def _porian(
    step: str,
    label: str,
    coefficient: float,
    exponent: float,
    *claims: Claim,
) -> AllocationLaw:
    """One step of the ladder: RefinedWeb, plain regression of the exported optima."""
    return AllocationLaw(
        name=f"porian-2024-{step}",
        label=f"Porian 2024, {label}",
        coefficient=coefficient,
        exponent=exponent,
        gives="N",
        N_counts="non_embedding" if step == "kaplan" else "body_and_head",
        corpus="RefinedWeb",
        fitted=Fitted(C=(1.25e16, 2.56e19), N=(3.3e5, 9.0e8)),
        rounding="unrounded",
        source=Source(
            cite="porian2024resolving",
            where="repository, log-log regression of the optimal sizes",
            evidence="recomputed",
            note="the paper prints a bootstrap-weighted regression",
        ),
        claims=claims,
    )


def _porian_a(value: float) -> Claim:
    # the paper weights its regression, this one is plain: they agree within 1 %
    return Claim(quantity="a", value=value, rtol=0.01, where="RefinedWeb, weighted fit")


PORIAN_2024_KAPLAN = _porian(
    "kaplan",
    "Kaplan reproduced",
    4.509820786815614e-08,
    0.833767932284174,
    _porian_a(0.835),
)
PORIAN_2024_HEAD = _porian(
    "head",
    "last layer counted",
    1.610584624652303e-05,
    0.7008992037256908,
    _porian_a(0.706),
)
PORIAN_2024_WARMUP = _porian(
    "warmup",
    "short warm-up",
    0.0013421578409947002,
    0.6035277580839367,
    _porian_a(0.602),
)
PORIAN_2024_COSINE = _porian(
    "cosine",
    "cosine decay",
    0.004781425268667287,
    0.5714248897446624,
    _porian_a(0.571),
)
PORIAN_2024_TUNED = _porian(
    "tuned",
    "tuned optimiser, no decay",
    0.11819903781389414,
    0.49702879549161794,
    Claim(quantity="a", value=0.5, rtol=0.01, where="about one half, as Hoffmann"),
    Claim(
        quantity="N",
        C=5.88e23,
        value=77.0e9,
        rtol=0.001,
        where="repository, extrapolation to the budget of Chinchilla",
    ),
)

# --- DeepSeek 2024 ----------------------------------------------------------------

DEEPSEEK_2024 = AllocationLaw(
    name="deepseek-2024",
    label="DeepSeek 2024",
    coefficient=5.8316,
    exponent=0.4757,
    gives="D",
    N_counts="non_embedding",
    C_counts="M D, with M = 72 L d^2 + 12 L d T FLOP per token",
    corpus="in-house Chinese and English, tokenizer of 102,400",
    rounding="as published",
    source=Source(
        cite="deepseek2024llm",
        where="equation 4",
        evidence="secondary",
        note="two secondary sources that agree",
    ),
    claims=(
        Claim(quantity="a", value=0.5243, rtol=1e-9, where="equation 4"),
        Claim(quantity="N", C=1e24, value=0.1715 * 1e24**0.5243 / 6, rtol=2e-4,
              where="equation 4, M of the same budget"),
    ),
    caution="The law gives FLOP per token M, attention included and vocabulary not. N "
    "stands for M/6. The exponent moved from .450 to .578 with the data.",
)  # fmt: skip

# --- Llama 3, 2024 ----------------------------------------------------------------

LLAMA_2024_PRINTED = AllocationLaw(
    name="llama-2024-printed",
    label="Llama 3, as printed",
    coefficient=0.29,
    exponent=0.53,
    gives="D",
    N_counts="total",
    corpus="in-house, tokenizer of 128,256",
    fitted=Fitted(N=(4e7, 1.6e10), C=(6e18, 1e22)),
    rounding="rounded",
    source=Source(cite="grattafiori2024llama", where="section 3.2.1"),
    caution="The printed digits give 10.5T tokens at 3.8e25 FLOP where the paper "
    "states 16.55T: too few digits to compute with. Use llama-2024-refit.",
)

LLAMA_2024_REFIT = AllocationLaw(
    name="llama-2024-refit",
    label="Llama 3, digitised",
    coefficient=0.29935514474644365,
    exponent=0.5367791270945828,
    gives="D",
    N_counts="total",
    corpus="in-house, tokenizer of 128,256",
    fitted=Fitted(N=(4e7, 1.6e10), C=(6e18, 1e22)),
    rounding="unrounded",
    source=Source(
        cite="grattafiori2024llama",
        where="parabolas through 133 points digitised from Figure 2, 10 budgets",
        evidence="recomputed",
    ),
    claims=(
        Claim(
            quantity="D",
            C=3.8e25,
            value=16.55e12,
            rtol=0.03,
            where="section 3.2.1, 16.55T",
        ),
        Claim(quantity="b", value=0.53, rtol=0.015, where="section 3.2.1, exponent"),
    ),
    caution="Read off a plot; the flagship itself is 405B on 15.6T.",
)

# --- The rule of thumb ------------------------------------------------------------

RATIO_20 = RatioLaw(
    name="ratio-20",
    label="20 tokens per parameter",
    tokens_per_param=20.0,
    N_counts="total",
    corpus="a reading of approaches 1 and 2 on MassiveText",
    rounding="rounded",
    source=Source(
        cite="hoffmann2022training",
        where="Table 3: 67B parameters, 1.5T tokens",
        note="a rule drawn from the table, not a statement of the paper",
    ),
    claims=(
        Claim(
            quantity="D",
            C=1.21e20,
            value=20.2e9,
            rtol=0.015,
            where="Table 3, the row of 1B parameters",
        ),
    ),
    caution="A reading of one place on one set of curves; it ignores the budget.",
)

_ALL: tuple[Law, ...] = (
    BESIROGLU_2024,
    BESIROGLU_2024_HUBER,
    BESIROGLU_2024_NOTEBOOK,
    HOFFMANN_2022,
    HOFFMANN_2022_PRINTED,
    HOFFMANN_2022_ENVELOPE,
    HOFFMANN_2022_ISOFLOP,
    RATIO_20,
    SARDANA_2024,
    MUENNIGHOFF_2023_C4,
    MUENNIGHOFF_2023_REPEATED,
    GADRE_2024_RPJ,
    GADRE_2024_C4,
    GADRE_2024_RW,
    PORIAN_2024_KAPLAN,
    PORIAN_2024_HEAD,
    PORIAN_2024_WARMUP,
    PORIAN_2024_COSINE,
    PORIAN_2024_TUNED,
    DEEPSEEK_2024,
    LLAMA_2024_PRINTED,
    LLAMA_2024_REFIT,
    KAPLAN_2020_JOINT,
    KAPLAN_2020_CMIN,
    KAPLAN_2020_RAW,
    PEARCE_2024,
)

PUBLISHED: dict[str, Law] = {law.name: law for law in _ALL}
"""Every published law by name, the default first."""

DEFAULT = BESIROGLU_2024
"""The law used when none is named; show it with the spread of the others."""

LOSS_LAWS = (
    "besiroglu-2024",
    "besiroglu-2024-huber",
    "hoffmann-2022",
    "hoffmann-2022-printed",
    "muennighoff-2023-c4",
    "gadre-2024-rpj",
    "kaplan-2020-joint",
)
"""Laws of one loss in N and D, the default first."""

SPREAD = (
    "besiroglu-2024",
    "hoffmann-2022",
    "hoffmann-2022-envelope",
    "hoffmann-2022-isoflop",
    "muennighoff-2023-c4",
    "ratio-20",
    "gadre-2024-rpj",
    "kaplan-2020-cmin",
)
"""Laws whose spread goes with every answer of the default."""
