#!/usr/bin/env python3
"""Compares a layer of a trace of ours with one of a profile of PyTorch: from one flash attention to the next, kernels by name,
grid and block, in order. A product is cuBLAS's, whatever its kernel is called; what the library fills of its own accord is
counted apart, as no call of the program says it. Usage: compare_layer.py FOLDER PROFILE.json.gz; exit 1: they differ."""
import gzip
import json
import subprocess
import sys
from collections import Counter


def read(path):
    with gzip.open(path, "rt") as file:
        return json.load(file)


def of_profile(path):
    events = [e for e in read(path)["traceEvents"] if e.get("cat") in ("kernel", "gpu_memset", "gpu_memcpy")]
    for e in sorted(events, key=lambda e: e["ts"]):
        if e["cat"] != "kernel" or "gemm" in e["name"]:
            yield "product" if e["cat"] == "kernel" else e["cat"]
        else:
            yield e["name"], *e["args"]["grid"], *e["args"]["block"]


def of_trace(folder):
    trace = read(folder + "/rank-0.json.gz")
    names = subprocess.run(["c++filt"], input="\n".join(trace["kernels"]), capture_output=True, text=True, check=True).stdout.split("\n")
    for line in trace["did"]:
        if line[0] == "k":
            yield names[line[3]], *line[4:10]
        elif line[0] in "pfc":
            yield {"p": "product", "f": "gpu_memset", "c": "gpu_memcpy"}[line[0]]


def layer(launches, n=5):
    launches = list(launches)
    places = [i for i, launch in enumerate(launches) if "flash_fwd" in str(launch)]
    return launches[places[n]:places[n + 1]]


known, ours = layer(of_profile(sys.argv[2])), layer(of_trace(sys.argv[1]))
filled = known.count("gpu_memset") - ours.count("gpu_memset")
differ = Counter(known) - Counter(ours), Counter(ours) - Counter(known)
del differ[0]["gpu_memset"]
for words, launches in zip(("in the profile alone", "in the trace alone"), differ):
    for launch, n in launches.items():
        print(f"{words}: {n} x {launch}")
is_equal = [k for k in known if k != "gpu_memset"] == [k for k in ours if k != "gpu_memset"]
print(f"a layer: {len(ours)} launches, {'equal by name, grid and block, in order' if is_equal else 'which differ'}; "
      f"{filled} more fills of cuBLAS in the profile")
sys.exit(not is_equal)
