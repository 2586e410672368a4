/* Pins: the loads of the first of many periods of hosts are those of the whole call there, and again in each
 * period (network/period.c), to the bit: by rings and by PAT, in groups, pods and neither, for members next
 * to each other and far apart. So are those of the first period of each sort of trees, in all that are like it
 * (network/coll_tree.c). Calls that do not repeat, or have a root, are planned whole. NICs are counted
 * host by host where one has failed. Loads that are added up by place (network/rounds.c) are those of
 * routes. */
#include "fixtures.h"
#include "network/algorithm.h"
#include "placed_cluster.h"

static LsClusterSpec
leaves (uint32_t per_leaf, uint32_t rails)
{
  LsClusterSpec spec = tiny_dgx (32);
  spec.network.nodes_per_leaf = per_leaf;
  spec.network.rails = rails;
  return spec;
}

/* Of a dragonfly: 2 nodes a leaf, 8 a group, NICs on rails. */
static LsClusterSpec
groups_of_leaves (LsFabricId kind)
{
  LsClusterSpec spec = tiny_dragonfly (32, kind, LS_ROUTING_IDEAL);
  spec.nics.n = spec.network.rails = 8;
  return spec;
}

/* `hosts` of them, `step` apart, with the GPUs first, first + step_gpu .. of each. */
typedef struct {
  const char *algorithm;
  LsCollKind kind;
  uint32_t first_host, hosts, step, first, per_host, step_gpu, n_periods,
      n_kept; /* of these, whose loads are planned; 0: the first */
} Case;

static uint32_t
gpus_of (const Case *x, uint32_t *gpus)
{
  uint32_t n = 0;
  for (uint32_t h = 0; h < x->hosts; h++)
    for (uint32_t g = 0; g < x->per_host; g++)
      gpus[n++] = (x->first_host + h * x->step) * 8 + x->first + g * x->step_gpu;
  return n;
}

static uint64_t
coef_at (const LsPhase *phase, uint32_t resource)
{
  for (uint32_t i = 0; i < phase->n_loads; i++)
    if (phase->loads[i].resource == resource)
      return phase->loads[i].coef;
  return 0;
}

/* Hosts below a place of each tier. */
static uint32_t
hosts_below (const LsPlaces *at, uint32_t tier)
{
  const uint32_t n[3] = { 1, at->hosts_per_group, at->hosts_per_group * at->groups_per_pod };
  return n[tier];
}

/* So many hosts further. */
static uint32_t
moved (const LsPlaces *at, uint32_t resource, int32_t hosts)
{
  uint32_t local, place = ls_places_find (at, resource, &local);
  int32_t below = (int32_t) hosts_below (at, ls_places_tier (at, place));
  return ls_places_resource (at, (uint32_t) ((int32_t) place + hosts / below), local);
}

/* In which period a resource is. */
static uint32_t
period_of (const Made *m, const Case *x, uint32_t resource)
{
  const LsPlaces *at = &m->at;
  uint32_t local, place = ls_places_find (at, resource, &local), tier = ls_places_tier (at, place),
                  unit = hosts_below (at,
                                      at->trunks_per_pod > 0         ? 2
                                          : at->trunks_per_group > 0 ? 1
                                                                     : 0);
  const uint32_t before[3] = { 0, at->n_hosts, at->n_hosts + at->n_groups };
  uint32_t host = (place - before[tier]) * hosts_below (at, tier);
  return x->n_periods == 1 ? 0 : (host - x->first_host / unit * unit) / (x->step * x->hosts / x->n_periods);
}

/* Those that a plan says it has the loads of. */
static uint32_t
n_kept_of (const LsCollPlan *part)
{
  uint32_t n = 0;
  for (uint32_t k = 0; k < part->n_periods; k++)
    n += part->like_period ? part->like_period[k] == k : k == 0;
  return n;
}

