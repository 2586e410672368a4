"""Pins the Python module: what it returns is what the program prints, byte for byte and by the same digest; what it refuses,
and in which words; lists, paths and numbers as options; Ctrl-C, progress and threads; the examples of the manual.
Usage: test_lockstep.py ROOT LOCKSTEP, with LOCKSTEP_LIBRARY and PYTHONPATH in the environment"""

import ast
import copy
import inspect
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings
from pathlib import Path

import lockstep
from lockstep import _binding

ROOT, PROGRAM = Path(sys.argv[1]).resolve(), os.path.realpath(sys.argv[2])
os.chdir(ROOT)  # the shipped data, beside the made-up machine
DATA = ROOT / "tests/golden/data"
os.environ["LS_DATA_DIR"] = str(DATA)
JOB = {"model": "tiny", "cluster": "pair", "gpus": 4, "tp": 2, "global_batch": 16}
SWEEP = {"model": "tiny", "cluster": "pair", "gpus": 4, "global_batch": 16, "threads": 1}


def printed(command, *arguments):
    return subprocess.run([PROGRAM, command, *arguments], check=True, capture_output=True, text=True).stdout


def flags(options):
    return [word for key, value in options.items() for word in ("--" + key.replace("_", "-"), str(value))]


class SameAsTheProgram(unittest.TestCase):
    def test_run(self):
        result = lockstep.run(**JOB)
        self.assertEqual(result.json(), printed("run", *flags(JOB), "--json"))
        self.assertEqual(result.text(), printed("run", *flags(JOB)))
        self.assertRegex(result.provenance.digest, "^[0-9a-f]{16}$")
        self.assertEqual(result.step_time_s, result.to_dict()["step_time_s"])
        self.assertEqual(result.breakdown_s.forward, result["breakdown_s"]["forward"])

    def test_sweep(self):
        result = lockstep.sweep(**SWEEP, micro_batch=[1, 2], tp=(1, 2), recompute="none")
        given = flags({**SWEEP, "micro_batch": "1,2", "tp": "1,2", "recompute": "none"})
        self.assertEqual(result.json(), printed("sweep", *given, "--json"))
        self.assertEqual(result.csv(), printed("sweep", *given, "--csv"))
        best = result.to_dict()["best"]
        self.assertEqual(len(result), len(best))
        self.assertEqual([row["step_time_s"] for row in result], [b["step_time_s"] for b in best])
        self.assertEqual((result[0].tp, result[-1].tp), (best[0]["config"]["tp"], best[-1]["config"]["tp"]))
        self.assertEqual(result.counts.enumerated, result["counts"]["enumerated"])

    def test_a_row_of_a_sweep_again(self):
        """All that makes the row, also what is no axis: model, cluster and knobs that have no column."""
        for options in (SWEEP, {**SWEEP, "cluster": {"extends": "pair"}, "nodes": 2, "strategy": {"bucket_params": 1000000}}):
            rows = lockstep.sweep(**options, top=6)
            self.assertGreater(len(rows), 3)
            for i, row in enumerate(rows):
                again = lockstep.run(**rows.job(i))
                self.assertEqual((again.step_time_s, again.tokens_per_s), (row.step_time_s, row.tokens_per_s), rows.job(i))

    def test_schedule(self):
        result = lockstep.schedule(schedule="1f1b", pp=4, micro_batches=8)
        self.assertEqual(result.json(), printed("schedule", "--schedule", "1f1b", "--pp", "4", "--micro-batches", "8", "--json"))
        self.assertEqual(len(result.peak_activations), 4)

    def test_collective(self):
        result = lockstep.collective(cluster="pair", op="all-reduce", gpus=4, max="1MiB")
        self.assertEqual(result.json(), printed("collective", "--cluster", "pair", "--op", "all-reduce", "--gpus", "4", "--max", "1MiB", "--json"))
        self.assertEqual(result.rows[0].n_ranks, 4)

    def test_every_command_has_a_function(self):
        listed = re.findall(r"^  ([a-z]+) ", printed("--help").split("\n\n")[2], re.M)
        self.assertGreater(len(listed), 15)
        for command in listed:
            name = command + "_" * (command == "import")
            signature = inspect.signature(getattr(lockstep, name))
            self.assertIn("progress", signature.parameters)
            self.assertTrue(getattr(lockstep, name).__doc__)

    def test_timeline(self):
        columns = lockstep.run(**JOB).timeline()
        with tempfile.TemporaryDirectory() as folder:
            printed("run", *flags(JOB), "--csv", f"{folder}/spans.csv")
            lines = Path(folder, "spans.csv").read_text().splitlines()
        self.assertEqual(list(columns), lines[0].split(","))
        self.assertEqual({len(column) for column in columns.values()}, {len(lines) - 1})
        self.assertTrue(all(isinstance(t, int) for t in columns["start_ps"]))
        with self.assertRaises(lockstep.LockstepError):
            lockstep.schedule(schedule="1f1b", pp=2, micro_batches=2).timeline()

    def test_page(self):
        result = lockstep.run(**JOB)
        with tempfile.TemporaryDirectory() as folder:
            printed("run", *flags(JOB), "--report", f"{folder}/page.html")
            self.assertEqual(result.page(), Path(folder, "page.html").read_text())
        self.assertIn("<iframe", result._repr_html_())
        self.assertIn("<pre>", lockstep.schema("jitter")._repr_html_())


