"""Makes tables of C of the rules in a file, which says how they are written: rules.py RULES.txt > rules.h"""

import json
import re
import sys

TOKEN = re.compile(r"\s*(\$?[A-Za-z_][\w.]*(?:\(\))?|\d+|\|\||&&|[=!<>]=|[-+*/%&<>!()])")
LEVELS = [["||"], ["&&"], ["==", "!=", "<", "<=", ">", ">="], ["+", "-"], ["*", "/", "%", "&"]]
MASKS = {"<": 1, "==": 2, "<=": 3, ">": 4, "!=": 5, ">=": 6}  # less, equal, more
OPS = {"||": "OR", "&&": "AND", "+": "PLUS", "-": "MINUS", "*": "TIMES", "/": "OVER", "%": "REST", "&": "BITS"}
BASES = {"j": ("Job", "OF_JOB"), "m": ("LsModel", "OF_MODEL"), "mixer": ("LsMixerRow", "OF_MIXER"), "sched": ("LsSched", "OF_SCHED")}
CODES = {"lacks": "LS_ERROR_UNSUPPORTED", "limit": "LS_ERROR_LIMIT"}

operands, code, words, lists = {}, [], [], []
values = {}  # of operands that are constants, by number


def fail(number, text):
    sys.exit(f"{sys.argv[1]}:{number}: {text}")


def operand(token):
    """The number of an operand in its table."""
    name = token.lstrip("$")
    if token.isdigit() or re.fullmatch(r"[A-Z]\w*", token):
        value = token if token.isdigit() else f"LS_{token}"
        row = f".base = CONSTANT, .value = {value}"
        values[operands.setdefault(row, len(operands))] = value
    elif name.endswith("()"):
        row = f".base = {'TEXT' if token[0] == '$' else 'CALL'}, .{'text' if token[0] == '$' else 'call'} = {name[:-2]}"
    else:
        head, _, rest = name.partition(".")
        record, base = BASES.get(head, ("LsStrategy", "OF_STRATEGY"))
        member = rest if head in BASES else name
        row = f".base = {base}, .kind = KIND ({record}, {member}), .offset = offsetof ({record}, {member})"
    return operands.setdefault(row, len(operands))


class Expression:
    """Appends the steps of an expression to the code; `first` is where they begin. What a member is compared with, and the
    truth of one, are one step."""

    def __init__(self, text, number, is_condition=True):
        self.number, self.tokens, at = number, [], 0
        text = text.strip()
        while at < len(text):
            match = TOKEN.match(text, at)
            if not match:
                fail(number, f"expected an expression; got: {text[at:]}")
            self.tokens.append(match[1])
            at = match.end()
        self.first = len(code)
        self.binary(0)
        if self.tokens:
            fail(number, f"expected the end of an expression; got: {' '.join(self.tokens)}")
        if is_condition:
            self.as_truth(self.first, 5)
        code.append(("END", 0))

    def as_truth(self, first, mask, value="0"):
        """Of a single operand from `first` on, whether it compares so; false where there is more than one."""
        is_one = len(code) == first + 1 and code[first][0] == "PUSH" and code[first][1] not in values
        if is_one:
            code[first] = (f"TEST, {code[first][1]}, {mask}", value)
        return is_one

    def binary(self, level):
        if level == len(LEVELS):
            self.unary()
            return
        first = len(code)
        self.binary(level + 1)
        while self.tokens and self.tokens[0] in LEVELS[level]:
            op = self.tokens.pop(0)
            if level < 2:  # what follows does not matter where the left side decides
                self.as_truth(first, 5)
                code.append((OPS[op], 0))
            right = len(code)
            self.binary(level + 1)
            if level < 2:
                self.as_truth(right, 5)
                code[right - 1] = (OPS[op], len(code) - right)
            elif level == 2 and len(code) == right + 1 and code[right][1] in values and right == first + 1:
                value = values[code.pop()[1]]
                if not self.as_truth(first, MASKS[op], value):
                    fail(self.number, "expected a member or a function before a comparison")
            else:
                code.append((f"COMPARE, 0, {MASKS[op]}" if level == 2 else OPS[op], 0))

    def unary(self):
        token = self.tokens.pop(0) if self.tokens else fail(self.number, "an expression ends early")
        if token == "!":
            first = len(code)
            self.unary()
            if not self.as_truth(first, 2):
                code.append(("NOT", 0))
        elif token == "(":
            self.binary(0)
            if not self.tokens or self.tokens.pop(0) != ")":
                fail(self.number, "expected )")
        elif re.match(r"[$\w]", token):
            code.append(("PUSH", operand(token)))
        else:
            fail(self.number, f"expected a value; got {token}")


