#!/usr/bin/env python3
"""Opens the pages of labs that grade (tools/labs/build --html) in a headless Chromium, and types right and wrong answers: each
verdict and hint is that of lockstep lab check. No page shows an answer before each question was checked; then it shows what the
commands print. Usage: lab_pages.py LOCKSTEP [FOLDER of pages that are made]; LS_CASE: only this lab; 77: no browser."""

import json
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools/labs"))
import graded  # noqa: E402
from labs import Measures, read_labs  # noqa: E402
from reports import ENTER, check, in_browser, pages_in  # noqa: E402

TASKS = json.loads((ROOT / "tests/labs/tasks.json").read_text(encoding="utf-8"))
FACTORS = [100, 1e-2, 1000, 1e-3, 1e9, 1 / 1.073741824, 1.073741824, 8, 1 / 60, 3600]
VERDICT = "const v = document.getElementById('verdict-' + arguments[0]); return [v.dataset.verdict, v.querySelector('span') && v.querySelector('span').textContent]"
CHOOSE = "const s = document.getElementById('knob-' + arguments[0]); s.value = arguments[1]; s.dispatchEvent(new Event('change'))"
TEXT = "return document.body.innerText"


def lab_check(lockstep, lab, words):
    """Of each answer verdict and hint; "refused" alone: of a configuration that is."""
    run = subprocess.run([lockstep, "lab", "check", lab["name"], *words, "--json"], capture_output=True, text=True)
    if run.returncode not in (0, 5):
        return {"configuration": ["refused", "; ".join(line.removeprefix("error: ") for line in run.stderr.splitlines() if line.startswith("error: "))]}
    return {g["name"]: [g["verdict"], g["hint"] or ""] for g in json.loads(run.stdout)["grades"]}


def rounded(x):
    """As a student writes it."""
    return f"{x:.3g}" if abs(x) < 1000 else f"{x:.0f}"


def answers_to(measures, lab, question, draw):
    """Texts that are typed: right, known mistakes and near them, other units, and others."""
    right = measures.value(lab, question["value"])
    wrong = [measures.value(lab, m["value"]) for m in question["mistakes"]]
    numbers = [right * 1.5 + 1, right, *wrong, *(right * f for f in FACTORS), *(w * draw.uniform(0.93, 1.07) for w in wrong)]
    numbers += [right * draw.uniform(0.75, 1.25) for _ in range(4)] + [draw.uniform(0, 4) * (abs(right) + 1) for _ in range(2)]
    return [rounded(right), *(rounded(w) for w in wrong), *(repr(float(n)) for n in numbers)]


def type_answer(browser, name, text):
    browser.run("const i = document.getElementById('answer-' + arguments[0]); i.value = ''", name)
    browser.type("#answer-" + name, text)


def check_numbers(browser, lab, lockstep, texts, with_enter):
    """texts: by question."""
    for name, text in texts.items():
        type_answer(browser, name, text + (ENTER if with_enter else ""))
    browser.click("#check")
    told = lab_check(lockstep, lab, [f"{name}={text}" for name, text in texts.items()])
    for name, text in texts.items():
        verdict, hint = browser.run(VERDICT, name)
        check([verdict, hint or ""] == told[name], f"{lab['name']}: {name}={text}: {verdict}: {hint}, not {told[name]}")
    handed = browser.run("return document.getElementById('hand-in').textContent").split()
    check(set(handed) >= {f"{name}={text}" for name, text in texts.items()}, f"{lab['name']}: hands in {handed}")
    n = [sum(told[name][0] == verdict for name in texts) for verdict in ("right", "wrong")]
    said = browser.run("return document.getElementById('sum').textContent")
    check(said.startswith(f"{lab['name']}: {n[0]} right, {n[1]} wrong"), f"{lab['name']}: {said}, not {n}")