# What the help shows for a value, and two spellings of one value. Numbers that are no counts have other words: W, P, X, USD.
SAME_VALUES = {
    "N": ("1k", "1024"), "N,..": ("1k", "1024"), "N|any,..": ("1k", "1024"), "M": ("1k", "1024"), "V": ("1k", "1024"), "K": ("1k", "1024"),
    "N[@G]": ("3@1k", "3@1024"), "M,N,K": ("1k,1k,1k", "1024,1024,1024"), "ROWS,COLUMNS": ("1k,1k", "1024,1024"),
    "B,S,H,KV,D": ("2,1k,8,8,128", "2,1024,8,8,128"), "START:INCREMENT:N": ("1k:1k:4096", "1024:1024:4096"),
    "SIZE": ("1M", "1MiB"), "SIZE|PERCENT": ("1M", "1MiB"), "RATE": ("100Gbps", "12.5GB/s")}
REALS = {("kernel", "min_flops"), ("train", "days")}
# Commands with options that are quantities, each with what it needs to come to look at them.
ASKED = {
    "run": JOB, "memory": JOB, "place": JOB, "whatif": JOB, "train": {**JOB, "tokens": "1M", "reliability": "lab"},
    "sweep": {**JOB, "tp": 1, "pp": 1, "micro_batch": 1, "recompute": "none", "zero": 0, "schedule": "1f1b"},
    "collective": {"cluster": "pair", "op": "all-reduce", "gpus": 2, "max": "1MiB"}, "topology": {"cluster": "pair"},
    "kernel": {"gpu": "flat", "op": "norm", "shape": "8,8"}, "schedule": {"schedule": "1f1b", "pp": 4, "micro_batches": 8},
    "validate": {"cases": DATA / "cases.csv"}, "calibrate": {"template": "runs"}, "share": {"file": "none.json"},
    "capture": {"command": ["./none-of-that-name"], "memory": True}}


