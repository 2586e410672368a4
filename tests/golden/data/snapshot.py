"""What a memory snapshot holds, checked by what must be true of it: snapshot.py FILE [RESULT of memory --json].

Frees are of what was allocated, blocks lie in segments beside each other, the state at the end is what the
segments say, and the most that is alive is what the result says."""
import json
import pickle
import sys

with open(sys.argv[1], "rb") as f:
    data = pickle.load(f)
ranks = data["lockstep"]["ranks"]
assert len(data["device_traces"]) == len(ranks)


def replay(trace):
    blocks, segments, pending = {}, {}, set()
    alive = peak = reserved = 0
    for e in trace:
        action, size = e["action"], e["size"]
        if action == "alloc":
            assert e["addr"] not in blocks
            assert any(a <= e["addr"] and e["addr"] + size <= a + n for a, n in segments.items())
            blocks[e["addr"]] = size
            alive += size
            peak = max(peak, alive)
        elif action == "free_requested":
            assert e["addr"] in blocks and e["addr"] not in pending
            pending.add(e["addr"])
        elif action == "free_completed":
            pending.remove(e["addr"])
            assert blocks.pop(e["addr"]) == size
            alive -= size
        elif action == "segment_alloc":
            segments[e["addr"]] = size
            reserved = max(reserved, sum(segments.values()))
        elif action == "segment_free":
            assert segments.pop(e["addr"]) == size
    times = [e["time_us"] for e in trace]
    assert times == sorted(times)
    return blocks, segments, pending, peak, reserved


def check_end(device, blocks, segments, pending):
    last = [s for s in data["segments"] if s["device"] == device]
    assert {s["address"]: s["total_size"] for s in last} == segments
    there = {}
    for s in last:
        at = s["address"]
        for b in s["blocks"]:
            assert b["address"] == at and b["requested_size"] <= b["size"]
            at += b["size"]
            if b["state"] != "inactive":
                assert (b["state"] == "active_pending_free") == (at - b["size"] in pending)
                there[b["address"]] = b["requested_size"]
        assert at == s["address"] + s["total_size"]
        assert s["active_size"] == sum(b["size"] for b in s["blocks"] if b["state"] != "inactive")
    assert there == blocks


for device, trace in enumerate(data["device_traces"]):
    blocks, segments, pending, peak, reserved = replay(trace)
    check_end(device, blocks, segments, pending)
    print(f"rank {ranks[device]}: at most {peak} bytes in segments of {reserved}")
    if len(sys.argv) > 2:
        rows = json.load(open(sys.argv[2]))["ranks"]
        row = next(r for r in rows if r["rank"] == ranks[device])
        assert peak == row["peak_bytes"] - row["at_peak"]["comm_buffers"], row["peak_bytes"]
        assert reserved == row["reserved_bytes"]
    names = {"; ".join(f'{f["filename"]}:{f["line"]}:{f["name"]}' for f in e["frames"]): None for e in trace
             if e["action"] == "alloc"}
    for name in list(names)[:: max(1, len(names) // 8)]:
        print(" ", name)
categories = {e["category"] for trace in data["device_traces"] for e in trace}
assert "unknown" in categories
