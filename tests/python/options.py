"""Pins that no option of any command is ignored in silence: each changes what is printed or written, or is refused, or a note says
that it makes no difference; both with what it goes with and alone. The options are those that the commands list, so a new
one without a row fails. Knobs of a job are tried in every command that takes a job; and each value of each of them on jobs of which
parts do not heed it (one node, a pipeline, TPUs, a host that is fast enough, a trace), where a line of the answer that only
repeats the option is no change: what a number of the answer does not follow from, a note has to name.
Usage: options.py ROOT LOCKSTEP, with LOCKSTEP_LIBRARY and PYTHONPATH in the environment. LS_CASE=COMMAND: that one alone"""

import concurrent.futures
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from lockstep import _binding

ROOT, PROGRAM = Path(sys.argv[1]).resolve(), os.path.realpath(sys.argv[2])
DATA = ROOT / "tests/golden/data"
WORK = tempfile.TemporaryDirectory()
MADE = Path(WORK.name) / "made"
COMMANDS = _binding.the_library().commands

JOB = "--model tiny --cluster pair --gpus 4 --tp 2 --global-batch 16"
SMALL = "--model tiny --cluster pair --gpus 4 --global-batch 16 --tp 1,2 --pp 1 --micro-batch 1 --recompute none"
COLLECTIVE = "--cluster pair --op all-reduce --gpus 4 --min 1KiB --max 64KiB --factor 4"
PROFILE = "--pytorch-trace data/rank0.json.gz --model tiny:layers=4 --cluster pair --gpus 4 --tp 2 --dp 2 --zero 1 --micro-batch 1 --global-batch 4"

# What only says how fast, how much at a time, or in which form, and changes no number.
SAME = {"threads", "mpi", "fold", "coarsen", "max-memory", "debug"}
# What a small job does not reach: limits, and what files say themselves.
LIMITS = {("share", "steps"), ("share", "all"), ("place", "tries"), ("kernel", "min-seq"), ("train", "storage-every"), ("validate", "cluster"), ("capture", "expert-load"), ("capture", "keep")}

