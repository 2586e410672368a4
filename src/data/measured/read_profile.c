#include "data/measured/read_profile.h"

#include <math.h>
#include <string.h>

#include "data/text/csv.h"
#include "data/text/read_file.h"

#define MAX_TIME_US 1e12

typedef struct {
  char *what, *why;
} Failed;

typedef struct {
  char *schema, *gpu, *driver, *cuda, *date;
  uint32_t n_sm;
  GArray *rows;   /* LsProfileRow */
  GArray *failed; /* Failed */
} File;

#define TEXT(type, key_, member_)                                                                            \
  {                                                                                                          \
    key_, LS_FIELD_STRING, offsetof (type, member_)                                                          \
  }
#define NUMBER(key_, member_, max_)                                                                          \
  {                                                                                                          \
    key_, LS_FIELD_DOUBLE, offsetof (LsProfileRow, member_), .required = true, .max = (max_)                 \
  }
#define IGNORED(key_)                                                                                        \
  {                                                                                                          \
    key_, LS_FIELD_IGNORED                                                                                   \
  }

static const LsField row_fields[] = {
  { "group", LS_FIELD_STRING, offsetof (LsProfileRow, group), .required = true },
  { "name", LS_FIELD_STRING, offsetof (LsProfileRow, name), .required = true },
  TEXT (LsProfileRow, "shape", shape),
  TEXT (LsProfileRow, "dtype", dtype),
  NUMBER ("bytes", bytes, 1e18),
  NUMBER ("flops", flops, 1e24),
  NUMBER ("time_us", time_us, MAX_TIME_US),
  IGNORED ("spread_pct"),
  IGNORED ("rate"),
  TEXT (LsProfileRow, "note", note),
  TEXT (LsProfileRow, "disturbed", disturbed),
  TEXT (LsProfileRow, "implementation", implementation),
  IGNORED ("sm_mhz"),
  IGNORED ("sm_mhz_min"),
  IGNORED ("memory_mhz"),
  IGNORED ("power_w"),
  IGNORED ("temperature_c"),
  IGNORED ("throttle"),
  IGNORED ("others"),
  { NULL },
};

static const LsField failed_fields[] = {
  { "case", LS_FIELD_STRING, offsetof (Failed, what), .required = true },
  { "why", LS_FIELD_STRING, offsetof (Failed, why), .required = true },
  { NULL },
};

const LsField ls_profile_file_fields[] = {
  { "schema", LS_FIELD_STRING, offsetof (File, schema), .required = true },
  { "gpu", LS_FIELD_STRING, offsetof (File, gpu), .required = true, .meaning = "what the driver calls it" },
  { "n_sms", LS_FIELD_UINT, offsetof (File, n_sm), .required = true, .min = 1, .max = 65536,
    .meaning = "its multiprocessors" },
  TEXT (File, "driver", driver),
  TEXT (File, "cuda", cuda),
  { "date", LS_FIELD_STRING, offsetof (File, date), .required = true, .meaning = "of the measurement" },
  IGNORED ("l2_bytes"),
  IGNORED ("memory_bytes"),
  IGNORED ("cublaslt"),
  IGNORED ("method"),
  IGNORED ("n_skipped"),
  IGNORED ("states"),
  IGNORED ("uuid"),
  IGNORED ("mig"),
  IGNORED ("host"),
  IGNORED ("checked"),
  { "failed", LS_FIELD_ARRAY, offsetof (File, failed), .fields = failed_fields,
    .element_size = sizeof (Failed), .meaning = "kernels that could not be measured" },
  { "rows", LS_FIELD_ARRAY, offsetof (File, rows), .required = true, .fields = row_fields,
    .element_size = sizeof (LsProfileRow), .meaning = "the kernels" },
  { NULL },
};

void
ls_profile_free (LsProfile *p)
{
  if (!p)
    return;
  g_free (p->path);
  g_free (p->gpu);
  g_free (p->driver);
  g_free (p->cuda);
  g_free (p->date);
  g_free (p->sha256);
  g_clear_pointer (&p->kernels, g_array_unref);
  g_clear_pointer (&p->sustained, g_array_unref);
  g_clear_pointer (&p->in_layer, g_array_unref);
  g_clear_pointer (&p->facts, g_array_unref);
  ls_json_doc_free (p->doc);
  ls_csv_free (p->csv);
  g_free (p);
}

/* ---- where ---- */

