#!/usr/bin/env python3
"""The schemas of `lockstep schema` are true:

- every file that is shipped, and every JSON in a transcript of tests/golden, is as the schema says that it names;
- what tests/reject has for being shaped wrongly is refused: an unknown or missing key, another type, another word;
- of what commands print, written has no key that its schema lacks, and the schema none that nothing has;
- the lists of keys in src/manual/formats are those of src/show/schema/result_keys.txt.

Where python3-jsonschema is found it must agree on all of it with the small validator here.
Usage: schemas.py ROOT LOCKSTEP. LS_UPDATE_GOLDEN=1 writes the lists of the manual."""

import collections
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import jsonschema
except ImportError:
    jsonschema = None

# Keys that must be there because of others, and objects that are read by hand: said by code, not by a table.
SAID_BY_CODE = {
    "dragonfly-without-groups.json", "fabric-missing.json", "fat-tree-without-pods.json",
    "fault-key-misspelt.json", "gpu-is-an-object.json", "gpus-missing.json",
    "list-without-switches.json", "nic-count-missing.json", "torus-nic-missing.json",
    "experts-without-ffn.json", "shared-without-experts.json", "values-without-latent.json",
    "recompute-stages-count.json", "attention-without-flops.json", "bytes-missing.json", "model-without-batch.json",
    "compressed-heavy-without-ratio.json", "compressed-letters-alone.json", "compressed-without-groups.json",
    "compressed-without-window.json"}

# Written as forward is, and no trace of the tests has one; what only a slow machine meets.
UNMET = ("lockstep.calibrate/1.layer.backward.parts[].", "lockstep.sweep/1.none.advice_is_cut")

ANNOTATIONS = {"$schema", "$id", "title", "description"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}

# --- a validator of what our schemas use -----------------------------------------------------------------------------


def is_type(value, name):
    if name in ("number", "integer"):
        return (isinstance(value, (int, float)) and not isinstance(value, bool)
                and (name == "number" or float(value).is_integer()))
    return isinstance(value, TYPES[name])


def faults(schema, value, way, strict, met):
    """What is wrong with a value, as texts. strict: a key that the schema does not name is a fault even where it
    allows them. met: takes the ways of all keys that the schema names and the value has."""
    unknown = set(schema) - ANNOTATIONS - {
        "type", "const", "enum", "pattern", "minimum", "maximum", "exclusiveMinimum", "minLength", "minItems",
        "maxItems", "items", "properties", "patternProperties", "additionalProperties", "required", "minProperties",
        "if", "then", "else"}
    assert not unknown, f"{way}: keywords {unknown}"
    if "if" in schema:
        chosen = schema["else" if faults(schema["if"], value, way, False, set()) else "then"]
        return faults(chosen, value, way, strict, met)
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(is_type(value, t) for t in types):
        return [f"{way}: expected {types}; got {value!r:.60}"]
    found = []
    if "const" in schema and value != schema["const"] or "enum" in schema and value not in schema["enum"]:
        found.append(f"{way}: {value!r:.60} is none of the values")
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0) or not re.search(schema.get("pattern", ""), value):
            found.append(f"{way}: {value!r:.60} is no such text")
    elif is_type(value, "number"):
        low, high, above = (schema.get(k) for k in ("minimum", "maximum", "exclusiveMinimum"))
        if low is not None and value < low or high is not None and value > high or above is not None and value <= above:
            found.append(f"{way}: {value!r} is out of range")
    elif isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            found.append(f"{way}: {len(value)} items")
        for item in value if "items" in schema else ():
            found += faults(schema["items"], item, way + "[]", strict, met)
    elif isinstance(value, dict):
        found += faults_of_object(schema, value, way, strict, met)
    return found


def faults_of_object(schema, value, way, strict, met):
    named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    others = schema.get("additionalProperties", not (strict and named))
    found = [f"{way}: no {key!r}" for key in schema.get("required", []) if key not in value]
    if len(value) < schema.get("minProperties", 0):
        found.append(f"{way}: too few keys")
    for key, member in value.items():
        of_pattern = next((s for p, s in patterns.items() if re.search(p, key)), None)
        inner = named.get(key, of_pattern if of_pattern is not None else others)
        place = f"{way}.{key}" if key in named else f"{way}.*"
        met.add(place)
        if inner is False:
            found.append(f"{way}: unknown key {key!r}")
        elif isinstance(inner, dict):
            found += faults(inner, member, place, strict, met)
    return found


