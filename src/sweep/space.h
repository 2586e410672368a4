/* sweep/space.h — the configurations that a sweep looks at: a list of values for each axis,
 * and their product in a fixed order (the last axis turns fastest).
 *
 * Every knob may be an axis (data/jobs/read_ranges.h). Those of which nothing is listed have the value of
 * the job.
 *
 * What has no effect is enumerated once: with tp 1 only the first value of sp and tp_overlap, with other than
 * selective recomputation the first of recompute_parts, with dp * cp = 1 the first of zero and dp_kind, with
 * pp 1 the first schedule (there is none then), with pp above 1 FSDP2 as zero 3 (it is 2 then, unless
 * --reshard-after-forward says otherwise), where a schedule fixes the chunks of a rank, the first vpp,
 * selective recomputation of the core of an attention that keeps no scores (flash) as none, and of a knob
 * that has no effect in a configuration (p2p with pp 1) the first value.
 *
 * Default ranges: tp divides the GPUs of a node; pp divides the GPUs and is at most the number of layers + 2;
 * vpp 1, and wherever chunks come out even (strategy/shard.h), for a pp with which they never do powers of
 * two that leave two layers to a chunk; ep divides the number of experts and the GPUs; micro-batch divides
 * the global batch, up to LS_SPACE_MAX_MICRO_BATCH; sp 0, 1; zero 0 to 3 by Megatron-LM (0, 1), DeepSpeed and
 * FSDP2 (2, 3), on TPUs by XLA's FSDP; schedules 1f1b, interleaved-1f1b, zb-h1; recompute none, selective,
 * full, selective of the parts that its program has a range of (the textbook: auto, and core, norm and mlp
 * together) as far as the model has them; tp-overlap 0, 1; layers_per_chunk as the file of the job lists it,
 * and "auto" (sweep.c). cp is 1 for short sequences; of those of LS_SPACE_LONG_SEQUENCE tokens or more, and
 * where attention is half of all FLOPs, it divides the GPUs and leaves LS_SPACE_TOKENS_OF_RANK tokens or more
 * to a rank. With fewer the keys and values that a ring sends on take longer than the attention that hides
 * them: n tokens of a rank send 4 n k bytes over B bytes/s during 4 n^2 h / 2 FLOPs at F, k and h the widths
 * of keys and of heads, so n >= 2 k F / (h B), with k = h / 4, 600 TFLOP/s and 50 GB/s some 6,000. Degrees
 * and micro-batches ascend:
 * configurations of one number of GPUs and global batch
 * come in the same order whatever else is asked for. A sweep for a program has its ranges in their place
 * (data/jobs/read_software.h). */
#ifndef LS_SWEEP_SPACE_H
#define LS_SWEEP_SPACE_H

#include "base/diag.h"
#include "data/jobs/read_ranges.h"
#include "strategy/strategy.h"

#define LS_SPACE_MAX_MICRO_BATCH 64
#define LS_SPACE_LONG_SEQUENCE   16384
#define LS_SPACE_TOKENS_OF_RANK  4096

typedef struct {
  GArray *values[LS_MAX_SPACE_AXES];   /* uint32_t, no value twice; of axes of texts: places in texts */
  GPtrArray *texts[LS_MAX_SPACE_AXES]; /* char *, owned; of SCHEDULE and the axes behind LS_N_SPACE_AXES */
  LsSpaceAxis layers_axis, order_axis, parts_axis, placement_axis; /* of layers_per_chunk and so on */
  bool is_given[LS_MAX_SPACE_AXES]; /* by who asks, not by the program or by itself */
  bool has_usual_vpp;               /* the axis has its default range                           */
  uint64_t size;                    /* product of the lengths, once filled                      */
  uint32_t n_varied;                /* axes with several values, once filled                    */
  uint16_t varied[LS_MAX_SPACE_AXES];
} LsSpace;

/* A configuration: on each axis a place in its list. */
typedef struct {
  uint32_t at[LS_MAX_SPACE_AXES];
} LsPoint;

void ls_space_init (LsSpace *space);
void ls_space_clear (LsSpace *space); /* NULL allowed */

/* "1,2,4", or of whole numbers the doublings "1..4": the values of an axis; "core/core,norm" where a value
 * has commas of its own, but for those in brackets. Diagnostics are LS_ERROR_USAGE. */
