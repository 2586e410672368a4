/* exec/shortcuts/fold_bundles.c — who lies where: communicators that lie alike have one template, those in
 * the same places are one bundle, and so is what neighbouring GPUs of a host send to those of another. */
#include <string.h>

#include "exec/shortcuts/fold_blocks.h"

/* The template of communicators whose first member is at that GPU of a period. */
typedef struct {
  const uint32_t *offsets; /* NULL: none yet */
  uint32_t n_ranks, list, template;
} Seen;

typedef struct {
  Blocks *b;
  LsArena *scratch; /* of what follows */
  const uint8_t *slot;
  Seen *seen;         /* [GPUs of a period]; NULL: each communicator has its own */
  GHashTable *known;  /* LsSig of places > lie + 1                               */
  GArray *first;      /* uint32_t: where those of each lie begin in places, and of one more */
  GArray *places;     /* uint32_t: at no shift                                   */
  GHashTable *labels; /* LsSig > label                                           */
  GHashTable *kinds;  /* LsSig > kind + 1, where all places are kept             */
  /* Of the stretch looked at: its first GPU, and how many there are. */
  uint32_t gpu, n_gpus;
  bool is_kept;
  guint n_across; /* of b->across, those that are behind */
} Finding;

/* --- templates ------------------------------------------------------------------------- */

/* The number of a list of places, which are those at this shift. */
static uint32_t
lie_of (Finding *f, const uint32_t *places, uint32_t n, uint32_t shift)
{
  const Stretches *s = &f->b->stretches;
  uint32_t first = f->places->len, n_known = g_hash_table_size (f->known);
  LsSig sig = { n, 0 };
  g_array_set_size (f->places, first + n);
  uint32_t *own = &g_array_index (f->places, uint32_t, first);
  for (uint32_t k = 0; k < n; k++) {
    own[k] = LS_NO_PLACE;
    if (!stretch_keeps (s, places[k]))
      continue;
    own[k] = blocks_moved (f->b, stretch_kept (s, places[k]), -shift);
    ls_sig_add (&sig, (uint64_t) k << 32 | own[k]);
  }
  uint32_t lie = sigs_id (f->known, f->scratch, sig) - 1;
  if (lie < n_known)
    g_array_set_size (f->places, first);
  else
    g_array_append_val (f->first, f->places->len);
  return lie;
}

static const uint32_t *
places_of (const Finding *f, uint32_t lie, uint32_t *ret_n)
{
  const uint32_t *first = &g_array_index (f->first, uint32_t, lie);
  *ret_n = first[1] - first[0];
  return &g_array_index (f->places, uint32_t, first[0]);
}

/* Finds the stretch of a GPU, unless it is that of the GPU before. */
static void
look_at_stretch (Finding *f, uint32_t gpu)
{
  const Stretches *s = &f->b->stretches;
  if (gpu - f->gpu < f->n_gpus)
    return;
  uint32_t n_left;
  f->gpu = gpu;
  f->is_kept = stretch_before (s, gpu, &n_left) == gpu;
  f->n_gpus = n_left;
}

/* Which members are kept, and how many; NULL: all. */
static const uint32_t *
kept_members (Finding *f, const LsCommunicator *comm, uint32_t *ret_n)
{
  const Blocks *b = f->b;
  uint32_t n = comm->n_ranks, *kept = b->stretches.kept ? ls_arena_new_array (b->arena, uint32_t, n) : NULL;
  *ret_n = kept ? 0 : n;
  for (uint32_t i = 0; i < n && kept; i++) {
    look_at_stretch (f, ls_plan_gpu (b->plan, ls_comm_rank (comm, i)));
    if (f->is_kept)
      kept[(*ret_n)++] = i;
  }
  return kept;
}

/* Where ranks of a shape lie, at no shift. */
static void
set_lie (Finding *f, Template *t, const LsCommunicator *comm, const uint32_t *places, uint32_t shift)
{
  t->lie = lie_of (f, places, shapes_at (f->b->shapes, t->shape)->n_places, shift);
  t->kept_members = kept_members (f, comm, &t->n_kept_members);
}

