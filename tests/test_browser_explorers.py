"""The explorers of the built site in a real browser: what they show is what Python says.

Needs `make book PYODIDE=.pyodide`, so that no CDN takes part.
"""

import json
import re
import statistics
from functools import cache
from pathlib import Path

import axe_playwright_python
import numpy as np
import pytest
from conftest import ROOT, give_up

from chinchilla_lab.explorers import get
from chinchilla_lab.explorers.core import Choice, Toggle
from chinchilla_lab.explorers.page import answer
from chinchilla_lab.explorers.svg import path_data, to_svg

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
FIRST_PAGE, FIRST_NAMES = PAGES[0].values


@pytest.fixture(scope="module", autouse=True)
def report():
    yield
    if TIMES["move [ms]"]:
        moves = TIMES["move [ms]"]
        print(
            f"\nfirst answer after the first touch: {max(TIMES['first answer [s]']):.2f} s"
            f" at most; move to rewritten figure, {len(moves)} moves: "
            f"median {statistics.median(moves):.1f} ms, "
            f"95 % {np.percentile(moves, 95):.1f} ms"
        )


@pytest.fixture
def local_python(site):
    """Skip, or fail in CI, where the site has no Python of its own."""
    pyodide = json.loads((site / "_static" / "live.json").read_text())["pyodide"]
    if "//" in pyodide:
        give_up("the site asks a CDN for Python: run `make book PYODIDE=.pyodide`")
    if not list((site / "_static" / "pyodide").glob("numpy-*.whl")):
        give_up(
            "_build/html/_static/pyodide holds no numpy: run `make pyodide` where the "
            "CDN or the package registries can be reached, then make book PYODIDE=.pyodide"
        )
    return site / "_static" / "pyodide"


# --- moving controls; many moves in one call, since each call costs a round trip

DRIVE = """
async ([id, control, moves]) => {
  const root = document.getElementById(id);
  const box = root.querySelector(`[data-control="${control}"]`);
  const rested = (before) => new Promise((done, wrong) => {
    const timer = setTimeout(() => wrong(new Error(`no answer for ${control}`)), 30000);
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
      { range: "input[type=range]", text: "input[type=text]", choice: "select", toggle: "input[type=checkbox]" }[how]);
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


def check_figures(figures, series):
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
            np.testing.assert_allclose(np.reshape(shown, (-1, 2)), places, atol=0.11)
        else:
            drawn, pens = numbers(figure["state"])
            wanted, strokes = numbers(
                path_data(axes, xy, close=figure["kind"] == "fill")
            )
            assert pens == strokes, figure["name"]
            np.testing.assert_allclose(drawn, wanted, atol=0.11)


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
        assert root.locator("fieldset").is_disabled()


def test_nothing_is_loaded_before_the_first_touch(site, new_page):
    asked = []
    page = new_page(
        FIRST_PAGE,
        prepare=lambda c: c.on("request", lambda r: asked.append(r.url)),
    )
    page.wait_for_load_state("networkidle")
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
    )


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


def test_core_of_python_boots_in_a_worker(site, new_page):
    """Runs where there is no numpy either: the core alone starts and answers."""
    folders = (site / "_static" / "pyodide", ROOT / ".pyodide")
    core = next((f for f in folders if (f / "pyodide.asm.wasm").is_file()), None)
    if core is None:
        give_up("no Pyodide core: run `make pyodide`")
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
@pytest.mark.parametrize(("path", "names"), PAGES)
def test_axe_finds_nothing_serious(path, names, scheme, site, new_page):
    page = new_page(path, color_scheme=scheme)
    assert page.locator("html").get_attribute("data-theme") == scheme
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
def test_narrow_screen_needs_no_sideways_scroll(path, names, site, new_page):
    page = new_page(path, viewport={"width": 380, "height": 800}, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    for i, name in enumerate(names):
        root = page.locator(".cl-explorer").nth(i)
        inside = root.evaluate("e => e.scrollWidth - e.clientWidth")
        assert inside <= 0, name
        for box in root.locator(".cl-control").all():
            assert box.bounding_box()["height"] >= 40, "room for a finger"


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


def settled(page, root):
    """Wait until the page rests with an answer; return what it shows."""
    page.wait_for_function(
        "(root) => root.dataset.answered && root.dataset.state === 'live'",
        arg=root.element_handle(),
        timeout=60_000,
    )
    return root.evaluate(STATE)


def shown(name, **raw):
    return [[r.label, r.text] for r in answer(name, json.dumps(raw)).readings]


def test_page_is_complete_before_it_is_touched(places, new_page, server):
    """No Python, no request beyond the page's own files until a control is touched."""
    for path in sorted({page for page, _, _ in places}):
        asked = []
        page = new_page(
            path, prepare=lambda c, a=asked: c.on("request", lambda r: a.append(r.url))
        )
        page.wait_for_load_state("networkidle")
        for root in page.locator(".cl-explorer").all():
            state = root.evaluate(STATE)
            name = root.get_attribute("data-explorer")
            assert state["state"] == "idle"
            assert state["readout"] == shown(name)
            compare_figure(state["groups"], answer(name, "{}").series, name)
        worker = [u for u in asked if "pyodide" in u or "worker" in u or ".zip" in u]
        assert not worker, f"{path} starts Python untouched: {worker}"
        assert page.record.clean(), vars(page.record)