# A row for each option with its value. Behind "|": what it goes with, beside which it is tried as well as alone. Behind "!": the same,
# and alone it is a condition that holds, or a value that comes out anyway. Behind "=": all else, in the place of the base.
ROWS = {
    "run": (JOB, """
        --json; --chrome-trace t.json; --chrome-trace-all | --chrome-trace t.json --model tiny:layers=32 --cluster pair:nodes=16 --gpus 32 --tp 1 --pp 32 --global-batch 64; --csv s.csv; --links l.csv
        --timeline t.svg; --timeline-rows ops | --timeline t.svg; --timeline-arrows | --timeline t.svg; --timeline-ranks 1 | --timeline t.svg
        --timeline-window 0us..100us | --timeline t.svg; --timeline-width 500 | --timeline t.svg; --memory-chart m.svg; --critical-path
        --sensitivity; --faults each:gpu; --ecmp-seeds 2; --what-if; --jitter mlperf-5.1 = SHIPPED; --jitter-seed 3 = SHIPPED --jitter mlperf-5.1; --report r.html
        --format json; --emit megatron; --residuals none; --show-placement; --require-fit ! --model tiny:layers=900"""),
    "sweep": (SMALL, """
        --ranges ranges.json; --prune off ! --pp 1,2 --micro-batch 1,2,4 --top 1; --top 1; --objective goodput | --reliability lab
        --loss 2.5 | --objective time-to-loss; --tokens 1000000000 | --objective time-to-loss
        --scaling-law hoffmann-2022 | --reliability lab --objective time-to-loss --loss 2.5
        --critical-batch 1000000 | --reliability lab --objective time-to-loss --tokens 1000000000; --reliability lab | --objective goodput
        --time-limit 1us; --pareto; --gpu-hour 2; --gpu-watts 500; --pue 1.5 | --gpu-watts 500; --list l.csv; --journal j; --heat-map m.gp; --heat-axes pp,tp | --heat-map m.gp
        --heat-figure mfu | --heat-map m.gp; --pareto-chart p.gp; --scaling-chart s.gp | --gpus 2,4; --emit megatron | --for megatron; --timing; --report r.html
        --capture = SHIPPED --cluster dgx-h100 --tp 2 -- torchrun --nproc-per-node {tp} train.py; --format json; --json; --csv"""),
    "collective": (COLLECTIVE, """
        --cluster eight; --nodes 1; --slice 4x1 = --cluster data/slices.json --op all-reduce --gpus 4; --gpus 2; --nccl volta; --nccl-env NCCL_PROTO=LL; --op broadcast
        --algorithm tree; --max-ctas 1; --protocol ll; --network step; --min 4KiB; --max 1KiB; --factor 2
        --messages = --cluster pair --op all-reduce --gpus 4 --min 1KiB; --compare data/collectives.csv = --cluster pair
        --trust B = --cluster pair --compare data/collectives.csv; --report r.html; --format json; --json; --csv; --plot p.gp
        --protocol ll = --cluster pair --op barrier; --max-ctas 2 = --cluster pair --op barrier; --max-ctas 200 = --cluster pair --op all-to-all --gpus 4 --min 1KiB --max 1KiB
        --nccl-env NCCL_MAX_CTAS=2 = --cluster pair --op all-reduce --max-ctas 1; --nccl-env NCCL_ALGO=Ring = --cluster pair --op all-reduce --algorithm tree --gpus 4
        --nccl-env NCCL_PROTO=LL = --cluster pair --op all-reduce --protocol simple; --nccl-env NCCL_ALGO=Ring = --cluster pair --compare data/collectives.csv
        --tune = --model tiny --cluster pair --nodes 2 --tp 2 --global-batch 16; --output o.csv = --tune --model tiny --cluster pair --nodes 2 --tp 2 --global-batch 16"""),
    "kernel": ("--gpu flat --gemm 512,512,512", """
        --gpu round; --gpu-calibration round; --gemm 256,256,256; --batch 4; --layout nt; --attention 1,512,8,8,64 = --gpu flat
        --causal 0 = --gpu flat --attention 1,512,8,8,64; --backward = --gpu flat --attention 1,512,8,8,64; --op softmax = --gpu flat --shape 4,4
        --shape 4,4 = --gpu flat --op softmax; --bytes 1MiB = --gpu flat --op memset; --access strided = --gpu flat --op softmax --shape 64,64; --dtype fp32
        --sustained = SHIPPED --gpu h100 --gemm 4096,4096,4096; --from data/gemm.csv = --gpu flat; --measured data/gemm.csv = --gpu flat --gemm 512,1024,1024; --holdout = --gpu flat --from data/gemm.csv
        --min-m 300 = --gpu flat --from data/gemm.csv; 
        --min-flops 1e9 = --gpu flat --from data/gemm.csv; --min-bytes 1GiB = --gpu flat --from data/gemm.csv
        --list-shapes = --model tiny --cluster pair --gpus 1 --global-batch 1; --json"""),
    "topology": ("--cluster pair", """
        --cluster eight; --nodes 4; --gpus 16; --slice 2x2 = --cluster data/slices.json; --links; --all ! --cluster pair:nodes=300 --links; --path gpu0,gpu4
        --dot d; --svg s.svg; --png p.png; --json; --from data/topo/topology.conf --from pair = --from pair
        --output o.json = --from pair"""),
    "schedule": ("--schedule 1f1b --pp 4 --micro-batches 8", """
        --schedule gpipe; --all; --pp 2; --vpp 2 | --schedule interleaved-1f1b; --micro-batches 4; --group 8 | --schedule interleaved-1f1b --vpp 2
        --rounds pytorch ! --schedule interleaved-1f1b --vpp 2 --micro-batches 10; --waves 2 | --schedule hanayo; --pipes 4 | --schedule chimera; --f-time 2; --b-time 3; --w-time 2
        --fb-time 5 | --schedule dualpipe; --comm-time 1; --memory-limit 1 | --schedule zb-auto; --format csv; --report r.html; --json; --output o.csv; --plot p.gp = --all --pp 4 --micro-batches 8
        --width 50"""),
    "whatif": (JOB, "--top 1; --all; --software-each; --report r.html; --format json; --json; --csv"),
    "memory": (JOB + " --model tiny:layers=900", """
        --memory-chart m.svg; --snapshot s.pickle; --rank 1 | --memory-chart m.svg; --report r.html; --format json; --no-advice; --json; --csv
        --require-fit"""),
    "capture": ("SHIPPED --memory -- python3 train.py", """
        --memory = SHIPPED -- python3 train.py; --cluster dgx-a100-80g = SHIPPED --memory -- python3 train.py; --gpu a100-40g = SHIPPED --memory -- python3 train.py
        --world 4 = SHIPPED --memory -- torchrun train.py; --rank 1 = SHIPPED --memory --world 4 -- torchrun train.py; --ranks 0,1 = SHIPPED --memory --world 4 -- torchrun train.py; --members 2 = SHIPPED --memory --world 4 -- torchrun train.py; --clock simulated = SHIPPED --cluster dgx-h100 -- python3 train.py; --steps 1 = SHIPPED --memory -- python3 train.py; --range = SHIPPED --memory -- python3 train.py
        --output job = SHIPPED --memory -- python3 train.py; --snapshot s.pickle = SHIPPED --memory -- python3 train.py; --report r.html = SHIPPED --memory -- python3 train.py
        --junit j.xml = SHIPPED --memory -- python3 train.py; --json = SHIPPED --memory -- python3 train.py
        --compare = SHIPPED --trace data/small-llama --cluster dgx-h100 --model data/models/small-llama.json --gpus 8
        --trace data/small-llama = SHIPPED --compare --cluster dgx-h100 --model data/models/small-llama.json --gpus 8
        --profile p.json = SHIPPED --jobs data/profile.csv --cluster dgx-h100 --software torchtitan-2025-03
        --jobs data/profile.csv = SHIPPED --profile p.json --cluster dgx-h100 --software torchtitan-2025-03"""),
    "place": (JOB + " --placement cyclic", "--output o.json; --any-nodes ! --cluster pair:nodes=4,fabric.nodes_per_leaf=2,fabric.oversubscription=2 --placement 0,2; --report r.html; --format json; --json; --csv"),
    "train": (JOB + " --tokens 1000000000 --reliability lab", """
        --ignore-memory ! --model tiny:layers=900; --tokens 2000000000; --train-steps 100 = --model tiny --cluster pair --gpus 4 --global-batch 16; --loss 3 = --model tiny --cluster pair --gpus 4 --global-batch 16
        --scaling-law hoffmann-2022 = --model tiny --loss 3 --cluster pair --gpus 4 --global-batch 16 --reliability lab; --days 1 = --model tiny --cluster pair --gpus 4 --global-batch 16
        --phase tokens=1000000,seq=512; --batch-ramp 8:8:1000; --critical-batch 100000; --batches 16,32; --reliability none; --spares 2 = SHIPPED --tokens 1000000000 --reliability none; --checkpoint-read 10s = SHIPPED --tokens 1000000000 --reliability none
        --elastic 1 = SHIPPED --tokens 1000000000 --reliability none; --jitter off = SHIPPED --tokens 1000000000 --reliability none; --jitter-seed 2
        --checkpoint-every 10; --checkpoint-to local; --checkpoint-async 1; --checkpoint-save 10s; --checkpoint-write 10s; --checkpoint-read 10s
        --storage-bandwidth 1GB/s; --spares 1; --elastic 1; --seeds 3; --first-seed 7; --gpu-hour 2; --gpu-watts 500
        --pue 1.5 | --gpu-watts 500; --co2 400 | --gpu-watts 500; --plot p.gp; --report r.html; --format json; --json; --csv"""),
    "share": ("jobs.json", """
        --shift 2; --network alphabeta; --top 1; --report r.html; --format json; --json; --csv"""),
    "compare": ("a.json b.json", """
        --from data/megatron.log; --spans = data/spans-measured.csv data/spans-predicted.csv; --max-error 1%; --report r.html; --format json; --json"""),
    "trace": ("export " + JOB + " -o o.json", "--step 1; --as-measured; --without-stalls; --compute-scale 2; --format goal; --output p.json"),
    "import": ("data/pretrain_gpt.sh", "--output o.json; --strict; --json"),
    "list": ("models", "--json"),
    "check": ("data/models/tiny.json", "--model tiny; --cluster pair; --json"),
    "validate": ("data/cases.csv", """
        --from pub.sh; --split y; --only a-1; --assume p2p=overlapped; --max-mape 1; --coverage; --min-coverage 50 ! --coverage; --max-width 1 ! --coverage
        --residuals r.json; --network alphabeta; --chart c.gp; --markdown m.md; --ablate; --template; --report r.html; --json
        --steps 1 = data/cases.csv --json; --memory-clock device = data/cases.csv --json; --memory-allocator caching = data/megatron.log --cluster pair --json
        --gpu-calibration a100 = SHIPPED data/megatron.log --cluster dgx-h100; --nccl nccl-a100 = SHIPPED data/megatron.log --cluster dgx-h100"""),
    "calibrate": ("data/profile-flat.json", """
        --gpu round; --nccl = data/all-reduce-pair.txt --cluster pair; --cluster pair = data/profile-beside.json; --op all-reduce = --nccl data/all-reduce-pair.txt data/all-gather-pair.json --cluster pair
        --runs data/runs.csv = --cluster pair; --pytorch-trace data/rank0.json.gz; --rank 0; --step 10; --other-job; --json
        --template runs; --hold-out half; --max-mape 1; --output o.json; --cluster-output c.json; --plot p.gp"""),
    "schema": ("", ""),
    "lab": ("SHIPPED check in-flight gpipe=16", "--json"),
}


