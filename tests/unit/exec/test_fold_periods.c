/* Pins: what lies whole groups or pods of hosts apart is alike (fold_blocks.h): jobs on clusters of many groups
 * have the same classes, digest, times and bytes on links by the structure of the cluster and rank by rank. In
 * each all of a template, a bundle and a row come many times, in hosts, groups and pods that matter, and so do
 * whole stretches of hosts (fold_blocks.h), which drawn jobs cut in every way. LS_CASES says how many of these. */
#include "ls_test.h"

#include "hand_trace.h"
#include "random_job.h"

#include "strategy/strategy.h"

enum { N_HOSTS = 32 };

typedef struct {
  const char *name;
  uint32_t tp, cp, pp, ep;
  const char *order;
  bool is_one_short;    /* the last host has no job */
  uint32_t zero, shard; /* of megatron; of fsdp: 0: another */
} Shape;

static const Shape shapes[] = {
  { "a node a replica", 8, 1, 4, 1, "tp-cp-ep-dp-pp", false },
  { "four replicas a node", 2, 1, 4, 1, "tp-cp-ep-dp-pp", false },
  { "stages next to each other", 2, 1, 4, 1, "tp-cp-ep-pp-dp", false },
  { "context over nodes", 4, 4, 2, 1, "tp-cp-ep-dp-pp", false },
  { "experts over a node", 1, 1, 2, 8, "tp-cp-ep-dp-pp", false },
  { "data parallelism alone", 1, 1, 1, 1, "tp-cp-ep-dp-pp", false },
  { "a node is left over", 8, 1, 1, 1, "tp-cp-ep-dp-pp", true },
};

static LsClusterSpec
leaves (uint32_t rails, double oversubscription)
{
  LsClusterSpec spec = tiny_dgx (N_HOSTS);
  spec.network.nodes_per_leaf = 4;
  spec.network.rails = rails;
  spec.network.oversubscription = oversubscription;
  return spec;
}

static LsClusterSpec
pods (double oversubscription)
{
  LsClusterSpec spec = tiny_fat_tree (N_HOSTS);
  spec.network.nodes_per_leaf = 2;
  spec.network.rails = 8;
  spec.network.spine_oversubscription = oversubscription;
  return spec;
}

static bool
resolve (const Shape *shape, LsModel *model, LsStrategy *s)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  ls_strategy_init (s);
  s->gpus = 8 * (N_HOSTS - shape->is_one_short);
  s->tp = shape->tp;
  s->cp = shape->cp;
  s->pp = shape->pp;
  s->ep = shape->ep;
  s->dp = s->gpus / (s->tp * s->cp * s->pp);
  s->global_batch = 2 * s->pp * s->dp;
  s->layout.rank_order = g_strdup (shape->order);
  s->zero_stage = shape->zero;
  if (shape->shard > 0) {
    s->dp_kind = LS_DP_FSDP2;
    s->zero_stage = 3;
    s->data.zero_group = shape->shard < s->dp * s->cp ? shape->shard : 0;
  }
  return ls_strategy_resolve (s, model, s->gpus, 8, diags);
}

/* False: there is no such job. */
static bool
check_job (const LsCluster *cluster, const char *fabric, const Shape *shape)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  LsModel model = small_model (rand);
  if (shape->ep > 1)
    random_experts (rand, &model);
  LsCalibration calibration;
  ls_calibration_init_roofline (&calibration);
  LsStrategy s;
  LsRunOptions options;
  ls_run_options_init (&options);
  options.fold = LS_SHORTCUT_AUTO;
  g_autoptr (GError) error = NULL;
  g_autoptr (LsPlan) plan = resolve (shape, &model, &s) ? ls_lower (&model, &s, NULL, &error) : NULL;
  LS_CHECK_NO_ERROR (error);
  ls_strategy_clear (&s);
  if (!plan) {
    ls_calibration_clear (&calibration);
    return false;
  }
  g_autoptr (LsTimeline) t = ls_run (plan, cluster, &calibration, &nccl, &options, NULL, &error);
  options.folds_by_walk = true;
  g_autoptr (LsTimeline) w = ls_run (plan, cluster, &calibration, &nccl, &options, NULL, &error);
  LS_CHECK_NO_ERROR (error);
  ls_check_impl (t && w && t->n_classes < t->n_ranks && has_same_classes (t, w), __FILE__, __LINE__,
                 "%s, %s: other classes", fabric, shape->name);
  ls_check_impl (t && w && t->digest == w->digest && t->window_end == w->window_end, __FILE__, __LINE__,
                 "%s, %s: another digest, or other times", fabric, shape->name);
  ls_check_impl (t && w && has_same_bytes_on_links (t, w), __FILE__, __LINE__, "%s, %s: other bytes on links",
                 fabric, shape->name);
  ls_calibration_clear (&calibration);
  return true;
}

