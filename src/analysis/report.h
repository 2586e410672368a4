/* analysis/report.h — every number of a run's result, computed from its timeline; what a log says of such a
 * step. */
#ifndef LS_ANALYSIS_REPORT_H
#define LS_ANALYSIS_REPORT_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "cluster/cluster.h"
#include "compute/cost.h"
#include "exec/memory/memory.h"
#include "exec/replay/timeline.h"
#include "model/model.h"
#include "strategy/strategy.h"

/* --- memory that is to stay free: what takes it is in no category of what is simulated ----------- */

/* capacity = HBM - what the accelerator's file reserves for the CUDA context
 *     needed + headroom <= capacity: it fits and leaves the headroom */

typedef struct {
  char *what, *source; /* owned */
  uint64_t bytes;
} LsHeadroomPart;

typedef struct {
  uint64_t bytes;
  bool is_asked; /* the user wants it left (--headroom, --for): what does not leave it, does not fit */
  char *program; /* whose it is; NULL: nobody's */
  GArray *parts; /* LsHeadroomPart; NULL: none  */
} LsHeadroom;

void ls_headroom_clear (LsHeadroom *h); /* NULL allowed */
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (LsHeadroom, ls_headroom_clear)

/* Whether it is left. */
bool ls_headroom_is_left (const LsHeadroom *h, uint64_t needed_bytes, uint64_t capacity_bytes);

/* "6.60 GiB for Megatron-LM: allocator 4.80, NCCL 1.00, CUDA context 0.80": newly allocated. */
char *ls_headroom_text (const LsHeadroom *h);

/* --- every number of a run's result, computed from its timeline ---------------------------------- */

/* Where the time of a rank went; the keys of breakdown_s (src/manual/formats/result.md), in this order. */
typedef enum {
  LS_PART_FORWARD,
  LS_PART_BACKWARD,
  LS_PART_RECOMPUTE,
  LS_PART_OPTIMIZER,
  LS_PART_SLOWDOWN,
  LS_PART_EXPOSED_TP,
  LS_PART_EXPOSED_DP,
  LS_PART_EXPOSED_PP,
  LS_PART_EXPOSED_CP,
  LS_PART_EXPOSED_EP,
  LS_PART_EXPOSED_COPY,
  LS_PART_BUBBLE,
  LS_PART_SKEW,
  LS_PART_HOST,
  LS_PART_OTHER,
  LS_N_PARTS
} LsPart;

extern const char *const ls_part_names[LS_N_PARTS]; /* by value: "exposed_tp" */

/* Why the pipeline had nothing, see analysis/idle.c. */
typedef enum {
  LS_BUBBLE_WARMUP,
  LS_BUBBLE_STEADY,
  LS_BUBBLE_IMBALANCE,
  LS_BUBBLE_DRAIN,
  LS_BUBBLE_OPTIMIZER_SYNC,
  LS_N_BUBBLES
} LsBubble;

/* Picoseconds per part within the window: of a rank, which sum to window_end - window_start exactly; of all
 * ranks, weighted by multiplicity, and the bubble among them by its reason, which sums to it exactly. */
void ls_breakdown_rank (const LsTimeline *t, uint32_t rank, LsTime ret_rank[LS_N_PARTS]);
void ls_breakdown (const LsTimeline *t, LsTime ret_sum[LS_N_PARTS], LsTime ret_bubbles[LS_N_BUBBLES]);

typedef struct {
  char *name;
  double utilisation; /* of the step, 0..1 */
  double bytes;
} LsLinkUse;

/* Links whose names differ in numbers only and that carry something: "leaf*>spines", with a
 * star for each number that is not the same in all. */
typedef struct {
  char *name;
  guint n;
  double mean_utilisation, max_utilisation;
  double bytes; /* of all */
} LsLinkGroup;

/* The same job under another fidelity of the network (`run --network all`). */
typedef struct {
  const char *name; /* static: "flow", "alphabeta", "step" */
  char *refused;    /* why it was not simulated; NULL: it was, and this holds: */
  double step_time_s;
  double breakdown_s[LS_N_PARTS];
} LsNetworkTime;

/* What PyTorch's allocator does at the limit in a step, on the rank with the most retries
 * (exec/memory/retries.h). */
typedef struct {
  bool is_known;                        /* it was looked at: the program uses it, and enough is in use */
  uint64_t n;                           /* num_alloc_retries a step            */
  uint64_t freed_bytes, taken_bytes;    /* of segments, a step        */
  uint64_t reserved_bytes, limit_bytes; /* segments at most, and what they may take */
  double lost_s;         /* the step without retries took so much less; 0: nothing was charged */
  bool is_out_of_memory; /* what a retry gives back is too little: nothing is charged */
  bool is_refused;       /* what they cost could not be simulated: nothing is charged */
} LsRetriesReport;