def guard(first):
    """The test of a member without which a condition does not hold, as a row has it (is_all: which is all of it); of others one that
    always passes."""
    op, value = code[first]
    at = first + 1
    while code[at][0] == "AND":
        at += 1 + code[at][1]
    if op.startswith("TEST") and code[at][0] == "END":
        _, number, mask = op.split(", ")
        member = list(operands)[int(number)]
        if ".offset" in member:
            is_all = "true" if code[first + 1][0] == "END" else "false"
            return f".guard = {{ {member}, .set = {mask}, .value = {value}, .is_all = {is_all} }}"
    return ".guard = { .base = OF_JOB, .kind = KIND_COUNT, .set = 7 }"


def condition_of(text, number):
    first = Expression(text, number).first
    return f".code = {first}, {guard(first)}"


def render(text, number):
    """Where the words of a text begin in their table."""
    made = []
    for part in re.split(r"(\{[^}]*\})", text):
        inner = part[1:-1]
        named = re.fullmatch(r"(\w+) \((.*)\)", inner)
        if not part.startswith("{"):
            made += [f".kind = LITERAL, .text = {json.dumps(part)}"] if part else []
        elif " ? " in inner:
            condition, _, texts = inner.partition(" ? ")
            yes, _, no = texts.partition(" : ")
            made.append(f".kind = CHOICE, .code = {Expression(condition, number).first}, .text = {json.dumps(yes)}, "
                        f".other = {json.dumps(no)}")
        elif named:
            made.append(f".kind = NAME, .code = {Expression(named[2], number, False).first}, .name = name_{named[1]}")
        elif inner.startswith("$"):
            made.append(f".kind = TEXT_OF, .code = {operand(inner)}")
        else:
            made.append(f".kind = NUMBER, .code = {Expression(inner, number, False).first}")
    first = len(words)
    words.extend(made + [".kind = END_OF_WORDS"])
    return first


def logical_lines(path):
    """(number, indentation, text) of each row, with its words as a list behind it."""
    rows = []
    for number, line in enumerate(open(path, encoding="utf-8").read().splitlines(), 1):
        text = line.strip()
        if text.startswith("| "):
            rows[-1][3].append(text[2:])
        elif text.startswith("& "):
            rows[-1][2] += " " + text[2:]
        elif text and not text.startswith("#"):
            rows.append([number, len(line) - len(line.lstrip()), text, []])
    return rows


def add_row(number, text, said, rows):
    if text.startswith("when "):
        rows.append([".kind = WHEN", condition_of(text[5:], number), 0])
        return
    if text.startswith("do "):
        rows.append([".kind = DO, .guard = { .base = OF_JOB, .kind = KIND_COUNT, .set = 7 }", f".check = check_{text[3:]}"])
        return
    match = re.match(r"((?:\{[^}]*\}|[^{:])*): (.*)", text)
    if not match or not said:
        fail(number, "expected a condition and words")
    (*flags,), condition = match[1].split(", "), match[2]
    pointer = flags.pop(0)
    row = [".kind = RULE", condition_of(condition, number), f".words = &rule_words[{render(' '.join(said), number)}]"]
    row.append(f".pointer = &rule_words[{render(pointer, number)}]" if pointer[0] == "/" else f".keys = {json.dumps(pointer)}")
    row += [".is_else = true"] if "else" in flags else []
    row.append(f".error = {next((CODES[flag] for flag in flags if flag != 'else'), 'LS_ERROR_CONFLICT')}")
    rows.append(row)


def main():
    rows, open_whens = None, []
    for number, indent, text, said in logical_lines(sys.argv[1]) + [[0, 0, "@ end", []]]:
        while open_whens and open_whens[-1][0] >= indent:
            _, row, at = open_whens.pop()
            row[2] = f".n_below = {len(rows) - at}"
        if text.startswith("@ "):
            rows = []
            lists.append((text[2:], rows))
            continue
        add_row(number, text, said, rows)
        if text.startswith("when "):
            open_whens.append((indent, rows[-1], len(rows)))
    print("/* Made by strategy/rules.py. */")
    tables = [("Operand rule_operands", operands), ("Step rule_code", [f"{op}, {at}" for op, at in code]), ("Word rule_words", words)]
    tables += [(f"Row rules_{name}", [", ".join(row) for row in of] + [".kind = END_OF_ROWS"]) for name, of in lists[:-1]]
    for name, of in tables:
        print(f"static const {name}[] = {{")
        for row in of:
            print(f"  {{ {row} }},")
        print("};")


main()
