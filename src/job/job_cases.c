#include "job/job_cases.h"

#include <string.h>

#include "data/text/read_file.h"
#include "job/job.h"
#include "job/job_from.h"

#define GIB 1073741824.0

/* Whether it has a header row, as tables do. */
static bool
is_table (const char *text)
{
  g_autofree char *line = g_strndup (text, strcspn (text, "\r\n"));
  g_auto (GStrv) cells = g_strsplit (line, ",", -1);
  bool has_id = false;
  for (char **cell = cells; *cell; cell++)
    has_id |= g_str_equal (g_strstrip (*cell), "id");
  return has_id && cells[1];
}

/* --- a log ---------------------------------------------------------------------------------------- */

static bool
ask (LsJobSpec *spec, const char *path, const char *cluster, LsDiagList *diags)
{
  return ls_job_spec_set (spec, "from", path, diags) && ls_job_spec_set (spec, "cluster", cluster, diags);
}

static void
take_job (LsCase *c, const LsJobSpec *spec)
{
  GHashTableIter keys;
  gpointer key;
  ls_strategy_clear (&c->strategy);
  ls_strategy_copy (&c->strategy, &spec->strategy);
  if (spec->software) {
    ls_software_settle (spec->software, &c->strategy);
    c->runs_like = g_intern_string (spec->software->runs_like);
    g_free (c->software);
    c->software = g_strdup (spec->software->name);
  }
  for (g_hash_table_iter_init (&keys, spec->said); g_hash_table_iter_next (&keys, &key, NULL);)
    g_hash_table_add (c->said, key);
  if (g_hash_table_contains (c->said, "attention"))
    c->model.attention = (LsAttention) c->strategy.attention;
}

static bool
take_log (LsCase *c, const char *path, LsDiagList *diags)
{
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  bool ok = ask (&spec, path, c->cluster, diags);
  if (ok && spec.from->measured.step_s <= 0) {
    ls_diag_add (diags, LS_ERROR_INPUT, path, 0, 0, NULL, NULL, NULL,
                 "it times no step: nothing is measured");
    ok = false;
  }
  ok = ok && ls_job_load_model (&spec, ls_job_says, &c->model, NULL, diags);
  if (ok && spec.strategy.gpus == 0)
    ls_diag_add (diags, LS_ERROR_INPUT, path, 0, 0, NULL, NULL, NULL,
                 "it does not say how many GPUs there are: give them behind its name, %s:gpus=N", path);
  ok = ok && spec.strategy.gpus > 0;
  if (ok) {
    take_job (c, &spec);
    c->measured_s = spec.from->measured.step_s;
    c->allocated_gib = spec.from->measured.allocated_bytes / GIB;
  }
  ls_job_spec_clear (&spec);
  return ok;
}

static char *
id_of (const char *path)
{
  char *name = g_path_get_basename (path), *dot = strrchr (name, '.');
  if (dot && dot > name)
    *dot = '\0';
  return name;
}

/* The first of what is wrong, in a line, without its place. */
static char *
first_of (const LsDiagList *diags)
{
  g_autofree char *text = ls_diag_list_format (diags);
  const char *mark = strstr (text, "error: "), *from = mark ? mark + strlen ("error: ") : text;
  return g_strndup (from, strcspn (from, "\n"));
}

static LsCase *
case_of_log (const char *path, const char *cluster, LsDiagList *diags)
{
  LsCase *c = ls_case_new ();
  c->id = id_of (path);
  g_free (c->source);
  c->source = g_strdup (path);
  c->cluster = g_strdup (cluster);
  c->family = g_strdup ("logs");
  if (!take_log (c, path, diags))
    c->wrong = first_of (diags);
  return c;
}

/* --- all of them ----------------------------------------------------------------------------------- */

typedef struct {
  const char *cluster;
  bool by_row;
  GPtrArray *cases;
  GChecksum *sum;
} Load;

static void
add_log (Load *l, const char *path, LsDiagList *diags)
{
  g_autoptr (LsDiagList) own = ls_diag_list_new ();
  if (!l->cluster) {
    ls_diag_add (diags, LS_ERROR_USAGE, path, 0, 0, NULL, NULL, NULL,
                 "this is no table of cases; a log needs --cluster: where it ran");
    return;
  }
  LsCase *c = case_of_log (path, l->cluster, own);
  if (c->wrong && !l->by_row)
    ls_diag_add (diags, LS_ERROR_INPUT, path, 0, 0, NULL, NULL, NULL, "%s", c->wrong);
  g_ptr_array_add (l->cases, c);
}

static void
add_table (Load *l, const char *path, LsDiagList *diags)
{
  GPtrArray *rows = l->by_row ? ls_read_cases_by_row (path, NULL, diags) : ls_read_cases (path, NULL, diags);
  if (rows)
    g_ptr_array_extend_and_steal (l->cases, rows);
}

static void
add_file (Load *l, const char *path, LsDiagList *diags)
{
  size_t n;
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  g_autofree char *text = ls_read_file (path, LS_MAX_INPUT_BYTES, &n, none);
  if (text)
    g_checksum_update (l->sum, (const guchar *) text, (gssize) n);
  if (text && !is_table (text) && !g_str_has_suffix (path, ".csv"))
    add_log (l, path, diags);
  else if (!text && !g_str_has_suffix (path, ".csv") && l->cluster)
    add_log (l, path, diags); /* "mine.log:gpus=8" */
  else
    add_table (l, path, diags);
}

static bool
has_whole (const GPtrArray *cases)
{
  for (guint i = 0; i < cases->len; i++)
    if (!((const LsCase *) cases->pdata[i])->wrong)
      return true;
  return false;
}

static void
tell_wrong (const GPtrArray *cases, LsDiagList *diags)
{
  for (guint i = 0; i < cases->len; i++) {
    const LsCase *c = cases->pdata[i];
    ls_diag_add (diags, LS_ERROR_INPUT, c->source, 0, 0, NULL, NULL, NULL, "%s", c->wrong);
  }
}

GPtrArray *
ls_job_cases_load (const char *const *paths, const char *cluster, bool by_row, char **ret_sha256,
                   LsDiagList *diags)
{
  guint n = ls_diag_list_n (diags);
  Load l = { cluster, by_row, ls_cases_new (), g_checksum_new (G_CHECKSUM_SHA256) };
  for (; *paths; paths++)
    add_file (&l, *paths, diags);
  if (ls_diag_list_n (diags) == n && !has_whole (l.cases))
    tell_wrong (l.cases, diags);
  bool ok = ls_diag_list_n (diags) == n;
  if (ok)
    *ret_sha256 = g_strdup (g_checksum_get_string (l.sum));
  else
    g_clear_pointer (&l.cases, g_ptr_array_unref);
  g_checksum_free (l.sum);
  return l.cases;
}

char *
ls_job_cases_name (const char *const *paths)
{
  GString *names = g_string_new (NULL);
  for (guint i = 0; paths[i]; i++) {
    g_autofree char *name = g_path_get_basename (paths[i]);
    g_string_append_printf (names, "%s%s", i > 0 ? ", " : "", name);
  }
  return g_string_free (names, FALSE);
}
