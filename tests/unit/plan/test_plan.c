/* Pins the names that output relies on, the op count and who frees what; Megatron-LM's rank order, and that its
 * two directions are inverse. */
#include "ls_test.h"

#include "plan/mesh.h"
#include "tiny_plan.h"

static void
every_value_has_its_own_name (void)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  for (int i = 0; i < LS_N_TAGS; i++)
    LS_CHECK (g_hash_table_add (seen, (gpointer) ls_tag_name (i)));
  g_hash_table_remove_all (seen);
  for (int i = 0; i < LS_N_STREAMS; i++)
    LS_CHECK (g_hash_table_add (seen, (gpointer) ls_stream_name (i)));
  g_hash_table_remove_all (seen);
  for (int i = 0; i < LS_N_SLOTS; i++)
    LS_CHECK (g_hash_table_add (seen, (gpointer) ls_slot_name (i)));
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
    LS_CHECK_STR (ls_axis_name (i), axes[i]);
  for (int i = 0; i < LS_N_MEM; i++)
    LS_CHECK_STR (ls_mem_category_name (i), categories[i]);
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

LS_TEST_SUITE (LS_TEST (every_value_has_its_own_name), LS_TEST (names_in_reports_are_stable),
               LS_TEST (op_instances_are_counted_over_ranks), LS_TEST (a_plan_frees_its_arena),
               LS_TEST (sixteen_ranks_as_megatron_groups_them), LS_TEST (cp_lies_between_tp_and_dp),
               LS_TEST (rank_and_coordinates_are_inverse))
