#include "data/jobs/read_jobs.h"

#include <string.h>

static const LsField job_fields[] = {
  { "name", LS_FIELD_STRING, offsetof (LsJobsEntry, name), .required = true },
  { "nodes", LS_FIELD_STRING, offsetof (LsJobsEntry, nodes), .required = true },
  { "start", LS_FIELD_TIME, offsetof (LsJobsEntry, start), .max = 3600e12 },
  { "options", LS_FIELD_SETTINGS, offsetof (LsJobsEntry, options) },
  { .table = "jobs.jobs" },
};

static const LsField traffic_fields[] = {
  { "name", LS_FIELD_STRING, offsetof (LsJobsTraffic, name), .required = true },
  { "from", LS_FIELD_STRING, offsetof (LsJobsTraffic, from), .required = true },
  { "to", LS_FIELD_STRING, offsetof (LsJobsTraffic, to), .required = true },
  { "bytes", LS_FIELD_BYTES, offsetof (LsJobsTraffic, bytes), .required = true, .min = 1 << 20,
    .max = 1125899906842624.0 },
  { "period", LS_FIELD_TIME, offsetof (LsJobsTraffic, period), .min = 1e9, .max = 3600e12 },
  { "start", LS_FIELD_TIME, offsetof (LsJobsTraffic, start), .max = 3600e12 },
  { "rate", LS_FIELD_RATE, offsetof (LsJobsTraffic, rate), .above = true },
  { .table = "jobs.traffic" },
};

const LsField ls_jobs_fields[] = {
  { "schema", LS_FIELD_IGNORED, .required = true, .root_only = true,
    .meaning = "kind and version of the file" },
  { "cluster", LS_FIELD_STRING, offsetof (LsJobsFile, cluster), .required = true },
  { "nodes", LS_FIELD_UINT, offsetof (LsJobsFile, n_nodes), .min = 1, .max = 1u << 20 },
  { "jobs", LS_FIELD_ARRAY, offsetof (LsJobsFile, jobs), .required = true, .fields = job_fields,
    .element_size = sizeof (LsJobsEntry) },
  { "traffic", LS_FIELD_ARRAY, offsetof (LsJobsFile, traffic), .fields = traffic_fields,
    .element_size = sizeof (LsJobsTraffic) },
  { .table = "jobs" },
};

static const LsJobsEntry *
entry (const LsJobsFile *f, guint i)
{
  return &g_array_index (f->jobs, LsJobsEntry, i);
}

static const cJSON *
node_of (const LsJobsFile *f, const char *list, guint i)
{
  return cJSON_GetArrayItem (cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (f->doc), list), (int) i);
}

/* The first line, and the note; not lines that show where in another file. */
static void
complain (const LsJobsFile *f, const cJSON *place, LsErrorCode code, const char *text, LsDiagList *diags)
{
  const char *end = strstr (text, "\nnote: ");
  g_autofree char *first = g_strndup (text, strcspn (text, "\n"));
  ls_json_doc_diag_code (f->doc, code, place, diags, end ? end + strlen ("\nnote: ") : NULL, "%s", first);
}

void
ls_jobs_diag_traffic (const LsJobsFile *f, guint traffic, const char *key, LsErrorCode code, const char *text,
                      LsDiagList *diags)
{
  const cJSON *at = node_of (f, "traffic", traffic), *value = cJSON_GetObjectItemCaseSensitive (at, key);
  complain (f, value ? value : at, code, text, diags);
}

void
ls_jobs_diag (const LsJobsFile *f, guint job, const char *key, bool is_option, LsErrorCode code,
              const char *text, LsDiagList *diags)
{
  const cJSON *at = node_of (f, "jobs", job), *options = ls_json_at (at, "options"),
              *value = key ? cJSON_GetObjectItemCaseSensitive (is_option ? options : at, key) : NULL;
  complain (f, value ? value : is_option && options ? options : at, code, text, diags);
}

static bool
check_count (const LsJobsFile *f, LsDiagList *diags)
{
  const cJSON *jobs = ls_json_at (ls_json_doc_root (f->doc), "jobs");
  guint n = f->jobs ? f->jobs->len : 0;
  if (n >= 1 && n <= LS_JOBS_MAX)
    return true;
  return ls_json_doc_wrong (f->doc, jobs, diags, "expected 1 to %u jobs; got %u", LS_JOBS_MAX, n);
}

static bool
check_names (const LsJobsFile *f, LsDiagList *diags)
{
  bool ok = true;
  for (guint i = 0; i < f->jobs->len; i++)
    for (guint k = 0; k < i; k++)
      if (strcmp (entry (f, i)->name, entry (f, k)->name) == 0) {
        g_autofree char *text = g_strdup_printf ("another job is called \"%s\" too", entry (f, i)->name);
        ls_jobs_diag (f, i, "name", false, LS_ERROR_INPUT, text, diags);
        ok = false;
        break;
      }
  return ok;
}

/* Whether two of the options KEY=VALUE are one: `_` and `-` are the same. */
static bool
is_same_option (const char *a, const char *b)
{
  for (; *a != '=' && *b != '='; a++, b++)
    if (*a != *b && !(strchr ("_-", *a) && strchr ("_-", *b)))
      return false;
  return *a == *b;
}

/* Which of two would count is nothing that a file says. */
static bool
check_options (const LsJobsFile *f, LsDiagList *diags)
{
  bool ok = true;
  for (guint i = 0; i < f->jobs->len; i++)
    for (char **o = entry (f, i)->options; o && *o; o++)
      for (char **before = entry (f, i)->options; before < o; before++)
        if (is_same_option (*before, *o)) {
          g_autofree char *key = g_strndup (*o, strcspn (*o, "="));
          g_autofree char *text = g_strdup_printf ("this option is there twice, as \"%.*s\" too",
                                                   (int) strcspn (*before, "="), *before);
          ls_jobs_diag (f, i, key, true, LS_ERROR_INPUT, text, diags);
          ok = false;
          break;
        }
  return ok;
}

bool
ls_jobs_read (const LsJsonDoc *doc, LsJobsFile *ret_file, LsDiagList *diags)
{
  LsJobsFile f = { .doc = ls_json_doc_ref (doc) };
  if (ls_fields_read_file (ls_jobs_fields, "jobs", doc, &f, diags) && check_count (&f, diags)
      && check_names (&f, diags) && check_options (&f, diags)) {
    *ret_file = f;
    return true;
  }
  ls_jobs_clear (&f);
  return false;
}

bool
ls_jobs_load (const char *path, LsJobsFile *ret_file, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_json_doc_load_or_given (path, "jobs", diags);
  return doc && ls_jobs_read (doc, ret_file, diags);
}

void
ls_jobs_clear (LsJobsFile *f)
{
  ls_fields_clear (ls_jobs_fields, f);
  ls_json_doc_free (f->doc);
  f->doc = NULL;
}
