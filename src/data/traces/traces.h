/* data/traces/traces.h — plans as files: lockstep.trace/1, Chakra execution traces, GOAL, captured steps. */
#ifndef LS_DATA_TRACES_TRACES_H
#define LS_DATA_TRACES_TRACES_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "cluster/cluster.h"
#include "data/text/field.h"
#include "model/model.h"
#include "network/nccl/nccl.h"
#include "plan/mesh.h"
#include "plan/plan.h"
#include "strategy/strategy.h"

/* --- lockstep.trace/1: trace_read.c, trace_file.c ---------------------------------------------------- */

/* A plan as a file: lockstep.trace/1, documented in
 * src/manual/formats/trace.md. What is written is read back as the same plan, so that its
 * replay gives the same bytes. */

#define LS_TRACE_MAX_SCALE 1000.0

typedef struct {
  char *name, *source;
  char *measured_on;    /* the GPU that kernels took their recorded times on; NULL: it does not say */
  double compute_scale; /* these are that many times what was recorded there */
  char *assumes;        /* what its import from a profile assumed: "this | that"; NULL: it was not imported */
  LsPlan *plan;         /* checked by ls_plan_check()                                  */
  LsMesh mesh;          /* all degrees 0: the file lists its ranks                     */
  bool takes_dp;        /* whether it can be loaded with another dp */
  bool has_model;       /* and then a strategy; without, what needs them is not known  */
  LsModel model;
  LsStrategy strategy; /* its degrees are those of the mesh; without model, only they count */
  /* Of a captured step: of each role a GArray of int32_t. It has for each of its ops, in order, of which line
   * of its file it is, or which it precedes, counting from 0 those that take time on a stream: kernels,
   * products, plans, graphs, copies, fills, messages; -1: of none. NULL: it was not captured. */
  GPtrArray *work;
} LsTrace;

void ls_trace_free (LsTrace *trace); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsTrace, ls_trace_free)

/* By name or path; with dp > 0 for that many data-parallel replicas: more or fewer
 * ranks of the same roles, and as many more sequences. NULL and diagnostics on
 * failure: LS_ERROR_INPUT, LS_ERROR_LIMIT (more than 2^20 ranks), LS_ERROR_CONFLICT
 * (dp where nothing is reduced over dp, or ranks are listed). */
LsTrace *ls_trace_load (const char *name, uint32_t dp, LsDiagList *diags);
LsTrace *ls_trace_read (const LsJsonDoc *doc, uint32_t dp, LsDiagList *diags);

/* What a trace says besides its plan. */
typedef struct {
  const char *name, *source, *measured_on, *assumes; /* the last two may be NULL */
  double compute_scale;                              /* 0: as 1 */
  const LsMesh *mesh;         /* by which ranks were bound; NULL or another: they are listed */
  const LsModel *model;       /* NULL: not known */
  const LsStrategy *strategy; /* resolved; NULL with model */
  /* Says nothing of LsOp.has_margin, and nothing of ranks: not to be read back, but to be compared. */
  bool no_margins, no_ranks;
} LsTraceHead;

/* Newly allocated JSON text. LS_ERROR_UNSUPPORTED if the plan has what the file
 * cannot say exactly. */
char *ls_trace_format (const LsPlan *plan, const LsTraceHead *head, GError **error);

/* --- Chakra: chakra_*.c ------------------------------------------------------------------------------ */

/* A plan as Chakra execution traces (MLCommons): a folder with trace.R.et for each
 * rank R, documented in src/manual/formats/chakra.md. The messages are those of et_def.proto; what the
 * schema has no field for stands in attributes that others pass over. What is written is read back as the
 * same plan.
 *
 * Of one op: a kernel is a COMP_NODE, a collective a COMM_COLL_NODE, each message of a p2p a COMM_SEND_NODE
 * or COMM_RECV_NODE, a copy a MEM_LOAD_NODE or MEM_STORE_NODE, all else (events, waits of the host, where a
 * segment begins, process groups) a METADATA_NODE. data_deps are all nodes that must have ended: the one
 * before in its stream, the last that held the host up, and those that the op waits for.
 *
 * Traces of others are read too: nodes in the order of their file, each after those that it depends on.
 * Compute takes its duration_micros. */

/* Ranks and nodes that an export writes at most, and bytes of a message and a file that are read. What is
 * read is at most as long as a file lockstep.trace/1 may be. */
#define LS_CHAKRA_MAX_RANKS 65536
#define LS_CHAKRA_MAX_NODES 1e9
/* nodes of a rank, written or read */
#define LS_CHAKRA_MAX_NODES_OF_RANK (1u << 24)
#define LS_CHAKRA_MAX_MESSAGE       ((size_t) 4 << 20)
#define LS_CHAKRA_MAX_FILE          ((size_t) 1 << 30)

/* Into a folder that must not exist yet: a file for each rank and comm_groups.json, the process groups as
 * ASTRA-sim reads them. by_role: only of the first rank of each role, and manifest.json, which says what all
 * ranks are. kernel_times: [n_kernels] for duration_micros, NULL: not said. LS_ERROR_UNSUPPORTED
 * if the plan has what the files cannot say exactly, LS_ERROR_LIMIT, LS_ERROR_IO. */
gboolean ls_chakra_write (const LsPlan *plan, const LsTraceHead *head, const LsTime *kernel_times,
                          bool by_role, const char *folder, GError **error);

/* The folder as a trace; dp as of ls_trace_load(). NULL and diagnostics: LS_ERROR_INPUT, LS_ERROR_UNSUPPORTED
 * for nodes that have no counterpart here. */
LsTrace *ls_chakra_load (const char *folder, uint32_t dp, LsDiagList *diags);

