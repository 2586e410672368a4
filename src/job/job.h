/* job/job.h — one job end to end: files in, every result out.
 *
 *     spec -> model, hardware -> strategy resolved -> plan -> timeline -> report
 *     spec -> trace, hardware -----------------------> plan -> timeline -> report
 *
 * A trace brings its plan, and its model and strategy if it knows them; of the knobs of
 * parallelism only dp may then be set.
 *
 * How large the cluster is: --nodes says so, or --gpus (as many nodes as hold
 * them), or a cluster file of more than one node, or --slice (one, unless dp is
 * given), or the strategy, whose tp * pp * cp * dp ranks (dp 1 unless given) are then
 * the GPUs used. A node of a TPU cluster is a slice; its axes are those of --slice, or
 * of the file with --nodes, or fit the GPUs (cluster/cluster.h). */
#ifndef LS_JOB_JOB_H
#define LS_JOB_JOB_H

#include "analysis/report.h"
#include "cluster/cluster.h"
#include "data/jobs/read_software.h"
#include "data/jobs/imported.h"
#include "data/text/field.h"
#include "exec/memory/memory.h"
#include "exec/run.h"
#include "job/hardware.h"
#include "plan/plan.h"
#include "strategy/strategy.h"

/* --- how much memory a job is to leave free, and whose program it is ----------------------------- */

/* Asked for: `--headroom` says so, a size or a share of the accelerator's memory; with `--for` alone it is
 * what that program takes. Otherwise it is what the program takes that the job names, or the textbook's, and
 * is told, not demanded. */

typedef struct {
  bool is_set;
  uint64_t bytes;
  double percent; /* of the accelerator's memory */
} LsHeadroomAsk;

/* "6GiB", "8%", "0", into an LsHeadroomAsk. */
#define LS_HEADROOM_EXPECTED "a size such as 6GiB, a share of the accelerator's memory such as 8%, or 0"
bool ls_headroom_parse (const char *text, void *ret_ask);

/* Of a job with that LsDpKind on that machine. software: that it is for, or NULL: the one that it names, own,
 * or NULL, the textbook; where a program has no headroom of its own, the one that has that way to be data
 * parallel (job/softwares.h), which is said. */
void ls_headroom_of (const LsHeadroomAsk *ask, const LsSoftwareSpec *software, const LsSoftwareSpec *own,
                     int dp_kind, const LsHardware *hardware, const LsMemoryOptions *memory, LsHeadroom *ret);

/* --- one job end to end: files in, every result out ---------------------------------------------- */

/* LS_JOB_NETWORK_ALL: flow, and report.networks says what the others make of it. */
typedef enum {
  LS_JOB_NETWORK_FLOW,
  LS_JOB_NETWORK_ALPHABETA,
  LS_JOB_NETWORK_STEP,
  LS_JOB_NETWORK_ALL
} LsJobNetwork;

typedef struct {
  char *model;                   /* name or path  */
  char *cluster;                 /* name or path  */
  char *gpu_calibration, *nccl;  /* names or paths; NULL: those of its GPU */
  char *trace;                   /* name or path: replayed instead of model and strategy */
  char *order;                   /* file with the order of the pipeline's actions, NULL: the schedule's own */
  uint32_t n_nodes;              /* 0: as above   */
  uint32_t slice[LS_TORUS_AXES]; /* of a torus, 0 beyond its axes; all 0: as its file says */
  uint32_t segment;      /* compute trays of a node taken together (cluster/cluster.h); 0: as its file says */
  LsImported *from;      /* of a launch file, in the place of a model and under all of strategy; NULL: none.
                           Shared, counted */
  bool gpus_are_from;    /* the number of GPUs is that of `from`: another size of the job takes its place */
  bool software_is_from; /* so is `software` */
  /* Keys that `from` has only by the rules of its program, and that are as `software`, another one, has them,
   * and its stage of ZeRO, if that has none such: static strings; NULL: none. Counted. */
  GHashTable *given_up;
  bool is_strict; /* what is not known of `from` is refused */
  LsStrategy strategy;
  char *strategy_knob; /* NULL: none was set that a trace would contradict */
  LsSoftwareSpec
      *software; /* --software or --for: its defaults are in strategy; NULL: none. Shared, counted */
  const LsSoftwareSpec *program; /* --for: software, where the job is to be legal there; NULL: for none */
  char *software_name;           /* as it was named */
  LsHeadroomAsk headroom;
  GHashTable *said;     /* keys of a strategy that a file or a flag has set: static strings; NULL: none */
  GPtrArray *settings;  /* char *: key, value, key, ... as ls_job_spec_set() took them; NULL: none */
  LsRunOptions options; /* its `network` and `stragglers` follow from those below */
  LsSlow slow;
  int network;         /* LsJobNetwork  */
  char *residuals;     /* name or path of what published runs measured; NULL: "residuals", if there is such a
                           file; "none": none, and no interval */
  LsMeasured measured; /* a step that was run, to compare with */
  bool no_notes;       /* only those of a foreign model: nobody reads them */
  bool has_no_faults;  /* those of the cluster's file do not count              */
  /* [n_of_nodes] which of the cluster's nodes its own are, for their kinds; borrowed. NULL: the first ones */
  const uint32_t *of_nodes;
  uint32_t n_of_nodes;
} LsJobSpec;

