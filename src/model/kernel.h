/* model/kernel.h — one GPU kernel: its kind, shape, FLOPs and bytes.
 *
 * The shape is kept so that a trace can be costed again on another GPU. FLOPs
 * count a multiply-add as 2; bytes are those that must cross HBM once (inputs
 * read, outputs written), not what a cache may save or lose. */
#ifndef LS_MODEL_KERNEL_H
#define LS_MODEL_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/enum_name.h"

typedef enum {
  LS_KERNEL_GEMM,          /* m x n x k, batch 1                                    */
  LS_KERNEL_BATCHED_GEMM,  /* the same, batch > 1 (unfused attention)               */
  LS_KERNEL_ATTENTION_FWD, /* flash: batch = sequences * heads, m = queries,        */
  LS_KERNEL_ATTENTION_BWD, /*        n = keys, k = head_dim                         */
  LS_KERNEL_SOFTMAX,       /* scale-mask-softmax and its gradient                   */
  LS_KERNEL_NORM,          /* LayerNorm, RMSNorm and gradients                      */
  LS_KERNEL_ELEMENTWISE,   /* bias, GELU, SwiGLU, dropout, residual, RoPE, copies   */
  LS_KERNEL_REDUCTION,     /* bias gradients, norms of gradients                    */
  LS_KERNEL_EMBEDDING,     /* gather and its gradient                               */
  LS_KERNEL_CROSS_ENTROPY, /* a pass over the logits                                */
  LS_KERNEL_OPTIMIZER,     /* fused Adam over a flat buffer                         */
  LS_KERNEL_MEMSET,        /* zero a buffer                                         */
  LS_N_KERNEL_KINDS
} LsKernelKind;

/* Their names: X (name, number) of each, for an array. */
#define LS_KERNEL_KINDS(X)                                                                                   \
  X ("gemm", LS_KERNEL_GEMM), X ("batched-gemm", LS_KERNEL_BATCHED_GEMM),                                    \
      X ("attention-fwd", LS_KERNEL_ATTENTION_FWD), X ("attention-bwd", LS_KERNEL_ATTENTION_BWD),            \
      X ("softmax", LS_KERNEL_SOFTMAX), X ("norm", LS_KERNEL_NORM),                                          \
      X ("elementwise", LS_KERNEL_ELEMENTWISE), X ("reduction", LS_KERNEL_REDUCTION),                        \
      X ("embedding", LS_KERNEL_EMBEDDING), X ("cross-entropy", LS_KERNEL_CROSS_ENTROPY),                    \
      X ("optimizer", LS_KERNEL_OPTIMIZER), X ("memset", LS_KERNEL_MEMSET)

/* How a kernel that streams touches memory, as the libraries that launch it write such kernels. It decides
 * how fast the kernel is (LsAccessFit in compute/cost.h). NONE: as its kind, nothing more is known. */
