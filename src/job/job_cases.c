#include "job/job_cases.h"

#include <string.h>

#include "cluster/cluster.h"
#include "data/datadir.h"
#include "data/machines/machines.h"
#include "data/text/read_file.h"
#include "job/assumptions.h"
#include "job/job.h"
#include "job/job_from.h"
#include "job/softwares.h"
#include "data/jobs/job_files.h"

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
    c->model.attention = (LsAttention) c->strategy.use.attention;
}

/* As `lockstep run --from` says them. */
static void
take_notes (LsCase *c, LsJobSpec *spec)
{
  g_autoptr (LsJobResult) r = ls_job_spec_run (spec, NULL);
  c->logged = g_hash_table_new (g_str_hash, g_str_equal);
  for (const LsField *f = ls_strategy_fields; f->key; f++)
    if (ls_job_says (spec, f->key) || ls_json_doc_at (spec->from->model, f->key))
      g_hash_table_add (c->logged, (gpointer) f->key);
  c->notes = g_ptr_array_new_with_free_func (g_free);
  ls_job_from_notes (spec, c->notes);
  for (guint i = 0; r && r->notes && i < r->notes->len; i++)
    g_ptr_array_add (c->notes, g_strdup (r->notes->pdata[i]));
}

static bool
take_log (LsCase *c, const char *path, LsDiagList *diags)
{
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  bool ok
      = ls_job_spec_set (&spec, "from", path, diags) && ls_job_spec_set (&spec, "cluster", c->cluster, diags);
  if (ok && spec.from->measured.step_s <= 0) {
    ls_diag_add (diags, LS_ERROR_INPUT, path, 0, 0, NULL, NULL, NULL,
                 "it times no step: nothing is measured");
    ok = false;
  }
  ok = ok && ls_job_load_model (&spec, ls_job_says, &c->model, NULL, diags);
  if (ok && spec.strategy.gpus == 0)
    ls_diag_add (diags, LS_ERROR_INPUT, path, 0, 0, NULL, NULL, NULL,
                 "it does not say how many GPUs there are: give them after its name, %s:gpus=N", path);
  ok = ok && spec.strategy.gpus > 0;
  if (ok) {
    take_job (c, &spec);
    c->measured_s = spec.from->measured.step_s;
    c->allocated_gib = spec.from->measured.memory_bytes / GIB;
    take_notes (c, &spec);
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
  g_free (c->cluster);
  c->cluster = g_strdup (cluster);
  c->family = g_strdup ("logs");
  if (!take_log (c, path, diags))
    c->wrong = first_of (diags);
  return c;
}

/* --- where a row ran that does not say it ----------------------------------------------------------- */

static void
spec_free (gpointer spec)
{
  ls_cluster_spec_clear (spec);
  g_free (spec);
}

/* The clusters at hand that can be read, as LsClusterSpec. */
static GPtrArray *
load_clusters (void)
{
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_CLUSTERS);
  GPtrArray *clusters = g_ptr_array_new_with_free_func (spec_free);
  for (guint i = 0; i < entries->len; i++) {
    g_autoptr (LsDiagList) unread = ls_diag_list_new ();
    LsClusterSpec *spec = g_new0 (LsClusterSpec, 1);
    if (ls_cluster_load (((const LsDataEntry *) entries->pdata[i])->name, spec, unread))
      g_ptr_array_add (clusters, spec);
    else
      g_free (spec);
  }
  return clusters;
}

/* GPUs of a node, or of a compute tray of one that is a rack; 0: any. */
static bool
has_per_node (const LsClusterSpec *spec, uint32_t n)
{
  return n == 0 || spec->gpus_per_node == n || spec->gpus_per_node == n * ls_segment_trays (spec);
}

/* The only cluster of such nodes, or of several the one that the accelerator's file names. NULL: there is
 * none; *ret_n: how many there are. */
static const LsClusterSpec *
cluster_of (const GPtrArray *clusters, const char *gpu, uint32_t per_node, guint *ret_n)
{
  const LsClusterSpec *found = NULL, *usual = NULL;
  *ret_n = 0;
  for (guint i = 0; i < clusters->len; i++) {
    const LsClusterSpec *spec = clusters->pdata[i];
    if (!g_str_equal (spec->gpu.name, gpu) || !has_per_node (spec, per_node))
      continue;
    found = spec;
    (*ret_n)++;
    if (spec->gpu.cluster && g_str_equal (spec->gpu.cluster, spec->name))
      usual = spec;
  }
  return *ret_n == 1 ? found : usual;
}

