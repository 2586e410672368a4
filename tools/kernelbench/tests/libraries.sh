#!/usr/bin/env bash
# libraries.py with a made-up PyTorch that has FlashAttention-2 only: its rows are a profile that
# calibrate takes, by implementation; what is not installed costs its rows.
#
# Usage: test_libraries.sh LIBRARIES.PY LOCKSTEP
set -u
script=$1 lockstep=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail () { echo "FAILED: $1"; exit 1; }

mkdir "$work/torch" "$work/torch/nn"
cat > "$work/torch/__init__.py" <<'PY'
"""As much of PyTorch as libraries.py calls; a launch takes 100 us and one more each time."""
import types
__version__ = "0"
version = types.SimpleNamespace(cuda="12.0")
bfloat16 = int32 = None


class Tensor:
    grad = None

    def sum(self):
        return self


class Event:
    n = 0

    def __init__(self, enable_timing):
        pass

    def record(self):
        Event.n += 1
        self.at = Event.n

    def elapsed_time(self, end):
        return 1.0 + 0.001 * (end.at - self.at)


class no_grad:
    def __enter__(self):
        pass

    def __exit__(self, *error):
        pass


def ones(*sizes, **options):
    return Tensor()


randn = randn_like = ones
autograd = types.SimpleNamespace(grad=lambda *arguments, **options: None)
properties = types.SimpleNamespace(name="NVIDIA H100", multi_processor_count=132, total_memory=1, L2_cache_size=1 << 20)
cuda = types.SimpleNamespace(get_device_properties=lambda i: properties, is_available=lambda: True, Event=Event, synchronize=lambda: None)
PY
echo "def flash_attn_func (q, k, v, causal): return q" > "$work/flash_attn.py"

PYTHONPATH=$work python3 "$script" --json "$work/libraries.json" 2> "$work/err" || fail "$(cat "$work/err")"
[ "$(grep -c '"implementation": "fa2"' "$work/libraries.json")" = 14 ] || fail "rows of FlashAttention-2"
grep -q "No module named 'flash_attn_interface'" "$work/libraries.json" || fail "what is not installed is not named"
"$lockstep" calibrate "$work/libraries.json" --gpu h100 -o "$work/mine.json" > "$work/out" 2> "$work/err" || fail "$(cat "$work/err")"
grep -q "^fa2_fwd bf16 " "$work/out" && grep -q "^fa2_bwd bf16 " "$work/out" || fail "$(cat "$work/out")"
grep -q '"fa2_fwd"' "$work/mine.json" || fail "no entry fa2_fwd"
! grep -q "^attention-fwd\|^fa3" "$work/out" || fail "FlashAttention-2 taken for another"
