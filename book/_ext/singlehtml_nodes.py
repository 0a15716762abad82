"""Let the single-page builder draw hidden cells, for a PDF of the whole book.

sphinx-exercise registers nodes for ``singlehtml``; Sphinx then no longer falls back to
the handlers of ``html``, where myst-nb registered its own.
"""


def inherit(app):
    """Give builders that write HTML the handlers of the builder ``html``."""
    table, name = app.registry.translation_handlers, app.builder.name
    if app.builder.format == "html" and name != "html" and name in table:
        table[name] = {**table.get("html", {}), **table[name]}


def setup(app):
    """Register with Sphinx."""
    app.connect("builder-inited", inherit)
    return {"version": "1", "parallel_read_safe": True}
