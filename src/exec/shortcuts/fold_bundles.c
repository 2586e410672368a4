/* exec/shortcuts/fold_bundles.c — who lies where: communicators that lie alike have one template, those in
 * the same places are one bundle; what hosts send to each other is in rows. */
#include <string.h>

#include "exec/replay/state.h"
#include "exec/shortcuts/fold_blocks.h"

/* The template of communicators whose first member is at that GPU of a period. */
typedef struct {
  const uint32_t *offsets; /* NULL: none yet */
  uint32_t n_ranks, list, template;
} Seen;

typedef struct {
  Blocks *b;
  const uint8_t *slot;
  Seen *seen;         /* [GPUs of a period]; NULL: each communicator has its own */
  GHashTable *known;  /* LsSig of places > lie + 1                               */
  GArray *first;      /* uint32_t: where those of each lie begin in places, and of one more */
  GArray *places;     /* uint32_t: at no shift                                   */
  GHashTable *labels; /* LsSig > label                                           */
  uint32_t *kept_at;  /* [GPUs that are kept] which of this first member was kept last, + 1 */
  /* Of the stretch looked at: its first GPU, and how many there are; the number of the first, kept. */
  uint32_t gpu, n_gpus, kept_gpu;
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
  uint32_t lie = sigs_id (f->known, f->b->arena, sig) - 1;
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
  f->kept_gpu = stretch_kept_gpu (s, gpu);
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

static Crossing
crossing_of (Finding *f, const KeptComm *kept, uint32_t shape, const uint32_t *places, uint32_t shift)
{
  const Blocks *b = f->b;
  Crossing own = { .lie = lie_of (f, places, shapes_at (b->shapes, shape)->n_places, shift) };
  const LsCommunicator comm = ls_plan_communicator (b->plan, kept->comm);
  own.kept_members = kept_members (f, &comm, &own.n_kept_members);
  return own;
}

static void
add_template (Finding *f, KeptComm *kept, uint32_t shape, bool is_across, const Crossing *at)
{
  Blocks *b = f->b;
  Template own = { .shape = shape,
                   .n_ranks = ls_plan_communicator (b->plan, kept->comm).n_ranks,
                   .lie = at->lie,
                   .is_across = is_across,
                   .slot = f->slot[kept->comm],
                   .n_kept_members = at->n_kept_members,
                   .kept_members = at->kept_members };
  kept->template = b->templates->len;
  g_array_append_val (b->templates, own);
}

static const RoleCalls *
role_of (const Finding *f, uint32_t c)
{
  const LsPlan *plan = f->b->plan;
  return &f->b->roles[ls_plan_role (plan, ls_plan_member (plan, c, 0))];
}

/* A number for what a communicator calls: equal of equal calls. */
static uint32_t
calls_of (const Finding *f, uint32_t c)
{
  return role_of (f, c)->id[CALLS + f->slot[c]];
}

/* False: a call cannot be planned. */
static bool
find_template (Finding *f, KeptComm *kept)
{
  Blocks *b = f->b;
  uint32_t c = kept->comm;
  const LsCommunicator comm = ls_plan_communicator (b->plan, c);
  uint32_t id = calls_of (f, c), gpus = b->period * b->at->gpus_per_host,
           first = stretch_kept_gpu (&b->stretches, comm.first);
  kept->shift = gpus > 0 ? first / gpus : 0;
  Seen *seen = f->seen ? &f->seen[first - kept->shift * gpus] : NULL;
  if (seen && seen->offsets == comm.offsets && seen->n_ranks == comm.n_ranks && seen->list == id) {
    kept->template = seen->template;
    return true;
  }
  const uint32_t *places;
  g_autofree uint32_t *ranks = ls_comm_ranks (&comm);
  uint32_t shape = shapes_of_calls (b->shapes, role_of (f, c)->keys[CALLS + f->slot[c]], id, ranks,
                                    comm.n_ranks, &places);
  if (shape == NO_SHAPE)
    return false;
  const Crossing at = crossing_of (f, kept, shape, places, kept->shift);
  add_template (f, kept, shape, false, &at);
  if (seen)
    *seen = (Seen) { comm.offsets, comm.n_ranks, id, kept->template };
  return true;
}

/* Those of one Across are whole blocks apart. */
static void
find_template_across (Finding *f, KeptComm *kept, Across *a)
{
  const Blocks *b = f->b;
  kept->shift
      = ls_plan_communicator (b->plan, kept->comm).first / b->stretches.gpus_of_block * b->stretches.n_kept;
  Crossing *at = a->at;
  if (!at->kept_members) {
    const Crossing own = crossing_of (f, kept, a->shape, at->places, 0);
    at->lie = own.lie;
    at->n_kept_members = own.n_kept_members;
    at->kept_members = own.kept_members;
  }
  if (a->template == 0) {
    add_template (f, kept, a->shape, true, at);
    a->template = kept->template + 1;
  }
  kept->template = a->template - 1;
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
    *own = *own == 0 ? ++b->n_bundles : *own;
    kept->bundle = *own - 1;
  }
}

