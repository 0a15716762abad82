"""What the README shows is what the library prints."""

import contextlib
import io
import re
from pathlib import Path

import pytest

import chinchilla_lab as lab

README = Path(__file__).parent.parent / "README.md"


def test_example_prints_what_the_readme_shows():
    text = README.read_text(encoding="utf-8")
    blocks = re.findall(r"```(python|text)\n(.*?)```", text, re.DOTALL)
    codes = [body for kind, body in blocks if kind == "python"]
    shown = [body for kind, body in blocks if kind == "text"]
    assert len(codes[0].strip().splitlines()) <= 10
    names = {}
    for code, expected in zip(codes[:-1], shown[:-1], strict=True):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        assert printed.getvalue() == expected
    with pytest.raises(lab.InfeasibleError) as refusal:
        exec(codes[-1], names)
    assert f"InfeasibleError: {refusal.value}\n" == shown[-1]
