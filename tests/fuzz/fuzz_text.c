/* Any text as a file or words of a kind: read, or refused with reasons. fuzz_target is the kind. */
#include "fuzz.h"

#include <math.h>
#include <string.h>

#include <lockstep/units.h>

#include "data/jobs/imported.h"
#include "data/jobs/job_files.h"
#include "data/jobs/read_schedule.h"
#include "data/measured/read_cases.h"
#include "data/measured/read_kernels.h"
#include "data/measured/read_nccl_tests.h"
#include "data/text/csv.h"
#include "data/text/json_doc.h"
#include "data/text/toml.h"
#include "data/text/yaml.h"
#include "job/job.h"
#include "schedules/sched_eval.h"

/* ---- tables ---- */

/* The number of rows; -1 if it is no table. */
static int
rows_of (const char *text)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsCsv) csv = ls_csv_parse ("fuzz.csv", text, -1, diags);
  g_assert ((csv == NULL) == (ls_diag_list_n (diags) > 0));
  for (guint row = 0; csv && row < ls_csv_n_rows (csv); row++)
    for (guint column = 0; column < ls_csv_n_columns (csv); column++)
      g_assert (ls_csv_cell (csv, row, column) != NULL);
  return csv ? (int) ls_csv_n_rows (csv) : -1;
}

static bool
read_cases (const char *text, LsDiagList *diags)
{
  int n_rows = rows_of (text);
  g_autoptr (GPtrArray) cases = ls_read_cases ("fuzz.csv", text, false, diags);
  g_assert (!cases || (int) cases->len == n_rows);
  return cases != NULL;
}

static bool
read_collectives (const char *text, LsDiagList *diags)
{
  g_autoptr (GPtrArray) rows = ls_read_collectives ("fuzz.csv", text, NULL, diags);
  for (guint i = 0; rows && i < rows->len; i++) {
    const LsMeasuredCollective *m = g_ptr_array_index (rows, i);
    g_assert (m->cluster && m->op && *m->op && m->n_nodes > 0 && m->n_gpus % m->n_nodes == 0
              && m->time_us > 0);
  }
  return rows != NULL;
}

static bool
read_kernels (const char *text, LsDiagList *diags)
{
  g_autoptr (GArray) rows = ls_read_kernels ("fuzz.csv", text, "a100", NULL, NULL, diags);
  for (guint i = 0; rows && i < rows->len; i++) {
    const LsTimedKernel *t = &g_array_index (rows, LsTimedKernel, i);
    g_assert (t->kernel.bytes > 0 && t->kernel.flops >= 0 && isfinite (t->kernel.flops));
    g_assert (isnan (t->measured_s) || t->measured_s > 0);
  }
  return rows != NULL;
}

static void
check_nccl_run (const LsNcclTests *t)
{
  g_assert (t->rows->len > 0 && t->n_ranks > 0 && t->n_hosts > 0);
  for (guint i = 0; i < t->rows->len; i++) {
    const LsNcclTestsRow *row = &g_array_index (t->rows, LsNcclTestsRow, i);
    g_assert (row->bytes > 0 && row->time_us > 0 && isfinite (row->time_us));
  }
}

/* An output of nccl-tests. */
static bool
read_nccl_tests (const char *text, LsDiagList *diags)
{
  g_autoptr (GPtrArray) runs = ls_nccl_tests_parse ("fuzz", text, strlen (text), diags);
  for (guint i = 0; runs && i < runs->len; i++)
    check_nccl_run (runs->pdata[i]);
  return runs != NULL;
}

static void
check_profile_rows (const GArray *kernels, guint n_rows)
{
  for (guint i = 0; i < kernels->len; i++) {
    const LsTimedKernel *t = &g_array_index (kernels, LsTimedKernel, i);
    g_assert (t->measured_s > 0 && isfinite (t->measured_s) && t->kernel.bytes > 0 && t->row < n_rows);
  }
}

/* Measured kernels, a profile or a table. Every row can be pointed at. */
static bool
read_profile (const char *text, LsDiagList *diags)
{
  g_autoptr (LsProfile) p = ls_profile_parse ("fuzz", text, strlen (text), "a100", diags);
  if (!p)
    return false;
  g_autoptr (LsDiagList) pointed = ls_diag_list_new ();
  check_profile_rows (p->kernels, p->n_rows);
  check_profile_rows (p->sustained, p->n_rows);
  for (guint i = 0; i < p->n_rows; i++)
    ls_profile_error (p, i, "time_us", pointed, "row %u", i);
  g_autofree char *said = ls_diag_list_format (pointed);
  g_assert (g_utf8_validate (said, -1, NULL));
  return true;
}

