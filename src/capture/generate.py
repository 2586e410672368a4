"""Makes the C of the stand-ins from the tables of names: generate.py TABLE... > standins.c

A line of a table is one of
    NAME[, NAME]... (ARGUMENTS) [-> TYPE] = STATEMENTS    answered; `result` is returned, 0 at first
    NAME[, NAME]... harmless                              returns 0, and nothing depends on it
    NAME[, NAME]... refused REASON                        ends the process with the reason
    NAME[, NAME]...                                       ends the process: it is not answered
A statement goes on in lines that begin with spaces; "#" begins a comment. The first line with a name holds."""

import re
import sys

HEAD = """/* Made by capture/generate.py. */
#include "capture/standin.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/standin_answers.h"
"""
ANSWERED = """
{type}{name} ({arguments});
{type}
{name} ({arguments})
{{
  {type}result = {zero};
  ls_enter ("{name}");
  {body}
  ls_leave ();
  return result;
}}
"""
HARMLESS = """
int {name} (void);
int
{name} (void)
{{
  return 0;
}}
"""
REFUSED = """
int {name} (void);
int
{name} (void)
{{
  ls_refuse ("{name}", "{reason}");
}}
"""
LINE = re.compile(r"^(?P<names>\w+(?:, \w+)*)\s*(?:\((?P<arguments>[^=]*?)\)(?: -> (?P<type>[^=]+?))?\s*=\s*(?P<body>.*)|(?P<word>harmless|refused)\s*(?P<reason>.*))?$", re.S)


def rows(path):
    text = re.sub(r"^#.*\n", "", open(path, encoding="utf-8").read(), flags=re.M)
    for line in re.sub(r"\n[ \t]+", " ", text).splitlines():
        if line.strip():
            match = LINE.match(line.strip())
            if not match:
                sys.exit(f"{path}: not a line of a table: {line}")
            yield match


def c_of(name, row):
    if row["body"] is not None:
        kind = (row["type"] or "int").strip()
        return ANSWERED.format(name=name, type=kind if kind.endswith("*") else kind + " ", zero="NULL" if kind.endswith("*") else "0",
                               arguments=row["arguments"].strip() or "void", body=row["body"].strip())
    if row["word"] == "harmless":
        return HARMLESS.format(name=name)
    return REFUSED.format(name=name, reason=row["reason"] or "lockstep capture does not answer it")


def main():
    seen = set()
    print(HEAD)
    for path in sys.argv[1:]:
        for row in rows(path):
            for name in row["names"].split(", "):
                if name not in seen:
                    seen.add(name)
                    print(c_of(name, row), end="")


main()
