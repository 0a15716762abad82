"""What makes the built site live, light and self-contained.

Before the build: explorers are told to show their page face. After it: the library goes
into the site as an archive, a local Pyodide folder is copied if one is named, and the
theme's icon script, heavier than everything else on a page, is cut to the icons in use.
"""

import hashlib
import json
import os
import re
import shutil
import zipfile
from pathlib import Path

CDN = "https://cdn.jsdelivr.net/pyodide/v0.27.7/full/"
ASSETS = ("explorer.css", "explorer.js", "explorer_worker.js")
# not needed by a page, or not runnable in one
LEFT_OUT = {"explorers/kernel.py", "explorers/svg.py"}


def pyodide_source(root):
    """Return where pages get Python from: a URL, or a folder to copy into the site."""
    wanted = os.environ.get("PYODIDE", "").strip()
    if not wanted:
        return CDN
    if wanted.startswith(("http://", "https://")):
        return wanted.rstrip("/") + "/"
    folder = Path(root, Path(wanted).expanduser()).resolve()
    if not (folder / "pyodide.mjs").is_file():
        raise FileNotFoundError(
            f"PYODIDE={wanted}: no pyodide.mjs there; run `make pyodide` and then "
            "`make book PYODIDE=.pyodide`"
        )
    return folder


def show_page_faces(app, config):
    """Let kernels started by this build render explorers for the page."""
    os.environ["CHINCHILLA_LAB_FACE"] = "page"


def add_assets(app, pagename, templatename, context, doctree):
    """Load the explorers' script and style where there is an explorer."""
    if "cl-explorer" in context.get("body", ""):
        app.add_css_file("explorer.css")
        app.add_js_file("explorer.js", type="module")


def finish(app, error):
    """Complete the site after a successful build."""
    if error or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    archive = static / "chinchilla_lab.zip"
    version = write_library(Path(app.srcdir) / "chinchilla_lab", archive)
    pyodide = pyodide_source(app.srcdir)
    if isinstance(pyodide, Path):
        shutil.copytree(pyodide, static / "pyodide", dirs_exist_ok=True)
        pyodide = "pyodide/"
    live = {"pyodide": pyodide, "library": f"{archive.name}?v={version}"}
    (static / "live.json").write_text(json.dumps(live) + "\n", encoding="utf-8")
    cut_icons(Path(app.outdir))


def write_library(package, archive):
    """Write the sources as a zip that is the same for the same sources."""
    digest = hashlib.sha256()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for path in sorted(package.rglob("*")):
            if path.suffix not in {".py", ".csv"} or (
                path.relative_to(package).as_posix() in LEFT_OUT
            ):
                continue
            name = path.relative_to(package.parent).as_posix()
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(entry, path.read_bytes())
            digest.update(name.encode() + path.read_bytes())
    return digest.hexdigest()[:12]


SMALL = """\
(() => {
  const icons = %s;
  const draw = (root) => {
    for (const mark of root.querySelectorAll("i[class*='fa-'], span[class*='fa-']")) {
      const name = [...mark.classList].map((c) => c.slice(3)).find((c) => icons[c]);
      if (!name || mark.firstElementChild) continue;
      const [width, height, path] = icons[name];
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.setAttribute("class", `svg-inline--fa ${mark.className}`);
      svg.setAttribute("aria-hidden", "true");
      svg.setAttribute("role", "img");
      const shape = document.createElementNS("http://www.w3.org/2000/svg", "path");
      shape.setAttribute("d", path);
      shape.setAttribute("fill", "currentColor");
      svg.append(shape);
      mark.replaceWith(svg);
    }
  };
  const style = document.createElement("style");
  style.textContent =
    ".svg-inline--fa{display:inline-block;height:1em;overflow:visible;" +
    "vertical-align:-.125em;box-sizing:content-box}.fa-lg{font-size:1.25em;" +
    "line-height:.05em;vertical-align:-.075em}";
  document.head.append(style);
  const start = () => {
    draw(document);
    new MutationObserver((found) => {
      for (const { addedNodes } of found)
        for (const node of addedNodes) if (node.nodeType === 1) draw(node.parentNode);
    }).observe(document.body, { childList: true, subtree: true });
  };
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", start);
  else start();
})();
"""


def cut_icons(site):
    """Replace the theme's icon script by one with the icons that the pages use."""
    script = site / "_static" / "scripts" / "fontawesome.js"
    if not script.is_file():
        return
    used = set()
    for page in [*site.rglob("*.html"), *(site / "_static").rglob("*.js")]:
        if page == script or "vendor" in page.parts or "pyodide" in page.parts:
            continue
        text = page.read_text(encoding="utf-8", errors="ignore")
        used |= set(re.findall(r"\bfa-([a-z0-9-]+)", text))
    source = script.read_text(encoding="utf-8")
    icons = {}
    for name in sorted(used):
        # [width, height, aliases, code point, path]; solid style comes last and wins
        found = re.findall(
            rf'(?<![\w-])"?{re.escape(name)}"?:\[(\d+),(\d+),\[[^\]]*\],"[0-9a-f]+",'
            r'"([^"]+)"\]',
            source,
        )
        if found:
            width, height, path = found[-1]
            icons[name] = [int(width), int(height), path]
    if icons:
        licence = script.with_name("fontawesome.js.LICENSE.txt").read_text("utf-8")
        small = licence.strip() + "\n" + SMALL % json.dumps(icons)
        script.write_text(small, encoding="utf-8")
        # the map of the script that is gone, heavier than the rest of the site
        script.with_name("fontawesome.js.map").unlink(missing_ok=True)


def setup(app):
    """Register with Sphinx."""
    app.connect("config-inited", show_page_faces)
    app.connect("html-page-context", add_assets)
    app.connect("build-finished", finish)
    return {"version": "1", "parallel_read_safe": True}
