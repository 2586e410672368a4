#include "exec/shortcuts/fold_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

#include "exec/state.h"

/* --- what lies where ------------------------------------------------------------------ */

static bool
is_identity (const uint32_t *map, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    if (map[i] != i)
      return false;
  return true;
}

/* False: two ranks share a GPU. */
static bool
find_ranks (Blocks *b)
{
  uint32_t n_gpus = b->at->n_hosts * b->at->gpus_per_host;
  if (b->plan->n_ranks <= n_gpus && is_identity (b->plan->gpu_of_rank, b->plan->n_ranks))
    return true;
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

/* After how many hosts all comes again: where ranks are bound by a mesh, in the order of GPUs, and what is
 * above hosts differs in nothing. */
static void
find_period (Blocks *b)
{
  const GArray *faults = b->x->cluster->spec.faults;
  if (b->rank_of_gpu || b->plan->bindings || (faults && faults->len > 0))
    return;
  b->period = b->at->trunks_per_pod > 0 ? b->at->hosts_per_group * b->at->groups_per_pod
      : b->at->trunks_per_group > 0     ? b->at->hosts_per_group
                                        : 1;
  b->groups_of_period = b->at->trunks_per_group > 0 ? b->period / b->at->hosts_per_group : 0;
  b->pods_of_period = b->at->trunks_per_pod > 0 ? 1 : 0;
}

/* --- to begin with --------------------------------------------------------------------- */

static LsSig
first_of_host (const Blocks *b, uint32_t host)
{
  const double *slow = b->x->options->slow;
  LsSig sig = { .a = 1 };
  if (!ls_places_is_sound (b->x->cluster, host))
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
  bool may_repeat = b->period > 0 && !b->x->options->slow;
  for (uint32_t i = 0; i < b->at->n_hosts; i++)
    ret[i] = may_repeat && i > 0 && rows_are_of_same_roles (b, i, i - 1) ? ret[i - 1] : first_of_host (b, i);
}

/* Of a group or a pod: its rates. */
static LsSig
first_above (const Blocks *b, uint32_t place)
{
  LsSig sig = { .a = place < b->at->n_hosts + b->at->n_groups ? 2 : 3 };
  for (uint32_t i = 0; i < ls_places_n_at (b->at, place); i++)
    ls_sig_add_double (&sig, run_capacity (b->x, b->at, b->fastest, ls_places_resource (b->at, place, i)));
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
} Round;

/* Who sees what: a word says it, by what, as a label or a class. */
typedef enum { SEEN_LABEL, SEEN_ROW, SEEN_PEERS, SEEN_PLACE, SEEN_BUNDLE } Seen;

static inline LsSig
sig_seen (Seen what, uint32_t number)
{
  return ls_sig_of ((uint64_t) what << 32 | number);
}

/* Something of that class by that label: the sum over all that is seen is bilinear in random words, so that
 * two sums of other pairs are alike by no chance that counts. */
static inline void
add_seen (LsSig *sum, LsSig class, LsSig label)
{
  sum->a += class.a * label.a;
  sum->b += class.b * label.b;
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
    LsSig sum = { 0 }, own = ls_sig_of (x->class[i]);
    for (uint32_t k = 0; k < kind->n_hosts; k++)
      add_seen (&sum, x->of_class[b->class_of_place[kind->place[k] + bundle->shift * b->period]],
                of_label[k]);
    for (uint32_t k = kind->n_hosts; k < kind->n; k++) {
      uint32_t place = blocks_moved (b, kind->place[k], bundle->shift);
      if (blocks_matters (b, place))
        add_seen (&sum, x->of_class[b->class_of_place[place]], of_label[k]);
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
      add_seen (&x->sums[kind->place[k] + bundle->shift * b->period], own, of_label[k]);
    for (uint32_t k = kind->n_hosts; k < kind->n; k++)
      add_seen (&x->sums[blocks_moved (b, kind->place[k], bundle->shift)], own, of_label[k]);
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
    add_seen (&x->sums[from], x->of_class[b->class_of_place[to]], x->of_peers[row->label]);
    for (uint32_t k = 0; k < row->n_places; k++)
      add_seen (&x->sums[blocks_moved (b, places[k], at->shift)], own, x->of_row[row->label + k]);
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
  x->of_label = g_new (LsSig *, b->kinds->len + 1);
  for (guint i = 0; i < b->kinds->len; i++) {
    const BundleKind *kind = &g_array_index (b->kinds, BundleKind, i);
    x->of_label[i] = ls_arena_new_array (b->arena, LsSig, MAX (1, kind->n));
    for (uint32_t k = 0; k < kind->n; k++)
      x->of_label[i][k] = sig_seen (SEEN_LABEL, kind->label[k]);
  }
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

/* Of communicators: one class for each of a bundle. */
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
      b->class_of_comm[b->comm_of_bundle[b->bundles[i].first + k]] = *own - 1 + k;
  }
}

static void
refine_blocks (Blocks *b)
{
  uint32_t most = MAX (b->n_places, b->n_bundles) + 1;
  b->class_of_place = g_new (uint32_t, b->n_places + 1);
  b->class_of_comm = g_new (uint32_t, b->plan->n_comms + 1);
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
}

bool
blocks_init (Blocks *b, const Run *x, const uint8_t *slot, const uint8_t *peers)
{
  *b = (Blocks) { .x = x, .plan = x->plan, .roles = x->role_calls, .peers = peers };
  b->fastest = run_fastest_kernel (x);
  if (x->n_jobs > 1 || x->n_traffic > 0 || !(b->shapes = shapes_new (x)))
    return false;
  b->at = shapes_places (b->shapes);
  b->n_places = ls_places_n (b->at);
  b->arena = ls_arena_new ();
  if (!find_ranks (b))
    return false;
  find_period (b);
  if (!bundles_find (b, slot) || !rows_find (b))
    return false;
  b->is_ample = g_new (bool, b->n_places - b->at->n_hosts + 1);
  for (uint32_t i = b->at->n_hosts; i < b->n_places; i++)
    b->is_ample[i - b->at->n_hosts] = ls_places_are_ample (b->at, x->cluster, i);
  refine_blocks (b);
  return true;
}

void
blocks_clear (Blocks *b)
{
  shapes_free (b->shapes);
  g_free (b->rank_of_gpu);
  g_clear_pointer (&b->arena, ls_arena_free);
  g_clear_pointer (&b->templates, g_array_unref);
  g_clear_pointer (&b->kinds, g_array_unref);
  g_free (b->bundles);
  g_free (b->bundle_of_comm);
  g_free (b->comm_of_bundle);
  g_clear_pointer (&b->rows, g_array_unref);
  g_clear_pointer (&b->row_lies, g_array_unref);
  g_clear_pointer (&b->rows_at, g_array_unref);
  g_clear_pointer (&b->row_places, g_array_unref);
  g_free (b->is_ample);
  g_free (b->class_of_place);
  g_free (b->class_of_comm);
}

/* --- what it says of resources ----------------------------------------------------------- */

/* One that is loaded, and the first resource of those that it stands for. */
typedef struct {
  uint32_t resource, element;
} Element;

static int
by_resource (const void *a, const void *b)
{
  return LS_ORDER (((const Element *) a)->resource, ((const Element *) b)->resource);
}

/* What can be carried by each class, and the most of all, loaded or not; how many are in each. */
static void
count_resources (const Blocks *b, const uint32_t *place, uint32_t n_classes, FoldPlaces *p)
{
  g_autofree uint32_t *n_places = g_new0 (uint32_t, b->n_place_classes);
  double most = 0;
  p->n_of_resource = g_new0 (uint32_t, n_classes + 1);
  p->capacity = g_new0 (double, n_classes + 1);
  for (uint32_t i = 0; i < b->n_places; i++)
    n_places[b->class_of_place[i]]++;
  for (uint32_t class = 0; class < b->n_place_classes; class ++)
    for (uint32_t i = 0; i < ls_places_n_at (b->at, place[class]); i++) {
      double capacity = run_capacity (b->x, b->at, b->fastest, ls_places_resource (b->at, place[class], i));
      uint32_t of = p->class_of[p->first[class] + i];
      most = MAX (most, capacity);
      if (of == NO_CLASS)
        continue;
      p->capacity[of] = capacity;
      p->n_of_resource[of] += n_places[class];
    }
  p->capacity[n_classes] = most;
}

/* Resources of one number at places are in the order of these, so the first place has the first of each. */
void
blocks_spread_resources (const Blocks *b, const uint32_t *place, const uint32_t *first,
                         const uint32_t *class_of, FoldClasses *ret)
{
  const Refine *r = ret->refine;
  uint32_t n = 0;
  g_autofree Element *elements = g_new (Element, r->n_resources + 1);
  g_autofree uint32_t *number = g_new0 (uint32_t, r->n_resources + 1);
  for (uint32_t class = 0; class < b->n_place_classes; class ++)
    for (uint32_t e = first[class]; e < first[class + 1]; e++)
      if (r->first_use[e + 1] > r->first_use[e])
        elements[n++] = (Element) { ls_places_resource (b->at, place[class], e - first[class]), e };
  qsort (elements, n, sizeof *elements, by_resource);
  ret->class_of = g_new (uint32_t, r->n_resources + 1);
  memset (ret->class_of, 0xff, r->n_resources * sizeof *ret->class_of);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t *own = &number[class_of[elements[i].element]];
    *own = *own == 0 ? ++ret->n_resources : *own;
    ret->class_of[elements[i].element] = *own - 1;
  }
  FoldPlaces *p = ret->places = g_new0 (FoldPlaces, 1);
  p->at = *b->at;
  p->class_of_place = g_memdup2 (b->class_of_place, b->n_places * sizeof *p->class_of_place);
  p->first = g_memdup2 (first, b->n_place_classes * sizeof *first);
  p->class_of = g_memdup2 (ret->class_of, r->n_resources * sizeof *p->class_of);
  count_resources (b, place, ret->n_resources, p);
}

bool
fold_by_blocks (Run *x, FoldClasses *ret)
{
  g_autofree uint8_t *slot = fold_owed (x), *peers = fold_peers (x);
  Blocks b = { 0 };
  bool ok = slot && blocks_init (&b, x, slot, peers);
  ok = ok && blocks_classify (&b, slot, ret);
  blocks_clear (&b);
  return ok;
}
