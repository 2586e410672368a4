/* data/traces/trace_file.c — lockstep.trace/1: its keys, what is by default, plan -> TraceFile -> text; and
 * the ops of a plan as other formats have them. */
#include "data/traces/trace_file.h"

#include <string.h>

#include "base/diag.h"

#include "base/printable.h"
#include "data/jobs/job_files.h"
#include "network/coll.h"
#include "plan/mesh.h"

/* Indices of plan/plan.h in 16 bits; a duration far below where LsTime ends. */
#define MAX_INDEX_16 (UINT16_MAX - 1)
#define MAX_TIME     (1e6 * (double) LS_S)

/* --- names ---------------------------------------------------------------------- */

static const LsEnumName host_costs[] = {
  { "launch", LS_HOST_LAUNCH },   { "comm", LS_HOST_COMM },     { "free", LS_HOST_FREE },
  { "sync", LS_HOST_SYNC },       { "view", LS_HOST_VIEW },     { "batch", LS_HOST_BATCH },
  { "product", LS_HOST_PRODUCT }, { "python", LS_HOST_PYTHON }, { NULL },
};
#define NAMED(name_, number_) [number_] = { name_, number_ }
static const LsEnumName comm_slots[] = { LS_COMM_SLOTS (NAMED), { NULL } };
static const LsEnumName mesh_slots[] = {
  { "tp", LS_SLOT_TP },
  { "dp", LS_SLOT_DP },
  { "cp", LS_SLOT_CP },
  { "embedding", LS_SLOT_EMBEDDING },
  { "tp-cp", LS_SLOT_TP_CP },
  { "stage", LS_SLOT_STAGE },
  { "model", LS_SLOT_MODEL },
  { "world", LS_SLOT_WORLD },
  { NULL },
};
static const LsEnumName dtypes[] = {
  { "fp32", LS_DTYPE_FP32 },   { "tf32", LS_DTYPE_TF32 },
  { "fp16", LS_DTYPE_FP16 },   { "bf16", LS_DTYPE_BF16 },
  { "fp8", LS_DTYPE_FP8 },     { "byte", LS_DTYPE_BYTE },
  { "nvfp4", LS_DTYPE_NVFP4 }, { NULL },
};
static const LsEnumName instants[]
    = { { "issue", LS_AT_ISSUE }, { "start", LS_AT_START }, { "end", LS_AT_END }, { NULL } };

/* --- dependencies ---------------------------------------------------------------- */

#define ISSUE_OF "issue "

/* "3", "compute" or "issue 3" */
static bool
parse_dep (const char *text, void *target)
{
  LsDep *dep = target;
  guint64 index;
  int stream = ls_enum_value (ls_stream_names, text);
  if (stream >= 0) {
    *dep = (LsDep) { LS_DEP_STREAM, (uint16_t) stream };
    return true;
  }
  bool is_issue = g_str_has_prefix (text, ISSUE_OF);
  if (!g_ascii_string_to_unsigned (is_issue ? text + strlen (ISSUE_OF) : text, 10, 0, MAX_INDEX_16, &index,
                                   NULL))
    return false;
  *dep = (LsDep) { is_issue ? LS_DEP_ISSUE : LS_DEP_END, (uint16_t) index };
  return true;
}

static char *
format_dep (const void *target)
{
  const LsDep *dep = target;
  if (dep->kind == LS_DEP_STREAM)
    return g_strdup (ls_stream_names[dep->index].name);
  return g_strdup_printf ("%s%u", dep->kind == LS_DEP_ISSUE ? ISSUE_OF : "", dep->index);
}

/* --- tables ---------------------------------------------------------------------- */

const TraceFile ls_trace_file_blank = { .compute_scale = 1 };
const LsKernel ls_trace_kernel_blank = { .batch = 1, .flops = -1, .bytes = -1 };
const TraceOp ls_trace_op_blank = {
  .stream = -1,
  .tag = -1,
  .host = -1,
  .slot = -1,
  .coll = -1,
  .dtype = -1,
  .direction = -1,
  .kernel = LS_TRACE_ABSENT,
  .root = LS_TRACE_ABSENT,
  .layer = LS_TRACE_ABSENT,
  .unit = LS_TRACE_ABSENT,
  .event = LS_TRACE_ABSENT,
  .recorded = LS_TIME_NEVER,
  .repeat = 1,
};
const TraceTransfer ls_trace_transfer_blank = { .send = -1, .receive = -1 };
const TraceBuffer ls_trace_buffer_blank = { .alloc = LS_TRACE_ABSENT, .free = LS_TRACE_ABSENT, .when = -1 };
const TraceRank ls_trace_rank_blank = {
  .gpu = LS_TRACE_ABSENT,
  .comm = { [0 ... LS_SLOT_PREV - 1] = LS_TRACE_ABSENT },
  .peer = { LS_TRACE_ABSENT, LS_TRACE_ABSENT },
};
static const TraceRole role_blank = { .stage = LS_TRACE_ABSENT };

