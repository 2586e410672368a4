/* ask/sharing_jobs.h — jobs of a file, lowered and put onto their nodes of one cluster; and what is asked of
 * them (private to ask/). */
#ifndef LS_ASK_SHARING_JOBS_H
#define LS_ASK_SHARING_JOBS_H

#include "ask/sharing.h"
#include "cluster/allocation.h"
#include "data/jobs/read_jobs.h"
#include "job/job.h"

typedef struct {
  LsJobResult *job;  /* prepared; its plan has GPUs of the cluster of all */
  LsHardware chosen; /* borrows those of the job */
  LsHostCosts host;
  double *slow; /* [ranks], NULL: none is */
  LsAllocation *allocation;
  uint32_t *own; /* [ranks] the GPUs of the plan where the job has a cluster to itself */
} SharedJob;

typedef struct {
  LsJobsFile file;
  LsHardware *hardware;
  LsCluster *cluster;
  guint n;
  SharedJob *jobs;        /* [n] */
  LsShareJob *share;      /* [n] the same for exec/share.h */
  GArray *flows;          /* LsTraffic, in the order of the file */
  GArray *first_flow;     /* guint: of each entry of the file's traffic, and behind the last */
  LsShareTraffic traffic; /* the same flows */
} SharedJobs;

/* NULL: errors as of ls_sharing_new(). notes: what is worth knowing of the jobs. */
SharedJobs *shared_jobs_new (const char *path, const LsSharingOptions *options, GPtrArray *notes,
                             GError **error);
void shared_jobs_free (SharedJobs *jobs); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (SharedJobs, shared_jobs_free)

/* Of one question: one job alone, or all of them, begun later by so much. */
typedef struct {
  uint32_t only;
  LsTime *shift;   /* [n] of the jobs, owned; NULL: none */
  LsShare *result; /* NULL until it is asked, and where that failed */
} SharedAsk;

/* Puts a job onto these nodes instead, as many as it has: the plan changes its GPUs. */
void shared_job_place (const SharedJobs *jobs, guint i, const uint32_t *nodes);
/* Whether these have as many GPUs each as the nodes of its own. */
bool shared_job_has_room (const SharedJobs *jobs, guint i, const uint32_t *nodes);

#endif
