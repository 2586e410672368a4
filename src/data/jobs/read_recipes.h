/* data/jobs/read_recipes.h — strategies/kernels/NAME.json: the kernels that a release of some software
 * launches for each operator (model/recipe.h). */
#ifndef LS_DATA_JOBS_READ_RECIPES_H
#define LS_DATA_JOBS_READ_RECIPES_H

#include "data/text/field.h"
#include "model/kernel.h"
#include "model/recipe.h"

#define LS_BUILT_IN_KERNELS "built-in" /* what --kernels calls what no list names */

extern const LsField ls_recipes_fields[];

/* By name or path; NULL and diagnostics (LS_ERROR_INPUT) if the file is wrong: keys, expressions, sizes that
 * the operator does not have, kernels in the wrong place. */
LsRecipes *ls_recipes_load (const char *name, LsDiagList *diags);
/* All lists that are at hand, LsRecipes in the order of their names; made once, then static. Those whose
 * file is wrong are left out: `lockstep check` tells. */
const GPtrArray *ls_recipes_all (void);
LsRecipes *ls_recipes_read (const LsJsonDoc *doc, LsDiagList *diags);

/* --- kinds of kernels as files and flags name them ----------------------------------------------- */

/* By LsKernelKind, then { NULL }. */
extern const LsEnumName ls_kernel_kind_names[LS_N_KERNEL_KINDS + 1];

extern const LsEnumName ls_access_names[LS_N_ACCESSES + 1]; /* by LsAccess */

/* Those that only stream: neither GEMM nor attention. */
#define LS_STREAM_KIND_NAMES (ls_kernel_kind_names + LS_KERNEL_SOFTMAX)

#endif
