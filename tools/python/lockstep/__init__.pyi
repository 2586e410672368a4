# Made by tools/python/make_stub from the tables of the library. An option that is None is not given.
from os import PathLike
from builtins import list as _list
from typing import Any, Callable, Iterator, Literal, Mapping, Sequence, TypedDict, overload
from typing_extensions import Unpack

__all__: _list[str]
__version__: str

Progress = Callable[[int, int], object]
Number = int | float | str | Sequence[int | float | str] | None
Text = str | int | float | PathLike[str] | Result | Sequence[str | int | float | PathLike[str] | Result] | None
File = Text | Mapping[str, Any]
Switch = bool | Sequence[bool] | None

class Diagnostic:
    path: str | None
    line: int | None
    column: int | None
    text: str

class LockstepError(Exception):
    code: Literal["failed", "io", "limit", "deadlock", "usage", "input", "conflict", "unsupported", "no-fit", "tolerance", "stopped"]
    message: str
    exit_code: int
    result: Result | None
    @property
    def diagnostics(self) -> _list[Diagnostic]: ...

class LockstepWarning(UserWarning): ...

class Record(dict[str, Any]):
    def __getattr__(self, name: str) -> Any: ...

class Result:
    notes: _list[str]
    warning: str
    def text(self) -> str: ...
    def json(self) -> str: ...
    def csv(self) -> str: ...
    def markdown(self) -> str: ...
    def page(self) -> str: ...
    def to_dict(self) -> dict[str, Any]: ...
    def timeline(self) -> dict[str, _list[Any]]: ...
    def __getattr__(self, name: str) -> Any: ...
    def __getitem__(self, key: Any) -> Any: ...

class SweepResult(Result, Sequence[Record]):
    def rows(self) -> _list[Record]: ...
    def job(self, index: int = 0) -> dict[str, Any]: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Record]: ...
    @overload
    def __getitem__(self, key: str) -> Any: ...
    @overload
    def __getitem__(self, key: int) -> Record: ...
    @overload
    def __getitem__(self, key: slice) -> _list[Record]: ...