def keys_of(schema, way):
    """The ways of all keys that a schema of what is written names."""
    found = set()
    for key, inner in schema.get("properties", {}).items():
        found |= {f"{way}.{key}"} | keys_of(inner, f"{way}.{key}")
    if isinstance(schema.get("additionalProperties"), dict):
        found |= {way + ".*"} | keys_of(schema["additionalProperties"], way + ".*")
    return found | (keys_of(schema["items"], way + "[]") if "items" in schema else set())


# --- what is held against them ---------------------------------------------------------------------------------------


class Check:
    def __init__(self, root, lockstep):
        self.root, self.lockstep, self.n_wrong, self.met = root, lockstep, 0, set()
        listed = self.ask("schema").split("\nwritten\n")
        self.read, self.written = (re.findall(r"^  ([a-z-]+) ", part, re.M) for part in listed)
        self.schemas = {f"lockstep.{kind}/1": json.loads(self.ask("schema", kind)) for kind in self.read + self.written}
        self.quantities = set(re.findall(r'"pattern": "(.*?)"[,}]', json.dumps(list(self.schemas.values()))))
        self.quantities = {json.loads(f'"{p}"') for p in self.quantities}
        self.others = {}
        for name, schema in self.schemas.items() if jsonschema else ():
            jsonschema.Draft202012Validator.check_schema(schema)
            self.others[name] = jsonschema.Draft202012Validator(schema)

    def ask(self, *arguments):
        return subprocess.run([self.lockstep, *arguments], check=True, capture_output=True, text=True).stdout

    def wrong(self, text):
        print(text)
        self.n_wrong += 1

    def faults(self, value, strict=False):
        name = value.get("schema")
        if name not in self.schemas:
            return [f"there is no schema {name!r}"]
        found = faults(self.schemas[name], value, name, False, self.met)
        if name in self.others and self.others[name].is_valid(value) == bool(found):
            self.wrong(f"jsonschema does not agree about {value!r:.200}: {found}")
        return found or (faults(self.schemas[name], value, name, True, set()) if strict else [])

    def accept(self, what, value, strict=False):
        for fault in self.faults(value, strict):
            self.wrong(f"{what}: {fault}")

    def members(self, value):
        for name, member in value.get("members", {}).items() if value["schema"] == "lockstep.set/1" else ():
            yield {"schema": value["of"], "name": name, **member}

    def files(self):
        """Shipped, or of the made-up machine."""
        n = 0
        for folder in ("models", "topologies", "strategies", "traces", "tests/golden/data"):
            for path in sorted((self.root / folder).rglob("*.json")):
                value = load(path.read_text(encoding="utf-8", errors="replace"))
                if not is_ours(value):
                    continue
                for one in [value, *self.members(value)]:
                    self.accept(f"{path}#{one.get('name', '')}", one)
                    n += 1
        return n

    def transcripts(self):
        """JSON of ours that is printed whole."""
        n = 0
        for path in sorted((self.root / "tests" / "golden").glob("*.txt")):
            for case, text in outputs_of(path):
                value = load(text)
                if is_ours(value):
                    self.accept(f"{path.name}, {case}", value, strict=True)
                    n += 1
        return n

    def rejected(self):
        """Documents of tests/reject whose shape is wrong."""
        shape = re.compile(r"error: [^ ]*: (unknown key|missing key|expected (a (list|string|number(?! format)|whole number|"
                           r"(size|time|rate|FLOP rate) with)\b.*; got (?P<got>.*)|an object|true or false|one of \"(?!lockstep)))")
        n = 0
        for path in sorted((self.root / "tests" / "reject").glob("*.txt")):
            for name, document, said in rejects_of(path):
                value = load(document)
                wrong = shape.search(said)
                if not (isinstance(value, dict) and value.get("schema") in self.schemas) or not wrong:
                    continue
                is_partial = "extends" in value and wrong[1] == "missing key"  # what it extends lacks it too
                if self.is_quantity(wrong["got"]) or is_partial:
                    continue
                n += 1
                if bool(self.faults(value)) == (name in SAID_BY_CODE):
                    self.wrong(f"{path.name}, {name}: the schema takes it; the program says\n{said}")
        return n

    def is_quantity(self, got):
        """Whether it is a quantity with a unit, so only its range can be wrong."""
        return got is not None and any(re.search(p, got.strip('"')) for p in self.quantities)

    def outputs(self):
        """What commands print, by the runs of json_outputs.sh; all keys of what is written are met."""
        with tempfile.TemporaryDirectory() as folder:
            script = Path(__file__).with_name("json_outputs.sh").resolve()
            subprocess.run(["bash", script, self.root, Path(self.lockstep).resolve()], check=True, cwd=folder)
            paths = sorted(Path(folder).glob("*.json"))
            for path in paths:
                self.accept(path.name, json.loads(path.read_text(encoding="utf-8")), strict=True)
        for kind in self.written:
            name = f"lockstep.{kind}/1"
            for key in sorted(keys_of(self.schemas[name], name) - self.met):
                if not key.startswith(UNMET):
                    self.wrong(f"{key}: nothing has it")
        return len(paths)

    def manual(self):
        """Lists between "<!-- json: KIND -->" and "<!-- /json -->"; the schema alone explains the data of pages."""
        lists, n = lists_of(self.root / "src/show/schema/result_keys.txt"), 0
        for page in sorted((self.root / "src/manual/formats").glob("*.md")):
            text = page.read_text(encoding="utf-8")

            def keys(match):
                nonlocal n
                n += 1
                return match[1] + lists.pop(match[2]) + match[4]

            true = re.sub(r"(<!-- json: ([a-z-]+) -->\n)(.*?)(<!-- /json -->)", keys, text, flags=re.S)
            if true != text and os.environ.get("LS_UPDATE_GOLDEN") == "1":
                page.write_text(true, encoding="utf-8")
            elif true != text:
                self.wrong(f"{page}: another list of keys; LS_UPDATE_GOLDEN=1 writes it")
        for kind in lists:
            if not kind.startswith("page"):
                self.wrong(f"no page of the manual has <!-- json: {kind} -->")
        return n


