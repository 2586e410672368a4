/* data/jobs/read_lab.h — labs, strategies/labs/NAME.json: what a student predicts, runs, explains and mends,
 * and how the answers are graded. No file holds an answer: it holds what to simulate, and formulas over that.
 *
 *     formula    comparison { and comparison }          1 where it holds, else 0
 *     comparison sum [ < | <= | > | >= | == sum ]
 *     sum        product { + | - product }
 *     product    power { * | / power }
 *     power      factor [ ^ factor ]
 *     factor     a number, a name, ( formula ), - factor
 *
 * Names are those of "measures": a command line without "lockstep", "=>", and a key of its JSON, with dots
 * between and numbers for elements of lists: "schedule --schedule 1f1b --pp 4 --micro-batches 8 => idle.0".
 * In a task also "own.KEY": of what the student's configuration gives. true is 1, false is 0. */
#ifndef LS_DATA_JOBS_READ_LAB_H
#define LS_DATA_JOBS_READ_LAB_H

#include "data/datadir.h"

/* A wrong answer, and what helps who gave it. */
typedef struct {
  char *value; /* a formula: of a question what the mistake comes to, of a task when it was made */
  char *hint;
} LsLabMistake;

/* One that has a number for an answer. */
typedef struct {
  char *name, *ask, *unit; /* unit "": none */
  char *value;             /* a formula */
  double within;           /* share of it that an answer may be off, at most */
  char *hint;              /* where no known mistake is near */
  GArray *mistakes;        /* LsLabMistake, one at least */
} LsLabQuestion;

/* One that has knobs of a job for an answer. */
typedef struct {
  char *ask;
  char *run;        /* a command line; the knobs come after it */
  GArray *choose;   /* char *: keys of knobs that are the student's to choose */
  char *right;      /* a formula that holds of what is right */
  char *hint;       /* where no mistake holds */
  GArray *mistakes; /* LsLabMistake: of those that hold the first counts */
} LsLabTask;

typedef struct {
  char *name, *source, *title;
  uint32_t minutes;
  GArray *aims, *read, *commands, *explain; /* char *, a paragraph each */
  GArray *explained;                        /* char *, for teachers: one for each of explain, or NULL */
  char **measures;                          /* "NAME=COMMAND => KEY" */
  GArray *questions;                        /* LsLabQuestion, one at least */
  LsLabTask task;                           /* run NULL: there is none */
} LsLab;

extern const LsField ls_lab_fields[];
extern const LsDataFile ls_lab_file; /* LsLab */

/* KEY of the name "own.KEY"; NULL: it is another. */
const char *ls_lab_own_key (const char *name);
/* What stands after "NAME=" in the measures; NULL: there is none of that name. */
const char *ls_lab_measure (const LsLab *lab, const char *name);
/* The value of a name. FALSE with *error: it has none. */
typedef gboolean (*LsLabLookup) (const char *name, double *ret_value, gpointer data, GError **error);
/* LS_ERROR_INPUT: no formula; errors of lookup. */
gboolean ls_lab_formula (const char *text, LsLabLookup lookup, gpointer data, double *ret_value,
                         GError **error);

#endif
