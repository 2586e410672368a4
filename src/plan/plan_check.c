/* The order of checks: bindings (roles, communicators, peers), then each program by
 * itself, then what ranks owe each other. Each step relies on those before it. */
#include "plan/plan_check.h"

#include <lockstep/error.h>
#include <string.h>

/* --- programs whose events and buffers come and go alike: one is looked at for all --------------- */

/* Problem. Where ranks have experts of different load each has a program of its own, which differs in shapes
 * and bytes only.
 *
 * Method. Two segments are of one shape if they record and wait for the same events and allocate and free the
 * same buffers, of the same categories, in the same order; two programs if their instances are, for the same
 * micro-batches and chunks. What check_lifetimes() finds right in one is right in the other, but for bytes: a
 * buffer is to be freed as what was allocated. That holds wherever all events of a program that have one
 * buffer id and chunk have the same bytes, else the program is looked at by itself. */

typedef struct {
  uint32_t role; /* + 1: whose; else nothing is known */
  uint64_t bytes;
} Bytes;

struct LsPlanShapes {
  const LsPlan *plan;
  uint32_t *shape;      /* [n_segments]                                             */
  GHashTable *programs; /* GBytes: those that were asked for                        */
  uint32_t *seen;       /* [n_segments * n_chunks] role + 1 that was last there     */
  Bytes *bytes;         /* [n_chunks * ID_END] of the role at hand                  */
};

#define ID_END (UINT16_MAX + 1u)

static void
append_shape (GByteArray *text, const LsOp *op)
{
  bool has_event = ls_op_has (op->kind, LS_HAS_EVENT);
  if (!has_event && op->n_buffers == 0)
    return;
  uint16_t head[] = { has_event ? op->kind : LS_N_OP_KINDS, has_event ? op->event : 0, op->n_buffers };
  g_byte_array_append (text, (const guint8 *) head, sizeof head);
  for (uint32_t i = 0; i < op->n_buffers; i++) {
    const LsBufferEvent *b = &op->buffers[i];
    uint16_t buffer[] = { b->id, b->category, b->is_free };
    g_byte_array_append (text, (const guint8 *) buffer, sizeof buffer);
  }
}

static void
find_shapes (LsPlanShapes *x)
{
  g_autoptr (GHashTable) ids
      = g_hash_table_new_full (g_bytes_hash, g_bytes_equal, (GDestroyNotify) g_bytes_unref, NULL);
  for (uint32_t s = 0; s < x->plan->n_segments; s++) {
    const LsSegment *seg = &x->plan->segments[s];
    GByteArray *text = g_byte_array_new ();
    for (uint32_t o = 0; o < seg->n_ops; o++)
      append_shape (text, &seg->ops[o]);
    GBytes *key = g_byte_array_free_to_bytes (text);
    gpointer id = g_hash_table_lookup (ids, key);
    x->shape[s] = id ? GPOINTER_TO_UINT (id) : g_hash_table_size (ids) + 1;
    if (id)
      g_bytes_unref (key);
    else
      g_hash_table_insert (ids, key, GUINT_TO_POINTER (x->shape[s]));
  }
}

LsPlanShapes *
ls_plan_shapes_new (const LsPlan *plan)
{
  LsPlanShapes *x = g_new0 (LsPlanShapes, 1);
  x->plan = plan;
  x->shape = g_new (uint32_t, plan->n_segments + 1);
  x->programs = g_hash_table_new_full (g_bytes_hash, g_bytes_equal, (GDestroyNotify) g_bytes_unref, NULL);
  x->seen = g_new0 (uint32_t, (gsize) plan->n_segments * plan->n_chunks + 1);
  x->bytes = g_new0 (Bytes, (gsize) plan->n_chunks * ID_END + 1);
  find_shapes (x);
  return x;
}

void
ls_plan_shapes_free (LsPlanShapes *x)
{
  if (!x)
    return;
  g_free (x->shape);
  g_hash_table_unref (x->programs);
  g_free (x->seen);
  g_free (x->bytes);
  g_free (x);
}

static bool
is_new_name_or_same (LsPlanShapes *x, uint32_t role, uint16_t chunk, const LsBufferEvent *b)
{
  Bytes *known = &x->bytes[(gsize) chunk * ID_END + b->id];
  if (known->role == role + 1)
    return known->bytes == b->bytes;
  *known = (Bytes) { role + 1, b->bytes };
  return true;
}

