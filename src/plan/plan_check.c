/* plan/plan_check.c — what must hold of a plan. The order of checks: bindings (roles, communicators, peers),
 * then each program by itself, then what ranks owe each other. Each step relies on those before it. */

#include <lockstep/error.h>

#include "base/digest.h"
#include "plan/plan.h"

/* The first thing that is wrong, and which op is at fault; role UINT32_MAX: no one op. */
typedef struct {
  GError *error;
  LsOpPlace at;
} Fault;

/* A plan whose indices are known to be in range, and a rank of every role. */
typedef struct {
  const LsPlan *plan;
  const uint32_t *rank_of_role; /* [n_roles] the first that runs it */
} Check;

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

/* Sets the error to LS_ERROR_INPUT: rank and role, and where the op is; "rank 3 (role 1),
 * instance 17 (forward, micro-batch 2, chunk 0), op 5 (qkv): ...". Returns FALSE. */
static G_GNUC_PRINTF (5, 6) gboolean
    fail_at (Fault *fault, const LsPlan *plan, uint32_t rank, LsOpPlace at, const char *format, ...)
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

static G_GNUC_PRINTF (2, 3) gboolean fail (Fault *fault, const char *format, ...)
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
check_communicators (const LsPlan *plan, Fault *fault)
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
check_binding (const LsPlan *plan, uint32_t rank, Fault *fault)
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
                   ls_slot_names[slot].name, c, plan->n_comms);
    uint32_t member = b.member[slot];
    if (member >= ls_plan_communicator (plan, c).n_ranks || ls_plan_member (plan, c, member) != rank)
      return fail (fault, "rank %u: slot %s says that it is member %u of communicator %u, which it is not",
                   rank, ls_slot_names[slot].name, member, c);
  }

  for (uint32_t i = 0; i < G_N_ELEMENTS (b.peer); i++)
    if (b.peer[i] != UINT32_MAX && (b.peer[i] >= plan->n_ranks || b.peer[i] == rank))
      return fail (fault, "rank %u: the peer at slot %s is rank %u, which is not another rank", rank,
                   ls_slot_names[LS_SLOT_PREV + i].name, b.peer[i]);
  return TRUE;
}

/* Neighbours are neighbours of each other: what goes to the next comes from its previous. */
static gboolean
check_peers (const LsPlan *plan, Fault *fault)
{
  for (uint32_t rank = 0; rank < plan->n_ranks; rank++)
    for (guint i = 0; i < 2; i++) {
      uint32_t peer = ls_plan_peer (plan, rank, i);
      uint32_t back = peer == UINT32_MAX ? UINT32_MAX : ls_plan_peer (plan, peer, 1 - i);
      if (back != UINT32_MAX && back != rank)
        return fail (fault, "rank %u: the peer at slot %s is rank %u, at whose slot %s is rank %u", rank,
                     ls_slot_names[LS_SLOT_PREV + i].name, peer, ls_slot_names[LS_SLOT_PREV + 1 - i].name,
                     back);
    }
  return TRUE;
}

static gboolean
check_gpus (const LsPlan *plan, Fault *fault)
{
  g_autoptr (GHashTable) rank_of_gpu = g_hash_table_new (NULL, NULL);
  for (uint32_t rank = 0; rank < plan->n_ranks; rank++)
    if (!g_hash_table_insert (rank_of_gpu, GUINT_TO_POINTER (ls_plan_gpu (plan, rank)),
                              GUINT_TO_POINTER (rank)))
      return fail (fault, "rank %u: gpu %u has a rank already", rank, ls_plan_gpu (plan, rank));
  return TRUE;
}

static gboolean
find_rank_of_roles (const LsPlan *plan, uint32_t *ret_rank_of_role, Fault *fault)
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

/* ---- plan check local ---- */

/* What a program must keep by itself: indices in range, dependencies on earlier ops
 * only (hence no cycle), a binding for every slot it uses, events recorded before they
 * are waited for, buffers allocated and freed in turn. */

/* ---- one op of a segment, whichever instance runs it ---- */

