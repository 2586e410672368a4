/* data/jobs/read_strategy.c — strategies/ read. */
#include "data/jobs/job_files.h"

#include "data/datadir.h"

static bool
check_chunks (const LsJsonDoc *doc, const LsStrategy *s, LsDiagList *diags)
{
  if (s->layout.n_layers_per_chunk <= LS_MAX_CHUNKS)
    return true;
  const cJSON *list = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "layers_per_chunk");
  ls_json_doc_diag (doc, list, LS_JSON_AT_VALUE, diags, NULL, "expected at most %d chunks; got %u",
                    LS_MAX_CHUNKS, s->layout.n_layers_per_chunk);
  return false;
}

static bool
read_over (const LsJsonDoc *doc, const LsStrategy *base, LsStrategy *ret_strategy, LsDiagList *diags)
{
  LsStrategy s;
  ls_strategy_copy (&s, base);
  bool ok
      = ls_fields_read_file (ls_strategy_fields, "strategy", doc, &s, diags) && check_chunks (doc, &s, diags);
  if (ok)
    *ret_strategy = s;
  else
    ls_strategy_clear (&s);
  return ok;
}

bool
ls_strategy_read (const LsJsonDoc *doc, LsStrategy *ret_strategy, LsDiagList *diags)
{
  LsStrategy blank;
  ls_strategy_init (&blank);
  return read_over (doc, &blank, ret_strategy, diags);
}

bool
ls_strategy_find_software (const char *name, char **ret_software, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_STRATEGIES, name, diags);
  const cJSON *software = doc ? cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "software") : NULL;
  *ret_software = cJSON_IsString (software) ? g_strdup (software->valuestring) : NULL;
  return doc != NULL;
}

bool
ls_strategy_load_over (const char *name, const LsStrategy *base, LsStrategy *ret_strategy, GHashTable *said,
                       LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_STRATEGIES, name, diags);
  return doc && ls_strategy_read_over (doc, base, ret_strategy, said, diags);
}

bool
ls_strategy_read_over (const LsJsonDoc *doc, const LsStrategy *base, LsStrategy *ret_strategy,
                       GHashTable *said, LsDiagList *diags)
{
  if (!read_over (doc, base, ret_strategy, diags))
    return false;
  for (const LsField *f = ls_strategy_fields; f->key && said; f++)
    if (!f->file_only && cJSON_HasObjectItem (ls_json_doc_root (doc), f->key))
      g_hash_table_add (said, (gpointer) f->key);
  return true;
}

bool
ls_strategy_load (const char *name, LsStrategy *ret_strategy, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_STRATEGIES, name, diags);
  return doc && ls_strategy_read (doc, ret_strategy, diags);
}
