/* Pins a plan's names and counts, its ranks, and who shares a communicator. */
#include "ls_test.h"
#include "tiny_plan.h"

#include <string.h>

#include "plan/mesh.h"

/* Pins the names that output relies on, the op count and who frees what; Megatron-LM's rank order, and that its
 * two directions are inverse. */

static void
every_value_has_its_own_name (void)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  for (int i = 0; i < LS_N_TAGS; i++)
    LS_CHECK (g_hash_table_add (seen, (gpointer) ls_tag_names[i].name));
  g_hash_table_remove_all (seen);
  for (int i = 0; i < LS_N_STREAMS; i++)
    LS_CHECK (g_hash_table_add (seen, (gpointer) ls_stream_names[i].name));
  g_hash_table_remove_all (seen);
  for (int i = 0; i < LS_N_SLOTS; i++)
    LS_CHECK (g_hash_table_add (seen, (gpointer) ls_slot_names[i].name));
}

/* The keys of breakdown_s and by_category in the JSON output (src/manual/formats/result.md). */
static void
names_in_reports_are_stable (void)
{
  static const char *const axes[] = { "tp", "dp", "pp", "cp", "ep" };
  static const char *const categories[]
      = { "parameters", "gradients", "optimizer", "activations", "unsharded", "comm_buffers", "workspace" };
  LS_CHECK_INT (LS_N_AXES, ==, G_N_ELEMENTS (axes));
  LS_CHECK_INT (LS_N_MEM, ==, G_N_ELEMENTS (categories));
  for (int i = 0; i < LS_N_AXES; i++)
    LS_CHECK_STR (ls_axis_names[i].name, axes[i]);
  for (int i = 0; i < LS_N_MEM; i++)
    LS_CHECK_STR (ls_mem_category_names[i].name, categories[i]);
}

/* Two forwards of 2, two backwards of 3 and a step of 3 ops, on 4 ranks. */
static void
op_instances_are_counted_over_ranks (void)
{
  TinyPlan t;
  tiny_plan_init (&t);
  LS_CHECK_INT (ls_plan_n_op_instances (&t.plan), ==, 4 * (2 * 2 + 2 * 3 + 3));
}

/* Leaks, if any, are for the address sanitizer to tell. */
static void
a_plan_frees_its_arena (void)
{
  LsPlan *plan = g_new0 (LsPlan, 1);
  plan->arena = ls_arena_new ();
  plan->n_ranks = 1;
  plan->gpu_of_rank = ls_arena_new_array (plan->arena, uint32_t, 1);
  LS_CHECK_INT (ls_arena_bytes (plan->arena), >, 0);
  ls_plan_free (plan);
  ls_plan_free (NULL);
}

/* Megatron-LM's example for 16 GPUs, tp 2, pp 4 (parallel_state.py): tensor groups
 * [0,1] [2,3] ..., data groups [0,2] [1,3] [4,6] ..., pipeline groups [0,4,8,12]
 * [1,5,9,13] ... */
static void
sixteen_ranks_as_megatron_groups_them (void)
{
  LsMesh mesh = { .tp = 2, .cp = 1, .dp = 2, .pp = 4 };
  LS_CHECK_INT (ls_mesh_n_ranks (&mesh), ==, 16);
  LS_CHECK_INT (ls_mesh_rank (&mesh, (LsCoord) { .tp = 1 }), ==, 1);
  LS_CHECK_INT (ls_mesh_rank (&mesh, (LsCoord) { .dp = 1 }), ==, 2);
  LS_CHECK_INT (ls_mesh_rank (&mesh, (LsCoord) { .pp = 1 }), ==, 4);
  LS_CHECK_INT (ls_mesh_rank (&mesh, (LsCoord) { .tp = 1, .dp = 1, .pp = 3 }), ==, 15);
}

static void
cp_lies_between_tp_and_dp (void)
{
  LsMesh mesh = { .tp = 2, .cp = 3, .dp = 4, .pp = 5 };
  LS_CHECK_INT (ls_mesh_rank (&mesh, (LsCoord) { .cp = 1 }), ==, 2);
  LS_CHECK_INT (ls_mesh_rank (&mesh, (LsCoord) { .dp = 1 }), ==, 6);
  LS_CHECK_INT (ls_mesh_rank (&mesh, (LsCoord) { .pp = 1 }), ==, 24);
}

