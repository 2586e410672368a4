/* data/jobs/recipe_fields.c — the keys of lists of kernels; kinds of kernels as files and flags name them. */
#include "data/jobs/job_files.h"

/* --- kinds of kernels as files and flags name them ----------------------------------------------- */

#define KIND(name, kind) [kind] = { name, kind }

const LsEnumName ls_kernel_kind_names[LS_N_KERNEL_KINDS + 1] = { LS_KERNEL_KINDS (KIND) };
G_STATIC_ASSERT (LS_KERNEL_ATTENTION_BWD + 1 == LS_KERNEL_SOFTMAX);

const LsEnumName ls_access_names[LS_N_ACCESSES + 1] = { LS_ACCESSES (KIND) };

const LsEnumName ls_attention_kernel_names[] = {
  { "auto", LS_ATTENTION_KERNEL_AUTO },
  { "fa1", LS_ATTENTION_KERNEL_FA1 },
  { "triton", LS_ATTENTION_KERNEL_TRITON },
  { "fa2", LS_ATTENTION_KERNEL_FA2 },
  { "fa3", LS_ATTENTION_KERNEL_FA3 },
  { "pallas", LS_ATTENTION_KERNEL_PALLAS },
  { "aotriton", LS_ATTENTION_KERNEL_AOTRITON },
  { "cudnn", LS_ATTENTION_KERNEL_CUDNN },
  { NULL },
};

/* strategies/kernels/NAME.json: the kernels that a release of some software launches for each operator
 * (model/recipe.h). */

const LsEnumName ls_recipe_operator_names[] = {
  { "embedding", LS_RECIPE_EMBEDDING },
  { "norm", LS_RECIPE_NORM },
  { "input-norm", LS_RECIPE_INPUT_NORM },
  { "mlp-norm", LS_RECIPE_MLP_NORM },
  { "final-norm", LS_RECIPE_FINAL_NORM },
  { "qkv", LS_RECIPE_QKV },
  { "rope", LS_RECIPE_ROPE },
  { "latent-rope", LS_RECIPE_LATENT_ROPE },
  { "attention", LS_RECIPE_ATTENTION },
  { "scores", LS_RECIPE_SCORES },
  { "softmax", LS_RECIPE_SOFTMAX },
  { "context", LS_RECIPE_CONTEXT },
  { "proj", LS_RECIPE_PROJ },
  { "residual", LS_RECIPE_RESIDUAL },
  { "attention-add", LS_RECIPE_ATTENTION_ADD },
  { "mlp-add", LS_RECIPE_MLP_ADD },
  { "fc1", LS_RECIPE_FC1 },
  { "activation", LS_RECIPE_ACTIVATION },
  { "fc2", LS_RECIPE_FC2 },
  { "expert-fc1", LS_RECIPE_EXPERT_FC1 },
  { "expert-activation", LS_RECIPE_EXPERT_ACTIVATION },
  { "expert-fc2", LS_RECIPE_EXPERT_FC2 },
  { "expert-pad", LS_RECIPE_EXPERT_PAD },
  { "expert-stash", LS_RECIPE_EXPERT_STASH },
  { "router", LS_RECIPE_ROUTER },
  { "permute", LS_RECIPE_PERMUTE },
  { "unpermute", LS_RECIPE_UNPERMUTE },
  { "mixer-conv", LS_RECIPE_MIXER_CONV },
  { "mixer-chunks", LS_RECIPE_MIXER_CHUNKS },
  { "mixer-gate", LS_RECIPE_MIXER_GATE },
  { "lora-a", LS_RECIPE_LORA_A },
  { "lora-b", LS_RECIPE_LORA_B },
  { "logits", LS_RECIPE_LOGITS },
  { "loss", LS_RECIPE_LOSS },
  { "vocab-loss", LS_RECIPE_VOCAB_LOSS },
  { "metric", LS_RECIPE_METRIC },
  { "tp", LS_RECIPE_TP },
  { "fsdp", LS_RECIPE_FSDP },
  { "clip", LS_RECIPE_CLIP },
  { "optimizer", LS_RECIPE_OPTIMIZER },
  { NULL },
};
G_STATIC_ASSERT (G_N_ELEMENTS (ls_recipe_operator_names) == LS_N_RECIPE_OPERATORS + 1);