/* The first broken rule of an op's own fields, newly allocated, or NULL. */
static char *
field_fault (const LsPlan *plan, const LsOp *op)
{
  const struct {
    const char *name;
    uint32_t value, limit;
  } ranges[] = {
    { "kind", op->kind, LS_N_OP_KINDS }, { "stream", op->stream, LS_N_STREAMS },
    { "tag", op->tag, LS_N_TAGS },       { "host cost", op->host, LS_N_HOST_COSTS },
    { "slot", op->slot, LS_N_SLOTS },    { "dtype", op->dtype, LS_N_DTYPES },
  };
  for (guint i = 0; i < G_N_ELEMENTS (ranges); i++)
    if (ranges[i].value >= ranges[i].limit)
      return g_strdup_printf ("%s %u does not exist", ranges[i].name, ranges[i].value);

  if (op->recorded < 0)
    return g_strdup ("its recorded duration is negative");
  const LsOpKindRow *row = &ls_op_kinds[op->kind];
  bool is_timed = row->has & LS_HAS_BESIDE && op->recorded != LS_TIME_NEVER;
  if (op->beside != 0 && (!is_timed || op->beside < 0 || op->beside > op->recorded))
    return g_strdup ("only a part of a kernel's recorded duration may be together with communication");
  if (op->repeat > 1 && !(row->has & LS_HAS_REPEAT))
    return g_strdup_printf ("repeat %u: only kernels and host delays have it", op->repeat);
  char *own = row->fault ? row->fault (plan, op) : NULL;
  if (own)
    return own;
  if (op->parts != LS_PARTS_EQUAL
      && (op->parts >= LS_N_PARTS_KINDS || !(row->has & LS_HAS_CALL) || plan->n_weights == 0))
    return g_strdup_printf ("parts %u: unequal ones need a collective, and weights", op->parts);
  if (((row->has & LS_HAS_TRANSFERS) != 0) != (op->n_transfers > 0))
    return g_strdup_printf ("%u transfers; a p2p group has some and no other op has any", op->n_transfers);
  return NULL;
}

static char *
list_fault (const LsOp *op, uint32_t index)
{
  for (uint32_t i = 0; i < op->n_deps; i++) {
    const LsDep *dep = &op->deps[i];
    if (dep->kind > LS_DEP_STREAM)
      return g_strdup_printf ("dependency %u: kind %u does not exist", i, dep->kind);
    if (dep->kind == LS_DEP_STREAM && dep->index >= LS_N_STREAMS)
      return g_strdup_printf ("dependency %u: stream %u does not exist", i, dep->index);
    if (dep->kind != LS_DEP_STREAM && dep->index >= index)
      return g_strdup_printf ("dependency %u: op %u does not come before it", i, dep->index);
  }
  for (uint32_t i = 0; i < op->n_transfers; i++)
    if (!ls_slot_is_peer (op->transfers[i].slot))
      return g_strdup_printf ("transfer %u: slot %u is neither prev nor next", i, op->transfers[i].slot);
  for (uint32_t i = 0; i < op->n_buffers; i++) {
    const LsBufferEvent *b = &op->buffers[i];
    if (b->category >= LS_N_MEM)
      return g_strdup_printf ("buffer %u: category %u does not exist", b->id, b->category);
    if (b->when > LS_AT_END)
      return g_strdup_printf ("buffer %u: instant %u does not exist", b->id, b->when);
  }
  return NULL;
}

static gboolean
check_segment (const Check *check, uint32_t role, uint32_t instance, Fault *fault)
{
  const LsPlan *plan = check->plan;
  const LsSegment *segment = &plan->segments[plan->programs[role].instances[instance].segment];

  for (uint32_t i = 0; i < segment->n_ops; i++) {
    g_autofree char *what = field_fault (plan, &segment->ops[i]);
    if (!what)
      what = list_fault (&segment->ops[i], i);
    if (what)
      return fail_at (fault, plan, check->rank_of_role[role], (LsOpPlace) { role, instance, i }, "%s", what);
  }
  return TRUE;
}

/* ---- instances ---- */

