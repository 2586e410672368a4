"""Makes what follows from the table of keys of JSON that is written.

    generate.py result_keys.txt SECTION > SECTION_keys.h     C that writes the JSON, and comma-separated text
    generate.py result_keys.txt > result_schemas.txt         the JSON Schemas of all sections

The head of the table says what its rows are. All that is written lies in objects and lists that stand in a tree, as
keys do; a tree is written front to back, each value by the type that it has in C."""

import json
import re
import sys

NUMBER = ('_Generic (({value}), double: ls_json_out_double, uint64_t: ls_json_out_uint, default: ls_json_out_int)'
          ' (w, {key}, {value});')
BOOLEAN = 'ls_json_out_bool (w, {key}, {value});'
TEXT = 'ls_json_out_string (w, {key}, {value});'
NEW_TEXT = '{{ g_autofree char *text = {value}; ls_json_out_string (w, {key}, text); }}'
KEYS = """/* Made by show/schema/generate.py of result_keys.txt. */
#include "data/text/csv.h"
#include "data/text/json_out.h"

static void
ls_keys_{name} (LsJsonOut *w, {arguments})
{{
{body}
}}
"""
DOCUMENT = """
{static}char *
{function} ({arguments})
{{
  LsJsonOut w;
  ls_json_out_open_as (&w, "{section}");
  ls_keys_{name} (&w, {values});
  return ls_json_out_close (&w);
}}
"""
CELLS = """
char *
{function} ({arguments})
{{
  GString *out = g_string_new (NULL);
{head}
  g_string_append_c (out, '\\n');
{body}
  return g_string_free (out, FALSE);
}}
"""
NUMBER_CELL = "_Generic (({value}), double: ls_csv_append_number, default: ls_csv_append_int) (out, {value});"
TEXT_CELL = "ls_csv_append (out, {value});"
NEW_CELL = "{{ g_autofree char *text = {value}; ls_csv_append (out, text); }}"
QUOTED_CELL = "ls_csv_append_quoted (out, {value});"
LOOPS = (  # what a place of a list says; what begins an element
    (r"each (?P<var>\w+) in new (?P<list>.+)",
     "for (GStrv all_{var} = {list}; all_{var}; all_{var} = (g_strfreev (all_{var}), NULL))\n"
     "for (guint i_{var} = 0; all_{var}[i_{var}]; i_{var}++) {{\nconst char *{var} = all_{var}[i_{var}];"),
    (r"(?P<type>\w+) (?P<var>\w+) in new (?P<list>.+)",
     "for (GArray *all_{var} = {list}; all_{var}; all_{var} = (g_array_unref (all_{var}), NULL))\n"
     "for (guint i_{var} = 0; i_{var} < all_{var}->len; i_{var}++) {{\n"
     "const {type} *{var} = &g_array_index (all_{var}, {type}, i_{var});"),
    (r"(?P<type>[\w ]+\*)(?P<var>\w+) in new (?P<list>.+)",
     "for (GPtrArray *all_{var} = {list}; all_{var}; all_{var} = (g_ptr_array_unref (all_{var}), NULL))\n"
     "for (guint i_{var} = 0; i_{var} < all_{var}->len; i_{var}++) {{\n"
     "{type}{var} = g_ptr_array_index (all_{var}, i_{var});"),
    (r"each (?P<var>\w+) in (?P<list>.+)",
     "for (guint i_{var} = 0; {list} && {list}[i_{var}]; i_{var}++) {{\n__auto_type {var} = {list}[i_{var}];"),
    (r"(?P<type>\w+) (?P<var>\w+) in (?P<list>.+)",
     "for (guint i_{var} = 0; {list} && i_{var} < {list}->len; i_{var}++) {{\n"
     "const {type} *{var} = &g_array_index ({list}, {type}, i_{var});"),
    (r"(?P<type>[\w ]+\*)(?P<var>\w+) in (?P<list>.+)",
     "for (guint i_{var} = 0; {list} && i_{var} < {list}->len; i_{var}++) {{\n"
     "{type}{var} = g_ptr_array_index ({list}, i_{var});"),
    (r"(?P<var>\w+) in (?P<list>.+?), (?P<n>.+)",
     "for (guint i_{var} = 0; i_{var} < ({n}); i_{var}++) {{\n__auto_type {var} = &({list})[i_{var}];"),
    (r"(?P<var>\w+) below (?P<n>.+)", "for (guint {var} = 0; {var} < ({n}); {var}++) {{"),
)


