#!/usr/bin/env bash
# steps.py without a GPU: the jobs of tests/accuracy/eager.csv, whose steps were timed so, are rows
# that it plans; a pattern that no row has is refused, and so is a run without torch.
# Usage: steps.sh STEPS.PY EAGER.CSV
set -euo pipefail
steps=$1 table=$2
out=$(mktemp -d)
trap 'rm -rf -- "$out"' EXIT

python3 "$steps" --dry-run > "$out/planned.csv"
python3 - "$out/planned.csv" "$table" <<'END'
import csv, sys
planned, timed = (list(csv.DictReader(open(path))) for path in sys.argv[1:])
job = [c for c in planned[0] if c not in ("id", "cluster", "iteration_s", "allocated_gib", "source")]
known = {row["id"]: [row[c] for c in job] for row in planned}
timed = [row for row in timed if "-jax-" not in row["id"]]
names = [row["id"].split("-", 1)[1].removeprefix("28-") for row in timed]
assert len(timed) >= 35 and set(names) <= set(known), set(names) - set(known)
for row, name in zip(timed, names):
    assert [row[c] for c in job] == known[name], row["id"]
END

[[ $(python3 "$steps" --dry-run --only 'llama*' | wc -l) == 14 ]]
if python3 "$steps" --dry-run --only none 2> /dev/null; then exit 1; fi
printf 'raise ImportError("made up")\n' > "$out/torch.py"
if PYTHONPATH=$out python3 "$steps" > /dev/null 2>&1; then exit 1; fi
