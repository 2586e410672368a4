#!/usr/bin/env python3
"""Pins of each lab: right answers, taken from what its own commands print, pass; each known mistake fails with its hint and is
never answered by a number, also as a student rounds it; a number in another unit is answered so; of tasks a right configuration passes, and each mistake is made by one here; what is measured for an
answer is a command that the lab shows. No page and no example of the manual gives an answer away. Pages and notebooks are those of the files; a notebook's cells run.
Usage: labs.py LOCKSTEP"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools/labs"))
from labs import Measures, names_of, read_labs  # noqa: E402

LOCKSTEP = os.path.realpath(sys.argv[1])
n_failed = 0

# Of each task a configuration that is right, then one for each mistake, in their order.
TASKS = json.loads((ROOT / "tests/labs/tasks.json").read_text(encoding="utf-8"))


def check(holds, what):
    global n_failed
    if not holds:
        print("FAILED:", what)
        n_failed += 1


def lab_check(lab, *answers):
    run = subprocess.run([LOCKSTEP, "lab", "check", lab["name"], *answers, "--json"], capture_output=True, text=True)
    if run.returncode not in (0, 5):
        return run.returncode, {}
    return run.returncode, {g["name"]: g for g in json.loads(run.stdout)["grades"]}


def has_number(text, value, within=0.02):
    """Whether a text gives the answer away."""
    return any(value != 0 and abs(float(n) / value - 1) < within for n in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", text))


OF_UNIT = {"%": [100, 1e-2], "GB": [1000, 1e-3, 1e9, 1 / 1.073741824], "ms": [1000, 1e-3], "s": [1000, 1 / 60], "h": [60, 3600]}


def rounded(value, n_digits):
    return float(f"{value:.{n_digits}g}")


def check_rounded(lab, q, right, wrong):
    """Tolerances tell known mistakes apart, and have room for three digits."""
    code, _ = lab_check(lab, f"{q['name']}={rounded(right, 3)!r}")
    check(code == 0, f"{lab['name']}: {q['name']}={rounded(right, 3):g} is right to three digits")
    for of in {rounded(w, n) for w in wrong for n in (2, 3)}:
        code, _ = lab_check(lab, f"{q['name']}={of!r}")
        check(code == 5, f"{lab['name']}: {q['name']}={of:g} is a mistake, rounded: {wrong}, not {right:g}")


def check_units(lab, q, right, wrong):
    for factor in OF_UNIT[q["unit"]]:
        given = right * factor
        if any(abs(given - w) <= 1e-9 * abs(w) for w in wrong):
            continue  # a known mistake, with a hint of its own
        code, grades = lab_check(lab, f"{q['name']}={given!r}")
        check(code == 5 and "another unit" in grades[q["name"]]["hint"], f"{lab['name']}: {q['name']}={given:g} is of another unit: {grades}")


def check_questions(lab, measures):
    right = {q["name"]: measures.value(lab, q["value"]) for q in lab["questions"]}
    code, grades = lab_check(lab, *(f"{name}={value!r}" for name, value in right.items()))
    for name in right:
        check(code == 0 and grades[name]["verdict"] == "right" and grades[name]["hint"] is None, f"{lab['name']}: {name}={right[name]:g} is right: {code} {grades}")
    for q in lab["questions"]:
        shown = {"lockstep " + lab["measures"][name].split(" => ")[0] for name in names_of(q["value"])}
        check(shown <= set(lab["commands"]), f"{lab['name']}: {q['name']} is measured by commands that are shown")
        for m in q["mistakes"]:
            wrong = measures.value(lab, m["value"])
            code, grades = lab_check(lab, f"{q['name']}={wrong!r}")
            check(code == 5 and grades[q["name"]]["hint"] == m["hint"], f"{lab['name']}: {q['name']}={wrong:g}: {m['hint']!r}, not {grades}")
            check(not has_number(m["hint"], right[q["name"]]), f"{lab['name']}: a hint has the answer of {q['name']}: {m['hint']}")
        far = max(abs(right[q["name"]]), *(abs(measures.value(lab, m["value"])) for m in q["mistakes"])) * 77 + 1
        code, grades = lab_check(lab, f"{q['name']}={far!r}")
        check(code == 5 and grades[q["name"]]["hint"] == q["hint"], f"{lab['name']}: {q['name']}={far:g} is near no mistake: {grades}")
        wrong = [measures.value(lab, m["value"]) for m in q["mistakes"]]
        check_rounded(lab, q, right[q["name"]], wrong)
        if q.get("unit"):
            check_units(lab, q, right[q["name"]], wrong)


def check_task(lab, measures):
    tried = TASKS.get(lab["name"], [])
    task = lab["task"]
    check(len(tried) == 1 + len(task["mistakes"]), f"{lab['name']}: a configuration for the task and for each of its mistakes")
    for i, options in enumerate(tried):
        code, grades = lab_check(lab, *shlex.split(options))
        hint = None if i == 0 else task["mistakes"][i - 1]["hint"]
        check(code == (0 if i == 0 else 5) and grades and grades["configuration"]["hint"] == hint, f"{lab['name']}: {options}: {hint!r}, not {code} {grades.get('configuration')}")
        whole, _ = lab_check(lab, *shlex.split(task["run"])[1:], *shlex.split(options))
        check(whole == code, f"{lab['name']}: {options} after the whole command line of the task: {whole}, not {code}")
        holds = measures.value(lab, task["right"], own=task["run"] + " " + options)
        check(holds == (i == 0), f"{lab['name']}: {options} by the second implementation")


def check_examples(labs):
    """What the manual and --help hand in is wrong."""
    texts = [*(ROOT / "src/manual").rglob("*.md"), ROOT / "src/api/commands.txt"]
    shown = {line for path in texts for line in re.findall(r"lockstep lab check ([a-z].*)", path.read_text(encoding="utf-8"))}
    by_name = {lab["name"]: lab for lab in labs}
    for words in [shlex.split(line.split("||")[0].split("`")[0]) for line in shown]:
        if words and words[0] in by_name and "..." not in " ".join(words):
            code, grades = lab_check(by_name[words[0]], *(w for w in words[1:] if w != "--json"))
            check(code == 5 and all(g["verdict"] != "right" for g in grades.values()), f"the manual has an answer to {words}: {grades}")


def check_pages(labs, folder, measures):
    """Each lab is one, gives no answer away, and links lead to pages of the manual."""
    for lab in labs:
        text = (folder / f"{lab['name']}.md").read_text(encoding="utf-8")
        for q in lab["questions"]:
            value = measures.value(lab, q["value"])
            check(value == int(value) or not has_number(text, value, 0.005), f"{lab['name']}.md has the answer to {q['name']}: {value:g}")
    manual = ROOT / "src/manual/labs"
    for name in [*(lab["name"] for lab in labs), "instructors"]:
        text = (folder / f"{name}.md").read_text(encoding="utf-8")
        lost = [to for to in re.findall(r"\]\(([^)#:]+)", text) if not ((manual / to).exists() or (folder / to).exists())]
        check(not lost, f"{name}.md: links lead nowhere: {lost}")


def check_notebook(lab, folder):
    """Its code cells, as Jupyter's kernel runs them: lines with ! by a shell, with names in braces."""
    cells = json.loads((folder / f"{lab['name']}.ipynb").read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    shown = [line[1:] for line in code.splitlines() if line.startswith("!") and "lab check" not in line]
    check(shown == lab["commands"], f"{lab['name']}: the notebook has the commands")
    names = {}
    exec("\n".join(line for line in code.splitlines() if not line.startswith("!")).replace(" = None", " = 1e9"), names)
    last = code.splitlines()[-1][1:].format(**{"options": "", **names})
    run = subprocess.run(last.replace("lockstep", shlex.quote(LOCKSTEP), 1), shell=True, capture_output=True, text=True)
    check(run.returncode == 5 and f" {len(lab['questions'])} wrong" in run.stdout, f"{lab['name']}: the notebook hands in: {run.stdout}{run.stderr}")


def main():
    os.environ.setdefault("LS_DATA_DIR", str(ROOT))
    measures, labs = Measures(LOCKSTEP), read_labs()
    check(len(labs) >= 12, "there are twelve labs")
    listed = subprocess.run([LOCKSTEP, "lab", "list"], capture_output=True, text=True).stdout
    only = os.environ.get("LS_CASE")
    with tempfile.TemporaryDirectory() as folder:
        built = subprocess.run([sys.executable, ROOT / "tools/labs/build", "--pages", folder, "--notebooks", folder], capture_output=True, text=True)
        check(built.returncode == 0, "pages and notebooks: " + built.stdout + built.stderr)
        check_pages(labs, pathlib.Path(folder), measures)
        check_examples(labs)
        for lab in labs:
            if only and lab["name"] != only:
                continue
            check(f"\n{lab['name']} " in listed, f"{lab['name']} is listed")
            text = subprocess.run([LOCKSTEP, "lab", "show", lab["name"]], capture_output=True, text=True).stdout
            check(all("  " + c + "\n" in text for c in lab["commands"]), f"{lab['name']} shows its commands")
            check_questions(lab, measures)
            if "task" in lab:
                check_task(lab, measures)
            check_notebook(lab, pathlib.Path(folder))
    print(f"{len(labs)} labs, {sum(len(lab['questions']) for lab in labs)} questions, {len(measures.done)} commands")
    return 1 if n_failed else 0


sys.exit(main())