static void
rank_and_coordinates_are_inverse (void)
{
  LsMesh mesh = { .tp = 2, .cp = 3, .dp = 4, .pp = 5 };
  for (uint32_t rank = 0; rank < ls_mesh_n_ranks (&mesh); rank++) {
    LsCoord at = ls_mesh_coord (&mesh, rank);
    LS_CHECK (at.tp < 2 && at.cp < 3 && at.dp < 4 && at.pp < 5);
    LS_CHECK_INT (ls_mesh_rank (&mesh, at), ==, rank);
  }
}

/* Pins: who shares a communicator and who is whose neighbour, by place in a mesh of
 * 2 x 1 x 2 x 3; that slots which are not asked for, and communicators of one rank, are
 * not made; the same by any order of ranks, with and without experts, beside the groups that Megatron-LM's
 * generate_masked_orthogonal_rank_groups() lists. */

static LsPlan *
bound (LsMesh mesh, uint32_t slots)
{
  LsPlan *plan = g_new0 (LsPlan, 1);
  plan->arena = ls_arena_new ();
  ls_plan_bind_mesh (plan, &mesh, slots);
  return plan;
}

static void
check_members (const LsPlan *plan, uint32_t rank, LsSlot slot, uint32_t n, const uint32_t *expected)
{
  uint32_t member, id = ls_plan_comm (plan, rank, slot, &member);
  if (!LS_CHECK (id < plan->n_comms))
    return;
  const LsCommunicator c = ls_plan_communicator (plan, id);
  LS_CHECK_INT (c.n_ranks, ==, n);
  g_autofree uint32_t *ranks = ls_comm_ranks (&c);
  LS_CHECK (c.n_ranks == n && memcmp (ranks, expected, n * sizeof *expected) == 0);
  LS_CHECK_INT (ls_comm_rank (&c, member), ==, rank);
}

/* Ranks in this order: tp fastest, then dp, then pp. */
static void
a_slot_joins_what_it_spans (void)
{
  g_autoptr (LsPlan) plan = bound ((LsMesh) { 2, 1, 2, 3 }, LS_MESH_SLOTS);
  LS_CHECK_INT (plan->n_ranks, ==, 12);
  check_members (plan, 5, LS_SLOT_TP, 2, (uint32_t[]) { 4, 5 });
  check_members (plan, 5, LS_SLOT_DP, 2, (uint32_t[]) { 5, 7 });
  check_members (plan, 1, LS_SLOT_EMBEDDING, 2, (uint32_t[]) { 1, 9 });
  LS_CHECK_INT (ls_plan_comm_of (plan, 5, LS_SLOT_EMBEDDING), ==, UINT32_MAX); /* a middle stage */
  check_members (plan, 6, LS_SLOT_STAGE, 4, (uint32_t[]) { 4, 5, 6, 7 });
  check_members (plan, 6, LS_SLOT_TP_CP, 2, (uint32_t[]) { 6, 7 });
  check_members (plan, 6, LS_SLOT_MODEL, 6, (uint32_t[]) { 2, 3, 6, 7, 10, 11 });
  check_members (plan, 6, LS_SLOT_WORLD, 12, (uint32_t[]) { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 });
  LS_CHECK (ls_plan_communicator (plan, ls_plan_comm_of (plan, 6, LS_SLOT_MODEL)).spans_stages);
  LS_CHECK (!ls_plan_communicator (plan, ls_plan_comm_of (plan, 6, LS_SLOT_DP)).spans_stages);
}