/* False: a call cannot be planned. */
static bool
find_template (Finding *f, KeptComm *kept)
{
  Blocks *b = f->b;
  uint32_t c = kept->comm;
  const LsCommunicator comm = ls_plan_communicator (b->plan, c);
  const RoleCalls *role = &b->roles[ls_plan_role (b->plan, ls_comm_rank (&comm, 0))];
  uint32_t list = CALLS + f->slot[c], id = role->id[list], gpus = b->period * b->at->gpus_per_host,
           first = stretch_kept_gpu (&b->stretches, comm.first);
  kept->shift = gpus > 0 ? first / gpus : 0;
  Seen *seen = f->seen ? &f->seen[first - kept->shift * gpus] : NULL;
  if (seen && seen->offsets == comm.offsets && seen->n_ranks == comm.n_ranks && seen->list == id) {
    kept->template = seen->template;
    return true;
  }
  const uint32_t *places;
  g_autofree uint32_t *ranks = ls_comm_ranks (&comm);
  uint32_t shape = shapes_of_calls (b->shapes, role->keys[list], id, ranks, comm.n_ranks, &places);
  if (shape == NO_SHAPE)
    return false;
  Template own = { .shape = shape };
  set_lie (f, &own, &comm, places, kept->shift);
  kept->template = b->templates->len;
  g_array_append_val (b->templates, own);
  if (seen)
    *seen = (Seen) { comm.offsets, comm.n_ranks, id, kept->template };
  return true;
}

/* Those of one template are whole blocks apart. */
static void
place_across (Finding *f, KeptComm *kept, uint32_t template)
{
  const Stretches *s = &f->b->stretches;
  const LsCommunicator comm = ls_plan_communicator (f->b->plan, kept->comm);
  Template *t = &g_array_index (f->b->templates, Template, template);
  Crossing *at = t->across;
  kept->shift = comm.first / s->gpus_of_block * s->n_kept;
  kept->template = template;
  if (!t->kept_members && at->kept_members) {
    t->lie = at->lie;
    t->n_kept_members = at->n_kept_members;
    t->kept_members = at->kept_members;
  } else if (!t->kept_members) {
    set_lie (f, t, &comm, at->places, 0);
    at->lie = t->lie;
    at->n_kept_members = t->n_kept_members;
    at->kept_members = t->kept_members;
  }
}

/* --- bundles --------------------------------------------------------------------------- */

/* Where those of each lie begin, by shift; ret: [lies + 1], newly allocated. */
static uint32_t *
count_shifts (const Finding *f)
{
  const Blocks *b = f->b;
  uint32_t n_lies = f->first->len - 1, *first = g_new0 (uint32_t, n_lies + 1);
  for (guint i = 0; i < b->kept->len; i++) {
    const KeptComm *kept = blocks_kept (b, i);
    uint32_t *n = &first[blocks_template (b, kept)->lie + 1];
    *n = MAX (*n, kept->shift + 1);
  }
  for (uint32_t i = 0; i < n_lies; i++)
    first[i + 1] += first[i];
  return first;
}

static void
number_bundles (Finding *f)
{
  Blocks *b = f->b;
  g_autofree uint32_t *first = count_shifts (f);
  uint32_t n = first[f->first->len - 1];
  g_autofree uint32_t *bundle_at = g_new0 (uint32_t, n + 1); /* + 1 */
  for (guint i = 0; i < b->kept->len; i++) {
    KeptComm *kept = blocks_kept (b, i);
    uint32_t *own = &bundle_at[first[blocks_template (b, kept)->lie] + kept->shift];
    *own = *own == 0 ? ++b->n_comm_bundles : *own;
    kept->bundle = *own - 1;
  }
}