static void
check_loads (const Made *m, const Case *x, const LsPhase *whole, const LsPhase *part, const uint32_t *like)
{
  int32_t shift = (int32_t) (x->step * x->hosts / x->n_periods);
  uint32_t n_said = 0;
  LS_CHECK_INT (part->latency, ==, whole->latency);
  LS_CHECK (part->demand_bytes == whole->demand_bytes && part->rate_cap == whole->rate_cap);
  for (uint32_t i = 0; i < part->n_loads; i++)
    for (uint32_t k = 0; k < x->n_periods; k++)
      n_said += (like ? like[k] : 0) == period_of (m, x, part->loads[i].resource);
  LS_CHECK_INT (n_said, ==, whole->n_loads);
  for (uint32_t i = 0; i < whole->n_loads; i++) {
    uint32_t k = period_of (m, x, whole->loads[i].resource), by = like ? like[k] : 0;
    LS_CHECK_INT (coef_at (part, moved (&m->at, whole->loads[i].resource, shift * (int32_t) (by - k))), ==,
                  whole->loads[i].coef);
  }
}

static void
check (const Made *m, const Case *x)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  g_autoptr (LsCollMemo) memo = ls_coll_memo_new ();
  g_autoptr (LsCollMemo) memo_of_part
      = ls_coll_memo_new (); /* what the whole adds up would do for the part */
  LsNccl nccl = round_nccl;
  uint32_t gpus[256], n = gpus_of (x, gpus);
  nccl.nvls_bus = 400e9;
  LsCollRequest request
      = { .kind = x->kind, .gpus = gpus, .n = n, .bytes = 64 * MIB, .algorithm = x->algorithm, .memo = memo };
  const LsCollPlan *whole = ls_coll_plan (m->c, &nccl, &request, LS_NETWORK_FLOW, arena);
  request.places = &m->at;
  request.memo = memo_of_part;
  const LsCollPlan *part = ls_coll_plan (m->c, &nccl, &request, LS_NETWORK_FLOW, arena);
  LS_CHECK_INT (whole->n_periods, ==, 1);
  LS_CHECK_INT (part->n_periods, ==, x->n_periods);
  LS_CHECK_INT (part->n_phases, ==, whole->n_phases);
  for (uint32_t i = 0; i < whole->n_phases && part->n_periods == x->n_periods; i++)
    check_loads (m, x, &whole->phases[i], &part->phases[i], part->like_period);
  LS_CHECK_INT (n_kept_of (part), ==, MAX (1, x->n_kept));
  LS_CHECK_INT (ls_coll_time_alone (m->c, part), ==, ls_coll_time_alone (m->c, whole));
}

static void
check_all (LsClusterSpec spec, const Case *cases, size_t n)
{
  Made m = make (spec);
  for (size_t i = 0; i < n; i++)
    check (&m, &cases[i]);
  ls_cluster_free (m.c);
}

#define CHECK_ALL(spec, cases) check_all (spec, cases, G_N_ELEMENTS (cases))

static void
groups_repeat (void)
{
  static const Case cases[] = {
    { "ring", LS_COLL_ALL_REDUCE, 0, 32, 1, 0, 8, 1, 8 },
    { "ring", LS_COLL_ALL_GATHER, 0, 16, 2, 3, 1, 1, 8 },    /* two members a group */
    { "ring", LS_COLL_REDUCE_SCATTER, 4, 8, 2, 0, 4, 2, 4 }, /* not from the first group on */
    { "ring", LS_COLL_ALL_REDUCE, 2, 24, 1, 0, 8, 1, 1 },    /* they begin within one */
    { "pat", LS_COLL_ALL_GATHER, 0, 32, 1, 5, 1, 1, 8 },
    { "pat", LS_COLL_REDUCE_SCATTER, 1, 15, 2, 0, 1, 1, 1 }, /* the last group has one member */
    { "pat", LS_COLL_REDUCE_SCATTER, 1, 6, 4, 0, 1, 1, 6 },  /* one member a group */
    { "pat", LS_COLL_ALL_GATHER, 0, 4, 8, 7, 1, 1, 4 },      /* every other group */
  };
  CHECK_ALL (leaves (4, 8), cases);
  CHECK_ALL (leaves (4, 1), cases);
}

static void
pods_repeat (void)
{
  LsClusterSpec spec = tiny_fat_tree (32); /* 4 nodes a leaf, 8 a pod */
  static const Case cases[] = {
    { "ring", LS_COLL_ALL_REDUCE, 0, 32, 1, 0, 8, 1, 4 },
    { "ring", LS_COLL_ALL_GATHER, 0, 16, 2, 3, 1, 1, 4 },
    { "ring", LS_COLL_ALL_GATHER, 8, 6, 4, 3, 2, 1, 3 }, /* two groups of each pod */
    { "pat", LS_COLL_ALL_GATHER, 0, 32, 1, 5, 1, 1, 4 },
    { "pat", LS_COLL_REDUCE_SCATTER, 16, 16, 1, 0, 1, 1, 2 },
    { "pat", LS_COLL_REDUCE_SCATTER, 0, 8, 1, 0, 1, 1, 1 }, /* one pod */
    { "ring", LS_COLL_ALL_REDUCE, 4, 24, 1, 0, 8, 1, 1 },   /* they begin within one */
  };
  CHECK_ALL (spec, cases);
}

