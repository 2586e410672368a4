/* Pins what single faults, and seeds of hashed routing, do to a step: each row is the step of the job with that fault told by hand; parts
 * that were taken for alike are, on jobs of all kinds; a failed link is gone around or named; threads change
 * nothing. */
#include "ls_test.h"

#include <math.h>

#include <lockstep/error.h>

#include "ask/reruns.h"
#include "base/order.h"

#define SMALL "model", "llama3.1-8b:layers=4,vocab=32000", "cluster", "dgx-h100", "seq", "2048"

static void
set (LsJobSpec *spec, const char *key, const char *value)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  if (!LS_CHECK (ls_job_spec_set (spec, key, value, diags))) {
    g_autofree char *why = ls_diag_list_format (diags);
    printf ("# %s %s: %s", key, value, why);
  }
}

static LsJobResult *
run (LsJobSpec *spec, const char *const *knobs)
{
  g_autoptr (GError) error = NULL;
  ls_job_spec_init (spec);
  for (; *knobs; knobs += 2)
    set (spec, knobs[0], knobs[1]);
  LsJobResult *r = ls_job_spec_run (spec, &error);
  LS_CHECK_NO_ERROR (error);
  return r;
}

static double
step_of (const char *const *knobs)
{
  LsJobSpec spec;
  g_autoptr (LsJobResult) r = run (&spec, knobs);
  ls_job_spec_clear (&spec);
  return r ? ls_job_result_step_time_s (r) : NAN;
}
#define STEP(...) step_of ((const char *const[]) { __VA_ARGS__, NULL })

static LsFaultTable *
faults_of (const char *each, guint n_threads, const char *const *knobs)
{
  LsJobSpec spec;
  LsFaultAsk ask;
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) r = run (&spec, knobs);
  LS_CHECK (ls_fault_ask_parse (each, &ask));
  LsFaultTable *t = r ? ls_fault_table_new (&spec, r, &ask, n_threads, NULL, &error) : NULL;
  LS_CHECK_NO_ERROR (error);
  ls_job_spec_clear (&spec);
  return t;
}
#define FAULTS(each, ...) faults_of ((each), 1, (const char *const[]) { __VA_ARGS__, NULL })

static const LsFaultRow *
row_of (const LsFaultTable *t, const char *first)
{
  for (guint i = 0; i < t->rows->len; i++)
    if (g_str_equal (g_array_index (t->rows, LsFaultRow, i).first, first))
      return &g_array_index (t->rows, LsFaultRow, i);
  ls_check_impl (false, __FILE__, __LINE__, "no row %s", first);
  return NULL;
}

static void
a_row_is_the_job_with_that_fault (void)
{
  g_autoptr (LsFaultTable) gpus
      = FAULTS ("gpu=0.8", SMALL, "gpus", "16", "tp", "2", "pp", "2", "global-batch", "16"),
      links = FAULTS ("link=0.25", SMALL, "gpus", "16", "tp", "2", "pp", "2", "global-batch", "16"),
      nodes = FAULTS ("node=0.5", SMALL, "gpus", "16", "tp", "2", "pp", "2", "global-batch", "16");
  const LsFaultRow *gpu = row_of (gpus, "rank 8, node1/gpu0"), *link = row_of (links, "node0/nic0>leaf0"),
                   *node = row_of (nodes, "node1");
  if (!gpu || !link || !node)
    return;
  LS_CHECK (gpu->step_s
            == STEP (SMALL, "gpus", "16", "tp", "2", "pp", "2", "global-batch", "16", "slow", "rank=8:1.25"));
  LS_CHECK (link->step_s
            == STEP (SMALL, "cluster", "dgx-h100:faults.node0/nic0>leaf0=0.25", "gpus", "16", "tp", "2", "pp",
                     "2", "global-batch", "16"));
  LS_CHECK (node->step_s
            == STEP (SMALL, "gpus", "16", "tp", "2", "pp", "2", "global-batch", "16", "slow",
                     "rank=8:2,rank=9:2,rank=10:2,rank=11:2,rank=12:2,rank=13:2,rank=14:2,rank=15:2"));
  LS_CHECK (gpu->step_s > gpus->step_s && node->step_s > gpu->step_s);
  LS_CHECK_INT (gpu->n_alike, >, 1);
}

