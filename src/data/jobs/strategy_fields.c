/* data/jobs/strategy_fields.c — the table of a strategy's knobs: keys, topics, defaults, meanings. */
#include "data/jobs/job_files.h"

#include "data/jobs/strategy_values.h"
#include "model/kernel.h"
#include "model/operators.h"

/* --- words that values of knobs may be ----------------------------------------------------------- */

static const char *const placement_words[] = { "block", "cyclic", "random:SEED", "random-gpus:SEED", NULL };
static const char *const recompute_words[] = { "core",   "norm", "activation", "mla-up",     "mlp",  "moe",
                                               "shared", "op",   "dots",       "dots-flash", "auto", NULL };
static const char *const lengths_words[]
    = { "whole", "fixed:N", "uniform:A:B", "lognormal:MEDIAN:SIGMA[:MAX]", "file:PATH", NULL };

static const LsEnumName dp_kinds[] = {
  { "none", LS_DP_NONE },
  { "ps", LS_DP_PS },
  { "ddp", LS_DP_DDP },
  { "megatron", LS_DP_MEGATRON },
  { "fsdp1", LS_DP_FSDP1 },
  { "fsdp2", LS_DP_FSDP2 },
  { "deepspeed", LS_DP_DEEPSPEED },
  { "xla-fsdp", LS_DP_XLA_FSDP },
  { "auto", LS_DP_AUTO },
  { NULL },
};
static const LsEnumName p2p_kinds[] = {
  { "none", LS_P2P_NONE },
  { "batched", LS_P2P_BATCHED },
  { "scatter-gather", LS_P2P_SCATTER_GATHER },
  { "overlapped", LS_P2P_OVERLAPPED },
  { "deepspeed", LS_P2P_DEEPSPEED },
  { "auto", LS_P2P_AUTO },
  { NULL },
};
static const LsEnumName attention_kinds[] = { { "flash", LS_ATTENTION_FLASH },
                                              { "unfused", LS_ATTENTION_UNFUSED },
                                              { "auto", LS_ATTENTION_AUTO },
                                              { NULL } };
static const LsEnumName loop_overlaps[] = {
  { "gathers", LS_LOOP_OVERLAP_GATHERS },
  { "turn", LS_LOOP_OVERLAP_TURN },
  { "pipelined", LS_LOOP_OVERLAP_PIPELINED },
  { NULL },
};
static const LsEnumName loop_copies[] = {
  { "none", LS_LOOP_COPIES_NONE },
  { "kept", LS_LOOP_COPIES_KEPT },
  { "weights", LS_LOOP_COPIES_WEIGHTS },
  { NULL },
};
static const LsEnumName qkv_layouts[] = {
  { "joint", LS_QKV_JOINT },
  { "split", LS_QKV_SPLIT },
  { "unpadded", LS_QKV_UNPADDED },
  { NULL },
};
static const LsEnumName cuda_allocators[] = {
  { "none", LS_CUDA_ALLOCATOR_NONE },
  { "caching", LS_CUDA_ALLOCATOR_CACHING },
  { "expandable", LS_CUDA_ALLOCATOR_EXPANDABLE },
  { NULL },
};
static const LsEnumName losses[] = { { "parallel", LS_LOSS_PARALLEL }, { "fused", LS_LOSS_FUSED }, { NULL } };
static const LsEnumName dtypes[] = {
  { "fp16", LS_DTYPE_FP16 },    { "bf16", LS_DTYPE_BF16 },    { "fp8", LS_DTYPE_FP8 },
  { "nvfp4", LS_DTYPE_NVFP4 },  { "fp32", LS_DTYPE_FP32 },    { "bfloat16", LS_DTYPE_BF16 },
  { "float16", LS_DTYPE_FP16 }, { "float32", LS_DTYPE_FP32 }, { NULL },
};
static const LsEnumName grad_dtypes[] = {
  { "fp16", LS_DTYPE_FP16 },    { "bf16", LS_DTYPE_BF16 },
  { "fp32", LS_DTYPE_FP32 },    { "bfloat16", LS_DTYPE_BF16 },
  { "float16", LS_DTYPE_FP16 }, { "float32", LS_DTYPE_FP32 },
  { "auto", LS_DTYPE_AUTO },    { NULL },
};
static const LsEnumName optimizer_cuts[] = {
  { "auto", LS_OPTIMIZER_CUT_AUTO },
  { "elements", LS_OPTIMIZER_CUT_ELEMENTS },
  { "tensors", LS_OPTIMIZER_CUT_TENSORS },
  { NULL },
};
static const LsEnumName optimizer_tps[] = {
  { "blockwise", LS_OPTIMIZER_TP_BLOCKWISE },
  { "duplicated", LS_OPTIMIZER_TP_DUPLICATED },
  { "distributed", LS_OPTIMIZER_TP_DISTRIBUTED },
  { NULL },
};
static const LsEnumName masters[] = {
  { "fp32", LS_MASTER_FP32 }, { "fp16", LS_MASTER_FP16 },       { "remainder", LS_MASTER_REMAINDER },
  { "none", LS_MASTER_NONE }, { "weights", LS_MASTER_WEIGHTS }, { NULL },
};
static const LsEnumName moment_dtypes[] = {
  { "fp32", LS_DTYPE_FP32 },     { "bf16", LS_DTYPE_BF16 },
  { "fp16", LS_DTYPE_FP16 },     { "fp8", LS_DTYPE_FP8 },
  { "bfloat16", LS_DTYPE_BF16 }, { "float16", LS_DTYPE_FP16 },
  { "float32", LS_DTYPE_FP32 },  { NULL },
};
static const LsEnumName cuda_graphs[]
    = { { "none", LS_GRAPHS_NONE }, { "layer", LS_GRAPHS_LAYER }, { "step", LS_GRAPHS_STEP }, { NULL } };
