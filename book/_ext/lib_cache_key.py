"""Put a hash of the library into the path of the execution cache.

The cache knows a chapter by its cells, not by the code they import: without the hash an
edit of the library would leave yesterday's numbers in the book.
"""

import hashlib
from pathlib import Path


def set_cache_path(app, config):
    """Name the cache after the library's sources and data."""
    digest = hashlib.sha256()
    for path in sorted((Path(app.srcdir) / "chinchilla_lab").rglob("*")):
        if path.suffix in {".py", ".csv"}:
            name = path.relative_to(app.srcdir).as_posix()
            digest.update(name.encode() + path.read_bytes())
    folder = f".jupyter_cache-{digest.hexdigest()[:12]}"
    config.nb_execution_cache_path = str(Path(app.outdir).parent / folder)


def setup(app):
    """Register with Sphinx."""
    app.connect("config-inited", set_cache_path)
    return {"version": "1", "parallel_read_safe": True}