class JobOptions(TypedDict, total=False):
    strict: Switch  # with --from, refuse a job of which something is not known that may matter
    segment: Number  # compute trays of a rack that the job takes together, as Slurm's --segment; 16 of 18 is 64 GPUs of an NVL72 [the cluster's]
    tp: Number  # tensor-parallel degree [1]
    sp: Switch  # sequence parallelism next to tensor parallelism; no effect with tp 1 [0]
    pp: Number  # pipeline stages [1]
    vpp: Number  # model chunks of a stage (virtual stages) [1]
    schedule: Text  # pipeline schedule (lockstep list schedules) [1f1b, interleaved-1f1b if vpp > 1]
    dp_kind: Literal["none", "ps", "ddp", "megatron", "fsdp1", "fsdp2", "deepspeed", "xla-fsdp", "auto"] | Sequence[Literal["none", "ps", "ddp", "megatron", "fsdp1", "fsdp2", "deepspeed", "xla-fsdp", "auto"]] | None  # who reduces gradients, and when [megatron, deepspeed for zero 2 and 3, xla-fsdp on TPUs]
    zero: Text  # ZeRO stage, sharded over all data-parallel ranks, or over groups of G [0, 3 with fsdp1, fsdp2, xla-fsdp]
    cp: Number  # context-parallel degree; needs flash attention [1]
    ep: Number  # expert-parallel degree; with tp > 1 experts need sp [1]
    etp: Number  # tensor-parallel degree of experts [tp]
    rank_order: Text  # which degrees ranks are numbered by, the fastest first, as Megatron-LM's order [tp-cp-ep-dp-pp]
    placement: File  # which GPU each rank has: cyclic (over the nodes), the nodes of a list as SLURM writes it, or of a file; random:SEED, random-gpus:SEED [block: node after node]
    micro_batch: Number  # sequences of one micro-batch [1]
    global_batch: Number  # sequences of one step [dp micro_batch pp]
    micro_batches_per_replica: Text  # micro-batches of each data-parallel rank, for nodes of unequal speed: 10,6, or 10x4,6x4 for 4 ranks of 10, then 4 of 6; their gradients meet once [as many each]
    seq: Number  # tokens of one sequence [the model's]
    lengths: Text  # tokens of documents, packed into sequences, with attention inside each: fixed:N, uniform:A:B, lognormal:MEDIAN:SIGMA[:MAX], file:PATH (a CSV of length,count) [whole: each fills a sequence]
    lengths_draw: Literal["each", "mean"] | Sequence[Literal["each", "mean"]] | None  # lengths: each micro-batch has documents of its own, or all have the mean of the step [each]
    lengths_balance: Literal["none", "sorted"] | Sequence[Literal["none", "sorted"]] | None  # lengths: sequences with more attention first, dealt to copies forth and back, or as drawn [none]
    lengths_seed: Number  # lengths: of the draw [0]
    headroom: Text  # memory that must stay free [with --for what the program takes]
    memory_clock: Literal["host", "device"] | Sequence[Literal["host", "device"]] | None  # when a buffer counts: as the caching allocator sees it, or as tensors live [host]
    memory_allocator: Literal["exact", "caching"] | Sequence[Literal["exact", "caching"]] | None  # the bytes asked for, or what PyTorch's caching allocator reserves for them [exact]
    recompute: Literal["none", "selective", "full"] | Sequence[Literal["none", "selective", "full"]] | None  # activations that the backward pass computes again [none]
    recompute_parts: Text  # selective: what is computed again: core (inside of attention), norm, activation (their outputs), mla-up (what latent attention makes of its latents), mlp, moe, shared (an MLP, experts with their router, shared experts, from their input), op (torchtitan's policy), dots (JAX's: all but matrix products), dots-flash (but these and attention), keep-qkv, keep-attention, keep-projection, keep-up, keep-down (but some of these) [core]
    recompute_method: Literal["uniform", "block"] | Sequence[Literal["uniform", "block"]] | None  # full: groups of layers, or the first layers of a chunk [uniform]
    recompute_layers: Number  # full: layers of a group, or recomputed ones of a chunk [uniform 1, block all]
    recompute_stages: Text  # full, block: recomputed layers of each pipeline rank, as 1x3,2 (3 times 1, then 2) [all alike]
    recompute_early_stop: Text  # full: stop once the backward has what it needs, as PyTorch since 2.1 without reentrance [0]
    recompute_flash: Text  # selective, core: flash attention runs again too, as in Megatron-Core's checkpoint around it [0]
    partition_activations: Switch  # full: kept inputs are cut over tp, and gathered for recomputation [0]
    offload_activations: Switch  # kept activations go to the host's memory and come back [0]
    offload_layers: Number  # offload_activations: of a chunk's first layers [all but the last]
    cuda_allocator: Literal["none", "caching", "expandable"] | Sequence[Literal["none", "caching", "expandable"]] | None  # PyTorch's: segments of fixed size, which it gives back and takes anew at the GPU's limit, or that grow (expandable_segments) [none]
    offload: Literal["none", "optimizer", "parameters"] | Sequence[Literal["none", "optimizer", "parameters"]] | None  # deepspeed: what lives outside the accelerator (parameters: the optimizer too) [none]
    offload_to: Literal["cpu", "nvme"] | Sequence[Literal["cpu", "nvme"]] | None  # where it lives [cpu]
    lora_rank: Number  # rank of adapters on frozen weights (LoRA); 0: all learn [0]
    lora_modules: Text  # what has one: q, k, v, o, gate, up, down; in, select, step, out of mixers; or all-linear [all-linear]
    qlora: Switch  # frozen weights of linear layers are kept in 4 bits (NF4) [0]
    grad_dtype: Literal["fp16", "bf16", "fp32", "auto"] | Sequence[Literal["fp16", "bf16", "fp32", "auto"]] | None  # number format of gradients, accumulated and reduced [the 16-bit type of dtype]
    fp8_recipe: Literal["delayed", "current", "blockwise", "mxfp8", "deepseek"] | Sequence[Literal["delayed", "current", "blockwise", "mxfp8", "deepseek"]] | None  # fp8: scaling factors of earlier steps, of this tensor, of its blocks of 128, of 32 (Blackwell), or of 128 by DeepSeek's own kernels [delayed]
    fp8_linear: Literal["te", "torchao-cast", "torchao"] | Sequence[Literal["te", "torchao-cast", "torchao"]] | None  # fp8: linear layers of Transformer Engine, or of torchao, which cast weights in each pass and keep their input in 16 bits (torchao-cast, until July 2025: as cast, scaled by tensor) [te]
    fp8_attention: Literal["none", "recipe", "delayed", "current", "mxfp8"] | Sequence[Literal["none", "recipe", "delayed", "current", "mxfp8"]] | None  # fp8, nvfp4: attention by cuDNN in fp8 too (Transformer Engine's fp8_dpa), scaled as fp8_recipe says, or in a way of its own [none]
    fp8_amax_reduction: Literal["stage", "tp", "none"] | Sequence[Literal["stage", "tp", "none"]] | None  # fp8, delayed: ranks that share the amax of tensors after each pass: tp cp dp, tp cp, or none [stage]
    fp8_act_store: Switch  # the input of the activation of an MLP or expert is kept in fp8 [0]
    fp8_params: Switch  # fp8: weights are stored and gathered in fp8; of mxfp8 gathered in 16 bits [0]
    bf16_experts: Switch  # fp8, nvfp4: products of experts are in bf16, as where only linear layers are converted [0]
    bf16_first: Number  # fp8, nvfp4: so many layers at the start have their products in bf16 [0]
    bf16_last: Number  # fp8, nvfp4: and at the end; recipes of NVIDIA for nvfp4 keep some 15 % [0]
    module_formats: Text  # fp8, nvfp4: modules whose products are in another format (Megatron-LM's --te-precision-config-file): qkv:bf16,mixer-out:mxfp8 [none]
    optimizer: File  # which optimizer: adam or adamw, or one of a file (lockstep list optimizers) [adam]
    optimizer_cut: Literal["auto", "elements", "tensors"] | Sequence[Literal["auto", "elements", "tensors"]] | None  # megatron, zero 1: ranks have equal pieces of all parameters, or whole tensors [tensors where it multiplies matrices, else elements]
    optimizer_tp: Literal["blockwise", "duplicated", "distributed"] | Sequence[Literal["blockwise", "duplicated", "distributed"]] | None  # what is multiplied of a matrix that tp cuts: a rank's part, the whole on each, or parts whose products are summed [blockwise]
    master: Literal["fp32", "fp16", "remainder", "none", "weights"] | Sequence[Literal["fp32", "fp16", "remainder", "none", "weights"]] | None  # weights that the optimizer steps on: fp32 together with those in 16 bits; megatron, precision-aware: in 16 bits, or what bf16 ones lack; one copy, ddp: none, those in 16 bits, with moments in 16 bits; or the weights are fp32 and cast for each product (autocast) [fp32]
    moment_dtype: Literal["fp32", "bf16", "fp16", "fp8"] | Sequence[Literal["fp32", "bf16", "fp16", "fp8"]] | None  # megatron: format of Adam's first moment [fp32]
    variance_dtype: Literal["fp32", "bf16", "fp16", "fp8"] | Sequence[Literal["fp32", "bf16", "fp16", "fp8"]] | None  # and of its second [fp32]
    software: File  # what runs the job (lockstep list software): its defaults [that of --for, or of the strategy]
    for_: File  # the program that must be able to run it: defaults, headroom, rules [any]
    kernels: File  # kernels as some software launches them (lockstep list kernels) [built-in: fused, as Megatron-LM's]
    attention_kernel: Literal["auto", "fa1", "triton", "fa2", "fa3", "pallas", "aotriton", "cudnn"] | Sequence[Literal["auto", "fa1", "triton", "fa2", "fa3", "pallas", "aotriton", "cudnn"]] | None  # flash: its implementation; auto, or one without times on the accelerator: one that has [auto]
    qkv_layout: Literal["joint", "split", "unpadded"] | Sequence[Literal["joint", "split", "unpadded"]] | None  # flash: Q, K, V in one tensor, as three views, or copied without padding and back [joint]
    window_mask: Text  # flash: a window no longer than the sequence is a mask over all keys, of which none is skipped, as in PyTorch's scaled_dot_product_attention [0]
    loss_kernel: Literal["parallel", "fused"] | Sequence[Literal["parallel", "fused"]] | None  # cross-entropy: parallel over the vocabulary, or one kernel each way (tp 1) [parallel]
    vocab_multiple: Number  # tokens are padded to a multiple of this times tp, as Megatron-LM's make_vocab_size_divisible_by; 1: only so that tp cuts them [128]
    train_metrics: Number  # how often the loss is computed again from the logits for what is logged [0]
    dynamic_gemms: Text  # GEMMs that fill a Hopper GPU fetch their next tile as they go, as of cuBLAS 13: SMs that communication holds cost no second wave [0]
    apex_norm: Text  # layer norms run apex's kernels, as in Megatron-LM until early 2022, not those for long rows [0]
    split_bias_dropout: Text  # the bias before a dropout is added in a kernel of its own, as in Megatron-LM of 2023 [0]
    batch_sync: Text  # each forward fetches its micro-batch, in which the host waits for the device, as in Megatron-LM until late 2023 [0]
    batch_ends: Text  # with batch_sync: only the first and the last stage fetch one [0]
    loss_sync: Text  # after each backward the host waits for the device, to see whether the loss is a number, as Hugging Face's Trainer does [0]
    step_calls: Number  # calls of functions of Python in a step of the optimizer, with what clips gradients, for each tensor that learns [0]
    launch_blocking: Text  # the host waits for each op that it issues, as with CUDA_LAUNCH_BLOCKING=1 [0]
    grad_fusion: Text  # weight-gradient GEMMs add to 16-bit gradients too, as Megatron-LM since 2023; to fp32 ones they do but with grad_apart [0]
    grad_apart: Text  # gradients are added by kernels of their own, fp32 ones too, as with Megatron-LM's --no-gradient-accumulation-fusion [0]
    wgrad_placeholders: Text  # megatron, with Transformer Engine from 2.3 on: a 16-bit tensor stands for the gradient of each shape of weight [0]
    p2p: Literal["none", "batched", "scatter-gather", "overlapped", "deepspeed", "auto"] | Sequence[Literal["none", "batched", "scatter-gather", "overlapped", "deepspeed", "auto"]] | None  # how stages exchange activations [batched; pipedream: overlapped]
    p2p_warmup_flush: Text  # overlapped p2p: in warm-up and cool-down too, where Megatron-LM otherwise waits for it [0]
    pipeline_batch: Number  # sequences of a copy that pass the pipeline before it is flushed (local_batch_size of torchtitan) [0: all of a step]
    layers_per_chunk: Text  # layers of each chunk in model order, as 4x13,3x3 (13 chunks of 4, then 3 of 3); balanced: by what layers, embedding and head cost; weights: each up to the layer that passes its share of their weights and the head's, as nanotron does; modules: embedding, layers, last norm and head count alike [auto: even where pp vpp divides the layers, or layers + 2, else balanced]
    pp_max_ctas: Number  # thread blocks of NCCL's kernels at most, of transfers between stages [0: as many as NCCL has channels]
    post_validation: Switch  # nobody waits for the norm of the gradients: it is checked a step later (zero bubble) [0]
    tp_overlap: Text  # tensor-parallel collectives together with GEMMs; needs sp [0]
    tp_overlap_kind: Literal["bulk", "ring"] | Sequence[Literal["bulk", "ring"]] | None  # tp_overlap: together with GEMMs that do not need it, or pipelined with those that do too [ring]
    tp_overlap_margin: Text  # tp_overlap: GEMMs leave bulk collectives SMs [1]
    tp_async: Text  # in the backward, tensor-parallel collectives of column-parallel layers run together with a GEMM, as in Megatron-LM since 2022 [1]
    tp_max_ctas: Number  # thread blocks of NCCL's kernels at most, of tensor-parallel collectives (ncclConfig_t.maxCTAs) [0: as many as NCCL has channels]
    sp_save_gathered: Text  # with sp: keep the gathered inputs instead of gathering them again [0]
    cp_kind: Literal["ring", "all-gather", "ulysses"] | Sequence[Literal["ring", "all-gather", "ulysses"]] | None  # how context-parallel attention exchanges keys and values [ring]
    cp_steps: Literal["te", "pytorch", "pytorch-compile"] | Sequence[Literal["te", "pytorch", "pytorch-compile"]] | None  # ring, all-gather: as Transformer Engine has them, or PyTorch, whose all-gather goes by steps too, with keys and values for all heads, sums in fp32 and gradients sent in fp32 (eager or compiled) [te]
    cp_balance: Text  # ring, all-gather: each context-parallel rank has an early and a late part of a sequence [1]
    cp_max_ctas: Number  # thread blocks of NCCL's kernels at most, of context-parallel exchanges [0: as many as NCCL has channels]
    expert_capacity: Text  # tokens that an expert takes at most, over the mean; 0: none are dropped [0]
    expert_padding: Literal["none", "fullest", "capacity"] | Sequence[Literal["none", "fullest", "capacity"]] | None  # rows of zeros after the tokens of an expert, up to the fullest of its rank, or up to expert_capacity; these are sent, too [none]
    dispatcher: Literal["all-to-all", "deepep", "hybridep"] | Sequence[Literal["all-to-all", "deepep", "hybridep"]] | None  # what brings tokens to experts and back: NCCL's all-to-all, or DeepEP or HybridEP: a token once to a node and once to a GPU [all-to-all]
    grouped_gemm: Switch  # products of a rank's experts are one kernel, not one of each [0]
    ep_max_ctas: Number  # thread blocks of NCCL's kernels at most, of exchanges of tokens by NCCL [0: as many as NCCL has channels]
    dispatch_sms: Number  # deepep, hybridep: SMs that each of its calls holds [20]
    dispatch_fp8: Switch  # deepep: tokens go to experts in fp8, and come back in 16 bits [0]
    dispatch_margin: Switch  # deepep, hybridep: matrix products leave its SMs free [0]
    ep_overlap: Text  # a forward and a backward side by side: each exchanges tokens while the other computes [1 with dualpipe and dualpipev, else 0]
    delay_wgrad: Text  # with ep_overlap: weight gradients are computed while tokens are exchanged [1 with ep_overlap in dualpipe and dualpipev, else 0]
    shared_overlap: Switch  # shared experts run together with the exchange of tokens [0]
    dp_max_ctas: Number  # thread blocks of NCCL's kernels at most, of reductions and gathers over copies [0: as many as NCCL has channels]
    dp_overlap: Text  # reduce gradients during the backward pass [1]
    loop_overlap: Literal["gathers", "turn", "pipelined"] | Sequence[Literal["gathers", "turn", "pipelined"]] | None  # xla-fsdp: what runs together with compute: gathers (in their turn of the loop over layers), turn (reductions, too), pipelined (both, from one turn to the next) [gathers]
    loop_copies: Literal["none", "kept", "weights"] | Sequence[Literal["none", "kept", "weights"]] | None  # xla-fsdp: what the loop over layers copies: none, kept (outputs of products that are kept, into arrays of all layers), weights (these, and pipelined gathers, without double buffering) [none]
    gather_overlap: Text  # megatron: gather parameters during the next forward [as dp_overlap]
    grad_sync: Literal["auto", "last", "each", "flush"] | Sequence[Literal["auto", "last", "each", "flush"]] | None  # micro-batches that reduce gradients; flush: the last before each flush of the pipeline [each with zero 2 and 3, flush with pipeline_batch, else last]
    grad_norm: Text  # all-reduce the norm of the gradients before the optimizer [1]
    grad_check: Switch  # megatron: the host reads the norm of each bucket before it is reduced, to find NaN or Inf (check_for_nan_in_grad) [0]
    bucket_bytes: Text  # ddp: size of a bucket [25MiB, the first 1MiB]
    bucket_view: Switch  # ddp: gradients are views of the buckets, which else are next to them (gradient_as_bucket_view) [1]
    bucket_wait: Switch  # ddp: compute waits for each reduction as soon as it is sent, so that none overlaps (PyTorch 2.15's backend nccl2) [0]
    bucket_params: Number  # megatron: parameters of a bucket [the larger of 40e6 and 1e6 dp]
    ps_servers: Literal["nodes", "one"] | Sequence[Literal["nodes", "one"]] | None  # ps: a parameter server in each node, which share the parameters, or one for all ranks [nodes]
    layers_per_unit: Number  # layers that are gathered together [1]
    ends_apart: Text  # fsdp2: the embedding is gathered by itself, and norm and head together, which stay gathered for the backward [0]
    narrow_shards: Text  # fsdp1, fsdp2: shards, their gradients and moments are in 16 bits, as of a model that was in bf16 when it was wrapped [0]
    limit_all_gathers: Text  # fsdp1: the host keeps at most two gathers in flight [1]
    backward_prefetch: Literal["pre", "post", "none"] | Sequence[Literal["pre", "post", "none"]] | None  # fsdp1: when the next gather of the backward is issued [pre]
    forward_prefetch: Number  # units gathered ahead in the forward by an explicit list (fsdp1: 0 or 1) [0]
    backward_prefetch_units: Number  # fsdp2: the same in the backward; 0: one, as it does by itself [0]
    reshard_after_forward: Number  # fsdp2: whether parameters are freed after the forward; N: sharded in groups of N until the backward [1 with zero 3, 0 with zero 2 or pp]
    reduce_bucket: Number  # elements of a bucket of gradients [5e8]
    allgather_bucket: Number  # stages 1 and 2: elements of one gather of parameters [5e8]
    prefetch_bucket: Number  # stage 3: elements gathered ahead; 0: none [5e7]
    persistence_threshold: Number  # stage 3: smaller parameters are never sharded; 0: all are [1e5]
    max_live_params: Number  # stage 3: gathered elements before gathering ahead stops; 0: at once [1e9]
    max_reuse_distance: Number  # stage 3: parameters are kept if fewer elements are used before their next use; 0: none [1e9]
    collective_lists: Text  # stage 3, of early 2021: parameters one by one and blocking, through lists of one tensor for each rank [0]
    bucket_all_reduce: Text  # stages 1 and 2: buckets are all-reduced, twice the bytes (use_multi_rank_bucket_allreduce), not reduced and scattered [0]
    bucket_late: Text  # stages 1 and 2: buckets are allocated with a backward's first gradient, not before it [0]
    hook_calls: Number  # stage 3: calls of Python functions at each visit of a weight's module, by hooks of it and of those without weights [0]
    gather_calls: Number  # stage 3: calls of functions of Python for each weight that is gathered [0]
    cuda_graphs: Literal["none", "layer", "step"] | Sequence[Literal["none", "layer", "step"]] | None  # what is launched as one CUDA graph: a layer each way, or the step up to the optimizer [none]
    host_launch: Text  # what issuing a kernel costs the host; 0us: nothing. Defaults are times the call_time of the cluster's CPUs [10us, or as a fit of the cluster has it]
    host_comm: Text  # the same for a collective or a group of sends and receives [20us]
    host_sync: Text  # what a synchronising call costs after the device is done [10us]
    host_view: Text  # a call from Python that launches nothing [2us]
    host_batch: Text  # with batch_sync: fetching a micro-batch [513us]
    host_product: Text  # a product of experts [33us; 0us if host_launch is]
    host_python: Text  # a call of a function of Python, which a captured step counts [1us]
    fold: Literal["auto", "off", "check"] | Sequence[Literal["auto", "off", "check"]] | None  # simulate ranks that behave alike once; check: both ways, exit 1 if they differ [auto]
    coarsen: Literal["auto", "off", "check"] | Sequence[Literal["auto", "off", "check"]] | None  # run undisturbed segments as one op, and no further step where it is known to repeat [auto]
    max_memory: Text  # memory that the simulation may take; a job that needs more is refused [16GiB]

