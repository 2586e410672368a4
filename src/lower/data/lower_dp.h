/* lower/data/lower_dp.h — backends of data parallelism: who holds what of parameters, gradients
 * and optimizer state, when parameters are gathered and when gradients are reduced (private).
 *
 * One lower_dp_X.c each, and a line in the table of lower/lower.c. A backend is asked at fixed places while
 * segments are built, and puts its collectives, waits and buffers there:
 *
 *     step_begin
 *     each pass (F, B; or I and W) over a chunk:
 *         begin   before o, after o   before o', after o' ...   end
 *     reduce_rest    what no pass has reduced; the compute stream waits for all reductions
 *     (norm, optimizer)
 *     step_end       parameters gathered that must be before the next step begins
 *
 * Operators come in the order of the pass: a backward's is from the last to the first.
 * Where operators are computed again, `before` comes before that. */
#ifndef LS_LOWER_DATA_LOWER_DP_H
#define LS_LOWER_DATA_LOWER_DP_H

#include "lower/lower_build.h"

/* A pass over a chunk while its segment is built. */
typedef struct DpPass {
  const struct DpBackend *backend;
  const Chunk *c;
  uint32_t pp_rank;
  LsActionType type;      /* F, B, I, W                                                    */
  bool is_first, is_last; /* of the step, or between two flushes (grad_sync flush), of this chunk: of its
                             forwards (I: of its input gradients), or of the passes that complete weight
                             gradients: B, W */
  uint32_t documents;     /* of its micro-batch: documents_at ()                               */
  gpointer state;         /* of the backend, from begin to end                                 */
} DpPass;

/* The ranks of a collective. */
typedef struct {
  LsSlot slot;
  uint32_t n;
} DpGroup;

/* Numbers of a rank's actions between which a chunk is gathered or reduced in a segment of its
 * own; G_MAXUINT: it is not. */
typedef struct {
  guint gather_before, reduce_after;
} DpTurn;

/* What is cut over ranks, by the stage of ZeRO from which on it is. */
typedef enum { DP_CUT_OPTIMIZER = 1, DP_CUT_GRADS, DP_CUT_PARAMS } DpCut;

/* Members that a backend does not need are NULL. */
typedef struct DpBackend {
  bool steps_on_shards; /* the optimizer steps on fp32 shards, which are the parameters: no gradient is
                           zeroed, copied or kept in 16 bits, no weight copied, and the host reads no norm */
  /* The step is on an fp32 copy of gradients in 16 bits, of a rank's part. */
  bool copies_gradients;
  /* What tells segments of this pass apart besides the chunk, from its type, is_first and is_last: a part of
   * the segment's name.
   * Newly allocated; NULL: nothing. */
  char *(*variant) (const Lower *l, const DpPass *p);
  void (*begin) (Build *b, DpPass *p);
  void (*before) (Build *b, DpPass *p, guint o);
  void (*after) (Build *b, DpPass *p, guint o);
  void (*end) (Build *b, DpPass *p);
  /* Around each operator whose forward a backward runs again, in forward order. */
  void (*before_again) (Build *b, DpPass *p, guint o);
  void (*after_again) (Build *b, DpPass *p, guint o);
  void (*step_begin) (Build *b, uint32_t pp_rank);
  /* Before each flush of the pipeline but the last, where grad_sync is flush: what no pass has reduced. */
  void (*reduce_flush) (Build *b, uint32_t pp_rank, bool is_first);
  void (*reduce_rest) (Build *b, uint32_t pp_rank);
  void (*step_end) (Build *b, uint32_t pp_rank);
  /* Behind step_begin, in a segment of its own per chunk; false: none (and is not asked again). */
  bool (*early_gather) (Build *b, uint32_t pp_rank, uint32_t chunk);
  /* Between actions: fills in what is not G_MAXUINT, [n_chunks]; what then stands there. Gathers
   * are of the micro-batch of the chunk's first forward, as early_gather is. */
  void (*turns) (const Lower *l, uint32_t pp_rank, DpTurn *ret_turns);
  bool (*gather_chunk) (Build *b, uint32_t pp_rank, uint32_t chunk);
  bool (*reduce_chunk) (Build *b, uint32_t pp_rank, uint32_t chunk);
  /* Tensors that the optimizer of a rank steps on, where these are not all of its chunks. */
  uint64_t (*n_tensors) (const Lower *l, uint32_t pp_rank);
  /* Corrects the bytes alive for the whole run, where they are not what dp_n_parts() leaves. */
  void (*static_memory) (const Lower *l, uint32_t pp_rank, uint64_t bytes[LS_N_MEM]);
} DpBackend;