#define ENUM(type, key_, member, names_) key_, LS_FIELD_ENUM, offsetof (type, member), .names = (names_)
#define INDEX(type, key_, member, max_)  key_, LS_FIELD_UINT, offsetof (type, member), .max = (max_)
#define BYTES(type, key_, at_)           key_, LS_FIELD_BYTES, offsetof (type, at_), .max = LS_TRACE_MAX_BYTES
#define ARRAY(type, key_, member, element, fields_)                                                          \
  key_, LS_FIELD_ARRAY, offsetof (type, member), .element_size = sizeof (element), .fields = (fields_)

#define SHAPE(key_) #key_, LS_FIELD_UINT64, offsetof(LsKernel, key_), .min = 1, .default_text = "0"

const LsField ls_trace_kernel_fields[] = {
  { "name", LS_FIELD_STRING, offsetof (LsKernel, name), .required = true },
  { ENUM (LsKernel, "kind", kind, ls_kernel_kind_names), .required = true },
  { ENUM (LsKernel, "dtype", dtype, dtypes), .required = true },
  { SHAPE (m), .meaning = "rows; attention: queries" },
  { SHAPE (n), .meaning = "columns; attention: keys" },
  { SHAPE (k), .meaning = "inner dimension; attention: width of a head" },
  { "batch", LS_FIELD_UINT64, offsetof (LsKernel, batch), .min = 1 },
  { "flops", LS_FIELD_DOUBLE, offsetof (LsKernel, flops), .max = LS_TRACE_MAX_FLOPS },
  { "bytes", LS_FIELD_BYTES_DOUBLE, offsetof (LsKernel, bytes), .max = LS_TRACE_MAX_BYTES },
  { ENUM (LsKernel, "access", access, ls_access_names) },
  { ENUM (LsKernel, "attention", attention, ls_attention_kernel_names) },
  { "by_blocks", LS_FIELD_BOOL, offsetof (LsKernel, by_blocks) },
  { "unaligned", LS_FIELD_BOOL, offsetof (LsKernel, unaligned) },
  { "masked", LS_FIELD_BOOL, offsetof (LsKernel, masked) },
  { "guess", LS_FIELD_BOOL, offsetof (LsKernel, is_guess) },
  { "serial", LS_FIELD_UINT, offsetof (LsKernel, n_serial), .max = UINT32_MAX },
  { .table = "trace.trace_kernel" },
};

static const LsField dep_element[] = {
  { "", LS_FIELD_CUSTOM, .parse = parse_dep, .format = format_dep,
    .expected = "the index of an earlier op of the segment, \"issue N\" or a stream" },
  { NULL },
};

static const LsField transfer_fields[] = {
  { ENUM (TraceTransfer, "send", send, &ls_slot_names[LS_SLOT_PREV]) },
  { ENUM (TraceTransfer, "receive", receive, &ls_slot_names[LS_SLOT_PREV]) },
  { BYTES (TraceTransfer, "bytes", bytes), .required = true },
  { INDEX (TraceTransfer, "max_ctas", max_ctas, UINT8_MAX) },
  { .table = "trace.transfer" },
};

const LsField ls_trace_buffer_fields[] = {
  { INDEX (TraceBuffer, "alloc", alloc, UINT16_MAX) },
  { INDEX (TraceBuffer, "free", free, UINT16_MAX) },
  { ENUM (TraceBuffer, "category", category, ls_mem_category_names), .required = true },
  { BYTES (TraceBuffer, "bytes", bytes), .required = true },
  { ENUM (TraceBuffer, "when", when, instants) },
  { .table = "trace.trace_buffer" },
};

