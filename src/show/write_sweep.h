/* show/write_sweep.h — what a sweep found, for people and for programs. */
#ifndef LS_SHOW_WRITE_SWEEP_H
#define LS_SHOW_WRITE_SWEEP_H

#include "data/text/json_out.h"
#include "show/run/write_run.h"
#include "sweep/sweep_report.h"

char *ls_sweep_to_text (const LsSweepReport *r);
char *ls_sweep_to_json (const LsSweepReport *r);
char *ls_sweep_to_csv (const LsSweepReport *r); /* the best, a row each */

/* --- write_changes.c: how somebody's launch files change for the best of a sweep, as text and JSON --- */

/* Appends lines. */
void ls_sweep_changes_print (const LsSweepChanges *c, GString *out);
/* A member "changes". */
void ls_sweep_changes_add (const LsSweepChanges *c, LsJsonOut *w);

#endif
