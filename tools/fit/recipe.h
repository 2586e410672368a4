/* tools/fit/recipe.h — which data make which coefficients of which GPU. */
#ifndef LS_FIT_RECIPE_H
#define LS_FIT_RECIPE_H

#include "base/diag.h"
#include "calibrate/calibrate.h"
#include "calibrate/calibrate_fit.h"
#include "compute/measured.h"
#include "samples.h"

/* vidur's "add" takes 1 to 2 us (its timer's step is 1 us) below 1 MB of traffic. */
#define STREAM_LAUNCH (2 * LS_US)
#define NO_PRIOR      0

/* A set of measured kernels that a calibration is judged on. */
typedef struct {
  const char *name; /* "gemm, m >= 2048"       */
  guint slot;
  LsSampleFilter filter;  /* NULL: all          */
  GArray *samples;        /* of LsTimedKernel   */
  double promised_mape;   /* held-out error that the shipped file must keep */
  double promised_median; /* and its size of the median; 0: none           */
  double sustained;       /* on a hot chip at this rate; 0: as an isolated loop */
} LsFitCheck;

typedef struct {
  const char *name; /* "a100": the stem of the calibration file */
  LsGpu gpu;
  LsCalibration calibration;
  char *slot_source[LS_N_ENTRIES]; /* NULL: not in the file */
  GArray *checks;                  /* of LsFitCheck */
  double in_layers;                /* rate of products in layers over that of loops of them; 0: not measured */
  double adam_s;                   /* of Adam fused, an element beside its bytes, times SMs; 0: not known */
  bool has_adam;                   /* it was timed on this GPU */
  char *const *around_source;      /* of keys of calibration.around (calibrate/calibrate.h), static; NULL: none */
  double cublaslt_nvfp4;           /* rate of its nvfp4 products by cuBLASLt over the sweep's; 0: not known */
} LsRecipe;

LsRecipe *ls_recipe_new (const char *name, const char *source);
void ls_recipe_free (LsRecipe *recipe);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsRecipe, ls_recipe_free)
char *ls_recipe_json (LsRecipe *recipe); /* its file; newly allocated */

/* Each fits or sets some slots from the CSVs in `folder` and adds its checks. die: a GPU with the same compute die, whose
 * coefficients are taken over but for what HBM and a framework's timings add; NULL: all are fitted. */
void ls_recipe_fit_gemm (LsRecipe *r, const char *folder, LsDtype dtype, const LsRecipe *die,
                         LsDiagList *diags);
/* The same from samples that were read elsewhere; words: what the source says of them. Takes a reference. library: what is
 * known of the kernels and not fitted: square_tile, wave_blind, cache_bytes; the rest of it is 0. */
void ls_recipe_fit_gemm_samples (LsRecipe *r, LsDtype dtype, const LsKindFit *library, GArray *samples, bool casts,
                                 const char *words);
/* Attention forward from samples of such a table. */
void ls_recipe_fit_attention_samples (LsRecipe *r, LsDtype dtype, double width_half, guint more_free,
                                      const LsRecipe *die, GArray *samples, const char *words);
/* `width_half`: head_dim at which softmax takes half of the time; 0: fit it (needs
 * several head dimensions). */
void ls_recipe_fit_attention (LsRecipe *r, const char *folder, LsDtype dtype, double width_half,
                              const LsRecipe *die, LsDiagList *diags);
/* Backward runs at `ratio` of the forward's efficiency. */
void ls_recipe_set_backward (LsRecipe *r, double ratio, const char *why);
void ls_recipe_fit_embedding (LsRecipe *r, const char *folder, const char *const *files, LsDiagList *diags);
void ls_recipe_fit_elementwise (LsRecipe *r, const char *folder, double hbm_efficiency, const char *why,
                                LsDiagList *diags);
/* recipe_profile.c: share of the HBM that plain streams reach in a profile of tools/kernelbench; adds a check. */
double ls_recipe_profile_stream (LsRecipe *r, const char *own, const char *profile, LsDiagList *diags);
/* adam_s, by a profile of tools/kernelbench/libraries.py, behind elementwise; where it is known already only the check. */
void ls_recipe_profile_adam (LsRecipe *r, const char *own, const char *profile, LsDiagList *diags);
/* What an optimizer of many tensors reaches, behind streams and adam_s. */
void ls_recipe_set_optimizer (LsRecipe *r);
void ls_recipe_fit_norm (LsRecipe *r, const char *folder, LsDiagList *diags);
void ls_recipe_fit_vllm (LsRecipe *r, const char *folder, LsDiagList *diags);
/* A kind for which nothing was measured runs like another. */
void ls_recipe_copy (LsRecipe *r, guint to, const LsKindFit *from, const char *why);
/* The streaming kinds without data run as elementwise, but for the optimizer where adam_s is known. */
void ls_recipe_copy_streams (LsRecipe *r);
void ls_recipe_overlap_streams (
    LsRecipe *r); /* kernels with random numbers, norms with arithmetic; after the copies */
/* From SimuMax's loops on a B200, in `folder`: attention, forward and backward. */
void ls_recipe_fit_training_attention (LsRecipe *r, const char *folder, LsDiagList *diags);
/* What the fit promises of the samples that `filter` takes (NULL: all): held out, or fitted to where none is. */
void ls_recipe_add_check (LsRecipe *r, const char *name, guint slot, LsSampleFilter filter, GArray *samples,
                          double mape, double median);
/* recipe_attention.c: an implementation of attention, from `folder`/attention_figures.csv; `as`: see LsFigure. The memory
 * and the launch are those of the GPU's own attention, which is fitted before, and with heads of one width the softmax;
 * Triton's forward needs FlashAttention's. */