/* It completes weight gradients of a chunk; it is the last of the step that does. */
static inline bool
dp_has_weights (const DpPass *p)
{
  return p->type == LS_ACTION_B || p->type == LS_ACTION_W;
}

static inline bool
dp_completes (const DpPass *p)
{
  return p->is_last && dp_has_weights (p);
}

/* [n_chunks], newly allocated. */
DpTurn *dp_turns (const Lower *l, uint32_t pp_rank);

/* Over how many ranks that is cut: 1 if each has all. Parameters of experts and of others apart: their groups
 * differ. Elements of it that a rank has, of the parameters of its chunks. */
uint32_t dp_n_parts (const Lower *l, bool is_expert, DpCut what);
uint64_t dp_n_kept (const Lower *l, uint32_t pp_rank, DpCut what);
/* Ranks that have the same parameters: all of them; those among which one copy is cut; those
 * that have the same part of it (n 1: nobody else). */
DpGroup dp_all (const Lower *l, bool is_expert);
DpGroup dp_shard (const Lower *l, bool is_expert);
DpGroup dp_replica (const Lower *l, bool is_expert);

/* Numbers of elements as bytes. */
uint64_t dp_grad_bytes (const Lower *l, uint64_t numel);
uint64_t dp_param_bytes (const Lower *l, uint64_t numel); /* as they are gathered */
/* Whether that is in fp8: not of mxfp8, whose two layouts are made of the 16-bit weight. */
bool dp_gathers_fp8 (const Lower *l);

/* Parameters of a pipeline rank; with the flag, those of experts only, or of others only. */
uint64_t dp_params_of_rank (const Lower *l, uint32_t pp_rank, bool is_expert);
/* Of so many weights that do not learn, n_nf4 of them in 4 bits, n_scaled of fp8 or nvfp4 products: in fp8
 * alone, or in 16 bits and both layouts. */
uint64_t dp_frozen_bytes (const Lower *l, uint64_t n, uint64_t n_nf4, uint64_t n_scaled);
/* ceil (n / parts) */
uint64_t dp_part (uint64_t n, uint32_t parts);

/* Calls one of a pass around operator o; NULL: there is none. */
static inline void
dp_hook (void (*f) (Build *b, DpPass *p, guint o), Build *b, DpPass *p, guint o)
{
  uint8_t site = b->site;
  b->site = LS_SITE_DATA;
  if (f)
    f (b, p, o);
  b->site = site;
}

/* Calls before_again or after_again of the pass that is built. */
void dp_around_again (Build *b, guint o, bool is_before);

/* Id of the n-th buffer of a backend: counted from the top, activations' are at the bottom. */
uint16_t dp_buffer (Build *b, const Chunk *c, guint n);

/* The last op so far on the compute stream, made if there is none. */
uint16_t dp_last_compute (Build *b);

/* A kernel of the compute stream that reads so many gradients and, with two passes, writes as many. */
void dp_pass_gradients (Build *b, const char *name, uint32_t n_passes, uint64_t numel);
/* n times NO_OP; free with g_free(). */
uint16_t *dp_no_ops (guint n);

/* A pass by another backend than the job's: to look at it, into a build that is thrown away. */
void build_pass_by (Build *b, DpPass *p, const DpBackend *backend);

/* The segment of a pass (lower_chunk.c); its variant decides which passes share one, by the name. */
uint32_t segment_pass (Lower *l, DpPass *p);
char *pass_name (const Lower *l, const DpPass *p); /* newly allocated */

