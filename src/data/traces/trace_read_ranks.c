/* data/traces/trace_read_ranks.c — programs of a trace, and who runs them. */
#include <string.h>

#include "data/traces/trace_read.h"
#include "plan/bind.h"
#include "strategy/strategy.h"

/* Far from where indices and sums end: ops of a rank's step (spans are counted in 31
 * bits), micro-batches, bytes that a step allocates or moves on a rank. */
#define MAX_OPS_PER_STEP  1e9
#define MAX_MICRO_BATCHES (1u << 24)
#define MAX_STEP_BYTES    4e18
#define MAX_RANKS         (1u << 20)

static const cJSON *
list_of (const TraceReading *r, const char *key)
{
  return cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (r->doc), key);
}

bool
ls_trace_uses_slot (const TraceReading *r, LsSlot slot)
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
check_row (TraceReading *r, const cJSON *role, uint32_t i, const uint32_t *row)
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
      ls_trace_complain (r, role, "instances", i, "%s %u: expected less than %u", columns[c].name, row[c],
                         columns[c].limit);
      return false;
    }
  return true;
}

static void
read_instances (TraceReading *r, const cJSON *node, const GArray *from, const Sum *of_segment, LsProgram *to)
{
  LsPlan *plan = r->plan;
  const uint32_t *row = (const uint32_t *) (gpointer) from->data;
  Sum sum = { 0 };
  to->n_instances = from->len;
  to->instances = ls_arena_new_array (plan->arena, LsInstance, MAX (1, from->len));
  for (int c = 0; c < LS_N_MEM; c++)
    sum.bytes += (double) to->static_bytes[c];
  for (uint32_t i = 0; i < from->len; i++, row += N_ROW) {
    if (!check_row (r, node, i, row))
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
    ls_trace_complain (r, node, "lead", TRACE_ALL, "%u of %u instances; expected less than all of them",
                       to->n_lead, from->len);
  if (r->ok && sum.n_ops < 1)
    ls_trace_complain (r, node, "instances", TRACE_ALL, "a program without ops; expected at least one");
  if (sum.n_ops > MAX_OPS_PER_STEP)
    ls_trace_complain (r, node, "instances", TRACE_ALL, "%.3g ops in a step; the limit is %.3g", sum.n_ops,
                       MAX_OPS_PER_STEP);
  if (sum.bytes > MAX_STEP_BYTES)
    ls_trace_complain (r, node, "instances", TRACE_ALL,
                       "a step allocates and moves %.3g bytes; the limit is %.3g", sum.bytes, MAX_STEP_BYTES);
}

void
ls_trace_read_roles (TraceReading *r)
{
  const GArray *roles = r->file->roles;
  LsPlan *plan = r->plan;
  g_autofree Sum *of_segment = g_new0 (Sum, plan->n_segments);
  for (uint32_t s = 0; s < plan->n_segments; s++)
    of_segment[s] = sum_of_segment (&plan->segments[s]);

  plan->n_micro_batches = plan->n_chunks = 1;
  plan->n_roles = roles->len;
  plan->programs = ls_arena_new_array (plan->arena, LsProgram, MAX (1, roles->len));
  const cJSON *list = list_of (r, "roles"), *node = list->child;
  for (uint32_t i = 0; i < roles->len; i++, node = node->next) {
    const TraceRole *from = &g_array_index (roles, TraceRole, i);
    LsProgram *to = &plan->programs[i];
    to->stage = (uint16_t) (from->stage == LS_TRACE_ABSENT ? i : from->stage);
    to->n_params = from->n_params;
    to->n_lead = from->n_lead;
    memcpy (to->static_bytes, from->static_bytes, sizeof to->static_bytes);
    read_instances (r, node, from->instances, of_segment, to);
  }
  if (roles->len == 0 || roles->len > UINT16_MAX)
    ls_trace_complain (r, list, NULL, TRACE_ALL, "expected 1 to %u roles; got %u", UINT16_MAX, roles->len);
}

/* --- ranks by mesh ------------------------------------------------------------------------ */

static uint32_t
slots_of (const TraceReading *r)
{
  uint32_t slots = 0;
  const GArray *given = r->file->slots;
  for (guint i = 0; given && i < given->len; i++)
    slots |= LS_SLOT_BIT (g_array_index (given, int, i));
  for (int s = 0; !given && s < LS_SLOT_PREV; s++)
    slots |= ls_trace_uses_slot (r, (LsSlot) s) ? LS_SLOT_BIT (s) : 0;
  return slots & LS_MESH_SLOTS;
}

void
ls_trace_read_mesh (TraceReading *r, const LsMesh *mesh)
{
  const cJSON *node = list_of (r, "mesh");
  double n_ranks = (double) mesh->tp * mesh->cp * mesh->dp * mesh->pp;
  if (mesh->pp != r->plan->n_roles)
    ls_trace_complain (r, node, "pp", TRACE_ALL, "%u stages, but %u roles: every stage has a role", mesh->pp,
                       r->plan->n_roles);
  if (n_ranks > MAX_RANKS)
    ls_trace_complain (r, node, NULL, TRACE_ALL, "%.0f ranks; expected at most %u", n_ranks, MAX_RANKS);
  if (r->ok)
    ls_plan_bind_mesh (r->plan, mesh, slots_of (r));
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
  const cJSON *node = from ? list_of (r, "communicators")->child : NULL;
  for (uint32_t c = 0; c < plan->n_comms; c++, node = node->next) {
    const TraceCommunicator *f = &g_array_index (from, TraceCommunicator, c);
    LsCommunicator *to = &plan->comms[c];
    *to = (LsCommunicator) { .axis = (LsAxis) f->axis,
                             .spans_stages = f->spans_stages,
                             .n_ranks = f->n_ranks };
    to->offsets = ls_arena_new_array (plan->arena, uint32_t, MAX (1, f->n_ranks));
    if (f->n_ranks == 0)
      ls_trace_complain (r, node, "ranks", TRACE_ALL, "a communicator without members");
    for (uint32_t i = 0; i < f->n_ranks; i++) {
      uint32_t rank = to->offsets[i] = f->ranks[i];
      if (rank >= plan->n_ranks)
        ls_trace_complain (r, node, "ranks", i, "rank %u does not exist: there are %u", rank, plan->n_ranks);
      else if (seen_in[rank] == c + 1)
        ls_trace_complain (r, node, "ranks", i, "rank %u is a member twice", rank);
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
read_rank (TraceReading *r, const cJSON *node, uint32_t rank, const TraceRank *from)
{
  LsPlan *plan = r->plan;
  LsBinding *b = &plan->bindings[rank];
  b->role = from->role;
  plan->gpu_of_rank[rank] = from->gpu == LS_TRACE_ABSENT ? rank : from->gpu;
  for (int s = 0; s < LS_N_SLOTS; s++)
    b->comm[s] = b->member[s] = UINT32_MAX;
  memcpy (b->comm, from->comm, sizeof from->comm);
  memcpy (b->peer, from->peer, sizeof b->peer);
  if (from->role >= plan->n_roles)
    ls_trace_complain (r, node, "role", TRACE_ALL, "role %u does not exist: there are %u", from->role,
                       plan->n_roles);
  for (int i = 0; i < 2; i++)
    if (b->peer[i] != UINT32_MAX && (b->peer[i] >= plan->n_ranks || b->peer[i] == rank))
      ls_trace_complain (r, node, ls_slot_name ((LsSlot) (LS_SLOT_PREV + i)), TRACE_ALL,
                         "rank %u is not another rank: there are %u", b->peer[i], plan->n_ranks);
}

/* What the lists say of each other. */
static void
check_rank (TraceReading *r, const cJSON *node, uint32_t rank)
{
  const LsPlan *plan = r->plan;
  const LsBinding *b = &plan->bindings[rank];
  for (int s = 0; s < LS_SLOT_PREV; s++) {
    if (b->comm[s] == UINT32_MAX)
      continue;
    if (b->comm[s] >= plan->n_comms)
      ls_trace_complain (r, node, ls_slot_name ((LsSlot) s), TRACE_ALL,
                         "communicator %u does not exist: there are %u", b->comm[s], plan->n_comms);
    else if (b->member[s] == UINT32_MAX)
      ls_trace_complain (r, node, ls_slot_name ((LsSlot) s), TRACE_ALL,
                         "rank %u is not a member of communicator %u", rank, b->comm[s]);
  }
  for (int i = 0; i < 2; i++)
    if (b->peer[i] != UINT32_MAX && plan->bindings[b->peer[i]].peer[1 - i] != rank)
      ls_trace_complain (r, node, ls_slot_name ((LsSlot) (LS_SLOT_PREV + i)), TRACE_ALL,
                         "%s of rank %u is rank %u, but %s of that is another",
                         ls_slot_name ((LsSlot) (LS_SLOT_PREV + i)), rank, b->peer[i],
                         ls_slot_name ((LsSlot) (LS_SLOT_NEXT - i)));
}

void
ls_trace_read_ranks (TraceReading *r)
{
  const GArray *ranks = r->file->ranks;
  LsPlan *plan = r->plan;
  const cJSON *list = list_of (r, "ranks"), *node = list->child;
  if (ranks->len == 0 || ranks->len > MAX_RANKS) {
    ls_trace_complain (r, list, NULL, TRACE_ALL, "expected 1 to %u ranks; got %u", MAX_RANKS, ranks->len);
    return;
  }
  plan->n_ranks = ranks->len;
  plan->bindings = ls_arena_new_array (plan->arena, LsBinding, ranks->len);
  plan->gpu_of_rank = ls_arena_new_array (plan->arena, uint32_t, ranks->len);
  for (uint32_t i = 0; i < ranks->len; i++, node = node->next)
    read_rank (r, node, i, &g_array_index (ranks, TraceRank, i));
  read_communicators (r);
  if (!r->ok)
    return;
  bind_members (r);
  node = list->child;
  for (uint32_t i = 0; i < ranks->len; i++, node = node->next)
    check_rank (r, node, i);
}