static void G_GNUC_PRINTF (5, 0) complain (const LsProfile *p, guint row, const char *key, LsDiagList *diags,
                                           const char *format, va_list args)
{
  g_autofree char *message = g_strdup_vprintf (format, args);
  if (p->csv) {
    static const char *const times[] = { "time_us", "latency_ms", "latency_us", "us_median", "end_us" };
    int column = ls_csv_column (p->csv, key);
    for (guint i = 0; column < 0 && i < G_N_ELEMENTS (times); i++)
      column = ls_csv_column (p->csv, times[i]);
    ls_csv_error (p->csv, row, (guint) MAX (column, 0), diags, "%s", message);
    return;
  }
  const cJSON *rows = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (p->doc), "rows");
  const cJSON *node = cJSON_GetArrayItem (rows, (int) row),
              *member = cJSON_GetObjectItemCaseSensitive (node, key);
  ls_json_doc_diag (p->doc, member ? member : node, LS_JSON_AT_VALUE, diags, NULL, "%s", message);
}

void
ls_profile_error_at (const LsProfile *p, guint row, const char *key, LsDiagList *diags, const char *format,
                     ...)
{
  va_list args;
  va_start (args, format);
  complain (p, row, key, diags, format, args);
  va_end (args);
}

void
ls_profile_error (const LsProfile *p, guint row, LsDiagList *diags, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  complain (p, row, "time_us", diags, format, args);
  va_end (args);
}

/* ---- events around kernels ---- */

static bool
is_isolated (LsKernelKind kind)
{
  return kind <= LS_KERNEL_ATTENTION_BWD;
}

static void
find_events (LsProfile *p, const LsProfileRow *r)
{
  if (strcmp (r->group, "host") == 0 && strcmp (r->name, "event-pair") == 0
      && !ls_profile_row_is_disturbed (r))
    p->events_s = r->time_us * 1e-6;
}

static void
take_events_off_each (const LsProfile *p, GArray *kernels, bool with_streams)
{
  for (guint i = 0; i < kernels->len; i++) {
    LsTimedKernel *t = &g_array_index (kernels, LsTimedKernel, i);
    if ((with_streams || is_isolated (t->kernel.kind)) && p->events_s < t->measured_s)
      t->measured_s -= p->events_s;
  }
}

/* Products and attention are timed alone, between two events, and so are the kernels of a layer; streams back
 * to back. */
static void
take_events_off (LsProfile *p)
{
  take_events_off_each (p, p->kernels, false);
  take_events_off_each (p, p->in_layer, true);
}

/* ---- files ---- */

static void
read_json (LsProfile *p, LsDiagList *diags)
{
  static const char *const schema = "lockstep.kernelbench/1";
  File file = { 0 };
  bool ok = ls_fields_read (ls_profile_file_fields, p->doc, ls_json_doc_root (p->doc), &file, NULL, diags);
  if (ok && strcmp (file.schema, schema) != 0) {
    const cJSON *node = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (p->doc), "schema");
    ls_json_doc_diag (p->doc, node, LS_JSON_AT_VALUE, diags, NULL, "expected \"%s\"; got \"%.40s\"", schema,
                      file.schema);
    ok = false;
  }
  p->n_rows = file.rows ? file.rows->len : 0;
  for (guint i = 0; ok && i < p->n_rows; i++) {
    find_events (p, &g_array_index (file.rows, LsProfileRow, i));
    ls_profile_take_row (p, i, &g_array_index (file.rows, LsProfileRow, i), diags);
  }
  p->n_failed = file.failed ? file.failed->len : 0;
  p->gpu = g_steal_pointer (&file.gpu);
  p->driver = g_steal_pointer (&file.driver);
  p->cuda = g_steal_pointer (&file.cuda);
  p->date = g_steal_pointer (&file.date);
  p->n_sm = file.n_sm;
  ls_fields_clear (ls_profile_file_fields, &file);
}

static void
read_csv (LsProfile *p, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  g_autoptr (GArray) columns = g_array_new (FALSE, FALSE, sizeof (LsCsvField));
  for (const LsField *f = row_fields; f->key; f++)
    if (f->kind != LS_FIELD_IGNORED)
      ls_csv_fields_find (p->csv, f, f->required, 0, columns, diags);
  bool ok = ls_diag_list_n (diags) == n_before;
  p->n_rows = ls_csv_n_rows (p->csv);
  for (guint i = 0; ok && i < p->n_rows; i++) {
    LsProfileRow row = { 0 };
    n_before = ls_diag_list_n (diags);
    ls_csv_fields_read (p->csv, i, columns, &row, diags);
    if (ls_diag_list_n (diags) == n_before) {
      find_events (p, &row);
      ls_profile_take_row (p, i, &row, diags);
    }
    ls_fields_clear (row_fields, &row);
  }
}

