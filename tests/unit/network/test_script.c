/* Pins every algorithm for every kind that it supports: its script does what the kind
 * says, symbolically; members send the bytes of the formula; and the plan puts on every
 * trunk the bytes of the messages. */
#include "fixtures.h"

#include <math.h>
#include <string.h>

#include "tiny_cluster.h"
#include "prover.h"

typedef struct {
  uint32_t n, per_node;
} Shape;

static const Shape shapes[] = {
  { 2, 8 },  { 3, 8 },  { 4, 8 },  { 5, 8 },  { 6, 8 },  { 7, 8 },  { 8, 8 },  { 9, 8 },
  { 10, 8 }, { 11, 8 }, { 12, 8 }, { 13, 8 }, { 14, 8 }, { 15, 8 }, { 16, 8 }, { 17, 8 },
  { 2, 1 },  { 3, 1 },  { 4, 1 },  { 5, 1 },  { 6, 1 },  { 7, 1 },  { 8, 1 },  { 9, 1 },
  { 12, 1 }, { 15, 1 }, { 16, 1 }, { 17, 1 }, { 4, 2 },  { 6, 2 },  { 10, 2 }, { 16, 2 },
  { 9, 3 },  { 12, 3 }, { 15, 3 }, { 12, 4 }, { 16, 4 }, { 15, 5 }, { 7, 2 },  { 11, 3 },
};
/* On a hybrid cube; the last two with hosts of different numbers of members. */
static const Shape mesh_shapes[]
    = { { 2, 8 }, { 4, 8 }, { 7, 8 }, { 8, 8 }, { 16, 8 }, { 12, 4 }, { 9, 3 }, { 11, 8 }, { 15, 4 } };

/* Members in an order of their own: what an algorithm makes of seats must come back. */
static void
shuffled (uint32_t *gpus, uint32_t n, uint32_t per_node)
{
  uint32_t sorted[64], stride = n % 7 == 0 ? 5 : 7;
  spread (sorted, n, per_node);
  for (uint32_t i = 0; i < n; i++)
    gpus[i] = sorted[(i * stride + 3) % n];
}

/* 2 leaves for each rail on 8 nodes, with NVLink SHARP. Without PXN rings cross rails. */
static LsCluster *
wide_cluster (bool pxn)
{
  LsClusterSpec spec = tiny_dgx (20);
  spec.network.nodes_per_leaf = 4;
  spec.network.pxn = pxn;
  return built (spec);
}

/* Rings there go along links, not by GPU number. */
static LsCluster *
mesh_cluster (void)
{
  LsClusterSpec spec = tiny_dgx (4);
  spec.server.nvswitch_planes = spec.server.nvlinks_per_gpu = 0;
  spec.server.mesh = LS_MESH_HYBRID_CUBE;
  return built (spec);
}

typedef void (*Check) (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request);

/* How often a check ran, by algorithm and kind. */
static uint32_t n_done[32][LS_N_COLL_KINDS];

static void
check_shape (const LsCluster *c, uint32_t n, uint32_t per_node, uint64_t bytes, Check check)
{
  LsNccl nccl = round_nccl;
  uint32_t gpus[64];
  nccl.nvls_bus = 400e9;
  shuffled (gpus, n, per_node);
  const char *const *names = ls_coll_algorithms ();
  for (uint32_t a = 0; names[a]; a++)
    for (LsCollKind kind = 0; kind < LS_N_COLL_KINDS; kind++) {
      LsCollRequest request
          = { .kind = kind, .gpus = gpus, .n = n, .root = n / 3, .bytes = bytes, .algorithm = names[a] };
      if ((kind == LS_COLL_SEND_RECV && n != 2) || !ls_coll_applies (c, &nccl, &request))
        continue;
      check (c, &nccl, &request);
      n_done[a][kind]++;
    }
}

/* Of the shapes, every step-th. */
static void
check_all (uint64_t bytes, size_t step, Check check)
{
  g_autoptr (LsCluster) c = wide_cluster (false), pxn = wide_cluster (true);
  memset (n_done, 0, sizeof n_done);
  for (size_t i = 0; i < G_N_ELEMENTS (shapes); i += step) {
    check_shape (c, shapes[i].n, shapes[i].per_node, bytes, check);
    if (shapes[i].per_node > 1 && shapes[i].per_node < 8)
      check_shape (pxn, shapes[i].n, shapes[i].per_node, bytes, check);
  }
  for (uint32_t whole_nodes = 2; whole_nodes <= 5; whole_nodes++)
    check_shape (c, whole_nodes * 8, 8, bytes, check);
  g_autoptr (LsCluster) mesh = mesh_cluster ();
  for (size_t i = 0; i < G_N_ELEMENTS (mesh_shapes); i += step)
    check_shape (mesh, mesh_shapes[i].n, mesh_shapes[i].per_node, bytes, check);
  LsClusterSpec list_spec = list_dgx (2);
  g_autoptr (LsCluster) list = built (list_spec);
  ls_cluster_spec_clear (&list_spec);
  check_shape (list, 8, 8, bytes, check);
  check_shape (list, 16, 8, bytes, check);
}

