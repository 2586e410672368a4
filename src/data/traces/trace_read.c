/* data/traces/trace_read.c — document -> TraceFile -> plan. Each part relies on those before it, and stops
 * the reading if anything in it was wrong. */
#include <string.h>

#include <lockstep/error.h>

#include "data/datadir.h"
#include "data/jobs/job_files.h"
#include "data/traces/traces.h"
#include "data/traces/trace_file.h"
#include "network/coll.h"
#include "plan/mesh.h"
#include "strategy/strategy.h"

/* Ops of a segment are counted in 16 bits. */
#define MAX_OPS 60000u

/* Far from where indices and sums end: ops of a rank's step (spans are counted in 31
 * bits), micro-batches, bytes that a step allocates or moves on a rank. */
#define MAX_OPS_PER_STEP  1e9
#define MAX_MICRO_BATCHES (1u << 24)
#define MAX_STEP_BYTES    4e18
#define MAX_RANKS         (1u << 20)
#define MAX_SIZE          (UINT64_C (1) << 53) /* of a kernel */

#define ALL UINT32_MAX

/* What is read, and where in it. */
typedef struct {
  const char *name;     /* of the file */
  const LsJsonDoc *doc; /* with places of what is in `file` if is_in_doc; NULL: none */
  const TraceFile *file;
  LsPlan *plan;
  LsDiagList *diags;
  bool ok, is_in_doc;
  const char *list; /* "segments"; NULL: the whole file */
  uint32_t at, op;  /* element of the list, and of its "ops"; ALL: none */
} TraceReading;

void
ls_trace_free (LsTrace *trace)
{
  if (!trace)
    return;
  ls_plan_free (trace->plan);
  ls_model_clear (&trace->model);
  ls_strategy_clear (&trace->strategy);
  g_free (trace->name);
  g_free (trace->source);
  g_free (trace->measured_on);
  g_free (trace->assumes);
  g_clear_pointer (&trace->work, g_ptr_array_unref);
  g_free (trace);
}

static const cJSON *
member (const TraceReading *r, const char *key)
{
  return r->doc ? cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (r->doc), key) : NULL;
}

/* What is read next. */
static void
go_to (TraceReading *r, const char *list, uint32_t at)
{
  r->list = list;
  r->at = at;
  r->op = ALL;
}

/* Of member `key` of where the reading is, or of that itself; of element i of that list unless i is ALL. What
 * no longer is shown is not looked for. */
static void G_GNUC_PRINTF (4, 5)
    complain (TraceReading *r, const char *key, uint32_t i, const char *format, ...)
{
  const struct {
    const char *key;
    uint32_t i;
  } steps[] = { { r->list, r->at }, { r->op != ALL ? "ops" : NULL, r->op }, { key, i } };
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  g_autoptr (GString) pointer = g_string_new (NULL);
  bool is_found = r->is_in_doc && ls_diag_list_n (r->diags) < LS_DIAG_MAX_SHOWN;
  const cJSON *node = is_found ? ls_json_doc_root (r->doc) : NULL;
  for (guint s = 0; s < G_N_ELEMENTS (steps); s++) {
    const cJSON *inner = steps[s].key ? cJSON_GetObjectItemCaseSensitive (node, steps[s].key) : node;
    inner = inner && steps[s].i != ALL ? cJSON_GetArrayItem (inner, (int) steps[s].i) : inner;
    node = inner ? inner : node;
    if (steps[s].key)
      g_string_append_printf (pointer, "/%s", steps[s].key);
    if (steps[s].i != ALL)
      g_string_append_printf (pointer, "/%u", steps[s].i);
  }
  if (node)
    ls_json_doc_wrong (r->doc, node, r->diags, "%s", message);
  else
    ls_diag_add (r->diags, LS_ERROR_INPUT, r->name, 0, 0, pointer->str, NULL, NULL, "%s", message);
  r->ok = false;
}

/* --- kernels ----------------------------------------------------------------------- */

