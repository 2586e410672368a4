/* io/write_nccl.h — an NCCL file with some figures fitted anew, and what the fit reached. */
#ifndef LS_IO_WRITE_NCCL_H
#define LS_IO_WRITE_NCCL_H

#include "io/json_doc.h"
#include "io/write_fit.h"

/* A figure of the file. */
typedef struct {
  char *key;
  char *was, *now;  /* as a file spells it: "0.829us", "0.398" */
  bool is_number;   /* no unit                                 */
  bool is_derived;  /* follows from another, which was fitted  */
  double error;     /* standard error of its ln; NaN: not told */
} LsNcclChange;

/* A figure that the points might have told, and did not. */
typedef struct {
  const char *key; /* static */
  char *value;
  const char *why; /* static */
} LsNcclKept;

/* Points below 1 MiB and the others. */
typedef struct {
  char *name; /* "all-reduce, 8 GPUs on 1 node" */
  bool held_out;
  LsFitError error[2];
} LsNcclFitCurve;

typedef struct {
  char *cluster;
  GPtrArray *files;   /* char *: a line for each */
  GArray *changes;    /* LsNcclChange            */
  GArray *kept;       /* LsNcclKept              */
  GArray *curves;     /* LsNcclFitCurve          */
  LsFitError all[2][2]; /* fitted and held out; below 1 MiB and above */
} LsNcclFitReport;

/* Newly allocated, ending in a newline. */
char *ls_nccl_report_to_text (const LsNcclFitReport *report);

/* The base file with another name and source and these changes, each with `why` as its
 * source; all else as it was. Newly allocated. */
char *ls_nccl_rewrite (const LsJsonDoc *base, const char *name, const char *source, const GArray *changes,
                       const char *why);

#endif
