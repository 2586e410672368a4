/* data/jobs/strategy_fields.c — the knobs of a strategy: the table of them, values that are neither numbers
 * nor words, files of strategies. data/keys.txt says what knobs mean. */
#include <string.h>
#include <lockstep/units.h>

#include "base/suggest.h"
#include "data/datadir.h"
#include "data/jobs/job_files.h"
#include "data/jobs/read_placement.h"
#include "data/text/csv.h"
#include "data/text/json_doc.h"
#include "model/kernel.h"
#include "model/operators.h"
#include "strategy/strategy.h"

/* --- values that are neither numbers nor one word of several: read and written -------------------- */

#define LS_LENGTHS_FILE "file:"

static const struct {
  const char *name;
  uint32_t bit;
} recompute_parts[] = {
  { "core", LS_RECOMPUTE_CORE },
  { "norm", LS_RECOMPUTE_NORM },
  { "activation", LS_RECOMPUTE_ACTIVATION },
  { "op", LS_RECOMPUTE_OP },
  { "mla-up", LS_RECOMPUTE_MLA_UP },
  { "mlp", LS_RECOMPUTE_MLP },
  { "moe", LS_RECOMPUTE_MOE },
  { "shared", LS_RECOMPUTE_SHARED },
  { "dots-flash", LS_RECOMPUTE_DOTS_FLASH }, /* names of several before these */
  { "dots", LS_RECOMPUTE_DOTS },
  { "keep-qkv", LS_RECOMPUTE_BUT_QKV },
  { "keep-attention", LS_RECOMPUTE_BUT_ATTENTION },
  { "keep-projection", LS_RECOMPUTE_BUT_PROJECTION },
  { "keep-up", LS_RECOMPUTE_BUT_UP },
  { "keep-down", LS_RECOMPUTE_BUT_DOWN },
  /* as they were called until November 2026; read, and not written */
  { "but-qkv", LS_RECOMPUTE_BUT_QKV },
  { "but-attention", LS_RECOMPUTE_BUT_ATTENTION },
  { "but-projection", LS_RECOMPUTE_BUT_PROJECTION },
  { "but-up", LS_RECOMPUTE_BUT_UP },
  { "but-down", LS_RECOMPUTE_BUT_DOWN },
};

const char *
ls_recompute_part_at (guint i)
{
  for (guint before = 0; i < G_N_ELEMENTS (recompute_parts) && before < i; before++)
    if (recompute_parts[before].bit == recompute_parts[i].bit)
      return NULL;
  return i < G_N_ELEMENTS (recompute_parts) ? recompute_parts[i].name : NULL;
}

