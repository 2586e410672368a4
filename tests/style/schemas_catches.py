#!/usr/bin/env python3
"""schemas.py must report a result with a key more, a key less, another type or no schema, a file with a wrong key, a
key that nothing has, and another table in the manual.
Usage: schemas_catches.py CHECK ROOT LOCKSTEP"""

import contextlib
import copy
import importlib.util
import io
import json
import os
import sys

path, root, lockstep = sys.argv[1:]
spec = importlib.util.spec_from_file_location("schemas", path)
schemas = importlib.util.module_from_spec(spec)
spec.loader.exec_module(schemas)
os.environ.pop("LS_UPDATE_GOLDEN", None)
check = schemas.Check(schemas.Path(root).resolve(), lockstep)
listed = json.loads(check.ask("list", "jitter", "--json"))
gpu = {"schema": "lockstep.gpu/1", "extends": "h100", "name": "mine", "source": "made up", "sm": 4}


def caught(what, value, expected):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        check.accept(what, value, strict=True)
    if expected not in said.getvalue() or (said.getvalue() and not expected):
        sys.exit(f"{what}: expected {expected!r}; got {said.getvalue()!r}")


def changed(value, way, new):
    """A copy with the member at a way replaced, or with None taken out."""
    whole = copy.deepcopy(value)
    at = whole
    for key in way[:-1]:
        at = at[key]
    if new is None:
        del at[way[-1]]
    else:
        at[way[-1]] = new
    return whole


caught("a list", listed, "")
caught("a key more", changed(listed, ["jitter", 0, "size"], 3), "unknown key 'size'")
caught("a key less", changed(listed, ["jitter", 0, "name"], None), "no 'name'")
caught("another type", changed(listed, ["jitter", 0, "about"], 3), "expected ['string', 'null']; got 3")
caught("another schema", changed(listed, ["schema"], "lockstep.lists/1"), "there is no schema")
caught("a file", gpu, "")
caught("a whole file", changed(gpu, ["extends"], None), "no 'peak_flops'")
caught("a wrong key", changed(gpu, ["sms"], 4), "unknown key 'sms'")
caught("a key for notes", changed(gpu, ["x-sms"], 4), "")
caught("out of range", changed(gpu, ["sm"], 0), "out of range")
caught("ranges", {"schema": "lockstep.ranges/1", "tp": "1..4", "pp": [1, "2..8", "1k"]}, "")
caught("no range", {"schema": "lockstep.ranges/1", "tp": 4}, "expected ['array', 'string']; got 4")
caught("no unit", changed(gpu, ["hbm_size"], "80"), "is no such text")
if not schemas.keys_of(check.schemas["lockstep.list/1"], "list") >= {"list.*", "list.*[].name"}:
    sys.exit("keys of a schema are passed over")
print("caught")