const LsField ls_trace_op_fields[] = {
  { ENUM (TraceOp, "op", kind, ls_op_kind_names), .required = true },
  { "name", LS_FIELD_STRING, offsetof (TraceOp, name) },
  { ENUM (TraceOp, "stream", stream, ls_stream_names) },
  { ENUM (TraceOp, "tag", tag, ls_tag_names) },
  { ENUM (TraceOp, "host", host, host_costs) },
  { INDEX (TraceOp, "kernel", kernel, UINT32_MAX - 1) },
  { "recorded", LS_FIELD_TIME, offsetof (TraceOp, recorded), .max = MAX_TIME },
  { "beside", LS_FIELD_TIME, offsetof (TraceOp, beside), .max = MAX_TIME },
  { INDEX (TraceOp, "repeat", repeat, LS_TRACE_MAX_REPEAT), .min = 1 },
  { ENUM (TraceOp, "slot", slot, comm_slots) },
  { ENUM (TraceOp, "coll", coll, ls_coll_kind_names) },
  { "algorithm", LS_FIELD_STRING, offsetof (TraceOp, algorithm) },
  { "margin", LS_FIELD_BOOL, offsetof (TraceOp, has_margin) },
  { "light", LS_FIELD_BOOL, offsetof (TraceOp, is_light) },
  { INDEX (TraceOp, "max_ctas", max_ctas, UINT8_MAX) },
  { "graph", LS_FIELD_BOOL, offsetof (TraceOp, is_in_graph) },
  { BYTES (TraceOp, "bytes", bytes) },
  { ENUM (TraceOp, "dtype", dtype, dtypes) },
  { INDEX (TraceOp, "root", root, UINT32_MAX - 1) },
  { ENUM (TraceOp, "direction", direction, ls_copy_names) },
  { INDEX (TraceOp, "layer", layer, MAX_INDEX_16) },
  { INDEX (TraceOp, "unit", unit, MAX_INDEX_16) },
  { INDEX (TraceOp, "event", event, MAX_INDEX_16) },
  { ARRAY (TraceOp, "after", after, LsDep, dep_element) },
  { ARRAY (TraceOp, "transfers", transfers, TraceTransfer, transfer_fields),
    .blank = &ls_trace_transfer_blank },
  { ARRAY (TraceOp, "buffers", buffers, TraceBuffer, ls_trace_buffer_fields),
    .blank = &ls_trace_buffer_blank },
  { .table = "trace.trace_op" },
};

const LsField ls_trace_segment_fields[] = {
  { "name", LS_FIELD_STRING, offsetof (TraceSegment, name), .required = true },
  { ARRAY (TraceSegment, "ops", ops, TraceOp, ls_trace_op_fields), .blank = &ls_trace_op_blank, .lines = true,
    .required = true },
  { .table = "trace.trace_segment" },
};

static const LsField instance_element[] = {
  { "", LS_FIELD_ROW, .n_row = N_ROW, .max = UINT32_MAX - 1,
    .expected = "a list of 1 to 4 whole numbers (segment, micro-batch, chunk, stage), each" },
  { NULL },
};

#define STATIC(key_, category)                                                                               \
  {                                                                                                          \
    BYTES (TraceRole, key_, static_bytes[category]), .default_text = "0B", .meaning = "alive throughout"     \
  }
static const LsField static_fields[] = { LS_MEM_CATEGORIES (STATIC), { NULL } };

const LsField ls_trace_role_fields[] = {
  { INDEX (TraceRole, "stage", stage, UINT16_MAX) },
  { "params", LS_FIELD_UINT64, offsetof (TraceRole, n_params) },
  { "static", LS_FIELD_OBJECT, 0, .fields = static_fields },
  { "instances", LS_FIELD_ARRAY, offsetof (TraceRole, instances), .element_size = N_ROW * sizeof (uint32_t),
    .fields = instance_element, .lines = true, .required = true },
  { INDEX (TraceRole, "lead", n_lead, UINT32_MAX - 1) },
  { .table = "trace.trace_role" },
};

#define DEGREE(key_)                                                                                         \
#key_, LS_FIELD_UINT, offsetof(TraceFile, mesh.key_), .min = 1, .max = 1 << 20, .default_text = "1"
static const LsField mesh_fields[] = {
  { DEGREE (tp), .meaning = "tensor-parallel degree: neighbouring ranks" },
  { DEGREE (cp), .meaning = "context-parallel degree" },
  { DEGREE (dp), .meaning = "data-parallel degree; --dp overrides it" },
  { DEGREE (pp), .meaning = "pipeline stages, one for each role" },
  { NULL },
};

