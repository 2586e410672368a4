#include "job/job_cases.h"

#include <string.h>

#include "cluster/cluster.h"
#include "data/datadir.h"
#include "data/machines/machines.h"
#include "data/text/override.h"
#include "data/text/read_file.h"
#include "job/assumptions.h"
#include "job/job.h"
#include "job/job_from.h"
#include "job/job_interval.h"
#include "job/job_steps.h"
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
add_said (LsCase *c, GHashTable *said)
{
  GHashTableIter keys;
  gpointer key;
  for (g_hash_table_iter_init (&keys, said); g_hash_table_iter_next (&keys, &key, NULL);)
    g_hash_table_add (c->said, key);
}

static void
take_job (LsCase *c, const LsJobSpec *spec)
{
  ls_strategy_clear (&c->strategy);
  ls_strategy_copy (&c->strategy, &spec->strategy);
  if (spec->software) {
    ls_software_settle (spec->software, &c->strategy);
    c->runs_like = g_intern_string (spec->software->runs_like);
    g_free (c->software);
    c->software = g_strdup (spec->software->name);
  }
  add_said (c, spec->said);
  if (g_hash_table_contains (c->said, "attention"))
    c->model.attention = (LsAttention) c->strategy.use.attention;
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
    c->from = g_steal_pointer (&spec.from);
    c->measured_s = c->from->measured.step_s;
    c->allocated_gib = c->from->measured.memory_bytes / GIB;
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
  if (!take_log (c, path, diags)) {
    g_autofree char *text = ls_diag_list_format (diags);
    c->wrong = ls_first_line (text);
  }
  return c;
}

/* --- where a row ran that does not say it ----------------------------------------------------------- */

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
  const LsClusterSpec *spec = gpu ? ls_cluster_with (clusters, gpu, c->gpus_per_node, &n) : NULL;
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
  l->clusters = l->clusters ? l->clusters : ls_clusters_at_hand ();
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
  bool is_log = text ? !is_table (text) : l->cluster != NULL; /* "mine.log:gpus=8" */
  if (is_log && !g_str_has_suffix (path, ".csv"))
    add_log (l, path, diags);
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

