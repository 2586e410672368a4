/* ask/ecmp_seeds.h — how much of a step is luck where switches hash flows to links.
 *
 * Problem. With hashed routing (cluster/fabric.h) flows collide on some uplinks while others are idle. Which
 * ones, the hash decides: a step that was simulated, or measured, once is one draw of many.
 *
 * Method. The job is run on the fabric with ideal spreading, and with the seeds 0 .. n-1 of the hash. Each
 * has its step and its crowding: of the links between two tiers of switches in one direction, the bytes of
 * the busiest over their mean, links without bytes counted, at the worst tier and direction. With ideal
 * spreading over equal links it is near 1.
 *
 * Worked example. 8 flows of equal bytes on 8 uplinks: seed by seed 1 to 8, 2.60 on average (fabric.h).
 *
 * Deviations. As of the hash; ideal spreading stands for adaptive routing and for spraying packets, whose own
 * reordering and detours cost nothing here. */
#ifndef LS_ASK_ECMP_SEEDS_H
#define LS_ASK_ECMP_SEEDS_H

#include <glib.h>

#include "job/job.h"

typedef struct {
  guint seed;
  double step_s;
  double crowding; /* >= 1; 0: nothing passes between switches */
  char *busiest;   /* that link; NULL: none                    */
} LsEcmpDraw;

typedef struct {
  LsEcmpDraw ideal; /* seed 0, of no meaning                    */
  guint n;
  LsEcmpDraw *draws; /* [n] by step, shortest first, then by seed */
} LsEcmpTable;

#define LS_ECMP_MAX_SEEDS 10000

/* r: the job as it ran. n_threads 0: one per processor; the result is the same. LS_ERROR_CONFLICT: the
 * cluster has no fabric of switches that choose. */
LsEcmpTable *ls_ecmp_table_new (const LsJobSpec *spec, const LsJobResult *r, guint n_seeds, guint n_threads,
                                GError **error);
void ls_ecmp_table_free (LsEcmpTable *table); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsEcmpTable, ls_ecmp_table_free)

/* The step that a share of the seeds does not exceed; share in [0, 1]: the draw at ceil (share n) - 1. */
const LsEcmpDraw *ls_ecmp_quantile (const LsEcmpTable *table, double share);

#endif