def test_without_scripts_the_figure_stands_and_says_why(places, new_page):
    path = first_page(places, "isoflop")
    page = new_page(path, java_script_enabled=False)
    root = page.locator('[data-explorer="isoflop"]')
    for label, text in shown("isoflop"):
        row = root.locator(".cl-readout > div").filter(has_text=label).first
        assert text in row.inner_text()
    assert root.locator("svg").count() == len(get("isoflop").panels)
    assert root.locator("fieldset").is_disabled()
    assert "with scripts on" in root.locator(".cl-status").inner_text()


def test_a_page_opened_as_a_file_says_what_to_do(site, places, browser):
    page = browser.new_page()
    page.goto((site / first_page(places, "isoflop")).as_uri())
    root = page.locator('[data-explorer="isoflop"]')
    assert root.locator("fieldset").is_disabled()
    assert "make serve" in root.locator(".cl-status").inner_text()
    page.close()


def test_hand_on_keyboard_and_mouse(pyodide, places, new_page):
    """Real keys and a real drag; nothing here is dispatched by script."""
    explorer = get("isoflop")
    budget = explorer.controls[0]
    page = new_page(first_page(places, "isoflop"))
    root = page.locator('[data-explorer="isoflop"]')
    slider, typed = root.get_by_role("slider").first, root.get_by_role("textbox").first
    slider.scroll_into_view_if_needed()
    start = budget.position(budget.value)
    slider.focus()
    page.keyboard.press("ArrowRight")
    state = settled(page, root)
    assert state["readout"] == shown("isoflop", C=budget.at(start + 1))
    assert slider.get_attribute("aria-valuetext").endswith(" FLOP")

    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.5, middle)
    page.mouse.down()
    for share in np.linspace(0.5, 0.8, 12):
        page.mouse.move(box["x"] + box["width"] * share, middle)
    page.mouse.up()
    position = int(slider.input_value())
    assert 0.75 < position / budget.steps < 0.85
    page.wait_for_function(
        "([root, text]) => root.textContent.includes(text)",
        arg=[root.element_handle(), shown("isoflop", C=budget.at(position))[0][1]],
    )
    assert root.evaluate(STATE)["readout"] == shown("isoflop", C=budget.at(position))

    typed.fill("1 PF-day")
    typed.press("Enter")
    page.wait_for_function(
        "([root, text]) => root.textContent.includes(text)",
        arg=[root.element_handle(), shown("isoflop", C=8.64e19)[0][1]],
    )
    assert int(slider.input_value()) == budget.position(8.64e19)

    typed.fill("400GB")
    typed.press("Tab")
    root.locator(".cl-error:not([hidden])").wait_for()
    assert "bytes" in root.locator(".cl-error:not([hidden])").inner_text()
    assert typed.get_attribute("aria-invalid") == "true"
    assert root.evaluate(STATE)["readout"] == shown("isoflop", C=8.64e19)
    # a mistake in one box does not stop the others
    root.get_by_role("combobox").select_option("hoffmann-2022")
    expected = shown("isoflop", C=8.64e19, law="hoffmann-2022")
    page.wait_for_function(
        "([root, text]) => root.textContent.includes(text)",
        arg=[root.element_handle(), expected[0][1]],
    )
    assert root.evaluate(STATE)["readout"] == expected
    assert page.record.clean(), vars(page.record)


def test_newest_values_win_while_python_is_busy(pyodide, places, new_page):
    """200 moves at once, begun before Python is there: the last one is shown."""
    explorer = get("isoflop")
    budget = explorer.controls[0]
    page = new_page(first_page(places, "isoflop"))
    root = page.locator('[data-explorer="isoflop"]')
    root.evaluate(
        """(root) => {
          const range = root.querySelector("input[type=range]");
          for (let at = 0; at <= 150; at += 1) {
            range.value = at;
            range.dispatchEvent(new Event("input", { bubbles: true }));
          }
        }"""
    )
    state = settled(page, root)
    assert state["readout"] == shown("isoflop", C=budget.at(150))
    assert int(root.get_attribute("data-answered")) == 1, "asked once, not 151 times"


