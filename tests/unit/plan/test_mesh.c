/* Pins Megatron-LM's rank order and that the two directions are inverse. */
#include "ls_test.h"
#include "plan/mesh.h"

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

LS_TEST_MAIN ("mesh", LS_TEST (sixteen_ranks_as_megatron_groups_them), LS_TEST (cp_lies_between_tp_and_dp),
              LS_TEST (rank_and_coordinates_are_inverse))
