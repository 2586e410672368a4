/* exec/shortcuts/fold_rounds.c — places and communicators refined: the first step. Of this refinement hosts are
 * the ranks, bundles of several places the communicators, and places the resources. */
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

/* What a bundle in one host adds to what the host is. */
static LsSig
sig_of_local (const BundleKind *kind)
{
  LsSig sig = kind->sig;
  ls_sig_add (&sig, kind->label[0]);
  return sig;
}

/* --- who sees what ------------------------------------------------------------------------ */

/* What a host sees: itself, what it is in, what it sends or hears by a label. */
enum { OF_ITSELF, OF_ABOVE, OF_ROWS };

static uint32_t
pattern_of_row (uint32_t label, bool is_peer)
{
  return OF_ROWS + 2 * label + is_peer;
}

/* The bundles of several places, and those of one host as a part of what that is: of_place. */
static void
add_bundles (const Blocks *b, RefineLists *l, GArray *wide, LsSig *of_place)
{
  for (uint32_t i = 0; i < b->n_bundles; i++) {
    const Bundle *bundle = &b->bundles[i];
    const BundleKind *kind = blocks_kind (b, bundle);
    if (blocks_is_local (kind)) {
      ls_sig_add_times (&of_place[blocks_moved (b, kind->place[0], bundle->shift)], 1, sig_of_local (kind));
      continue;
    }
    refine_begin_comm (l);
    for (uint32_t k = 0; k < kind->n; k++) {
      uint32_t place = blocks_moved (b, kind->place[k], bundle->shift);
      refine_add_load (l, place, kind->times ? kind->times[k] : 1, kind->label[k]);
      refine_add_use (l, place, 1, wide->len, kind->label[k]);
    }
    g_array_append_val (wide, i);
  }
}

static void
add_row (const Blocks *b, RefineLists *l, const RowAt *at, uint32_t owner)
{
  const RowLie *lie = &g_array_index (b->row_lies, RowLie, at->lie);
  const Row *row = &g_array_index (b->rows, Row, lie->row);
  const uint32_t *places = &g_array_index (b->row_places, uint32_t, lie->first);
  refine_add_load (l, blocks_moved (b, lie->to, at->shift), 1, pattern_of_row (row->label, true));
  for (uint32_t k = 0; k < row->n_places; k++)
    refine_add_use (l, blocks_moved (b, places[k], at->shift), 1, owner,
                    pattern_of_row (row->label + k, false));
}

/* Rows are in the order of the hosts that send. */
static void
add_hosts (const Blocks *b, RefineLists *l, uint32_t n_wide)
{
  guint next = 0;
  for (uint32_t host = 0; host < b->at->n_hosts; host++) {
    refine_begin_rank (l);
    refine_add_load (l, host, 1, OF_ITSELF);
    refine_add_use (l, host, 1, n_wide + host, OF_ITSELF);
    for (uint32_t tier = 1; tier <= 2; tier++)
      if (blocks_matters (b, ls_places_of_host (b->at, host, tier)))
        refine_add_load (l, ls_places_of_host (b->at, host, tier), 1, OF_ABOVE);
    for (; next < b->rows_at->len; next++) {
      const RowAt *at = &g_array_index (b->rows_at, RowAt, next);
      if (blocks_moved (b, g_array_index (b->row_lies, RowLie, at->lie).from, at->shift) != host)
        break;
      add_row (b, l, at, n_wide + host);
    }
  }
  g_assert (next == b->rows_at->len);
}

/* What things are to begin with; resource: with what add_bundles() knows of them. */
static void
tell_apart (const Blocks *b, const GArray *wide, Refine *r)
{
  g_autofree LsSig *hosts = g_new (LsSig, b->at->n_hosts + 1);
  first_of_hosts (b, hosts);
  r->rank = g_new0 (LsSig, r->n_ranks + 1);
  r->comm = g_new (LsSig, r->n_comms + 1);
  r->is_ample = g_new (bool, r->n_resources + 1);
  for (uint32_t i = 0; i < b->n_places; i++) {
    ls_sig_add_sig (&r->resource[i], i < b->at->n_hosts ? hosts[i] : first_above (b, i));
    r->is_ample[i] = !blocks_matters (b, i);
  }
  for (guint i = 0; i < wide->len; i++)
    r->comm[i] = blocks_kind (b, &b->bundles[g_array_index (wide, uint32_t, i)])->sig;
}

/* --- what it says of communicators --------------------------------------------------------- */

/* Classes of all bundles, by those of several places and those of hosts. */
static uint32_t
number_bundles (const Blocks *b, const GArray *wide, const uint32_t *class_of_wide, uint32_t *ret_class)
{
  g_autofree LsSig *sig = g_new (LsSig, b->n_bundles + 1);
  for (uint32_t i = 0; i < b->n_bundles; i++) {
    const BundleKind *kind = blocks_kind (b, &b->bundles[i]);
    if (!blocks_is_local (kind))
      continue;
    sig[i] = sig_of_local (kind);
    ls_sig_add (&sig[i], b->class_of_place[blocks_moved (b, kind->place[0], b->bundles[i].shift)]);
  }
  for (guint i = 0; i < wide->len; i++)
    sig[g_array_index (wide, uint32_t, i)] = ls_sig_of (class_of_wide[i]);
  return sigs_number (sig, b->n_bundles, ret_class);
}

/* Of communicators that are kept: one class for each of a bundle. */
static void
spread_bundles (Blocks *b, const GArray *wide, const uint32_t *class_of_wide)
{
  g_autofree uint32_t *class = g_new (uint32_t, b->n_bundles + 1);
  uint32_t n = number_bundles (b, wide, class_of_wide, class);
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
  g_autoptr (GArray) wide = g_array_new (FALSE, FALSE, sizeof (uint32_t)); /* bundles of several places */
  RefineLists lists = refine_lists_new ();
  Refine r = { .n_resources = b->n_places, .n_ranks = b->at->n_hosts };
  r.resource = g_new0 (LsSig, b->n_places + 1);
  add_bundles (b, &lists, wide, r.resource);
  add_hosts (b, &lists, wide->len);
  r.n_comms = wide->len;
  tell_apart (b, wide, &r);
  refine_take_lists (&r, &lists);
  Classes c = refine (&r);
  b->class_of_place = g_steal_pointer (&c.resource);
  b->n_place_classes = c.n_resources;
  spread_bundles (b, wide, c.comm);
  classes_clear (&c);
  refine_clear (&r);
}