gboolean ls_space_set (LsSpace *space, LsSpaceAxis axis, const char *text, LsDiagList *diags);
/* Nothing is listed of it any more. */
void ls_space_unset (LsSpace *space, LsSpaceAxis axis);
/* Whether the text has more than one value of that axis. */
bool ls_space_is_list (LsSpaceAxis axis, const char *text);

/* What stands between two values of an axis: "," or, where a value has commas itself, "/". */
const char *ls_space_separator (LsSpaceAxis axis);
/* The values of all axes that the file has. */
void ls_space_set_ranges (LsSpace *space, const LsRanges *ranges);
/* The same of an axis, if it is empty. */
void ls_space_add_range (LsSpace *space, const LsRanges *ranges, LsSpaceAxis axis);

/* Default ranges for axes that were not set; gpus and global_batch of `base` are those of the
 * axes unless these were set. gpus_per_node: of the cluster. LS_ERROR_LIMIT: more than
 * 2^40 configurations. LS_ERROR_USAGE: no number of GPUs. */
gboolean ls_space_fill (LsSpace *space, const LsModel *m, const LsStrategy *base, uint32_t gpus_per_node,
                        bool runs_xla, GError **error);

/* How many values an axis has; 1 where nothing is listed. */
static inline uint32_t
ls_space_n (const LsSpace *space, LsSpaceAxis axis)
{
  return MAX (1, space->values[axis]->len);
}

/* Whether context parallelism of the model is modelled. */
bool ls_space_may_cut_sequences (const LsModel *m);

/* The text of a value of an axis of texts, borrowed; NULL: nothing is listed. */
const char *ls_space_text (const LsSpace *space, LsSpaceAxis axis, uint32_t at);
/* A value as one would type it. */
char *ls_space_value_text (const LsSpace *space, LsSpaceAxis axis, uint32_t at);

/* Sets what a value of an axis that is not of texts stands for. */
void ls_space_set_value (LsStrategy *s, LsSpaceAxis axis, uint32_t value);

/* Number `index` of the product. */
void ls_space_point (const LsSpace *space, uint64_t index, LsPoint *ret_point);
/* The next one; false: that was the last. */
bool ls_space_next (const LsSpace *space, LsPoint *point);

static inline uint32_t
ls_space_value (const LsSpace *space, const LsPoint *p, LsSpaceAxis axis)
{
  return g_array_index (space->values[axis], uint32_t, p->at[axis]);
}

/* Whether all ranks are those of one copy of the model, with whole sequences: gradients are of one rank. */
static inline bool
ls_space_is_alone (const LsSpace *space, const LsPoint *p)
{
  uint64_t tp = ls_space_value (space, p, LS_SPACE_TP), pp = ls_space_value (space, p, LS_SPACE_PP);
  return tp * pp >= ls_space_value (space, p, LS_SPACE_GPUS);
}

/* False: another configuration is the same, or the default range of vpp lacks it. */
bool ls_space_is_distinct (const LsSpace *space, const LsModel *m, const LsStrategy *base, const LsPoint *p);

/* Of the resolved s, which is p: with flash attention selective recomputation is of norms and activations,
 * unless the axis of the parts or base says of what. */
void ls_space_choose_parts (const LsSpace *space, const LsPoint *p, const LsStrategy *base, LsStrategy *s);
/* False: another configuration is the same, as can be seen of s, which is p resolved and balanced. Knobs that
 * have no effect apart. */
bool ls_space_has_effect (const LsSpace *space, const LsPoint *p, const LsStrategy *s);

/* Numbers points by the axes behind LS_N_SPACE_AXES: equal ones agree in all of these. */
uint64_t ls_space_variant (const LsSpace *space, const LsPoint *p);

/* True: ls_strategy_resolve() would refuse it, by one of its rules of divisibility that cost
 * nothing to look at. False says nothing. */
bool ls_space_is_refused (const LsSpace *space, const LsModel *m, const LsStrategy *base, const LsPoint *p);

/* base with the values of the axes, not resolved. Deep; clear it. */
void ls_space_strategy (const LsSpace *space, const LsStrategy *base, const LsPoint *p, LsStrategy *ret_s);

#endif