def is_ours(value):
    name = value.get("schema") if isinstance(value, dict) else None
    return str(name).startswith("lockstep.")


def load(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


def outputs_of(path):
    """(case, what one of its commands printed) of a transcript."""
    case, lines = None, []
    for line in [*path.read_text(encoding="utf-8", errors="replace").split("\n"), "=== "]:
        if line[:2] in ("$ ", "==") and lines:
            yield case, "\n".join(lines)
        if line.startswith("=== "):
            case = line[4:]
        lines = [] if line[:2] in ("$ ", "==") else lines + [line[2:]] if line.startswith("  ") else lines


def rejects_of(path):
    """(NAME.EXT, document, what is said of it) of a file of tests/reject."""
    for case in re.split(r"^=== ", path.read_text(encoding="utf-8", errors="replace"), flags=re.M)[1:]:
        head, _, rest = case.partition("\n")
        document, _, said = rest.partition("\n=>\n")
        yield head.partition("/")[2], document, said


class Row:
    """A row of result_keys.txt: keys, the whole way of each, types, and what they mean."""

    def __init__(self, line):
        keys, types, self.meaning = (line.removesuffix(" |").split(" | ") + [""])[:3]
        self.text, self.keys, self.types = (keys, types, self.meaning), keys.split(" "), types.split(" ")
        self.types *= len(self.keys) if len(self.types) == 1 else 1
        self.parent = self.keys[0].rpartition(".")[0]
        self.ways = [f"{self.parent}{key}" if key[0] == "." else key for key in self.keys]
        self.leaves = [way.removeprefix(f"{self.parent}.") for way in self.ways]

    def as_of(self):
        """ROOT of a row that means "as of `ROOT`"."""
        root = re.fullmatch(r"as of `([^` ]*)`", self.meaning)
        return root and root[1]


def sections_of(path):
    """(section, its rows) of result_keys.txt."""
    kind, rows = None, []
    for line in [*path.read_text(encoding="utf-8").split("\n"), "== :"]:
        if line.startswith("== "):
            if kind:
                yield kind, rows
            kind, rows = line[3:].split(":")[0], []
        elif line and line[0] not in "#@ ":
            rows.append(Row(line))


def lists_of(path):
    """The list of keys of each section of result_keys.txt, as Markdown. What run, or a row before, has too is only named."""
    lists, of_run, objects_of_run = {}, {}, {}
    for kind, rows in sections_of(path):
        again = [f"`{key}`" for row in rows if row.meaning and row.text in of_run for key in row.keys]
        rows = [row for row in rows if not (row.meaning and row.text in of_run)]
        named = [way for row in rows if not row.meaning and "/absent" in row.types[0] for way in row.ways]
        lists[kind] = f"- as of `run`: {', '.join(again)}\n" * bool(again)
        lists[kind] += f"- may be absent: {', '.join(f'`{way}`' for way in named)}\n" * bool(named)
        shown_rows = [row for row in rows if row.meaning or row.ways[0] not in named and row.text[1] not in ("object", "list")]
        lists[kind] += "".join(items_of(shown_rows, objects_of_run))
        if kind == "run":
            of_run, objects_of_run = {row.text for row in rows}, {keys: f"`{name}` of `run`" for keys, name in objects_in(rows).items()}
    return lists


def objects_in(rows):
    """{keys that are no objects, with their types: the first object that has just these} of objects of three or more."""
    members = {}
    for row in rows:
        members.setdefault(row.parent, set()).update(zip(row.leaves, row.types))
    objects = {}
    for parent, keys in members.items():
        if parent and len(keys) > 2:
            objects.setdefault(frozenset(keys), parent)
    return objects


def items_of(rows, objects_of_run):
    objects, types = objects_in(rows), {way: kind for row in rows for way, kind in zip(row.ways, row.types)}
    n_keys, done = collections.Counter(row.parent for row in rows for _ in row.keys), set()
    for row in rows:
        root = row.as_of()
        if root:
            parent = parent_as_of(row, root, types)
            if (parent, root) not in done:
                done.add((parent, root))
                alike = [other for other in rows if other.as_of() == root and parent_as_of(other, root, types) == parent]
                ways = dict.fromkeys(way.removeprefix(f"{parent}.").split(".")[0].removesuffix("[]") for other in alike for way in other.ways)
                yield f"- as of `{root}`: `{parent}.{'`, `.'.join(ways)}`\n"
            continue
        keys, first = frozenset(zip(row.leaves, row.types)), None
        if n_keys[row.parent] == len(row.keys):
            first = f"`{objects[keys]}`" if objects.get(keys, row.parent) != row.parent else objects_of_run.get(keys)
        shown_keys = f"`{row.parent}` with the keys of {first}" if first else typed(row.keys, row.types)
        yield f"- {shown_keys}{': ' * bool(row.meaning)}{row.meaning}\n"


def parent_as_of(row, root, types):
    """The parent of keys that are as those of ROOT, with the same types."""
    parts = row.ways[0].split(".")
    for n in range(1, len(parts)):
        parent = ".".join(parts[:n])
        if all(types.get(root + way.removeprefix(parent)) == kind for way, kind in zip(row.ways, row.types)):
            return parent
    raise ValueError(f"{row.keys}: not as of {root}")


def typed(keys, types):
    """Keys with the type of each, said once of neighbours that share it, not of numbers: `a`, `.b`; `.c` (string)"""
    runs = [(kind, [f"`{k}`" for k, _ in run]) for kind, run in itertools.groupby(zip(keys, types), key=lambda pair: shown(pair[1]))]
    return "; ".join(f"{', '.join(run)}{kind}" for kind, run in runs)


def shown(kind):
    kind = re.sub(r"^(number|integer)/?", "", kind)
    return f" ({kind})" if kind else ""


def main(root, lockstep):
    check = Check(Path(root).resolve(), lockstep)
    for name in ("files", "transcripts", "rejected", "outputs", "manual"):
        n = getattr(check, name)()
        print(f"{name}: {n}")
        check.n_wrong += n == 0
    return check.n_wrong > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
