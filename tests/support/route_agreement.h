/* tests/support/route_agreement.h — ls_route() held against ls_route_bfs(), trunk by trunk. */
#ifndef LS_TESTS_ROUTE_AGREEMENT_H
#define LS_TESTS_ROUTE_AGREEMENT_H

#include "cluster_check.h"
#include "route_bfs.h"
#include "ls_test.h"
#include "built_cluster.h"

#include "cluster/route.h"

static inline char *
describe (const LsCluster *c, const LsRoute *r)
{
  GString *text = g_string_new (NULL);
  for (uint32_t i = 0; i < r->n_hops; i++)
    g_string_append_printf (text, "%s%s", i > 0 ? " " : "",
                            g_array_index (c->trunks, LsTrunk, r->hop[i].trunk).name);
  return g_string_free (text, FALSE);
}

/* Shares are rounded to 2^-20, once at each split. */
#define ROUNDING (16.0 / LS_HOP_WHOLE)

/* What a route loads, by trunk; false if a trunk stands in it twice. */
static inline bool
loads_of (const LsRoute *r, double *load)
{
  for (uint32_t i = 0; i < r->n_hops; i++) {
    if (!LS_CHECK (load[r->hop[i].trunk] == 0))
      return false;
    load[r->hop[i].trunk] = (double) r->hop[i].share / LS_HOP_WHOLE;
  }
  return true;
}

/* The whole route of one way, the slowest of several. */
static inline void
check_latency (const LsCluster *c, const LsRoute *r)
{
  LsTime sum = 0, whole = 0;
  for (uint32_t i = 0; i < r->n_hops; i++) {
    LsTime latency = g_array_index (c->trunks, LsTrunk, r->hop[i].trunk).latency;
    sum += latency;
    whole += r->hop[i].share == LS_HOP_WHOLE ? latency : 0;
  }
  LS_CHECK_INT (r->latency, <=, sum);
  LS_CHECK_INT (r->latency, >=, whole);
}

static inline bool
agree (const LsCluster *c, uint32_t from, uint32_t to)
{
  g_autofree double *searched = g_new (double, c->trunks->len), *load = g_new0 (double, c->trunks->len);
  LsRoute r;
  ls_route (c, from, to, 0, &r);
  ls_route_bfs (c, from, to, searched);
  if (!loads_of (&r, load))
    return false;
  check_latency (c, &r);
  for (guint t = 0; t < c->trunks->len; t++)
    if (load[t] < searched[t] - ROUNDING || load[t] > searched[t] + ROUNDING) {
      g_autofree char *route = describe (c, &r);
      ls_check_impl (false, __FILE__, __LINE__, "gpu %u to %u: %s carries %g by search, %g by shape (%s)",
                     from, to, g_array_index (c->trunks, LsTrunk, t).name, searched[t], load[t], route);
      return false;
    }
  return true;
}

static inline bool
agree_on_pairs (const LsClusterSpec *spec, GRand *rand, int n_pairs)
{
  g_autoptr (LsCluster) c = build (spec);
  if (!LS_CHECK (c != NULL))
    return false;
  ls_cluster_check (c);
  for (int k = 0; k < n_pairs; k++) {
    uint32_t from = (uint32_t) g_rand_int_range (rand, 0, (gint32) c->n_gpus);
    uint32_t to = (uint32_t) g_rand_int_range (rand, 0, (gint32) c->n_gpus);
    if (!agree (c, from, to))
      return false;
  }
  return true;
}

#endif
