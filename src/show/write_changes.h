/* show/write_changes.h — how somebody's launch files change for the best of a sweep, as text and JSON. */
#ifndef LS_SHOW_WRITE_CHANGES_H
#define LS_SHOW_WRITE_CHANGES_H

#include "data/text/json_out.h"
#include "sweep/sweep_report.h"

/* Appends lines. */
void ls_sweep_changes_print (const LsSweepChanges *c, GString *out);
/* A member "changes". */
void ls_sweep_changes_add (const LsSweepChanges *c, LsJsonOut *w);

#endif
