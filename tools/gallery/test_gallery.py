#!/usr/bin/env python3
"""The builder of the gallery: a number outside its tolerance fails, a miss says its cause, no description does more
than it may, the page shows what files say as text, and documents show commands that the builder takes.
Usage: test_gallery.py; its lockstep is made up."""

import importlib.machinery
import importlib.util
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import boxes  # noqa: E402
import theme  # noqa: E402
import write_traces  # noqa: E402
from figures import Evaluator, Wrong, read_sets  # noqa: E402

# Answers any command with its options, as numbers where they are: "--n 4" is {"n": 4}.
MADE_UP = """#!/usr/bin/env python3
import json, sys
words = sys.argv[2:]
if "--bad" in words: sys.exit("error: bad")
print(json.dumps({k[2:]: json.loads(v) for k, v in zip(words, words[1:]) if k[:2] == "--" and v[:1] not in "-"}))
"""

# What the gallery must have: the figures and tables of the lecture notes.
ROWS = """node torus a2a-256 primitives ar-rs-ag ring-rounds ar-algorithms ps-central ddp-memory ddp-flow zero-bars zero-cost zero-flow
fsdp-streams dp-batch naive-pp resnet gpipe 1f1b dapple interleaved zb-h1 zb-h2 dualpipe pipedream pp-batch tp-cliff act-formulas
act-models memory-step sp-flow cp-flow ep-flow recompute-batch ckpt-k keep-nothing offload strategy-table b-over-n sc21-table1
ptdp-zero3 tp-pp-162b mb-91b llama3-mfu dsv3 failures nesting 3d"""
# Which picture is made by which figure.
PAGE = HERE.parent.parent / "src/manual/recipes/lecture-notes.md"


def figure(**keys):
    return {"id": "f", "title": "T", "shows": "S", "source": "Someone 2024", "runs": {"r": "lockstep run --n {n} --json"}, **keys}


def series(**keys):
    return {"what": "w", "ours": "r.n", "source": "10", "kind": "published", "tolerance": 5, **keys}


class Expressions(unittest.TestCase):
    def value(self, text, **variables):
        return Evaluator(variables, ["r"], lambda name, chosen: {"rows": [{"n": 1, "x": 7}, {"n": 2, "x": chosen}]}).value(text)

    def test_an_element_is_selected_by_its_values(self):
        self.assertEqual(self.value("r.rows(n=1).x + r.rows[0][\"n\"]"), 8)

    def test_no_element_or_two_is_an_error(self):
        for text in ("r.rows(n=3).x", "r.rows().x"):
            self.assertRaises(Wrong, self.value, text)

    def test_a_run_is_called_with_other_variables(self):
        self.assertEqual(self.value("r(p=2).rows[1].x", p=1, q=5), {"p": 2, "q": 5})

    def test_nothing_else_is_evaluated(self):
        for text in ("__import__('os')", "open('/')", "(lambda: 1)()", "[x for x in (1,)]", "unknown", "r.rows.append(1)", "1 +"):
            self.assertRaises(Wrong, self.value, text)


