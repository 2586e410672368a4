/* show/write_sweep.h — what a sweep found, for people and for programs. */
#ifndef LS_SHOW_WRITE_SWEEP_H
#define LS_SHOW_WRITE_SWEEP_H

#include "show/run/write_memory.h"
#include "sweep/sweep_report.h"

char *ls_sweep_to_text (const LsSweepReport *r);
char *ls_sweep_to_json (const LsSweepReport *r);
char *ls_sweep_to_csv (const LsSweepReport *r); /* the best, a row each */

#endif