# What goes with a way to say a job, in each command that takes one.
FOR_JOBS = {"run": "", "whatif": "", "memory": "", "place": "", "train": "--tokens 1000000000 --reliability lab", "trace": "export -o o.json"}
OF_JOBS = [("--strict", ""), ("--strict", "--trace ./trace.json --cluster pair"), ("--order order.csv", "--trace ./trace.json --cluster pair")]
OF_TRACES = {"run", "whatif", "memory", "trace"}


# Jobs of which parts do not heed a knob, in `run`.
PLACES = {
    "job": JOB, "stages": "--model tiny --cluster pair --gpus 4 --pp 2 --global-batch 16", "trace": "--trace ./trace.json --cluster pair",
    "captured": "--trace data/small-llama --cluster pair", "slice": "--model tiny --cluster data/slices.json --gpus 4 --global-batch 4", "node": "SHIPPED --tp 2 --pp 2 --global-batch 16"}
# Values by the kind of argument, and of knobs of their own; what is not here is a file, or tried above.
BY_ARGUMENT = {"N": "1 2 3", "0|1": "0 1", "SIZE": "1MiB 64MiB", "TIME": "0us 3us 90us", "": "1"}
VALUES = {
    "zero": "0 1 2 3", "rank_order": "tp-cp-ep-dp-pp tp-pp-cp-ep-dp", "placement": "cyclic 0 0,1 1,0", "lengths": "whole fixed:100",
    "headroom": "1GiB 10%", "recompute_parts": "core norm", "recompute_stages": "1 1,0", "lora_modules": "all-linear q,v", "optimizer": "adam sgd",
    "schedule": "1f1b gpipe", "expert_load": "even zipf:1", "expert_capacity": "1", "micro_batches_per_replica": "4,4", "measured": "1s,tflops=5 1s,memory=3GiB",
    "published": "1", "nccl_env": "NCCL_DEBUG=INFO NCCL_MAX_CTAS=2", "slow": "rank=0:2", "slice": "2x1", "persistence_threshold": "1000"}