/* "core,norm" */
static bool
parse_parts (const char *text, void *target)
{
  uint32_t set = 0;
  if (g_str_equal (text, "auto")) {
    ((LsStrategy *) target)->memory.recompute_parts = 0;
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
  ((LsStrategy *) target)->memory.recompute_parts = set;
  return set != 0;
}

static char *
format_parts (const void *target)
{
  uint32_t left = ((const LsStrategy *) target)->memory.recompute_parts;
  GString *out = g_string_new (left == 0 ? "auto" : NULL);
  for (guint p = 0; p < G_N_ELEMENTS (recompute_parts); p++)
    if ((left & recompute_parts[p].bit) == recompute_parts[p].bit) {
      g_string_append_printf (out, "%s%s", out->len > 0 ? "," : "", recompute_parts[p].name);
      left &= ~recompute_parts[p].bit;
    }
  return g_string_free (out, FALSE);
}

/* "qkv:bf16,mixer-out:mxfp8", or "none" */
static bool
parse_formats (const char *text, void *target)
{
  return ls_formats_parse (g_str_equal (text, "none") ? "" : text,
                           &((LsStrategy *) target)->fp8.module_formats);
}

static char *
format_formats (const void *target)
{
  const LsFormats *formats = &((const LsStrategy *) target)->fp8.module_formats;
  return ls_formats_any (formats) ? ls_formats_text (formats) : g_strdup ("none");
}

/* "auto", "0", "1", or the size of the groups that keep a copy. */
static bool
parse_reshard (const char *text, void *target)
{
  uint64_t n = LS_RESHARD_AUTO;
  if (!g_str_equal (text, "auto") && (!ls_parse_count (text, &n, NULL) || n >= UINT32_MAX))
    return false;
  ((LsStrategy *) target)->data.reshard_after_forward = (uint32_t) n;
  return true;
}

static char *
format_reshard (const void *target)
{
  uint32_t n = ((const LsStrategy *) target)->data.reshard_after_forward;
  return n == LS_RESHARD_AUTO ? g_strdup ("auto") : g_strdup_printf ("%u", n);
}

/* A name or a file, which is loaded: what a strategy holds is what is lowered. */

static const char *const own_kernels[]
    = { LS_BUILT_IN_KERNELS, NULL },
    *const own_optimizers[] = { "adam", "adamw", NULL }, *const own_lengths[] = { "whole", NULL },
           *const own_placements[] = { LS_PLACEMENT_BLOCK, NULL };

/* The first mistake, without the line of the file that it shows; newly allocated. */
static char *
first_of (const LsDiagList *diags)
{
  char *why = ls_diag_list_format (diags);
  why[strcspn (why, "\n")] = '\0';
  return why;
}

/* What is wrong with such a name, or in its file. own: names that need no file. */
static char *
why_data (LsDataKind kind, const char *const *own, const char *text, const LsDiagList *diags)
{
  g_autofree char *missing = NULL, *path = ls_data_find (kind, text, &missing);
  if (!path) {
    g_autofree char *hint = strstr (missing, "did you mean") ? g_strdup ("") : ls_did_you_mean (text, own);
    return g_strconcat (missing, hint, NULL);
  }
  return first_of (diags);
}

static char *
why_kernels (const char *text)
{
  g_auto (GStrv) parts = ls_recipes_parts (text);
  for (guint i = 0; parts[i]; i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (LsRecipes) list = ls_recipes_load (parts[i], diags);
    if (!list)
      return why_data (LS_DATA_KERNELS, own_kernels, parts[i], diags);
  }
  return NULL;
}

static char *
why_optimizer (const char *text)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  ls_optimizer_kind_unref (ls_optimizer_load (text, diags));
  return why_data (LS_DATA_OPTIMIZERS, own_optimizers, text, diags);
}

/* A number of a row; 0, with a diagnostic, where it is none. */
static guint64
read_cell (const LsCsv *csv, guint row, int column, guint64 min, guint64 max, LsDiagList *diags)
{
  uint64_t n = 0;
  if (!ls_parse_count (ls_csv_cell (csv, row, (guint) column), &n, NULL) || n < min || n > max)
    ls_csv_error (csv, row, (guint) column, diags,
                  "expected a whole number from %" G_GUINT64_FORMAT " on; got \"%s\"", min,
                  ls_csv_cell (csv, row, (guint) column));
  return n;
}

/* A CSV with columns length and count. NULL: diagnostics. */
static LsLengths *
load_counts (const char *path, LsDiagList *diags)
{
  g_autoptr (LsCsv) csv = ls_csv_parse (path, NULL, -1, diags);
  int length = csv ? ls_csv_column (csv, "length") : -1, count = csv ? ls_csv_column (csv, "count") : -1;
  if (!csv)
    return NULL;
  if (length < 0 || count < 0)
    ls_csv_header_error (csv, diags, "expected columns length and count");
  if (length < 0 || count < 0)
    return NULL;
  guint n = ls_csv_n_rows (csv);
  g_autofree LsLengthCount *counts = g_new0 (LsLengthCount, n + 1);
  for (guint i = 0; i < n; i++)
    counts[i] = (LsLengthCount) { (uint32_t) read_cell (csv, i, length, 1, LS_LENGTH_MAX, diags),
                                  (double) read_cell (csv, i, count, 0, G_MAXINT64, diags) };
  if (ls_diag_list_n (diags) > 0)
    return NULL;
  g_autofree char *why = NULL;
  LsLengths *lengths = ls_lengths_new_counted (counts, n, &why);
  if (!lengths)
    ls_csv_header_error (csv, diags, "%s", why);
  return lengths;
}

