/* io/write_layer_kernels.h — the kernels that a profiled layer launches beside those of a job and of the lists that
 * there are, for people and programs. */
#ifndef LS_IO_WRITE_LAYER_KERNELS_H
#define LS_IO_WRITE_LAYER_KERNELS_H

#include "analysis/layer_kernels.h"
#include "io/json_out.h"

typedef struct {
  char *name; /* as --kernels takes it */
  LsLayerKernels kernels;
  guint off;  /* ls_layer_kernels_off() from the profile */
} LsLayerList;

typedef struct {
  LsLayerKernels measured;
  GArray *lists; /* LsLayerList: the job's own, then the others by name; may be empty */
  const char *why; /* static: why it is; NULL: it is not */
  guint nearest; /* the first of the nearest */
} LsLayerReport;

/* Whether the profile shows a layer, and the job has one. */
bool ls_layer_report_is_there (const LsLayerReport *report);
const LsLayerList *ls_layer_report_job (const LsLayerReport *report);     /* of one that is there */
const LsLayerList *ls_layer_report_nearest (const LsLayerReport *report);

void ls_layer_report_append (const LsLayerReport *report, GString *out);
void ls_layer_report_write (const LsLayerReport *report, LsJsonOut *w); /* a member "layer" */

#endif
