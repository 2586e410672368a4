"""Small expressions over results: `step.breakdown_s.bubble / step.step_time_s`, `bus.rows(bytes=1024).time_us`.

Names are the variables of a case, the results of commands and a few functions. `.key` and `["key"]` look into a
result, `[i]` into a list; a list of results called with keywords is the one element that has these values. A run
called with keywords is its result of another case: `step(tp=1).mfu`. Nothing else can be called."""

import ast
import math
import operator

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
