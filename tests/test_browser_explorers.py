"""The explorers of the built site in a real browser: what they show is what Python says.

Needs `make book PYODIDE=.pyodide`, so that no CDN takes part.
"""

import json
import re
import statistics
import subprocess
from functools import cache
from pathlib import Path

import axe_playwright_python
import numpy as np
import pytest
from conftest import ROOT, give_up

from chinchilla_lab.explorers import NAMES, get
from chinchilla_lab.explorers.core import Choice, Sheet, Toggle
from chinchilla_lab.explorers.page import answer
from chinchilla_lab.explorers.svg import path_data, to_svg
from chinchilla_lab.figures.style import SWATCHES
from chinchilla_lab.fitting import example_csv

pytestmark = pytest.mark.browser

MOVES = 25
CDN = "https://cdn.jsdelivr.net/pyodide/v0.27.7/full/"
AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")
TIMES = {"first answer [s]": [], "move [ms]": []}


def pages_with_explorers():
    site = ROOT / "_build" / "html"
    found = []
    for path in sorted((site / "book").rglob("*.html")):
        names = re.findall(r'data-explorer="(\w+)"', path.read_text(encoding="utf-8"))
        if names:
            found.append(
                pytest.param(path.relative_to(site).as_posix(), names, id=path.stem)
            )
    return found or [pytest.param("", [], id="no built site")]


PAGES = pages_with_explorers()
OTHERS = ["book/reference/laws.html", "book/reference/glossary.html"]
FIRST_PAGE, FIRST_NAMES = PAGES[0].values


@pytest.fixture(scope="module", autouse=True)
def report():
    yield
    if TIMES["move [ms]"]:
        moves = TIMES["move [ms]"]
        print(
            f"\nfirst answer after the first touch: {max(TIMES['first answer [s]'], default=0):.2f} s"
            f" at most; move to rewritten figure, {len(moves)} moves: "
            f"median {statistics.median(moves):.1f} ms, "
            f"95 % {np.percentile(moves, 95):.1f} ms"
        )


@pytest.fixture
def local_python(site):
    """Skip, loudly, where the site has no Python of its own with numpy.

    In CI as well: whether the CDN and the registries can be reached is not a property
    of the code. The core is tested all the same, at the end of this file.
    """
    pyodide = json.loads((site / "_static" / "live.json").read_text())["pyodide"]
    if "//" in pyodide or not list((site / "_static" / "pyodide").glob("numpy-*.whl")):
        pytest.skip(
            "NOT TESTED, live figures: the site has no Pyodide with numpy of its own. "
            "Run `make pyodide` where the CDN or the package registries can be reached, "
            "then `make book PYODIDE=.pyodide`; any copy of the release will do"
        )
    return site / "_static" / "pyodide"


# --- moving controls; many moves in one call, since each call costs a round trip

DRIVE = """
async ([id, control, moves]) => {
  const root = document.getElementById(id);
  const box = root.querySelector(`[data-control="${control}"]`);
  const rested = (before) => new Promise((done, wrong) => {
    const timer = setTimeout(() => wrong(new Error(`no answer for ${control}`)), 90000);
    const watch = new MutationObserver(() => {
      if (Number(root.dataset.answered) <= before) return;
      clearTimeout(timer);
      watch.disconnect();
      done();
    });
    watch.observe(root, { attributes: true, attributeFilter: ["data-answered"] });
  });
  const state = (element) => element.dataset.live === "markers"
    ? Array.from(element.querySelectorAll("use"), (u) => [+u.getAttribute("x"), +u.getAttribute("y")])
    : element.getAttribute("d");
  const seen = [];
  for (const { how, value, look } of moves) {
    const before = Number(root.dataset.answered ?? 0);
    const answered = rested(before);
    const input = box.querySelector(
      { range: "input[type=range]", text: "input[type=text]", choice: "select", toggle: "input[type=checkbox]", sheet: "textarea" }[how]);
    const start = performance.now();
    if (how === "toggle") input.checked = value; else input.value = value;
    input.dispatchEvent(new Event(how === "range" ? "input" : "change", { bubbles: true }));
    await answered;
    const took = performance.now() - start;
    const figures = look ? Array.from(root.querySelectorAll("[data-live]"), (element) => ({
      name: element.closest("[data-series]").dataset.series,
      axes: JSON.parse(element.closest("svg").dataset.axes),
      kind: element.dataset.live,
      state: state(element),
    })) : [];
    seen.push({
      took,
      readout: Array.from(root.querySelectorAll(".cl-readout > div"), (row) =>
        [row.children[0].textContent, row.children[1].textContent]),
      box: box.querySelector("input[type=text]")?.value ?? null,
      error: box.querySelector(".cl-error")?.textContent ?? "",
      figures,
    });
  }
  return seen;
}
"""


