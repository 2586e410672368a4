/* sweep/sweep.h — the best of all legal configurations of a job.
 *
 * Each configuration (sweep/space.h) is discarded if a rule forbids it, if it surely does not
 * fit, or if it surely cannot be among the best (bound/bound.h); what is left is simulated as
 * `run` would, on threads, and on those of other processes if there are any (base/team.h).
 *
 * Search. Configurations with the same GPUs and global batch are a group. Of each what its step takes at
 * least is known better and better: by a closed bound (bound/bound.h), by its plan (exec/shortcuts/
 * plan_bound.h), by a run without retries of its allocator (job/job_steps.h), by a run with its times
 * recorded, which also says whether it fits. The one that takes least by what is known has its next step
 * done, so what is not among the best is done no further than shows that. The limit is the best time of the
 * `top`th best idea (sweep/idea.h) of those that fit: what takes longer is left out, and so is what takes
 * longer than the best of its own idea and those that are ranked beside it. A plan is simulated at once if
 * no other one waits that may take less; one that is likely to be among the best, by those that ran so far,
 * with its times recorded, and what that says lies aside until it is asked for.
 *
 * Steps are done in waves, between which the limit is updated: nothing that is decided within a wave depends
 * on what happens in it, so counts and results are the same for any number of threads. Where the objective
 * is not the step (sweep/objective.h) times are over the goodput. With a Pareto front, a heat map, or without
 * pruning, what is simulated is so with its retries, and ideas do not leave each other out. On a Pareto front
 * a configuration is left out only if it is also dominated: if one that was simulated is, per token, as fast
 * and as cheap as its bounds, and needs no more memory.
 *
 * Memory. What does not fit in the order of its allocations, is not simulated. That is a lower
 * bound (exec/memory/memory.h): what comes to be one of the best is run again with its times recorded
 * and leaves the ranking if it then does not fit.
 *
 * Journal. Every simulation is written down with its result (data/text/journal.h). A sweep that is started
 * again takes these and goes on; only the rules of thumb, by the last of which it knows that model, cluster
 * and calibration are those of before, and those ranked, for their breakdown, run again. */
#ifndef LS_SWEEP_SWEEP_H
#define LS_SWEEP_SWEEP_H

#include "base/parallel.h"
#include "job/job.h"
#include "job/price.h"
#include "sweep/objective.h"
#include "sweep/space.h"
#include "sweep/sweep_report.h"
#include "base/team.h"

#define LS_SWEEP_WAVE 32 /* plans; a run counts as 2, one with its times as 4 */

typedef enum { LS_SWEEP_STEP, LS_SWEEP_TOKENS, LS_SWEEP_MFU } LsSweepFigure;

typedef struct {
  LsJobSpec job; /* base: what no axis sets */
  LsSpace space;
  uint32_t top; /* how many are ranked     */
  bool no_prune, pareto, has_timing;
  bool has_layers;   /* layers_per_chunk was asked for, not found in the file of the job */
  LsTime time_limit; /* after which it ends with what is there; 0: none */
  guint n_threads;   /* 0: one per processor  */
  LsTeam *team;      /* NULL: this process alone. Borrowed */
  LsPrice price;     /* NAN: the default      */
  LsObjectiveAsk objective;
  LsProgress progress; /* in simulations  */
  const char *journal; /* path: what is simulated, to go on from; NULL: none. Borrowed */
  bool heat_map;       /* is asked for: sweep/sweep_charts.h */
  LsSpaceAxis heat_axes[2];
  LsSweepFigure heat_figure;
  bool scaling_chart;
  const gint *stop; /* not 0: end with what is there; or NULL. Read atomically */
} LsSweepSpec;

void ls_sweep_spec_init (LsSweepSpec *spec);
void ls_sweep_spec_clear (LsSweepSpec *spec);

/* Sets a knob of the sweep, an axis ("1,2,4") or any other knob of a job. Diagnostics are
 * LS_ERROR_USAGE. */
gboolean ls_sweep_spec_set (LsSweepSpec *spec, const char *key, const char *value, LsDiagList *diags);

typedef struct LsSweepRun LsSweepRun;

/* Fills the space of spec, which must outlive the run. Errors: those of loading, LS_ERROR_USAGE,
 * LS_ERROR_LIMIT, of the journal, of other processes. Nothing legal is a result. In a process that
 * does not lead its team it helps, and has no result: the run has no rows. */
LsSweepRun *ls_sweep_spec_run (LsSweepSpec *spec, GError **error);
void ls_sweep_run_free (LsSweepRun *run); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsSweepRun, ls_sweep_run_free)

const LsSweepReport *ls_sweep_run_report (const LsSweepRun *run);
/* Appends what of its machine was not measured, char *, one line each; of what the leader of a team has. */
void ls_sweep_run_notes (const LsSweepRun *run, GPtrArray *notes);

/* Every simulated configuration in the order of the space: CSV of picoseconds, bytes where they are
 * the peak, the flags that run takes, a column for each knob. Newly allocated. */
char *ls_sweep_run_list (const LsSweepRun *run);

/* The best for a target of data/jobs/emit.h, newly allocated; *ret_notes as of ls_emit(). LS_ERROR_NO_FIT:
 * there is none. */
char *ls_sweep_emit (const LsSweepRun *run, const char *target, char **ret_notes, GError **error);

#endif