static void
read_kernel (TraceReading *r, const LsKernel *from, LsKernel *to)
{
  bool is_gemm = ls_kernel_is_gemm (from->kind);
  bool has_shape = from->m > 0 && from->n > 0 && from->k > 0;
  bool is_attention = ls_kernel_is_attention (from->kind);
  if ((is_gemm || is_attention) && !has_shape)
    complain (r, NULL, ALL, "a kernel of kind %s needs \"m\", \"n\" and \"k\"",
              ls_kernel_kind_names[from->kind].name);
  if (!is_gemm && from->bytes < 0)
    complain (r, NULL, ALL, "missing key \"bytes\" (only those of a GEMM follow from its shape)");
  if (is_attention && from->flops < 0)
    complain (r, NULL, ALL, "missing key \"flops\" (a causal mask may halve them)");

  if (MAX (MAX (from->m, from->n), MAX (from->k, from->batch)) > MAX_SIZE)
    complain (r, NULL, ALL, "a size above %.0f", (double) MAX_SIZE);
  uint32_t out_bytes = ls_dtype_bytes (ls_dtype_between (from->dtype));
  LsKernel gemm
      = ls_kernel_gemm (NULL, from->dtype, from->m, from->n, from->k, from->batch, out_bytes, false);
  *to = *from;
  to->name = ls_arena_strdup (r->plan->arena, from->name);
  to->flops = from->flops >= 0 ? from->flops : is_gemm ? gemm.flops : 0;
  to->bytes = from->bytes >= 0 ? from->bytes : gemm.bytes;
  if (from->unaligned && !is_gemm)
    complain (r, NULL, ALL, "\"unaligned\" is of GEMMs");
  if (from->attention != LS_ATTENTION_KERNEL_AUTO && !is_attention)
    complain (r, NULL, ALL, "\"attention\" is of attention");
  if (from->masked && !is_attention)
    complain (r, NULL, ALL, "\"masked\" is of attention");
  if (from->n_serial > 0 && from->access != LS_ACCESS_TRITON_DOT)
    complain (r, NULL, ALL, "\"serial\" is of kernels with the access triton-dot");
  if (from->by_blocks && (!is_gemm || from->dtype != LS_DTYPE_FP8))
    complain (r, NULL, ALL, "\"by_blocks\" is of GEMMs in fp8");
  bool is_of_chunks = from->kind == LS_KERNEL_BATCHED_GEMM && from->access == LS_ACCESS_TRITON_DOT;
  if ((is_gemm || is_attention) && from->access != LS_ACCESS_NONE && !is_of_chunks)
    complain (r, NULL, ALL, "\"access\" is of kernels that stream; a kernel of kind %s has none",
              ls_kernel_kind_names[from->kind].name);
  if (!(to->flops <= LS_TRACE_MAX_FLOPS && to->bytes <= LS_TRACE_MAX_BYTES))
    complain (r, NULL, ALL, "%.3g FLOPs and %.3g bytes exceed what can be simulated", to->flops, to->bytes);
}

/* --- one op: which keys ------------------------------------------------------------- */

/* What means nothing to an op is a mistake, not a remark. */
static void
check_keys (TraceReading *r, const TraceOp *op)
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
      complain (r, keys[i].key, ALL, "means nothing to this kind of op");
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
check_needs (TraceReading *r, const TraceOp *op)
{
  unsigned given = (op->kernel != LS_TRACE_ABSENT ? LS_HAS_KERNEL : 0)
      | (op->recorded != LS_TIME_NEVER ? LS_HAS_RECORDED : 0)
      | (op->slot >= 0 && op->coll >= 0 ? LS_HAS_CALL : 0)
      | (op->transfers && op->transfers->len > 0 ? LS_HAS_TRANSFERS : 0)
      | (op->event != LS_TRACE_ABSENT ? LS_HAS_EVENT : 0);
  const LsOpKindRow *row = &ls_op_kinds[op->kind];
  if (row->needs && !(row->needs & given))
    complain (r, NULL, ALL, "%s", row->lacking);
  if (op->root != LS_TRACE_ABSENT && op->coll >= 0 && !ls_coll_kind_has_root ((LsCollKind) op->coll))
    complain (r, "root", ALL, "%s has no root; broadcast, reduce, gather and scatter do",
              ls_coll_kind_name ((LsCollKind) op->coll));
  if (op->algorithm && algorithm_of (op) == LS_ALGORITHM_CHOOSE)
    complain (r, "algorithm", ALL, "there is no algorithm \"%s\"", op->algorithm);
  if (op->kernel != LS_TRACE_ABSENT && op->kernel >= r->plan->n_kernels)
    complain (r, "kernel", ALL, "kernel %u does not exist: there are %u", op->kernel, r->plan->n_kernels);
}

/* --- one op: its lists --------------------------------------------------------------- */

/* Room for a list of an op, of as many elements; 0 and a complaint: of too many. */
static gpointer
room_for (TraceReading *r, const char *key, const GArray *list, size_t size, uint16_t *ret_n)
{
  if (list && list->len > MAX_OPS)
    complain (r, key, ALL, "expected at most %u elements; got %u", MAX_OPS, list->len);
  *ret_n = list && list->len <= MAX_OPS ? (uint16_t) list->len : 0;
  return *ret_n > 0 ? ls_arena_alloc (r->plan->arena, *ret_n, size) : NULL;
}