/* Their communicators, in order. first: where those of each begin: [bundles + 1]. */
static void
list_comms (Blocks *b, uint32_t *first)
{
  b->kept_of_bundle = ls_arena_new_array (b->arena, uint32_t, b->kept->len);
  for (guint i = 0; i < b->kept->len; i++)
    first[blocks_kept (b, i)->bundle + 1]++;
  for (uint32_t i = 0; i < b->n_comm_bundles; i++)
    first[i + 1] += first[i];
  g_autofree uint32_t *next = g_memdup2 (first, (b->n_comm_bundles + 1) * sizeof *first);
  for (guint i = 0; i < b->kept->len; i++)
    b->kept_of_bundle[next[blocks_kept (b, i)->bundle]++] = i;
}

/* --- kinds of bundles ------------------------------------------------------------------ */

/* Of the k-th place of all, 0: nothing of them is there. */
static uint32_t
label_of (Finding *f, const BundleKind *kind, uint32_t k)
{
  const Blocks *b = f->b;
  LsSig sig = { kind->n_callers, 0 };
  bool is_any = false;
  for (uint32_t i = 0; i < kind->n_callers; i++) {
    uint32_t label = shapes_at (b->shapes, kind->shape[i])->label[k];
    is_any = is_any || label > 0;
    ls_sig_add (&sig, label);
  }
  return is_any ? sigs_id (f->labels, f->scratch, sig) : 0;
}

/* times: for how many places each stands, if they are of several stretches; NULL: one. */
static void
add_places (Finding *f, uint32_t lie, BundleKind *kind, uint32_t *times)
{
  Blocks *b = f->b;
  uint32_t n;
  const uint32_t *places = places_of (f, lie, &n);
  uint32_t *number = ls_arena_new_array (b->arena, uint32_t, MAX (1, n)),
           *label = ls_arena_new_array (b->arena, uint32_t, MAX (1, n));
  for (uint32_t k = 0; k < n; k++) {
    uint32_t own = places[k] != LS_NO_PLACE ? label_of (f, kind, k) : 0;
    if (own == 0)
      continue;
    if (times)
      times[kind->n] = stretch_times (&b->stretches, places[k]);
    number[kind->n] = k;
    label[kind->n++] = own;
    g_array_append_val (b->places, places[k]);
  }
  kind->times = times;
  kind->number = number;
  kind->label = label;
}

/* kept: those of the bundle. Returns its kind, with its places added. */
static uint32_t
add_kind (Finding *f, const uint32_t *kept, uint32_t n)
{
  Blocks *b = f->b;
  BundleKind kind = { .n_callers = n, .gpu = NO_GPU_NUMBER };
  uint32_t *shapes = ls_arena_new_array (b->arena, uint32_t, n), n_places;
  LsSig key = { 0 };
  for (uint32_t i = 0; i < n; i++) {
    const KeptComm *own = blocks_kept (b, kept[i]);
    shapes[i] = blocks_template (b, own)->shape;
    ls_sig_add_sig (&kind.sig, shapes_at (b->shapes, shapes[i])->sig);
    ls_sig_add (&kind.sig,
                (uint64_t) ls_plan_communicator (b->plan, own->comm).n_ranks << 32 | f->slot[own->comm]);
    ls_sig_add (&key, shapes[i]);
  }
  ls_sig_add_sig (&key, kind.sig);
  kind.shape = shapes;
  const Template *first = blocks_template (b, blocks_kept (b, kept[0]));
  const uint32_t *places = places_of (f, first->lie, &n_places);
  uint32_t own = b->stretches.kept ? b->kinds->len : sigs_id (f->kinds, f->scratch, key) - 1;
  if (own < b->kinds->len) {
    const BundleKind *known = &g_array_index (b->kinds, BundleKind, own);
    for (uint32_t k = 0; k < known->n; k++)
      g_array_append_val (b->places, places[known->number[k]]);
    return own;
  }
  add_places (f, first->lie, &kind,
              first->across ? ls_arena_new_array (b->arena, uint32_t, n_places + 1) : NULL);
  g_array_append_val (b->kinds, kind);
  return own;
}

