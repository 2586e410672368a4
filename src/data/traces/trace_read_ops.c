/* data/traces/trace_read_ops.c — kernels and segments of a trace: what an op must have, may
 * have and must not have, and indices within the file. */
#include <string.h>

#include "data/traces/trace_read.h"
#include "network/coll.h"

/* Ops of a segment are counted in 16 bits. */
#define MAX_OPS 60000u

void
ls_trace_complain (TraceReading *r, const cJSON *object, const char *key, uint32_t i, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  const cJSON *node = key ? cJSON_GetObjectItemCaseSensitive (object, key) : object;
  if (node && i != TRACE_ALL)
    node = cJSON_GetArrayItem (node, (int) i);
  ls_json_doc_diag (r->doc, node ? node : object, LS_JSON_AT_VALUE, r->diags, NULL, "%s", message);
  r->ok = false;
}

static const cJSON *
first_of (const cJSON *object, const char *key)
{
  const cJSON *list = cJSON_GetObjectItemCaseSensitive (object, key);
  return list ? list->child : NULL;
}

/* --- kernels ----------------------------------------------------------------------- */

static void
read_kernel (TraceReading *r, const cJSON *node, const TraceKernel *from, LsKernel *to)
{
  bool is_gemm = ls_kernel_is_gemm (from->kind);
  bool has_shape = from->m > 0 && from->n > 0 && from->k > 0;
  bool is_attention = ls_kernel_is_attention (from->kind);
  if ((is_gemm || is_attention) && !has_shape)
    ls_trace_complain (r, node, NULL, TRACE_ALL, "a kernel of kind %s needs \"m\", \"n\" and \"k\"",
                       ls_kernel_kind_name ((LsKernelKind) from->kind));
  if (!is_gemm && from->bytes < 0)
    ls_trace_complain (r, node, NULL, TRACE_ALL,
                       "missing key \"bytes\" (only those of a GEMM follow from its shape)");
  if (is_attention && from->flops < 0)
    ls_trace_complain (r, node, NULL, TRACE_ALL, "missing key \"flops\" (a causal mask may halve them)");

  uint32_t out_bytes = ls_dtype_bytes (ls_dtype_between ((LsDtype) from->dtype));
  LsKernel gemm = ls_kernel_gemm (NULL, (LsDtype) from->dtype, from->m, from->n, from->k, from->batch,
                                  out_bytes, false);
  *to = (LsKernel) {
    .name = ls_arena_strdup (r->plan->arena, from->name),
    .kind = (LsKernelKind) from->kind,
    .dtype = (LsDtype) from->dtype,
    .m = from->m,
    .n = from->n,
    .k = from->k,
    .batch = from->batch,
    .flops = from->flops >= 0 ? from->flops
        : is_gemm             ? gemm.flops
                              : 0,
    .bytes = from->bytes >= 0 ? from->bytes : gemm.bytes,
    .access = (LsAccess) from->access,
    .by_blocks = from->by_blocks,
    .unaligned = from->unaligned,
    .masked = from->masked,
    .is_guess = from->is_guess,
    .attention = (LsAttentionKernel) from->attention,
    .n_serial = from->n_serial,
  };
  if (from->unaligned && !is_gemm)
    ls_trace_complain (r, node, NULL, TRACE_ALL, "\"unaligned\" is of GEMMs");
  if (from->attention != LS_ATTENTION_KERNEL_AUTO && !is_attention)
    ls_trace_complain (r, node, NULL, TRACE_ALL, "\"attention\" is of attention");
  if (from->masked && !is_attention)
    ls_trace_complain (r, node, NULL, TRACE_ALL, "\"masked\" is of attention");
  if (from->n_serial > 0 && from->access != LS_ACCESS_TRITON_DOT)
    ls_trace_complain (r, node, NULL, TRACE_ALL, "\"serial\" is of kernels with the access triton-dot");
  if (from->by_blocks && (!is_gemm || from->dtype != LS_DTYPE_FP8))
    ls_trace_complain (r, node, NULL, TRACE_ALL, "\"by_blocks\" is of GEMMs in fp8");
  bool is_of_chunks = from->kind == LS_KERNEL_BATCHED_GEMM && from->access == LS_ACCESS_TRITON_DOT;
  if ((is_gemm || is_attention) && from->access != LS_ACCESS_NONE && !is_of_chunks)
    ls_trace_complain (r, node, NULL, TRACE_ALL,
                       "\"access\" is of kernels that stream; a kernel of kind %s has none",
                       ls_kernel_kind_name ((LsKernelKind) from->kind));
  if (to->flops > LS_TRACE_MAX_FLOPS || to->bytes > LS_TRACE_MAX_BYTES)
    ls_trace_complain (r, node, NULL, TRACE_ALL, "%.3g FLOPs and %.3g bytes exceed what can be simulated",
                       to->flops, to->bytes);
}

