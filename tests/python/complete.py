"""Pins that every configuration that is printed is complete: the rows of sweeps, what-ifs, advices and placements of random jobs,
with and without a program, run again from their text, JSON, CSV and Python, take the same picoseconds; so does a job that
was written for another program and is read from there, unless a note says what differs.
Usage: complete.py ROOT, with LOCKSTEP_LIBRARY and PYTHONPATH in the environment; with LS_SHARED_DATA, others' launch files, too.
LS_CASES=N: seeds 1 to N; LS_CASE=N: that
seed alone, and what it does"""

import csv
import io
import json
import multiprocessing
import os
import random
import re
import shlex
import sys
import tempfile
import warnings
from pathlib import Path

import lockstep
from lockstep import _binding

ROOT = Path(sys.argv[1]).resolve()
os.environ["LS_DATA_DIR"] = str(ROOT)
os.chdir(tempfile.mkdtemp())
warnings.simplefilter("ignore")
ONE = os.environ.get("LS_CASE")
CASES = [int(ONE)] if ONE else range(1, int(os.environ.get("LS_CASES", 3)) + 1)
TABLE = _binding.the_library().commands["run"].options
FLAGS = {option.flag.decode(): name for name, option in TABLE.items() if option.flag}
KEYS = {option.key.decode(): name for name, option in TABLE.items()}

MODELS = ["gpt-1.7b:layers=4", "gpt-22b:layers=8", "llama3.1-8b:layers=4", "llama3.1-8b:layers=8,seq=4096", "llama3.1-70b:layers=4",
          "qwen3-30b-a3b:layers=4", "mixtral-8x7b:layers=4", "deepseek-v2:layers=4"]
CLUSTERS = ["dgx-a100-80g", "dgx-h100", "dgx-h200", "dgx-b200", "gb200-nvl72", "a100-80g-ib800", "l40s-pcie", "mi300x-8", "perlmutter",
            "tpu-v5e", "dgx-h100:node.nics.count=4", "dgx-a100-80g:node.nics.link.bandwidth=50Gbit/s", "dgx-1-v100"]
SHARED = Path(os.environ.get("LS_SHARED_DATA", "."))
LAUNCHED = sorted(str(path) for pattern in ("launch/*/*", "reports/*", "reports/*/*") for path in SHARED.glob(pattern)
                  if path.suffix in ("", ".sh", ".toml", ".yaml", ".yml", ".json", ".py", ".log") and path.is_file())
EMITTED = ["megatron", "torchtitan", "deepspeed"]
NUMBERS = {"tp": [1, 2, 4], "pp": [1, 2, 4], "cp": [2], "ep": [2, 4], "vpp": [2], "micro_batch": [1, 2], "zero": [0, 1, 2, 3], "seq": [1024, 4096],
           "lora_rank": [8], "host_launch": ["0us", "25us"], "expert_load": ["zipf:0.3"], "lengths": ["fixed:512"], "optimizer": ["muon", "sgd"],
           "rank_order": ["tp-pp-dp", "dp-tp-pp"], "placement": ["cyclic", "random:3"], "vocab_multiple": [64], "tp_max_ctas": [8],
           "headroom": ["4GiB"], "memory_clock": ["device"], "network": ["alphabeta", "all"], "slow": ["seed=1,sigma=0.05"], "nodes": [2, 4],
           "gpu_calibration": ["a100"], "nccl": ["dgx-a100-80g"], "expert_capacity": [1.25], "bf16_first": [1], "kernels": ["built-in"], "steps": [2]}
# Of the others those with a short list of values; what only looks at a job, or simulates it both ways, is none of it.
LISTED = [name for name, o in TABLE.items() if o.topic and o.topic.decode() not in ("measured", "simulation", "host", "job")
          and (o.choices or (o.argument or b"0|1") == b"0|1") and name not in NUMBERS]
AXES = {"zero": ["3,3@8", "2@4"], "tp": ["1", "2", "4", "1,2"], "pp": ["1", "2", "1,2"], "micro_batch": ["1", "1,2"], "recompute": ["none", "full,none"],
        "p2p": ["batched,overlapped"], "dp_overlap": ["0,1"], "attention": ["flash,unfused"], "cp": ["1,2"]}


def value_of(r, name):
    option = TABLE[name]
    return r.choice(NUMBERS[name] if name in NUMBERS else option.choices.decode().split(", ") if option.choices else ["0", "1"])


def draw_launched(r):
    """A launch file that is a whole job of what is given."""
    job = {}
    while not isinstance(Known().step(job), int):
        job = {"from_": [r.choice(LAUNCHED)], "cluster": r.choice(["dgx-h100", "dgx-a100-80g"]), "gpus": r.choice([8, 16]), "network": "alphabeta"}
    return job