/* Of all bundles of communicators; a list: those that have the same, but for whole periods. */
static void
find_kinds (Finding *f)
{
  Blocks *b = f->b;
  uint32_t n = b->n_comm_bundles, n_lists = 0;
  g_autofree LsSig *sigs = g_new0 (LsSig, n + 1);
  g_autofree uint32_t *list = g_new (uint32_t, n + 1), *first = g_new0 (uint32_t, n + 1),
                      *place = g_new (uint32_t, n + 1), *kind = g_new (uint32_t, n + 1); /* by list */
  list_comms (b, first);
  for (guint i = 0; i < b->kept->len; i++)
    ls_sig_add (&sigs[blocks_kept (b, i)->bundle], blocks_kept (b, i)->template);
  sigs_number (sigs, n, list);
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t *kept = &b->kept_of_bundle[first[i]];
    if (list[i] == n_lists) {
      place[n_lists] = b->places->len;
      kind[n_lists++] = add_kind (f, kept, first[i + 1] - first[i]);
    }
    const Bundle own = { kind[list[i]], blocks_kept (b, *kept)->shift, place[list[i]], first[i] };
    g_array_append_val (b->bundles, own);
  }
}

/* The template of a communicator, which are asked in their order; UINT32_MAX: it is in one stretch. */
static uint32_t
next_across (Finding *f, uint32_t c)
{
  const GArray *all = f->b->across;
  if (!all || f->n_across == all->len || g_array_index (all, AcrossComm, f->n_across).comm != c)
    return UINT32_MAX;
  return g_array_index (all, AcrossComm, f->n_across++).template;
}

/* Of one that nothing else stands for. False: as find_template(). */
static bool
find_kept (Finding *f, uint32_t c, const LsCommunicator *comm)
{
  Blocks *b = f->b;
  uint32_t across = next_across (f, c);
  KeptComm own = { .comm = c, .offsets = comm->offsets };
  bool ok = across != UINT32_MAX || find_template (f, &own);
  if (across != UINT32_MAX)
    place_across (f, &own, across);
  b->kept_of_comm[c] = b->kept->len;
  g_array_append_val (b->kept, own);
  return ok;
}

/* How many of a run, from the i-th on, begin in one stretch that is not kept, and are in no other. */
static uint32_t
n_stood_for (Finding *f, uint32_t c, const LsCommRun *run, uint32_t i)
{
  const GArray *across = f->b->across;
  uint32_t first = ls_comm_rank (&run->first, 0) + i * run->stride;
  if (!f->b->stretches.kept)
    return 0;
  look_at_stretch (f, first);
  uint32_t left = f->gpu + f->n_gpus - first,
           n = f->is_kept ? 0 : MIN (run->n - i, (left - 1) / MAX (1, run->stride) + 1);
  if (f->n_across < across->len)
    n = MIN (n, g_array_index (across, AcrossComm, f->n_across).comm - (c + i));
  return n;
}

/* n of them, each by what is at the same place in the stretch that is kept: that is what they are in their
 * own, as their first members have the same place there, and so the same role (find_stretches()). False:
 * nothing that is kept stands for one. */
static bool
stand_for (Finding *f, uint32_t c, const LsCommRun *run, uint32_t i, uint32_t n)
{
  Blocks *b = f->b;
  uint32_t n_left,
      first = stretch_before (&b->stretches, ls_comm_rank (&run->first, 0) + i * run->stride, &n_left),
      like = ls_plan_comm_of (b->plan, first, (LsSlot) f->slot[c + i]);
  if (like >= c + i || ls_plan_member (b->plan, like, 0) != first)
    return false;
  for (uint32_t k = 0; k < n; k++) {
    const KeptComm *kept = blocks_kept (b, b->kept_of_comm[like + k]);
    if (kept->comm != like + k || kept->offsets != run->first.offsets)
      return false;
    b->kept_of_comm[c + i + k] = b->kept_of_comm[like + k];
  }
  return true;
}

