/* ask/collective/collective_sizes.h — collectives timed alone: a table over sizes, or the errors
 * against measured ones.
 *
 * The GPUs of a table are the first of --gpus, by default all of --nodes; of several
 * numbers each is timed. Between two nodes or more, p2p is from the first GPU of node 0
 * to the first of node 1. Measured
 * rows are placed as nccl-tests does: their GPUs spread evenly over their nodes, the
 * first ones of each. */
#ifndef LS_ASK_COLLECTIVE_COLLECTIVE_SIZES_H
#define LS_ASK_COLLECTIVE_COLLECTIVE_SIZES_H

#include "ask/collective/collective_table.h"
#include "base/diag.h"
#include "base/parallel.h"
#include "cluster/torus.h"

typedef struct {
  char *cluster;                 /* name or path; of a comparison NULL: all that the file names */
  char *nccl;                    /* NCCL file; NULL: that of the cluster's GPU */
  char *op;                      /* of a comparison NULL: all            */
  uint32_t n_nodes;              /* 0: the file's, or as many as the GPUs need; of a comparison: all */
  uint32_t slice[LS_TORUS_AXES]; /* of a torus; all 0: as the file says, or the GPUs need */
  GArray *gpus;                  /* uint32_t, numbers of GPUs, ascending; NULL: all */
  char *algorithm;               /* NULL: choose                         */
  int protocol;                  /* LsProtocol                           */
  uint32_t max_ctas;             /* thread blocks of NCCL; 0: any        */
  char *network;                 /* a name of collective_call.h or "all" */
  uint64_t min_bytes,
      max_bytes;   /* 0: 1 KiB (of several numbers of GPUs 1 MiB) to 8 GiB; of a comparison: all */
  uint32_t factor; /* of a size over the one before; 0: 2, of several numbers of GPUs 8 */
  bool messages;   /* also each message, and who holds what: of one size, min_bytes */
  char *compare;   /* path of measured rows, or NULL       */
  char *trust;     /* measured rows of this trust; "all"; NULL: "A" where the column exists */
  /* of the messages that --network step moves one by one, on the GPUs that are timed; func NULL: nobody
   * asks */
  LsProgress progress;
} LsCollectiveSpec;

void ls_collective_spec_init (LsCollectiveSpec *spec);
void ls_collective_spec_clear (LsCollectiveSpec *spec);

/* Sets one knob from text; key is a long flag of `lockstep collective` without dashes.
 * Diagnostics are LS_ERROR_USAGE; spec is then unchanged. */
gboolean ls_collective_spec_set (LsCollectiveSpec *spec, const char *key, const char *value,
                                 LsDiagList *diags);

typedef struct LsCollectiveRun LsCollectiveRun;

/* LS_ERROR_USAGE: no cluster or op, an unknown name, min above max, no measured row matches; LS_ERROR_INPUT:
 * a file; LS_ERROR_CONFLICT: more GPUs than there are, an algorithm that does not apply; LS_ERROR_LIMIT: more
 * messages than can be waited for. A measured row that cannot be simulated is skipped, with a note. Free with
 * ls_collective_run_free(). */
LsCollectiveRun *ls_collective_run_new (const LsCollectiveSpec *spec, GError **error);
void ls_collective_run_free (LsCollectiveRun *run); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsCollectiveRun, ls_collective_run_free)

/* Both borrowed until the run is freed. Notes: char *, one line each. */
const LsCollectiveTable *ls_collective_run_table (const LsCollectiveRun *run);
GPtrArray *ls_collective_run_notes (LsCollectiveRun *run);

#endif
