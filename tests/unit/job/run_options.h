/* tests/unit/job/run_options.h — a job by its options: "model=llama3.1-8b cluster=dgx-h100 gpus=8". */
#ifndef LS_TESTS_UNIT_JOB_RUN_OPTIONS_H
#define LS_TESTS_UNIT_JOB_RUN_OPTIONS_H

#include "ls_test.h"

#include "job/job.h"

static inline void
set_all (LsJobSpec *spec, const char *options)
{
  g_auto (GStrv) words = g_strsplit (options, " ", -1);
  ls_job_spec_init (spec);
  for (char **word = words; *word && **word; word++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_auto (GStrv) pair = g_strsplit (*word, "=", 2);
    bool ok = ls_job_spec_set (spec, pair[0], pair[1], diags);
    g_autofree char *said = ls_diag_list_format (diags);
    ls_check_impl (ok, __FILE__, __LINE__, "%s: %s", *word, said);
  }
}

/* For ls_job_result_free(). */
static inline LsJobResult *
run (const char *options)
{
  LsJobSpec spec;
  g_autoptr (GError) error = NULL;
  set_all (&spec, options);
  LsJobResult *r = ls_job_spec_run (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  ls_job_spec_clear (&spec);
  return r;
}

#define MACHINE(name) "model=llama3.1-8b:layers=2 cluster=" name " "
#define SIZE          "gpus=8 global-batch=8 "
#define JOB           MACHINE ("dgx-h100") SIZE

#endif
