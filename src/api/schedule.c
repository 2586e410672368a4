/* Pipeline schedules: LsSchedule of lockstep/lockstep.h. */
#include <lockstep/lockstep.h>

#include "ask/schedule.h"
#include "data/text/write_file.h"
#include "show/plot/plot_bubbles.h"
#include "show/plot/plot_schedule.h"
#include "show/write_schedule.h"
#include "show/write_schedule_all.h"

struct LsSchedule {
  LsScheduleSpec spec;
  LsScheduleRun *run; /* one of the two is NULL */
  LsScheduleTable *table;
};

/* All malformed values are reported. */
static gboolean
read_options (const LsScheduleOptions *o, LsScheduleSpec *spec, GError **error)
{
  const struct {
    const char *key, *value;
  } knobs[] = {
    { "schedule", o->schedule },
    { "pp", o->pp },
    { "vpp", o->vpp },
    { "micro-batches", o->micro_batches },
    { "group", o->group },
    { "rounds", o->rounds },
    { "waves", o->waves },
    { "pipes", o->pipes },
    { "f-time", o->f_time },
    { "b-time", o->b_time },
    { "w-time", o->w_time },
    { "fb-time", o->fb_time },
    { "comm-time", o->comm_time },
    { "memory-limit", o->memory_limit },
  };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  for (guint i = 0; i < G_N_ELEMENTS (knobs); i++)
    if (knobs[i].value)
      ls_schedule_spec_set (spec, knobs[i].key, knobs[i].value, diags);
  return ls_diag_list_to_error (diags, error);
}

LsSchedule *
ls_schedule_new (const LsScheduleOptions *options, GError **error)
{
  g_return_val_if_fail (options, NULL);
  g_autoptr (LsSchedule) s = g_new0 (LsSchedule, 1);
  ls_schedule_spec_init (&s->spec);
  if (!read_options (options, &s->spec, error))
    return NULL;
  if (options->all)
    s->table = ls_schedule_all (&s->spec, error);
  else
    s->run = ls_schedule_run_new (&s->spec, error);
  return s->table || s->run ? g_steal_pointer (&s) : NULL;
}

void
ls_schedule_free (LsSchedule *schedule)
{
  if (!schedule)
    return;
  ls_schedule_spec_clear (&schedule->spec);
  ls_schedule_run_free (schedule->run);
  ls_schedule_table_free (schedule->table);
  g_free (schedule);
}

char *
ls_schedule_text (const LsSchedule *schedule, LsTextStyle style, guint width)
{
  g_return_val_if_fail (schedule, NULL);
  const LsScheduleText text = { style & LS_TEXT_COLOR, style & LS_TEXT_ASCII, width };
  return schedule->run ? ls_schedule_to_text (&schedule->run->view, &text)
                       : ls_schedule_all_to_text (schedule->table);
}

char *
ls_schedule_json (const LsSchedule *schedule)
{
  g_return_val_if_fail (schedule, NULL);
  return schedule->run ? ls_schedule_to_json (&schedule->run->view)
                       : ls_schedule_all_to_json (schedule->table);
}

char *
ls_schedule_csv (const LsSchedule *schedule)
{
  g_return_val_if_fail (schedule, NULL);
  return schedule->run ? ls_schedule_to_csv (&schedule->run->view) : ls_schedule_all_to_csv (schedule->table);
}

gboolean
ls_schedule_plot (const LsSchedule *schedule, const char *path, GError **error)
{
  g_return_val_if_fail (schedule && path, FALSE);
  if (schedule->run)
    return ls_plot_schedule (&schedule->run->view, path, error);
  g_autoptr (LsBubbles) bubbles = ls_schedule_bubbles (&schedule->spec, error);
  return bubbles && ls_plot_bubbles (bubbles, path, error);
}

gboolean
ls_schedule_write (const char *text, const char *path, GError **error)
{
  g_return_val_if_fail (text && path, FALSE);
  return ls_write_text (path, text, error);
}