static gboolean
check_instance (const Check *check, uint32_t role, uint32_t instance, Fault *fault)
{
  const LsPlan *plan = check->plan;
  const LsInstance *in = &plan->programs[role].instances[instance];
  const struct {
    const char *name;
    uint32_t value, limit;
  } ranges[] = {
    { "segment", in->segment, plan->n_segments },
    { "micro-batch", in->mb, plan->n_micro_batches },
    { "chunk", in->chunk, plan->n_chunks },
  };

  for (guint i = 0; i < G_N_ELEMENTS (ranges); i++)
    if (ranges[i].value >= ranges[i].limit)
      return fail (fault, "rank %u (role %u), instance %u: %s %u does not exist", check->rank_of_role[role],
                   role, instance, ranges[i].name, ranges[i].value);
  return TRUE;
}

static gboolean
check_lead (const Check *check, uint32_t role, Fault *fault)
{
  const LsProgram *p = &check->plan->programs[role];
  if (p->n_lead == 0 || p->n_lead < p->n_instances)
    return TRUE;
  return fail (fault, "rank %u (role %u): %u of its %u instances are for the first step only",
               check->rank_of_role[role], role, p->n_lead, p->n_instances);
}

/* Segments are shared, so each is looked at once, where it first runs. */
static gboolean
check_ranges (const Check *check, Fault *fault)
{
  const LsPlan *plan = check->plan;
  g_autofree gboolean *is_checked = g_new0 (gboolean, plan->n_segments);

  for (uint32_t role = 0; role < plan->n_roles; role++) {
    if (!check_lead (check, role, fault))
      return FALSE;
    for (uint32_t i = 0; i < plan->programs[role].n_instances; i++) {
      if (!check_instance (check, role, i, fault))
        return FALSE;
      uint32_t segment = plan->programs[role].instances[i].segment;
      if (is_checked[segment])
        continue;
      if (!check_segment (check, role, i, fault))
        return FALSE;
      is_checked[segment] = TRUE;
    }
  }
  return TRUE;
}

/* ---- slots ---- */

/* The slots that an op uses, as a bit set. */
static uint32_t
slots_of (const LsOp *op)
{
  uint32_t slots = ls_op_has (op->kind, LS_HAS_CALL) ? 1u << op->slot : 0;
  for (uint32_t i = 0; i < op->n_transfers; i++)
    slots |= 1u << op->transfers[i].slot;
  return slots;
}

/* How a program uses a slot. */
typedef struct {
  LsOpPlace first;
  uint32_t max_root;  /* of its calls */
  LsOpPlace with_max; /* the first such call */
} SlotUse;

static uint32_t
add_slots_of_op (const LsOp *op, LsOpPlace at, uint32_t used, SlotUse uses[LS_N_SLOTS])
{
  uint32_t fresh = slots_of (op) & ~used;
  for (uint32_t slot = 0; slot < LS_N_SLOTS; slot++)
    if (fresh >> slot & 1)
      uses[slot] = (SlotUse) { .first = at, .with_max = at };
  if (ls_op_has (op->kind, LS_HAS_CALL) && op->root > uses[op->slot].max_root) {
    uses[op->slot].max_root = op->root;
    uses[op->slot].with_max = at;
  }
  return used | fresh;
}

/* Returns the set of slots that a program uses, and fills theirs. seen: [n_segments], role + 1 of whoever ran
 * the segment last; another instance of one adds nothing. */
static uint32_t
find_slots (const LsPlan *plan, uint32_t role, uint32_t *seen, SlotUse ret_uses[LS_N_SLOTS])
{
  const LsProgram *p = &plan->programs[role];
  uint32_t used = 0;
  for (uint32_t i = 0; i < p->n_instances; i++) {
    const LsSegment *seg = &plan->segments[p->instances[i].segment];
    if (seen[p->instances[i].segment] == role + 1)
      continue;
    seen[p->instances[i].segment] = role + 1;
    for (uint32_t o = 0; o < seg->n_ops; o++)
      used = add_slots_of_op (&seg->ops[o], (LsOpPlace) { role, i, o }, used, ret_uses);
  }
  return used;
}