extern const DpBackend dp_backend_none, dp_backend_ps, dp_backend_ddp, dp_backend_megatron, dp_backend_fsdp,
    dp_backend_deepspeed, dp_backend_deepspeed3, dp_backend_xla_fsdp;

/* Gradients that are reduced together, cut by the order in which
 * they become ready (private; for the backends of lower_dp.h that have buckets). */

/* Ready when operator `last_operator` has done its weight gradients, in backward order. */
typedef struct {
  uint64_t numel;
  GArray *tensors; /* uint64_t: elements of each; owned by the list of buckets */
  uint32_t last_operator;
  bool is_expert; /* experts have buckets of their own */
} Bucket;

/* Parameters at which bucket i closes: it takes one, then closes if it has reached that. */
typedef uint64_t (*BucketLimit) (const Lower *l, uint32_t pp_rank, guint i);

/* Buckets of a chunk in the order in which they become ready; a parameter is never split. */
GArray *buckets_new (const Lower *l, const Chunk *c, uint32_t pp_rank, BucketLimit limit);

/* Averages a bucket and reduces it over all ranks that have its parameters. It scatters among
 * those that share one copy, then sums the parts over the copies (lower_dp.h), both in order
 * on one stream. */
void bucket_reduce (Build *b, const Bucket *bucket, uint16_t unit, bool scatters);

/* Hooks of a pass that launches its buckets, strictly in order, as they become ready; begin
 * sets p->state, without which the others do nothing. */
void buckets_begin (Build *b, DpPass *p, BucketLimit limit);
void buckets_after (Build *b, DpPass *p, guint o, bool scatters);
/* The same where every rank keeps whole sums. */
void buckets_end (Build *b, DpPass *p);
/* Where nothing overlaps all buckets, one after the other; else the stream is waited for. */
void buckets_reduce_rest (Build *b, uint32_t pp_rank, BucketLimit limit, bool scatters);

/* --- what DeepSpeed's backends share: stages 0, 1 and 2 (lower_dp_deepspeed.c), stage 3
 * (lower_dp_deepspeed3.c), what lives outside of the accelerator (lower_dp_deepspeed.c). Files, classes and
 * functions that are named are those of deepspeed/runtime/zero. */

/* The host waits for the device, as far as this backend uses it. */
void deepspeed_sync_host (Build *b);

/* The format that parameters are gathered in. */
LsDtype deepspeed_gathers (const Lower *l);

/* With collective_lists: n launches of kernels that move so many bytes each, as one op. */
uint16_t deepspeed_copies (Build *b, LsStream stream, const char *name, LsDtype dtype, uint64_t numel,
                           uint64_t n, LsTag tag);
#define VIEWS "views of tensors"

/* The same where each rank of a shard gets its part (returns the last op of it; NO_OP with one rank), and,
 * where is_last, the replicas sum up their parts. */
uint16_t deepspeed_reduce (Build *b, uint64_t numel, bool is_expert, bool is_last, uint16_t unit);

/* Gathers numel parameters over a shard, behind `after` (NO_OP: nothing) and what compute has
 * been given so far. NO_OP with one rank. Into a list: the last copy out. */
uint16_t deepspeed_gather (Build *b, uint64_t numel, bool is_expert, uint16_t after);

/* --- lower_dp_deepspeed.c: nothing happens where nothing is offloaded ----------------- */

bool offloads_parameters (const Lower *l);

/* A rank's part of gradients leaves, once op `reduced` (NO_OP: compute) is done. */
void offload_gradients (Build *b, const DpPass *p, uint64_t numel, uint16_t reduced);
/* A rank's part of parameters comes in; returns the op. Where parameters are offloaded. */
uint16_t offload_fetch (Build *b, uint64_t numel);
/* Optimizer step on the host, and 16-bit parameters back to where they live. */
void offload_optimizer (Build *b, uint32_t pp_rank);
void offload_static_memory (const Lower *l, uint32_t pp_rank, uint64_t bytes[LS_N_MEM]);
/* What tells segments apart by what they offload: " first", " last", both or nothing. */
const char *offload_variant (const Lower *l, const DpPass *p);

#endif
