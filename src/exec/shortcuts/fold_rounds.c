/* exec/shortcuts/fold_rounds.c — places and communicators refined, round by round: the first step. */
#include <string.h>

#include "exec/shortcuts/fold_blocks.h"
#include "exec/replay/state.h"

/* --- to begin with --------------------------------------------------------------------- */

static LsSig
first_of_host (const Blocks *b, uint32_t host)
{
  const double *slow = b->x->options.slow;
  LsSig sig = { .a = 1 };
  if (!ls_places_is_sound (b->x->cluster, stretch_place (&b->stretches, host)))
    ls_sig_add (&sig, UINT64_C (1) << 63 | host);
  for (uint32_t i = 0; i < b->at->gpus_per_host; i++) {
    uint32_t rank = blocks_rank (b, host * b->at->gpus_per_host + i);
    ls_sig_add (&sig, rank == UINT32_MAX ? UINT64_MAX : ls_plan_role (b->plan, rank));
    if (slow && rank != UINT32_MAX)
      ls_sig_add_double (&sig, slow[rank]);
  }
  return sig;
}

static void
first_of_hosts (const Blocks *b, LsSig *ret)
{
  bool may_repeat = b->period > 0 && !b->x->options.slow;
  for (uint32_t i = 0; i < b->at->n_hosts; i++)
    ret[i] = may_repeat && i > 0 && rows_are_of_same_roles (b, i, i - 1) ? ret[i - 1] : first_of_host (b, i);
}

/* Of a group or a pod: its rates. */
static LsSig
first_above (const Blocks *b, uint32_t place)
{
  LsSig sig = { .a = place < b->at->n_hosts + b->at->n_groups ? 2 : 3 };
  for (uint32_t i = 0; i < ls_places_n_at (b->at, place); i++)
    ls_sig_add_double (&sig, blocks_capacity (b, blocks_resource (b, place, i)));
  return sig;
}

/* --- a round ---------------------------------------------------------------------------- */

typedef struct {
  Blocks *b;
  LsSig *sums; /* [most of places, bundles] */
  LsSig *scratch;
  uint32_t *wide, n_wide;   /* bundles of several places      */
  uint32_t *class, n_class; /* [n_wide]; classes of these    */
  LsSig *of_class;          /* [the same most] of the classes that are looked at */
  LsSig **of_label;         /* [kinds][places of a kind]                         */
  LsSig *of_row, *of_peers; /* [row labels]                                      */
  uint32_t *once;           /* [most places of a kind] 1                         */
} Round;

/* Who sees what: a word says it, by what, as a label or a class. */
typedef enum { SEEN_LABEL, SEEN_ROW, SEEN_PEERS, SEEN_PLACE, SEEN_BUNDLE } Seen;

static inline LsSig
sig_seen (Seen what, uint32_t number)
{
  return ls_sig_of ((uint64_t) what << 32 | number);
}

/* So many things of that class by that label: the sum over all that is seen is bilinear in random words, so
 * that two sums of other pairs are alike by no chance that counts. */
static inline void
add_seen (LsSig *sum, uint32_t times, LsSig class, LsSig label)
{
  sum->a += times * class.a * label.a;
  sum->b += times * class.b * label.b;
}

static void
look_at (Round *x, Seen what, uint32_t n_classes)
{
  for (uint32_t i = 0; i < n_classes; i++)
    x->of_class[i] = sig_seen (what, i);
}

static void
refine_bundles (Round *x)
{
  const Blocks *b = x->b;
  look_at (x, SEEN_PLACE, b->n_place_classes);
  for (uint32_t i = 0; i < x->n_wide; i++) {
    const Bundle *bundle = &b->bundles[x->wide[i]];
    const BundleKind *kind = blocks_kind (b, bundle);
    const LsSig *of_label = x->of_label[bundle->kind];
    const uint32_t *times = kind->times ? kind->times : x->once;
    LsSig sum = { 0 }, own = ls_sig_of (x->class[i]);
    for (uint32_t k = 0; k < kind->n_hosts; k++)
      add_seen (&sum, times[k], x->of_class[b->class_of_place[kind->place[k] + bundle->shift * b->period]],
                of_label[k]);
    for (uint32_t k = kind->n_hosts; k < kind->n; k++) {
      uint32_t place = blocks_moved (b, kind->place[k], bundle->shift);
      if (blocks_matters (b, place))
        add_seen (&sum, times[k], x->of_class[b->class_of_place[place]], of_label[k]);
    }
    ls_sig_add_sig (&own, sum);
    x->scratch[i] = own;
  }
  x->n_class = sigs_number (x->scratch, x->n_wide, x->class);
}

