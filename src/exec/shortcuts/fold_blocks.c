#include "exec/shortcuts/fold_blocks.h"

#include <string.h>

#include "exec/state.h"

/* --- what lies where ------------------------------------------------------------------ */

/* False: two ranks share a GPU. */
static bool
find_ranks (Blocks *b)
{
  uint32_t n_gpus = b->at->n_hosts * b->at->gpus_per_host;
  b->rank_of_gpu = g_new (uint32_t, n_gpus);
  memset (b->rank_of_gpu, 0xff, n_gpus * sizeof *b->rank_of_gpu);
  for (uint32_t i = 0; i < b->plan->n_ranks; i++) {
    uint32_t *rank = &b->rank_of_gpu[b->plan->gpu_of_rank[i]];
    if (*rank != UINT32_MAX)
      return false;
    *rank = i;
  }
  return true;
}

static bool
shape_comms (Blocks *b, const uint8_t *slot)
{
  const LsPlan *plan = b->plan;
  g_autoptr (GArray) places = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  b->shape_of_comm = g_new (uint32_t, plan->n_comms + 1);
  b->first = g_new (uint32_t, plan->n_comms + 1);
  for (uint32_t c = 0; c < plan->n_comms; c++) {
    const LsCommunicator *comm = &plan->comms[c];
    const RoleCalls *role = &b->roles[ls_plan_role (plan, ls_comm_rank (comm, 0))];
    int list = CALLS + slot[c];
    const uint32_t *at;
    g_autofree uint32_t *ranks = ls_comm_ranks (comm);
    uint32_t shape = shapes_of_calls (b->shapes, role->keys[list], role->id[list], ranks, comm->n_ranks, &at);
    if (shape == NO_SHAPE)
      return false;
    b->shape_of_comm[c] = shape;
    b->first[c] = places->len;
    g_array_append_vals (places, at, shapes_at (b->shapes, shape)->n_places);
  }
  b->first[plan->n_comms] = places->len;
  b->places = (uint32_t *) g_array_free (g_steal_pointer (&places), FALSE);
  return true;
}

static bool
shape_rank (Blocks *b, uint32_t rank)
{
  const RoleCalls *role = &b->roles[ls_plan_role (b->plan, rank)];
  uint32_t *shape = b->shape_of_rank[rank];
  const uint32_t *at;
  for (int p = 0; p < 2; p++) {
    shape[p] = NO_SHAPE;
    if (role->id[SENDS + p] == 0)
      continue;
    const uint32_t ranks[] = { rank, ls_plan_peer (b->plan, rank, (uint32_t) p) };
    shape[p] = shapes_of_calls (b->shapes, role->keys[SENDS + p], role->id[SENDS + p], ranks, 2, &at);
    if (shape[p] == NO_SHAPE)
      return false;
  }
  shape[2] = shapes_of_copies (b->shapes, role, rank);
  return shape[2] != NO_SHAPE;
}

static bool
shape_ranks (Blocks *b)
{
  b->shape_of_rank = g_malloc_n ((gsize) b->plan->n_ranks + 1, sizeof *b->shape_of_rank);
  for (uint32_t i = 0; i < b->plan->n_ranks; i++)
    if (!shape_rank (b, i))
      return false;
  return true;
}

/* --- to begin with --------------------------------------------------------------------- */

static Sig
first_of_host (const Blocks *b, uint32_t host)
{
  const double *slow = b->x->options->slow;
  Sig sig = { .a = 1 };
  if (!ls_places_is_sound (b->x->cluster, host))
    sig_add (&sig, UINT64_C (1) << 63 | host);
  for (uint32_t i = 0; i < b->at->gpus_per_host; i++) {
    uint32_t rank = b->rank_of_gpu[host * b->at->gpus_per_host + i];
    sig_add (&sig, rank == UINT32_MAX ? UINT64_MAX : ls_plan_role (b->plan, rank));
    if (rank == UINT32_MAX)
      continue;
    for (int p = 0; p < 3; p++)
      sig_add (&sig, b->shape_of_rank[rank][p]);
    if (slow)
      sig_add_double (&sig, slow[rank]);
  }
  return sig;
}

/* Of a group or a pod: its rates. */
static Sig
first_above (const Blocks *b, const double *capacity, uint32_t place)
{
  Sig sig = { .a = place < b->at->n_hosts + b->at->n_groups ? 2 : 3 };
  for (uint32_t i = 0; i < ls_places_n_at (b->at, place); i++)
    sig_add_double (&sig, capacity[ls_places_resource (b->at, place, i)]);
  return sig;
}

/* --- a round ---------------------------------------------------------------------------- */

typedef struct {
  Blocks *b;
  Sig *sums; /* [most of places, communicators] */
  Sig *scratch;
} Round;

static void
refine_comms (Round *x)
{
  Blocks *b = x->b;
  for (uint32_t c = 0; c < b->plan->n_comms; c++) {
    const LsCommunicator *comm = &b->plan->comms[c];
    const Shape *shape = shapes_at (b->shapes, b->shape_of_comm[c]);
    Sig sum = { 0 }, own = sig_of (b->class_of_comm[c]);
    for (uint32_t i = 0; i < comm->n_ranks; i++)
      sig_add_times (&sum, 1, sig_of (UINT64_C (1) << 63 | blocks_seat (b, ls_comm_rank (comm, i))));
    for (uint32_t k = 0; k < shape->n_places; k++)
      sig_add_times (
          &sum, 1,
          sig_of ((uint64_t) b->class_of_place[b->places[b->first[c] + k]] << 32 | shape->vector[k]));
    sig_add_sig (&own, sum);
    x->scratch[c] = own;
  }
  b->n_comm_classes = sigs_number (x->scratch, b->plan->n_comms, b->class_of_comm);
}