static void
proves (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsScript *s = ls_coll_script (c, nccl, request, arena);
  g_autofree char *wrong = what_is_wrong (s);
  ls_check_impl (!wrong, __FILE__, __LINE__, "%s %s of %u: %s", request->algorithm,
                 ls_coll_kind_name (request->kind), request->n, wrong ? wrong : "");
}

#define KIND(name) (1u << LS_COLL_##name)
#define SHARDED    (KIND (ALL_REDUCE) | KIND (ALL_GATHER) | KIND (REDUCE_SCATTER))
#define ROOTED     (KIND (BROADCAST) | KIND (REDUCE))

/* What was proved, so that a check that never runs is noticed. */
static const struct {
  const char *algorithm;
  uint32_t kinds;
} proved[] = {
  { "ring", SHARDED | ROOTED },
  { "tree", KIND (ALL_REDUCE) },
  { "nvls", KIND (ALL_REDUCE) },
  { "nvls-tree", KIND (ALL_REDUCE) },
  { "p2p", KIND (SEND_RECV) },
  { "shift", KIND (PERMUTE) | KIND (COPY_PERMUTE) },
  { "pairwise", SHARDED | KIND (ALL_TO_ALL) },
  { "direct", KIND (GATHER) | KIND (SCATTER) },
  { "dissemination", KIND (BARRIER) },
  { "hierarchical", SHARDED },
  { "halving-doubling", SHARDED },
  { "collnet", KIND (ALL_REDUCE) },
  { "pat", KIND (ALL_GATHER) | KIND (REDUCE_SCATTER) },
  { "parameter-server", KIND (ALL_REDUCE) },
  { "naive", SHARDED | ROOTED },
  { "torus", 0 },    /* has clusters of its own: test_coll_torus.c */
  { "dispatch", 0 }, /* want tokens: tests/unit/job/test_experts.c */
  { "combine", 0 },
};

static void
every_script_is_right (void)
{
  check_all (MIB, 1, proves);
  const char *const *names = ls_coll_algorithms ();
  for (uint32_t a = 0; names[a]; a++) {
    uint32_t kinds = 0, expected = UINT32_MAX;
    for (LsCollKind kind = 0; kind < LS_N_COLL_KINDS; kind++)
      kinds |= n_done[a][kind] > 0 ? 1u << kind : 0;
    for (size_t i = 0; i < G_N_ELEMENTS (proved); i++)
      expected = strcmp (proved[i].algorithm, names[a]) == 0 ? proved[i].kinds : expected;
    ls_check_impl (kinds == expected, __FILE__, __LINE__, "%s: kinds %x, expected %x", names[a], kinds,
                   expected);
  }
}

/* --- the prover can say no --- */

static const LsScript *original;

static uint32_t
sends_another_block (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret)
{
  uint32_t n = original->sends (original, place, round, ret);
  if (place == 2 && round == 3)
    ret[0].first = (ret[0].first + 1) % s->n_blocks;
  return n;
}

static uint32_t
sends_to_itself (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret)
{
  uint32_t n = original->sends (original, place, round, ret);
  if (place == 1 && round == 0)
    ret[0].to = 1;
  return n;
}

static uint32_t
sends_less (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret)
{
  return place == 0 && round == 4 ? 0 : original->sends (original, place, round, ret);
}

static uint32_t
adds_where_it_should_replace (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret)
{
  uint32_t n = original->sends (original, place, round, ret);
  ret[0].reduces = true;
  return n;
}

static uint32_t
waits_for_more (const LsScript *s, uint32_t place, uint32_t round)
{
  return original->n_receives (original, place, round) + (place == 3 && round == 1);
}

static void
check_rejected (LsScript s)
{
  g_autofree char *wrong = what_is_wrong (&s);
  LS_CHECK (wrong != NULL);
}

