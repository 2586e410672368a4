#!/usr/bin/env python3
"""Opens the report of each command, and the gallery, in a headless Chromium: no error is logged, the numbers on the
page are those of --json, and what can be clicked, zoomed, sorted and searched does so. Usage: reports.py LOCKSTEP; 77:
no browser."""

import json
import os
import pathlib
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

JOB = ["--model", "llama3.1-8b:layers=8", "--cluster", "dgx-h100", "--gpus", "16", "--global-batch", "32"]
ENTER = "\ue007"
n_failed = 0
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    """A headless Chromium by the WebDriver protocol (W3C, 2018), as far as the test of reports needs it."""

    def __init__(self, driver, chromium, profile):
        self.process = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.base = None
        for line in self.process.stdout:
            if "started successfully on port" in line:
                self.base = "http://127.0.0.1:" + line.rstrip(".\n").split()[-1]
                break
        if not self.base:
            raise RuntimeError("chromedriver does not start")
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1500,1300", "--user-data-dir=" + profile]
        options = {"binary": chromium, "args": arguments}
        always = {"browserName": "chrome", "goog:loggingPrefs": {"browser": "ALL"}, "goog:chromeOptions": options}
        self.session = "/session/" + self.call("POST", "/session", {"capabilities": {"alwaysMatch": always}})["sessionId"]

    def call(self, method, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.base + path, method=method, data=data, headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()[:500]) from None

    def open(self, path):
        self.call("POST", self.session + "/url", {"url": "file://" + path})

    def run(self, script, *arguments):
        return self.call("POST", self.session + "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, expression, seconds=30):
        """Until the expression holds; its value."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.run("return " + expression)
            if value:
                return value
            time.sleep(0.05)
        raise RuntimeError("in vain: " + expression)

    def find(self, selector):
        return self.call("POST", self.session + "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self.call("POST", f"{self.session}/element/{self.find(selector)}/click", {})

    def type(self, selector, text):
        self.call("POST", f"{self.session}/element/{self.find(selector)}/value", {"text": text})

    def click_at(self, selector, x, y):
        """x, y: pixels from the middle of the element."""
        move = {"type": "pointerMove", "duration": 0, "x": x, "y": y, "origin": {ELEMENT: self.find(selector)}}
        steps = [move, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.call("POST", self.session + "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": steps}]})

    def complaints(self):
        return [entry for entry in self.call("POST", self.session + "/se/log", {"type": "browser"}) if entry["level"] == "SEVERE"]

    def close(self):
        try:
            self.call("DELETE", self.session)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()


def check(holds, what):
    global n_failed
    if not holds:
        print("FAILED:", what)
        n_failed += 1


class Reports:
    def __init__(self, lockstep, folder, browser):
        self.lockstep, self.folder, self.browser = lockstep, folder, browser

    def tell(self, *arguments):
        run = subprocess.run([self.lockstep, *arguments], cwd=self.folder, capture_output=True, text=True)
        if run.returncode != 0:
            raise RuntimeError(f"lockstep {' '.join(arguments)}: {run.stderr}")
        return run.stdout

    def open(self, *arguments):
        """The JSON of a command, whose report is open then."""
        path = os.path.join(self.folder, arguments[0] + ".html")
        self.tell(*arguments, "--report", path)
        self.browser.open(path)
        self.browser.wait("document.documentElement.dataset.ready")
        check(not self.browser.complaints(), f"{arguments[0]}: the console is empty")
        check(self.browser.run("return document.querySelector('.bad') === null || !document.querySelector('.bad').textContent.includes('cannot')"), f"{arguments[0]}: all is shown")
        check(os.path.getsize(path) < 300_000, f"{arguments[0]}: smaller than 300 kB")
        return json.loads(self.tell(*arguments, "--json"))

    def card(self, key):
        return float(self.browser.run(f"return document.querySelector('.card[data-key={key}]').dataset.value"))

    def range_shown(self):
        return [float(x) for x in self.browser.run("const c = document.querySelector('canvas').dataset; return [c.from, c.to]")]


def check_run(r):
    result = r.open("run", *JOB, "--tp", "2", "--pp", "2", "--critical-path", "--sensitivity")
    b = r.browser
    for key, value in [("step_time_s", result["step_time_s"]), ("mfu", result["mfu"]), ("needed_bytes", result["memory"]["needed_bytes"])]:
        check(r.card(key) == value, f"{key} is that of --json")
    for name in ["breakdown", "timeline", "memory", "links", "critical-path", "sensitivity", "what-it-rests-on"]:
        check(b.run(f"return document.querySelector('section#{name}') !== null"), f"there is a section {name}")
    whole = r.range_shown()
    check(abs(whole[1] - whole[0] - result["step_time_s"] * 1e9) < 2, "the whole step is shown at first")
    b.run("document.querySelector('canvas').scrollIntoView({ block: 'center' })")
    b.click("button[title='zoom in']")
    b.wait(f"Number(document.querySelector('canvas').dataset.to) < {whole[1]}")
    zoomed = r.range_shown()
    check(abs((zoomed[1] - zoomed[0]) * 2 - (whole[1] - whole[0])) < 2, "zooming in halves what is shown")
    b.type("canvas", "0")
    b.wait(f"Number(document.querySelector('canvas').dataset.to) >= {whole[1] - 1}")
    width, height = b.run("const c = document.querySelector('canvas'); return [c.clientWidth, c.clientHeight]")
    b.click_at("canvas", 140 - int(width / 2), 24 + 30 + 10 - int(height / 2))  # early in the compute lane of the first rank
    told = b.wait("!document.querySelector('.selected').classList.contains('quiet') && document.querySelector('.selected').textContent")
    check("rank 0, stage 0" in told and "stream compute" in told and ("waited" in told or "started when" in told), f"a click tells of an op: {told!r}")
    links = b.run("return [...document.querySelector('section#links .picture').shadowRoot.querySelectorAll('polyline')].map((l) => [...l.classList].find((c) => /^use-/.test(c)))")
    busy = max(g["max_utilisation"] for g in result["link_groups"])
    steps = [0.01, 0.05, 0.2, 0.5]
    check(len(links) > 50 and max(c for c in links[6:] if c) == f"use-{1 + sum(busy > s for s in steps)}", "the busiest link of the map has the colour of its use")
    verdict = b.run("return document.querySelector('.card[data-key=verdict] b').textContent")
    check(verdict == result["memory"]["verdict"] and verdict in r.tell("run", *JOB, "--tp", "2", "--pp", "2"), f"whether it fits is said as in the text: {verdict!r}")
    parts = b.run("const rects = [...document.querySelectorAll('section#breakdown svg.stacked rect')], whole = document.querySelector('section#breakdown').clientWidth; return [rects.reduce((sum, x) => sum + x.getBoundingClientRect().width, 0), whole]")
    check(abs(parts[0] - parts[1]) < 3, f"the bar of parts is as wide as the page: {parts}")
    box = b.run("const x = document.querySelector('section#links .picture'); return [x.scrollWidth, x.clientWidth]")
    check(box[0] <= box[1], f"the map of links is there to its edge: {box}")
    filled = b.run("""const t = await unpack('timeline'), of = (x) => x.length.reduce((sum, n, i) => sum + (n * x.share[i]) / 100, 0);
        return t.ranks.map((x) => (of(x.boxes) + of(x.strips)) / t.window)""")
    check(all(abs(x - 1) < 0.02 for x in filled), f"boxes are kernels: with the time that has none they are the step: {filled}")
    rows = int(b.run("return document.querySelector('canvas').dataset.rows"))
    b.click("button[title='a row for each stream']")
    b.wait(f"Number(document.querySelector('canvas').dataset.rows) > {rows}")
    b.type("input[aria-label='find ops by name']", "fc1")
    b.wait("[...document.querySelectorAll('.tools .quiet')].some((x) => /^[1-9][0-9]* ops$/.test(x.textContent))")
    b.run("const i = document.querySelector(\"input[aria-label='find ops by name']\"); i.value = 'p2p'; i.dispatchEvent(new Event('input'))")
    b.type("input[aria-label='find ops by name']", ENTER)
    told = b.wait("document.querySelector('.selected').textContent.includes('p2p') && document.querySelector('.selected').textContent")
    check("message to rank 8" in told or "message from rank 8" in told, f"an op that sends tells to whom: {told!r}")


def check_changes(r, name, result):
    """Ten changes drawn, two at once: what is shown of each is what its command gives."""
    b, rows = r.browser, [x for x in result["changes"] if not x["refused"]]
    check(b.run("return document.querySelectorAll('section#what-if tbody tr').length") == len(rows) > 10, f"{name}: each change that was simulated is a row")
    click = "const of = (x) => x.cells[0].textContent; [...document.querySelectorAll('section#what-if tbody tr')].find((x) => of(x) === arguments[0]).click()"
    cards = """return [...document.querySelectorAll('.variant')].map((v) => [v.dataset.change, (v.querySelector('.command') || {}).textContent,
        Object.fromEntries([...v.querySelectorAll('.card')].map((c) => [c.dataset.key, c.dataset.value])), v.querySelectorAll('svg rect').length])"""
    best = next(x["change"] for x in rows if x["fits"] and x["gain"] >= 5e-4)
    shown = b.run(cards)
    check([x[0] for x in shown] == ["", best], f"{name}: the job and the best that fits are shown at first: {shown}")
    check(all(float(shown[0][2][key]) == result["now"][key] for key in ("step_time_s", "exposed_s", "bubble_s", "needed_bytes")), f"{name}: the job's numbers are those of --json")
    b.run(click, best)
    drawn = random.Random(name).sample([x["change"] for x in rows], 10)
    for pair in zip(drawn[::2], drawn[1::2]):
        for change in pair:
            b.run(click, change)
        shown = b.run(cards)[1:]
        check([x[0] for x in shown] == list(pair), f"{name}: those that are chosen are shown: {shown}")
        for change, command, values, n_parts in shown:
            alone = json.loads(r.tell(*shlex.split(command)[1:], "--json"))
            parts = alone["breakdown_s"]
            exposed = sum(parts["exposed_" + axis] for axis in ("tp", "dp", "pp", "cp", "ep", "copy"))
            for key, value in (("step_time_s", alone["step_time_s"]), ("exposed_s", exposed), ("bubble_s", parts["bubble"]), ("needed_bytes", alone["memory"]["needed_bytes"]), ("tokens_per_s", alone["tokens_per_s"])):
                check(abs(float(values[key]) - value) <= 1e-9 * abs(value) + 1e-12, f"{name}: {command}: {key} is {value}, shown {values[key]}")
            check(n_parts > 0, f"{name}: {change} is drawn")
            b.run(click, change)
    b.run(click, drawn[0])
    b.run("document.querySelectorAll('section#what-if th button')[2].click()")
    check(b.run("return [...document.querySelectorAll('section#what-if tr.chosen')].map((x) => x.cells[0].textContent)") == [drawn[0]], f"{name}: what is chosen stays so when rows are sorted")


def check_what_if(r):
    check_changes(r, "run", r.open("run", *JOB, "--tp", "2", "--what-if")["what_if"])
    check_changes(r, "whatif", r.open("whatif", *JOB, "--tp", "2", "--pp", "2", "--top", "3"))


def check_faults(r):
    run = r.open("run", *JOB, "--tp", "2", "--faults", "each:link=0.1", "--ecmp-seeds", "3")
    b = r.browser
    check(b.run("return document.querySelectorAll('section#faults tbody tr').length") == len(run["faults"]["rows"]) > 0, "each fault is a row")
    check(b.run("return document.querySelectorAll('section#hashed-routing tbody tr').length") == 3, "each seed is a row")


def check_sweep(r):
    result = r.open("sweep", *JOB, "--top", "12")
    b = r.browser
    check(r.card("step_time_s") == result["best"][0]["step_time_s"], "the best step is that of --json")
    shown = b.run("return document.querySelectorAll('section#configurations tbody tr').length")
    check(shown == result["counts"]["simulated"], "all that was simulated is a row")
    check(b.run("return document.querySelectorAll('section#time-and-memory circle').length") == shown, "and a point")
    b.run("document.querySelectorAll('section#time-and-memory circle')[0].dispatchEvent(new PointerEvent('pointermove', { clientX: 9, clientY: 9 }))")
    check(b.run("return document.getElementById('tip').textContent").startswith("--gpus"), "a point tells its knobs")
    column = "[...document.querySelectorAll('section#configurations th')].findIndex((h) => h.textContent === 'step')"
    for _ in range(2):
        b.run(f"document.querySelectorAll('section#configurations th button')[{column}].click()")
    cells = b.run(f"const i = {column}; return [...document.querySelectorAll('section#configurations tbody tr')].map((t) => t.children[i].textContent)")
    seconds = [float(c.split()[0]) * {"s": 1, "ms": 1e-3}[c.split()[1]] for c in cells]
    check(seconds == sorted(seconds, reverse=True), "a second click sorts downwards")
    for i in (1, 2):
        b.click(f"section#configurations tbody tr:nth-child({i})")
    check(b.run("return document.querySelectorAll('section#configurations [aria-live] tbody tr').length") > 0, "two rows are compared")
    lines = b.run("return [...document.querySelectorAll('section#configurations [aria-live] .command div')].map((x) => x.textContent)")
    check(len(lines) == 3 and lines[2].startswith("lockstep compare"), "commands tell what each step is made of")
    steps = [float(json.loads(r.tell(*shlex.split(line.split(" > ")[0])[1:]))["step_time_s"]) for line in lines[:2]]
    check(all(abs(a / b - 1) < 1e-3 for a, b in zip(steps, seconds)), "and run as they stand: the two rows' steps")
    b.type("section#configurations input", "no such configuration")
    check(b.run("return document.querySelectorAll('section#configurations .scroll tbody')[0].children.length") == 0, "a filter hides rows")


def check_compare(r):
    names = ["<img src=x onerror=alert(1)>.json", "'b\"&.json"]
    for name, tp in zip(names, ["2", "4"]):
        with open(os.path.join(r.folder, name), "w", encoding="utf-8") as out:
            out.write(r.tell("run", *JOB, "--tp", tp, "--json"))
    r.open("compare", *names)
    check(r.browser.run("return document.querySelector('img') === null"), "a file's name is no markup")
    check(names[0] in r.browser.run("return document.getElementById('page').textContent"), "a file's name is text")


def check_hostile(r):
    """A machine, and a schedule's file, whose names are markup: text in a picture inside a page too."""
    name = "<script>alert(1)</script>]]>&'\\uffff"
    with open(os.path.join(r.folder, "machine.json"), "w", encoding="utf-8") as out:
        out.write(json.dumps({"schema": "lockstep.cluster/1", "extends": "dgx-h100", "name": json.loads(f'"{name}"'), "source": "made up"}))
    r.open("run", "--model", "llama3.1-8b:layers=2", "--cluster", "machine.json", "--gpus", "8", "--global-batch", "8")
    map_of_links = r.browser.run("return document.querySelector('section#links .picture').shadowRoot.querySelector('svg').textContent")
    check("<script>alert(1)</script>]]>&'" in map_of_links, "a machine's name is text in the map")
    check(r.browser.run("return document.querySelector('section#links .picture').shadowRoot.querySelector('script, parsererror') === null"), "and no markup")


def check_others(r):
    memory = r.open("memory", *JOB, "--tp", "2")
    check(r.card("needed_bytes") == max(x["needed_bytes"] for x in memory["ranks"]), "needed is that of --json")
    schedule = r.open("schedule", "--schedule", "zbv", "--pp", "4", "--micro-batches", "8")
    check(r.card("makespan") == schedule["makespan"], "makespan is that of --json")
    drawn = r.browser.run("return [...document.querySelector('section#schedule .picture').shadowRoot.querySelectorAll('rect:not(.ground):not(.idle)')].length")
    check(drawn == sum(len(o) for o in schedule["orders"]) + 3, "each action is a box, and each kind of work has one in the legend")
    sheet = r.open("schedule", "--schedule", "gpipe,zb-h1", "--pp", "4", "--micro-batches", "8")
    drawn = r.browser.run("return [...document.querySelector('section#on-one-scale .picture').shadowRoot.querySelectorAll('rect.forward')].length")
    check(drawn == 2 * 4 * 8 + 1 and len(sheet["rows"]) == 2, "the named schedules are drawn under each other")
    collective = r.open("collective", "--cluster", "dgx-h100", "--op", "all-reduce", "--gpus", "8,16")
    check(r.browser.run("return document.querySelectorAll('circle').length") == len(collective["rows"]), "each row is a point")
    rows = open(os.path.join(os.environ["LS_DATA_DIR"], "tests/accuracy/cases.csv"), encoding="utf-8").read().splitlines(True)
    name = "<script>alert(1)</script> ]]> & 'x'"
    few = [rows[0]] + [x.replace("Narayanan et al. 2021", name) for x in rows[1:] if x.startswith("sc21-t1-1")][:2]
    with open(os.path.join(r.folder, "few.csv"), "w", encoding="utf-8") as out:
        out.writelines(few)
    validate = r.open("validate", "few.csv")
    labels = r.browser.run("return [...document.querySelectorAll('circle')].map((c) => c.getAttribute('aria-label'))")
    check(len(labels) == len(validate["cases"]) == len(few) - 1, "each run is a point")
    check(all(c["source"].startswith(name) and any(c["source"] in x for x in labels) for c in validate["cases"]), "which tells its source, as text")
    train = r.open("train", *JOB, "--tp", "2", "--train-steps", "200000", "--checkpoint-every", "scan", "--spares", "any,0", "--seeds", "5")
    check(r.card("goodput") == train["goodput"]["mean"], "goodput reads back")
    check(r.browser.run("return document.querySelectorAll('section#intervals-and-spare-nodes svg polyline').length") == 2, "a curve for each reserve")
    spread = r.browser.run("return document.querySelectorAll('section#variation-of-steps svg polyline').length")
    check(spread == 3 and len(train["step_spread"]["scales"]) > 1, "steps that are shorter; the slowest and noise over scale")
    check(r.card("mean_s") == train["step_spread"]["mean_s"], "the mean step is that of --json")
    with open(os.path.join(r.folder, "jobs.json"), "w", encoding="utf-8") as out:
        job = '{ "name": "%s", "nodes": "%d", "options": { "model": "llama3.1-8b", "global_batch": 8 } }'
        out.write('{ "schema": "lockstep.jobs/1", "cluster": "dgx-h100", "jobs": [%s, %s] }' % (job % ("a", 0), job % ("<b>", 1)))
    share = r.open("share", "jobs.json", "--shift", "2")
    names = r.browser.run("return [...document.querySelectorAll('section#jobs tbody tr')].map((x) => x.cells[0].textContent)")
    check(names == [j["name"] for j in share["jobs"]] == ["a", "<b>"] and len(share["shifts"]) == 2, "share has a row for each job, its name as text")


def check_gallery(r):
    page = os.path.join(r.folder, "gallery.html")
    build = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/gallery/build")
    only = ["zero-bars", "primitives", "naive-pp"]
    command = [sys.executable, build, "--lockstep", r.lockstep, "-o", page]
    done = subprocess.run(command + [x for name in only for x in ("--only", name)], capture_output=True, text=True)
    check(done.returncode == 0, "the gallery is built: " + done.stderr)
    r.browser.open(page)
    r.browser.wait("document.readyState === 'complete'")
    check(not r.browser.complaints(), "gallery: the console is empty")
    heads = r.browser.run("return [...document.querySelectorAll('h3')].map((h) => h.id)")
    check(sorted(heads) == sorted(only), "each figure has a place to go to")
    widths = r.browser.run("return [...document.images].map((i) => i.naturalWidth)")
    check(len(widths) >= 8 and min(widths) > 100, "each picture is shown")
    verdicts = r.browser.run("return [...document.querySelectorAll('td.within, td.exact')].length")
    check(verdicts == done.stdout.count(" within\n") + done.stdout.count(" exact\n") + 2, "verdicts are those of the lines, and of two figures")


def in_browser(look):
    """Calls look(lockstep, folder, browser) with the program of the command line and an empty folder. The exit status; 77: no browser."""
    driver, chromium = shutil.which("chromedriver"), shutil.which("chromium")
    if not driver or not chromium:
        print("chromium and chromedriver (Debian: chromium-driver) are not here: pages are not looked at")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(driver, chromium, os.path.join(folder, "profile"))
        try:
            look(os.path.abspath(sys.argv[1]), folder, browser)
        finally:
            browser.close()
    return 1 if n_failed else 0


def pages_in(folder, write):
    """The folder of pages that the command line names; without one `folder`, in which write(folder) makes them."""
    if len(sys.argv) == 2:
        write(folder)
    return pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else folder).resolve()


def look(lockstep, folder, browser):
    reports = Reports(lockstep, folder, browser)
    for test in [check_run, check_what_if, check_faults, check_sweep, check_compare, check_others, check_gallery]:
        test(reports)


def main():
    return in_browser(look)


if __name__ == "__main__":
    sys.exit(main())