static const LsField slot_element[] = { { "", LS_FIELD_ENUM, 0, .names = mesh_slots }, { NULL } };

static const LsField communicator_fields[] = {
  { ENUM (TraceCommunicator, "axis", axis, ls_axis_names), .required = true },
  { "spans_stages", LS_FIELD_BOOL, offsetof (TraceCommunicator, spans_stages) },
  { "ranks", LS_FIELD_UINT_LIST, offsetof (TraceCommunicator, ranks),
    .n_offset = offsetof (TraceCommunicator, n_ranks), .max = 1 << 20, .required = true },
  { .table = "trace.communicator" },
};

#define COMM(key_, slot)                                                                                     \
  {                                                                                                          \
    INDEX (TraceRank, key_, comm[slot], UINT32_MAX - 1), .default_text = "none",                             \
                                                         .meaning = "index into `communicators`"             \
  }
static const LsField rank_fields[] = {
  { INDEX (TraceRank, "role", role, UINT32_MAX - 1), .required = true },
  { INDEX (TraceRank, "gpu", gpu, UINT32_MAX - 1) },
  LS_COMM_SLOTS (COMM),
  { INDEX (TraceRank, "prev", peer[0], UINT32_MAX - 1) },
  { INDEX (TraceRank, "next", peer[1], UINT32_MAX - 1) },
  { .table = "trace.rank" },
};

const LsField ls_trace_fields[] = {
  LS_FIELDS_HEADER (TraceFile),
  { "measured_on", LS_FIELD_STRING, offsetof (TraceFile, measured_on) },
  { "assumes", LS_FIELD_STRING, offsetof (TraceFile, assumes) },
  { "compute_scale", LS_FIELD_DOUBLE, offsetof (TraceFile, compute_scale), .max = LS_TRACE_MAX_SCALE },
  { "model", LS_FIELD_IGNORED, .expected = "object" },
  { "strategy", LS_FIELD_IGNORED, .expected = "object" },
  { "mesh", LS_FIELD_OBJECT, 0, .fields = mesh_fields },
  { ARRAY (TraceFile, "slots", slots, int, slot_element) },
  { ARRAY (TraceFile, "communicators", communicators, TraceCommunicator, communicator_fields),
    .lines = true },
  { ARRAY (TraceFile, "ranks", ranks, TraceRank, rank_fields), .blank = &ls_trace_rank_blank, .lines = true },
  { ARRAY (TraceFile, "kernels", kernels, LsKernel, ls_trace_kernel_fields), .blank = &ls_trace_kernel_blank,
    .lines = true },
  { ARRAY (TraceFile, "segments", segments, TraceSegment, ls_trace_segment_fields), .lines = true,
    .required = true },
  { ARRAY (TraceFile, "roles", roles, TraceRole, ls_trace_role_fields), .blank = &role_blank, .lines = true,
    .required = true },
  { .table = "trace" },
};

TraceFile
ls_trace_file_new (const char *path)
{
  g_autofree char *name = g_path_get_basename (path);
  return (TraceFile) { .name = ls_printable (name),
                       .communicators = g_array_new (FALSE, FALSE, sizeof (TraceCommunicator)),
                       .ranks = g_array_new (FALSE, FALSE, sizeof (TraceRank)),
                       .kernels = g_array_new (FALSE, FALSE, sizeof (LsKernel)),
                       .segments = g_array_new (FALSE, FALSE, sizeof (TraceSegment)),
                       .roles = g_array_new (FALSE, FALSE, sizeof (TraceRole)) };
}

uint32_t
ls_trace_place (GHashTable *known, const LsField *fields, GArray *list, void *element, size_t *n_bytes)
{
  char *what = ls_fields_text (fields, element, NULL);
  guint place = GPOINTER_TO_UINT (g_hash_table_lookup (known, what));
  if (place > 0) {
    ls_fields_clear (fields, element);
    g_free (what);
    return place - 1;
  }
  if (n_bytes)
    *n_bytes += strlen (what);
  g_array_append_vals (list, element, 1);
  g_hash_table_insert (known, what, GUINT_TO_POINTER (list->len));
  return list->len - 1;
}

/* --- what an op is if the file does not say ---------------------------------------- */