class Quantities(unittest.TestCase):
    """8k, 1M and 100Gbps are understood by every option that is a quantity: by the library's own list of options."""

    @staticmethod
    def said(command, name, values):
        asked = {key: value for key, value in ASKED[command].items() if command != "kernel" or name not in ("gemm", "attention") or key == "gpu"}
        try:
            text = getattr(lockstep, command)(**{**asked, name: values[0]}).json()
        except lockstep.LockstepError as error:
            text = str(error)
        for value in sorted({"1k", "1024", *values}, key=len, reverse=True):
            text = text.replace(value, "VALUE")
        return text

    def test_every_option(self):
        n, met = 0, set()
        for command, table in _binding.the_library().commands.items():
            for name, option in table.options.items():
                argument = (option.argument or b"").decode()
                if argument not in SAME_VALUES or (command, name) in REALS or (option.topic and command != "run"):
                    continue
                with self.subTest(f"lockstep {command} --{name}"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    self.assertIn(command, ASKED)
                    pair = SAME_VALUES[argument]
                    self.assertEqual(self.said(command, name, pair), self.said(command, name, pair[::-1]))
                n, met = n + 1, met | {argument}
        self.assertEqual(met, set(SAME_VALUES))
        self.assertGreater(n, 60)

    def test_within_a_text(self):
        for name, short, plain in (("lengths", "lognormal:1k:1:4k", "lognormal:1024:1:4096"), ("lengths", "fixed:1k", "fixed:1024"),
                                   ("cluster", "pair:node.pcie.link.bandwidth=100Gbps", "pair:node.pcie.link.bandwidth=12.5GB/s"),
                                   ("model", "tiny:seq=1k", "tiny:seq=1024")):
            with self.subTest(short):
                self.assertEqual(self.said("run", name, (short, plain)), self.said("run", name, (plain, short)))


class Scalar:
    """As numpy, pandas and torch have numbers and columns."""

    def __init__(self, value):
        self.value = value

    def tolist(self):
        return self.value


class Dicts(unittest.TestCase):
    """The JSON of a file in its place."""

    def file(self, name):
        return json.loads((DATA / name).read_text())

    def test_same_as_the_file(self):
        tiny, pair = self.file("models/tiny.json"), self.file("topologies/pair.json")
        with tempfile.TemporaryDirectory() as folder:
            before, tempfile.tempdir = tempfile.tempdir, folder
            try:
                given = lockstep.run(**{**JOB, "model": tiny, "cluster": pair})
                again = lockstep.compare(given, given.to_dict(), lockstep.run(**JOB))
                self.assertEqual(os.listdir(folder), [])
            finally:
                tempfile.tempdir = before
        whole, named = given.to_dict(), lockstep.run(**JOB).to_dict()
        left_open = [row["key"] for row in whole["assumptions"] if "." in row["key"]]
        self.assertIn("fabric.routing", left_open)  # what a cluster of one's own leaves open
        left_open.append("model")  # and what a model of one's own does
        whole["assumptions"] = [row for row in whole["assumptions"] if row["key"] not in left_open]
        self.assertEqual(whole, named)
        self.assertNotIn("/", again.text().splitlines()[0])

    def test_what_it_may_leave_out(self):
        changed = lockstep.run(**{**JOB, "model": {"extends": "tiny", "layers": Scalar(8)},
                                  "cluster": {"extends": "pair", "x-note": Path("p")}})
        self.assertEqual(changed.step_time_s, lockstep.run(**{**JOB, "model": "tiny:layers=8"}).step_time_s)
        self.assertEqual((changed.provenance.model.name, changed.provenance.model.source), ("model", "given"))
        self.assertEqual(lockstep.run(**JOB, strategy={"pp": 2}).step_time_s, lockstep.run(**JOB, pp=2).step_time_s)

    def test_other_commands(self):
        both = {"model": {"extends": "tiny"}, "cluster": {"extends": "pair"}}
        for command in ("sweep", "memory", "place", "whatif"):
            with self.subTest(command):
                named = {**(SWEEP if command == "sweep" else JOB)}
                given = getattr(lockstep, command)(**{**named, **both}).to_dict()
                expected = getattr(lockstep, command)(**named).to_dict()
                self.assertEqual([v for v in given.values() if isinstance(v, (int, float, bool))],
                                 [v for v in expected.values() if isinstance(v, (int, float, bool))])
        self.assertIn("ok", lockstep.check({"schema": "lockstep.model/1", "extends": "tiny"}).text())
        rows = lockstep.sweep(**SWEEP, ranges={"tp": [1]}, pp=1, micro_batch=1, recompute="none").rows()
        self.assertEqual({row.tp for row in rows}, {1})

    def test_diagnostics_name_the_argument(self):
        for options, expected in (
                ({"model": {"extends": "tiny", "layrs": 3}}, ("input", "model", 3, 2, "/layrs: unknown key; did you mean \"layers\"?")),
                ({"cluster": {"nodes": 1}}, ("input", "cluster", 1, 1, "/: missing key \"gpu\"")),
                ({"strategy": {"tp": 0}}, ("input", "strategy", 2, 8, "/tp: expected a whole number")),
                ({"placement": {"ranks": []}}, ("usage", "placement", 2, 11, "/ranks: expected 1 to")),
                ({"model": {"extends": "tiny", "layers": float("nan")}}, ("input", "model", 3, 12, "unexpected 'N'")),
                ({"model": {"schema": "lockstep.gpu/1"}}, ("input", "model", 2, 12, "/schema: expected"))):
            with self.subTest(str(options)), self.assertRaises(lockstep.LockstepError) as caught:
                lockstep.run(**{**JOB, **options})
            first = caught.exception.diagnostics[0]
            self.assertEqual((caught.exception.code, first.path, first.line, first.column), expected[:4])
            self.assertTrue(first.text.startswith(expected[4]), first.text)
        with self.assertRaises(lockstep.LockstepError) as caught:
            lockstep.check({"extends": "tiny"})
        self.assertIn('missing key "schema"', caught.exception.message)

    def test_what_is_no_json(self):
        for options, said in (({"model": {"layers": object()}}, "model: expected what JSON has"), ({"gpus": {"a": 1}}, "gpus: expected a text"),
                              ({"model": [{}, {}]}, "model: expected a text")):
            with self.subTest(said), self.assertRaisesRegex(TypeError, said):
                lockstep.run(**{**JOB, **options})


class Values(unittest.TestCase):
    def test_numbers_of_other_packages(self):
        same = lockstep.run(**JOB, sp=False).json()
        self.assertEqual(lockstep.run(**{**JOB, "tp": Scalar(2), "gpus": Scalar(4.0)}, sp=Scalar(False)).json(), same)
        rows = lockstep.sweep(**SWEEP, micro_batch=Scalar([1, 2]), tp=range(1, 3), recompute="none").json()
        self.assertEqual(rows, lockstep.sweep(**SWEEP, micro_batch="1,2", tp=[1, 2], recompute="none").json())

    def test_values(self):
        same = lockstep.run(**JOB, sp=False).json()
        self.assertEqual(lockstep.run(**{**JOB, "tp": 2.0, "gpus": "4"}, pp=None, sp=False).json(), same)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "job.json")
            path.write_text(same)
            ours = lockstep.run(**JOB)
            self.assertEqual(lockstep.compare(path, ours).to_dict()["options"], lockstep.compare(file=[path, path]).options)
        self.assertIn("tiny", repr(lockstep.run(**{**JOB, "model": DATA / "models/tiny.json"})))

    def test_repeated_option(self):
        with tempfile.TemporaryDirectory() as folder:
            pictures = [Path(folder, name) for name in ("a.svg", "b.svg")]
            lockstep.run(**JOB, timeline=pictures)
            self.assertTrue(all(picture.exists() for picture in pictures))

    def test_wrong_values(self):
        for value in ({}, {1}, b"2", "2\0", object()):
            with self.assertRaisesRegex(TypeError, "tp: expected"):
                lockstep.run(**{**JOB, "tp": value})


    def test_lists_of_all_kinds(self):
        same = lockstep.sweep(**SWEEP, tp=[1, 2], micro_batch=1, recompute="none").json()
        for values in (iter([1, 2]), (n for n in (1, 2)), {1: 0, 2: 0}.keys(), range(1, 3)):
            self.assertEqual(lockstep.sweep(**SWEEP, tp=values, micro_batch=1, recompute="none").json(), same)
        with self.assertRaisesRegex(TypeError, "tp: expected at least one value"):
            lockstep.sweep(**SWEEP, tp=[])

    def test_a_result_does_not_travel(self):
        result = lockstep.run(**JOB)
        self.assertIs(copy.deepcopy(result), copy.copy(result))
        with self.assertRaisesRegex(TypeError, "result.to_dict"):
            pickle.dumps(result)
        self.assertEqual(pickle.loads(pickle.dumps(result.memory)), result.memory)


