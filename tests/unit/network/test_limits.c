/* Pins: calls that are too large are refused before they are begun, with the numbers; those
 * just below are not; nothing overflows on the way. */
#include "fixtures.h"

#include <string.h>

#include <lockstep/error.h>

typedef struct {
  LsCollKind kind;
  const char *algorithm;
  LsNetworkFidelity fidelity;
  uint32_t n;
  const char *says; /* NULL: accepted */
} Case;

static void
check_case (const LsCluster *c, const uint32_t *gpus, const Case *x)
{
  g_autoptr (GError) error = NULL;
  LsCollRequest request
      = { .kind = x->kind, .gpus = gpus, .n = x->n, .bytes = 1024 * MIB, .algorithm = x->algorithm };
  gboolean ok = ls_coll_check_size (c, &round_nccl, &request, x->fidelity, &error);
  if (!x->says) {
    LS_CHECK_NO_ERROR (error);
    LS_CHECK (ok);
    return;
  }
  if (LS_CHECK (!ok && g_error_matches (error, LS_ERROR, LS_ERROR_LIMIT)))
    ls_check_impl (strstr (error->message, x->says) != NULL, __FILE__, __LINE__, "\"%s\" does not say \"%s\"",
                   error->message, x->says);
}

static void
messages_are_counted_first (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (2100));
  g_autofree uint32_t *gpus = g_new (uint32_t, 16800);
  for (uint32_t i = 0; i < 16800; i++)
    gpus[i] = i;
  const Case cases[] = {
    { LS_COLL_ALL_TO_ALL, NULL, LS_NETWORK_FLOW, 16384, NULL },
    { LS_COLL_ALL_TO_ALL, NULL, LS_NETWORK_FLOW, 16392, "2.69e+08 messages to add up" },
    { LS_COLL_ALL_REDUCE, "pairwise", LS_NETWORK_FLOW, 16384, "5.37e+08 messages to add up" },
    { LS_COLL_ALL_REDUCE, "ring", LS_NETWORK_FLOW, 16800, NULL },
    { LS_COLL_ALL_REDUCE, "ring", LS_NETWORK_STEP, 1024, NULL },
    { LS_COLL_ALL_REDUCE, "ring", LS_NETWORK_STEP, 16800, "messages, one by one" },
    { LS_COLL_ALL_REDUCE, "naive", LS_NETWORK_STEP, 16800, "messages at once" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    check_case (c, gpus, &cases[i]);
}

/* Nodes of 72 + 71: 5,112 rings, which 143 members may still run. Of 53, 59, 61, 67, 71: 9e8 would be
 * needed, and 4e9 is beyond 32 bits with one more of 72; a plan takes as many as it can tell apart. */
static void
rings_of_uneven_nodes_are_counted_first (void)
{
  LsClusterSpec spec = tiny_dgx (6);
  spec.gpus_per_node = 72;
  spec.nics = spec.rails = 72;
  g_autoptr (LsCluster) c = built (spec);
  const uint32_t members[] = { 53, 59, 61, 67, 71, 72 };
  uint32_t gpus[6 * 72], n = 0;
  for (uint32_t i = 0; i < 143; i++)
    gpus[i] = i;
  check_case (c, gpus, &(Case) { LS_COLL_ALL_REDUCE, "ring", LS_NETWORK_STEP, 143, NULL });
  check_case (c, gpus, &(Case) { LS_COLL_ALL_REDUCE, "ring", LS_NETWORK_FLOW, 143, NULL });
  for (uint32_t h = 0; h < 6; h++)
    for (uint32_t i = 0; i < members[h]; i++)
      gpus[n++] = h * 72 + i;
  check_case (c, gpus, &(Case) { LS_COLL_ALL_REDUCE, "ring", LS_NETWORK_STEP, n, "messages at once" });
  check_case (c, gpus, &(Case) { LS_COLL_ALL_REDUCE, "tree", LS_NETWORK_FLOW, n, "messages to add up" });
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsCollPlan *p = plan_by (c, &round_nccl, "ring", LS_COLL_ALL_REDUCE, gpus, n, 1024 * MIB, arena);
  LS_CHECK (ls_coll_time_alone (c, p) > 0 && ls_coll_time_alone (c, p) < LS_S);
}

LS_TEST_SUITE (LS_TEST (messages_are_counted_first), LS_TEST (rings_of_uneven_nodes_are_counted_first))