/* The same from the bytes of the files of ranks 0 to n - 1, or, with `manifest`, that of manifest.json, of
 * roles. `groups`: that of comm_groups.json, or NULL; `name` stands for the folder. */
LsTrace *ls_chakra_parse (const char *name, const GPtrArray *files, const char *groups, const char *manifest,
                          LsDiagList *diags);

/* --- GOAL: goal_write.c ------------------------------------------------------------------------------ */

/* A plan as GOAL (Group Operation Assembly Language): for each rank what it computes,
 * what it sends and receives, and what must be over before.
 *
 *     num_ranks 2
 *     rank 0 {
 *     l1: calc 1200 cpu 0
 *     l2: send 1024b to 1 tag 0 cpu 1
 *     l2 requires l1
 *     }
 *
 * Model. A kernel is a calc of the time that it takes alone, in nanoseconds; so is a copy, and a delay of
 * the host. Rounding is carried on: the calcs of a rank add up to what its plan takes, to the nanosecond. A
 * collective is its messages, by the algorithm and with the members' order that the simulator itself takes
 * (network/script.h); a round begins when all of the one before is over, and receives are posted when the
 * call begins. A send of a pipeline is one message. What must be over: the op before in the stream, what an
 * op waits for, and the last that held the host up. `cpu` is the stream. A step is one step with what leads
 * to it.
 *
 * Tags. The k-th message from one rank to another on a communicator has the tag 16 k + c, c counting the
 * communicators that both have; on pipelines c is 14 to the next and 15 to the previous stage. So a tag
 * names one message of a pair.
 *
 * Deviations. What the language cannot say is left out: what issuing costs the host, what kernels and
 * communication take from each other, memory. Calls in switches (NVLS, SHARP) become rings, as switches that
 * compute are no ranks. A message of no bytes, as of a barrier, has one.
 *
 * Reference: Hoefler, Siebert, Lumsdaine, "Group Operation Assembly Language", ICPP 2009; the grammar is
 * that of spcl/LogGOPSim@76451de, src/LogGOPSim/txt2bin.re. */

/* Lines and messages that are written at most. */
#define LS_GOAL_MAX_LINES 1e8

typedef struct {
  const LsPlan *plan;
  const LsCluster *cluster;
  const LsNccl *nccl;
  const LsTime *kernel_times; /* [n_kernels] */
  const char *source;         /* what it is of: a comment */
} LsGoal;

/* ret_n_rings: distinct calls in switches that were written as rings. LS_ERROR_LIMIT: too long;
 * LS_ERROR_CONFLICT: an algorithm does not do a call; LS_ERROR_IO, LS_ERROR_USAGE: the file cannot be
 * written. */
gboolean ls_goal_write (const LsGoal *goal, const char *path, uint32_t *ret_n_rings, GError **error);

/* --- captured steps: captured_*.c -------------------------------------------------------------------- */

/* A step of a program that was captured, as files, and as a trace that run
 * replays.
 *
 * Problem. What a program of others launches, sends and waits for is decided by it. `lockstep capture -o
 * FOLDER` has seen one step of each role of its ranks (capture/standin_record.c, lockstep_trace.py); how
 * long that takes on a cluster is asked of the same replay that modelled jobs have.
 *
 * Files. capture.json: the ranks in all, which of them stand for which, the files; rank-N.json.gz:
 * operators with their shapes, kernels, copies, collectives, streams, events, waits, in order, documented
 * in src/manual/formats/captured.md. They have no times.
 *
 * Method. A rank's program is what it launches and sends, in the order in which its host did. What is
 * launched on a stream follows what that stream was given before, and, where the stream waited for an
 * event, what had been given to the event's stream until then; the host waits where it waited. A kernel's
 * work is that of its class (captured_kernels.c). Groups of ranks become communicators; each rank of the
 * world has those of the rank that stands for it, the kth that the program made with it being the kth. The
 * result is a trace as one of ours is.
 *
 * Worked example. A kernel, a record on its stream, a wait of NCCL's stream, an all-reduce there: the
 * all-reduce stands after the kernel, and nothing else does (tests/golden/captured.txt).
 *
 * Deviations. The host is busy with each launch, each operator that launches nothing, and each function of
 * Python for a time that is the same for all (exec/replay/host.c). Memory is not replayed: `capture
 * --memory` says it. */

#define LS_CAPTURED_MANIFEST "capture.json"

typedef struct {
  uint32_t rank;
  GBytes *recorded; /* borrowed: gzip of its file */
} LsCapturedFile;

/* files: LsCapturedFile. roles: JSON, as capture.json has it; NULL: the one rank stands for all. LS_ERROR_IO:
 * there is such a folder, or it cannot be written; nothing is left. */
gboolean ls_captured_trace_write (const char *folder, uint32_t world, const char *gpu, const char *roles,
                                  const GArray *files, GError **error);

/* Whether the folder is one. */
bool ls_captured_trace_is (const char *folder);

/* The folder as a trace; dp as of ls_trace_load(). NULL and diagnostics, LS_ERROR_INPUT: what is wrong, or
 * what a trace cannot say, such as ranks that send to some that are no neighbours. */
LsTrace *ls_captured_trace_load (const char *folder, uint32_t dp, LsDiagList *diags);
/* The same of files in memory: `load` gives each; NULL and diagnostics. name stands for the folder. */
typedef LsJsonDoc *LsCapturedLoad (const char *file, gconstpointer data, LsDiagList *diags);
LsTrace *ls_captured_trace_parse (const char *name, const LsJsonDoc *manifest, LsCapturedLoad *load,
                                  gconstpointer data, uint32_t dp, LsDiagList *diags);

#endif
