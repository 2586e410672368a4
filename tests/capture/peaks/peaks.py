#!/usr/bin/env python3
"""Peaks of memory of training jobs, captured, and what `lockstep memory` says of the same jobs without a capture.

    peaks.py LOCKSTEP [ID...]              what is predicted, next to what was captured; fails where a row of peaks.csv is worse than it was
    LS_UPDATE_GOLDEN=1 peaks.py LOCKSTEP   the same, and better rows are written
    peaks.py LOCKSTEP --capture [ID...]    captures them anew (README.md)

jobs.csv has the jobs, peaks.csv their peaks: what the program's own allocator had allocated and reserved at most on the fullest rank
(torch.cuda.max_memory_allocated and max_memory_reserved), and what we said last. Both have been compared since the list was made; no job
was left out for its error."""

import csv
import datetime
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
GIB = 2**30
COLUMNS = ["id", "captured_on", "allocated_GiB", "reserved_GiB", "predicted_GiB", "predicted_reserved_GiB"]
WORDS = {
    "TITAN03": "-m torchtitan.train --module llama3 --config llama3_8b --dataloader.dataset c4_test",
    "TITAN": "train.py --job.config_file HERE/titan.toml",
    "CLM": "HERE/clm.py --output_dir trainer-output --max_steps 20 --save_strategy no --report_to none --logging_steps 1",
    "FSDP": "--fsdp 'full_shard auto_wrap' --fsdp_config HERE/fsdp.json",
    "SFT": "HERE/sft.py --output_dir sft-output --max_steps 20 --save_strategy no --report_to none --logging_steps 1 --bf16 true --dtype bfloat16",
    "MEGATRON": "pretrain_gpt.py --mock-data --tokenizer-type NullTokenizer --vocab-size 128256 --num-layers 32 --hidden-size 4096"
    " --ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention --num-query-groups 8 --seq-length 4096"
    " --max-position-embeddings 4096 --position-embedding-type rope --swiglu --disable-bias-linear --normalization RMSNorm"
    " --untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0 --micro-batch-size 1 --global-batch-size 32"
    " --train-iters 3 --lr 1e-4 --eval-iters 0 --eval-interval 1000 --bf16 --transformer-impl local --no-rope-fusion"
    " --no-persist-layer-norm --no-gradient-accumulation-fusion --no-masked-softmax-fusion",
    "NANOGPT": "train.py --eval_iters=1 --eval_interval=100000 --always_save_checkpoint=False",
}


def rows_of(name):
    path = HERE / name
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def words_of(text, folder):
    for word, meaning in WORDS.items():
        text = re.sub(rf"\b{word}\b", meaning, text)
    return text.replace("HERE", str(folder))