GPtrArray *
ls_job_cases_load (const char *const *paths, const char *cluster, bool by_row, char **ret_sha256,
                   LsDiagList *diags)
{
  guint n = ls_diag_list_n (diags);
  Load l = { cluster, by_row, ls_cases_new (), NULL, g_checksum_new (G_CHECKSUM_SHA256) };
  for (; *paths; paths++)
    add_file (&l, *paths, diags);
  if (ls_diag_list_n (diags) == n && !has_whole (l.cases))
    for (guint i = 0; i < l.cases->len; i++) {
      const LsCase *c = l.cases->pdata[i];
      ls_diag_add (diags, LS_ERROR_INPUT, c->source, 0, 0, NULL, NULL, NULL, "%s", c->wrong);
    }
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

GPtrArray *
ls_job_cases_names (const GPtrArray *cases, LsCaseNames which)
{
  GPtrArray *names = g_ptr_array_new ();
  for (guint i = 0; i < cases->len; i++) {
    const LsCase *c = cases->pdata[i];
    char *const one[] = { which == LS_CASES_FACTS ? c->family : c->cluster, NULL };
    bool has = which == LS_CASES_FACTS ? c->has_facts : c->by_hardware;
    for (char *const *name = which == LS_CASES_IGNORED ? c->ignored : has ? one : NULL; name && *name; name++)
      if (!g_ptr_array_find_with_equal_func (names, *name, g_str_equal, NULL))
        g_ptr_array_add (names, *name);
  }
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

/* --- a row simulated, and what it rests on ----------------------------------------------------------- */

static const char *
whence_of_cell (const char *knob, gconstpointer data)
{
  const LsCase *c = data;
  bool is_said
      = g_hash_table_contains (c->said, knob) || (g_str_equal (knob, "software") && *c->software != '\0');
  return is_said ? "given" : NULL;
}

/* What is typed for another value: of a strategy a column, or what goes after the name of a log; of where it
 * runs another cluster; else an option as of run. */
static char *
typed_of (const LsCase *c, const char *option)
{
  const char *from = option + strlen (g_str_has_prefix (option, "--set ") ? "--set " : "--"),
             *unit = strstr (option, " (");
  g_autofree char *key = g_strdelimit (g_strndup (from, strcspn (from, " =")), "-", '_');
  const char *place = g_str_equal (key, "slice") ? "node.torus.slice=[A,B,C]"
      : g_str_equal (key, "segment")             ? "node.segment=N"
                                                 : NULL;
  g_autofree char *placed = place ? ls_override_add (c->cluster, place) : NULL;
  if (place)
    return g_strconcat (c->from ? "--cluster " : "column cluster ", placed, NULL);
  if (g_str_equal (key, "cluster") && !c->from)
    return g_strconcat ("column ", from, NULL);
  if (g_str_equal (key, "software"))
    return g_strdup (c->from ? "--assume software=NAME" : "column software");
  return !ls_field_find (ls_strategy_fields, key)
      ? g_strdup (option)
      : g_strconcat (c->from ? "LOG:" : "column ", key, c->from ? "=VALUE" : "", unit, NULL);
}

/* What is not given, nor in the files of a log. */
static GArray *
take_open (const LsCase *c, GArray **rows)
{
  GArray *open = g_steal_pointer (rows);
  for (guint i = open ? open->len : 0; i-- > 0;) {
    LsAssumption *a = &g_array_index (open, LsAssumption, i);
    g_autofree char *option = a->instead;
    a->instead = typed_of (c, option);
    if (a->is_given || g_str_equal (a->why, "the launch file's"))
      g_array_remove_index (open, i);
  }
  return open;
}

/* As `lockstep run` does, on hardware that was loaded before. */
static LsJobResult *
run_table (const LsCase *c, const LsJobSpec *spec, const LsHardware *hardware, GError **error)
{
  LsRunOptions options = ls_job_spec_options (spec);
  LsJobResult *r = ls_job_prepare (&c->model, hardware, 0, &c->strategy, error);
  if (!r)
    return NULL;
  options.no_spans = options.steady = true;
  r->assumptions = ls_assumptions_new (spec, &r->model, &r->strategy, whence_of_cell, c);
  ls_assumptions_add_times (&r->assumptions, spec, hardware, NULL, r->plan->n_ranks);
  ls_assumptions_add_place (&r->assumptions, spec->cluster, &r->cluster->spec, false, "");
  r->knobs = ls_assumptions_of_knobs (spec, r, hardware, whence_of_cell, c);
  return ls_job_simulate_prepared (r, hardware, &options, error);
}

/* As `lockstep run --from` does, with its notes. */
static LsJobResult *
run_log (LsCase *c, const LsJobSpec *spec, GError **error)
{
  LsJobResult *r = ls_job_spec_run (spec, error);
  c->notes = g_ptr_array_new_with_free_func (g_free);
  ls_job_from_notes (spec, c->notes);
  if (!r)
    return NULL;
  ls_job_note_contradictions (r, &c->from->measured, c->source, r->notes);
  g_ptr_array_extend_and_steal (c->notes, g_steal_pointer (&r->notes));
  return r;
}

/* By what was published, its own source apart. hardware: of its cluster, lent to a result without. */
static void
find_interval (LsCase *c, const LsJobSpec *spec, const LsHardware *hardware, LsJobResult *r)
{
  LsHardware *own = r->hardware;
  g_autofree char *source = ls_residual_source (c->family);
  g_autoptr (LsResiduals) residuals = NULL;
  LsInterval interval = { .none = NULL };
  r->hardware = own ? own : (LsHardware *) hardware;
  if (ls_job_residuals_load (spec, r, &residuals, NULL) && residuals) {
    ls_job_interval (spec, r, residuals, source, &interval);
    if (!interval.none) {
      c->interval_low = interval.low;
      c->interval_high = interval.high;
    }
  }
  r->hardware = own;
  ls_interval_clear (&interval);
}

LsJobResult *
ls_job_case_run (LsCase *c, const LsHardware *hardware, const LsJobSpec *asked, GError **error)
{
  LsSoftwareSpec software;
  g_autoptr (LsDiagList) unheard = ls_diag_list_new ();
  bool has_software = *c->software && ls_software_load (c->software, &software, unheard);
  LsJobSpec spec = *asked; /* borrows all */
  if (asked->said)
    add_said (c, asked->said);
  spec.cluster = c->cluster;
  spec.said = c->said;
  spec.strategy = c->strategy;
  spec.from = c->from;
  spec.software = has_software ? &software : NULL;
  spec.software_is_from = c->from && !g_hash_table_contains (c->said, "software");
  if (!has_software)
    spec.strategy.program.software = NULL; /* the textbook's, since it was settled */
  LsJobResult *r = c->from ? run_log (c, &spec, error) : run_table (c, &spec, hardware, error);
  if (r)
    ls_assumptions_drop_memory (r);
  c->assumptions = r ? take_open (c, &r->assumptions) : NULL;
  c->knobs = r ? take_open (c, &r->knobs) : NULL;
  if (r)
    find_interval (c, &spec, hardware, r);
  if (has_software)
    ls_software_clear (&software);
  return r;
}

GVariant *
ls_job_case_pack (const LsCase *c)
{
  const GArray *const rows[] = { c->assumptions, c->knobs };
  const char *const *notes = c->notes ? (gpointer) c->notes->pdata : NULL;
  GVariantBuilder all;
  g_variant_builder_init (&all, G_VARIANT_TYPE ("a(ussssmsb)"));
  for (guint k = 0; k < G_N_ELEMENTS (rows); k++)
    for (guint i = 0; rows[k] && i < rows[k]->len; i++) {
      const LsAssumption *a = &g_array_index (rows[k], LsAssumption, i);
      g_variant_builder_add (&all, "(ussssmsb)", k, a->key, a->value, a->why, a->instead, a->words,
                             a->says_instead);
    }
  return g_variant_new ("(a(ussssmsb)@as)", &all, g_variant_new_strv (notes, notes ? c->notes->len : 0));
}

void
ls_job_case_unpack (LsCase *c, GVariant *packed)
{
  GArray **const rows[] = { &c->assumptions, &c->knobs };
  g_autoptr (GVariantIter) all = NULL, notes = NULL;
  LsAssumption a = { 0 };
  gboolean says_instead;
  guint k;
  char *note;
  g_variant_get (packed, LS_JOB_CASE_TYPE, &all, &notes);
  while (g_variant_iter_next (all, "(u&ssssmsb)", &k, &a.key, &a.value, &a.why, &a.instead, &a.words,
                              &says_instead)) {
    a.key = g_intern_string (a.key);
    a.says_instead = says_instead;
    *rows[k] = *rows[k] ? *rows[k] : ls_assumptions_empty ();
    g_array_append_val (*rows[k], a);
  }
  c->notes = g_ptr_array_new_with_free_func (g_free);
  while (g_variant_iter_next (notes, "s", &note))
    g_ptr_array_add (c->notes, note);
}

char *
ls_job_cases_rest (const GPtrArray *cases, const char *json)
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
  const char *more = shared && most > shared->len ? "what else rows leave open differs (" : NULL;
  return g_strconcat (text, *text && more ? ";\n  " : "", more, json, " has it of each)", NULL);
}
