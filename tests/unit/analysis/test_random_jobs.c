/* Pins, on random small jobs lowered and run for real: every picosecond of every rank
 * is explained (nothing lands in `other`), the parts sum to the window, no kernel
 * runs faster than alone, and the FLOPs that the kernels execute are those of the
 * model and of what is recomputed. And on random bytes, that links reported place by place are those reported
 * one by one. */
#include "ls_test.h"

#include <string.h>

#include "random_dragonfly.h"
#include "tiny_cluster.h"
#include "random_job.h"

#include "analysis/report.h"
#include "exec/shortcuts/fold.h"

static void
check_parts (const LsTimeline *t, guint32 seed)
{
  for (uint32_t r = 0; r < t->n_ranks; r++) {
    LsTime parts[LS_N_PARTS], sum = 0;
    ls_breakdown_rank (t, r, parts);
    for (int p = 0; p < LS_N_PARTS; p++) {
      sum += parts[p];
      ls_check_impl (parts[p] >= 0, __FILE__, __LINE__, "seed %u rank %u: negative %s", seed, r,
                     ls_part_names[p]);
    }
    ls_check_impl (parts[LS_PART_OTHER] == 0, __FILE__, __LINE__,
                   "seed %u rank %u: %" G_GINT64_FORMAT " ps unexplained", seed, r, parts[LS_PART_OTHER]);
    LS_CHECK_INT (sum, ==, t->window_end - t->window_start);
  }
}

/* The bubble by its reasons is the bubble, and none of them is negative. */
static void
check_bubbles (const LsTimeline *t, guint32 seed)
{
  LsTime parts[LS_N_PARTS], bubbles[LS_N_BUBBLES], sum = 0;
  ls_breakdown (t, parts, bubbles);
  for (int b = 0; b < LS_N_BUBBLES; b++) {
    sum += bubbles[b];
    ls_check_impl (bubbles[b] >= 0, __FILE__, __LINE__, "seed %u: bubble %d is negative", seed, b);
  }
  LS_CHECK_INT (sum, ==, parts[LS_PART_BUBBLE]);
}

static double
matrix_flops (const LsKernel *k)
{
  bool is_matrix = k->kind <= LS_KERNEL_ATTENTION_BWD; /* the first four; dropout has FLOPs of its own */
  return is_matrix ? k->flops : 0;
}

/* GEMMs and attention of one step over all ranks, those recomputed apart. */
static void
count_flops (const LsPlan *plan, double *ret_own, double *ret_again)
{
  *ret_own = *ret_again = 0;
  for (uint32_t r = 0; r < plan->n_ranks; r++) {
    const LsProgram *p = &plan->programs[ls_plan_role (plan, r)];
    for (uint32_t i = 0; i < p->n_instances; i++) {
      const LsSegment *seg = &plan->segments[p->instances[i].segment];
      for (uint32_t o = 0; o < seg->n_ops; o++)
        if (seg->ops[o].kernel != UINT32_MAX)
          *(seg->ops[o].tag == LS_TAG_RECOMPUTE ? ret_again : ret_own)
              += matrix_flops (&plan->kernels[seg->ops[o].kernel]);
    }
  }
}

/* Flash attention executes the lower triangle, 3.5 times the forward instead of 3;
 * unfused attention all pairs. Compared on unfused models only, to rounding, where all weights learn: FLOPs
 * beside frozen ones are those of test_conservation.c. */
static void
check_flops (const Job *j)
{
  double own, again;
  count_flops (j->plan, &own, &again);
  if (j->strategy.use.attention != LS_ATTENTION_UNFUSED || j->strategy.lora.rank > 0)
    return;
  double expected = ls_model_flops (
      &j->model, ls_model_padded_vocab (&j->model, j->strategy.use.vocab_multiple, j->strategy.tp),
      j->strategy.seq, j->strategy.global_batch, false);
  LS_CHECK_NEAR (own, expected, 1e-9);
  LS_CHECK (j->strategy.recompute == LS_RECOMPUTE_NONE ? again == 0 : again > 0);
}

static void
every_picosecond_is_explained (void)
{
  guint n = ls_test_cases (50, 100);
  for (guint32 seed = 1; seed <= n; seed++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed (seed + 50000);
    Job j;
    if (!job_init (&j, rand))
      continue;
    LsRunOptions options;
    ls_run_options_init (&options);
    options.n_steps = 1 + seed % 4;
    options.slow = seed % 3 == 0 ? j.slow : NULL;
    g_autoptr (GError) error = NULL;
    g_autoptr (LsTimeline) t = ls_run (j.plan, j.cluster, &j.calibration, &nccl, &options, NULL, &error);
    LS_CHECK_NO_ERROR (error);
    if (t) {
      check_parts (t, seed);
      check_bubbles (t, seed);
      check_flops (&j);
    }
    job_clear (&j);
  }
}

