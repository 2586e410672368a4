/* sweep/calibrate_nccl.h — an NCCL file fitted to runs of nccl-tests on one cluster.
 *
 * Each file of io/read_nccl_tests.h is a curve (files of one operation and number of GPUs
 * are one curve). The figures start from the NCCL file of the cluster's GPU; sweep/nccl_fit.h
 * fits those that the curves show:
 *
 *   base_all_reduce, handshake     always (one base for all collectives)
 *   hop_intra, drain               curves of different numbers of steps inside a node
 *   ramp_bytes, ring_bus_intra     a ring inside a node
 *   nvls_bus, base_nvls            an all-reduce of a whole node with NVLink SHARP
 *   hop_inter, ring_bus_per_nic    a curve across nodes
 *   self_copy                      an all-to-all
 *   p2p_intra; p2p_inter, base_p2p_inter   a send inside a node; across nodes
 *
 * and of these at most half as many as there are points, the most telling first, and only those that the points can
 * tell (sweep/nccl_tell.h): sizes of 1 to 16 KiB tell no bandwidth. All else stays as it was, with its source, and is
 * named. */
#ifndef LS_SWEEP_CALIBRATE_NCCL_H
#define LS_SWEEP_CALIBRATE_NCCL_H

#include <glib.h>

#include "io/write_nccl.h"

typedef struct {
  const char *const *files; /* at least one, NULL at the end                           */
  const char *cluster;      /* name or file of topologies                              */
  const char *op;           /* "all-reduce"; NULL: the files say what ran              */
} LsCalibrateNcclSpec;

typedef struct LsCalibrateNccl LsCalibrateNccl;

/* NULL: LS_ERROR_USAGE (no file, no cluster, an unknown operation), LS_ERROR_INPUT (a file is
 * missing, damaged or of wrong results; more ranks than the cluster's nodes hold; an
 * operation that is not modelled), LS_ERROR_UNSUPPORTED (a torus). */
LsCalibrateNccl *ls_calibrate_nccl_new (const LsCalibrateNcclSpec *spec, GError **error);
void ls_calibrate_nccl_free (LsCalibrateNccl *run); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsCalibrateNccl, ls_calibrate_nccl_free)

const LsNcclFitReport *ls_calibrate_nccl_report (const LsCalibrateNccl *run);
/* The NCCL file of that name; newly allocated. */
char *ls_calibrate_nccl_json (const LsCalibrateNccl *run, const char *name);

#endif