static LsTransfer
transfer_of (TraceReading *r, uint32_t i, const TraceTransfer *t)
{
  if ((t->send < 0) == (t->receive < 0))
    complain (r, "transfers", i, "expected \"send\" or \"receive\"");
  return (LsTransfer) { t->bytes, (uint8_t) MAX (t->send, t->receive), t->send >= 0, (uint8_t) t->max_ctas };
}

static LsBufferEvent
buffer_of (TraceReading *r, uint32_t i, const TraceBuffer *b)
{
  bool is_free = b->alloc == LS_TRACE_ABSENT;
  if (is_free == (b->free == LS_TRACE_ABSENT))
    complain (r, "buffers", i, "expected \"alloc\" or \"free\"");
  return (LsBufferEvent) {
    .bytes = b->bytes,
    .id = (uint16_t) (is_free ? b->free : b->alloc),
    .category = (uint8_t) b->category,
    .is_free = is_free,
    .when = (uint8_t) (b->when >= 0  ? b->when
                           : is_free ? LS_AT_END
                                     : LS_AT_ISSUE),
  };
}

static void
read_lists (TraceReading *r, const TraceOp *op, LsOp *to)
{
  LsDep *deps = room_for (r, "after", op->after, sizeof *deps, &to->n_deps);
  for (uint32_t i = 0; i < to->n_deps; i++) {
    deps[i] = g_array_index (op->after, LsDep, i);
    if (deps[i].kind != LS_DEP_STREAM && deps[i].index >= r->op)
      complain (r, "after", i, "op %u does not come before op %u of the segment", deps[i].index, r->op);
  }
  LsTransfer *transfers = room_for (r, "transfers", op->transfers, sizeof *transfers, &to->n_transfers);
  for (uint32_t i = 0; i < to->n_transfers; i++)
    transfers[i] = transfer_of (r, i, &g_array_index (op->transfers, TraceTransfer, i));
  LsBufferEvent *buffers = room_for (r, "buffers", op->buffers, sizeof *buffers, &to->n_buffers);
  for (uint32_t i = 0; i < to->n_buffers; i++)
    buffers[i] = buffer_of (r, i, &g_array_index (op->buffers, TraceBuffer, i));
  to->deps = deps;
  to->transfers = transfers;
  to->buffers = buffers;
}

/* --- segments -------------------------------------------------------------------------- */

static uint16_t
index_or_none (uint32_t value)
{
  return value == LS_TRACE_ABSENT ? UINT16_MAX : (uint16_t) value;
}

static void
read_op (TraceReading *r, const TraceOp *op, LsOp *to)
{
  check_keys (r, op);
  check_needs (r, op);
  const char *name = op->name ? op->name : ls_trace_default_name (op, r->file->kernels);
  *to = (LsOp) {
    .kind = (uint8_t) op->kind,
    .stream = (uint8_t) (op->stream >= 0 ? op->stream : (int) ls_trace_default_stream (op)),
    .tag = op->tag >= 0 ? (uint8_t) op->tag : ls_op_kinds[op->kind].tag,
    .host = op->host >= 0 ? (uint8_t) op->host : ls_op_kinds[op->kind].host,
    .slot = (uint8_t) MAX (op->slot, 0),
    .coll = (uint8_t) MAX (op->coll, 0),
    .dtype = (uint8_t) (op->dtype >= 0 ? op->dtype : (int) ls_trace_default_dtype (op, r->file->kernels)),
    .has_margin = op->has_margin,
    .is_light = op->is_light,
    .max_ctas = (uint8_t) op->max_ctas,
    .is_in_graph = op->is_in_graph,
    .site = (uint8_t) op->site,
    .layer = index_or_none (op->layer),
    .unit = index_or_none (op->unit),
    .event = ls_op_has (op->kind, LS_HAS_EVENT) ? index_or_none (op->event) : LS_EVENT_NONE,
    .kernel = op->kernel,
    .direction = !ls_op_takes (op->kind, LS_TAKES_ENGINE)              ? LS_N_COPY_DIRECTIONS
        : ls_op_has (op->kind, LS_HAS_DIRECTION) && op->direction >= 0 ? (uint8_t) op->direction
                                                                       : ls_op_kinds[op->kind].direction,
    .root = op->root == LS_TRACE_ABSENT ? 0 : op->root,
    .recorded = op->recorded,
    .beside = op->beside,
    .repeat = op->repeat > 1 ? op->repeat : 0,
    .bytes = op->bytes,
    .name = ls_arena_strdup (r->plan->arena, name),
    .algorithm = (uint8_t) algorithm_of (op),
  };
  read_lists (r, op, to);
}

