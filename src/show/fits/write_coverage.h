/* show/fits/write_coverage.h — how well intervals that rest on residuals hold. */
#ifndef LS_SHOW_FITS_WRITE_COVERAGE_H
#define LS_SHOW_FITS_WRITE_COVERAGE_H

#include "data/text/json_out.h"
#include "validate/residuals.h"

void ls_coverage_to_json (const LsCoverage *c, LsJsonOut *w); /* as the member "coverage" */
void ls_coverage_to_text (const LsCoverage *c, GString *out);

#endif
