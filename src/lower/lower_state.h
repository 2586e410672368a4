/* lower/lower_state.h — a lowering as it goes on, and its chunks (private). */
#ifndef LS_LOWER_LOWER_STATE_H
#define LS_LOWER_LOWER_STATE_H

#include "lower/lower.h"
#include "model/operators.h"
#include "plan/mesh.h"
#include "schedules/sched_eval.h"
#include "strategy/shard.h"

/* What copies with as many micro-batches have in common. */
typedef struct {
  uint32_t n_micro_batches, n_flushes;
  LsOrders *orders;
  GArray **posts;
} CopyOrders;

/* A chunk of consecutive layers and what is special about it. */
typedef struct {
  uint32_t n_layers;
  uint32_t n_recomputed; /* of these, the first so many run again as a whole      */
  bool has_embedding, has_head;
  /* Encoder and decoder apart: the encoder's last; the decoder's first; any of the decoder. */
  bool ends_encoder, begins_decoder, is_decoder;
  char *kinds;              /* of its layers: "", or of a model with experts such as " d1 m3" */
  GPtrArray *operators;     /* const LsOperator, in forward order; of layers, shared  */
  GArray *ends;             /* LsOperator: those of it that are in no layer           */
  GArray *layer_of;         /* uint16_t per operator: layer in the chunk, or UINT16_MAX */
  GArray *again;            /* LsOperator: the same, with what runs again of their forwards and what
                          that keeps; NULL: all of it */
  GPtrArray *again_at;      /* to these; of what runs as it ran, to operators         */
  uint32_t *passes;         /* [16] segments of its passes (lower_chunk.c), + 1; 0: not known yet */
  uint32_t n_products[2];   /* in fp8 or nvfp4: of others, of all experts of a rank side by side */
  uint64_t n_params;        /* on one rank, that learn                                */
  uint64_t n_frozen[2];     /* that do not: of others, of experts                     */
  uint64_t n_nf4;           /* of the former of these, in 4 bits                      */
  uint64_t n_frozen_scaled; /* and weights of fp8 or nvfp4 products               */
  uint64_t n_expert;        /* of these, parameters of experts                        */
  uint64_t n_scaled[2][2];  /* of these, weights of products: of others, of experts; in fp8, in nvfp4 */
  uint64_t n_partial;       /* of these, replicated over tp, gradients in parts with SP */
} Chunk;

typedef struct {
  const LsModel *model;
  const LsStrategy *s;
  const LsLowerCosts *costs; /* NULL: not known                                  */
  const struct DpBackend *backend;
  LsShard shard;
  LsMesh mesh;
  uint32_t n_cp_roles; /* cp where its ranks compute different things, else 1    */
  uint32_t n_ep_roles; /* ep where its ranks have experts of different load, else 1; whose program
                          is being built says shard.ep_rank                      */
  uint32_t n_dp_roles; /* copies whose micro-batches hold different documents, or are of different
                          number, else 1                                          */
  uint32_t *dp_role;   /* [dp] which of these                                    */
  LsPacking *packing;  /* NULL: each document fills a sequence                    */
  uint32_t cp_rank;    /* whose program is being built, if so; else 0            */
  uint32_t dp_rank;    /* likewise: the first with these documents, or so many     */
  LsPlan *plan;
  uint32_t n_micro_batches; /* of the copies whose program is being built         */
  uint32_t n_flushes;       /* of their pipeline in a step                          */
  uint32_t n_stages;        /* pp * vpp, of a pipe                                    */
  uint32_t n_chunks;        /* of a rank: vpp, or as many as there are pipes          */
  Chunk *all_chunks;        /* [n_ep_roles * n_stages]                                */
  Chunk *chunks;            /* [n_stages] of these: of shard.ep_rank                  */
  uint32_t *roles;          /* [n_roles] ((stage * n_cp_roles + cp_rank) * n_ep_roles + ep_rank) *
                          n_dp_roles + dp_role: not all need be there, as ep may span cp and dp */
  double *expert_share;     /* shard.expert_share                                    */
  LsDtype act;              /* of activations as they travel                          */
  const LsSched *sched;
  LsOrders *orders;   /* of all ranks of a copy, without pairs; of the present one */
  CopyOrders *copies; /* [n_dp_roles] where numbers of micro-batches differ, else [1] */
  uint32_t n_copies;
  bool has_split;          /* some backwards are I and W                             */
  LsChunkTimes *times;     /* [n_stages]; NULL: nobody asked                         */
  double *kept;            /* likewise, of a schedule that is searched: LsSchedTimes */
  GArray **posts;          /* [pp] of Post, of what comes before a flush; NULL: none, or by a recipe
                          (lower_megatron.c, lower_pipe.c) */
  GArray *segments;        /* LsSegment                                              */
  GArray *spare_ops;       /* LsOp: emptied, the room of a segment that is built; NULL: none */
  GHashTable *segment_ids; /* name -> index + 1                                  */
  GPtrArray *layers;       /* LayerMade (lower_chunk.c): operators of each kind  */
  GHashTable *pieces;      /* name of a pass -> GArray of Piece (lower_layers.h) */
  uint16_t n_piece_events;
  GArray *kernels;        /* LsKernel                                               */
  GHashTable *kernel_ids; /* LsKernel -> index + 1                               */
  char *too_long;         /* a segment of more than MAX_OPS ops: the plan is void   */
  bool is_end_too_long;   /* it is the end of a step: the optimizer                 */
} Lower;