typedef struct {
  double step_time_s, first_step_s;
  double tokens_per_s;                 /* NAN: not known */
  double mfu, hfu;                     /* of attention the pairs that a causal mask leaves; the same */
  double mfu_all_pairs, hfu_all_pairs; /* of attention all pairs, as Megatron-LM counts; the same */
  double flops_per_gpu;                /* model FLOP/s of one, counted as for mfu_all_pairs; the same */
  double tokens_per_s_per_gpu;         /* the same       */
  uint64_t n_adapter_params;           /* beside weights that do not learn; 0: all learn */
  uint64_t n_params, n_active_params;  /* of the model, and those that a token passes; 0: not known */
  const char *chip;                    /* static: what ranks run on, "GPU" or "chip" */
  uint32_t n_ranks, n_classes, n_steps;
  uint64_t n_op_instances;       /* of one step */
  uint64_t n_segments, n_coarse; /* segments that were simulated; of these, in one piece */
  double bubble_frac;
  double breakdown_s[LS_N_PARTS]; /* mean over ranks */
  double bubbles_s[LS_N_BUBBLES]; /* the same        */
  /* memory of the fullest rank */
  uint32_t peak_rank;
  uint64_t peak_bytes, capacity_bytes;
  uint64_t needed_bytes;  /* the peak, or what the caching allocator makes of it */
  uint64_t context_bytes; /* of the CUDA context: not in the capacity            */
  bool fits;              /* and leaves the headroom that was asked for */
  LsHeadroom headroom;
  LsRetriesReport retries;
  uint64_t by_category[LS_N_MEM]; /* each category's own maximum over the step */
  uint64_t at_peak[LS_N_MEM];
  guint n_links; /* the 32 busiest, most used first */
  LsLinkUse *links;
  guint n_link_groups; /* the same */
  LsLinkGroup *link_groups;
  guint n_networks; /* 0: only one was asked for */
  LsNetworkTime *networks;
  /* share of kernel time by source of the estimate, of it extrapolated, and of that of no known kind */
  double share_measured, share_fitted, share_roofline, share_extrapolated, share_unknown;
  uint64_t digest;
} LsReport;

/* With m NULL (a trace that does not say what is trained) s is not looked at, and
 * tokens and utilisation are NAN. HFU adds what was recomputed. peak: dense peak of the strategy's dtype.
 * cost_share: as exec counted them (LS_N_COST_SHARES). Free with ls_report_clear(). */
void ls_report_init (LsReport *r, const LsTimeline *t, const LsMemory *memory, const LsModel *m,
                     const LsStrategy *s, const LsCluster *c, const double cost_share[LS_N_COST_SHARES]);
void ls_report_clear (LsReport *r);

/* Model FLOPs of a step (no recomputation; of attention what a causal mask leaves, or all pairs) / dense peak
 * of the strategy's dtype. s resolved; plan: whose GPUs; NULL: the mean of the cluster's for each. */
double ls_mfu (const LsModel *m, const LsStrategy *s, const LsCluster *c, const LsPlan *plan,
               uint32_t n_ranks, double step_s, bool is_causal);

/* The name of a link, such as "node3/gpu5>nvswitch", with a star for each number. Newly allocated. */
char *ls_link_pattern (const char *name);
/* Two names of one pattern; where numbers differ, or the first has a star already, a star. Likewise. */
char *ls_link_merge (const char *own, const char *other);

/* All links that carry something, most used first; how it fills links and link_groups. */
void ls_link_use_report (LsReport *r, const LsTimeline *t, const LsCluster *c);

/* --- what a log says of a step that was run, next to what is predicted ------------------------------- */

/* Whether its numbers agree with each other and with this job, and where not, what would explain it.
 *
 *     FLOPs of a step that the log counts = its TFLOP/s of a GPU * GPUs * its step time
 *     tokens of a step                    = its tokens/s * its step time
 *
 * Programs count FLOPs in different ways; those that are known are tried, and the one that fits is named.
 * Nothing here changes the prediction. */

#define LS_MEASURED_AGREES 0.02 /* logged numbers are rounded to two or three digits */

/* 0: the log does not say. */
typedef struct {
  double step_s;
  double flops_per_gpu; /* FLOP/s of one, as logged                   */
  double tokens_per_s;  /* of all GPUs, unless:                       */
  double tokens_per_s_per_gpu;
  double memory_bytes;   /* allocated: the peak of the fullest rank    */
  double reserved_bytes; /* by PyTorch's allocator: the same           */
  guint n_lines;         /* of a log, that time a step                 */
  guint n_steady;        /* those of them whose median step_s is       */
  bool is_published;     /* asked for as such: the word before it      */
  char *source;          /* who says so; NULL: not said                */
} LsMeasured;

void ls_measured_clear (LsMeasured *m);                             /* NULL allowed */
void ls_measured_copy (LsMeasured *dest, const LsMeasured *source); /* deep; what dest held is overwritten */

/* Sentences (char *) about the numbers beside the time, none if there are none or what is trained is not
 * known (model NULL). s resolved. Free with g_ptr_array_unref(). */
GPtrArray *ls_measured_explain (const LsMeasured *m, const LsReport *r, const LsModel *model,
                                const LsStrategy *s);
/* Those of the numbers that no rounding and no known way to count explains, with what this job has of them,
 * a clause each: "234 TFLOP/s of a GPU where this job has 487". As above. */
GPtrArray *ls_measured_contradictions (const LsMeasured *m, const LsReport *r, const LsModel *model,
                                       const LsStrategy *s);

#endif