/* A schedule in PyTorch's format: orders that run to their end. */
static bool
read_schedule (const char *text, LsDiagList *diags)
{
  static const LsSchedTimes times = { .chunk = { 1, 1, 1, 2, 3 } };
  g_autoptr (LsOrders) orders = ls_parse_schedule ("fuzz.csv", text, diags);
  if (!orders)
    return false;
  g_autoptr (LsSchedEval) eval = ls_orders_eval (orders, &times);
  g_assert (eval->ideal > 0 && eval->ideal <= eval->span && eval->span <= eval->makespan);
  return true;
}

static void
read_text (const char *text, bool (*read) (const char *text, LsDiagList *diags))
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  bool ok = read (text, diags);
  g_assert (ok == (ls_diag_list_n (diags) == 0));
  g_autofree char *said = ls_diag_list_format (diags);
  g_assert (g_utf8_validate (said, -1, NULL));
}

/* ---- trees: within their bounds; as JSON they are read again, of YAML as the same ---- */

typedef struct {
  cJSON *(*parse) (const char *text, gsize n, LsDiagList *diags);
  guint max_depth, max_items, max_reasons;
  bool is_same; /* when it is printed and read again; TOML has numbers that JSON has not */
} TreeKind;

static cJSON *
parse_toml (const char *text, gsize n, LsDiagList *diags)
{
  return ls_toml_parse (text, n, "fuzz.toml", diags);
}

static cJSON *
parse_yaml (const char *text, gsize n, LsDiagList *diags)
{
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  return ls_yaml_parse (text, n, "fuzz.yaml", notes, diags);
}

static const TreeKind toml = { parse_toml, LS_JSON_MAX_DEPTH - 1, LS_TOML_MAX_ITEMS + 1, 1, false };
/* A tag on a list is a level of its own in the tree. */
static const TreeKind yaml = { parse_yaml, 2 * LS_JSON_MAX_DEPTH, LS_YAML_MAX_NODES, G_MAXUINT, true };

/* Items of a tree; no name or text is missing. */
static guint
count (const TreeKind *kind, const cJSON *item, guint depth)
{
  guint n = 1;
  g_assert (depth <= kind->max_depth);
  g_assert (!cJSON_IsString (item) || g_utf8_validate (item->valuestring, -1, NULL));
  for (const cJSON *c = item->child; c; c = c->next) {
    g_assert (!cJSON_IsObject (item) || (c->string && g_utf8_validate (c->string, -1, NULL)));
    n += count (kind, c, depth + 1);
  }
  return n;
}

static void
print_and_read (const TreeKind *kind, const cJSON *root)
{
  char *text = cJSON_PrintUnformatted (root);
  g_assert (text && g_utf8_validate (text, -1, NULL));
  cJSON *again = cJSON_Parse (text);
  g_assert (again);
  char *text_again = cJSON_PrintUnformatted (again);
  g_assert (!kind->is_same || g_str_equal (text, text_again));
  cJSON_free (text_again);
  cJSON_Delete (again);
  cJSON_free (text);
}

static void
read_tree (const TreeKind *kind, const char *data, gsize n)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  cJSON *root = kind->parse (data, n, diags);
  guint n_reasons = ls_diag_list_n (diags);
  g_assert (root ? n_reasons == 0 : n_reasons >= 1 && n_reasons <= kind->max_reasons);
  g_autofree char *text = ls_diag_list_format (diags);
  g_assert (g_utf8_validate (text, -1, NULL));
  if (!root)
    return;
  g_assert (count (kind, root, 0) <= kind->max_items);
  print_and_read (kind, root);
  cJSON_Delete (root);
}

static void
fuzz_toml (const uint8_t *data, size_t n)
{
  read_tree (&toml, (const char *) data, n);
}

static void
fuzz_yaml (const uint8_t *data, size_t n)
{
  read_tree (&yaml, (const char *) data, n);
}

/* ---- launch files: what is read without a contradiction is a strategy that our own reader accepts ---- */

static void
check_lists (const LsImported *import)
{
  for (guint i = 0; i < import->remarks->len; i++) {
    const LsRemark *r = &g_array_index (import->remarks, LsRemark, i);
    g_assert (r->kind >= LS_REMARK_BY_RULE ? r->key || r->text : g_utf8_validate (r->text, -1, NULL));
  }
  g_assert (isfinite (import->measured.step_s) && import->measured.step_s >= 0);
  g_assert (import->measured.n_steady <= import->measured.n_lines);
}

static void
read_back (const LsImported *import)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsStrategy s;
  if (ls_strategy_read (import->strategy, &s, diags))
    ls_strategy_clear (&s);
}

