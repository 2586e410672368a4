/* Pins the names that output relies on, the op count and who frees what. */
#include "ls_test.h"
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

LS_TEST_MAIN ("plan", LS_TEST (every_value_has_its_own_name), LS_TEST (names_in_reports_are_stable),
              LS_TEST (op_instances_are_counted_over_ranks), LS_TEST (a_plan_frees_its_arena))