/* All that one buffer id and chunk names has the same bytes. */
static bool
has_bytes_by_name (LsPlanShapes *x, uint32_t role)
{
  const LsProgram *p = &x->plan->programs[role];
  for (uint32_t i = 0; i < p->n_instances; i++) {
    const LsInstance *in = &p->instances[i];
    uint32_t *seen = &x->seen[(gsize) in->segment * x->plan->n_chunks + in->chunk];
    if (*seen == role + 1)
      continue;
    *seen = role + 1;
    const LsSegment *seg = &x->plan->segments[in->segment];
    for (uint32_t o = 0; o < seg->n_ops; o++)
      for (uint32_t b = 0; b < seg->ops[o].n_buffers; b++)
        if (!is_new_name_or_same (x, role, in->chunk, &seg->ops[o].buffers[b]))
          return false;
  }
  return true;
}

static GBytes *
shape_of_program (const LsPlanShapes *x, uint32_t role)
{
  const LsProgram *p = &x->plan->programs[role];
  gsize n = 2 + 3 * (gsize) p->n_instances;
  uint32_t *text = g_new (uint32_t, n), *end = text;
  *end++ = p->n_lead;
  *end++ = p->n_events;
  for (uint32_t i = 0; i < p->n_instances; i++) {
    *end++ = x->shape[p->instances[i].segment];
    *end++ = p->instances[i].mb;
    *end++ = p->instances[i].chunk;
  }
  return g_bytes_new_take (text, n * sizeof *text);
}

bool
ls_plan_shapes_is_known (LsPlanShapes *x, uint32_t role)
{
  GBytes *key = shape_of_program (x, role);
  bool is_known = g_hash_table_contains (x->programs, key);
  g_hash_table_add (x->programs, key);
  return is_known && has_bytes_by_name (x, role);
}

/* The order of checks: bindings (roles, communicators, peers), then each program by itself, then what
 * ranks owe each other. */

gboolean
ls_op_next (const LsPlan *plan, LsOpPlace *at)
{
  const LsProgram *program = &plan->programs[at->role];
  at->op++; /* UINT32_MAX wraps to the first */
  while (at->instance < program->n_instances) {
    if (at->op < plan->segments[program->instances[at->instance].segment].n_ops)
      return TRUE;
    at->instance++;
    at->op = 0;
  }
  return FALSE;
}

gboolean
ls_plan_fail (LsPlanFault *fault, const LsPlan *plan, uint32_t rank, LsOpPlace at, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);

  fault->at = at;
  const LsInstance *instance = &plan->programs[at.role].instances[at.instance];
  const LsSegment *segment = &plan->segments[instance->segment];
  g_set_error (&fault->error, LS_ERROR, LS_ERROR_INPUT,
               "rank %u (role %u), instance %u (%s, micro-batch %u, chunk %u), op %u (%s): %s", rank, at.role,
               at.instance, segment->name, instance->mb, instance->chunk, at.op, segment->ops[at.op].name,
               message);
  return FALSE;
}

static G_GNUC_PRINTF (2, 3) gboolean fail (LsPlanFault *fault, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error_literal (&fault->error, LS_ERROR, LS_ERROR_INPUT, message);
  return FALSE;
}

/* ---- bindings ---- */

static gboolean
check_communicators (const LsPlan *plan, LsPlanFault *fault)
{
  /* The last communicator that was seen to hold a rank, plus one. */
  g_autofree uint32_t *seen_in = g_new0 (uint32_t, plan->n_ranks);

  for (uint32_t c = 0; c < plan->n_comms; c++) {
    const LsCommunicator comm = ls_plan_communicator (plan, c);
    if (comm.n_ranks == 0)
      return fail (fault, "communicator %u: has no members", c);
    if ((unsigned) comm.axis >= LS_N_AXES)
      return fail (fault, "communicator %u: axis %u does not exist", c, (unsigned) comm.axis);
    for (uint32_t i = 0; i < comm.n_ranks; i++) {
      uint32_t rank = ls_comm_rank (&comm, i);
      if (rank >= plan->n_ranks)
        return fail (fault, "communicator %u: member %u is rank %u, but there are %u ranks", c, i, rank,
                     plan->n_ranks);
      if (seen_in[rank] == c + 1)
        return fail (fault, "communicator %u: rank %u is a member twice", c, rank);
      seen_in[rank] = c + 1;
    }
  }
  return TRUE;
}

