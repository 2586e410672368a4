#include "io/read_strategy.h"

#include <string.h>

#include "io/datadir.h"

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
  { "auto", LS_P2P_AUTO },
  { NULL },
};
static const LsEnumName recompute_kinds[] = {
  { "none", LS_RECOMPUTE_NONE }, { "selective", LS_RECOMPUTE_SELECTIVE }, { "full", LS_RECOMPUTE_FULL }, { NULL },
};
static const LsEnumName attention_kinds[] = {
  { "flash", LS_ATTENTION_FLASH }, { "unfused", LS_ATTENTION_UNFUSED }, { "auto", LS_ATTENTION_AUTO }, { NULL },
};
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

/* "2" or "3@8": stage, and how many ranks share one copy. */
static bool
parse_zero (const char *text, void *target)
{
  LsStrategy *s = target;
  guint64 stage, group = 0;
  g_auto (GStrv) parts = g_strsplit (text, "@", 2);
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
  return s->zero_group > 0 ? g_strdup_printf ("%u@%u", s->zero_stage, s->zero_group) : g_strdup_printf ("%u", s->zero_stage);
}

#define MAX_DEGREE (1 << 20)
#define UINT(key_, default_, meaning_)                                                                  \
  { #key_, LS_FIELD_UINT, offsetof (LsStrategy, key_), .min = 1, .max = MAX_DEGREE, .default_text = (default_), \
    .meaning = (meaning_) }
#define BOOL(key_, default_, meaning_) \
  { #key_, LS_FIELD_BOOL, offsetof (LsStrategy, key_), .default_text = (default_), .meaning = (meaning_) }
#define ENUM(key_, names_, default_, meaning_)                                                          \
  { #key_, LS_FIELD_ENUM, offsetof (LsStrategy, key_), .names = (names_), .default_text = (default_),   \
    .meaning = (meaning_) }

const LsField ls_strategy_fields[] = {
  LS_FIELDS_HEADER (LsStrategy),
  UINT (gpus, "the whole cluster", "ranks of the job"),
  UINT (tp, "1", "tensor-parallel degree"),
  UINT (pp, "1", "pipeline stages"),
  UINT (dp, "gpus / (tp pp cp)", "data-parallel degree"),
  UINT (cp, "1", "context-parallel degree"),
  UINT (ep, "1", "expert-parallel degree"),
  UINT (vpp, "1", "chunks of a stage (virtual stages)"),
  BOOL (sp, "false", "sequence parallelism; no effect with tp 1"),
  { "zero", LS_FIELD_CUSTOM, .parse = parse_zero, .format = format_zero, .expected = "0 to 3, or STAGE@GROUP such as \"3@8\"",
    .default_text = "0",
    .meaning = "ZeRO stage: what is sharded over data-parallel ranks, or over groups of that many" },
  ENUM (dp_kind, dp_kinds, "megatron, deepspeed for zero 2 and 3", "who reduces gradients, and when"),
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
    .n_offset = offsetof (LsStrategy, n_layers_per_chunk), .default_text = "even",
    .meaning = "layers of each chunk in model order, pp vpp of them" },
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

bool
ls_strategy_read (const LsJsonDoc *doc, LsStrategy *ret_strategy, LsDiagList *diags)
{
  LsStrategy s;
  ls_strategy_init (&s);
  bool ok = ls_fields_read_file (ls_strategy_fields, "strategy", doc, &s, diags) && check_chunks (doc, &s, diags);
  if (ok)
    *ret_strategy = s;
  else
    ls_strategy_clear (&s);
  return ok;
}

bool
ls_strategy_load (const char *name, LsStrategy *ret_strategy, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_STRATEGIES, name, diags);
  return doc && ls_strategy_read (doc, ret_strategy, diags);
}
