#include "job/knobs.h"

#include <string.h>

#include "base/printable.h"
#include "data/jobs/job_files.h"
#include "data/text/field.h"
#include "strategy/strategy.h"

/* $'...' of bash, in which each byte that is no plain letter, digit or mark is its number. */
static char *
quoted_by_bytes (const char *word)
{
  GString *out = g_string_new ("$'");
  for (const char *c = word; *c; c++)
    if (g_ascii_isgraph (*c) && *c != '\'' && *c != '\\')
      g_string_append_c (out, *c);
    else
      g_string_append_printf (out, "\\x%02x", (guchar) *c);
  g_string_append_c (out, '\'');
  return g_string_free (out, FALSE);
}

char *
ls_shell_quote (const char *word)
{
  bool is_plain = *word != '\0';
  for (const char *c = word; *c; c++)
    is_plain &= g_ascii_isalnum (*c) || strchr ("_-./:=,+@%", *c) != NULL;
  bool is_json = *word == '{'; /* whose line breaks are its own */
  g_autofree char *shown = is_json ? ls_printable_lines (word) : ls_printable (word);
  return strcmp (shown, word) != 0 ? quoted_by_bytes (word)
      : is_plain                   ? g_strdup (word)
                                   : g_shell_quote (word);
}

/* As a file has it: of layers_per_chunk "3,4x14,2"; NULL: by itself. */
static char *
knob_text (const LsStrategy *s, const char *key)
{
  return ls_field_text (ls_field_find (ls_strategy_fields, key), s, NULL);
}

/* What knobs are by themselves, beside those that others follow. */
static void
init_usual (LsStrategy *usual, const LsStrategy *s)
{
  ls_strategy_init (usual);
  usual->tp = s->tp;
  usual->pp = s->pp;
  usual->zero_stage = s->zero_stage;
  usual->data.overlap = s->data.overlap;
  usual->memory.recompute_method = s->memory.recompute_method;
  ls_strategy_fill_auto (usual);
}

static bool
is_auto (const char *value)
{
  return !value || strcmp (value, "auto") == 0;
}

char *
ls_knob_of_program (const LsField *f, const LsStrategy *s, const LsStrategy *defaults)
{
  const char *here = defaults ? ls_strategy_default_here (s, f->key) : NULL;
  return here ? g_strdup (here) : defaults ? ls_field_text (f, defaults, NULL) : NULL;
}

/* Whether the knob is left to be what it is by itself, under the defaults of a program too. Usual numbers and
 * words, and usual knobs that others decide, are always said. */
static bool
goes_without_saying (const LsField *f, const char *value, const char *program, const LsStrategy *blank,
                     const LsStrategy *usual)
{
  g_autofree char *by_itself = ls_field_text (f, blank, NULL), *derived = ls_field_text (f, usual, NULL);
  bool is_plain = f->kind == LS_FIELD_UINT || f->kind == LS_FIELD_ENUM;
  if (f->usual && (is_plain || is_auto (by_itself)))
    return false;
  if (!is_auto (program))
    return strcmp (value, program) == 0;
  return strcmp (value, is_auto (by_itself) && derived ? derived : by_itself ? by_itself : "") == 0;
}

/* "auto", where the defaults say something and that takes it back; else NULL. */
static char *
taken_back (const LsField *f, const LsStrategy *defaults)
{
  g_autofree char *said = defaults ? ls_field_text (f, defaults, NULL) : NULL, *left = NULL;
  if (!said)
    return NULL;
  LsStrategy tried;
  ls_strategy_copy (&tried, defaults);
  bool is_word = ls_field_value_set (f, &tried, "auto");
  left = ls_field_text (f, &tried, NULL);
  ls_strategy_clear (&tried);
  return is_word && !left ? g_strdup ("auto") : NULL;
}

/* Behind which the knobs are to hold: behind defaults, without any, or either way. */
typedef struct {
  const LsStrategy *s, *defaults; /* NULL: of none */
  const LsImported *from;         /* what was given with them is typed; NULL: no files */
  bool is_alone_too;              /* without the defaults as well */
  const LsModel *model;           /* of the job whose idle knobs are left out; NULL: none are */
  const LsStrategy *at;           /* whose program has defaults on its accelerator; NULL: s */
  LsStrategy filled, blank, usual;
} Written;