static void
read_segments (TraceReading *r)
{
  const GArray *segments = r->file->segments;
  r->plan->n_segments = segments->len;
  r->plan->segments = ls_arena_new_array (r->plan->arena, LsSegment, MAX (1, segments->len));
  for (uint32_t i = 0; i < segments->len; i++) {
    const TraceSegment *from = &g_array_index (segments, TraceSegment, i);
    LsSegment *to = &r->plan->segments[i];
    go_to (r, "segments", i);
    if (from->ops->len > MAX_OPS) {
      complain (r, "ops", ALL, "expected at most %u elements; got %u", MAX_OPS, from->ops->len);
      continue;
    }
    to->name = ls_arena_strdup (r->plan->arena, from->name);
    to->n_ops = from->ops->len;
    to->ops = ls_arena_new_array (r->plan->arena, LsOp, MAX (1, to->n_ops));
    for (r->op = 0; r->op < to->n_ops; r->op++)
      read_op (r, &g_array_index (from->ops, TraceOp, r->op), &to->ops[r->op]);
  }
}

static bool
uses_slot (const TraceReading *r, LsSlot slot)
{
  for (uint32_t s = 0; s < r->plan->n_segments; s++)
    for (uint32_t i = 0; i < r->plan->segments[s].n_ops; i++)
      if (ls_op_has (r->plan->segments[s].ops[i].kind, LS_HAS_CALL)
          && r->plan->segments[s].ops[i].slot == slot)
        return true;
  return false;
}

/* --- programs --------------------------------------------------------------------------- */

/* What instances of a segment add to a step. */
typedef struct {
  double n_ops, bytes; /* allocated, or sent and received */
  uint32_t n_events;
} Sum;

static Sum
sum_of_segment (const LsSegment *segment)
{
  Sum sum = { .n_ops = segment->n_ops };
  for (uint32_t i = 0; i < segment->n_ops; i++) {
    const LsOp *op = &segment->ops[i];
    sum.bytes += (double) op->bytes;
    for (uint32_t t = 0; t < op->n_transfers; t++)
      sum.bytes += (double) op->transfers[t].bytes;
    for (uint32_t b = 0; b < op->n_buffers; b++)
      sum.bytes += op->buffers[b].is_free ? 0 : (double) op->buffers[b].bytes;
    if (ls_op_has (op->kind, LS_HAS_EVENT) && op->event != LS_EVENT_NONE)
      sum.n_events = MAX (sum.n_events, op->event + 1u);
  }
  return sum;
}

static bool
check_row (TraceReading *r, uint32_t i, const uint32_t *row)
{
  const struct {
    const char *name;
    uint32_t limit;
  } columns[N_ROW] = {
    [ROW_SEGMENT] = { "segment", r->plan->n_segments },
    [ROW_MB] = { "micro-batch", MAX_MICRO_BATCHES },
    [ROW_CHUNK] = { "chunk", LS_MAX_CHUNKS },
    [ROW_STAGE] = { "stage", UINT16_MAX },
  };
  for (int c = 0; c < N_ROW; c++)
    if (row[c] >= columns[c].limit) {
      complain (r, "instances", i, "%s %u: expected less than %u", columns[c].name, row[c], columns[c].limit);
      return false;
    }
  return true;
}

static void
read_instances (TraceReading *r, const GArray *from, const Sum *of_segment, LsProgram *to)
{
  LsPlan *plan = r->plan;
  const uint32_t *row = (const uint32_t *) (gpointer) from->data;
  Sum sum = { 0 };
  to->n_instances = from->len;
  to->instances = ls_arena_new_array (plan->arena, LsInstance, MAX (1, from->len));
  for (int c = 0; c < LS_N_MEM; c++)
    sum.bytes += (double) to->static_bytes[c];
  for (uint32_t i = 0; i < from->len; i++, row += N_ROW) {
    if (!check_row (r, i, row))
      continue;
    to->instances[i] = (LsInstance) { row[ROW_SEGMENT], row[ROW_MB], (uint16_t) row[ROW_CHUNK],
                                      (uint16_t) row[ROW_STAGE] };
    plan->n_micro_batches = MAX (plan->n_micro_batches, row[ROW_MB] + 1);
    plan->n_chunks = MAX (plan->n_chunks, row[ROW_CHUNK] + 1);
    const Sum *s = &of_segment[row[ROW_SEGMENT]];
    sum.n_ops += s->n_ops;
    sum.bytes += s->bytes;
    to->n_events = MAX (to->n_events, s->n_events);
  }
  if (to->n_lead > 0 && to->n_lead >= from->len)
    complain (r, "lead", ALL, "%u of %u instances; expected less than all of them", to->n_lead, from->len);
  if (r->ok && sum.n_ops < 1)
    complain (r, "instances", ALL, "a program without ops; expected at least one");
  if (sum.n_ops > MAX_OPS_PER_STEP)
    complain (r, "instances", ALL, "%.3g ops in a step; the limit is %.3g", sum.n_ops, MAX_OPS_PER_STEP);
  if (sum.bytes > MAX_STEP_BYTES)
    complain (r, "instances", ALL, "a step allocates and moves %.3g bytes; the limit is %.3g", sum.bytes,
              MAX_STEP_BYTES);
}

