#include "data/measured/read_nccl_tests.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "data/text/csv.h"
#include "data/text/read_file.h"

/* --- measured collectives, one a row, as `lockstep collective --compare` reads them -------------- */

#define MAX_TIME_US 1e13 /* beyond the clock: 115 days */

static const LsField fields[] = {
  { "cluster", LS_FIELD_STRING, offsetof (LsMeasuredCollective, cluster) },
  { "trust", LS_FIELD_STRING, offsetof (LsMeasuredCollective, trust) },
  { "op", LS_FIELD_STRING, offsetof (LsMeasuredCollective, op), .required = true },
  { "gpus", LS_FIELD_UINT, offsetof (LsMeasuredCollective, n_gpus), .min = 1, .max = LS_COLLECTIVE_MAX_GPUS },
  { "nodes", LS_FIELD_UINT, offsetof (LsMeasuredCollective, n_nodes), .min = 1,
    .max = LS_COLLECTIVE_MAX_GPUS },
  { "size_bytes", LS_FIELD_UINT64, offsetof (LsMeasuredCollective, bytes),
    .max = (double) LS_COLLECTIVE_MAX_BYTES },
  { "time_us", LS_FIELD_DOUBLE, offsetof (LsMeasuredCollective, time_us), .min = 1e-6, .max = MAX_TIME_US },
  { NULL },
};

static void
measured_free (gpointer data)
{
  LsMeasuredCollective *m = data;
  g_free (m->cluster);
  g_free (m->trust);
  g_free (m->op);
  g_free (m);
}

static LsMeasuredCollective *
read_row (const LsCsv *csv, guint row, const GArray *columns, LsDiagList *diags)
{
  LsMeasuredCollective *m = g_new0 (LsMeasuredCollective, 1);
  ls_csv_fields_read (csv, row, columns, m, diags);
  if (m->n_gpus > 0 && m->n_nodes > 0 && m->n_gpus % m->n_nodes != 0)
    ls_csv_error (csv, row, (guint) ls_csv_column (csv, "nodes"), diags,
                  "expected a divisor of gpus %u; got %u", m->n_gpus, m->n_nodes);
  return m;
}

static GPtrArray *
collectives_of_table (const LsCsv *csv, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  g_autoptr (GArray) columns = g_array_new (FALSE, FALSE, sizeof (LsCsvField));
  for (const LsField *field = fields; field->key; field++)
    ls_csv_fields_find (csv, field, !g_str_equal (field->key, "trust"), 0, columns, diags);
  if (ls_csv_n_rows (csv) == 0)
    ls_csv_header_error (csv, diags,
                         "expected a row for each measured collective below the header; got none");
  if (ls_diag_list_n (diags) > n_before)
    return NULL;

  g_autoptr (GPtrArray) rows = g_ptr_array_new_with_free_func (measured_free);
  for (guint row = 0; row < ls_csv_n_rows (csv); row++)
    g_ptr_array_add (rows, read_row (csv, row, columns, diags));
  return ls_diag_list_n (diags) == n_before ? g_steal_pointer (&rows) : NULL;
}

GPtrArray *
ls_read_collectives (const char *path, LsDiagList *diags)
{
  g_autoptr (LsCsv) csv = ls_csv_load (path, diags);
  return csv ? collectives_of_table (csv, diags) : NULL;
}

GPtrArray *
ls_parse_collectives (const char *name, const char *text, LsDiagList *diags)
{
  g_autoptr (LsCsv) csv = ls_csv_parse (name, text, -1, diags);
  return csv ? collectives_of_table (csv, diags) : NULL;
}

/* Runs of nccl-tests, as text or as JSON (its -J), or a table of measured collectives
 * (data/measured/read_nccl_tests.h), whose rows of one kind are then a run. */

/* --- a text of several runs ------------------------------------------------------------------------- */

/* The first lines of a run, in their order; then all others. */
typedef enum { VERSION, START, SETTING, BODY, NONE } Part;

/* Which of them a line is; banners of hosts and MPI are none. */
static Part
part_of (const char *line)
{
  static const struct {
    const char *prefix;
    Part part;
  } parts[] = {
    { "# nccl-tests version", VERSION },
    { "# Collective test starting:", START },
    { "# nThread", SETTING },
    { "#  Rank", BODY },
    { "# Rank", BODY },
    { "# Collective test concluded", BODY },
    { "#", NONE },
  };
  const char *first = line + strspn (line, " \t");
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    if (g_str_has_prefix (line, parts[i].prefix))
      return parts[i].part;
  return g_ascii_isdigit (*first) ? BODY : NONE;
}

