/* ask/collective/tune.h — by which way each collective of a job is fastest, as a table for NCCL's tuner.
 *
 * Problem. NCCL chooses algorithm, protocol and number of channels by a model of its own. A tuner plug-in
 * chooses instead, by a table: of an operation on so many ranks and nodes, by ranges of sizes.
 *
 * Method. A job is lowered, and its calls are gathered: operation, size, and where the ranks lie. Each is
 * timed alone on the network by every algorithm and protocol that NCCL has for it there, with 1, 2, 4, ...
 * channels up to as many as NCCL opens then. The least time wins; of equals NCCL's own choice, then the
 * first. Groups of as many ranks and nodes that lie otherwise are one to a table: their times are summed.
 * Between two sizes that want other ways, one range ends and the next begins at their geometric mean.
 *
 * Worked example. All-reduces of 1 MiB and 4 MiB: up to 2 MiB the first way, from there on the second.
 *
 * Deviations. As of what is timed (network/nccl/nccl.h); in a step other calls may load the links too, and
 * SMs that fewer channels leave to kernels count for nothing here.
 *
 * Reference. NCCL 2.30.7 plugins/tuner/example/plugin.c (the table); src/enqueue.cc, ncclGetAlgoInfo (the
 * size that is asked for). */
#ifndef LS_ASK_COLLECTIVE_TUNE_H
#define LS_ASK_COLLECTIVE_TUNE_H

#include "job/job.h"

/* More than any call has: the end of the last range. */
#define LS_TUNE_ANY_BYTES (UINT64_C (1) << 50)

/* Static texts, as the table has them: "nvls_tree", "simple". */
typedef struct {
  const char *algorithm, *protocol;
  uint32_t channels;
} LsTuneWay;

/* Of calls of one operation on so many ranks and nodes, whose best and usual ways are the same. */
typedef struct {
  uint32_t kind; /* LsCollKind */
  uint32_t n_nodes, n_ranks;
  uint64_t from, to;    /* bytes, both included: what the table says of them */
  uint64_t first, last; /* the least and the most that the jobs have         */
  uint64_t n_calls;     /* of a step of all jobs, each of all its ranks once */
  LsTuneWay best, usual;
  double best_s, usual_s; /* of all these calls */
} LsTuneRow;

typedef struct {
  char *cluster;
  const char *library, *unlisted; /* whose plug-in reads the table; what it does with other calls. Static */
  guint n_jobs;
  GArray *rows;           /* LsTuneRow, by operation, nodes, ranks and size */
  double best_s, usual_s; /* of a step's calls one after the other, of a rank in the mean; of several jobs
                             the sum */
  GPtrArray *notes;       /* char *, one line each */
} LsTune;

/* "allreduce", as the table calls it; NULL: NCCL asks no tuner about it. Static. */
const char *ls_tune_op_name (uint32_t kind);

/* Of n jobs, on one cluster. LS_ERROR_CONFLICT: they are on several, it has no NCCL, or no job has calls that
 * a tuner is asked about; else as of ls_job_spec_prepare(). Free with ls_tune_free(). */
LsTune *ls_tune_new (const LsJobSpec *specs, guint n, GError **error);
void ls_tune_free (LsTune *tune); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsTune, ls_tune_free)

#endif
