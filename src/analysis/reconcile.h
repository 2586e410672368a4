/* analysis/reconcile.h — a profiled step of one rank next to the predicted one.
 *
 * Problem. A step time that is off by a tenth does not say why. Laid beside each other op by
 * op it does: which kernels, which collectives, which waiting.
 *
 * Sides. A step begins with its first op on the GPU and lasts to that of the next step. Its
 * ops are in order of their start; what runs on beyond the end of the step (a
 * reduction that the next forward hides) counts at the front of it, as that of
 * the step before did: steps repeat, and so the ops of one fill a circle.
 *
 * Matching (reconcile.c). Each class (op_class.h) by itself. As many on both sides:
 * first to first, in order. Else the cheapest alignment of the two sequences: a pair costs
 *
 *     | ln (predicted / measured) - shift |
 *
 * where shift is ln of the ratio of the means, ln of that of the medians (a large op that is missing moves
 * the former), or 0, whichever makes the cheapest alignment; for communication of known size | ln (predicted
 * / measured bytes) | more, up to 0.1 (padding, ends of buckets), beyond which ops never pair; leaving an op
 * alone costs 0.7 = ln 2. So a class that is twice too slow throughout still matches, and an op that is
 * missing on one side leaves a gap near its place. Sequences longer than some thousand ops
 * are aligned within a band around their diagonal.
 *
 * Where the step went (reconcile.c). Each instant belongs to one thing: to a kernel if one
 * runs, else to communication, else to a copy, else it is idle; to a matched op before an
 * unmatched one. An idle stretch ends when an op starts; up to the moment in which the host
 * launched that op it is the host's, the rest is the device's (dependencies, launch latency).
 * Times are whole picoseconds:
 *
 *     matched + unmatched + idle = step      to the picosecond
 *
 * Worked example. A step of 10 us: a GEMM 0 to 4 us, an all-reduce 3 to 7 us, a norm 8 to 10
 * us that was launched at 7.5 us and is not predicted. Matched 4 + 3, unmatched 2, idle 1,
 * of which the host 0.5.
 *
 * Deviations. A profiled collective includes waiting for its partners, as the predicted one
 * does. Kernels are profiled with the profiler's own cost on the host. */
#ifndef LS_ANALYSIS_RECONCILE_H
#define LS_ANALYSIS_RECONCILE_H

#include "analysis/op_class.h"
#include "exec/replay/timeline.h"
#include "strategy/strategy.h"

#define LS_UNMATCHED UINT32_MAX

typedef struct {
  LsTime start, end; /* from the first op of the step; start >= 0, end > start   */
  LsTime launch;     /* by the host, maybe negative; LS_TIME_NEVER: not known    */
  uint64_t bytes;    /* communication: the whole array; 0: not known             */
  const char *name;  /* borrowed                                                 */
  uint32_t match;    /* index on the other side, or LS_UNMATCHED; set by matching */
  uint8_t class;     /* LsOpClass */
  bool in_graph;     /* its launch is that of a CUDA graph; of a prediction false */
} LsStepOp;

typedef struct {
  LsTime length;
  GArray *ops; /* LsStepOp, by start */
} LsStepSide;

typedef enum { LS_TIER_COMPUTE, LS_TIER_COMMUNICATION, LS_TIER_COPY, LS_N_TIERS } LsTier;

typedef struct {
  LsTime step;
  LsTime matched[LS_N_TIERS], unmatched[LS_N_TIERS];
  LsTime idle_host, idle_device;
} LsStepTime;

/* All ops of a class; of a size too, in LsReconciled.collectives. */
typedef struct {
  uint8_t class;
  uint64_t bytes; /* 0: not known */
  uint32_t n_measured, n_predicted, n_matched;
  LsTime measured, predicted;                 /* sums                   */
  LsTime matched_measured, matched_predicted; /* of those that matched  */
} LsReconcileRow;

typedef struct {
  LsStepTime measured, predicted;
  GArray *classes;     /* LsReconcileRow, in the order of LsOpClass, those that occur       */
  GArray *collectives; /* LsReconcileRow by class, then bytes, those that occur             */
  GArray *unmatched;   /* LsReconcileName: what was measured and not predicted, most first  */
  GPtrArray *words;    /* char *: what looks wrong, the largest first                       */
} LsReconciled;

/* Kernels of one name. */
typedef struct {
  const char *name; /* borrowed from the measured side */
  uint8_t class;
  uint32_t n;
  LsTime time;
} LsReconcileName;

LsStepSide *ls_step_side_new (void);
void ls_step_side_free (LsStepSide *side); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsStepSide, ls_step_side_free)
/* Puts the ops in order, the first at 0; drops those that take no time. */
void ls_step_side_finish (LsStepSide *side, LsTime start);

/* The reported step of a rank. NULL, LS_ERROR_CONFLICT: no such rank, or it ran nothing.
 * Names are borrowed from the timeline's plan. */
LsStepSide *ls_step_side_of_timeline (const LsTimeline *t, uint32_t rank, GError **error);

/* Sets `match` on both sides. */
void ls_reconcile_match (LsStepSide *measured, LsStepSide *predicted);
/* Where the time of one side went, by its matches. */
LsStepTime ls_reconcile_time (const LsStepSide *side);

/* All of it. The sides are matched on the way and must outlive the result. */
LsReconciled *ls_reconcile (LsStepSide *measured, LsStepSide *predicted);
void ls_reconciled_free (LsReconciled *r); /* NULL allowed */
/* Why the measured step is plainly of another job: most of the time of its kernels
 * matches nothing, or it is more than three times that of those predicted, or less than a third. NULL: it is
 * not. Newly allocated. */
char *ls_reconciled_other (const LsReconciled *r);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsReconciled, ls_reconciled_free)

/* --- what a profiled step shows of the software that ran it ------------------------------------------ */

/* What issuing a kernel costs the host. Where the GPU has run out of work, the host is the limit, and its
 * launches come as fast as it can: the time from a launch to the one before it, over those launches of
 * kernels at which all kernels before had ended, outside graphs, not behind a collective's launch nor behind
 * one that the trace lacks. The median of these: waits for data and blocking calls are longer, and few. Under
 * 6 of them there is no interval of 95 % for a median (1 - 2 / 2^n), and none is told. The profiler's own
 * cost on the host is part of it.
 *
 * CUDA graphs. All kernels of a graph have one launch. A graph that holds attention forwards and backwards is
 * of the step; graphs that hold attention once each are of a layer each way; others are not told.
 *
 * Flash attention by the names of its kernels: FlashAttention-2's flash_fwd_kernel, FlashAttention-3's
 * FlashAttnFwd (Dao-AILab/flash-attention, csrc and hopper), FlashAttention's fmha_fwd_loop_kernel (its
 * release 0.2 to 1.0), cuDNN's cudnn_generated_fort_native_sdpa (profiles of PyTorch 2.11 on Hopper). */

typedef struct {
  LsTime host_launch;         /* -1: too few launches tell                  */
  guint n_launches;           /* that tell                                  */
  guint n_graphs;             /* launched                                   */
  int cuda_graphs;            /* LsCudaGraphs; -1: not told                 */
  int attention;              /* LsAttentionKernel; -1: not told            */
  const char *attention_name; /* of a kernel of it, borrowed; NULL: none ran */
} LsSeenSoftware;

LsSeenSoftware ls_software_seen (const LsStepSide *side);

#endif
