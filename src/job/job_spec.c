/* job/job_spec.c — a job's knobs from text. */
#include <stddef.h>
#include <string.h>

#include "data/datadir.h"
#include "base/order.h"
#include "data/jobs/emit.h"
#include "data/jobs/job_files.h"
#include "data/text/field.h"
#include "job/job.h"
#include "job/job_from.h"
#include "job/job_steps.h"
#include "job/knobs.h"
#include "job/softwares.h"
#include "strategy/shard.h"

void
ls_job_spec_init (LsJobSpec *spec)
{
  *spec = (LsJobSpec) { .network = LS_JOB_NETWORK_FLOW };
  ls_strategy_init (&spec->strategy);
  ls_run_options_init (&spec->options);
  spec->options.fold = spec->options.coarsen = LS_SHORTCUT_AUTO;
}

LsHardware *
ls_job_hardware_load (const LsJobSpec *spec, LsDiagList *diags)
{
  const LsMeasuredFiles files = { spec->gpu_calibration, spec->nccl, spec->strategy.launch.nccl_env, NULL };
  LsHardware *h = ls_hardware_load_with (spec->cluster, &files, diags);
  if (h && spec->segment > 0) {
    h->spec.segment = spec->segment;
    h->spec.segment_is_asked = true;
  }
  if (h && spec->of_nodes)
    ls_cluster_spec_take_nodes (&h->spec, spec->of_nodes, spec->n_of_nodes);
  if (h && spec->has_no_faults)
    ls_cluster_spec_forget_faults (&h->spec);
  return h;
}

static GHashTable *
said_of (LsJobSpec *spec)
{
  if (!spec->said)
    spec->said = g_hash_table_new (g_str_hash, g_str_equal);
  return spec->said;
}

static gpointer
copy_text (gconstpointer text, gpointer data)
{
  return g_strdup (text);
}

static void
software_clear (gpointer software)
{
  ls_software_clear (software);
}

void
ls_job_spec_clear (LsJobSpec *spec)
{
  g_free (spec->model);
  g_free (spec->cluster);
  g_free (spec->gpu_calibration);
  g_free (spec->nccl);
  g_free (spec->trace);
  g_free (spec->order);
  g_free (spec->residuals);
  g_free (spec->strategy_knob);
  ls_import_unref (spec->from);
  ls_measured_clear (&spec->measured);
  ls_slow_clear (&spec->slow);
  ls_strategy_clear (&spec->strategy);
  if (spec->software)
    g_atomic_rc_box_release_full (spec->software, software_clear);
  g_free (spec->software_name);
  g_clear_pointer (&spec->said, g_hash_table_unref);
  g_clear_pointer (&spec->given_up, g_hash_table_unref);
  g_clear_pointer (&spec->settings, g_ptr_array_unref);
  ls_job_spec_init (spec);
}

gboolean
ls_job_spec_init_replay (LsJobSpec *spec, const char *trace, const char *cluster, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  ls_job_spec_init (spec);
  spec->no_notes = true;
  if (ls_job_spec_set (spec, "trace", trace, diags) && ls_job_spec_set (spec, "cluster", cluster, diags))
    return TRUE;
  ls_job_spec_clear (spec);
  return ls_diag_list_to_error (diags, error);
}

