/* show/answers.h — answers of commands, for people and for programs: comparisons, placements, jobs that
 * share a cluster, sweeps, training runs. All that is returned is newly allocated; text, JSON and CSV end in
 * a newline. */
#ifndef LS_SHOW_ANSWERS_H
#define LS_SHOW_ANSWERS_H

#include "ask/compare.h"
#include "ask/place.h"
#include "ask/sharing.h"
#include "data/text/json_out.h"
#include "show/run/write_run.h"
#include "sweep/sweep_report.h"
#include "train/train.h"

/* --- compare ----------------------------------------------------------------------------------------- */

/* Of two results. Text leaves out what is 0 in both, and of the links all but the ten whose use moved
 * most. */
char *ls_result_compare_to_text (const LsResultCompare *compare);
char *ls_result_compare_to_json (const LsResultCompare *compare);

/* Of spans. */
char *ls_span_compare_to_text (const LsSpanCompare *compare);
char *ls_span_compare_to_json (const LsSpanCompare *compare);

/* Of any number of results, a column for each. Text leaves out what is 0 in all, and links. */
char *ls_compare_many_to_text (LsResultFile *const *files, guint n);
char *ls_compare_many_to_json (LsResultFile *const *files, guint n);

/* --- place ------------------------------------------------------------------------------------------- */

/* title, subtitle: of the job. */
char *ls_place_to_text (const LsPlace *p, const char *title, const char *subtitle);
char *ls_place_to_json (const LsPlace *p);
char *ls_place_to_csv (const LsPlace *p); /* a row for each order and way to deal the GPUs */

/* The options that make the job the best one; file: where its placement is, NULL: nowhere. */
char *ls_place_options (const LsPlace *p, const char *file);

/* --- share ------------------------------------------------------------------------------------------- */

/* top: contested links shown; 0: all. JSON has all; CSV a row for each job. */
char *ls_sharing_to_text (const LsSharing *s, guint top);
char *ls_sharing_to_json (const LsSharing *s);
char *ls_sharing_to_csv (const LsSharing *s);

/* --- sweep ------------------------------------------------------------------------------------------- */

char *ls_sweep_to_text (const LsSweepReport *r);
char *ls_sweep_to_json (const LsSweepReport *r);
char *ls_sweep_to_csv (const LsSweepReport *r); /* the best, a row each */

/* --- write_changes.c: how somebody's launch files change for the best of a sweep, as text and JSON --- */

/* Appends lines. */
void ls_sweep_changes_print (const LsSweepChanges *c, GString *out);
/* The command of the first, and what behind it makes it another: numbers count the rows of all tables. */
void ls_sweep_again_print (const LsSweepReport *r, GString *out);

/* --- train ------------------------------------------------------------------------------------------- */

/* title: which job. CSV: a row for each cause of failures. */
char *ls_train_to_text (const LsTrainReport *r, const char *title, const char *subtitle);
char *ls_train_to_json (const LsTrainReport *r);
char *ls_train_to_csv (const LsTrainReport *r);

#endif