/* Their communicators, in order. */
static void
fill_bundles (Finding *f)
{
  Blocks *b = f->b;
  b->bundles = g_new0 (Bundle, b->n_bundles + 1);
  b->kept_of_bundle = g_new (uint32_t, b->kept->len + 1);
  for (guint i = 0; i < b->kept->len; i++)
    b->bundles[blocks_kept (b, i)->bundle + 1].first++;
  for (uint32_t i = 0; i < b->n_bundles; i++)
    b->bundles[i + 1].first += b->bundles[i].first;
  g_autofree uint32_t *next = g_new (uint32_t, b->n_bundles + 1);
  for (uint32_t i = 0; i < b->n_bundles; i++)
    next[i] = b->bundles[i].first;
  for (guint i = 0; i < b->kept->len; i++) {
    const KeptComm *kept = blocks_kept (b, i);
    b->bundles[kept->bundle].shift = kept->shift;
    b->kept_of_bundle[next[kept->bundle]++] = i;
  }
}

/* --- kinds of bundles ------------------------------------------------------------------ */

/* Of the k-th place of all, 0: nothing of them is there. */
static uint32_t
label_of (Finding *f, const BundleKind *kind, uint32_t k)
{
  const Blocks *b = f->b;
  LsSig sig = { kind->n_comms, 0 };
  bool is_any = false;
  for (uint32_t i = 0; i < kind->n_comms; i++) {
    const Template *t = &g_array_index (b->templates, Template, kind->templates[i]);
    uint32_t label = shapes_at (b->shapes, t->shape)->label[k];
    is_any = is_any || label > 0;
    ls_sig_add (&sig, label);
  }
  return is_any ? sigs_id (f->labels, b->arena, sig) : 0;
}

/* Of hosts, or of what is above them. */
static void
add_places (Finding *f, uint32_t lie, bool of_hosts, BundleKind *kind)
{
  uint32_t n, *place = (uint32_t *) kind->place, *number = (uint32_t *) kind->number,
              *label = (uint32_t *) kind->label;
  const uint32_t *places = places_of (f, lie, &n);
  for (uint32_t k = 0; k < n; k++) {
    bool counts = places[k] != LS_NO_PLACE && (places[k] < f->b->at->n_hosts) == of_hosts;
    uint32_t own = counts ? label_of (f, kind, k) : 0;
    if (own == 0)
      continue;
    place[kind->n] = places[k];
    number[kind->n] = k;
    label[kind->n++] = own;
  }
}

/* NULL: once each. */
static const uint32_t *
times_of (const Blocks *b, const BundleKind *kind)
{
  bool is_across = g_array_index (b->templates, Template, kind->templates[0]).is_across;
  uint32_t *times = is_across ? ls_arena_new_array (b->arena, uint32_t, kind->n + 1) : NULL;
  for (uint32_t k = 0; k < kind->n && times; k++)
    times[k] = stretch_times (&b->stretches, kind->place[k]);
  return times;
}

static void
add_kind (Finding *f, const Bundle *bundle)
{
  Blocks *b = f->b;
  BundleKind kind = { .n_comms = bundle[1].first - bundle->first };
  uint32_t *templates = ls_arena_new_array (b->arena, uint32_t, kind.n_comms), n_places;
  for (uint32_t i = 0; i < kind.n_comms; i++) {
    templates[i] = blocks_kept (b, b->kept_of_bundle[bundle->first + i])->template;
    const Template *t = &g_array_index (b->templates, Template, templates[i]);
    ls_sig_add_sig (&kind.sig, shapes_at (b->shapes, t->shape)->sig);
    ls_sig_add (&kind.sig, (uint64_t) t->n_ranks << 32 | t->slot);
  }
  kind.templates = templates;
  uint32_t lie = g_array_index (b->templates, Template, templates[0]).lie;
  places_of (f, lie, &n_places);
  kind.place = ls_arena_new_array (b->arena, uint32_t, MAX (1, n_places));
  kind.number = ls_arena_new_array (b->arena, uint32_t, MAX (1, n_places));
  kind.label = ls_arena_new_array (b->arena, uint32_t, MAX (1, n_places));
  add_places (f, lie, true, &kind);
  kind.n_hosts = kind.n;
  add_places (f, lie, false, &kind);
  kind.times = times_of (b, &kind);
  g_array_append_val (b->kinds, kind);
}