class Node:
    """What has a key: an object with members, a list with an item, or a value with a type."""

    def __init__(self, name):
        self.name, self.members, self.item = name, [], None
        self.type, self.meaning, self.index = "", "", 0
        self.place, self.condition, self.is_only, self.where, self.like = "", "", False, "", ""
        self.family, self.name_of_each = None, ""  # of members with any names: what they are elements of

    def make(self, way):
        """What "links[].name" leads to, made where it is not there."""
        node = self
        for step in way.split("."):
            name = step.split("[")[0]
            if all(m.name != name for m in node.members):
                node.members.append(Node(name))
            node = next(m for m in node.members if m.name == name)
            for _ in range(step.count("[")):
                node.item = node.item or Node("")
                node = node.item
        return node

    def at(self, way):
        """The same of what a row has."""
        node = self
        for step in filter(None, way.split(".")):
            node = next((m for m in node.members if m.name == step.split("[")[0]), None)
            for _ in range(step.count("[")):
                node = node and node.item
            if not node:
                sys.exit(f"{way}: no row has it")
        return node

    def set_place(self, text):
        """Takes a place with all that stands behind it."""
        if " named " in text:
            self.family = Node(self.name)
            list_of, _, rest = text.partition(" named ")
            self.name_of_each, _, self.like = rest.partition(" as ")
            self.name_of_each, _, where = self.name_of_each.partition(" where ")
            self.family.place, self.family.where = list_of, where
            return
        text, _, self.like = text.strip().partition(" as ")
        text, _, self.condition = f" {text}".partition(" if ")
        self.is_only = text.endswith(" only")
        self.place, _, self.where = text.removesuffix(" only").strip().partition(" where ")

    def may_be(self, what):
        return what in self.type.split("/")


def lines_of(path):
    """The lines of a file; what begins with four blanks goes on from the line before."""
    with open(path, encoding="utf-8") as file:
        return file.read().replace("\n    ", " ").replace(" | | ", " |  | ").split("\n")


def whole_keys(shown):
    """links[].name and links[].bytes of "links[].name .bytes"."""
    keys = shown.split(" ")
    for i in range(1, len(keys)):
        if keys[i].startswith("."):
            keys[i] = keys[i - 1].rpartition(".")[0] + keys[i]
    return keys


def add_row(root, line):
    shown, types, _, places = (line.split(" | ") + ["", ""])[:4]
    keys, types, places = whole_keys(shown), types.split(" "), places.split("; ")
    if len(types) not in (1, len(keys)) or len(places) > len(keys):
        sys.exit(f"{shown}: {len(keys)} keys, {len(types)} types, {len(places)} places")
    for i, key in enumerate(keys):
        node = root.make(key)
        node.type = types[i if len(types) > 1 else 0]
        node.index = i
        place = places[i] if i < len(places) else ""
        is_for_all = "#" in places[0] or len(places) == 1 and places[0].startswith("if ")
        node.set_place(places[0] if is_for_all and not place.strip() else place)


def move(root, keys, before):
    """Puts keys behind another of the same object; "^": at its beginning."""
    above, _, last = before.rpartition(".")
    members = root.at(above).members
    moved = [root.at(key.removesuffix("[]")) for key in whole_keys(keys)]
    for node in moved:
        members.remove(node)
    at = 0 if last == "^" else 1 + members.index(root.at(before.removesuffix("[]")))
    members[at:at] = moved


def add_container(root, line):
    way, _, place = line.partition(" | ")
    way, _, before = way.partition(" after ")
    for key in whole_keys(way) if place else []:
        root.at(key.removesuffix("[]")).set_place(place)
    if before:
        move(root, way, before)


def read_section(path, name):
    """The tree of a section, the function that writes it, and its tables of comma-separated text."""
    root, signature, tables, late, is_here = Node(""), "", [], [], False
    for line in lines_of(path):
        if line.startswith("== "):
            is_here = line[3:].split(":")[0] == name
        elif is_here and line.startswith("@ ") and line.endswith(")") and "|" not in line:
            signature = line[2:]
        elif is_here and line.startswith("@ csv "):
            tables.append(line[6:])
        elif is_here and line.startswith("@ "):
            late.append(line[2:])
        elif is_here and line and line[0] != "#":
            add_row(root, line)
    for line in late:
        add_container(root, line)
    resolve(root, root, path)
    return root, signature, tables


def resolve(node, root, path):
    """Gives what lies as something else does its members: "best[]", or "run:memory.headroom" of another section."""
    if node.like:
        section, _, way = node.like.rpartition(":")
        other = (read_section(path, section)[0] if section else root).at(way)
        (node.item or node).members = other.members
        return
    for inner in [*node.members, *filter(None, [node.item])]:
        resolve(inner, root, path)


