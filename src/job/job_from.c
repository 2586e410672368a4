#include "job/job_from.h"

#include <string.h>

#include "data/jobs/job_files.h"
#include "data/jobs/imported.h"
#include "data/text/field.h"
#include "data/text/override.h"

#define MAX_SHOWN 6 /* of what may matter: all of it is what `import` is for */

gboolean
ls_job_check_named (const LsJobSpec *spec, GError **error)
{
  bool has_job = spec->model || spec->from;
  if (spec->is_strict && !spec->from)
    return ls_fail (error, LS_ERROR_USAGE, "--strict goes with --from: it is of what a file says");
  if (has_job && spec->cluster)
    return TRUE;
  return ls_fail (error, LS_ERROR_USAGE, "expected %s",
                  has_job ? "--cluster" : "--model, or --from and a launch file");
}

void
ls_job_add_known (GString *files, const char *key, const char *value)
{
  const LsField *f = ls_field_find (ls_strategy_fields, key);
  if (f && !f->file_only && !f->repeated && !strpbrk (value, ",/\n[]{}\"."))
    g_string_append_printf (files, "\n:%s=%s", f->key, value);
}

/* --- what is missing ------------------------------------------------------------------------------ */

static bool
has (GHashTable *keys, const char *key)
{
  return keys && g_hash_table_contains (keys, key);
}

bool
ls_job_has_from (const LsJobSpec *spec, const LsField *knob, const LsStrategy *s)
{
  g_autofree char *its
      = spec->from ? ls_import_value (spec->from->strategy, ls_strategy_fields, knob->key) : NULL,
      *now = ls_field_text (knob, s, NULL);
  return its && g_strcmp0 (its, now) == 0;
}

bool
ls_job_says (const LsJobSpec *spec, const char *key)
{
  const LsImported *from = spec->from;
  if (!from || has (spec->said, key))
    return has (spec->said, key);
  if (!ls_import_remark (from, LS_REMARK_OF_GPUS, key))
    return ls_json_doc_at (from->strategy, key) != NULL;
  g_autofree char *gpus = ls_import_value (from->strategy, ls_strategy_fields, "gpus");
  return spec->strategy.gpus == (gpus ? g_ascii_strtoull (gpus, NULL, 10) : 0);
}

/* Knobs without which a job is another one. */
static const char *const needed[] = { "micro_batch", "global_batch" };

static void
ask_for (const LsJobSpec *spec, const char *key, const char *why, LsDiagList *diags)
{
  const LsField *f = ls_field_find (ls_strategy_fields, key);
  g_autofree char *flag = ls_field_flag (f);
  const char *argument = ls_field_argument (f),
             *size = strstr (why, "how many GPUs there are is not known") ? ", or these by --gpus N" : "";
  ls_diag_add (diags, LS_ERROR_INPUT, spec->from->path, 0, 0, NULL, NULL, NULL,
               "%s: give it by %s%s%s, or after the file's name by :%s=%s%s", why, flag,
               f->set_only ? "=" : " ", argument ? argument : "1", key, argument ? argument : "1", size);
}

static void
find_open_knobs (const LsJobSpec *spec, LsJobSaysFunc says, LsDiagList *diags)
{
  const LsImported *from = spec->from;
  for (const LsField *f = ls_strategy_fields; f->key; f++) {
    const LsRemark *open = ls_import_remark (from, LS_REMARK_UNKNOWN, f->key);
    /* Documents of unknown lengths fill sequences, which the line says; GPUs are asked for by the cluster. */
    if (open && strcmp (f->key, "gpus") != 0 && strcmp (f->key, "lengths") != 0 && !says (spec, f->key))
      ask_for (spec, f->key, open->text, diags);
  }
  for (guint i = 0; i < G_N_ELEMENTS (needed); i++) {
    g_autofree char *why = g_strdup_printf (ls_import_remark (from, LS_REMARK_OF_GPUS, needed[i])
                                                ? "%s follows from another number of GPUs"
                                                : "it does not say %s",
                                            needed[i]);
    if (!ls_import_remark (from, LS_REMARK_UNKNOWN, needed[i]) && !says (spec, needed[i]))
      ask_for (spec, needed[i], why, diags);
  }
}