/* Where the runs of a text begin: ascending indices of lines (guint), the first 0. */
/* A line that cannot follow those of the run begins the next. */
static GArray *
nccl_tests_split (char *const *lines)
{
  GArray *starts = g_array_new (FALSE, FALSE, sizeof (guint));
  Part reached = NONE;
  for (guint i = 0; lines[i]; i++) {
    Part part = part_of (lines[i]);
    if (part == NONE)
      continue;
    bool is_next = part < BODY && reached != NONE && part <= reached;
    if (starts->len == 0 || is_next) {
      guint at = starts->len == 0 ? 0 : i;
      g_array_append_val (starts, at);
    }
    reached = part;
  }
  guint none = 0;
  if (starts->len == 0)
    g_array_append_val (starts, none);
  return starts;
}

/* --- runs ------------------------------------------------------------------------------------------- */

/* Rates are printed with as few as two digits, times too. */
#define RATE_SLACK     0.1
#define RATE_STEP_GB_S 0.011

void
ls_nccl_tests_free (LsNcclTests *t)
{
  if (!t)
    return;
  g_free (t->path);
  g_free (t->sha256);
  g_free (t->test);
  g_free (t->op);
  g_free (t->cluster);
  g_free (t->trust);
  g_free (t->gpu);
  g_free (t->date);
  g_free (t->version);
  g_clear_pointer (&t->rows, g_array_unref);
  g_free (t);
}

/* ---- devices ---- */

void
ls_nccl_tests_devices_init (LsNcclTestsDevices *d)
{
  *d = (LsNcclTestsDevices) { .hosts = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
                              .per_process = 1 };
}

void
ls_nccl_tests_devices_clear (LsNcclTestsDevices *d)
{
  g_hash_table_unref (d->hosts);
}

void
ls_nccl_tests_add_device (LsNcclTestsDevices *d, guint64 rank, guint64 group, const char *host)
{
  g_hash_table_add (d->hosts, g_strdup (host));
  d->has_groups = d->has_groups || group != 0;
  d->last_rank = MAX (d->last_rank, rank);
  d->n_listed++;
}

guint
ls_nccl_tests_n_ranks (const LsNcclTestsDevices *d)
{
  bool is_first_of_process = d->last_rank % d->per_process == 0;
  return d->n_listed == 0 ? 0 : (guint) d->last_rank + (is_first_of_process ? d->per_process : 1);
}

/* ---- rows ---- */

char *
ls_nccl_tests_row_trouble (double bytes, double time_us, double algbw, double n_wrong)
{
  if (!(time_us > 0) || isinf (time_us))
    return g_strdup_printf ("expected a time above 0; got %g", time_us);
  if (n_wrong > 0)
    return g_strdup_printf ("%g wrong elements (#wrong): times of wrong results are worth nothing", n_wrong);
  double should = bytes / time_us / 1e3;
  if (!(fabs (algbw - should) <= RATE_SLACK * should + RATE_STEP_GB_S))
    return g_strdup_printf ("the line is damaged: %.0f bytes in %g us are %.4g GB/s, not %g", bytes, time_us,
                            should, algbw);
  return NULL;
}

char *
ls_nccl_tests_name (const char *program)
{
  g_autofree char *base = g_path_get_basename (program);
  char *end = strstr (base, "_perf");
  return end && end > base ? g_strndup (base, (gsize) (end - base)) : NULL;
}

/* ---- file ---- */

static LsNcclTests *
run_new (const char *path, const char *sha256)
{
  LsNcclTests *t = g_new0 (LsNcclTests, 1);
  t->path = g_strdup (path);
  t->sha256 = g_strdup (sha256);
  t->rows = g_array_new (FALSE, FALSE, sizeof (LsNcclTestsRow));
  return t;
}

static void
check_run (const LsNcclTests *t, LsDiagList *diags)
{
  int column = t->line > 0;
  if (t->rows->len == 0)
    ls_diag_add (diags, LS_ERROR_INPUT, t->path, t->line, column, NULL, NULL, NULL,
                 "expected the output of nccl-tests with rows of sizes above 0; got none");
  else if (t->n_ranks == 0)
    ls_diag_add (diags, LS_ERROR_INPUT, t->path, t->line, column, NULL, NULL, NULL,
                 "expected the devices that took part (\"#  Rank  0 ... on HOST device ...\"); got none");
}

