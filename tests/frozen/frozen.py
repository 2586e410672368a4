#!/usr/bin/env python3
"""What the program says of files of other programs, of random jobs, and of these in the words of other programs, is what it
said when digests.csv was written: model, strategy, remarks, refusals, times and memory, byte for byte. A change that means
something else writes them anew, and says why.

Usage: frozen.py ROOT LOCKSTEP [FOLDER]. LS_UPDATE_GOLDEN=1 writes digests.csv. FOLDER: has folders of launch files, each one
job ("0+train.sh", "1+config.yaml"); their digests are printed, to be compared with those of another program.
Launch files are those of $LS_SHARED_DATA; without it they are skipped. Without LS_ALL_CASES=1 a third of all is compared."""

import concurrent.futures
import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path

ROOT, LOCKSTEP = Path(sys.argv[1]).resolve(), str(Path(sys.argv[2]).resolve())
DIGESTS = Path(__file__).parent / "digests.csv"
PROGRAMS = ["megatron", "torchtitan", "deepspeed"]
N_JOBS, N_EMITTED = 200, 50


def said(folder, arguments):
    """A digest of all that a command prints, and of how it ends."""
    environment = {**os.environ, "LS_DATA_DIR": str(ROOT), "LC_ALL": "C"}
    done = subprocess.run([LOCKSTEP, *arguments], cwd=folder, env=environment, capture_output=True, timeout=300)
    return hashlib.sha1(b"%d\n" % done.returncode + done.stdout + b"\0" + done.stderr).hexdigest()[:16]


def drawn_jobs(n, seed):
    """Options of jobs, legal or not: what is refused is frozen too."""
    draw = random.Random(seed)
    models = ["gpt-1.7b", "gpt-7.5b", "llama3.1-8b", "llama3.1-70b", "mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3"]
    clusters = ["dgx-h100", "dgx-a100-80g", "dgx-b200", "gb200-nvl72", "tpu-v5e", "mi300x-8", "a100-40g-roce1600", "dgx-1-v100"]
    for _ in range(n):
        gpus = draw.choice([1, 2, 4, 8, 16, 32, 64])
        job = ["--model", draw.choice(models) + draw.choice(["", ":layers=4", ":layers=6"]), "--cluster", draw.choice(clusters), "--gpus", str(gpus)]
        for option, values in {"tp": [2, 4, 8], "pp": [2, 4], "cp": [2], "ep": [2, 4], "vpp": [2], "zero": [1, 2, 3],
                               "micro-batch": [1, 2], "global-batch": [8, 32, 64], "seq": [1024, 4096], "dtype": ["fp16", "fp8"],
                               "recompute": ["full", "selective"], "dp-kind": ["ddp", "fsdp2", "megatron", "deepspeed"],
                               "schedule": ["gpipe", "1f1b", "zb-h1"], "attention": ["unfused"], "offload": ["optimizer"],
                               "software": ["megatron-core-0.13", "torchtitan", "deepspeed", "hf-trainer-2024"]}.items():
            if draw.random() < 0.22:
                job += ["--" + option, str(draw.choice(values))]
        yield job + (["--sp"] if draw.random() < 0.2 else [])


def subjects():
    """Name, folder, arguments."""
    data = os.environ.get("LS_SHARED_DATA")
    launch = Path(data).resolve() / "launch" if data else None
    for path in sorted(launch.glob("*/*")) if launch and launch.is_dir() else []:
        yield f"import {path.relative_to(launch).as_posix().replace('.md', ' (page)')}", launch, ["import", str(path.relative_to(launch)), "--json"]
    inputs = ROOT / "tests" / "golden" / "data"
    for path in sorted(p for p in inputs.rglob("*") if p.suffix in (".sh", ".yaml", ".yml", ".toml", ".log", ".py")):
        yield f"import golden {path.relative_to(inputs)}", inputs, ["import", str(path.relative_to(inputs)), "--json"]
    for i, job in enumerate(drawn_jobs(N_JOBS, 83)):
        yield f"run {i} {' '.join(job)}", ROOT, ["run", *job, "--json"]
    for program in PROGRAMS:
        for i, job in enumerate(drawn_jobs(N_EMITTED, 84)):
            yield f"emit {program} {i} {' '.join(job)}", ROOT, ["run", *job, "--emit", program]


def of_folder(folder):
    for job in sorted(p for p in folder.iterdir() if p.is_dir()):
        yield job.name, job, ["import", *sorted(p.name for p in job.iterdir() if p.name != "CHANGES"), "--json"]


def main():
    jobs = list(of_folder(Path(sys.argv[3]))) if len(sys.argv) > 3 else list(subjects())
    is_all = len(sys.argv) > 3 or os.environ.get("LS_UPDATE_GOLDEN") or os.environ.get("LS_ALL_CASES") == "1"
    jobs = jobs if is_all else jobs[::3]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        digests = dict(zip([name for name, _, _ in jobs], pool.map(lambda job: said(*job[1:]), jobs)))
    if len(sys.argv) > 3:
        sys.stdout.writelines(f"{digest},{name}\n" for name, digest in digests.items())
        return 0
    if os.environ.get("LS_UPDATE_GOLDEN"):
        DIGESTS.write_text("".join(f"{digest},{name}\n" for name, digest in digests.items()))
        return 0
    frozen = {name: digest for digest, name in (line.split(",", 1) for line in DIGESTS.read_text().splitlines())}
    differ = [name for name, digest in digests.items() if frozen.get(name) != digest]
    for name in differ[:40]:
        print(f"is not what it was: {name}")
    print(f"{len(digests)} compared, {len(frozen) - len(frozen.keys() & digests.keys())} are not here, {len(differ)} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