/* Whether nothing need be typed for the knob to have the value. */
static bool
is_left_out (const Written *w, const LsField *f, const char *value)
{
  if (w->model && !f->usual && ls_strategy_idle (w->s, w->model, f->key))
    return true;
  if (w->from && ls_import_remark (w->from, LS_REMARK_GIVEN, f->key))
    return false;
  g_autofree char *program = ls_knob_of_program (f, w->at ? w->at : w->s, w->defaults);
  bool is_so_behind = !w->defaults || goes_without_saying (f, value, program, &w->blank, &w->usual);
  if (!is_so_behind || (w->defaults && !w->is_alone_too))
    return is_so_behind;
  return goes_without_saying (f, value, NULL, &w->blank, &w->usual);
}

/* With what follows from others. A single copy that XLA compiles reduces nothing, but its kind says who
 * compiles it. */
static void
copy_filled (LsStrategy *to, const LsStrategy *s)
{
  ls_strategy_copy (to, s);
  ls_strategy_fill_auto (to);
  if (to->launch.is_compiled && to->dp_kind == LS_DP_NONE)
    to->dp_kind = LS_DP_XLA_FSDP;
}

static void
written_init (Written *w, const LsStrategy *s)
{
  w->s = s;
  copy_filled (&w->filled, s);
  ls_strategy_init (&w->blank);
  init_usual (&w->usual, s);
}

static void
written_clear (Written *w)
{
  ls_strategy_clear (&w->usual);
  ls_strategy_clear (&w->blank);
  ls_strategy_clear (&w->filled);
}

/* NULL: it has none. */
static char *
value_of (const Written *w, const LsField *f)
{
  char *said = f->file_only ? NULL : ls_field_text (f, &w->filled, NULL);
  return said || f->file_only ? said : taken_back (f, w->defaults);
}

static LsChange *
knobs_of (Written w, const LsStrategy *s)
{
  LsChange *knobs = ls_change_new (NULL, NULL, false);
  written_init (&w, s);
  for (const LsField *f = ls_strategy_fields; f->key; f++) {
    g_autofree char *value = value_of (&w, f);
    if (value && !is_left_out (&w, f, value))
      ls_change_set (knobs, f->key, "%s", value);
  }
  written_clear (&w);
  return knobs;
}

/* --- of launch files, which are read again with the knobs ----------------------------------------- */

/* As it is read, or as its program has it on the accelerator; NULL: by itself. The caller frees it. */
static char *
read_value (const LsJobSpec *read, const LsStrategy *s, const LsField *f)
{
  bool is_said = read->said && g_hash_table_contains (read->said, f->key);
  const char *here = is_said ? NULL : ls_strategy_default_here (s, f->key);
  return here ? g_strdup (here) : ls_field_text (f, &read->strategy, NULL);
}

/* What differs between the resolved strategy and that of files whose rules follow the knobs. */
static guint
add_differing (const LsStrategy *s, const LsJobSpec *read, LsChange *knobs)
{
  guint n = 0;
  for (const LsField *f = ls_strategy_fields; f->key; f++) {
    g_autofree char *here = f->file_only ? NULL : ls_field_text (f, s, NULL),
                    *there = f->file_only ? NULL : read_value (read, s, f),
                    *value = here || !there ? g_steal_pointer (&here) : taken_back (f, &read->strategy);
    if (!value || g_strcmp0 (value, there) == 0)
      continue;
    ls_change_set (knobs, f->key, "%s", value);
    n++;
  }
  return n;
}

/* Adds the knobs that they still lack; false: the files are refused with them. */
static bool
add_rest (const LsJobSpec *job, const LsModel *model, const LsStrategy *s, bool names_program,
          LsChange *knobs, guint *ret_n, LsDiagList *diags)
{
  LsJobSpec again;
  LsStrategy filled;
  bool is_read = ls_change_make_alone (knobs, job, names_program, &again, diags);
  if (is_read) {
    ls_strategy_resolve (&again.strategy, model, s->gpus, s->gpus, diags);
    ls_strategy_fill_auto (&again.strategy);
    copy_filled (&filled, s);
    *ret_n = add_differing (&filled, &again, knobs);
    ls_strategy_clear (&filled);
  }
  ls_job_spec_clear (&again);
  return is_read;
}