static void
read_texts (GPtrArray *runs, const char *path, const char *sha256, const char *text, size_t n,
            LsDiagList *diags)
{
  if (!g_utf8_validate (text, (gssize) n, NULL)) {
    ls_diag_add (diags, LS_ERROR_INPUT, path, 0, 0, NULL, NULL, NULL, "expected UTF-8 text without NUL");
    return;
  }
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  g_autoptr (GArray) starts = nccl_tests_split (lines);
  for (guint i = 0; i < starts->len; i++) {
    LsNcclTests *t = run_new (path, sha256);
    guint first = g_array_index (starts, guint, i),
          last = i + 1 < starts->len ? g_array_index (starts, guint, i + 1) : g_strv_length (lines);
    t->line = starts->len > 1 ? (int) first + 1 : 0;
    g_ptr_array_add (runs, t);
    if (ls_nccl_tests_read_lines (t, lines, first, last, diags))
      check_run (t, diags);
  }
}

static void
read_one_json (GPtrArray *runs, const char *path, const char *sha256, const char *text, size_t n,
               LsDiagList *diags)
{
  LsNcclTests *t = run_new (path, sha256);
  g_ptr_array_add (runs, t);
  if (ls_nccl_tests_read_json (t, text, n, diags))
    check_run (t, diags);
}

/* ---- tables ---- */

/* By its header: what nccl-tests prints has no commas there. */
static bool
is_table (const char *text)
{
  while (*text == '#' || *text == '\n' || *text == '\r')
    text += strcspn (text, "\n") + (text[strcspn (text, "\n")] == '\n');
  g_autofree char *header = g_strndup (text, strcspn (text, "\n"));
  return strchr (header, ',') && strstr (header, "size_bytes");
}

static bool
is_of_run (const LsNcclTests *t, const LsMeasuredCollective *m)
{
  return strcmp (t->op, m->op) == 0 && strcmp (t->cluster, m->cluster) == 0
      && g_strcmp0 (t->trust, m->trust) == 0 && t->n_ranks == m->n_gpus && t->n_hosts == m->n_nodes;
}

static LsNcclTests *
run_of (GPtrArray *runs, const char *path, const char *sha256, const LsMeasuredCollective *m)
{
  for (guint i = 0; i < runs->len; i++)
    if (is_of_run (runs->pdata[i], m))
      return runs->pdata[i];
  LsNcclTests *t = run_new (path, sha256);
  t->op = g_strdup (m->op);
  t->cluster = g_strdup (m->cluster);
  t->trust = g_strdup (m->trust);
  t->n_ranks = m->n_gpus;
  t->n_hosts = m->n_nodes;
  g_ptr_array_add (runs, t);
  return t;
}

static void
read_table (GPtrArray *runs, const char *path, const char *sha256, const char *text, size_t n,
            LsDiagList *diags)
{
  g_autoptr (GPtrArray) rows = ls_parse_collectives (path, text, diags);
  for (guint i = 0; rows && i < rows->len; i++) {
    const LsMeasuredCollective *m = rows->pdata[i];
    LsNcclTests *t = run_of (runs, path, sha256, m);
    const LsNcclTestsRow row = { m->bytes, m->time_us };
    if (m->bytes > 0)
      g_array_append_val (t->rows, row);
  }
  for (guint i = 0; i < runs->len; i++)
    check_run (runs->pdata[i], diags);
}

GPtrArray *
ls_nccl_tests_parse (const char *path, const char *text, size_t n, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  g_autoptr (GPtrArray) runs = g_ptr_array_new_with_free_func ((GDestroyNotify) ls_nccl_tests_free);
  g_autofree char *sha256 = g_compute_checksum_for_data (G_CHECKSUM_SHA256, (const guchar *) text, n);
  bool is_json = text[strspn (text, " \t\r\n")] == '{';
  (is_json ? read_one_json : is_table (text) ? read_table : read_texts) (runs, path, sha256, text, n, diags);
  return ls_diag_list_n (diags) == n_before ? g_steal_pointer (&runs) : NULL;
}

GPtrArray *
ls_nccl_tests_load (const char *path, LsDiagList *diags)
{
  size_t n;
  g_autofree char *text = ls_read_file (path, LS_MAX_INPUT_BYTES, &n, diags);
  return text ? ls_nccl_tests_parse (path, text, n, diags) : NULL;
}