void
ls_job_spec_copy (const LsJobSpec *spec, LsJobSpec *ret_copy)
{
  *ret_copy = *spec;
  char **texts[] = { &ret_copy->model,     &ret_copy->cluster,       &ret_copy->gpu_calibration,
                     &ret_copy->nccl,      &ret_copy->trace,         &ret_copy->order,
                     &ret_copy->residuals, &ret_copy->strategy_knob, &ret_copy->software_name };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    *texts[i] = g_strdup (*texts[i]);
  ret_copy->slow.ranks = spec->slow.ranks ? g_array_copy (spec->slow.ranks) : NULL;
  ls_measured_copy (&ret_copy->measured, &spec->measured);
  ls_strategy_copy (&ret_copy->strategy, &spec->strategy);
  ret_copy->software = spec->software ? g_atomic_rc_box_acquire (spec->software) : NULL;
  ret_copy->program = spec->program ? ret_copy->software : NULL;
  ret_copy->from = spec->from ? g_atomic_rc_box_acquire (spec->from) : NULL;
  ret_copy->given_up = spec->given_up ? g_hash_table_ref (spec->given_up) : NULL;
  ret_copy->said = NULL;
  GHashTableIter keys;
  gpointer key;
  if (spec->said)
    for (g_hash_table_iter_init (&keys, spec->said); g_hash_table_iter_next (&keys, &key, NULL);)
      g_hash_table_add (said_of (ret_copy), key);
  ret_copy->settings = spec->settings ? g_ptr_array_copy (spec->settings, copy_text, NULL) : NULL;
}

/* --- the program that it is for ----------------------------------------------------------------- */

/* Those that a job can be for. */
static char *
known_programs (void)
{
  const GPtrArray *all = ls_softwares ();
  GString *out = g_string_new (NULL);
  for (guint i = 0; i < all->len; i++) {
    const LsSoftwareSpec *s = all->pdata[i];
    if (s->emit)
      g_string_append_printf (out, "%s%s", out->len > 0 ? ", " : "", s->name);
  }
  return g_string_free (out, FALSE);
}

/* Whether a file has that name, which changes may follow. */
static bool
is_found (const char *name)
{
  g_autofree char *bare = ls_data_is_path (name) ? g_strdup (name) : g_strndup (name, strcspn (name, ":")),
                  *message = NULL, *path = ls_data_find (LS_DATA_SOFTWARE, bare, &message);
  return path != NULL;
}

static gboolean
refuse_program (const char *name, LsDiagList *diags)
{
  g_autofree char *known = known_programs ();
  return ls_diag_fail (diags, LS_ERROR_USAGE,
                       "--for: expected a program that a job can be written for, which are %s; got \"%s\" "
                       "(--software NAME simulates a job as others run it: lockstep list software)",
                       known, name);
}

/* Whether the time for it has not passed. */
static gboolean
check_software (const LsJobSpec *spec, bool is_for, LsDiagList *diags)
{
  const char *flag = is_for ? "--for" : "--software", *other = is_for ? "--software" : "--for";
  bool is_named = spec->software && (spec->program != NULL) != is_for;
  if (is_named)
    ls_diag_fail (diags, LS_ERROR_USAGE, "%s: the program was named by %s", flag, other);
  else if (spec->said && g_hash_table_size (spec->said) > 0)
    ls_diag_fail (diags, LS_ERROR_USAGE,
                  "%s: expected before all knobs of a strategy, as it sets their defaults", flag);
  else
    return TRUE;
  return FALSE;
}

/* is_for: a job is to be legal there. */
static gboolean
set_software (LsJobSpec *spec, const char *name, bool is_for, LsDiagList *diags)
{
  LsSoftwareSpec software;
  if (!check_software (spec, is_for, diags))
    return FALSE;
  if (is_for && !is_found (name))
    return refuse_program (name, diags);
  if (!ls_software_load (name, &software, diags))
    return FALSE;
  if (is_for && !software.emit) {
    ls_software_clear (&software);
    return refuse_program (name, diags);
  }
  if (spec->software)
    g_atomic_rc_box_release_full (spec->software, software_clear);
  g_free (spec->software_name);
  spec->software = g_atomic_rc_box_dup (sizeof software, &software);
  spec->program = is_for ? spec->software : NULL;
  spec->software_name = g_strdup (name);
  ls_strategy_clear (&spec->strategy);
  ls_strategy_copy (&spec->strategy, &software.defaults);
  if (!spec->strategy_knob)
    spec->strategy_knob = g_strdup (is_for ? "for" : "software");
  return TRUE;
}