class RunOptions(JobOptions, total=False):
    json: Switch  # Print JSON
    chrome_trace: Text  # Write a trace for Perfetto or chrome://tracing (.json, or .json.gz: packed)
    chrome_trace_all: Switch  # All ranks and ops in it, however large it is
    csv: Text  # Write every span: a row each, times in picoseconds
    links: Text  # Write what each link carried: a row each
    timeline: Text  # Draw the step (.svg; .png by gnuplot; .gp: its script); may be repeated
    timeline_rows: Text  # Its rows: ranks, or below each what is under way, its streams, its ops
    timeline_arrows: Switch  # With arrows: messages between ranks; of streams also what ops waited for
    timeline_ranks: Text  # Only these ranks in it; default: all, or one of each role
    timeline_window: Text  # Only this part of the step in it, such as 1.2s..1.35s
    timeline_width: Number  # Its pixels; default 1600
    memory_chart: Text  # Draw what the fullest rank holds over the step (.svg; .png; .gp: a script)
    critical_path: Switch  # Which ops, links and ranks the step went through
    sensitivity: Switch  # What a percent more FLOPs, bandwidth, latency is worth: a dozen runs more
    faults: Text  # Which link, gpu or node hurts most with SHARE left of it, default 0.5: a run for each kind of part
    ecmp_seeds: Number  # How the step varies with the seed of hashed routing: a run for each of N
    what_if: Switch  # What single changes gain, as lockstep whatif: a simulation of each
    jitter: File  # How steps vary, by how ranks and steps differ (lockstep list jitter)
    jitter_seed: Number  # What clusters are drawn by; default: 1
    report: Text  # Write it as a page to look at: one HTML file, which needs no network
    format: Text  # What to print; markdown: tables for an issue or a paper
    emit: Text  # Print the job for another program instead: megatron, torchtitan, deepspeed
    residuals: File  # Measured runs that the interval around the step comes from; none: no interval; default: those that the cluster was fitted to, else residuals
    show_placement: Switch  # Print which rank runs on which GPU with whom
    require_fit: Switch  # Exit 4 if it does not fit into memory
    model: File  # what is trained (lockstep list models), or a Hugging Face config.json
    from_: Text  # a launch script, configuration or log of another program; may be repeated
    cluster: File  # where (lockstep list clusters); NAME:KEY=VALUE,... changes it
    nodes: Number  # nodes of the cluster [the file's, or as many as the GPUs need]
    slice: Text  # chips of a TPU slice, which is a node, along x, y (and z) [as the GPUs need, with --nodes the largest]
    trace: File  # a trace that is replayed instead of a model (lockstep list traces); of the knobs of parallelism only dp goes with it
    gpus: Number  # ranks of the job [tp pp cp dp, or the whole cluster or slice]
    dp: Number  # data-parallel degree [gpus / (tp pp cp)]
    dtype: Literal["fp16", "bf16", "fp8", "nvfp4", "fp32"] | Sequence[Literal["fp16", "bf16", "fp8", "nvfp4", "fp32"]] | None  # format of parameters and activations [bf16]
    strategy: File  # knobs from a file (lockstep list strategies)
    attention: Literal["flash", "unfused", "auto"] | Sequence[Literal["flash", "unfused", "auto"]] | None  # attention kernels [the model's]
    order: Text  # the order of the pipeline's actions (CSV; lockstep schedule writes one) [the schedule's own]
    expert_load: Text  # how tokens fall on experts: even, round-robin (dealt out in turn), zipf:S (the busiest first), lognormal:SIGMA:SEED (anywhere), or weights a,b,... over and over [even]
    gpu_calibration: File  # what the GPU's kernels take (lockstep calibrate writes such a file) [own: as its GPU names]
    nccl: File  # what NCCL reaches (lockstep calibrate --nccl writes such a file) [own: as its GPU names]
    measured: Text  # a step that was run, to compare with: its time, other logged numbers such as tflops=145,memory=61GiB, and whose
    published: Text  # the same, of seconds with or without a unit
    nccl_env: Text  # variables of NCCL's environment, `NCCL_ALGO=Ring NCCL_NET=Socket`: what changes cluster or choices is simulated, the rest is reported [none]
    steps: Number  # steps simulated; fewer if all that follow are known to be the same [3]
    network: Literal["flow", "alphabeta", "step", "all"] | Sequence[Literal["flow", "alphabeta", "step", "all"]] | None  # shared links, no contention, every message of a collective, or all: flow, and how far the others disagree [flow]
    slow: Text  # stragglers: ranks whose kernels take so many times as long, or a log-normal spread of all [none]

def run(*, progress: Progress | None = None, **options: Unpack[RunOptions]) -> Result:
    """Simulates one training job: step time, where it goes, memory. Times are in seconds,
    batches in sequences, degrees in ranks. Options override --strategy, which overrides --software."""

class SweepOptions(JobOptions, total=False):
    command: Text  # Of --capture, after --: what starts the training, with {tp} where a value of --tp goes
    capture: Switch  # Layouts of a program of yours: each is captured (lockstep capture) and replayed on --cluster
    ranges: File  # Ranges of axes from a file; the flags override it
    prune: Text  # off: simulate all that may fit; default on
    top: Number  # How many ideas are ranked of each number of GPUs and global batch; default 5
    objective: Text  # What the best is best in: step; goodput: tokens that count, with failures; time-to-loss; cost-to-loss; default step
    loss: Text  # The loss, in nats per token: a law says how many tokens that takes
    tokens: Number  # Tokens that small batches need, in its place
    scaling_law: File  # The law of --loss (lockstep list scaling); default: besiroglu-2024
    critical_batch: File  # Where a larger batch begins to need more tokens: steps of B tokens need 1 + B / TOKENS times as many; a law says it of the loss
    reliability: File  # How often what fails (lockstep list reliability); none: nothing; default: llama3-h100, of TPUs none
    time_limit: Text  # End with the results so far after that time, with exit code 6
    pareto: Switch  # Also what nothing beats in time, memory and cost together
    threads: Number  # Threads; default: one per processor
    mpi: Switch  # With all processes that mpirun started
    gpu_hour: Text  # Dollars for an hour of a GPU; default: of May 2026
    gpu_watts: Text  # Power of a GPU, whatever it does; default: what is published of it by what it does, or its board limit
    pue: Text  # Power of the data centre over that; default 1.1
    list: Text  # Write every simulated configuration with its picoseconds (CSV)
    journal: Text  # Write down what is done; started again, the sweep goes on from there
    heat_map: Text  # Draw the best over two axes, with what a bound left out (.svg or .png; .gp: its script)
    heat_axes: Text  # Which axes, across and up; default tp,pp
    heat_figure: Text  # Of which figure: step, tokens, mfu; default step
    pareto_chart: Text  # Draw time, memory and cost (.svg or .png; .gp: its script); implies --pareto
    scaling_chart: Text  # Draw the best over several numbers of GPUs or batches against ideal scaling (.svg or .png; .gp: its script)
    emit: Text  # Print the best for that program instead, which --for names: megatron, torchtitan, deepspeed
    timing: Switch  # Also how long it took
    report: Text  # Write it as a page to look at: one HTML file, which needs no network
    format: Text  # What to print; markdown: tables for an issue or a paper
    json: Switch  # Print JSON
    csv: Switch  # Print a row for each of the best
    model: File  # what is trained (lockstep list models), or a Hugging Face config.json
    from_: Text  # a launch script, configuration or log of another program; may be repeated
    cluster: File  # where (lockstep list clusters); NAME:KEY=VALUE,... changes it
    nodes: Number  # nodes of the cluster [the file's, or as many as the GPUs need]
    gpus: Number  # ranks of the job [tp pp cp dp, or the whole cluster or slice]
    dtype: Literal["fp16", "bf16", "fp8", "nvfp4", "fp32"] | Sequence[Literal["fp16", "bf16", "fp8", "nvfp4", "fp32"]] | None  # format of parameters and activations [bf16]
    strategy: File  # knobs from a file (lockstep list strategies)
    attention: Literal["flash", "unfused", "auto"] | Sequence[Literal["flash", "unfused", "auto"]] | None  # attention kernels [the model's]
    expert_load: Text  # how tokens fall on experts: even, round-robin (dealt out in turn), zipf:S (the busiest first), lognormal:SIGMA:SEED (anywhere), or weights a,b,... over and over [even]
    gpu_calibration: File  # what the GPU's kernels take (lockstep calibrate writes such a file) [own: as its GPU names]
    nccl: File  # what NCCL reaches (lockstep calibrate --nccl writes such a file) [own: as its GPU names]
    nccl_env: Text  # variables of NCCL's environment, `NCCL_ALGO=Ring NCCL_NET=Socket`: what changes cluster or choices is simulated, the rest is reported [none]
    steps: Number  # steps simulated; fewer if all that follow are known to be the same [3]
    network: Literal["flow", "alphabeta", "step", "all"] | Sequence[Literal["flow", "alphabeta", "step", "all"]] | None  # shared links, no contention, every message of a collective, or all: flow, and how far the others disagree [flow]