static const LsEnumName grad_syncs[] = {
  { "auto", LS_GRAD_SYNC_AUTO },
  { "last", LS_GRAD_SYNC_LAST },
  { "each", LS_GRAD_SYNC_EACH },
  { "flush", LS_GRAD_SYNC_FLUSH },
  { NULL },
};
static const LsEnumName servers[] = { { "nodes", LS_PS_NODES }, { "one", LS_PS_ONE }, { NULL } };
static const LsEnumName prefetches[] = {
  { "pre", LS_PREFETCH_PRE },
  { "post", LS_PREFETCH_POST },
  { "none", LS_PREFETCH_NONE },
  { NULL },
};
static const LsEnumName offloads[] = {
  { "none", LS_OFFLOAD_NONE },
  { "optimizer", LS_OFFLOAD_OPTIMIZER },
  { "parameters", LS_OFFLOAD_PARAMETERS },
  { NULL },
};
static const LsEnumName offload_places[]
    = { { "cpu", LS_OFFLOAD_TO_CPU }, { "nvme", LS_OFFLOAD_TO_NVME }, { NULL } };
static const LsEnumName expert_paddings[] = { { "none", LS_EXPERT_PADDING_NONE },
                                              { "fullest", LS_EXPERT_PADDING_FULLEST },
                                              { "capacity", LS_EXPERT_PADDING_CAPACITY },
                                              { NULL } };
static const LsEnumName lengths_draws[]
    = { { "each", LS_LENGTHS_EACH }, { "mean", LS_LENGTHS_MEAN }, { NULL } };
static const LsEnumName lengths_balances[]
    = { { "none", LS_LENGTHS_AS_DRAWN }, { "sorted", LS_LENGTHS_SORTED }, { NULL } };
static const LsEnumName tp_overlaps[]
    = { { "bulk", LS_TP_OVERLAP_BULK }, { "ring", LS_TP_OVERLAP_RING }, { NULL } };
static const LsEnumName cp_kinds[] = {
  { "ring", LS_CP_RING },
  { "all-gather", LS_CP_ALL_GATHER },
  { "ulysses", LS_CP_ULYSSES },
  { NULL },
};
static const LsEnumName cp_steps[] = { { "te", LS_CP_STEPS_TE },
                                       { "pytorch", LS_CP_STEPS_PYTORCH },
                                       { "pytorch-compile", LS_CP_STEPS_PYTORCH_COMPILE },
                                       { NULL } };
static const LsEnumName recompute_methods[]
    = { { "uniform", LS_RECOMPUTE_UNIFORM }, { "block", LS_RECOMPUTE_BLOCK }, { NULL } };
static const LsEnumName fp8_recipes[] = {
  { "delayed", LS_FP8_DELAYED }, { "current", LS_FP8_CURRENT },   { "blockwise", LS_FP8_BLOCKWISE },
  { "mxfp8", LS_FP8_MXFP8 },     { "deepseek", LS_FP8_DEEPSEEK }, { NULL },
};
static const LsEnumName fp8_linears[] = { { "te", LS_FP8_LINEAR_TE },
                                          { "torchao-cast", LS_FP8_LINEAR_TORCHAO_CAST },
                                          { "torchao", LS_FP8_LINEAR_TORCHAO },
                                          { NULL } };
static const LsEnumName amax_reductions[]
    = { { "stage", LS_AMAX_STAGE }, { "tp", LS_AMAX_TP }, { "none", LS_AMAX_NONE }, { NULL } };
static const LsEnumName fp8_attentions[] = {
  { "none", LS_FP8_ATTENTION_NONE },       { "recipe", LS_FP8_ATTENTION_RECIPE },
  { "delayed", LS_FP8_ATTENTION_DELAYED }, { "current", LS_FP8_ATTENTION_CURRENT },
  { "mxfp8", LS_FP8_ATTENTION_MXFP8 },     { NULL },
};
static const LsEnumName layer_rules[] = { { "auto", LS_LAYER_RULE_AUTO },
                                          { "balanced", LS_LAYER_RULE_BALANCED },
                                          { "weights", LS_LAYER_RULE_WEIGHTS },
                                          { "modules", LS_LAYER_RULE_MODULES },
                                          { NULL } };
static const LsEnumName flags[] = { { "0", 0 }, { "1", 1 }, { "auto", LS_FLAG_AUTO }, { NULL } };

/* --- the knobs, by topic --------------------------------------------------------------------- */

#define MAX_DEGREE (1 << 20)
#define ROW(topic_, key_, member_, kind_, default_, meaning_)                                                \
  key_, kind_, offsetof (LsStrategy, member_), .topic = #topic_, .default_text = (default_),                 \
                                               .meaning = (meaning_)
