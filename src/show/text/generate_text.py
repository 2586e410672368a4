"""Makes C that writes text of a picture of that text:
    generate_text.py NAME.txt > NAME_text.h

A file holds functions; each begins with a line "@ SIGNATURE". One that returns char * makes a text; others append to
their argument `out`, a GString or a FILE. Below it stand, two blanks further in for what belongs to the line above:

    |a line {count r->tokens}    as it is printed, with what stands in braces; "\\" at its end: the line goes on;
                                 "\\\\": it ends in one
    if C / else if C / else      only then
    for LOOP [where C]           for each element of a list: as in result_keys.txt; i_NAME is its number
    let NAME = C                 a value by a name
    new NAME = C                 a text that is freed at the end; a name in braces writes it
    heading TITLE | NOTE         of a section (text_table.h); a variable is_color
    ! C                          a statement
    # WORDS                      a comment
    & REST                       goes on with the line above
    table INDENT LOOP            a line for each element, in columns:
      ALIGN HEAD | CELL [| if C]   a column: l or r, its head, its cells; a head of "{}" is empty; if all heads are,
                                 there is no line of them. Columns may stand below if and for, and use no element
      note CELL                  what stands below a line; empty: nothing
      instead C | CELL | CELL    where C, these are the cells of the line, the last one in all that remain
      last                       below it lines after those of the elements, as "-" of rows
    rows INDENT ALIGN            lines that are not alike:
      - CELL | CELL              one of them, also below if and for
      note CELL                  below the one before

In braces: a string; or a form and what is written in it, FORMS; or a format of printf, perhaps with a form whose text
it holds, and what is printed. "?" before either: "-" where the value is not a number. {if C: TEXT} only then;
{paint COLOR: TEXT} by an ANSI escape, where is_color.
"{}" is nothing."""

import os
import re
import sys

sys.dont_write_bytecode = True  # the folder of sources stays as it is
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "schema"))
from generate import loop  # noqa: E402

NEW = {  # forms of texts that are made
    "time": "ls_text_time ({})", "count": "ls_text_count ({})", "money": "ls_text_money ({})",
    "energy": "ls_text_energy ({})", "grouped": "ls_text_grouped ({}, 0)", "words": "ls_text_words ({})",
    "ps": "ls_format_time ({})", "s": "ls_format_time (ls_time_from_s ({}))", "bytes": "ls_format_bytes ({})",
    "rate": "ls_format_rate ({})", "quoted": "ls_gnuplot_quote ({})", "json": "ls_json_string ({})", "new": "{}",
}
FORMS = {  # and of what printf writes
    "u": ("%u", "{}"), "d": ("%d", "{}"), "u64": ("%\1", "{}"), "d64": ("%\3", "{}"),  # guint64, gint64
    "x64": ("%016\2", "{}"), "ts": ("%\3.%06\3", "({0}) / LS_US, ({0}) % LS_US"),
    "gib": ("%.2f", "(double) ({}) / LS_TEXT_GIB"), "plural": ("%s", '({}) == 1 ? "" : "s"'),
    "pct0": ("%.0f %%", "100 * {}"), "pct1": ("%.1f %%", "100 * {}"), "pct2": ("%.2f %%", "100 * {}"),
    "more1": ("%+.1f %%", "100 * {}"), "more2": ("%+.2f %%", "100 * {}"),
    "us": ("%.3f", "ls_time_to_s ({}) * 1e6"),
}
HEAD = "/* Made by show/text/generate_text.py. */\n"
SHOWN = '#include "show/text_table.h"\n'  # of what is written with what it has


class Line:
    def __init__(self, text, number):
        self.text, self.number, self.below = text, number, []


class Function:
    """One that is written: names of values are its own."""

    def __init__(self, signature):
        self.signature, self.n = signature, 0
        self.is_new = re.match(r"(static )?char \*", signature) is not None
        self.is_file = "FILE *out" in signature

    def name(self):
        self.n += 1
        return f"x{self.n}"