#define MAX_READINGS 4 /* rules may follow what is added, too */

/* False: files of the job are refused with the knobs; diags, NULL allowed, says why. */
static bool
complete (const LsJobSpec *job, const LsModel *model, const LsStrategy *s, bool names_program,
          LsChange *knobs, LsDiagList *diags)
{
  g_autoptr (LsDiagList) unheard = diags ? NULL : ls_diag_list_new_counting ();
  bool is_read = true;
  guint n = 1;
  for (guint i = 0; job->from && i < MAX_READINGS && is_read && n > 0; i++)
    is_read = add_rest (job, model, s, names_program, knobs, &n, diags ? diags : unheard);
  return is_read;
}

char *
ls_knobs_format (const LsStrategy *s)
{
  g_autoptr (LsChange) knobs = knobs_of ((Written) { .is_alone_too = true }, s);
  return ls_change_text (knobs);
}

/* What --from, --for or --software of a job say of knobs. */
static Written
behind (const LsJobSpec *job)
{
  return (Written) { .defaults = job->from ? &job->strategy
                         : job->software   ? &job->software->defaults
                                           : NULL,
                     .from = job->from };
}

bool
ls_job_is_read (const LsJobSpec *job, const LsModel *model, const LsStrategy *s, LsDiagList *diags)
{
  g_autoptr (LsChange) knobs = job->from ? knobs_of (behind (job), s) : NULL;
  return !knobs || complete (job, model, s, true, knobs, diags);
}

char *
ls_job_knobs (const LsJobSpec *job, const LsModel *model, bool is_brief, const LsStrategy *s)
{
  Written w = behind (job);
  w.is_alone_too = true;
  w.model = is_brief ? model : NULL;
  g_autoptr (LsChange) knobs = knobs_of (w, s);
  complete (job, model, s, false, knobs, NULL);
  if (job->software_is_from) /* else a command names no other program than the job */
    complete (job, model, s, true, knobs, NULL);
  return ls_change_text (knobs);
}

const char *
ls_change_setting (const LsChange *change, const char *key)
{
  for (guint i = 0; i < change->settings->len; i += 2)
    if (strcmp (change->settings->pdata[i], key) == 0)
      return change->settings->pdata[i + 1];
  return NULL;
}

/* Whether the knob of s has no effect and need not be typed after what is typed for the first, NULL: nothing;
 * "p2p none" of a lone stage is refused with several. */
static bool
is_superfluous (const LsStrategy *s, const LsModel *m, const LsField *f, const char *there)
{
  bool is_idle = ls_strategy_idle (s, m, f->key) != NULL;
  if (!there || !is_idle)
    return is_idle;
  LsStrategy tried;
  g_autoptr (LsDiagList) unheard = ls_diag_list_new_counting ();
  ls_strategy_copy (&tried, s);
  bool is_legal
      = ls_field_value_set (f, &tried, there) && ls_strategy_resolve (&tried, m, s->gpus, s->gpus, unheard);
  ls_strategy_clear (&tried);
  return is_legal;
}

/* What b, of s, has otherwise than a, and has an effect. */
static LsChange *
without_same (const LsChange *a, const LsChange *b, const LsModel *m, const LsStrategy *s)
{
  LsChange *rest = ls_change_new (NULL, NULL, false);
  for (const LsField *f = ls_strategy_fields; f->key; f++) {
    const char *value = ls_change_setting (b, f->key), *there = ls_change_setting (a, f->key);
    if (value && g_strcmp0 (there, value) != 0 && !is_superfluous (s, m, f, there))
      ls_change_set (rest, f->key, "%s", value);
  }
  return rest;
}