/* --- links ------------------------------------------------------------------------------------- */

/* Of a few levels, so that many are used alike; some carry nothing. */
static double *
draw_bytes (GRand *rand, const LsCluster *c)
{
  uint32_t n = ls_cluster_n_resources (c), n_levels = (uint32_t) g_rand_int_range (rand, 1, 5),
           n_idle = (uint32_t) g_rand_int_range (rand, 0, 3);
  bool is_by_column = g_rand_boolean (rand);
  double *bytes = g_new (double, n), level[5];
  for (uint32_t i = 0; i < n_levels; i++)
    level[i] = g_rand_double_range (rand, 1, 1e9);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t by = is_by_column ? i % 60 / 7 + i / 20000 : g_rand_int (rand) >> 8;
    bytes[i] = g_rand_int_range (rand, 0, 3) < (gint32) n_idle ? 0 : level[by % n_levels];
  }
  return bytes;
}

static void
check_reports (const LsReport *a, const LsReport *b, guint32 seed)
{
  bool same = a->n_links == b->n_links && a->n_link_groups == b->n_link_groups;
  for (guint i = 0; same && i < a->n_links; i++)
    same = strcmp (a->links[i].name, b->links[i].name) == 0 && a->links[i].bytes == b->links[i].bytes
        && a->links[i].utilisation == b->links[i].utilisation;
  for (guint i = 0; same && i < a->n_link_groups; i++) {
    const LsLinkGroup *x = &a->link_groups[i], *y = &b->link_groups[i];
    same = strcmp (x->name, y->name) == 0 && x->n == y->n && x->mean_utilisation == y->mean_utilisation
        && x->max_utilisation == y->max_utilisation && x->bytes == y->bytes;
  }
  ls_check_impl (same, __FILE__, __LINE__, "seed %u: %u links of %u groups by place, %u of %u one by one",
                 seed, a->n_links, a->n_link_groups, b->n_links, b->n_link_groups);
}

#define N_CLASSES 3 /* of hosts, of groups, of pods: each */

/* What lies at places of a few classes, in runs of one class: of each resource there a class of its own, or none.
 * False: the cluster has no places. */
static bool
draw_places (GRand *rand, const LsCluster *c, PlaceClasses *ret, double *ret_bytes_at)
{
  if (!ls_places_init (&ret->at, c))
    return false;
  const uint32_t n_of[] = { ret->at.n_hosts, ret->at.n_groups, ret->at.n_pods };
  uint32_t most = 0, place = 0, n = ls_places_n (&ret->at);
  ret->class_of_place = g_new0 (uint32_t, n + 1);
  for (uint32_t kind = 0; kind < 3; kind++) {
    uint32_t number[N_CLASSES]; /* the first place of each */
    memset (number, 0xff, sizeof number);
    for (uint32_t i = 0, class = 0; i < n_of[kind]; i++, place++) {
      class = g_rand_int_range (rand, 0, 3) > 0 ? class : (uint32_t) g_rand_int_range (rand, 0, N_CLASSES);
      number[class] = MIN (number[class], place);
      ret->class_of_place[place] = number[class];
      most = MAX (most, ls_places_n_at (&ret->at, place));
    }
  }
  ret->first = g_new (uint32_t, n + 1);
  ret->class_of = g_new (uint32_t, n * most + 1);
  for (uint32_t i = 0; i < n; i++)
    ret->first[i] = i * most;
  for (uint32_t i = 0; i < n * most; i++)
    ret->class_of[i] = g_rand_boolean (rand) ? UINT32_MAX : (uint32_t) g_rand_int_range (rand, 0, N_CLASSES);
  for (uint32_t i = 0; i < N_CLASSES; i++)
    ret_bytes_at[i] = g_rand_double_range (rand, 1, 1e9);
  return true;
}

static int
by_use (gconstpointer a, gconstpointer b)
{
  const LsLinkUse *x = a, *y = b;
  return x->utilisation != y->utilisation ? (x->utilisation > y->utilisation ? -1 : 1)
                                          : strcmp (x->name, y->name);
}

static int
by_most_use (gconstpointer a, gconstpointer b)
{
  const LsLinkGroup *x = a, *y = b;
  return x->max_utilisation != y->max_utilisation ? (x->max_utilisation > y->max_utilisation ? -1 : 1)
                                                  : strcmp (x->name, y->name);
}

/* Sums go over links in the order of their use, equal ones as a product, as in the report. */
static void
add_level (LsLinkGroup *g, const LsLinkUse *u, guint n)
{
  g->n += n;
  g->mean_utilisation += n * u->utilisation;
  g->bytes += n * u->bytes;
  g->max_utilisation = MAX (g->max_utilisation, u->utilisation);
}

