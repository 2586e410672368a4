#!/usr/bin/env python3
"""Times training steps of Hugging Face's transformers on one GPU, as rows that `lockstep validate` reads.

Each step is a forward, a backward, a clipped norm and a fused AdamW on random words; the model is made with random weights from a
config.json, in bf16, or in fp32 under torch.autocast; some are compiled, have the kernels of Liger-Kernel, or adapters of PEFT. A row
has the median of five steps behind three, and the peak that PyTorch's allocator saw (torch.cuda.max_memory_allocated).

    python3 tools/kernelbench/steps.py [--only PATTERN] [--dry-run] > tests/accuracy/mine.csv
    cd tests/accuracy && lockstep validate mine.csv

Needs torch and transformers, of some rows peft and liger_kernel, and a GPU with 80 GB; what fails costs its row and is named on standard error. --dry-run prints the
rows without times, and needs neither. Profiles of single steps, for lists of kernels: --trace FOLDER.
"""
import argparse
import csv
import fnmatch
import gc
import json
import pathlib
import statistics
import sys
import time

CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "tests" / "accuracy" / "eager"
N_WARM_UP, N_STEPS = 3, 5
LORA_RANK = 16
COLUMNS = ("id,cluster,model,software,gpus,seq,dtype,global_batch,micro_batch,tp,pp,vpp,dp,cp,ep,sp,attention,grad_dtype,zero,recompute,"
           "recompute_early_stop,schedule,dp_kind,dp_overlap,tp_overlap,p2p,lora_rank,lora_modules,iteration_s,allocated_gib,source").split(",")

# Name, config, sequences of a micro-batch, micro-batches, tokens, and what is not usual: words apart by commas.
STEPS = [
    ("llama8b-l4", "llama-8b-4-layers", 2, 1, 4096, ""),
    ("llama8b-l4-autocast", "llama-8b-4-layers", 2, 1, 4096, "autocast"),
    ("llama8b-l4-accum", "llama-8b-4-layers", 2, 2, 4096, "autocast"),
    ("llama8b-l4-ckpt", "llama-8b-4-layers", 2, 1, 4096, "checkpoint"),
    ("llama1b", "llama-1b", 4, 1, 2048, ""),
    ("llama3b", "llama-3b", 2, 1, 4096, "checkpoint"),
    ("mistral7b", "mistral-7b", 2, 1, 4096, "checkpoint"),
    ("gpt2", "gpt2", 8, 1, 1024, "autocast"),
    ("qwen2.5-0.5b", "qwen2.5-0.5b", 4, 1, 2048, ""),
    ("phi3-l4", "phi3-8-layers", 2, 1, 4096, ""),
    ("neox-l6", "pythia-2.8b-8-layers", 4, 1, 2048, ""),
    ("gemma2-l6", "gemma2-2b-6-layers", 1, 1, 4096, "eager"),
    ("qwen3moe-l2", "qwen3-30b-a3b-2-layers", 2, 1, 4096, ""),
    ("llama8b-l4-compile", "llama-8b-4-layers", 2, 1, 4096, "compile"),
    ("llama8b-l4-autocast-compile", "llama-8b-4-layers", 2, 1, 4096, "autocast,compile"),
    ("qwen2.5-0.5b-compile", "qwen2.5-0.5b", 4, 1, 2048, "compile"),
    ("llama3b-ckpt-compile", "llama-3b", 2, 1, 4096, "checkpoint,compile"),
    ("llama8b-l4-liger", "llama-8b-4-layers", 2, 1, 4096, "liger"),
    ("llama3b-liger-ckpt", "llama-3b", 2, 1, 4096, "liger,checkpoint"),
    ("mistral7b-lora", "mistral-7b", 2, 1, 4096, "lora,checkpoint"),
    ("llama3b-lora", "llama-3b", 1, 1, 4096, "lora"),
    ("llama1b-foreach", "llama-1b", 4, 1, 2048, "foreach"),
    ("qwen2.5-0.5b-short", "qwen2.5-0.5b", 1, 1, 512, ""),
]


def software_of(what):
    return "hf-trainer-2026" + "".join(f"-{word}" for word in ("autocast", "compile", "liger") if word in what)


