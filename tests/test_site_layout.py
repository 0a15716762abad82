"""What stands on a page is in sight: tables, formulas and figures fit into their boxes.

Needs `make book`. At the width of a desktop nothing may be cut off. On a phone a table
of many columns and a long formula may scroll, if a shadow says that there is more.
"""

import pytest
from conftest import ROOT

pytestmark = pytest.mark.browser

SETTLED = (
    "async () => { await window.MathJax?.startup?.promise; await document.fonts.ready }"
)
# what is wider than the box that cuts it off, with what a reader is told about that
WIDER = """() => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  const article = document.querySelector(".bd-article");
  const limits = article.getBoundingClientRect();
  const found = [];
  const parts = "table, mjx-container > mjx-math, figure, figcaption, img, .cl-explorer";
  for (const part of article.querySelectorAll(parts)) {
    if (!part.getClientRects().length) continue;
    let box = part.parentElement;
    while (box !== article && getComputedStyle(box).overflowX === "visible")
      box = box.parentElement;
    box.scrollLeft = 0;
    const edges = box.getBoundingClientRect();
    const place = part.getBoundingClientRect();
    const over = Math.max(
      place.right - Math.min(edges.right, limits.right), limits.left - place.left);
    if (over < 1.5) continue;
    const style = getComputedStyle(box);
    found.push({
      what: `${part.tagName} ${Math.round(over)} px: `
        + (part.alt || part.closest("[id]").id + ": "
          + part.closest("p, li, div, table").textContent.trim()).slice(0, 90),
      may: part.matches("table.cl-many, .pst-scrollable-table-container table")
        || part.matches("mjx-container[display=true] > mjx-math"),
      told: style.overflowX === "auto" && style.backgroundAttachment.includes("local")
        && box.scrollWidth > box.clientWidth,
    });
  }
  return found;
}"""


def names():
    site = ROOT / "_build" / "html"
    found = sorted(
        p.relative_to(site).as_posix() for p in (site / "book").rglob("*.html")
    )
    return found or ["no built site"]


@pytest.mark.parametrize("path", names())
def test_nothing_is_cut_off(path, site, new_page):
    page = new_page(path, viewport={"width": 1280, "height": 900})
    page.evaluate(SETTLED)
    cut = [part["what"] for part in page.evaluate(WIDER)]
    assert not cut, "\n".join(["cut off at 1280 px:", *cut])
    page.set_viewport_size({"width": 380, "height": 800})
    page.wait_for_timeout(200)
    cut = [
        part["what"]
        for part in page.evaluate(WIDER)
        if not (part["may"] and part["told"])
    ]
    assert not cut, "\n".join(["cut off at 380 px without a sign of it:", *cut])


def test_heads_of_rows_stay_in_sight_on_a_phone(site, new_page):
    page = new_page("book/plan/one_plan.html", viewport={"width": 380, "height": 800})
    table = page.locator("table.cl-many").filter(has_text="joint").last
    moved = table.evaluate(
        """(table) => {
          let box = table.parentElement;
          while (getComputedStyle(box).overflowX === "visible") box = box.parentElement;
          box.scrollLeft = 1e4;
          const head = table.querySelector("tbody th").getBoundingClientRect();
          return [box.scrollLeft, head.left - box.getBoundingClientRect().left];
        }"""
    )
    assert moved[0] > 0
    assert abs(moved[1]) < 2


def test_static_figures_are_dark_on_dark_pages(site, new_page):
    path = "book/cluster/one_accelerator.html"
    for scheme, look in (("light", "none"), ("dark", "invert(1) hue-rotate(180deg)")):
        page = new_page(path, color_scheme=scheme)
        picture = page.locator("figure img").first
        style = picture.evaluate(
            "(e) => [getComputedStyle(e).filter, getComputedStyle(e).backgroundColor]"
        )
        assert style == [look, "rgba(0, 0, 0, 0)"]
