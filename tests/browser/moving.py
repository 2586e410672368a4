#!/usr/bin/env python3
"""Opens the pages that move (tools/moving) in a headless Chromium: no error is logged, each is below 2 MB, each slider moves
the picture and the command, and at ten random points of each page the numbers are those that the shown command prints.
Usage: moving.py LOCKSTEP [FOLDER of pages that are made]; 77: no browser."""

import json
import os
import pathlib
import random
import shlex
import subprocess
import sys

sys.dont_write_bytecode = True
from reports import check, in_browser, pages_in  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SET = "const i = document.getElementById('slider-' + arguments[0]); i.value = arguments[1]; i.dispatchEvent(new Event('input'))"
SEEN = "return document.getElementById('picture').innerHTML"
COMMAND = "return document.getElementById('command').textContent"


def at(node, key):
    for part in key.split("."):
        node = node[int(part)] if isinstance(node, list) else node[part]
    return float(node)


def check_page(browser, path, lockstep):
    name = path.stem
    browser.open(str(path))
    browser.wait("document.documentElement.dataset.ready")
    check(not browser.complaints(), f"{name}: the console is empty")
    check(path.stat().st_size < 2e6, f"{name}: smaller than 2 MB")
    n = [int(x) + 1 for x in browser.run("return [...document.querySelectorAll('#sliders input')].map((i) => i.max)")]
    start = [int(x) for x in browser.run("return [...document.querySelectorAll('#sliders input')].map((i) => i.value)")]
    for k in range(len(n)):
        seen, command = browser.run(SEEN), browser.run(COMMAND)
        browser.run(SET, k, (start[k] + 1) % n[k])
        check(browser.run(SEEN) != seen and browser.run(COMMAND) != command, f"{name}: slider {k} moves the picture and the command")
        browser.run(SET, k, start[k])
        check(browser.run(SEEN) == seen, f"{name}: slider {k} moves it back")
    draw, n_compared = random.Random(name), 0
    for _ in range(400):
        if n_compared == 10:
            break
        for k in range(len(n)):
            browser.run(SET, k, draw.randrange(n[k]))
        shown = browser.run("return [...document.querySelectorAll('.card')].map((c) => [c.dataset.key, c.dataset.value])")
        if not shown:
            continue
        line = browser.run(COMMAND)
        done = subprocess.run([lockstep, *shlex.split(line)[1:], "--json"], capture_output=True, text=True)
        result = json.loads(done.stdout)
        check(line.startswith("lockstep ") and all(at(result, key) == float(value) for key, value in shown), f"{name}: {line} prints {shown}")
        images = browser.run("return [...document.querySelectorAll('#picture img')].map((i) => i.src.length)")
        rects = browser.run("return document.querySelectorAll('#picture svg rect').length")
        check((images and min(images) > 1000) or rects > 1, f"{name}: {line} is drawn")
        n_compared += 1
    check(n_compared == 10, f"{name}: ten points")


def look(lockstep, folder, browser):
    made = sorted(pages_in(folder, lambda to: subprocess.run([sys.executable, ROOT / "tools/moving/build", "-o", to, "--lockstep", lockstep], check=True)).glob("*.html"))
    check(len(made) >= 6, f"six pages: {made}")
    for path in made:
        check_page(browser, path, lockstep)


def main():
    os.environ.setdefault("LS_DATA_DIR", str(ROOT))
    return in_browser(look)


if __name__ == "__main__":
    sys.exit(main())