static void
find_kinds (Finding *f)
{
  Blocks *b = f->b;
  g_autofree LsSig *sigs = g_new0 (LsSig, b->n_bundles + 1);
  g_autofree uint32_t *kind = g_new (uint32_t, b->n_bundles + 1);
  for (guint i = 0; i < b->kept->len; i++)
    ls_sig_add (&sigs[blocks_kept (b, i)->bundle], blocks_kept (b, i)->template);
  sigs_number (sigs, b->n_bundles, kind);
  for (uint32_t i = 0; i < b->n_bundles; i++) {
    b->bundles[i].kind = kind[i];
    if (kind[i] == b->kinds->len)
      add_kind (f, &b->bundles[i]);
  }
}

/* Of a communicator, which are asked in their order; NULL: it is in one stretch. */
static Across *
next_across (Finding *f, uint32_t c)
{
  const GArray *all = f->b->across;
  if (!all || f->n_across == all->len || g_array_index (all, AcrossComm, f->n_across).comm != c)
    return NULL;
  return g_array_index (all, AcrossComm, f->n_across++).across;
}

/* Of one that nothing else stands for. False: as find_template(). */
static bool
find_kept (Finding *f, uint32_t c, const LsCommunicator *comm)
{
  Blocks *b = f->b;
  uint32_t first = ls_comm_rank (comm, 0);
  Across *across = next_across (f, c);
  look_at_stretch (f, first);
  uint32_t *known = f->kept_at && !across ? &f->kept_at[f->kept_gpu + (first - f->gpu)] : NULL;
  KeptComm own = { .comm = c, .offsets = comm->offsets };
  bool ok = across || find_template (f, &own);
  if (across)
    find_template_across (f, &own, across);
  b->kept_of_comm[c] = b->kept->len;
  g_array_append_val (b->kept, own);
  if (known)
    *known = b->kept->len;
  return ok;
}

/* How many others a communicator that is kept stands for, if stretches are what they are said to be. */
static uint32_t
n_expected (const Blocks *b, const KeptComm *kept)
{
  const Stretches *s = &b->stretches;
  uint32_t first = ls_plan_member (b->plan, kept->comm, 0);
  bool is_in_one = s->kept && !blocks_template (b, kept)->is_across;
  return is_in_one ? s->n_of[s->kept[stretch_of_gpu (s, first)]] - 1 : 0;
}

/* How many of a run, from the i-th on, begin in one stretch that is not kept, and are in no other. */
static uint32_t
n_stood_for (Finding *f, uint32_t c, const LsCommRun *run, uint32_t i)
{
  const GArray *across = f->b->across;
  uint32_t first = ls_comm_rank (&run->first, 0) + i * run->stride;
  if (!f->kept_at)
    return 0;
  look_at_stretch (f, first);
  uint32_t left = f->gpu + f->n_gpus - first,
           n = f->is_kept ? 0 : MIN (run->n - i, (left - 1) / MAX (1, run->stride) + 1);
  if (f->n_across < across->len)
    n = MIN (n, g_array_index (across, AcrossComm, f->n_across).comm - (c + i));
  return n;
}

/* n of them, each by what is kept of the same first member: that is what they are in their own stretch, as
 * their first members have the same place there, and so the same role (stretches_find()). False: nothing that
 * is kept stands for one. */