class Errors(unittest.TestCase):
    def test_codes_are_those_of_the_header(self):
        header = (ROOT / "src/include/lockstep/error.h").read_text()
        names = [name.lower().replace("_", "-") for name in re.findall(r"^  LS_ERROR_(\w+),", header, re.M)]
        self.assertEqual(names, list(_binding.CODES))

    def test_unknown_option(self):
        with self.assertRaisesRegex(TypeError, r"run\(\) has no option 'modle'; did you mean model\?"):
            lockstep.run(modle="tiny")
        with self.assertRaisesRegex(TypeError, "did you mean cluster"):
            lockstep.collective(clutser="pair")
        with self.assertRaisesRegex(TypeError, "takes no argument"):
            lockstep.run("tiny")
        with self.assertRaisesRegex(AttributeError, "no command 'rum'; did you mean run"):
            lockstep.rum
        with self.assertRaisesRegex(TypeError, r"'micro_batch_size'; did you mean micro_batch\?"):
            lockstep.run(micro_batch_size=1)
        result = lockstep.run(**JOB)
        with self.assertRaisesRegex(AttributeError, "no 'step_tim_s'; did you mean step_time_s"):
            result.step_tim_s
        with self.assertRaisesRegex(AttributeError, "no 'pek_bytes' here; did you mean peak_bytes"):
            result.memory.pek_bytes

    def test_conflict(self):
        with self.assertRaises(lockstep.LockstepError) as caught:
            lockstep.run(**{**JOB, "tp": 3})
        self.assertEqual((caught.exception.code, caught.exception.exit_code), ("conflict", 4))
        self.assertIn("/gpus: expected a multiple", caught.exception.diagnostics[0].text)

    def test_place_in_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "bad.json")
            path.write_text('{"schema": "lockstep.model/1", "name": 3}\n')
            with self.assertRaises(lockstep.LockstepError) as caught:
                lockstep.run(**{**JOB, "model": path})
        first = caught.exception.diagnostics[0]
        self.assertEqual((caught.exception.code, first.path, first.line, first.column), ("input", str(path), 1, 40))

    def test_result_of_what_failed(self):
        with self.assertRaises(lockstep.LockstepError) as caught:
            lockstep.run(model="llama3.1-405b", cluster="dgx-h100", gpus=8, require_fit=True)
        self.assertEqual(caught.exception.code, "no-fit")
        self.assertGreater(caught.exception.result.step_time_s, 0)

    def test_warning(self):
        with self.assertWarns(lockstep.LockstepWarning) as caught:
            result = lockstep.run(model="llama3.1-405b", cluster="dgx-h100", gpus=8)
        self.assertEqual(caught.filename, __file__)
        self.assertIn("warning: ", repr(result))

    def test_no_library(self):
        said = subprocess.run([sys.executable, "-c", "import lockstep; lockstep.run"], capture_output=True, text=True,
                              env={**os.environ, "LOCKSTEP_LIBRARY": "/nowhere.so"})
        self.assertIn("ImportError: cannot load", said.stderr)
        self.assertIn("LOCKSTEP_LIBRARY=FILE", said.stderr)


