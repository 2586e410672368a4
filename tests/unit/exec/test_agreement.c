/* Pins: how near a collective message by message comes to its phases, with nothing else on
 * the network. Within 5 % from 64 MiB on: all algorithms on a node, over nodes, and rings
 * behind an oversubscribed fabric, or on hashed routes; a torus. What does not, by what
 * messages.h says. */
#include "ls_test.h"

#include <math.h>

#include "nccl_tables.h"
#include "tiny_cluster.h"

#include "exec/messages/messages.h"

#define MIB (UINT64_C (1) << 20)

static const LsNccl nccl = {
  LS_TEST_NCCL_ALONE,
  .nvls_bus = 400e9,
};

typedef struct {
  const char *name;
  LsClusterSpec spec;
  uint32_t n, per_node; /* members: the first so many GPUs of each node */
} Place;

static LsClusterSpec
oversubscribed (void)
{
  LsClusterSpec s = tiny_dgx (8);
  s.network.nodes_per_leaf = 4;
  s.network.oversubscription = 4;
  return s;
}

typedef struct {
  LsTime step, flow; /* below 0: the algorithm does not apply */
} Times;

static Times
times_with (const LsNccl *rates, const Place *p, LsCollKind kind, const char *algorithm, uint64_t bytes)
{
  const Times none = { -1, -1 };
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCluster) c = ls_cluster_build (&p->spec, &error);
  LS_CHECK_NO_ERROR (error);
  if (!c)
    return none;
  g_autoptr (LsArena) arena = ls_arena_new ();
  g_autofree uint32_t *gpus = g_new (uint32_t, p->n);
  for (uint32_t i = 0; i < p->n; i++)
    gpus[i] = i / p->per_node * p->spec.gpus_per_node + i % p->per_node;
  LsCollRequest request = { .kind = kind, .gpus = gpus, .n = p->n, .bytes = bytes, .algorithm = algorithm };
  if (!ls_coll_applies (c, rates, &request))
    return none;
  const LsCollPlan *plan = ls_coll_plan (c, rates, &request, LS_NETWORK_FLOW, arena);
  const LsScript *script = ls_coll_script (c, rates, &request, arena);
  return (Times) { ls_messages_time_alone (script, c, NULL), ls_coll_time_alone (c, plan) };
}

/* step / flow with these rates; NAN: the algorithm does not apply. */
static double
ratio_with (const LsNccl *rates, const Place *p, LsCollKind kind, const char *algorithm, uint64_t bytes)
{
  Times t = times_with (rates, p, kind, algorithm, bytes);
  return t.step < 0 ? NAN : (double) t.step / (double) t.flow;
}

static double
ratio (const Place *p, LsCollKind kind, const char *algorithm, uint64_t bytes)
{
  return ratio_with (&nccl, p, kind, algorithm, bytes);
}

static void
check_ratio (const Place *p, LsCollKind kind, const char *algorithm, uint64_t bytes, double least,
             double most, double r)
{
  ls_check_impl (r >= least && r <= most, __FILE__, __LINE__,
                 "%s, %s by %s, %" G_GUINT64_FORMAT " MiB: step / flow %.4f, not %.2f to %.2f", p->name,
                 ls_coll_kind_name (kind), algorithm, bytes / MIB, r, least, most);
}

static void
check (const Place *p, LsCollKind kind, const char *algorithm, uint64_t bytes, double least, double most)
{
  check_ratio (p, kind, algorithm, bytes, least, most, ratio (p, kind, algorithm, bytes));
}

typedef struct {
  LsCollKind kind;
  const char *algorithm;
} Algorithm;

/* Where the algorithm applies, which must be somewhere. */
static void
check_places (const Place *places, guint n, const Algorithm *a, uint64_t bytes, double least, double most)
{
  guint n_checked = 0;
  for (guint i = 0; i < n; i++) {
    double r = ratio (&places[i], a->kind, a->algorithm, bytes);
    if (isnan (r))
      continue;
    check_ratio (&places[i], a->kind, a->algorithm, bytes, least, most, r);
    n_checked++;
  }
  LS_CHECK_INT (n_checked, >=, 1);
}