static bool
stand_for (Finding *f, uint32_t c, const LsCommRun *run, uint32_t i, uint32_t n)
{
  const uint32_t *known
      = &f->kept_at[f->kept_gpu + (ls_comm_rank (&run->first, 0) + i * run->stride - f->gpu)];
  const uint8_t *slot = &f->slot[c + i];
  uint32_t *of_comm = &f->b->kept_of_comm[c + i];
  KeptComm *all = blocks_kept (f->b, 0);
  for (uint32_t k = 0; k < n; k++, known += run->stride) {
    KeptComm *kept = *known > 0 ? &all[*known - 1] : NULL;
    if (!kept || run->first.offsets != kept->offsets || slot[k] != f->slot[kept->comm])
      return false;
    of_comm[k] = *known - 1;
    kept->n_like++;
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

static bool
find_templates (Finding *f)
{
  const Blocks *b = f->b;
  LsCommRun run;
  for (uint32_t c = 0; c < b->plan->n_comms; c += run.n) {
    run = ls_plan_comm_run (b->plan, c);
    if (!find_of_run (f, c, &run))
      return false;
  }
  for (guint i = 0; i < b->kept->len; i++)
    if (blocks_kept (b, i)->n_like != n_expected (b, blocks_kept (b, i)))
      return false;
  return true;
}

bool
bundles_find (Blocks *b, const uint8_t *slot)
{
  uint32_t n = b->plan->n_comms, zero = 0;
  Finding f = { .b = b,
                .slot = slot,
                .seen = b->period > 0 ? g_new0 (Seen, b->period * b->at->gpus_per_host) : NULL,
                .known = g_hash_table_new (ls_sig_hash, ls_sig_is_same),
                .first = g_array_new (FALSE, FALSE, sizeof (uint32_t)),
                .places = g_array_new (FALSE, FALSE, sizeof (uint32_t)),
                .labels = g_hash_table_new (ls_sig_hash, ls_sig_is_same) };
  if (b->stretches.kept)
    f.kept_at = g_new0 (uint32_t, stretch_n_gpus (&b->stretches));
  g_array_append_val (f.first, zero);
  b->templates = g_array_new (FALSE, FALSE, sizeof (Template));
  b->kinds = g_array_new (FALSE, FALSE, sizeof (BundleKind));
  b->kept = g_array_new (FALSE, FALSE, sizeof (KeptComm));
  b->kept_of_comm = g_new (uint32_t, n + 1);
  bool ok = find_templates (&f);
  if (ok) {
    number_bundles (&f);
    fill_bundles (&f);
    find_kinds (&f);
  }
  g_free (f.seen);
  g_hash_table_unref (f.known);
  g_array_unref (f.first);
  g_array_unref (f.places);
  g_hash_table_unref (f.labels);
  g_free (f.kept_at);
  return ok;
}

/* ---- stretches that are alike ---- */

/* Which stretches are alike, by communicators in several of them. */

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
  g_hash_table_insert (s->known, sig_keep (b->arena, key), a);
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

/* ---- rows ---- */

/* The rows of the last host at its place in a period. */
typedef struct {
  bool is_there;
  uint32_t host;
  guint first, n; /* into rows_at */
} SeenRows;

typedef struct {
  Blocks *b;
  GHashTable *known;       /* LsSig > row + 1                                          */
  uint32_t *peers, *ranks; /* [GPUs of a host], [twice as many] of the one looked at   */
  SeenRows *seen;          /* [hosts of a period]; NULL: each host is looked at        */
} RowFinding;

static uint32_t
rank_at (const Blocks *b, uint32_t host, uint32_t gpu)
{
  return blocks_rank (b, host * b->at->gpus_per_host + gpu);
}

/* Of each GPU of a host, the neighbour in that direction, if it matters; else UINT32_MAX. */
static void
find_peers (const Blocks *b, uint32_t host, uint32_t to_next, uint32_t *ret_peers)
{
  for (uint32_t i = 0; i < b->at->gpus_per_host; i++) {
    uint32_t rank = rank_at (b, host, i);
    bool matters = rank != UINT32_MAX && (b->peers[ls_plan_role (b->plan, rank)] >> to_next & 1);
    ret_peers[i] = matters ? ls_plan_peer (b->plan, rank, to_next) : UINT32_MAX;
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
rows_shape_rank (const Blocks *b, uint32_t rank, uint32_t ret_shape[3], uint32_t ret_places[2][SEND_PLACES])
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

/* False: a call cannot be planned. */
static bool
make_row (Blocks *b, uint32_t host, uint32_t n_places, Row *row)
{
  uint32_t *shapes = ls_arena_new_array (b->arena, uint32_t, row->n);
  for (uint32_t i = 0; i < row->n; i++) {
    uint32_t shape[3], places[2][SEND_PLACES];
    if (!rows_shape_rank (b, rank_at (b, host, row->gpu + i), shape, places))
      return false;
    shapes[i] = shape[row->to_next];
    g_assert (shapes[i] == NO_SHAPE || shapes_at (b->shapes, shapes[i])->n_places == n_places);
    row->n_places = shapes[i] == NO_SHAPE ? row->n_places : n_places;
  }
  row->shape = shapes;
  row->label = b->n_row_labels;
  b->n_row_labels += MAX (1, n_places);
  return true;
}

/* UINT32_MAX: a call cannot be planned. Of `row` nothing is known but the GPUs. */
static uint32_t
number_of_row (RowFinding *f, LsSig key, uint32_t host, uint32_t n_places, Row row)
{
  Blocks *b = f->b;
  uint32_t number = sigs_id (f->known, b->arena, key) - 1;
  if (number < b->rows->len)
    return number;
  if (!make_row (b, host, n_places, &row))
    return UINT32_MAX;
  g_array_append_val (b->rows, row);
  return number;
}

/* peers: of the GPUs of the row. */
static bool
add_row (RowFinding *f, uint32_t host, Row row, const uint32_t *peers)
{
  Blocks *b = f->b;
  const uint32_t *places;
  uint32_t n_places, n = row.n;
  for (uint32_t i = 0; i < n; i++)
    f->ranks[i] = rank_at (b, host, row.gpu + i);
  memcpy (&f->ranks[n], peers, n * sizeof *peers);
  LsSig key = shapes_key (b->shapes, row.to_next, f->ranks, 2 * n, &places, &n_places);
  for (uint32_t i = 0; i < n; i++)
    ls_sig_add (&key, b->roles[ls_plan_role (b->plan, f->ranks[i])].id[SENDS + row.to_next]);
  RowLie lie = { .from = host, .to = host_of_peer (b, peers[0]), .first = b->row_places->len };
  for (uint32_t k = 0; k < n_places; k++) {
    uint32_t place = stretch_kept (&b->stretches, places[k]);
    g_array_append_val (b->row_places, place);
  }
  lie.row = number_of_row (f, key, host, n_places, row);
  const RowAt at = { b->row_lies->len, 0 };
  g_array_append_val (b->row_lies, lie);
  g_array_append_val (b->rows_at, at);
  return lie.row != UINT32_MAX;
}

static bool
find_rows_to (RowFinding *f, uint32_t host, uint32_t to_next)
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
    if (to != UINT32_MAX && !add_row (f, host, (Row) { .gpu = i, .n = n, .to_next = to_next }, &f->peers[i]))
      return false;
  }
  return true;
}

bool
rows_are_of_same_roles (const Blocks *b, uint32_t host, uint32_t other)
{
  uint32_t n = b->at->gpus_per_host, first = stretch_gpu (&b->stretches, host * n),
           first_of_other = stretch_gpu (&b->stretches, other * n);
  bool are_same = MAX (first, first_of_other) + n <= b->plan->n_ranks;
  for (uint32_t i = 0; i < n && are_same; i++)
    are_same = ls_plan_role (b->plan, first + i) == ls_plan_role (b->plan, first_of_other + i);
  return are_same;
}

/* As of a host that is alike but for whole periods: a role has its neighbours at one distance. */
static void
repeat_rows (Blocks *b, uint32_t host, SeenRows *seen)
{
  guint first = b->rows_at->len;
  g_array_set_size (b->rows_at, first + seen->n);
  RowAt *at = &g_array_index (b->rows_at, RowAt, first),
        *before = &g_array_index (b->rows_at, RowAt, seen->first);
  for (guint i = 0; i < seen->n; i++)
    at[i] = (RowAt) { before[i].lie, before[i].shift + (host - seen->host) / b->period };
  *seen = (SeenRows) { true, host, first, seen->n };
}

static bool
find_rows_of (RowFinding *f, uint32_t host)
{
  Blocks *b = f->b;
  SeenRows *seen = f->seen ? &f->seen[host % b->period] : NULL;
  if (seen && seen->is_there && rows_are_of_same_roles (b, host, seen->host)) {
    repeat_rows (b, host, seen);
    return true;
  }
  guint first = b->rows_at->len;
  for (uint32_t p = 0; p < 2; p++)
    if (!find_rows_to (f, host, p))
      return false;
  if (seen)
    *seen = (SeenRows) { true, host, first, b->rows_at->len - first };
  return true;
}

bool
rows_find (Blocks *b)
{
  uint32_t per_host = b->at->gpus_per_host;
  RowFinding f = { .b = b,
                   .known = g_hash_table_new (ls_sig_hash, ls_sig_is_same),
                   .peers = g_new (uint32_t, per_host),
                   .ranks = g_new (uint32_t, 2 * per_host),
                   .seen = b->period > 0 ? g_new0 (SeenRows, b->period) : NULL };
  b->rows = g_array_new (FALSE, FALSE, sizeof (Row));
  b->row_lies = g_array_new (FALSE, FALSE, sizeof (RowLie));
  b->rows_at = g_array_new (FALSE, FALSE, sizeof (RowAt));
  b->row_places = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  bool ok = true;
  for (uint32_t host = 0; host < b->at->n_hosts && ok && !b->is_one; host++)
    ok = find_rows_of (&f, host);
  g_hash_table_unref (f.known);
  g_free (f.peers);
  g_free (f.ranks);
  g_free (f.seen);
  return ok;
}
