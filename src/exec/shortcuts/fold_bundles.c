/* exec/shortcuts/fold_bundles.c — communicators by where they lie: those that lie alike have one template,
 * those in the same places are one bundle. */
#include <string.h>

#include "exec/shortcuts/fold_blocks.h"
#include "exec/replay/state.h"

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
