/* strategy/strategy.h — how a model is spread over ranks, and the knobs of it.
 *
 * A strategy is read (file or flags, one field table in io/), then resolved
 * against a model and a cluster: defaults filled in, degrees derived, every
 * illegal combination refused with its rule. */
#ifndef LS_STRATEGY_STRATEGY_H
#define LS_STRATEGY_STRATEGY_H

#include <glib.h>
#include <stdint.h>

#include <lockstep/units.h>

#include "base/diag.h"
#include "base/dtype.h"
#include "base/enum_name.h"
#include "cluster/allocation.h"
#include "model/documents.h"
#include "model/kernel.h"
#include "model/model.h"
#include "model/optimizer_kind.h"
#include "model/recipe.h"
#include "plan/plan.h"
#include "plan/mesh.h"
#include "schedules/sched.h"

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
  LS_N_DP_KINDS
} LsDpKind;

/* Defaults that a program has on some accelerators only. */
typedef struct {
  char *architectures; /* "hopper,blackwell": as data/jobs/read_software.h names them */
  char **settings;     /* "key=value", as of g_environ_getenv() */
  char *source;
} LsArchitectureDefaults;

/* What is launched as one CUDA graph: the kernels and collectives of a layer, each way, or of the whole step
 * up to the optimizer. What waits for the device, or feeds it, stays outside. */
typedef enum { LS_GRAPHS_NONE, LS_GRAPHS_LAYER, LS_GRAPHS_STEP } LsCudaGraphs;

typedef enum {
  LS_P2P_AUTO,
  LS_P2P_NONE,
  LS_P2P_BATCHED,
  LS_P2P_SCATTER_GATHER,
  LS_P2P_OVERLAPPED,
  LS_P2P_DEEPSPEED
} LsP2p;
typedef enum { LS_RECOMPUTE_NONE, LS_RECOMPUTE_SELECTIVE, LS_RECOMPUTE_FULL } LsRecompute;

/* What selective recomputation drops: a set of these bits. */
typedef enum {
  LS_RECOMPUTE_CORE = 1,
  LS_RECOMPUTE_NORM = 2,
  LS_RECOMPUTE_ACTIVATION = 4,
  LS_RECOMPUTE_OP = 8,                /* by operators: keeps every other product, and attention */
  LS_RECOMPUTE_BUT_QKV = 16,          /* all but the products of queries, keys and values ...   */
  LS_RECOMPUTE_BUT_ATTENTION = 32,    /* ... but flash attention ...                            */
  LS_RECOMPUTE_MLA_UP = 64,           /* queries, keys and values of latent attention           */
  LS_RECOMPUTE_MLP = 128,             /* an MLP without experts as a whole                      */
  LS_RECOMPUTE_MOE = 256,             /* router, experts and exchanges                          */
  LS_RECOMPUTE_SHARED = 512,          /* shared experts                                         */
  LS_RECOMPUTE_BUT_PROJECTION = 1024, /* ... but the product behind attention ...               */
  LS_RECOMPUTE_BUT_UP = 2048,         /* ... but those of an MLP before its activation ...      */
  LS_RECOMPUTE_BUT_DOWN = 4096,       /* ... but the one behind it                              */
} LsRecomputePart;

/* JAX's policies by what stays: all products, of attention none; all products, and flash attention. */
#define LS_RECOMPUTE_DOTS                                                                                    \
  (LS_RECOMPUTE_BUT_QKV | LS_RECOMPUTE_BUT_PROJECTION | LS_RECOMPUTE_BUT_UP | LS_RECOMPUTE_BUT_DOWN)
#define LS_RECOMPUTE_DOTS_FLASH (LS_RECOMPUTE_DOTS | LS_RECOMPUTE_BUT_ATTENTION)

/* Those that run a layer again but for what they keep: OP alone, or some of the others. */
#define LS_RECOMPUTE_BY_OPERATORS (LS_RECOMPUTE_OP | LS_RECOMPUTE_DOTS_FLASH)

/* XLA's FSDP, whose layers are a loop: what runs beside compute. */
typedef enum {
  LS_LOOP_OVERLAP_GATHERS,  /* gathers, in their turn                        */
  LS_LOOP_OVERLAP_TURN,     /* reductions, too                               */
  LS_LOOP_OVERLAP_PIPELINED /* gathers from the turn before, reductions into the next */
} LsLoopOverlap;