/* NULL without diagnostics: a formula that is none. */
static LsLengths *
load_lengths (const char *text, LsDiagList *diags)
{
  g_autofree char *why = NULL;
  return g_str_has_prefix (text, LS_LENGTHS_FILE) ? load_counts (text + strlen (LS_LENGTHS_FILE), diags)
                                                  : ls_lengths_parse (text, &why);
}

static char *
why_lengths (const char *text)
{
  if (!g_str_has_prefix (text, LS_LENGTHS_FILE))
    return NULL;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  ls_lengths_unref (load_lengths (text, diags));
  return first_of (diags);
}

static void
clear_rank_order (void *target)
{
  LsStrategy *s = target;
  g_clear_pointer (&s->layout.rank_order, g_free);
}

static bool
parse_rank_order (const char *text, void *target)
{
  LsStrategy *s = target;
  LsRankOrder order;
  uint32_t named;
  if (!ls_rank_order_parse (text, &order, &named))
    return false;
  bool is_default = order == 0 && named == (1u << LS_N_DIMS) - 1;
  clear_rank_order (s);
  s->layout.rank_order = is_default ? NULL : g_ascii_strdown (text, -1);
  return true;
}

static char *
format_rank_order (const void *target)
{
  const LsStrategy *s = target;
  return s->layout.rank_order ? g_strdup (s->layout.rank_order) : ls_rank_order_text (0);
}

static char *
why_placement (const char *text)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  ls_allocation_unref (ls_placement_load (text, diags));
  g_autofree char *said = ls_diag_list_format (diags);
  g_auto (GStrv) lines = g_strsplit (said, "\n", -1);
  GString *why = g_string_new (NULL);
  for (char **line = lines; *line; line++) { /* without the lines of the file, which are indented */
    const char *what = g_str_has_prefix (*line, "error: ") ? *line + strlen ("error: ") : *line;
    if (*what != '\0' && !g_ascii_isspace (*what))
      g_string_append_printf (why, "%s%s", why->len > 0 ? "; " : "", what);
  }
  return g_string_free (why, FALSE);
}

/* "2" or "3@8": stage, and how many ranks share one copy. */
static bool
parse_zero (const char *text, void *target)
{
  LsStrategy *s = target;
  guint64 stage;
  uint64_t group = 0;
  g_auto (GStrv) parts = g_strsplit (text, "@", 2);
  if (g_str_equal (text, "auto")) {
    s->zero_stage = LS_ZERO_AUTO;
    s->data.zero_group = 0;
    return true;
  }
  if (!parts[0] || !g_ascii_string_to_unsigned (parts[0], 10, 0, 3, &stage, NULL))
    return false;
  if (parts[1] && (!ls_parse_count (parts[1], &group, NULL) || group < 1 || group > UINT32_MAX))
    return false;
  s->zero_stage = (uint32_t) stage;
  s->data.zero_group = (uint32_t) group;
  return true;
}

static char *
format_zero (const void *target)
{
  const LsStrategy *s = target;
  if (s->zero_stage == LS_ZERO_AUTO)
    return g_strdup ("auto");
  return s->data.zero_group > 0 ? g_strdup_printf ("%u@%u", s->zero_stage, s->data.zero_group)
                                : g_strdup_printf ("%u", s->zero_stage);
}

/* --- values that are files of somebody's --------------------------------------------------------- */

#define LOAD(own_, load_, unref_, member_, prefix_)                                                          \
  {                                                                                                          \
    own_, (gpointer (*) (const char *, LsDiagList *)) (load_), (GDestroyNotify) (unref_),                    \
        offsetof (LsStrategy, member_), prefix_                                                              \
  }
static const LsFieldLoad kernels_file
    = LOAD (own_kernels, ls_recipes_load, ls_recipes_unref, use.recipes, "");
static const LsFieldLoad optimizer_file
    = LOAD (own_optimizers, ls_optimizer_load, ls_optimizer_kind_unref, opt.kind, "");
static const LsFieldLoad lengths_file
    = LOAD (own_lengths, load_lengths, ls_lengths_unref, docs.drawn, LS_LENGTHS_FILE);
static const LsFieldLoad placement_file
    = LOAD (own_placements, ls_placement_load, ls_allocation_unref, layout.allocation, "");

