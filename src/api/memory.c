/* Memory of a job: its functions of lockstep/lockstep.h. */
#include "api/job.h"
#include "ask/memory.h"
#include "ask/memory_advice.h"
#include "show/plot/plot_memory.h"
#include "show/run/write_memory.h"

gboolean
ls_result_advise (LsResult *result, const LsJob *job, GError **error)
{
  g_return_val_if_fail (result && job, FALSE);
  if (result->job->report.fits)
    return TRUE;
  ls_memory_advice_free (result->advice);
  result->advice = ls_memory_advise (&job->spec, result->job, error);
  return result->advice != NULL;
}

static char *
format (const LsResult *result, char *(*to) (const LsMemoryTable *t))
{
  g_autofree char *subtitle = ls_job_subtitle (result->job);
  g_auto (LsMemoryTable) table = { 0 };
  ls_memory_table_init (&table, result->job, result->title, subtitle, result->advice);
  return to (&table);
}

char *
ls_result_memory_text (const LsResult *result)
{
  g_return_val_if_fail (result, NULL);
  return format (result, ls_memory_to_text);
}

char *
ls_result_memory_json (const LsResult *result)
{
  g_return_val_if_fail (result, NULL);
  return format (result, ls_memory_to_json);
}

char *
ls_result_memory_csv (const LsResult *result)
{
  g_return_val_if_fail (result, NULL);
  return format (result, ls_memory_to_csv);
}

gboolean
ls_result_write_memory_chart (const LsResult *result, gint64 rank, const char *path, GError **error)
{
  g_return_val_if_fail (result && path, FALSE);
  const LsJobResult *job = result->job;
  uint32_t shown = rank < 0 ? job->report.peak_rank : (uint32_t) MIN (rank, G_MAXUINT32);
  g_autoptr (GArray) samples = ls_memory_curve_of (job, &result->memory, shown, error);
  if (!samples)
    return FALSE;
  const LsTimeline *t = job->timeline;
  g_autofree char *capacity = ls_format_bytes (job->report.capacity_bytes);
  g_autofree char *note = g_strdup_printf ("rank %u%s, stage %u, %s clock; %s for the job", shown,
                                           shown == job->report.peak_rank ? ", the fullest" : "",
                                           job->plan->programs[job->plan->bindings[shown].role].stage,
                                           ls_memory_clock_name (result->memory.clock), capacity);
  const LsMemoryPlot plot = {
    .title = result->title,
    .note = note,
    .samples = samples,
    .window = t->window_end - t->window_start,
    .capacity_bytes = job->report.capacity_bytes,
  };
  return ls_plot_memory (&plot, path, error);
}