/* What such a loop copies. */
typedef enum {
  LS_LOOP_COPIES_NONE,
  LS_LOOP_COPIES_KEPT,   /* outputs of products that are kept, into arrays of all layers */
  LS_LOOP_COPIES_WEIGHTS /* these, and weights gathered in the turn before               */
} LsLoopCopies;

/* Full recomputation: UNIFORM keeps the input of every group of recompute_layers layers;
 * BLOCK recomputes the first recompute_layers layers of a chunk, and keeps all of the rest. */
typedef enum { LS_RECOMPUTE_UNIFORM, LS_RECOMPUTE_BLOCK } LsRecomputeMethod;

/* Which micro-batches reduce gradients: the last of a step, each, or the last before a pipeline is flushed.
 * AUTO: each with ZeRO-2 and 3, before each flush with FSDP2 and DDP, else the last. */
typedef enum { LS_GRAD_SYNC_AUTO, LS_GRAD_SYNC_LAST, LS_GRAD_SYNC_EACH, LS_GRAD_SYNC_FLUSH } LsGradSync;
/* Parameter servers: one in each node, which share the parameters, or one for all ranks. */
typedef enum { LS_PS_NODES, LS_PS_ONE } LsPsServers;
/* torch.distributed.fsdp.BackwardPrefetch */
typedef enum { LS_PREFETCH_PRE, LS_PREFETCH_POST, LS_PREFETCH_NONE } LsPrefetch;
/* What hands out memory of the GPU: neither of the others, PyTorch's caching allocator, the same with
 * segments that grow. */
typedef enum {
  LS_CUDA_ALLOCATOR_NONE,
  LS_CUDA_ALLOCATOR_CACHING,
  LS_CUDA_ALLOCATOR_EXPANDABLE
} LsCudaAllocator;
typedef enum { LS_OFFLOAD_NONE, LS_OFFLOAD_OPTIMIZER, LS_OFFLOAD_PARAMETERS } LsOffload;
typedef enum { LS_OFFLOAD_TO_CPU, LS_OFFLOAD_TO_NVME } LsOffloadTo;
/* What runs beside a tensor-parallel collective: a GEMM that does not need it (BULK); besides
 * that, the GEMM that does, cut in tp pieces (RING). */
typedef enum { LS_TP_OVERLAP_BULK, LS_TP_OVERLAP_RING } LsTpOverlap;

/* Which ranks agree on the largest numbers of fp8 tensors (lower_operator.c): those of a stage; of
 * these, those of one copy; none. */
typedef enum { LS_AMAX_STAGE, LS_AMAX_TP, LS_AMAX_NONE } LsAmaxReduction;

/* Layers of chunks that are not listed: even where they come out even, else by what they cost; always by
 * that; by the weights of products, or by modules (lower/balance.h). */
typedef enum {
  LS_LAYER_RULE_AUTO,
  LS_LAYER_RULE_BALANCED,
  LS_LAYER_RULE_WEIGHTS,
  LS_LAYER_RULE_MODULES
} LsLayerRule;

/* How ranks that share an optimizer cut it: each has an equal piece of all elements (AUTO where it steps on
 * each element by itself), or whole tensors, dealt out. */
typedef enum { LS_OPTIMIZER_CUT_AUTO, LS_OPTIMIZER_CUT_ELEMENTS, LS_OPTIMIZER_CUT_TENSORS } LsOptimizerCut;
/* What a product of it is made of where tensor parallelism cuts the matrix: the part of a rank; the whole,
 * gathered, on each rank; parts whose products are summed. */
typedef enum {
  LS_OPTIMIZER_TP_BLOCKWISE,
  LS_OPTIMIZER_TP_DUPLICATED,
  LS_OPTIMIZER_TP_DISTRIBUTED
} LsOptimizerTp;
/* What brings tokens to their experts: an all-to-all of a row for each expert of a token; kernels that send a
 * token once to each node, and there to each GPU (network/coll_dispatch.c): DeepEP's, or HybridEP's. */
typedef enum { LS_DISPATCHER_ALL_TO_ALL, LS_DISPATCHER_DEEPEP, LS_DISPATCHER_HYBRIDEP } LsDispatcher;

