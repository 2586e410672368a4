/* tests/support/built_cluster.h — a cluster built of a spec and checked, and what its trunks are. */
#ifndef LS_TESTS_BUILT_CLUSTER_H
#define LS_TESTS_BUILT_CLUSTER_H

#include <string.h>

#include "cluster_check.h"
#include "ls_test.h"

/* NULL: the test has failed. */
static inline LsCluster *
build (const LsClusterSpec *spec)
{
  g_autoptr (GError) error = NULL;
  LsCluster *c = ls_cluster_build (spec, &error);
  LS_CHECK_NO_ERROR (error);
  if (c)
    ls_cluster_check (c);
  return c;
}

static inline LsCluster *
built (LsClusterSpec spec)
{
  return build (&spec);
}

/* bytes/s of a trunk by its name; 0: the test has failed. */
static inline double
capacity_of (const LsCluster *c, const char *name)
{
  for (guint i = 0; i < c->trunks->len; i++)
    if (strcmp (g_array_index (c->trunks, LsTrunk, i).name, name) == 0)
      return g_array_index (c->trunks, LsTrunk, i).capacity_bytes_per_s;
  ls_check_impl (false, __FILE__, __LINE__, "no trunk \"%s\"", name);
  return 0;
}

#endif
