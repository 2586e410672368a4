/* io/write_fitted.h — a cluster fitted to steps measured on it: how well, and as a file. */
#ifndef LS_IO_WRITE_FITTED_H
#define LS_IO_WRITE_FITTED_H

#include <glib.h>
#include <stdbool.h>

#include "cluster/cluster.h"
#include "io/json_doc.h"

typedef struct {
  const char *name;  /* a key of "fitted"                       */
  const char *unit;  /* "us", or "" of a factor                 */
  bool is_fitted, at_bound;
  double start, value, lo, hi; /* in that unit                  */
  double error;      /* standard error of its ln; NaN: not said */
  double sensitivity; /* most that a step's ln moves over half of its range */
  const char *why;   /* if it is not fitted: in words; borrowed */
} LsFittedLine;

typedef struct {
  const char *id; /* borrowed */
  double measured_s, before_s, after_s, left_out_s; /* NaN: nothing was fitted */
} LsFittedRow;

/* Means of |predicted / measured - 1|, as fractions. */
typedef struct {
  double before, after, left_out;
} LsFittedError;

typedef struct {
  char *cluster, *file, *sha256;
  GArray *lines; /* LsFittedLine */
  GArray *rows;  /* LsFittedRow  */
  LsFittedError error;
  LsFittedRuns left_out; /* n 0: nothing was fitted */
  double condition; /* of the Jacobian of what is fitted; NaN: nothing is */
  GArray *singular; /* double: of all, at the start                      */
  const char *version;
} LsFittedReport;

char *ls_fitted_report_to_text (const LsFittedReport *report);
/* The cluster's file with that name, "source" and "fitted". Newly allocated. */
char *ls_fitted_to_json (const LsJsonDoc *base, const LsFittedReport *report, const char *name);

#endif
