/* exec/shortcuts/fold_bundles.c — communicators by where they lie: those that lie alike have one template,
 * those in the same places are one bundle. */
#include <string.h>

#include "exec/shortcuts/fold_blocks.h"
#include "exec/state.h"

/* The template of communicators whose first member is at that GPU of a period. */
typedef struct {
  const uint32_t *offsets; /* NULL: none yet */
  uint32_t n_ranks, list, template;
} Seen;

typedef struct {
  Blocks *b;
  const uint8_t *slot;
  Seen *seen;                 /* [GPUs of a period]; NULL: each communicator has its own */
  GHashTable *known;          /* LsSig of places > lie + 1                               */
  GArray *first;              /* uint32_t: where those of each lie begin in places, and of one more */
  GArray *places;             /* uint32_t: at no shift                                   */
  GHashTable *labels;         /* LsSig > label                                           */
  uint32_t *template, *shift; /* [communicators] */
} Finding;

/* --- templates ------------------------------------------------------------------------- */

/* The number of a list of places, which are those at this shift. */
static uint32_t
lie_of (Finding *f, const uint32_t *places, uint32_t n, uint32_t shift)
{
  uint32_t first = f->places->len, n_known = g_hash_table_size (f->known);
  LsSig sig = { n, 0 };
  for (uint32_t k = 0; k < n; k++) {
    uint32_t place = blocks_moved (f->b, places[k], -shift);
    ls_sig_add (&sig, place);
    g_array_append_val (f->places, place);
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

/* False: a call cannot be planned. */
static bool
add_template (Finding *f, uint32_t c, int list, uint32_t shift)
{
  Blocks *b = f->b;
  const LsCommunicator *comm = &b->plan->comms[c];
  const RoleCalls *role = &b->roles[ls_plan_role (b->plan, ls_comm_rank (comm, 0))];
  const uint32_t *at;
  g_autofree uint32_t *ranks = ls_comm_ranks (comm);
  uint32_t shape = shapes_of_calls (b->shapes, role->keys[list], role->id[list], ranks, comm->n_ranks, &at);
  if (shape == NO_SHAPE)
    return false;
  const Template own = { .shape = shape,
                         .n_ranks = comm->n_ranks,
                         .lie = lie_of (f, at, shapes_at (b->shapes, shape)->n_places, shift),
                         .slot = f->slot[c] };
  g_array_append_val (b->templates, own);
  return true;
}

static bool
find_template (Finding *f, uint32_t c)
{
  const Blocks *b = f->b;
  const LsCommunicator *comm = &b->plan->comms[c];
  int list = CALLS + f->slot[c];
  uint32_t id = b->roles[ls_plan_role (b->plan, ls_comm_rank (comm, 0))].id[list];
  uint32_t gpus = b->period * b->at->gpus_per_host;
  f->shift[c] = gpus > 0 ? comm->first / gpus : 0;
  Seen *seen = f->seen ? &f->seen[comm->first - f->shift[c] * gpus] : NULL;
  if (!seen || seen->offsets != comm->offsets || seen->n_ranks != comm->n_ranks || seen->list != id) {
    if (!add_template (f, c, list, f->shift[c]))
      return false;
    if (seen)
      *seen = (Seen) { comm->offsets, comm->n_ranks, id, b->templates->len - 1 };
  }
  f->template[c] = seen ? seen->template : b->templates->len - 1;
  return true;
}

/* --- bundles --------------------------------------------------------------------------- */

/* Where those of each lie begin, by shift; ret: [lies + 1], newly allocated. */
static uint32_t *
count_shifts (const Finding *f)
{
  const Blocks *b = f->b;
  uint32_t n_lies = f->first->len - 1, *first = g_new0 (uint32_t, n_lies + 1);
  for (uint32_t c = 0; c < b->plan->n_comms; c++) {
    uint32_t *n = &first[g_array_index (b->templates, Template, f->template[c]).lie + 1];
    *n = MAX (*n, f->shift[c] + 1);
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
  for (uint32_t c = 0; c < b->plan->n_comms; c++) {
    uint32_t lie = g_array_index (b->templates, Template, f->template[c]).lie,
             *own = &bundle_at[first[lie] + f->shift[c]];
    *own = *own == 0 ? ++b->n_bundles : *own;
    b->bundle_of_comm[c] = *own - 1;
  }
}

/* Their communicators, in order. */
static void
fill_bundles (Finding *f)
{
  Blocks *b = f->b;
  b->bundles = g_new0 (Bundle, b->n_bundles + 1);
  for (uint32_t c = 0; c < b->plan->n_comms; c++)
    b->bundles[b->bundle_of_comm[c] + 1].first++;
  for (uint32_t i = 0; i < b->n_bundles; i++)
    b->bundles[i + 1].first += b->bundles[i].first;
  g_autofree uint32_t *next = g_new (uint32_t, b->n_bundles + 1);
  for (uint32_t i = 0; i < b->n_bundles; i++)
    next[i] = b->bundles[i].first;
  for (uint32_t c = 0; c < b->plan->n_comms; c++) {
    b->bundles[b->bundle_of_comm[c]].shift = f->shift[c];
    b->comm_of_bundle[next[b->bundle_of_comm[c]]++] = c;
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
    uint32_t own = (places[k] < f->b->at->n_hosts) == of_hosts ? label_of (f, kind, k) : 0;
    if (own == 0)
      continue;
    place[kind->n] = places[k];
    number[kind->n] = k;
    label[kind->n++] = own;
  }
}

static void
add_kind (Finding *f, const Bundle *bundle)
{
  Blocks *b = f->b;
  BundleKind kind = { .n_comms = bundle[1].first - bundle->first };
  uint32_t *templates = ls_arena_new_array (b->arena, uint32_t, kind.n_comms), n_places;
  for (uint32_t i = 0; i < kind.n_comms; i++) {
    templates[i] = f->template[b->comm_of_bundle[bundle->first + i]];
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
  g_array_append_val (b->kinds, kind);
}

static void
find_kinds (Finding *f)
{
  Blocks *b = f->b;
  g_autofree LsSig *sigs = g_new0 (LsSig, b->n_bundles + 1);
  g_autofree uint32_t *kind = g_new (uint32_t, b->n_bundles + 1);
  for (uint32_t c = 0; c < b->plan->n_comms; c++)
    ls_sig_add (&sigs[b->bundle_of_comm[c]], f->template[c]);
  sigs_number (sigs, b->n_bundles, kind);
  for (uint32_t i = 0; i < b->n_bundles; i++) {
    b->bundles[i].kind = kind[i];
    if (kind[i] == b->kinds->len)
      add_kind (f, &b->bundles[i]);
  }
}

static bool
find_templates (Finding *f)
{
  for (uint32_t c = 0; c < f->b->plan->n_comms; c++)
    if (!find_template (f, c))
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
                .labels = g_hash_table_new (ls_sig_hash, ls_sig_is_same),
                .template = g_new (uint32_t, n + 1),
                .shift = g_new (uint32_t, n + 1) };
  g_array_append_val (f.first, zero);
  b->templates = g_array_new (FALSE, FALSE, sizeof (Template));
  b->kinds = g_array_new (FALSE, FALSE, sizeof (BundleKind));
  b->bundle_of_comm = g_new (uint32_t, n + 1);
  b->comm_of_bundle = g_new (uint32_t, n + 1);
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
  g_free (f.template);
  g_free (f.shift);
  return ok;
}