LsStream
ls_trace_default_stream (const TraceOp *op)
{
  if (ls_op_has (op->kind, LS_HAS_CALL) && (op->slot == LS_SLOT_TP || op->slot == LS_SLOT_DP))
    return op->slot == LS_SLOT_TP ? LS_STREAM_TP : LS_STREAM_DP;
  return (LsStream) ls_op_kinds[op->kind].stream;
}

static const LsKernel *
kernel_of (const TraceOp *op, const GArray *kernels)
{
  bool has_one = ls_op_has (op->kind, LS_HAS_KERNEL) && kernels && op->kernel < kernels->len;
  return has_one ? &g_array_index (kernels, LsKernel, op->kernel) : NULL;
}

LsDtype
ls_trace_default_dtype (const TraceOp *op, const GArray *kernels)
{
  const LsKernel *k = kernel_of (op, kernels);
  return k ? k->dtype : LS_DTYPE_FP32;
}

const char *
ls_trace_default_name (const TraceOp *op, const GArray *kernels)
{
  const LsKernel *k = kernel_of (op, kernels);
  if (k)
    return k->name;
  if (ls_op_has (op->kind, LS_HAS_CALL) && op->coll >= 0)
    return ls_coll_kind_name ((LsCollKind) op->coll);
  return ls_op_kind_names[op->kind].name;
}

static GArray *
array_of (size_t element_size, guint n)
{
  GArray *a = g_array_sized_new (FALSE, TRUE, (guint) element_size, n);
  g_array_set_size (a, n);
  return a;
}

/* --- ops ------------------------------------------------------------------------- */

static void
put_lists (TraceOp *to, const LsOp *op)
{
  if (op->n_deps > 0) {
    to->after = g_array_new (FALSE, FALSE, sizeof (LsDep));
    g_array_append_vals (to->after, op->deps, op->n_deps);
  }
  if (op->n_transfers > 0)
    to->transfers = array_of (sizeof (TraceTransfer), op->n_transfers);
  for (uint32_t i = 0; i < op->n_transfers; i++) {
    const LsTransfer *t = &op->transfers[i];
    g_array_index (to->transfers, TraceTransfer, i) = (TraceTransfer) { .send = t->is_send ? t->slot : -1,
                                                                        .receive = t->is_send ? -1 : t->slot,
                                                                        .bytes = t->bytes,
                                                                        .max_ctas = t->max_ctas };
  }
  if (op->n_buffers > 0)
    to->buffers = array_of (sizeof (TraceBuffer), op->n_buffers);
  for (uint32_t i = 0; i < op->n_buffers; i++) {
    const LsBufferEvent *b = &op->buffers[i];
    bool is_default = b->when == (b->is_free ? LS_AT_END : LS_AT_ISSUE);
    g_array_index (to->buffers, TraceBuffer, i) = (TraceBuffer) {
      .alloc = b->is_free ? LS_TRACE_ABSENT : b->id,
      .free = b->is_free ? b->id : LS_TRACE_ABSENT,
      .category = b->category,
      .when = is_default ? -1 : b->when,
      .bytes = b->bytes,
    };
  }
}

/* Only what the kind of op has a meaning for; what it is by default stays away. */
TraceOp
ls_trace_op_of (const LsOp *op, const GArray *kernels)
{
  TraceOp to = ls_trace_op_blank;
  to.kind = op->kind;
  to.kernel = ls_op_has (op->kind, LS_HAS_KERNEL) ? op->kernel : LS_TRACE_ABSENT;
  to.is_in_graph = op->is_in_graph;
  to.recorded = op->recorded;
  to.beside = op->beside;
  to.repeat = MAX (op->repeat, 1);
  to.layer = op->layer == UINT16_MAX ? LS_TRACE_ABSENT : op->layer;
  to.unit = op->unit == UINT16_MAX ? LS_TRACE_ABSENT : op->unit;
  if (ls_op_has (op->kind, LS_HAS_CALL)) {
    to.slot = op->slot;
    to.coll = op->coll;
    to.has_margin = op->has_margin;
    to.is_light = op->is_light;
    to.algorithm
        = op->algorithm != LS_ALGORITHM_CHOOSE ? g_strdup (ls_coll_algorithm_name (op->algorithm)) : NULL;
    to.root = op->root > 0 ? op->root : LS_TRACE_ABSENT;
    to.max_ctas = op->max_ctas;
  }
  if (ls_op_has (op->kind, LS_HAS_DIRECTION))
    to.direction = op->direction;
  if (ls_op_has (op->kind, LS_HAS_BYTES))
    to.bytes = op->bytes;
  if (ls_op_has (op->kind, LS_HAS_EVENT) && op->event != LS_EVENT_NONE)
    to.event = op->event;
  put_lists (&to, op);

  to.stream = op->stream == ls_trace_default_stream (&to) ? -1 : op->stream;
  to.tag = op->tag == ls_op_kinds[op->kind].tag ? -1 : op->tag;
  to.host = op->host == ls_op_kinds[op->kind].host ? -1 : op->host;
  to.dtype = op->dtype == ls_trace_default_dtype (&to, kernels) ? -1 : op->dtype;
  bool is_default = !op->name || strcmp (op->name, ls_trace_default_name (&to, kernels)) == 0;
  to.name = is_default ? NULL : g_strdup (op->name);
  return to;
}

