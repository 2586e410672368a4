"""The mean of each counter of links in a Chrome trace over its window, of the rank in which it is highest."""
import collections
import json
import sys

events = [e for e in json.load(open(sys.argv[1]))["traceEvents"] if "ts" in e]
end = max(e["ts"] + e.get("dur", 0) for e in events)
points = collections.defaultdict(list)
for e in events:
    if e["ph"] == "C" and e["name"].startswith("busy by its calls"):
        points[e["name"], e["pid"]].append((e["ts"], e["args"]["percent"]))
means = collections.defaultdict(float)
for (name, _), at in points.items():
    until = [ts for ts, _ in at[1:]] + [end]
    means[name] = max(means[name], sum(v * (u - ts) for (ts, v), u in zip(at, until)) / end)
for name, mean in sorted(means.items()):
    print(f"{name}: {mean:.1f}")