def sweep(*arguments: Text, progress: Progress | None = None, **options: Unpack[SweepOptions]) -> SweepResult:
    """The best of all legal configurations: enumerated, those that cannot fit or cannot win left out
    by bounds, the rest simulated on threads. --gpus, --global-batch, --tp, --pp, --cp, --ep, --vpp,
    --sp, --zero, --dp-kind, --micro-batch, --schedule, --recompute and --tp-overlap take a list
    ("1,2,4", or the doublings "1..4") that narrows their range; every other knob of parallelism
    takes one too (--p2p batched,overlapped; where values have commas: --layers-per-chunk
    auto/balanced/4x13,3x3). The other options that say which job are those of lockstep run, --for and
    --headroom among them. With --capture the layouts are those of a program of yours: each is captured
    (lockstep capture), and its step replayed on --cluster."""

class CollectiveOptions(JobOptions, total=False):
    file: Text  # With --tune: launch files of other programs, a job each; default: the job of the options. With --compare: more measured ones
    cluster: File  # On which cluster
    nodes: Number  # Nodes of the cluster; default: the file's, or as many as the GPUs need
    slice: Text  # Chips of a TPU slice along x, y (and z); default: as the GPUs need, with --nodes the largest
    gpus: Text  # GPUs used, the first ones: 8, or each of 8,16,24, or doublings 2..1024; default: all of the nodes
    nccl: File  # What NCCL reaches (lockstep calibrate --nccl writes such a file); default: as the cluster's GPU names
    nccl_env: Text  # NCCL's environment: what of it changes cluster or choices is simulated, the rest is reported
    op: Text  # Which operation, such as all-reduce; a wrong one is answered with a list; with --compare: only its rows
    algorithm: Text  # By which algorithm, such as ring; a wrong one is answered with a list; default: as NCCL
    max_ctas: Number  # Thread blocks of NCCL's kernel at most (ncclConfig_t.maxCTAs); default: as many as it has channels
    protocol: Text  # NCCL's protocol; default: as NCCL
    network: Text  # Fidelity of the network; all: next to each other, and how they disagree; default: flow
    min: Text  # Smallest size; default: 1KiB; of several numbers of GPUs 1MiB; of --compare all
    max: Text  # Largest size; default: 8GiB; of --compare all
    factor: Number  # A size over the one before; default: 2; of several numbers of GPUs 8
    messages: Switch  # Also every message of the algorithm, round by round, and who holds what before and after: of one size, --min, on 16 GPUs at most
    compare: Text  # Simulate measured times: of a CSV, or of logs of nccl-tests or rccl-tests, which name operation, GPUs and devices; the flags above select some
    trust: Text  # With --compare: only rows of this trust; default: A, if there is such a column
    tune: Switch  # A table of the best way of each collective of jobs, for NCCL's tuner plug-in; FILEs, or the options of a job
    output: Text  # With --tune: write the table, for NCCL_TUNER_CONFIG_FILE
    report: Text  # Write it as a page to look at: one HTML file, which needs no network
    format: Text  # What to print; markdown: tables for an issue or a paper
    json: Switch  # Print JSON
    csv: Switch  # Print CSV
    plot: Text  # Draw bus bandwidth over size or GPUs (.svg or .png, by gnuplot; .gp: its script); may be repeated
    model: File  # what is trained (lockstep list models), or a Hugging Face config.json
    from_: Text  # a launch script, configuration or log of another program; may be repeated
    trace: File  # a trace that is replayed instead of a model (lockstep list traces); of the knobs of parallelism only dp goes with it
    dp: Number  # data-parallel degree [gpus / (tp pp cp)]
    dtype: Literal["fp16", "bf16", "fp8", "nvfp4", "fp32"] | Sequence[Literal["fp16", "bf16", "fp8", "nvfp4", "fp32"]] | None  # format of parameters and activations [bf16]
    strategy: File  # knobs from a file (lockstep list strategies)
    attention: Literal["flash", "unfused", "auto"] | Sequence[Literal["flash", "unfused", "auto"]] | None  # attention kernels [the model's]
    order: Text  # the order of the pipeline's actions (CSV; lockstep schedule writes one) [the schedule's own]
    expert_load: Text  # how tokens fall on experts: even, round-robin (dealt out in turn), zipf:S (the busiest first), lognormal:SIGMA:SEED (anywhere), or weights a,b,... over and over [even]
    gpu_calibration: File  # what the GPU's kernels take (lockstep calibrate writes such a file) [own: as its GPU names]
    measured: Text  # a step that was run, to compare with: its time, other logged numbers such as tflops=145,memory=61GiB, and whose
    published: Text  # the same, of seconds with or without a unit
    steps: Number  # steps simulated; fewer if all that follow are known to be the same [3]
    slow: Text  # stragglers: ranks whose kernels take so many times as long, or a log-normal spread of all [none]

def collective(*arguments: Text, progress: Progress | None = None, **options: Unpack[CollectiveOptions]) -> Result:
    """Times one operation alone on a cluster, over sizes and numbers of GPUs, in the shape of nccl-tests;
    or, with --compare, measured ones, and how far off they are. Sizes are those of nccl-tests:
    the whole array; of all-to-all, what one rank sends. Or, with --tune, a table of the best algorithm,
    protocol and number of channels of each collective of jobs, for NCCL's tuner."""

class KernelOptions(JobOptions, total=False):
    gpu: File  # On which GPU: a name (lockstep list gpus) or a file
    gpu_calibration: File  # What its kernels take (lockstep calibrate writes such a file); default: as the GPU names
    gemm: Text  # A matrix product, M x K times K x N
    batch: Number  # So many of them in one kernel; default 1
    layout: Text  # Which operands are transposed, as BLAS says it: tn, nn, nt, tt; default tn, the only one that was measured: the time is the same, but counts as extrapolated
    attention: Text  # Flash attention: sequences, tokens, heads, key/value heads, width of a head
    causal: Text  # Whether tokens see only those before them; default 1
    backward: Switch  # The gradient of attention; default: the forward
    op: Text  # A kernel that streams: softmax, norm, elementwise, reduction, embedding, cross-entropy, optimizer, memset
    shape: Text  # Its elements, read and written once: two tensors in and one out for elementwise, one and one for softmax, norm and embedding, 30 bytes an element for optimizer, one tensor for others
    bytes: Text  # Its traffic instead; with --access besides
    access: Text  # How it touches memory, as kernels of PyTorch do that are not fused: vec, castup, bcast16, strided16, cat, ... (manual: formats/access.md)
    dtype: Text  # fp32, tf32, fp16, bf16, fp8 or nvfp4; default bf16; of --from only such rows
    sustained: Switch  # As inside a training step, on a hot chip, instead of in a loop of its own
    from_: Text  # The kernels of a table: GEMM (m, n, k), attention, streaming or vidur's mlp.csv
    measured: Text  # Takes times from such a table where it has the kernel, or a GEMM between two values of m
    holdout: Switch  # Of --from only families that are held out of the fits
    min_m: Number  # Of --from only GEMMs with at least so many rows
    min_seq: Number  # Only attention over at least so many tokens
    min_flops: Number  # Only kernels of at least so many FLOPs, such as 1e9
    min_bytes: Text  # Only kernels of at least so much traffic, such as 8MB
    list_shapes: Switch  # The kernels of a job, for kernelbench --shapes
    json: Switch  # Print JSON
    model: File  # what is trained (lockstep list models), or a Hugging Face config.json
    cluster: File  # where (lockstep list clusters); NAME:KEY=VALUE,... changes it
    nodes: Number  # nodes of the cluster [the file's, or as many as the GPUs need]
    slice: Text  # chips of a TPU slice, which is a node, along x, y (and z) [as the GPUs need, with --nodes the largest]
    trace: File  # a trace that is replayed instead of a model (lockstep list traces); of the knobs of parallelism only dp goes with it
    gpus: Number  # ranks of the job [tp pp cp dp, or the whole cluster or slice]
    dp: Number  # data-parallel degree [gpus / (tp pp cp)]
    strategy: File  # knobs from a file (lockstep list strategies)
    order: Text  # the order of the pipeline's actions (CSV; lockstep schedule writes one) [the schedule's own]
    expert_load: Text  # how tokens fall on experts: even, round-robin (dealt out in turn), zipf:S (the busiest first), lognormal:SIGMA:SEED (anywhere), or weights a,b,... over and over [even]
    nccl: File  # what NCCL reaches (lockstep calibrate --nccl writes such a file) [own: as its GPU names]
    published: Text  # the same, of seconds with or without a unit
    nccl_env: Text  # variables of NCCL's environment, `NCCL_ALGO=Ring NCCL_NET=Socket`: what changes cluster or choices is simulated, the rest is reported [none]
    steps: Number  # steps simulated; fewer if all that follow are known to be the same [3]
    network: Literal["flow", "alphabeta", "step", "all"] | Sequence[Literal["flow", "alphabeta", "step", "all"]] | None  # shared links, no contention, every message of a collective, or all: flow, and how far the others disagree [flow]
    slow: Text  # stragglers: ranks whose kernels take so many times as long, or a log-normal spread of all [none]

def kernel(*, progress: Progress | None = None, **options: Unpack[KernelOptions]) -> Result:
    """Time of a kernel alone on a GPU, where the figure comes from and what limits it; or of
    a table of kernels, and the errors where they were measured. Or the kernels of a job, as
    a list that tools/kernelbench times."""