static gboolean
check_slot (const LsPlan *plan, uint32_t rank, uint32_t slot, const SlotUse *use, Fault *fault)
{
  const LsBinding b = ls_plan_binding (plan, rank);
  if ((ls_slot_is_peer (slot) ? b.peer[slot - LS_SLOT_PREV] : b.comm[slot]) == UINT32_MAX)
    return fail_at (fault, plan, rank, use->first, "slot %s is not bound", ls_slot_names[slot].name);
  if (ls_slot_is_peer (slot))
    return TRUE;
  uint32_t n = ls_plan_communicator (plan, b.comm[slot]).n_ranks;
  return use->max_root < n
      || fail_at (fault, plan, rank, use->with_max, "root %u does not exist: communicator %u has %u members",
                  use->max_root, b.comm[slot], n);
}

static gboolean
check_slots (const Check *check, Fault *fault)
{
  const LsPlan *plan = check->plan;
  g_autofree uint32_t *used = g_new (uint32_t, plan->n_roles);
  g_autofree SlotUse *uses = g_new (SlotUse, (gsize) plan->n_roles * LS_N_SLOTS);
  g_autofree uint32_t *seen = g_new0 (uint32_t, plan->n_segments + 1);

  for (uint32_t role = 0; role < plan->n_roles; role++)
    used[role] = find_slots (plan, role, seen, &uses[role * LS_N_SLOTS]);

  for (uint32_t rank = 0; rank < plan->n_ranks; rank++) {
    uint32_t role = ls_plan_role (plan, rank);
    for (uint32_t slot = 0; slot < LS_N_SLOTS; slot++)
      if ((used[role] >> slot & 1) && !check_slot (plan, rank, slot, &uses[role * LS_N_SLOTS + slot], fault))
        return FALSE;
  }
  return TRUE;
}

/* ---- events and buffers: named by (id, micro-batch, chunk) within a program ---- */

static gpointer
key_of (const LsPlan *plan, LsOpPlace at, const LsBufferEvent *b)
{
  return ls_buffer_key (&plan->programs[at.role].instances[at.instance], b);
}

/* Where the last buffer of that name before b, of an op, was allocated. */
static LsOpPlace
find_allocation (const LsPlan *plan, LsOpPlace at, const LsBufferEvent *b)
{
  LsOpPlace found = at;
  for (LsOpPlace i = LS_OP_BEFORE (at.role); ls_op_next (plan, &i);) {
    const LsOp *op = ls_op_at (plan, i);
    for (uint32_t k = 0; k < op->n_buffers; k++) {
      if (&op->buffers[k] == b && i.instance == at.instance)
        return found;
      if (!op->buffers[k].is_free && key_of (plan, i, &op->buffers[k]) == key_of (plan, at, b))
        found = i;
    }
  }
  g_assert_not_reached ();
}

static gboolean
check_event (const Check *check, LsOpPlace at, GHashTable *recorded, Fault *fault)
{
  const LsPlan *plan = check->plan;
  const LsOp *op = ls_op_at (plan, at);
  if (!ls_op_has (op->kind, LS_HAS_EVENT))
    return TRUE;

  uint32_t n_events = plan->programs[at.role].n_events;
  if (ls_op_kinds[op->kind].records && op->event == LS_EVENT_NONE)
    return TRUE;
  if (op->event >= n_events)
    return fail_at (fault, plan, check->rank_of_role[at.role], at,
                    "event %u does not exist: the program has %u", op->event, n_events);

  gpointer key = ls_name_key (&plan->programs[at.role].instances[at.instance], op->event);
  if (ls_op_kinds[op->kind].records)
    g_hash_table_add (recorded, key);
  else if (!g_hash_table_contains (recorded, key))
    return fail_at (fault, plan, check->rank_of_role[at.role], at,
                    "waits for event %u, which nothing before it records for this micro-batch and chunk",
                    op->event);
  return TRUE;
}