/* Of 4 stages of 4 ranks the third has the embedding of a decoder. */
static void
a_stage_between_has_the_embedding_too (void)
{
  g_autoptr (LsPlan) plan
      = bound ((LsMesh) { .tp = 2, .cp = 1, .dp = 2, .pp = 4, .split = 2 }, LS_SLOT_BIT (LS_SLOT_EMBEDDING));
  check_members (plan, 1, LS_SLOT_EMBEDDING, 3, (uint32_t[]) { 1, 9, 13 });
  check_members (plan, 10, LS_SLOT_EMBEDDING, 3, (uint32_t[]) { 2, 10, 14 });
  LS_CHECK_INT (ls_plan_comm_of (plan, 5, LS_SLOT_EMBEDDING), ==, UINT32_MAX);
}

/* schedules/sched.h, placement pipes: of 8 ranks, 0 and 7 have the first and the last stage, and
 * with two pipes each way 0, 3, 4 and 7 have stages 0, 3, 4 and 7. */
static void
pipes_join_ranks_with_the_same_stages (void)
{
  g_autoptr (LsPlan) two
      = bound ((LsMesh) { .tp = 2, .cp = 1, .dp = 1, .pp = 8, .pipes = 2 }, LS_SLOT_BIT (LS_SLOT_PIPES));
  check_members (two, 1, LS_SLOT_PIPES, 2, (uint32_t[]) { 1, 15 });
  check_members (two, 4, LS_SLOT_PIPES, 2, (uint32_t[]) { 4, 10 });
  LS_CHECK (ls_plan_communicator (two, ls_plan_comm_of (two, 4, LS_SLOT_PIPES)).spans_stages);
  g_autoptr (LsPlan) four
      = bound ((LsMesh) { .tp = 1, .cp = 1, .dp = 1, .pp = 8, .pipes = 4 }, LS_SLOT_BIT (LS_SLOT_PIPES));
  check_members (four, 4, LS_SLOT_PIPES, 4, (uint32_t[]) { 0, 3, 4, 7 });
  check_members (four, 6, LS_SLOT_PIPES, 4, (uint32_t[]) { 1, 2, 5, 6 });
}

static void
stages_are_roles_in_a_circle (void)
{
  g_autoptr (LsPlan) plan = bound ((LsMesh) { 2, 1, 2, 3 }, 0);
  LS_CHECK_INT (ls_plan_role (plan, 5), ==, 1);
  LS_CHECK_INT (ls_plan_peer (plan, 5, 0), ==, 1);
  LS_CHECK_INT (ls_plan_peer (plan, 5, 1), ==, 9);
  LS_CHECK_INT (ls_plan_peer (plan, 9, 1), ==, 1);
  LS_CHECK_INT (ls_plan_gpu (plan, 11), ==, 11);
  g_autoptr (LsPlan) flat = bound ((LsMesh) { 2, 1, 2, 1 }, 0);
  LS_CHECK_INT (ls_plan_peer (flat, 3, 1), ==, UINT32_MAX);
}

static void
nothing_is_made_in_vain (void)
{
  g_autoptr (LsPlan) none = bound ((LsMesh) { 2, 1, 2, 3 }, 0);
  g_autoptr (LsPlan) alone = bound ((LsMesh) { 1, 1, 1, 1 }, LS_MESH_SLOTS);
  g_autoptr (LsPlan) dp = bound ((LsMesh) { 2, 1, 2, 3 }, LS_SLOT_BIT (LS_SLOT_DP));
  LS_CHECK_INT (none->n_comms, ==, 0);
  LS_CHECK_INT (alone->n_comms, ==, 0);
  LS_CHECK_INT (dp->n_comms, ==, 6);
}

/* --- orders ---------------------------------------------------------------------------------------- */

/* The docstring of Megatron-LM's function: tp-pp-dp, 2-2-2, has the dp groups [0, 4], [1, 5], [2, 6], [3, 7]. */
static void
an_order_numbers_ranks_as_megatron_does (void)
{
  LsMesh mesh = { 2, 1, 2, 2 };
  uint32_t named;
  LS_CHECK (ls_rank_order_parse ("tp-pp-dp", &mesh.order, &named));
  LS_CHECK_INT (named, ==, 1u << LS_DIM_TP | 1u << LS_DIM_PP | 1u << LS_DIM_DP);
  g_autoptr (LsPlan) plan = bound (mesh, LS_MESH_SLOTS);
  check_members (plan, 0, LS_SLOT_DP, 2, (uint32_t[]) { 0, 4 });
  check_members (plan, 7, LS_SLOT_DP, 2, (uint32_t[]) { 3, 7 });
  check_members (plan, 5, LS_SLOT_MODEL, 4, (uint32_t[]) { 4, 5, 6, 7 });
  LS_CHECK_INT (ls_plan_peer (plan, 4, 1), ==, 6);
  LS_CHECK_INT (ls_plan_role (plan, 6), ==, 1);
}