/* The same job in another program: what was said of its strategy, over the defaults of that one. Diagnostics
 * are LS_ERROR_USAGE, where it is for a program or a launch file says its strategy, and LS_ERROR_INPUT. */
static gboolean
change_software (LsJobSpec *spec, const char *name, LsDiagList *diags)
{
  if (spec->program || spec->from)
    return ls_diag_fail (diags, LS_ERROR_USAGE, "--software: the program was named by %s",
                         spec->program ? "--for" : "--from");
  LsStrategy own, other;
  LsSoftwareSpec software;
  if (!ls_software_load (name, &software, diags))
    return FALSE;
  own = spec->strategy;
  ls_softwares_rebase (&software, &own, spec->said, &other, diags);
  spec->strategy = other;
  ls_strategy_clear (&own);
  if (spec->software)
    g_atomic_rc_box_release_full (spec->software, software_clear);
  g_free (spec->software_name);
  spec->software = g_atomic_rc_box_dup (sizeof software, &software);
  spec->software_name = g_strdup (name);
  return TRUE;
}

gboolean
ls_software_check (const LsSoftwareSpec *software, const LsModel *model, const LsStrategy *strategy,
                   GError **error)
{
  const LsEmitJob job = { .model = model, .strategy = strategy, .title = "" };
  return !software || !software->emit || ls_emit_check (&job, software->emit, error);
}

/* --- what is set -------------------------------------------------------------------------------- */

/* What a file made of the strategy, which is taken; knob: by which option. */
static void
take_strategy (LsJobSpec *spec, const LsStrategy *strategy, const char *knob)
{
  ls_strategy_clear (&spec->strategy);
  spec->strategy = *strategy;
  if (spec->software) {
    g_free (spec->strategy.program.software);
    spec->strategy.program.software = g_strdup (spec->software->name);
  }
  if (!spec->strategy_knob)
    spec->strategy_knob = g_strdup (knob);
}

/* The program that a strategy names; NULL: none. */
static const char *
its_software (const LsJsonDoc *strategy)
{
  return ls_json_text (ls_json_doc_root (strategy), "software");
}

/* Whether the program of a launch file runs it, in whichever release: what follows from its rules holds. */
static bool
runs_its_own (const LsJobSpec *spec)
{
  const char *its = its_software (spec->from->strategy);
  if (!spec->software || spec->software_is_from || strcmp (spec->software->program, spec->from->program) == 0)
    return true;
  LsSoftwareSpec named;
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  if (!its || !ls_software_load (its, &named, none))
    return false;
  bool is_same = strcmp (spec->software->program, named.program) == 0;
  ls_software_clear (&named);
  return is_same;
}

/* Those that give way to the program that runs the job; NULL: none does. */
static GHashTable *
keys_given_up (const LsJobSpec *spec)
{
  if (runs_its_own (spec))
    return NULL;
  GHashTable *keys = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < spec->from->remarks->len; i++) {
    const LsRemark *r = &g_array_index (spec->from->remarks, LsRemark, i);
    if (r->kind == LS_REMARK_BY_RULE)
      g_hash_table_add (keys, (gpointer) r->key);
  }
  return keys;
}

/* A stage of ZeRO is of a way to be data parallel, which may be another one now. */
static bool
has_stage (const LsStrategy *s)
{
  uint32_t stages = ls_dp_traits (ls_strategy_dp_kind (s))->stages;
  return stages == 0 || s->zero_stage == LS_ZERO_AUTO || (stages & 1u << s->zero_stage) != 0;
}

static bool
read_from (LsJobSpec *spec, LsStrategy *ret_strategy, LsDiagList *diags)
{
  const LsImported *from = spec->from;
  g_autofree char *text = ls_import_text (from->strategy, spec->given_up, from->name);
  g_autoptr (LsJsonDoc) doc = ls_import_parse (text, from->name, diags);
  return doc && ls_strategy_read_over (doc, &spec->strategy, ret_strategy, said_of (spec), diags);
}