class Builder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        (self.path / "lockstep").write_text(MADE_UP)
        (self.path / "lockstep").chmod(0o755)

    def build(self, *figures, options=()):
        (self.path / "set.json").write_text(json.dumps({"set": "Set", "figures": figures}))
        page = self.path / "page.html"
        command = [HERE / "build", "--lockstep", self.path / "lockstep", "--figures", self.path / "set.json", "-o", page, *options]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.path)
        return done, page.read_text() if page.exists() else ""

    def verdict(self, n, **keys):
        done, _ = self.build(figure(cases={"n": [n]}, series=[series(**keys)]))
        return done.returncode, done.stdout.splitlines()[0].split()[-1]

    def test_a_number_is_exact_or_within_its_tolerance(self):
        self.assertEqual(self.verdict(10), (0, "exact"))
        self.assertEqual(self.verdict(10.4), (0, "within"))
        self.assertEqual(self.verdict(9.6), (0, "within"))

    def test_a_number_outside_fails(self):
        self.assertEqual(self.verdict(10.6), (1, "FAILS"))
        self.assertEqual(self.verdict(9.4), (1, "FAILS"))

    def test_points_are_differences(self):
        self.assertEqual(self.verdict(10.4, tolerance=5)[1], "within")
        done, _ = self.build(figure(cases={"n": [10.6]}, series=[{k: v for k, v in series(points=1, unit="%").items() if k != "tolerance"}]))
        self.assertIn("+0.6 points  within", done.stdout)

    def test_a_known_miss_passes_up_to_its_limit_and_says_why(self):
        miss = {"at_most": 20, "cause": "the <cause>"}
        done, page = self.build(figure(cases={"n": [11]}, series=[series(miss=miss)]))
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stdout.splitlines()[0].endswith("misses"))
        self.assertIn("the &lt;cause&gt;", page)
        self.assertEqual(self.verdict(13, miss=miss), (1, "FAILS"))

    def test_a_claim_that_does_not_hold_fails(self):
        claims = [{"claim": "grows", "holds": "r(n=2).n > r(n=1).n"}]
        self.assertEqual(self.build(figure(claims=claims))[0].returncode, 0)
        claims[0]["holds"] = "r(n=1).n > r(n=2).n"
        self.assertEqual(self.build(figure(claims=claims))[0].returncode, 1)

    def test_a_command_that_fails_is_said(self):
        done, _ = self.build(figure(runs={"r": "lockstep run --bad --json"}, series=[series()]))
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: bad", done.stderr)

    def test_only_lockstep_is_run(self):
        done, _ = self.build(figure(runs={"r": "touch {n}"}, cases={"n": [1]}, series=[series()]))
        self.assertIn("not a command of lockstep", done.stderr)

    def test_wrong_descriptions_are_refused(self):
        for wrong in (figure(titel="T"), figure(source=""), figure(series=[series(kind="felt")]), figure(series=[series(miss={"at_most": 5})]),
                      figure(series=[{"what": "w", "ours": "r.n", "source": "10", "kind": "formula"}])):
            done, page = self.build(wrong)
            self.assertEqual((done.returncode, page), (1, ""), wrong)
        self.assertIn("twice", self.build(figure(), figure())[0].stderr)

    def test_what_is_missing_is_listed(self):
        done, page = self.build(figure(runs={}, missing="not yet"))
        self.assertEqual(done.returncode, 0)
        self.assertIn("not simulated: not yet", done.stdout)
        self.assertIn("Not simulated: not yet", page)

    def test_the_page_shows_text_as_text(self):
        hostile = "<script>alert(1)</script>"
        _, page = self.build(figure(title=hostile, shows=hostile, note=hostile, cases={"n": [10]}, series=[series(what=hostile)]))
        self.assertNotIn("<script", page)
        self.assertNotIn("http:", page.replace("http://www.w3.org", ""))

    def test_cheap_and_only_choose(self):
        dear = figure(id="dear", cheap=False, cases={"n": [10]}, series=[series()])
        cheap = figure(id="cheap", cases={"n": [10]}, series=[series()])
        self.assertNotIn("dear", self.build(dear, cheap, options=["--cheap"])[0].stdout)
        self.assertNotIn("cheap", self.build(dear, cheap, options=["--only", "dear"])[0].stdout)
        self.assertIn("no figure nothing", self.build(dear, cheap, options=["--only", "nothing"])[0].stderr)


