"""The descriptions: *.json in this folder, a set of figures each (README.md has their keys)."""

import ast
import json
import math
import operator
import re

# --- expressions ---

# Small expressions over results: `step.breakdown_s.bubble / step.step_time_s`, `bus.rows(bytes=1024).time_us`.
#
# Names are the variables of a case, the results of commands and a few functions. `.key` and `["key"]` look into a
# result, `[i]` into a list; a list of results called with keywords is the one element that has these values. A run
# called with keywords is its result of another case: `step(tp=1).mfu`. Nothing else can be called.

OPERATORS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.USub: operator.neg,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.In: lambda a, b: a in b,
    ast.GtE: operator.ge, ast.Not: operator.not_,
}
FUNCTIONS = {
    "sum": sum, "min": min, "max": max, "len": len, "abs": abs, "sqrt": math.sqrt, "values": lambda d: list(d.values()),
    "mean": lambda v: sum(v) / len(v), "round": round, "str": str, "number": lambda text: Evaluator({}, {}, None).value(text),
}


class Wrong(Exception):
    """An expression that cannot be evaluated."""


def parse(text):
    try:
        return ast.parse(str(text), mode="eval").body
    except SyntaxError as error:
        raise Wrong(f"{text!r}: {error.msg}") from None


def runs_in(text, run_names, variables):
    """(name, variables) of each run that an expression needs."""
    plain, called = [], set()
    for node in ast.walk(parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in run_names:
            called.add(node.func)
            fill = Evaluator(variables, {}, None)
            plain.append((node.func.id, {**variables, **{k.arg: fill.node(k.value) for k in node.keywords}}))
        elif isinstance(node, ast.Name) and node.id in run_names and node not in called:
            plain.append((node.id, variables))
    return plain


class Evaluator:
    """Of the variables of one case. run_result(name, variables) gives the result of the run of that name."""

    def __init__(self, variables, run_names, run_result):
        self.variables, self.run_names, self.run_result = variables, run_names, run_result

    def value(self, text):
        try:
            return self.node(parse(text))
        except (KeyError, IndexError, TypeError, ZeroDivisionError, ValueError) as error:
            raise Wrong(f"{text!r}: {type(error).__name__}: {error}") from None

    def node(self, node):
        handler = getattr(self, "of_" + type(node).__name__, None)
        if handler is None:
            raise Wrong(f"{ast.unparse(node)!r}: not allowed here")
        return handler(node)

    def of_Constant(self, node):
        return node.value

    def of_List(self, node):
        return [self.node(e) for e in node.elts]

    def of_Name(self, node):
        if node.id in self.variables:
            return self.variables[node.id]
        if node.id in self.run_names:
            return self.run_result(node.id, self.variables)
        raise Wrong(f"{node.id!r} is no variable, run or function")

    def of_Attribute(self, node):
        return self.node(node.value)[node.attr]

    def of_Subscript(self, node):
        return self.node(node.value)[self.node(node.slice)]

    def of_BinOp(self, node):
        return OPERATORS[type(node.op)](self.node(node.left), self.node(node.right))

    def of_UnaryOp(self, node):
        return OPERATORS[type(node.op)](self.node(node.operand))

    def of_BoolOp(self, node):
        values = [self.node(v) for v in node.values]
        return all(values) if isinstance(node.op, ast.And) else any(values)

    def of_Compare(self, node):
        left = self.node(node.left)
        for op, right in zip(node.ops, map(self.node, node.comparators)):
            if not OPERATORS[type(op)](left, right):
                return False
            left = right
        return True

    def of_IfExp(self, node):
        return self.node(node.body if self.node(node.test) else node.orelse)

    def of_Call(self, node):
        keys = {k.arg: self.node(k.value) for k in node.keywords}
        if isinstance(node.func, ast.Name) and node.func.id in self.run_names:
            return self.run_result(node.func.id, {**self.variables, **keys})
        if isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
            return FUNCTIONS[node.func.id](*map(self.node, node.args))
        found = [e for e in self.node(node.func) if all(e.get(k) == v for k, v in keys.items())]
        if len(found) != 1:
            raise Wrong(f"{ast.unparse(node)!r}: {len(found)} elements have these values; expected one")
        return found[0]


def names_in(text):
    return {n.id for n in ast.walk(parse(text)) if isinstance(n, ast.Name)}


# --- descriptions ---

KEYS = {
    "id", "title", "shows", "source", "cases", "label", "runs", "series", "claims", "pictures", "holdings", "flows", "blocks", "chart", "table", "note",
    "cheap", "missing",
}
SERIES_KEYS = {"what", "unit", "ours", "source", "kind", "tolerance", "points", "where", "miss"}
KINDS = {"published", "worked", "formula", "read off"}
FIELD = re.compile(r"\{([^{}]*)\}")


def expand(cases):
    """A list of dictionaries: of {"name": [values]} all combinations; of {"columns", "rows"} its rows."""
    if cases is None:
        return [{}]
    if "rows" in cases:
        if any(len(row) != len(cases["columns"]) for row in cases["rows"]):
            raise Wrong("a row with other columns")
        return [dict(zip(cases["columns"], row)) for row in cases["rows"]]
    rows = [{}]
    for name, values in cases.items():
        rows = [{**row, name: value} for row in rows for value in values]
    return rows


class Figure:
    """A description, with what its commands gave: results[command]."""

    def __init__(self, description, set_title):
        self.description, self.set_title, self.results = description, set_title, {}
        self.id = description.get("id", "")
        unknown = set(description) - KEYS
        if unknown or not self.id:
            raise Wrong(f"{self.id or 'a figure without id'}: unknown keys {sorted(unknown)}")
        for key in ("title", "shows", "source"):
            if not description.get(key):
                raise Wrong(f"{self.id}: no {key}")
        self.cases = expand(description.get("cases"))
        self.runs = description.get("runs", {})
        self.series = description.get("series", [])
        self.is_cheap = description.get("cheap", True)
        for series in self.series:
            self.check_series(series)

    def check_series(self, series):
        unknown = set(series) - SERIES_KEYS
        if unknown or "what" not in series or "ours" not in series:
            raise Wrong(f"{self.id}: a series with unknown keys {sorted(unknown)}, or without what and ours")
        if "source" in series and (series.get("kind") not in KINDS or ("tolerance" in series) == ("points" in series)):
            raise Wrong(f"{self.id}: {series['what']}: a source needs a kind ({', '.join(sorted(KINDS))}), "
                        "and a tolerance in percent or in points")
        if "miss" in series and not {"at_most", "cause"} <= set(series["miss"]):
            raise Wrong(f"{self.id}: {series['what']}: a miss says how much at most, and its cause")

    def command(self, template, variables):
        """The template with its fields {expression} filled in."""
        fill = Evaluator(variables, {}, None)
        return FIELD.sub(lambda field: str(fill.value(field.group(1))), template)

    def evaluator(self, variables, on_run):
        def run_result(name, chosen):
            return on_run(self.command(self.runs[name], chosen))
        return Evaluator(variables, self.runs, run_result)

    def cases_of(self, series):
        where = series.get("where")
        return [case for case in self.cases if where is None or Evaluator(case, {}, None).value(where)]

    def label(self, case):
        """What tells a case from the others of its figure."""
        words = self.command(self.description["label"], case) if "label" in self.description else ", ".join(f"{name} {value}" for name, value in case.items())
        return re.sub(r"(?<![\w.=])\d{4,}(?![\w.])", lambda digits: f"{int(digits[0]):,}", words)

    def expressions(self):
        """(expression, case) of everything that is evaluated of results."""
        for series in self.series:
            for case in self.cases_of(series):
                yield series["ours"], case
                if isinstance(series.get("source"), str):
                    yield series["source"], case
        for claim in self.description.get("claims", []):
            yield claim["holds"], {}
        if "holdings" in self.description:
            for case in self.cases:
                yield self.description["holdings"]["run"], case
        for flow in self.description.get("flows", []):
            for run in [flow["owners"], *(column["run"] for column in flow["columns"])]:
                yield run, {}
        for blocks in self.description.get("blocks", []):
            yield blocks["run"], {}

    def commands(self):
        """All, in the order in which they are first needed."""
        seen = {picture["command"]: None for picture in self.description.get("pictures", [])}
        for expression, case in self.expressions():
            for name, chosen in runs_in(expression, self.runs, case):
                seen[self.command(self.runs[name], chosen)] = None
        return list(seen)

    def value(self, expression, case):
        return self.evaluator(case, lambda command: self.result(command)).value(expression)

    def result(self, command):
        if command not in self.results:
            raise Wrong(f"{self.id}: there is no run of {command!r}")
        return self.results[command]


class Point:
    """One number: ours, the source's (None: it gives none), how far off, and what that means."""

    def __init__(self, series, label, ours, theirs):
        self.what, self.unit, self.label, self.ours, self.theirs = series["what"], series.get("unit", ""), label, ours, theirs
        self.error, self.verdict, self.cause = None, "", ""
        if theirs is None:
            return
        is_relative = "tolerance" in series
        self.error = (ours / theirs - 1) * 100 if is_relative else ours - theirs
        self.error_unit = "%" if is_relative else ("points" if self.unit == "%" else self.unit)
        allowed = series["tolerance"] if is_relative else series["points"]
        miss = series.get("miss")
        if abs(self.error) <= max(allowed, 1e-9 * (100 if is_relative else abs(theirs))):
            self.verdict = "exact" if abs(self.error) <= 1e-3 and is_relative or self.error == 0 else "within"
        elif miss and abs(self.error) <= miss["at_most"]:
            self.verdict, self.cause = "misses", miss["cause"]
        else:
            self.verdict = "FAILS"


def points_of(figure):
    """Every number of a figure whose commands have run."""
    points = []
    for series in figure.series:
        cases = figure.cases_of(series)
        for case in cases:
            ours = figure.value(series["ours"], case)
            theirs = figure.value(series["source"], case) if "source" in series else None
            points.append(Point(series, figure.label(case) if len(cases) > 1 else "", ours, theirs))
    return points


def claims_of(figure):
    """(claim, whether it holds) of each."""
    return [(claim["claim"], bool(figure.value(claim["holds"], {}))) for claim in figure.description.get("claims", [])]


def read_sets(paths):
    """The figures of all files, in their order."""
    figures, ids = [], set()
    for path in paths:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        for description in document["figures"]:
            figure = Figure(description, document["set"])
            if figure.id in ids:
                raise Wrong(f"{figure.id}: twice")
            ids.add(figure.id)
            figures.append(figure)
    return figures