static void
rounds_of_equal_messages_agree (void)
{
  const Place places[] = {
    { "a node", tiny_dgx (1), 8, 8 },
    { "two nodes", tiny_dgx (2), 16, 8 },
    { "half of two nodes", tiny_dgx (2), 8, 4 },
    { "four nodes", tiny_dgx (4), 32, 8 },
    { "one of each", tiny_dgx (8), 8, 1 },
    { "oversubscribed", oversubscribed (), 16, 2 },
    { "PCIe", tiny_pcie (1), 8, 8 },
  };
  const LsCollKind kinds[] = { LS_COLL_ALL_REDUCE, LS_COLL_ALL_GATHER, LS_COLL_REDUCE_SCATTER };
  for (guint i = 0; i < G_N_ELEMENTS (places); i++)
    for (guint k = 0; k < G_N_ELEMENTS (kinds); k++)
      for (uint64_t size = 64; size <= 1024; size *= 16) {
        check (&places[i], kinds[k], "ring", size * MIB, 0.95, 1.05);
        check (&places[i], kinds[k], "halving-doubling", size * MIB, 0.95, 1.05);
        if (places[i].per_node > 1 && places[i].n > 8)
          check (&places[i], kinds[k], "hierarchical", size * MIB, 0.95, 1.05);
      }
}

/* Where the waits of Simple show at each hop (Blackwell), each round has one, too. */
static void
waits_at_hops_are_in_rounds (void)
{
  const Place node = { "a node", tiny_dgx (1), 8, 8 };
  const LsCollKind kinds[] = { LS_COLL_ALL_REDUCE, LS_COLL_ALL_GATHER, LS_COLL_REDUCE_SCATTER };
  LsNccl waiting = nccl;
  waiting.handshake_hop = 5 * LS_US;
  for (guint k = 0; k < G_N_ELEMENTS (kinds); k++)
    check_ratio (&node, kinds[k], "ring", MIB / 16, 0.999, 1.001,
                 ratio_with (&waiting, &node, kinds[k], "ring", MIB / 16));
}

static void
a_torus_agrees (void)
{
  const Place places[] = {
    { "line", tiny_torus (1, 8, 4, 0, LS_WRAP_NONE), 8, 32 },
    { "ring", tiny_torus (1, 8, 4, 0, LS_WRAP_ALL), 8, 32 },
    { "plane", tiny_torus (1, 8, 8, 0, LS_WRAP_ALL), 64, 64 },
    { "cube", tiny_torus (1, 4, 4, 4, LS_WRAP_ALL), 64, 64 },
  };
  const LsCollKind kinds[]
      = { LS_COLL_ALL_REDUCE, LS_COLL_ALL_GATHER, LS_COLL_REDUCE_SCATTER, LS_COLL_BROADCAST, LS_COLL_REDUCE };
  for (guint i = 0; i < G_N_ELEMENTS (places); i++)
    for (guint k = 0; k < G_N_ELEMENTS (kinds); k++)
      check (&places[i], kinds[k], "torus", 256 * MIB, 0.95, 1.05);
}

/* Rounds load all axes alike: equal ones, unequal ones, lines, and two slices over DCN. */
static void
exchanges_on_a_torus_agree (void)
{
  const Place places[] = {
    { "line", tiny_torus (1, 8, 4, 0, LS_WRAP_NONE), 8, 32 },
    { "uneven lines", tiny_torus (1, 4, 8, 0, LS_WRAP_NONE), 32, 32 },
    { "uneven rings", tiny_torus (1, 4, 6, 0, LS_WRAP_ALL), 24, 24 },
    { "plane", tiny_torus (1, 8, 8, 0, LS_WRAP_ALL), 64, 64 },
    { "two slices", tiny_torus (2, 4, 4, 0, LS_WRAP_ALL), 32, 16 },
  };
  const Place large = { "several rounds", tiny_torus (1, 8, 8, 8, LS_WRAP_ALL), 512, 512 };
  for (guint i = 0; i < G_N_ELEMENTS (places); i++)
    for (uint64_t size = 64; size <= 1024; size *= 16)
      check (&places[i], LS_COLL_ALL_TO_ALL, "torus", size * MIB, 0.95, 1.05);
  check (&large, LS_COLL_ALL_TO_ALL, "torus", 64 * MIB, 1.02, 1.05);
}