def test_explorers_of_a_page_share_one_python(pyodide, places, new_page):
    pages = [page for page, _, _ in places]
    path = max(set(pages), key=pages.count)
    asked = []
    page = new_page(
        path, prepare=lambda c: c.on("request", lambda r: asked.append(r.url))
    )
    for root in page.locator(".cl-explorer").all():
        root.get_by_role("slider").first.focus()
        page.keyboard.press("ArrowLeft")
        settled(page, root)
    assert sum(url.endswith("pyodide.asm.wasm") for url in asked) == 1


# --- where Python comes from


def serve_cdn(context, folder, log):
    """Answer the CDN's address from a local folder."""

    def reply(route):
        file = folder / Path(urlsplit(route.request.url).path).name
        log.append(file.name)
        route.fulfill(
            body=file.read_bytes(),
            content_type=TYPES[file.suffix],
            headers={"access-control-allow-origin": "*"},
        )

    context.route(f"{CDN}**", reply)


def point_to_cdn(context, site):
    """Let the page believe that it was built without a Pyodide of its own."""
    live = json.loads((site / "_static" / "live.json").read_text(encoding="utf-8"))
    body = json.dumps(live | {"pyodide": CDN})
    context.route(
        "**/_static/live.json",
        lambda route: route.fulfill(body=body, content_type="application/json"),
    )


def test_pyodide_from_its_cdn(site, pyodide, places, new_page):
    log = []

    def prepare(context):
        point_to_cdn(context, site)
        serve_cdn(context, pyodide, log)

    page = new_page(first_page(places, "isoflop"), prepare=prepare)
    root = page.locator('[data-explorer="isoflop"]')
    root.get_by_role("combobox").select_option("hoffmann-2022")
    state = settled(page, root)
    assert state["readout"] == shown("isoflop", law="hoffmann-2022")
    assert "pyodide.asm.wasm" in log
    assert all(url.startswith(CDN) for url in page.record.foreign)
    assert not page.record.page_errors
    assert not page.record.console


def test_cdn_out_of_reach_and_back(site, pyodide, places, new_page):
    """A plain message, the figure as it was, and a button that tries again."""

    def prepare(context):
        point_to_cdn(context, site)
        context.route(f"{CDN}**", lambda route: route.abort())

    page = new_page(first_page(places, "isoflop"), prepare=prepare)
    root = page.locator('[data-explorer="isoflop"]')
    before = root.evaluate(STATE)
    slider = root.get_by_role("slider").first
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "(root) => root.dataset.state === 'failed'", arg=root.element_handle()
    )
    state = root.evaluate(STATE)
    assert "could not be loaded" in state["status"]
    for part in ("readout", "groups", "boxes"):
        assert state[part] == before[part], f"{part} changed without Python"
    assert not page.record.page_errors
    again = root.get_by_role("button", name="Try again")
    again.wait_for()
    assert again.evaluate("(button) => document.activeElement === button")

    page.context.unroute(f"{CDN}**")
    serve_cdn(page.context, pyodide, [])
    again.click()
    assert settled(page, root)["readout"] == shown("isoflop")
    page.keyboard.press("Tab")
    slider.focus()
    page.keyboard.press("ArrowRight")
    budget = get("isoflop").controls[0]
    expected = shown("isoflop", C=budget.at(budget.position(budget.value) + 1))
    page.wait_for_function(
        "([root, text]) => root.textContent.includes(text)",
        arg=[root.element_handle(), expected[0][1]],
    )


BOOT = """
async (index) => {
  const source = `onmessage = async ({ data }) => {
    try {
      const { loadPyodide } = await import(data + "pyodide.mjs");
      const python = await loadPyodide({ indexURL: data });
      const text = python.runPython("import sys; sys.version.split()[0]");
      postMessage(text + " " + python.version);
    } catch (error) { postMessage("failed: " + error.message); }
  };`;
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const worker = new Worker(url, { type: "module" });
  return await new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = (event) => reject(new Error(event.message));
    worker.postMessage(index);
  });
}
"""


def test_core_of_pyodide_boots_in_a_worker(site, new_page, tmp_path):
    """Without numpy, so that it runs even where no wheel of numpy can be had."""
    folder = site / "_static" / "pyodide"
    if not (folder / "pyodide.mjs").is_file():
        import pyodide_folder

        try:
            core = pyodide_folder.npm_core()
        except Exception as problem:
            pytest.skip(f"NOT TESTED: the core of Pyodide; npm pack failed: {problem}")
        folder = tmp_path
        for name, data in core.items():
            pyodide_folder.check(name, data, pyodide_folder.CORE_SHA256[name])
            (folder / name).write_bytes(data)
    page = new_page(
        "book/index.html", prepare=lambda context: serve_cdn(context, folder, [])
    )
    assert page.evaluate(BOOT, CDN) == "3.12.7 0.27.7"


