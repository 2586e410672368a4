/* model/recipe.h — which kernels a release of some software launches for each operator, in order, instead
 * of those that are built in (strategies/kernels/NAME.json).
 *
 * An operator that the list does not name, or does not name for such a model, stays as it is built in. A
 * kernel of kind "core" stands for the operator's own: its matrix products, or attention. */
#ifndef LS_MODEL_RECIPE_H
#define LS_MODEL_RECIPE_H

#include "model/expression.h"
#include "model/kernel.h"
#include "model/model.h"

typedef enum {
  LS_RECIPE_EMBEDDING,
  LS_RECIPE_NORM,       /* any that has no entry of its own: of a layer, of heads of Q and K, of latents */
  LS_RECIPE_INPUT_NORM, /* the first of a layer                          */
  LS_RECIPE_MLP_NORM,   /* the second                                    */
  LS_RECIPE_FINAL_NORM,
  LS_RECIPE_QKV,
  LS_RECIPE_ROPE,
  LS_RECIPE_LATENT_ROPE, /* of latent attention: what makes Q, K and V of projections and a rotated key */
  LS_RECIPE_ATTENTION,   /* flash                                         */
  LS_RECIPE_SCORES,      /* unfused: Q times K                            */
  LS_RECIPE_SOFTMAX,
  LS_RECIPE_CONTEXT, /* times V                                       */
  LS_RECIPE_PROJ,
  LS_RECIPE_RESIDUAL,      /* any sum with what skipped a block; backward: the sum of the gradients of what
                           a norm and the sum both take                  */
  LS_RECIPE_ATTENTION_ADD, /* behind attention                           */
  LS_RECIPE_MLP_ADD,       /* behind the MLP                                */
  LS_RECIPE_FC1,           /* up, or gate and up                            */
  LS_RECIPE_ACTIVATION,
  LS_RECIPE_FC2,
  LS_RECIPE_EXPERT_FC1,        /* of all experts of a rank */
  LS_RECIPE_EXPERT_ACTIVATION, /* or as any */
  LS_RECIPE_EXPERT_FC2,
  LS_RECIPE_EXPERT_PAD,   /* in fp8 or fp4: their rows to a multiple before products, and back behind them */
  LS_RECIPE_EXPERT_STASH, /* what they keep is copied elsewhere, and back for their backward */
  LS_RECIPE_ROUTER,
  LS_RECIPE_PERMUTE,   /* tokens to the rows of experts, with what sorts them where they arrive */
  LS_RECIPE_UNPERMUTE, /* and back                                     */
  LS_RECIPE_MIXER_CONV,
  LS_RECIPE_MIXER_CHUNKS, /* products of chunks, and the states between these */
  LS_RECIPE_MIXER_GATE,   /* the norm and the gate behind them                */
  LS_RECIPE_LORA_A, /* adapters: the product with A, of each module by itself; h is as wide as its input */
  LS_RECIPE_LORA_B, /* and with B, h as wide as the output              */
  LS_RECIPE_LOGITS,
  LS_RECIPE_LOSS,
  LS_RECIPE_VOCAB_LOSS, /* with tensor parallelism: of a rank's part of the vocabulary */
  LS_RECIPE_METRIC,     /* the loss once more, for what is logged       */
  LS_RECIPE_TP,         /* copies around the collectives of tensor parallelism, by their names */
  LS_RECIPE_FSDP,       /* copies around the collectives, by their names: how they touch memory */
  LS_RECIPE_CLIP,       /* the norm of the gradients first               */
  LS_RECIPE_OPTIMIZER,
  LS_N_RECIPE_OPERATORS
} LsRecipeOperator;