static void
read_roles (TraceReading *r)
{
  const GArray *roles = r->file->roles;
  LsPlan *plan = r->plan;
  g_autofree Sum *of_segment = g_new0 (Sum, plan->n_segments);
  for (uint32_t s = 0; s < plan->n_segments; s++)
    of_segment[s] = sum_of_segment (&plan->segments[s]);

  plan->n_micro_batches = plan->n_chunks = 1;
  plan->n_roles = roles->len;
  plan->programs = ls_arena_new_array (plan->arena, LsProgram, MAX (1, roles->len));
  for (uint32_t i = 0; i < roles->len; i++) {
    go_to (r, "roles", i);
    const TraceRole *from = &g_array_index (roles, TraceRole, i);
    LsProgram *to = &plan->programs[i];
    to->stage = (uint16_t) (from->stage == LS_TRACE_ABSENT ? i : from->stage);
    to->n_params = from->n_params;
    to->n_lead = from->n_lead;
    memcpy (to->static_bytes, from->static_bytes, sizeof to->static_bytes);
    read_instances (r, from->instances, of_segment, to);
  }
  go_to (r, NULL, ALL);
  if (roles->len == 0 || roles->len > UINT16_MAX)
    complain (r, "roles", ALL, "expected 1 to %u roles; got %u", UINT16_MAX, roles->len);
}

/* --- ranks by mesh ------------------------------------------------------------------------ */

static void
read_mesh (TraceReading *r, const LsMesh *mesh)
{
  double n_ranks = (double) mesh->tp * mesh->cp * mesh->dp * mesh->pp;
  go_to (r, "mesh", ALL);
  if (mesh->pp != r->plan->n_roles)
    complain (r, "pp", ALL, "%u stages, but %u roles: every stage has a role", mesh->pp, r->plan->n_roles);
  if (n_ranks > MAX_RANKS)
    complain (r, NULL, ALL, "%.0f ranks; expected at most %u", n_ranks, MAX_RANKS);
  uint32_t slots = 0; /* those that are given, else those that are used */
  const GArray *given = r->file->slots;
  for (guint i = 0; given && i < given->len; i++)
    slots |= LS_SLOT_BIT (g_array_index (given, int, i));
  for (int s = 0; !given && s < LS_SLOT_PREV; s++)
    slots |= uses_slot (r, (LsSlot) s) ? LS_SLOT_BIT (s) : 0;
  if (r->ok)
    ls_plan_bind_mesh (r->plan, mesh, slots & LS_MESH_SLOTS);
}

/* --- ranks one by one ---------------------------------------------------------------------- */

static void
read_communicators (TraceReading *r)
{
  const GArray *from = r->file->communicators;
  LsPlan *plan = r->plan;
  plan->n_comms = from ? from->len : 0;
  plan->comms = ls_arena_new_array (plan->arena, LsCommunicator, MAX (1, plan->n_comms));
  g_autofree uint32_t *seen_in = g_new0 (uint32_t, plan->n_ranks); /* the last, plus one */
  for (uint32_t c = 0; c < plan->n_comms; c++) {
    go_to (r, "communicators", c);
    const TraceCommunicator *f = &g_array_index (from, TraceCommunicator, c);
    LsCommunicator *to = &plan->comms[c];
    *to = (LsCommunicator) { .axis = (LsAxis) f->axis,
                             .spans_stages = f->spans_stages,
                             .n_ranks = f->n_ranks };
    to->offsets = ls_arena_new_array (plan->arena, uint32_t, MAX (1, f->n_ranks));
    if (f->n_ranks == 0)
      complain (r, "ranks", ALL, "a communicator without members");
    for (uint32_t i = 0; i < f->n_ranks; i++) {
      uint32_t rank = to->offsets[i] = f->ranks[i];
      if (rank >= plan->n_ranks)
        complain (r, "ranks", i, "rank %u does not exist: there are %u", rank, plan->n_ranks);
      else if (seen_in[rank] == c + 1)
        complain (r, "ranks", i, "rank %u is a member twice", rank);
      else
        seen_in[rank] = c + 1;
    }
  }
}

