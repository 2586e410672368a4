/* Pins folding, by hand: what splits classes and what does not, that the comparison notices a picosecond and a
 * byte, that errors name real ranks, and that what ranks of a mesh owe each other is what each one says. */
#include "ls_test.h"

#include <math.h>

#include <lockstep/error.h>

#include "tiny_cluster.h"
#include "hand_trace.h"

#include "exec/shortcuts/fold.h"
#include "exec/extras.h"
#include "plan/mesh.h"

/* n ranks run one program: a kernel and an all-reduce in communicators of `width`. */
static Hand *
alike (uint32_t n, uint32_t width)
{
  Hand *h = hand_new (n);
  h->options.fold = LS_SHORTCUT_CHECK;
  h->options.n_steps = 2;
  for (uint32_t r = 0; r < n; r++)
    h->plan->bindings[r].role = 0;
  for (uint32_t first = 0; first < n; first += width) {
    uint32_t ranks[HAND_MAX_RANKS];
    for (uint32_t i = 0; i < width; i++)
      ranks[i] = first + i;
    hand_comm (h, LS_SLOT_TP, LS_AXIS_TP, false, ranks, width);
  }
  hand_kernel (h, 0, LS_TAG_F, 10 * LS_US);
  hand_sync (h, 0, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_ALL_REDUCE, 1 << 20);
  hand_kernel (h, 0, LS_TAG_F, 10 * LS_US);
  return h;
}

/* expected: [n_ranks] who stands for each. */
static void
check_classes (Hand *h, const uint32_t *expected)
{
  g_autoptr (LsTimeline) t = hand_run (h);
  uint32_t n_classes = 0, n_ranks = 0;
  for (uint32_t r = 0; t && r < t->n_ranks; r++) {
    LS_CHECK_INT (ls_timeline_representative (t, r), ==, expected[r]);
    LS_CHECK_INT (ls_timeline_multiplicity (t, r) > 0, ==, expected[r] == r);
    LS_CHECK_INT (ls_timeline_spans (t, r)->n > 0, ==, expected[r] == r);
    n_classes += expected[r] == r;
    n_ranks += ls_timeline_multiplicity (t, r);
  }
  if (t) {
    LS_CHECK_INT (t->n_classes, ==, n_classes);
    LS_CHECK_INT (n_ranks, ==, t->n_ranks);
  }
  hand_free (h);
}

static void
replicas_are_one_class (void)
{
  check_classes (alike (8, 2), (const uint32_t[8]) { 0 });
  check_classes (alike (8, 8), (const uint32_t[8]) { 0 });
}

/* A step that repeats before the last one asked for is recognised when the last rank has
 * finished it, by when others have run on into the next, unless their hosts are that far ahead:
 * that is no difference. */
static void
steps_that_repeat_compare_too (void)
{
  Hand *h = alike (8, 2);
  h->options.n_steps = 4;
  for (int i = 0; i < 1100; i++) /* more than the launch queue holds */
    hand_kernel (h, 0, LS_TAG_F, LS_NS);
  check_classes (h, (const uint32_t[8]) { 0 });
}

static void
a_straggler_is_apart_and_so_are_its_partners (void)
{
  Hand *h = alike (8, 2);
  double slow[8] = { 1, 1, 1, 1.5, 1, 1, 1, 1 };
  h->options.slow = slow;
  check_classes (h, (const uint32_t[]) { 0, 0, 2, 3, 0, 0, 0, 0 });
}

static void
two_like_stragglers_are_one_class (void)
{
  Hand *h = alike (8, 2);
  double slow[8] = { 1, 1, 1, 1.5, 1, 1.5, 1, 1 };
  h->options.slow = slow;
  check_classes (h, (const uint32_t[]) { 0, 0, 2, 3, 2, 3, 0, 0 });
}

