/* ask/collective/measured_collectives.h — what `collective --compare` reads: tables of measured collectives,
 * logs of nccl-tests and rccl-tests; and how good a choice among measured ways would have been. */
#ifndef LS_ASK_COLLECTIVE_MEASURED_COLLECTIVES_H
#define LS_ASK_COLLECTIVE_MEASURED_COLLECTIVES_H

#include "ask/collective/collective_table.h"
#include "data/measured/read_nccl_tests.h"

/* Fills run->measured with the rows of the files of spec->compare. Of a log, whose times out of place count,
 * the cluster is that of the spec, else the one with its devices; the operation what the log says, else
 * what its rates tell, else the spec's. What was found of each is a note. LS_ERROR_INPUT, with places. */
gboolean ls_collective_read_measured (const LsCollectiveSpec *spec, LsCollectiveRun *run, GError **error);

/* How much longer than the collective a row is that was timed by itself: the host launches it after the first
 * event. (That some ranks leave the barrier before it later than others is not in it.) 0 of other rows. */
LsTime ls_collective_launch (const LsMeasuredCollective *m, const LsClusterSpec *spec);

/* Of calls that were measured by two ways or more (algorithm, protocol): how much longer the one takes that
 * is simulated to be the fastest than the one that was. A note; none where there are no such calls. */
void ls_collective_note_regret (LsCollectiveRun *run);

#endif