static void
a_wrong_script_is_rejected (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (1));
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t gpus[5];
  spread (gpus, 5, 8);
  LsCollRequest request
      = { .kind = LS_COLL_ALL_REDUCE, .gpus = gpus, .n = 5, .bytes = MIB, .algorithm = "ring" };
  original = ls_coll_script (c, &round_nccl, &request, arena);
  static uint32_t (*const wrong_sends[]) (const LsScript *, uint32_t, uint32_t, LsSend *)
      = { sends_another_block, sends_to_itself, sends_less, adds_where_it_should_replace };
  for (size_t i = 0; i < G_N_ELEMENTS (wrong_sends); i++) {
    LsScript s = *original;
    s.sends = wrong_sends[i];
    check_rejected (s);
  }
  LsScript waiting = *original, unfinished = *original;
  waiting.n_receives = waits_for_more;
  unfinished.n_rounds--;
  check_rejected (waiting);
  check_rejected (unfinished);
}

/* --- bytes --- */

/* What members send over the whole script, in arrays; of the member that sends most in
 * ret_most. */
static double
sent (const LsScript *s, double bytes, double *ret_most)
{
  g_autofree LsSend *sends = g_new (LsSend, s->max_sends);
  double sum = 0;
  *ret_most = 0;
  for (uint32_t place = 0; place < s->n; place++) {
    double blocks = 0;
    for (uint32_t r = 0; r < s->n_rounds; r++) {
      uint32_t n = s->sends (s, place, r, sends);
      for (uint32_t i = 0; i < n; i++)
        blocks += sends[i].n;
    }
    sum += blocks * s->block_bytes / bytes;
    *ret_most = fmax (*ret_most, blocks * s->block_bytes / bytes);
  }
  return sum;
}

static uint32_t
hosts_of (const LsCollRequest *q)
{
  uint64_t hosts = 0;
  for (uint32_t i = 0; i < q->n; i++)
    hosts |= UINT64_C (1) << q->gpus[i] / 8;
  return (uint32_t) __builtin_popcountll (hosts);
}

/* Sum over members; most: of one member, 0: not pinned. */
static double
formula (const LsCollRequest *q, double *ret_most)
{
  double n = q->n, hosts = hosts_of (q), k = n / hosts;
  double wire = ls_coll_wire_factor (q->kind, q->n);
  const char *a = q->algorithm;
  *ret_most = 0;
  if (strcmp (a, "tree") == 0 || strcmp (a, "parameter-server") == 0)
    return 2 * (n - 1);
  if (strcmp (a, "nvls") == 0) {
    *ret_most = 1 + 1 / n;
    return n + 1;
  }
  if (strcmp (a, "nvls-tree") == 0)
    return n * (1 + 1 / k) + 2 * (hosts - 1);
  if (strcmp (a, "collnet") == 0) {
    *ret_most = 2 * (k - 1) / k + 1 / k;
    return n * *ret_most;
  }
  if (strcmp (a, "naive") == 0 && q->kind <= LS_COLL_REDUCE_SCATTER)
    return q->kind == LS_COLL_ALL_REDUCE ? 2 * (n - 1) : (n - 1) * (1 + 1 / n);
  if (q->kind == LS_COLL_BROADCAST || q->kind == LS_COLL_REDUCE)
    return n - 1;
  if (q->kind == LS_COLL_GATHER || q->kind == LS_COLL_SCATTER || q->kind == LS_COLL_SEND_RECV)
    return wire;
  if (strcmp (a, "halving-doubling") == 0 && (q->n & (q->n - 1)) != 0) {
    /* p of n in the butterfly; the others give what they have and get back what they need. */
    double p = (double) (1u << (g_bit_storage (q->n) - 1)), others = n - p;
    double give = q->kind == LS_COLL_ALL_GATHER ? 1 / n : 1;
    double get = q->kind == LS_COLL_ALL_REDUCE ? 1 : q->kind == LS_COLL_ALL_GATHER ? (n - 1) / n : 1 / n;
    return (q->kind == LS_COLL_ALL_REDUCE ? 2 : 1) * (p - 1) + others * (give + get);
  }
  *ret_most = wire;
  return n * wire;
}

static void
sends_the_formula (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsScript *s = ls_coll_script (c, nccl, request, arena);
  if (request->kind == LS_COLL_BARRIER) {
    LS_CHECK_DOUBLE (s->block_bytes, ==, 0.0);
    return;
  }
  double most, expected_most, is = sent (s, (double) request->bytes, &most),
                              expected = formula (request, &expected_most);
  ls_check_impl (fabs (is - expected) < 1e-9 * expected, __FILE__, __LINE__,
                 "%s %s of %u: %g arrays, expected %g", request->algorithm, ls_coll_kind_name (request->kind),
                 request->n, is, expected);
  if (expected_most > 0)
    LS_CHECK_NEAR (most, expected_most, 1e-9);
}

