/* show/answers.h — answers of commands, for people and for programs: comparisons, placements, jobs that
 * share a cluster, sweeps, training runs, imports. All that is returned is newly allocated; text, JSON and
 * CSV end in a newline. */
#ifndef LS_SHOW_ANSWERS_H
#define LS_SHOW_ANSWERS_H

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>

#include "analysis/topology.h"
#include "ask/captured.h"
#include "ask/collective/collective_table.h"
#include "ask/collective/tune.h"
#include "ask/compare.h"
#include "ask/lab.h"
#include "ask/place.h"
#include "ask/profile/import_profile.h"
#include "ask/schedule.h"
#include "ask/sharing.h"
#include "ask/derived.h"
#include "ask/versus.h"
#include "data/jobs/imported.h"
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

/* --- train ------------------------------------------------------------------------------------------- */

/* title: which job. CSV: a row for each cause of failures. */
char *ls_train_to_text (const LsTrainReport *r, const char *title, const char *subtitle);
char *ls_train_to_json (const LsTrainReport *r);
char *ls_train_to_csv (const LsTrainReport *r);

/* --- collective ---------------------------------------------------------------------------------- */

/* Times of collectives as a table in the shape of nccl-tests, as CSV and as JSON (`collective --json`); next
 * to measured ones, their errors.
 *
 *     algbw = bytes / time          busbw = algbw * bus_factor
 *
 * in GB/s of 1e9 bytes; a call without data has no bandwidth: 0. bytes are those of
 * nccl-tests: the whole array; of all-to-all, what one rank sends. Of a comparison the text has a line per
 * family, JSON and CSV all rows. */
char *ls_collective_to_text (const LsCollectiveTable *t);
char *ls_collective_to_json (const LsCollectiveTable *t);
char *ls_collective_to_csv (const LsCollectiveTable *t);

/* The best way of each collective of jobs, for people; CSV: the table that a tuner plug-in reads, where no
 * line has 256 bytes. */
char *ls_tune_to_text (const LsTune *t);
char *ls_tune_to_csv (const LsTune *t);

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
char *ls_schedule_to_json (const LsScheduleView *v, const LsScheduleTable *t); /* of one; the other NULL */
char *ls_schedule_to_csv (const LsScheduleView *v);

/* Schedules beside each other. Whether a row fits is told where there is a limit. */
char *ls_schedule_all_to_text (const LsScheduleTable *t);
char *ls_schedule_all_to_csv (const LsScheduleTable *t);

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

/* "node1/gpu3"; newly allocated. */
char *ls_topology_gpu_name (const LsCluster *cluster, uint32_t gpu);

/* As a graph for Graphviz (dot -Tsvg FILE): node 0 in full, the others as one box each, the switches of the
 * fabric. Newly allocated. */
char *ls_dot_format (const LsCluster *cluster);

/* --- import -------------------------------------------------------------------------------------- */

/* What a launch file says. */
char *ls_import_to_text (const LsImported *import);
char *ls_import_to_json (const LsImported *import);

/* What was found in profiles that become a trace. replayed: the step of its replay on that cluster; 0: there
 * was none. rests: on what that rests; NULL: on nothing. */
char *ls_profile_import_to_text (const LsProfileImport *import, LsTime replayed, const char *cluster,
                                 const char *rests);

/* --- capture ------------------------------------------------------------------------------------- */

/* A captured program's memory. */
char *ls_captured_to_text (const LsCaptured *c);
char *ls_captured_to_json (const LsCaptured *c);
/* A test suite of one case, "fits", for continuous integration. command: what was captured. */
char *ls_captured_to_junit (const LsCaptured *c, const char *command);
/* Layouts of a program, a row each. */
char *ls_capture_layouts_to_text (const LsCaptureLayouts *layouts);
char *ls_capture_layouts_to_json (const LsCaptureLayouts *layouts);
/* A captured step next to the plan of the same job: totals, parts of the model, and what differs most. */
char *ls_versus_to_text (const LsVersus *versus);
char *ls_versus_to_json (const LsVersus *versus);

char *ls_derived_to_text (const LsDerived *derived);
char *ls_derived_to_json (const LsDerived *derived);
/* The profile of that name (data/jobs/read_software.h). */
char *ls_derived_file (const LsDerived *derived, const char *name);

/* --- lab ----------------------------------------------------------------------------------------- */

char *ls_labs_to_text (const GPtrArray *labs); /* LsLab */
/* As a student reads it: all but what grades. */
char *ls_lab_to_text (const LsLab *lab);
char *ls_lab_grades_to_text (const LsLabGrades *grades);
char *ls_lab_grades_to_json (const LsLabGrades *grades);

/* --- Markdown ------------------------------------------------------------------------------------ */

#define LS_MARKDOWN_MAX_ROWS 60

/* command: that printed it, a block of code on top. json: an object as we write it. Newly allocated, ends in
 * a newline. */
char *ls_markdown_of_json (const char *json, const char *command);

#endif