static GArray *
segments_of (const LsPlan *plan, const GArray *kernels, bool no_margins)
{
  GArray *segments = array_of (sizeof (TraceSegment), plan->n_segments);
  for (uint32_t s = 0; s < plan->n_segments; s++) {
    TraceSegment *to = &g_array_index (segments, TraceSegment, s);
    to->name = g_strdup (plan->segments[s].name);
    to->ops = array_of (sizeof (TraceOp), plan->segments[s].n_ops);
    for (uint32_t i = 0; i < plan->segments[s].n_ops; i++) {
      TraceOp *op = &g_array_index (to->ops, TraceOp, i);
      *op = ls_trace_op_of (&plan->segments[s].ops[i], kernels);
      op->has_margin &= !no_margins;
    }
  }
  return segments;
}

/* --- programs, kernels, bindings ---------------------------------------------------- */

static GArray *
roles_of (const LsPlan *plan)
{
  GArray *roles = array_of (sizeof (TraceRole), plan->n_roles);
  for (uint32_t r = 0; r < plan->n_roles; r++) {
    const LsProgram *p = &plan->programs[r];
    TraceRole *to = &g_array_index (roles, TraceRole, r);
    *to = (TraceRole) { .stage = p->stage == r ? LS_TRACE_ABSENT : p->stage,
                        .n_params = p->n_params,
                        .n_lead = p->n_lead };
    memcpy (to->static_bytes, p->static_bytes, sizeof to->static_bytes);
    to->instances = array_of (N_ROW * sizeof (uint32_t), p->n_instances);
    uint32_t *row = (uint32_t *) (gpointer) to->instances->data;
    for (uint32_t i = 0; i < p->n_instances; i++, row += N_ROW) {
      row[ROW_SEGMENT] = p->instances[i].segment;
      row[ROW_MB] = p->instances[i].mb;
      row[ROW_CHUNK] = p->instances[i].chunk;
      row[ROW_STAGE] = p->instances[i].stage;
    }
  }
  return roles;
}

GArray *
ls_trace_kernels_of (const LsPlan *plan)
{
  GArray *kernels = g_array_new (FALSE, FALSE, sizeof (LsKernel));
  g_array_append_vals (kernels, plan->kernels, plan->n_kernels);
  for (uint32_t i = 0; i < plan->n_kernels; i++)
    g_array_index (kernels, LsKernel, i).name = g_strdup (plan->kernels[i].name);
  return kernels;
}

static uint32_t
slots_bound (const LsPlan *plan)
{
  uint32_t slots = 0;
  for (uint32_t r = 0; r < plan->n_ranks; r++)
    for (int s = 0; s < LS_SLOT_PREV; s++)
      if (ls_plan_comm_of (plan, r, s) != UINT32_MAX)
        slots |= LS_SLOT_BIT (s);
  return slots;
}

/* Whether the rules of the mesh give exactly these bindings. */
static bool
is_mesh (const LsPlan *plan, const LsMesh *mesh, uint32_t slots)
{
  if (!mesh || ls_mesh_n_ranks (mesh) != plan->n_ranks || mesh->pp != plan->n_roles
      || (slots & ~LS_MESH_SLOTS) != 0)
    return false;
  LsPlan *made = g_new0 (LsPlan, 1);
  made->arena = ls_arena_new ();
  ls_plan_bind_mesh (made, mesh, slots);
  bool is_same = ls_plan_has_same_ranks (made, plan);
  ls_plan_free (made);
  return is_same;
}

