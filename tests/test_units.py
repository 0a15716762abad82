"""Quantities as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chinchilla_lab.units import UNITS, UnitError, parse, text

GOOD = [
    ("3e24", "FLOP", 3e24),
    ("3e24 FLOP", "FLOP", 3e24),
    ("5 ZFLOP", "FLOP", 5e21),
    ("10^22", "FLOP", 1e22),
    ("3x10^24", "FLOP", 3e24),
    ("3·10²⁴", "FLOP", 3e24),
    ("1 PF-day", "FLOP", 8.64e19),
    ("1 PFLOP/s-day", "FLOP", 8.64e19),
    ("2 PF-days", "FLOP", 1.728e20),
    ("989 TFLOP/s", "FLOP/s", 989e12),
    ("989e12", "FLOP/s", 989e12),
    ("400B", "token", 4e11),
    ("400G", "token", 4e11),
    ("0.4T", "token", 4e11),
    ("4e11", "token", 4e11),
    ("2.5B tokens", "token", 2.5e9),
    ("0.5 million", "token", 5e5),
    ("7b", "parameter", 7e9),
    ("124M", "parameter", 124e6),
    ("80GiB", "byte", 80 * 2**30),
    ("80GB", "byte", 80e9),
    ("80 B", "byte", 80),
    ("3.35 TB/s", "byte/s", 3.35e12),
    ("400 Gbit/s", "byte/s", 50e9),
    ("16k", "count", 16000),
    ("16k GPUs", "count", 16000),
    ("1,000,000", "count", 1e6),
    ("1_000", "count", 1000),
    ("30 days", "s", 2592000),
    ("5 weeks", "s", 3024000),
    ("12h", "s", 43200),
    ("$2M", "USD", 2e6),
    ("2M USD", "USD", 2e6),
    ("10 ms", "s", 0.01),
    ("1 yr", "s", 365.25 * 86400),
    ("-$2.5M", "USD", -2.5e6),
    ("USD 2M", "USD", 2e6),
    ("1 pf-day", "FLOP", 8.64e19),
    ("1 PF/s-day", "FLOP", 8.64e19),
    ("1 exaflop", "FLOP", 1e18),
    ("989 tflop/s", "FLOP/s", 989e12),
    ("1 EiB", "byte", 2.0**60),
    ("15T toks", "token", 15e12),
    (7e9, "parameter", 7e9),
    (8, "count", 8),
]


@pytest.mark.parametrize(("written", "unit", "value"), GOOD)
def test_people_write(written, unit, value):
    assert parse(written, unit) == pytest.approx(value, rel=1e-14)


BAD = [
    ("400GB", "token", "size in bytes, not tokens; write 400B or 400G for 4e11 tokens"),
    ("400MB", "parameter", "write 400M for 4e8 parameters"),
    ("989 TFLOP/s", "FLOP", "is a rate"),
    ("1e22 FLOP", "FLOP/s", "is an amount of FLOP, not a rate"),
    ("989 TFLOPS", "FLOP/s", "as an amount or as a rate"),
    ("20 PFLOPS", "FLOP", "as an amount or as a rate"),
    ("7B tokens", "parameter", "a number of tokens, not parameters"),
    ("10GB/s", "byte", "a rate in byte/s, not bytes"),
    ("5 minutes", "token", "is a time, not tokens"),
    ("6ND", "FLOP", "'ND' is not a unit of FLOP"),
    ("1,5", "count", "decimal comma"),
    ("1,50,000", "count", "comma"),
    ("", "token", "is not a number"),
    ("abc", "FLOP", "is not a number"),
    ("inf", "FLOP", "is not a number"),
    ("1e999", "FLOP", "not a finite number"),
    ("3x10^400", "FLOP", "too large"),
    (10**400, "FLOP", "too large"),
    ("1.0.0x10^5", "FLOP", "is not a number"),
    (float("nan"), "FLOP", "not a finite number"),
    ("3", "tokens", "unit='tokens' is not known"),
]


@pytest.mark.parametrize(("written", "unit", "message"), BAD)
def test_doubtful_text_is_refused_with_a_way_out(written, unit, message):
    with pytest.raises(UnitError, match=message):
        parse(written, unit)


SHOWN = [
    (9.0453e9, "parameter", "9.05B"),
    (184.3e9, "token", "184B"),
    (999.99e9, "token", "1T"),
    (1e22, "FLOP", "1e22 FLOP"),
    (5.76e23, "FLOP", "5.76e23 FLOP"),
    (989.4e12, "FLOP/s", "989 TFLOP/s"),
    (80e9, "byte", "80 GB"),
    (4.57 * 86400, "s", "4.57 days"),
    (7200, "s", "2 hours"),
    (90, "s", "90 s"),
    (2.5e6, "USD", "$2.5M"),
    (16384, "count", "16.4k"),
    (20.37, "", "20.4"),
    (1e-9, "", "1e-9"),
    (0, "token", "0"),
]


@pytest.mark.parametrize(("value", "unit", "shown"), SHOWN)
def test_quantities_for_people(value, unit, shown):
    assert text(value, unit) == shown


@given(st.sampled_from(UNITS), st.floats(1e-2, 1e29))
def test_text_reads_back(unit, value):
    assert parse(text(value, unit, 6), unit) == pytest.approx(value, rel=1e-5)