/* Two pairs that call the same, but each member by another slot. */
static void
a_communicator_in_two_slots_folds_nothing (void)
{
  Hand *h = hand_new (4);
  h->options.fold = LS_SHORTCUT_CHECK;
  for (uint32_t first = 0; first < 4; first += 2) {
    const uint32_t ranks[] = { first, first + 1 };
    LsBinding *b = &h->plan->bindings[first + 1];
    hand_comm (h, LS_SLOT_TP, LS_AXIS_TP, false, ranks, 2);
    h->plan->bindings[first].role = 0;
    b->role = 1;
    b->comm[LS_SLOT_CP] = b->comm[LS_SLOT_TP];
    b->member[LS_SLOT_CP] = b->member[LS_SLOT_TP];
    b->comm[LS_SLOT_TP] = b->member[LS_SLOT_TP] = UINT32_MAX;
  }
  hand_sync (h, 0, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_ALL_REDUCE, 1 << 20);
  hand_sync (h, 1, LS_SLOT_CP, LS_STREAM_TP, LS_COLL_ALL_REDUCE, 1 << 20);
  check_classes (h, (const uint32_t[]) { 0, 1, 2, 3 });
}

static void
replace_cluster (Hand *h, LsClusterSpec *spec)
{
  g_autoptr (GError) error = NULL;
  ls_cluster_free (h->cluster);
  h->cluster = ls_cluster_build (spec, &error);
  LS_CHECK_NO_ERROR (error);
}

/* The worked example of exec/shortcuts/refine.h. */
static void
a_slow_link_is_felt_by_its_ring (void)
{
  Hand *h = alike (8, 4);
  LsClusterSpec spec = tiny_dgx (1);
  add_fault (&spec, "node0/gpu1>nvswitch", 0.25);
  replace_cluster (h, &spec);
  ls_cluster_spec_clear (&spec);
  check_classes (h, (const uint32_t[]) { 0, 0, 0, 0, 4, 4, 4, 4 });
}

/* A broadcast goes down the chain: nothing leaves its last rank. The permute has a flow more there, and feels
 * the link that the broadcast does not. */
static void
calls_of_other_loads_feel_other_links (void)
{
  for (int has_permute = 0; has_permute < 2; has_permute++) {
    Hand *h = alike (8, 4);
    LsClusterSpec spec = tiny_dgx (1);
    add_fault (&spec, "node0/gpu3>nvswitch", 0.25);
    g_array_index (spec.network.faults, LsFault, 0).one_way = true;
    replace_cluster (h, &spec);
    ls_cluster_spec_clear (&spec);
    g_array_set_size (h->ops[0], 0);
    g_array_set_size (h->next_deps[0], 0);
    hand_sync (h, 0, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_BROADCAST, 1 << 20);
    if (has_permute)
      hand_sync (h, 0, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_PERMUTE, 1 << 20);
    hand_kernel (h, 0, LS_TAG_F, 10 * LS_US);
    uint32_t other = has_permute ? 4 : 0;
    check_classes (h, (const uint32_t[]) { 0, 0, 0, 0, other, other, other, other });
  }
}

/* With no flow on it, it is felt by nobody. */
static void
an_idle_link_splits_nothing (void)
{
  Hand *h = alike (8, 4);
  LsClusterSpec spec = tiny_dgx (1);
  add_fault (&spec, "node0/gpu1>pcie0", 0.25);
  replace_cluster (h, &spec);
  ls_cluster_spec_clear (&spec);
  check_classes (h, (const uint32_t[8]) { 0 });
}

/* Rings over three nodes of one GPU, two a leaf: the first leaves it for the second, which also serves the second
 * ring; the third has its leaves to itself. Where a leaf carries all that its nodes send, that is nobody's
 * business; its uplinks carry what they did all the same (--fold check). */
static void
leaves_split_classes_unless_they_are_ample (void)
{
  for (int oversubscription = 1; oversubscription <= 2; oversubscription++) {
    Hand *h = alike (9, 3);
    LsClusterSpec spec = tiny_dgx (9);
    spec.gpus_per_node = spec.nics.n = spec.network.rails = spec.server.pcie_switches
        = spec.server.cpu_sockets = 1;
    spec.network.nodes_per_leaf = 2;
    spec.network.oversubscription = oversubscription;
    replace_cluster (h, &spec);
    uint32_t other = oversubscription > 1 ? 6 : 0;
    check_classes (h, (const uint32_t[]) { 0, 0, 0, 0, 0, 0, other, other, other });
  }
}

