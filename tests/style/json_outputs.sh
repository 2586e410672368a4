#!/usr/bin/env bash
# JSON of every command with every key that there is, in the current folder, which is empty: a file for each run.
# Usage: json_outputs.sh ROOT LOCKSTEP; for schemas.py.
set -euo pipefail
root=$(realpath -- "$1")
lockstep=$(realpath -- "$2")
export LS_DATA_DIR=$root/tests/golden/data

# With a strategy file, of a trace, a refused case, an assumption, mechanisms off, at the limit of memory.
printf '{"schema": "lockstep.strategy/1", "name": "s", "source": "made up", "tp": 2}\n' > s.json
"$lockstep" run --model tiny --cluster pair --gpus 4 --strategy ./s.json --network all --software old --sensitivity --faults each:link --ecmp-seeds 2 --jitter mlperf-5.1 --measured 1s,tflops=1 --json --csv spans.csv --links links.csv > run.json
"$lockstep" validate "$LS_DATA_DIR/cases-refused.csv" --assume dtype=bf16 --ablate --json > validate.json 2> notes || [[ $? == 4 ]] # all are refused
"$lockstep" validate "$LS_DATA_DIR/cases.csv" --coverage --json > coverage.json
sed '1s/,caveat/,date/; /^e-/s/bf16,bf16/fp16,fp16/' "$LS_DATA_DIR/cases-coverage.csv" > mixed.csv # runs that have something in common
"$lockstep" validate mixed.csv --coverage --json > mixed.json
LS_DATA_DIR=$root "$lockstep" lab check in-flight gpipe=16 first=7 --json > grades.json || [[ $? == 5 ]]
"$lockstep" run --trace "$root/traces/two-ranks.json" --cluster pair --json > trace.json
"$lockstep" run --model tiny --cluster pair --gpus 2 --pp 2 --lora-rank 8 --critical-path --json > path.json
"$lockstep" run --model tiny --cluster pair:gpu.reserved=14540MiB --gpus 2 --dp-kind fsdp1 --limit-all-gathers 0 --set cuda_allocator=caching --json > retries.json 2> notes
"$lockstep" run --from "$LS_DATA_DIR/pretrain_gpt.sh" --cluster pair --json > from.json 2> notes
"$lockstep" run --model tiny --cluster pair --gpus 2 --global-batch 8 --what-if --json > changed.json
measured=$LS_DATA_DIR/collectives.csv
"$lockstep" collective --compare "$measured" --json 2> notes > collective.json
"$lockstep" collective --cluster pair --op all-reduce --gpus 2 --messages --json > messages.json
"$lockstep" kernel --gpu flat --from "$LS_DATA_DIR/gemm.csv" --json > kernel.json
"$lockstep" topology --cluster pair --nodes 2 --path 0,3 --all --json > topology.json
"$lockstep" topology --cluster 'pair:nodes=4,other_nodes=[{"nodes":"1","like":"pair:gpu=round"}]' --json > kinds.json
# One that does not fit, so that there is advice.
"$lockstep" memory --model tiny --cluster pair --gpus 1 --micro-batch 64 --global-batch 64 --json > memory.json 2> notes
"$lockstep" sweep --model tiny --cluster "$LS_DATA_DIR/slices.json" --gpus 16 --global-batch 16 --micro-batch 1 --recompute none --pareto --gpu-hour 1 --gpu-watts 100 --json > sweep.json
printf 'pretrain_gpt.py --num-layers 2 --hidden-size 256 --num-attention-heads 4 --seq-length 512 --vocab-size 1000 --bf16 --micro-batch-size 1 --global-batch-size 4\n' > args.txt
"$lockstep" sweep --from args.txt --for megatron --cluster pair --gpus 2 --tp 2 --json > changes.json 2> notes
"$lockstep" sweep --model tiny --cluster pair --gpus 2 --global-batch 8 --micro-batch 1 --recompute none --objective time-to-loss --loss 9 --scaling-law lab --reliability lab --json > loss.json
"$lockstep" import "$LS_DATA_DIR/megatron.log" --json > import.json 2> notes
# A log that counts FLOPs and tokens itself.
sed 's/lm loss:/throughput per GPU (TFLOP\/s\/GPU): 400.0 | tokens per gpu per second (tgs): 2000.0 | lm loss:/' "$LS_DATA_DIR/megatron.log" > counted.log
"$lockstep" import counted.log --json > counted.json 2> notes
"$lockstep" whatif --model tiny --cluster pair --gpus 4 --pp 2 --global-batch 8 --json > whatif.json
"$lockstep" place --model tiny --cluster pair --gpus 4 --pp 2 --global-batch 8 --json > place.json
printf '{"schema": "lockstep.jobs/1", "cluster": "pair:fabric.nodes_per_leaf=2", "jobs": [{"name": "a", "nodes": "0,2", "options": {"model": "tiny"}}, {"name": "b", "nodes": "1,3", "options": {"model": "tiny"}}], "traffic": [{"name": "t", "from": "4", "to": "5", "bytes": "1GB"}]}\n' > jobs.json
"$lockstep" share jobs.json --shift 2 --json > share.json
"$lockstep" train --model tiny --cluster pair --gpus 2 --loss 90 --scaling-law lab --global-batch 2 --batches 4 --reliability lab --json > train.json
"$lockstep" schedule --schedule zbv --pp 2 --micro-batches 2 --json > schedule.json
"$lockstep" schedule --all --pp 2 --micro-batches 2 --memory-limit 2 --json > schedules.json
"$lockstep" compare path.json run.json --json > results.json
"$lockstep" compare path.json run.json path.json --json > many.json
"$lockstep" compare --spans "$LS_DATA_DIR/spans-measured.csv" "$LS_DATA_DIR/spans-predicted.csv" --json > compared.json
"$lockstep" sweep --model tiny --cluster pair --gpus 4 --global-batch 16 --time-limit 1ns --timing --json > stopped.json 2> notes || [[ $? == 6 ]]
"$lockstep" sweep --model tiny --cluster pair --gpus 4 --global-batch 16 --micro-batch 8,16 --recompute none --zero 0 --headroom 14.2GiB --json > none.json 2> notes || [[ $? == 4 ]]
"$lockstep" train --model tiny --cluster pair --gpus 2 --phase steps=10,seq=512 --phase steps=10 --reliability lab --jitter mlperf-5.1 --json > spread.json 2> notes
"$lockstep" kernel --list-shapes --model tiny --cluster pair --gpus 2 --kernels eager > shapes.json
"$lockstep" calibrate --pytorch-trace "$LS_DATA_DIR/rank0.json.gz" --model tiny:layers=1 --cluster pair --tp 2 --dp 2 --zero 1 --micro-batch 1 --global-batch 4 --json > calibrate.json 2> notes
"$lockstep" list --json > list.json
"$lockstep" kernel --gpu round --op elementwise --shape 8192,4096 --bytes 134MB --access strided16 --json > access.json
"$lockstep" run --model tiny --cluster pair --gpus 2 --for trainer --json > for.json 2> notes
"$lockstep" memory --model tiny --cluster pair --gpus 2 --for trainer --json > for-memory.json 2> notes

