/* data/traces/trace_write.c — plan -> TraceFile -> text. */
#include "data/traces/trace_json.h"

#include <string.h>

#include <lockstep/error.h>

#include "data/jobs/job_files.h"
#include "data/text/field.h"
#include "data/traces/trace_file.h"
#include "network/coll.h"
#include "plan/bind.h"

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
    to.direction = op->root;
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
put_mesh (TraceFile *file, const LsMesh *mesh, uint32_t slots)
{
  file->mesh = *mesh;
  file->slots = g_array_new (FALSE, FALSE, sizeof (int));
  for (int s = 0; s < LS_SLOT_PREV; s++)
    if (slots & LS_SLOT_BIT (s))
      g_array_append_val (file->slots, s);
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
is_whole (double bytes)
{
  return bytes >= 0 && bytes <= LS_TRACE_MAX_BYTES && (double) (uint64_t) bytes == bytes;
}

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
  if (plan->n_weights > 0) {
    g_set_error (error, LS_ERROR, LS_ERROR_UNSUPPORTED,
                 "a trace cannot say that the parts of an all-to-all are unequal (expert_load)");
    return FALSE;
  }
  if (plan->spread.draw.n_drawn > 0) {
    g_set_error (
        error, LS_ERROR, LS_ERROR_UNSUPPORTED,
        "a trace cannot say that a token is sent once for several experts (dispatcher deepep or hybridep)");
    return FALSE;
  }
  const char *what = NULL;
  for (uint32_t i = 0; i < plan->n_kernels && !what; i++)
    if (!is_whole (plan->kernels[i].bytes) || plan->kernels[i].flops > LS_TRACE_MAX_FLOPS)
      what = plan->kernels[i].name;
  for (uint32_t s = 0; s < plan->n_segments && !what; s++)
    for (uint32_t i = 0; i < plan->segments[s].n_ops && !what; i++)
      if (!can_say_op (&plan->segments[s].ops[i]))
        what = plan->segments[s].ops[i].name;
  for (uint32_t r = 0; r < plan->n_roles && !what; r++)
    for (int c = 0; c < LS_N_MEM && !what; c++)
      if (plan->programs[r].static_bytes[c] > LS_TRACE_MAX_BYTES)
        what = ls_mem_category_name ((LsMemCategory) c);
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

/* The model and the strategy are written by their own tables, after the head. */
static char *
format_file (const TraceFile *file, const LsTraceHead *head)
{
  LsJsonOut w;
  ls_json_out_open_as (&w, "trace");
  ls_json_out_string (&w, "name", head->name);
  ls_json_out_string (&w, "source", head->source);
  if (head->model) {
    write_object (&w, "model", ls_model_fields, head->model);
    write_object (&w, "strategy", ls_strategy_fields, head->strategy);
  }
  ls_fields_write (ls_trace_fields, &w, file, &ls_trace_file_blank);
  return ls_json_out_close (&w);
}

char *
ls_trace_format (const LsPlan *plan, const LsTraceHead *head, GError **error)
{
  TraceFile file = ls_trace_file_blank;
  if (!ls_trace_can_say (plan, error))
    return NULL;
  file.kernels = ls_trace_kernels_of (plan);
  file.segments = segments_of (plan, file.kernels, head->no_margins);
  file.roles = roles_of (plan);
  uint32_t slots = head->no_ranks ? 0 : slots_bound (plan);
  if (!head->no_ranks && is_mesh (plan, head->mesh, slots))
    put_mesh (&file, head->mesh, slots);
  else if (!head->no_ranks)
    put_ranks (&file, plan);
  char *text = format_file (&file, head);
  ls_fields_clear (ls_trace_fields, &file);
  return text;
}