static bool
find_of_run (Finding *f, uint32_t c, const LsCommRun *run)
{
  bool ok = true;
  for (uint32_t i = 0, n; i < run->n && ok; i += MAX (1, n)) {
    const LsCommunicator comm = ls_comm_of_run (run, i);
    n = n_stood_for (f, c, run, i);
    ok = n > 0 ? stand_for (f, c, run, i, n) : find_kept (f, c + i, &comm);
  }
  return ok;
}

/* False: a call cannot be planned; or stretches are not what they are said to be: then some communicator that
 * is kept stands for fewer than others do. */
static bool
find_templates (Finding *f)
{
  const Blocks *b = f->b;
  const Stretches *s = &b->stretches;
  uint32_t n = 0;
  LsCommRun run;
  for (uint32_t c = 0; c < b->plan->n_comms; c += run.n) {
    run = ls_plan_comm_run (b->plan, c);
    if (!find_of_run (f, c, &run))
      return false;
  }
  for (guint i = 0; i < b->kept->len; i++) {
    const KeptComm *kept = blocks_kept (b, i);
    bool is_itself = !s->kept || blocks_template (b, kept)->across;
    n += is_itself ? 1 : s->n_of[s->kept[stretch_of_gpu (s, ls_plan_member (b->plan, kept->comm, 0))]];
  }
  return n == b->plan->n_comms;
}

bool
bundles_find (Blocks *b, const uint8_t *slot)
{
  uint32_t n = b->plan->n_comms, zero = 0;
  g_autoptr (LsArena) scratch = ls_arena_new ();
  Finding f
      = { .b = b,
          .scratch = scratch,
          .slot = slot,
          .seen = b->period > 0 ? ls_arena_new_array (scratch, Seen, b->period * b->at->gpus_per_host) : NULL,
          .known = ls_arena_table (scratch, ls_sig_hash, ls_sig_is_same),
          .first = ls_arena_list (scratch, sizeof (uint32_t)),
          .places = ls_arena_list (scratch, sizeof (uint32_t)),
          .labels = ls_arena_table (scratch, ls_sig_hash, ls_sig_is_same),
          .kinds = ls_arena_table (scratch, ls_sig_hash, ls_sig_is_same) };
  g_array_append_val (f.first, zero);
  if (!b->templates)
    b->templates = ls_arena_list (b->arena, sizeof (Template));
  b->kinds = ls_arena_list (b->arena, sizeof (BundleKind));
  b->kept = ls_arena_list (b->arena, sizeof (KeptComm));
  b->bundles = ls_arena_list (b->arena, sizeof (Bundle));
  b->places = ls_arena_list (b->arena, sizeof (uint32_t));
  b->kept_of_comm = ls_arena_new_array (b->arena, uint32_t, n);
  if (!find_templates (&f))
    return false;
  number_bundles (&f);
  find_kinds (&f);
  return true;
}

/* ---- stretches that are alike ---- */

/* Which stretches are alike, by communicators in several of them. */

