/* show/answers.h — answers of commands, for people and for programs: comparisons, placements, jobs that
 * share a cluster, sweeps, training runs. All that is returned is newly allocated; text, JSON and CSV end in
 * a newline. */
#ifndef LS_SHOW_ANSWERS_H
#define LS_SHOW_ANSWERS_H

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>

#include "analysis/topology.h"
#include "ask/collective/collective_table.h"
#include "ask/compare.h"
#include "ask/place.h"
#include "ask/schedule.h"
#include "ask/sharing.h"
#include "data/text/json_out.h"
#include "show/run/write_run.h"
#include "sweep/sweep_report.h"
#include "train/train.h"

/* --- compare ----------------------------------------------------------------------------------------- */

/* Of results, or (JSON) of spans with n 0. Text leaves out what is 0 in all; of the links it has the ten
 * whose use moved most between two, and none of more. */
char *ls_compare_to_text (LsResultFile *const *files, guint n);
char *ls_compare_to_json (LsResultFile *const *files, guint n, const LsSpanCompare *spans);
char *ls_span_compare_to_text (const LsSpanCompare *compare);

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

/* --- collective ---------------------------------------------------------------------------------- */

/* Times of collectives as a table in the shape of nccl-tests,
 * as CSV and as JSON (`collective --json`); next
 * to measured ones, their errors.
 *
 *     algbw = bytes / time          busbw = algbw * bus_factor
 *
 * in GB/s of 1e9 bytes; a call without data has no bandwidth: 0. bytes are those of
 * nccl-tests: the whole array; of all-to-all, what one rank sends. */

/* Newly allocated, ending in a newline. Of a comparison the text has a line per
 * family, JSON and CSV all rows. */
char *ls_collective_to_text (const LsCollectiveTable *t);
char *ls_collective_to_json (const LsCollectiveTable *t);
char *ls_collective_to_csv (const LsCollectiveTable *t);

/* By how much a measured one is off, percent (private). */
double ls_collective_error_pct (const LsCollectiveRow *row);

/* --- schedule ------------------------------------------------------------------------------------ */

/* A pipeline schedule and what it costs, for people and for programs.
 *
 *     bubble of makespan = 1 - ideal / makespan       of span = 1 - ideal / span
 *     bubble of ideal    = makespan / ideal - 1
 *
 * ideal is the time of the rank with most work, span the longest that a rank is there from its first action
 * to its last. */

typedef struct {
  bool color;  /* ANSI escapes */
  bool ascii;  /* no block characters */
  guint width; /* columns to fill at most */
} LsScheduleText;

/* Newly allocated, ending in a newline. JSON has the names of the manual's formats; CSV is
 * PyTorch's text format, a line per rank. */
char *ls_schedule_to_text (const LsScheduleView *v, const LsScheduleText *text);
char *ls_schedule_to_json (const LsScheduleView *v);
char *ls_schedule_to_csv (const LsScheduleView *v);

/* Schedules beside each other. Whether a row fits is told where there is a limit. */
char *ls_schedule_all_to_text (const LsScheduleTable *t);
char *ls_schedule_all_to_json (const LsScheduleTable *t);
char *ls_schedule_all_to_csv (const LsScheduleTable *t);

/* --- write_schedule.c ------------------------------------------------------------------------------ */

/* A pipeline schedule drawn with characters: a row per rank, time to the right.
 *
 * Where there is room an action is a box with its letter (lower case on chunks 1, 3, ..) and micro-batch, in
 * colour a box of its colour with the micro-batch. Where there is not, a column is a slice of time: a letter
 * where one kind of work has four fifths of what is done in it, else a mixture, lighter where the rank is
 * idle for more than half of it. Of more than MAX_ROWS ranks every n-th is shown. */

void ls_schedule_chart (const LsScheduleView *v, const LsScheduleText *text, GString *out);

/* --- topology ------------------------------------------------------------------------------------ */

/* A described cluster for people and for programs. */

typedef struct {
  bool has_links; /* every kind of link, with its source */
  bool has_all;   /* and every trunk                     */
  bool ascii;     /* no box-drawing characters           */
} LsTopologyText;

/* paths: of LsTopoPath. Newly allocated. */
char *ls_topology_to_text (const LsTopoMap *map, const GPtrArray *paths, const LsTopologyText *text);
char *ls_topology_to_json (const LsTopoMap *map, const GPtrArray *paths, bool has_all);
/* The same to a file, a piece at a time: of 100,000 nodes it is 1.7 GB. Errors stay with the file. */
void ls_topology_write_json (const LsTopoMap *map, const GPtrArray *paths, bool has_all, FILE *out);

/* "gpu to nvswitch"; newly allocated. */
char *ls_topology_ends (const LsClusterSpec *spec, const LsTopoLinks *links);
/* "node1/gpu3"; newly allocated. */
char *ls_topology_gpu_name (const LsCluster *cluster, uint32_t gpu);

/* As a graph for Graphviz (dot -Tsvg FILE): node 0 in full, the others as one box each, the switches of the
 * fabric. Newly allocated. */
char *ls_dot_format (const LsCluster *cluster);

#endif
