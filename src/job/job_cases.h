/* job/job_cases.h — measured runs as rows: of tables (data/measured/read_cases.h), and logs of programs
 * (data/jobs/imported.h), each of which is one. */
#ifndef LS_JOB_JOB_CASES_H
#define LS_JOB_JOB_CASES_H

#include "data/measured/read_cases.h"
#include "job/hardware.h"

/* Files that begin with a header row that has a column "id" are tables, all others are logs, which ran on
 * `cluster` (name or file; NULL: LS_ERROR_USAGE if there is one), and so did rows that name none. Without it
 * these ran where their `hardware` says: on the cluster at hand that has this accelerator, gpus_per_node of
 * it in a node (or a rack's tray), or of several on that which the accelerator's file names. by_row: rows and
 * logs that cannot be read stay, and say what is wrong, as long as there is one that can. NULL and
 * diagnostics otherwise. An array that frees its LsCase. *ret_sha256: of the files together, newly allocated,
 * unless NULL is returned. */
GPtrArray *ls_job_cases_load (const char *const *paths, const char *cluster, bool by_row, char **ret_sha256,
                              LsDiagList *diags);

/* That something ran on what `cluster` (NULL: nothing) was given for: LS_ERROR_USAGE otherwise. files: what
 * the error calls them. */
gboolean ls_job_cases_check_cluster (const GPtrArray *cases, const char *cluster, const char *files,
                                     GError **error);

/* Clusters that followed from the hardware of a row, char * of the cases, each once in their order, with a
 * NULL behind them. */
GPtrArray *ls_job_cases_by_hardware (const GPtrArray *cases);

/* Likewise the families of rows of which the file of their software knows more than their tables say. */
GPtrArray *ls_job_cases_with_facts (const GPtrArray *cases);

/* Likewise the columns of tables that nothing reads. */
GPtrArray *ls_job_cases_ignored_columns (const GPtrArray *cases);

/* Likewise what is noted of logs, each in front of it. Free with g_ptr_array_unref(). */
GPtrArray *ls_job_cases_notes (const GPtrArray *cases);

/* A row that names no software runs the textbook, as jobs do. Also sets its assumptions, `instead` the column
 * that says another, if it is legal there. */
void ls_job_case_settle (LsCase *c, const LsHardware *hardware);
/* What all rest on that could be, as ls_assumptions_text(). */
char *ls_job_cases_rest (const GPtrArray *cases);

/* What the files are called together, newly allocated: their names without folders. */
char *ls_job_cases_name (const char *const *paths);

#endif