static void
exchange (Hand *h, uint32_t rank)
{
  LsTransfer *t = ls_arena_new_array (h->plan->arena, LsTransfer, 2);
  t[0] = (LsTransfer) { 1 << 20, LS_SLOT_NEXT, true };
  t[1] = (LsTransfer) { 1 << 20, LS_SLOT_PREV, false };
  LsOp op = ls_op_blank (LS_OP_P2P, LS_STREAM_PP_FWD, LS_TAG_SYNC, "p2p");
  op.transfers = t;
  op.n_transfers = 2;
  LsDep compute = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  hand_join (h, rank, hand_op (h, rank, op, &compute, 1));
  hand_kernel (h, rank, LS_TAG_F, 5 * LS_US);
}

/* One rank in the quotient, which sends to itself. */
static void
a_ring_of_sends_is_one_class (void)
{
  Hand *h = alike (8, 2);
  exchange (h, 0);
  check_classes (h, (const uint32_t[8]) { 0 });
}

/* What a broadcast puts on the links of its root and of the last rank sets these apart, as each sends over them
 * too; not if it is a cache line, which shares with nobody. */
static void
scalars_split_nothing (void)
{
  for (uint64_t bytes = 16; bytes <= 1024; bytes *= 64) {
    Hand *h = alike (8, 8);
    hand_sync (h, 0, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_BROADCAST, bytes);
    exchange (h, 0);
    g_autoptr (LsTimeline) t = hand_run (h);
    LS_CHECK (t != NULL);
    if (t)
      LS_CHECK_INT (t->n_classes == 1, ==, bytes == 16);
    hand_free (h);
  }
}

/* The straggler is at another distance from each. */
static void
a_ring_of_sends_around_a_straggler_is_none (void)
{
  Hand *h = alike (8, 2);
  double slow[8] = { 1.5, 1, 1, 1, 1, 1, 1, 1 };
  exchange (h, 0);
  h->options.slow = slow;
  check_classes (h, (const uint32_t[]) { 0, 1, 2, 3, 4, 5, 6, 7 });
}

/* Nor does it help that nothing is shared, so that no link tells of the neighbour. */
static void
neighbours_count_without_links (void)
{
  Hand *h = alike (8, 2);
  double slow[8] = { 1.5, 1, 1, 1, 1, 1, 1, 1 };
  exchange (h, 0);
  h->options.slow = slow;
  h->options.network = LS_NETWORK_ALPHABETA;
  check_classes (h, (const uint32_t[]) { 0, 1, 2, 3, 4, 5, 6, 7 });
}

/* GPUs 0 and 1 are on one socket with 2 and 3; a copy loads its PCIe link and that socket's
 * memory. */
static void
copies_share_the_memory_of_their_socket (void)
{
  Hand *h = alike (8, 2);
  hand_copy (h, 0, LS_COPY_TO_HOST, UINT64_C (1) << 28);
  check_classes (h, (const uint32_t[8]) { 0 });

  h = alike (6, 2);
  hand_copy (h, 0, LS_COPY_TO_HOST, UINT64_C (1) << 28);
  check_classes (h, (const uint32_t[]) { 0, 0, 0, 0, 4, 4 });
}

static void
message_by_message_nothing_folds (void)
{
  Hand *h = alike (8, 2);
  h->options.network = LS_NETWORK_STEP;
  check_classes (h, (const uint32_t[]) { 0, 1, 2, 3, 4, 5, 6, 7 });
}

/* A torus of 4 x 4 chips, whose rows, columns and so on exchange over more links than a run without spans takes
 * memory for. */
