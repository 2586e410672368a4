/* tests/support/captured_bundle.h — a captured step in one document: {"manifest": capture.json, "files": {NAME: ...}}. */
#ifndef LS_TESTS_CAPTURED_BUNDLE_H
#define LS_TESTS_CAPTURED_BUNDLE_H

#include "data/traces/traces.h"

static inline LsJsonDoc *
captured_bundle_file (const char *file, gconstpointer bundle, LsDiagList *diags)
{
  const cJSON *files = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (bundle), "files");
  const cJSON *node = cJSON_GetObjectItemCaseSensitive (files, file);
  if (cJSON_IsObject (node))
    return ls_json_doc_part (bundle, node, file);
  ls_diag_add (diags, LS_ERROR_INPUT, file, 0, 0, NULL, NULL, NULL, "there is no such file");
  return NULL;
}

/* NULL and diagnostics. */
static inline LsTrace *
captured_bundle_parse (const LsJsonDoc *bundle, LsDiagList *diags)
{
  const cJSON *manifest = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (bundle), "manifest");
  g_autoptr (LsJsonDoc) part = cJSON_IsObject (manifest) ? ls_json_doc_part (bundle, manifest, NULL) : NULL;
  if (part)
    return ls_captured_trace_parse ("fuzz", part, captured_bundle_file, bundle, 0, diags);
  ls_diag_add (diags, LS_ERROR_INPUT, "bundle", 0, 0, NULL, NULL, NULL, "there is no manifest");
  return NULL;
}

#endif