def check_found(browser, lab, lockstep, place):
    """A configuration of the grid."""
    knobs = graded.GRID[lab["name"]]
    for k, (value, values) in enumerate(zip(place, knobs.values())):
        browser.run(CHOOSE, k, str(values.index(value)))
    options = graded.points_of(lab)[place]
    shown = browser.run("return document.getElementById('found').textContent")
    check(shown == f"lockstep {lab['task']['run']} {options}".rstrip(), f"{lab['name']}: shows {shown}")
    browser.click("#check-found")
    verdict, hint = browser.run(VERDICT, "configuration")
    told = lab_check(lockstep, lab, shlex.split(options))["configuration"] if options else ["open", ""]
    check([verdict, hint or ""] == told, f"{lab['name']}: {options}: {verdict}: {hint}, not {told}")
    return told[0]


def check_hidden(lab, measures, text, when):
    """No answer of three digits or more is in the text."""
    for q in lab["questions"]:
        value = rounded(measures.value(lab, q["value"]))
        if len(value.replace(".", "")) > 2 and value not in q["ask"]:
            check(not re.search(rf"(?<![\d.]){re.escape(value)}", text), f"{lab['name']}: the answer of {q['name']}, {value}, is shown {when}")


def check_page(browser, path, lab, lockstep, measures):
    draw = random.Random(lab["name"])
    browser.open(str(path))
    browser.wait("document.documentElement.dataset.ready")
    check(not browser.complaints(), f"{lab['name']}: the console is empty")
    check(path.stat().st_size < 2e6, f"{lab['name']}: smaller than 2 MB")
    check_hidden(lab, measures, browser.run(TEXT), "at first")
    source = re.sub(r'<script id="data".*?</script>|<style>.*?</style>', "", path.read_text(encoding="utf-8"), flags=re.S)
    check_hidden(lab, measures, source, "in the source")
    first = lab["questions"][0]["name"]
    type_answer(browser, first, "many")
    browser.click("#check")
    check(browser.run(VERDICT, first)[0] == "no number", f"{lab['name']}: many is no number")
    type_answer(browser, first, "")
    browser.click("#check")
    check(browser.run(VERDICT, first)[0] == "open", f"{lab['name']}: {first} is open again")
    check(browser.run("return document.querySelectorAll('.output[hidden]').length") == len(lab["commands"]), f"{lab['name']}: outputs are kept back")
    texts = {q["name"]: answers_to(measures, lab, q, draw) for q in lab["questions"]}
    for i in range(max(len(of) for of in texts.values())):
        check_numbers(browser, lab, lockstep, {name: of[i % len(of)] for name, of in texts.items()}, i == 1)
        if i == 0:
            printed = browser.run("return [...document.querySelectorAll('.output:not([hidden]) pre')].map((p) => p.textContent)")
            check(printed == [graded.printed(measures, c) for c in lab["commands"]], f"{lab['name']}: what its commands print")
    if "task" in lab:
        places = graded.points_of(lab)
        tried = [next((p for p, options in places.items() if options == wanted), None) for wanted in TASKS[lab["name"]]]
        check(None not in tried, f"{lab['name']}: the grid has {TASKS[lab['name']]}")
        told = [check_found(browser, lab, lockstep, p) for p in tried if p]
        check(told[0] == "right" and "right" not in told[1:], f"{lab['name']}: {told}")
        for place in draw.sample(list(places), min(8, len(places))):
            check_found(browser, lab, lockstep, place)
    check(not browser.complaints(), f"{lab['name']}: the console is empty at the end")


def look(lockstep, folder, browser):
    only = os.environ.get("LS_CASE")
    measures, labs = Measures(lockstep), [lab for lab in read_labs() if only in (None, lab["name"])]
    pages = pages_in(folder, lambda to: graded.write(labs, pathlib.Path(to), lockstep))
    check({path.stem for path in pages.glob("*.html")} >= {"index", *(lab["name"] for lab in labs)}, "a page of each lab")
    for lab in labs:
        check_page(browser, pages / f"{lab['name']}.html", lab, lockstep, measures)


def main():
    os.environ.setdefault("LS_DATA_DIR", str(ROOT))
    return in_browser(look)


if __name__ == "__main__":
    sys.exit(main())