/* Why none was found. Newly allocated. */
static char *
tell_no_cluster (const LsCase *c, const char *gpu, guint n)
{
  g_autofree char *nodes = c->gpus_per_node ? g_strdup_printf (", %u per node", c->gpus_per_node) : NULL;
  if (*c->hardware == '\0')
    return g_strdup ("cluster: expected the name of one, or \"hardware\" that names an accelerator; got none "
                     "(--cluster says it for all such rows)");
  if (!gpu)
    return g_strdup_printf ("cluster: expected the name of one; it has none, and its hardware \"%s\" is like "
                            "none or several of 'lockstep list gpus'",
                            c->hardware);
  return g_strdup_printf (
      "cluster: expected the name of one; it has none, and %s of 'lockstep list clusters' "
      "have its hardware (%s%s)",
      n > 0 ? "several" : "none", gpu, nodes ? nodes : "");
}

static void
find_by_hardware (LsCase *c, const GPtrArray *clusters)
{
  guint n = 0;
  g_autofree char *gpu = ls_gpu_called (c->hardware);
  const LsClusterSpec *spec = gpu ? cluster_of (clusters, gpu, c->gpus_per_node, &n) : NULL;
  c->by_hardware = spec != NULL;
  if (!spec) {
    c->wrong = tell_no_cluster (c, gpu, n);
    return;
  }
  g_free (c->cluster);
  c->cluster = g_strdup (spec->name);
}

/* --- all of them ----------------------------------------------------------------------------------- */