typedef enum {
  LS_ACCESS_NONE,
  LS_ACCESS_VEC,           /* contiguous tensors of one shape, loaded in vectors          */
  LS_ACCESS_CASTDN,        /* fp32 to 16 bits                                              */
  LS_ACCESS_CASTUP,        /* 16 bits to fp32                                              */
  LS_ACCESS_BCAST16,       /* an operand is broadcast, not in vectors; 16 bits             */
  LS_ACCESS_BCAST32,       /* the same in fp32                                             */
  LS_ACCESS_STRIDED16,     /* an operand is transposed or a slice, not in vectors; 16 bits */
  LS_ACCESS_STRIDED32,     /* the same in fp32                                             */
  LS_ACCESS_CAT,           /* tensors side by side copied into one                         */
  LS_ACCESS_GATHER,        /* rows by an index                                             */
  LS_ACCESS_SCATTER,       /* rows added by an index                                       */
  LS_ACCESS_ROWRED,        /* a reduction over the last dimension                          */
  LS_ACCESS_COLRED,        /* over the first                                               */
  LS_ACCESS_FILL,          /* writes a constant                                            */
  LS_ACCESS_MEMCPY,        /* a copy by the driver                                         */
  LS_ACCESS_MULTI,         /* many tensors in one launch: foreach, apex; fp32              */
  LS_ACCESS_MULTI16,       /* the same in 16 bits                                          */
  LS_ACCESS_ADAM,          /* a step of Adam of many tensors in one launch; fp32           */
  LS_ACCESS_ADAM16,        /* the same in 16 bits                                          */
  LS_ACCESS_SOFTMAX,       /* rows of a softmax that no fused kernel does                  */
  LS_ACCESS_TRITON,        /* made by a compiler: elementwise, fused                       */
  LS_ACCESS_TRITON_RED,    /* the same with a reduction over rows                          */
  LS_ACCESS_XLA,           /* made by XLA for a GPU: elementwise, fused (its loop fusions) */
  LS_ACCESS_XLA_RED,       /* with a reduction over rows (its input fusions)               */
  LS_ACCESS_XLA_COLRED,    /* elementwise, and sums over the first dimension beside        */
  LS_ACCESS_XLA_TRANSPOSE, /* transposes, and sums beside                               */
  LS_ACCESS_TINY,          /* a few kB: all launch                                         */
  LS_ACCESS_TRITON_DOT,    /* products of tiles of a chunk, made by a compiler; of a batched GEMM, or of m x n
                              multiply-adds                                                    */
  LS_ACCESS_MX_CAST,       /* 16 bits to fp8 with a scale for each 32 values, along one dimension  */
  LS_ACCESS_MX_CAST_BOTH,  /* along both dimensions in one kernel                                  */
  LS_ACCESS_BLOCK_CAST,    /* 16 bits to fp8 with a scale for each 128 values, along both dimensions */
  LS_ACCESS_TE_NORM,       /* RMSNorm of Transformer Engine, of widths it is tuned for             */
  LS_ACCESS_TE_NORM_GRAD,  /* its backward                                                         */
  LS_ACCESS_TE_LAYER_NORM, /* LayerNorm of Transformer Engine, forward or backward                 */
  LS_ACCESS_TE_NORM_ANY,   /* RMSNorm of any other width                                           */
  LS_ACCESS_TE_NORM_ANY_GRAD, /* its backward                                                      */
  LS_ACCESS_TE_NORM_ANY_SUM,  /* what sums the weight's gradients of all blocks of that            */
  LS_ACCESS_TE_NORM_SUM,      /* the same for rows of a head, of which more blocks fit on an SM    */
  LS_ACCESS_TE_ROPE,          /* rotations of Transformer Engine, of Q or K                         */
  LS_N_ACCESSES
} LsAccess;

/* Names of all but none: X (name, number) of each, for an array. */
#define LS_ACCESSES(X)                                                                                       \
  X ("vec", LS_ACCESS_VEC), X ("castdn", LS_ACCESS_CASTDN), X ("castup", LS_ACCESS_CASTUP),                  \
      X ("bcast16", LS_ACCESS_BCAST16), X ("bcast32", LS_ACCESS_BCAST32),                                    \
      X ("strided16", LS_ACCESS_STRIDED16), X ("strided32", LS_ACCESS_STRIDED32), X ("cat", LS_ACCESS_CAT),  \
      X ("gather", LS_ACCESS_GATHER), X ("scatter", LS_ACCESS_SCATTER), X ("rowred", LS_ACCESS_ROWRED),      \
      X ("colred", LS_ACCESS_COLRED), X ("fill", LS_ACCESS_FILL), X ("memcpy", LS_ACCESS_MEMCPY),            \
      X ("multi-tensor", LS_ACCESS_MULTI), X ("multi-tensor16", LS_ACCESS_MULTI16),                          \
      X ("adam", LS_ACCESS_ADAM), X ("adam16", LS_ACCESS_ADAM16), X ("softmax", LS_ACCESS_SOFTMAX),          \
      X ("triton", LS_ACCESS_TRITON), X ("triton-red", LS_ACCESS_TRITON_RED), X ("xla", LS_ACCESS_XLA),      \
      X ("xla-red", LS_ACCESS_XLA_RED), X ("xla-colred", LS_ACCESS_XLA_COLRED),                              \
      X ("xla-transpose", LS_ACCESS_XLA_TRANSPOSE), X ("tiny", LS_ACCESS_TINY),                              \
      X ("triton-dot", LS_ACCESS_TRITON_DOT), X ("mx-cast", LS_ACCESS_MX_CAST),                              \
      X ("mx-cast-both", LS_ACCESS_MX_CAST_BOTH), X ("block-cast", LS_ACCESS_BLOCK_CAST),                    \
      X ("te-norm", LS_ACCESS_TE_NORM), X ("te-norm-grad", LS_ACCESS_TE_NORM_GRAD),                          \
      X ("te-layer-norm", LS_ACCESS_TE_LAYER_NORM), X ("te-norm-any", LS_ACCESS_TE_NORM_ANY),                \
      X ("te-norm-any-grad", LS_ACCESS_TE_NORM_ANY_GRAD), X ("te-norm-any-sum", LS_ACCESS_TE_NORM_ANY_SUM),  \
      X ("te-norm-sum", LS_ACCESS_TE_NORM_SUM), X ("te-rope", LS_ACCESS_TE_ROPE)