def draw_job(r):
    if LAUNCHED and r.randrange(3) == 0:
        return draw_launched(r)
    job = {"model": r.choice(MODELS), "cluster": r.choice(CLUSTERS), "gpus": r.choice([4, 8, 8, 16]), "global_batch": r.choice([8, 16])}
    kind = r.randrange(5)
    if kind < 2:
        job["for_"] = r.choice(EMITTED)
    elif kind == 2:
        names = re.findall(r"^  (\S+) ", lockstep.list("software").text(), re.M)
        job["software"] = r.choice(names)
    for name in r.sample(["tp", "pp", "zero", "dp_kind", "micro_batch", "recompute", "seq", "sp"], 2) + r.sample(LISTED + list(NUMBERS), r.randrange(7)):
        job[name] = value_of(r, name)
    return job


def words_of(job):
    """As one types them."""
    words = []
    for name, value in job.items():
        option = TABLE[name]
        flag = option.flag.decode() if option.flag else None
        if isinstance(value, list):
            words += [f"--{flag}={one}" for one in value]
            continue
        words += [f"--{flag}={value}"] if flag and option.argument else [f"--set={option.key.decode()}={value}"]
    return words


def read(words, job=()):
    """A line of options as a job: the last of several counts."""
    job, words = dict(job), list(words)
    while words:
        word = words.pop(0)
        flag, equals, value = word.partition("=")
        name = FLAGS.get(flag[2:])
        if flag == "--set":
            key, _, value = (value or words.pop(0)).partition("=")
            name = KEYS[key]
        elif not name:
            raise ValueError(f"no option: {word}")
        elif not equals:
            is_alone = not TABLE[name].argument and (not words or words[0].startswith("--"))
            value = "1" if is_alone else words.pop(0)
        if name == "from_":
            value = [*job.get(name, []), value]
        job[name] = value
    return job


class Known:
    """Steps of jobs, each run once."""

    def __init__(self):
        self.steps = {}

    def step(self, job):
        key = json.dumps(job, sort_keys=True)
        if key not in self.steps:
            try:
                self.steps[key] = picoseconds(lockstep.run(**job).step_time_s)
            except (lockstep.LockstepError, TypeError) as error:
                self.steps[key] = str(error).splitlines()[0]
        return self.steps[key]


def picoseconds(seconds):
    return round(float(seconds) * 1e12)


class Case:
    def __init__(self, seed):
        self.seed, self.known, self.wrong, self.n = seed, Known(), [], 0

    def check(self, where, expected, job):
        self.n += 1
        got = self.known.step(job)
        if got != expected:
            self.wrong.append(f"seed {self.seed}: {where}: {expected} is {got} again: {shlex.join(words_of(job))}")

    def check_words(self, where, expected, text, job=()):
        try:
            self.check(where, expected, read(shlex.split(text), job))
        except (ValueError, IndexError) as error:
            self.wrong.append(f"seed {self.seed}: {where}: {error!r}: {text}")


def command(text):
    assert text.startswith("lockstep run "), text
    return text[len("lockstep run "):]


def table(result):
    return list(csv.DictReader(io.StringIO(result.csv())))


# --- what is asked ---


# What is no knob of a strategy: the rest is in the knobs of a row.
APART = {"nodes", "headroom", "memory_clock", "memory_allocator", "network", "slow", "gpu_calibration", "nccl", "segment", "steps"}


def said(job):
    """What a sweep of it and a run have in common."""
    return {name: job[name] for name in job if name in APART | {"model", "cluster", "for_", "software", "from_"}}


def sweep(case, r, job):
    for name in r.sample(list(AXES), 3):
        job[name] = r.choice(AXES[name])
    job = {"tp": "1,2", "pp": "1,2", "micro_batch": "1", "recompute": "none", **job}
    of_sweep = _binding.the_library().commands["sweep"].options
    job = {name: value for name, value in job.items() if name in of_sweep}
    listed = Path("list.csv").resolve()
    result = lockstep.sweep(**job, top=3, pareto=True, list=str(listed), time_limit="60s")
    found = result.to_dict()
    rows = found["best"]
    fixed = said(job)
    for i, row in enumerate(rows):
        step = row["step_time_ps"]
        case.check_words(f"JSON {i} command", step, command(row["command"]))
        case.check_words(f"JSON {i} knobs", step, row["knobs"], fixed)
        case.check(f"Python {i}", step, {name: v for name, v in result.job(i).items()})
        for k, also in enumerate(row.get("also", [])):
            case.check_words(f"JSON {i} also {k}", also["step_time_ps"], also["knobs"], fixed)
    for i, row in enumerate(found.get("pareto", []) + [found[k] for k in ("rule_of_thumb",) if k in found]):
        case.check_words(f"JSON pareto {i}", row["step_time_ps"], command(row["command"]))
    for i, row in enumerate(table(result)):
        case.check_words(f"CSV {i} command", int(row["step_time_ps"]), command(row["command"]))
        case.check_words(f"CSV {i} knobs", int(row["step_time_ps"]), row["knobs"], fixed)
    if listed.exists():
        simulated = list(csv.DictReader(listed.open()))
        for row in r.sample(simulated, min(4, len(simulated))):
            case.check_words("list", int(row["step_time_ps"]), row["knobs"], {k: v for k, v in fixed.items() if k in ("model", "cluster", "for_", "software", "from_")})
    if rows:
        lines = result.text().splitlines()
        first = command(lines[-1].strip())
        case.check_words("text first", rows[0]["step_time_ps"], first)
        others = re.findall(r"^  number (\d+): (.*)", result.text(), re.M)
        for number, behind in others if len(found["scaling"]) == 1 else []:
            case.check_words(f"text {number}", rows[int(number) - 1]["step_time_ps"], f"{first} {behind}")
    return result