/* Documents of packed sequences: each micro-batch has its own, or all have the mean of the step. */
typedef enum { LS_LENGTHS_EACH, LS_LENGTHS_MEAN } LsLengthsDraw;
/* Sequences with more attention come before others, dealt to copies forth and back; or as they were drawn. */
typedef enum { LS_LENGTHS_AS_DRAWN, LS_LENGTHS_SORTED } LsLengthsBalance;

#define LS_ATTENTION_AUTO (-1)
#define LS_DTYPE_AUTO     (-1)
#define LS_FLAG_AUTO      (-1)
#define LS_HOST_AUTO      (-1)
#define LS_ZERO_AUTO      UINT32_MAX
#define LS_RESHARD_AUTO   UINT32_MAX
#define LS_MAX_CHUNKS     4096

/* The program whose steps these are. */
typedef struct {
  char *software;             /* the program whose defaults it began with (strategies/software); NULL: none */
  GPtrArray *by_architecture; /* LsArchitectureDefaults of its program, shared; NULL: none; no knob */
  const char *architecture;   /* of its accelerator: which of them hold; interned; NULL: none; no knob */
  double call_time;           /* of its hosts' CPUs, by which `host` is scaled; 0: it is not; no knob */
  int attention_else;         /* its program's own, which runs where the accelerator lacks that */
} LsProgramUse;

/* Which ranks, layers and micro-batches are where. */
typedef struct {
  char *rank_order;                    /* as ls_rank_order_parse() reads it; NULL: tp-cp-ep-dp-pp */
  char *placement;                     /* as written; NULL: node after node, "block"              */
  LsAllocation *allocation;            /* what that says, shared; NULL without placement          */
  uint32_t *micro_batches_per_replica; /* [n_micro_batches_per_replica] of each dp rank; NULL: as many each */
  uint32_t n_micro_batches_per_replica;
  uint32_t *layers_per_chunk; /* [n_layers_per_chunk] in model order, or NULL: see strategy/shard.h */
  uint32_t n_layers_per_chunk;
  int layer_rule;        /* LsLayerRule: without layers_per_chunk                */
  bool layers_are_found; /* layers_per_chunk was not given, but balanced        */
} LsJobLayout;

/* Data parallelism: who uses which is in lower_dp_X.c. */
typedef struct {
  uint32_t zero_group; /* N@group; 0: the whole dp group                       */
  bool overlap;
  int grad_sync;      /* LsGradSync                                        */
  int gather_overlap; /* megatron: parameters gathered during the next forward; LS_FLAG_AUTO: as dp_overlap */
  uint64_t bucket_bytes;     /* ddp: bucket cap; 0: torch's 25 MiB (first 1 MiB)   */
  bool bucket_view;          /* ddp: gradients are views of buckets, not beside them */
  bool bucket_wait;          /* ddp: compute waits for each bucket's reduction as it is sent */
  uint64_t bucket_params;    /* megatron: 0: max (40e6, 1e6 dp)                    */
  bool grad_check;           /* megatron: the host reads the norm of each bucket before it is reduced */
  int loop_overlap;          /* xla-fsdp: LsLoopOverlap */
  int loop_copies;           /* xla-fsdp: LsLoopCopies  */
  int ps_servers;            /* ps: LsPsServers */
  uint32_t layers_per_unit;  /* fsdp: layers that one unit holds                  */
  bool ends_apart;           /* fsdp2: embedding, and norm with head, are units, not one with the rest */
  bool narrow_shards;        /* fsdp: shards, gradients and moments in 16 bits       */
  bool limit_all_gathers;    /* fsdp1: at most two gathers in flight, by the host */
  int backward_prefetch;     /* fsdp1: LsPrefetch                                 */
  uint32_t forward_prefetch; /* units gathered ahead by an explicit list (fsdp1: 0 or 1); 0: none */
  uint32_t backward_prefetch_units; /* fsdp2: the same; 0: the one that follows, as it does by itself     */
  uint32_t reshard_after_forward;   /* fsdp2: 0 no, 1 yes, N into groups of N; LS_RESHARD_AUTO */
  uint64_t reduce_bucket, allgather_bucket, prefetch_bucket;           /* deepspeed: elements       */
  uint64_t persistence_threshold, max_live_params, max_reuse_distance; /* deepspeed stage 3: elements */
  bool collective_lists;  /* deepspeed stage 3: as of early 2021, see lower_dp_deepspeed3.c */
  bool bucket_all_reduce; /* deepspeed stages 1 and 2: each rank gets the sum of the whole bucket */
  bool bucket_late;       /* deepspeed stages 1 and 2: allocated with the first gradient of a backward */
  uint32_t hook_calls;    /* deepspeed stage 3: of functions of Python, for each visit of a weight's module */
  uint32_t gather_calls;  /* and for each weight that is gathered                                          */
} LsDataParallel;

