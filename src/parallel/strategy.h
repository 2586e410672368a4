/* parallel/strategy.h — how a model is spread over ranks, and the knobs of it.
 *
 * A strategy is read (file or flags, one field table in io/), then resolved
 * against a model and a cluster: defaults filled in, degrees derived, every
 * illegal combination refused with its rule. */
#ifndef LS_PARALLEL_STRATEGY_H
#define LS_PARALLEL_STRATEGY_H

#include <glib.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/dtype.h"
#include "model/model.h"

typedef enum {
  LS_DP_AUTO,
  LS_DP_NONE,
  LS_DP_PS,
  LS_DP_DDP,
  LS_DP_MEGATRON,
  LS_DP_FSDP1,
  LS_DP_FSDP2,
  LS_DP_DEEPSPEED,
  LS_DP_XLA_FSDP,
} LsDpKind;

typedef enum { LS_P2P_AUTO, LS_P2P_NONE, LS_P2P_BATCHED, LS_P2P_SCATTER_GATHER, LS_P2P_OVERLAPPED } LsP2p;
typedef enum { LS_RECOMPUTE_NONE, LS_RECOMPUTE_SELECTIVE, LS_RECOMPUTE_FULL } LsRecompute;

#define LS_ATTENTION_AUTO (-1)
#define LS_DTYPE_AUTO (-1)
#define LS_FLAG_AUTO (-1)
#define LS_MAX_CHUNKS 4096

typedef struct {
  char *name, *source;
  uint32_t gpus; /* 0: the whole cluster                                       */
  uint32_t tp, pp, cp, ep, vpp;
  uint32_t dp;   /* 0: gpus / (tp pp cp)                                       */
  bool sp;
  uint32_t zero_stage; /* 0 to 3                                               */
  uint32_t zero_group; /* N@group; 0: the whole dp group                       */
  int dp_kind;         /* LsDpKind                                             */
  bool dp_overlap, tp_overlap;
  bool tp_async; /* Megatron-LM's asynchronous backward of column-parallel layers,
                    since late 2021; false: its collectives block             */
  int p2p;             /* LsP2p                                                */
  char *schedule;      /* NULL: 1f1b, or interleaved-1f1b if vpp > 1           */
  uint32_t micro_batch;
  uint32_t global_batch; /* sequences; 0: dp * micro_batch * pp                */
  uint32_t seq;          /* 0: the model's                                     */
  int recompute;         /* LsRecompute                                        */
  int attention;         /* LsAttention or LS_ATTENTION_AUTO: the model's      */
  int dtype;             /* LsDtype                                            */
  int grad_dtype;        /* LsDtype or LS_DTYPE_AUTO                           */
  bool grad_norm;        /* global gradient-norm all-reduce before the optimizer */
  uint64_t bucket_bytes; /* ddp: bucket cap; 0: torch's 25 MiB (first 1 MiB)   */
  uint64_t bucket_params;/* megatron: 0: max (40e6, 1e6 dp)                    */
  uint32_t *layers_per_chunk; /* [n_layers_per_chunk] in model order, or NULL  */
  uint32_t n_layers_per_chunk;
} LsStrategy;

void ls_strategy_init (LsStrategy *s); /* the defaults of the command line */
void ls_strategy_clear (LsStrategy *s); /* NULL allowed; leaves the defaults */
/* Deep; what dest held is overwritten, not freed. */
void ls_strategy_copy (LsStrategy *dest, const LsStrategy *source);

/* Fill in what is derived, in place, for a model on a cluster of n_gpus with
 * gpus_per_node (a tp group may span nodes: that is slow, not illegal). Knobs
 * without effect are normalised: with dp 1 there is no dp_kind, zero or dp_overlap,
 * with tp 1 no sp or tp_overlap, with pp 1 no p2p, and the schedule, unless it is
 * given, is "none". Resolving again changes nothing.
 *
 * FALSE, with a diagnostic for every broken rule, if any is: LS_ERROR_CONFLICT for
 * an illegal combination, LS_ERROR_UNSUPPORTED for a legal one that has no mechanism
 * yet. s may then be filled in partly. */
gboolean ls_strategy_resolve (LsStrategy *s, const LsModel *model, uint32_t n_gpus,
                              uint32_t gpus_per_node, LsDiagList *diags);

const char *ls_dp_kind_name (int kind);
const char *ls_p2p_name (int p2p);
const char *ls_recompute_name (int recompute);

#endif
