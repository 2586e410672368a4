/* tools/fit/recipe.h — which data make which coefficients of which GPU. */
#ifndef LS_FIT_RECIPE_H
#define LS_FIT_RECIPE_H

#include "fit.h"

/* A set of measured kernels that a calibration is judged on. */
typedef struct {
  const char *name; /* "gemm, m >= 2048" */
  LsKernelKind kind;
  bool fp8;              /* judged with gemm_fp8 */
  LsSampleFilter filter; /* NULL: all            */
  GArray *samples;       /* of LsSample          */
  LsFitState nuisance;   /* host and side of the fit; its other fields unused */
  double promised_mape;  /* held-out error that the shipped file must keep */
} LsFitCheck;

typedef struct {
  const char *name; /* "a100": the stem of the calibration file */
  LsGpu gpu;
  LsCalibration calibration;
  char *kind_source[LS_N_KERNEL_KINDS];
  char *gemm_fp8_source;
  GArray *checks; /* of LsFitCheck */
} LsRecipe;

/* Fits everything from the CSVs in `folder`. Free with ls_recipe_free(); NULL with
 * diagnostics if a file is missing or malformed. `attention_width_half`: head_dim
 * at which softmax takes half of attention's time; 0: fit it (needs several head
 * dimensions). */
LsRecipe *ls_recipe_a100 (const char *folder, double attention_width_half, LsDiagList *diags);
LsRecipe *ls_recipe_h100 (const char *folder, LsDiagList *diags);
void ls_recipe_free (LsRecipe *recipe);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsRecipe, ls_recipe_free)

/* Errors of a calibration (the fitted one, or the same read back) on a check. */
LsFitError ls_recipe_error (const LsRecipe *recipe, const LsCalibration *calibration, const LsFitCheck *check,
                            bool held_out);

#endif