static void
members_send_the_bytes_of_the_formula (void)
{
  check_all (MIB, 1, sends_the_formula);
}

static void
add_messages (const LsCluster *c, const LsScript *s, double *bytes)
{
  g_autofree LsSend *sends = g_new (LsSend, s->max_sends);
  for (uint32_t place = 0; place < s->n + s->n_switches; place++)
    for (uint32_t r = 0; r < s->n_rounds; r++) {
      uint32_t n = s->sends (s, place, r, sends);
      for (uint32_t i = 0; i < n; i++) {
        LsRoute route;
        ls_script_route_channel (s, place, sends[i].to, 0, &route);
        for (uint32_t h = 0; h < route.n_hops; h++)
          bytes[route.hop[h].trunk] += sends[i].n * s->block_bytes * route.hop[h].share / LS_HOP_WHOLE;
      }
    }
}

static void
loads_what_it_sends (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsCollPlan *plan = ls_coll_plan (c, nccl, request, LS_NETWORK_FLOW, arena);
  g_autofree double *of_messages = g_new0 (double, c->trunks->len),
                    *of_plan = g_new0 (double, c->trunks->len);
  add_messages (c, ls_coll_script (c, nccl, request, arena), of_messages);
  for (uint32_t p = 0; p < plan->n_phases; p++)
    for (uint32_t i = 0; i < plan->phases[p].n_loads; i++)
      if (plan->phases[p].loads[i].resource < c->trunks->len)
        of_plan[plan->phases[p].loads[i].resource] += bytes_of (&plan->phases[p], &plan->phases[p].loads[i]);
  double worst = 0;
  for (guint t = 0; t < c->trunks->len; t++)
    worst = fmax (worst, fabs (of_plan[t] - of_messages[t]));
  ls_check_impl (worst <= 1e-5 * (double) request->bytes, __FILE__, __LINE__,
                 "%s %s of %u: a trunk is off by %g bytes", request->algorithm,
                 ls_coll_kind_name (request->kind), request->n, worst);
}

static void
plans_load_the_bytes_of_the_messages (void)
{
  check_all (2 * MIB, 2, loads_what_it_sends);
}

/* --- what calls have in common --- */

static void
check_same_plan (const LsCollRequest *request, const LsCollPlan *a, const LsCollPlan *b)
{
  bool same = a->n_phases == b->n_phases;
  for (uint32_t p = 0; same && p < a->n_phases; p++) {
    const LsPhase *x = &a->phases[p], *y = &b->phases[p];
    same = x->latency == y->latency && x->demand_bytes == y->demand_bytes && x->rate_cap == y->rate_cap
        && x->n_loads == y->n_loads;
    for (uint32_t i = 0; same && i < x->n_loads; i++)
      same = x->loads[i].resource == y->loads[i].resource && x->loads[i].coef == y->loads[i].coef;
  }
  ls_check_impl (same, __FILE__, __LINE__,
                 "%s %s of %u, %" G_GUINT64_FORMAT " bytes: another plan with a memo", request->algorithm,
                 ls_coll_kind_name (request->kind), request->n, request->bytes);
}

static LsCollMemo *shared_memo;

/* The memo has seen other sizes, kinds, roots and members. */
static void
plans_alike_with_memo (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request)
{
  for (int turn = 0; turn < 2; turn++)
    for (uint64_t bytes = MIB; bytes <= 64 * MIB; bytes *= 8) {
      g_autoptr (LsArena) arena = ls_arena_new ();
      LsCollRequest plain = *request;
      plain.bytes = bytes;
      plain.root = turn == 0 ? request->root : request->n - 1;
      LsCollRequest with_memo = plain;
      with_memo.memo = shared_memo;
      check_same_plan (&plain, ls_coll_plan (c, nccl, &plain, LS_NETWORK_FLOW, arena),
                       ls_coll_plan (c, nccl, &with_memo, LS_NETWORK_FLOW, arena));
    }
}

static void
a_memo_changes_no_plan (void)
{
  g_autoptr (LsCluster) c = wide_cluster (false);
  shared_memo = ls_coll_memo_new ();
  for (size_t i = 0; i < G_N_ELEMENTS (shapes); i += 4)
    check_shape (c, shapes[i].n, shapes[i].per_node, MIB, plans_alike_with_memo);
  check_shape (c, 24, 8, MIB, plans_alike_with_memo);
  g_clear_pointer (&shared_memo, ls_coll_memo_free);
}