/* --- words that values of knobs may be ----------------------------------------------------------- */

static const char *const placement_words[] = { "block", "cyclic", "random:SEED", "random-gpus:SEED", NULL };
static const char *const recompute_words[] = { "core",   "norm", "activation", "mla-up",     "mlp",  "moe",
                                               "shared", "op",   "dots",       "dots-flash", "auto", NULL };
static const char *const lengths_words[]
    = { "whole", "fixed:N", "uniform:A:B", "lognormal:MEDIAN:SIGMA[:MAX]", "file:PATH", NULL };

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

#define MAX_DEGREE                           (1 << 20)
#define ROW(topic_, key_, member_, kind_)    key_, kind_, offsetof (LsStrategy, member_), .topic = #topic_
#define COUNT(topic_, key_, member_)         ROW (topic_, key_, member_, LS_FIELD_UINT), .max = MAX_DEGREE
#define UINT(topic_, key_, member_)          COUNT (topic_, key_, member_), .min = 1
#define CTAS(topic_, key_, member_)          ROW (topic_, key_, member_, LS_FIELD_UINT), .max = 255, SET_ONLY
#define ELEMENTS(topic_, key_, member_)      ROW (topic_, key_, member_, LS_FIELD_UINT64), .min = 1
#define BOOL(topic_, key_, member_)          ROW (topic_, key_, member_, LS_FIELD_BOOL)
#define TEXT(topic_, key_, member_)          ROW (topic_, key_, member_, LS_FIELD_STRING)
#define ENUM(topic_, key_, member_, names_)  ROW (topic_, key_, member_, LS_FIELD_ENUM), .names = (names_)
#define LOADED(topic_, key_, member_, load_) ROW (topic_, key_, member_, LS_FIELD_CUSTOM), .load = &(load_)
#define HOST(key_, cost_)                                                                                    \
  ROW (host, key_, launch.host[cost_], LS_FIELD_TIME), .max = (double) LS_S, .of_program = true
#define CUSTOM(topic_, key_, parse_, format_)                                                                \
  key_, LS_FIELD_CUSTOM, .topic = #topic_, .parse = (parse_), .format = (format_)
#define LIST(topic_, key_, member_, n_)                                                                      \
  ROW (topic_, key_, member_, LS_FIELD_UINT_LIST), .max = MAX_DEGREE, .runs = true, .argument = "A,B,...",   \
                                                   .n_offset = offsetof (LsStrategy, n_)
#define USUAL    .usual = true
#define SET_ONLY .set_only = true
#define OF_JOB   .of_job = true
#define ON_OFF   .argument = "0|1"