/* Implementations of flash attention: FlashAttention, its version in Triton, FlashAttention-2 and
 * -3, that of JAX's Pallas on TPUs without its causal mask, AOTriton's, which PyTorch's
 * scaled_dot_product_attention runs on AMD's GPUs, cuDNN's; AUTO: whichever a GPU was measured with. Behind
 * those that a job chooses from stand cuDNN's for operands in fp8, with a scale for the tensor and with one
 * for each 32 values. */
typedef enum {
  LS_ATTENTION_KERNEL_AUTO,
  LS_ATTENTION_KERNEL_FA1,
  LS_ATTENTION_KERNEL_TRITON,
  LS_ATTENTION_KERNEL_FA2,
  LS_ATTENTION_KERNEL_FA3,
  LS_ATTENTION_KERNEL_PALLAS,
  LS_ATTENTION_KERNEL_AOTRITON,
  LS_ATTENTION_KERNEL_CUDNN,
  LS_ATTENTION_KERNEL_CUDNN_FP8,
  LS_ATTENTION_KERNEL_CUDNN_MXFP8,
  LS_N_ATTENTION_KERNELS
} LsAttentionKernel;

static inline bool
ls_kernel_is_gemm (LsKernelKind kind)
{
  return kind == LS_KERNEL_GEMM || kind == LS_KERNEL_BATCHED_GEMM;
}

static inline bool
ls_kernel_is_attention (LsKernelKind kind)
{
  return kind == LS_KERNEL_ATTENTION_FWD || kind == LS_KERNEL_ATTENTION_BWD;
}

/* Of one library: a GPU that they were not timed on has no figures of them, and they take what their kind
 * does. */
static inline bool
ls_access_is_of_library (LsAccess access)
{
  return access >= LS_ACCESS_MX_CAST;
}

extern const LsEnumName ls_kernel_kind_names[LS_N_KERNEL_KINDS + 1]; /* "gemm", by value */
LsAccess ls_access_narrow (LsAccess access); /* of numbers half as wide: multi-tensor16 for multi-tensor */
extern const LsEnumName ls_access_names[LS_N_ACCESSES + 1]; /* "castup"; "none" */

/* What a kernel is to whoever lowers it; its name is for people. */
typedef enum {
  LS_ROLE_NONE,
  LS_ROLE_UNSCALE,    /* of gradients, which looks for inf: an all-reduce of what it found follows      */
  LS_ROLE_CLIP,       /* the norm of gradients, and what scales them by it                              */
  LS_ROLE_STEP,       /* of the optimizer, in whose place that of another stands                        */
  LS_ROLE_CAST_STATE, /* of the optimizer, to the format that it steps on and back                      */
  LS_ROLE_ADD_GRAD,   /* adds a gradient to those of earlier micro-batches                              */
  LS_ROLE_ADD_WORDS,  /* the same of the embedding: what a head with the same weights made is there too */
} LsKernelRole;

typedef struct {
  const char *name; /* static: "qkv", "scale-mask-softmax"; what the timeline shows */
  LsKernelKind kind;
  LsDtype dtype;    /* of the inputs                                                */
  uint64_t m, n, k; /* 0 where the kind does not use them                           */
  uint64_t batch;
  double flops;
  double bytes;
  LsAccess access; /* of a kernel that streams m x n elements; batch: in so many launches */
  bool by_blocks;  /* in fp8: both operands of a GEMM have scales of blocks along k, those of attention
                      one for each 32 values                                        */
  bool masked;     /* attention reads a mask, a number for each pair                       */
  bool is_guess;   /* of no kind that is known: what it moves and calculates is a guess     */
  LsAttentionKernel attention; /* whose; AUTO: the job's */
  bool unaligned;              /* GEMM: rows of an operand or of the result begin on no 16 bytes      */
  uint32_t n_launches; /* of its matrices or tensors by the host, on several streams; 0: one of all      */
  uint32_t n_serial;   /* triton-dot: tiles of a chain, each of which waits for the one before; 0: none */
  bool is_cast;        /* brings an operand of a product into its format, or finds its maximum for that */
  LsKernelRole role;
  bool of_cut; /* the maximum of a tensor that sequence parallelism cuts: its ranks share it next */
} LsKernel;

/* C[m,n] (+)= A[m,k] B[k,n]; bytes = elt * (mk + kn + mn), out_bytes_per_element
 * for C; accumulate adds a read of C. */
LsKernel ls_kernel_gemm (const char *name, LsDtype dtype, uint64_t m, uint64_t n, uint64_t k, uint64_t batch,
                         uint32_t out_bytes_per_element, bool accumulate);