char *
ls_job_knobs_instead (const LsJobSpec *job, const LsModel *m, const LsStrategy *s, const LsStrategy *first)
{
  Written own = behind (job), other = own;
  g_autoptr (LsChange) of_first = knobs_of (own, first), knobs = ls_change_new (NULL, NULL, false);
  complete (job, m, first, true, of_first, NULL);
  written_init (&own, s);
  written_init (&other, first);
  own.at = first;
  for (const LsField *f = ls_strategy_fields; f->key; f++) {
    g_autofree char *there = value_of (&other, f), *here = value_of (&own, f),
                    *value = here || !there ? g_steal_pointer (&here) : taken_back (f, &other.filled);
    bool is_there = there && !is_left_out (&other, f, there);
    bool is_here = value && !is_left_out (&own, f, value),
         is_idle = is_superfluous (s, m, f, is_there ? there : NULL);
    if (value && !is_idle && (is_here || is_there) && !(is_there && strcmp (value, there) == 0))
      ls_change_set (knobs, f->key, "%s", value);
  }
  written_clear (&other);
  written_clear (&own);
  g_autoptr (LsChange) both = ls_change_join (of_first, knobs);
  complete (job, m, s, true, both, NULL);
  g_autoptr (LsChange) rest = without_same (of_first, both, m, s);
  return ls_change_text (rest);
}

static void
append_names (const LsJobSpec *job, GString *out)
{
  g_autofree char *model = job->model ? ls_shell_quote (job->model) : NULL,
                  *cluster = ls_shell_quote (job->cluster),
                  *program = job->software ? ls_shell_quote (job->software_name) : NULL;
  if (model)
    g_string_append_printf (out, " --model %s", model);
  for (guint i = 0; job->from && i < job->from->asked->len; i++) {
    g_autofree char *file = ls_shell_quote (job->from->asked->pdata[i]);
    g_string_append_printf (out, " --from %s", file);
  }
  g_string_append_printf (out, " --cluster %s", cluster);
  if (program)
    g_string_append_printf (out, " --%s %s", job->program ? "for" : "software", program);
}

/* The option that was set; NULL: a knob of the strategy, or what has its own place in a command. */
static const LsField *
option_of (const char *key)
{
  static const char *const apart[]
      = { "model", "cluster", "for", "software", "from", "trace", "strategy", "debug", NULL };
  return g_strv_contains (apart, key) ? NULL : ls_field_find (ls_job_fields, key);
}

/* The last of several counts. */
static bool
is_set_again (const GPtrArray *settings, guint at, const LsField *option)
{
  for (guint i = at + 2; i < settings->len; i += 2)
    if (option_of (settings->pdata[i]) == option)
      return true;
  return false;
}

char *
ls_job_options (const LsJobSpec *job)
{
  const GPtrArray *settings = job->settings;
  GString *out = g_string_new (NULL);
  for (guint i = 0; settings && i < settings->len; i += 2) {
    const LsField *option = option_of (settings->pdata[i]);
    if (!option || is_set_again (settings, i, option))
      continue;
    g_autofree char *quoted = ls_shell_quote (settings->pdata[i + 1]),
                    *text = ls_field_option (option, quoted);
    g_string_append_printf (out, "%s ", text);
  }
  return g_string_free (out, FALSE);
}

char *
ls_job_command (const LsJobSpec *job, const LsModel *model, const LsStrategy *s)
{
  GString *out = g_string_new ("lockstep run");
  append_names (job, out);
  g_autoptr (LsChange) knobs = knobs_of (behind (job), s);
  complete (job, model, s, true, knobs, NULL);
  g_autofree char *options = ls_job_options (job), *text = ls_change_text (knobs);
  g_string_append_printf (out, " %s%s", options, text);
  return g_string_free (out, FALSE);
}

/* All degrees, whose product is the ranks; of experts those that differ. */
static void
append_degrees (GString *out, const LsStrategy *s)
{
  g_string_append_printf (out, "tp %u%s, pp %u", s->tp, s->sp ? " + sp" : "", s->pp);
  if (s->vpp > 1)
    g_string_append_printf (out, " x %u chunks", s->vpp);
  g_autofree char *layers = knob_text (s, "layers_per_chunk"), *cp_kind = knob_text (s, "cp_kind");
  if (layers)
    g_string_append_printf (out, " of %s layers", layers);
  if (s->cp > 1)
    g_string_append_printf (out, ", cp %u (%s)", s->cp, cp_kind);
  g_string_append_printf (out, ", dp %u", s->dp);
  if (s->zero_stage > 0 && s->data.zero_group > 0)
    g_string_append_printf (out, " (ZeRO-%u in groups of %u)", s->zero_stage, s->data.zero_group);
  else if (s->zero_stage > 0)
    g_string_append_printf (out, " (ZeRO-%u)", s->zero_stage);
  if (s->ep > 1)
    g_string_append_printf (out, ", ep %u", s->ep);
  if (s->ep > 1 && s->experts.etp != s->tp)
    g_string_append_printf (out, " x %u", s->experts.etp);
}