typedef struct {
  const char *cluster;
  bool by_row;
  GPtrArray *cases;
  GPtrArray *clusters; /* at hand, LsClusterSpec; NULL: nobody has asked */
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

/* Of a row that names none: that which was asked for, or what its hardware tells. */
static void
find_cluster (Load *l, LsCase *c)
{
  if (c->wrong || *c->cluster != '\0')
    return;
  if (l->cluster) {
    g_free (c->cluster);
    c->cluster = g_strdup (l->cluster);
    return;
  }
  l->clusters = l->clusters ? l->clusters : load_clusters ();
  find_by_hardware (c, l->clusters);
}

static void
add_table (Load *l, const char *path, LsDiagList *diags)
{
  GPtrArray *rows = ls_read_cases (path, NULL, l->by_row, diags);
  for (guint i = 0; rows && i < rows->len; i++) {
    LsCase *c = rows->pdata[i];
    find_cluster (l, c);
    if (c->wrong && !l->by_row)
      ls_diag_add (diags, LS_ERROR_INPUT, path, 0, 0, NULL, NULL, NULL, "%s: %s", c->id, c->wrong);
  }
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
  Load l = { cluster, by_row, ls_cases_new (), NULL, g_checksum_new (G_CHECKSUM_SHA256) };
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
  g_clear_pointer (&l.clusters, g_ptr_array_unref);
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

gboolean
ls_job_cases_check_cluster (const GPtrArray *cases, const char *cluster, const char *files, GError **error)
{
  for (guint i = 0; i < cases->len; i++)
    if (!cluster || g_str_equal (((const LsCase *) cases->pdata[i])->cluster, cluster))
      return TRUE;
  return ls_fail (error, LS_ERROR_USAGE, "--cluster %s: each row of %s names a cluster of its own", cluster,
                  files);
}

static void
add_once (GPtrArray *names, char *name)
{
  if (!g_ptr_array_find_with_equal_func (names, name, g_str_equal, NULL))
    g_ptr_array_add (names, name);
}

GPtrArray *
ls_job_cases_by_hardware (const GPtrArray *cases)
{
  GPtrArray *names = g_ptr_array_new ();
  for (guint i = 0; i < cases->len; i++)
    if (((const LsCase *) cases->pdata[i])->by_hardware)
      add_once (names, ((const LsCase *) cases->pdata[i])->cluster);
  g_ptr_array_add (names, NULL);
  return names;
}

GPtrArray *
ls_job_cases_with_facts (const GPtrArray *cases)
{
  GPtrArray *names = g_ptr_array_new ();
  for (guint i = 0; i < cases->len; i++)
    if (((const LsCase *) cases->pdata[i])->has_facts)
      add_once (names, ((const LsCase *) cases->pdata[i])->family);
  g_ptr_array_add (names, NULL);
  return names;
}

GPtrArray *
ls_job_cases_ignored_columns (const GPtrArray *cases)
{
  GPtrArray *names = g_ptr_array_new ();
  for (guint i = 0; i < cases->len; i++)
    for (char **name = ((const LsCase *) cases->pdata[i])->ignored; name && *name; name++)
      add_once (names, *name);
  g_ptr_array_add (names, NULL);
  return names;
}

GPtrArray *
ls_job_cases_notes (const GPtrArray *cases)
{
  GPtrArray *all = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < cases->len; i++) {
    const LsCase *c = cases->pdata[i];
    for (guint k = 0; c->notes && k < c->notes->len; k++) {
      const char *note = c->notes->pdata[k];
      const gsize n = g_str_has_prefix (note, "warning: ") ? strlen ("warning: ") : 0;
      g_ptr_array_add (all, g_strdup_printf ("%.*s%s: %s", (int) n, note, c->id, note + n));
    }
  }
  return all;
}

/* --- what rows rest on ------------------------------------------------------------------------------ */

static const char *
whence_of_cell (const char *knob, gconstpointer data)
{
  const LsCase *c = data;
  bool is_said = g_hash_table_contains (c->said, knob)
      || (c->logged && g_hash_table_contains (c->logged, knob))
      || (g_str_equal (knob, "software") && *c->software != '\0');
  return is_said ? "given" : NULL;
}

/* Of what is typed elsewhere: "--micro-batch N", "--set grad_dtype=KIND". A log has it after its name. */
static char *
column_of (const LsCase *c, const char *option)
{
  const char *from = option + strlen (g_str_has_prefix (option, "--set ") ? "--set " : "--"),
             *unit = strstr (option, " (");
  g_autofree char *key = g_strndup (from, strcspn (from, " ="));
  return g_strconcat (c->logged ? "LOG:" : "column ", g_strdelimit (key, "-", '_'), c->logged ? "=VALUE" : "",
                      unit, NULL);
}

void
ls_job_case_settle (LsCase *c, const LsHardware *hardware)
{
  ls_softwares_settle (NULL, hardware, c->said, &c->strategy);
  g_autoptr (LsJobResult) r = c->wrong ? NULL : ls_job_settle (&c->model, hardware, 0, &c->strategy, NULL);
  if (!r)
    return;
  LsSoftwareSpec software;
  g_autoptr (LsDiagList) unheard = ls_diag_list_new ();
  bool has_software = *c->software && ls_software_load (c->software, &software, unheard);
  const LsJobSpec spec
      = { .cluster = c->cluster, .said = c->said, .software = has_software ? &software : NULL };
  c->assumptions = ls_assumptions_new (&spec, &r->model, &r->strategy, whence_of_cell, c);
  for (guint i = c->assumptions->len; i-- > 0;) {
    LsAssumption *a = &g_array_index (c->assumptions, LsAssumption, i);
    g_autofree char *option = a->instead;
    a->instead = column_of (c, option);
    if (a->is_given)
      g_array_remove_index (c->assumptions, i);
  }
  if (has_software)
    ls_software_clear (&software);
}

char *
ls_job_cases_rest (const GPtrArray *cases)
{
  g_autoptr (GArray) shared = NULL;
  guint most = 0;
  for (guint i = 0; i < cases->len; i++) {
    const GArray *own = ((const LsCase *) cases->pdata[i])->assumptions;
    if (own)
      ls_assumptions_keep (&shared, own);
    most = MAX (most, own ? own->len : 0);
  }
  g_autofree char *text = shared && shared->len > 0 ? ls_assumptions_text (shared) : g_strdup ("");
  const char *more
      = shared && most > shared->len ? "what else rows leave open differs (--json has it of each)" : NULL;
  return g_strconcat (text, *text && more ? ";\n  " : "", more, NULL);
}