static void
add_bundles (Round *x)
{
  const Blocks *b = x->b;
  for (uint32_t i = 0; i < x->n_wide; i++) {
    const Bundle *bundle = &b->bundles[x->wide[i]];
    const BundleKind *kind = blocks_kind (b, bundle);
    const LsSig own = sig_seen (SEEN_BUNDLE, x->class[i]), *of_label = x->of_label[bundle->kind];
    for (uint32_t k = 0; k < kind->n_hosts; k++)
      add_seen (&x->sums[kind->place[k] + bundle->shift * b->period], 1, own, of_label[k]);
    for (uint32_t k = kind->n_hosts; k < kind->n; k++)
      add_seen (&x->sums[blocks_moved (b, kind->place[k], bundle->shift)], 1, own, of_label[k]);
  }
}

static void
add_rows (Round *x)
{
  const Blocks *b = x->b;
  look_at (x, SEEN_PLACE, b->n_place_classes);
  for (guint i = 0; i < b->rows_at->len; i++) {
    const RowAt *at = &g_array_index (b->rows_at, RowAt, i);
    const RowLie *lie = &g_array_index (b->row_lies, RowLie, at->lie);
    const Row *row = &g_array_index (b->rows, Row, lie->row);
    const uint32_t *places = &g_array_index (b->row_places, uint32_t, lie->first);
    uint32_t from = blocks_moved (b, lie->from, at->shift), to = blocks_moved (b, lie->to, at->shift);
    LsSig own = x->of_class[b->class_of_place[from]];
    add_seen (&x->sums[from], 1, x->of_class[b->class_of_place[to]], x->of_peers[row->label]);
    for (uint32_t k = 0; k < row->n_places; k++)
      add_seen (&x->sums[blocks_moved (b, places[k], at->shift)], 1, own, x->of_row[row->label + k]);
  }
}

static void
add_above (const Blocks *b, uint32_t place, LsSig *sig)
{
  if (blocks_matters (b, place))
    ls_sig_add (sig, b->class_of_place[place]);
}

/* Whether a round knows the same of a host as of the one before it. */
static bool
is_as_before (const Round *x, uint32_t host)
{
  const Blocks *b = x->b;
  return host > 0 && b->class_of_place[host] == b->class_of_place[host - 1]
      && x->sums[host].a == x->sums[host - 1].a && x->sums[host].b == x->sums[host - 1].b
      && ls_places_group_of (b->at, host) == ls_places_group_of (b->at, host - 1);
}

static void
refine_places (Round *x)
{
  Blocks *b = x->b;
  memset (x->sums, 0, b->n_places * sizeof *x->sums);
  add_bundles (x);
  add_rows (x);
  for (uint32_t i = 0; i < b->n_places; i++) {
    if (i < b->at->n_hosts && is_as_before (x, i)) {
      x->scratch[i] = x->scratch[i - 1];
      continue;
    }
    LsSig own = ls_sig_of (b->class_of_place[i]);
    ls_sig_add_sig (&own, x->sums[i]);
    if (i < b->at->n_hosts) {
      add_above (b, ls_places_group_of (b->at, i), &own);
      add_above (b, ls_places_pod_of (b->at, i), &own);
    }
    x->scratch[i] = own;
  }
  b->n_place_classes = sigs_number (x->scratch, b->n_places, b->class_of_place);
}

/* What a bundle in one host adds to what the host is. */
static LsSig
sig_of_local (const BundleKind *kind)
{
  LsSig sig = kind->sig;
  ls_sig_add (&sig, kind->label[0]);
  return sig;
}

static void
find_wide (Round *x)
{
  const Blocks *b = x->b;
  memset (x->sums, 0, b->n_places * sizeof *x->sums);
  for (uint32_t i = 0; i < b->n_bundles; i++) {
    const BundleKind *kind = blocks_kind (b, &b->bundles[i]);
    if (blocks_is_local (kind))
      ls_sig_add_times (&x->sums[blocks_moved (b, kind->place[0], b->bundles[i].shift)], 1,
                        sig_of_local (kind));
    else
      x->wide[x->n_wide++] = i;
  }
}

