/* validate/residuals_file.h — residuals as a file that data/measured/read_residuals.h reads. */
#ifndef LS_VALIDATE_RESIDUALS_FILE_H
#define LS_VALIDATE_RESIDUALS_FILE_H

#include "validate/residuals.h"

/* What a file was made by and from. Borrowed. */
typedef struct {
  const char *command, *version;
  const char *cases, *sha256; /* file of the measured runs */
  guint n_rows;               /* that were simulated       */
  guint64 digest;             /* of their step times       */
} LsResidualProvenance;

/* The file, newly allocated; c says how well it serves. */
char *ls_residuals_to_json (const LsResiduals *r, const char *name, const LsResidualProvenance *p,
                            const LsCoverage *c);

#endif