static void
read_table (LsProfile *p, const char *text, const char *gpu, LsDiagList *diags)
{
  g_autoptr (GArray) rows = ls_parse_kernels (p->path, text, gpu, diags);
  p->n_rows = ls_csv_n_rows (p->csv);
  for (guint i = 0; rows && i < rows->len; i++) {
    const LsTimedKernel *t = &g_array_index (rows, LsTimedKernel, i);
    if (isnan (t->measured_s)) {
      ls_csv_header_error (p->csv, diags,
                           "expected a column with times: latency_ms, latency_us or us_median; got none");
      return;
    }
    g_array_append_val (p->kernels, *t);
  }
}

/* The first character that is no blank tells JSON from CSV. */
static bool
is_json (const char *text)
{
  return text[strspn (text, " \t\r\n")] == '{';
}

LsProfile *
ls_profile_parse (const char *path, const char *text, size_t n, const char *gpu, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  g_autoptr (LsProfile) p = g_new0 (LsProfile, 1);
  p->path = g_strdup (path);
  p->sha256 = g_compute_checksum_for_data (G_CHECKSUM_SHA256, (const guchar *) text, n);
  p->kernels = g_array_new (FALSE, FALSE, sizeof (LsTimedKernel));
  p->sustained = g_array_new (FALSE, FALSE, sizeof (LsTimedKernel));
  p->in_layer = g_array_new (FALSE, FALSE, sizeof (LsTimedKernel));
  p->facts = g_array_new (FALSE, FALSE, sizeof (LsProfileFact));
  if (is_json (text))
    p->doc = ls_json_doc_parse (text, n, path, diags);
  else
    p->csv = ls_csv_parse (path, text, (gssize) n, diags);
  if (!p->doc && !p->csv)
    return NULL;
  bool has_spans = p->csv && ls_profile_has_spans (p->csv);
  p->is_ours = p->doc || has_spans
      || (ls_csv_column (p->csv, "group") >= 0 && ls_csv_column (p->csv, "time_us") >= 0);
  if (p->doc)
    read_json (p, diags);
  else if (has_spans)
    ls_profile_read_spans (p, diags);
  else if (p->is_ours)
    read_csv (p, diags);
  else
    read_table (p, text, gpu ? gpu : "", diags);
  take_events_off (p);
  ls_hold_kernels_out (p->kernels, false);
  ls_hold_kernels_out (p->sustained, false);
  return ls_diag_list_n (diags) == n_before ? g_steal_pointer (&p) : NULL;
}

LsProfile *
ls_profile_load (const char *path, const char *gpu, LsDiagList *diags)
{
  size_t n;
  g_autofree char *text = ls_read_file (path, LS_MAX_INPUT_BYTES, &n, diags);
  return text ? ls_profile_parse (path, text, n, gpu, diags) : NULL;
}

/* --- by group and name ----------------------------------------------------------------------------- */

const LsProfileFact *
ls_profile_fact (const LsProfile *p, const char *group, const char *name)
{
  for (guint i = p->facts->len; i > 0; i--) {
    const LsProfileFact *f = &g_array_index (p->facts, LsProfileFact, i - 1);
    if (strcmp (f->group, group) == 0 && strcmp (f->name, name) == 0)
      return f;
  }
  return NULL;
}

double
ls_profile_noted (const LsProfileFact *f, const char *key)
{
  g_auto (GStrv) words = g_strsplit (f->note ? f->note : "", " ", -1);
  for (char **word = words; *word; word++)
    if (g_str_has_prefix (*word, key) && (*word)[strlen (key)] == '=')
      return g_ascii_strtod (*word + strlen (key) + 1, NULL);
  return NAN;
}

bool
ls_profile_has_word (const LsProfileFact *f, const char *word)
{
  g_auto (GStrv) words = g_strsplit (f->note ? f->note : "", " ", -1);
  return g_strv_contains ((const char *const *) words, word);
}

double
ls_profile_mean_noted (const LsProfile *p, const char *group, const char *name, const char *key)
{
  double sum = 0;
  guint n = 0;
  for (guint i = 0; i < p->facts->len; i++) {
    const LsProfileFact *f = &g_array_index (p->facts, LsProfileFact, i);
    double value
        = strcmp (f->group, group) == 0 && strcmp (f->name, name) == 0 ? ls_profile_noted (f, key) : NAN;
    if (isnan (value))
      continue;
    sum += value;
    n++;
  }
  return n > 0 ? sum / n : NAN;
}
