/* data/launch/emit_registry.c — the programs for which launch files are written. */
#include "data/jobs/emit.h"

#include <lockstep/error.h>

#include "base/suggest.h"
#include "data/launch/emit_target.h"
#include "data/jobs/job_files.h"
#include "data/launch/program/program_map.h"

static const char *const names[] = { "megatron", "torchtitan", "deepspeed", NULL };

/* Of those names: what a fragment says is in the map, which reads it too. */
typedef struct {
  const char *program;
  OptionSyntax syntax;
  const char *array; /* of a shell, that has the arguments; NULL: of another syntax */
} EmitTarget;

static const EmitTarget targets[] = { { "Megatron-LM", OPTION_ARGUMENTS, "MEGATRON_ARGS" },
                                      { "torchtitan", OPTION_TOML, NULL },
                                      { "DeepSpeed", OPTION_JSON, NULL } };

const char *const *
ls_emit_targets (void)
{
  return names;
}

static const EmitTarget *
find (const char *name)
{
  for (guint i = 0; names[i]; i++)
    if (g_str_equal (names[i], name))
      return &targets[i];
  return NULL;
}

gboolean
ls_emit_check_target (const char *target, GError **error)
{
  if (find (target))
    return TRUE;
  g_autofree char *known = g_strjoinv (", ", (char **) ls_emit_targets ());
  g_autofree char *hint = ls_did_you_mean (target, ls_emit_targets ());
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--emit: expected one of %s; got \"%s\"%s", known, target,
               hint);
  return FALSE;
}

void
emit_refuse (Emit *e, const char *knob, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *why = g_strdup_vprintf (format, args);
  va_end (args);
  ls_diag_add (e->refusals, LS_ERROR_UNSUPPORTED, NULL, 0, 0, NULL, NULL, NULL, "%s: %s", knob, why);
}

void
emit_note (Emit *e, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_string_append_vprintf (e->notes, format, args);
  va_end (args);
  g_string_append_c (e->notes, '\n');
}

void
emit_note_attention (Emit *e, const char *library)
{
  const LsStrategy *s = e->s;
  if (s->use.attention_kernel == LS_ATTENTION_KERNEL_AUTO
      || s->use.attention_kernel == s->program.attention_else)
    return;
  const LsField *knob = ls_field_find (ls_strategy_fields, "attention_kernel");
  g_autofree char *kernel = ls_field_text (knob, s, NULL), *option = ls_field_option (knob, kernel);
  emit_note (e, "which kernel attention runs (%s) is up to %s", option, library);
}

static char *
write (const EmitTarget *target, const LsEmitJob *job)
{
  GString *out = g_string_new (NULL);
  if (target->syntax != OPTION_JSON)
    g_string_append_printf (out, "# %s\n", job->title);
  if (target->array)
    g_string_append_printf (out, "%s=(\n", target->array);
  option_write (program_table_find (names[target - targets]), target->syntax, job->model, job->strategy, out);
  if (target->array)
    g_string_append (out, ")\n");
  return g_string_free (out, FALSE);
}

/* Whether the program has all of the job; false: *error is set. */
static bool
is_had (const EmitTarget *target, const LsEmitJob *job, GString *notes, GError **error)
{
  g_autoptr (LsDiagList) refusals = error ? ls_diag_list_new () : ls_diag_list_new_counting ();
  Emit e = { job->model, job->strategy, job->title, refusals, notes };
  if (job->order)
    emit_refuse (&e, "--order", "the order of a file; a schedule has a name there");
  program_check_written (names[target - targets], &e);
  if (!error)
    return ls_diag_list_n (refusals) == 0;
  g_autoptr (GError) refused = NULL;
  if (ls_diag_list_to_error (refusals, &refused))
    return true;
  g_prefix_error (&refused, "%s cannot express this job:\n", target->program);
  g_propagate_error (error, g_steal_pointer (&refused));
  return false;
}

gboolean
ls_emit_check (const LsEmitJob *job, const char *target, GError **error)
{
  g_autoptr (GString) notes = g_string_new (NULL);
  return ls_emit_check_target (target, error) && is_had (find (target), job, notes, error);
}

char *
ls_emit (const LsEmitJob *job, const char *target, char **ret_notes, GError **error)
{
  g_autoptr (GString) notes = g_string_new (NULL);
  if (!ls_emit_check_target (target, error) || !is_had (find (target), job, notes, error))
    return NULL;
  *ret_notes = g_strdup (notes->str);
  return write (find (target), job);
}