def quoted(text):
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    for sign, name in (("\1", 'GUINT64_FORMAT "'), ("\2", 'GINT64_MODIFIER "x'), ("\3", 'GINT64_FORMAT "')):
        text = text.replace(sign, '" G_' + name)
    return f'"{text}"'


def pieces_of(text):
    """(is it in braces, what) one after the other."""
    pieces, at = [], 0
    while at < len(text):
        if text.startswith("{{", at):
            pieces.append((False, "{"))
            at += 2
        elif text[at] == "{":
            depth, end = 1, at + 1
            while depth > 0:
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
            pieces.append((True, text[at + 1:end - 1]))
            at = end
        else:
            end = text.find("{", at) if "{" in text[at:] else len(text)
            pieces.append((False, text[at:end]))
            at = end
    return pieces


def cells_of(text):
    """What " | " divides outside of braces."""
    cells = [""]
    for is_code, piece in pieces_of(text):
        if is_code:
            cells[-1] += "{" + piece + "}"
            continue
        first, *rest = piece.replace("{", "{{").split(" | ")
        cells[-1] += first
        cells.extend(rest)
    return cells


def value_of(code):
    """(format, expression, is it made, dash of what is no number) of what stands in braces."""
    has_dash, code = code.startswith("?"), code.removeprefix("?")
    form, _, rest = code.partition(" ")
    given = form if form.startswith("%") else ""  # "%8lu" of a guint64
    if given:
        form, _, rest = (code := rest).partition(" ")
    if form in NEW and rest:
        return given or "%s", NEW[form].format(rest), True, ""
    if form in FORMS and rest:
        (form, expression), code = FORMS[form], rest
        code, given = expression.format(rest), given or form
    width = re.match(r"%\+?(\d*)", given or "%")[1]
    return given or "%s", code, False, f"%{width}s" if has_dash else ""


class Text:
    """Appends to a text, or a file: literal pieces and values gather to one call."""

    def __init__(self, function, to):
        self.function, self.to, self.lines, self.format, self.values = function, to, [], "", []

    def call(self, name, *arguments):
        if self.function.is_file and self.to == "out":
            return f"fputs ({arguments[0]}, out);" if name == "puts" else f"fprintf (out, {', '.join(arguments)});"
        name = {"puts": "g_string_append", "fprintf": "g_string_append_printf"}[name]
        return f"{name} ({', '.join([self.to, *arguments])});"

    def flush(self):
        if self.values:
            self.lines.append(self.call("fprintf", quoted(self.format), *self.values))
        elif self.format:
            self.lines.append(self.call("puts", quoted(self.format.replace("%%", "%"))))
        self.format, self.values = "", []

    def add(self, text):
        for is_code, piece in pieces_of(text):
            if not is_code:
                self.format += piece.replace("%", "%%")
            elif piece.startswith("if "):
                self.add_if(piece[3:])
            elif piece.startswith("paint "):
                self.add_paint(*piece[6:].split(": ", 1))
            elif piece:
                self.add_value(piece)

    def add_if(self, code):
        condition, _, text = code.partition(": ")
        self.flush()
        self.lines.append(f"if ({condition}) {{")
        self.add(text)
        self.flush()
        self.lines.append("}")

    def add_paint(self, color, text):
        self.flush()
        self.lines.append(f"ls_text_paint (out, is_color, {color});")
        self.add(text)
        self.flush()
        self.lines.append('ls_text_paint (out, is_color, "0");')

    def add_value(self, code):
        form, value, is_made, dash = value_of(code)
        if self.function.is_file and re.fullmatch(r"%[-+.0-9]*[fge]", form):  # whatever the locale
            form, value, is_made = "%s", f"ls_text_plain ({quoted(form)}, {value})", True
        if is_made:
            name = self.function.name()
            self.lines.append(f"g_autofree char *{name} = {value};")
            value = name
        if not dash:
            self.format += form
            self.values.append(value)
            return
        self.flush()
        name = self.function.name()
        self.lines += [f"const double {name} = {value};",
                       f"if (isnan ({name}))", self.call("fprintf", quoted(dash), '"-"'),
                       "else", self.call("fprintf", quoted(form), name)]

    def done(self):
        self.flush()
        return self.lines