/* Every member learns its place, in the slots that it binds to the communicator. */
static void
bind_members (TraceReading *r)
{
  LsPlan *plan = r->plan;
  for (uint32_t c = 0; c < plan->n_comms; c++)
    for (uint32_t i = 0; i < plan->comms[c].n_ranks; i++) {
      LsBinding *b = &plan->bindings[ls_comm_rank (&plan->comms[c], i)];
      for (int s = 0; s < LS_SLOT_PREV; s++)
        if (b->comm[s] == c)
          b->member[s] = i;
    }
}

static void
read_rank (TraceReading *r, const TraceRank *from)
{
  uint32_t rank = r->at;
  LsPlan *plan = r->plan;
  LsBinding *b = &plan->bindings[rank];
  b->role = from->role;
  plan->gpu_of_rank[rank] = from->gpu == LS_TRACE_ABSENT ? rank : from->gpu;
  for (int s = 0; s < LS_N_SLOTS; s++)
    b->comm[s] = b->member[s] = UINT32_MAX;
  memcpy (b->comm, from->comm, sizeof from->comm);
  memcpy (b->peer, from->peer, sizeof b->peer);
  if (from->role >= plan->n_roles)
    complain (r, "role", ALL, "role %u does not exist: there are %u", from->role, plan->n_roles);
  for (int i = 0; i < 2; i++)
    if (b->peer[i] != UINT32_MAX && (b->peer[i] >= plan->n_ranks || b->peer[i] == rank))
      complain (r, ls_slot_names[(LS_SLOT_PREV + i)].name, ALL, "rank %u is not another rank: there are %u",
                b->peer[i], plan->n_ranks);
}

/* What the lists say of each other. */
static void
check_rank (TraceReading *r)
{
  uint32_t rank = r->at;
  const LsPlan *plan = r->plan;
  const LsBinding *b = &plan->bindings[rank];
  for (int s = 0; s < LS_SLOT_PREV; s++) {
    if (b->comm[s] == UINT32_MAX)
      continue;
    if (b->comm[s] >= plan->n_comms)
      complain (r, ls_slot_names[s].name, ALL, "communicator %u does not exist: there are %u", b->comm[s],
                plan->n_comms);
    else if (b->member[s] == UINT32_MAX)
      complain (r, ls_slot_names[s].name, ALL, "rank %u is not a member of communicator %u", rank,
                b->comm[s]);
  }
  for (int i = 0; i < 2; i++)
    if (b->peer[i] != UINT32_MAX && plan->bindings[b->peer[i]].peer[1 - i] != rank)
      complain (r, ls_slot_names[(LS_SLOT_PREV + i)].name, ALL,
                "%s of rank %u is rank %u, but %s of that is another", ls_slot_names[(LS_SLOT_PREV + i)].name,
                rank, b->peer[i], ls_slot_names[(LS_SLOT_NEXT - i)].name);
}

static void
read_ranks (TraceReading *r)
{
  const GArray *ranks = r->file->ranks;
  LsPlan *plan = r->plan;
  if (ranks->len == 0 || ranks->len > MAX_RANKS) {
    complain (r, "ranks", ALL, "expected 1 to %u ranks; got %u", MAX_RANKS, ranks->len);
    return;
  }
  plan->n_ranks = ranks->len;
  plan->bindings = ls_arena_new_array (plan->arena, LsBinding, ranks->len);
  plan->gpu_of_rank = ls_arena_new_array (plan->arena, uint32_t, ranks->len);
  go_to (r, "ranks", 0);
  for (; r->at < ranks->len; r->at++)
    read_rank (r, &g_array_index (ranks, TraceRank, r->at));
  read_communicators (r);
  if (!r->ok)
    return;
  bind_members (r);
  go_to (r, "ranks", 0);
  for (; r->at < ranks->len; r->at++)
    check_rank (r);
}

/* --- ranks -------------------------------------------------------------------------- */

/* A degree that the file leaves out is 1. */
static LsMesh
mesh_of (const TraceFile *file)
{
  const LsMesh *m = &file->mesh;
  return (LsMesh) { MAX (m->tp, 1), MAX (m->cp, 1), MAX (m->dp, 1), MAX (m->pp, 1) };
}

static bool
reduces_over_dp (const TraceReading *r)
{
  return uses_slot (r, LS_SLOT_DP) || uses_slot (r, LS_SLOT_WORLD);
}

/* Replicas that exchange nothing would be no data parallelism, and what is reduced
 * over dp takes two. */