/* --- time --- */

/* Seconds from the caps alone, if every round waited for the one before. */
static double
in_step (const LsScript *s)
{
  g_autofree LsSend *sends = g_new (LsSend, s->max_sends);
  double sum = ls_time_to_s (s->base);
  for (uint32_t r = 0; r < s->n_rounds; r++) {
    double longest = 0;
    for (uint32_t place = 0; place < s->n + s->n_switches; place++) {
      uint32_t n = s->sends (s, place, r, sends);
      for (uint32_t i = 0; i < n; i++) {
        double rate = ls_script_rate_cap (s, place, sends[i].to, sends[i].n) * (double) s->flows
            / (double) LS_COEF_ONE;
        double t
            = ls_time_to_s (ls_script_latency (s, place, sends[i].to)) + sends[i].n * s->block_bytes / rate;
        longest = fmax (longest, t);
      }
    }
    sum += longest;
  }
  return sum;
}

/* Large messages on links that never bind: what a script lets go at once is what the plan
 * allows in sum. A pipeline takes longer by its filling. */
static void
keeps_the_rate (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request)
{
  if (request->kind == LS_COLL_BARRIER)
    return;
  g_autoptr (LsArena) arena = ls_arena_new ();
  double script = in_step (ls_coll_script (c, nccl, request, arena));
  double plan
      = ls_time_to_s (ls_coll_time_alone (c, ls_coll_plan (c, nccl, request, LS_NETWORK_FLOW, arena)));
  ls_check_impl (script > 0.98 * plan && script < 1.6 * plan, __FILE__, __LINE__,
                 "%s %s of %u: %g s by messages, %g s by the plan", request->algorithm,
                 ls_coll_kind_name (request->kind), request->n, script, plan);
}

static void
scripts_are_as_fast_as_plans (void)
{
  LsClusterSpec spec = tiny_dgx (20);
  LsLinkSpec *links[] = { &spec.server.nvlink, &spec.server.pcie, &spec.nics.port, &spec.network.spine,
                          &spec.server.cpu_interconnect };
  for (size_t i = 0; i < G_N_ELEMENTS (links); i++)
    links[i]->bandwidth_bytes_per_s *= 1000;
  spec.gpu.hbm_bytes_per_s *= 1000;
  g_autoptr (LsCluster) c = built (spec);
  for (size_t i = 0; i < G_N_ELEMENTS (shapes); i += 5)
    check_shape (c, shapes[i].n, shapes[i].per_node, 4096 * MIB, keeps_the_rate);
  check_shape (c, 8, 8, 4096 * MIB, keeps_the_rate);
  check_shape (c, 24, 8, 4096 * MIB, keeps_the_rate);
}

static void
one_member_has_no_rounds (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (1));
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t gpu = 4;
  LsCollRequest request = { .kind = LS_COLL_ALL_REDUCE, .gpus = &gpu, .n = 1, .bytes = MIB };
  LS_CHECK_INT (ls_coll_script (c, &round_nccl, &request, arena)->n_rounds, ==, 0);
}

/* n^2 blocks are more than 2^32. */
static void
a_block_of_very_many_members_is_its_part (void)
{
  const uint32_t n = 65536 + 8;
  g_autoptr (LsCluster) c = built (tiny_dgx (n / 8));
  g_autoptr (LsArena) arena = ls_arena_new ();
  g_autofree uint32_t *gpus = g_new (uint32_t, n);
  spread (gpus, n, 8);
  LsCollRequest request = {
    .kind = LS_COLL_ALL_TO_ALL, .gpus = gpus, .n = n, .bytes = (uint64_t) n * 1000, .algorithm = "pairwise"
  };
  LS_CHECK_NEAR (ls_coll_script (c, &round_nccl, &request, arena)->block_bytes, 1000.0, 1e-12);
}

LS_TEST_SUITE (LS_TEST (every_script_is_right), LS_TEST (a_wrong_script_is_rejected),
               LS_TEST (members_send_the_bytes_of_the_formula),
               LS_TEST (plans_load_the_bytes_of_the_messages), LS_TEST (a_memo_changes_no_plan),
               LS_TEST (scripts_are_as_fast_as_plans), LS_TEST (one_member_has_no_rounds),
               LS_TEST (a_block_of_very_many_members_is_its_part))