typedef struct {
  Blocks *b;
  const uint8_t *slot;
  const uint32_t *offsets; /* those of which it is known */
  uint32_t farthest;       /* how far they go from the first, but for whole blocks */
  uint32_t begin;          /* of the stretch looked at: its first GPU */
  GHashTable *known;       /* LsSig of where and what > template + 1 */
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

/* Of a shape at these places, as of others that are like it there. */
static Crossing *
crossing_of (Sorting *s, const uint32_t *places, uint32_t number)
{
  const Shape *shape = shapes_at (s->b->shapes, number);
  Crossing *x = g_hash_table_lookup (s->crossings, GUINT_TO_POINTER (shape->like));
  if (!x || memcmp (x->places, places, shape->n_places * sizeof *places) != 0) {
    x = crossing_new (s, places, shape);
    g_hash_table_insert (s->crossings, GUINT_TO_POINTER (shape->like), x);
  }
  return x;
}

/* The template of all that lie alike, whole blocks apart. UINT32_MAX: a call cannot be planned. */
static uint32_t
across_of (Sorting *s, uint32_t c)
{
  const Blocks *b = s->b;
  LsCommunicator comm = ls_plan_communicator (b->plan, c);
  const RoleCalls *role = &b->roles[ls_plan_role (b->plan, ls_comm_rank (&comm, 0))];
  int list = CALLS + s->slot[c];
  LsSig key = ls_sig_of ((uint64_t) (uintptr_t) comm.offsets);
  ls_sig_add (&key, (uint64_t) comm.n_ranks << 32 | comm.first % b->stretches.gpus_of_block);
  ls_sig_add (&key, role->id[list]);
  guint known = sigs_id (s->known, b->arena, key);
  if (known <= b->templates->len)
    return known - 1;
  comm.first %= b->stretches.gpus_of_block; /* those of the first block lie where these do in theirs */
  const uint32_t *places;
  g_autofree uint32_t *ranks = ls_comm_ranks (&comm);
  Template own = { 0 };
  own.shape = shapes_of_calls (b->shapes, role->keys[list], role->id[list], ranks, comm.n_ranks, &places);
  if (own.shape == NO_SHAPE)
    return UINT32_MAX;
  own.across = crossing_of (s, places, own.shape);
  g_array_append_val (b->templates, own);
  return known - 1;
}

/* Sums over communicators are bilinear in random words of who it is and of what it has there. */
static bool
add_comm (Sorting *s, uint32_t c)
{
  const AcrossComm own = { c, across_of (s, c) };
  if (own.template == UINT32_MAX)
    return false;
  const LsSig word = ls_sig_of (c);
  const Crossing *at = g_array_index (s->b->templates, Template, own.template).across;
  g_array_append_val (s->b->across, own);
  for (uint32_t i = 0; i < at->n; i++) {
    s->sig[at->stretch[i]].a += word.a * at->sum[i].a;
    s->sig[at->stretch[i]].b += word.b * at->sum[i].b;
  }
  return true;
}

/* False: a call cannot be planned. */
static bool
add_comms (Sorting *s)
{
  Blocks *b = s->b;
  bool ok = true;
  b->templates = ls_arena_list (b->arena, sizeof (Template));
  b->across = ls_arena_list (b->arena, sizeof (AcrossComm));
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
                .known = ls_arena_table (b->arena, ls_sig_hash, ls_sig_is_same),
                .crossings = ls_arena_table (b->arena, NULL, NULL),
                .sum = ls_arena_new_array (b->arena, LsSig, n),
                .sig = ls_arena_new_array (b->arena, LsSig, n) };
  uint32_t *sort = ls_arena_new_array (b->arena, uint32_t, n);
  uint32_t n_sorts = add_comms (&s) ? sigs_number (s.sig, n, sort) : n;
  if (n_sorts <= n / 2)
    stretches_keep (&b->stretches, sort, n_sorts, b->arena);
  return n_sorts <= n / 2;
}

/* ---- what hosts send ---- */

/* What the last host at its place in a period sends. */
typedef struct {
  bool is_there;
  uint32_t host;
  guint first, n; /* into bundles */
} SeenSends;

typedef struct {
  Blocks *b;
  GHashTable *known;       /* LsSig > kind + 1, but for those of communicators         */
  guint n_kinds;           /* of communicators                                         */
  uint32_t *peers, *ranks; /* [GPUs of a host], [twice as many] of the one looked at   */
  SeenSends *seen;         /* [hosts of a period]; NULL: each host is looked at        */
} SendFinding;

static uint32_t
rank_at (const Blocks *b, uint32_t host, uint32_t gpu)
{
  return blocks_rank (b, host * b->at->gpus_per_host + gpu);
}

/* Of each GPU of a host, the neighbour in that direction to which it sends; else UINT32_MAX. */
static void
find_peers (const Blocks *b, uint32_t host, uint32_t to_next, uint32_t *ret_peers)
{
  for (uint32_t i = 0; i < b->at->gpus_per_host; i++) {
    uint32_t rank = rank_at (b, host, i);
    bool sends = rank != UINT32_MAX && b->roles[ls_plan_role (b->plan, rank)].id[SENDS + to_next] != 0;
    ret_peers[i] = sends ? ls_plan_peer (b->plan, rank, to_next) : UINT32_MAX;
  }
}