def appended(function, text, to="out"):
    lines = Text(function, to)
    lines.add(text)
    return lines.done()


def made(function, text):
    """(lines, an expression) of a text that is newly allocated."""
    to = function.name()
    *lines, last = appended(function, text, to) or [f'g_string_append ({to}, "");']
    for name, new in (("g_string_append_printf", "g_strdup_printf"), ("g_string_append", "g_strdup")):
        if last.startswith(f"{name} ({to}, ") and all(line.startswith("g_autofree ") for line in lines):
            return lines, new + " (" + last.removeprefix(f"{name} ({to}, ").removesuffix(";")
    return [f"GString *{to} = g_string_new (NULL);", *lines, last], f"g_string_free ({to}, FALSE)"


def cell(function, text, table):
    if not text:
        return [f"ls_text_table_take (&{table}, NULL);"]
    lines, value = made(function, text)
    take = f"ls_text_table_take (&{table}, {value});"
    return ["{", *lines, take, "}"] if lines else [take]


def each(text):
    """(list, condition) of "LOOP where C"."""
    return text.partition(" where ")[::2]


def nested(line, body):
    """A line of if, else or for with what it holds."""
    text = line.text
    if text.startswith("for "):
        return loop(*each(text[4:]), lambda _: body)
    if text.startswith("else if "):
        return [f"else if ({text[8:]}) {{", *body, "}"]
    return [f"if ({text[3:]}) {{" if text.startswith("if ") else "else {", *body, "}"]


# --- tables ----------------------------------------------------------------------------------------------------------


def note(function, text, table):
    lines, value = made(function, text)
    name = function.name()
    return ["{", *lines, f"g_autofree char *{name} = {value};",
            f"ls_text_table_note (&{table}, *{name} ? {name} : NULL);", "}"]


def rows(function, lines, table):
    """Lines of a table that are not alike."""
    out = []
    for line in lines:
        if line.text.startswith("- "):
            for text in cells_of(line.text[2:]):
                out += cell(function, text if text != "{}" else "", table)
        elif line.text.startswith("note "):
            out += note(function, line.text[5:], table)
        elif re.match(r"(if|for|else)\b", line.text):
            out += nested(line, rows(function, line.below, table))
        else:
            out += statement(function, line)
    return out


def over_columns(lines, write):
    out = []
    for line in lines:
        if re.match(r"(if|for|else)\b", line.text):
            out += nested(line, over_columns(line.below, write))
        elif line.text[:2] in ("l ", "r "):
            head, text, *condition = cells_of(line.text[2:])
            body = write(line.text[0], head if head != "{}" else "", text if text != "{}" else "")
            out += nested(Line(condition[0], 0), body) if condition and body else body
    return out


def has_heads(lines):
    return any(has_heads(line.below) or line.text[:2] in ("l ", "r ") and not line.text[2:].startswith("{} | ")
               for line in lines)