UNTRIED = SAME | {"model", "from", "strict", "cluster", "trace", "for", "software", "strategy", "kernels", "module_formats", "order", "layers_per_chunk",
                  "gpu_calibration", "nccl", "steps"}
# What a knob is there anyway: as documented, as other knobs have it, or as nothing of its kind is there.
ANYWAY = {
    "nodes": "1 2", "dp_kind": "auto", "etp": "1 2", "grad_dtype": "bf16 auto", "optimizer_cut": "auto", "attention": "auto", "p2p": "auto none",
    "recompute_layers": "1", "ep_overlap": "0", "delay_wgrad": "0", "dp_overlap": "1", "gather_overlap": "1", "grad_sync": "auto last each", "bucket_view": "1", "bucket_wait": "0", "loss_sync": "0", "step_calls": "0"}
# What shows more or less of an answer, which is whole in JSON, or another form of it.
SHOWN = {"--csv", "--format", "--markdown", "--emit", "--all", "--top", "--show-placement", "--links", "--path", "--messages", "--critical-path", "--width"}
# Of the answer in JSON what repeats options, and how it was simulated.
REPEATED = {"assumptions", "knobs", "provenance", "n_segments", "n_segments_in_one_piece", "n_steps"}


def words(text):
    return shlex.split(text)