/* The steps of all parts, those that are alike each, in order. */
static GArray *
steps_of (const LsFaultTable *t)
{
  GArray *all = g_array_new (FALSE, FALSE, sizeof (double));
  for (guint i = 0; i < t->rows->len; i++) {
    const LsFaultRow *row = &g_array_index (t->rows, LsFaultRow, i);
    double step = row->cut_off ? 0 : row->step_s;
    for (guint k = 0; k < row->n_alike; k++)
      g_array_append_val (all, step);
  }
  g_array_sort (all, ls_compare_doubles);
  return all;
}

/* Each part by itself, as no ranks are alike without folding, against one of each group. */
static void
check_groups (const char *each, const char *const *knobs)
{
  const char *alone[32];
  guint n = 0;
  for (; knobs[n]; n++)
    alone[n] = knobs[n];
  alone[n] = "fold";
  alone[n + 1] = "off";
  alone[n + 2] = NULL;
  g_autoptr (LsFaultTable) folded = faults_of (each, 1, knobs), unfolded = faults_of (each, 1, alone);
  if (!folded || !unfolded)
    return;
  g_autoptr (GArray) some = steps_of (folded), all = steps_of (unfolded);
  LS_CHECK_INT (folded->rows->len, <=, unfolded->rows->len);
  LS_CHECK_INT (unfolded->rows->len, ==, all->len);
  LS_CHECK_INT (folded->n_idle, ==, unfolded->n_idle);
  LS_CHECK (some->len == all->len && memcmp (some->data, all->data, all->len * sizeof (double)) == 0);
}
#define CHECK_GROUPS(each, ...) check_groups ((each), (const char *const[]) { SMALL, __VA_ARGS__, NULL })

static void
parts_that_are_alike_hurt_alike (void)
{
  CHECK_GROUPS ("gpu=0.8", "gpus", "16", "tp", "2", "pp", "2", "global-batch", "16");
  CHECK_GROUPS ("link=0.2", "gpus", "16", "tp", "2", "pp", "2", "global-batch", "16");
  CHECK_GROUPS ("link=0", "gpus", "16", "tp", "2", "pp", "2", "global-batch", "16");
  CHECK_GROUPS ("link=0.1", "gpus", "32", "tp", "4", "global-batch", "32", "zero", "3", "dp-kind", "fsdp2");
  CHECK_GROUPS ("node", "gpus", "32", "pp", "2", "vpp", "2", "global-batch", "64", "zero", "1");
  CHECK_GROUPS ("gpu", "gpus", "32", "pp", "2", "vpp", "2", "global-batch", "64", "zero", "1");
}

static void
a_failed_way_is_gone_around_or_named (void)
{
  g_autoptr (LsFaultTable) t
      = FAULTS ("link=0", SMALL, "gpus", "16", "tp", "2", "pp", "2", "global-batch", "16");
  const LsFaultRow *first = t ? &g_array_index (t->rows, LsFaultRow, 0) : NULL,
                   *nic = t ? row_of (t, "node0/nic0>leaf0") : NULL;
  if (!first || !nic)
    return;
  LS_CHECK (first->cut_off && strstr (first->cut_off, "no way") && isnan (first->step_s));
  LS_CHECK (!nic->cut_off && nic->step_s > t->step_s);
}