/* Whether all these are in the stretch of the host. */
static bool
are_beside (const Blocks *b, uint32_t host, const uint32_t *peers)
{
  const Stretches *s = &b->stretches;
  if (!s->kept)
    return true;
  uint32_t own = stretch_of_gpu (s, stretch_gpu (s, host * b->at->gpus_per_host));
  for (uint32_t i = 0; i < b->at->gpus_per_host; i++)
    if (peers[i] != UINT32_MAX && stretch_of_gpu (s, ls_plan_gpu (b->plan, peers[i])) != own)
      return false;
  return true;
}

static uint32_t
host_of_peer (const Blocks *b, uint32_t peer)
{
  return peer == UINT32_MAX ? UINT32_MAX : blocks_host (b, peer);
}

bool
sends_shape_rank (const Blocks *b, uint32_t rank, uint32_t ret_shape[3], uint32_t ret_places[2][SEND_PLACES])
{
  const RoleCalls *role = &b->roles[ls_plan_role (b->plan, rank)];
  for (uint32_t p = 0; p < 2; p++) {
    ret_shape[p] = NO_SHAPE;
    if (role->id[SENDS + p] == 0)
      continue;
    const uint32_t ranks[] = { rank, ls_plan_peer (b->plan, rank, p) };
    const uint32_t *at;
    ret_shape[p] = shapes_of_calls (b->shapes, role->keys[SENDS + p], role->id[SENDS + p], ranks, 2, &at);
    if (ret_shape[p] == NO_SHAPE)
      return false;
    for (uint32_t k = 0; k < shapes_at (b->shapes, ret_shape[p])->n_places; k++)
      ret_places[p][k] = stretch_kept (&b->stretches, at[k]);
  }
  ret_shape[2] = shapes_of_copies (b->shapes, role, rank);
  return ret_shape[2] != NO_SHAPE;
}

/* kind: but for its shapes and places. False: a call cannot be planned. */
static bool
add_send_kind (SendFinding *f, uint32_t host, BundleKind kind)
{
  Blocks *b = f->b;
  uint32_t *shapes = ls_arena_new_array (b->arena, uint32_t, kind.n_callers),
           *number = ls_arena_new_array (b->arena, uint32_t, kind.n),
           *label = ls_arena_new_array (b->arena, uint32_t, kind.n);
  for (uint32_t i = 0; i < kind.n_callers; i++) {
    uint32_t shape[3], places[2][SEND_PLACES];
    if (!sends_shape_rank (b, rank_at (b, host, kind.gpu + i), shape, places))
      return false;
    shapes[i] = shape[kind.to_next];
    g_assert (shapes_at (b->shapes, shapes[i])->n_places == kind.n);
  }
  for (uint32_t k = 0; k < kind.n; k++) {
    number[k] = k;
    label[k] = k + 1;
  }
  kind.shape = shapes;
  kind.number = number;
  kind.label = label;
  g_array_append_val (b->kinds, kind);
  return true;
}

/* What so many GPUs of a host send, from one on. */
static bool
add_sends (SendFinding *f, uint32_t host, uint32_t to_next, uint32_t gpu, uint32_t n)
{
  Blocks *b = f->b;
  const uint32_t *places;
  BundleKind kind = { .n_callers = n, .gpu = gpu, .to_next = to_next };
  for (uint32_t i = 0; i < n; i++)
    f->ranks[i] = rank_at (b, host, gpu + i);
  memcpy (&f->ranks[n], &f->peers[gpu], n * sizeof *f->peers);
  kind.sig = shapes_key (b->shapes, to_next, f->ranks, 2 * n, &places, &kind.n);
  for (uint32_t i = 0; i < n; i++)
    ls_sig_add (&kind.sig, b->roles[ls_plan_role (b->plan, f->ranks[i])].id[SENDS + to_next]);
  const Bundle own
      = { .kind = f->n_kinds + sigs_id (f->known, b->arena, kind.sig) - 1, .place = b->places->len };
  for (uint32_t k = 0; k < kind.n; k++) {
    uint32_t place = stretch_kept (&b->stretches, places[k]);
    g_array_append_val (b->places, place);
  }
  g_array_append_val (b->bundles, own);
  return own.kind < b->kinds->len || add_send_kind (f, host, kind);
}

