/* io/write_residuals.h — residuals as a file that io/read_residuals.h reads, and how well the
 * intervals that rest on them hold. */
#ifndef LS_IO_WRITE_RESIDUALS_H
#define LS_IO_WRITE_RESIDUALS_H

#include "analysis/interval.h"
#include "io/json_out.h"

/* What a file was made by and from. Borrowed. */
typedef struct {
  const char *command, *version;
  const char *cases, *sha256; /* file of the measured runs */
  guint n_rows;               /* that were simulated       */
  guint64 digest;             /* of their step times       */
} LsResidualProvenance;

/* Rows whose intervals rest on the other sources only. Shares and widths are NaN if there is no interval. */
typedef struct {
  const char *source;
  guint n;        /* with an interval                                       */
  guint n_unlike; /* without, as they are like no run of the other sources  */
  double covered; /* share of n that was measured inside                    */
  double width;   /* median of (high - low) / predicted                     */
} LsCoverageLine;

typedef struct {
  double level;
  guint n_sources;
  const LsCoverageLine *sources;
  LsCoverageLine each;  /* each source counts once; of those with an interval */
  LsCoverageLine rows;  /* each row does                                      */
  guint n_left_out;
  const LsCoverageLine *left_out; /* "architecture hopper": the rows with that by those without, each source counting once */
} LsCoverage;

/* The file, newly allocated; c says how well it serves. */
char *ls_residuals_to_json (const LsResiduals *r, const char *name, const LsResidualProvenance *p, const LsCoverage *c);

void ls_coverage_to_json (const LsCoverage *c, LsJsonOut *w); /* as the member "coverage" */
void ls_coverage_to_text (const LsCoverage *c, GString *out);

#endif