static LsLinkGroup
group_of (const GArray *uses, const char *pattern)
{
  LsLinkGroup g = { 0 };
  for (guint i = 0, n; i < uses->len; i += n) {
    const LsLinkUse *u = &g_array_index (uses, LsLinkUse, i), *v = u;
    guint n_alike = 0;
    for (n = 0; i + n < uses->len && v->utilisation == u->utilisation && v->bytes == u->bytes;
         v = ++n + i < uses->len ? &g_array_index (uses, LsLinkUse, i + n) : v) {
      g_autofree char *own = ls_link_pattern (v->name), *before = NULL;
      if (strcmp (own, pattern) != 0)
        continue;
      before = g.name;
      g.name = before ? ls_link_merge (before, v->name) : g_strdup (v->name);
      n_alike++;
    }
    if (n_alike > 0)
      add_level (&g, u, n_alike);
  }
  g.mean_utilisation = MIN (g.mean_utilisation / g.n, g.max_utilisation);
  return g;
}

/* Orders by use, then bytes, so that levels are together. */
static int
by_level (gconstpointer a, gconstpointer b)
{
  const LsLinkUse *x = a, *y = b;
  return x->utilisation != y->utilisation ? (x->utilisation > y->utilisation ? -1 : 1)
      : x->bytes != y->bytes              ? (x->bytes > y->bytes ? -1 : 1)
                                          : 0;
}

/* The plain way: link by link. */
static void
report_each (LsReport *r, const LsTimeline *t, const LsCluster *c)
{
  GArray *uses = g_array_new (FALSE, FALSE, sizeof (LsLinkUse)),
         *groups = g_array_new (FALSE, FALSE, sizeof (LsLinkGroup));
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  double window_s = ls_time_to_s (t->window_end - t->window_start);
  for (uint32_t i = 0; i < MIN (c->n_trunks, t->n_resources); i++) {
    double bytes = ls_timeline_bytes (t, i);
    const LsLinkUse use = { ls_cluster_resource_name (c, i),
                            bytes / (ls_cluster_resource_capacity (c, i) * window_s), bytes };
    if (bytes > 0)
      g_array_append_val (uses, use);
    else
      g_free (use.name);
  }
  g_array_sort (uses, by_level);
  for (guint i = 0; i < uses->len; i++) {
    char *pattern = ls_link_pattern (g_array_index (uses, LsLinkUse, i).name);
    if (!g_hash_table_add (seen, pattern))
      continue;
    const LsLinkGroup g = group_of (uses, pattern);
    g_array_append_val (groups, g);
  }
  g_array_sort (groups, by_most_use);
  g_array_sort (uses, by_use);
  for (guint i = 32; i < uses->len; i++)
    g_free (g_array_index (uses, LsLinkUse, i).name);
  r->n_links = MIN (uses->len, 32);
  r->links = (LsLinkUse *) (gpointer) g_array_free (uses, FALSE);
  r->n_link_groups = groups->len;
  r->link_groups = (LsLinkGroup *) (gpointer) g_array_free (groups, FALSE);
}

static void
links_by_place_are_links_one_by_one (void)
{
  guint n = ls_test_cases (30, 60);
  for (guint32 seed = 1; seed <= n; seed++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
    uint32_t n_nodes = (uint32_t) g_rand_int_range (rand, 1, 140);
    LsClusterSpec spec = seed % 3 == 0 ? tiny_pcie (n_nodes)
        : seed % 3 == 1                ? tiny_fat_tree (n_nodes)
                                       : tiny_dgx (n_nodes);
    if (seed % 4 == 0)
      spec = random_dragonfly (rand, MIN (n_nodes, 40));
    if (seed % 5 == 0)
      add_fault (&spec, "node0/gpu0>pcie0", 0.5);
    g_autoptr (GError) error = NULL;
    g_autoptr (LsCluster) c = seed % 2 == 0 ? ls_cluster_build_within (&spec, true, UINT64_MAX, &error)
                                            : ls_cluster_build (&spec, &error);
    LS_CHECK_NO_ERROR (error);
    if (spec.network.faults)
      ls_cluster_spec_clear (&spec);
    if (!c)
      continue;
    g_autofree double *bytes = draw_bytes (rand, c);
    LsTimeline t = { .n_resources = ls_cluster_n_resources (c), .resource_bytes = bytes, .window_end = LS_S };
    PlaceClasses places = { 0 };
    double bytes_at[N_CLASSES];
    t.bytes_at = bytes_at;
    t.places = seed % 4 < 2 && draw_places (rand, c, &places, bytes_at) ? &places : NULL;
    LsReport by_place = { 0 }, each = { 0 };
    ls_link_use_report (&by_place, &t, c);
    report_each (&each, &t, c);
    check_reports (&by_place, &each, seed);
    ls_report_clear (&by_place);
    ls_report_clear (&each);
    g_free (places.class_of_place);
    g_free (places.first);
    g_free (places.class_of);
  }
}

LS_TEST_SUITE (LS_TEST (every_picosecond_is_explained), LS_TEST (links_by_place_are_links_one_by_one))