/* A turn takes as long as its longest axis; what shorter ones have is spread over that. */
static void
uneven_axes_agree (void)
{
  const Place places[] = {
    { "2 x 4", tiny_torus (1, 2, 4, 0, LS_WRAP_NONE), 8, 8 },
    { "4 x 8", tiny_torus (1, 4, 8, 0, LS_WRAP_NONE), 32, 32 },
    { "4 x 4 x 8", tiny_torus (1, 4, 4, 8, LS_WRAP_ALL), 128, 128 },
  };
  const Place sixth = { "4 x 6", tiny_torus (1, 4, 6, 0, LS_WRAP_ALL), 24, 24 };
  const LsCollKind kinds[] = { LS_COLL_ALL_REDUCE, LS_COLL_ALL_GATHER, LS_COLL_REDUCE_SCATTER };
  for (guint k = 0; k < G_N_ELEMENTS (kinds); k++) {
    for (guint i = 0; i < G_N_ELEMENTS (places); i++)
      check (&places[i], kinds[k], "torus", 256 * MIB, 0.95, 1.05);
    check (&sixth, kinds[k], "torus", 256 * MIB, 1.05, 1.17); /* 2 rounds into 3: 1 and 2 */
  }
}

static LsClusterSpec
hashed (void)
{
  LsClusterSpec s = tiny_dgx (8);
  s.network.nodes_per_leaf = 4;
  s.network.rails = 1;
  s.network.routing = LS_ROUTING_ECMP;
  return s;
}

/* Channels of a message take ways of their own, in plans and in scripts the same. */
static void
hashed_routes_agree (void)
{
  const Place places[]
      = { { "two leaves, hashed", hashed (), 64, 8 }, { "one of each, hashed", hashed (), 8, 1 } };
  for (guint i = 0; i < G_N_ELEMENTS (places); i++) {
    check (&places[i], LS_COLL_ALL_REDUCE, "ring", 256 * MIB, 0.95, 1.05);
    check (&places[i], LS_COLL_ALL_GATHER, "ring", 256 * MIB, 0.95, 1.05);
    check (&places[i], LS_COLL_ALL_TO_ALL, "pairwise", 256 * MIB, 0.95, 1.05);
  }
}

/* Trees, NVLS, SHARP and chains: chunk after chunk. The plan knows nothing of their filling, the
 * script spends 3 % on it. */
static void
pipelines_agree (void)
{
  const Place places[] = {
    { "a node", tiny_dgx (1), 8, 8 },         { "half a node", tiny_dgx (1), 4, 4 },
    { "two nodes", tiny_dgx (2), 16, 8 },     { "four nodes", tiny_dgx (4), 32, 8 },
    { "half of eight", tiny_dgx (8), 32, 4 }, { "half of two nodes", tiny_dgx (2), 8, 4 },
    { "one of each", tiny_dgx (8), 8, 1 },    { "uneven", tiny_dgx (4), 11, 3 },
  };
  const Algorithm calls[] = {
    { LS_COLL_BROADCAST, "ring" },  { LS_COLL_REDUCE, "ring" },          { LS_COLL_ALL_REDUCE, "tree" },
    { LS_COLL_ALL_REDUCE, "nvls" }, { LS_COLL_ALL_REDUCE, "nvls-tree" }, { LS_COLL_ALL_REDUCE, "collnet" },
  };
  for (guint k = 0; k < G_N_ELEMENTS (calls); k++)
    for (uint64_t size = 64; size <= 1024; size *= 16)
      check_places (places, G_N_ELEMENTS (places), &calls[k], size * MIB, 0.97, 1.05);
}

/* In batches of eight pairs, all equally far. */
static void
exchanges_of_all_with_all_agree (void)
{
  const Place places[] = {
    { "a node", tiny_dgx (1), 8, 8 },
    { "two nodes", tiny_dgx (2), 16, 8 },
    { "half of two nodes", tiny_dgx (2), 8, 4 },
    { "four nodes", tiny_dgx (4), 32, 8 },
    { "eight nodes", tiny_dgx (8), 64, 8 },
    { "one of each", tiny_dgx (8), 8, 1 },
    { "uneven", tiny_dgx (4), 11, 3 },
  };
  const LsCollKind kinds[]
      = { LS_COLL_ALL_TO_ALL, LS_COLL_ALL_GATHER, LS_COLL_REDUCE_SCATTER, LS_COLL_ALL_REDUCE };
  for (guint i = 0; i < G_N_ELEMENTS (places); i++)
    for (guint k = 0; k < G_N_ELEMENTS (kinds); k++)
      check (&places[i], kinds[k], "pairwise", 256 * MIB, 0.95, 1.05);
}