static void
put_ranks (TraceFile *file, const LsPlan *plan)
{
  file->communicators = array_of (sizeof (TraceCommunicator), plan->n_comms);
  for (uint32_t i = 0; i < plan->n_comms; i++) {
    const LsCommunicator c = ls_plan_communicator (plan, i);
    g_array_index (file->communicators, TraceCommunicator, i) = (TraceCommunicator) {
      .axis = (int) c.axis,
      .spans_stages = c.spans_stages,
      .ranks = ls_comm_ranks (&c),
      .n_ranks = c.n_ranks,
    };
  }
  file->ranks = array_of (sizeof (TraceRank), plan->n_ranks);
  for (uint32_t r = 0; r < plan->n_ranks; r++) {
    const LsBinding b = ls_plan_binding (plan, r);
    TraceRank *to = &g_array_index (file->ranks, TraceRank, r);
    *to = (TraceRank) { .role = b.role,
                        .gpu = ls_plan_gpu (plan, r) == r ? LS_TRACE_ABSENT : ls_plan_gpu (plan, r) };
    memcpy (to->comm, b.comm, sizeof to->comm);
    memcpy (to->peer, b.peer, sizeof to->peer);
  }
}

/* --- what the file cannot say ---------------------------------------------------------- */

static bool
can_say_op (const LsOp *op)
{
  bool ok = op->bytes <= LS_TRACE_MAX_BYTES;
  for (uint32_t i = 0; i < op->n_transfers; i++)
    ok = ok && op->transfers[i].bytes <= LS_TRACE_MAX_BYTES;
  for (uint32_t i = 0; i < op->n_buffers; i++)
    ok = ok && op->buffers[i].bytes <= LS_TRACE_MAX_BYTES;
  return ok;
}

gboolean
ls_trace_can_say (const LsPlan *plan, GError **error)
{
  if (plan->n_weights > 0)
    return ls_fail (error, LS_ERROR_UNSUPPORTED,
                    "a trace cannot say that the parts of an all-to-all are unequal (expert_load)");
  if (plan->spread.draw.n_drawn > 0)
    return ls_fail (
        error, LS_ERROR_UNSUPPORTED,
        "a trace cannot say that a token is sent once for several experts (dispatcher deepep or hybridep)");
  const char *what = NULL;
  for (uint32_t i = 0; i < plan->n_kernels && !what; i++) {
    double bytes = plan->kernels[i].bytes;
    bool is_whole = bytes >= 0 && bytes <= LS_TRACE_MAX_BYTES && (double) (uint64_t) bytes == bytes;
    what = is_whole && !(plan->kernels[i].flops > LS_TRACE_MAX_FLOPS) ? NULL : plan->kernels[i].name;
  }
  for (uint32_t s = 0; s < plan->n_segments && !what; s++)
    for (uint32_t i = 0; i < plan->segments[s].n_ops && !what; i++)
      if (!can_say_op (&plan->segments[s].ops[i]))
        what = plan->segments[s].ops[i].name;
  for (uint32_t r = 0; r < plan->n_roles && !what; r++)
    for (int c = 0; c < LS_N_MEM && !what; c++)
      if (plan->programs[r].static_bytes[c] > LS_TRACE_MAX_BYTES)
        what = ls_mem_category_names[c].name;
  if (what)
    g_set_error (error, LS_ERROR, LS_ERROR_UNSUPPORTED,
                 "%s: a trace holds whole numbers of bytes up to %.0e and %.0e FLOPs; this is none or more",
                 what, LS_TRACE_MAX_BYTES, LS_TRACE_MAX_FLOPS);
  return !what;
}

/* --- text ------------------------------------------------------------------------- */

static void
write_object (LsJsonOut *w, const char *key, const LsField *fields, const void *object)
{
  ls_json_out_begin_object (w, key);
  ls_fields_write (fields, w, object, NULL);
  ls_json_out_end_object (w);
}

