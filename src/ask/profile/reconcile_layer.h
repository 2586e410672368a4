/* ask/profile/reconcile_layer.h — the kernels of a profiled layer beside those that the job launches, and
 * those that it would launch with each list of kernels that there is (strategies/kernels). */
#ifndef LS_ASK_PROFILE_RECONCILE_LAYER_H
#define LS_ASK_PROFILE_RECONCILE_LAYER_H

#include "analysis/layer_kernels.h"
#include "job/job.h"

typedef struct {
  char *name; /* as --kernels takes it */
  LsLayerKernels kernels;
  guint off; /* ls_layer_kernels_off() from the profile */
} LsLayerList;

typedef struct {
  LsLayerKernels measured;
  GArray *lists;   /* LsLayerList: the job's own, then the others by name; may be empty */
  const char *why; /* static: why it is; NULL: it is not */
  guint nearest;   /* the first of the nearest */
} LsLayerReport;

/* Whether the profile shows a layer, and the job has one. */
bool ls_layer_report_is_there (const LsLayerReport *report);
const LsLayerList *ls_layer_report_job (const LsLayerReport *report); /* of one that is there */
const LsLayerList *ls_layer_report_nearest (const LsLayerReport *report);

/* predicted: of the job. A list that is wrong, or not for the job's number format, is passed over. NULL:
 * LS_ERROR_CONFLICT (the hardware has no such attention). */
LsLayerReport *ls_layer_report_new (const LsStepSide *measured, const LsStepSide *predicted,
                                    const LsJobResult *job, GError **error);
void ls_layer_report_free (LsLayerReport *report); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsLayerReport, ls_layer_report_free)

#endif