def moves_of(control):
    """25 moves: how it is moved, what is put in, the value that Python should get."""
    if isinstance(control, Choice):
        keys = list(control.options)
        return [("choice", k, k) for k in (keys * MOVES)[1 : MOVES + 1]]
    if isinstance(control, Toggle):
        return [("toggle", b, b) for b in [not control.value, control.value] * MOVES][
            :MOVES
        ]
    if isinstance(control, Sheet):
        texts = [example_csv("one_ratio"), "N,D\n1,2\n", control.value]
        return [("sheet", t, t) for t in (texts * MOVES)[:MOVES]]
    if not hasattr(control, "at"):
        values = np.linspace(control.low, control.high, MOVES)
        return [
            ("text", control.show(float(v)), control.show(float(v))) for v in values
        ]
    found = []
    for i in range(MOVES):
        value = control.at(round(i * control.steps / (MOVES - 1)))
        if i % 5 == 4:
            found.append(("text", control.show(value), control.show(value)))
        else:
            found.append(("range", str(control.position(value)), None))
    return [
        (how, put, control.at(int(put)) if how == "range" else value)
        for how, put, value in found
    ]


def drive(page, root, control, moves):
    asked = [
        {"how": how, "value": put, "look": i % 6 == 0}
        for i, (how, put, _) in enumerate(moves)
    ]
    return page.evaluate(DRIVE, [root, control.name, asked])


def numbers(path):
    return np.array(re.findall(r"-?\d+\.\d", path), float), re.findall("[MLZ]", path)


def check_figures(figures, series, atol=0.11):
    """The paths in the page are the series of Python, mapped to the drawing."""
    assert figures
    for figure in figures:
        xy, axes = series[figure["name"]], figure["axes"]
        if figure["kind"] == "markers":
            x0, y0, x1, y1 = axes["box"]
            places = np.c_[
                to_svg(xy[0], axes["x"], x0, x1), to_svg(xy[1], axes["y"], y0, y1)
            ]
            places = places[~np.isnan(places).any(axis=1)]
            shown = [p for p in figure["state"] if p != [-99, -99]]
            np.testing.assert_allclose(np.reshape(shown, (-1, 2)), places, atol=atol)
        else:
            drawn, pens = numbers(figure["state"])
            wanted, strokes = numbers(
                path_data(axes, xy, close=figure["kind"] == "fill")
            )
            assert pens == strokes, figure["name"]
            np.testing.assert_allclose(drawn, wanted, atol=atol)


def test_every_explorer_is_on_a_page(site):
    shown = {name for page in PAGES for name in page.values[1]}
    assert shown == set(NAMES)


@pytest.mark.parametrize(("path", "names"), PAGES)
def test_every_control_25_times_reads_as_python(path, names, local_python, new_page):
    page = new_page(path)
    roots = page.locator(".cl-explorer").evaluate_all("all => all.map((e) => e.id)")
    assert len(roots) == len(names) == len(set(roots))
    for root, name in zip(roots, names, strict=True):
        explorer = get(name)
        drawn_differently = set()
        for control in explorer.controls:
            moves = moves_of(control)
            for seen, (how, put, value) in zip(
                drive(page, root, control, moves), moves, strict=True
            ):
                found = answer(name, json.dumps({control.name: value}))
                assert not found.errors
                wanted = [[r.label, r.text] for r in found.readings]
                assert seen["readout"] == wanted, f"{name}: {control.name} {how} {put}"
                assert seen["error"] == ""
                if seen["box"] is not None:
                    assert seen["box"] == control.show(found.values[control.name])
                if seen["figures"]:
                    check_figures(seen["figures"], found.series)
                    drawn_differently.add(json.dumps(seen["figures"]))
                TIMES["move [ms]"].append(seen["took"])
            button = page.locator(f"#{root} .cl-reset")
            before = page.locator(f"#{root}").get_attribute("data-answered")
            button.click()
            page.wait_for_function(
                "([id, n]) => document.getElementById(id).dataset.answered > n",
                arg=[root, int(before)],
            )
        assert len(drawn_differently) > len(explorer.controls), "the figure follows"
        rows = page.locator(f"#{root} .cl-readout dd").all_inner_texts()
        assert rows == [r.text for r in answer(name, "{}").readings], "reset"
    assert page.record.clean(), vars(page.record)