void
ls_trace_read_kernels (TraceReading *r)
{
  const GArray *kernels = r->file->kernels;
  r->plan->n_kernels = kernels ? kernels->len : 0;
  r->plan->kernels = ls_arena_new_array (r->plan->arena, LsKernel, MAX (1, r->plan->n_kernels));
  const cJSON *node = first_of (ls_json_doc_root (r->doc), "kernels");
  for (uint32_t i = 0; i < r->plan->n_kernels; i++, node = node->next)
    read_kernel (r, node, &g_array_index (kernels, TraceKernel, i), &r->plan->kernels[i]);
}

/* --- one op: which keys ------------------------------------------------------------- */

/* What means nothing to an op is a mistake, not a remark. */
static void
check_keys (TraceReading *r, const cJSON *node, const TraceOp *op)
{
  const struct {
    const char *key;
    bool is_there;
    unsigned has;
  } keys[] = {
    { "kernel", op->kernel != LS_TRACE_ABSENT, LS_HAS_KERNEL },
    { "recorded", op->recorded != LS_TIME_NEVER, LS_HAS_RECORDED },
    { "beside", op->beside != 0, LS_HAS_BESIDE },
    { "repeat", op->repeat > 1, LS_HAS_REPEAT },
    { "slot", op->slot >= 0, LS_HAS_CALL },
    { "coll", op->coll >= 0, LS_HAS_CALL },
    { "algorithm", op->algorithm != NULL, LS_HAS_CALL },
    { "margin", op->has_margin, LS_HAS_CALL },
    { "light", op->is_light, LS_HAS_CALL },
    { "max_ctas", op->max_ctas > 0, LS_HAS_CALL },
    { "graph", op->is_in_graph, LS_HAS_GRAPH },
    { "root", op->root != LS_TRACE_ABSENT, LS_HAS_CALL },
    { "bytes", op->bytes > 0, LS_HAS_BYTES },
    { "direction", op->direction >= 0, LS_HAS_DIRECTION },
    { "event", op->event != LS_TRACE_ABSENT, LS_HAS_EVENT },
    { "transfers", op->transfers != NULL, LS_HAS_TRANSFERS },
  };
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    if (keys[i].is_there && !ls_op_has (op->kind, keys[i].has))
      ls_trace_complain (r, node, keys[i].key, TRACE_ALL, "means nothing to this kind of op");
}

/* One that there is not is complained of. */
static LsAlgorithm
algorithm_of (const TraceOp *op)
{
  LsAlgorithm algorithm = LS_ALGORITHM_CHOOSE;
  if (op->algorithm)
    ls_coll_algorithm_find (op->algorithm, &algorithm);
  return algorithm;
}