def table_of_columns(function, line):
    indent, _, lines = line.text[6:].partition(" ")
    table, align = function.name(), function.name()
    kinds = {kind: [inner for inner in line.below if inner.text.split(" ")[0] == kind] for kind in
             ("last", "note", "instead", "let", "new", "!")}
    columns = [inner for inner in line.below if inner.text.split(" ")[0] not in kinds]
    plain = all(inner.text[:2] in ("l ", "r ") and " | if " not in inner.text for inner in columns)
    out = ["{", f"LsTextTable {table};"]
    if plain:
        letters = "".join(inner.text[0] for inner in columns)
        out.append(f'ls_text_table_init (&{table}, "{letters}");')
    else:
        out.append(f'char {align}[LS_TEXT_TABLE_MAX_COLUMNS + 1] = "";')
        out += over_columns(columns, lambda side, *_: [f'g_strlcat ({align}, "{side}", sizeof {align});'])
        out.append(f"ls_text_table_init (&{table}, {align});")
    if has_heads(columns):
        out += over_columns(columns, lambda _, head, __: cell(function, head, table))
    values = [inner for inner in line.below if re.match(r"(let|new|!) ", inner.text)]
    body = block(function, values)
    normal = over_columns(columns, lambda _, __, text: cell(function, text, table))
    for inner in kinds["instead"]:
        condition, *others = cells_of(inner.text[8:])
        rest = iter(others + others[-1:] * 16)
        other = over_columns(columns, lambda *_: cell(function, next(rest), table))
        normal = [f"if ({condition}) {{", *other, "} else {", *normal, "}"]
    body += normal
    for inner in kinds["note"]:
        body += note(function, inner.text[5:], table)
    out += loop(*each(lines), lambda _: body)
    for inner in kinds["last"]:
        out += rows(function, inner.below, table)
    return [*out, f"ls_text_table_print (&{table}, {indent}, out);", "}"]


def table_of_rows(function, line):
    indent, align = line.text[5:].split(" ", 1)
    table = function.name()
    align = f'"{align}"' if re.fullmatch("[lr]+", align) else align
    return ["{", f"LsTextTable {table};", f"ls_text_table_init (&{table}, {align});",
            *rows(function, line.below, table), f"ls_text_table_print (&{table}, {indent}, out);", "}"]


# --- statements ------------------------------------------------------------------------------------------------------


def heading(function, text):
    title, note_text = (cells_of(text) + [""])[:2]
    a, b = function.name(), function.name()
    (lines, value), (note_lines, note_value) = made(function, title), made(function, note_text)
    return ["{", *lines, f"g_autofree char *{a} = {value};", *note_lines, f"g_autofree char *{b} = {note_value};",
            f'ls_text_heading (out, is_color, {a}, {b});', "}"]


def statement(function, line):
    word, _, rest = line.text.partition(" ")
    if line.text.startswith("|"):
        text = line.text[1:]
        ends = text.endswith("\\\\") or not text.endswith("\\")
        text = text.removesuffix("\\") + "\n" * ends
        return ["{", *appended(function, text), "}"] if text else []
    if word in ("if", "else", "for"):
        return nested(line, block(function, line.below))
    if word == "let":
        return [f"__auto_type {rest};"]
    if word == "new":
        return [f"g_autofree char *{rest};"]
    if word == "heading":
        return heading(function, rest)
    if word == "!":
        return [rest + ";"]
    if word == "table":
        return table_of_columns(function, line)
    if word == "rows":
        return table_of_rows(function, line)
    sys.exit(f"line {line.number}: {line.text!r}")


def block(function, lines):
    return [text for line in lines for text in statement(function, line)]


def read(path):
    """[(signature, [Line])] of a file."""
    functions = []
    with open(path, encoding="utf-8") as file:
        texts = re.sub(r"\n *& ", "", file.read()).split("\n")
    stack = []
    for number, text in enumerate(texts, 1):
        if text.startswith("@ "):
            functions.append((text[2:], top := Line("", number)))
            stack = [(-1, top)]
        elif text.strip() and not text.lstrip().startswith("#") and stack:
            depth = len(text) - len(text.lstrip(" "))
            line = Line(text.lstrip(" "), number)
            while stack[-1][0] >= depth:
                stack.pop()
            stack[-1][1].below.append(line)
            stack.append((depth, line))
    return functions


def main(path):
    functions = []
    for signature, top in read(path):
        function = Function(signature)
        begin = ["GString *out = g_string_new (NULL);"] if function.is_new else []
        end = ["return g_string_free (out, FALSE);"] if function.is_new else []
        functions.append("\n".join([signature, "{", *begin, *block(function, top.below), *end, "}"]) + "\n")
    text = "\n".join(functions)
    print(HEAD + SHOWN * bool(re.search("ls_text_|LS_TEXT_|LsTextTable", text)))
    print(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