def predict(lockstep, job, folder):
    """Bytes allocated and reserved on the fullest rank, without a capture."""
    line = [lockstep, "memory", "--cluster", job["cluster"], "--no-advice", "--json", "--memory-allocator", "caching"]
    if job["model"].startswith("@"):
        (folder / "job.sh").write_text(words_of(job["command"], ".") + "\n")
        line += ["--from", str(folder / "job.sh")]
    answer = subprocess.run(line + shlex.split(words_of(job["model"].lstrip("@"), folder)), capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if answer.returncode:
        sys.exit(f"{job['id']}: lockstep memory failed\n{answer.stderr}")
    ranks = json.loads(answer.stdout)["ranks"]
    return tuple(max(rank[key] for rank in ranks) for key in ("allocated_bytes", "reserved_bytes"))


def off(predicted, captured):
    return 100 * (float(predicted) / float(captured) - 1)


def compare(lockstep, wanted):
    update, worse, table = os.environ.get("LS_UPDATE_GOLDEN") == "1", 0, []
    jobs, stored = rows_of("jobs.csv"), {row["id"]: row for row in rows_of("peaks.csv")}
    print(f"{'GiB':26} {'allocated':>9} {'predicted':>9} {'error':>8}   {'reserved':>9} {'predicted':>9} {'error':>8}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shutil.copytree(HERE, folder, dirs_exist_ok=True)
        for job in jobs:
            row = stored.get(job["id"])
            if not row or wanted and job["id"] not in wanted:
                continue
            errors, worse_here = [], False
            said = [f"{value / GIB:.2f}" for value in predict(lockstep, job, folder)]
            for captured, before, now in (("allocated_GiB", "predicted_GiB", said[0]), ("reserved_GiB", "predicted_reserved_GiB", said[1])):
                errors.append(off(now, row[captured]))
                worse_here |= bool(row[before]) and abs(errors[-1]) > abs(off(row[before], row[captured])) + 0.005
            table.append(errors)
            print(f"{job['id']:26} {row['allocated_GiB']:>9} {said[0]:>9} {errors[0]:+7.1f}%   {row['reserved_GiB']:>9} {said[1]:>9} {errors[1]:+7.1f}%"
                  + ("   worse than before" if worse_here else ""))
            worse += worse_here
            if update and not worse_here:
                row.update(predicted_GiB=said[0], predicted_reserved_GiB=said[1])
    for i, name in enumerate(("allocated", "reserved")):
        sizes = [abs(errors[i]) for errors in table]
        print(f"{len(sizes)} rows, {name}: mean absolute error {sum(sizes) / len(sizes):.1f} %, worst {max(sizes):.1f} %")
    if update:
        write(stored)
    return worse


def write(stored):
    with open(HERE / "peaks.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(stored[job["id"]] for job in rows_of("jobs.csv") if job["id"] in stored)


def capture(lockstep, wanted):
    cache = pathlib.Path(os.environ.get("LS_CAPTURE_CACHE") or pathlib.Path.home() / ".cache/lockstep-capture")
    checkouts = {"titan-2024": "LS_TORCHTITAN", "megatron": "LS_MEGATRON", "torch-2.15": "LS_NANOGPT"}
    for job in rows_of("jobs.csv"):
        if wanted and job["id"] not in wanted:
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            shutil.copytree(HERE.parent, folder, dirs_exist_ok=True)
            variable = checkouts.get(job["environment"])
            place = os.environ.get(variable) if variable else folder
            if not place:
                print(f"{job['id']:26} skipped: {variable} names no checkout")
                continue
            if job["environment"] == "programs-2.15":
                subprocess.run([sys.executable, folder / "titan_data.py", folder], check=True)
                for path in (folder / "peaks").glob("*.py"):
                    shutil.copy(path, folder)
            if variable == "LS_NANOGPT":
                text = pathlib.Path(place, "data/openwebtext")
                for part in ("train.bin", "val.bin"):
                    (text / part).write_bytes(bytes(range(100)) * 20000)
            command = shlex.split(words_of(job["command"], folder / "peaks"))
            environment = dict(os.environ, PATH=f"{cache / job['environment'] / 'bin'}:{os.environ['PATH']}")
            line = [lockstep, "capture", "--memory", "--cluster", job["cluster"], "--json", "--", *command]
            answer = subprocess.run(line, cwd=place, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
            if answer.returncode not in (0, 4):
                print(f"{job['id']:26} FAILED with {answer.returncode}\n{answer.stderr[-3000:]}", flush=True)
                continue
            said = json.loads(answer.stdout)
            stored = {row["id"]: row for row in rows_of("peaks.csv")}
            row = stored.setdefault(job["id"], dict.fromkeys(COLUMNS, ""))
            row.update(id=job["id"], captured_on=datetime.date.today().isoformat(), allocated_GiB=f"{said['allocated_bytes'] / GIB:.2f}",
                       reserved_GiB=f"{said['reserved_bytes'] / GIB:.2f}")
            write(stored)
            print(f"{job['id']:26} {row['allocated_GiB']} GiB allocated, {row['reserved_GiB']} reserved", flush=True)
    return 0


def main():
    lockstep, wanted = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2:]
    sys.exit(capture(lockstep, set(wanted[1:])) if wanted[:1] == ["--capture"] else compare(lockstep, set(wanted)))


main()
