/* Pins: who shares a communicator and who is whose neighbour, by place in a mesh of
 * 2 x 1 x 2 x 3; that slots which are not asked for, and communicators of one rank, are
 * not made. */
#include "ls_test.h"

#include <string.h>

#include "plan/bind.h"

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
  uint32_t id = plan->bindings[rank].comm[slot];
  if (!LS_CHECK (id < plan->n_comms))
    return;
  const LsCommunicator *c = &plan->comms[id];
  LS_CHECK_INT (c->n_ranks, ==, n);
  LS_CHECK (c->n_ranks == n && memcmp (c->ranks, expected, n * sizeof *expected) == 0);
  LS_CHECK_INT (c->ranks[plan->bindings[rank].member[slot]], ==, rank);
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
  LS_CHECK_INT (plan->bindings[5].comm[LS_SLOT_EMBEDDING], ==, UINT32_MAX); /* a middle stage */
  check_members (plan, 6, LS_SLOT_MODEL, 6, (uint32_t[]) { 2, 3, 6, 7, 10, 11 });
  check_members (plan, 6, LS_SLOT_WORLD, 12, (uint32_t[]) { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 });
  LS_CHECK (plan->comms[plan->bindings[6].comm[LS_SLOT_MODEL]].spans_stages);
  LS_CHECK (!plan->comms[plan->bindings[6].comm[LS_SLOT_DP]].spans_stages);
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
  LS_CHECK (two->comms[two->bindings[4].comm[LS_SLOT_PIPES]].spans_stages);
  g_autoptr (LsPlan) four
      = bound ((LsMesh) { .tp = 1, .cp = 1, .dp = 1, .pp = 8, .pipes = 4 }, LS_SLOT_BIT (LS_SLOT_PIPES));
  check_members (four, 4, LS_SLOT_PIPES, 4, (uint32_t[]) { 0, 3, 4, 7 });
  check_members (four, 6, LS_SLOT_PIPES, 4, (uint32_t[]) { 1, 2, 5, 6 });
}

static void
stages_are_roles_in_a_circle (void)
{
  g_autoptr (LsPlan) plan = bound ((LsMesh) { 2, 1, 2, 3 }, 0);
  LS_CHECK_INT (plan->bindings[5].role, ==, 1);
  LS_CHECK_INT (plan->bindings[5].peer[0], ==, 1);
  LS_CHECK_INT (plan->bindings[5].peer[1], ==, 9);
  LS_CHECK_INT (plan->bindings[9].peer[1], ==, 1);
  LS_CHECK_INT (plan->gpu_of_rank[11], ==, 11);
  g_autoptr (LsPlan) flat = bound ((LsMesh) { 2, 1, 2, 1 }, 0);
  LS_CHECK_INT (flat->bindings[3].peer[1], ==, UINT32_MAX);
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

LS_TEST_MAIN ("bind", LS_TEST (a_slot_joins_what_it_spans), LS_TEST (pipes_join_ranks_with_the_same_stages),
              LS_TEST (stages_are_roles_in_a_circle), LS_TEST (nothing_is_made_in_vain))
