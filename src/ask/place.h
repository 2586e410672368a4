/* ask/place.h — which order of ranks, and of nodes, makes the step of a job shortest.
 *
 * Problem. The same programs run in any order of ranks on any GPUs (plan/mesh.h, cluster/allocation.h); what
 * differs is which calls share which links. With d degrees above 1 there are d! orders, and n! of n nodes.
 *
 * Method. (1) All orders of the degrees, each once where degrees of 1 make several equal, on the GPUs as
 * they are given, and on the same ones in the order of the cluster; on a torus also with its axes in another
 * order (its ranks then run along y before x). (2) From the best of these, swaps of two nodes, or of a node
 * with one that is free where the job may have it: of those between which neither the stages on a node, nor
 * its leaf, nor its faults differ, one. All of a round are simulated, the best is kept, until none gains or
 * all tries are spent; a round has at most half of those that are left. What cannot be faster than the best
 * so far, by its lower bound (exec/shortcuts/plan_bound.h), is not simulated.
 *
 * On nodes of several kinds the GPUs are also taken kind after kind, and where stages are on kinds that
 * differ in speed, each order is tried with layers dealt by speed too, and where replicas
 * do, with micro-batches dealt so. From the best of these a layer or a micro-batch at a time moves to another
 * stage or replica, behind the swaps. What does not fit into the
 * memory of a rank's own GPU is refused, unless the job as given does not fit either.
 *
 * A trace has no degrees. Its ranks are digits as its groups divide them: groups of k ranks that are s apart
 * end a digit at s and at k s, and each order of up to four digits is tried ("strides 8-1": ranks that are
 * 8 apart are neighbours).
 *
 * What is tried follows from the job alone: threads change nothing. The best is simulated again, as `run`
 * does.
 *
 * Worked example. 16 GPUs in 2 nodes, tp 8, dealt cyclically: 4 of each tp group are on each node. The same
 * GPUs in the order of the cluster put each group into a node, and NVLink carries what NICs did.
 *
 * Deviations. Greedy: two swaps that gain only together are not found. Within a node GPUs keep their
 * order. */
#ifndef LS_ASK_PLACE_H
#define LS_ASK_PLACE_H

#include "base/parallel.h"
#include "job/job.h"

/* Of a gain that is one: less is shown as 0.0 %. */
#define LS_PLACE_LEAST_GAIN 5e-4

/* An order of ranks on GPUs in some order. */
typedef struct {
  char *order;       /* "tp-pp-dp": of the degrees above 1                 */
  char *placement;   /* of the seats, for --placement; NULL: as given      */
  char *layers;      /* "21,11" of the stages; NULL: as those of the job   */
  char *counts;      /* "10,6" micro-batches of the replicas; NULL: likewise */
  char *refused;     /* why it is no job; NULL: it is one                  */
  const char *seats; /* static: "as given", "node after node", "kind after kind", "axes y-x" */
  LsTime step;       /* 0: not simulated                                   */
  LsTime least;      /* of its lower bound, where that is why; else 0      */
} LsPlaceRow;

typedef struct {
  GArray *rows;                    /* LsPlaceRow: the job as given, then as they are found     */
  guint best;                      /* of the rows; what swaps start from                       */
  guint n_swaps, n_pruned, n_kept; /* simulated; not, by the bound; of them, kept one by one   */
  guint n_left_out;                /* of the first round, for want of tries                    */
  char *layers;                    /* of the stages at the best; NULL: as those of the job     */
  char *counts;                    /* micro-batches of the replicas at the best; NULL: likewise */
  LsJobResult *now, *then;         /* as given; at its best, which may be the same job         */
  double gain;                     /* share of tokens/s more                                   */
} LsPlace;

typedef struct {
  guint n_tries;      /* swaps that are simulated; 0: 2,048 / (ranks / 16 + classes of them), from 8 to 256 */
  gboolean any_nodes; /* the job may also have nodes of the cluster that it does not have now */
  guint n_threads;    /* 0: one per processor */
} LsPlaceOptions;

/* spec: not in the order of a file: LS_ERROR_USAGE. Other errors as of
 * ls_job_spec_run(). */
LsPlace *ls_place_new (const LsJobSpec *spec, const LsPlaceOptions *options, const LsProgress *progress,
                       GError **error);
void ls_place_free (LsPlace *p); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsPlace, ls_place_free)

#endif
