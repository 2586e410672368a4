/* exec/shortcuts/fold_sorts.c — which stretches are alike, by communicators in several of them. */
#include <string.h>

#include "exec/shortcuts/fold_blocks.h"
#include "exec/replay/state.h"

typedef struct {
  Blocks *b;
  const uint8_t *slot;
  const uint32_t *offsets; /* those of which it is known */
  uint32_t farthest;       /* how far they go from the first, but for whole blocks */
  uint32_t begin;          /* of the stretch looked at: its first GPU */
  GHashTable *known;       /* LsSig of where and what > Across */
  GHashTable *crossings;   /* shape that another is like > the Crossing of the last such */
  LsSig *sum;              /* [stretches] zeros, but while one is looked at */
  LsSig *sig;              /* [stretches] of all communicators */
} Sorting;

/* How far members are behind the first, but for whole blocks. */
static uint32_t
farthest_of (Sorting *s, const LsCommunicator *comm)
{
  if (comm->offsets != s->offsets) {
    s->offsets = comm->offsets;
    s->farthest = 0;
    for (uint32_t i = 0; i < comm->n_ranks; i++)
      s->farthest = MAX (s->farthest, comm->offsets[i] % s->b->stretches.gpus_of_block);
  }
  return s->farthest;
}

/* In one stretch: its members do not leave that of the first. */
static bool
is_in_one (Sorting *s, const LsCommunicator *comm)
{
  const Stretches *of = &s->b->stretches;
  if (comm->first - s->begin >= of->gpus_of_stretch)
    s->begin = comm->first - comm->first % of->gpus_of_stretch;
  return comm->first - s->begin + farthest_of (s, comm) < of->gpus_of_stretch;
}

/* Where a whole number of them begins in each stretch: each stays before the next one begins. */
static bool
are_in_one (Sorting *s, const LsCommRun *run)
{
  uint32_t size = s->b->stretches.gpus_of_stretch, stride = run->stride;
  return run->n > 1 && size % stride == 0
      && run->first.first % stride + farthest_of (s, &run->first) < stride;
}

static Crossing *
crossing_new (Sorting *s, const uint32_t *places, const Shape *shape)
{
  const Stretches *of = &s->b->stretches;
  uint32_t n = 0;
  Crossing *x = ls_arena_new_array (s->b->arena, Crossing, 1);
  uint32_t *stretch = ls_arena_new_array (s->b->arena, uint32_t, MIN (of->n, shape->n_places) + 1);
  for (uint32_t k = 0; k < shape->n_places; k++) {
    const StretchPlace p = stretch_place_of (of, places[k]);
    LsSig *sum = &s->sum[p.stretch], own = ls_sig_of ((uint64_t) p.number << 32 | p.block);
    if (shape->label[k] == 0 || p.tier->stretch == p.tier->block)
      continue;
    if (sum->a == 0 && sum->b == 0)
      stretch[n++] = p.stretch;
    ls_sig_add (&own, (uint64_t) (p.tier - of->tier) << 32 | shape->label[k]);
    ls_sig_add_times (sum, 1, own);
  }
  uint32_t *kept = ls_arena_new_array (s->b->arena, uint32_t, shape->n_places + 1);
  memcpy (kept, places, shape->n_places * sizeof *kept);
  *x = (Crossing) {
    .places = kept, .n = n, .stretch = stretch, .sum = ls_arena_new_array (s->b->arena, LsSig, n + 1)
  };
  for (uint32_t i = 0; i < n; i++) {
    x->sum[i] = s->sum[stretch[i]];
    s->sum[stretch[i]] = (LsSig) { 0 };
  }
  return x;
}