def whatif(case, r, job):
    result = lockstep.whatif(**job)
    check_changes(case, result.to_dict()["changes"], job)
    for row in table(result):
        if not row["refused"]:
            case.check_words("CSV change", picoseconds(row["step_time_s"]), row["change"], job)


def check_changes(case, changes, job):
    for row in changes:
        if not row["refused"]:
            case.check_words("change", picoseconds(row["step_time_s"]), row["change"], job)


def memory(case, r, job):
    result = lockstep.memory(**job)
    advice = result.to_dict().get("advice")
    if advice:
        check_changes(case, advice["changes"], job)


def place(case, r, job):
    result = lockstep.place(**job, tries=4)
    best = result.to_dict()
    case.check_words("JSON best", picoseconds(best["best"]["step_time_s"]), best["options"], job)
    for row in result.to_dict()["rows"]:
        if row["step_time_s"] is not None:
            case.check_words("JSON row", picoseconds(row["step_time_s"]), row["options"], job)
    for row in table(result):
        if row["step_time_ps"]:
            case.check_words("CSV row", int(row["step_time_ps"]), row["options"], job)


SUFFIX = {"megatron": ".sh", "torchtitan": ".toml", "deepspeed": ".json"}


def emit(case, r, job):
    """What a program's configuration cannot say is named by a note."""
    job["for_"] = program = r.choice(EMITTED)
    job.pop("software", None)
    if job.get("model", "").startswith("gpt"):  # whose table of positions is as long as a sequence
        job.pop("seq", None)
    step = picoseconds(lockstep.run(**job).step_time_s)
    written = lockstep.run(**job, emit=program)
    path = Path("written" + SUFFIX[program])
    path.write_text(written.text())
    again = {name: job[name] for name in job if name in APART | {"model", "cluster", "gpus"}}
    for note in written.notes:
        lacks = re.search(r"to read it by --from, add (.*)", note)
        again = read(shlex.split(lacks[1]), again) if lacks else again
    again = {**again, "for_": program, "from_": [str(path)]}
    if isinstance(case.known.step(again), int):  # else it is refused, with a reason
        case.check(f"--emit {program} read again", step, again)


def run(case, r, job):
    result = lockstep.run(**job)
    fixed = said(job)
    case.check_words("options", picoseconds(result.step_time_s), result.to_dict()["provenance"]["options"], fixed)


KINDS = [sweep, whatif, memory, place, run, emit]


def check_seed(seed):
    """Rows that were run again, and which of them differ; prints the first of these."""
    r = random.Random(seed)
    kind, case = KINDS[seed % len(KINDS)], Case(seed)
    os.chdir(tempfile.mkdtemp())
    for _ in range(20):
        job = draw_job(r)
        if ONE:
            print(kind.__name__, shlex.join(words_of(job)), flush=True)
        try:
            kind(case, r, job)
        except lockstep.LockstepError as error:
            if ONE:
                print("   ", error.message.splitlines()[0])
            continue
        if case.n > 0:
            break
    if case.wrong:
        print("\n".join([f"# {kind.__name__} {shlex.join(words_of(job))}", *case.wrong[:6]]), flush=True)
    return case.n, len(case.wrong)


def main():
    known = Case(0)  # a program's default that is not Lockstep's: what overlaps
    sweep(known, random.Random(1), {"model": "llama3.1-8b:layers=4", "cluster": "dgx-h100", "gpus": 8, "global_batch": 16, "for_": "megatron"})
    print("\n".join(known.wrong[:6]))
    with multiprocessing.get_context("fork").Pool() as pool:
        counts = [(known.n, len(known.wrong)), *pool.imap_unordered(check_seed, CASES)]
    n, n_wrong = map(sum, zip(*counts))
    print(f"{n} rows, {n_wrong} differ")
    sys.exit(n_wrong > 0 or n < len(CASES))


main()
