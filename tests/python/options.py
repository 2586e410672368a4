"""Pins that no option of any command is ignored in silence: each changes what is printed or written, or is refused, or a note says
that it makes no difference; both with what it goes with and alone. The options are those that the commands list, so a new
one without a row fails. Knobs of a job are tried in every command that takes a job.
Usage: options.py ROOT LOCKSTEP, with LOCKSTEP_LIBRARY and PYTHONPATH in the environment. LS_CASE=COMMAND: that one alone"""

import concurrent.futures
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from lockstep import _binding

ROOT, PROGRAM = Path(sys.argv[1]).resolve(), os.path.realpath(sys.argv[2])
DATA = ROOT / "tests/golden/data"
WORK = tempfile.TemporaryDirectory()
COMMANDS = _binding.the_library().commands

JOB = "--model tiny --cluster pair --gpus 4 --tp 2 --global-batch 16"
SMALL = "--model tiny --cluster pair --gpus 4 --global-batch 16 --tp 1,2 --pp 1 --micro-batch 1 --recompute none"
COLLECTIVE = "--cluster pair --op all-reduce --gpus 4 --min 1KiB --max 64KiB --factor 4"
PROFILE = "--pytorch-trace data/rank0.json.gz --model tiny:layers=4 --cluster pair --gpus 4 --tp 2 --dp 2 --zero 1 --micro-batch 1 --global-batch 4"

# What only says how fast, how much at a time, or in which form, and changes no number.
SAME = {"threads", "mpi", "fold", "coarsen", "max-memory", "debug"}

# The option with its value; behind "|" what it goes with.
ROWS = {
    "run": (JOB, """
        --json; --chrome-trace t.json; --chrome-trace-all | --chrome-trace t.json --gpus 32 --global-batch 64; --csv s.csv; --links l.csv
        --timeline t.svg; --timeline-rows ops | --timeline t.svg; --timeline-arrows | --timeline t.svg; --timeline-ranks 1 | --timeline t.svg
        --timeline-window 0us..100us | --timeline t.svg; --timeline-width 500 | --timeline t.svg; --memory-chart m.svg; --critical-path
        --sensitivity; --faults each:gpu; --ecmp-seeds 2; --what-if; --jitter made-up; --jitter-seed 3 | --jitter made-up; --report r.html
        --format json; --emit megatron; --residuals shipped/topologies/calib/residuals.json; --show-placement; --require-fit | --model tiny:layers=90"""),
    "sweep": (SMALL, """
        --ranges ranges.json; --prune off | --pp 1,2 --micro-batch 1,2,4 --list l.csv; --top 1; --objective goodput | --reliability many
        --loss 2.5 | --objective time-to-loss; --tokens 1000000000 | --objective time-to-loss; --scaling-law besiroglu-2024 | --objective time-to-loss --loss 2.5
        --critical-batch 1000000 | --objective time-to-loss --tokens 1000000000; --reliability many | --objective goodput; --time-limit 1us
        --pareto; --gpu-hour 2; --gpu-watts 500; --pue 1.5; --list l.csv; --journal j; --heat-map m.gp; --heat-axes pp,tp | --heat-map m.gp
        --heat-figure mfu | --heat-map m.gp; --pareto-chart p.gp; --scaling-chart s.gp | --gpus 2,4; --emit megatron | --for megatron; --timing; --report r.html
        --format json; --json; --csv"""),
    "collective": (COLLECTIVE, """
        --cluster eight; --nodes 2 | --gpus 2; --slice 2x2 | --cluster data/slices.json; --gpus 2; --nccl made-up; --op broadcast; --algorithm tree; --max-ctas 1
        --protocol simple; --network step; --min 4KiB; --max 1KiB; --factor 2; --messages; --compare data/collectives.csv; --trust A | --compare data/collectives.csv
        --report r.html; --format json; --json; --csv; --plot p.gp"""),
    "kernel": ("--gpu flat --gemm 512,512,512", """
        --gpu none; --gpu-calibration flat; --gemm 256,256,256; --batch 4; --layout nt; --attention 1,512,8,8,64; --causal 0 | --attention 1,512,8,8,64
        --backward | --attention 1,512,8,8,64; --op copy; --shape 4,4 | --op softmax; --bytes 1MiB | --op copy; --access strided | --op copy; --dtype fp32; --sustained
        --from data/gemm.csv; --measured data/gemm.csv; --holdout | --from data/gemm.csv; --min-m 300 | --from data/gemm.csv; --min-seq 100 | --from data/gemm.csv
        --min-flops 1000000000 | --from data/gemm.csv; --min-bytes 1GiB | --from data/gemm.csv; --list-shapes; --json"""),
}


def words(text):
    return shlex.split(text)


class Output:
    """What a command printed and wrote, as one value."""

    def __init__(self, line):
        here = Path(tempfile.mkdtemp(dir=WORK.name))
        (here / "data").symlink_to(DATA)
        (here / "shipped").symlink_to(ROOT)
        (here / "ranges.json").write_text('{"schema": "lockstep.ranges/1", "name": "ranges", "source": "made up", "tp": [1]}')
        done = subprocess.run([PROGRAM, *line], cwd=here, capture_output=True, env={**os.environ, "LS_DATA_DIR": str(DATA)}, timeout=300)
        self.code, self.err = done.returncode, done.stderr.decode(errors="replace")
        written = {p.name: p.read_bytes() for p in sorted(here.iterdir()) if p.is_file() and p.name != "ranges.json"}
        self.all = (done.returncode, done.stdout, done.stderr, written)


KNOWN = {}


def output(line):
    key = tuple(line)
    if key not in KNOWN:
        KNOWN[key] = Output(line)
    return KNOWN[key]


def rows_of(text):
    for line in text.strip().splitlines():
        for row in line.split(";"):
            option, _, beside = row.partition("|")
            if option.strip():
                yield words(option), words(beside)


def try_row(command, base, option, beside):
    """What is wrong with it; None: nothing."""
    for extra in [beside, []] if beside else [[]]:
        without, with_it = output([command, *base, *extra]), output([command, *base, *extra, *option])
        if with_it.code < 0 or "Sanitizer" in with_it.err:
            return f"{shlex.join([command, *base, *extra, *option])}: crash"
        if extra == beside and with_it.code == 2:
            return f"{shlex.join([command, *base, *extra, *option])}: {with_it.err.splitlines()[0]}"
        if without.all == with_it.all:
            return f"{shlex.join([command, *base, *extra, *option])}: {option[0]} changes nothing, and nothing says so"
    return None


def main():
    problems, jobs = [], []
    only = os.environ.get("LS_CASE")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, table in COMMANDS.items():
            if (only and name != only) or name not in ROWS:
                continue
            base, text = ROWS[name]
            have = set()
            for option, beside in rows_of(text):
                have.add(option[0].removeprefix("--"))
                jobs.append(pool.submit(try_row, name, words(base), option, beside))
            own = {o.key.decode() for o in table.options.values() if not o.topic and not o.is_positional} - SAME
            problems += [f"{name}: no row of --{key}" for key in sorted(own - have)]
            problems += [f"{name}: no option --{key}" for key in sorted(have - own)]
    problems += [job.result() for job in jobs if job.result()]
    print("\n".join(problems))
    print(f"{len(jobs)} options, {len(problems)} wrong")
    sys.exit(bool(problems))


main()