static void
threads_change_nothing (void)
{
  static const char *const knobs[] = { SMALL, "gpus", "16", "tp", "2", "global-batch", "16", NULL };
  g_autoptr (LsFaultTable) one = faults_of ("link", 1, knobs), four = faults_of ("link", 4, knobs);
  if (!one || !four || !LS_CHECK_INT (one->rows->len, ==, four->rows->len))
    return;
  for (guint i = 0; i < one->rows->len; i++) {
    const LsFaultRow *x = &g_array_index (one->rows, LsFaultRow, i),
                     *y = &g_array_index (four->rows, LsFaultRow, i);
    LS_CHECK_STR (x->first, y->first);
    LS_CHECK (x->step_s == y->step_s && x->n_alike == y->n_alike);
  }
}

static void
what_is_asked_is_read (void)
{
  LsFaultAsk ask;
  LS_CHECK (ls_fault_ask_parse ("link", &ask) && ask.kind == LS_FAULT_LINK && ask.share == 0.5);
  LS_CHECK (ls_fault_ask_parse ("link=0", &ask) && ask.share == 0);
  LS_CHECK (ls_fault_ask_parse ("node=0.9", &ask) && ask.kind == LS_FAULT_NODE && ask.share == 0.9);
  static const char *const bad[]
      = { "", "lin", "links", "gpu=0", "gpu=1", "link=-1", "link=", "node=x", "=0.5" };
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    LS_CHECK (!ls_fault_ask_parse (bad[i], &ask));
}

#define CROSSING                                                                                             \
  SMALL, "cluster", "dgx-h100:fabric.nodes_per_leaf=2,fabric.rails=1", "gpus", "32", "tp", "2",              \
      "global-batch", "16"

static LsEcmpTable *
seeds_of (guint n_threads)
{
  LsJobSpec spec;
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) r = run (&spec, (const char *const[]) { CROSSING, NULL });
  LsEcmpTable *t = r ? ls_ecmp_table_new (&spec, r, 12, n_threads, &error) : NULL;
  LS_CHECK_NO_ERROR (error);
  ls_job_spec_clear (&spec);
  return t;
}

/* Each seed is the job with that seed told by hand; ideal spreading is the job as it is, and crowds no link. */
static void
a_draw_is_the_job_with_that_seed (void)
{
  g_autoptr (LsEcmpTable) t = seeds_of (1), four = seeds_of (4);
  if (!t || !four)
    return;
  LS_CHECK (t->ideal.step_s == STEP (CROSSING));
  LS_CHECK_NEAR (t->ideal.crowding, 1, 1e-9);
  bool is_luck = t->draws[0].step_s < t->draws[11].step_s;
  LS_CHECK (is_luck && t->draws[0].step_s >= t->ideal.step_s);
  for (guint i = 0; i < t->n; i++) {
    g_autofree char *cluster = g_strdup_printf (
        "dgx-h100:fabric.nodes_per_leaf=2,fabric.rails=1,fabric.routing=ecmp,fabric.seed=%u",
        t->draws[i].seed);
    LS_CHECK (t->draws[i].crowding > 1 && t->draws[i].busiest);
    LS_CHECK (i == 0 || t->draws[i - 1].step_s <= t->draws[i].step_s);
    LS_CHECK (i % 5 > 0 || t->draws[i].step_s == STEP (CROSSING, "cluster", cluster));
    LS_CHECK (t->draws[i].step_s == four->draws[i].step_s && t->draws[i].seed == four->draws[i].seed);
  }
  LS_CHECK (ls_ecmp_quantile (t, 0.5) == &t->draws[5] && ls_ecmp_quantile (t, 0) == &t->draws[0]);
  LS_CHECK (ls_ecmp_quantile (t, 1) == &t->draws[11] && ls_ecmp_quantile (t, 0.95) == &t->draws[11]);
}

LS_TEST_SUITE (LS_TEST (a_row_is_the_job_with_that_fault), LS_TEST (parts_that_are_alike_hurt_alike),
               LS_TEST (a_failed_way_is_gone_around_or_named), LS_TEST (threads_change_nothing),
               LS_TEST (what_is_asked_is_read), LS_TEST (a_draw_is_the_job_with_that_seed))
