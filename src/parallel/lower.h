/* parallel/lower.h — model x strategy -> plan. */
#ifndef LS_PARALLEL_LOWER_H
#define LS_PARALLEL_LOWER_H

#include "model/model.h"
#include "parallel/plan.h"
#include "parallel/strategy.h"

/* s must be resolved. Errors: LS_ERROR_UNSUPPORTED (a mechanism that does not
 * exist yet, named), LS_ERROR_CONFLICT. */
LsPlan *ls_lower (const LsModel *m, const LsStrategy *s, GError **error);

#endif
