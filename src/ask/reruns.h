/* ask/reruns.h — the plan of a job run again on hardware that is a little different: a percent more of each
 * parameter, one part slower or gone, another seed of the fabric's hash, a change of its file taken back. */
#ifndef LS_ASK_RERUNS_H
#define LS_ASK_RERUNS_H

#include <glib.h>
#include <stdbool.h>

#include "ask/collective/collective_table.h"
#include "base/parallel.h"
#include "job/job.h"
#include "job/sensitivity_scale.h"

/* --- what a percent more of the hardware is worth to a job ------------------------------------------- */

/* Problem. Which of FLOPs, memory, links and host should a machine have more of? Shares of time
 * do not say: what overlaps may cost nothing, and a late rank makes others wait.
 *
 * Method. The plan is run again with one parameter p a percent higher and lower, and
 *
 *     elasticity = (T (1.01 p) - T (0.99 p)) / (0.02 T (p))
 *
 * percent of the step per percent of p: -1 if the step is all p, 0 if p does not matter. Each is scaled where
 * it lives, as a change of the cluster's file would, and what was calibrated stays a share of it:
 *
 *     gpu_flops          peak rates of the matrix and vector units
 *     hbm_bandwidth      of the data sheet
 *     nvlink_bandwidth   NVLinks (of a torus, ICI) and what NCCL gets through them
 *     nic_bandwidth      NICs and what NCCL gets through them; links of the fabric go along,
 *                        as their number follows from the ratio of both
 *     network_latency    of all links, and NCCL's steps
 *     host_launch        issuing a kernel, a view, a communication call, and a batch
 *
 * Measured kernels (compute/measured.h) are scaled as their fits are: a timing is an efficiency
 * of the GPU that it was taken on.
 *
 * Worked example. A job of one kernel that FLOPs bound, without a launch time, has gpu_flops
 * (1/1.01 - 1/0.99) / 0.02 = -1.0001, and 0 for the rest.
 *
 * Deviations. The plan is the same in all runs, also where its pipeline was ordered by times.
 * Algorithms and protocols are chosen anew: a choice that flips within a percent shows as a
 * step. Recorded durations of a trace belong to no parameter. */

/* One parameter of the hardware, a percent up and down. */
typedef struct {
  const char *parameter; /* static: "gpu_flops"                                              */
  const char *label;     /* static: for people                                               */
  double elasticity;     /* percent of the step's time per percent of the parameter         */
  double seconds_per_percent;
  double up_s, down_s; /* the step with the parameter a percent higher, and lower         */
} LsSensitivity;

typedef struct {
  double step_s;
  guint n;
  LsSensitivity rows[LS_N_SCALES]; /* n, in the order of the parameters */
} LsSensitivityTable;

/* r: the job as it ran. n_threads 0: one per processor; the result is the same. The first run
 * that fails, in the order of the parameters, gives the error. Free with g_free(). */
LsSensitivityTable *ls_sensitivity_new (const LsJobSpec *spec, const LsJobResult *r, guint n_threads,
                                        GError **error);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsSensitivityTable, g_free)

/* --- which link, accelerator or node would hurt a step most if it were slower ------------------------ */

/* Problem. Of thousands of parts one is always worse than the rest. Which of them a job waits for follows
 * neither from its load nor from the shares of the step: what overlaps may cost nothing, and what is on the
 * way of all costs all.
 *
 * Method. The job is run again with one part at a share s of what it can do, all others as they are:
 *
 *     link   a trunk (cluster/cluster.h) at s of its capacity, both ways; s = 0: failed, and gone around
 *     gpu    an accelerator whose kernels take 1 / s as long (exec/run.h)
 *     node   all accelerators of a node
 *
 * Parts that are alike are run once, the first of them. Accelerators are alike whose ranks are of one class
 * of the step without a fault (exec/shortcuts/fold.h), nodes whose ranks are, one by one. Links are alike
 * that have names of one form, carry the same bytes each way, and are of alike nodes. Links that carry
 * nothing are left out.
 *
 * Worked example. 8 GPUs that do the same: one group of 8 with s = 0.5, whose kernels take twice as long. All
 * others wait for it: the step grows by the kernels' time, whichever it is.
 *
 * Deviations. That parts are alike without a fault does not prove that the step is as long with either of
 * them slower; with folding checked (LS_SHORTCUT_CHECK) the last of each group is run too, and another step
 * is an error; without folding no parts are alike. Faults do not come together. */