static gboolean
check_buffer (const Check *check, LsOpPlace at, const LsBufferEvent *b, GHashTable *alive, Fault *fault)
{
  const LsPlan *plan = check->plan;
  uint32_t rank = check->rank_of_role[at.role];
  gpointer key = key_of (plan, at, b);
  const LsBufferEvent *old = g_hash_table_lookup (alive, key);

  if (!b->is_free && old) {
    const LsOpPlace since = find_allocation (plan, at, b);
    return fail_at (fault, plan, rank, at, "allocates buffer %u, which is alive since instance %u, op %u",
                    b->id, since.instance, since.op);
  }
  if (!b->is_free)
    return g_hash_table_insert (alive, key, (gpointer) b);
  if (!old)
    return fail_at (fault, plan, rank, at, "frees buffer %u, which is not alive", b->id);
  if (old->bytes != b->bytes || old->category != b->category)
    return fail_at (fault, plan, rank, at,
                    "frees buffer %u as %" G_GUINT64_FORMAT " bytes of %s; allocated as "
                    "%" G_GUINT64_FORMAT " of %s",
                    b->id, b->bytes, ls_mem_category_names[b->category].name, old->bytes,
                    ls_mem_category_names[old->category].name);
  return g_hash_table_remove (alive, key);
}

/* Reports the first that is left, in issue order. */
static gboolean
fail_alive (const Check *check, uint32_t role, GHashTable *alive, Fault *fault)
{
  const LsPlan *plan = check->plan;
  for (LsOpPlace at = LS_OP_BEFORE (role); ls_op_next (plan, &at);) {
    const LsOp *op = ls_op_at (plan, at);
    for (uint32_t i = 0; i < op->n_buffers; i++) {
      const LsBufferEvent *b = &op->buffers[i];
      if (g_hash_table_lookup (alive, key_of (plan, at, b)) == b)
        return fail_at (fault, plan, check->rank_of_role[role], at,
                        "buffer %u (%" G_GUINT64_FORMAT " bytes of %s) is never freed", b->id, b->bytes,
                        ls_mem_category_names[b->category].name);
    }
  }
  g_assert_not_reached ();
}

/* Their names, as a set. */
static GHashTable *
keys_of (GHashTable *alive)
{
  GHashTable *keys = g_hash_table_new (ls_name_hash, NULL);
  GHashTableIter iter;
  gpointer key;
  g_hash_table_iter_init (&iter, alive);
  while (g_hash_table_iter_next (&iter, &key, NULL))
    g_hash_table_add (keys, key);
  return keys;
}

/* What is alive when a step begins must be so when the next one does; takes it from alive. */
static gboolean
check_carried (const Check *check, uint32_t role, GHashTable *at_begin, GHashTable *alive, Fault *fault)
{
  const LsPlan *plan = check->plan;
  for (LsOpPlace at = LS_OP_BEFORE (role);
       ls_op_next (plan, &at) && at.instance < plan->programs[role].n_lead;) {
    const LsOp *op = ls_op_at (plan, at);
    for (uint32_t i = 0; i < op->n_buffers; i++) {
      gpointer key = key_of (plan, at, &op->buffers[i]);
      if (g_hash_table_remove (at_begin, key) && !g_hash_table_remove (alive, key))
        return fail_at (fault, plan, check->rank_of_role[role], at,
                        "buffer %u is alive when the first step begins, but not when the next one does",
                        op->buffers[i].id);
    }
  }
  return TRUE;
}

static gboolean
check_lifetimes (const Check *check, uint32_t role, Fault *fault)
{
  g_autoptr (GHashTable) recorded = g_hash_table_new (ls_name_hash, NULL); /* names of events */
  g_autoptr (GHashTable) alive = g_hash_table_new (ls_name_hash, NULL);    /* names > LsBufferEvent */
  const LsProgram *program = &check->plan->programs[role];
  g_autoptr (GHashTable) at_begin = NULL;
  for (LsOpPlace at = LS_OP_BEFORE (role); ls_op_next (check->plan, &at);) {
    if (!at_begin && at.instance >= program->n_lead)
      at_begin = keys_of (alive);
    if (!check_event (check, at, recorded, fault))
      return FALSE;
    const LsOp *op = ls_op_at (check->plan, at);
    for (uint32_t i = 0; i < op->n_buffers; i++)
      if (!check_buffer (check, at, &op->buffers[i], alive, fault))
        return FALSE;
  }
  if (at_begin && !check_carried (check, role, at_begin, alive, fault))
    return FALSE;
  return g_hash_table_size (alive) == 0 || fail_alive (check, role, alive, fault);
}

/* What one program must keep by itself. */
static gboolean
check_programs (const Check *check, Fault *fault)
{
  if (!check_ranges (check, fault) || !check_slots (check, fault))
    return FALSE;
  for (uint32_t role = 0; role < check->plan->n_roles; role++)
    if (!check_lifetimes (check, role, fault))
      return FALSE;
  return TRUE;
}

