/* What ranks owe each other: the members of a communicator make the same calls in the
 * same order, and what one rank sends to another is what that one receives.
 *
 * Ranks of a role make the same calls, so a sequence is hashed once per (role, slots)
 * and ranks compare hashes: O(ops of all roles + ranks). Only when two differ are both
 * walked again, to name the first call that does. If a rank binds several slots to one
 * communicator, or both its neighbours are one rank (pp 2), their traffic is one
 * sequence: that is how NCCL matches it. */
#include "base/digest.h"
#include "plan/plan_check.h"

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
      slots[s] |= ls_op_slots (&plan->segments[s].ops[o]);
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
fail_calls (LsPlanFault *fault, const LsPlan *plan, uint32_t comm, uint32_t rank_a, uint32_t rank_b, Cursor a,
            Cursor b)
{
  Difference d = first_difference (plan, a, b);
  if (!d.has_a || !d.has_b)
    return ls_plan_fail (fault, plan, d.has_a ? rank_a : rank_b, d.has_a ? d.at_a : d.at_b,
                         "call %u on communicator %u, which rank %u never makes", d.index, comm,
                         d.has_a ? rank_b : rank_a);

  g_autofree char *call_a = describe_call (&d.a);
  g_autofree char *call_b = describe_call (&d.b);
  return ls_plan_fail (fault, plan, rank_b, d.at_b,
                       "call %u on communicator %u is %s; rank %u makes it (instance %u, op %u, %s) %s",
                       d.index, comm, call_b, rank_a, d.at_a.instance, d.at_a.op,
                       ls_op_at (plan, d.at_a)->name, call_a);
}

static gboolean
fail_transfers (LsPlanFault *fault, const LsPlan *plan, uint32_t sender, uint32_t receiver, Cursor send,
                Cursor receive)
{
  Difference d = first_difference (plan, send, receive);
  if (!d.has_b)
    return ls_plan_fail (fault, plan, sender, d.at_a,
                         "send %u to rank %u, of %" G_GUINT64_FORMAT " bytes, which that rank never receives",
                         d.index, receiver, d.a.bytes);
  if (!d.has_a)
    return ls_plan_fail (fault, plan, receiver, d.at_b,
                         "receive %u from rank %u, of %" G_GUINT64_FORMAT
                         " bytes, which that rank never sends",
                         d.index, sender, d.b.bytes);
  return ls_plan_fail (fault, plan, receiver, d.at_b,
                       "receive %u from rank %u is %" G_GUINT64_FORMAT " bytes; that rank sends"
                       " (instance %u, op %u, %s) %" G_GUINT64_FORMAT,
                       d.index, sender, d.b.bytes, d.at_a.instance, d.at_a.op, ls_op_at (plan, d.at_a)->name,
                       d.a.bytes);
}

/* ---- collectives ---- */

static gboolean
check_calls (const LsPlan *plan, const Sequences *sequences, uint32_t comm, LsPlanFault *fault)
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
check_direction (const LsPlan *plan, const Sequences *sequences, uint32_t rank, LsSlot slot,
                 LsPlanFault *fault)
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
check_peers (const LsPlan *plan, const Sequences *sequences, uint32_t rank, LsPlanFault *fault)
{
  return check_direction (plan, sequences, rank, LS_SLOT_PREV, fault)
      && check_direction (plan, sequences, rank, LS_SLOT_NEXT, fault);
}

gboolean
ls_plan_check_matches (const LsPlanCheck *check, LsPlanFault *fault)
{
  const LsPlan *plan = check->plan;
  g_autoptr (GHashTable) of = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, g_free);
  g_autofree uint32_t *slots_of_segment = slots_of_segments (plan);
  const Sequences sequences = { of, slots_of_segment };

  for (uint32_t comm = 0; comm < plan->n_comms; comm++)
    if (!check_calls (plan, &sequences, comm, fault))
      return FALSE;
  for (uint32_t rank = 0; rank < plan->n_ranks; rank++)
    if (!check_peers (plan, &sequences, rank, fault))
      return FALSE;
  return TRUE;
}