# --- writing ---------------------------------------------------------------------------------------------------------


def given(node, key, lines, test=""):
    """The lines where the condition of a node holds; where not, null, or nothing of what may be absent."""
    test = node.condition or test
    if not test:
        return lines
    other = [] if node.may_be("absent") or node.is_only else [f"else\nls_json_out_null (w, {key});"]
    return [f"if ({test}) {{", *lines, "}", *other]


def value_of(node, var):
    return node.place.replace("#", str(node.index)) or f"{var}->{node.name}"


def write_value(node, key, var):
    value = value_of(node, var)
    form = {"string": TEXT, "boolean": BOOLEAN}.get(node.type.split("/")[0], NUMBER)
    if value.startswith("new "):
        form, value = NEW_TEXT, value.removeprefix("new ")
    is_known = node.may_be("absent") and form == TEXT
    return given(node, key, [form.format(key=key, value=value)], value if is_known else "")


def loop(text, where, write_element):
    """A loop over what a place says, and in it what is made of the name of an element."""
    for pattern, begin in LOOPS:
        found = re.fullmatch(pattern, text)
        if found:
            skip = [f"if (!({where}))\ncontinue;"] if where else []
            return [begin.format(**found.groupdict()), *skip, *write_element(found["var"]), "}"]
    sys.exit(f"no list: {text!r}")


def write_list(node, key):
    lines = loop(node.place, node.where, lambda element: write(node.item, "NULL", element))
    of_list = re.fullmatch(r".+ in (?!new )([^,]+)", node.place)
    test = of_list[1] if of_list and node.may_be("absent") else ""
    return given(node, key, [f"ls_json_out_begin_array (w, {key});", *lines, "ls_json_out_end_array (w);"], test)


def write_member(node, var):
    if node.family:
        return loop(node.family.place, node.family.where, lambda element: write(node, node.name_of_each, element))
    return write(node, f'"{node.name}"', var)


def write_members(node, var):
    return [line for member in node.members for line in write_member(member, var)]


def write_object(node, key, var):
    inner, _, value = node.place.partition(" = ")
    lines = [f"ls_json_out_begin_object (w, {key});", *write_members(node, inner or var), "ls_json_out_end_object (w);"]
    if not inner:
        return given(node, key, lines)
    test = inner if node.may_be("absent") or node.may_be("null") else ""
    return ["{", f"__auto_type {inner} = {value};", *given(node, key, lines, test), "}"]


def write(node, key, var):
    if node.place.startswith("! "):
        return given(node, key, [node.place[2:] + ";"])
    if node.place.startswith("{ "):
        call = [f"ls_json_out_begin_object (w, {key});", node.place[2:-2] + ";", "ls_json_out_end_object (w);"]
        return given(node, key, call)
    if node.item:
        return write_list(node, key)
    return write_object(node, key, var) if node.members else write_value(node, key, var)


# --- comma-separated text --------------------------------------------------------------------------------------------


def alike(column):
    """["a_b = d.b", "a_c = d.c"] of "a_{b c} = d.*"."""
    found = re.match(r"(.*)\{(.*)\}(.*)", column)
    names = found[2].split(" ") if found else []
    each = [(found[1] + name + found[3]).replace("#", str(i)).replace("*", name) for i, name in enumerate(names)]
    return each or [column]


def column_of(row, text):
    """(name, condition, node, what it lies in, form of a cell) of "NAME", "NAME = KEY" or "NAME := PLACE", and
    " when CONDITION"."""
    text, _, when = text.partition(" when ")
    name, is_place, place = text.partition(" := ")
    name, _, key = name.partition(" = ")
    node, form, inner = Node(name), NUMBER_CELL, ""
    if is_place:
        node.set_place(place.removeprefix("text "))
    else:
        node = row.at(key or name.strip('"'))
        above, _, value = row.at(key.rpartition(".")[0]).place.partition(" = ")
        inner = above if value else ""
    if node.type.startswith("string") or place.startswith("text "):
        form = TEXT_CELL
    return name.strip('"'), when, node, inner, QUOTED_CELL if name.startswith('"') else form


def write_cell(node, form, var):
    value = value_of(node, var)
    if value.startswith("new "):
        form, value = NEW_CELL, value.removeprefix("new ")
    line = form.format(value=value)
    return f"if ({node.condition}) {{\n{line}\n}}" if node.condition else line