char *
ls_trace_format (const LsPlan *plan, const LsTraceHead *head, GError **error)
{
  TraceFile file = ls_trace_file_blank;
  if (!ls_trace_can_say (plan, error))
    return NULL;
  file.compute_scale = head->compute_scale > 0 ? head->compute_scale : 1;
  file.measured_on = g_strdup (head->measured_on);
  file.assumes = g_strdup (head->assumes);
  file.kernels = ls_trace_kernels_of (plan);
  file.segments = segments_of (plan, file.kernels, head->no_margins);
  file.roles = roles_of (plan);
  uint32_t slots = head->no_ranks ? 0 : slots_bound (plan);
  if (!head->no_ranks && is_mesh (plan, head->mesh, slots)) {
    file.mesh = *head->mesh;
    file.slots = g_array_new (FALSE, FALSE, sizeof (int));
    for (int s = 0; s < LS_SLOT_PREV; s++)
      if (slots & LS_SLOT_BIT (s))
        g_array_append_val (file.slots, s);
  } else if (!head->no_ranks) {
    put_ranks (&file, plan);
  }
  LsJsonOut w;
  ls_json_out_open_as (&w, "trace");
  ls_json_out_string (&w, "name", head->name);
  ls_json_out_string (&w, "source", head->source);
  if (head->model) { /* it and the strategy are written by their own tables */
    write_object (&w, "model", ls_model_fields, head->model);
    write_object (&w, "strategy", ls_strategy_fields, head->strategy);
  }
  ls_fields_write (ls_trace_fields, &w, &file, &ls_trace_file_blank);
  ls_fields_clear (ls_trace_fields, &file);
  return ls_json_out_close (&w);
}

/* --- the ops of a rank as nodes of a graph ---------------------------------------------- */

void
ls_op_walk_add (GArray *ids, uint64_t id)
{
  for (guint i = ids->len; i-- > 0;)
    if (g_array_index (ids, uint64_t, i) == id)
      return;
  g_array_append_val (ids, id);
}

static void
add_nodes (GArray *ids, const LsOpNodes *nodes)
{
  for (uint32_t i = 0; i < nodes->n; i++)
    ls_op_walk_add (ids, nodes->first + i);
}

static void
gather (LsOpWalk *w, const LsInstance *instance, const LsOp *op)
{
  g_array_set_size (w->ends, 0);
  g_array_set_size (w->issues, 0);
  if (!ls_op_is_of_host (op->kind))
    add_nodes (w->ends, &w->last[op->stream]);
  add_nodes (w->ends, &w->host);
  for (uint32_t i = 0; i < op->n_deps; i++) {
    const LsDep *dep = &op->deps[i];
    add_nodes (dep->kind == LS_DEP_ISSUE ? w->issues : w->ends,
               dep->kind == LS_DEP_STREAM ? &w->last[dep->index]
                                          : &g_array_index (w->ops, LsOpNodes, dep->index));
  }
  gpointer event = GSIZE_TO_POINTER (ls_plan_event (w->plan, instance, op));
  uint64_t recorded = ls_op_awaits (op) ? GPOINTER_TO_SIZE (g_hash_table_lookup (w->events, event)) : 0;
  if (recorded > 0)
    ls_op_walk_add (w->ends, recorded - 1);
}

gboolean
ls_op_walk_instance (LsOpWalk *w, const LsInstance *instance, LsOpPut *put, void *data, GError **error)
{
  const LsSegment *segment = &w->plan->segments[instance->segment];
  g_array_set_size (w->ops, 0);
  for (uint32_t i = 0; i < segment->n_ops; i++) {
    const LsOp *op = &segment->ops[i];
    LsOpNodes nodes = { 0 };
    gather (w, instance, op);
    if (!put (data, op, &nodes, error))
      return FALSE;
    g_array_append_val (w->ops, nodes);
    *(ls_op_is_of_host (op->kind) ? &w->host : &w->last[op->stream]) = nodes;
    if (ls_op_records (op) && nodes.n > 0)
      g_hash_table_insert (w->events, GSIZE_TO_POINTER (ls_plan_event (w->plan, instance, op)),
                           GSIZE_TO_POINTER (nodes.first + 1));
  }
  return TRUE;
}

void
ls_op_walk_begin (LsOpWalk *w, const LsPlan *plan, uint32_t rank)
{
  *w = (LsOpWalk) { .plan = plan, .rank = rank, .binding = ls_plan_binding (plan, rank) };
  w->program = &plan->programs[w->binding.role];
  w->ends = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  w->issues = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  w->ops = g_array_new (FALSE, FALSE, sizeof (LsOpNodes));
  w->events = g_hash_table_new (NULL, NULL);
}

void
ls_op_walk_end (LsOpWalk *w)
{
  g_array_unref (w->ends);
  g_array_unref (w->issues);
  g_array_unref (w->ops);
  g_hash_table_unref (w->events);
}