# --- before, during and after loading


@pytest.mark.parametrize(("path", "names"), PAGES)
def test_page_is_complete_without_scripts(path, names, site, new_page):
    page = new_page(path, java_script_enabled=False)
    for i, name in enumerate(names):
        root = page.locator(".cl-explorer").nth(i)
        explorer = get(name)
        rows = root.locator(".cl-readout dd").all_inner_texts()
        assert rows == [r.text for r in answer(name, "{}").readings]
        assert root.locator("svg[role=img]").count() == len(explorer.panels)
        for panel in explorer.panels:
            assert root.get_by_role("img", name=panel.alt).is_visible()
        assert "over http with scripts on" in root.locator(".cl-status").inner_text()
        assert root.locator("fieldset:disabled").count() == 1


def test_page_opened_as_a_file_says_what_to_do(site, browser):
    page = browser.new_page()
    page.goto((site / FIRST_PAGE).as_uri())
    root = page.locator(".cl-explorer").first
    assert root.locator("fieldset:disabled").count() == 1
    assert "make serve" in root.locator(".cl-status").inner_text()
    page.close()


def test_nothing_is_loaded_before_the_first_touch(site, new_page):
    asked = []
    page = new_page(
        FIRST_PAGE,
        prepare=lambda c: c.on("request", lambda r: asked.append(r.url)),
    )
    settled(page, page.locator(".cl-explorer").first, "Moving a control starts")
    page.wait_for_timeout(500)
    assert any("explorer.js" in url for url in asked)
    assert not [url for url in asked if "pyodide" in url or "worker" in url]


def test_first_touch_tells_its_progress_and_answers(local_python, new_page):
    page = new_page(FIRST_PAGE)
    root = page.locator(".cl-explorer").first
    told = page.evaluate(
        """async (id) => {
          const root = document.getElementById(id);
          const status = root.querySelector(".cl-status");
          const told = [];
          new MutationObserver(() => told.push(status.textContent))
            .observe(status, { childList: true, characterData: true, subtree: true });
          const start = performance.now();
          const range = root.querySelector("input[type=range]");
          range.value = Number(range.value) + 3;
          range.dispatchEvent(new Event("input", { bubbles: true }));
          while (!root.dataset.answered) await new Promise((go) => setTimeout(go, 5));
          return { told, took: performance.now() - start };
        }""",
        root.get_attribute("id"),
    )
    TIMES["first answer [s]"].append(told["took"] / 1000)
    steps = " | ".join(told["told"])
    assert re.search(r"1 of 3.*2 of 3.*3 of 3.*Live: computed by Python", steps), steps
    assert page.record.clean(), vars(page.record)


def settled(page, root, text):
    page.wait_for_function(
        "([id, text]) => document.querySelector(`#${id} .cl-status`).textContent.includes(text)",
        arg=[root.get_attribute("id"), text],
        timeout=60_000,
    )


def test_explorers_of_a_page_share_one_python(local_python, new_page):
    path = max(PAGES, key=lambda page: len(page.values[1])).values[0]
    asked = []
    page = new_page(
        path,
        prepare=lambda c: c.on("request", lambda r: asked.append((r.method, r.url))),
    )
    for root in page.locator(".cl-explorer").all():
        root.locator("input[type=range]").first.press("ArrowLeft")
        settled(page, root, "Live: computed by Python")
    fetched = [url for method, url in asked if method == "GET"]
    assert sum(url.endswith("pyodide.asm.wasm") for url in fetched) == 1


def test_keyboard_moves_a_slider(local_python, new_page):
    page = new_page(FIRST_PAGE)
    root = page.locator(".cl-explorer").first
    explorer = get(FIRST_NAMES[0])
    control = next(c for c in explorer.controls if hasattr(c, "at"))
    slider = root.locator(f'[data-control="{control.name}"] input[type=range]')
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    value = control.at(control.position(control.value) + 3)
    found = answer(explorer.name, json.dumps({control.name: value}))
    wanted = [r.text for r in found.readings]
    page.wait_for_function(
        "([id, rows]) => rows.every((text, i) => text === "
        "document.querySelectorAll(`#${id} .cl-readout dd`)[i].textContent)",
        arg=[root.get_attribute("id"), wanted],
    )
    text = f"{control.show(value)} {control.suffix}".strip()
    assert slider.get_attribute("aria-valuetext") == text


