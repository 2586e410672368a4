#!/usr/bin/env python3
"""Pins of each lab: right answers, taken from what its own commands print, pass; each known mistake fails with its hint and is
never answered by a number; of tasks a right configuration passes, and each mistake is made by one here; what is measured for an
answer is a command that the lab shows. Pages and notebooks are those of the files; a notebook's cells run.
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
TASKS = {
    "all-reduce": ["--micro-batch 2", "--micro-batch 4", "--micro-batch 1"],
    "buckets": ["--bucket-bytes 50MiB", "--bucket-bytes 512MiB"],
    "zero-memory": ["--zero 2", "--zero 0", "--zero 3", "--zero 1"],
    "fsdp-prefetch": ["--backward-prefetch pre", "--backward-prefetch none"],
    "bubble": ["--global-batch 160", "--global-batch 80", "--global-batch 256"],
    "in-flight": ["--schedule 1f1b", "--schedule gpipe", "--schedule naive"],
    "interleaved": ["--vpp 3", "--vpp 1", "--vpp 6"],
    "zero-bubble": ["--schedule zb-h1", "--schedule zb-h2", "--schedule 1f1b"],
    "tensor-parallel": ["--tp 4", "--tp 2", "--tp 16", "--tp 4 --pp 4", "--tp 8"],
    "long-context": ["--cp 16", "--cp 1", "--cp 4 --recompute full", "--cp 32"],
    "experts": ["--ep 8", "--ep 1", "--ep 32", "--ep 4"],
    "recompute": ["--recompute selective", "--recompute none", "--recompute full"],
    "choose-3d": ["--tp 4", "--pp 16", "--tp 16", "--tp 2 --pp 2", "--tp 8"],
}


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


def has_number(text, value):
    """Whether a hint gives the answer away."""
    return any(value != 0 and abs(float(n) / value - 1) < 0.02 for n in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", text))


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
        if q.get("unit"):
            code, grades = lab_check(lab, f"{q['name']}={right[q['name']] * 1000!r}")
            check(code == 5 and "another unit" in grades[q["name"]]["hint"], f"{lab['name']}: {q['name']} times 1000 is of another unit: {grades}")


def check_task(lab, measures):
    tried = TASKS.get(lab["name"], [])
    task = lab["task"]
    check(len(tried) == 1 + len(task["mistakes"]), f"{lab['name']}: a configuration for the task and for each of its mistakes")
    for i, options in enumerate(tried):
        code, grades = lab_check(lab, *shlex.split(options))
        hint = None if i == 0 else task["mistakes"][i - 1]["hint"]
        check(code == (0 if i == 0 else 5) and grades and grades["configuration"]["hint"] == hint, f"{lab['name']}: {options}: {hint!r}, not {code} {grades.get('configuration')}")
        holds = measures.value(lab, task["right"], own=task["run"] + " " + options)
        check(holds == (i == 0), f"{lab['name']}: {options} by the second implementation")


def check_pages(labs, folder):
    """Each lab is one, and links lead to pages of the manual."""
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
        check_pages(labs, pathlib.Path(folder))
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