/* Of a pass whose documents have that number: 0 is the mean, others are one above those of the packing. NULL:
 * each fills a sequence. */
static inline const LsDocuments *
documents_at (const Lower *l, uint32_t number)
{
  const LsPacking *p = l->packing;
  return !p ? NULL : number > 0 ? &p->drawn[number - 1] : &p->mean;
}

/* All that comes before chunks. Clear it in either case. */
gboolean lower_begin (Lower *l, const LsModel *m, const LsStrategy *s, const LsLowerCosts *costs,
                      GError **error);
void lower_clear (Lower *l);

/* Of LsOperator, which must stay where they are. */
static inline GPtrArray *
pointers_to (const GArray *operators)
{
  GPtrArray *pointers = g_ptr_array_sized_new (operators->len);
  for (guint i = 0; i < operators->len; i++)
    g_ptr_array_add (pointers, &g_array_index (operators, LsOperator, i));
  return pointers;
}

static inline const LsOperator *
operator_at (const Chunk *c, guint i)
{
  return c->operators->pdata[i];
}

/* Elements of an operator that learn. */
static inline uint64_t
trained_params (const LsOperator *o)
{
  uint64_t n = 0;
  for (uint32_t k = 0; k < o->params.n && !o->params.is_frozen; k++)
    n += o->params.numel[k];
  return n;
}

static inline uint16_t
layer_of (const Chunk *c, guint i)
{
  return g_array_index (c->layer_of, uint16_t, i);
}

static inline bool
is_layer (const Chunk *c, guint i)
{
  return layer_of (c, i) != UINT16_MAX;
}

/* Of a layer of the chunk, or of a block of multi-token prediction, which is with the head. */
static inline bool
is_in_layer (const Chunk *c, guint i)
{
  return is_layer (c, i) || operator_at (c, i)->is_of_block;
}

/* Stage of a rank's chunk, of whichever pipe. */
static inline uint32_t
stage_at (const Lower *l, uint32_t pp_rank, uint32_t chunk)
{
  return ls_place (l->sched->placement, l->mesh.pp, l->n_chunks, pp_rank, chunk).stage;
}

static inline Chunk *
chunk_at (const Lower *l, uint32_t pp_rank, uint32_t chunk)
{
  return &l->chunks[stage_at (l, pp_rank, chunk)];
}

/* The rank of the last stage, which holds the head: that of the embedding too where the
 * stages go down the ranks and back, or where pipes go both ways. */
static inline uint32_t
last_rank (const Lower *l)
{
  bool is_first = (l->sched->placement == LS_PLACE_WAVE && l->n_chunks % 2 == 0)
      || l->sched->placement == LS_PLACE_PIPES;
  return is_first ? 0 : l->mesh.pp - 1;
}

/* Whether ranks share replicas of the parameters because pipes go both ways. */
static inline bool
has_pipes (const Lower *l)
{
  return l->sched->placement == LS_PLACE_PIPES;
}

/* A weight that embedding and head share is there twice, on two ranks. */
static inline bool
is_tied_over_ranks (const Lower *l)
{
  return l->model->tied_embeddings && last_rank (l) != 0;
}

#endif
