#include "data/inspect.h"

#include <lockstep/units.h>
#include <math.h>

#include "data/datadir.h"
#include "data/jobs/imported.h"
#include "data/jobs/read_jobs.h"
#include "data/jobs/job_files.h"
#include "data/jobs/read_lab.h"
#include "data/jobs/read_placement.h"
#include "data/jobs/read_ranges.h"
#include "data/jobs/read_software.h"
#include "data/machines/machines.h"
#include "data/machines/nccl_env.h"
#include "data/measured/read_kernels.h"
#include "data/traces/trace_file.h"
#include "data/text/field.h"
#include "data/traces/traces.h"

/* Each reads a document and says in a line what it holds; NULL with diagnostics. */
typedef char *(*Inspect) (const LsJsonDoc *doc, LsDiagList *diags);
/* The same of what was read. */
typedef char *(*Say) (const void *object);

/* --- in words: inspect_text.txt --- */
#include "data/inspect_text.h"

static char *
inspect_model (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  LsModel m;
  if (!ls_model_read (doc, &m, notes, diags))
    return NULL;
  char *line = model_words (&m, notes);
  ls_model_clear (&m);
  return line;
}

static char *
inspect_model_names (const LsJsonDoc *doc, LsDiagList *diags)
{
  guint n = ls_model_names_check (doc, diags);
  return n > 0 ? g_strdup_printf ("%u names of published models", n) : NULL;
}

static char *
inspect_model_types (const LsJsonDoc *doc, LsDiagList *diags)
{
  guint n = ls_model_types_check (doc, diags);
  return n > 0 ? g_strdup_printf ("%u types of models", n) : NULL;
}

/* Counts that do not deal out evenly show only when they are put together. */
static gboolean
can_build (const char *path, const LsClusterSpec *spec, LsDiagList *diags)
{
  g_autoptr (GError) error = NULL;
  gboolean ok = ls_cluster_spec_validate (spec, &error);
  /* Names of faults, and whether listed switches are joined, show only in the graph. Its size
   * is bounded (ls_cluster_spec_validate()). */
  if (ok && (spec->network.faults || spec->fabric == LS_FABRIC_LIST || ls_cluster_traits (spec)->is_listed)) {
    g_autoptr (LsCluster) cluster = ls_cluster_build (spec, &error);
    ok = cluster != NULL;
  }
  return ok || ls_file_diag (diags, (LsErrorCode) error->code, path, NULL, "%s", error->message);
}

/* Takes the spec. */
static char *
describe_cluster (const char *path, LsClusterSpec *spec, LsDiagList *diags)
{
  char *line = can_build (path, spec, diags) ? cluster_words (spec) : NULL;
  ls_cluster_spec_clear (spec);
  return line;
}

static char *
inspect_cluster (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsClusterSpec spec;
  bool ok = ls_data_file_read (&ls_cluster_file, doc, &spec, diags);
  return ok ? describe_cluster (ls_json_doc_name (doc), &spec, diags) : NULL;
}

static char *
inspect_placement (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (LsAllocation) a = ls_placement_read (doc, diags);
  return a ? placement_words (a) : NULL;
}

static char *
inspect_residuals (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (LsResiduals) r = ls_residuals_read (doc, diags);
  return r ? residuals_words (r) : NULL;
}

static char *
inspect_strategy (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsStrategy s;
  if (!ls_strategy_read (doc, &s, diags))
    return NULL;
  char *line = strategy_words (&s);
  ls_strategy_clear (&s);
  return line;
}

static char *
inspect_ranges (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsRanges ranges;
  if (!ls_ranges_read (doc, &ranges, diags))
    return NULL;
  char *line = ranges_words (&ranges);
  ls_ranges_clear (&ranges);
  return line;
}

static char *
inspect_jobs (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsJobsFile f;
  if (!ls_jobs_read (doc, &f, diags))
    return NULL;
  char *line = g_strdup_printf ("jobs that share a cluster (%s): %u", f.cluster, f.jobs->len);
  ls_jobs_clear (&f);
  return line;
}

static char *
inspect_software (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsSoftwareSpec s;
  if (!ls_software_read (doc, &s, diags))
    return NULL;
  char *line = software_words (&s);
  ls_software_clear (&s);
  return line;
}

static char *
inspect_kernels (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (LsRecipes) r = ls_recipes_read (doc, diags);
  return r ? recipes_words (r) : NULL;
}

static char *
inspect_optimizer (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (LsOptimizerKind) kind = ls_optimizer_read (doc, diags);
  return kind ? optimizer_words (kind) : NULL;
}

static char *
inspect_trace (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (LsTrace) t = ls_trace_read (doc, 0, diags);
  return t ? trace_words (t->plan) : NULL;
}

#define OF_NO_FOLDER LS_N_DATA_KINDS