static void
others_are_planned_whole (void)
{
  static const Case cases[] = {
    { "ring", LS_COLL_BROADCAST, 0, 32, 1, 0, 8, 1, 1 },
    { "ring", LS_COLL_REDUCE, 0, 32, 1, 0, 8, 1, 1 },
  };
  CHECK_ALL (leaves (4, 8), cases);
}

/* Roots are in the first and in the last period, and periods between them of two sorts at the most. */
static void
trees_have_few_sorts (void)
{
  static const Case in_groups[] = {
    { "tree", LS_COLL_ALL_REDUCE, 0, 32, 1, 0, 8, 1, 8, 4 },
    { "tree", LS_COLL_ALL_REDUCE, 0, 16, 2, 3, 1, 1, 8, 3 }, /* two members a group */
    { "tree", LS_COLL_ALL_REDUCE, 8, 24, 1, 5, 1, 1, 1 },    /* four sorts of six */
    { "tree", LS_COLL_ALL_REDUCE, 2, 24, 1, 0, 8, 1, 1 },    /* they begin within one */
    { "tree", LS_COLL_ALL_REDUCE, 0, 8, 1, 0, 8, 1, 1 },     /* two of two sorts */
  };
  static const Case in_pods[] = {
    { "tree", LS_COLL_ALL_REDUCE, 0, 64, 1, 3, 1, 1, 8, 4 },
    { "tree", LS_COLL_ALL_REDUCE, 0, 32, 2, 0, 8, 1, 8, 4 },
  };
  CHECK_ALL (leaves (4, 8), in_groups);
  CHECK_ALL (leaves (4, 1), in_groups);
  CHECK_ALL (tiny_fat_tree (64), in_pods);
}

/* The example of network/coll_tree.c. */
static void
every_other_group_is_alike (void)
{
  Made m = make (leaves (4, 8));
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t gpus[32];
  static const uint32_t like[] = { 0, 1, 2, 1, 2, 1, 2, 7 };
  for (uint32_t h = 0; h < 32; h++)
    gpus[h] = h * 8;
  const LsCollRequest request = {
    .kind = LS_COLL_ALL_REDUCE, .gpus = gpus, .n = 32, .bytes = 64 * MIB, .algorithm = "tree", .places = &m.at
  };
  const LsCollPlan *plan = ls_coll_plan (m.c, &round_nccl, &request, LS_NETWORK_FLOW, arena);
  LS_CHECK_INT (plan->n_periods, ==, 8);
  for (uint32_t k = 0; k < plan->n_periods && plan->like_period; k++)
    LS_CHECK_INT (plan->like_period[k], ==, like[k]);
  LS_CHECK (plan->like_period != NULL);
  ls_cluster_free (m.c);
}

/* Loads that are added up by place are those that routes one by one add up to: between hosts next to each
 * other, and between few that are far apart, which have no table of places. */
static void
trees_load_places (void)
{
  static const Case cases[] = {
    { "tree", LS_COLL_ALL_REDUCE, 1, 31, 1, 5, 1, 1, 1 },
    { "tree", LS_COLL_ALL_REDUCE, 3, 23, 1, 0, 2, 3, 1 },
    { "tree", LS_COLL_ALL_REDUCE, 1, 11, 2, 2, 1, 1, 1 },
    { "tree", LS_COLL_ALL_REDUCE, 0, 3, 8, 7, 1, 1, 1 },
    { "tree", LS_COLL_ALL_REDUCE, 2, 3, 14, 0, 1, 1, 1 },
    { "pairwise", LS_COLL_ALL_TO_ALL, 4, 9, 2, 1, 2, 1, 1 },
    { "pairwise", LS_COLL_ALL_TO_ALL, 0, 2, 30, 0, 1, 1, 1 },
  };
  CHECK_ALL (leaves (4, 8), cases);
  CHECK_ALL (leaves (4, 1), cases);
  CHECK_ALL (tiny_fat_tree (32), cases);
  CHECK_ALL (groups_of_leaves (LS_FABRIC_DRAGONFLY), cases);
  CHECK_ALL (groups_of_leaves (LS_FABRIC_DRAGONFLY_PLUS), cases);
}

