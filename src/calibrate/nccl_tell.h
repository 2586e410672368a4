/* calibrate/nccl_tell.h — which figures of an NCCL file measured collectives can tell.
 *
 * J_ij: by how much ln (time) of point i moves for ln (figure j), by differences of 2 % from where the
 * fit of j starts, with the others as they were fitted. Of the points that are fitted
 *
 *   two at least must move by a tenth of what the figure does: else no size depends on it (a bandwidth, of
 *   1 to 16 KiB);
 *   the standard error s sqrt ((J'J)^-1_jj) must be below 0.25: else it trades with others, and the worst
 *   one goes
 *
 * with s the larger of 1 %, what runs of nccl-tests scatter by (a guess), and the root mean square of what is
 * left. */
#ifndef LS_CALIBRATE_NCCL_TELL_H
#define LS_CALIBRATE_NCCL_TELL_H

#include "calibrate/nccl_fit.h"

/* The first of p->fitted that they cannot tell at these figures, and why (static); their number: all are
 * told. ret_error: standard errors of their ln, as far as known. */
size_t ls_nccl_untold (const LsNcclProblem *p, const LsNccl *at, double *ret_error, const char **ret_why);

#endif