static void
orders_are_read_and_written (void)
{
  for (LsRankOrder order = 0; order < LS_N_RANK_ORDERS; order++) {
    g_autofree char *text = ls_rank_order_text (order);
    LsRankOrder again;
    uint32_t named;
    LS_CHECK (ls_rank_order_parse (text, &again, &named) && again == order && named == 31);
  }
  g_autofree char *usual = ls_rank_order_text (0);
  LS_CHECK_STR (usual, "tp-cp-ep-dp-pp");
  static const char *const wrong[] = { "", "tp-", "tp-tp", "tp-xp", "tp cp", "tp-cp-ep-dp-pp-tp" };
  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++)
    LS_CHECK (!ls_rank_order_parse (wrong[i], &(LsRankOrder) { 0 }, &(uint32_t) { 0 }));
}

/* Group `index` of those that span `mask` of dimensions of these sizes, as Megatron-LM finds it: the index
 * counts the dimensions that are not spanned, its members those that are. */
static void
megatron_group (const uint32_t size[5], const bool mask[5], uint32_t index, uint32_t *ret_ranks, uint32_t n)
{
  for (uint32_t member = 0; member < n; member++) {
    uint32_t stride = 1, of_index = index, of_member = member, rank = 0;
    for (int i = 0; i < 5; i++) {
      uint32_t *rest = mask[i] ? &of_member : &of_index;
      rank += *rest % size[i] * stride;
      *rest /= size[i];
      stride *= size[i];
    }
    ret_ranks[member] = rank;
  }
}

/* All groups of a slot that spans a set of dimensions of which there are so many. */
static void
check_slot (const LsPlan *plan, LsRankOrder order, LsSlot slot, const uint32_t degree[LS_N_DIMS],
            uint32_t spans)
{
  LsDim dims[LS_N_DIMS];
  ls_rank_order_dims (order, dims);
  uint32_t size[5], n = 1, n_all = 1;
  bool mask[5];
  for (int i = 0; i < 5; i++) {
    size[i] = degree[dims[i]];
    mask[i] = (spans >> dims[i] & 1) != 0;
    n *= mask[i] ? size[i] : 1;
    n_all *= size[i];
  }
  g_autofree uint32_t *ranks = g_new (uint32_t, n);
  for (uint32_t group = 0; group < n_all / n && n > 1; group++) {
    megatron_group (size, mask, group, ranks, n);
    check_members (plan, ranks[group % n], slot, n, ranks);
  }
}

static uint32_t
power (GRand *rand)
{
  return 1u << g_rand_int_range (rand, 0, 3);
}

#define SPAN(dim) (1u << LS_DIM_##dim)