/* ---- what ranks owe each other ---- */

/* The members of a communicator make the same calls in the
 * same order, and what one rank sends to another is what that one receives.
 *
 * Ranks of a role make the same calls, so a sequence is hashed once per (role, slots)
 * and ranks compare hashes: O(ops of all roles + ranks). Only when two differ are both
 * walked again, to name the first call that does. If a rank binds several slots to one
 * communicator, or both its neighbours are one rank (pp 2), their traffic is one
 * sequence: that is how NCCL matches it. */

typedef enum { CALLS, SENDS, RECEIVES } Traffic;

/* ---- a sequence, item by item ---- */

typedef struct {
  uint64_t bytes;
  uint8_t coll, algorithm, dtype, parts; /* calls only */
  uint32_t root;                         /* calls only */
  bool carries_scores;                   /* calls only */
} Item;

typedef struct {
  Traffic traffic;
  uint32_t slots;                   /* bit set */
  const uint32_t *slots_of_segment; /* those without any of `slots` are passed over; NULL: none */
  LsOpPlace at;
  const LsOp *op; /* at `at`; NULL before the first */
  uint32_t next_transfer;
} Cursor;

static Cursor
cursor (uint32_t role, Traffic traffic, uint32_t slots)
{
  return (Cursor) { .traffic = traffic, .slots = slots, .at = LS_OP_BEFORE (role) };
}

static gboolean
next_transfer (Cursor *c, Item *ret_item)
{
  while (c->next_transfer < c->op->n_transfers) {
    const LsTransfer *t = &c->op->transfers[c->next_transfer++];
    if ((c->slots >> t->slot & 1) && !!t->is_send == (c->traffic == SENDS)) {
      *ret_item = (Item) { .bytes = t->bytes };
      return TRUE;
    }
  }
  return FALSE;
}

/* To the last op of a segment that has nothing to do with the slots, before its first is looked at. */
static gboolean
pass_over (const LsPlan *plan, Cursor *c)
{
  uint32_t segment = plan->programs[c->at.role].instances[c->at.instance].segment;
  if (c->at.op > 0 || !c->slots_of_segment || (c->slots_of_segment[segment] & c->slots))
    return FALSE;
  c->at.op = plan->segments[segment].n_ops - 1;
  return TRUE;
}

static gboolean
next_item (const LsPlan *plan, Cursor *c, Item *ret_item)
{
  if (c->op && c->traffic != CALLS && next_transfer (c, ret_item))
    return TRUE;
  while (ls_op_next (plan, &c->at)) {
    if (pass_over (plan, c))
      continue;
    c->op = ls_op_at (plan, c->at);
    c->next_transfer = 0;
    if (c->traffic != CALLS) {
      if (next_transfer (c, ret_item))
        return TRUE;
    } else if (ls_op_has (c->op->kind, LS_HAS_CALL) && (c->slots >> c->op->slot & 1)) {
      *ret_item = (Item) { .bytes = c->op->bytes,
                           .coll = c->op->coll,
                           .algorithm = c->op->algorithm,
                           .dtype = c->op->dtype,
                           .root = c->op->root,
                           .parts = c->op->parts,
                           .carries_scores = c->op->carries_scores };
      return TRUE;
    }
  }
  return FALSE;
}

static gboolean
item_equal (const Item *a, const Item *b)
{
  return a->bytes == b->bytes && a->coll == b->coll && a->algorithm == b->algorithm && a->dtype == b->dtype
      && a->root == b->root && a->parts == b->parts && a->carries_scores == b->carries_scores;
}

/* ---- hashes of sequences, each computed once ---- */

typedef struct {
  GHashTable *of; /* Sequence, by its key */
  uint32_t *slots_of_segment;
} Sequences;

typedef struct {
  gint64 key;
  uint64_t n_items;
  uint64_t digest;
} Sequence;