/* What a launch file says, over the defaults of what runs it; what it does not say holds only where its own
 * program does. */
static gboolean
take_from (LsJobSpec *spec, LsDiagList *diags)
{
  const LsImported *from = spec->from;
  LsStrategy strategy;
  g_clear_pointer (&spec->given_up, g_hash_table_unref);
  spec->given_up = keys_given_up (spec);
  if (!ls_import_refuse (from, LS_REMARK_CONFLICT, LS_ERROR_CONFLICT, "", diags)
      || !read_from (spec, &strategy, diags))
    return FALSE;
  if (spec->given_up && !ls_import_remark (from, LS_REMARK_GIVEN, "zero") && !has_stage (&strategy)) {
    ls_strategy_clear (&strategy);
    g_hash_table_add (spec->given_up, (gpointer) "zero");
    g_hash_table_remove (said_of (spec), "zero");
    if (!read_from (spec, &strategy, diags))
      return FALSE;
  }
  take_strategy (spec, &strategy, "from");
  spec->gpus_are_from = ls_json_doc_at (from->strategy, "gpus") != NULL;
  return TRUE;
}

/* The software that a strategy file names, unless one was named before it by another option. */
static gboolean
set_its_software (LsJobSpec *spec, const LsJsonDoc *strategy, LsDiagList *diags)
{
  const char *name = its_software (strategy);
  if (!name || (spec->software && !spec->software_is_from))
    return TRUE;
  if (spec->said)
    g_hash_table_remove_all (spec->said);
  spec->software_is_from = false;
  return set_software (spec, name, false, diags) && (!spec->from || take_from (spec, diags));
}

gboolean
ls_job_spec_load_strategy (LsJobSpec *spec, const char *name_or_path, LsDiagList *diags)
{
  LsStrategy strategy;
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_STRATEGIES, name_or_path, diags);
  if (!doc || !set_its_software (spec, doc, diags)
      || !ls_strategy_read_over (doc, &spec->strategy, &strategy, said_of (spec), diags))
    return FALSE;
  take_strategy (spec, &strategy, "strategy");
  return TRUE;
}

/* files: a line each. They are read for the model that the job runs. */
static bool
load_from (const LsJobSpec *spec, const char *files, LsImported *ret_from, LsDiagList *diags)
{
  LsModel model = { 0 };
  g_auto (GStrv) paths = g_strsplit (files, "\n", -1);
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  bool ok = (!spec->model || ls_model_load (spec->model, &model, notes, diags))
      && ls_import_load ((const char *const *) paths, spec->model ? &model : NULL, ret_from, diags);
  ls_model_clear (&model);
  return ok;
}

bool
ls_job_spec_take_import (LsJobSpec *spec, LsImported *from, LsDiagList *diags)
{
  const char *software = its_software (from->strategy);
  if (!spec->strategy_knob)
    spec->strategy_knob = g_strdup ("from");
  ls_import_unref (spec->from);
  spec->from = g_atomic_rc_box_dup (sizeof *from, from);
  spec->software_is_from = !spec->software && software;
  return (!spec->software_is_from || set_software (spec, software, false, diags)) && take_from (spec, diags);
}

static gboolean
set_from (LsJobSpec *spec, const char *files, LsDiagList *diags)
{
  LsImported from;
  return load_from (spec, files, &from, diags) && ls_job_spec_take_import (spec, &from, diags);
}

/* Whether it names a file of knobs. */
static bool
is_named (const char *key)
{
  return strcmp (key, "from") == 0 || strcmp (key, "strategy") == 0 || strcmp (key, "for") == 0
      || strcmp (key, "software") == 0;
}

static gboolean
set_named (LsJobSpec *spec, const char *key, const char *value, LsDiagList *diags)
{
  return strcmp (key, "from") == 0    ? set_from (spec, value, diags)
      : strcmp (key, "strategy") == 0 ? ls_job_spec_load_strategy (spec, value, diags)
                                      : set_software (spec, value, strcmp (key, "for") == 0, diags);
}