static void
check_dp (TraceReading *r, bool has_mesh, uint32_t file_dp, uint32_t dp)
{
  if (dp == 0 || dp == file_dp)
    return;
  if (!has_mesh)
    r->ok = ls_file_diag (r->diags, LS_ERROR_CONFLICT, r->name, NULL,
                          "--dp %u: the trace lists its ranks; only a mesh can be scaled", dp);
  else if (!reduces_over_dp (r))
    r->ok = ls_file_diag (r->diags, LS_ERROR_CONFLICT, r->name, NULL,
                          "--dp %u: no rank of the trace has a collective over dp", dp);
  else if (dp == 1)
    r->ok = ls_file_diag (r->diags, LS_ERROR_CONFLICT, r->name, NULL,
                          "--dp 1: the ranks of the trace have collectives over dp, which take 2 or more");
}

static void
read_who (TraceReading *r, uint32_t dp, LsMesh *ret_mesh)
{
  const GArray *ranks = r->file->ranks;
  bool mesh = member (r, "mesh") != NULL;
  go_to (r, NULL, ALL);
  if (mesh == (ranks != NULL)) {
    complain (r, NULL, ALL, "expected either \"mesh\" or \"ranks\"");
    return;
  }
  if (mesh && r->file->communicators)
    complain (r, "communicators", ALL, "means nothing with a mesh, which has its own");
  if (ranks && r->file->slots)
    complain (r, "slots", ALL, "means nothing with \"ranks\", which say their slots");
  LsMesh m = mesh_of (r->file);
  check_dp (r, mesh, m.dp, dp);
  if (!r->ok)
    return;
  if (ranks) {
    read_ranks (r);
    return;
  }
  m.dp = dp > 0 ? dp : m.dp;
  read_mesh (r, &m);
  *ret_mesh = m;
}

/* --- model and strategy ---------------------------------------------------------------- */

static void
check_degrees (TraceReading *r, const LsStrategy *s, const LsMesh *mesh)
{
  const struct {
    const char *key;
    uint32_t said, is;
  } degrees[] = {
    { "tp", s->tp, mesh->tp }, { "cp", s->cp, mesh->cp }, { "pp", s->pp, mesh->pp }, { "dp", s->dp, mesh->dp }
  };
  go_to (r, "strategy", ALL);
  for (guint i = 0; i < G_N_ELEMENTS (degrees); i++)
    if (degrees[i].said > 0 && degrees[i].said != degrees[i].is)
      complain (r, degrees[i].key, ALL, "%u, but that of the mesh is %u", degrees[i].said, degrees[i].is);
}

/* More replicas work on as many more sequences. */
static void
scale_batch (TraceReading *r, LsStrategy *s, uint32_t from_dp, uint32_t to_dp)
{
  uint64_t batch = (uint64_t) s->global_batch / from_dp * to_dp;
  if (from_dp == to_dp)
    return;
  if (s->layout.micro_batches_per_replica)
    r->ok = ls_file_diag (r->diags, LS_ERROR_CONFLICT, r->name, NULL,
                          "--dp %u: the trace says how many micro-batches each of %u replicas has", to_dp,
                          from_dp);
  else if (s->global_batch % from_dp != 0 || batch > INT32_MAX)
    r->ok = ls_file_diag (r->diags, LS_ERROR_CONFLICT, r->name, NULL,
                          "--dp %u: a global batch of %u for dp %u does not scale to it", to_dp,
                          s->global_batch, from_dp);
  else
    s->global_batch = (uint32_t) batch;
}

/* What data files may leave out too, and a hand-written strategy lack. */
static void
complete (LsModel *m, LsStrategy *s)
{
  m->n_kv_heads = m->n_kv_heads ? m->n_kv_heads : m->n_heads;
  m->ffn = m->ffn ? m->ffn : 4 * m->hidden;
  m->head_dim = m->head_dim ? m->head_dim : MAX (1, m->hidden / m->n_heads);
  s->seq = s->seq ? s->seq : m->seq;
  s->use.attention = s->use.attention == LS_ATTENTION_AUTO ? (int) m->attention : s->use.attention;
  s->opt.grad_dtype = s->opt.grad_dtype == LS_DTYPE_AUTO ? s->dtype : s->opt.grad_dtype;
  if (!s->schedule)
    s->schedule = g_strdup (s->pp > 1 ? "1f1b" : "none");
}

static void
read_work (TraceReading *r, LsTrace *t)
{
  const cJSON *model = member (r, "model"), *strategy = member (r, "strategy");
  LsMesh file_mesh = mesh_of (r->file);
  go_to (r, NULL, ALL);
  if (!model != !strategy)
    complain (r, NULL, ALL, "\"model\" and \"strategy\" go together");
  if (!r->ok || !model)
    return;
  r->ok = ls_fields_read (ls_model_fields, r->doc, model, &t->model, NULL, r->diags) && r->ok;
  r->ok = ls_fields_read (ls_strategy_fields, r->doc, strategy, &t->strategy, NULL, r->diags) && r->ok;
  if (!t->model.name)
    complain (r, "model", ALL, "missing key \"name\"");
  if (t->strategy.global_batch == 0)
    complain (r, "strategy", ALL, "missing key \"global_batch\" (sequences of one step)");
  if (!r->ok)
    return;
  if (t->mesh.tp > 0) {
    check_degrees (r, &t->strategy, &file_mesh);
    scale_batch (r, &t->strategy, file_mesh.dp, t->mesh.dp);
  }
  complete (&t->model, &t->strategy);
  t->has_model = true;
}