def test_newest_values_win_while_python_is_busy(local_python, new_page):
    page = new_page(FIRST_PAGE)
    root = page.locator(".cl-explorer").first
    explorer = get(FIRST_NAMES[0])
    control = next(c for c in explorer.controls if hasattr(c, "at"))
    answered, rows = page.evaluate(
        """async ([id, name]) => {
          const root = document.getElementById(id);
          const range = root.querySelector(`[data-control="${name}"] input[type=range]`);
          for (let i = 0; i <= 50; i += 1) {
            range.value = i;
            range.dispatchEvent(new Event("input", { bubbles: true }));
          }
          while (!root.dataset.answered) await new Promise((go) => setTimeout(go, 20));
          return [Number(root.dataset.answered),
                  Array.from(root.querySelectorAll(".cl-readout dd"), (d) => d.textContent)];
        }""",
        [root.get_attribute("id"), control.name],
    )
    found = answer(explorer.name, json.dumps({control.name: control.at(50)}))
    assert rows == [r.text for r in found.readings]
    assert answered < 5


def test_bad_text_is_explained_and_costs_nothing(local_python, new_page):
    path, names = next(p.values for p in PAGES if "isoflop" in p.values[1])
    page = new_page(path)
    root = page.locator(".cl-explorer").nth(names.index("isoflop"))
    budget = root.locator('[data-control="C"]')
    box = budget.locator("input[type=text]")
    for typed, message in (
        ("400GB", "a number of bytes, not FLOP"),
        ("1e40", "compute budget C: 1e40 lies outside 1e17 to 1e27"),
        ("much", "is not a number"),
    ):
        box.fill(typed)
        box.press("Enter")
        budget.locator(".cl-error", has_text=message).wait_for()
        assert box.get_attribute("aria-invalid") == "true"
        assert box.input_value() == typed, "the reader can mend it"
    # another control still works, with the last good budget
    root.locator("select").select_option("hoffmann-2022")
    found = answer("isoflop", json.dumps({"law": "hoffmann-2022"}))
    root.locator(".cl-readout dd", has_text=found.readings[3].text).wait_for()
    assert root.locator(".cl-readout dd").all_inner_texts() == [
        r.text for r in found.readings
    ]
    box.fill("1 PF-day")
    box.press("Enter")
    found = answer("isoflop", json.dumps({"law": "hoffmann-2022", "C": 8.64e19}))
    root.locator(".cl-readout dd", has_text=found.readings[3].text).wait_for()
    assert budget.locator(".cl-error").is_hidden()
    assert box.input_value() == "8.64e19"
    assert page.record.clean(), vars(page.record)


# --- Python from the CDN: routed, and out of reach


def from_cdn(site):
    library = json.loads((site / "_static" / "live.json").read_text())["library"]
    return json.dumps({"pyodide": CDN, "library": library})


def test_cdn_mode_works(site, local_python, new_page):
    def serve(route):
        name = route.request.url.rsplit("/", 1)[1]
        kinds = {
            "wasm": "application/wasm",
            "mjs": "text/javascript",
            "js": "text/javascript",
        }
        route.fulfill(
            body=(local_python / name).read_bytes(),
            headers={
                "access-control-allow-origin": "*",
                "content-type": kinds.get(
                    name.rsplit(".", 1)[1], "application/octet-stream"
                ),
            },
        )

    def prepare(context):
        context.route("**/_static/live.json", lambda r: r.fulfill(body=from_cdn(site)))
        context.route(CDN + "**", serve)

    page = new_page(FIRST_PAGE, prepare=prepare)
    root = page.locator(".cl-explorer").first
    root.locator("input[type=range]").first.press("ArrowRight")
    settled(page, root, "Live: computed by Python")
    assert page.record.foreign
    assert all(url.startswith(CDN) for url in page.record.foreign)
    assert not page.record.page_errors