/* For which models an entry is. */
typedef enum {
  LS_FOR_ALL,
  LS_FOR_RMSNORM,
  LS_FOR_LAYERNORM,
  LS_FOR_SWIGLU,
  LS_FOR_GELU,
  LS_FOR_RELU2,
  LS_FOR_GQA,           /* fewer heads of K and V than of Q; not latent attention */
  LS_FOR_MHA,           /* as many                          */
  LS_FOR_MHA_ROPE,      /* as many, and they are rotated; not latent attention */
  LS_FOR_UNNORMED_ROPE, /* Q and K are rotated, and have no norms; not latent attention */
  LS_FOR_SCALED_ROPE,   /* cos and sin are times a factor; not latent attention */
  LS_FOR_LIMITED_GEGLU, /* a quick GELU between limits      */
  LS_FOR_LINEAR_BIAS,   /* biases on all linear layers      */
  LS_FOR_SIGMOID_ROUTER,
  LS_FOR_MAMBA2, /* whose keys and step sizes are columns of the way into it */
  LS_N_FOR
} LsRecipeFor;

/* Where a kernel is launched. */
typedef enum {
  LS_WHERE_ALWAYS,
  LS_WHERE_GROUPS,    /* the rank has several groups of heads that share a K and V, and several in a group */
  LS_WHERE_SEQUENCES, /* a micro-batch has several sequences */
  LS_WHERE_SENT_ONCE, /* DeepEP or HybridEP brings tokens to experts, and probabilities in fp32 */
  LS_WHERE_SENT_EACH, /* another dispatcher does */
  LS_WHERE_UNPADDED,  /* none brings rows of experts padded, as HybridEP does */
  LS_WHERE_NORMED,    /* heads of Q and K have norms of their own */
  LS_WHERE_NORMED_VIEWS, /* they have, and Q is a view: there are no groups as above */
  LS_WHERE_PLAIN_KEYS,   /* K is neither rotated nor normed */
  LS_WHERE_SHARDED,      /* sequences are cut over ranks (cp), so that no list of attention counts */
  LS_N_WHERE
} LsRecipeWhere;

/* Most kernels of a list around a core, and without one; of the residual's, which go into a norm's. */
#define LS_RECIPE_MAX_KERNELS  18
#define LS_RECIPE_MAX_CORELESS 22
#define LS_RECIPE_MAX_RESIDUAL 2
#define LS_RECIPE_MAX_LORA     4 /* as often as there are modules of an input */

typedef struct {
  char *name;      /* interned when it is lowered                    */
  bool is_core;    /* the operator's own kernels; of the rest only access is used, of norms and rotations:
                      how these touch memory, if it is not none */
  bool is_product; /* elements are multiply-adds of the model's     */
  int where;       /* LsRecipeWhere                                  */
  int access;      /* LsAccess                                       */
  int dtype;       /* LsDtype of what it reads                       */
  char *elements_text, *bytes_text, *launches_text;
  double read, write; /* bytes of an element                            */
  LsExpression *elements;
  LsExpression *bytes;    /* instead of read and write; NULL: by these      */
  LsExpression *launches; /* as many kernels, which share elements and bytes; NULL: one */
} LsRecipeKernel;

typedef struct {
  int operator_;    /* LsRecipeOperator */
  int models;       /* LsRecipeFor      */
  uint32_t *widths; /* [n_widths], owned: of norms, rows that are so wide; NULL: any */
  uint32_t n_widths;
  GArray *forward, *backward; /* LsRecipeKernel in order; NULL: none        */
  /* a GEMM for each of its products (Q, K, V; gate, up), but where they share a gather in pieces */
  bool one_by_one;
  /* and with tensor parallelism each of these gathers its input by itself (sequence parallelism), and its
   * input gradient is reduced by itself, before they are summed; reduces_gathered: but with sequence
   * parallelism once, as the backward of the gather that they share */
  bool gathers_each, reduces_each;
  bool reduces_gathered;
  bool gathers_output; /* logits: those of all tp ranks are gathered, and each rank has the whole loss */
  /* embedding: words by a product with a one-hot matrix, which is its core; permute: tokens to experts, and
   * back, where these are padded to a capacity */
  bool is_one_hot;
  bool logits_again;   /* loss: no logits are kept, and the backward computes them again */
  bool loops;          /* permute: experts run one after the other, each behind a count that the host
                         waits for                                             */
  uint32_t host_reads; /* so often the host waits for what is before the last kernel of the forward */
  /* a kernel of the lists sums the gradient of the bias: no kernel of its own does */
  bool bias_grad_is_listed;
  char *saved_text;
  /* Bytes kept for the backward, besides the input of a product; that a step of the optimizer holds besides
   * its states. NULL: as built in. */
  LsExpression *saved;
  char *source;
} LsRecipe;