class Output:
    """What a command printed and wrote, as one value."""

    def __init__(self, line):
        here = Path(tempfile.mkdtemp(dir=WORK.name))
        for path in [*MADE.iterdir(), DATA, ROOT]:
            (here / {DATA: "data", ROOT: "shipped"}.get(path, path.name)).symlink_to(path)
        folder = ROOT if "SHIPPED" in line else DATA
        job = words("--model gpt-1.7b:layers=2 --cluster dgx-a100-80g --gpus 8 --global-batch 8") if line[0] in ("run", "train") else []
        line = [w for word in line for w in (job if word == "SHIPPED" else [word])]
        done = subprocess.run([PROGRAM, *line], cwd=here, capture_output=True, env={**os.environ, "LS_DATA_DIR": str(folder), "PATH": f"{MADE}:{os.environ['PATH']}"}, timeout=300)
        self.code, self.err = done.returncode, done.stderr.decode(errors="replace")
        written = {p.name: p.read_bytes() if p.is_file() else sorted(q.name for q in p.iterdir()) for p in sorted(here.iterdir()) if not p.is_symlink()}
        self.all = (done.returncode, done.stdout, done.stderr, written)
        self.out = done.stdout


def make_inputs():
    shutil.copytree(ROOT / "tests/capture/fake", MADE)
    (MADE / "ranges.json").write_text('{"schema": "lockstep.ranges/1", "name": "ranges", "source": "made up", "tp": [1]}')
    (MADE / "jobs.json").write_text(json.dumps({
        "schema": "lockstep.jobs/1", "cluster": "pair:fabric.nodes_per_leaf=2,fabric.oversubscription=2",
        "jobs": [{"name": name, "nodes": nodes, "options": {"model": "tiny", "tp": 2, "dp_overlap": False, "global_batch": 4}}
                 for name, nodes in (("a", "0,2"), ("b", "1,3"))]}))
    (MADE / "order.csv").write_bytes(Output(words("schedule --schedule 1f1b --pp 2 --micro-batches 4 --format csv")).out)
    for name, tp in ("a.json", "1"), ("b.json", "2"):
        (MADE / name).write_bytes(Output(words(f"run --model tiny --cluster pair --gpus 4 --global-batch 16 --tp {tp} --json")).out)
    Output(words("trace export --model tiny --cluster pair --gpus 2 --global-batch 4 --output") + [str(MADE / "trace.json")])


KNOWN = {}


def output(line):
    key = tuple(line)
    if key not in KNOWN:
        KNOWN[key] = Output(line)
    return KNOWN[key]


def rows_of(text):
    for line in text.strip().splitlines():
        for row in line.split(";"):
            mark = next((m for m in "|!=" if f" {m}" in row), "|")
            option, _, beside = row.partition(f" {mark}")
            if option.strip():
                yield words(option), words(beside), mark


def try_row(command, base, option, beside, mark):
    """What is wrong with it; None: nothing."""
    if mark == "=":
        base, beside = beside, []
    for extra in [beside, []] if beside and mark == "|" else [beside]:
        ahead = base.index("--") if "--" in base else len(base)
        without, with_it = output([command, *base, *extra]), output([command, *base[:ahead], *extra, *option, *base[ahead:]])
        if with_it.code < 0 or "Sanitizer" in with_it.err:
            return f"{shlex.join([command, *base, *extra, *option])}: crash"
        if extra == beside and (with_it.code in (2, 3)) and without.all == with_it.all:
            return f"{shlex.join([command, *base, *extra, *option])}: {with_it.err.splitlines()[0]}"
        if without.all == with_it.all:
            return f"{shlex.join([command, *base, *extra, *option])}: {option[0]} changes nothing, and nothing says so"
        if extra == beside and option[0] not in SHOWN and only_repeats(base, extra, option, command, ahead):
            return f"{shlex.join([command, *base, *extra, *option])}: {option[0]} changes no number, and no note says so"
    return None