static void
find_open_model (const LsImported *from, LsDiagList *diags)
{
  if (!ls_import_first (from->model) && !ls_import_remark (from, LS_REMARK_UNKNOWN, NULL)) {
    ls_diag_add (diags, LS_ERROR_INPUT, from->path, 0, 0, NULL, NULL,
                 "give the model by --model, or the files of its job in front of it",
                 "it does not say what is trained");
    return;
  }
  for (const LsField *f = ls_model_fields; f->key; f++) {
    if (!f->required || f->file_only || ls_json_doc_at (from->model, f->key))
      continue;
    const LsRemark *open = ls_import_remark (from, LS_REMARK_UNKNOWN, f->key);
    g_autofree char *why = open ? g_strdup (open->text)
                                : g_strdup_printf ("it does not say %s (%s)", f->key, ls_field_meaning (f));
    ls_diag_add (diags, LS_ERROR_INPUT, from->path, 0, 0, NULL, NULL, NULL,
                 "%s: give it after the name, --from %s:%s=%s, or the model by --model", why, from->path,
                 f->key, f->kind == LS_FIELD_ENUM ? f->names[0].name : "N");
  }
}

bool
ls_job_from_has_size (const LsJobSpec *spec, const LsClusterSpec *cluster, LsDiagList *diags)
{
  const LsStrategy *s = &spec->strategy;
  if (!spec->from || s->gpus > 0 || s->dp > 0 || spec->n_nodes > 0 || cluster->n_nodes > 1
      || spec->slice[0] > 0)
    return true;
  ask_for (spec, "gpus", "it does not say how many GPUs there are", diags);
  return false;
}

/* What the file says of multi-token prediction, as changes of a model; "": nothing. The caller frees it. */
static char *
predictions_of (const LsImported *from)
{
  static const char *const keys[] = { "predict_layers", "predict_pattern", "predict_shared" };
  GString *changes = g_string_new (NULL);
  for (guint i = 0; i < G_N_ELEMENTS (keys) && ls_json_doc_at (from->model, keys[0]); i++) {
    g_autofree char *value = ls_import_value (from->model, ls_model_fields, keys[i]);
    if (value)
      g_string_append_printf (changes, "%s%s=%s", i > 0 ? "," : "", keys[i], value);
  }
  return g_string_free (changes, FALSE);
}

/* A model that is given in place of the file's; what of it a job chooses, the file says still: how long a
 * sequence is, and what predicts further tokens. */
static bool
load_given (const LsJobSpec *spec, LsModel *ret_model, GPtrArray *notes, LsDiagList *diags)
{
  g_autofree char *changes = spec->from ? predictions_of (spec->from) : g_strdup (""),
                  *name = *changes ? ls_override_add (spec->model, changes) : g_strdup (spec->model);
  if (!ls_model_load (name, ret_model, notes, diags))
    return false;
  const cJSON *seq = spec->from ? ls_json_doc_at (spec->from->model, "seq") : NULL;
  if (seq)
    ret_model->seq = (uint32_t) seq->valuedouble;
  if (seq || spec->strategy.seq > 0)
    ls_model_notes_drop_length (notes);
  return true;
}

bool
ls_job_load_model (const LsJobSpec *spec, LsJobSaysFunc says, LsModel *ret_model, GPtrArray *notes,
                   LsDiagList *diags)
{
  const LsImported *from = spec->from;
  guint n = ls_diag_list_n (diags);
  if (from && spec->is_strict)
    ls_import_refuse (from, LS_REMARK_UNKNOWN, LS_ERROR_UNSUPPORTED, LS_IMPORT_NOT_KNOWN, diags);
  if (from)
    find_open_knobs (spec, says, diags);
  if (spec->model && !load_given (spec, ret_model, notes, diags))
    return false;
  if (spec->model && ls_diag_list_n (diags) > n)
    ls_model_clear (ret_model);
  if (spec->model)
    return ls_diag_list_n (diags) == n;
  find_open_model (from, diags);
  return ls_diag_list_n (diags) == n && ls_model_read (from->model, ret_model, notes, diags);
}