static void
add_sends (Round *x, uint32_t rank)
{
  const Blocks *b = x->b;
  for (uint32_t p = 0; p < 2; p++) {
    if (b->shape_of_rank[rank][p] == NO_SHAPE)
      continue;
    const Shape *shape = shapes_at (b->shapes, b->shape_of_rank[rank][p]);
    uint32_t places[SHAPE_PAIR_PLACES];
    Sig own = sig_of (UINT64_C (1) << 63 | (uint64_t) p << 62 | blocks_seat (b, rank));
    uint32_t n = shapes_pair_places (b->shapes, rank, ls_plan_peer (b->plan, rank, p), places);
    for (uint32_t k = 0; k < n; k++)
      sig_add_times (&x->sums[places[k]], 1, sig_with (own, shape->vector[k] + 1));
  }
}

static void
add_loads (Round *x)
{
  const Blocks *b = x->b;
  memset (x->sums, 0, b->n_places * sizeof *x->sums);
  for (uint32_t c = 0; c < b->plan->n_comms; c++) {
    const Shape *shape = shapes_at (b->shapes, b->shape_of_comm[c]);
    for (uint32_t k = 0; k < shape->n_places; k++)
      sig_add_times (&x->sums[b->places[b->first[c] + k]], 1,
                     sig_of ((uint64_t) b->class_of_comm[c] << 32 | shape->vector[k]));
  }
  for (uint32_t i = 0; i < b->plan->n_ranks; i++)
    add_sends (x, i);
}

static void
add_ranks (const Blocks *b, uint32_t host, Sig *sig)
{
  for (uint32_t i = 0; i < b->at->gpus_per_host; i++) {
    uint32_t rank = b->rank_of_gpu[host * b->at->gpus_per_host + i];
    if (rank == UINT32_MAX)
      continue;
    for (uint32_t s = 0; s < LS_SLOT_PREV; s++) {
      uint32_t comm = ls_plan_comm_of (b->plan, rank, (LsSlot) s);
      if (comm != UINT32_MAX)
        sig_add (sig, (uint64_t) s << 32 | b->class_of_comm[comm]);
    }
    for (uint32_t p = 0; p < 2; p++)
      if (b->peers[ls_plan_role (b->plan, rank)] & 1 << p)
        sig_add (sig, blocks_seat (b, ls_plan_peer (b->plan, rank, p)));
  }
}

static void
refine_places (Round *x)
{
  Blocks *b = x->b;
  add_loads (x);
  for (uint32_t i = 0; i < b->n_places; i++) {
    Sig own = sig_of (b->class_of_place[i]);
    sig_add_sig (&own, x->sums[i]);
    if (i < b->at->n_hosts) {
      sig_add (&own, b->class_of_place[ls_places_group_of (b->at, i)]);
      sig_add (&own, b->class_of_place[ls_places_pod_of (b->at, i)]);
      add_ranks (b, i, &own);
    }
    x->scratch[i] = own;
  }
  b->n_place_classes = sigs_number (x->scratch, b->n_places, b->class_of_place);
}

static void
begin (Round *x, const uint8_t *slot, const double *capacity)
{
  Blocks *b = x->b;
  for (uint32_t i = 0; i < b->n_places; i++)
    x->scratch[i] = i < b->at->n_hosts ? first_of_host (b, i) : first_above (b, capacity, i);
  b->n_place_classes = sigs_number (x->scratch, b->n_places, b->class_of_place);
  for (uint32_t c = 0; c < b->plan->n_comms; c++)
    b->class_of_comm[c] = b->shape_of_comm[c] * LS_SLOT_PREV + slot[c];
  b->n_comm_classes = 0;
}

static void
refine_blocks (Blocks *b, const uint8_t *slot, const double *capacity)
{
  uint32_t most = MAX (b->n_places, b->plan->n_comms) + 1;
  b->class_of_place = g_new (uint32_t, b->n_places + 1);
  b->class_of_comm = g_new (uint32_t, b->plan->n_comms + 1);
  Round x = { b, g_new (Sig, most), g_new (Sig, most) };
  begin (&x, slot, capacity);
  for (uint32_t before = 0, now = 1; now != before;) {
    before = b->n_place_classes + b->n_comm_classes;
    refine_comms (&x);
    refine_places (&x);
    now = b->n_place_classes + b->n_comm_classes;
  }
  g_free (x.sums);
  g_free (x.scratch);
}

bool
blocks_init (Blocks *b, const Run *x, const uint8_t *slot, const uint8_t *peers, const double *capacity)
{
  *b = (Blocks) { .x = x, .plan = x->plan, .roles = x->role_calls, .peers = peers };
  if (x->n_jobs > 1 || x->n_traffic > 0 || !(b->shapes = shapes_new (x)))
    return false;
  b->at = shapes_places (b->shapes);
  b->n_places = ls_places_n (b->at);
  if (!find_ranks (b) || !shape_comms (b, slot) || !shape_ranks (b))
    return false;
  refine_blocks (b, slot, capacity);
  return true;
}

void
blocks_clear (Blocks *b)
{
  shapes_free (b->shapes);
  g_free (b->rank_of_gpu);
  g_free (b->shape_of_comm);
  g_free (b->places);
  g_free (b->first);
  g_free (b->shape_of_rank);
  g_free (b->class_of_place);
  g_free (b->class_of_comm);
}

bool
fold_by_blocks (Run *x, const double *capacity, FoldClasses *ret)
{
  g_autofree uint8_t *slot = fold_owed (x), *peers = fold_peers (x);
  Blocks b = { 0 };
  bool ok = slot && blocks_init (&b, x, slot, peers, capacity);
  if (ok)
    blocks_classify (&b, slot, capacity, ret);
  blocks_clear (&b);
  return ok;
}
