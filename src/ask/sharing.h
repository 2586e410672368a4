/* ask/sharing.h — what jobs on one cluster take from each other, and what another start would give.
 *
 * Problem. Jobs that a scheduler places beside each other share links. How much longer is the step of each,
 * on which links do they meet, and would it help to begin one of them later (CASSINI) or to deal the nodes
 * anew?
 *
 * Method. Every job is lowered as `run` does it, on as many nodes as it has, and put onto its nodes of the
 * cluster. All are replayed together (exec/share.h), and each with the others idle:
 *
 *     slowdown = step with the others / step alone
 *
 * A *contested* link carries bytes of two jobs or more, or of one and of traffic (exec/share.h). Of each
 * job it is told what the job uses of it,
 *
 *     use = bytes of a step / (capacity * step)
 *
 * alone and with the others. Where the uses alone sum to more than 1, no order in time helps: the link is too
 * narrow for both. Where they do not, a shift may.
 *
 * Shifts. The jobs behind the first are shifted, one after the other, in file order, with those before it
 * where they were best: by k / n of its step alone, k = 0 .. n - 1, on top of its start. The best has the
 * least mean slowdown; of equals the smallest shift. Between two points nothing is known: the resolution is
 * told.
 *
 * Other nodes. The nodes of all jobs, in the order of the cluster, dealt to the jobs in turn, so that each
 * has neighbours: what that would give.
 *
 * Worked example. Two jobs of 10.02 ms whose last 4 ms go over one link: 14.02 ms each, 1.40 times as long.
 * Half a step later the second meets nobody: 10.02 ms each.
 *
 * Deviations. Waits of PyTorch's allocator at the limit of the memory are not in these steps: `run` has
 * them. */
#ifndef LS_ASK_SHARING_H
#define LS_ASK_SHARING_H

#include "base/parallel.h"
#include "exec/share.h"

/* What to look at beside the jobs as they are. */
typedef struct {
  guint n_shifts;   /* points of a step; 0: no shifts */
  LsRunOptions run; /* n_steps: of each job that are measured, where there is no period */
} LsSharingOptions;

void ls_sharing_options_init (LsSharingOptions *options);

/* Of one job. What is pointed to here, and in the structs below, is the answer's but for assumptions. */
typedef struct {
  char *name, *what, *nodes; /* what: the model or the trace */
  uint32_t n_gpus, n_nodes;
  LsTime start;
  double alone_s, shared_s;
  double shortest_s, longest_s; /* of the steps that were measured */
  uint32_t n_steps;
  double slowdown;
  GArray *assumptions; /* LsAssumption; shared, counted; NULL: of a trace */
  GArray *knobs;       /* likewise */
} LsSharingJob;

/* Of one job on a contested link. */
typedef struct {
  double bytes; /* of a step */
  double use_alone, use_shared;
} LsSharingUse;

/* Links that are alike: of one pattern of names, with the same bytes of each job. */
typedef struct {
  char *name; /* with a star for numbers that differ */
  guint n;
  double bytes_per_s;
  LsSharingUse *uses; /* [n_jobs] */
  double use_alone;   /* their sum */
  double use_traffic; /* of traffic, beside the jobs */
} LsSharingLink;

/* Of traffic of no job. */
typedef struct {
  char *name, *from, *to;
  guint n_flows;
  double asked; /* bytes/s of all flows; INFINITY: as much as there is */
  double moved; /* bytes/s over its whole periods in the window, at most asked; NaN: there is none */
} LsSharingTraffic;

/* The jobs begun later by so much, on top of their starts. */
typedef struct {
  guint job;        /* that was tried; 0: none, as they are */
  LsTime *shift;    /* [n_jobs] */
  double *slowdown; /* [n_jobs] */
  double mean;
} LsSharingShift;

typedef struct {
  LsArena *arena;
  char *cluster;
  const char *chips; /* static: what its accelerators are called */
  uint32_t n_nodes, n_gpus;
  bool is_periodic;
  bool counts_links; /* what they carry */
  double window_s;
  guint n_jobs;
  LsSharingJob *jobs;
  double mean_slowdown;
  guint n_traffic;
  LsSharingTraffic *traffic;
  GArray *links;        /* LsSharingLink, most used first */
  GArray *shifts;       /* LsSharingShift, as they were tried: the first has none; NULL: none was asked for */
  guint best, n_points; /* of them; points of a step */
  double *packed_s;     /* [n_jobs] steps with the others on nodes dealt in turn; NULL: they have these */
  char **packed_nodes;  /* [n_jobs] */
  GPtrArray *notes;     /* char * */
  GArray *assumptions;  /* LsAssumption: of all jobs, by who asks; NULL: none */
} LsSharing;

void ls_sharing_free (LsSharing *s); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsSharing, ls_sharing_free)

/* Of a file of jobs (data/jobs/read_jobs.h). n_threads 0: one per processor; the same for any number. Errors:
 * LS_ERROR_INPUT and LS_ERROR_CONFLICT with the places in the file, and as of ls_run_share(). */
LsSharing *ls_sharing_new (const char *path, const LsSharingOptions *options, guint n_threads,
                           const LsProgress *progress, GError **error);

#endif