/* Tensor, context and pipeline parallelism. */
typedef struct {
  bool tp_overlap;
  bool tp_async;           /* Megatron-LM's asynchronous backward of column-parallel layers,
                    since late 2021; false: its collectives block             */
  int tp_overlap_kind;     /* LsTpOverlap, with tp_overlap                         */
  bool tp_overlap_margin;  /* GEMMs beside collectives that stay whole leave these their SMs */
  bool sp_save_gathered;   /* keep the gathered input of column-parallel layers for the backward */
  int cp_kind;             /* LsCpKind                                             */
  int cp_steps;            /* LsCpSteps                                            */
  bool cp_balance;         /* ring, all-gather: each rank has an early and a late part of a sequence */
  int p2p;                 /* LsP2p                                                */
  bool p2p_warmup_flush;   /* overlapped p2p in warm-up and cool-down too         */
  uint32_t pipeline_batch; /* sequences of a copy between two flushes; 0: of a step */
  int ep_overlap;  /* a forward and a backward side by side, so that the exchange of tokens of one runs
                            beside kernels of the other (lower/layers/lower_layers.h); LS_FLAG_AUTO */
  int delay_wgrad; /* with it: weight gradients behind what other ranks wait for; LS_FLAG_AUTO */
  /* Thread blocks of NCCL's kernels at most, of the communicators of each; 0: as many as it has */
  uint32_t tp_max_ctas, cp_max_ctas, ep_max_ctas, dp_max_ctas, pp_max_ctas;
} LsModelParallel;

/* Experts, and what brings tokens to them. */
typedef struct {
  uint32_t etp;          /* tensor-parallel degree of experts; 0: tp             */
  double capacity;       /* tokens of an expert over the mean, dropped beyond; 0: none are dropped */
  int padding;           /* LsExpertPadding                                    */
  char *load;            /* how tokens fall on experts; NULL: evenly             */
  int dispatcher;        /* LsDispatcher                                       */
  uint32_t dispatch_sms; /* deepep, hybridep: SMs of each of its calls         */
  bool dispatch_fp8;     /* deepep: what goes to experts goes in fp8           */
  bool dispatch_margin;  /* deepep, hybridep: GEMMs leave these SMs free       */
  bool grouped_gemm;     /* products of a rank's experts are one kernel        */
  bool shared_overlap;   /* shared experts beside the exchange (lower/layers/lower_experts.c) */
} LsExpertParallel;

/* Documents that are packed into sequences. */
typedef struct {
  char *lengths;    /* of documents, as written; NULL: each fills a sequence    */
  LsLengths *drawn; /* what that says, shared; NULL without lengths */
  uint32_t seed;
  int draw, balance; /* LsLengthsDraw, LsLengthsBalance               */
} LsDocumentLengths;

/* What is kept, made again, or lives elsewhere. */
typedef struct {
  uint32_t recompute_parts;   /* selective: set of LsRecomputePart; 0: CORE */
  int recompute_method;       /* full: LsRecomputeMethod                         */
  uint32_t recompute_layers;  /* full: of a group, or of a chunk; 0: 1, or all   */
  bool recompute_early_stop;  /* full: nothing runs again behind what the backward needs last */
  bool recompute_flash;       /* selective, core: flash attention runs again too */
  uint32_t *recompute_stages; /* full, block: recomputed layers of each pipeline rank, or NULL */
  uint32_t n_recompute_stages;
  bool partition_activations; /* kept inputs are cut over tp                    */
  bool offload_activations;   /* kept activations go to the memory of the host  */
  uint32_t offload_layers;    /* those of a chunk's first ones; 0: all but the last */
  int offload, offload_to;    /* deepspeed: LsOffload, LsOffloadTo                 */
  int cuda_allocator;         /* LsCudaAllocator                                */
} LsMemoryUse;

