/* tests/support/config_params.h — how many weights the reader counts in a config.json. */
#ifndef LS_TESTS_CONFIG_PARAMS_H
#define LS_TESTS_CONFIG_PARAMS_H

#include <string.h>

#include "data/jobs/job_files.h"

/* Weights of one config.json, whose keys these are; 0: refused, as *ret_said has it. Both are written. */
static inline uint64_t
params_of (const char *keys, uint64_t *ret_active, char **ret_said)
{
  LsModel m = { 0 };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree char *text = g_strdup_printf ("{%s}", keys);
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "config.json", diags);
  bool ok = doc && ls_model_read (doc, &m, NULL, diags);
  uint64_t params = ok ? ls_model_params (&m, m.vocab) : 0;
  *ret_active = ok ? ls_model_active_params (&m, m.vocab) : 0;
  *ret_said = ls_diag_list_format (diags);
  ls_model_clear (&m);
  return params;
}

#endif