/* The knobs of a job that its strategy does not have; those are ls_strategy_fields
 * (data/jobs/job_files.h). */
extern const LsField ls_job_fields[];

void ls_job_spec_init (LsJobSpec *spec); /* the defaults of the command line */
void ls_job_spec_clear (LsJobSpec *spec);
/* Of a trace on a cluster, whose notes nobody reads. FALSE: spec is cleared; LS_ERROR_INPUT,
 * LS_ERROR_USAGE. */
gboolean ls_job_spec_init_replay (LsJobSpec *spec, const char *trace, const char *cluster, GError **error);
void ls_job_spec_copy (const LsJobSpec *spec,
                       LsJobSpec *ret_copy); /* deep; what ret_copy held is overwritten */

/* Sets one knob from text; key is a long flag without dashes (see lockstep/lockstep.h). Diagnostics are
 * LS_ERROR_USAGE; spec is then unchanged. "for" and "software", of which there is one, are set before all
 * knobs of a strategy: they take its defaults from a program (also LS_ERROR_INPUT). So is "from", behind
 * these and behind "model", which rules of launch files ask: the files of ls_import_load(), a line each (also
 * LS_ERROR_INPUT, LS_ERROR_CONFLICT, LS_ERROR_UNSUPPORTED). */
gboolean ls_job_spec_set (LsJobSpec *spec, const char *key, const char *value, LsDiagList *diags);

/* A strategy file over the defaults, which are of the software that it names unless the spec has one.
 * Diagnostics are LS_ERROR_INPUT. */
gboolean ls_job_spec_load_strategy (LsJobSpec *spec, const char *name_or_path, LsDiagList *diags);

/* Refuses what the program cannot express, as --emit would: LS_ERROR_UNSUPPORTED. NULL, or without emit:
 * nothing. strategy:
 * resolved. */
gboolean ls_software_check (const LsSoftwareSpec *software, const LsModel *model, const LsStrategy *strategy,
                            GError **error);

/* The cluster with its measurements, or those that the job names. NULL: diagnostics as of
 * ls_hardware_load_with(). */
LsHardware *ls_job_hardware_load (const LsJobSpec *spec, LsDiagList *diags);

/* The options to run with, which borrow of spec. */
LsRunOptions ls_job_spec_options (const LsJobSpec *spec);

/* All owned. */
typedef struct {
  LsModel model;              /* name NULL: a trace that does not know it */
  LsStrategy strategy;        /* resolved; without model only its degrees count */
  char *trace, *trace_source; /* name; NULL: not from a trace, or one that knows its model */
  char *measured_on;          /* of a trace: see LsTrace */
  char *assumes;              /* of it, too */
  double compute_scale;       /* of it, too */
  bool takes_dp;              /* likewise */
  LsSoftwareSpec *software;   /* that a trace names; NULL: none, the textbook, or one that is not at hand */
  LsHardware *hardware;       /* NULL if it was lent, see ls_job_simulate() */
  GPtrArray *notes;           /* char *: what had to be assumed about a foreign model; NULL if it was lent */
  GArray *assumptions;        /* LsAssumption (job/assumptions.h); NULL: of a trace, or it was lent */
  GArray *knobs;              /* all others, as ls_assumptions_of_knobs(); NULL: no notes, or it was lent */
  LsCluster *cluster;
  bool cluster_is_lent; /* not owned: see ls_job_prepare_on() */
  LsPlan *plan;
  LsMemory *memory;
  LsTimeline *timeline;
  LsRetriesReport retries; /* also where the report is empty */
  double
      guessed_share; /* of kernel time, by data sheets and stated guesses: also where the report is empty */
  LsReport report;
} LsJobResult;

void ls_job_result_free (LsJobResult *result); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsJobResult, ls_job_result_free)