def test_unreachable_python_is_said_and_can_be_tried_again(
    site, local_python, new_page
):
    def prepare(context):
        context.route("**/_static/live.json", lambda r: r.fulfill(body=from_cdn(site)))
        context.route(CDN + "**", lambda route: route.abort())

    page = new_page(FIRST_PAGE, prepare=prepare)
    root = page.locator(".cl-explorer").first
    figure = root.locator("svg").first.inner_html()
    slider = root.locator("input[type=range]").first
    place = slider.input_value()
    slider.press("ArrowRight")
    settled(page, root, "Not live: Python could not be loaded")
    assert "pyodide.mjs" in root.locator(".cl-status").inner_text(), "says what failed"
    assert root.locator("svg").first.inner_html() == figure
    assert slider.input_value() == place, "a control shows what the figure shows"
    assert slider.is_disabled()
    rows = root.locator(".cl-readout dd").all_inner_texts()
    assert rows == [r.text for r in answer(FIRST_NAMES[0], "{}").readings]
    assert not page.record.page_errors
    # the network comes back
    page.context.unroute("**/_static/live.json")
    root.get_by_role("button", name="Try again").click()
    settled(page, root, "Live: computed by Python")
    slider.press("ArrowRight")
    page.wait_for_function(
        "(old) => document.querySelector('.cl-explorer svg').innerHTML !== old",
        arg=figure,
    )
    assert slider.input_value() == str(int(place) + 1)


MISSING = ("live.json", "pyodide.asm.wasm", "numpy", "chinchilla_lab.zip")


@pytest.mark.parametrize("piece", MISSING)
def test_a_missing_piece_is_named(piece, local_python, new_page):
    page = new_page(
        FIRST_PAGE,
        prepare=lambda c: c.route(
            f"**/{piece}*", lambda route: route.fulfill(status=404, body="gone")
        ),
    )
    root = page.locator(".cl-explorer").first
    root.locator("input[type=range]").first.press("ArrowRight")
    settled(page, root, "Not live: Python could not be loaded")
    assert piece in root.locator(".cl-status").inner_text()
    assert not page.record.page_errors


def core_from_npm(folder):
    import pyodide_folder

    try:
        files = pyodide_folder.npm_core()
    except (OSError, subprocess.CalledProcessError) as problem:
        give_up(f"NOT TESTED, the core of Pyodide: npm does not give it: {problem}")
    for name, data in files.items():
        pyodide_folder.check(name, data, pyodide_folder.CORE_SHA256[name])
        (folder / name).write_bytes(data)
    return folder


def test_core_of_python_boots_in_a_worker(site, new_page, tmp_path):
    """Runs where there is no numpy either: the core alone starts and answers."""
    folders = (site / "_static" / "pyodide", ROOT / ".pyodide")
    core = next((f for f in folders if (f / "pyodide.asm.wasm").is_file()), None)
    core = core or core_from_npm(tmp_path)
    kinds = {
        "wasm": "application/wasm",
        "mjs": "text/javascript",
        "js": "text/javascript",
    }

    def serve(route):
        name = route.request.url.rsplit("/", 1)[1]
        kind = kinds.get(name.rsplit(".", 1)[1], "application/octet-stream")
        route.fulfill(body=(core / name).read_bytes(), content_type=kind)

    page = new_page(FIRST_PAGE, prepare=lambda c: c.route("**/core-only/**", serve))
    found = page.evaluate(
        """() => new Promise((done, wrong) => {
          const code = `onmessage = async ({ data }) => {
            const { loadPyodide } = await import(data + "pyodide.mjs");
            const python = await loadPyodide({ indexURL: data });
            postMessage(python.runPython("import sys; sys.version.split()[0]"));
          };`;
          const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
          const worker = new Worker(url, { type: "module" });
          worker.onmessage = ({ data }) => done(data);
          worker.onerror = (event) => wrong(new Error(event.message));
          worker.postMessage(new URL("/core-only/", location).href);
        })"""
    )
    assert found.startswith("3.12")


# --- reading it: contrast, narrow screens, assistive technology, paper


@cache
def axe():
    return AXE.read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", [p.values[0] for p in PAGES] + OTHERS)
def test_axe_finds_nothing_serious(path, scheme, site, new_page):
    page = new_page(path, color_scheme=scheme)
    assert page.locator("html").get_attribute("data-theme") == scheme
    # the theme fades its colours in when it turns dark: look at where they come to rest
    page.evaluate("Promise.all(document.getAnimations().map((a) => a.finished))")
    page.evaluate(axe())
    found = page.evaluate(
        "axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa'],"
        " resultTypes: ['violations']})"
    )
    serious = [
        f"{v['id']}: {node['target']} {node['failureSummary']}"
        for v in found["violations"]
        if v["impact"] in ("serious", "critical")
        for node in v["nodes"]
    ]
    assert not serious, "\n".join(serious)