class CalibrateOptions(JobOptions, total=False):
    file: Text  # Measured times
    gpu: File  # On which GPU they ran; default: that which a profile names
    nccl: Switch  # The files are outputs of nccl-tests, or tables of measured collectives
    cluster: File  # Where they ran; required with --nccl and --pytorch-trace
    op: Text  # With --nccl: what ran; default: what the files say
    runs: Text  # Step times measured on one cluster, as lockstep validate reads them: a table or logs
    threads: Number  # With --runs: simulations at once; default: one per processor
    pytorch_trace: Text  # What torch.profiler wrote of one rank, .json or .json.gz
    rank: Number  # With --pytorch-trace: which of the job's; default: as the trace says, else 0
    step: Text  # With --pytorch-trace: N of ProfilerStep#N, or a range such as 120ms:180ms; default: the last whole one
    other_job: Switch  # With --pytorch-trace: compare a profile that is plainly of another job too
    json: Switch  # With --pytorch-trace: print JSON
    template: Text  # Print a table to fill in, and exit
    hold_out: Text  # Of kernels: how many families are kept from the fit and predicted; default fifth
    max_mape: Text  # Of kernels: exit 5 if those held out are off by more percent in the mean
    output: Text  # Write the calibration there; with --pytorch-trace the software, for --software
    cluster_output: Text  # Of kernels, with --cluster: write it there with its links as measured, simulated with the calibration of -o
    plot: Text  # Draw predicted over measured time (.svg or .png, by gnuplot; .gp: its script); may be repeated
    model: File  # what is trained (lockstep list models), or a Hugging Face config.json
    from_: Text  # a launch script, configuration or log of another program; may be repeated
    nodes: Number  # nodes of the cluster [the file's, or as many as the GPUs need]
    slice: Text  # chips of a TPU slice, which is a node, along x, y (and z) [as the GPUs need, with --nodes the largest]
    trace: File  # a trace that is replayed instead of a model (lockstep list traces); of the knobs of parallelism only dp goes with it
    gpus: Number  # ranks of the job [tp pp cp dp, or the whole cluster or slice]
    dp: Number  # data-parallel degree [gpus / (tp pp cp)]
    dtype: Literal["fp16", "bf16", "fp8", "nvfp4", "fp32"] | Sequence[Literal["fp16", "bf16", "fp8", "nvfp4", "fp32"]] | None  # format of parameters and activations [bf16]
    strategy: File  # knobs from a file (lockstep list strategies)
    attention: Literal["flash", "unfused", "auto"] | Sequence[Literal["flash", "unfused", "auto"]] | None  # attention kernels [the model's]
    order: Text  # the order of the pipeline's actions (CSV; lockstep schedule writes one) [the schedule's own]
    expert_load: Text  # how tokens fall on experts: even, round-robin (dealt out in turn), zipf:S (the busiest first), lognormal:SIGMA:SEED (anywhere), or weights a,b,... over and over [even]
    gpu_calibration: File  # what the GPU's kernels take (lockstep calibrate writes such a file) [own: as its GPU names]
    measured: Text  # a step that was run, to compare with: its time, other logged numbers such as tflops=145,memory=61GiB, and whose
    published: Text  # the same, of seconds with or without a unit
    nccl_env: Text  # variables of NCCL's environment, `NCCL_ALGO=Ring NCCL_NET=Socket`: what changes cluster or choices is simulated, the rest is reported [none]
    steps: Number  # steps simulated; fewer if all that follow are known to be the same [3]
    network: Literal["flow", "alphabeta", "step", "all"] | Sequence[Literal["flow", "alphabeta", "step", "all"]] | None  # shared links, no contention, every message of a collective, or all: flow, and how far the others disagree [flow]
    slow: Text  # stragglers: ranks whose kernels take so many times as long, or a log-normal spread of all [none]

def calibrate(*arguments: Text, progress: Progress | None = None, **options: Unpack[CalibrateOptions]) -> Result:
    """Fits the kernels of a GPU to measured ones, NCCL to outputs of nccl-tests, or a cluster to
    step times measured on it; prints how far off the fit is, on what it saw and on what was
    held out. Or lays a step that torch.profiler recorded next to the predicted one, op by op."""

class CompareOptions(JobOptions, total=False):
    file: File  # Results of lockstep run --json, or launch files that import reads, which are simulated; with --spans tables of spans
    from_: Text  # A launch file, as its name alone is, after those: a side of its own; may be repeated
    spans: Switch  # The files hold spans, the measured ones first
    max_error: Text  # With --spans: exit 5 if the predicted step is off by more percent
    report: Text  # Write it as a page to look at: one HTML file, which needs no network
    format: Text  # What to print; markdown: tables for an issue or a paper
    json: Switch  # Print JSON
    cluster: File  # where (lockstep list clusters); NAME:KEY=VALUE,... changes it
    nodes: Number  # nodes of the cluster [the file's, or as many as the GPUs need]
    slice: Text  # chips of a TPU slice, which is a node, along x, y (and z) [as the GPUs need, with --nodes the largest]
    gpus: Number  # ranks of the job [tp pp cp dp, or the whole cluster or slice]
    dp: Number  # data-parallel degree [gpus / (tp pp cp)]
    dtype: Literal["fp16", "bf16", "fp8", "nvfp4", "fp32"] | Sequence[Literal["fp16", "bf16", "fp8", "nvfp4", "fp32"]] | None  # format of parameters and activations [bf16]
    attention: Literal["flash", "unfused", "auto"] | Sequence[Literal["flash", "unfused", "auto"]] | None  # attention kernels [the model's]
    order: Text  # the order of the pipeline's actions (CSV; lockstep schedule writes one) [the schedule's own]
    expert_load: Text  # how tokens fall on experts: even, round-robin (dealt out in turn), zipf:S (the busiest first), lognormal:SIGMA:SEED (anywhere), or weights a,b,... over and over [even]
    gpu_calibration: File  # what the GPU's kernels take (lockstep calibrate writes such a file) [own: as its GPU names]
    nccl: File  # what NCCL reaches (lockstep calibrate --nccl writes such a file) [own: as its GPU names]
    nccl_env: Text  # variables of NCCL's environment, `NCCL_ALGO=Ring NCCL_NET=Socket`: what changes cluster or choices is simulated, the rest is reported [none]
    steps: Number  # steps simulated; fewer if all that follow are known to be the same [3]
    network: Literal["flow", "alphabeta", "step", "all"] | Sequence[Literal["flow", "alphabeta", "step", "all"]] | None  # shared links, no contention, every message of a collective, or all: flow, and how far the others disagree [flow]
    slow: Text  # stragglers: ranks whose kernels take so many times as long, or a log-normal spread of all [none]

def compare(*arguments: Text, progress: Progress | None = None, **options: Unpack[CompareOptions]) -> Result:
    """Results of lockstep run --json side by side: which options differ, which parts of the step,
    of the memory and of the links moved, and by how much; of more than two, a column each. Launch files
    of other programs are simulated on --cluster, with the options of lockstep run. Or spans
    that kernelbench --plan measured on a GPU together with those that lockstep run --csv predicted: by
    kernel, gaps and the whole."""

class TopologyOptions(TypedDict, total=False):
    cluster: File  # Which cluster
    from_: Text  # A node or a fabric in a file of another program (topo -m, lstopo, ibnetdiscover, ...), or a cluster whose node it is; repeated, what makes one cluster
    output: Text  # With --from: write the cluster there
    nodes: Number  # Nodes of the cluster; default: the file's
    gpus: Number  # As many nodes as hold so many GPUs
    slice: Text  # Chips of a TPU slice along x, y (and z)
    links: Switch  # List every kind of link, with its source
    all: Switch  # List every link, not only kinds; also in JSON
    path: Text  # Show the way between two GPUs, such as 0,12 or node0/gpu0,node1/gpu4; may be repeated
    dot: Text  # Write a graph for Graphviz
    svg: Text  # Draw the cluster (.svg; .gp: a script for gnuplot)
    png: Text  # The same as PNG, by gnuplot
    json: Switch  # Print JSON

def topology(*, progress: Progress | None = None, **options: Unpack[TopologyOptions]) -> Result:
    """Shows a cluster: what a node consists of, what joins the nodes, how much gets through at
    each level and between halves, and the way from one GPU to another. Rates are of one
    direction."""

class ScheduleOptions(TypedDict, total=False):
    schedule: Text  # A schedule's name, several to compare and to draw under each other, or a file in PyTorch's text format
    all: Switch  # Compare all schedules for the same job
    pp: Text  # Ranks of the pipeline
    vpp: Text  # Chunks of a rank, where a schedule leaves a choice; of several default 2
    micro_batches: Text  # Micro-batches of a step
    group: Number  # Micro-batches that pass a chunk before the next chunk's turn: interleaved-1f1b, default P; hanayo, default M
    rounds: Text  # Whose rule forms the groups of interleaved-1f1b; default megatron
    waves: Text  # Waves of hanayo, of two chunks each; default 1
    pipes: Text  # Replicas of chimera, half in each direction; default 2
    f_time: Text  # Forward of a chunk (of several schedules: of a rank's whole share): a number, or all times with a unit; default 1
    b_time: Text  # Full backward, default 2; with --w-time the input gradient, default 1
    w_time: Text  # Weight gradient; default: half of the backward
    fb_time: Text  # A forward and a backward together; default: one after the other
    comm_time: Text  # From a rank to another; default 0
    memory_limit: Text  # For orders that are searched for: micro-batches of a rank's full activations; of several others are marked that exceed it
    format: Text  # What to print; png is drawn by gnuplot
    report: Text  # Write it as a page to look at: one HTML file, which needs no network
    json: Switch  # The same as --format json
    output: Text  # Where to; default: stdout, but for pictures
    plot: Text  # Draw as well (.svg; .png and .gp by gnuplot): the schedule, several on one scale, or with --all bubbles over micro-batches and over stages
    width: Number  # Columns of the text; default: the terminal's, or 120

def schedule(*, progress: Progress | None = None, **options: Unpack[ScheduleOptions]) -> Result:
    """Draws and times a pipeline schedule: the order in which each rank executes forwards and
    backwards, its makespan, bubble and activations; or compares all of them. Without link
    contention and with equal stages: `lockstep run` has both."""