static gboolean
check_binding (const LsPlan *plan, uint32_t rank, LsPlanFault *fault)
{
  const LsBinding b = ls_plan_binding (plan, rank);
  if (b.role >= plan->n_roles)
    return fail (fault, "rank %u: role %u does not exist", rank, b.role);

  for (uint32_t slot = 0; slot < LS_N_SLOTS; slot++) {
    uint32_t c = b.comm[slot];
    if (c == UINT32_MAX || ls_slot_is_peer (slot))
      continue;
    if (c >= plan->n_comms)
      return fail (fault, "rank %u: slot %s is bound to communicator %u, but there are %u", rank,
                   ls_slot_name (slot), c, plan->n_comms);
    uint32_t member = b.member[slot];
    if (member >= ls_plan_communicator (plan, c).n_ranks || ls_plan_member (plan, c, member) != rank)
      return fail (fault, "rank %u: slot %s says that it is member %u of communicator %u, which it is not",
                   rank, ls_slot_name (slot), member, c);
  }

  for (uint32_t i = 0; i < G_N_ELEMENTS (b.peer); i++)
    if (b.peer[i] != UINT32_MAX && (b.peer[i] >= plan->n_ranks || b.peer[i] == rank))
      return fail (fault, "rank %u: the peer at slot %s is rank %u, which is not another rank", rank,
                   ls_slot_name (LS_SLOT_PREV + i), b.peer[i]);
  return TRUE;
}

/* Neighbours are neighbours of each other: what goes to the next comes from its previous. */
static gboolean
check_peers (const LsPlan *plan, LsPlanFault *fault)
{
  for (uint32_t rank = 0; rank < plan->n_ranks; rank++)
    for (guint i = 0; i < 2; i++) {
      uint32_t peer = ls_plan_peer (plan, rank, i);
      uint32_t back = peer == UINT32_MAX ? UINT32_MAX : ls_plan_peer (plan, peer, 1 - i);
      if (back != UINT32_MAX && back != rank)
        return fail (fault, "rank %u: the peer at slot %s is rank %u, at whose slot %s is rank %u", rank,
                     ls_slot_name (LS_SLOT_PREV + i), peer, ls_slot_name (LS_SLOT_PREV + 1 - i), back);
    }
  return TRUE;
}

static gboolean
check_gpus (const LsPlan *plan, LsPlanFault *fault)
{
  g_autoptr (GHashTable) rank_of_gpu = g_hash_table_new (NULL, NULL);
  for (uint32_t rank = 0; rank < plan->n_ranks; rank++)
    if (!g_hash_table_insert (rank_of_gpu, GUINT_TO_POINTER (ls_plan_gpu (plan, rank)),
                              GUINT_TO_POINTER (rank)))
      return fail (fault, "rank %u: gpu %u has a rank already", rank, ls_plan_gpu (plan, rank));
  return TRUE;
}

static gboolean
find_rank_of_roles (const LsPlan *plan, uint32_t *ret_rank_of_role, LsPlanFault *fault)
{
  for (uint32_t role = 0; role < plan->n_roles; role++)
    ret_rank_of_role[role] = UINT32_MAX;
  for (uint32_t rank = plan->n_ranks; rank-- > 0;)
    ret_rank_of_role[ls_plan_role (plan, rank)] = rank;
  for (uint32_t role = 0; role < plan->n_roles; role++)
    if (ret_rank_of_role[role] == UINT32_MAX)
      return fail (fault, "role %u: no rank runs it", role);
  return TRUE;
}

static gboolean
check_all (const LsPlan *plan, LsPlanFault *fault)
{
  if (!check_communicators (plan, fault))
    return FALSE;
  for (uint32_t rank = 0; rank < plan->n_ranks; rank++)
    if (!check_binding (plan, rank, fault))
      return FALSE;
  if (!check_peers (plan, fault) || !check_gpus (plan, fault))
    return FALSE;

  g_autofree uint32_t *rank_of_role = g_new (uint32_t, plan->n_roles);
  if (!find_rank_of_roles (plan, rank_of_role, fault))
    return FALSE;
  LsPlanCheck check = { .plan = plan, .rank_of_role = rank_of_role };
  return ls_plan_check_programs (&check, fault) && ls_plan_check_matches (&check, fault);
}

gboolean
ls_plan_check_at (const LsPlan *plan, LsOpPlace *reterr_at, GError **error)
{
  LsPlanFault fault = { .at = { .role = UINT32_MAX } };
  if (check_all (plan, &fault))
    return TRUE;
  *reterr_at = fault.at;
  g_propagate_error (error, fault.error);
  return FALSE;
}

gboolean
ls_plan_check (const LsPlan *plan, GError **error)
{
  LsOpPlace at;
  return ls_plan_check_at (plan, &at, error);
}