static const LsEnumName models[] = {
  { "all", LS_FOR_ALL },
  { "rmsnorm", LS_FOR_RMSNORM },
  { "layernorm", LS_FOR_LAYERNORM },
  { "swiglu", LS_FOR_SWIGLU },
  { "gelu", LS_FOR_GELU },
  { "relu2", LS_FOR_RELU2 },
  { "gqa", LS_FOR_GQA },
  { "mha", LS_FOR_MHA },
  { "mha-rope", LS_FOR_MHA_ROPE },
  { "unnormed-rope", LS_FOR_UNNORMED_ROPE },
  { "scaled-rope", LS_FOR_SCALED_ROPE },
  { "limited-geglu", LS_FOR_LIMITED_GEGLU },
  { "linear-bias", LS_FOR_LINEAR_BIAS },
  { "sigmoid-router", LS_FOR_SIGMOID_ROUTER },
  { "mamba2", LS_FOR_MAMBA2 },
  { NULL },
};
G_STATIC_ASSERT (G_N_ELEMENTS (models) == LS_N_FOR + 1);

static const LsEnumName places[] = { { "always", LS_WHERE_ALWAYS },
                                     { "groups", LS_WHERE_GROUPS },
                                     { "sequences", LS_WHERE_SEQUENCES },
                                     { "sent-once", LS_WHERE_SENT_ONCE },
                                     { "sent-each", LS_WHERE_SENT_EACH },
                                     { "unpadded", LS_WHERE_UNPADDED },
                                     { "normed", LS_WHERE_NORMED },
                                     { "normed-views", LS_WHERE_NORMED_VIEWS },
                                     { "plain-keys", LS_WHERE_PLAIN_KEYS },
                                     { "sharded", LS_WHERE_SHARDED },
                                     { NULL } };
G_STATIC_ASSERT (G_N_ELEMENTS (places) == LS_N_WHERE + 1);

static const LsEnumName dtypes[]
    = { { "bf16", LS_DTYPE_BF16 }, { "fp16", LS_DTYPE_FP16 }, { "fp32", LS_DTYPE_FP32 }, { NULL } };

#define KERNEL(key_, kind_, member_)                                                                         \
  {                                                                                                          \
    key_, kind_, offsetof (LsRecipeKernel, member_)

static const LsField kernel_fields[] = { KERNEL ("core", LS_FIELD_BOOL, is_core), .default_text = "false",
                                         .meaning = "here stand the operator's own matrix products, or "
                                                    "attention; no other key then. Of norms and rope: its "
                                                    "own kernels, and `access` says how they touch memory" },
                     KERNEL ("name", LS_FIELD_STRING, name), .default_text = "required, but of the core",
                     .meaning = "what pictures show"
}
, KERNEL ("access", LS_FIELD_ENUM, access), .names = ls_access_names,
                                            .default_text = "required, but of the core",
                                            .meaning = "how it touches memory, which its rate depends on"
}
, KERNEL ("elements", LS_FIELD_STRING, elements_text),
    .default_text = "required, but of the core, of tp and of fsdp",
    .meaning = "how many: sums of products of sizes, such as 0.5*s*b*q"
}
, KERNEL ("read", LS_FIELD_DOUBLE, read), .max = 1e3, .default_text = "0",
                                          .meaning = "bytes of an element that it reads"
}
, KERNEL ("write", LS_FIELD_DOUBLE, write), .max = 1e3, .default_text = "0", .meaning = "and writes"
}
, KERNEL ("bytes", LS_FIELD_STRING, bytes_text), .default_text = "elements times read and write",
                                                 .meaning = "all its traffic, where what is read and what is "
                                                            "written differ in elements"
}
, KERNEL ("launches", LS_FIELD_STRING, launches_text),
    .default_text = "one", .meaning = "as many kernels that share elements and bytes, such as T"
}
, KERNEL ("product", LS_FIELD_BOOL, is_product),
    .default_text = "false", .meaning = "its elements are multiply-adds, which count as FLOPs of the model"
}
, KERNEL ("where", LS_FIELD_ENUM, where),
    .names = places, .default_text = "`\"always\"`",
    .meaning = "groups: where a rank has several heads of K, and more "
               "of Q; sequences: where a micro-batch has several; "
               "sent-once, sent-each: where dispatcher is deepep or "
               "hybridep, or another; unpadded: where it is not hybridep; normed: where heads of Q and K "
               "have norms; normed-views: where they do, and not "
               "groups; plain-keys: where K is neither normed nor "
               "rotated; sharded: with cp above 1"
}
, KERNEL ("dtype", LS_FIELD_ENUM, dtype), .names = dtypes, .default_text = "`\"bf16\"`",
                                          .meaning = "of what it reads"
}
, { NULL },
}
;

static const LsRecipeKernel kernel_blank = { .dtype = LS_DTYPE_BF16 };

#define KERNELS(key_, member_, meaning_)                                                                     \
  {                                                                                                          \
    key_, LS_FIELD_ARRAY, offsetof (LsRecipe, member_), .fields = kernel_fields, .blank = &kernel_blank,     \
                                                        .element_size = sizeof (LsRecipeKernel),             \
                                                        .default_text = "none", .meaning = (meaning_)        \
  }

