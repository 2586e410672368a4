"""Pins what tools/goal makes of many kinds of jobs: every send has one receive of the same bytes and tag and the other way
round, what a node requires stands before it, and all ranks come to their end when a receive waits for its send.
Usage: goal.py TOOL LOCKSTEP."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

TOOL, LOCKSTEP = sys.argv[1:]
DENSE = "--model llama3.1-8b:layers=4 --cluster dgx-h100 --global-batch 16 "
MOE = "--model mixtral-8x7b:layers=4 --cluster dgx-h100 --global-batch 16 "
JOBS = [
    DENSE + "--gpus 8 --tp 2", DENSE + "--gpus 16 --tp 8 --sp", DENSE + "--gpus 8 --pp 4", DENSE + "--gpus 8 --pp 2 --vpp 2",
    DENSE + "--gpus 4 --pp 2 --schedule zbv", DENSE + "--gpus 4 --pp 4 --schedule dualpipe", DENSE + "--gpus 16 --dp-kind fsdp2",
    DENSE + "--gpus 8 --dp-kind deepspeed --zero 3", DENSE + "--gpus 4 --dp-kind deepspeed --zero 2 --offload optimizer",
    DENSE + "--gpus 8 --cp 4 --tp 2", MOE + "--gpus 16 --pp 2 --ep 8",
    "--model llama3.1-8b:layers=4 --cluster tpu-v5e --slice 4x4 --dp 16 --global-batch 16", "--trace late-rank --cluster dgx-h100",
    "--trace 1f1b-four-stages --cluster dgx-h100", "--trace two-ranks --cluster dgx-a100-80g --dp 24",
]
MESSAGE = re.compile(r"l(\d+): (send|recv) (\d+)b (to|from) (\d+) tag (\d+) cpu \d+")


def read(text):
    """Nodes (rank, label) with what each waits for; messages by sender, receiver and tag."""
    waits, sends, receives, rank = {}, {}, {}, None
    for line in text.splitlines()[2:]:
        begun = re.fullmatch(r"rank (\d+) {", line)
        message = MESSAGE.fullmatch(line)
        required = re.fullmatch(r"l(\d+) requires l(\d+)", line)
        if begun:
            rank = int(begun[1])
        elif required:
            assert int(required[2]) < int(required[1]), line
            waits[rank, int(required[1])].append((rank, int(required[2])))
        elif line not in ("", "}"):
            assert message or re.fullmatch(r"l(\d+): calc \d+ cpu \d+", line), line
            waits[rank, int(line[1:line.index(":")])] = []
        if message:
            label, way, size, _, peer, tag = message.groups()
            key = (rank, int(peer), tag) if way == "send" else (int(peer), rank, tag)
            side = sends if way == "send" else receives
            assert key not in side and int(size) > 0 and int(tag) < 2**32, line
            side[key] = (rank, int(label)), size
    return waits, sends, receives


def check(text):
    waits, sends, receives = read(text)
    assert {key: size for key, (_, size) in sends.items()} == {key: size for key, (_, size) in receives.items()}
    for key, (node, _) in receives.items():
        waits[node].append(sends[key][0])
    left, followers = {node: len(others) for node, others in waits.items()}, {}
    for node, others in waits.items():
        for other in others:
            followers.setdefault(other, []).append(node)
    ready = [node for node, n in left.items() if n == 0]
    for node in ready:
        for other in followers.get(node, []):
            left[other] -= 1
            if left[other] == 0:
                ready.append(other)
    assert len(ready) == len(waits) > 0, f"{len(ready)} of {len(waits)} nodes come to their end"


def made(job, folder):
    subprocess.run([LOCKSTEP, "trace", "export", "--format", "chakra", *job.split(), "-o", folder], check=True, stderr=subprocess.DEVNULL)
    return subprocess.run([sys.executable, TOOL, folder], check=True, capture_output=True, text=True).stdout


with tempfile.TemporaryDirectory() as place:
    for i, job in enumerate(JOBS):
        check(made(job, str(Path(place) / str(i))))
