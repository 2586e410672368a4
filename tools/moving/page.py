"""A page with data and JavaScript: one HTML file in the look of reports, which needs no network."""

import base64
import gzip
import html
import json
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def palette():
    rows = re.findall(r"^(\S+)\s+([0-9a-f]{6})(?:\s+([0-9a-f]{6}))?$", (ROOT / "src/show/draw/palette.txt").read_text(encoding="utf-8"), re.M)
    return {name: ("#" + light, "#" + (dark or light)) for name, light, dark in rows}


def style():
    """The sheet of reports (src/show/page/page.css), with the palette of all pictures as its variables."""
    def of(place):
        return "".join(f"--{name}: {colours[place]}; " for name, colours in palette().items())
    sheet = (ROOT / "src/show/page/page.css").read_text(encoding="utf-8")
    return f":root {{ {of(0)}}}\n@media (prefers-color-scheme: dark) {{ :root {{ {of(1)}}} }}\n{sheet}"


def page(title, body, sheet, data=None, script=""):
    """body: what is between <main> and </main>. data: what the script gets by unpack(), compressed; None: there is no script."""
    tail = ""
    if data is not None:
        packed = base64.b64encode(gzip.compress(json.dumps(data, separators=(",", ":")).encode(), 9, mtime=0)).decode()
        tail = f'<script id="data" type="text/plain">{packed}</script>\n<script>{(HERE / "page.js").read_text(encoding="utf-8")}{script}</script>'
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>{style()}
{sheet}</style></head>
<body><main>{body}</main>
{tail}</body></html>
"""