static bool
find_sends_to (SendFinding *f, uint32_t host, uint32_t to_next)
{
  const Blocks *b = f->b;
  uint32_t per_host = b->at->gpus_per_host;
  find_peers (b, host, to_next, f->peers);
  if (!are_beside (b, host, f->peers))
    return false;
  for (uint32_t i = 0, n; i < per_host; i += n) {
    uint32_t to = host_of_peer (b, f->peers[i]);
    for (n = 1; i + n < per_host && host_of_peer (b, f->peers[i + n]) == to;)
      n++;
    if (to != UINT32_MAX && !add_sends (f, host, to_next, i, n))
      return false;
  }
  return true;
}

bool
hosts_have_same_roles (const Blocks *b, uint32_t host, uint32_t other)
{
  uint32_t n = b->at->gpus_per_host, first = stretch_gpu (&b->stretches, host * n),
           first_of_other = stretch_gpu (&b->stretches, other * n);
  const LsPlan *plan = b->plan;
  bool are_same = MAX (first, first_of_other) + n <= plan->n_ranks,
       by_mesh = !plan->bindings && !plan->role_of_rank;
  for (uint32_t i = 0; i < n && are_same;) {
    are_same = ls_plan_role (plan, first + i) == ls_plan_role (plan, first_of_other + i);
    i = by_mesh ? MIN (ls_plan_end_of_role (plan, first + i) - first,
                       ls_plan_end_of_role (plan, first_of_other + i) - first_of_other)
                : i + 1;
  }
  return are_same;
}

/* As of a host that is alike but for whole periods: a role has its neighbours at one distance. */
static void
repeat_sends (Blocks *b, uint32_t host, SeenSends *seen)
{
  guint first = b->bundles->len;
  g_array_set_size (b->bundles, first + seen->n);
  Bundle *own = &g_array_index (b->bundles, Bundle, first);
  memcpy (own, blocks_bundle (b, seen->first), seen->n * sizeof *own);
  for (guint i = 0; i < seen->n; i++)
    own[i].shift += (host - seen->host) / b->period;
  *seen = (SeenSends) { true, host, first, seen->n };
}

static bool
find_sends_of (SendFinding *f, uint32_t host)
{
  Blocks *b = f->b;
  SeenSends *seen = f->seen ? &f->seen[host % b->period] : NULL;
  if (seen && seen->is_there && hosts_have_same_roles (b, host, seen->host)) {
    repeat_sends (b, host, seen);
    return true;
  }
  guint first = b->bundles->len;
  for (uint32_t p = 0; p < 2; p++)
    if (!find_sends_to (f, host, p))
      return false;
  if (seen)
    *seen = (SeenSends) { true, host, first, b->bundles->len - first };
  return true;
}

bool
sends_find (Blocks *b)
{
  uint32_t per_host = b->at->gpus_per_host;
  SendFinding f = { .b = b,
                    .known = ls_arena_table (b->arena, ls_sig_hash, ls_sig_is_same),
                    .n_kinds = b->kinds->len,
                    .peers = ls_arena_new_array (b->arena, uint32_t, per_host),
                    .ranks = ls_arena_new_array (b->arena, uint32_t, 2 * per_host),
                    .seen = b->period > 0 ? ls_arena_new_array (b->arena, SeenSends, b->period) : NULL };
  bool ok = true;
  for (uint32_t host = 0; host < b->at->n_hosts && ok && !b->is_one; host++)
    ok = find_sends_of (&f, host);
  return ok;
}
