/* job/job_cases.h — measured runs as rows: of tables (data/measured/read_cases.h), and logs of programs
 * (data/jobs/imported.h), each of which is one. */
#ifndef LS_JOB_JOB_CASES_H
#define LS_JOB_JOB_CASES_H

#include "data/measured/read_cases.h"
#include "job/job.h"

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

/* Names in rows, char * of the cases, each once in their order, with a NULL after them. */
typedef enum {
  LS_CASES_CLUSTERS, /* that followed from the hardware of a row */
  LS_CASES_FACTS, /* families of rows of which the file of their software knows more than their tables say */
  LS_CASES_IGNORED, /* columns of tables that nothing reads */
  LS_N_CASE_NAMES
} LsCaseNames;
GPtrArray *ls_job_cases_names (const GPtrArray *cases, LsCaseNames which);

/* What is noted of logs, each in front of it. Free with g_ptr_array_unref(). */
GPtrArray *ls_job_cases_notes (const GPtrArray *cases);

/* Simulates a row, or a log as `lockstep run --from` does, and sets what it rests on, its interval and the
 * notes of a log; `instead` is the column that says another, or what is typed. asked: all else of its job;
 * hardware: of its cluster. Its strategy is settled (job/softwares.h). NULL: as ls_job_simulate(). */
LsJobResult *ls_job_case_run (LsCase *c, const LsHardware *hardware, const LsJobSpec *asked, GError **error);
/* What that set, for another process, of type LS_JOB_CASE_TYPE: floating; and into one that did not run. */
#define LS_JOB_CASE_TYPE "(a(ussssmsb)as)"
GVariant *ls_job_case_pack (const LsCase *c);
void ls_job_case_unpack (LsCase *c, GVariant *packed);
/* What all rest on that could be, as ls_assumptions_text(). json: what prints the rows of each, "--json". */
char *ls_job_cases_rest (const GPtrArray *cases, const char *json);

/* What the files are called together, newly allocated: their names without folders. */
char *ls_job_cases_name (const char *const *paths);

#endif
