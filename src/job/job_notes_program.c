/* Notes on the program that a job names: that it does not run there, or cannot run such a job. */
#include <lockstep/units.h>
#include <string.h>

#include "data/jobs/job_files.h"
#include "job/job_interval.h"
#include "job/job_steps.h"
#include "job/softwares.h"
#include "strategy/dp_traits.h"

/* "GPUs" of "gpu". */
static char *
runs_on_words (const LsSoftwareSpec *software)
{
  if (g_str_equal (software->runs_on, LS_ARCHITECTURES_OF_GPUS))
    return g_strdup ("GPUs");
  return g_str_equal (software->runs_on, LS_ARCHITECTURE_TPU)
      ? g_strdup ("TPUs")
      : g_strdup_printf ("accelerators of architecture %s", software->runs_on);
}

/* The refusals of the writer of its jobs, a line "error: KNOB: WHY" each behind the first, as one. */
static char *
in_one_line (const char *refusals)
{
  static const char word[] = "error: ";
  g_auto (GStrv) lines = g_strsplit (refusals, "\n", -1);
  g_autoptr (GString) all = g_string_new (NULL);
  for (guint i = 1; lines[i]; i++) {
    const char *line = g_str_has_prefix (lines[i], word) ? lines[i] + strlen (word) : lines[i];
    g_string_append_printf (all, "%s%s", all->len > 0 ? "; " : "", line);
  }
  return g_string_free (g_steal_pointer (&all), FALSE);
}

/* A job that names a program, without asking that it be able to run it (--for). What a file of the program
 * says, it ran. */
static void
note_what_it_cannot (const LsJobSpec *spec, LsJobResult *r)
{
  g_autoptr (GError) refused = NULL;
  if (!spec->software || !spec->software->emit || spec->program || spec->from
      || ls_software_check (spec->software, &r->model, &r->strategy, &refused))
    return;
  g_autofree char *what = in_one_line (refused->message);
  g_ptr_array_add (r->notes,
                   g_strdup_printf ("software %s: %s cannot express this job, which is simulated as if it "
                                    "could (--for %s refuses it): %s",
                                    r->strategy.software, spec->software->program, spec->software->emit,
                                    what));
}

/* Whether the job is run in that way (LS_SOFTWARE_WAYS). */
static bool
is_run_by (const LsStrategy *s, const char *way)
{
  const struct {
    const char *way;
    bool is_used;
  } ways[] = { { "tp", s->tp > 1 }, { "pp", s->pp > 1 },          { "cp", s->cp > 1 },
               { "ep", s->ep > 1 }, { "sp", s->sp && s->tp > 1 }, { "fp8", s->dtype == LS_DTYPE_FP8 } };
  for (guint i = 0; i < G_N_ELEMENTS (ways); i++)
    if (strcmp (ways[i].way, way) == 0)
      return ways[i].is_used;
  g_assert_not_reached ();
}

/* Of programs for which no jobs are written: their files say what they lack. */
static void
note_what_it_lacks (const LsJobSpec *spec, LsJobResult *r)
{
  const GArray *lacks = spec->software && !spec->from ? spec->software->lacks : NULL;
  g_autoptr (GString) used = g_string_new (NULL);
  for (guint i = 0; lacks && i < lacks->len; i++) {
    g_auto (GStrv) ways = g_strsplit (g_array_index (lacks, LsLacking, i).ways, ",", -1);
    for (char **way = ways; *way; way++)
      if (is_run_by (&r->strategy, *way))
        g_string_append_printf (used, "%s%s", used->len > 0 ? ", " : "", *way);
  }
  if (used->len > 0)
    g_ptr_array_add (
        r->notes,
        g_strdup_printf ("software %s: %s of that release has no %s; this job is simulated as if it had",
                         r->strategy.software, spec->software->program, used->str));
}

/* --- what is not simulated of it ------------------------------------------------------------------ */

static bool
has_condition (const LsModel *m, const LsStrategy *s, const char *condition)
{
  g_auto (GStrv) pair = g_strsplit (condition, "=", 2);
  const LsField *of_strategy = ls_field_find (ls_strategy_fields, pair[0]);
  g_autofree char *value = of_strategy ? ls_field_text (of_strategy, s, NULL)
                                       : ls_field_text (ls_field_find (ls_model_fields, pair[0]), m, NULL);
  return ls_software_condition_holds (pair[1], value ? value : "");
}

const LsMissing *
ls_job_missing (const LsSoftwareSpec *software, const LsModel *m, const LsStrategy *s, guint *at)
{
  const GArray *misses = software && m->name ? software->misses : NULL;
  while (misses && *at < misses->len) {
    const LsMissing *missing = &g_array_index (misses, LsMissing, (*at)++);
    char **condition = missing->when;
    while (*condition && has_condition (m, s, *condition))
      condition++;
    if (!*condition)
      return missing;
  }
  return NULL;
}

void
ls_note_missing (const LsSoftwareSpec *software, const LsModel *m, const LsStrategy *s, uint64_t memory_bytes,
                 GPtrArray *notes)
{
  guint at = 0;
  for (const LsMissing *x; (x = ls_job_missing (software, m, s, &at));) {
    g_autofree char *bytes = ls_format_bytes ((guint64) (x->memory * (double) memory_bytes));
    GString *line = g_string_new ("warning: ");
    g_string_append_printf (line, "%s is not simulated as it is: %s", software->program, x->what);
    if (x->times > 1)
      g_string_append_printf (line, "; such steps were measured up to %.3g times as long as simulated",
                              x->times);
    if (x->memory != 1)
      g_string_append_printf (line, "; of such memory %.3g times as much was measured: that would be %s here",
                              x->memory, bytes);
    g_string_append_printf (line, " (%s)", x->source);
    g_ptr_array_add (notes, g_string_free (line, FALSE));
  }
}

void
ls_job_note_program (const LsJobSpec *spec, LsJobResult *r)
{
  if (!r->model.name || r->trace)
    return;
  const LsSoftwareSpec *program = spec->software;
  note_what_it_cannot (spec, r);
  note_what_it_lacks (spec, r);
  ls_note_missing (program, &r->model, &r->strategy, r->report.needed_bytes, r->notes);
  if (!program || ls_software_names_architecture (program->runs_on, ls_hardware_architecture (r->hardware)))
    return;
  g_autofree char *on = runs_on_words (program);
  g_ptr_array_add (
      r->notes,
      g_strdup_printf ("software %s: %s runs on %s, not on %s; it is simulated there as if it did",
                       r->strategy.software, program->program, on, r->cluster->spec.gpu.name));
}