#define UINT(topic_, key_, member_, default_, meaning_)                                                      \
  ROW (topic_, key_, member_, LS_FIELD_UINT, default_, meaning_), .min = 1, .max = MAX_DEGREE
#define COUNT(topic_, key_, member_, default_, meaning_)                                                     \
  ROW (topic_, key_, member_, LS_FIELD_UINT, default_, meaning_), .max = MAX_DEGREE
#define CTAS(topic_, key_, member_, of_)                                                                     \
  ROW (topic_, key_, member_, LS_FIELD_UINT, "0: as many as NCCL has channels",                              \
       "thread blocks of NCCL's kernels at most, of " of_),                                                  \
      .max = UINT8_MAX, SET_ONLY
#define ELEMENTS(topic_, key_, member_, default_, meaning_)                                                  \
  ROW (topic_, key_, member_, LS_FIELD_UINT64, default_, meaning_), .min = 1
#define BOOL(topic_, key_, member_, default_, meaning_)                                                      \
  ROW (topic_, key_, member_, LS_FIELD_BOOL, default_, meaning_)
#define ENUM(topic_, key_, member_, names_, default_, meaning_)                                              \
  ROW (topic_, key_, member_, LS_FIELD_ENUM, default_, meaning_), .names = (names_)
#define HOST(key_, cost_, default_, meaning_)                                                                \
  key_, LS_FIELD_TIME, offsetof (LsStrategy, launch.host[cost_]),                                            \
      .topic = "host", .default_text = (default_), .meaning = (meaning_), .max = (double) LS_S,              \
      .of_program = true
#define TEXT(topic_, key_, member_, default_, meaning_)                                                      \
  ROW (topic_, key_, member_, LS_FIELD_STRING, default_, meaning_)
#define CUSTOM(topic_, key_, parse_, format_, default_, meaning_)                                            \
  key_, LS_FIELD_CUSTOM, .topic = #topic_, .parse = (parse_), .format = (format_),                           \
                         .default_text = (default_), .meaning = (meaning_)
#define LOADED(topic_, key_, member_, load_, default_, meaning_)                                             \
  ROW (topic_, key_, member_, LS_FIELD_CUSTOM, default_, meaning_), .load = &(load_)
#define LIST(topic_, key_, member_, n_, default_, meaning_)                                                  \
  ROW (topic_, key_, member_, LS_FIELD_UINT_LIST, default_, meaning_),                                       \
      .max = MAX_DEGREE, .runs = true, .argument = "A,B,...", .n_offset = offsetof (LsStrategy, n_)
#define USUAL    .usual = true
#define SET_ONLY .set_only = true
#define OF_JOB   .of_job = true
#define ON_OFF   .argument = "0|1"