/* In the order in which they are told. */
static const struct {
  const char *kind, *meaning; /* "model" of "lockstep.model/1" */
  Inspect inspect;            /* NULL: file and say, or such files are not asked for */
  LsDataKind data;            /* whose files may extend one another */
  const LsField *fields;
  const LsField *(*made_fields) (void); /* where the table is made; neither: a set */
  const LsDataFile *file;               /* which says its folder and fields */
  Say say;
} kinds[] = {
  { "model", "a model", inspect_model, LS_DATA_MODELS, ls_model_fields },
  { "model-names", "models by the names of programs and hubs", inspect_model_names, OF_NO_FOLDER,
    ls_model_names_fields },
  { "model-types", "what types of models of Hugging Face have", inspect_model_types, OF_NO_FOLDER,
    .made_fields = ls_model_types_fields },
  { "cluster", "a cluster", inspect_cluster, LS_DATA_CLUSTERS, ls_cluster_fields },
  { "gpu", "an accelerator", .file = &ls_gpu_file, .say = say_gpu },
  { "calibration", "times of kernels", .file = &ls_calibration_file, .say = say_calibration },
  { "access", "rates by how kernels touch memory", .file = &ls_access_file, .say = say_access },
  { "nccl", "what NCCL reaches", .file = &ls_nccl_file, .say = say_nccl },
  { "nccl-generation", "NCCL's tables for a generation of GPUs", .file = &ls_nccl_tables_file,
    .say = say_nccl_tables },
  { "nccl-environment", "what NCCL's variables change", ls_nccl_env_inspect, OF_NO_FOLDER,
    ls_nccl_env_fields },
  { "residuals", "errors of published runs", inspect_residuals, OF_NO_FOLDER, ls_residuals_fields },
  { "strategy", "how a job is spread over ranks", inspect_strategy, LS_DATA_STRATEGIES, ls_strategy_fields },
  { "ranges", "ranges of a sweep", inspect_ranges, OF_NO_FOLDER, .made_fields = ls_ranges_fields },
  { "jobs", "jobs that share a cluster", inspect_jobs, OF_NO_FOLDER, ls_jobs_fields },
  { "software", "facts of a training program", inspect_software, OF_NO_FOLDER,
    .made_fields = ls_software_fields },
  { "kernels", "kernels that a program launches", inspect_kernels, OF_NO_FOLDER, ls_recipes_fields },
  { "program", "what the options of another program mean", ls_program_inspect, OF_NO_FOLDER,
    ls_program_fields },
  { "optimizer", "what an optimizer keeps and runs", inspect_optimizer, OF_NO_FOLDER, ls_optimizer_fields },
  { "placement", "which GPU each rank has", inspect_placement, OF_NO_FOLDER, ls_placement_fields },
  { "reliability", "how often what fails", .file = &ls_reliability_file, .say = say_reliability },
  { "scaling", "what loss tokens come to", .file = &ls_scaling_file, .say = say_scaling },
  { "jitter", "how much GPUs and steps differ", .file = &ls_jitter_file, .say = say_jitter },
  { "trace", "what each rank runs and exchanges", inspect_trace, OF_NO_FOLDER, ls_trace_fields },
  { "lab", "an exercise that grades itself", .file = &ls_lab_file, .say = say_lab },
  { "kernelbench", "kernels that kernelbench measured", NULL, OF_NO_FOLDER, ls_profile_file_fields },
  { "set", "several files of one kind in one", NULL, OF_NO_FOLDER },
};

/* NULL: those of a set. */
static const LsField *
fields_of (guint i)
{
  return kinds[i].file       ? kinds[i].file->fields
      : kinds[i].made_fields ? kinds[i].made_fields ()
                             : kinds[i].fields;
}

static LsDataKind
data_of (guint i)
{
  return kinds[i].file ? kinds[i].file->of : kinds[i].data;
}

static bool
is_asked_for (guint i)
{
  return kinds[i].inspect || kinds[i].file;
}

static char *
inspect (guint i, const LsJsonDoc *doc, LsDiagList *diags)
{
  if (!kinds[i].file)
    return kinds[i].inspect (doc, diags);
  void *object = ls_data_file_new (kinds[i].file, doc, diags);
  char *line = object ? kinds[i].say (object) : NULL;
  if (object)
    ls_data_file_free (kinds[i].file, object);
  return line;
}

#define SET_SCHEMA "lockstep.set/1"

static char *
unknown_schema (const LsJsonDoc *doc, const cJSON *schema, LsDiagList *diags)
{
  g_autofree char *got = ls_json_describe (schema);
  g_autoptr (GString) known = g_string_new (NULL);
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++)
    if (is_asked_for (i))
      g_string_append_printf (known, "\"lockstep.%s/1\", ", kinds[i].kind);
  ls_json_doc_wrong (doc, schema, diags, "expected one of %s\"%s\"; got %s", known->str, SET_SCHEMA, got);
  return NULL;
}

static const cJSON *
schema_of (const LsJsonDoc *doc)
{
  return cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "schema");
}