static void
find_labels (Round *x)
{
  const Blocks *b = x->b;
  uint32_t most = 0;
  x->of_label = g_new (LsSig *, b->kinds->len + 1);
  for (guint i = 0; i < b->kinds->len; i++) {
    const BundleKind *kind = &g_array_index (b->kinds, BundleKind, i);
    x->of_label[i] = ls_arena_new_array (b->arena, LsSig, MAX (1, kind->n));
    for (uint32_t k = 0; k < kind->n; k++)
      x->of_label[i][k] = sig_seen (SEEN_LABEL, kind->label[k]);
    most = MAX (most, kind->n);
  }
  x->once = g_new (uint32_t, most + 1);
  for (uint32_t k = 0; k < most; k++)
    x->once[k] = 1;
  x->of_row = g_new (LsSig, b->n_row_labels + 1);
  x->of_peers = g_new (LsSig, b->n_row_labels + 1);
  for (uint32_t i = 0; i < b->n_row_labels; i++) {
    x->of_row[i] = sig_seen (SEEN_ROW, i);
    x->of_peers[i] = sig_seen (SEEN_PEERS, i);
  }
}

static void
begin (Round *x)
{
  Blocks *b = x->b;
  find_wide (x);
  find_labels (x);
  first_of_hosts (b, x->scratch);
  for (uint32_t i = 0; i < b->n_places; i++) {
    if (i >= b->at->n_hosts)
      x->scratch[i] = first_above (b, i);
    ls_sig_add_sig (&x->scratch[i], x->sums[i]);
  }
  b->n_place_classes = sigs_number (x->scratch, b->n_places, b->class_of_place);
  for (uint32_t i = 0; i < x->n_wide; i++)
    x->scratch[i] = blocks_kind (b, &b->bundles[x->wide[i]])->sig;
  x->n_class = sigs_number (x->scratch, x->n_wide, x->class);
}

/* --- what it says of communicators --------------------------------------------------------- */

/* Classes of all bundles, with those of one host. */
static uint32_t
number_bundles (Round *x, uint32_t *ret_class)
{
  const Blocks *b = x->b;
  for (uint32_t i = 0; i < b->n_bundles; i++) {
    const BundleKind *kind = blocks_kind (b, &b->bundles[i]);
    if (!blocks_is_local (kind))
      continue;
    x->scratch[i] = sig_of_local (kind);
    ls_sig_add (&x->scratch[i], b->class_of_place[blocks_moved (b, kind->place[0], b->bundles[i].shift)]);
  }
  for (uint32_t i = 0; i < x->n_wide; i++)
    x->scratch[x->wide[i]] = ls_sig_of (x->class[i]);
  return sigs_number (x->scratch, b->n_bundles, ret_class);
}

/* Of communicators that are kept: one class for each of a bundle. */
static void
spread_bundles (Round *x)
{
  Blocks *b = x->b;
  g_autofree uint32_t *class = g_new (uint32_t, b->n_bundles + 1);
  uint32_t n = number_bundles (x, class);
  g_autofree uint32_t *first = g_new0 (uint32_t, n + 1); /* + 1 */
  for (uint32_t i = 0; i < b->n_bundles; i++) {
    uint32_t *own = &first[class[i]], n_comms = b->bundles[i + 1].first - b->bundles[i].first;
    if (*own == 0) {
      *own = b->n_comm_classes + 1;
      b->n_comm_classes += n_comms;
    }
    for (uint32_t k = 0; k < n_comms; k++)
      blocks_kept (b, b->kept_of_bundle[b->bundles[i].first + k])->class = *own - 1 + k;
  }
}

void
blocks_refine (Blocks *b)
{
  uint32_t most = MAX (b->n_places, b->n_bundles) + 1;
  b->class_of_place = g_new (uint32_t, b->n_places + 1);
  Round x = { .b = b,
              .sums = g_new (LsSig, most),
              .scratch = g_new (LsSig, most),
              .wide = g_new (uint32_t, most),
              .class = g_new (uint32_t, most),
              .of_class = g_new (LsSig, most) };
  begin (&x);
  for (uint32_t before = 0, now = 1; now != before;) {
    before = b->n_place_classes + x.n_class;
    refine_bundles (&x);
    refine_places (&x);
    now = b->n_place_classes + x.n_class;
  }
  spread_bundles (&x);
  g_free (x.sums);
  g_free (x.scratch);
  g_free (x.wide);
  g_free (x.class);
  g_free (x.of_class);
  g_free (x.of_label);
  g_free (x.of_row);
  g_free (x.of_peers);
  g_free (x.once);
}