const LsField ls_strategy_fields[] = {
  LS_FIELDS_HEADER (LsStrategy),
  { "software", LS_FIELD_STRING, offsetof (LsStrategy, program.software), .file_only = true },

  { UINT (layout, "gpus", gpus), USUAL, OF_JOB },
  { UINT (layout, "tp", tp), USUAL, OF_JOB },
  { BOOL (layout, "sp", sp), USUAL },
  { UINT (layout, "pp", pp), USUAL, OF_JOB },
  { UINT (layout, "vpp", vpp), USUAL, OF_JOB },
  { TEXT (layout, "schedule", schedule), USUAL },
  { UINT (layout, "dp", dp), USUAL, OF_JOB },
  { ENUM (layout, "dp_kind", dp_kind, ls_dp_kind_names), USUAL },
  { CUSTOM (layout, "zero", parse_zero, format_zero), .argument = "N[@G]",
    .expected = "0 to 3, auto, or STAGE@GROUP such as \"3@8\"", USUAL },
  { UINT (layout, "cp", cp), USUAL, OF_JOB },
  { UINT (layout, "ep", ep), USUAL, OF_JOB },
  { UINT (layout, "etp", experts.etp), OF_JOB },
  { CUSTOM (layout, "rank_order", parse_rank_order, format_rank_order), .argument = "A-B-...",
    .expected = "names out of tp, cp, ep, dp and pp, each once, such as \"tp-pp-dp\"",
    .clear = clear_rank_order, OF_JOB },
  { LOADED (layout, "placement", layout.placement, placement_file), .argument = "NODES|FILE",
    .expected
    = "block, cyclic, random:SEED, random-gpus:SEED, nodes such as \"node[000-063,072]\", or a file "
      "of either",
    .words = placement_words, .why = why_placement, OF_JOB },

  { UINT (batch, "micro_batch", micro_batch), USUAL, OF_JOB },
  { ROW (batch, "global_batch", global_batch, LS_FIELD_UINT), .min = 1, .max = 1 << 30, USUAL, OF_JOB },
  { LIST (batch, "micro_batches_per_replica", layout.micro_batches_per_replica,
          layout.n_micro_batches_per_replica),
    .min = 1,
    .expected
    = "micro-batches of each data-parallel rank such as 10,6 or 10x4,6x4 (4 ranks of 10, then 4 of 6), "
      "whole numbers",
    OF_JOB },
  { ROW (batch, "seq", seq, LS_FIELD_UINT), .min = 1, .max = 1 << 30, USUAL, OF_JOB },
  { LOADED (batch, "lengths", docs.lengths, lengths_file), .argument = "TEXT",
    .expected = "whole, fixed:N, uniform:A:B, lognormal:MEDIAN:SIGMA[:MAX] or file:PATH, a CSV with columns "
                "length and count",
    .words = lengths_words, .why = why_lengths, OF_JOB },
  { ENUM (batch, "lengths_draw", docs.draw, lengths_draws), OF_JOB },
  { ENUM (batch, "lengths_balance", docs.balance, lengths_balances), OF_JOB },
  { ROW (batch, "lengths_seed", docs.seed, LS_FIELD_UINT), .max = G_MAXUINT32, OF_JOB },

  { ENUM (memory, "recompute", recompute, ls_recompute_names), USUAL },
  { CUSTOM (memory, "recompute_parts", parse_parts, format_parts), .argument = "A,B",
    .expected = "core, norm, activation, mla-up, mlp, moe, shared, several such as \"core,norm\", op, dots, "
                "dots-flash, some of keep-qkv, keep-attention, keep-projection, keep-up, keep-down, or auto",
    .words = recompute_words },
  { ENUM (memory, "recompute_method", memory.recompute_method, recompute_methods) },
  { UINT (memory, "recompute_layers", memory.recompute_layers) },
  { LIST (memory, "recompute_stages", memory.recompute_stages, memory.n_recompute_stages),
    .expected = "a list of whole numbers such as 1x3,2 (3 times 1, then 2), each" },
  { BOOL (memory, "recompute_early_stop", memory.recompute_early_stop), SET_ONLY },
  { BOOL (memory, "recompute_flash", memory.recompute_flash), SET_ONLY },
  { BOOL (memory, "partition_activations", memory.partition_activations) },
  { BOOL (memory, "offload_activations", memory.offload_activations) },
  { UINT (memory, "offload_layers", memory.offload_layers), SET_ONLY },
  { ENUM (memory, "cuda_allocator", memory.cuda_allocator, cuda_allocators), SET_ONLY },
  { ENUM (memory, "offload", memory.offload, offloads) },
  { ENUM (memory, "offload_to", memory.offload_to, offload_places) },

  { COUNT (memory, "lora_rank", lora.rank), OF_JOB },
  { TEXT (memory, "lora_modules", lora.modules), OF_JOB },
  { BOOL (memory, "qlora", lora.qlora), OF_JOB },

  { ENUM (precision, "dtype", dtype, dtypes), USUAL },
  { ENUM (precision, "grad_dtype", opt.grad_dtype, grad_dtypes), USUAL },
  { ENUM (precision, "fp8_recipe", fp8.recipe, fp8_recipes), .of_program = true },
  { ENUM (precision, "fp8_linear", fp8.linear, fp8_linears), SET_ONLY },
  { ENUM (precision, "fp8_attention", fp8.attention, fp8_attentions) },
  { ENUM (precision, "fp8_amax_reduction", fp8.amax_reduction, amax_reductions), SET_ONLY },
  { BOOL (precision, "fp8_act_store", fp8.act_store) },
  { BOOL (precision, "fp8_params", fp8.params) },
  { BOOL (precision, "bf16_experts", fp8.bf16_experts) },
  { COUNT (precision, "bf16_first", fp8.bf16_first) },
  { COUNT (precision, "bf16_last", fp8.bf16_last) },
  { CUSTOM (precision, "module_formats", parse_formats, format_formats), .argument = "MODULE:FORMAT,...",
    .expected = "none, or pairs such as qkv:bf16 of qkv, proj, fc1, fc2, expert-fc1, expert-fc2, shared-fc1, "
                "shared-fc2, latent-down, latent-up, mixer-in, mixer-out or mtp with bf16, current, "
                "blockwise, mxfp8 or nvfp4" },

  { LOADED (optimizer, "optimizer", opt.optimizer, optimizer_file), .argument = "NAME|FILE", USUAL,
    .expected = "adam, adamw, or a file of an optimizer without mistakes (lockstep list optimizers; lockstep "
                "check FILE says what is wrong with one)",
    .why = why_optimizer },
  { ENUM (optimizer, "optimizer_cut", opt.cut, optimizer_cuts) },
  { ENUM (optimizer, "optimizer_tp", opt.tp, optimizer_tps) },
  { ENUM (optimizer, "master", opt.master, masters), .of_program = true },
  { ENUM (optimizer, "moment_dtype", opt.moment_dtype, moment_dtypes) },
  { ENUM (optimizer, "variance_dtype", opt.variance_dtype, moment_dtypes) },

  { ENUM (software, "attention", use.attention, attention_kinds), .of_program = true, USUAL },
  { LOADED (software, "kernels", use.kernels, kernels_file), .argument = "NAME|FILE", .of_program = true,
    .expected = "built-in, or a file of kernels without mistakes (lockstep list kernels; lockstep check FILE "
                "says what is wrong with one)",
    .why = why_kernels },
  { ENUM (software, "attention_kernel", use.attention_kernel, ls_attention_kernel_names), SET_ONLY },
  { ENUM (software, "qkv_layout", use.qkv_layout, qkv_layouts), SET_ONLY },
  { BOOL (software, "window_mask", use.window_mask), SET_ONLY },
  { ENUM (software, "loss_kernel", use.loss_kernel, losses), SET_ONLY },
  { ROW (software, "vocab_multiple", use.vocab_multiple, LS_FIELD_UINT), .min = 1, .max = 1 << 20, SET_ONLY },
  { ROW (software, "train_metrics", use.train_metrics, LS_FIELD_UINT), .max = 16, SET_ONLY },
  { BOOL (software, "dynamic_gemms", use.dynamic_gemms), SET_ONLY },
  { BOOL (software, "apex_norm", use.apex_norm), SET_ONLY },
  { BOOL (software, "split_bias_dropout", use.split_bias_dropout), SET_ONLY },
  { BOOL (software, "batch_sync", launch.batch_sync), SET_ONLY },
  { BOOL (software, "batch_ends", launch.batch_ends), SET_ONLY },
  { BOOL (software, "loss_sync", launch.loss_sync), SET_ONLY },
  { COUNT (software, "step_calls", launch.step_calls), SET_ONLY },
  { BOOL (software, "launch_blocking", launch.launch_blocking), SET_ONLY },
  { BOOL (software, "grad_fusion", use.grad_fusion), SET_ONLY },
  { BOOL (software, "grad_apart", use.grad_apart), SET_ONLY },
  { BOOL (software, "wgrad_placeholders", use.wgrad_placeholders), SET_ONLY },

  { ENUM (pipeline, "p2p", mp.p2p, ls_p2p_names) },
  { BOOL (pipeline, "p2p_warmup_flush", mp.p2p_warmup_flush), SET_ONLY },
  { ROW (pipeline, "pipeline_batch", mp.pipeline_batch, LS_FIELD_UINT), .max = MAX_DEGREE },
  { LIST (pipeline, "layers_per_chunk", layout.layers_per_chunk, layout.n_layers_per_chunk),
    .names = layer_rules, .word_offset = offsetof (LsStrategy, layout.layer_rule),
    .expected = "auto, balanced, weights, modules, or layers of each chunk in model order such as 4x13,3x3 "
                "(13 chunks of 4, then 3 of 3), whole numbers" },
  { CTAS (pipeline, "pp_max_ctas", mp.pp_max_ctas) },
  { BOOL (pipeline, "post_validation", opt.post_validation) },

  { BOOL (tensor, "tp_overlap", mp.tp_overlap), ON_OFF },
  { ENUM (tensor, "tp_overlap_kind", mp.tp_overlap_kind, tp_overlaps) },
  { BOOL (tensor, "tp_overlap_margin", mp.tp_overlap_margin), SET_ONLY },
  { BOOL (tensor, "tp_async", mp.tp_async), SET_ONLY },
  { CTAS (tensor, "tp_max_ctas", mp.tp_max_ctas) },
  { BOOL (tensor, "sp_save_gathered", mp.sp_save_gathered), SET_ONLY },

  { ENUM (context, "cp_kind", mp.cp_kind, cp_kinds) },
  { ENUM (context, "cp_steps", mp.cp_steps, cp_steps), SET_ONLY },
  { BOOL (context, "cp_balance", mp.cp_balance), ON_OFF },
  { CTAS (context, "cp_max_ctas", mp.cp_max_ctas) },

  { ROW (experts, "expert_capacity", experts.capacity, LS_FIELD_DOUBLE), .min = 0, .max = 1e6 },
  { TEXT (experts, "expert_load", experts.load), .argument = "TEXT" },
  { ENUM (experts, "expert_padding", experts.padding, expert_paddings) },
  { ENUM (experts, "dispatcher", experts.dispatcher, ls_dispatcher_names) },
  { BOOL (experts, "grouped_gemm", experts.grouped_gemm) },
  { CTAS (experts, "ep_max_ctas", mp.ep_max_ctas) },
  { UINT (experts, "dispatch_sms", experts.dispatch_sms) },
  { BOOL (experts, "dispatch_fp8", experts.dispatch_fp8) },
  { BOOL (experts, "dispatch_margin", experts.dispatch_margin) },
  { ENUM (experts, "ep_overlap", mp.ep_overlap, flags), ON_OFF },
  { ENUM (experts, "delay_wgrad", mp.delay_wgrad, flags), ON_OFF },
  { BOOL (experts, "shared_overlap", experts.shared_overlap) },

  { CTAS (data, "dp_max_ctas", mp.dp_max_ctas) },
  { BOOL (data, "dp_overlap", data.overlap), ON_OFF },
  { ENUM (data, "loop_overlap", data.loop_overlap, loop_overlaps), SET_ONLY },
  { ENUM (data, "loop_copies", data.loop_copies, loop_copies), SET_ONLY },
  { ENUM (data, "gather_overlap", data.gather_overlap, flags), ON_OFF },
  { ENUM (data, "grad_sync", data.grad_sync, grad_syncs) },
  { BOOL (data, "grad_norm", opt.grad_norm), ON_OFF },
  { BOOL (data, "grad_check", data.grad_check) },
  { ROW (data, "bucket_bytes", data.bucket_bytes, LS_FIELD_BYTES), .above = true },
  { BOOL (data, "bucket_view", data.bucket_view) },
  { BOOL (data, "bucket_wait", data.bucket_wait) },
  { ELEMENTS (data, "bucket_params", data.bucket_params) },
  { ENUM (data, "ps_servers", data.ps_servers, servers) },

  { UINT (fsdp, "layers_per_unit", data.layers_per_unit) },
  { BOOL (fsdp, "ends_apart", data.ends_apart), SET_ONLY },
  { BOOL (fsdp, "narrow_shards", data.narrow_shards), SET_ONLY },
  { BOOL (fsdp, "limit_all_gathers", data.limit_all_gathers), ON_OFF },
  { ENUM (fsdp, "backward_prefetch", data.backward_prefetch, prefetches) },
  { COUNT (fsdp, "forward_prefetch", data.forward_prefetch) },
  { COUNT (fsdp, "backward_prefetch_units", data.backward_prefetch_units) },
  { CUSTOM (fsdp, "reshard_after_forward", parse_reshard, format_reshard), .argument = "N",
    .expected = "0, 1, auto, or the size of a group" },

  { ELEMENTS (deepspeed, "reduce_bucket", data.reduce_bucket) },
  { ELEMENTS (deepspeed, "allgather_bucket", data.allgather_bucket) },
  { ROW (deepspeed, "prefetch_bucket", data.prefetch_bucket, LS_FIELD_UINT64) },
  { ROW (deepspeed, "persistence_threshold", data.persistence_threshold, LS_FIELD_UINT64) },
  { ROW (deepspeed, "max_live_params", data.max_live_params, LS_FIELD_UINT64) },
  { ROW (deepspeed, "max_reuse_distance", data.max_reuse_distance, LS_FIELD_UINT64) },
  { BOOL (deepspeed, "collective_lists", data.collective_lists), SET_ONLY },
  { BOOL (deepspeed, "bucket_all_reduce", data.bucket_all_reduce), SET_ONLY },
  { BOOL (deepspeed, "bucket_late", data.bucket_late), SET_ONLY },
  { COUNT (deepspeed, "hook_calls", data.hook_calls), SET_ONLY },
  { COUNT (deepspeed, "gather_calls", data.gather_calls), SET_ONLY },

  { ENUM (host, "cuda_graphs", launch.cuda_graphs, cuda_graphs) },
  { TEXT (measured, "nccl_env", launch.nccl_env), .argument = "NAME=VALUE", .repeated = true },
  { HOST ("host_launch", LS_HOST_LAUNCH) },
  { HOST ("host_comm", LS_HOST_COMM) },
  { HOST ("host_sync", LS_HOST_SYNC) },
  { HOST ("host_view", LS_HOST_VIEW) },
  { HOST ("host_batch", LS_HOST_BATCH), SET_ONLY },
  { HOST ("host_product", LS_HOST_PRODUCT), SET_ONLY },
  { HOST ("host_python", LS_HOST_PYTHON), SET_ONLY },
  { .table = "strategy" },
};