class ValidateOptions(TypedDict, total=False):
    cases: Text  # Tables of measured runs, a row each (CSV), and logs of programs that import reads
    from_: Text  # A log, as its name alone is: a job of its own; may be repeated
    cluster: File  # Where the logs ran, and rows that name no cluster; without it, such rows by their hardware
    split: Text  # Only rows of this split
    only: Text  # Only rows whose id matches
    threads: Number  # Threads; default: one per processor
    mpi: Switch  # With all processes that mpirun started
    assume: Text  # Sets a knob of the strategy, or a host cost, for every row, whatever the row says; may be repeated
    max_mape: Text  # Exit 5 if the mean absolute error in percent is larger
    coverage: Switch  # Whether intervals as of run hold: those of each source by what the others measured
    min_coverage: Text  # With coverage: exit 5 if they hold less percent, each source counting once
    max_width: Text  # With coverage: exit 5 if their median width in percent is larger, likewise
    residuals: Text  # Write what was measured over what was predicted, for run --residuals
    fold: Text  # As for run
    coarsen: Text  # As for run
    network: Text  # As for run
    steps: Number  # As for run
    memory_clock: Text  # As for run
    memory_allocator: Text  # As for run
    gpu_calibration: File  # As for run
    nccl: File  # As for run
    chart: Text  # Draw predicted over measured time (.svg or .png, by gnuplot; .gp: its script)
    markdown: Text  # Write the scores by family as a table in Markdown
    ablate: Switch  # Simulate all again with each mechanism off in turn, and show what that does to the errors
    template: Switch  # Print a file of cases to fill in, and exit
    report: Text  # Write it as a page to look at: one HTML file, which needs no network
    json: Switch  # Print JSON

def validate(*arguments: Text, progress: Progress | None = None, **options: Unpack[ValidateOptions]) -> Result:
    """Simulates measured training runs and compares the step times. A case that needs a
    mechanism which does not exist yet is refused with the reason, never guessed."""

class WhatifOptions(JobOptions, total=False):
    top: Number  # Changes shown that gain and fit; default 15
    all: Switch  # Show all, also those that gain nothing or are not possible, with the reasons
    software_each: Switch  # In the place of changes, the job in each program that can run it, with that one's defaults
    threads: Number  # Simulations at once; default one per processor
    report: Text  # Write it as a page to look at: one HTML file, which needs no network
    format: Text  # What to print; markdown: tables for an issue or a paper
    json: Switch  # Print JSON
    csv: Switch  # Print a row for each change
    model: File  # what is trained (lockstep list models), or a Hugging Face config.json
    from_: Text  # a launch script, configuration or log of another program; may be repeated
    cluster: File  # where (lockstep list clusters); NAME:KEY=VALUE,... changes it
    nodes: Number  # nodes of the cluster [the file's, or as many as the GPUs need]
    slice: Text  # chips of a TPU slice, which is a node, along x, y (and z) [as the GPUs need, with --nodes the largest]
    trace: File  # a trace that is replayed instead of a model (lockstep list traces); of the knobs of parallelism only dp goes with it
    gpus: Number  # ranks of the job [tp pp cp dp, or the whole cluster or slice]
    dp: Number  # data-parallel degree [gpus / (tp pp cp)]
    dtype: Literal["fp16", "bf16", "fp8", "nvfp4", "fp32"] | Sequence[Literal["fp16", "bf16", "fp8", "nvfp4", "fp32"]] | None  # format of parameters and activations [bf16]
    strategy: File  # knobs from a file (lockstep list strategies)
    attention: Literal["flash", "unfused", "auto"] | Sequence[Literal["flash", "unfused", "auto"]] | None  # attention kernels [the model's]
    order: Text  # the order of the pipeline's actions (CSV; lockstep schedule writes one) [the schedule's own]
    expert_load: Text  # how tokens fall on experts: even, round-robin (dealt out in turn), zipf:S (the busiest first), lognormal:SIGMA:SEED (anywhere), or weights a,b,... over and over [even]
    gpu_calibration: File  # what the GPU's kernels take (lockstep calibrate writes such a file) [own: as its GPU names]
    nccl: File  # what NCCL reaches (lockstep calibrate --nccl writes such a file) [own: as its GPU names]
    measured: Text  # a step that was run, to compare with: its time, other logged numbers such as tflops=145,memory=61GiB, and whose
    published: Text  # the same, of seconds with or without a unit
    nccl_env: Text  # variables of NCCL's environment, `NCCL_ALGO=Ring NCCL_NET=Socket`: what changes cluster or choices is simulated, the rest is reported [none]
    steps: Number  # steps simulated; fewer if all that follow are known to be the same [3]
    network: Literal["flow", "alphabeta", "step", "all"] | Sequence[Literal["flow", "alphabeta", "step", "all"]] | None  # shared links, no contention, every message of a collective, or all: flow, and how far the others disagree [flow]
    slow: Text  # stragglers: ranks whose kernels take so many times as long, or a log-normal spread of all [none]

def whatif(*, progress: Progress | None = None, **options: Unpack[WhatifOptions]) -> Result:
    """Makes single changes to a job, simulates each, and ranks them by what they gain: pipeline
    schedules and chunks, layouts, micro-batches, recomputation, offloading, overlap, data
    parallelism, number formats, faster links, later GPUs. Each line shows the options to append
    to the job. The options that say which job are those of lockstep run."""

class TrainOptions(JobOptions, total=False):
    tokens: Number  # Tokens to train on: 15T, 300B, 2e11
    train_steps: Number  # Steps to train for, in their place
    loss: Text  # Loss to train to, in nats per token, in their place: a law says how many tokens that takes
    scaling_law: File  # The law of --loss, or what loss --tokens come to (lockstep list scaling); default: besiroglu-2024
    days: Number  # Look at the run after so many days, if it is not done by then
    phase: Text  # A part of the run with its own knobs: tokens=2T (or steps=N), name=TEXT, and knobs of the job, such as global-batch=1024,seq=4096; may be repeated
    batch_ramp: Text  # The batch grows from START by INCREMENT to the job's over N sequences, as Megatron-LM's --rampup-batch-size
    critical_batch: File  # Where a larger batch begins to need more tokens: --tokens is then what small batches need, and steps of B tokens need 1 + B / TOKENS times as many; a law says it of the loss at the end
    batches: Text  # Other global batches, each simulated, to the same end: 512,1024, or doublings 512..8192
    reliability: File  # How often what fails (lockstep list reliability); none: nothing; default: llama3-h100, of TPUs none
    jitter: File  # How steps vary (lockstep list jitter); off: each takes as predicted; default: mlperf-5.1, of TPUs off
    jitter_seed: Number  # What clusters are drawn by; default: 1
    checkpoint_every: Text  # Steps or time from a checkpoint to the next; auto: the best; scan: that and its multiples; of several the first is the run, the others are compared; default: auto
    checkpoint_to: Text  # Where to: storage that all share, memory of another node, drives of the node; default: storage
    checkpoint_async: Text  # The job waits for the copy to the host only, not for the storage; default: 0
    checkpoint_save: Text  # How long the job waits, in place of size over rate
    checkpoint_write: Text  # And until it may be read, while the job runs
    checkpoint_read: Text  # And how long reading it takes at a restart
    storage_bandwidth: Text  # Of the storage, for all GPUs together; default: 150 MB/s for each GPU
    storage_every: Number  # With peer and local: every n-th checkpoint goes to storage too; default: 10
    spares: Text  # Spare nodes; without one the job waits for a repair; several are compared; default: any
    elastic: Text  # Without a spare it goes on with fewer replicas; default: 0
    seeds: Number  # Runs to draw; default: 100
    first_seed: Number  # The seed of the first; default: 1
    gpu_hour: Text  # Dollars for an hour of a GPU; default: of May 2026
    gpu_watts: Text  # Power of a GPU, whatever it does; default: what is published of it by what it does, or its board limit
    pue: Text  # Power of the data centre over that; default 1.1
    co2: Text  # Grams of CO2 for a kWh; default: not counted
    ignore_memory: Switch  # Answer also for a job that does not fit into memory; else exit 4
    threads: Number  # Runs at once; default one per processor
    mpi: Switch  # With all processes that mpirun started
    plot: Text  # Draw what held up the run of the first seed, and what is lost by kind and cause (.svg or .png; .gp: its script)
    report: Text  # Write it as a page to look at: one HTML file, which needs no network
    format: Text  # What to print; markdown: tables for an issue or a paper
    json: Switch  # Print JSON
    csv: Switch  # Print a row for each cause of failures, interval and batch
    model: File  # what is trained (lockstep list models), or a Hugging Face config.json
    from_: Text  # a launch script, configuration or log of another program; may be repeated
    cluster: File  # where (lockstep list clusters); NAME:KEY=VALUE,... changes it
    nodes: Number  # nodes of the cluster [the file's, or as many as the GPUs need]
    slice: Text  # chips of a TPU slice, which is a node, along x, y (and z) [as the GPUs need, with --nodes the largest]
    trace: File  # a trace that is replayed instead of a model (lockstep list traces); of the knobs of parallelism only dp goes with it
    gpus: Number  # ranks of the job [tp pp cp dp, or the whole cluster or slice]
    dp: Number  # data-parallel degree [gpus / (tp pp cp)]
    dtype: Literal["fp16", "bf16", "fp8", "nvfp4", "fp32"] | Sequence[Literal["fp16", "bf16", "fp8", "nvfp4", "fp32"]] | None  # format of parameters and activations [bf16]
    strategy: File  # knobs from a file (lockstep list strategies)
    attention: Literal["flash", "unfused", "auto"] | Sequence[Literal["flash", "unfused", "auto"]] | None  # attention kernels [the model's]
    order: Text  # the order of the pipeline's actions (CSV; lockstep schedule writes one) [the schedule's own]
    expert_load: Text  # how tokens fall on experts: even, round-robin (dealt out in turn), zipf:S (the busiest first), lognormal:SIGMA:SEED (anywhere), or weights a,b,... over and over [even]
    gpu_calibration: File  # what the GPU's kernels take (lockstep calibrate writes such a file) [own: as its GPU names]
    nccl: File  # what NCCL reaches (lockstep calibrate --nccl writes such a file) [own: as its GPU names]
    nccl_env: Text  # variables of NCCL's environment, `NCCL_ALGO=Ring NCCL_NET=Socket`: what changes cluster or choices is simulated, the rest is reported [none]
    steps: Number  # steps simulated; fewer if all that follow are known to be the same [3]
    network: Literal["flow", "alphabeta", "step", "all"] | Sequence[Literal["flow", "alphabeta", "step", "all"]] | None  # shared links, no contention, every message of a collective, or all: flow, and how far the others disagree [flow]
    slow: Text  # stragglers: ranks whose kernels take so many times as long, or a log-normal spread of all [none]

def train(*, progress: Progress | None = None, **options: Unpack[TrainOptions]) -> Result:
    """Simulates a step of each phase of a training run, and then the run: checkpoints, failures,
    restarts, spare nodes, event by event, for many seeds. Says how long it takes, what it
    costs, and where time is lost. The options that say which job are those of lockstep run."""