static Hand *
laden (void)
{
  static const LsCollKind kinds[] = { LS_COLL_ALL_REDUCE, LS_COLL_ALL_TO_ALL, LS_COLL_PERMUTE };
  static const uint32_t masks[]
      = { 3, 12, 5, 10, 1, 2, 4, 8 }; /* bits of a rank that its members differ in */
  LsClusterSpec spec = tiny_torus (1, 4, 4, 0, LS_WRAP_ALL);
  Hand *h = alike (16, 16);
  replace_cluster (h, &spec);
  for (size_t i = 0; i < G_N_ELEMENTS (masks); i++) {
    LsSlot slot = (LsSlot) (LS_SLOT_DP + i);
    for (uint32_t first = 0; first < 16; first++) {
      uint32_t ranks[16], n = 0;
      for (uint32_t r = 0; r < 16; r++)
        if ((r & ~masks[i]) == first)
          ranks[n++] = r;
      if (n > 0)
        hand_comm (h, slot, LS_AXIS_TP, false, ranks, n);
    }
    for (size_t k = 0; k < G_N_ELEMENTS (kinds); k++)
      hand_sync (h, 0, slot, LS_STREAM_TP, kinds[k], 1 << 20);
  }
  hand_copy (h, 0, LS_COPY_TO_HOST, UINT64_C (1) << 28);
  h->options.no_spans = true;
  return h;
}

/* With less and less memory a job folds; then it does not, as its loads would take more than a quarter of it;
 * then it is refused. */
static void
loads_beyond_a_quarter_of_memory_fold_nothing (void)
{
  bool has_folded = false, has_not = false;
  for (uint64_t memory = 1 << 17; memory > 1 << 14; memory -= memory / 32) {
    Hand *h = laden ();
    h->options.max_memory_bytes = memory;
    g_autoptr (GError) error = NULL;
    g_autoptr (LsTimeline) t = hand_run_error (h, &error);
    LS_CHECK (t || (has_not && g_error_matches (error, LS_ERROR, LS_ERROR_LIMIT)));
    has_not = has_not || (t && t->n_classes == 16);
    has_folded = has_folded || !has_not;
    if (t)
      LS_CHECK_INT (t->n_classes, ==, has_not ? 16 : 1);
    hand_free (h);
  }
  LS_CHECK (has_folded && has_not);
}

/* Rank 5 of another role never calls: all 8 are looked at, as without folding. */
static void
errors_name_real_ranks (void)
{
  char *message[2] = { NULL, NULL };
  for (int fold = 0; fold < 2; fold++) {
    Hand *h = alike (8, 2);
    h->options.fold = fold ? LS_SHORTCUT_AUTO : LS_SHORTCUT_OFF;
    h->plan->bindings[5].role = 1;
    hand_kernel (h, 1, LS_TAG_F, 10 * LS_US);
    g_autoptr (GError) error = NULL;
    g_autoptr (LsTimeline) t = hand_run_error (h, &error);
    LS_CHECK (!t && g_error_matches (error, LS_ERROR, LS_ERROR_DEADLOCK));
    message[fold] = error ? g_strdup (error->message) : g_strdup ("");
    hand_free (h);
  }
  LS_CHECK_STR (message[0], message[1]);
  LS_CHECK (strstr (message[1], "rank 4") != NULL);
  g_free (message[0]);
  g_free (message[1]);
}

static void
expect_difference (const LsTimeline *folded, const LsTimeline *whole, const LsCluster *cluster,
                   const char *word)
{
  g_autoptr (GError) error = NULL;
  LS_CHECK (!fold_check (folded, whole, cluster, "folded and unfolded", &error));
  LS_CHECK (error && strstr (error->message, word));
}

/* What is looked at is changed by the least there is, and back. */
static void
the_comparison_notices_a_picosecond (void)
{
  Hand *h = alike (8, 2);
  g_autoptr (LsTimeline) folded = hand_run (h);
  h->options.fold = LS_SHORTCUT_OFF;
  g_autoptr (LsTimeline) whole = hand_run (h);
  g_autoptr (GError) error = NULL;
  if (!folded || !whole)
    return;
  LS_CHECK (fold_check (folded, whole, h->cluster, "folded and unfolded", &error));
  LS_CHECK_NO_ERROR (error);
  LsSpan *span = &whole->ranks[6].spans[0];
  span->end++;
  expect_difference (folded, whole, h->cluster, "end of kernel");
  span->end--;
  span->start--;
  expect_difference (folded, whole, h->cluster, "rank 6");
  span->start++;
  whole->ranks[6].spans[1].cause_kind ^= 1;
  expect_difference (folded, whole, h->cluster, "cause");
  whole->ranks[6].spans[1].cause_kind ^= 1;
  whole->resource_bytes[0] += 1;
  expect_difference (folded, whole, h->cluster, "bytes of node0");
  whole->resource_bytes[0] -= 1;
  whole->digest ^= 1;
  expect_difference (folded, whole, h->cluster, "digest");
  hand_free (h);
}