const LsField ls_strategy_fields[] = {
  LS_FIELDS_HEADER (LsStrategy),
  { "software", LS_FIELD_STRING, offsetof (LsStrategy, program.software), .file_only = true,
    .default_text = "none",
    .meaning = "the program that runs the job (`lockstep list software`): its defaults, below the keys of "
               "this file" },

  { UINT (layout, "gpus", gpus, "tp pp cp dp, or the whole cluster or slice", "ranks of the job"), USUAL,
    OF_JOB },
  { UINT (layout, "tp", tp, "1", "tensor-parallel degree"), USUAL, OF_JOB },
  { BOOL (layout, "sp", sp, "false", "sequence parallelism next to tensor parallelism; no effect with tp 1"),
    USUAL },
  { UINT (layout, "pp", pp, "1", "pipeline stages"), USUAL, OF_JOB },
  { UINT (layout, "vpp", vpp, "1", "model chunks of a stage (virtual stages)"), USUAL, OF_JOB },
  { TEXT (layout, "schedule", schedule, "1f1b, interleaved-1f1b if vpp > 1",
          "pipeline schedule (lockstep list schedules)"),
    USUAL },
  { UINT (layout, "dp", dp, "gpus / (tp pp cp)", "data-parallel degree"), USUAL, OF_JOB },
  { ENUM (layout, "dp_kind", dp_kind, dp_kinds, "megatron, deepspeed for zero 2 and 3, xla-fsdp on TPUs",
          "who reduces gradients, and when"),
    USUAL },
  { CUSTOM (layout, "zero", strategy_parse_zero, strategy_format_zero, "0, 3 with fsdp1, fsdp2, xla-fsdp",
            "ZeRO stage, sharded over all data-parallel ranks, or over groups of G"),
    .argument = "N[@G]", .expected = "0 to 3, auto, or STAGE@GROUP such as \"3@8\"", USUAL },
  { UINT (layout, "cp", cp, "1", "context-parallel degree; needs flash attention"), USUAL, OF_JOB },
  { UINT (layout, "ep", ep, "1", "expert-parallel degree; with tp > 1 experts need sp"), USUAL, OF_JOB },
  { UINT (layout, "etp", experts.etp, "tp", "tensor-parallel degree of experts"), OF_JOB },
  { CUSTOM (layout, "rank_order", strategy_parse_rank_order, strategy_format_rank_order, "tp-cp-ep-dp-pp",
            "which degrees ranks are numbered by, the fastest first, as Megatron-LM's order"),
    .argument = "A-B-...", .expected = "names out of tp, cp, ep, dp and pp, each once, such as \"tp-pp-dp\"",
    .clear = strategy_clear_rank_order, OF_JOB },
  { LOADED (
        layout, "placement", layout.placement, strategy_placement, "block: node after node",
        "which GPU each rank has: cyclic (over the nodes), the nodes of a list as SLURM writes it, or of a "
        "file; random:SEED, random-gpus:SEED"),
    .argument = "NODES|FILE",
    .expected
    = "block, cyclic, random:SEED, random-gpus:SEED, nodes such as \"node[000-063,072]\", or a file "
      "of either",
    .words = placement_words, .why = strategy_why_placement, OF_JOB },

  { UINT (batch, "micro_batch", micro_batch, "1", "sequences of one micro-batch"), USUAL, OF_JOB },
  { ROW (batch, "global_batch", global_batch, LS_FIELD_UINT, "dp micro_batch pp", "sequences of one step"),
    .min = 1, .max = 1 << 30, USUAL, OF_JOB },
  { LIST (batch, "micro_batches_per_replica", layout.micro_batches_per_replica,
          layout.n_micro_batches_per_replica, "as many each",
          "micro-batches of each data-parallel rank, dp of them, whose gradients meet once: unequal numbers "
          "for nodes of unequal speed"),
    .min = 1,
    .expected
    = "micro-batches of each data-parallel rank such as 10,6 or 10x4,6x4 (4 ranks of 10, then 4 of 6), "
      "whole numbers",
    OF_JOB },
  { ROW (batch, "seq", seq, LS_FIELD_UINT, "the model's", "tokens of one sequence"), .min = 1, .max = 1 << 30,
    USUAL, OF_JOB },
  { LOADED (batch, "lengths", docs.lengths, strategy_lengths, "whole: each fills a sequence",
            "tokens of documents, packed into sequences, with attention inside each: fixed:N, uniform:A:B, "
            "lognormal:MEDIAN:SIGMA[:MAX], file:PATH (a CSV of length,count)"),
    .argument = "TEXT",
    .expected = "whole, fixed:N, uniform:A:B, lognormal:MEDIAN:SIGMA[:MAX] or file:PATH, a CSV with columns "
                "length and count",
    .words = lengths_words, .why = strategy_why_lengths, OF_JOB },
  { ENUM (batch, "lengths_draw", docs.draw, lengths_draws, "each",
          "lengths: each micro-batch has documents of its own, or all have the mean of the step"),
    OF_JOB },
  { ENUM (batch, "lengths_balance", docs.balance, lengths_balances, "none",
          "lengths: sequences with more attention first, dealt to copies forth and back, or as drawn"),
    OF_JOB },
  { ROW (batch, "lengths_seed", docs.seed, LS_FIELD_UINT, "0", "lengths: of the draw"), .max = G_MAXUINT32,
    OF_JOB },

  { ENUM (memory, "recompute", recompute, ls_recompute_names, "none",
          "activations that the backward pass computes again"),
    USUAL },
  { CUSTOM (
        memory, "recompute_parts", strategy_parse_parts, strategy_format_parts, "core",
        "selective: what is computed again: core (inside of attention), norm, activation (their "
        "outputs), mla-up (what latent attention makes of its latents), mlp, moe, shared (an MLP, experts "
        "with their router, shared experts, from their input), op (torchtitan's policy), dots "
        "(JAX's: all but matrix products), dots-flash (but "
        "these and attention), keep-qkv, keep-attention, keep-projection, keep-up, keep-down (but some of "
        "these)"),
    .argument = "A,B",
    .expected = "core, norm, activation, mla-up, mlp, moe, shared, several such as \"core,norm\", op, dots, "
                "dots-flash, some of keep-qkv, keep-attention, keep-projection, keep-up, keep-down, or auto",
    .words = recompute_words },
  { ENUM (memory, "recompute_method", memory.recompute_method, recompute_methods, "uniform",
          "full: groups of layers, or the first layers of a chunk") },
  { UINT (memory, "recompute_layers", memory.recompute_layers, "uniform 1, block all",
          "full: layers of a group, or recomputed ones of a chunk") },
  { LIST (memory, "recompute_stages", memory.recompute_stages, memory.n_recompute_stages, "all alike",
          "full, block: recomputed layers of each pipeline rank, pp of them"),
    .expected = "a list of whole numbers such as 1x3,2 (3 times 1, then 2), each" },
  { BOOL (memory, "recompute_early_stop", memory.recompute_early_stop, "false",
          "full: stop once the backward has what it needs, as PyTorch since 2.1 without reentrance"),
    SET_ONLY },
  { BOOL (memory, "recompute_flash", memory.recompute_flash, "false",
          "selective, core: flash attention runs again too, as in Megatron-Core's checkpoint around it"),
    SET_ONLY },
  { BOOL (memory, "partition_activations", memory.partition_activations, "false",
          "full: kept inputs are cut over tp, and gathered for recomputation") },
  { BOOL (memory, "offload_activations", memory.offload_activations, "false",
          "kept activations go to the host's memory and come back") },
  { UINT (memory, "offload_layers", memory.offload_layers, "all but the last",
          "offload_activations: of a chunk's first layers"),
    SET_ONLY },
  { ENUM (memory, "cuda_allocator", memory.cuda_allocator, cuda_allocators, "none",
          "PyTorch's: segments of fixed size, which it gives back and takes anew at the GPU's limit, or that "
          "grow (expandable_segments)"),
    SET_ONLY },
  { ENUM (memory, "offload", memory.offload, offloads, "none",
          "deepspeed: what lives outside the accelerator (parameters: the optimizer too)") },
  { ENUM (memory, "offload_to", memory.offload_to, offload_places, "cpu", "where it lives") },

  { COUNT (memory, "lora_rank", lora.rank, "0", "rank of adapters on frozen weights (LoRA); 0: all learn"),
    OF_JOB },
  { TEXT (memory, "lora_modules", lora.modules, "all-linear",
          "what has one: q, k, v, o, gate, up, down; in, select, step, out of mixers; or all-linear"),
    OF_JOB },
  { BOOL (memory, "qlora", lora.qlora, "false", "frozen weights of linear layers are kept in 4 bits (NF4)"),
    OF_JOB },

  { ENUM (precision, "dtype", dtype, dtypes, "bf16", "format of parameters and activations"), USUAL },
  { ENUM (precision, "grad_dtype", opt.grad_dtype, grad_dtypes, "the 16-bit type of dtype",
          "number format of gradients, accumulated and reduced"),
    USUAL },
  { ENUM (
        precision, "fp8_recipe", fp8.recipe, fp8_recipes, "delayed",
        "fp8: scaling factors of earlier steps, of this tensor, of its blocks of 128, of 32 (Blackwell), or "
        "of 128 by DeepSeek's own kernels"),
    .of_program = true },
  { ENUM (precision, "fp8_linear", fp8.linear, fp8_linears, "te",
          "fp8: linear layers of Transformer Engine, or of torchao, which cast weights in each pass and keep "
          "their input in 16 bits (torchao-cast, until July 2025: as cast, scaled by tensor)"),
    SET_ONLY },
  { ENUM (
      precision, "fp8_attention", fp8.attention, fp8_attentions, "none",
      "fp8, nvfp4: attention by cuDNN in fp8 too (Transformer Engine's fp8_dpa), scaled as fp8_recipe says, "
      "or in a way of its own") },
  { ENUM (precision, "fp8_amax_reduction", fp8.amax_reduction, amax_reductions, "stage",
          "fp8, delayed: ranks that share the amax of tensors after each pass: tp cp dp, tp cp, or "
          "none"),
    SET_ONLY },
  { BOOL (precision, "fp8_act_store", fp8.act_store, "false",
          "the input of the activation of an MLP or expert is kept in fp8") },
  { BOOL (precision, "fp8_params", fp8.params, "false",
          "fp8: weights are stored and gathered in fp8; of mxfp8 gathered in 16 bits") },
  { BOOL (precision, "bf16_experts", fp8.bf16_experts, "false",
          "fp8, nvfp4: products of experts are in bf16, as where only linear layers are converted") },
  { COUNT (precision, "bf16_first", fp8.bf16_first, "0",
           "fp8, nvfp4: so many layers at the start have their products in bf16") },
  { COUNT (precision, "bf16_last", fp8.bf16_last, "0",
           "fp8, nvfp4: and at the end; recipes of NVIDIA for nvfp4 keep some 15 %") },
  { CUSTOM (precision, "module_formats", strategy_parse_formats, strategy_format_formats, "none",
            "fp8, nvfp4: modules whose products are in another format (Megatron-LM's "
            "--te-precision-config-file): qkv:bf16,mixer-out:mxfp8"),
    .argument = "MODULE:FORMAT,...",
    .expected = "none, or pairs such as qkv:bf16 of qkv, proj, fc1, fc2, expert-fc1, expert-fc2, shared-fc1, "
                "shared-fc2, latent-down, latent-up, mixer-in, mixer-out or mtp with bf16, current, "
                "blockwise, mxfp8 or nvfp4" },

  { LOADED (optimizer, "optimizer", opt.optimizer, strategy_optimizer, "adam",
            "which optimizer: adam or adamw, or one of a file (lockstep list optimizers)"),
    .argument = "NAME|FILE", USUAL,
    .expected = "adam, adamw, or a file of an optimizer without mistakes (lockstep list optimizers; lockstep "
                "check FILE says what is wrong with one)",
    .why = strategy_why_optimizer },
  { ENUM (optimizer, "optimizer_cut", opt.cut, optimizer_cuts,
          "tensors where it multiplies matrices, else elements",
          "megatron, zero 1: ranks have equal pieces of all parameters, or whole tensors") },
  { ENUM (optimizer, "optimizer_tp", opt.tp, optimizer_tps, "blockwise",
          "what is multiplied of a matrix that tp cuts: a rank's part, the whole on each, or parts whose "
          "products are summed") },
  { ENUM (optimizer, "master", opt.master, masters, "fp32",
          "weights that the optimizer steps on: fp32 together with those in 16 bits; megatron, "
          "precision-aware: in 16 bits, or what bf16 ones lack; one copy, ddp: none, those in 16 bits, with "
          "moments in 16 bits; or the weights are fp32 and cast for each product (autocast)"),
    .of_program = true },
  { ENUM (optimizer, "moment_dtype", opt.moment_dtype, moment_dtypes, "fp32",
          "megatron: format of Adam's first moment") },
  { ENUM (optimizer, "variance_dtype", opt.variance_dtype, moment_dtypes, "fp32", "and of its second") },

  { ENUM (software, "attention", use.attention, attention_kinds, "the model's", "attention kernels"),
    .of_program = true, USUAL },
  { LOADED (software, "kernels", use.kernels, strategy_kernels, "built-in: fused, as Megatron-LM's",
            "kernels as some software launches them (lockstep list kernels)"),
    .argument = "NAME|FILE", .of_program = true,
    .expected = "built-in, or a file of kernels without mistakes (lockstep list kernels; lockstep check FILE "
                "says what is wrong with one)",
    .why = strategy_why_kernels },
  { ENUM (software, "attention_kernel", use.attention_kernel, ls_attention_kernel_names, "auto",
          "flash: its implementation; auto, or one without times on the accelerator: one that has"),
    SET_ONLY },
  { ENUM (software, "qkv_layout", use.qkv_layout, qkv_layouts, "joint",
          "flash: Q, K, V in one tensor, as three views, or copied without padding and back"),
    SET_ONLY },
  { BOOL (software, "window_mask", use.window_mask, "false",
          "flash: a window no longer than the sequence is a mask over all keys, of which none is skipped, as "
          "in PyTorch's scaled_dot_product_attention"),
    SET_ONLY },
  { ENUM (software, "loss_kernel", use.loss_kernel, losses, "parallel",
          "cross-entropy: parallel over the vocabulary, or one kernel each way (tp 1)"),
    SET_ONLY },
  { ROW (software, "vocab_multiple", use.vocab_multiple, LS_FIELD_UINT, "128",
         "tokens are padded to a multiple of this times tp, as Megatron-LM's "
         "make_vocab_size_divisible_by; 1: only so that tp cuts them"),
    .min = 1, .max = 1 << 20, SET_ONLY },
  { ROW (software, "train_metrics", use.train_metrics, LS_FIELD_UINT, "0",
         "how often the loss is computed again from the logits for what is logged"),
    .max = 16, SET_ONLY },
  { BOOL (software, "dynamic_gemms", use.dynamic_gemms, "false",
          "GEMMs that fill a Hopper GPU fetch their next tile as they go, as those of cuBLAS 13 do, so that "
          "SMs which communication holds cost no second wave"),
    SET_ONLY },
  { BOOL (software, "apex_norm", use.apex_norm, "false",
          "layer norms run apex's kernels, as in Megatron-LM until early 2022, not those for long rows"),
    SET_ONLY },
  { BOOL (software, "split_bias_dropout", use.split_bias_dropout, "false",
          "the bias before a dropout is added in a kernel of its own, as in Megatron-LM of 2023"),
    SET_ONLY },
  { BOOL (software, "batch_sync", launch.batch_sync, "false",
          "each forward fetches its micro-batch, in which the host waits for the device, as in Megatron-LM "
          "until late 2023"),
    SET_ONLY },
  { BOOL (software, "batch_ends", launch.batch_ends, "false",
          "with batch_sync: only the first and the last stage fetch one"),
    SET_ONLY },
  { BOOL (software, "launch_blocking", launch.launch_blocking, "false",
          "the host waits for each op that it issues, as with CUDA_LAUNCH_BLOCKING=1"),
    SET_ONLY },
  { BOOL (software, "grad_fusion", use.grad_fusion, "false",
          "weight-gradient GEMMs add to 16-bit gradients too, as Megatron-LM since 2023; to fp32 ones they "
          "do but with grad_apart"),
    SET_ONLY },
  { BOOL (software, "grad_apart", use.grad_apart, "false",
          "gradients are added by kernels of their own, fp32 ones too, as with Megatron-LM's "
          "--no-gradient-accumulation-fusion"),
    SET_ONLY },
  { BOOL (software, "wgrad_placeholders", use.wgrad_placeholders, "false",
          "megatron, with Transformer Engine from 2.3 on: a 16-bit tensor stands for the gradient of each "
          "shape of weight"),
    SET_ONLY },

  { ENUM (pipeline, "p2p", mp.p2p, p2p_kinds, "batched; pipedream: overlapped",
          "how stages exchange activations") },
  { BOOL (pipeline, "p2p_warmup_flush", mp.p2p_warmup_flush, "false",
          "overlapped p2p: in warm-up and cool-down too, where Megatron-LM otherwise waits for it"),
    SET_ONLY },
  { ROW (pipeline, "pipeline_batch", mp.pipeline_batch, LS_FIELD_UINT, "0: all of a step",
         "sequences of a copy that pass the pipeline before it is flushed (local_batch_size of torchtitan)"),
    .max = MAX_DEGREE },
  { LIST (pipeline, "layers_per_chunk", layout.layers_per_chunk, layout.n_layers_per_chunk,
          "auto: even where pp vpp divides the layers, or layers + 2, else balanced",
          "layers of each chunk, pp vpp of them; balanced: by what layers, embedding and head cost; weights: "
          "each up to the layer that passes its share of their weights and the head's, as nanotron does; "
          "modules: embedding, layers, last norm and head count alike"),
    .names = layer_rules, .word_offset = offsetof (LsStrategy, layout.layer_rule),
    .expected = "auto, balanced, weights, modules, or layers of each chunk in model order such as 4x13,3x3 "
                "(13 chunks of 4, then 3 of 3), whole numbers" },
  { CTAS (pipeline, "pp_max_ctas", mp.pp_max_ctas, "transfers between stages") },
  { BOOL (pipeline, "post_validation", opt.post_validation, "false",
          "nobody waits for the norm of the gradients: it is checked a step later (zero bubble)") },

  { BOOL (tensor, "tp_overlap", mp.tp_overlap, "false",
          "tensor-parallel collectives together with GEMMs; needs sp"),
    ON_OFF },
  { ENUM (tensor, "tp_overlap_kind", mp.tp_overlap_kind, tp_overlaps, "ring",
          "tp_overlap: together with GEMMs that do not need it, or pipelined with those that do too") },
  { BOOL (tensor, "tp_overlap_margin", mp.tp_overlap_margin, "true",
          "tp_overlap: GEMMs leave bulk collectives SMs"),
    SET_ONLY },
  { BOOL (
        tensor, "tp_async", mp.tp_async, "true",
        "in the backward, tensor-parallel collectives of column-parallel layers run together with a GEMM, as "
        "in Megatron-LM since 2022"),
    SET_ONLY },
  { CTAS (tensor, "tp_max_ctas", mp.tp_max_ctas, "tensor-parallel collectives (ncclConfig_t.maxCTAs)") },
  { BOOL (tensor, "sp_save_gathered", mp.sp_save_gathered, "false",
          "with sp: keep the gathered inputs instead of gathering them again"),
    SET_ONLY },

  { ENUM (context, "cp_kind", mp.cp_kind, cp_kinds, "ring",
          "how context-parallel attention exchanges keys and values") },
  { ENUM (context, "cp_steps", mp.cp_steps, cp_steps, "te",
          "ring, all-gather: as Transformer Engine has them, or PyTorch, whose all-gather goes by steps too, "
          "with keys and values for all heads, sums in fp32 and gradients sent in fp32 (eager or compiled)"),
    SET_ONLY },
  { BOOL (context, "cp_balance", mp.cp_balance, "true",
          "ring, all-gather: each context-parallel rank has an early and a late part of a sequence"),
    ON_OFF },
  { CTAS (context, "cp_max_ctas", mp.cp_max_ctas, "context-parallel exchanges") },

  { ROW (experts, "expert_capacity", experts.capacity, LS_FIELD_DOUBLE, "0",
         "tokens that an expert takes at most, over the mean; 0: none are dropped"),
    .min = 0, .max = 1e6 },
  { TEXT (experts, "expert_load", experts.load, "even",
          "how tokens fall on experts: even, round-robin (dealt out in turn), zipf:S (the busiest first), "
          "lognormal:SIGMA:SEED (anywhere), or weights a,b,... over and over"),
    .argument = "TEXT" },
  { ENUM (experts, "expert_padding", experts.padding, expert_paddings, "none",
          "rows of zeros after the tokens of an expert, up to the fullest of its rank, or up to "
          "expert_capacity; these are sent, too") },
  { ENUM (experts, "dispatcher", experts.dispatcher, ls_dispatcher_names, "all-to-all",
          "what brings tokens to experts and back: NCCL's all-to-all, or DeepEP or HybridEP, which send a "
          "token once to a node and once to a GPU") },
  { BOOL (experts, "grouped_gemm", experts.grouped_gemm, "false",
          "products of a rank's experts are one kernel, not one of each") },
  { CTAS (experts, "ep_max_ctas", mp.ep_max_ctas, "exchanges of tokens by NCCL") },
  { UINT (experts, "dispatch_sms", experts.dispatch_sms, "20",
          "deepep, hybridep: SMs that each of its calls holds") },
  { BOOL (experts, "dispatch_fp8", experts.dispatch_fp8, "false",
          "deepep: tokens go to experts in fp8, and come back in 16 bits") },
  { BOOL (experts, "dispatch_margin", experts.dispatch_margin, "false",
          "deepep, hybridep: matrix products leave its SMs free") },
  { ENUM (experts, "ep_overlap", mp.ep_overlap, flags, "1 with dualpipe and dualpipev, else 0",
          "a forward and a backward side by side: each exchanges tokens while the other computes"),
    ON_OFF },
  { ENUM (experts, "delay_wgrad", mp.delay_wgrad, flags,
          "1 with ep_overlap in dualpipe and dualpipev, else 0",
          "with ep_overlap: weight gradients are computed while tokens are exchanged"),
    ON_OFF },
  { BOOL (experts, "shared_overlap", experts.shared_overlap, "false",
          "shared experts run together with the exchange of tokens") },

  { CTAS (data, "dp_max_ctas", mp.dp_max_ctas, "reductions and gathers over copies") },
  { BOOL (data, "dp_overlap", data.overlap, "true", "reduce gradients during the backward pass"), ON_OFF },
  { ENUM (data, "loop_overlap", data.loop_overlap, loop_overlaps, "gathers",
          "xla-fsdp: what runs together with compute: gathers (in their turn of the loop over layers), turn "
          "(reductions, too), pipelined (both, from one turn to the next)"),
    SET_ONLY },
  { ENUM (data, "loop_copies", data.loop_copies, loop_copies, "none",
          "xla-fsdp: what the loop over layers copies: none, kept (outputs of products that are kept, into "
          "arrays of all layers), weights (these, and pipelined gathers, without double buffering)"),
    SET_ONLY },
  { ENUM (data, "gather_overlap", data.gather_overlap, flags, "as dp_overlap",
          "megatron: gather parameters during the next forward"),
    ON_OFF },
  { ENUM (data, "grad_sync", data.grad_sync, grad_syncs,
          "each with zero 2 and 3, flush with pipeline_batch, else last",
          "micro-batches that reduce gradients; flush: the last before each flush of the pipeline") },
  { BOOL (data, "grad_norm", opt.grad_norm, "true",
          "all-reduce the norm of the gradients before the optimizer"),
    ON_OFF },
  { BOOL (data, "grad_check", data.grad_check, "false",
          "megatron: the host reads the norm of each bucket before it is reduced, to find NaN or Inf "
          "(check_for_nan_in_grad)") },
  { ROW (data, "bucket_bytes", data.bucket_bytes, LS_FIELD_BYTES, "25MiB, the first 1MiB",
         "ddp: size of a bucket"),
    .above = true },
  { BOOL (data, "bucket_view", data.bucket_view, "true",
          "ddp: gradients are views of the buckets, which else are next to them "
          "(gradient_as_bucket_view)") },
  { ELEMENTS (data, "bucket_params", data.bucket_params, "the larger of 40e6 and 1e6 dp",
              "megatron: parameters of a bucket") },
  { ENUM (data, "ps_servers", data.ps_servers, servers, "nodes",
          "ps: a parameter server in each node, which share the parameters, or one for all ranks") },

  { UINT (fsdp, "layers_per_unit", data.layers_per_unit, "1", "layers that are gathered together") },
  { BOOL (fsdp, "narrow_shards", data.narrow_shards, "false",
          "fsdp1, fsdp2: shards, their gradients and moments are in 16 bits, as of a model that was in bf16 "
          "when it was wrapped"),
    SET_ONLY },
  { BOOL (fsdp, "limit_all_gathers", data.limit_all_gathers, "true",
          "fsdp1: the host keeps at most two gathers in flight"),
    ON_OFF },
  { ENUM (fsdp, "backward_prefetch", data.backward_prefetch, prefetches, "pre",
          "fsdp1: when the next gather of the backward is issued") },
  { COUNT (fsdp, "forward_prefetch", data.forward_prefetch, "0",
           "units gathered ahead in the forward by an explicit list (fsdp1: 0 or 1)") },
  { COUNT (fsdp, "backward_prefetch_units", data.backward_prefetch_units, "0",
           "fsdp2: the same in the backward; 0: one, as it does by itself") },
  { CUSTOM (fsdp, "reshard_after_forward", strategy_parse_reshard, strategy_format_reshard,
            "1 with zero 3, 0 with zero 2 or pp",
            "fsdp2: whether parameters are freed after the forward; N: sharded in groups of N until the "
            "backward"),
    .argument = "N", .expected = "0, 1, auto, or the size of a group" },

  { ELEMENTS (deepspeed, "reduce_bucket", data.reduce_bucket, "5e8", "elements of a bucket of gradients") },
  { ELEMENTS (deepspeed, "allgather_bucket", data.allgather_bucket, "5e8",
              "stages 1 and 2: elements of one gather of parameters") },
  { ROW (deepspeed, "prefetch_bucket", data.prefetch_bucket, LS_FIELD_UINT64, "5e7",
         "stage 3: elements gathered ahead; 0: none") },
  { ROW (deepspeed, "persistence_threshold", data.persistence_threshold, LS_FIELD_UINT64, "1e5",
         "stage 3: smaller parameters are never sharded; 0: all are") },
  { ROW (deepspeed, "max_live_params", data.max_live_params, LS_FIELD_UINT64, "1e9",
         "stage 3: gathered elements before gathering ahead stops; 0: at once") },
  { ROW (deepspeed, "max_reuse_distance", data.max_reuse_distance, LS_FIELD_UINT64, "1e9",
         "stage 3: parameters are kept if fewer elements are used before their next use; 0: none") },
  { BOOL (deepspeed, "collective_lists", data.collective_lists, "false",
          "stage 3, of early 2021: parameters one by one and blocking, through lists of one tensor for each "
          "rank"),
    SET_ONLY },

  { ENUM (host, "cuda_graphs", launch.cuda_graphs, cuda_graphs, "none",
          "what is launched as one CUDA graph: a layer each way, or the step up to the optimizer") },
  { HOST ("host_launch", LS_HOST_LAUNCH, "10us, or as a fit of the cluster has it",
          "what issuing a kernel costs the host; 0us: nothing. Defaults are times the call_time of the "
          "cluster's CPUs") },
  { HOST ("host_comm", LS_HOST_COMM, "20us", "the same for a collective or a group of sends and receives") },
  { HOST ("host_sync", LS_HOST_SYNC, "10us", "what a synchronising call costs after the device is done") },
  { HOST ("host_view", LS_HOST_VIEW, "2us", "a call from Python that launches nothing") },
  { HOST ("host_batch", LS_HOST_BATCH, "513us", "with batch_sync: fetching a micro-batch"), SET_ONLY },
  { HOST ("host_product", LS_HOST_PRODUCT, "33us; 0us if host_launch is", "a product of experts"), SET_ONLY },
  { NULL },
};