class MemoryOptions(JobOptions, total=False):
    memory_chart: Text  # Draw a rank over the step (.svg; .png by gnuplot; .gp: its script)
    snapshot: Text  # Write what PyTorch's allocator does as a memory snapshot of PyTorch (.pickle), for pytorch.org/memory_viz
    rank: Text  # The rank that --memory-chart draws, those that --snapshot has; default: the fullest
    report: Text  # Write it as a page to look at: one HTML file, which needs no network
    format: Text  # What to print; markdown: tables for an issue or a paper
    no_advice: Switch  # Do not simulate what would make it fit
    json: Switch  # Print JSON
    csv: Switch  # Print a row for each class of ranks
    require_fit: Switch  # Exit 4 if it does not fit into memory
    model: File  # what is trained (lockstep list models), or a Hugging Face config.json
    from_: Text  # a launch script, configuration or log of another program; may be repeated
    cluster: File  # where (lockstep list clusters); NAME:KEY=VALUE,... changes it
    nodes: Number  # nodes of the cluster [the file's, or as many as the GPUs need]
    slice: Text  # chips of a TPU slice, which is a node, along x, y (and z) [as the GPUs need, with --nodes the largest]
    trace: File  # a trace that is replayed instead of a model (lockstep list traces); of the knobs of parallelism only dp goes with it
    gpus: Number  # ranks of the job [tp pp cp dp, or the whole cluster or slice]
    dp: Number  # data-parallel degree [gpus / (tp pp cp)]
    dtype: Literal["fp16", "bf16", "fp8", "nvfp4", "fp32"] | Sequence[Literal["fp16", "bf16", "fp8", "nvfp4", "fp32"]] | None  # format of parameters and activations [bf16]
    strategy: File  # knobs from a file (lockstep list strategies)
    attention: Literal["flash", "unfused", "auto"] | Sequence[Literal["flash", "unfused", "auto"]] | None  # attention kernels [the model's]
    order: Text  # the order of the pipeline's actions (CSV; lockstep schedule writes one) [the schedule's own]
    expert_load: Text  # how tokens fall on experts: even, round-robin (dealt out in turn), zipf:S (the busiest first), lognormal:SIGMA:SEED (anywhere), or weights a,b,... over and over [even]
    gpu_calibration: File  # what the GPU's kernels take (lockstep calibrate writes such a file) [own: as its GPU names]
    nccl: File  # what NCCL reaches (lockstep calibrate --nccl writes such a file) [own: as its GPU names]
    measured: Text  # a step that was run, to compare with: its time, other logged numbers such as tflops=145,memory=61GiB, and whose
    published: Text  # the same, of seconds with or without a unit
    nccl_env: Text  # variables of NCCL's environment, `NCCL_ALGO=Ring NCCL_NET=Socket`: what changes cluster or choices is simulated, the rest is reported [none]
    steps: Number  # steps simulated; fewer if all that follow are known to be the same [3]
    network: Literal["flow", "alphabeta", "step", "all"] | Sequence[Literal["flow", "alphabeta", "step", "all"]] | None  # shared links, no contention, every message of a collective, or all: flow, and how far the others disagree [flow]
    slow: Text  # stragglers: ranks whose kernels take so many times as long, or a log-normal spread of all [none]

def memory(*, progress: Progress | None = None, **options: Unpack[MemoryOptions]) -> Result:
    """What each rank of a job holds at its peak, by category, when and in which op, next to the
    formulas of the papers. If it does not fit: which changes make it fit, simulated, the
    fastest first. The options that say which job are those of lockstep run."""

class CaptureOptions(JobOptions, total=False):
    command: Text  # What starts the training, after --: python, torchrun, accelerate, deepspeed, a shell script
    memory: Switch  # Say what it allocates, where, and whether it fits
    output: Text  # Write a trace of its last step into a new folder, which run --trace replays on any cluster
    compare: Switch  # Its step next to the plan of the same job: what either does that the other does not, and why
    trace: Text  # With --compare: a step that was captured before, in the place of COMMAND
    profile: Text  # Write the software profile that is nearest to captured steps of the jobs of --jobs
    jobs: Text  # With --profile: a CSV with a column trace, folders of captured steps, and options of each job
    cluster: File  # On which its ranks run: its GPU, and how many a node has
    gpu: File  # The GPU alone, eight to a node; default h100
    world: Number  # Ranks in all; default: those that the command starts
    ranks: Text  # Those that are run, as 0,8,16: default auto: one of each role, and one where all have the same
    members: Number  # Of each role, how many ranks are run and compared; default 1, but 2 of one of four roles or more
    keep: Text  # Where a capture that is stopped leaves what it did: the same command goes on with that
    rank: Number  # The only one that is run, for all of them
    expert_load: Text  # What a router is assumed to choose, where its values are not known; default: each as likely
    clock: Text  # Run it once more on the time that is predicted for --cluster: its own log, timers, tuners show that
    steps: Number  # Steps of its optimizer; it is ended when the next one begins; default 2, with --clock 20
    range: Switch  # Run it twice more, as on GPUs of half and of double the speed, and say what is reserved there
    snapshot: Text  # Write PyTorch's own memory snapshot (.pickle), for pytorch.org/memory_viz
    report: Text  # Write it as a page to look at: one HTML file, which needs no network
    junit: Text  # Write whether it fits as a test of continuous integration
    json: Switch  # Print JSON
    model: File  # what is trained (lockstep list models), or a Hugging Face config.json
    from_: Text  # a launch script, configuration or log of another program; may be repeated
    nodes: Number  # nodes of the cluster [the file's, or as many as the GPUs need]
    slice: Text  # chips of a TPU slice, which is a node, along x, y (and z) [as the GPUs need, with --nodes the largest]
    gpus: Number  # ranks of the job [tp pp cp dp, or the whole cluster or slice]
    dp: Number  # data-parallel degree [gpus / (tp pp cp)]
    dtype: Literal["fp16", "bf16", "fp8", "nvfp4", "fp32"] | Sequence[Literal["fp16", "bf16", "fp8", "nvfp4", "fp32"]] | None  # format of parameters and activations [bf16]
    strategy: File  # knobs from a file (lockstep list strategies)
    attention: Literal["flash", "unfused", "auto"] | Sequence[Literal["flash", "unfused", "auto"]] | None  # attention kernels [the model's]
    order: Text  # the order of the pipeline's actions (CSV; lockstep schedule writes one) [the schedule's own]
    gpu_calibration: File  # what the GPU's kernels take (lockstep calibrate writes such a file) [own: as its GPU names]
    nccl: File  # what NCCL reaches (lockstep calibrate --nccl writes such a file) [own: as its GPU names]
    nccl_env: Text  # variables of NCCL's environment, `NCCL_ALGO=Ring NCCL_NET=Socket`: what changes cluster or choices is simulated, the rest is reported [none]
    network: Literal["flow", "alphabeta", "step", "all"] | Sequence[Literal["flow", "alphabeta", "step", "all"]] | None  # shared links, no contention, every message of a collective, or all: flow, and how far the others disagree [flow]
    slow: Text  # stragglers: ranks whose kernels take so many times as long, or a log-normal spread of all [none]

def capture(*arguments: Text, progress: Progress | None = None, **options: Unpack[CaptureOptions]) -> Result:
    """Runs a PyTorch program without GPUs, one rank for all, with libraries that answer as CUDA's
    would on the named GPU, for some steps; where ranks differ, as stages of a pipeline do,
    one of each role. Says what PyTorch's allocator held at its peak,
    and which lines of the program held it, what comes on top, and whether it fits; with -o
    what a step does is written, as a trace that lockstep run --trace replays; with --clock
    the program's clocks say what the cluster would take. The program is not changed, and
    nothing but COMMAND is run. What it prints goes to stderr. With --compare its step stands
    next to the plan of the same job, which options of lockstep run say. With --profile the
    keys of a software profile follow from captured steps of several jobs."""

class ShareOptions(TypedDict, total=False):
    file: File  # The jobs, their nodes and starts
    steps: Number  # Steps of each job that are measured, where all does not repeat sooner; default 8
    shift: Number  # Also begin each job after the first later, by each of N parts of its step: which is best
    network: Text  # Shared links, or no contention, by which nobody is slower; default: flow
    top: Number  # Contested links shown; default 10
    all: Switch  # Show all contested links
    fold: Text  # Simulate ranks that behave alike once; check: both ways, exit 1 if they differ
    coarsen: Text  # Run undisturbed segments as one op
    threads: Number  # Simulations at once; default one per processor
    report: Text  # Write it as a page to look at: one HTML file, which needs no network
    format: Text  # What to print; markdown: tables for an issue or a paper
    json: Switch  # Print JSON
    csv: Switch  # Print a row for each job

def share(*arguments: Text, progress: Progress | None = None, **options: Unpack[ShareOptions]) -> Result:
    """Replays the jobs of a file together, on one cluster and one clock, and each of them alone: how much
    longer the step of each becomes, and which links carry bytes of two jobs or more."""

class PlaceOptions(JobOptions, total=False):
    output: Text  # Write the best placement, for --placement of lockstep run
    any_nodes: Switch  # The job may also have nodes of the cluster that it does not have now
    tries: Number  # Swaps of nodes simulated; default 8 to 256, fewer where they take longer
    threads: Number  # Simulations at once; default one per processor
    report: Text  # Write it as a page to look at: one HTML file, which needs no network
    format: Text  # What to print; markdown: tables for an issue or a paper
    json: Switch  # Print JSON
    csv: Switch  # Print a row for each order that was tried
    model: File  # what is trained (lockstep list models), or a Hugging Face config.json
    from_: Text  # a launch script, configuration or log of another program; may be repeated
    cluster: File  # where (lockstep list clusters); NAME:KEY=VALUE,... changes it
    nodes: Number  # nodes of the cluster [the file's, or as many as the GPUs need]
    slice: Text  # chips of a TPU slice, which is a node, along x, y (and z) [as the GPUs need, with --nodes the largest]
    trace: File  # a trace that is replayed instead of a model (lockstep list traces); of the knobs of parallelism only dp goes with it
    gpus: Number  # ranks of the job [tp pp cp dp, or the whole cluster or slice]
    dp: Number  # data-parallel degree [gpus / (tp pp cp)]
    dtype: Literal["fp16", "bf16", "fp8", "nvfp4", "fp32"] | Sequence[Literal["fp16", "bf16", "fp8", "nvfp4", "fp32"]] | None  # format of parameters and activations [bf16]
    strategy: File  # knobs from a file (lockstep list strategies)
    attention: Literal["flash", "unfused", "auto"] | Sequence[Literal["flash", "unfused", "auto"]] | None  # attention kernels [the model's]
    order: Text  # the order of the pipeline's actions (CSV; lockstep schedule writes one) [the schedule's own]
    expert_load: Text  # how tokens fall on experts: even, round-robin (dealt out in turn), zipf:S (the busiest first), lognormal:SIGMA:SEED (anywhere), or weights a,b,... over and over [even]
    gpu_calibration: File  # what the GPU's kernels take (lockstep calibrate writes such a file) [own: as its GPU names]
    nccl: File  # what NCCL reaches (lockstep calibrate --nccl writes such a file) [own: as its GPU names]
    measured: Text  # a step that was run, to compare with: its time, other logged numbers such as tflops=145,memory=61GiB, and whose
    published: Text  # the same, of seconds with or without a unit
    nccl_env: Text  # variables of NCCL's environment, `NCCL_ALGO=Ring NCCL_NET=Socket`: what changes cluster or choices is simulated, the rest is reported [none]
    steps: Number  # steps simulated; fewer if all that follow are known to be the same [3]
    network: Literal["flow", "alphabeta", "step", "all"] | Sequence[Literal["flow", "alphabeta", "step", "all"]] | None  # shared links, no contention, every message of a collective, or all: flow, and how far the others disagree [flow]
    slow: Text  # stragglers: ranks whose kernels take so many times as long, or a log-normal spread of all [none]

