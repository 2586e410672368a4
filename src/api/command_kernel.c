/* `lockstep kernel`: kernels timed alone, or those of a job listed. */
#include "api/commands.h"
#include "api/job_answer.h"
#include "ask/kernel_times.h"
#include "show/fits/write_fits.h"

LS_ANSWER_FORM (to_text, ls_kernel_rows_to_text (data))
LS_ANSWER_FORM (to_json, ls_kernel_rows_to_json (data))
LS_ANSWER_FREE (rows_free, ls_kernel_rows_free)

static const LsAnswerForms forms = { .text = to_text, .json = to_json, .free = rows_free };

static gboolean
list_shapes (const LsRequest *r, LsAnswer *a, GError **error)
{
  const Command *c = ls_request_command (r);
  const char *const *keys = (const char *const *) c->set->pdata;
  for (guint i = 0; keys[i]; i++)
    if (ls_request_text (r, keys[i]) && !g_strv_contains ((const char *const *) c->job_too->pdata, keys[i]))
      return ls_fail (error, LS_ERROR_USAGE, "--%s does not go with --list-shapes, which is of a job",
                      keys[i]);
  LsJobSpec spec;
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  char *text = ls_request_job (r, &spec, error) ? ls_job_spec_shapes (&spec, notes, error) : NULL;
  ls_answer_note_all (a, notes);
  ls_job_tell_idle (r, LS_IDLE_OF_REPLAY, a);
  ls_job_spec_clear (&spec);
  if (text)
    ls_answer_take_text (a, text);
  return text != NULL;
}

LS_REQUEST_SET (set_knob, ls_kernel_spec_set)

gboolean
command_kernel (const LsRequest *r, LsAnswer *a, GError **error)
{
  if (ls_request_is_on (r, "list-shapes"))
    return list_shapes (r, a, error);
  LsKernelSpec spec;
  ls_kernel_spec_init (&spec);
  LsKernelRows *rows
      = ls_request_set_own (r, set_knob, &spec, error) ? ls_kernel_rows_new (&spec, error) : NULL;
  ls_kernel_spec_clear (&spec);
  if (rows) {
    ls_answer_note_all (a, rows->notes);
    ls_answer_take (a, rows, &forms);
  }
  return rows != NULL;
}