/* One of n equal parts of its rows, m / n of them: each reads B. */
LsKernel ls_kernel_gemm_part (const LsKernel *gemm, uint32_t n);
/* n of its columns: reads all of A. */
LsKernel ls_kernel_gemm_columns (const LsKernel *gemm, uint64_t n);
/* The same with other sizes: of its traffic what each element of A, B and C takes. */
LsKernel ls_kernel_gemm_resized (const LsKernel *gemm, uint64_t m, uint64_t n, uint64_t k);
/* Flash attention over `batch` sequences: 4 batch seq^2 heads head_dim FLOPs, half if
 * causal, 2.5 times that backward. Bytes: Q, K, V in, O out in 16 bits; backward those,
 * dO and four gradients. */
LsKernel ls_kernel_attention (const char *name, LsDtype dtype, uint64_t batch, uint64_t seq, uint64_t heads,
                              uint64_t kv_heads, uint64_t head_dim, bool is_causal, bool is_backward);
/* What sums the gradients of keys and values over the heads of a group behind cuDNN's backward in fp8, which
 * leaves them for each head of queries, in fp32 (NVIDIA/cudnn-frontend@3929da2,
 * include/cudnn_frontend/node/sdpa_fp8_bwd.h, dK_fullhead and dV_fullhead): written, read, and the sums
 * written in 16 bits; 0 where each head has keys of its own. width: of a key and a value together. Worked
 * example: 2 x 8,192 tokens of 64 heads, 8 of keys, 128 wide: 268 M gradients, 2.15 GB, and 67 MB. In bf16
 * the same gradients are in 16 bits, and no measured time shows them. */
double ls_attention_group_sum_bytes (uint64_t tokens, uint64_t heads, uint64_t kv_heads, uint64_t width);
/* A memory-bound kernel of `bytes` traffic over m x n elements. */
LsKernel ls_kernel_stream (const char *name, LsKernelKind kind, LsDtype dtype, uint64_t m, uint64_t n,
                           double bytes, double flops);

/* Number formats of products by the kind of module that makes them, where these are not
 * those of the whole model.
 *
 * In a model in a scaled format each linear layer of Transformer Engine may have a recipe of its own:
 * Megatron-LM enters its autocast anew around the layers that a file of patterns names
 * (--te-precision-config-file; NVIDIA/Megatron-LM@d98e8a64, megatron/core/quantization/quant_config.py, and
 * megatron/core/extensions/transformer_engine.py, TEQuantizationRecipe). Such a recipe does not reach layers
 * that are in bf16 altogether (override_nonquantized_autocast is false unless it is said). Embeddings,
 * logits and routers are no linear layers of Transformer Engine, and stay as they are.
 *
 * As text: "qkv:bf16,proj:bf16,mixer-out:mxfp8". */

/* The kind of module that a product is of. */
typedef enum {
  LS_MODULE_OTHER, /* one that has no format of its own */
  LS_MODULE_QKV,   /* with latents: those, and what is made from them */
  LS_MODULE_PROJ,  /* behind attention */
  LS_MODULE_FC1,
  LS_MODULE_FC2,
  LS_MODULE_EXPERT_FC1,
  LS_MODULE_EXPERT_FC2,
  LS_MODULE_SHARED_FC1,
  LS_MODULE_SHARED_FC2,
  LS_MODULE_LATENT_DOWN, /* in front of experts of a latent, and behind them */
  LS_MODULE_LATENT_UP,
  LS_MODULE_MIXER_IN,
  LS_MODULE_MIXER_OUT,
  LS_MODULE_MTP, /* of blocks of multi-token prediction: all products, whatever their kind */
  LS_N_MODULES
} LsModule;

typedef enum {
  LS_FORMAT_OF_ALL, /* none of its own */
  LS_FORMAT_BF16,
  LS_FORMAT_CURRENT, /* fp8, by recipe (LsFp8Recipe) */
  LS_FORMAT_BLOCKWISE,
  LS_FORMAT_MXFP8,
  LS_FORMAT_NVFP4,
  LS_N_FORMATS
} LsFormat;

typedef struct {
  uint8_t of[LS_N_MODULES]; /* LsFormat */
} LsFormats;

/* Words of both, ended by NULL; of OTHER and OF_ALL there are none: "". */
extern const char *const ls_module_names[LS_N_MODULES + 1];
extern const char *const ls_format_names[LS_N_FORMATS + 1];

bool ls_formats_any (const LsFormats *formats);                  /* a module has one of its own    */
bool ls_formats_have (const LsFormats *formats, LsFormat which); /* a module has this one          */

/* "" is none. False, and *ret_formats is not set, if a word is unknown or a module stands twice. */
bool ls_formats_parse (const char *text, LsFormats *ret_formats);
char *ls_formats_text (const LsFormats *formats); /* newly allocated */

#endif
