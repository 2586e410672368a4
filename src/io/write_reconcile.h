/* io/write_reconcile.h — a profiled step beside the predicted one, for people and programs. */
#ifndef LS_IO_WRITE_RECONCILE_H
#define LS_IO_WRITE_RECONCILE_H

#include "io/write_seen_software.h"

/* All borrowed. */
typedef struct {
  const LsReconciled *reconciled;
  const LsLayerReport *layer;
  const LsSeenReport *software;
  const char *profile; /* path                          */
  const char *step;    /* which of the profile          */
  const char *gpu;     /* as the profile says, or NULL  */
  const char *cluster;
  uint32_t rank;
} LsReconcileReport;

/* Newly allocated, ending in a newline. */
char *ls_reconcile_to_text (const LsReconcileReport *report);
char *ls_reconcile_to_json (const LsReconcileReport *report);

#endif