static Sequence *
sequence_new (const LsPlan *plan, gint64 key, Cursor c)
{
  LsDigest digest;
  ls_digest_init (&digest);
  uint64_t n_items = 0;
  for (Item item; next_item (plan, &c, &item); n_items++) {
    ls_digest_u64 (&digest, item.bytes);
    ls_digest_u64 (&digest,
                   (uint64_t) item.parts << 56 | (uint64_t) item.carries_scores << 48
                       | (uint64_t) item.root << 16 | (uint64_t) item.coll << 8 | item.dtype);
  }

  Sequence *s = g_new (Sequence, 1);
  *s = (Sequence) { .key = key, .n_items = n_items, .digest = ls_digest_get (&digest) };
  return s;
}

static const Sequence *
sequence_of (const LsPlan *plan, const Sequences *sequences, uint32_t role, Traffic traffic, uint32_t slots)
{
  gint64 key = (gint64) ((uint64_t) role << 32 | (uint32_t) traffic << 16 | slots);
  Sequence *s = g_hash_table_lookup (sequences->of, &key);
  if (!s) {
    Cursor c = cursor (role, traffic, slots);
    c.slots_of_segment = sequences->slots_of_segment;
    s = sequence_new (plan, key, c);
    g_hash_table_insert (sequences->of, &s->key, s);
  }
  return s;
}

static uint32_t *
slots_of_segments (const LsPlan *plan)
{
  uint32_t *slots = g_new0 (uint32_t, plan->n_segments);
  for (uint32_t s = 0; s < plan->n_segments; s++)
    for (uint32_t o = 0; o < plan->segments[s].n_ops; o++)
      slots[s] |= slots_of (&plan->segments[s].ops[o]);
  return slots;
}

static gboolean
sequence_equal (const Sequence *a, const Sequence *b)
{
  return a->n_items == b->n_items && a->digest == b->digest;
}

/* ---- the first difference, for the error ---- */

typedef struct {
  uint32_t index;
  gboolean has_a, has_b;
  Item a, b;
  LsOpPlace at_a, at_b;
} Difference;

static Difference
first_difference (const LsPlan *plan, Cursor a, Cursor b)
{
  Difference d = { 0 };
  for (;; d.index++) {
    d.has_a = next_item (plan, &a, &d.a);
    d.has_b = next_item (plan, &b, &d.b);
    d.at_a = a.at;
    d.at_b = b.at;
    if (!d.has_a || !d.has_b || !item_equal (&d.a, &d.b))
      return d;
  }
}

static char *
describe_call (const Item *call)
{
  return g_strdup_printf ("kind %u of %" G_GUINT64_FORMAT " bytes of %s, root %u", call->coll, call->bytes,
                          ls_dtype_name (call->dtype), call->root);
}

static gboolean
fail_calls (Fault *fault, const LsPlan *plan, uint32_t comm, uint32_t rank_a, uint32_t rank_b, Cursor a,
            Cursor b)
{
  Difference d = first_difference (plan, a, b);
  if (!d.has_a || !d.has_b)
    return fail_at (fault, plan, d.has_a ? rank_a : rank_b, d.has_a ? d.at_a : d.at_b,
                    "call %u on communicator %u, which rank %u never makes", d.index, comm,
                    d.has_a ? rank_b : rank_a);

  g_autofree char *call_a = describe_call (&d.a);
  g_autofree char *call_b = describe_call (&d.b);
  return fail_at (fault, plan, rank_b, d.at_b,
                  "call %u on communicator %u is %s; rank %u makes it (instance %u, op %u, %s) %s", d.index,
                  comm, call_b, rank_a, d.at_a.instance, d.at_a.op, ls_op_at (plan, d.at_a)->name, call_a);
}

static gboolean
fail_transfers (Fault *fault, const LsPlan *plan, uint32_t sender, uint32_t receiver, Cursor send,
                Cursor receive)
{
  Difference d = first_difference (plan, send, receive);
  if (!d.has_b)
    return fail_at (fault, plan, sender, d.at_a,
                    "send %u to rank %u, of %" G_GUINT64_FORMAT " bytes, which that rank never receives",
                    d.index, receiver, d.a.bytes);
  if (!d.has_a)
    return fail_at (fault, plan, receiver, d.at_b,
                    "receive %u from rank %u, of %" G_GUINT64_FORMAT " bytes, which that rank never sends",
                    d.index, sender, d.b.bytes);
  return fail_at (fault, plan, receiver, d.at_b,
                  "receive %u from rank %u is %" G_GUINT64_FORMAT " bytes; that rank sends"
                  " (instance %u, op %u, %s) %" G_GUINT64_FORMAT,
                  d.index, sender, d.b.bytes, d.at_a.instance, d.at_a.op, ls_op_at (plan, d.at_a)->name,
                  d.a.bytes);
}

