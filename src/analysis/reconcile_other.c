/* analysis/reconcile_other.c — whether a profile is of another job than the one beside which it is laid. */
#include <stdbool.h>

#include "analysis/reconcile.h"

#define MOST_RATIO    3.0 /* of the kernels' time, either way */
#define LEAST_MATCHED 0.5 /* of the measured kernels' time    */

/* Its kernels, each for all of its time. */
static bool
is_kernel (const LsReconcileRow *row)
{
  return row->class != LS_CLASS_COPY && !ls_op_class_is_communication ((LsOpClass) row->class);
}

char *
ls_reconciled_other (const LsReconciled *r)
{
  LsTime measured = 0, predicted = 0, matched = 0;
  for (guint i = 0; i < r->classes->len; i++) {
    const LsReconcileRow *row = &g_array_index (r->classes, LsReconcileRow, i);
    measured += is_kernel (row) ? row->measured : 0;
    predicted += is_kernel (row) ? row->predicted : 0;
    matched += is_kernel (row) ? row->matched_measured : 0;
  }
  double share = measured > 0 ? ls_time_to_s (matched) / ls_time_to_s (measured) : 1;
  double longer = ls_time_to_s (MAX (measured, predicted)),
         shorter = ls_time_to_s (MIN (measured, predicted));
  if (share >= LEAST_MATCHED && longer <= MOST_RATIO * shorter)
    return NULL;
  g_autofree char *took = ls_format_time (measured), *would = ls_format_time (predicted);
  return g_strdup_printf (
      "its kernels took %s, those of the job take %s, and %.0f %% of their time matches no "
      "kernel of the job",
      took, would, 100 * (1 - share));
}