static void
fuzz_launch (const uint8_t *data, size_t n)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsImported import;
  bool ok = ls_import_read ((const char *) data, n, "fuzz.sh", NULL, &import, diags);
  g_assert (ok == (ls_diag_list_n (diags) == 0));
  g_autofree char *text = ls_diag_list_format (diags);
  g_assert (g_utf8_validate (text, -1, NULL));
  if (!ok)
    return;
  check_lists (&import);
  read_back (&import);
  ls_import_clear (&import);
}

/* ---- lines "key=value" as knobs of a job: one that is set again to what it was set to is accepted again ---- */

static void
set (LsJobSpec *spec, char *line)
{
  char *value = strchr (line, '=');
  if (!value || !g_utf8_validate (line, -1, NULL)) /* the command line is checked before */
    return;
  *value++ = '\0';
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  gboolean ok = ls_job_spec_set (spec, line, value, diags);
  g_assert (ok == (ls_diag_list_n (diags) == 0));
  g_assert (!ok || ls_job_spec_set (spec, line, value, diags));
  g_autofree char *text = ls_diag_list_format (diags);
  g_assert (g_utf8_validate (text, -1, NULL));
}

static void
fuzz_flags (const uint8_t *data, size_t n)
{
  g_autofree char *text = fuzz_text (data, n);
  g_auto (GStrv) lines = g_strsplit (text, "\n", 64);
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  for (char **line = lines; *line; line++)
    set (&spec, *line);
  ls_job_spec_options (&spec);
  ls_job_spec_clear (&spec);
}

/* ---- quantities: in range, and what is printed for people reads back as nearly the same ---- */

/* What is printed has a digit after the point. */
static void
check_near (double got, double printed)
{
  g_assert (fabs (got - printed) <= 0.06 * fabs (got) + 1);
}

static void
check_time (const char *text)
{
  LsTime t = -1, again;
  const char *expected = NULL;
  if (!ls_parse_time (text, &t, &expected)) {
    g_assert (t == -1 && expected);
    return;
  }
  g_assert (t >= 0 && t < LS_TIME_NEVER);
  g_autofree char *printed = ls_format_time (t);
  if (ls_parse_time (printed, &again, NULL)) /* minutes and hours are for people only */
    check_near ((double) t, (double) again);
}

static void
check_bytes (const char *text)
{
  uint64_t bytes = UINT64_MAX, again;
  const char *expected = NULL;
  if (!ls_parse_bytes (text, &bytes, &expected)) {
    g_assert (bytes == UINT64_MAX && expected);
    return;
  }
  g_autofree char *printed = ls_format_bytes (bytes);
  if (ls_parse_bytes (printed, &again, NULL))
    check_near ((double) bytes, (double) again);
}

static void
check_rate (const char *text, bool (*parse) (const char *, double *, const char **),
            char *(*format) (double) )
{
  double rate = -1, again;
  const char *expected = NULL;
  if (!parse (text, &rate, &expected)) {
    g_assert (rate == -1 && expected);
    return;
  }
  g_assert (isfinite (rate) && rate >= 0);
  g_autofree char *printed = format (rate);
  if (parse (printed, &again, NULL))
    check_near (rate, again);
}

static void
fuzz_units (const uint8_t *data, size_t n)
{
  g_autofree char *text = fuzz_text (data, n);
  check_time (text);
  check_bytes (text);
  check_rate (text, ls_parse_rate, ls_format_rate);
  check_rate (text, ls_parse_flops, ls_format_flops);
}

/* ---- kinds ---- */

static const struct {
  const char *target;
  bool (*read) (const char *text, LsDiagList *diags); /* a table; NULL: run */
  void (*run) (const uint8_t *data, size_t n);
} kinds[] = {
  { "cases", read_cases, NULL },     { "collectives", read_collectives, NULL },
  { "flags", NULL, fuzz_flags },     { "kernels", read_kernels, NULL },
  { "launch", NULL, fuzz_launch },   { "nccl_tests", read_nccl_tests, NULL },
  { "profile", read_profile, NULL }, { "schedule", read_schedule, NULL },
  { "toml", NULL, fuzz_toml },       { "units", NULL, fuzz_units },
  { "yaml", NULL, fuzz_yaml },
};

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  g_autofree char *text = fuzz_text (data, n);
  for (size_t i = 0; i < G_N_ELEMENTS (kinds); i++)
    if (strcmp (kinds[i].target, fuzz_target) == 0) {
      if (kinds[i].read)
        read_text (text, kinds[i].read);
      else
        kinds[i].run (data, n);
      return 0;
    }
  fuzz_fail ("no kind of text: %s", fuzz_target);
}