/* --- what its accelerator lacks --------------------------------------------------------------------- */

/* Whether flash attention is what a program, a model or a launch file has by itself, not what was asked for.
 * */
static bool
takes_flash (const LsJobSpec *spec, const LsModel *model)
{
  int own = spec->strategy.use.attention;
  bool is_asked = spec->from ? ls_import_remark (spec->from, LS_REMARK_GIVEN, "attention") != NULL
                             : ls_job_says (spec, "attention");
  return !is_asked
      && (own == LS_ATTENTION_FLASH || (own == LS_ATTENTION_AUTO && model->attention == LS_ATTENTION_FLASH));
}

/* Parts of a sequence are simulated with flash attention only. */
void
ls_job_fit_attention (const LsJobSpec *spec, const LsModel *model, const LsHardware *hardware, LsStrategy *s)
{
  if (hardware->spec.gpu.lacks_flash && s->cp <= 1 && takes_flash (spec, model))
    s->use.attention = LS_ATTENTION_UNFUSED;
}

void
ls_job_note_attention_fit (const LsJobSpec *spec, const LsModel *model, const LsHardware *hardware,
                           const LsStrategy *s, GPtrArray *notes)
{
  if (!hardware->spec.gpu.lacks_flash || s->use.attention != LS_ATTENTION_UNFUSED
      || !takes_flash (spec, model))
    return;
  bool is_said = spec->from && !ls_import_remark (spec->from, LS_REMARK_BY_RULE, "attention");
  const char *who = is_said ? spec->from->path
      : spec->from          ? spec->from->program
      : spec->software      ? spec->software->program
                            : "the model";
  ls_note (notes,
           "%s has no flash attention, which %s %s: attention is computed in parts. "
           "PyTorch's memory-efficient attention, which is not simulated, takes as "
           "much memory as --attention flash",
           hardware->spec.gpu.name, who, is_said ? "asks for" : "takes by itself");
}

/* --- what is told --------------------------------------------------------------------------------- */

/* Whether it is of a key that was given since. */
static bool
is_settled (const LsJobSpec *spec, const LsRemark *r)
{
  return r->key && (ls_job_says (spec, r->key) || strcmp (r->key, "gpus") == 0 || spec->model);
}

static GPtrArray *
unsettled (const LsJobSpec *spec)
{
  GPtrArray *lines = g_ptr_array_new ();
  for (guint i = 0; i < spec->from->remarks->len; i++) {
    const LsRemark *r = &g_array_index (spec->from->remarks, LsRemark, i);
    if (r->kind == LS_REMARK_UNKNOWN && !is_settled (spec, r))
      g_ptr_array_add (lines, r->text);
  }
  return lines;
}

/* What is explained ("x: taken to be off") says what it does to the figures; a bare option says less. */
static int
explained_first (gconstpointer a, gconstpointer b)
{
  bool x = strstr (*(char *const *) a, ": ") != NULL, y = strstr (*(char *const *) b, ": ") != NULL;
  return y - x;
}

/* That are of its files: those of a model that was given in their place are not. */
static guint
n_values (const LsJobSpec *spec)
{
  guint n = 0;
  for (const cJSON *one = ls_import_first (spec->from->strategy); one; one = one->next)
    n++;
  for (const cJSON *one = ls_import_first (spec->from->model); one; one = one->next)
    n += !spec->model || !ls_import_remark (spec->from, LS_REMARK_GIVEN, one->string);
  return n;
}

/* "dp_kind fsdp2 (was megatron)": of a key as it is now, and as the rules of the file's program have it. */
static char *
text_of_change (const LsJobSpec *spec, const LsField *f)
{
  g_autofree char *theirs = ls_import_value (spec->from->strategy, ls_strategy_fields, f->key),
                  *now = ls_field_text (f, &spec->strategy, NULL);
  return g_strcmp0 (theirs, now) != 0
      ? g_strdup_printf ("%s %s (was %s)", f->key, now ? now : "by itself", theirs ? theirs : "none")
      : NULL;
}

