#!/usr/bin/env python3
"""src/README.md, the map: below each "### ROOM/" stands a table of the room's files, printed from their first sentences, so
it names exactly the files under src/ (of the manual, which is no room, index.md does). Every other name with a slash, such as
`core/flow.h`, exists, too, and no two rooms or folders have files of one name, but for x.[ch] and public headers.

Usage: map.py ROOT; prints what differs and fails if something does. LS_UPDATE_GOLDEN=1 prints the tables anew."""

import collections
import difflib
import os
import re
import sys
from pathlib import Path

ROOT = Path(sys.argv[1])
SRC, MAP = ROOT / "src", ROOT / "src/README.md"
# How the first comment of a file begins and ends, by the end of the file's name.
COMMENTS = {".c": ("/*", "*/"), ".h": ("/*", "*/"), ".js": ("/*", "*/"), ".py": ('"""', '"""'), ".xml": ("<!--", "-->")}
LINE_MARKS = {".txt": "#", ".md": "#", ".proto": "//"}
# What has no comments, as each page would have them.
FRAMES = {".html": "the frame of a page", ".css": "the look of a page"}


def first_comment(path):
    """The lines of the comment that a file begins with, without its marks; none where there is no such comment."""
    text = re.sub(r"\A(#!.*|<\?xml.*)\n", "", path.read_text())
    if path.suffix in FRAMES:
        return [FRAMES[path.suffix]]
    if path.suffix in LINE_MARKS:
        mark = LINE_MARKS[path.suffix]
        return [line[len(mark):].strip() for line in re.match(rf"(?:{mark}.*\n)*", text)[0].splitlines()]
    begin, end = COMMENTS[path.suffix]
    if not text.startswith(begin):
        return []
    return [line.strip(" *") for line in text[len(begin):text.index(end, len(begin))].strip().splitlines()]


def concept(path):
    """The first sentence of a file, without the file's name."""
    paragraph = " ".join(first_comment(path)).strip()
    for i, line in enumerate(first_comment(path)):
        if not line:
            paragraph = " ".join(first_comment(path)[:i])
            break
    paragraph = re.sub(r"^\S+ — ", "", paragraph)
    return re.sub(r"[.:]$", "", re.sub(r"(?<!et al)(?<!etc)[.] (?=[A-Z`]).*$", "", paragraph)).replace("|", "\\|")


def rooms(lines):
    """Names of rooms, each with the number of its heading's line."""
    return [(line[4:-1], i) for i, line in enumerate(lines) if re.match(r"### .*/$", line)]


def table(room):
    """The rows of a room's table: a pair x.[ch] is one, with what its header says."""
    files = sorted(path for path in (SRC / room).rglob("*") if path.is_file() and path.name != "meson.build")
    rows = []
    for path in files:
        name = str(path.relative_to(SRC / room))
        if path.suffix == ".c" and path.with_suffix(".h") in files:
            continue
        if path.suffix == ".h" and path.with_suffix(".c") in files:
            name = name[:-1] + "[ch]"
        rows.append((name, concept(path)))
    return rows


def printed(lines):
    """The map with its tables as they should be."""
    heads = dict((i, room) for room, i in rooms(lines))
    made, room = [], None
    for i, line in enumerate(lines):
        if line.startswith("#"):
            room = heads.get(i)
        if room and line.startswith("| File |"):
            made += [line, "|---|---|"] + [f"| `{name}` | {text} |" for name, text in table(room)]
        elif not (room and line.startswith("|")):
            made.append(line)
    return made


def faults(lines):
    """What is wrong with the files and with what the map says besides the tables."""
    named = sorted(room for room, _ in rooms(lines))
    for path in sorted(SRC.rglob("*")):
        place = path.relative_to(SRC)
        if not path.is_file() or path.name in ("meson.build", "README.md") or place.parts[0] == "manual":
            continue
        if not any(str(place).startswith(room + "/") for room in named):
            yield f"src/README.md: no room has {place}"
    for room in named:
        for name, text in table(room):
            if not text:
                yield f"src/{room}/{name}: does not begin with a comment that says what it is"
    for name in re.findall(r"`([^` ]+/[a-z0-9_]*\.(?:\[ch\]|c|h|sh|py|json))`", "\n".join(lines)):
        for each in [name.replace("[ch]", "h"), name.replace("[ch]", "c")]:
            if not ((SRC / each).exists() or (ROOT / each).exists() or list(SRC.glob("*/" + each))):
                yield f"src/README.md: there is no {each}"
    places = collections.defaultdict(set)
    for path in SRC.rglob("*.[ch]"):
        if "include" not in path.parts and "manual" not in path.relative_to(SRC).parts:
            places[path.stem].add(str(path.parent.relative_to(SRC)))
    for name, folders in sorted(places.items()):
        if len(folders) > 1:
            yield f"src: {name} is a file of {', '.join(sorted(folders))}"


def main():
    """Compares, or prints anew."""
    lines = MAP.read_text().splitlines()
    should = printed(lines)
    if os.environ.get("LS_UPDATE_GOLDEN"):
        MAP.write_text("\n".join(should) + "\n")
    differences = [] if os.environ.get("LS_UPDATE_GOLDEN") else \
        list(difflib.unified_diff(lines, should, "src/README.md", "first sentences of files", lineterm="", n=0))
    wrong = differences + list(faults(lines))
    print("\n".join(wrong + [f"{sum(len(table(room)) for room, _ in rooms(lines))} rows on the map"]))
    sys.exit(bool(wrong))


main()