/* --- the whole --------------------------------------------------------------------------- */

/* What only shows when all is put together: events, buffers, calls and messages of
 * ranks that do not fit each other. */
static void
check_plan (TraceReading *r)
{
  g_autoptr (GError) error = NULL;
  LsOpPlace at;
  if (ls_plan_check_at (r->plan, &at, &error))
    return;
  if (at.role == UINT32_MAX) {
    r->ok = ls_file_diag (r->diags, (LsErrorCode) error->code, r->name, NULL, "%s", error->message);
    return;
  }
  go_to (r, "segments", r->plan->programs[at.role].instances[at.instance].segment);
  r->op = at.op; /* it stands once, in its segment, whoever runs it */
  complain (r, NULL, ALL, "%s", error->message);
}

static void
read_plan (TraceReading *r, LsTrace *t, uint32_t dp)
{
  const GArray *kernels = r->file->kernels;
  r->plan->n_kernels = kernels ? kernels->len : 0;
  r->plan->kernels = ls_arena_new_array (r->plan->arena, LsKernel, MAX (1, r->plan->n_kernels));
  go_to (r, "kernels", 0);
  for (; r->at < r->plan->n_kernels; r->at++)
    read_kernel (r, &g_array_index (kernels, LsKernel, r->at), &r->plan->kernels[r->at]);
  read_segments (r);
  if (r->ok)
    read_roles (r);
  if (r->ok)
    read_who (r, dp, &t->mesh);
  if (r->ok)
    check_plan (r);
  if (r->ok)
    read_work (r, t);
}

/* Clears the file. */
static LsTrace *
read_file (TraceReading *r, TraceFile *file, uint32_t dp)
{
  g_autoptr (LsTrace) t = g_new0 (LsTrace, 1);
  r->file = file;
  r->plan = t->plan = g_new0 (LsPlan, 1);
  t->plan->arena = ls_arena_new ();
  ls_strategy_init (&t->strategy);
  if (r->ok)
    read_plan (r, t, dp);
  if (t->mesh.tp > 0) {
    t->takes_dp = reduces_over_dp (r);
    t->strategy.tp = t->mesh.tp;
    t->strategy.cp = t->mesh.cp;
    t->strategy.dp = t->mesh.dp;
    t->strategy.pp = t->mesh.pp;
  }
  t->strategy.gpus = t->plan->n_ranks;
  t->name = g_strdup (file->name);
  t->source = g_strdup (file->source);
  t->measured_on = g_strdup (file->measured_on);
  t->assumes = g_strdup (file->assumes);
  t->compute_scale = file->compute_scale;
  ls_fields_clear (ls_trace_fields, file);
  return r->ok ? g_steal_pointer (&t) : NULL;
}

LsTrace *
ls_trace_read (const LsJsonDoc *doc, uint32_t dp, LsDiagList *diags)
{
  TraceFile file = ls_trace_file_blank;
  TraceReading r = { .name = ls_json_doc_name (doc), .doc = doc, .diags = diags, .is_in_doc = true };
  r.ok = ls_fields_read_file (ls_trace_fields, "trace", doc, &file, diags);
  return read_file (&r, &file, dp);
}

LsTrace *
ls_trace_of_file (TraceFile *file, const char *name, const LsJsonDoc *work, uint32_t dp, LsDiagList *diags)
{
  TraceReading r = { .name = name, .doc = work, .diags = diags, .ok = true };
  return read_file (&r, file, dp);
}

LsTrace *
ls_trace_load (const char *name, uint32_t dp, LsDiagList *diags)
{
  if (g_file_test (name, G_FILE_TEST_IS_DIR))
    return (ls_captured_trace_is (name) ? ls_captured_trace_load : ls_chakra_load) (name, dp, diags);
  if (g_str_has_suffix (name, ".goal")) {
    ls_file_diag (diags, LS_ERROR_UNSUPPORTED, name,
                  "export the job with --format lockstep or chakra, which are read",
                  "GOAL is written (lockstep trace export --format goal), not read");
    return NULL;
  }
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_TRACES, name, diags);
  return doc ? ls_trace_read (doc, dp, diags) : NULL;
}
