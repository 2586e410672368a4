#include "io/read_strategy.h"

#include <string.h>

#include "io/datadir.h"
#include "io/read_recipes.h"
#include "model/kernel.h"

static const LsEnumName dp_kinds[] = {
  { "none", LS_DP_NONE },           { "ps", LS_DP_PS },       { "ddp", LS_DP_DDP },
  { "megatron", LS_DP_MEGATRON },   { "fsdp1", LS_DP_FSDP1 }, { "fsdp2", LS_DP_FSDP2 },
  { "deepspeed", LS_DP_DEEPSPEED }, { "xla-fsdp", LS_DP_XLA_FSDP }, { "auto", LS_DP_AUTO },
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
static const LsEnumName recompute_kinds[] = {
  { "none", LS_RECOMPUTE_NONE }, { "selective", LS_RECOMPUTE_SELECTIVE }, { "full", LS_RECOMPUTE_FULL }, { NULL },
};
static const LsEnumName attention_kinds[] = {
  { "flash", LS_ATTENTION_FLASH }, { "unfused", LS_ATTENTION_UNFUSED }, { "auto", LS_ATTENTION_AUTO }, { NULL },
};
static const LsEnumName attention_kernels[] = {
  { "auto", LS_ATTENTION_KERNEL_AUTO },     { "fa1", LS_ATTENTION_KERNEL_FA1 }, { "triton", LS_ATTENTION_KERNEL_TRITON },
  { "fa2", LS_ATTENTION_KERNEL_FA2 },       { "fa3", LS_ATTENTION_KERNEL_FA3 }, { NULL },
};
static const LsEnumName qkv_layouts[] = {
  { "joint", LS_QKV_JOINT }, { "split", LS_QKV_SPLIT }, { "unpadded", LS_QKV_UNPADDED }, { NULL },
};
static const LsEnumName losses[] = { { "parallel", LS_LOSS_PARALLEL }, { "fused", LS_LOSS_FUSED }, { NULL } };
static const LsEnumName dtypes[] = {
  { "fp16", LS_DTYPE_FP16 },     { "bf16", LS_DTYPE_BF16 },     { "fp8", LS_DTYPE_FP8 },
  { "fp32", LS_DTYPE_FP32 },     { "bfloat16", LS_DTYPE_BF16 }, { "float16", LS_DTYPE_FP16 },
  { "float32", LS_DTYPE_FP32 },  { NULL },
};
static const LsEnumName grad_dtypes[] = {
  { "fp16", LS_DTYPE_FP16 },     { "bf16", LS_DTYPE_BF16 },    { "fp32", LS_DTYPE_FP32 },
  { "bfloat16", LS_DTYPE_BF16 }, { "float16", LS_DTYPE_FP16 }, { "float32", LS_DTYPE_FP32 },
  { "auto", LS_DTYPE_AUTO },     { NULL },
};

static const LsEnumName grad_syncs[] = {
  { "auto", LS_GRAD_SYNC_AUTO }, { "last", LS_GRAD_SYNC_LAST }, { "each", LS_GRAD_SYNC_EACH }, { NULL },
};
static const LsEnumName prefetches[] = {
  { "pre", LS_PREFETCH_PRE }, { "post", LS_PREFETCH_POST }, { "none", LS_PREFETCH_NONE }, { NULL },
};
static const LsEnumName offloads[] = {
  { "none", LS_OFFLOAD_NONE }, { "optimizer", LS_OFFLOAD_OPTIMIZER }, { "parameters", LS_OFFLOAD_PARAMETERS }, { NULL },
};
static const LsEnumName offload_places[] = { { "cpu", LS_OFFLOAD_TO_CPU }, { "nvme", LS_OFFLOAD_TO_NVME }, { NULL } };
static const LsEnumName tp_overlaps[] = { { "bulk", LS_TP_OVERLAP_BULK }, { "ring", LS_TP_OVERLAP_RING }, { NULL } };
static const LsEnumName cp_kinds[] = {
  { "ring", LS_CP_RING }, { "all-gather", LS_CP_ALL_GATHER }, { "ulysses", LS_CP_ULYSSES }, { NULL },
};
static const LsEnumName recompute_methods[] = {
  { "uniform", LS_RECOMPUTE_UNIFORM }, { "block", LS_RECOMPUTE_BLOCK }, { NULL },
};
static const LsEnumName fp8_recipes[] = {
  { "delayed", LS_FP8_DELAYED }, { "current", LS_FP8_CURRENT }, { "blockwise", LS_FP8_BLOCKWISE }, { NULL },
};
/* Without a list: whether the layers are balanced even where they come out even. */
static const LsEnumName layer_rules[] = { { "auto", false }, { "balanced", true }, { NULL, 0 } };
static const LsEnumName flags[] = { { "0", 0 }, { "1", 1 }, { "auto", LS_FLAG_AUTO }, { NULL } };

static const struct {
  const char *name;
  uint32_t bit;
} recompute_parts[] = {
  { "core", LS_RECOMPUTE_CORE }, { "norm", LS_RECOMPUTE_NORM }, { "activation", LS_RECOMPUTE_ACTIVATION },
  { "op", LS_RECOMPUTE_OP },
};

/* "core,norm" */
static bool
parse_parts (const char *text, void *target)
{
  uint32_t set = 0;
  if (g_str_equal (text, "auto")) {
    ((LsStrategy *) target)->recompute_parts = 0;
    return true;
  }
  g_auto (GStrv) names = g_strsplit (text, ",", -1);
  for (guint i = 0; names[i]; i++) {
    guint p = 0;
    while (p < G_N_ELEMENTS (recompute_parts) && !g_str_equal (names[i], recompute_parts[p].name))
      p++;
    if (p == G_N_ELEMENTS (recompute_parts))
      return false;
    set |= recompute_parts[p].bit;
  }
  ((LsStrategy *) target)->recompute_parts = set;
  return set != 0;
}

static char *
format_parts (const void *target)
{
  GString *out = g_string_new (((const LsStrategy *) target)->recompute_parts == 0 ? "auto" : NULL);
  for (guint p = 0; p < G_N_ELEMENTS (recompute_parts); p++)
    if (((const LsStrategy *) target)->recompute_parts & recompute_parts[p].bit)
      g_string_append_printf (out, "%s%s", out->len > 0 ? "," : "", recompute_parts[p].name);
  return g_string_free (out, FALSE);
}

/* "auto", "0", "1", or the size of the groups that keep a copy. */
static bool
parse_reshard (const char *text, void *target)
{
  guint64 n = LS_RESHARD_AUTO;
  if (!g_str_equal (text, "auto") && !g_ascii_string_to_unsigned (text, 10, 0, UINT32_MAX - 1, &n, NULL))
    return false;
  ((LsStrategy *) target)->reshard_after_forward = (uint32_t) n;
  return true;
}

static char *
format_reshard (const void *target)
{
  uint32_t n = ((const LsStrategy *) target)->reshard_after_forward;
  return n == LS_RESHARD_AUTO ? g_strdup ("auto") : g_strdup_printf ("%u", n);
}

/* A name or a file, which is loaded: what a strategy holds is what is lowered. */
#define BUILT_IN "built-in"

static bool
parse_kernels (const char *text, void *target)
{
  LsStrategy *s = target;
  bool is_built_in = g_str_equal (text, BUILT_IN);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsRecipes *recipes = is_built_in ? NULL : ls_recipes_load (text, diags);
  if (!recipes && !is_built_in)
    return false;
  g_free (s->kernels);
  ls_recipes_unref (s->recipes);
  s->kernels = is_built_in ? NULL : g_strdup (text);
  s->recipes = recipes;
  return true;
}

static char *
format_kernels (const void *target)
{
  const LsStrategy *s = target;
  return g_strdup (s->kernels ? s->kernels : BUILT_IN);
}

/* "2" or "3@8": stage, and how many ranks share one copy. */
static bool
parse_zero (const char *text, void *target)
{
  LsStrategy *s = target;
  guint64 stage, group = 0;
  g_auto (GStrv) parts = g_strsplit (text, "@", 2);
  if (g_str_equal (text, "auto")) {
    s->zero_stage = LS_ZERO_AUTO;
    s->zero_group = 0;
    return true;
  }
  if (!parts[0] || !g_ascii_string_to_unsigned (parts[0], 10, 0, 3, &stage, NULL))
    return false;
  if (parts[1] && !g_ascii_string_to_unsigned (parts[1], 10, 1, UINT32_MAX, &group, NULL))
    return false;
  s->zero_stage = (uint32_t) stage;
  s->zero_group = (uint32_t) group;
  return true;
}

static char *
format_zero (const void *target)
{
  const LsStrategy *s = target;
  if (s->zero_stage == LS_ZERO_AUTO)
    return g_strdup ("auto");
  return s->zero_group > 0 ? g_strdup_printf ("%u@%u", s->zero_stage, s->zero_group) : g_strdup_printf ("%u", s->zero_stage);
}

#define MAX_DEGREE (1 << 20)
#define UINT(key_, default_, meaning_)                                                                  \
  { #key_, LS_FIELD_UINT, offsetof (LsStrategy, key_), .min = 1, .max = MAX_DEGREE, .default_text = (default_), \
    .meaning = (meaning_) }
#define COUNT(key_, default_, meaning_)                                                                 \
  { #key_, LS_FIELD_UINT, offsetof (LsStrategy, key_), .max = MAX_DEGREE, .default_text = (default_), .meaning = (meaning_) }
#define ELEMENTS(key_, default_, meaning_)                                                              \
  { #key_, LS_FIELD_UINT64, offsetof (LsStrategy, key_), .min = 1, .default_text = (default_), .meaning = (meaning_) }
#define BOOL(key_, default_, meaning_) \
  { #key_, LS_FIELD_BOOL, offsetof (LsStrategy, key_), .default_text = (default_), .meaning = (meaning_) }
#define ENUM(key_, names_, default_, meaning_)                                                          \
  { #key_, LS_FIELD_ENUM, offsetof (LsStrategy, key_), .names = (names_), .default_text = (default_),   \
    .meaning = (meaning_) }

const LsField ls_strategy_fields[] = {
  LS_FIELDS_HEADER (LsStrategy),
  { "software", LS_FIELD_STRING, offsetof (LsStrategy, software), .file_only = true, .default_text = "none",
    .meaning = "the program that runs the job (`lockstep list software`): its defaults, below the keys of this file" },
  UINT (gpus, "the whole cluster", "ranks of the job"),
  UINT (tp, "1", "tensor-parallel degree"),
  UINT (pp, "1", "pipeline stages"),
  UINT (dp, "gpus / (tp pp cp)", "data-parallel degree"),
  UINT (cp, "1", "context-parallel degree"),
  UINT (ep, "1", "expert-parallel degree"),
  UINT (vpp, "1", "chunks of a stage (virtual stages)"),
  BOOL (sp, "false", "sequence parallelism; no effect with tp 1"),
  { "zero", LS_FIELD_CUSTOM, .parse = parse_zero, .format = format_zero, .expected = "0 to 3, auto, or STAGE@GROUP such as \"3@8\"",
    .default_text = "0; 3 with fsdp1, fsdp2, xla-fsdp",
    .meaning = "ZeRO stage: what is sharded over data-parallel ranks, or over groups of that many" },
  ENUM (dp_kind, dp_kinds, "megatron, deepspeed for zero 2 and 3, xla-fsdp on TPUs", "who reduces gradients, and when"),
  BOOL (dp_overlap, "true", "reduce gradients during the backward pass"),
  BOOL (tp_overlap, "false", "overlap tensor-parallel collectives with GEMMs"),
  BOOL (tp_async, "true", "in the backward, tensor-parallel collectives of column-parallel layers run beside a GEMM"),
  ENUM (p2p, p2p_kinds, "batched", "how stages exchange activations"),
  { "schedule", LS_FIELD_STRING, offsetof (LsStrategy, schedule), .default_text = "1f1b, interleaved-1f1b if vpp > 1",
    .meaning = "order of micro-batches in the pipeline" },
  UINT (micro_batch, "1", "sequences of one micro-batch"),
  { "global_batch", LS_FIELD_UINT, offsetof (LsStrategy, global_batch), .min = 1, .max = 1 << 30,
    .default_text = "dp micro_batch pp", .meaning = "sequences of one step" },
  { "seq", LS_FIELD_UINT, offsetof (LsStrategy, seq), .min = 1, .max = 1 << 30, .default_text = "the model's",
    .meaning = "tokens of one sequence" },
  ENUM (recompute, recompute_kinds, "none", "activations that are computed again in the backward pass"),
  ENUM (attention, attention_kinds, "the model's", "attention kernels"),
  ENUM (dtype, dtypes, "bf16", "number format of parameters and activations"),
  ENUM (grad_dtype, grad_dtypes, "the 16-bit type of dtype", "number format of gradients"),
  BOOL (grad_norm, "true", "all-reduce the norm of the gradients before the optimizer"),
  { "bucket_bytes", LS_FIELD_BYTES, offsetof (LsStrategy, bucket_bytes), .above = true,
    .default_text = "25MiB, the first 1MiB", .meaning = "ddp: size of a bucket" },
  { "bucket_params", LS_FIELD_UINT64, offsetof (LsStrategy, bucket_params), .min = 1,
    .default_text = "the larger of 40e6 and 1e6 dp", .meaning = "megatron: parameters of a bucket" },
  { "layers_per_chunk", LS_FIELD_UINT_LIST, offsetof (LsStrategy, layers_per_chunk), .max = MAX_DEGREE,
    .n_offset = offsetof (LsStrategy, n_layers_per_chunk), .names = layer_rules, .word_offset = offsetof (LsStrategy, balance_layers),
    .runs = true, .expected = "auto, balanced, or layers of each chunk in model order such as 4x13,3x3 (13 chunks of 4, then 3 of 3), whole numbers",
    .default_text = "auto: even where pp vpp divides the layers, or layers + 2, else balanced",
    .meaning = "layers of each chunk, pp vpp of them; balanced: by what layers, embedding and head cost" },
  ENUM (grad_sync, grad_syncs, "each with zero 2 and 3, else last", "micro-batches that reduce gradients"),
  ENUM (gather_overlap, flags, "as dp_overlap", "megatron: gather parameters during the next forward"),
  UINT (layers_per_unit, "1", "fsdp: layers that are gathered together"),
  BOOL (limit_all_gathers, "true", "fsdp1: the host keeps at most two gathers in flight"),
  ENUM (backward_prefetch, prefetches, "pre", "fsdp1: when the next gather of the backward is issued"),
  COUNT (forward_prefetch, "0", "fsdp: units gathered ahead in the forward by an explicit list (fsdp1: 0 or 1)"),
  COUNT (backward_prefetch_units, "0", "fsdp2: the same in the backward; 0: one, as it does by itself"),
  { "reshard_after_forward", LS_FIELD_CUSTOM, .parse = parse_reshard, .format = format_reshard,
    .expected = "0, 1, auto, or the size of a group", .default_text = "1 with zero 3, 0 with zero 2 or pp",
    .meaning = "fsdp2: whether parameters are freed after the forward; N: sharded in groups of N until the backward" },
  ELEMENTS (reduce_bucket, "5e8", "deepspeed: elements of a bucket of gradients"),
  ELEMENTS (allgather_bucket, "5e8", "deepspeed stages 1 and 2: elements of one gather of parameters"),
  ELEMENTS (prefetch_bucket, "5e7", "deepspeed stage 3: elements gathered ahead"),
  ELEMENTS (persistence_threshold, "1e5", "deepspeed stage 3: smaller parameters are never sharded"),
  ELEMENTS (max_live_params, "1e9", "deepspeed stage 3: gathered elements before gathering ahead stops"),
  { "max_reuse_distance", LS_FIELD_UINT64, offsetof (LsStrategy, max_reuse_distance), .default_text = "1e9",
    .meaning = "deepspeed stage 3: parameters are kept if fewer elements are used before their next use" },
  BOOL (collective_lists, "false", "deepspeed stage 3, of early 2021: parameters one by one, through lists of one tensor for each rank"),
  ENUM (offload, offloads, "none", "deepspeed: what lives outside the accelerator (parameters: the optimizer too)"),
  ENUM (offload_to, offload_places, "cpu", "where it lives"),
  BOOL (apex_norm, "false", "layer norms run apex's kernels, as in Megatron-LM until early 2022, not those for long rows"),
  BOOL (split_bias_dropout, "false", "the bias before a dropout is added in a kernel of its own, as in Megatron-LM of 2023"),
  BOOL (batch_sync, "false", "each forward fetches its micro-batch, in which the host waits for the device, as in Megatron-LM until late 2023"),
  BOOL (launch_blocking, "false", "the host waits for each op that it issues, as with CUDA_LAUNCH_BLOCKING=1"),
  BOOL (grad_fusion, "false", "weight-gradient GEMMs add to 16-bit gradients too, as Megatron-LM since 2023; to fp32 ones they always do"),
  BOOL (sp_save_gathered, "false", "with sp: keep the gathered inputs instead of gathering them again"),
  ENUM (tp_overlap_kind, tp_overlaps, "ring", "tp_overlap: beside GEMMs that do not need it, or pipelined with those that do too"),
  ENUM (cp_kind, cp_kinds, "ring", "how context-parallel attention exchanges keys and values"),
  BOOL (cp_balance, "true", "each context-parallel rank has an early and a late part of a sequence"),
  { "etp", LS_FIELD_UINT, offsetof (LsStrategy, etp), .min = 1, .max = MAX_DEGREE, .default_text = "tp",
    .meaning = "tensor-parallel degree of experts" },
  { "expert_capacity", LS_FIELD_DOUBLE, offsetof (LsStrategy, expert_capacity), .min = 0, .max = 1e6, .default_text = "0",
    .meaning = "tokens that an expert takes at most, over the mean; 0: none are dropped" },
  { "expert_load", LS_FIELD_STRING, offsetof (LsStrategy, expert_load), .default_text = "even",
    .meaning = "how tokens fall on experts: even, zipf:S, lognormal:SIGMA:SEED, or weights a,b,... over and over" },
  { "recompute_parts", LS_FIELD_CUSTOM, .parse = parse_parts, .format = format_parts,
    .expected = "core, norm, activation, several such as \"core,norm\", op, or auto", .default_text = "core, op with fsdp2",
    .meaning = "selective: what is computed again" },
  ENUM (attention_kernel, attention_kernels, "auto", "flash: its implementation; auto: whichever the accelerator was measured with"),
  ENUM (qkv_layout, qkv_layouts, "joint", "flash: Q, K, V in one tensor, as three views, or copied without padding and back"),
  { "kernels", LS_FIELD_CUSTOM, .parse = parse_kernels, .format = format_kernels,
    .expected = "built-in, or a file of kernels without mistakes (lockstep list kernels; lockstep check FILE says what is wrong with one)",
    .default_text = "built-in", .meaning = "kernels as some software launches them: a name or a file of strategies/kernels" },
  ENUM (loss, losses, "parallel", "cross-entropy: parallel over the vocabulary, or one kernel each way (tp 1)"),
  { "train_metrics", LS_FIELD_UINT, offsetof (LsStrategy, train_metrics), .max = 16, .default_text = "0",
    .meaning = "how often the loss is computed again from the logits for what is logged" },
  ENUM (recompute_method, recompute_methods, "uniform", "full: groups of layers, or the first layers of a chunk"),
  { "recompute_layers", LS_FIELD_UINT, offsetof (LsStrategy, recompute_layers), .min = 1, .max = MAX_DEGREE,
    .default_text = "uniform 1, block all", .meaning = "full: layers of a group, or recomputed ones of a chunk" },
  { "recompute_stages", LS_FIELD_UINT_LIST, offsetof (LsStrategy, recompute_stages), .max = MAX_DEGREE,
    .n_offset = offsetof (LsStrategy, n_recompute_stages), .runs = true,
    .expected = "a list of whole numbers such as 1x3,2 (3 times 1, then 2), each", .default_text = "all alike",
    .meaning = "full, block: recomputed layers of each pipeline rank, pp of them" },
  BOOL (recompute_early_stop, "false", "full: stop once the backward has what it needs, as PyTorch since 2.1 without reentrance"),
  BOOL (partition_activations, "false", "full: kept inputs are cut over tp, and gathered for recomputation"),
  BOOL (offload_activations, "false", "kept activations go to the host's memory and come back"),
  ENUM (fp8_recipe, fp8_recipes, "delayed", "fp8: scaling factors of earlier steps, of this tensor, or of its blocks"),
  BOOL (fp8_params, "false", "fp8: weights are stored and gathered in fp8"),
  BOOL (wgrad_placeholders, "false", "megatron, with Transformer Engine from 2.3 on: a 16-bit tensor stands for the gradient of each shape of weight"),
  BOOL (p2p_warmup_flush, "false", "overlapped p2p: in warm-up and cool-down too"),
  BOOL (post_validation, "false", "nobody waits for the norm of the gradients: it is checked a step later"),
  { NULL },
};

static bool
check_chunks (const LsJsonDoc *doc, const LsStrategy *s, LsDiagList *diags)
{
  if (s->n_layers_per_chunk <= LS_MAX_CHUNKS)
    return true;
  const cJSON *list = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "layers_per_chunk");
  ls_json_doc_diag (doc, list, LS_JSON_AT_VALUE, diags, NULL, "expected at most %d chunks; got %u", LS_MAX_CHUNKS,
                    s->n_layers_per_chunk);
  return false;
}

static bool
read_over (const LsJsonDoc *doc, const LsStrategy *base, LsStrategy *ret_strategy, LsDiagList *diags)
{
  LsStrategy s;
  ls_strategy_copy (&s, base);
  bool ok = ls_fields_read_file (ls_strategy_fields, "strategy", doc, &s, diags) && check_chunks (doc, &s, diags);
  if (ok)
    *ret_strategy = s;
  else
    ls_strategy_clear (&s);
  return ok;
}

bool
ls_strategy_read (const LsJsonDoc *doc, LsStrategy *ret_strategy, LsDiagList *diags)
{
  LsStrategy blank;
  ls_strategy_init (&blank);
  return read_over (doc, &blank, ret_strategy, diags);
}

bool
ls_strategy_find_software (const char *name, char **ret_software, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_STRATEGIES, name, diags);
  const cJSON *software = doc ? cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "software") : NULL;
  *ret_software = cJSON_IsString (software) ? g_strdup (software->valuestring) : NULL;
  return doc != NULL;
}

bool
ls_strategy_load_over (const char *name, const LsStrategy *base, LsStrategy *ret_strategy, GHashTable *said, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_STRATEGIES, name, diags);
  if (!doc || !read_over (doc, base, ret_strategy, diags))
    return false;
  for (const LsField *f = ls_strategy_fields; f->key && said; f++)
    if (!f->file_only && cJSON_HasObjectItem (ls_json_doc_root (doc), f->key))
      g_hash_table_add (said, (gpointer) f->key);
  return true;
}

bool
ls_strategy_load (const char *name, LsStrategy *ret_strategy, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_STRATEGIES, name, diags);
  return doc && ls_strategy_read (doc, ret_strategy, diags);
}