def only_repeats(base, extra, option, command, ahead):
    """Whether all that an option changes of an answer in JSON is what repeats it. What does not fit takes memory long to say."""
    if command == "memory" or "json" not in {o.key.decode() for o in COMMANDS[command].options.values()} or "--json" in base + extra or option[0] == "--json":
        return False
    without, with_it = output([command, *base, *extra, "--json"]), output([command, *base[:ahead], *extra, *option, "--json", *base[ahead:]])
    if without.code or with_it.code or without.err != with_it.err or without.all[3] != with_it.all[3]:
        return False
    try:
        return numbers_of(json.loads(without.out)) == numbers_of(json.loads(with_it.out))
    except ValueError:
        return False


def numbers_of(value):
    if isinstance(value, dict):
        return {k: numbers_of(v) for k, v in value.items() if k not in REPEATED}
    return [numbers_of(v) for v in value] if isinstance(value, list) else value


def values_of(option):
    key, choices = option.key.decode(), (option.choices or b"").decode().split(", ")
    return VALUES[key].split() if key in VALUES else choices if choices[0] else BY_ARGUMENT.get((option.argument or b"").decode(), "").split()


def try_value(place, option, value):
    """What is wrong with a knob's value in a job; None: nothing."""
    key, base = option.key.decode(), ["run", *words(PLACES[place]), "--json"]
    typed = [f"--{option.flag.decode()}", *([value] if option.argument else [])] if option.flag else ["--set", f"{key}={value}"]
    without, with_it = output(base), output([*base, *typed])
    if with_it.code != 0:
        return f"{shlex.join([*base, *typed])}: crash" if with_it.code < 0 else None
    answer = json.loads(without.out)
    now = {row["key"]: row["value"] for part in ("assumptions", "knobs") for row in answer.get(part) or []}.get(key)
    usual = (option.usually or b"").decode().replace(":", " ").replace(",", " ").split()
    is_anyway = value in (now, *usual[:1], *ANYWAY.get(key, "").split()) or {"0": "false", "1": "true"}.get(value) == now
    new = set(with_it.err.splitlines()) - set(without.err.splitlines())
    if is_anyway or numbers_of(answer) != numbers_of(json.loads(with_it.out)) or any(typed[0] in line or key in line or value in line for line in new):
        return None
    return f"{shlex.join([*base, *typed])}: no number is another, and no note says so"


def main():
    problems, jobs = [], []
    only = os.environ.get("LS_CASE")
    make_inputs()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, table in COMMANDS.items():
            if only and name != only:
                continue
            base, text = ROWS[name]
            have = set()
            for option, beside, mark in rows_of(text):
                have.add(option[0].removeprefix("--"))
                jobs.append(pool.submit(try_row, name, words(base), option, beside, mark))
            own = {o.key.decode() for o in table.options.values() if not o.topic and not o.is_positional} - SAME - {k for c, k in LIMITS if c == name}
            problems += [f"{name}: no row of --{key}" for key in sorted(own - have)]
            problems += [f"{name}: no option --{key}" for key in sorted(have - own)]
        knobs = [o for o in COMMANDS["run"].options.values() if o.topic and o.key.decode() not in UNTRIED]
        jobs += [pool.submit(try_value, place, o, value) for place in PLACES for o in knobs for value in values_of(o)] if only in (None, "run") else []
    for name, base in FOR_JOBS.items() if not only else []:
        fit = [row for row in OF_JOBS if "--trace" not in row[1] or name in OF_TRACES]
        problems += [p for option, other in fit for p in [try_row(name, words(f"{base} {other or JOB}"), words(option), [], "|")] if p]
    problems += [job.result() for job in jobs if job.result()]
    print("\n".join(problems))
    print(f"{len(jobs)} options, {len(problems)} wrong")
    sys.exit(bool(problems))


main()