/* Frozen and shared. */
typedef struct LsRecipes LsRecipes;

struct LsRecipes {
  char *name, *source;
  char *based_on;
  LsRecipes *base;    /* owned: what this list does not name; NULL: as built in */
  bool fuses_experts; /* products of experts in mxfp8 compute and cast what stands between them */
  char *variant_of;   /* the list in whose place a user of that program may put this one; NULL: none */
  GArray *operators;  /* LsRecipe */
};

LsRecipes *ls_recipes_new (void);               /* with one reference, empty */
LsRecipes *ls_recipes_ref (LsRecipes *recipes); /* NULL allowed */
void ls_recipes_unref (LsRecipes *recipes);     /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsRecipes, ls_recipes_unref)

/* The entry for an operator of this model; NULL: as built in. recipes may be NULL. Of norms the first, and of
 * those with rows so wide the first for these. */
const LsRecipe *ls_recipe_find (const LsRecipes *recipes, LsRecipeOperator which, const LsModel *model);
const LsRecipe *ls_recipe_find_wide (const LsRecipes *recipes, LsRecipeOperator which, const LsModel *model,
                                     uint64_t width);
bool ls_recipe_is_norm (LsRecipeOperator which); /* of any place */
/* Whether the list names anything that this model has. */
bool ls_recipes_fit (const LsRecipes *recipes, const LsModel *model);
/* Whether it does itself, and not only what it is based on. */
bool ls_recipes_fit_alone (const LsRecipes *recipes, const LsModel *model);
/* Whether experts of this model run one after the other. */
bool ls_recipes_loop (const LsRecipes *recipes, const LsModel *model);
/* Whether products with masks bring tokens to experts that are padded to a capacity. NULL allowed. */
bool ls_recipes_mask_tokens (const LsRecipes *recipes, const LsModel *model);
/* Whether products of experts compute and cast the activation between them, in mxfp8. NULL allowed. */
bool ls_recipes_fuse_experts (const LsRecipes *recipes);
/* Copies around collectives of tensor parallelism that a list may have, and kernels around those of FSDP.
 * Their names, which files and timelines have, end with NULL. */
typedef enum {
  LS_TP_COPIES_GATHERED,
  LS_TP_COPIES_GATHERED_OF_ONE,
  LS_TP_COPIES_LOGITS,
  LS_TP_COPIES_SCATTERED,
  LS_TP_COPIES_CUT,
  LS_N_TP_COPIES
} LsTpCopy;
typedef enum {
  LS_FSDP_SHARD_CAST,
  LS_FSDP_GATHER_COPY_IN,
  LS_FSDP_GATHER_COPY_OUT,
  LS_FSDP_RESHARD_COPY,
  LS_FSDP_REDUCE_COPY_IN,
  LS_FSDP_GRAD_CAST,
  LS_FSDP_GRAD_ACCUMULATE,
  LS_FSDP_GRAD_PREDIVIDE,
  LS_FSDP_GRAD_PAD,
  LS_FSDP_GRAD_POSTDIVIDE,
  LS_FSDP_GRAD_SHARD_CAST,
  LS_FSDP_GRAD_SHARD_ACCUMULATE,
  LS_FSDP_FLAT_GRAD,
  LS_FSDP_FLAT_GRAD_ACCUMULATE,
  LS_N_FSDP_COPIES
} LsFsdpCopy;
extern const char *const ls_tp_copies[LS_N_TP_COPIES + 1], *const ls_fsdp_copies[LS_N_FSDP_COPIES + 1];

/* Of an entry's kernels that with this name; NULL: there is none. */
const LsRecipeKernel *ls_recipe_kernel_named (const GArray *kernels, const char *name);
/* Whether a rank of these sizes launches it. */
bool ls_recipe_is_launched (const LsRecipeKernel *k, const LsSizes *sizes);
/* A kernel of a list, of this kind, for these sizes. */
LsKernel ls_recipe_kernel (const LsRecipeKernel *k, const LsSizes *sizes, LsKernelKind kind);

#endif