/* Neither order, nor the GPUs of a host, nor its place may differ in one period. */
static void
one_that_differs_ends_it (void)
{
  Made m = make (leaves (4, 8));
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t gpus[32];
  for (int what = 0; what < 4; what++) {
    for (uint32_t h = 0; h < 32; h++)
      gpus[h] = h * 8;
    if (what == 1)
      gpus[21]++;
    if (what == 2) {
      gpus[20] = 21 * 8;
      gpus[21] = 20 * 8;
    }
    LsCollRequest request = { .kind = LS_COLL_ALL_GATHER,
                              .gpus = gpus,
                              .n = what == 3 ? 30 : 32,
                              .bytes = 64 * MIB,
                              .algorithm = "ring",
                              .places = &m.at };
    const LsCollPlan *plan = ls_coll_plan (m.c, &round_nccl, &request, LS_NETWORK_FLOW, arena);
    LS_CHECK_INT (plan->n_periods, ==, what == 0 ? 8 : 1);
  }
  ls_cluster_free (m.c);
}

/* Few bytes take as long as before, and load nothing. */
static void
tiny_calls_load_nothing (void)
{
  Made m = make (leaves (4, 8));
  static const char *const algorithms[] = { "ring", "tree", "nvls-tree" };
  LsNccl nccl = round_nccl;
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t gpus[256];
  nccl.nvls_bus = 400e9;
  for (uint32_t i = 0; i < 256; i++)
    gpus[i] = i;
  for (size_t a = 0; a < G_N_ELEMENTS (algorithms); a++) {
    LsCollRequest request
        = { .kind = LS_COLL_ALL_REDUCE, .gpus = gpus, .n = 256, .bytes = 8, .algorithm = algorithms[a] };
    const LsCollPlan *plan = ls_coll_plan (m.c, &nccl, &request, LS_NETWORK_FLOW, arena);
    request.is_tiny = true;
    const LsCollPlan *tiny = ls_coll_plan (m.c, &nccl, &request, LS_NETWORK_FLOW, arena);
    LS_CHECK_INT (tiny->n_phases, ==, plan->n_phases);
    for (uint32_t i = 0; i < tiny->n_phases; i++)
      LS_CHECK_INT (tiny->phases[i].n_loads, ==, 0);
    LS_CHECK_NEAR ((double) ls_coll_time_alone (m.c, tiny), (double) ls_coll_time_alone (m.c, plan), 1e-9);
  }
  ls_cluster_free (m.c);
}

/* The last host that is like the one before it has one NIC fewer in use. */
static void
a_failed_nic_is_missed (void)
{
  LsClusterSpec spec = leaves (4, 8);
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t gpus[64];
  for (uint32_t i = 0; i < 64; i++)
    gpus[i] = i;
  LsCollRequest request
      = { .kind = LS_COLL_ALL_GATHER, .gpus = gpus, .n = 64, .bytes = 64 * MIB, .algorithm = "ring" };
  LsCluster *sound = ls_cluster_build (&spec, NULL);
  add_fault (&spec, "node5/nic2>leaf10", 0);
  g_autoptr (GError) error = NULL;
  LsCluster *faulty = ls_cluster_build (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  const LsCollPlan *eight = ls_coll_plan (sound, &round_nccl, &request, LS_NETWORK_FLOW, arena),
                   *seven = ls_coll_plan (faulty, &round_nccl, &request, LS_NETWORK_FLOW, arena);
  LS_CHECK_NEAR (eight->sm_share / seven->sm_share, 8.0 / 7, 1e-12);
  ls_cluster_spec_clear (&spec);
  ls_cluster_free (sound);
  ls_cluster_free (faulty);
}

LS_TEST_SUITE (LS_TEST (groups_repeat), LS_TEST (pods_repeat), LS_TEST (others_are_planned_whole),
               LS_TEST (trees_have_few_sorts), LS_TEST (every_other_group_is_alike),
               LS_TEST (trees_load_places), LS_TEST (one_that_differs_ends_it),
               LS_TEST (tiny_calls_load_nothing), LS_TEST (a_failed_nic_is_missed));