/* Whose weights stay whole after a forward are cut by name alone. */
static void
append_resharding (GString *out, const LsStrategy *s)
{
  if (s->dp_kind != LS_DP_FSDP2 || s->zero_stage != 3 || s->data.reshard_after_forward == 1)
    return;
  g_autofree char *groups = s->data.reshard_after_forward > 1
      ? g_strdup_printf (" into groups of %u", s->data.reshard_after_forward)
      : NULL;
  g_string_append_printf (out, ", %sresharded after forward%s", groups ? "" : "not ", groups ? groups : "");
}

static void
append_formats (GString *out, const LsStrategy *s)
{
  g_autofree char *recipe = s->dtype == LS_DTYPE_FP8 ? knob_text (s, "fp8_recipe") : NULL;
  g_string_append_printf (out, ", %s", ls_dtype_name ((LsDtype) s->dtype));
  if (recipe)
    g_string_append_printf (out, " (%s)", recipe);
  g_autofree char *attention
      = s->fp8.attention != LS_FP8_ATTENTION_NONE ? knob_text (s, "fp8_attention") : NULL;
  if (attention)
    g_string_append_printf (out, ", attention in fp8 (%s)", attention);
}

/* Others than by itself; NULL: none. The caller frees it. */
static char *
recomputed_parts (const LsStrategy *s)
{
  bool has_parts = s->recompute == LS_RECOMPUTE_SELECTIVE && s->memory.recompute_parts != LS_RECOMPUTE_CORE;
  return has_parts ? knob_text (s, "recompute_parts") : NULL;
}

char *
ls_knobs_recompute (const LsStrategy *s)
{
  char *parts = recomputed_parts (s);
  return parts ? parts : g_strdup (ls_recompute_names[s->recompute].name);
}

static void
append_recompute (GString *out, const LsStrategy *s)
{
  if (s->recompute == LS_RECOMPUTE_NONE || ls_strategy_recomputes_nothing (s))
    return;
  g_autofree char *parts = recomputed_parts (s);
  g_string_append_printf (out, ", %s recompute%s%s", ls_recompute_names[s->recompute].name,
                          parts ? " of " : "", parts ? parts : "");
  bool has_groups = s->recompute == LS_RECOMPUTE_FULL
      && (s->memory.recompute_method != LS_RECOMPUTE_UNIFORM || s->memory.recompute_layers > 1);
  g_autofree char *method = has_groups ? knob_text (s, "recompute_method") : NULL;
  if (method)
    g_string_append_printf (out, " (%s, %u layer%s)", method, s->memory.recompute_layers,
                            s->memory.recompute_layers == 1 ? "" : "s");
}

char *
ls_knobs_summary (const LsStrategy *s, const LsModel *m)
{
  GString *out = g_string_new (NULL);
  append_degrees (out, s);
  append_resharding (out, s);
  if (s->layout.rank_order)
    g_string_append_printf (out, ", ranks by %s", s->layout.rank_order);
  if (s->layout.placement)
    g_string_append_printf (out, ", placed %s", s->layout.placement);
  if (s->pp > 1)
    g_string_append_printf (out, ", %s", s->schedule);
  if (s->pp > 1 && s->mp.pipeline_batch > 0 && s->mp.pipeline_batch < s->global_batch / s->dp)
    g_string_append_printf (out, " flushed after each %u sequences", s->mp.pipeline_batch);
  g_string_append_printf (out, ", micro-batch %u of %u", s->micro_batch, s->global_batch);
  if (s->layout.micro_batches_per_replica) {
    g_autofree char *each = knob_text (s, "micro_batches_per_replica");
    g_string_append_printf (out, " (%s of the replicas)", each);
  }
  append_formats (out, s);
  append_recompute (out, s);
  if (s->use.kernels && (!s->use.recipes || ls_recipes_fit (s->use.recipes, m)))
    g_string_append_printf (out, ", kernels %s", s->use.kernels);
  return g_string_free (out, FALSE);
}
