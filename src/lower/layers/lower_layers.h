/* lower/layers/lower_layers.h — operators of a chunk as ops of a segment: what files of lower/layers share
 * (private). */
#ifndef LS_LOWER_LAYERS_LOWER_LAYERS_H
#define LS_LOWER_LAYERS_LOWER_LAYERS_H

#include "lower/data/lower_dp.h"
#include "lower/lower_build.h"

/* --- lower_operator.c --- */

/* Ties the kept activation of operator i, but for what W needs of it, to an op; what W needs
 * of it: the input, and the gradient of the output. */
void keep_activation (Build *b, uint16_t op, const Chunk *c, guint i, bool is_free);
void keep_input (Build *b, uint16_t op, const Chunk *c, guint i, bool is_free);
/* All that the forward of a layer keeps. */
void saved_by_layer (Build *b, uint16_t op, const Chunk *c, uint32_t layer, bool is_free);

/* Buffer ids of a chunk: activations, inputs and gradients of operators, inputs of layers; from
 * here on what context parallelism holds while an operator runs, N_CP_BUFFERS for each; behind these inputs
 * of what runs again of blocks of multi-token prediction, one for each operator; from buffer_base() on what
 * data parallelism gathers and reduces. */
enum { N_CP_BUFFERS = 3 };

static inline guint
cp_buffer_base (const Chunk *c)
{
  return 3 * c->operators->len + c->n_layers;
}

static inline guint
block_buffer_base (const Chunk *c)
{
  return cp_buffer_base (c) + N_CP_BUFFERS * c->operators->len;
}

static inline guint
buffer_base (const Chunk *c)
{
  return block_buffer_base (c) + c->operators->len;
}

/* keeps: what it saves lives on; else it will be computed again. */
/* The op at `from`, or the last before it where nothing was built there: what buffers of an operator without
 * kernels are tied to. */
uint16_t first_op (Build *b, guint from);
void build_forward_operator (Build *b, const Chunk *c, guint i, LsTag tag, bool keeps);
/* The same of an operator that runs beside an exchange, there. */
void build_forward_here (Build *b, const Chunk *c, guint i, LsTag tag, bool keeps);
void build_gather (Build *b, const Chunk *c, guint i, LsTag tag);
/* One of its kernels, over the documents at hand. */
uint16_t build_operator_kernel (Build *b, const LsOperator *o, const LsKernel *k, LsTag tag);
/* pass: LS_ACTION_B or I. */
void build_backward_operator (Build *b, const Chunk *c, guint i, LsActionType pass);
void build_backward_here (Build *b, const Chunk *c, guint i, LsActionType pass);
void build_weight_operator (Build *b, const Chunk *c, guint i);

/* --- lower_recompute.c --- */

/* Of n_layers layers of a chunk on a pipeline rank, how many run again as a whole. */
uint32_t recompute_n_layers (const Lower *l, uint32_t pp_rank, uint32_t n_layers);
/* The forward keeps nothing of operator i; it keeps all but its input, which what stands
 * before it makes again. */
bool is_recomputed (const Lower *l, const Chunk *c, guint i);
bool drops_input (const Lower *l, const Chunk *c, guint i);
/* The input of operator i is that of a part of the layer which runs again from it. */
bool keeps_part_input (const Lower *l, const Chunk *c, guint i);
/* Layers that run again together. */
static inline uint32_t
recompute_group_size (const Lower *l)
{
  return l->s->recompute == LS_RECOMPUTE_FULL && l->s->memory.recompute_method == LS_RECOMPUTE_UNIFORM
      ? l->s->memory.recompute_layers
      : 1;
}

static inline bool
begins_layer (const Chunk *c, guint i)
{
  return is_layer (c, i) && (i == 0 || layer_of (c, i - 1) != layer_of (c, i));
}

/* Layers run again but for the outputs of some operators. What of the bytes that operator i keeps
 * is then there from the forward on; makes chunk->again, if so. */
bool recomputes_ops (const Lower *l);
uint64_t recompute_kept_bytes (const Lower *l, const Chunk *c, guint i);
void recompute_prepare (const Lower *l, Chunk *c);
/* Outputs of operator i's products that are there until the backward reads them. */
uint64_t recompute_product_bytes (const Lower *l, const Chunk *c, guint i);

/* In a forward, behind operator i, whose first op that is: the input of layers that will
 * run again; in a backward, before and behind operator i. done_from: operators from there on
 * have run again; at first how many there are. */
void recompute_keep (Build *b, const Chunk *c, guint i, guint first_op);
void recompute_before (Build *b, const Chunk *c, guint i, guint *done_from);
void recompute_release (Build *b, const Chunk *c, guint i);
/* Ties the input of layers that run again to an op, if operator i begins them. */
void keep_group_input (Build *b, uint16_t op, const Chunk *c, guint i, bool is_free);

/* The copy back that is under way for the layer before `layer`. */
typedef struct {
  uint32_t layer;
  uint16_t op;
  bool is_under_way;
} Reload;

/* The copy out that is under way, of `layer`. */
typedef Reload Offload;

