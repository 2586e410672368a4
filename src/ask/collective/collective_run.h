/* ask/collective/collective_run.h — what a run of `lockstep collective` is made of (private to
 * sweep/collective*). */
#ifndef LS_ASK_COLLECTIVE_COLLECTIVE_RUN_H
#define LS_ASK_COLLECTIVE_COLLECTIVE_RUN_H

#include "ask/collective/collective_sizes.h"
#include "ask/collective/collective_call.h"
#include "network/coll.h"

struct LsCollectiveRun {
  char *cluster, *op;  /* of a table, which its rows name      */
  GPtrArray *measured; /* LsMeasuredCollective, or NULL        */
  GArray *rows;        /* LsCollectiveRow                      */
  GPtrArray *names;    /* char *, of families                  */
  GArray *families;    /* LsCollectiveFamily                   */
  GPtrArray *notes;    /* char *                               */
  char *title;
  LsCollectiveMessages *messages; /* or NULL */
  LsCollectiveTable table;        /* ls_collective_run_new() points it to the arrays */
};

/* Reads spec->compare and fills a new run with its rows, simulated, and their errors. */
gboolean ls_collective_compare (LsCollectiveRun *run, const LsCollectiveSpec *spec,
                                const LsCollectiveNetwork *network, GError **error);

#endif
