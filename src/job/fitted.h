/* job/fitted.h — what a cluster file's "fitted" (LsFitted, cluster/cluster.h) does to what is
 * known of the hardware:
 *
 *   compute    efficiency of arithmetic, and rows of matrix products and attention in a measured
 *              table
 *   overlap    what moving data cost a kernel beside them (LsNccl.stall_per_byte)
 *   intra_node links inside a node (NVLink, PCIe, ICI), and what NCCL gets through them
 *   inter_node NICs and switches, and what NCCL gets through them
 *
 * An efficiency of a link stays at most 1. What launching costs the host is an option of a run,
 * which job/job.c sets. */
#ifndef LS_JOB_FITTED_H
#define LS_JOB_FITTED_H

#include "job/hardware.h"

/* In place; 0 and 1 change nothing. Lists are changed too: they must be the hardware's own. */
void ls_fitted_apply (LsHardware *hardware, const LsFitted *fitted);

/* A copy changed so; it borrows what does not change, strings above all. */
LsHardware *ls_fitted_copy_new (const LsHardware *base, const LsFitted *fitted);
void ls_fitted_copy_free (LsHardware *copy); /* NULL allowed */

#endif