/* How the host issues a step. */
typedef struct {
  /* a step is one executable, as XLA makes it: issuing its ops costs the host nothing; no knob */
  bool is_compiled;
  /* each forward fetches its micro-batch and waits for the device in it, as Megatron-LM until late 2023 */
  bool batch_sync;
  bool batch_ends;              /* with batch_sync: the first and the last stage only     */
  bool loss_sync;               /* the host waits for the device after each backward, to see its loss */
  uint32_t step_calls;          /* of functions of Python, in a step of the optimizer, for each tensor */
  bool launch_blocking;         /* the host waits for each op that it issues: CUDA_LAUNCH_BLOCKING=1 */
  int cuda_graphs;              /* LsCudaGraphs                                         */
  char *nccl_env;               /* variables of NCCL's environment (data/machines/nccl_env.h); NULL: none */
  LsTime host[LS_N_HOST_COSTS]; /* what the host pays, by LsHostCost; LS_HOST_AUTO: as host.c has it */
} LsLaunches;

/* Which kernels are launched. */
typedef struct {
  int attention;           /* LsAttention or LS_ATTENTION_AUTO: the model's      */
  int attention_kernel;    /* LsAttentionKernel of flash attention               */
  int qkv_layout;          /* LsQkvLayout of flash attention                     */
  int loss_kernel;         /* LsLoss                                             */
  uint32_t vocab_multiple; /* words are padded to a multiple of this times tp    */
  char *kernels;           /* as they are launched: name or path; NULL: as built in */
  LsRecipes *recipes;      /* what that file lists, shared; NULL without kernels   */
  uint32_t train_metrics;  /* computed from the logits in each micro-batch       */
  bool grad_fusion;        /* the GEMM of W adds to a 16-bit gradient too          */
  bool grad_apart;         /* it adds to none, an fp32 one neither                 */
  bool window_mask;        /* windows are masks over all keys                         */
  bool wgrad_placeholders; /* megatron: tensors that stand for gradients (lower_operator.c) */
  bool dynamic_gemms;      /* GEMMs that fill the GPU fetch their next tile as they go      */
  bool apex_norm;          /* layer norms run apex's kernels of before 2022          */
  bool split_bias_dropout; /* the bias before a dropout in a kernel of its own, as in Megatron-LM of 2023 */
} LsKernelChoice;

/* The optimizer and its states. */
typedef struct {
  char *optimizer;                  /* name or path; NULL: Adam                           */
  LsOptimizerKind *kind;            /* what that file says, shared; NULL: Adam        */
  int cut;                          /* LsOptimizerCut; with zero 1 and more           */
  int tp;                           /* LsOptimizerTp                                  */
  int master;                       /* LsMaster                                       */
  int moment_dtype, variance_dtype; /* LsDtype: Adam's first and second moment       */
  int grad_dtype;                   /* LsDtype or LS_DTYPE_AUTO                           */
  bool grad_norm;                   /* global gradient-norm all-reduce before the optimizer */
  bool post_validation;             /* nobody waits for the norm: checked a step later     */
} LsOptimizerUse;

/* fp8 and nvfp4. */
typedef struct {
  int recipe;                     /* LsFp8Recipe                                             */
  int linear;                     /* LsFp8Linear                                             */
  int attention;                  /* LsFp8Attention; resolved: not RECIPE                    */
  int amax_reduction;             /* LsAmaxReduction                                         */
  bool act_store;                 /* the input of an MLP's activation is kept in fp8         */
  bool params;                    /* weights are kept and gathered in fp8                    */
  bool bf16_experts;              /* fp8, nvfp4: products of experts are in bf16             */
  LsFormats module_formats;       /* fp8, nvfp4: of modules whose products are in another one */
  uint32_t bf16_first, bf16_last; /* fp8, nvfp4: so many layers at either end have their products in bf16 */
} LsLowPrecision;

/* Adapters. */
typedef struct {
  uint32_t rank; /* of adapters on weights that are frozen; 0: all weights learn */
  char *modules; /* as ls_lora_modules () reads it; NULL: all linear layers    */
  bool qlora;    /* frozen weights of linear layers in NF4                     */
} LsAdapters;

