/* job/job_steps.h — the steps that job/job.c takes, from a spec to a result with its notes. */
#ifndef LS_JOB_JOB_STEPS_H
#define LS_JOB_JOB_STEPS_H

#include "job/hardware.h"
#include "job/job.h"
#include "lower/lower.h"
#include "model/model.h"
#include "network/coll.h"
#include "plan/plan.h"
#include "schedules/sched.h"
#include "strategy/strategy.h"

/* --- job.c ------------------------------------------------------------------------------------------ */

/* Cluster and strategy, resolved, for another strategy of the same job: on its cluster, which is lent, where
 * one like it would be built. */
LsJobResult *ls_job_settle_beside (const LsJobResult *job, const LsHardware *hardware, uint32_t n_nodes,
                                   const LsStrategy *strategy, GError **error);

/* --- job_prepare.c: memory that a job will take -------------------------------------------------- */

/* Whether a job may be built at all: what it will take, known before it does.
 *
 * What takes memory follows the number of micro-batches, which a user types: the order of their passes, the
 * plan, the spans of two steps, the walk that measures memory. A run that is refused at its end has taken all
 * of it before. These are lower bounds; exec/run.c knows the sum better, later. */

/* Before the plan is made, of a resolved strategy: LS_ERROR_LIMIT. max_bytes 0: any. */
gboolean ls_budget_check_passes (const LsStrategy *strategy, const LsModel *model, uint64_t max_bytes,
                                 GError **error);

/* Of a plan, before anything walks through it. */
gboolean ls_budget_check_plan (const LsPlan *plan, uint64_t max_bytes, GError **error);

/* --- job_prepare.c: a job in the order of a file instead of its schedule's own ------------------- */

/* Reads a CSV in PyTorch's text format (data/jobs/read_schedule.h). It must have the ranks, chunks and
 * micro-batches of the resolved strategy, each stage where the strategy's schedule has it. NULL:
 * LS_ERROR_INPUT (the file), LS_ERROR_CONFLICT. Free with ls_orders_free(). */
LsOrders *ls_job_order_load (const char *path, const LsStrategy *s, GError **error);

/* --- job_prepare.c: where a job runs ------------------------------------------------------------- */

/* Of so many nodes, 0: as many as the job or the file says. s: its number of GPUs, or degrees, of which it
 * follows. */
LsCluster *ls_job_build_cluster (LsStrategy *s, const LsHardware *hardware, uint32_t n_nodes, GError **error);

/* The GPU of each rank of the resolved strategy, newly allocated. NULL: LS_ERROR_CONFLICT, as
 * ls_allocation_gpus(). */
uint32_t *ls_job_gpus (const LsStrategy *s, const LsCluster *cluster, GError **error);

/* Whether copy engines can move the pieces of tp_overlap (ring), if it is on: the GPUs of a tensor-parallel
 * group are in one node, and reach each other's memory. LS_ERROR_CONFLICT. */
gboolean ls_job_check_pieces (const LsPlan *plan, const LsStrategy *s, const LsCluster *c, GError **error);

/* --- job_prepare.c: times of a cluster ----------------------------------------------------------- */

/* What the lowering has to know of a cluster to order a pipeline: how long kernels, tensor-parallel
 * collectives and sends between stages take alone. Zero bubble's authors measure the same in the first
 * iterations of a run.
 *
 * A send is the mean over neighbouring stages of the first replica, a collective that of the first
 * tensor-parallel group. */

typedef struct {
  const LsHardware *hardware;
  const LsCluster *cluster;
  const LsStrategy *strategy;  /* resolved */
  LsCallTimes *call_times;     /* with the hardware's NCCL */
  const uint32_t *gpu_of_rank; /* NULL: ls_cluster_gpu_of() */
} LsCostSources;

/* Borrows `of`, which must outlive the result. */
LsLowerCosts ls_lower_costs (LsCostSources *of);

/* --- job_notes.c: knobs that were set and make no difference to the job, in words ---------------- */

/* How a knob was said: the option that gives it, or what a launch file has for it, newly allocated. NULL: it
 * was not, or it is what the program of the file does by itself. */
char *ls_job_said_as (const LsJobSpec *spec, const LsField *f);

/* Appends a note (char *) for each knob that a flag or a file has set, that is not what it is by default,
 * and makes no difference to the job that was made of it: "--dp-overlap 0 has no effect here: FSDP always
 * reduces beside the backward". Where no rule says so (strategy/strategy_idle.h), the job is lowered without
 * the knob, and the plans are compared. */
void ls_idle_notes (const LsJobSpec *spec, const LsJobResult *prepared, const LsHardware *hardware,
                    GPtrArray *notes);

/* --- assumptions.c --- */

/* Why a cost of calls of the host makes no difference in a job that is lowered; NULL: it makes one. f: of the
 * topic host. */
const char *ls_job_host_idle (const LsJobResult *job, const LsField *f);

/* --- job_notes.c ----------------------------------------------------------------------------------- */

/* What a user should know of a result: what keeps a job from what its schedule promises, and which of its
 * figures are bounds. */