static void
check_needs (TraceReading *r, const cJSON *node, const TraceOp *op)
{
  unsigned given = (op->kernel != LS_TRACE_ABSENT ? LS_HAS_KERNEL : 0)
      | (op->recorded != LS_TIME_NEVER ? LS_HAS_RECORDED : 0)
      | (op->slot >= 0 && op->coll >= 0 ? LS_HAS_CALL : 0)
      | (op->transfers && op->transfers->len > 0 ? LS_HAS_TRANSFERS : 0)
      | (op->event != LS_TRACE_ABSENT ? LS_HAS_EVENT : 0);
  const LsOpKindRow *row = &ls_op_kinds[op->kind];
  if (row->needs && !(row->needs & given))
    ls_trace_complain (r, node, NULL, TRACE_ALL, "%s", row->lacking);
  if (op->root != LS_TRACE_ABSENT && op->coll >= 0 && !ls_coll_kind_has_root ((LsCollKind) op->coll))
    ls_trace_complain (r, node, "root", TRACE_ALL, "%s has no root; broadcast, reduce, gather and scatter do",
                       ls_coll_kind_name ((LsCollKind) op->coll));
  if (op->algorithm && algorithm_of (op) == LS_ALGORITHM_CHOOSE)
    ls_trace_complain (r, node, "algorithm", TRACE_ALL, "there is no algorithm \"%s\"", op->algorithm);
  if (op->kernel != LS_TRACE_ABSENT && op->kernel >= r->plan->n_kernels)
    ls_trace_complain (r, node, "kernel", TRACE_ALL, "kernel %u does not exist: there are %u", op->kernel,
                       r->plan->n_kernels);
}

/* --- one op: its lists --------------------------------------------------------------- */

static void
read_deps (TraceReading *r, const cJSON *node, const GArray *after, uint32_t index, LsOp *to)
{
  to->n_deps = after ? (uint16_t) after->len : 0;
  if (to->n_deps == 0)
    return;
  LsDep *deps = ls_arena_new_array (r->plan->arena, LsDep, to->n_deps);
  memcpy (deps, after->data, to->n_deps * sizeof *deps);
  for (uint32_t i = 0; i < to->n_deps; i++)
    if (deps[i].kind != LS_DEP_STREAM && deps[i].index >= index)
      ls_trace_complain (r, node, "after", i, "op %u does not come before op %u of the segment",
                         deps[i].index, index);
  to->deps = deps;
}

static void
read_transfers (TraceReading *r, const cJSON *node, const GArray *from, LsOp *to)
{
  to->n_transfers = from ? (uint16_t) from->len : 0;
  if (to->n_transfers == 0)
    return;
  LsTransfer *transfers = ls_arena_new_array (r->plan->arena, LsTransfer, to->n_transfers);
  for (uint32_t i = 0; i < to->n_transfers; i++) {
    const TraceTransfer *t = &g_array_index (from, TraceTransfer, i);
    if ((t->send < 0) == (t->receive < 0))
      ls_trace_complain (r, node, "transfers", i, "expected \"send\" or \"receive\"");
    transfers[i]
        = (LsTransfer) { t->bytes, (uint8_t) MAX (t->send, t->receive), t->send >= 0, (uint8_t) t->max_ctas };
  }
  to->transfers = transfers;
}

static void
read_buffers (TraceReading *r, const cJSON *node, const GArray *from, LsOp *to)
{
  to->n_buffers = from ? (uint16_t) from->len : 0;
  if (to->n_buffers == 0)
    return;
  LsBufferEvent *buffers = ls_arena_new_array (r->plan->arena, LsBufferEvent, to->n_buffers);
  for (uint32_t i = 0; i < to->n_buffers; i++) {
    const TraceBuffer *b = &g_array_index (from, TraceBuffer, i);
    bool is_free = b->alloc == LS_TRACE_ABSENT;
    if (is_free == (b->free == LS_TRACE_ABSENT))
      ls_trace_complain (r, node, "buffers", i, "expected \"alloc\" or \"free\"");
    buffers[i] = (LsBufferEvent) {
      .bytes = b->bytes,
      .id = (uint16_t) (is_free ? b->free : b->alloc),
      .category = (uint8_t) b->category,
      .is_free = is_free,
      .when = (uint8_t) (b->when >= 0  ? b->when
                             : is_free ? LS_AT_END
                                       : LS_AT_ISSUE),
    };
  }
  to->buffers = buffers;
}