class Drawings(unittest.TestCase):
    # A reduce-scatter of two ranks as `collective --messages` tells it.
    SCATTER = {"rows": [{"n_ranks": 2}], "n_blocks": 2, "n_rounds": 1, "held": [
        {"after_rounds": 0, "place": "0", "blocks": "0 0"}, {"after_rounds": 0, "place": "1", "blocks": "1 1"},
        {"after_rounds": 1, "place": "0", "blocks": "0+1 0"}, {"after_rounds": 1, "place": "1", "blocks": "1 0+1"}]}
    PLACED = """text before
  rank  node   gpu   nic    pp    dp    cp    tp  prev  next
     0     0     0     0     0     0     0     0     -     2
     1     0     1     1     0     0     0     1     -     3
     2     1     0     0     1     0     0     0     0     -
     3     1     1     1     1     0     0     1     1     -

text after 9 9"""

    def words(self, svg):
        return re.findall(r"<text[^>]*>([^<]*)</text>", svg)

    def test_owners_are_those_who_alone_hold_a_sum(self):
        self.assertEqual(boxes.owners(self.SCATTER), [0, 1])
        everywhere = {**self.SCATTER, "held": [{**h, "blocks": "0+1 0+1"} for h in self.SCATTER["held"]]}
        self.assertEqual(boxes.owners(everywhere), [None, None])

    def test_a_flow_shows_sums_at_their_owners_alone(self):
        column = {"name": "c", "after": "end", "letter": "G"}
        for keep, sums in (("own", ["ΣG0", "ΣG1"]), ("all", ["ΣG0", "G1", "G0", "ΣG1"])):
            words = self.words(boxes.draw_flow("T", "", [({**column, "keep": keep}, self.SCATTER)], [0, 1]))
            self.assertEqual([w for w in words if w[-2:] in ("G0", "G1")], sums)

    def test_what_is_reduced_already_is_at_its_owner(self):
        column = {"name": "c", "after": "start", "letter": "G", "reduced_from": 1}
        words = self.words(boxes.draw_flow("T", "", [(column, self.SCATTER)], [0, 1]))
        self.assertEqual([w for w in words if w[-2:] in ("G0", "G1")], ["G0", "G0", "ΣG1"])

    def test_a_placement_is_read_and_each_rank_drawn_once(self):
        rows = boxes.read_placement(self.PLACED)
        self.assertEqual([(r["rank"], r["node"], r["pp"], r["tp"], r["next"]) for r in rows], [(0, 0, 0, 0, 2), (1, 0, 0, 1, 3), (2, 1, 1, 0, None), (3, 1, 1, 1, None)])
        words = self.words(boxes.draw_blocks("T", "", self.PLACED))
        self.assertEqual([w for w in words if w.isdigit()], ["0", "1", "2", "3"])
        self.assertEqual([w for w in words if w.startswith(("node", "stage"))], ["stage 0", "stage 1", "node 0", "node 1"])

    @unittest.skipUnless(theme.has_gnuplot(), "no gnuplot")
    def test_bars_have_their_numbers_the_source_s_and_a_limit(self):
        svg = theme.draw_bars("T", "N", [("a", [2, 3], 5.5), ("b", [1, 0], None)], [("x", "parameters"), ("y", "gradients")], "source", {"ylabel": "GB", "limit": {"at": 4, "name": "4 GB"}})
        words = re.sub(r"<[^>]*>", "", svg).split()
        for word in ("5", "(5.5)", "1", "x", "y", "source", "GB", "4"):
            self.assertIn(word, words)
        self.assertEqual(theme.place_inside("10", 0, 20, 10, None), 10)
        self.assertLess(theme.place_inside("10", 0, 20, 10, 10), 10)
        self.assertIsNone(theme.place_inside("10", 0, 1, 10, None))

    @unittest.skipUnless(theme.has_gnuplot(), "no gnuplot")
    def test_curves_have_their_numbers_marks_and_the_colours_of_the_palette(self):
        svg = theme.draw_curves("T", "N", [theme.Curve("c", [(8, 2.5, None), (16, 7.5, 7)])], {"ylabel": "y", "xlabel": "x", "log": "x", "marks": [[8, "node: 8 GPUs"]]})
        words = re.sub(r"<[^>]*>", "\n", svg)
        for word in ("2.5", "7.5", "node: 8 GPUs", "c: simulated", "c: source"):
            self.assertIn(word, words)
        self.assertIn("var(--series-0)", svg)
        self.assertIn(theme.PALETTE["series-0"][1], svg.split("prefers-color-scheme:dark")[1])
        self.assertNotRegex(svg, r"#332288\"")

    def test_the_theme_is_the_house_s(self):
        plot = (theme.ROOT / "src/show/plot/plot_collective.c").read_text()
        for name in ("ONLY_WIDTH", "ONLY_HEIGHT", "TOP", "LEFT", "BOTTOM", "KEY_WIDTH"):
            self.assertEqual(int(re.search(rf"#define {name} +(\d+)", plot)[1]), getattr(theme, name), name)
        scripts = "".join((theme.ROOT / f"src/show/text/{name}_text.txt").read_text() for name in ("picture", "plot_collective"))
        for text in (theme.FONT, f"'{theme.TITLE_FONT}'", theme.NOTE, theme.GRID, theme.BOUNDARY, "dashtype (6,4)", "set border 3 linecolor rgb", "linewidth 2"):
            self.assertIn(text, scripts)
        markers = re.search(r"markers\[\] = \{ ([\d, ]+)", plot)[1].split(", ")
        self.assertEqual([int(m) for m in markers[:5]], theme.MARKERS)

    def test_traces_are_those_that_their_script_writes(self):
        for name, text in write_traces.traces().items():
            self.assertEqual((theme.ROOT / "traces" / f"{name}.json").read_text(encoding="utf-8"), text, name)


