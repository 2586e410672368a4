"""Pins that the tables of `lockstep collective --tune` are as NCCL's example tuner plug-in reads them: its rules for a line, and that
each call of the jobs meets one row, from no bytes to more than any call has.
With "plugin", the plug-in itself is asked about each row; LS_TUNER_PLUGIN names one that was built (NVIDIA/nccl,
plugins/tuner/example, or ROCm/rccl, ext-tuner/example); without it the test is skipped.
Usage: table.py LOCKSTEP [plugin]"""

import ctypes
import os
import subprocess
import sys
import tempfile

OPS = ["broadcast", "reduce", "allgather", "reducescatter", "allreduce"]  # by number, as the plug-in's interface has them
ALGORITHMS = ["tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"]
PROTOCOLS = ["ll", "ll128", "simple"]
JOBS = [
    "--model llama3.1-8b:layers=4 --cluster dgx-h100 --gpus 32 --tp 8 --sp --zero 1 --global-batch 32",
    "--model llama3.1-8b:layers=4 --cluster dgx-b200 --gpus 16 --dp-kind fsdp2 --global-batch 16",
    "--model llama3.1-8b:layers=4 --cluster azure-nd-mi300x-v5 --gpus 32 --tp 2 --global-batch 32",
    "--trace late-rank --cluster dgx-a100-80g",
]


def problems_of(text):
    """What the plug-in would read otherwise than it is meant."""
    rows, problems = [], []
    for number, line in enumerate(text.split("\n")[:-1], 1):
        if len(line) > 254:
            problems.append(f"line {number}: longer than its buffer")
        if line.startswith("#"):
            continue
        fields = line.split(",")
        if len(fields) != 10 or any(f != f.strip() or not f for f in fields):
            problems.append(f"line {number}: expected 10 fields without blanks")
            continue
        op, first, last, algorithm, protocol, *counts = fields
        if op not in OPS or algorithm not in ALGORITHMS or protocol not in PROTOCOLS:
            problems.append(f"line {number}: a name that it does not know")
        if int(counts[0]) < 1 or int(counts[1]) < 1 or int(counts[2]) < 2:
            problems.append(f"line {number}: channels, nodes and ranks are to be given, or all calls would be meant")
        rows.append((op, int(first), int(last), algorithm, protocol, *map(int, counts)))
    if not text.endswith("\n") or not rows:
        problems.append("no rows, or the last line does not end")
    groups = {}
    for row in rows:
        groups.setdefault((row[0], *row[6:8]), []).append(row[1:3])
    for name, ranges in groups.items():
        ends = [-1] + [last for _, last in ranges]
        if any(first != ends[i] + 1 or last < first for i, (first, last) in enumerate(ranges)) or ends[-1] < 1 << 46:
            problems.append(f"{name}: ranges {ranges} have holes or lie on each other")
    return rows, problems


INIT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint64, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p,
                        ctypes.c_void_p, ctypes.c_void_p)
ASK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_int,
                       ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_int))
END = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class Plugin(ctypes.Structure):
    """Version 5 of the interface: NCCL 2.28 and later."""
    _fields_ = [("name", ctypes.c_char_p), ("init", INIT), ("ask", ASK), ("end", END)]


def choice_of(plugin, row, n_bytes):
    """What the plug-in prefers for a call of a row: algorithm, protocol, channels."""
    context, channels = ctypes.c_void_p(), ctypes.c_int(0)
    costs = ((ctypes.c_float * len(PROTOCOLS)) * len(ALGORITHMS))(*[(5.0,) * len(PROTOCOLS)] * len(ALGORITHMS))
    assert plugin.init(ctypes.byref(context), 0, row[7], row[6], None, None, None) == 0
    assert plugin.ask(context, OPS.index(row[0]), n_bytes, 1, costs, len(ALGORITHMS), len(PROTOCOLS), 0, ctypes.byref(channels)) == 0
    plugin.end(context)
    least = [(a, p) for a in range(len(ALGORITHMS)) for p in range(len(PROTOCOLS)) if costs[a][p] == 0]
    return [(ALGORITHMS[a], PROTOCOLS[p], channels.value) for a, p in least]


def main():
    path = os.environ.get("LS_TUNER_PLUGIN")
    if sys.argv[2:] == ["plugin"] and not path:
        print("LS_TUNER_PLUGIN names no tuner plug-in: build NCCL's plugins/tuner/example to ask it")
        sys.exit(77)
    asked, wrong = 0, []
    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "tuner.csv")
        os.environ["NCCL_TUNER_CONFIG_FILE"] = table
        for job in JOBS:
            subprocess.run([sys.argv[1], "collective", "--tune", *job.split(), "-o", table], check=True, capture_output=True)
            with open(table, encoding="ascii", newline="") as file:
                rows, problems = problems_of(file.read())
            wrong += [f"{job}: {p}" for p in problems]
            if sys.argv[2:] == ["plugin"]:
                plugin = Plugin.in_dll(ctypes.CDLL(path), "ncclTunerPlugin_v5")
                for row in rows:
                    for n_bytes in (row[1], (row[1] + row[2]) // 2, row[2]):
                        asked += 1
                        if choice_of(plugin, row, n_bytes) != [tuple(row[3:6])]:
                            wrong.append(f"{job}: {row}: of {n_bytes} bytes it chooses {choice_of(plugin, row, n_bytes)}")
            else:
                asked += len(rows)
    print("\n".join(wrong))
    print(f"{len(JOBS)} tables, {asked} {'answers' if sys.argv[2:] else 'rows'}, {len(wrong)} wrong")
    sys.exit(bool(wrong) or asked < 10)


main()
