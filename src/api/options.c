/* api/options.c — the options of a command: its own, and the knobs of a job by topic. */
#include "api/commands.h"

#include <string.h>

#include "api/request.h"
#include "base/handover.h"
#include "base/suggest.h"
#include "data/jobs/job_files.h"
#include "data/text/field.h"
#include "job/job.h"

static const LsTopic topics[] = {
  { "job", "What is trained, and where" },
  { "layout", "Degrees of parallelism" },
  { "batch", "Batch" },
  { "memory", "Memory" },
  { "precision", "Number formats" },
  { "optimizer", "Optimizer" },
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

const LsTopic *
ls_topics (guint *ret_n)
{
  *ret_n = G_N_ELEMENTS (topics);
  return topics;
}

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

/* A name or a file, of which the JSON may be given instead: what looks names up reads it too. */
static gboolean
names_file (const char *argument)
{
  g_auto (GStrv) words = g_strsplit (argument ? argument : "", "|", -1);
  return g_strv_length (words) > 1 && g_strv_contains ((const char *const *) words, "FILE");
}

static LsOption
option_of (const LsField *f)
{
  return (LsOption) { .key = f->key,
                      .flag = flag_of (f),
                      .topic = f->topic,
                      .argument = ls_field_argument (f),
                      .choices = choices_of (f),
                      .usually = ls_field_typed (f, f->default_text),
                      .meaning = f->meaning,
                      .is_usual = f->usual,
                      .is_repeated = f->repeated,
                      .takes_json = names_file (ls_field_argument (f)) };
}

static gboolean
is_hidden (const Command *c, const LsOption *knob)
{
  for (const LsOption *o = c->own; o->key; o++)
    if (g_strcmp0 (o->key, knob->flag) == 0)
      return TRUE;
  return knob->flag && c->without && g_strv_contains (c->without, knob->flag);
}

static void
append_knobs (GArray *options, const Command *c, const LsField *fields, const char *topic)
{
  for (const LsField *f = fields; f->key; f++) {
    const LsOption knob = option_of (f);
    if (g_strcmp0 (f->topic, topic) == 0 && !is_hidden (c, &knob))
      g_array_append_val (options, knob);
  }
}

static GArray *
options_of (const Command *c)
{
  GArray *options = g_array_new (TRUE, TRUE, sizeof (LsOption));
  for (const LsOption *o = c->own; o->key; o++) {
    LsOption own = *o;
    own.flag = own.key;
    own.usually = "";
    own.takes_json = o->takes_json || names_file (o->argument);
    g_array_append_val (options, own);
  }
  for (guint t = 0; c->shown.job != LS_JOB_NONE && t < G_N_ELEMENTS (topics); t++) {
    append_knobs (options, c, ls_job_fields, topics[t].name);
    append_knobs (options, c, ls_strategy_fields, topics[t].name);
  }
  return options;
}

const LsOption *
ls_command_options (const LsCommand *command, guint *ret_n)
{
  static GMutex lock;
  static GHashTable *all; /* LsCommand to GArray */
  g_mutex_lock (&lock);
  LS_TAKE_OVER (&lock);
  if (!all)
    all = g_hash_table_new (NULL, NULL);
  GArray *options = g_hash_table_lookup (all, command);
  if (!options)
    g_hash_table_insert (all, (gpointer) command, options = options_of ((const Command *) command));
  LS_HAND_OVER (&lock);
  g_mutex_unlock (&lock);
  *ret_n = options->len;
  return (const LsOption *) (gpointer) options->data;
}

static gboolean
are_alike (const char *a, const char *b)
{
  for (; *a && *b; a++, b++)
    if (*a != *b && !(strchr ("-_", *a) && strchr ("-_", *b)))
      return FALSE;
  return *a == *b;
}

const LsOption *
command_option (const LsCommand *command, const char *key)
{
  guint n;
  const LsOption *options = ls_command_options (command, &n);
  for (guint i = 0; i < n; i++)
    if (are_alike (options[i].key, key))
      return &options[i];
  return NULL;
}

gboolean
ls_request_refuse (const char *why, GError **error)
{
  g_set_error_literal (error, LS_ERROR, LS_ERROR_USAGE, why);
  return FALSE;
}

gboolean
ls_request_refuse_word (const char *flag, const char *const *words, const char *got, GError **error)
{
  g_autofree char *known = g_strjoinv ("\", \"", (char **) words);
  g_autofree char *typed = got ? g_strdup_printf ("; got \"%s\"", got) : g_strdup ("");
  g_autofree char *meant = got ? ls_did_you_mean (got, words) : g_strdup ("");
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "%s%sexpected one of \"%s\"%s%s", flag ? flag : "",
               flag ? ": " : "", known, typed, meant);
  return FALSE;
}
