/* ask/override_notes.h — which changes of a cluster's file change nothing, and why.
 *
 * Problem. "dgx-h100:node.nics.link.bandwidth=100GB/s" asks what faster NICs are worth. Where nothing
 * crosses them, or something else on the way limits, the answer is the same number as before, which
 * reads as if NICs did not matter, or as if the change had not been understood.
 *
 * Method. Each change is taken back in turn and the job is simulated without it. One that leaves the step
 * as it was is noted, with what its link carries. */
#ifndef LS_ASK_OVERRIDE_NOTES_H
#define LS_ASK_OVERRIDE_NOTES_H

#include "ask/collective/collective_table.h"
#include "job/job.h"

/* Appends a text (char *, owned by notes) for each change of spec->cluster that does not matter to the
 * job, which ran as r. Nothing is said of "nodes", which is a size. */
void ls_override_note_job (const LsJobSpec *spec, const LsJobResult *r, GPtrArray *notes);

/* The same for a table of collectives that gave these rows. */
void ls_override_note_collective (const LsCollectiveSpec *spec, const LsCollectiveTable *table,
                                  GPtrArray *notes);

#endif