/* --- stragglers ------------------------------------------------------------------- */

static void
stragglers_depend_on_seed_and_rank_only (void)
{
  LsSlow s = { .sigma = 0.05, .seed = 1 };
  g_autoptr (GError) error = NULL;
  g_autofree double *few = ls_slow_factors (&s, 10, &error), *many = ls_slow_factors (&s, 10000, &error);
  double sum = 0, squares = 0;
  for (int r = 0; r < 10000; r++) {
    sum += log (many[r]);
    squares += log (many[r]) * log (many[r]);
    if (r < 10)
      LS_CHECK (few[r] == many[r]);
  }
  LS_CHECK (fabs (sum / 10000) < 0.002); /* four standard errors */
  LS_CHECK_NEAR (sqrt (squares / 10000), 0.05, 0.03);
  s.seed = 2;
  g_autofree double *other = ls_slow_factors (&s, 10, &error);
  LS_CHECK (other[0] != few[0]);
  LS_CHECK_NO_ERROR (error);
}

static void
a_wide_spread_ends_at_the_bounds (void)
{
  LsSlow s = { .sigma = 5, .seed = 1 };
  g_autofree double *factor = ls_slow_factors (&s, 1000, NULL);
  uint32_t n_least = 0, n_most = 0;
  for (int r = 0; r < 1000; r++) {
    LS_CHECK (factor[r] >= LS_SLOW_MIN && factor[r] <= LS_SLOW_MAX);
    n_least += factor[r] == LS_SLOW_MIN;
    n_most += factor[r] == LS_SLOW_MAX;
  }
  LS_CHECK (n_least > 250 && n_least < 400); /* z < ln (0.1) / 5: 0.32 of all */
  LS_CHECK (n_most > 120 && n_most < 240);   /* z > ln (100) / 5: 0.18 */
}

static void
named_stragglers (void)
{
  LsSlow s = { .ranks = g_array_new (FALSE, FALSE, sizeof (LsSlowRank)) };
  g_autoptr (GError) error = NULL;
  LS_CHECK (ls_slow_factors (&s, 4, &error) == NULL && !error);
  LsSlowRank slow = { 3, 1.5 };
  g_array_append_val (s.ranks, slow);
  g_autofree double *factor = ls_slow_factors (&s, 4, &error);
  LS_CHECK (factor && factor[0] == 1 && factor[3] == 1.5);
  LS_CHECK (ls_slow_factors (&s, 3, &error) == NULL);
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_CONFLICT));
  ls_slow_clear (&s);
}

/* Communicators of a mesh by its rules and rank by rank: the slot of each, or that members call other things. */
static bool
owed_is_the_same (const LsPlan *plan, RoleCalls *roles, bool *ret_is_owed)
{
  LsRunOptions by_rules = { .folds_by_walk = false }, by_walk = { .folds_by_walk = true };
  Extras by_rules_of_mesh = { .options = &by_rules }, by_each_rank = { .options = &by_walk };
  Run x = { .plan = plan, .role_calls = roles, .extras = &by_rules_of_mesh }, y = x;
  y.extras = &by_each_rank;
  g_autofree uint8_t *a = fold_owed (&x), *b = fold_owed (&y);
  *ret_is_owed = a != NULL;
  return a && b ? memcmp (a, b, plan->n_comms) == 0 : a == b;
}

