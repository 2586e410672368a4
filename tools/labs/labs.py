"""Labs (strategies/labs/NAME.json) as other programs need them: read, and their formulas evaluated from what the commands print.
This is a second implementation of what `lockstep lab check` does (src/data/jobs/read_lab.h says what a formula is);
tests/labs/labs.py holds one against the other."""

import ast
import json
import operator
import os
import pathlib
import re
import shlex
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Pow: operator.pow,
             ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq, ast.USub: operator.neg}


def read_labs():
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "strategies/labs").glob("*.json"))]


class Refused(RuntimeError):
    """A command line that has no result; reasons: its lines on stderr."""

    def __init__(self, line, stderr):
        super().__init__(f"{line}: {stderr}")
        self.reasons = [told.removeprefix("error: ") for told in stderr.splitlines() if told.startswith("error: ")]


def flags_of(knobs):
    """The options of a command line: None is not there, True has no value."""
    return " ".join("--" + key.replace("_", "-") + ("" if value is True else f" {value}") for key, value in knobs.items() if value is not None)


class Measures:
    """Runs command lines, each once."""

    def __init__(self, lockstep):
        self.lockstep, self.done = str(pathlib.Path(lockstep).resolve()), {}

    def result(self, line):
        if line not in self.done:
            command = [self.lockstep, *shlex.split(line), "--json"]
            run = subprocess.run(command, capture_output=True, text=True, env={"LS_DATA_DIR": str(ROOT), **os.environ})
            self.done[line] = json.loads(run.stdout) if run.stdout else Refused(line, run.stderr)
        if isinstance(self.done[line], Refused):
            raise self.done[line]
        return self.done[line]

    def number(self, line, key):
        node = self.result(line)
        for part in key.split("."):
            node = node[int(part)] if isinstance(node, list) else node[part]
        return float(node)

    def value(self, lab, formula, own=""):
        """own: the command line of a configuration."""
        def of(node):
            if isinstance(node, ast.Constant):
                return node.value
            if isinstance(node, (ast.Name, ast.Attribute)):
                name = ast.unparse(node)
                return self.number(own, name[len("own."):]) if name.startswith("own.") else self.number(*lab["measures"][name].split(" => "))
            if isinstance(node, ast.BinOp):
                return OPERATORS[type(node.op)](of(node.left), of(node.right))
            if isinstance(node, ast.UnaryOp):
                return OPERATORS[type(node.op)](of(node.operand))
            if isinstance(node, ast.Compare):
                return float(OPERATORS[type(node.ops[0])](of(node.left), of(node.comparators[0])))
            if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
                return float(all(of(v) != 0 for v in node.values))
            raise ValueError(formula)
        return float(of(ast.parse(formula.replace("^", "**"), mode="eval").body))


def names_of(formula):
    return set(re.findall(r"(?<![\w.])[A-Za-z_][\w.]*", formula)) - {"and"}