typedef enum { LS_FAULT_LINK, LS_FAULT_GPU, LS_FAULT_NODE, LS_N_FAULT_KINDS } LsFaultKind;

extern const char *const ls_fault_kind_names[LS_N_FAULT_KINDS]; /* by value: "link" */

typedef struct {
  LsFaultKind kind;
  double share; /* [0, 1), of links; (0, 1) else: what is left */
} LsFaultAsk;

/* "link", "gpu=0.9", "node=0.5"; the share is a half if none is given. */
bool ls_fault_ask_parse (const char *text, LsFaultAsk *ret_ask);

typedef struct {
  char *first;   /* "node0/nic0>leaf0", "rank 3 on gpu 3", "node 2"        */
  char *pattern; /* of all that are alike, "node*" / "nic*>leaf*"; NULL: one */
  char *cut_off; /* who cannot reach whom then; NULL: all can              */
  guint n_alike;
  double step_s; /* NAN: nothing leads around it                           */
} LsFaultRow;

typedef struct {
  LsFaultAsk ask;
  const char *chip; /* static: what an accelerator is called there */
  double step_s;    /* without a fault                                       */
  guint n_idle;     /* links that carry nothing                              */
  GArray *rows;     /* LsFaultRow: what cuts off, then by step, longest first */
} LsFaultTable;

#define LS_FAULTS_MAX 4096 /* groups of parts */

/* r: the job as it ran. n_threads 0: one per processor; the result is the same. LS_ERROR_LIMIT: more than
 * LS_FAULTS_MAX groups. LS_ERROR_FAILED: parts taken for alike that are not. */
LsFaultTable *ls_fault_table_new (const LsJobSpec *spec, const LsJobResult *r, const LsFaultAsk *ask,
                                  guint n_threads, const LsProgress *progress, GError **error);
void ls_fault_table_free (LsFaultTable *table); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsFaultTable, ls_fault_table_free)

/* --- how much of a step is luck where switches hash flows to links ----------------------------------- */

/* Problem. With hashed routing (cluster/fabric.h) flows collide on some uplinks while others are idle. Which
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

/* --- which changes of a cluster's file change nothing ------------------------------------------------ */

/* Problem. "dgx-h100:node.nics.link.bandwidth=100GB/s" asks what faster NICs are worth. Where nothing
 * crosses them, or something else on the way limits, the answer is the same number as before, which
 * reads as if NICs did not matter, or as if the change had not been understood.
 *
 * Method. Each change is taken back in turn and the job is simulated without it. One that leaves the step
 * as it was is noted, with what its link carries. */

/* Appends a text (char *, owned by notes) for each change of spec->cluster that does not matter to the
 * job, which ran as r, and for tables of NCCL and of kernels that were asked for and do not. what: "the
 * step". but: keys that matter otherwise, with blanks between, or NULL. Nothing is said of "nodes", which is
 * a size. */
#define LS_KEYS_OF_PRICE "gpu.watts gpu.power gpu.usd_per_hour"
void ls_override_note_job (const LsJobSpec *spec, const LsJobResult *r, const char *what, const char *but,
                           GPtrArray *notes);

/* The same for a table of collectives that gave these rows. */
void ls_override_note_collective (const LsCollectiveSpec *spec, const LsCollectiveTable *table,
                                  GPtrArray *notes);

#endif
