/* show/run/write_layer_kernels.h — the kernels that a profiled layer launches beside those of a job and of
 * the lists that there are, for people and programs. */
#ifndef LS_SHOW_RUN_WRITE_LAYER_KERNELS_H
#define LS_SHOW_RUN_WRITE_LAYER_KERNELS_H

#include "ask/reconcile_layer.h"
#include "data/text/json_out.h"

void ls_layer_report_append (const LsLayerReport *report, GString *out);
void ls_layer_report_write (const LsLayerReport *report, LsJsonOut *w); /* a member "layer" */

#endif