# --- for every eye and every screen

SCHEMES = ("light", "dark")


def all_pages(site):
    paths = sorted((site / "book").rglob("*.html"))
    return [path.relative_to(site).as_posix() for path in paths]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_nothing_serious(scheme, site, new_page):
    axe = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
    for path in all_pages(site):
        page = new_page(path, color_scheme=scheme)
        page.wait_for_load_state("networkidle")
        page.evaluate(axe)
        found = page.evaluate(
            """async () => (await axe.run(document, {
              runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"],
              resultTypes: ["violations"],
            })).violations.map(({ id, impact, nodes }) => [
              id, impact, nodes.slice(0, 3).map((node) => node.html.slice(0, 160))])"""
        )
        bad = [entry for entry in found if entry[1] in ("serious", "critical")]
        assert not bad, f"{path} ({scheme}): {bad}"
        inside = page.evaluate(
            """async () => {
              const all = document.querySelectorAll(".cl-explorer");
              if (!all.length) return [];
              const { violations } = await axe.run({ include: [[".cl-explorer"]] });
              return violations.map(({ id, impact, nodes }) => [
                id, impact, nodes.slice(0, 3).map((node) => node.html.slice(0, 160))]);
            }"""
        )
        assert not inside, f"explorers of {path} ({scheme}): {inside}"


def test_narrow_screen_needs_no_sideways_scrolling(site, pyodide, new_page):
    for path in all_pages(site):
        page = new_page(path, viewport={"width": 380, "height": 800}, has_touch=True)
        page.wait_for_load_state("networkidle")
        for root in page.locator(".cl-explorer").all():
            # the longest texts come with answers, so ask once
            root.locator("fieldset input, fieldset select").first.focus()
            page.keyboard.press("ArrowRight")
            settled(page, root)
            wide = root.evaluate(
                """(root) => {
                  const right = root.getBoundingClientRect().right + 0.5;
                  return Array.from(root.querySelectorAll("*"))
                    .filter((e) => !e.closest(".cl-hidden") && !e.closest("svg *"))
                    .filter((e) => e.getBoundingClientRect().right > right)
                    .map((e) => e.outerHTML.slice(0, 120));
                }"""
            )
            assert not wide, f"{path}: {wide}"
            panels = root.locator(".cl-panel").all()
            boxes = [panel.bounding_box() for panel in panels]
            assert len({round(box["x"]) for box in boxes}) == 1, "panels not stacked"
            small = root.evaluate(
                """(root) => Array.from(root.querySelectorAll(
                    "input[type=range], input[type=text], select, button"))
                  .filter((e) => !e.hidden && e.getBoundingClientRect().height < 32)
                  .map((e) => e.id || e.className)"""
            )
            assert not small, f"{path}: too small for a finger: {small}"
        page.evaluate("scrollTo(10000, 0)")
        assert page.evaluate("document.documentElement.scrollWidth") <= 380, path
        assert page.evaluate("scrollX") == 0, path


@pytest.mark.parametrize("scheme", SCHEMES)
def test_colours_follow_the_scheme_and_stand_out(scheme, places, new_page):
    from chinchilla_lab.figures.style import SWATCHES

    page = new_page(first_page(places, "isoflop"), color_scheme=scheme)
    root = page.locator('[data-explorer="isoflop"]')
    found = root.evaluate(
        """(root) => {
          const rgb = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
          const style = getComputedStyle(root);
          return {
            card: rgb(style.backgroundColor),
            text: rgb(getComputedStyle(root.querySelector("svg text")).fill),
            line: rgb(getComputedStyle(
              root.querySelector('[data-series="valley"] path')).stroke),
            theme: document.documentElement.dataset.theme,
          };
        }"""
    )
    assert found["theme"] == scheme
    swatch = {entry[0]: entry[1 + SCHEMES.index(scheme)] for entry in SWATCHES.values()}

    def rgb(code):
        return [int(code[i : i + 2], 16) for i in (1, 3, 5)]

    assert found["line"] == rgb(swatch["--cl-blue"])
    assert found["text"] == rgb(swatch["--cl-ink"])
    for name, code in swatch.items():
        if name != "--cl-grid":
            assert contrast(rgb(code), found["card"]) > 3.0, f"{name} in {scheme}"
    assert contrast(found["text"], found["card"]) > 7.0


def contrast(one, other):
    """Return the contrast ratio of WCAG 2.1 between two sRGB colours."""

    def luminance(colour):
        shares = [c / 255.0 for c in colour]
        linear = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