void ls_recipe_fit_attention_kernel (LsRecipe *r, const char *folder, LsAttentionKernel kernel,
                                     const char *as, LsDiagList *diags);
/* On AMD's GPUs, causal, heads of all widths: AOTriton's, and that of Composable Kernel, which is FlashAttention-2 there. */
void ls_recipe_fit_rocm_attention (LsRecipe *r, const char *folder, LsDiagList *diags);
/* cuDNN's, in 16 bits, fp8 and mxfp8, as far as `folder`/blackwell/sdpa_cudnn_frontend.csv has them; memory and launch are those of
 * streams and products, which are fitted before. A chip that the table lacks takes the rows of its sibling, each times what
 * TensorRT-LLM's attention takes longer on it: a guess. */
typedef struct {
  const char *gpu, *name;             /* "NVIDIA GB200", "gb200"                                          */
  bool is_hot_when_long;              /* long calls meet a limit of power                                 */
  bool has_slow_mask;                 /* backward in fp8 does not skip half of a masked square            */
  double head_step;                   /* heads run its 16-bit kernels for the next multiple of this; 0: not known */
  const char *own_table, *its_table;  /* of a chip that it lacks: "attn_fwd_b200.csv", and the sibling's; NULL: it has the chip */
} LsCudnnOf;

void ls_recipe_fit_cudnn (LsRecipe *r, const char *folder, const LsCudnnOf *of, LsDiagList *diags);
/* The same die: all of it. */
void ls_recipe_take_cudnn (LsRecipe *r, const LsRecipe *from);
void G_GNUC_PRINTF (3, 4) ls_recipe_set_source (LsRecipe *r, guint slot, const char *format, ...);

/* recipe_training.c: products that training runs by other kernels than the sweeps time (README.md). nvfp4, behind the fit:
 * cuBLASLt's in `folder` over those of the sweep, of which only the rate is taken, and that a hot chip does not slow them down. */
void ls_recipe_fit_cublaslt_nvfp4 (LsRecipe *r, const char *folder, LsDiagList *diags);
/* The same ratio on a sibling of that chip; where it is not known nothing happens. */
void ls_recipe_take_cublaslt_nvfp4 (LsRecipe *r, const LsRecipe *from);
/* fp8, weight gradients with scales of blocks: DeepGEMM's rates in `folder`, less what DeepSeek's training had; a sibling's. */
void ls_recipe_fit_blocks_wgrad (LsRecipe *r, const char *folder, LsDiagList *diags);
void ls_recipe_take_blocks_wgrad (LsRecipe *r, const LsRecipe *from);

/* recipe_training.c. From vidur's layers; `correction` for other cards than the recipe's. */
void ls_recipe_fit_sustained (LsRecipe *r, const char *folder, const char *const *mlp, double correction,
                              LsDiagList *diags);
/* From SimuMax's loops in `folder`, on a machine with memory of that bandwidth: the rate of a hot chip relative to what the fit
 * says of one, and wide_exposed; sets neither. */
typedef struct {
  const char *folder, *file;
  double hbm_bytes_per_s;
} LsHotTable;
typedef struct {
  double sustained, wide_exposed;
} LsHotFit;
LsHotFit ls_recipe_fit_hot (LsRecipe *r, const LsHotTable *of, LsDiagList *diags);
/* Of all products that were not fitted to such results. */
void ls_recipe_set_wide (LsRecipe *r, double exposed, const char *why);
/* The mean of those on which it was measured. */
void ls_recipe_take_wide (LsRecipe *r, const LsRecipe *const *from, guint n);
/* What was found is that of fp8; 16 bits keep less by as much as in loops of both formats on that GPU, of the same die, in
 * `folder`/hot_loops.csv. */
void ls_recipe_part_formats (LsRecipe *r, const char *folder, const char *gpu_name, LsDiagList *diags);
/* `sustained` of the formats that `folder`/hot_loops.csv has of this GPU; in_layers: the rate in layers over that of loops. */
void ls_recipe_fit_formats (LsRecipe *r, const char *folder, double in_layers, LsDiagList *diags);

/* recipe_gpus.c: fit everything of a GPU. The H200 has the die of the H100; it and the B200 take from it what
 * was not measured on them, the A100 its attention's width. own: tools/fit, with the tables
 * that are there. Trouble goes to diags. */
LsRecipe *ls_recipe_h100 (const char *folder, const char *own, LsDiagList *diags);
LsRecipe *ls_recipe_a100 (const char *folder, const char *own, const LsRecipe *h100, LsDiagList *diags);
LsRecipe *ls_recipe_h200 (const char *folder, const char *own, const LsRecipe *h100, LsDiagList *diags);
LsRecipe *ls_recipe_b200 (const char *folder, const char *own, const LsRecipe *h100, LsDiagList *diags);
LsRecipe *ls_recipe_gb200 (const char *folder, const LsRecipe *b200, LsDiagList *diags);

/* recipe_swept.c: GPUs of which only sweeps of isolated kernels are known, in `data`/blackwell: GEMMs, and attention
 * but for AMD's; what streams is a relative's, and what a hot chip sustains where no loops in `own` tell. NULL beyond the last. */
typedef struct {
  const char *data, *own;
  const GPtrArray *relatives; /* of LsRecipe, borrowed: those that are made */
  double in_layers;           /* of ls_recipe_fit_formats () */
} LsSweptFrom;
LsRecipe *ls_recipe_swept (guint i, const LsSweptFrom *from, LsDiagList *diags);

/* Errors of a calibration (the fitted one, or the same read back) on a check. */
LsFitError ls_recipe_error (const LsRecipe *recipe, const LsCalibration *calibration, const LsFitCheck *check,
                            bool held_out);

#endif