def place(*, progress: Progress | None = None, **options: Unpack[PlaceOptions]) -> Result:
    """Simulates a job in all orders of its degrees (--rank-order), on its GPUs as they are
    given and in the order of the cluster, on a torus with its axes in every order; then with
    nodes swapped. Shows the gain and the links that explain it, and writes the best
    placement. The options that say which job are those of lockstep run."""

class TraceOptions(JobOptions, total=False):
    action: Text  # What to do: export, import
    file: Text  # Profiles, or a folder of Chakra traces, to import
    step: Text  # Import: which step, the N of ProfilerStep#N, or a range of time
    as_measured: Switch  # Import: communication takes the time that it took, on any cluster
    without_stalls: Switch  # Import: without waits for the host, and those that nothing explains
    compute_scale: Text  # Import: the time of kernels times this
    format: Text  # Export: a file of ours, a new folder of Chakra execution traces, of each rank or role, or GOAL
    output: Text  # Where to write; required
    model: File  # what is trained (lockstep list models), or a Hugging Face config.json
    from_: Text  # a launch script, configuration or log of another program; may be repeated
    cluster: File  # where (lockstep list clusters); NAME:KEY=VALUE,... changes it
    nodes: Number  # nodes of the cluster [the file's, or as many as the GPUs need]
    slice: Text  # chips of a TPU slice, which is a node, along x, y (and z) [as the GPUs need, with --nodes the largest]
    trace: File  # a trace that is replayed instead of a model (lockstep list traces); of the knobs of parallelism only dp goes with it
    gpus: Number  # ranks of the job [tp pp cp dp, or the whole cluster or slice]
    dp: Number  # data-parallel degree [gpus / (tp pp cp)]
    dtype: Literal["fp16", "bf16", "fp8", "nvfp4", "fp32"] | Sequence[Literal["fp16", "bf16", "fp8", "nvfp4", "fp32"]] | None  # format of parameters and activations [bf16]
    strategy: File  # knobs from a file (lockstep list strategies)
    attention: Literal["flash", "unfused", "auto"] | Sequence[Literal["flash", "unfused", "auto"]] | None  # attention kernels [the model's]
    order: Text  # the order of the pipeline's actions (CSV; lockstep schedule writes one) [the schedule's own]
    expert_load: Text  # how tokens fall on experts: even, round-robin (dealt out in turn), zipf:S (the busiest first), lognormal:SIGMA:SEED (anywhere), or weights a,b,... over and over [even]
    gpu_calibration: File  # what the GPU's kernels take (lockstep calibrate writes such a file) [own: as its GPU names]
    nccl: File  # what NCCL reaches (lockstep calibrate --nccl writes such a file) [own: as its GPU names]
    measured: Text  # a step that was run, to compare with: its time, other logged numbers such as tflops=145,memory=61GiB, and whose
    published: Text  # the same, of seconds with or without a unit
    nccl_env: Text  # variables of NCCL's environment, `NCCL_ALGO=Ring NCCL_NET=Socket`: what changes cluster or choices is simulated, the rest is reported [none]
    steps: Number  # steps simulated; fewer if all that follow are known to be the same [3]
    network: Literal["flow", "alphabeta", "step", "all"] | Sequence[Literal["flow", "alphabeta", "step", "all"]] | None  # shared links, no contention, every message of a collective, or all: flow, and how far the others disagree [flow]
    slow: Text  # stragglers: ranks whose kernels take so many times as long, or a log-normal spread of all [none]

def trace(*arguments: Text, progress: Progress | None = None, **options: Unpack[TraceOptions]) -> Result:
    """Writes the plan of a job, what each rank runs and exchanges, as a file that lockstep run
    --trace replays: on the same cluster with the same result, or on another; or as Chakra
    traces (MLCommons), which it replays too; or in GOAL, for LogGOPSim and the like. All
    options of lockstep run that say which job are taken, from --model to --strategy. The
    formats are documented in the manual, formats/trace.md.

    trace import makes such a file of profiles of a real run, of one rank or of several, which
    PyTorch's profiler has written, or of an export of Nsight Systems (nsys export --type
    sqlite): kernels as measured, communication by the network of the replay. With --cluster it
    is replayed, and its step printed next to the measured one."""

class ImportOptions(TypedDict, total=False):
    file: Text  # A launch script, a configuration or a log; after it files that it names
    output: Text  # Write the strategy there and the model to NAME-model.json, for --strategy and --model
    strict: Switch  # Exit 4 if something is not known that may matter
    json: Switch  # Print JSON

def import_(*arguments: Text, progress: Progress | None = None, **options: Unpack[ImportOptions]) -> Result:
    """Reads what a job of another program is launched with, and says what it means by the keys of our
    models and strategies: what the file says, what follows from the program's defaults, what is not
    known and may matter, what contradicts itself, and what is ignored. Nothing is executed: what only
    a run would know is named. Of a log, also the time of an iteration and the memory of the fullest
    rank.

    Read are scripts, options and logs of Megatron-LM and Megatron-DeepSpeed; configurations, scripts
    and logs of torchtitan; configurations and logs of DeepSpeed; configurations of accelerate,
    axolotl, gpt-neox, NeMo, NeMo AutoModel, Megatron-Bridge, llm-foundry and MaxText; configurations
    and scripts of InternEvo, lingua, LitGPT, nanotron, OLMo, torchtune and XTuner; variables of MLPerf
    Training; scripts of Hugging Face's Trainer."""

class ListOptions(TypedDict, total=False):
    kind: Text  # Only these; default: all
    json: Switch  # Print JSON

def list(*arguments: Text, progress: Progress | None = None, **options: Unpack[ListOptions]) -> Result:
    """Lists what is at hand, and where each file was found."""

class CheckOptions(TypedDict, total=False):
    file: File  # Data files
    model: File  # Check strategies against this model
    cluster: File  # Check them against this cluster
    json: Switch  # Print JSON, also of files that are wrong

def check(*arguments: Text, progress: Progress | None = None, **options: Unpack[CheckOptions]) -> Result:
    """Reads data files (models, clusters, GPUs, strategies, calibrations, traces, Hugging
    Face config.json) and reports every mistake in them."""

class SchemaOptions(TypedDict, total=False):
    name: Text  # Which; default: what there is

def schema(*arguments: Text, progress: Progress | None = None, **options: Unpack[SchemaOptions]) -> Result:
    """Prints the JSON Schema (2020-12) of a kind of file that is read, or of the JSON that a
    command prints. Without a name it lists them."""

class LabOptions(JobOptions, total=False):
    action: Text  # What to do: list, show, check
    name: Text  # Which lab
    answer: Text  # Of check: answers
    json: Switch  # Of check: print JSON
    model: File  # what is trained (lockstep list models), or a Hugging Face config.json
    from_: Text  # a launch script, configuration or log of another program; may be repeated
    cluster: File  # where (lockstep list clusters); NAME:KEY=VALUE,... changes it
    nodes: Number  # nodes of the cluster [the file's, or as many as the GPUs need]
    slice: Text  # chips of a TPU slice, which is a node, along x, y (and z) [as the GPUs need, with --nodes the largest]
    trace: File  # a trace that is replayed instead of a model (lockstep list traces); of the knobs of parallelism only dp goes with it
    gpus: Number  # ranks of the job [tp pp cp dp, or the whole cluster or slice]
    dp: Number  # data-parallel degree [gpus / (tp pp cp)]
    dtype: Literal["fp16", "bf16", "fp8", "nvfp4", "fp32"] | Sequence[Literal["fp16", "bf16", "fp8", "nvfp4", "fp32"]] | None  # format of parameters and activations [bf16]
    strategy: File  # knobs from a file (lockstep list strategies)
    attention: Literal["flash", "unfused", "auto"] | Sequence[Literal["flash", "unfused", "auto"]] | None  # attention kernels [the model's]
    order: Text  # the order of the pipeline's actions (CSV; lockstep schedule writes one) [the schedule's own]
    expert_load: Text  # how tokens fall on experts: even, round-robin (dealt out in turn), zipf:S (the busiest first), lognormal:SIGMA:SEED (anywhere), or weights a,b,... over and over [even]
    gpu_calibration: File  # what the GPU's kernels take (lockstep calibrate writes such a file) [own: as its GPU names]
    nccl: File  # what NCCL reaches (lockstep calibrate --nccl writes such a file) [own: as its GPU names]
    measured: Text  # a step that was run, to compare with: its time, other logged numbers such as tflops=145,memory=61GiB, and whose
    published: Text  # the same, of seconds with or without a unit
    nccl_env: Text  # variables of NCCL's environment, `NCCL_ALGO=Ring NCCL_NET=Socket`: what changes cluster or choices is simulated, the rest is reported [none]
    steps: Number  # steps simulated; fewer if all that follow are known to be the same [3]
    network: Literal["flow", "alphabeta", "step", "all"] | Sequence[Literal["flow", "alphabeta", "step", "all"]] | None  # shared links, no contention, every message of a collective, or all: flow, and how far the others disagree [flow]
    slow: Text  # stragglers: ranks whose kernels take so many times as long, or a log-normal spread of all [none]

def lab(*arguments: Text, progress: Progress | None = None, **options: Unpack[LabOptions]) -> Result:
    """Lists exercises on training in parallel, shows one, and grades answers to it. A lab asks for
    predictions first, then names commands to run, and what to find. check simulates what the lab
    asks about, and for a task the configuration that you hand in as options of lockstep run; it
    answers a wrong number with the hint of a known mistake, of a unit or of the question."""
