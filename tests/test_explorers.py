"""One definition, two faces: numbers, kernel widgets, and the page before any script."""

import json
import re
import warnings
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from chinchilla_lab import allocation
from chinchilla_lab.cluster import Cluster, bubble_fraction
from chinchilla_lab.explorers import NAMES, get
from chinchilla_lab.explorers.core import (
    Choice,
    Explorer,
    LogSlider,
    Panel,
    Reading,
    Sheet,
    Slider,
    Toggle,
)
from chinchilla_lab.explorers.kernel import KernelFace, _Picture
from chinchilla_lab.explorers.page import TOGETHER, answer, pack, respond
from chinchilla_lab.explorers.svg import panel_svg, to_svg
from chinchilla_lab.figures.one_plan import four_optima
from chinchilla_lab.figures.planning import size_study
from chinchilla_lab.figures.style import SWATCHES
from chinchilla_lab.fitting import example_csv
from chinchilla_lab.laws import DEFAULT
from chinchilla_lab.planning import plan, time_at
from chinchilla_lab.units import DAY

pytestmark = pytest.mark.filterwarnings("ignore::chinchilla_lab.ExtrapolationWarning")


def settings(explorer):
    """Every control at a few places, the others at their defaults."""
    yield {}
    for control in explorer.controls:
        if isinstance(control, Choice):
            yield from ({control.name: key} for key in control.options)
        elif isinstance(control, Toggle):
            yield {control.name: not control.value}
        elif isinstance(control, Sheet):
            yield {control.name: example_csv("one_ratio")}
            yield {control.name: "N,D\n1,2\n"}
        else:
            places = (0, control.steps // 3, control.steps)
            yield from ({control.name: control.at(p)} for p in places)


@pytest.mark.parametrize("name", NAMES)
def test_series_keep_their_names_and_fit_their_drawings(name):
    explorer = get(name)
    assert explorer.name == name
    first = set(explorer.series(**explorer.values()))
    tagged = set()
    for panel in range(len(explorer.panels)):
        axes = explorer.plot(panel).figure.axes[0]
        tagged |= {a.get_gid() for a in [*axes.lines, *axes.patches]} - {None}
    assert tagged == first, "every series is drawn, every tagged artist has a series"
    for change in settings(explorer):
        values = explorer.values(**change)
        series = explorer.series(**values)
        assert set(series) == first
        for x, y in series.values():
            assert len(x) == len(y)
        readings = explorer.readout(**values)
        assert all(r.label and r.text and "nan" not in r.text for r in readings)


@pytest.mark.parametrize("name", NAMES)
def test_kernel_face_follows_its_controls(name):
    explorer = get(name)
    face = KernelFace(explorer)
    for change in settings(explorer):
        for key, value in change.items():
            control = next(c for c in explorer.controls if c.name == key)
            widget = face.inputs[key]
            widget.value = control.position(value) if hasattr(control, "at") else value
        expected = explorer.values(**change)
        assert face.raw == pytest.approx(expected) or face.raw == expected
        series = explorer.series(**face.raw)
        for picture in face.pictures:
            for key, artist in picture.artists.items():
                if hasattr(artist, "get_data") and len(series[key][0]):
                    np.testing.assert_allclose(artist.get_data()[1], series[key][1])
            assert bytes(picture.image.value).startswith(b"\x89PNG")
        for reading in explorer.readout(**face.raw):
            assert escape(reading.text) in face.readout.value
        face = KernelFace(explorer)


def test_kernel_face_takes_typed_text_and_loses_nothing():
    face = KernelFace(get("isoflop"))
    before = face.readout.value
    face.typed["C"].value = "400GB"
    assert "a number of bytes, not FLOP" in face.message.value
    assert face.readout.value == before
    face.typed["C"].value = "1 PF-day"
    assert face.message.value == ""
    assert face.raw["C"] == 8.64e19
    assert face.readout.value != before


def test_optimum_lies_on_the_lowest_point_of_the_valley():
    series = get("isoflop").series(C=1e21, law="besiroglu-2024", k=1.0)
    N, L = series["valley"]
    assert series["optimum"][0][0] == pytest.approx(N[L.argmin()], rel=1e-6)
    plan = allocation.compute_optimal(DEFAULT, 1e21)
    assert series["optimum"][0][0] == pytest.approx(float(plan.N), rel=1e-9)


@pytest.mark.parametrize(
    ("name", "least"), [("lifetime", "optimum"), ("serving", "least")]
)
@pytest.mark.parametrize("quality", [1e8, 2e10, 1e12])
def test_cheapest_size_lies_on_the_lowest_point_of_the_bill(name, least, quality):
    explorer = get(name)
    series = explorer.series(**explorer.values(quality=quality))
    k, total = series["total"]
    step = np.log(k[1] / k[0])
    assert np.log(series[least][0][0]) == pytest.approx(
        np.log(k[total.argmin()]), abs=step
    )
    assert series[least][1][0] <= total.min() * (1 + 1e-12)


def test_demand_that_pays_makes_the_size_the_best_one():
    """The demand read off one explorer, put into the other, returns the size."""
    x, T = get("small").series(**get("small").values(k=0.4))["yours"]
    explorer = get("lifetime")
    values = explorer.values() | {"T": float(T[0])}
    assert explorer.series(**values)["optimum"][0][0] == pytest.approx(x[0], rel=1e-9)


WIDE = {"accelerator": "a100-sxm-80gb", "M": "2048", "tp": "8"}
BOTH = {"sp": True, "recompute": "selective"}
HALL = {"shape": "hall", "seq_len": "4096", "pp": 16, "dp": "128", "zero": "1",
        "sp": True, "fused": True}  # fmt: skip
LOFT = {"shape": "loft", "n": "64", "B": "2048", "critical": 8.49e6}
BESIDE = {"blocking": False, "best": False, "interval": 5.0}
CAPPED = {"n": "16384", "days": 60, "cap": "4194304"}
REPLAY_405B = {"run": "llama-3.1-405b", "n": "16384", "batch": "16777216"}
PREDICTIONS = [  # explorer, values, label, text that the blueprint of the chapter expects
    ("isoflop", {"k": 2.0}, "wasted compute", "18.6 %"),
    ("isoflop", {"k": 2.0, "law": "hoffmann-2022"}, "wasted compute", "15.8 %"),
    ("isoflop", {"k": 2.0, "C": 1e26}, "wasted compute", "18.6 %"),
    ("tradeoff", {}, "token factor", "2.52"),
    ("tradeoff", {}, "extra training compute", "+25.9%"),
    ("tradeoff", {"law": "hoffmann-2022"}, "extra training compute", "+21.0%"),
    ("tradeoff", {"k": 0.1}, "tokens for the same loss", "unreachable"),
    ("accounting", {}, "N total", "8,030,261,248"),
    ("accounting", {}, "masked attention equals the weights at T [token]", "57,258"),
    ("flop_to_days", {}, "accelerator-hours", "7,022"),
    ("flop_to_days", {"mfu": 0.3}, "accelerator-hours", "9,362"),
    ("one_budget", {}, "parameters N", "9.05B parameters"),
    ("one_budget", {"C": "5e18"}, "parameters N", "184M parameters"),
    ("one_budget", {"C": "5e18", "law": "ratio-20"}, "parameters N", "204M parameters"),
    ("allocation", {"C": 3.8e25}, "Hoffmann 2022, approach 3", "84.8 per parameter"),
    ("allocation", {"C": 3.8e25}, "Besiroglu 2024", "16.5 per parameter"),
    ("four_n", {}, "vocabulary share", "55.8 %"),
    ("design", {}, "90 % interval of N*", "×/÷ 1.33"),
    ("design", {"ratios": 8}, "90 % interval of N*", "×/÷ 1.25"),
    ("design", {"spread": 2}, "90 % interval of N*", "×/÷ 2.47"),
    ("design", {"spread": 1}, "90 % interval of N*", "refused: one ratio"),
    ("dropped", {}, "tokens per parameter at 5.76e23 FLOP", "17.9"),
    ("dropped", {"count": 0}, "tokens per parameter at 5.76e23 FLOP", "6.8"),
    ("upload", {}, "N* at the planned compute", "29.2B"),
    ("upload", {"rows": example_csv("one_ratio")}, "answer", "not identifiable"),
    ("lifetime", {}, "size N*", "11.1B parameters"),
    ("lifetime", {}, "saved, four coefficient sets", "3.6 % to 17.6 %"),
    ("lifetime", {}, "size factor k", "0.56"),
    ("lifetime", {"quality": 2e9}, "size factor k", "0.34"),
    ("lifetime", {"law": "sardana-2024"}, "size factor k", "0.66"),
    ("lifetime", {"law": "sardana-2024", "quality": 2e9}, "size factor k", "0.32"),
    ("small", {}, "token factor u", "2.52"),
    ("small", {"law": "sardana-2024"}, "token factor u", "2.42"),
    ("small", {}, "extra training compute", "+25.9%"),
    ("small", {}, "relative demand τ", "5.93"),
    ("small", {"k": 0.1}, "token factor u", "unreachable"),
    ("small", {"k": 2.0}, "demand that pays for it", "none"),
    ("serving", {}, "counted as T_eff", "1.95T tokens"),
    ("serving", {}, "decode, of the serving bill", "77 %"),
    ("serving", {}, "k, four coefficient sets", "0.52 to 0.70"),
    ("serving", {"decode": 0.01}, "k, four coefficient sets", "0.37 to 0.49"),
    ("serving", {}, "lifetime bill", "137,"),
    ("decode", {}, "decode utilisation, at most", "0.34 %"),
    ("decode", {}, "critical batch", "295 sequences"),
    ("decode", {"model": "llama-3-70b"}, "memory holds", "not even the weights"),
    ("epoch_value", {}, "worth of all tokens", "86.5%"),
    ("epoch_value", {}, "a token is worth half", "after 10.67 repeats, in epoch 11.7"),
    ("epoch_value", {"epochs": 4}, "worth of all tokens", "93.1%"),
    ("epoch_value", {"epochs": 16}, "worth of the next token", "37.8%"),
    ("data_frontier", {}, "best size N*", "12.8B parameters"),
    ("data_frontier", {}, "doubling the compute", "N times 1.34, epochs 6.5 to 9.7"),
    ("data_frontier", {}, "the budget works like", "69% of itself"),
    ("data_frontier", {"law": "pair-100"}, "best size N*", "7.51B parameters"),
    ("data_frontier", {"law": "penalty-2"}, "best size N*", "21.4B parameters"),
    ("data_frontier", {"C": 1e21}, "loss above unlimited data", "0.0000"),
    ("three_choices", {}, "break-even quality", "0.62"),
    ("three_choices", {}, "least loss", "repeat, best size"),
    ("three_choices", {"generator": 0}, "break-even quality", "0.59"),
    ("three_choices", {"generator": 70e9}, "break-even quality", "none"),
    ("three_choices", {"generator": 70e9}, "generation takes", "28.0%"),
    ("crossing", {}, "training compute", "+25.9%"),
    ("crossing", {"k": 2.0}, "training compute", "+14.8%"),
    ("crossing", {"k": 2.0, "law": "sardana-2024"}, "training compute", "+13.1%"),
    ("crossing", {"tau": 1.0}, "lifetime compute", "+6.9%"),
    ("crossing", {"k": 2.0, "tau": 1.0}, "lifetime compute", "+36.1%"),
    ("crossing", {"k": 0.3}, "tokens", "1.77T tokens"),
    ("crossing", {"unique": 0.25, "k": 0.96}, "passes over your text", "repeats"),
    ("crossing", {"g": 0.02}, "best size if all text is fresh", "k = 1.57"),
    ("metric", {}, "10 to 90 %, in token loss", "0.220 nats/token"),
    ("metric", {}, "10 to 90 %, in compute", "7.5 decades"),
    ("metric", {"K": 100}, "10 to 90 %, in compute", "7.5 decades"),
    ("metric", {}, "ten times the length moves it by", "5.6 decades"),
    ("price_of_a_point", {}, "one point more costs", "×1.51"),
    ("price_of_a_point", {"suite": "c4"}, "one point more costs", "×1.45"),
    ("price_of_a_point", {"suite": "refinedweb"}, "one point more costs", "×1.46"),
    ("price_of_a_point", {"accuracy": 0.45}, "parameters", "2.34B parameters"),
    ("ladder", {"step": 2}, "exponent a", "0.701, -0.133"),
    ("ladder", {"step": 5, "C": "5.88e23"}, "N*", "77B parameters"),
    ("roofline", {}, "tokens that lift a square product off the slope", "327"),
    ("roofline", {}, "intensity", "3,072 FLOP/byte, ridge at 295"),
    ("roofline", {"M": "1"}, "time", "bound by the memory bandwidth"),
    ("roofline", WIDE | {"h": "14400"}, "wave efficiency", "0.833"),
    ("roofline", WIDE | {"h": "13824"}, "wave efficiency", "1.000"),
    ("memory_stack", {}, "twice the micro-batch", "states × 1.00, activations × 2.00"),
    ("memory_stack", {}, "twice the micro-batch", "total × 1.24"),
    ("memory_stack", {}, "largest micro-batch", "2"),
    ("memory_stack", BOTH, "largest micro-batch", "13"),
    ("memory_stack", {"shape": "hall"}, "largest micro-batch", "not even one"),
    ("memory_stack", HALL, "total", "= 63.4"),
    ("memory_stack", HALL | {"v": 3}, "total", "= 74.68 GB"),
    ("batch_limit", {}, "tokens per accelerator", "4,096"),
    ("batch_limit", {"B": "1024"}, "tokens per accelerator", "256"),
    ("batch_limit", {"B": "1024"}, "speed over half as many", "× 0.85, slower"),
    ("batch_limit", {"B": "1024", "cp": True}, "speed over half as many", "× 1.55"),
    ("batch_limit", {"B": "1024"}, "steps over the least", "× 16.6"),
    ("batch_limit", LOFT, "speed over half as many", "× 2.00, faster"),
    ("batch_limit", LOFT | {"n": "65536", "B": "128"}, "answer", "no layout"),
    ("goodput", {}, "time between failures", "3.09 hours"),
    ("goodput", {}, "work kept", "87.58%"),
    ("goodput", {}, "work between checkpoints", "18.6 min"),
    ("goodput", {"nodes": 8}, "time between failures", "33 days"),
    ("goodput", {"nodes": 8}, "work between checkpoints", "5.13 hours"),
    ("goodput", BESIDE, "work kept", "95.52%"),
    ("goodput", {"rate": 23.7}, "time between failures", "29.7 min"),
    ("memory_stack", BOTH | {"b": 4}, "activations and logits", "9.86 GiB"),
    ("collective_cost", {}, "measured", "0.05089 ms"),
    ("collective_cost", {"nodes": "4"}, "measured", "0.3783 ms"),
    ("collective_cost", {"nodes": "4", "size": 2.0**34}, "measured", "87.18 ms"),
    ("pipeline_schedule", {"p": 8, "ratio": 4}, "bubble over ideal", "0.2188"),
    ("pipeline_schedule", {"ratio": 4}, "bubble over ideal", "0.1875"),
    ("pipeline_schedule", {"p": 64}, "bubble over ideal", "0.4922"),
    ("pipeline_schedule", {"order": "gpipe"}, "micro-batches held by stage 1", "8.00"),
    ("pipeline_schedule", {"p": 1, "v": 2}, "without effect here", "at one stage"),
    ("goodput", {}, "without effect here", "while the best interval is on"),
    ("step_breakdown", {"n": "4096"}, "bubble", "36.5 %"),
    ("step_breakdown", {"d_model": 24576}, "answer", "choose more accelerators"),
    ("layout_search", {"model": "llama-3-70b"}, "model", "70.6B parameters"),
    ("layout_search", {"experts": "8-2"}, "model", "used by a token"),
    ("layout_search", {}, "layout 1", "tie"),
    ("layout_search", {"n": "65536", "batch": "128"}, "answer", "no layout divides"),
    ("layout_search", {"n": "8", "memory": 16}, "answer", "no layout fits"),
    ("calibrate", {}, "baseline, median MFU", "4.1 %"),
    ("calibrate", {"refit": True}, "MAPE", "2.0 %"),
    ("calibrate", {"refit": True, "without": "tp"}, "MAPE", "2.6 %"),
    ("cluster_optimal", {}, "naive N, at 40 % of the peak", "23.7B"),
    ("cluster_optimal", {}, "best over naive", "1.16 (budget)"),
    ("cluster_optimal", {"n": "65536"}, "best over naive", "0.92 (taste)"),
    ("cluster_optimal", {"n": "65536"}, "lost by the naive N", "0.00 of 30 days"),
    ("cluster_optimal", {"search": False}, "lost by the naive N", "divisibility"),
    ("cluster_optimal", CAPPED, "best over naive", "0.68 (budget)"),
    ("cluster_optimal", CAPPED, "batch", "4.19M tokens"),
    ("replicate", {}, "90 % interval of the steps", "inside"),
    ("replicate", REPLAY_405B, "90 % interval of the steps", "inside"),
    (
        "replicate",
        {"run": "llama-3-8b"},
        "90 % interval of the steps",
        "the run took more",
    ),
    ("one_plan", {}, "compute-optimal", "9.05B on 184B"),
    ("one_plan", {}, "data-constrained", "7.51B on 222B"),
    ("one_plan", {}, "inference-optimal", "4.62B on 447B"),
    ("one_plan", {"served": 1e13}, "what binds", "the deadline: the cheapest takes"),
    ("one_plan", {"days": 1}, "what binds", "the deadline: the fastest takes"),
    ("one_plan", {"unique": 5e11}, "data-constrained", "9.05B on 184B"),
    ("one_plan", {"C": 1e17}, "joint plan", "no layout"),
    ("one_plan", {"C": 1e17}, "compute-optimal", "24.7M on 674M"),
    ("one_plan", {}, "joint plan", "4.74B on 411B"),
    ("one_plan", {"days": "1 day"}, "joint plan", "misses the deadline by 2.5 days"),
    ("one_plan", {"C": 1e27}, "data-constrained", "off the chart"),
]


@pytest.mark.parametrize(("name", "change", "label", "expected"), PREDICTIONS)
def test_explorers_answer_their_predictions(name, change, label, expected):
    found = answer(name, json.dumps(change))
    assert not found.errors
    texts = {r.label: r.text for r in found.readings}
    assert expected in texts[label]


def test_budgets_reach_from_hobby_to_frontier_and_warn():
    """1e17 to 1e27, typed values allowed; the readout says how far it extrapolates."""
    for C in ("1e17", "5e18", "1e27"):
        assert not answer("one_budget", json.dumps({"C": C})).errors
    edge = answer("one_budget", json.dumps({"C": "1e25"}))
    assert "decades" in edge.readings[-1].text


BAD = [
    ({"C": "1e30"}, "C", "lies outside 1e17 to 1e27"),
    ({"C": "989 TFLOP/s"}, "C", "is a rate"),
    ({"C": "much"}, "C", "is not a number"),
    ({"law": "mine"}, "law", "is not one of besiroglu-2024"),
    ({"k": True}, "k", "is not a number"),
    ({"C": "5e16"}, "C", "lies outside 1e17 to 1e27"),
    ({"C": 1}, "C", "lies outside 1e17 to 1e27"),
    ({"law": []}, "law", "is not one of besiroglu-2024"),
]


@pytest.mark.parametrize(("raw", "control", "message"), BAD)
def test_bad_input_is_answered_by_control(raw, control, message):
    found = answer("isoflop", json.dumps(raw))
    assert list(found.errors) == [control]
    assert message in found.errors[control]
    assert not found.series


TYPED = [  # explorer, control, text, the value that it is
    ("one_plan", "days", "45 days", 45.0),
    ("one_plan", "days", "2 weeks", 14.0),
    ("one_plan", "days", "36 h", 1.5),
    ("one_plan", "days", "45", 45.0),
    ("goodput", "save", "2 min", 120.0),
    ("goodput", "nodes", "2048 nodes", 2048.0),
    ("layout_search", "network", "400 Gbit/s", 50.0),
    ("layout_search", "memory", "80 GB", 80.0),
    ("layout_search", "n_layers", "48 layers", 48.0),
    ("collective_cost", "size", "1 MiB", 2.0**20),
    ("serving", "days", "500 days", 500.0),
    ("design", "noise", "0.3 %", 0.3),
]


@pytest.mark.parametrize(("name", "control", "typed", "value"), TYPED)
def test_a_box_takes_the_unit_of_its_control(name, control, typed, value):
    found = answer(name, json.dumps({control: typed}))
    assert not found.errors
    assert found.values[control] == pytest.approx(value, rel=1e-12)


def test_a_wrong_unit_is_refused_in_that_of_the_control():
    found = answer("one_plan", json.dumps({"days": "4 GB"}))
    assert (
        "deadline: '4 GB' is not a number of days; write it like 6 days"
        in (found.errors["days"])
    )


@pytest.mark.parametrize("name", NAMES)
def test_defaults_are_positions_of_their_sliders(name):
    for control in get(name).controls:
        if hasattr(control, "at"):
            place = control.position(control.value)
            assert control.at(place) == pytest.approx(control.value, rel=1e-12)
            values = [control.at(p) for p in range(control.steps + 1)]
            assert values == sorted(values)
            assert (values[0], values[-1]) == (control.low, control.high)


def test_doublings_stay_doublings():
    """A scale of counts with octaves has 2048, not 2050."""
    nodes = next(c for c in get("goodput").controls if c.name == "nodes")
    values = [nodes.at(p) for p in range(nodes.steps + 1)]
    assert {2.0**k for k in range(15)} <= set(values)


def test_all_forward_first_waits_as_long_and_is_drawn_so():
    """Drawn pass by pass, it idles as the closed form of the library says."""
    series = get("pipeline_schedule").series(p=6, ratio=2, v=1, order="gpipe")
    drawn = np.nanmax(series["idle"][0]) - 1.0
    assert drawn == pytest.approx(bubble_fraction(6, 12, schedule="gpipe"))
    far = get("pipeline_schedule").series(p=64, ratio=2, v=1, order="1f1b")
    assert np.nanmax(far["idle"][0]) - 1.0 == pytest.approx(bubble_fraction(64, 128))


@pytest.mark.parametrize("days", [4.0, 6.0])
def test_joint_plan_is_the_plan_of_the_library(days):
    """The search of the explorer and ``plan`` answer alike, to a thousandth."""
    four = four_optima(1e22, 64, days, 5e10, 1e12, "besiroglu-2024")
    loft = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
    made = plan(
        loft, law=DEFAULT, objective="lifetime", target_loss=four.joint.loss,
        deadline=days * DAY, unique_tokens=5e10, inference_tokens=1e12,
    )  # fmt: skip
    assert four.joint.score == pytest.approx(made.score, rel=1e-3)


def test_a_plan_that_is_late_has_its_own_mark():
    late = get("one_plan").series(**get("one_plan").values(days=1))
    timely = get("one_plan").series(**get("one_plan").values())
    assert (len(late["joint"][0]), len(late["late"][0])) == (0, 1)
    assert (len(timely["joint"][0]), len(timely["late"][0])) == (1, 0)


@pytest.mark.parametrize(("n", "days"), [(64, 30), (16384, 60), (65536, 30)])
def test_naive_size_costs_little_once_shapes_are_searched(n, days):
    study = size_study(n, days, np.inf, 50.0, "besiroglu-2024", True, True)
    assert time_at(study.best, study.naive) < 1.025


def test_typed_values_between_steps_take_the_nearest():
    """Half a layer is no layer, and a width of 4097 has no heads of 128."""
    typed = json.dumps({"d_model": "4097", "n_layers": "31.6"})
    values = answer("accounting", typed).values
    assert (values["d_model"], values["n_layers"]) == (4096, 32)


def test_packed_answer_holds_the_same_numbers():
    head, numbers = pack("isoflop", json.dumps({"C": 1e21}))
    series = answer("isoflop", json.dumps({"C": 1e21})).series
    at = 0
    for name, length in json.loads(head)["series"]:
        np.testing.assert_array_equal(numbers[at : at + length], series[name][0])
        np.testing.assert_array_equal(
            numbers[at + length : at + 2 * length], series[name][1]
        )
        at += 2 * length
    assert at == len(numbers)


class Ids(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.refs, self.labels = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for key, value in attrs:
            if key == "id":
                self.ids.append(value)
            elif key in ("for", "aria-describedby", "aria-labelledby"):
                self.refs.append(value)
            elif key in ("xlink:href", "href") and value.startswith("#"):
                self.refs.append(value[1:])
            self.refs += re.findall(r"url\(#([^)]+)\)", value or "")


@pytest.mark.parametrize("name", NAMES)
def test_page_face_is_complete_and_its_ids_are_unique(name):
    explorer = get(name)
    page = Ids(explorer.html() + explorer.html())
    assert len(page.ids) == len(set(page.ids))
    assert set(page.refs) <= set(page.ids)
    html = explorer.html()
    for reading in explorer.readout(**explorer.values()):
        assert reading.label.replace("&", "&amp;") in html
    assert html.count("<svg") == len(explorer.panels)
    assert "<style" not in html, "a style sheet inside would leak into the page"
    for control in explorer.controls:
        assert f'data-control="{control.name}"' in html
    assert len(html) < 80_000


def test_bundle_has_both_faces_and_the_book_only_one(monkeypatch):
    explorer = get("isoflop")
    bundle = explorer._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert {"text/html", "text/plain"} <= set(bundle)
    monkeypatch.setenv("CHINCHILLA_LAB_FACE", "page")
    assert set(explorer._repr_mimebundle_()) == {"text/html", "text/plain"}


def test_log_slider_rounds_to_three_digits_and_back():
    slider = LogSlider(
        name="C", low=1e17, high=1e27, value=1e22, label="C", unit="FLOP"
    )
    for position in range(slider.steps + 1):
        value = slider.at(position)
        assert float(f"{value:.2e}") == value
        assert slider.position(value) == position
    even = Slider(name="mfu", low=0.1, high=0.6, value=0.4, step=0.01, label="mfu")
    assert even.at(30) == 0.4
    assert even.steps == 50


def test_definitions_are_checked():
    with pytest.raises(ValueError, match=r"default 2 lies outside 0 to 1"):
        Slider(name="x", low=0, high=1, value=2, label="x")
    with pytest.raises(ValueError, match="default 'c' is not an option"):
        Choice(name="x", options={"a": "A"}, value="c", label="x")
    toggle = Toggle(name="x", value=True, label="x")

    def nothing(**values):
        return {}

    with pytest.raises(ValueError, match="does not tell what is seen"):
        Explorer(
            name="e",
            title="t",
            controls=(toggle,),
            series=nothing,
            panels=(Panel(draw=print, title="t", alt="short"),),
            readout=lambda **v: (Reading(label="a", text="b"),),
        )
    with pytest.raises(ValueError, match="two controls share a name"):
        Explorer(
            name="e", title="t", controls=(toggle, toggle), series=nothing, panels=(),
            readout=lambda **v: (),
        )  # fmt: skip
    with pytest.raises(ValueError, match="has no control"):
        get("isoflop").values(c=1)
    with pytest.raises(KeyError, match="no explorer 'x'; known: one_budget"):
        get("x")


def test_map_to_svg_is_the_map_of_matplotlib():
    from chinchilla_lab.explorers.svg import axes_of, panel_figure

    explorer = get("isoflop")
    series = explorer.series(**explorer.values())
    figure, axes = panel_figure(explorer.panels[0], series)
    described = axes_of(figure, axes)
    x, y = series["optimum"]
    pixels = axes.transData.transform([(x[0], y[0])])[0] * 72.0 / figure.dpi
    x0, y0, x1, y1 = described["box"]
    assert to_svg(x, described["x"], x0, x1)[0] == pytest.approx(pixels[0], abs=0.01)
    height = figure.get_size_inches()[1] * 72.0
    assert to_svg(y, described["y"], y0, y1)[0] == pytest.approx(
        height - pixels[1], abs=0.01
    )


WRONG = [  # kind of control, what is wrong with it, what its message says
    (Slider, {"step": 0.3}, "miss high=1"),
    (Slider, {"step": 5}, "no second position"),
    (Slider, {"low": 2}, "low=2 must lie below high=1"),
    (LogSlider, {"low": 0}, "low=0 has no logarithm"),
    (LogSlider, {"steps": 0}, "must be at least 1"),
    (Slider, {"name": "a b"}, "cannot be an argument"),
    (Slider, {"label": ""}, "needs a label"),
]


@pytest.mark.parametrize(
    ("kind", "wrong", "message"), WRONG, ids=[m for *_, m in WRONG]
)
def test_controls_are_checked_when_they_are_made(kind, wrong, message):
    right = {"name": "x", "label": "x", "low": 0.5, "high": 1, "value": 1, "step": 0.5}
    if kind is LogSlider:
        del right["step"]
    with pytest.raises(ValueError, match=re.escape(message)):
        kind(**right | wrong)


def test_positions_stay_in_range_and_counts_are_whole():
    odd = LogSlider(name="x", low=1234.0, high=98765.0, value=2000.0, label="x")
    for position in (0, 1, odd.steps - 1, odd.steps):
        assert odd.parse(odd.at(position)) == odd.at(position)
    n = LogSlider(name="n", low=8, high=65536, value=64, label="n", unit="count")
    assert all(n.at(p) == round(n.at(p)) for p in range(n.steps + 1))


@pytest.mark.parametrize(
    ("unit", "value", "shown", "suffix"),
    [
        ("FLOP", 1e22, "1e22", "FLOP"),
        ("FLOP/s", 989.4e12, "989.4 TFLOP/s", ""),
        ("parameter", 9.05e9, "9.05B", "parameters"),
        ("token", 1.84e11, "184B", "tokens"),
        ("count", 64, "64", ""),
        ("", 0.4, "0.4", ""),
    ],
)
def test_box_and_suffix_say_the_unit_once(unit, value, shown, suffix):
    control = LogSlider(
        name="x", low=value / 10, high=value * 10, value=value, label="x", unit=unit
    )
    assert control.show(value) == shown
    assert control.suffix == suffix
    assert control.parse(shown) == pytest.approx(value, rel=1e-9)


def sample(series=None):
    """A small explorer: a line, and a value that may not go with another."""

    def line(slope, up):
        x = np.linspace(0.0, 1.0, 5)
        return {"line": (x, slope * x if up else -slope * x)}

    def readout(slope, up):
        if slope > 8.0 and not up:
            raise ValueError("slope above 8 only goes up")
        return (Reading(label="slope", text=f"{slope:g}", value=slope),)

    def draw(ax, found):
        ax.plot(*found["line"], gid="line")
        ax.set(xlim=(0.0, 1.0), ylim=(-10.0, 10.0))

    return Explorer(
        name="sample",
        title="A line",
        controls=(
            Slider(name="slope", low=0.0, high=10.0, value=2.0, label="slope"),
            Toggle(name="up", value=True, label="upwards"),
        ),
        series=series or line,
        panels=(Panel(draw=draw, title="line", alt="A straight line through zero."),),
        readout=readout,
    )


def test_values_that_do_not_go_together_are_explained_in_both_faces():
    explorer = sample()
    found = respond(explorer, {"slope": "9", "up": False})
    assert found.errors == {TOGETHER: "slope above 8 only goes up"}
    face = KernelFace(explorer)
    face.inputs["slope"].value = 9
    before = face.readout.value
    face.inputs["up"].value = False
    assert "slope above 8 only goes up" in face.message.value
    assert face.readout.value == before
    face.inputs["slope"].value = 3
    assert face.message.value == ""
    assert face.raw == {"slope": 3.0, "up": False}


def test_kernel_face_shows_the_last_good_value_after_a_mistake():
    face = KernelFace(sample())
    face.typed["slope"].value = "many"
    assert "is not a number" in face.message.value
    face.inputs["up"].value = False
    assert face.message.value == ""
    assert face.typed["slope"].value == "2"
    face.typed["slope"].value = "8"
    assert face.raw == {"slope": 8, "up": False}


def test_leaving_the_fitted_range_is_no_stderr(recwarn, monkeypatch):
    """A warning on stderr stops the build of the book."""
    from chinchilla_lab.checks import ExtrapolationWarning

    def warns(slope, up):
        warnings.warn("far out", ExtrapolationWarning, stacklevel=2)
        return {"line": (np.zeros(1), np.zeros(1))}

    monkeypatch.setenv("CHINCHILLA_LAB_FACE", "page")
    explorer = sample(series=warns)
    assert "slope 2" in explorer._repr_mimebundle_()["text/plain"]
    explorer.plot()
    assert not recwarn.list


def test_colours_of_the_page_are_those_of_the_figures():
    css = Path(__file__).parent.parent.joinpath("book/assets/explorer.css").read_text()
    dark = css.index("html[data-theme=")
    for name, light_colour, dark_colour in SWATCHES.values():
        assert f"{name}: {light_colour};" in css[:dark]
        assert f"{name}: {dark_colour};" in css[dark:]


def test_drawing_is_the_same_each_time_and_small():
    explorer = get("isoflop")
    series, _ = explorer.compute(explorer.values())
    first, again = (panel_svg(explorer.panels[0], series, "x") for _ in range(2))
    assert first == again
    assert len(first) < 20_000
    for left_over in (
        "<metadata",
        "<?xml",
        "<!DOCTYPE",
        "<title",
        "font-family",
        "#0064a4;",
    ):
        assert left_over not in first


def test_moving_in_a_kernel_paints_what_a_new_drawing_would():
    """The kept background and its artists give the pixels of a figure made anew."""
    explorer = get("isoflop")
    moved = KernelFace(explorer)
    moved.typed["C"].value = "1e20"
    series, _ = explorer.compute(explorer.values(C=1e20))
    anew = _Picture(explorer.panels[0], series)
    assert moved.pictures[0].image.value == anew.image.value