/* ---- collectives ---- */

static gboolean
check_calls (const LsPlan *plan, const Sequences *sequences, uint32_t comm, Fault *fault)
{
  const LsCommunicator c = ls_plan_communicator (plan, comm);
  uint32_t first = ls_comm_rank (&c, 0);
  uint32_t first_role = ls_plan_role (plan, first);
  uint32_t first_slots = ls_plan_slots_to (plan, first, comm);
  const Sequence *expected = sequence_of (plan, sequences, first_role, CALLS, first_slots);

  for (uint32_t i = 1; i < c.n_ranks; i++) {
    uint32_t rank = ls_comm_rank (&c, i);
    uint32_t role = ls_plan_role (plan, rank);
    uint32_t slots = ls_plan_slots_to (plan, rank, comm);
    if (!sequence_equal (expected, sequence_of (plan, sequences, role, CALLS, slots)))
      return fail_calls (fault, plan, comm, first, rank, cursor (first_role, CALLS, first_slots),
                         cursor (role, CALLS, slots));
  }
  return TRUE;
}

/* ---- p2p ---- */

/* What a rank sends to its next neighbour arrives there as from the previous one,
 * and the other way round: one order per direction, as in exec, even where both
 * neighbours are the same rank. */
static gboolean
check_direction (const LsPlan *plan, const Sequences *sequences, uint32_t rank, LsSlot slot, Fault *fault)
{
  uint32_t peer = ls_plan_peer (plan, rank, slot - LS_SLOT_PREV);
  if (peer == UINT32_MAX)
    return TRUE;
  LsSlot back = slot == LS_SLOT_NEXT ? LS_SLOT_PREV : LS_SLOT_NEXT;
  uint32_t own_role = ls_plan_role (plan, rank), peer_role = ls_plan_role (plan, peer);
  uint32_t own_slots = 1u << slot, peer_slots = 1u << back;

  if (!sequence_equal (sequence_of (plan, sequences, own_role, SENDS, own_slots),
                       sequence_of (plan, sequences, peer_role, RECEIVES, peer_slots)))
    return fail_transfers (fault, plan, rank, peer, cursor (own_role, SENDS, own_slots),
                           cursor (peer_role, RECEIVES, peer_slots));
  if (!sequence_equal (sequence_of (plan, sequences, peer_role, SENDS, peer_slots),
                       sequence_of (plan, sequences, own_role, RECEIVES, own_slots)))
    return fail_transfers (fault, plan, peer, rank, cursor (peer_role, SENDS, peer_slots),
                           cursor (own_role, RECEIVES, own_slots));
  return TRUE;
}

static gboolean
check_matches (const LsPlan *plan, Fault *fault)
{
  g_autoptr (GHashTable) of = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, g_free);
  g_autofree uint32_t *slots_of_segment = slots_of_segments (plan);
  const Sequences sequences = { of, slots_of_segment };

  for (uint32_t comm = 0; comm < plan->n_comms; comm++)
    if (!check_calls (plan, &sequences, comm, fault))
      return FALSE;
  for (uint32_t rank = 0; rank < plan->n_ranks; rank++)
    if (!check_direction (plan, &sequences, rank, LS_SLOT_PREV, fault)
        || !check_direction (plan, &sequences, rank, LS_SLOT_NEXT, fault))
      return FALSE;
  return TRUE;
}

/* ---- all of it ---- */

static gboolean
check_all (const LsPlan *plan, Fault *fault)
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
  Check check = { .plan = plan, .rank_of_role = rank_of_role };
  return check_programs (&check, fault) && check_matches (plan, fault);
}

gboolean
ls_plan_check_at (const LsPlan *plan, LsOpPlace *reterr_at, GError **error)
{
  Fault fault = { .at = { .role = UINT32_MAX } };
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
