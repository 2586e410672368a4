/* sweep/sweep_changes.h — the best configuration of somebody's own job in the words of a program: as a
 * fragment, and as changes to the files that the job came from. */
#ifndef LS_SWEEP_SWEEP_CHANGES_H
#define LS_SWEEP_SWEEP_CHANGES_H

#include "sweep/sweep.h"

/* NULL without an error: the job is of no launch file, for no program, of another program, or nothing is
 * legal and fits. */
LsSweepChanges *ls_sweep_changes_new (const LsSweepRun *run);
void ls_sweep_changes_free (LsSweepChanges *changes); /* NULL allowed */

/* The best for a target of data/jobs/emit.h, newly allocated; *ret_notes as of ls_emit(). LS_ERROR_NO_FIT:
 * there is none. */
char *ls_sweep_emit (const LsSweepRun *run, const char *target, char **ret_notes, GError **error);

#endif