printf '{"schema": "lockstep.jitter/1", "name": "wrong", "source": "made up", "noise": 2, "nois": 0}\n' > wrong.json
"$lockstep" check "$LS_DATA_DIR/models/tiny.json" wrong.json --json > checked.json 2> notes || [[ $? == 3 ]]
rm -- wrong.json
"$lockstep" trace export --format chakra-roles --model tiny --cluster pair --gpus 4 --tp 2 --pp 2 --global-batch 4 -o roles > /dev/null
mv -- roles/manifest.json roles.json

# The profile of an eager model that the golden calibrate-trace-layer makes.
golden=$root/tests/golden/calibrate.txt
awk "$(sed -n '/^=== calibrate-trace-layer/,/> eager.json/ s/^> //p' "$golden" | sed "s/^  }' > eager.json/  }/")" > eager.trace
cp -- eager.trace eager.json
"$lockstep" calibrate --pytorch-trace eager.json --model tiny:layers=4,norm=rmsnorm,mlp=swiglu,position=rope,linear_bias=false --cluster pair --gpus 1 --micro-batch 1 --global-batch 1 --other-job --json > layer.json 2> notes
rm -- eager.json

# A program on a torch of a few lines, where stand-ins are built.
LS_DATA_DIR=$root "$lockstep" capture --memory --range --clock simulated --steps 3 --cluster dgx-h100 --json -- python3 "$root/tests/capture/fake/train.py" > capture.json 2> notes
LS_DATA_DIR=$root "$lockstep" capture --compare --trace "$root/tests/golden/data/small-llama" --cluster dgx-h100 --model "$root/tests/golden/data/models/small-llama.json" --gpus 8 --software torchtitan-2025-03 --json > capture-compare.json 2> notes
printf 'trace,model,gpus,kernels,optimizer\n%s,%s,8,torchtitan-2025-03,adam\n' "$root/tests/golden/data/small-llama" "$root/tests/golden/data/models/small-llama.json" > profile.csv
LS_DATA_DIR=$root "$lockstep" capture --profile profile.json --jobs profile.csv --cluster dgx-h100 --software torchtitan-2025-03 --json > capture-profile.json 2> notes
PATH=$root/tests/capture/fake:$PATH LS_DATA_DIR=$root "$lockstep" sweep --capture --cluster dgx-h100 --pp fail,none --json -- torchrun --nproc-per-node 2 "$root/tests/capture/fake/stages.py" {pp} > captured-layouts.json 2> notes

# The data in pages.
"$lockstep" run --model tiny --cluster pair --gpus 4 --pp 2 --global-batch 4 --report run.html > /dev/null
"$lockstep" sweep --model tiny --cluster pair --gpus 2 --global-batch 8 --micro-batch 1 --recompute none --report sweep.html > /dev/null 2> notes
"$lockstep" schedule --schedule 1f1b --pp 2 --micro-batches 2 --report schedule.html > /dev/null
python3 - <<'END'
import base64, gzip, json, re
from pathlib import Path
for page in Path().glob("*.html"):
    for kind, name, text in re.findall(r'<script type="([a-z/]+)" id="data-([a-z]+)">(.*?)</script>', page.read_text(encoding="utf-8"), re.S):
        text = gzip.decompress(base64.b64decode(text)).decode() if kind == "text/plain" else text
        if text.startswith("{"):
            Path(f"page-{page.stem}-{name}.json").write_text(text, encoding="utf-8")
assert len(list(Path().glob("page-*.json"))) >= 8
END