/* --- files of values ------------------------------------------------------------------------------ */

/* A mistake that has a place: one of a value that is no file, or of a name that no file has, has none. */
static bool
is_in_file (const LsDiagList *diags)
{
  return ls_diag_list_n_kept (diags) > 0 && ls_diag_list_at (diags, 0).file;
}

bool
ls_value_file_check (const char *key, const char *text, LsDiagList *diags)
{
  const LsField *f = ls_field_find (ls_strategy_fields, key);
  g_autoptr (LsDiagList) found = ls_diag_list_new ();
  if (!f || !f->load || !g_str_has_prefix (text, f->load->prefix) || ls_json_is_given (text))
    return true;
  gpointer loaded = f->load->load (text, found);
  g_clear_pointer (&loaded, f->load->unref);
  if (is_in_file (found))
    f->load->load (text, diags);
  return !is_in_file (found);
}

/* --- strategies/ read ---------------------------------------------------------------------------- */

static bool
check_chunks (const LsJsonDoc *doc, const LsStrategy *s, LsDiagList *diags)
{
  if (s->layout.n_layers_per_chunk <= LS_MAX_CHUNKS)
    return true;
  const cJSON *list = ls_json_doc_at (doc, "layers_per_chunk");
  return ls_json_doc_wrong (doc, list, diags, "expected at most %d chunks; got %u", LS_MAX_CHUNKS,
                            s->layout.n_layers_per_chunk);
}

static bool
read_over (const LsJsonDoc *doc, const LsStrategy *base, LsStrategy *ret_strategy, LsDiagList *diags)
{
  LsStrategy s;
  ls_strategy_copy (&s, base);
  bool ok
      = ls_fields_read_file (ls_strategy_fields, "strategy", doc, &s, diags) && check_chunks (doc, &s, diags);
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
ls_strategy_read_over (const LsJsonDoc *doc, const LsStrategy *base, LsStrategy *ret_strategy,
                       GHashTable *said, LsDiagList *diags)
{
  if (!read_over (doc, base, ret_strategy, diags))
    return false;
  for (const LsField *f = ls_strategy_fields; f->key && said; f++)
    if (!f->file_only && cJSON_HasObjectItem (ls_json_doc_root (doc), f->key))
      g_hash_table_add (said, (gpointer) f->key);
  return true;
}