class Meanwhile(unittest.TestCase):
    def test_progress(self):
        told = []
        lockstep.sweep(**SWEEP, progress=lambda done, to_do: told.append((done, to_do)))
        self.assertEqual([done for done, _ in told], sorted(done for done, _ in told))
        self.assertGreater(len(told), 1)

    def test_error_in_progress(self):
        with self.assertRaises(ZeroDivisionError):
            lockstep.sweep(**SWEEP, progress=lambda done, to_do: 1 / 0)

    def test_interrupt(self):
        told = []

        def interrupt_once(done, to_do):
            if not told:
                told.append(done)
                os.kill(os.getpid(), signal.SIGINT)

        with self.assertRaises(KeyboardInterrupt) as caught:
            lockstep.sweep(**SWEEP, prune="off", progress=interrupt_once)
        self.assertGreater(caught.exception.result.counts.enumerated, 0)

    def test_threads(self):
        jobs = [{**JOB, "micro_batch": size} for size in (1, 2, 4, 8)]
        alone = [lockstep.run(**job).json() for job in jobs]
        together = [None] * 4

        def run(i):
            together[i] = [lockstep.run(**jobs[i]).json() for _ in range(5)]

        threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(together, [[json] * 5 for json in alone])

    def test_a_forked_child(self):
        """No thread of a sweep is left that a child would wait for: of one as long as its parent's."""
        sweep = {**SWEEP, "threads": 2, "prune": "off"}
        json_here = lockstep.sweep(**sweep).json()
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            os._exit(0 if lockstep.sweep(**sweep).json() == json_here else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_the_lock_is_free_meanwhile(self):
        """Python counts on while the library works."""
        is_done, n = threading.Event(), 0

        def run():
            lockstep.sweep(**SWEEP, prune="off")
            is_done.set()

        thread = threading.Thread(target=run)
        thread.start()
        while not is_done.wait(0.001):
            n += 1
        thread.join()
        self.assertGreater(n, 5)


class Capture(unittest.TestCase):
    def test_as_a_module(self):
        fake = ROOT / "tests/capture/fake"
        env = {**os.environ, "LS_DATA_DIR": str(ROOT), "PYTHONPATH": str(ROOT / "tools/python")}
        asked = [sys.executable, "-m", "lockstep.capture", "--memory", "--json", "--", sys.executable, fake / "train.py"]
        done = subprocess.run(asked, env=env, capture_output=True, text=True)
        if "built with -Dcapture=disabled" in done.stderr:
            self.skipTest("there are no stand-ins")
        self.assertTrue(json.loads(done.stdout)["fits"], done.stderr)


class Stub(unittest.TestCase):
    def test_stub(self):
        path = ROOT / "tools/python/lockstep/__init__.pyi"
        made = subprocess.run([sys.executable, ROOT / "tools/python/make_stub"], check=True, capture_output=True, text=True).stdout
        if os.environ.get("LS_UPDATE_GOLDEN") == "1":
            path.write_text(made)
        ast.parse(made)
        self.assertEqual(path.read_text(), made, "LS_UPDATE_GOLDEN=1 writes it")
        for name in dir(lockstep):
            self.assertRegex(made, rf"(?m)^(class|def) {name}\b|^{name}: ", name)
        for name in (n for n in dir(lockstep.Result) if not n.startswith("_")):
            self.assertIn(f"    def {name}(", made)


class Notebook(unittest.TestCase):
    """tools/python/example.ipynb runs from top to bottom: in a kernel of Jupyter where Python has one, and as a script."""

    PATH = ROOT / "tools/python/example.ipynb"
    ENV = {**os.environ, "LS_DATA_DIR": str(ROOT)}

    def test_as_a_script(self):
        cells = [c for c in json.loads(self.PATH.read_text())["cells"] if c["cell_type"] == "code"]
        self.assertTrue(all(cell["outputs"] == [] for cell in cells))
        script = "import ast\nnames = {}\ndef run(text):\n    tree = ast.parse(text)\n    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None\n" \
            "    exec(compile(tree, 'cell', 'exec'), names)\n    if last:\n        value = eval(compile(ast.Expression(last.value), 'cell', 'eval'), names)\n" \
            "        print(value._repr_html_() if hasattr(value, '_repr_html_') else repr(value))\n"
        script += "".join(f"run({''.join(cell['source'])!r})\n" for cell in cells)
        said = subprocess.run([sys.executable, "-c", script], env=self.ENV, check=True, capture_output=True, text=True).stdout
        for expected in ("MFU", "<iframe", "'forward'", "'megatron'", "conflict /gpus: expected a multiple"):
            self.assertIn(expected, said)

    def test_in_a_kernel(self):
        script = "import nbclient, nbformat, ipykernel, sys\nnb = nbformat.read(sys.argv[1], 4)\nnbformat.validate(nb)\n" \
            "nbclient.NotebookClient(nb, timeout=120).execute()\n" \
            "print([list(o.get('data', {})) for c in nb.cells if c.cell_type == 'code' for o in c.outputs])"
        for python in (sys.executable, "/usr/bin/python3"):
            try:
                subprocess.run([python, "-c", "import nbclient, ipykernel"], check=True, capture_output=True)
            except (OSError, subprocess.CalledProcessError):
                continue
            said = subprocess.run([python, "-c", script, self.PATH], env=self.ENV, capture_output=True, text=True)
            self.assertEqual(said.returncode, 0, said.stderr)
            self.assertGreater(said.stdout.count("text/html"), 0)
            return
        self.skipTest("no kernel of Jupyter (Debian: python3-nbclient, python3-ipykernel)")


class Manual(unittest.TestCase):
    def test_examples(self):
        path = ROOT / "src/manual/recipes/python.md"
        page, block = path.read_text(), re.compile(r"```python\n(.*?)```\n(?:\n```\n(.*?)```\n)?", re.S)
        blocks = block.findall(page)
        self.assertGreater(len(blocks), 3)
        together = "\nprint('----')\n".join(code for code, _ in blocks)
        out = subprocess.run([sys.executable, "-c", together], env={**os.environ, "LS_DATA_DIR": str(ROOT)}, check=True,
                             capture_output=True, text=True).stdout
        made = out.split("----\n")
        if os.environ.get("LS_UPDATE_GOLDEN") == "1":
            left = iter(made)
            shown = lambda code, text: f"```python\n{code}```\n" + (f"\n```\n{text}```\n" if text else "")
            path.write_text(block.sub(lambda m: shown(m[1], next(left)), page))
            return
        self.assertEqual(made, [expected for _, expected in blocks], "LS_UPDATE_GOLDEN=1 writes them")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