static bool
check_length (TraceReading *r, const cJSON *node, const char *key, const GArray *list, uint32_t max)
{
  if (!list || list->len <= max)
    return true;
  ls_trace_complain (r, node, key, TRACE_ALL, "expected at most %u elements; got %u", max, list->len);
  return false;
}

/* --- segments -------------------------------------------------------------------------- */

static uint16_t
index_or_none (uint32_t value)
{
  return value == LS_TRACE_ABSENT ? UINT16_MAX : (uint16_t) value;
}

static void
read_op (TraceReading *r, const cJSON *node, const TraceOp *op, uint32_t index, LsOp *to)
{
  check_keys (r, node, op);
  check_needs (r, node, op);
  const char *name = op->name ? op->name : ls_trace_default_name (op, r->file->kernels);
  *to = (LsOp) {
    .kind = (uint8_t) op->kind,
    .stream = (uint8_t) (op->stream >= 0 ? op->stream : (int) ls_trace_default_stream (op)),
    .tag = (uint8_t) (op->tag >= 0 ? op->tag : (int) ls_trace_default_tag (op)),
    .host = (uint8_t) (op->host >= 0 ? op->host : (int) ls_trace_default_host (op)),
    .slot = (uint8_t) MAX (op->slot, 0),
    .coll = (uint8_t) MAX (op->coll, 0),
    .dtype = (uint8_t) (op->dtype >= 0 ? op->dtype : (int) ls_trace_default_dtype (op, r->file->kernels)),
    .has_margin = op->has_margin,
    .is_light = op->is_light,
    .max_ctas = (uint8_t) op->max_ctas,
    .is_in_graph = op->is_in_graph,
    .layer = index_or_none (op->layer),
    .unit = index_or_none (op->unit),
    .event = ls_op_has (op->kind, LS_HAS_EVENT) ? index_or_none (op->event) : LS_EVENT_NONE,
    .kernel = op->kernel,
    .root = ls_op_has (op->kind, LS_HAS_DIRECTION) ? (uint32_t) MAX (op->direction, 0)
        : op->root == LS_TRACE_ABSENT              ? 0
                                                   : op->root,
    .recorded = op->recorded,
    .beside = op->beside,
    .repeat = op->repeat > 1 ? op->repeat : 0,
    .bytes = op->bytes,
    .name = ls_arena_strdup (r->plan->arena, name),
    .algorithm = (uint8_t) algorithm_of (op),
  };
  if (check_length (r, node, "after", op->after, MAX_OPS))
    read_deps (r, node, op->after, index, to);
  if (check_length (r, node, "transfers", op->transfers, MAX_OPS))
    read_transfers (r, node, op->transfers, to);
  if (check_length (r, node, "buffers", op->buffers, MAX_OPS))
    read_buffers (r, node, op->buffers, to);
}

static void
read_segment (TraceReading *r, const cJSON *node, const TraceSegment *from, LsSegment *to)
{
  if (!check_length (r, node, "ops", from->ops, MAX_OPS))
    return;
  to->name = ls_arena_strdup (r->plan->arena, from->name);
  to->n_ops = from->ops->len;
  to->ops = ls_arena_new_array (r->plan->arena, LsOp, MAX (1, to->n_ops));
  const cJSON *op = first_of (node, "ops");
  for (uint32_t i = 0; i < to->n_ops; i++, op = op->next)
    read_op (r, op, &g_array_index (from->ops, TraceOp, i), i, &to->ops[i]);
}

void
ls_trace_read_segments (TraceReading *r)
{
  const GArray *segments = r->file->segments;
  r->plan->n_segments = segments->len;
  r->plan->segments = ls_arena_new_array (r->plan->arena, LsSegment, MAX (1, segments->len));
  const cJSON *node = first_of (ls_json_doc_root (r->doc), "segments");
  for (uint32_t i = 0; i < segments->len; i++, node = node->next)
    read_segment (r, node, &g_array_index (segments, TraceSegment, i), &r->plan->segments[i]);
}