char *
ls_inspect_doc (LsJsonDoc *own, const char **ret_kind, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = own;
  const cJSON *schema = schema_of (doc);
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++) {
    g_autofree char *name = g_strdup_printf ("lockstep.%s/1", kinds[i].kind);
    if (!is_asked_for (i) || g_strcmp0 (cJSON_GetStringValue (schema), name) != 0)
      continue;
    *ret_kind = kinds[i].kind;
    if (data_of (i) != OF_NO_FOLDER)
      doc = ls_data_complete (data_of (i), g_steal_pointer (&doc), diags);
    return doc ? inspect (i, doc, diags) : NULL;
  }
  return unknown_schema (doc, schema, diags);
}

/* Each member as a file of its own. */
static char *
inspect_set (const LsJsonDoc *set, const char **ret_kind, LsDiagList *diags)
{
  const cJSON *members = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (set), "members");
  guint n_before = ls_diag_list_n (diags), n = 0;
  if (!cJSON_IsObject (members) || !members->child)
    ls_json_doc_wrong (set, members ? members : ls_json_doc_root (set), diags,
                       "expected \"members\": files by name");
  g_autofree char *first = NULL;
  for (const cJSON *m = members ? members->child : NULL; m && m->string; m = m->next, n++) {
    LsJsonDoc *doc = ls_data_member (set, m->string, diags);
    g_autofree char *line = doc ? ls_inspect_doc (doc, ret_kind, diags) : NULL;
    if (!first)
      first = g_steal_pointer (&line);
  }
  return ls_diag_list_n (diags) == n_before ? g_strdup_printf ("set of %u; the first: %s", n, first) : NULL;
}

char *
ls_inspect_file (const char *path, const char **ret_kind, LsDiagList *diags)
{
  bool is_of_files = ls_cluster_is_of_files (path);
  g_autoptr (LsJsonDoc) doc = is_of_files ? ls_cluster_open (path, diags) : ls_data_open (path, diags);
  if (!doc)
    return NULL;
  const cJSON *schema = schema_of (doc);
  if (ls_refuse_adapter (doc, diags))
    return NULL;
  if (!schema && ls_json_doc_is_given (doc) && !ls_is_hf_config (doc)) {
    ls_json_doc_wrong (doc, ls_json_doc_root (doc), diags,
                       "missing key \"schema\", which says what this is, such as \"lockstep.model/1\"");
    return NULL;
  }
  if (!schema) {
    *ret_kind = "model"; /* a Hugging Face config, or the reader says what is missing */
    return inspect_model (doc, diags);
  }
  if (g_strcmp0 (cJSON_GetStringValue (schema), SET_SCHEMA) == 0)
    return inspect_set (doc, ret_kind, diags);
  return ls_inspect_doc (g_steal_pointer (&doc), ret_kind, diags);
}

/* --- schemas ----------------------------------------------------------------------------------- */

static void
begin_key (LsJsonOut *w, const char *key, const char *type, const char *description)
{
  ls_json_out_begin_object (w, key);
  ls_json_out_string (w, "type", type);
  ls_json_out_string (w, "description", description);
}

static void
write_set_keys (LsJsonOut *w)
{
  begin_key (w, "schema", "string", "kind and version of the file");
  ls_json_out_string (w, "const", "lockstep.set/1");
  ls_json_out_end_object (w);
  begin_key (w, "of", "string", "kind and version of its members");
  ls_json_out_begin_array (w, "enum");
  for (guint i = 0; fields_of (i); i++) {
    g_autofree char *schema = g_strdup_printf ("lockstep.%s/1", kinds[i].kind);
    ls_json_out_string (w, NULL, schema);
  }
  ls_json_out_end_array (w);
  ls_json_out_end_object (w);
  begin_key (w, "source", "string", "where the figures of all come from");
  ls_json_out_end_object (w);
  begin_key (w, "members", "object", "files of that kind by their names, without schema and name");
  ls_json_out_uint (w, "minProperties", 1);
  ls_json_out_begin_object (w, "additionalProperties");
  ls_json_out_string (w, "type", "object");
  ls_json_out_end_object (w);
  ls_json_out_end_object (w);
}

/* Several files in one (data/datadir.h). */
static void
write_set_schema (LsJsonOut *w)
{
  ls_json_out_string (w, "type", "object");
  ls_json_out_begin_object (w, "properties");
  write_set_keys (w);
  ls_json_out_end_object (w);
  ls_json_out_begin_array (w, "required");
  ls_json_out_string (w, NULL, "schema");
  ls_json_out_string (w, NULL, "of");
  ls_json_out_string (w, NULL, "members");
  ls_json_out_end_array (w);
}

const char *
ls_file_schema_kind (guint i)
{
  return i < G_N_ELEMENTS (kinds) ? kinds[i].kind : NULL;
}

const char *
ls_file_schema_meaning (guint i)
{
  return kinds[i].meaning;
}

void
ls_file_schema_write (guint i, LsJsonOut *w)
{
  const LsField *fields = fields_of (i);
  if (fields)
    ls_fields_schema (fields, kinds[i].kind, data_of (i) != OF_NO_FOLDER, w);
  else
    write_set_schema (w);
}