/* Of ranks with experts: etp ep edp = tp cp dp. */
static void
groups_are_those_of_megatron (void)
{
  guint n_one = 0;
  for (guint32 seed = 0; seed < 360; seed++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
    LsMesh m = {
      .tp = power (rand), .cp = power (rand), .dp = power (rand), .pp = 1 + seed % 3, .order = seed % 120
    };
    uint32_t n_stage = m.tp * m.cp * m.dp;
    for (m.etp = power (rand); n_stage % m.etp != 0;)
      m.etp /= 2;
    for (m.ep = power (rand); n_stage / m.etp % m.ep != 0;)
      m.ep /= 2;
    const uint32_t degree[] = { m.tp, m.cp, 1, m.dp, m.pp },
                   of_experts[] = { m.etp, 1, m.ep, n_stage / m.etp / m.ep, m.pp };
    bool is_one = ls_mesh_has_one_pipeline (&m);
    n_one += is_one;
    g_autoptr (LsPlan) plan = bound (
        m,
        LS_MESH_SLOTS
            | (is_one ? LS_SLOT_BIT (LS_SLOT_EP) | LS_SLOT_BIT (LS_SLOT_ETP) | LS_SLOT_BIT (LS_SLOT_EDP)
                      : 0));
    check_slot (plan, m.order, LS_SLOT_TP, degree, SPAN (TP));
    check_slot (plan, m.order, LS_SLOT_CP, degree, SPAN (CP));
    check_slot (plan, m.order, LS_SLOT_DP, degree, SPAN (DP) | SPAN (CP));
    check_slot (plan, m.order, LS_SLOT_TP_CP, degree, SPAN (TP) | SPAN (CP));
    check_slot (plan, m.order, LS_SLOT_STAGE, degree, SPAN (TP) | SPAN (CP) | SPAN (DP));
    check_slot (plan, m.order, LS_SLOT_MODEL, degree, SPAN (TP) | SPAN (PP));
    for (uint32_t r = 0; r < plan->n_ranks; r++) {
      LsCoord at = ls_mesh_coord (&m, r);
      LS_CHECK_INT (ls_mesh_rank (&m, at), ==, r);
      LS_CHECK_INT (ls_plan_role (plan, r), ==, at.pp);
    }
    if (!is_one)
      continue;
    check_slot (plan, m.order, LS_SLOT_ETP, of_experts, SPAN (TP));
    check_slot (plan, m.order, LS_SLOT_EP, of_experts, SPAN (EP));
    check_slot (plan, m.order, LS_SLOT_EDP, of_experts, SPAN (DP));
  }
  LS_CHECK_INT (n_one, >, 120);
}

/* Parts of a group of copies are runs of neighbours among them, whichever of cp and dp goes first. */
static void
copies_are_cut_in_order_of_rank (void)
{
  LsMesh mesh = { .tp = 1, .cp = 2, .dp = 4, .pp = 1, .shard = 4 };
  LS_CHECK (ls_rank_order_parse ("tp-dp-cp-pp", &mesh.order, &(uint32_t) { 0 }));
  g_autoptr (LsPlan) plan = bound (mesh, LS_SLOT_BIT (LS_SLOT_SHARD) | LS_SLOT_BIT (LS_SLOT_REPLICA));
  check_members (plan, 1, LS_SLOT_SHARD, 4, (uint32_t[]) { 0, 1, 2, 3 });
  check_members (plan, 1, LS_SLOT_REPLICA, 2, (uint32_t[]) { 1, 5 });
  for (uint32_t copy = 0; copy < 8; copy++)
    LS_CHECK_INT (ls_mesh_rank (&mesh, ls_mesh_at_copy (&mesh, (LsCoord) { 0 }, copy)), ==, copy);
}

/* What a rank says of a slot is what its communicator says of the rank, with a table for each or one for all;
 * members are in order, and communicators of dimensions by their lowest rank. */
static void
ranks_and_communicators_agree (void)
{
  for (guint32 seed = 0; seed < 240; seed++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
    LsMesh m = { .tp = power (rand), .cp = power (rand), .dp = power (rand), .pp = 4, .pipes = 2 };
    m.order = seed % 120;
    for (m.shard = power (rand); m.cp * m.dp % m.shard != 0;)
      m.shard /= 2;
    uint32_t own_tables = LS_SLOT_BIT (LS_SLOT_SHARD) | LS_SLOT_BIT (LS_SLOT_REPLICA), n_members = 0;
    g_autoptr (LsPlan) plan = bound (m, LS_MESH_SLOTS | own_tables | LS_SLOT_BIT (LS_SLOT_PIPES));
    for (uint32_t r = 0; r < plan->n_ranks; r++)
      for (int s = 0; s < LS_SLOT_PREV; s++) {
        const LsBinding b = ls_plan_binding (plan, r);
        if (b.comm[s] == UINT32_MAX || !LS_CHECK (b.comm[s] < plan->n_comms))
          continue;
        const LsCommunicator c = ls_plan_communicator (plan, b.comm[s]);
        LS_CHECK (b.member[s] < c.n_ranks && ls_comm_rank (&c, b.member[s]) == r);
        LS_CHECK (b.member[s] == 0 || ls_comm_rank (&c, b.member[s] - 1) < r);
        uint32_t next = b.comm[s] + 1 < plan->n_comms ? ls_plan_member (plan, b.comm[s] + 1, 0) : 0;
        LS_CHECK (next == 0 || (own_tables >> s & 1) || next > ls_comm_rank (&c, 0));
        n_members++;
      }
    for (uint32_t c = 0; c < plan->n_comms; c++)
      n_members -= ls_plan_communicator (plan, c).n_ranks;
    LS_CHECK_INT (n_members, ==, 0);
  }
}