class Descriptions(unittest.TestCase):
    def test_the_manual_has_each_figure_and_no_other(self):
        lists = re.findall(r"<!-- pictures -->\n(.*?)<!-- /pictures -->", PAGE.read_text(encoding="utf-8"), re.DOTALL)
        terms = [item.partition(": ")[0] for one in lists for item in one.splitlines()]
        named = [name for term in terms for name in re.findall(r"`([^`]+)`", term)]
        ids = {figure.id for figure in read_sets(sorted(HERE.glob("*.json")))}
        self.assertEqual(sorted(named), sorted(ids))

    def test_every_row_is_there(self):
        ids = {figure.id for figure in read_sets(sorted(HERE.glob("*.json")))}
        self.assertEqual(set(ROWS.split()) - ids, set())

    def test_every_row_has_a_number_with_a_source_or_a_claim(self):
        held = {f.id for f in read_sets(sorted(HERE.glob("*.json"))) if f.description.get("claims") or any("source" in s for s in f.series)}
        self.assertEqual(set(ROWS.split()) - held, set())

    def test_numbers_touch_no_mark(self):
        marks = [(100, 50, 7, 7), (100, 68, 7, 7)]
        self.assertEqual(theme.free_side("12.5", (100, 50), False, marks), "center offset 0,-0.9")
        self.assertEqual(len(marks), 3)

    def test_jobs_are_the_textbook_s_but_for_those_that_the_manual_names(self):
        named = re.search(r"four figures of what a program was measured to do:(.*?)run that program", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1]
        others = {f.id for f in read_sets(sorted(HERE.glob("*.json"))) if any("--software" in command for command in f.commands())}
        self.assertEqual(others, set(re.findall(r"`([^`]+)`", named)))

    def test_every_number_that_is_simulated_has_a_command(self):
        for f in read_sets(sorted(HERE.glob("*.json"))):
            self.assertTrue(f.commands() or f.description.get("missing"), f.id)

    def test_documents_show_commands_that_the_builder_takes(self):
        loader = importlib.machinery.SourceFileLoader("build", str(HERE / "build"))
        build = importlib.util.module_from_spec(importlib.util.spec_from_loader("build", loader))
        loader.exec_module(build)
        shown = []
        for document in [HERE.parent.parent / "README.md", HERE / "README.md", *(HERE.parent.parent / "src/manual").rglob("*.md")]:
            shown += re.findall(r"(?:^    |`)tools/gallery/build( [^`\n]*)", document.read_text(), re.MULTILINE)
        self.assertGreater(len(shown), 1)
        for words in shown:
            build.parser().parse_args(shlex.split(words))


if __name__ == "__main__":
    unittest.main()
