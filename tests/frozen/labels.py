#!/usr/bin/env python3
"""A label is for people: the program with every label of kernels, operators, ops and segments renamed says the same of random
jobs, their traces and memory, but for these names.

Usage: labels.py ROOT BUILD. A copy of the sources that make labels, with "~" before each, is compiled as BUILD compiles them
and linked in their place; its answers with the "~" taken out again are compared, byte for byte. LS_CASES: how many jobs."""

import concurrent.futures
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import frozen

ROOT, BUILD = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
N_JOBS = int(os.environ.get("LS_CASES", "100"))
# Where labels are made; a literal there is one if it is an argument or a member, and no word of a message, format or option.
MAKERS = ["model/operators*.c", "model/lora.c", "model/optimizer_kind.c", "model/block.c", "model/beside.c",
          "model/compressed.c", "model/convolved.c", "model/difference.c", "model/mixer.c", "model/streams.c", "lower/**/*.c",
          "plan/*.c"]
LABEL = re.compile(r'(?<=[ ({])"(?=[a-z])([a-z0-9][a-z0-9 _,-]*|(?:[a-z ]|%[su])+)"(?=[,)} ;\n])')
# What takes no label: what is reported, looked up, or compared with words of files.
NO_LABEL = re.compile(r'conflict|unsupported|refus|diag|g_set_error|expected|strcmp|g_str_|ret_key|#include|#define|_name\b|\[LS_[A-Z0-9_]+\] =|return "|ways\[\]|is_possible|\[\] = "')


def renamed(text):
    """The source with its labels renamed, and how many these are."""
    count, lines = 0, []
    for line in text.split("\n"):
        if not NO_LABEL.search(line):
            line, n = LABEL.subn(r'"~\1"', line)
            count += n
        lines.append(line)
    return "\n".join(lines), count


def commands():
    """The command that compiles each source, and the one that links the program."""
    told = subprocess.run(["ninja", "-t", "commands", "src/cli/lockstep"], cwd=BUILD, capture_output=True, text=True, check=True)
    lines = told.stdout.splitlines()
    return {Path(line.split(" -c ")[1].strip()).name: line for line in lines if " -c " in line}, lines[-1]


def compiled(path, command, folder):
    """The object of a renamed source; None: it has no labels."""
    text, n = renamed(path.read_text())
    if n == 0:
        return None, 0
    source, made = folder / path.name, folder / (path.name + ".o")
    source.write_text(text)
    words = shlex.split(command.split(" -MD ")[0]) + ["-o", str(made), "-c", str(source)]
    subprocess.run(words, cwd=BUILD, check=True)
    return made, n


def program_of(folder):
    """A program whose labels are others."""
    by_source, link = commands()
    paths = sorted({path for pattern in MAKERS for path in (ROOT / "src").glob(pattern) if path.name in by_source})
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        made = list(pool.map(lambda path: compiled(path, by_source[path.name], folder), paths))
    program = folder / "lockstep"
    words = shlex.split(link)
    at = words.index("-o")
    words[at + 1] = str(program)
    words[at + 2:at + 2] = [str(object_) for object_, _ in made if object_]
    subprocess.run(words, cwd=BUILD, check=True)
    return program, sum(n for _, n in made)


def said(program, arguments, folder):
    """All that a command prints and writes."""
    environment = {**os.environ, "LS_DATA_DIR": str(ROOT), "LC_ALL": "C"}
    done = subprocess.run([program, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    return "\n".join([str(done.returncode), done.stdout, done.stderr] + [path.read_text() for path in sorted(Path(folder).iterdir())])


def of_job(program, job):
    """What a job comes to: its result, its ops one by one, what its ranks hold."""
    with tempfile.TemporaryDirectory() as folder:
        run = said(program, ["run", *job, "--json", "--chrome-trace", "t.json"], folder)
    with tempfile.TemporaryDirectory() as folder:
        return run + said(program, ["memory", *job, "--json"], folder)


def drawn():
    """Jobs of few layers and GPUs, so that each op may be listed."""
    for job in frozen.drawn_jobs(N_JOBS, 84):
        yield [word if ":layers" in word or job[i - 1] != "--model" else word + ":layers=4" for i, word in enumerate(job)]


def main():
    """Compares; prints what differs."""
    with tempfile.TemporaryDirectory() as folder:
        program, n_labels = program_of(Path(folder))
        jobs = list(drawn())
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            plain = list(pool.map(lambda job: of_job(BUILD / "src/cli/lockstep", job), jobs))
            other = list(pool.map(lambda job: of_job(program, job), jobs))
    wrong = [job for job, a, b in zip(jobs, plain, other) if a != b.replace("~", "")]
    n_named = sum(b.count("~") for b in other)
    for job in wrong[:5]:
        a, b = plain[jobs.index(job)].splitlines(), other[jobs.index(job)].replace("~", "").splitlines()
        first = next((i for i, pair in enumerate(zip(a, b)) if pair[0] != pair[1]), min(len(a), len(b)))
        print("differs:", " ".join(job), "\n  ", a[first:first + 1], "\n  ", b[first:first + 1])
    n_ran = sum(text.startswith("0\n") for text in plain)
    print(f"{n_labels} labels renamed, {n_named} seen in {n_ran} of {len(jobs)} jobs that run, {len(wrong)} differ")
    sys.exit(bool(wrong) or n_named == 0)


main()