/* Degrees of 1 tell no orders apart. */
static void
orders_are_alike_where_they_number_alike (void)
{
  const struct {
    LsMesh mesh;
    uint32_t n;
  } cases[] = {
    { { .tp = 2, .cp = 1, .dp = 2, .pp = 2 }, 6 },
    { { .tp = 1, .cp = 1, .dp = 8, .pp = 1 }, 1 },
    { { .tp = 2, .cp = 2, .dp = 2, .pp = 2 }, 24 },
    { { .tp = 1, .cp = 1, .dp = 8, .pp = 1, .ep = 4, .etp = 1 }, 2 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    uint32_t n = 0;
    for (LsRankOrder order = 0; order < LS_N_RANK_ORDERS; order++) {
      LsMesh a = cases[i].mesh, b = a;
      a.order = order;
      bool is_new = true;
      for (b.order = 0; b.order < order && is_new; b.order++)
        is_new = !ls_mesh_is_alike (&a, &b);
      n += is_new;
    }
    LS_CHECK_INT (n, ==, cases[i].n);
  }
}

/* As listed, rank by rank. */
static LsPlan *
listed (LsMesh mesh, uint32_t slots)
{
  LsPlan *plan = bound (mesh, slots);
  LsBinding *bindings = ls_plan_bindings (plan, plan->arena);
  plan->bindings = bindings;
  return plan;
}

/* Pins: plans are compared by what each rank is bound to, however they say it; a mesh in another order, another
 * group of shards, another GPU and a slot less are told apart, a dimension of 1 moved is not. */
static void
plans_have_the_same_ranks (void)
{
  const LsMesh mesh = { .tp = 2, .cp = 1, .dp = 4, .pp = 2, .shard = 2 };
  const uint32_t slots = LS_SLOT_BIT (LS_SLOT_TP) | LS_SLOT_BIT (LS_SLOT_DP) | LS_SLOT_BIT (LS_SLOT_SHARD);
  g_autoptr (LsPlan) own = bound (mesh, slots), same = bound (mesh, slots), each = listed (mesh, slots);
  LS_CHECK (ls_plan_has_same_ranks (own, same) && ls_plan_has_same_ranks (own, each));
  struct {
    const char *order;
    uint32_t shard, slots;
    bool is_same;
  } cases[] = { { "tp-dp-cp-ep-pp", 2, slots, true },
                { "tp-pp-cp-ep-dp", 2, slots, false },
                { "tp-cp-ep-dp-pp", 4, slots, false },
                { "tp-cp-ep-dp-pp", 2, slots & ~LS_SLOT_BIT (LS_SLOT_TP), false } };
  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsMesh other = mesh;
    uint32_t named;
    LS_CHECK (ls_rank_order_parse (cases[i].order, &other.order, &named));
    other.shard = cases[i].shard;
    g_autoptr (LsPlan) by_mesh = bound (other, cases[i].slots), by_list = listed (other, cases[i].slots);
    LS_CHECK_INT (ls_plan_has_same_ranks (own, by_mesh), ==, cases[i].is_same);
    LS_CHECK_INT (ls_plan_has_same_ranks (own, by_list), ==, cases[i].is_same);
    LS_CHECK_INT (ls_plan_has_same_ranks (each, by_list), ==, cases[i].is_same);
  }
  ls_plan_gpus (same)[3] = 4;
  LS_CHECK (!ls_plan_has_same_ranks (own, same));
}