typedef struct {
  char *name, *source;
  uint32_t gpus; /* 0: the whole cluster                                       */
  uint32_t tp, pp, cp, ep, vpp;
  uint32_t dp; /* 0: gpus / (tp pp cp)                                       */
  bool sp;
  uint32_t zero_stage; /* 0 to 3, or LS_ZERO_AUTO: 3 with fsdp1, fsdp2, xla-fsdp, else 0 */
  int dp_kind;         /* LsDpKind                                             */
  char *schedule;      /* NULL: 1f1b, or interleaved-1f1b if vpp > 1           */
  uint32_t micro_batch;
  uint32_t global_batch; /* sequences; 0: dp * micro_batch * pp                */
  uint32_t seq;          /* 0: the model's                                     */
  int recompute;         /* LsRecompute                                        */
  int dtype;             /* LsDtype                                            */
  LsProgramUse program;
  LsJobLayout layout;
  LsDataParallel data;
  LsModelParallel mp;
  LsExpertParallel experts;
  LsDocumentLengths docs;
  LsMemoryUse memory;
  LsLaunches launch;
  LsKernelChoice use;
  LsOptimizerUse opt;
  LsLowPrecision fp8;
  LsAdapters lora;
} LsStrategy;

void ls_strategy_init (LsStrategy *s);  /* the defaults of the command line */
void ls_strategy_clear (LsStrategy *s); /* NULL allowed; leaves the defaults */
/* Deep; what dest held is overwritten, not freed. */
void ls_strategy_copy (LsStrategy *dest, const LsStrategy *source);

/* Takes the list of kernels away: those that are built in hold. */
void ls_strategy_forget_kernels (LsStrategy *s);

/* What its program has and no knob says: attention_else, and its defaults on some accelerators, shared. */
void ls_strategy_lend_own (LsStrategy *dest, const LsStrategy *source);

/* What its program has for a knob on its accelerator, before its other defaults; NULL: it has none there.
 * Borrowed. */
const char *ls_strategy_default_here (const LsStrategy *s, const char *key);

/* The backend of data parallelism that it asks for, where there are several copies: dp_kind, or what auto
 * stands for on GPUs. */
int ls_strategy_dp_kind (const LsStrategy *s);

/* fp8 whose scales are made of numbers of earlier passes. */
static inline bool
ls_strategy_delays_scales (const LsStrategy *s)
{
  return s->dtype == LS_DTYPE_FP8 && s->fp8.recipe == LS_FP8_DELAYED;
}

/* xla-fsdp: the LsLoopOverlap that dp_overlap leaves. */
static inline int
ls_strategy_loop_overlap (const LsStrategy *s)
{
  return s->data.overlap ? s->data.loop_overlap : LS_LOOP_OVERLAP_GATHERS;
}

/* Fill in what is derived, in place, for a model on a cluster of n_gpus with
 * gpus_per_node (a tp group may span nodes: that is slow, not illegal). Knobs
 * without effect are normalised: with dp 1 there is no dp_kind, zero or dp_overlap,
 * with tp 1 no sp or tp_overlap, with pp 1 no p2p, without fp8 no fp8_params, and the schedule, unless it is
 * given, is "none". Resolving again changes nothing.
 *
 * FALSE, with a diagnostic for every broken rule, if any is: LS_ERROR_CONFLICT for
 * an illegal combination, LS_ERROR_UNSUPPORTED for a legal one that has no mechanism
 * yet. s may then be filled in partly. diags NULL: only whether one is broken.
 *
 * Layers that were balanced before are forgotten: ls_strategy_balance() in lower/lower.h finds
 * them, for the degrees that there are now. */
gboolean ls_strategy_resolve (LsStrategy *s, const LsModel *model, uint32_t n_gpus, uint32_t gpus_per_node,
                              LsDiagList *diags);