static Across *
across_new (Sorting *s, const uint32_t *places, uint32_t number)
{
  const Shape *shape = shapes_at (s->b->shapes, number);
  Across *a = ls_arena_new_array (s->b->arena, Across, 1);
  Crossing *x = g_hash_table_lookup (s->crossings, GUINT_TO_POINTER (shape->like));
  if (!x || memcmp (x->places, places, shape->n_places * sizeof *places) != 0) {
    x = crossing_new (s, places, shape);
    g_hash_table_insert (s->crossings, GUINT_TO_POINTER (shape->like), x);
  }
  *a = (Across) { .shape = number, .at = x };
  return a;
}

/* The same for all that lie alike, whole blocks apart. NULL: a call cannot be planned. */
static Across *
across_of (Sorting *s, uint32_t c)
{
  const Blocks *b = s->b;
  LsCommunicator comm = ls_plan_communicator (b->plan, c);
  const RoleCalls *role = &b->roles[ls_plan_role (b->plan, ls_comm_rank (&comm, 0))];
  int list = CALLS + s->slot[c];
  LsSig key = ls_sig_of ((uint64_t) (uintptr_t) comm.offsets);
  ls_sig_add (&key, (uint64_t) comm.n_ranks << 32 | comm.first % b->stretches.gpus_of_block);
  ls_sig_add (&key, role->id[list]);
  Across *a = g_hash_table_lookup (s->known, &key);
  if (a)
    return a;
  comm.first %= b->stretches.gpus_of_block; /* those of the first block lie where these do in theirs */
  const uint32_t *places;
  g_autofree uint32_t *ranks = ls_comm_ranks (&comm);
  uint32_t shape
      = shapes_of_calls (b->shapes, role->keys[list], role->id[list], ranks, comm.n_ranks, &places);
  if (shape == NO_SHAPE)
    return NULL;
  a = across_new (s, places, shape);
  LsSig *kept = ls_arena_new_array (b->arena, LsSig, 1);
  *kept = key;
  g_hash_table_insert (s->known, kept, a);
  return a;
}

/* Sums over communicators are bilinear in random words of who it is and of what it has there. */
static bool
add_comm (Sorting *s, uint32_t c)
{
  const AcrossComm own = { c, across_of (s, c) };
  const LsSig word = ls_sig_of (c);
  const Crossing *at = own.across ? own.across->at : NULL;
  g_array_append_val (s->b->across, own);
  for (uint32_t i = 0; at && i < at->n; i++) {
    s->sig[at->stretch[i]].a += word.a * at->sum[i].a;
    s->sig[at->stretch[i]].b += word.b * at->sum[i].b;
  }
  return own.across != NULL;
}

/* False: a call cannot be planned. */
static bool
add_comms (Sorting *s)
{
  Blocks *b = s->b;
  bool ok = true;
  b->across = g_array_new (FALSE, FALSE, sizeof (AcrossComm));
  LsCommRun run;
  for (uint32_t c = 0; c < b->plan->n_comms && ok; c += run.n) {
    run = ls_plan_comm_run (b->plan, c);
    for (uint32_t i = are_in_one (s, &run) ? run.n : 0; i < run.n && ok; i++) {
      const LsCommunicator comm = ls_comm_of_run (&run, i);
      ok = is_in_one (s, &comm) || add_comm (s, c + i);
    }
  }
  return ok;
}

bool
sorts_find (Blocks *b, const uint8_t *slot)
{
  uint32_t n = b->stretches.n;
  Sorting s = { .b = b,
                .slot = slot,
                .known = g_hash_table_new (ls_sig_hash, ls_sig_is_same),
                .crossings = g_hash_table_new (NULL, NULL),
                .sum = g_new0 (LsSig, n),
                .sig = g_new0 (LsSig, n) };
  g_autofree uint32_t *sort = g_new (uint32_t, n);
  uint32_t n_sorts = add_comms (&s) ? sigs_number (s.sig, n, sort) : n;
  if (n_sorts <= n / 2)
    stretches_keep (&b->stretches, sort, n_sorts);
  g_hash_table_unref (s.known);
  g_hash_table_unref (s.crossings);
  g_free (s.sum);
  g_free (s.sig);
  return n_sorts <= n / 2;
}
