/* data/file_schemas.c — the kinds of files of ours, and the JSON Schema of each. */
#include "data/inspect.h"

#include "data/jobs/imported.h"
#include "data/jobs/read_jobs.h"
#include "data/jobs/job_files.h"
#include "data/jobs/read_placement.h"
#include "data/jobs/read_ranges.h"
#include "data/jobs/read_software.h"
#include "data/machines/machines.h"
#include "data/measured/read_profile.h"
#include "data/text/field.h"
#include "data/traces/trace_file.h"

static const struct {
  const char *kind, *meaning;
  const LsField *fields;
  const LsField *(*made_fields) (void); /* where the table is made; neither: a set */
  bool extends;                         /* a file may take over what another says  */
} kinds[] = {
  { "model", "a model", ls_model_fields, .extends = true },
  { "model-names", "models by the names of programs and hubs", ls_model_names_fields },
  { "model-types", "what types of models of Hugging Face have", .made_fields = ls_model_types_fields },
  { "cluster", "a cluster", ls_cluster_fields, .extends = true },
  { "gpu", "an accelerator", ls_gpu_fields, .extends = true },
  { "calibration", "times of kernels", ls_calibration_fields, .extends = true },
  { "access", "rates by how kernels touch memory", ls_access_fields, .extends = true },
  { "nccl", "what NCCL reaches", ls_nccl_fields, .extends = true },
  { "nccl-generation", "NCCL's tables for a generation of GPUs", ls_nccl_tables_fields, .extends = true },
  { "residuals", "errors of published runs", ls_residuals_fields },
  { "strategy", "how a job is spread over ranks", ls_strategy_fields, .extends = true },
  { "ranges", "ranges of a sweep", .made_fields = ls_ranges_fields },
  { "jobs", "jobs that share a cluster", ls_jobs_fields },
  { "software", "facts of a training program", .made_fields = ls_software_fields },
  { "kernels", "kernels that a program launches", ls_recipes_fields },
  { "program", "what the options of another program mean", ls_program_fields },
  { "optimizer", "what an optimizer keeps and runs", ls_optimizer_fields },
  { "placement", "which GPU each rank has", ls_placement_fields },
  { "reliability", "how often what fails", ls_reliability_fields, .extends = true },
  { "scaling", "what loss tokens come to", ls_scaling_fields, .extends = true },
  { "jitter", "how much GPUs and steps differ", ls_jitter_fields, .extends = true },
  { "trace", "what each rank runs and exchanges", ls_trace_fields },
  { "kernelbench", "kernels that kernelbench measured", ls_profile_file_fields },
  { "set", "several files of one kind in one" },
};

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
  for (guint i = 0; kinds[i].fields || kinds[i].made_fields; i++) {
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
  const LsField *fields = kinds[i].made_fields ? kinds[i].made_fields () : kinds[i].fields;
  if (fields)
    ls_fields_schema (fields, kinds[i].kind, kinds[i].extends, w);
  else
    write_set_schema (w);
}