/* Pins: runs of shards that lie alike have one table, and begin where their first member is. */
static void
groups_of_shards_share_a_table (void)
{
  g_autoptr (LsPlan) plan
      = bound ((LsMesh) { .tp = 2, .cp = 1, .dp = 4, .pp = 2, .shard = 2 }, LS_SLOT_BIT (LS_SLOT_SHARD));
  LS_CHECK_INT (plan->n_comms, ==, 8);
  check_members (plan, 0, LS_SLOT_SHARD, 2, (uint32_t[]) { 0, 2 });
  check_members (plan, 15, LS_SLOT_SHARD, 2, (uint32_t[]) { 13, 15 });
  for (uint32_t c = 1; c < plan->n_comms; c++)
    LS_CHECK (ls_plan_communicator (plan, c).offsets == ls_plan_communicator (plan, 0).offsets
              && ls_plan_communicator (plan, c).first == ls_plan_member (plan, c, 0));
}

/* Pins: a row of each kind of op is whole, so that a new one is asked for its own. */
static void
each_kind_of_op_has_its_row (void)
{
  for (uint8_t kind = 0; kind < LS_N_OP_KINDS; kind++) {
    const LsOpKindRow *row = &ls_op_kinds[kind];
    const char *name = ls_op_kind_names[kind].name;
    LS_CHECK (name && *name && ls_op_kind_names[kind].value == kind);
    for (uint8_t other = 0; name && other < kind; other++)
      LS_CHECK (strcmp (name, ls_op_kind_names[other].name) != 0);
    LS_CHECK ((row->needs & ~row->has) == 0 && (row->needs != 0) == (row->lacking != NULL));
    LS_CHECK (!row->host_waits || ls_op_is_of_host (kind));
    LS_CHECK (!ls_op_has (kind, LS_HAS_DIRECTION) || ls_op_takes (kind, LS_TAKES_ENGINE));
    bool has_one_direction = ls_op_takes (kind, LS_TAKES_ENGINE) && !ls_op_has (kind, LS_HAS_DIRECTION);
    LS_CHECK (row->direction < LS_N_COPY_DIRECTIONS);
    LS_CHECK (!has_one_direction || row->direction != 0); /* it says which: 0 is of a row that says none */
    LS_CHECK (ls_op_is_communication (kind) == (ls_op_has (kind, LS_HAS_CALL | LS_HAS_TRANSFERS) != 0));
    LS_CHECK (!ls_op_has (kind, LS_HAS_RECORDED) || ls_op_has_span (kind) || ls_op_is_of_host (kind));
  }
  for (int d = 0; d < LS_N_COPY_DIRECTIONS; d++)
    LS_CHECK (ls_copies[d].calls && ls_copy_names[d].name && ls_copy_names[d].value == d);
}

LS_TEST_SUITE (LS_TEST (each_kind_of_op_has_its_row), LS_TEST (plans_have_the_same_ranks),
               LS_TEST (groups_of_shards_share_a_table), LS_TEST (every_value_has_its_own_name),
               LS_TEST (names_in_reports_are_stable), LS_TEST (op_instances_are_counted_over_ranks),
               LS_TEST (a_plan_frees_its_arena), LS_TEST (sixteen_ranks_as_megatron_groups_them),
               LS_TEST (cp_lies_between_tp_and_dp), LS_TEST (rank_and_coordinates_are_inverse),
               LS_TEST (an_order_numbers_ranks_as_megatron_does), LS_TEST (orders_are_read_and_written),
               LS_TEST (groups_are_those_of_megatron), LS_TEST (copies_are_cut_in_order_of_rank),
               LS_TEST (ranks_and_communicators_agree), LS_TEST (orders_are_alike_where_they_number_alike),
               LS_TEST (a_slot_joins_what_it_spans), LS_TEST (a_stage_between_has_the_embedding_too),
               LS_TEST (pipes_join_ranks_with_the_same_stages), LS_TEST (stages_are_roles_in_a_circle),
               LS_TEST (nothing_is_made_in_vain))
