"""The descriptions: *.json beside this file, a set of figures each (README.md has their keys)."""

import json
import re

from expressions import Evaluator, Wrong, runs_in

KEYS = {
    "id", "title", "shows", "source", "cases", "label", "runs", "series", "claims", "pictures", "holdings", "chart", "note", "cheap",
    "missing",
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
        if "label" in self.description:
            return self.command(self.description["label"], case)
        return ", ".join(f"{name} {value}" for name, value in case.items())

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