static const LsField operator_fields[] = {
  { "operator", LS_FIELD_ENUM, offsetof (LsRecipe, operator_), .required = true,
    .names = ls_recipe_operator_names,
    .meaning = "which one; norm, residual, activation: any that is not named apart" },
  { "for", LS_FIELD_ENUM, offsetof (LsRecipe, models), .names = models, .default_text = "`\"all\"`",
    .meaning = "models that have this; of several entries the first that fits" },
  { "widths", LS_FIELD_UINT_LIST, offsetof (LsRecipe, widths), .n_offset = offsetof (LsRecipe, n_widths),
    .min = 1, .default_text = "any",
    .meaning = "norms: rows of so many numbers, of hidden, a head or a latent, as a library is tuned for; an "
               "entry after it is for the others" },
  { "one_by_one", LS_FIELD_BOOL, offsetof (LsRecipe, one_by_one), .default_text = "false",
    .meaning = "qkv, fc1: a matrix product for each of Q, K and V, of gate and up" },
  { "gathers_each", LS_FIELD_BOOL, offsetof (LsRecipe, gathers_each), .default_text = "false",
    .meaning = "one_by_one: with sequence parallelism each product gathers its input by itself" },
  { "reduces_each", LS_FIELD_BOOL, offsetof (LsRecipe, reduces_each), .default_text = "false",
    .meaning = "one_by_one: with tensor parallelism the input gradient of each is reduced by itself" },
  { "reduces_gathered", LS_FIELD_BOOL, offsetof (LsRecipe, reduces_gathered), .default_text = "false",
    .meaning = "reduces_each: but with sequence parallelism once, after the gather that they share" },
  { "gathers_output", LS_FIELD_BOOL, offsetof (LsRecipe, gathers_output), .default_text = "false",
    .meaning = "logits: with tensor parallelism each rank gathers them all, and computes the whole loss" },
  { "one_hot", LS_FIELD_BOOL, offsetof (LsRecipe, is_one_hot), .default_text = "false",
    .meaning
    = "embedding: tokens are looked up by a product with a one-hot matrix, the core then; permute: where "
      "experts are padded to a capacity, tokens reach them, and come back, by products with such matrices" },
  { "loops", LS_FIELD_BOOL, offsetof (LsRecipe, loops), .default_text = "false",
    .meaning = "permute: a rank's experts run one after the other, each after a count of its tokens that the "
               "host waits for" },
  { "host_reads", LS_FIELD_UINT, offsetof (LsRecipe, host_reads), .max = 8, .default_text = "none",
    .meaning
    = "so often the host waits for all that is before the last kernel of `forward`, as for a copy from "
      "pageable memory" },
  { "bias_grad_listed", LS_FIELD_BOOL, offsetof (LsRecipe, bias_grad_is_listed), .default_text = "false",
    .meaning = "a kernel of `backward` sums the gradient of the bias too; else one does that is built in" },
  KERNELS ("forward", forward, "in order; again where the forward is computed again"),
  KERNELS ("backward", backward,
           "in order, but for gradients of weights that products have; of residual: the sum of its two "
           "gradients"),
  { "saved", LS_FIELD_STRING, offsetof (LsRecipe, saved_text), .default_text = "as built in",
    .meaning = "bytes kept for the backward, as an expression of sizes; of a product besides its input; of "
               "the optimizer: what its step holds besides its states" },
  { "source", LS_FIELD_STRING, offsetof (LsRecipe, source), .required = true,
    .meaning = "who says so, and how sure it is" },
  { NULL },
};

const LsField ls_recipes_fields[] = {
  LS_FIELDS_HEADER (LsRecipes),
  { "based_on", LS_FIELD_STRING, offsetof (LsRecipes, based_on), .default_text = "none",
    .meaning = "the list that has what this one does not name" },
  { "variant_of", LS_FIELD_STRING, offsetof (LsRecipes, variant_of), .default_text = "none",
    .meaning = "the list that it takes the place of where the program is asked to, say to compile: whatif "
               "proposes it" },
  { "fused_experts", LS_FIELD_BOOL, offsetof (LsRecipes, fuses_experts), .default_text = "false",
    .meaning = "in mxfp8 the products of a rank's experts are one kernel each, which computes the activation "
               "between them, or its gradient, and casts it" },
  { "operators", LS_FIELD_ARRAY, offsetof (LsRecipes, operators), .required = true, .fields = operator_fields,
    .element_size = sizeof (LsRecipe), .meaning = "those that differ from what is built in" },
  { NULL },
};
