/* data/jobs/value_files.h — knobs whose value may be a file of somebody's: what is wrong in it. */
#ifndef LS_DATA_JOBS_VALUE_FILES_H
#define LS_DATA_JOBS_VALUE_FILES_H

#include <stdbool.h>

#include "base/diag.h"

/* Whether the file that such a value names can be read; else its mistakes (LS_ERROR_INPUT). key: of a
 * strategy. Values that are no files are not looked at. */
bool ls_value_file_check (const char *key, const char *text, LsDiagList *diags);

#endif