/* Appends to the notes of a result with a report: why a schedule that splits backwards gives less than
 * `lockstep schedule` says of it, where that is a hundredth of the step or more; and which hold less, where
 * one without a limit does not fit. */
void ls_job_note_schedule (LsJobResult *r);

/* Appends to notes what sockets carry, where what crosses nodes goes through them (is_across: something
 * does), and that nodes have NICs that no GPU sends by. */
void ls_note_network (const LsClusterSpec *cluster, bool is_across, GPtrArray *notes);

/* Appends "kernels scaled from h100 (10 %)" to words, unless that was measured on the machine itself. */
void ls_append_known (GString *words, const char *what, const LsKnown *known);
/* Appends such words to notes, unless they are empty. */
void ls_note_known (const GString *words, GPtrArray *notes);
/* Appends to the notes of a result that it takes more nodes than the cluster's file says, where no number was
 * asked for. */
void ls_job_note_nodes (const LsJobSpec *spec, LsJobResult *result);

/* Appends how many documents sequences hold, what they leave of attention, and how uneven copies are. */
void ls_note_documents (const LsStrategy *s, const LsModel *m, GPtrArray *notes);
/* How many of the tokens that are sent to experts a capacity drops, if any. s: resolved. */
void ls_note_drops (const LsStrategy *s, const LsModel *m, GPtrArray *notes);

/* Appends to notes that the NCCL file that was asked for (NULL: none) is of another generation of GPUs, what
 * each variable of NCCL's environment does, and which knobs of s (NULL: no job's) win over both. */
void ls_note_nccl (const char *nccl, const LsHardware *hardware, const LsStrategy *s, GPtrArray *notes);
/* That the program that was asked for, by its name or by its way to be data parallel, does not run on these
 * accelerators, or that one which was named cannot run such a job (job_notes.c). */
void ls_job_note_program (const LsJobSpec *spec, LsJobResult *result);
/* The next of what a program (NULL: none) does in such a job that is not simulated, from *at on, which it
 * moves past it; NULL: no more. s: resolved. */
const LsMissing *ls_job_missing (const LsSoftwareSpec *software, const LsModel *m, const LsStrategy *s,
                                 guint *at);
/* Appends to notes that measured numbers (of m's source, else of that) are of another job. */
void ls_job_note_contradictions (const LsJobResult *result, const LsMeasured *m, const char *source,
                                 GPtrArray *notes);
/* That the calibration that was asked for is of another GPU. */
void ls_job_note_calibration (const LsJobSpec *spec, LsJobResult *result);
/* That drawn speeds take the place of the slowest GPU's. */
void ls_job_note_drawn_speeds (const LsJobSpec *spec, LsJobResult *result);

/* Appends to the notes of a result, if it has a model, that its kernels are Megatron-Core's, where gradients
 * are reduced by other software and no list of kernels is given, that attention takes the time of another
 * implementation, where its own was not measured, and that no kernel of its mixer was. */
void ls_job_note_kernels (const LsJobSpec *spec, LsJobResult *result);

/* --- job_retries.c --------------------------------------------------------------------------------- */

/* A job whose segments of PyTorch's allocator meet the memory of the GPU, at the speed that it then has.
 *
 * The job is simulated as if there were memory enough; its allocations are replayed at the limit
 * (exec/memory/retries.h); each call of the driver that comes out is put before its op (plan/plan_stalls.h),
 * and the job is simulated again. Only programs that use the allocator without expandable segments
 * (cuda_allocator) do so, and only where so much is in use that segments may fill the device: elsewhere
 * nothing is done.
 *
 * A step with retries is never shorter than without: where waits make others share links less, nothing is
 * charged. So the plain step is a bound of the one with retries, by which a sweep leaves configurations out.
 *
 * Deviation. A run that keeps no times (of a sweep, of validate) looks at the order of allocations to see
 * whether so much is in use, which is too low where the host gathers far ahead (fsdp1 without
 * limit_all_gathers). */

/* r has its timeline, of a run with these arguments, which is replaced where there are retries; r->retries
 * says of them. Errors as of ls_run(). */
gboolean ls_job_settle_retries (LsJobResult *r, const LsHardware *chosen, const LsRunOptions *run,
                                double *ret_cost_share, GError **error);

/* Whether they may make the step longer: of a job that needs so much in the order of its allocations. */
bool ls_job_may_retry (const LsJobResult *r, uint64_t needed_bytes);

/* What waits to be free when a retry comes is free behind it: of the memory of a job with retries no more is
 * needed than segments may take. */
void ls_job_fit_retries (LsJobResult *r);

/* Appends to the notes of a result what a user is to know of them: retries, no memory left, or segments that
 * come so near to the limit that what no simulated category holds (job/job.h) meets it. */
void ls_job_note_retries (const LsJobSpec *spec, LsJobResult *r);

/* --- job_spec.c ------------------------------------------------------------------------------------- */

/* A launch file that was read, as --from; taken with all it holds. */
bool ls_job_spec_take_import (LsJobSpec *spec, LsImported *from, LsDiagList *diags);

#endif