/* The first half of that: what is derived, with a diagnostic of what cannot be. */
void ls_strategy_fill (LsStrategy *s, const LsModel *model, uint32_t n_gpus, LsDiagList *diags);
/* Ranks that have the same parameters; the same experts: 1 without experts, 0 while that is not known. */
int64_t ls_strategy_n_copies (const LsStrategy *s);
int64_t ls_strategy_n_expert_copies (const LsStrategy *s, const LsModel *m);
/* PyTorch's stages reduce before each flush (distributed/pipelining/stage.py, backward_maybe_with_nosync). */
bool ls_strategy_may_reduce_before_flush (const LsStrategy *s);
/* Of an optimizer: it multiplies or factors matrices, so it needs them whole. */
bool ls_strategy_needs_matrices (const LsStrategy *s);
/* The format of gradients other than fp32. */
LsDtype ls_strategy_usual_grad_dtype (const LsStrategy *s);

/* Where its ranks are among each other; degrees of a resolved strategy. */
LsMesh ls_strategy_mesh (const LsStrategy *s);

/* Whether its ranks have the same numbers by another order. */
bool ls_strategy_is_ordered (const LsStrategy *s, const char *order);

/* As if no placement had ever been said. */
void ls_strategy_forget_placement (LsStrategy *s);

/* What its schedule is asked for: of the micro-batches between two flushes, where a step has more. */
LsSchedShape ls_strategy_sched_shape (const LsStrategy *s, uint32_t n_micro_batches);

/* Micro-batches that a dp rank has in a step, and the most that any has; of a resolved strategy. */
uint32_t ls_strategy_micro_batches (const LsStrategy *s, uint32_t dp_rank);
uint32_t ls_strategy_most_micro_batches (const LsStrategy *s);
/* Why all replicas have as many: what they would meet in, but once in a step. NULL: they need not. Static. */
const char *ls_strategy_why_even (const LsStrategy *s, const LsModel *model);

/* NULL if the schedule lets a job have the other knobs of s, and n_micro_batches, else a static text with the
 * rule that they break. */
const char *ls_sched_job_refusal (const LsSched *sched, const LsStrategy *s, const LsModel *m,
                                  uint32_t n_micro_batches);

/* As if layers_per_chunk had never been known. */
void ls_strategy_forget_layers (LsStrategy *s);

/* The knobs whose default follows from others alone. */
void ls_strategy_fill_auto (LsStrategy *s);

const char *ls_dp_kind_name (int kind);
extern const LsEnumName ls_dp_kind_names[], ls_p2p_names[];          /* LsDpKind, LsP2p; auto last */
extern const LsEnumName ls_recompute_names[], ls_dispatcher_names[]; /* by value */

/* Knobs that make no difference to a job, and why: strategy_resolve.c. */

/* Why the knob (a key of the strategy file, "dp_overlap"), as it is set, makes no difference to a resolved
 * strategy of this model: "tp is 1". NULL: it may make one. Static. */
const char *ls_strategy_idle (const LsStrategy *s, const LsModel *m, const char *key);
/* The knob by which another number format is had, its own where that takes others. Static, or key. */
const char *ls_strategy_decided_by (const LsStrategy *s, const LsModel *m, const char *key);

/* Appends what its user may not expect (rules.txt, notes). */
void ls_strategy_notes (const LsStrategy *s, const LsModel *m, GPtrArray *notes);

/* What rules of models are about, in lists (rules.txt). */
typedef enum {
  LS_MODEL_EXPERTS,
  LS_MODEL_PATTERN,
  LS_MODEL_MIXER, /* as far as a file gives it */
  LS_MODEL_ATTENTION,
  LS_MODEL_LISTS,
  LS_MODEL_LAYERS,
  LS_MODEL_HALVES,
  LS_MODEL_PARTS,
  LS_MODEL_KEYS,
  LS_N_MODEL_RULES
} LsModelRules;

/* The first rule of a list that a model breaks, static, and the key of its file that it is about, newly
 * allocated (ret_key NULL: nobody asks). NULL: none. */
const char *ls_model_wrong (const LsModel *m, LsModelRules of, char **ret_key);

/* Whether selective recomputation frees next to nothing: flash attention keeps no scores, whether it runs
 * again or not. */
bool ls_strategy_recompute_frees_nothing (const LsStrategy *s);

/* Whether selective recomputation has nothing to compute again: the inside of attention is one kernel,
 * whose backward computes it again by itself. */
bool ls_strategy_recomputes_nothing (const LsStrategy *s);

#endif