/* Another size of the job takes the place of that of its launch file. */
static void
forget_size (LsJobSpec *spec)
{
  if (!spec->gpus_are_from)
    return;
  spec->gpus_are_from = false;
  spec->strategy.gpus = 0;
  g_hash_table_remove (spec->said, "gpus");
}

/* What was measured is then what the GPU names, as without the option. */
static void
forget_own (LsJobSpec *spec)
{
  char **const measured[] = { &spec->gpu_calibration, &spec->nccl };
  for (guint i = 0; i < G_N_ELEMENTS (measured); i++)
    if (g_strcmp0 (*measured[i], "own") == 0)
      g_clear_pointer (measured[i], g_free);
}

static gboolean
set_option (LsJobSpec *spec, const LsField *field, const char *value, LsDiagList *diags)
{
  const bool had_time = spec->measured.step_s > 0, was_published = spec->measured.is_published;
  if (!ls_field_set_text (ls_job_fields, spec, field->key, value, diags))
    return FALSE;
  if (had_time && was_published != spec->measured.is_published)
    return ls_diag_fail (diags, LS_ERROR_USAGE,
                         "--measured and --published are the same step: expected one of them");
  if (strcmp (field->key, "nodes") == 0 || strcmp (field->key, "slice") == 0)
    forget_size (spec);
  forget_own (spec);
  return TRUE;
}

bool
ls_knob_goes_with_trace (const LsField *knob)
{
  return strcmp (knob->key, "dp") == 0 || strcmp (knob->key, "placement") == 0
      || g_strcmp0 (knob->topic, "measured") == 0 /* of the machine */
      || (g_strcmp0 (knob->topic, "host") == 0 && knob->kind == LS_FIELD_TIME);
}

static gboolean
set_strategy (LsJobSpec *spec, const LsField *field, const char *value, LsDiagList *diags)
{
  g_autoptr (LsDiagList) asked = ls_diag_list_new_counting ();
  if (!ls_field_add_text (ls_strategy_fields, &spec->strategy, field->key, value, asked)) {
    if (ls_value_file_check (field->key, value, diags))
      ls_field_set_text (ls_strategy_fields, &spec->strategy, field->key, value, diags);
    return FALSE;
  }
  if (strcmp (field->key, "gpus") == 0)
    spec->gpus_are_from = false;
  else if (strcmp (field->key, "dp") == 0)
    forget_size (spec);
  g_hash_table_add (said_of (spec), (gpointer) field->key);
  if (!spec->strategy_knob && !ls_knob_goes_with_trace (field))
    spec->strategy_knob = g_strdup (field->key);
  return TRUE;
}

/* The knob that was probably meant; NULL: none is near. */
static const LsField *
nearest_knob (const char *key)
{
  g_autofree char *typed = g_strdelimit (g_strdup (key), "-", '_');
  const char *near = ls_field_suggest (ls_strategy_fields, typed);
  if (near)
    return ls_field_find (ls_strategy_fields, near);
  near = ls_field_suggest (ls_job_fields, typed);
  return near ? ls_field_find (ls_job_fields, near) : NULL;
}

static gboolean
set_key (LsJobSpec *spec, const char *key, const char *value, LsDiagList *diags)
{
  const LsField *option = ls_field_find (ls_job_fields, key), *knob = ls_field_find (ls_strategy_fields, key);
  if (is_named (key))
    return set_named (spec, key, value, diags);
  if (option || knob)
    return option ? set_option (spec, option, value, diags) : set_strategy (spec, knob, value, diags);
  const LsField *near = nearest_knob (key);
  g_autofree char *meant = near ? ls_field_flag (near) : NULL;
  return ls_diag_fail (diags, LS_ERROR_USAGE,
                       near ? "there is no knob \"%s\"; did you mean %s?" : "there is no knob \"%s\"", key,
                       meant);
}

