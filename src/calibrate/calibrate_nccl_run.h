/* calibrate/calibrate_nccl_run.h — a fit to runs of nccl-tests on the way (private to calibrate_nccl*.c). */
#ifndef LS_CALIBRATE_CALIBRATE_NCCL_RUN_H
#define LS_CALIBRATE_CALIBRATE_NCCL_RUN_H

#include "calibrate/calibrate_nccl.h"
#include "data/text/json_doc.h"
#include "job/hardware.h"

struct LsCalibrateNccl {
  LsHardware *hardware;
  LsJsonDoc *base;   /* the NCCL file that is fitted anew */
  GPtrArray *tests;  /* LsNcclTests                       */
  GPtrArray *curves; /* LsNcclCurve                      */
  LsNcclFitReport report;
};

/* Cluster and files, into curves. Errors as of ls_calibrate_nccl_new(). */
gboolean calibrate_nccl_load (LsCalibrateNccl *run, const LsCalibrateNcclSpec *spec, GError **error);

#endif