/* In a forward, behind operator i; in a backward, before it (r->layer UINT32_MAX at first). */
void offload_behind (Build *b, const Chunk *c, guint i, Offload *o);
void reload_before (Build *b, const Chunk *c, guint i, Reload *r);
/* Of a rank with that program: bytes that wait in the memory of the host at once, at most. */
uint64_t activations_in_host (const Lower *l, const LsProgram *p);

/* --- lower_cp.c --- */

/* Operator i, attention of sequences cut over cp ranks, or with an exchange among its kernels; the
 * last op. LS_TAG_I: its backward. */
uint16_t build_context (Build *b, const Chunk *c, guint i, LsTag tag);

/* --- lower_experts.c --- */

/* Communication of an expert-parallel operator before, and after, its kernels. */
void experts_before (Build *b, const LsOperator *o, bool is_backward, LsTag tag);
void experts_after (Build *b, const LsOperator *o, bool is_backward, LsTag tag);

/* Operator i runs beside an exchange, not where it stands. */
static inline bool
runs_beside (const Chunk *c, guint i)
{
  LsBeside beside = operator_at (c, i)->beside;
  return beside == LS_BESIDE_DISPATCH || beside == LS_BESIDE_COMBINE;
}

/* The first of those of the layer of operator i, which is one of them or behind them. */
static inline guint
first_beside (const Chunk *c, guint i)
{
  while (!runs_beside (c, i))
    i--;
  while (i > 0 && runs_beside (c, i - 1))
    i--;
  return i;
}

/* Build.beside of passes. Of LS_BESIDE_DISPATCH and COMBINE, the exchange is the op built last; of GATHER,
 * the permutation is still to come. What is to be built is b->shared. */
void build_shared_beside (Build *b, LsBeside what);

/* --- lower_operator.c --- */

/* Whether scales follow from the largest numbers of the pass; of how many tensors. */
bool scales_behind (const Lower *l, const struct DpPass *p);
uint32_t n_amaxes (const Lower *l, const struct DpPass *p);
/* Ops for these at the end of the pass, where they are wanted. */
void build_scales (Build *b, const struct DpPass *p);

/* Weight gradients that wait (b->delayed): nothing of the exchange waits for them that was just built. */
void build_delayed_weights (Build *b);

/* Whether gradients are there only from the first backward to the step; those of operator i, behind this op,
 * if it has any, and the end of all. */
bool grads_come_and_go (const Lower *l);
void forget_gradients (Build *b, uint32_t pp_rank);

/* Placeholders of linears, for the whole run. */
uint64_t placeholder_bytes (const Lower *l, uint32_t pp_rank);

/* --- lower_chunk.c --- */

/* first_layer: of the model. An encoder that is apart ends with the chunk that has its last layer. */
void chunk_init (Lower *l, Chunk *c, uint32_t first_layer, uint32_t n_layers, bool has_embedding,
                 bool has_head);
void chunk_clear (Chunk *c);
void chunks_clear (Lower *l); /* all of them, and the layers that they share */
/* The ops of a pass alone, into a build that is then thrown away. */
void build_pass (Build *b, const Chunk *c, LsActionType pass);

/* A forward and a backward side by side, so that the exchange of tokens of one
 * runs together with kernels of the other (private).
 *
 * Problem. Between its exchanges a pass has nothing to compute. Another pass, of another micro-batch, has.
 *
 * Method. A pass is cut where tokens are exchanged. With C what a layer computes before its experts (and
 * behind those of the layer before), D the dispatch, M the experts, K the combine, in backwards written
 * small, and w, W the weight gradients of M and C where these are delayed, a forward and a backward over two
 * layers with experts run as
 *
 *     compute      c |     C |  m  w |  M |  c  W |  C |  m  w |  M |  c |  C |  W
 *     exchange         k |      D |    d |    K |    k |    D |    d |   K |
 *
 * Each piece is a segment; pieces of two instances alternate in the program of a rank: a piece of the
 * forward, then one of the backward, and so on; what one of the two has more comes behind, the backward
 * first. What a piece needs of earlier pieces of its pass are events, so it waits for nothing of the other
 * pass but what stands before it on its stream. What goes to other stages is there before the last W.
 *
 * Delayed weight gradients are computed behind the exchange that their operators' input gradients begin:
 * beside it also in a backward that runs alone.
 *
 * Deviations. Megatron-LM pairs layers one by one, also those without experts; here a pair is from one
 * exchange to the next. It sums what experts made on the stream of the exchange, here it is computed behind
 * it.
 *
 * Reference. DeepSeek-AI, DeepSeek-V3 Technical Report, 2024, section 3.2.1, figure 4; Megatron-LM,
 * core/models/common/model_chunk_schedule_plan.py (2025), whose order this is. */

/* Events that pieces of a rank's passes may record; 0 where passes are not cut. */
uint16_t n_piece_events (const Lower *l);

/* The pieces of a pass as segments, in its order. Owned by l. */
typedef struct {
  uint32_t segment;
  PieceKind kind;
} Piece;

const GArray *segment_pieces (Lower *l, DpPass *p);

#endif