@pytest.mark.parametrize(("path", "names"), PAGES)
def test_narrow_screen_needs_no_sideways_scroll(path, names, local_python, new_page):
    page = new_page(path, viewport={"width": 380, "height": 800}, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    for i, name in enumerate(names):
        root = page.locator(".cl-explorer").nth(i)
        # the longest texts come with answers, so ask for one
        first = root.locator("input[type=range], select").first
        if first.evaluate("(e) => e.matches('select')"):
            first.select_option(index=0)
        else:
            first.press("End")
        settled(page, root, "Live: computed by Python")
        outside = root.evaluate(
            """(root) => {
              const edge = root.getBoundingClientRect().right + 0.5;
              return Array.from(root.querySelectorAll("*:not(svg *, .cl-hidden)"))
                .filter((e) => e.getBoundingClientRect().right > edge)
                .map((e) => e.outerHTML.slice(0, 90));
            }"""
        )
        assert not outside, f"{name}: {outside}"
        left = [p.bounding_box()["x"] for p in root.locator(".cl-panel").all()]
        assert max(left) - min(left) < 1, f"{name}: panels are not stacked"
        for box in root.locator(".cl-control").all():
            assert box.bounding_box()["height"] >= 40, "room for a finger"
    page.evaluate("scrollTo(10000, 0)")
    assert page.evaluate("scrollX") == 0


@pytest.mark.parametrize("path", OTHERS)
def test_wide_tables_scroll_by_themselves(path, site, new_page):
    page = new_page(path, viewport={"width": 380, "height": 800}, has_touch=True)
    page.evaluate("scrollTo(10000, 0)")
    assert page.evaluate("scrollX") == 0


def test_dark_pages_have_dark_cards(site, new_page):
    page = new_page(FIRST_PAGE, color_scheme="dark")
    root = page.locator(".cl-explorer").first
    shades = root.evaluate(
        """e => { const up = [];
          for (let n = e; n; n = n.parentElement) up.push(getComputedStyle(n).backgroundColor);
          return up; }"""
    )
    for shade in shades:
        levels = [float(v) for v in re.findall(r"[\d.]+", shade)]
        assert levels[3:] == [0] or max(levels[:3]) < 60, shades


def test_paper_shows_figure_and_values(site, new_page):
    page = new_page(FIRST_PAGE)
    page.emulate_media(media="print")
    root = page.locator(".cl-explorer").first
    assert root.locator("svg").first.is_visible()
    assert root.locator(".cl-readout").is_visible()
    assert root.locator("input[type=text]").first.is_visible()
    assert not root.locator("input[type=range]").first.is_visible()


def contrast(one, other):
    """Return the contrast ratio of WCAG 2.1 between two sRGB colours."""

    def luminance(colour):
        shares = [c / 255.0 for c in colour]
        linear = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares
        ]
        return np.dot((0.2126, 0.7152, 0.0722), linear)

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_follow_the_scheme_and_stand_out(scheme, site, new_page):
    path, names = next(p.values for p in PAGES if "isoflop" in p.values[1])
    page = new_page(path, color_scheme=scheme)
    found = (
        page.locator(".cl-explorer")
        .nth(names.index("isoflop"))
        .evaluate(
            """(root) => {
          const rgb = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
          const of = (where, what) =>
            rgb(getComputedStyle(root.querySelector(where))[what]);
          return {
            card: rgb(getComputedStyle(root).backgroundColor),
            text: of("svg text", "fill"),
            line: of('[data-series="valley"] path', "stroke"),
          };
        }"""
        )
    )
    column = ["light", "dark"].index(scheme) + 1
    colours = {
        swatch[0]: [int(swatch[column][i : i + 2], 16) for i in (1, 3, 5)]
        for swatch in SWATCHES.values()
    }
    assert found["text"] == colours["--cl-ink"]
    assert found["line"] == colours["--cl-blue"]
    assert contrast(found["text"], found["card"]) > 7
    for name, colour in colours.items():
        if name != "--cl-grid":
            assert contrast(colour, found["card"]) > 3, f"{name} on the {scheme} card"