gboolean
ls_job_spec_set (LsJobSpec *spec, const char *key, const char *value, LsDiagList *diags)
{
  if (!set_key (spec, key, value, diags))
    return FALSE;
  if (!spec->settings)
    spec->settings = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (spec->settings, g_strdup (key));
  g_ptr_array_add (spec->settings, g_strdup (value));
  return TRUE;
}

LsRunOptions
ls_job_spec_options (const LsJobSpec *spec)
{
  LsRunOptions options = spec->options;
  options.stragglers = spec->slow.ranks ? &spec->slow : NULL;
  options.network = spec->network == LS_JOB_NETWORK_STEP ? LS_NETWORK_STEP
      : spec->network == LS_JOB_NETWORK_ALPHABETA        ? LS_NETWORK_ALPHABETA
                                                         : LS_NETWORK_FLOW;
  return options;
}

/* --- a change to a job, as the options that make it ---------------------------------------------- */

LsChange *
ls_change_new (const char *idea, const char *cost, bool needs_more)
{
  LsChange *change = g_new (LsChange, 1);
  *change = (LsChange) { idea, cost, needs_more, g_ptr_array_new_with_free_func (g_free) };
  return change;
}

void
ls_change_free (LsChange *change)
{
  if (!change)
    return;
  g_ptr_array_unref (change->settings);
  g_free (change);
}

void
ls_change_set (LsChange *change, const char *key, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  char *value = g_strdup_vprintf (format, args);
  va_end (args);
  for (guint i = 0; i < change->settings->len; i += 2)
    if (strcmp (change->settings->pdata[i], key) == 0) {
      g_free (change->settings->pdata[i + 1]);
      change->settings->pdata[i + 1] = value;
      return;
    }
  g_ptr_array_add (change->settings, g_strdup (key));
  g_ptr_array_add (change->settings, value);
}

/* Both, or the one that there is. */
static const char *
both (const char *a, const char *b)
{
  if (!a || (b && strstr (b, a)))
    return b;
  if (!b || strstr (a, b))
    return a;
  g_autofree char *text = g_strdup_printf ("%s; %s", a, b);
  return g_intern_string (text);
}

void
ls_change_need (LsChange *change, const char *cost)
{
  change->needs_more = true;
  change->cost = both (change->cost, cost);
}

LsChange *
ls_change_join (const LsChange *a, const LsChange *b)
{
  LsChange *change
      = ls_change_new (both (a->idea, b->idea), both (a->cost, b->cost), a->needs_more || b->needs_more);
  const GPtrArray *const parts[] = { a->settings, b->settings };
  for (guint part = 0; part < G_N_ELEMENTS (parts); part++)
    for (guint i = 0; i < parts[part]->len; i += 2)
      ls_change_set (change, parts[part]->pdata[i], "%s", (const char *) parts[part]->pdata[i + 1]);
  return change;
}

/* --- words and deeds ---------------------------------------------------------------------- */

static const LsField *
knob_of (const char *key)
{
  const LsField *field = ls_field_find (ls_strategy_fields, key);
  return field && !field->file_only ? field : ls_field_find (ls_job_fields, key);
}

char *
ls_change_text (const LsChange *change)
{
  GString *out = g_string_new (NULL);
  for (guint i = 0; i < change->settings->len; i += 2) {
    const char *key = change->settings->pdata[i], *value = change->settings->pdata[i + 1];
    g_autofree char *quoted = ls_shell_quote (value), *option = ls_field_option (knob_of (key), quoted);
    g_string_append_printf (out, "%s%s", i > 0 ? " " : "", option);
  }
  return g_string_free (out, FALSE);
}