def row_of(step, cluster, seconds, peak_gib, source):
    name, config, batch, n_micro, tokens, what = step
    what = what.split(",")
    checkpoint = "checkpoint" in what
    values = dict.fromkeys(COLUMNS, "")
    values.update(dict.fromkeys(("gpus", "tp", "pp", "vpp", "dp", "cp", "ep"), 1))
    values.update(id=name, cluster=cluster, model=f"./eager/{config}.json", software=software_of(what),
                  seq=tokens, dtype="bf16", global_batch=batch * n_micro, micro_batch=batch, sp=0,
                  attention="unfused" if "eager" in what else "flash", recompute="full" if checkpoint else "none",
                  recompute_early_stop=int(checkpoint), dp_kind="none", iteration_s=seconds, allocated_gib=peak_gib, source=source)
    if "lora" in what:
        values.update(lora_rank=LORA_RANK, lora_modules="all-linear")
    return [values[c] for c in COLUMNS]


def make_model(torch, transformers, config, what):
    """A model on the GPU with random weights, in fp32 for autocast, otherwise in bf16."""
    kept = torch.float32 if "autocast" in what else torch.bfloat16
    config = transformers.AutoConfig.for_model(**json.loads((CONFIGS / f"{config}.json").read_text()))
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=kept,
                                                              attn_implementation="eager" if "eager" in what else "sdpa")
    model = model.to(kept).train()
    if "liger" in what:  # as the Trainer does with use_liger_kernel
        from liger_kernel.transformers import _apply_liger_kernel_to_instance
        _apply_liger_kernel_to_instance(model=model)
    if "checkpoint" in what:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if "lora" in what:
        import peft
        model.enable_input_require_grads()
        model = peft.get_peft_model(model, peft.LoraConfig(r=LORA_RANK, lora_alpha=2 * LORA_RANK, target_modules="all-linear",
                                                           task_type="CAUSAL_LM"))
    return torch.compile(model) if "compile" in what else model


def step_of(torch, model, batch, n_micro, tokens, what):
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1e-5, **({"foreach": True} if "foreach" in what else {"fused": True}))
    words = torch.randint(0, model.config.vocab_size, (batch, tokens), device="cuda")

    def step():
        for _ in range(n_micro):
            with torch.autocast("cuda", torch.bfloat16, enabled="autocast" in what or "lora" in what):  # adapters are fp32
                loss = model(input_ids=words, labels=words, use_cache=False).loss
            (loss / n_micro if n_micro > 1 else loss).backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def time_steps(torch, step):
    """Seconds of the median step, by events, and the peak in GiB."""
    for _ in range(N_WARM_UP):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(N_STEPS + 1)]
    events[0].record()
    for event in events[1:]:
        step()
        event.record()
    torch.cuda.synchronize()
    seconds = statistics.median(a.elapsed_time(b) for a, b in zip(events, events[1:])) / 1e3
    return seconds, torch.cuda.max_memory_allocated() / 2**30


def trace(torch, step, path):
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        step()
        torch.cuda.synchronize()
    profiler.export_chrome_trace(str(path))


def measure(torch, transformers, step, folder):
    name, config, batch, n_micro, tokens, what = step
    what = what.split(",")
    run = step_of(torch, make_model(torch, transformers, config, what), batch, n_micro, tokens, what)
    figures = time_steps(torch, run)
    if folder:
        trace(torch, run, pathlib.Path(folder) / f"{name}.json.gz")
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", help="rows whose name matches this pattern of the shell")
    parser.add_argument("--cluster", default="dgx-h100", help="what the GPU is one of (lockstep list clusters); default dgx-h100")
    parser.add_argument("--trace", metavar="FOLDER", help="profiles of one step each, as Kineto writes them")
    parser.add_argument("--dry-run", action="store_true", help="rows without times")
    options = parser.parse_args()
    chosen = [s for s in STEPS if fnmatch.fnmatch(s[0], options.only)]
    if not chosen:
        parser.error(f"--only {options.only}: no row has such a name")
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(COLUMNS)
    if options.dry_run:
        table.writerows(row_of(s, options.cluster, "", "", "") for s in chosen)
        return 0
    import torch
    import transformers
    source = f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}, transformers {transformers.__version__}, {time.strftime('%Y-%m-%d')}"
    n_failed = 0
    for s in chosen:
        try:
            seconds, peak = measure(torch, transformers, s, options.trace)
            table.writerow(row_of(s, options.cluster, f"{seconds:.4f}", f"{peak:.2f}", source))
            sys.stdout.flush()
        except Exception as error:  # whatever it is, the other rows can be timed
            print(f"{s[0]}: {type(error).__name__}: {error}", file=sys.stderr)
            n_failed += 1
        gc.collect()
        torch.cuda.empty_cache()
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