static void
check_jobs (const char *fabric, LsClusterSpec spec)
{
  g_autoptr (GError) error = NULL;
  LsCluster *cluster = ls_cluster_build_within (&spec, true, UINT64_MAX, &error);
  LS_CHECK_NO_ERROR (error);
  for (size_t i = 0; cluster && i < G_N_ELEMENTS (shapes); i++)
    ls_check_impl (check_job (cluster, fabric, &shapes[i]), __FILE__, __LINE__, "%s: not lowered",
                   shapes[i].name);
  ls_cluster_free (cluster);
}

static void
groups_come_again (void)
{
  check_jobs ("rails", leaves (8, 1));
  check_jobs ("rails that are narrow above", leaves (8, 2));
  check_jobs ("one leaf a group, narrow above", leaves (1, 2));
}

static void
pods_come_again (void)
{
  check_jobs ("pods", pods (1));
  check_jobs ("pods that are narrow above", pods (2));
}

/* GPUs share NICs by four: those of one PCIe switch may stand for each other. */
static void
nodes_of_few_nics_come_again (void)
{
  LsClusterSpec spec = tiny_pcie (N_HOSTS);
  spec.network.nodes_per_leaf = 4;
  check_jobs ("few NICs", spec);
}

static Shape
draw_shape (GRand *rand, char **ret_order)
{
  Shape shape = { .name = "drawn",
                  .tp = pick (rand, 4, (uint32_t[]) { 1, 2, 4, 8 }),
                  .cp = pick (rand, 3, (uint32_t[]) { 1, 1, 2 }),
                  .pp = pick (rand, 3, (uint32_t[]) { 1, 2, 4 }),
                  .ep = pick (rand, 4, (uint32_t[]) { 1, 1, 2, 8 }),
                  .zero = pick (rand, 3, (uint32_t[]) { 0, 0, 1 }) };
  if (shape.pp == 1 && shape.ep == 1 && shape.cp == 1 && g_rand_boolean (rand)) {
    shape.shard = pick (rand, 3, (uint32_t[]) { 4, 16, 256 / (shape.tp * shape.cp) });
    shape.zero = 0;
  }
  bool is_usual = g_rand_boolean (rand);
  shape.order = *ret_order
      = ls_rank_order_text (is_usual ? 0 : (LsRankOrder) g_rand_int_range (rand, 0, LS_N_RANK_ORDERS));
  return shape;
}

static void
drawn_jobs_come_again (void)
{
  guint n = ls_test_cases (12, 12), n_run = 0;
  g_autoptr (GRand) rand = g_rand_new_with_seed (7);
  for (guint i = 0; i < n; i++) {
    LsClusterSpec spec = g_rand_boolean (rand)
        ? leaves (g_rand_boolean (rand) ? 8 : 1, pick (rand, 2, (uint32_t[]) { 1, 2 }))
        : pods (pick (rand, 2, (uint32_t[]) { 1, 2 }));
    g_autofree char *order = NULL;
    const Shape shape = draw_shape (rand, &order);
    g_autofree char *what
        = g_strdup_printf ("case %u: tp %u cp %u pp %u ep %u zero %u shard %u %s", i, shape.tp, shape.cp,
                           shape.pp, shape.ep, shape.zero, shape.shard, order);
    g_autoptr (GError) error = NULL;
    LsCluster *cluster = ls_cluster_build_within (&spec, true, UINT64_MAX, &error);
    LS_CHECK_NO_ERROR (error);
    n_run += cluster && check_job (cluster, what, &shape);
    ls_cluster_free (cluster);
  }
  LS_CHECK (n_run * 2 > n);
}

LS_TEST_SUITE (LS_TEST (groups_come_again), LS_TEST (pods_come_again), LS_TEST (nodes_of_few_nics_come_again),
               LS_TEST (drawn_jobs_come_again));
