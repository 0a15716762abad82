"""Serve the built site on localhost: ``make serve``."""

import sys
import webbrowser
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer


class Handler(SimpleHTTPRequestHandler):
    """Files with the types that a worker and WebAssembly insist on."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def log_message(self, *args):
        """Keep quiet: a page asks for dozens of files."""


def server(folder, port=0):
    """Return a server of a folder on localhost, not yet running."""
    handler = partial(Handler, directory=str(folder))
    return ThreadingHTTPServer(("127.0.0.1", port), handler)


if __name__ == "__main__":
    site, wanted = sys.argv[1], int(sys.argv[2])
    with server(site, wanted) as httpd:
        address = f"http://127.0.0.1:{httpd.server_port}/"
        print(f"Serving {site} at {address} (stop with Ctrl-C)")
        webbrowser.open(address)
        try:
            httpd.serve_forever()
        except KeyboardInterrupt:
            print()