/* All messages of the others, and a barrier, which has none but hops. */
static void
the_others_agree (void)
{
  const Place places[] = {
    { "a node", tiny_dgx (1), 8, 8 },
    { "two nodes", tiny_dgx (2), 16, 8 },
    { "one of each", tiny_dgx (8), 8, 1 },
    { "uneven", tiny_dgx (4), 11, 3 },
  };
  const Algorithm calls[] = {
    { LS_COLL_ALL_GATHER, "pat" },
    { LS_COLL_REDUCE_SCATTER, "pat" },
    { LS_COLL_ALL_REDUCE, "parameter-server" },
    { LS_COLL_ALL_REDUCE, "naive" },
    { LS_COLL_BROADCAST, "naive" },
    { LS_COLL_REDUCE, "naive" },
    { LS_COLL_GATHER, "direct" },
    { LS_COLL_SCATTER, "direct" },
    { LS_COLL_BARRIER, "dissemination" },
  };
  for (guint k = 0; k < G_N_ELEMENTS (calls); k++)
    check_places (places, G_N_ELEMENTS (places), &calls[k], 64 * MIB, 0.99, 1.01);
}

/* With an odd member out, partners of unequal blocks: a phase waits for the slowest pair of
 * its round, a member for its own partner. */
static void
unequal_rounds_do_not (void)
{
  const Place uneven = { "uneven", tiny_dgx (4), 11, 3 };
  check (&uneven, LS_COLL_ALL_REDUCE, "halving-doubling", 256 * MIB, 0.75, 0.9);
}

/* Where a pipeline is cut into more chunks as well: none of them can overtake the latency of its links. */
static void
more_bytes_take_longer (void)
{
  const Place places[] = {
    { "a node", tiny_dgx (1), 8, 8 },
    { "two nodes", tiny_dgx (2), 16, 8 },
    { "PCIe", tiny_pcie (1), 8, 8 },
    { "uneven", tiny_dgx (4), 11, 3 },
    { "line", tiny_torus (1, 8, 4, 0, LS_WRAP_NONE), 8, 32 },
    { "cube", tiny_torus (1, 4, 4, 4, LS_WRAP_ALL), 64, 64 },
  };
  const char *names[]
      = { "ring",   "tree",  "nvls", "nvls-tree",        "collnet", "halving-doubling", "hierarchical",
          "direct", "naive", "pat",  "parameter-server", "torus",   "pairwise" };
  guint n_checked = 0;
  for (guint i = 0; i < G_N_ELEMENTS (places); i++)
    for (guint a = 0; a < G_N_ELEMENTS (names); a++)
      for (int kind = 0; kind < LS_N_COLL_KINDS; kind++) {
        LsTime before = 0;
        for (uint64_t size = 1024; size <= 64 * MIB && before >= 0; size *= 4) {
          LsTime time = times_with (&nccl, &places[i], kind, names[a], size).step;
          ls_check_impl (time < 0 || time >= before, __FILE__, __LINE__,
                         "%s, %s by %s, %" G_GUINT64_FORMAT ": %g us after %g", places[i].name,
                         ls_coll_kind_name (kind), names[a], size, (double) time / LS_US,
                         (double) before / LS_US);
          n_checked += time > 0;
          before = time;
        }
      }
  LS_CHECK_INT (n_checked, >=, 1000);
}

LS_TEST_SUITE (LS_TEST (rounds_of_equal_messages_agree), LS_TEST (waits_at_hops_are_in_rounds),
               LS_TEST (a_torus_agrees), LS_TEST (exchanges_on_a_torus_agree), LS_TEST (uneven_axes_agree),
               LS_TEST (hashed_routes_agree), LS_TEST (pipelines_agree),
               LS_TEST (exchanges_of_all_with_all_agree), LS_TEST (the_others_agree),
               LS_TEST (unequal_rounds_do_not), LS_TEST (more_bytes_take_longer))
