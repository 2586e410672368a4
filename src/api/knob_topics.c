/* The table of knobs as the users of the library see it. */
#include <lockstep/lockstep.h>

#include "base/handover.h"
#include "data/jobs/read_strategy.h"
#include "data/text/field.h"
#include "job/job.h"

static const LsKnobTopic topics[] = {
  { "job", "What is trained, and where" },
  { "layout", "Degrees of parallelism" },
  { "batch", "Batch" },
  { "memory", "Memory" },
  { "precision", "Number formats" },
  { "software", "Software" },
  { "pipeline", "Pipeline" },
  { "tensor", "Tensor parallelism" },
  { "context", "Context parallelism" },
  { "experts", "Experts" },
  { "data", "Reduction of gradients" },
  { "fsdp", "FSDP" },
  { "deepspeed", "DeepSpeed" },
  { "host", "What issuing costs the host" },
  { "measured", "What was measured" },
  { "simulation", "The simulation itself" },
};

const LsKnobTopic *
ls_knob_topics (guint *ret_n)
{
  *ret_n = G_N_ELEMENTS (topics);
  return topics;
}

/* --- the knobs --- */

static const char *
flag_of (const LsField *f)
{
  g_autofree char *flag = ls_field_flag (f);
  return f->set_only ? NULL : g_intern_string (flag + 2);
}

/* A name for each value: of several the first. */
static const char *
choices_of (const LsField *f)
{
  if (f->kind != LS_FIELD_ENUM || f->argument)
    return NULL;
  g_autoptr (GString) choices = g_string_new (NULL);
  for (const LsEnumName *e = f->names; e->name; e++) {
    gboolean is_new = TRUE;
    for (const LsEnumName *other = f->names; other < e; other++)
      is_new = is_new && other->value != e->value;
    if (is_new)
      g_string_append_printf (choices, "%s%s", choices->len > 0 ? ", " : "", e->name);
  }
  return g_intern_string (choices->str);
}

static void
append_knobs (GArray *knobs, const LsField *fields, const char *topic)
{
  for (const LsField *f = fields; f->key; f++) {
    LsKnob knob = { f->key,         flag_of (f),
                    f->topic,       ls_field_argument (f),
                    choices_of (f), ls_field_typed (f, f->default_text),
                    f->meaning,     f->usual };
    if (g_strcmp0 (f->topic, topic) == 0)
      g_array_append_val (knobs, knob);
  }
}

const LsKnob *
ls_knobs (guint *ret_n)
{
  static GArray *knobs;
  static gsize is_made;
  if (ls_once_enter (&is_made)) {
    knobs = g_array_new (TRUE, FALSE, sizeof (LsKnob));
    for (guint t = 0; t < G_N_ELEMENTS (topics); t++) {
      append_knobs (knobs, ls_job_fields, topics[t].name);
      append_knobs (knobs, ls_strategy_fields, topics[t].name);
    }
    ls_once_leave (&is_made);
  }
  *ret_n = knobs->len;
  return (const LsKnob *) (gpointer) knobs->data;
}
