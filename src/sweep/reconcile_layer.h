/* sweep/reconcile_layer.h — the kernels of a profiled layer beside those that the job launches, and those that it
 * would launch with each list of kernels that there is (strategies/kernels). */
#ifndef LS_SWEEP_RECONCILE_LAYER_H
#define LS_SWEEP_RECONCILE_LAYER_H

#include "io/write_layer_kernels.h"
#include "sweep/job.h"

/* predicted: of the job. A list that is wrong, or not for the job's number format, is passed over. NULL: LS_ERROR_CONFLICT
 * (the hardware has no such attention). */
LsLayerReport *ls_layer_report_new (const LsStepSide *measured, const LsStepSide *predicted, const LsJobResult *job, GError **error);
void ls_layer_report_free (LsLayerReport *report); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsLayerReport, ls_layer_report_free)

#endif