/* n_roles: 5, the last of which some rank of the first stage may have, or 4, one for each stage. */
static uint32_t
count_owed (LsPlan *plan, uint32_t n_roles)
{
  uint32_t n_owed = 0;
  bool is_owed;
  plan->n_roles = n_roles;
  for (int slot = 0; slot < LS_SLOT_PREV; slot++) {
    RoleCalls roles[5] = { 0 };
    for (int r = 0; r < 5; r++)
      for (int s = 0; s < LS_SLOT_PREV; s++)
        roles[r].id[CALLS + s] = (uint32_t) s + 1;
    LS_CHECK (owed_is_the_same (plan, roles, &is_owed) && is_owed);
    roles[1].id[CALLS + slot] = 99; /* the second stage */
    LS_CHECK (owed_is_the_same (plan, roles, &is_owed));
    n_owed += is_owed;
    roles[4] = roles[0];
    roles[4].id[CALLS + slot] = 98;
    g_autofree uint32_t *role_of_rank = g_new (uint32_t, plan->n_ranks);
    for (uint32_t i = 0; i < plan->n_ranks; i++)
      role_of_rank[i] = ls_plan_role (plan, i);
    role_of_rank[5] = n_roles - 1; /* one rank of the first */
    plan->role_of_rank = role_of_rank;
    LS_CHECK (n_roles == 4 || (owed_is_the_same (plan, roles, &is_owed) && !is_owed));
    plan->role_of_rank = NULL;
  }
  return n_owed;
}

/* What is sent to the next stage, and nobody there expects. */
static bool
owes_transfers (LsPlan *plan, uint32_t n_roles)
{
  RoleCalls roles[5] = { 0 };
  bool is_owed;
  plan->n_roles = n_roles;
  roles[2].id[SENDS + 1] = 7;
  LS_CHECK (owed_is_the_same (plan, roles, &is_owed) && !is_owed);
  roles[3].id[RECEIVES] = 7;
  LS_CHECK (owed_is_the_same (plan, roles, &is_owed));
  return is_owed;
}

static void
ranks_of_a_mesh_owe_what_each_says (void)
{
  const LsMesh mesh = { .tp = 2, .cp = 2, .dp = 2, .pp = 4, .shard = 2, .ep = 2, .etp = 2, .pipes = 2 };
  g_autoptr (LsArena) arena = ls_arena_new ();
  LsPlan plan = { .arena = arena };
  ls_plan_bind_mesh (&plan, &mesh, (1u << LS_SLOT_PREV) - 1);
  for (uint32_t n_roles = 4; n_roles < 6; n_roles++) {
    /* pipes, model and world span stages, embedding the ends */
    LS_CHECK_INT (count_owed (&plan, n_roles), ==, LS_SLOT_PREV - 3);
    LS_CHECK (owes_transfers (&plan, n_roles));
  }
}

LS_TEST_SUITE (LS_TEST (replicas_are_one_class), LS_TEST (steps_that_repeat_compare_too),
               LS_TEST (a_straggler_is_apart_and_so_are_its_partners),
               LS_TEST (two_like_stragglers_are_one_class),
               LS_TEST (a_communicator_in_two_slots_folds_nothing), LS_TEST (a_slow_link_is_felt_by_its_ring),
               LS_TEST (an_idle_link_splits_nothing), LS_TEST (leaves_split_classes_unless_they_are_ample),
               LS_TEST (calls_of_other_loads_feel_other_links), LS_TEST (a_ring_of_sends_is_one_class),
               LS_TEST (scalars_split_nothing), LS_TEST (a_ring_of_sends_around_a_straggler_is_none),
               LS_TEST (neighbours_count_without_links), LS_TEST (copies_share_the_memory_of_their_socket),
               LS_TEST (message_by_message_nothing_folds),
               LS_TEST (loads_beyond_a_quarter_of_memory_fold_nothing), LS_TEST (errors_name_real_ranks),
               LS_TEST (ranks_of_a_mesh_owe_what_each_says), LS_TEST (the_comparison_notices_a_picosecond),
               LS_TEST (stragglers_depend_on_seed_and_rank_only), LS_TEST (a_wide_spread_ends_at_the_bounds),
               LS_TEST (named_stragglers))