def write_table(root, line):
    signature, way, columns = line.split(" | ")
    function, arguments = re.fullmatch(r"(\w+) \((.*)\)", signature).groups()
    rows = root.at(way.removesuffix("[]"))
    columns, _, rest = columns.partition("; ! ")  # C that writes more columns: of the first line, of a row
    columns = [column_of(rows.item, one) for column in columns.split("; ") for one in alike(column)]
    rest = rest.split(" ! ")

    def when(condition, line):
        return f"if ({condition}) {{\n{line}\n}}" if condition else line

    def cells(var):
        lines = [f"__auto_type {m.place};" for m in rows.item.members if m.members and " = " in m.place
                 and f" = {m.name}." in line]
        for i, (_, condition, node, inner, form) in enumerate(columns):
            comma = "g_string_append_c (out, ',');\n" if i > 0 else ""
            lines.append(when(condition, comma + write_cell(node, form, inner or var)))
        return [*lines, f"{rest[-1]};", "g_string_append_c (out, '\\n');"]

    head = [when(condition, f'g_string_append (out, "{"," if i > 0 else ""}{name}");')
            for i, (name, condition, *_) in enumerate(columns)]
    print(CELLS.format(function=function, arguments=arguments, head="\n".join(head) + f"\n{rest[0]};",
                       body="\n".join(loop(rows.place, rows.where, cells))), end="")


# --- JSON Schema -----------------------------------------------------------------------------------------------------


def read_sections(path):
    """The lines of rows of each section, and what each is: {name: (meaning, [line])}."""
    sections, rows = {}, []
    for line in lines_of(path):
        if line.startswith("== "):
            name, _, meaning = line[3:].partition(": ")
            sections[name] = meaning, (rows := [])
        elif line and line[0] not in "#@":
            rows.append(line)
    return sections


def describe(root, sections, name):
    """Gives a tree the types and meanings of a section, in the order of its rows."""
    for line in sections[name][1]:
        shown, types, meaning = (line.split(" | ") + [""])[:3]
        keys, types = whole_keys(shown), types.split(" ")
        for i, key in enumerate(keys):
            node = root.make(key)
            node.type, node.meaning = types[i if len(types) > 1 else 0], meaning
            if node.type.startswith("="):
                describe(node, sections, node.type.split("/")[0][1:])


def schema_of_members(node, kind=""):
    named = [m for m in node.members if not m.name.isalpha() or not m.name.isupper()]
    schema = {"properties": {"schema": {"const": kind}} if kind else {}}
    schema["properties"].update((m.name, schema_of(m)) for m in named)
    for member in node.members:
        if member not in named:
            schema["additionalProperties"] = schema_of(member)
    schema["required"] = ["schema"] * bool(kind) + [m.name for m in named if not m.may_be("absent")]
    return schema


def schema_of(node):
    kind = node.type.split("/")[0]
    if node.item or kind == "list":
        kind = "array"
    elif not kind or kind[0] == "=" or node.members:
        kind = "object"
    schema = {"description": node.meaning} if node.meaning else {}
    schema["type"] = [kind, "null"] if node.may_be("null") or kind == "number" else kind
    if node.item:
        schema["items"] = schema_of(node.item)
    elif node.members:
        schema.update(schema_of_members(node))
    return schema


def print_schemas(path):
    """All of them, each behind "== NAME: MEANING"."""
    sections = read_sections(path)
    for name, (meaning, _) in sections.items():
        root, kind = Node(""), f"lockstep.{name}/1"
        describe(root, sections, name)
        document = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:lockstep:{name}:1",
                    "title": kind, "type": "object", **schema_of_members(root, kind)}
        print(f"== {name}: {meaning}\n{json.dumps(document, indent=2, ensure_ascii=False)}")


def main(path, section=""):
    if not section:
        print_schemas(path)
        return
    root, signature, tables = read_section(path, section)
    function, arguments = re.fullmatch(r"((?:static )?\w*) ?\((.*)\)", signature).groups()
    values = re.findall(r"(\w+)(?:,|$)", arguments)
    parts = {"name": section.replace("-", "_"), "section": section, "static": "static " * function.startswith("static "),
             "function": function.removeprefix("static "), "arguments": arguments, "values": ", ".join(values),
             "body": "\n".join(write_members(root, values[0]))}
    if function == "pickle":
        print(KEYS.format(**parts).replace("json_out_uint", "pickle_out_int").replace("json_out", "pickle_out").replace("JsonOut", "PickleOut"), end="")
    else:
        print((KEYS + DOCUMENT * bool(function)).format(**parts), end="")
    for table in tables:
        write_table(root, table)


if __name__ == "__main__":
    main(*sys.argv[1:])