char *
ls_change_key (const LsChange *change)
{
  g_autoptr (GPtrArray) parts = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < change->settings->len; i += 2)
    g_ptr_array_add (parts,
                     g_strdup_printf ("%s %s ", (char *) change->settings->pdata[i],
                                      (char *) change->settings->pdata[i + 1]));
  g_ptr_array_sort (parts, ls_compare_texts);
  g_ptr_array_add (parts, NULL);
  return g_strjoinv (NULL, (char **) parts->pdata);
}

static bool
apply (const LsChange *change, LsJobSpec *spec, LsDiagList *diags)
{
  for (guint i = 0; i < change->settings->len; i += 2) {
    const char *key = change->settings->pdata[i];
    const char *value = change->settings->pdata[i + 1];
    if (strcmp (key, "software") == 0 ? !change_software (spec, value, diags)
                                      : !ls_job_spec_set (spec, key, value, diags))
      return false;
  }
  return true;
}

/* A setting of the job again; launch files are read with the change. */
static bool
set_again (const LsChange *change, const char *key, const char *value, LsJobSpec *ret, LsDiagList *diags)
{
  g_autoptr (GString) all = g_string_new (value);
  for (guint k = 0; strcmp (key, "from") == 0 && k < change->settings->len; k += 2)
    ls_job_add_known (all, change->settings->pdata[k], change->settings->pdata[k + 1]);
  return ls_job_spec_set (ret, key, all->str, diags);
}

/* As if its options were appended to those of the job. */
static bool
set_all (const LsChange *change, const LsJobSpec *spec, LsJobSpec *ret, LsDiagList *diags)
{
  for (guint i = 0; i < spec->settings->len; i += 2)
    if (!set_again (change, spec->settings->pdata[i], spec->settings->pdata[i + 1], ret, diags))
      return false;
  return apply (change, ret, diags);
}

bool
ls_change_make_alone (const LsChange *change, const LsJobSpec *spec, bool names_program, LsJobSpec *ret,
                      LsDiagList *diags)
{
  static const char *const names[] = { "model", "for", "software", NULL };
  ls_job_spec_init (ret);
  if (names_program && spec->software_is_from
      && !ls_job_spec_set (ret, "software", spec->software_name, diags))
    return false;
  for (guint i = 0; i < spec->settings->len; i += 2) {
    const char *key = spec->settings->pdata[i], *value = spec->settings->pdata[i + 1];
    const char *known = strcmp (key, "from") == 0 ? strstr (value, "\n:") : NULL;
    g_autofree char *files = known ? g_strndup (value, known - value) : g_strdup (value);
    if ((g_strv_contains (names, key) || strcmp (key, "from") == 0)
        && !set_again (change, key, files, ret, diags))
      return false;
  }
  return apply (change, ret, diags);
}

static bool
sets_batch (const LsChange *change)
{
  const LsField *batch = ls_field_find (ls_strategy_fields, "global_batch");
  for (guint i = 0; i < change->settings->len; i += 2)
    if (ls_field_find (ls_strategy_fields, change->settings->pdata[i]) == batch)
      return true;
  return false;
}

/* The job of launch files, with the batch as it was, unless the change is one of it. */
static bool
read_again (LsChange *change, const LsJobSpec *spec, LsJobSpec *ret, LsDiagList *diags)
{
  uint32_t batch = sets_batch (change) ? 0 : spec->strategy.global_batch; /* 0: whatever it is then */
  ls_job_spec_init (ret);
  if (!set_all (change, spec, ret, diags))
    return false;
  if (ret->strategy.global_batch == batch || batch == 0)
    return true;
  ls_job_spec_clear (ret);
  ls_job_spec_init (ret);
  ls_change_set (change, "global_batch", "%u", batch);
  return set_all (change, spec, ret, diags);
}

bool
ls_change_make (LsChange *change, const LsJobSpec *spec, LsJobSpec *ret_changed, LsDiagList *diags)
{
  if (spec->from)
    return read_again (change, spec, ret_changed, diags);
  ls_job_spec_copy (spec, ret_changed);
  return apply (change, ret_changed, diags);
}
