"""Labs as HTML pages that grade: numbers by what lockstep lab check measures, the configuration of a task at each point of a
grid (grid.json) that is simulated when the page is made. What is right is in the page's packed data alone."""

import concurrent.futures
import html
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from labs import Measures, Refused, ROOT, flags_of, names_of

sys.path.insert(0, str(ROOT / "tools/moving"))
from page import page as html_page  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
GRID = json.loads((HERE / "grid.json").read_text(encoding="utf-8"))


def items(texts):
    return "<ul>" + "".join(f"<li>{html.escape(text)}</li>" for text in texts) + "</ul>"


def points_of(lab):
    """{place in the grid: options of the command line}"""
    knobs = GRID[lab["name"]]
    return {place: flags_of(dict(zip(knobs, place))) for place in itertools.product(*knobs.values())}


# --- what is simulated ---

def lines_of(lab):
    """All command lines that grade a lab."""
    formulas = [f for q in lab["questions"] for f in [q["value"], *(m["value"] for m in q["mistakes"])]]
    own = []
    if "task" in lab:
        formulas += [lab["task"]["right"], *(m["value"] for m in lab["task"]["mistakes"])]
        own = [f"{lab['task']['run']} {options}" for options in points_of(lab).values() if options]
    return own + [lab["measures"][name].split(" => ")[0] for f in formulas for name in names_of(f) if not name.startswith("own.")]


def try_line(measures, line):
    try:
        measures.result(line)
    except Refused:
        pass


def printed(measures, command):
    """What a command of a lab prints."""
    folder = pathlib.Path(measures.lockstep).parent
    environment = {"LS_DATA_DIR": str(ROOT), **os.environ, "LC_ALL": "C.UTF-8", "PATH": f"{folder}:{os.environ['PATH']}"}
    with tempfile.TemporaryDirectory() as cwd:
        return subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment, cwd=cwd, check=True).stdout


def graded_point(measures, lab, options):
    """Of a configuration: verdict, hint, and what its step is made of; or why it is refused."""
    task = lab["task"]
    line = f"{task['run']} {options}"
    try:
        result = measures.result(line)
    except Refused as refused:
        return {"refused": refused.reasons}
    is_right = measures.value(lab, task["right"], own=line) != 0
    made = (m["hint"] for m in task["mistakes"] if measures.value(lab, m["value"], own=line) != 0)
    parts = [(name.replace("_", " "), float(f"{value:.4g}")) for name, value in result["breakdown_s"].items() if value >= 0.0005 * result["step_time_s"]]
    return {"verdict": "right" if is_right else "wrong", "hint": None if is_right else next(made, task["hint"]),
            "step": result["step_time_s"], "needed": result["memory"]["needed_bytes"], "capacity": result["memory"]["capacity_bytes"],
            "bubble": result["bubble_frac"], "parts": sorted(parts, key=lambda p: -p[1])}


def data_of(measures, lab, pool):
    """All that the page's script knows."""
    list(pool.map(lambda line: try_line(measures, line), sorted(set(lines_of(lab)))))
    questions = [{"name": q["name"], "unit": q.get("unit"), "value": measures.value(lab, q["value"]), "within": q["within"], "hint": q["hint"],
                  "mistakes": [(measures.value(lab, m["value"]), m["hint"]) for m in q["mistakes"]]} for q in lab["questions"]]
    data = {"name": lab["name"], "questions": questions, "outputs": list(pool.map(lambda c: printed(measures, c), lab["commands"])), "task": None}
    if "task" in lab:
        points = {json.dumps(place, separators=(",", ":")): dict(graded_point(measures, lab, options), options=options)
                  for place, options in points_of(lab).items() if options}
        knobs = [(key.replace("_", "-"), values) for key, values in GRID[lab["name"]].items()]
        data["task"] = {"run": lab["task"]["run"], "knobs": knobs, "points": points}
    return data


# --- the page ---

def question(q):
    unit = f" {html.escape(q['unit'])}" if "unit" in q else ""
    return (f'<div class="question"><label for="answer-{q["name"]}">{html.escape(q["ask"])}</label>'
            f'<input id="answer-{q["name"]}" inputmode="decimal" autocomplete="off" size="10">{unit}<p class="verdict" id="verdict-{q["name"]}"></p></div>')


def commands(lab):
    return "".join(f'<p class="command">{html.escape(command)}</p><details class="output" hidden><summary>what it prints</summary><pre></pre></details>'
                   for command in lab["commands"])


def task(lab):
    if "task" not in lab:
        return ""
    return (f'<h2>Find</h2><p>{html.escape(lab["task"]["ask"])}</p><div class="tools" id="knobs"></div><p class="command" id="found"></p>'
            f'<div id="step"></div><button class="tool" id="check-found">Check the configuration</button>'
            f'<p class="verdict" id="verdict-configuration"></p>')


def body(lab):
    return f"""<h1>{html.escape(lab["title"])}</h1>
<p class="quiet">A lab of {lab["minutes"]} minutes. <a href="index.html">All labs</a></p>
<h2>Aims</h2>{items(lab["aims"])}<h2>Read</h2>{"".join(f"<p>{html.escape(text)}</p>" for text in lab["read"])}
<h2>Predict</h2><p>Write a number for each, before you run anything.</p>{"".join(question(q) for q in lab["questions"])}
<button class="tool" id="check">Check the numbers</button><p id="sum"></p>
<noscript><p class="bad">Answers are graded by JavaScript, which is off.</p></noscript>
<h2>Run</h2><p id="locked" class="quiet">What these print is shown here when each number was checked once.</p>{commands(lab)}
<h2>Explain</h2>{items(lab["explain"])}{task(lab)}
<h2>Hand in</h2><p class="command" id="hand-in"></p>
<p class="quiet">Figures come from {html.escape(lab["source"])}. All was simulated when this page was made.</p>"""


def index(labs):
    rows = "".join(f'<tr><td class="word"><a href="{lab["name"]}.html">{html.escape(lab["title"])}</a></td><td>{lab["minutes"]} min</td></tr>' for lab in labs)
    return html_page("Labs", f"<h1>Labs</h1><p>Predict a number, run a command, explain, find a configuration.</p><table>{rows}</table>", sheet())


def sheet():
    return (HERE / "lab.css").read_text(encoding="utf-8")


def write(labs, folder, lockstep):
    folder.mkdir(parents=True, exist_ok=True)
    measures, script = Measures(lockstep), (HERE / "lab.js").read_text(encoding="utf-8")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for lab in labs:
            text = html_page(lab["title"], body(lab), sheet(), data_of(measures, lab, pool), script)
            (folder / f"{lab['name']}.html").write_text(text, encoding="utf-8")
    (folder / "index.html").write_text(index(labs), encoding="utf-8")
    print(f"{len(labs)} labs, {len(measures.done)} commands simulated")