/* What another program than the file's has as it has it by itself. */
static void
tell_given_up (const LsJobSpec *spec, GPtrArray *notes)
{
  const LsImported *from = spec->from;
  GString *keys = g_string_new (NULL);
  for (const LsField *f = ls_strategy_fields; spec->given_up && f->key; f++) {
    bool is_so = has (spec->given_up, f->key) && !has (spec->said, f->key);
    g_autofree char *change = is_so ? text_of_change (spec, f) : NULL;
    if (change && !ls_import_remark (from, LS_REMARK_BY_RULE, f->key))
      ls_note (notes,
               "%s says a stage of ZeRO that %s does not have; taken from %s: %s; "
               "--zero says another",
               from->path, spec->software_name, spec->software_name, change);
    else if (change)
      g_string_append_printf (keys, "%s%s", keys->len > 0 ? ", " : "", change);
  }
  if (keys->len > 0)
    ls_note (notes, "%s does not say these, only rules of %s do; taken from %s: %s", from->path,
             from->program, spec->software_name, keys->str);
  g_string_free (keys, TRUE);
}

void
ls_job_from_notes (const LsJobSpec *spec, GPtrArray *notes)
{
  const LsImported *from = spec->from;
  if (!from)
    return;
  g_autoptr (GPtrArray) lines = unsettled (spec);
  g_ptr_array_sort (lines, explained_first); /* stable */
  ls_note (notes,
           "%s is a job of %s: %u values, %u inferred, %u ignored, %u not known "
           "that may matter; lockstep import shows all",
           from->path, from->program, n_values (spec), ls_import_n_remarks (from, LS_REMARK_INFERRED),
           ls_import_n_remarks (from, LS_REMARK_IGNORED), lines->len);
  for (guint i = 0; i < MIN (lines->len, MAX_SHOWN); i++)
    ls_note (notes, "not known, may matter: %s", (char *) lines->pdata[i]);
  if (lines->len > MAX_SHOWN)
    ls_note (notes, "not known, may matter: %u more", lines->len - MAX_SHOWN);
  for (guint i = 0; i < from->remarks->len && !ls_import_remark (from, LS_REMARK_GIVEN, "dtype"); i++) {
    const LsRemark *r = &g_array_index (from->remarks, LsRemark, i);
    if (r->kind == LS_REMARK_INFERRED && g_str_has_prefix (r->text, "dtype "))
      ls_note (notes, "inferred: %s", r->text);
  }
  tell_given_up (spec, notes);
  if (!spec->software && !spec->strategy.program.software)
    ls_note (notes,
             "%s does not say on what it runs, so that no release of %s is "
             "taken: it runs the textbook; --software NAME for another one",
             from->path, from->program);
  if (spec->model && from->has_own_model)
    ls_note (notes, "the model is %s, not that of %s", spec->model, from->path);
}

/* --- what a log measured -------------------------------------------------------------------------- */

/* The first knob that an option changed; NULL: none. */
static const char *
changed_knob (const LsJobSpec *spec)
{
  const LsRemark *departs = ls_import_remark (spec->from, LS_REMARK_DEPARTS, NULL);
  for (const LsField *f = ls_strategy_fields; f->key; f++) {
    bool is_size = strcmp (f->key, "gpus") == 0 && spec->strategy.gpus == 0;
    if (!f->file_only && !is_size && ls_json_doc_at (spec->from->strategy, f->key)
        && !ls_job_has_from (spec, f, &spec->strategy))
      return f->key;
  }
  return departs ? departs->key : NULL;
}

void
ls_job_from_measure (LsJobSpec *spec, GPtrArray *notes)
{
  const LsImported *from = spec->from;
  if (!from || from->measured.step_s == 0 || spec->measured.step_s > 0)
    return;
  const char *key = changed_knob (spec), *log = from->measured.source ? from->measured.source : from->path;
  if (key) {
    ls_note (notes, "%s timed a step of %.4g s, of another job: %s is not as it was logged", log,
             from->measured.step_s, key);
    return;
  }
  spec->measured = from->measured;
  spec->measured.source = g_strdup (log);
}