double ls_job_result_step_time_s (const LsJobResult *result);
/* Who runs it: as the spec names it, or its trace; NULL: the textbook. result NULL: not simulated yet. */
const LsSoftwareSpec *ls_job_software (const LsJobSpec *spec, const LsJobResult *result);
/* As ls_mfu(); NAN: what is trained is not known. */
double ls_job_result_mfu (const LsJobResult *result, bool is_causal);

/* What its memory is measured from; borrows all. */
LsMemoryInput ls_job_result_memory_input (const LsJobResult *result, const LsHardware *hardware,
                                          const LsMemoryOptions *options);

/* Loads and simulates. All diagnostics of the first stage that fails are in the
 * error. The first form ends with the plan, as ls_job_prepare(). */
LsJobResult *ls_job_spec_prepare (const LsJobSpec *spec, GError **error);
LsJobResult *ls_job_spec_run (const LsJobSpec *spec, GError **error);

/* Simulates what is already loaded; everything is copied except hardware, which
 * must outlive the result. strategy need not be resolved. With options->no_spans,
 * memory is an estimate (exec/memory/memory.h) and report empty: the step time is all there is. */
LsJobResult *ls_job_simulate (const LsModel *model, const LsHardware *hardware, uint32_t n_nodes,
                              const LsStrategy *strategy, const LsRunOptions *options, GError **error);

/* The same in two steps. The first ends with the plan: timeline and memory are NULL, report is empty. The
 * second takes what the first gave, NULL included, and owns it from then on; or, with run, it ends with the
 * timeline, and memory may be there. ret_cost_share: as ls_run() gives it; may be NULL. */
LsJobResult *ls_job_prepare (const LsModel *model, const LsHardware *hardware, uint32_t n_nodes,
                             const LsStrategy *strategy, GError **error);
/* The plan of one whose cluster and strategy are settled. */
gboolean ls_job_lower (LsJobResult *settled, const LsHardware *hardware, GError **error);
/* The first step on a cluster that was built for the strategy before and outlives the result. */
LsJobResult *ls_job_prepare_on (const LsModel *model, const LsHardware *hardware, const LsCluster *cluster,
                                const LsStrategy *strategy, GError **error);
LsJobResult *ls_job_run_prepared (LsJobResult *prepared, const LsHardware *hardware,
                                  const LsRunOptions *options, double *ret_cost_share, GError **error);
LsJobResult *ls_job_simulate_prepared (LsJobResult *prepared, const LsHardware *hardware,
                                       const LsRunOptions *options, GError **error);

/* The same without what the allocator costs the step near the limit of the memory: a bound of it. */
LsJobResult *ls_job_run_plain (LsJobResult *prepared, const LsHardware *hardware, const LsRunOptions *options,
                               double *ret_cost_share, GError **error);
/* The rest of ls_job_simulate_prepared() behind that, with the same options: what the allocator costs, memory
 * and report. Owns plain, NULL included. cost_share: of plain. */
LsJobResult *ls_job_simulate_rest (LsJobResult *plain, const LsHardware *hardware,
                                   const LsRunOptions *options, double cost_share[LS_N_COST_SHARES],
                                   GError **error);

/* What its step takes at least (exec/shortcuts/plan_bound.h), without simulating it. */
LsTime ls_job_bound (const LsJobResult *prepared, const LsHardware *hardware, const LsRunOptions *options);

/* The hardware at the pace of the slowest GPU of the job, save where each rank has drawn a speed of its
 * own. Borrows all. */
void ls_job_hardware (const LsJobResult *r, const LsHardware *hardware, const LsRunOptions *options,
                      LsHardware *ret_hardware);

/* The plan of a job as a file or folder (data/traces/traces.h), which says that name. format: "lockstep", as
 * NULL, "chakra", "chakra-roles" or "goal". notes (char *): also what it rests on that no replay says, and
 * has instead of what the format cannot say. */
gboolean ls_job_spec_export (const LsJobSpec *spec, const char *format, const char *name, const char *path,
                             GPtrArray *notes, GError **error);
/* Its kernels as a list to be timed (job/job_export.c). Newly allocated. */
char *ls_job_spec_shapes (const LsJobSpec *spec, GPtrArray *notes, GError **error);

/* Loads model and cluster, and resolves and lowers the strategy, but does not run:
 * what `lockstep check` does with a strategy. */
gboolean ls_job_spec_check (const LsJobSpec *spec, GError **error);

/* --- which rank runs where, for people ----------------------------------------------------------- */

/* A table with a line per rank: node, GPU of the node, NIC of the node, place in
 * each dimension of the mesh, and the ranks before and after it in the pipeline.
 * s must be resolved. Newly allocated, ends in a newline. */
char *ls_placement_format (const LsPlan *plan, const LsStrategy *s, const LsCluster *c);

#endif
