/* tests/support/placed_cluster.h — a cluster, and where its resources lie. */
#ifndef LS_TESTS_PLACED_CLUSTER_H
#define LS_TESTS_PLACED_CLUSTER_H

#include "ls_test.h"
#include "tiny_cluster.h"

#include "cluster/places.h"

typedef struct {
  LsCluster *c; /* owned */
  LsPlaces at;
} Made;

static inline Made
make (LsClusterSpec spec)
{
  Made m = { .c = ls_cluster_build (&spec, NULL) };
  LS_CHECK (m.c && ls_places_init (&m.at, m.c));
  return m;
}

#endif
