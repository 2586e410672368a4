/* job/job_cases.h — measured runs as rows: of tables (data/measured/read_cases.h), and logs of programs
 * (data/launch/import.h), each of which is one. */
#ifndef LS_JOB_JOB_CASES_H
#define LS_JOB_JOB_CASES_H

#include "data/measured/read_cases.h"

/* Files that begin with a header row that has a column "id" are tables, all others are logs, which ran on
 * `cluster` (name or file; NULL: LS_ERROR_USAGE if there is one). by_row: rows and logs that cannot be read
 * stay, and say what is wrong, as long as there is one that can. NULL and diagnostics otherwise. An array
 * that frees its LsCase. *ret_sha256: of the files together, newly allocated, unless NULL is returned. */
GPtrArray *ls_job_cases_load (const char *const *paths, const char *cluster, bool by_row, char **ret_sha256,
                              LsDiagList *diags);

/* What the files are called together, newly allocated: their names without folders. */
char *ls_job_cases_name (const char *const *paths);

#endif
