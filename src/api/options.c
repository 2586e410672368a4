/* api/options.c — the options of a command: its own, by commands.txt, and the knobs of a job by topic. */
#include "api/commands.h"

#include <gio/gio.h>
#include <stddef.h>
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
                      .usually = ls_field_typed (f, ls_field_default (f)),
                      .meaning = ls_field_meaning (f),
                      .is_usual = f->usual,
                      .is_repeated = f->repeated,
                      .takes_json = names_file (ls_field_argument (f)) };
}

static gboolean
is_hidden (const Command *c, const LsOption *knob)
{
  const LsOption *own = (const LsOption *) (gpointer) c->own->data;
  for (guint i = 0; i < c->own->len; i++)
    if (g_strcmp0 (own[i].key, knob->flag) == 0)
      return TRUE;
  return knob->flag && c->without && g_strv_contains ((const char *const *) c->without, knob->flag);
}

static void
append_knobs (GArray *options, const Command *c, const LsField *fields, const char *topic)
{
  for (const LsField *f = fields; f->key; f++) {
    if (g_strcmp0 (f->topic, topic) != 0)
      continue;
    const LsOption knob = option_of (f);
    if (!is_hidden (c, &knob))
      g_array_append_val (options, knob);
  }
}

static GArray *
options_of (const Command *c)
{
  GArray *options = g_array_new (TRUE, TRUE, sizeof (LsOption));
  g_array_append_vals (options, c->own->data, c->own->len);
  for (guint t = 0; c->shown.job != LS_JOB_NONE && t < G_N_ELEMENTS (topics); t++) {
    append_knobs (options, c, ls_job_fields, topics[t].name);
    append_knobs (options, c, ls_strategy_fields, topics[t].name);
  }
  return options;
}

const LsOption *
ls_command_options (const LsCommand *command, guint *ret_n)
{
  Command *c = (gpointer) command;
  if (ls_once_enter (&c->has_options)) {
    c->options = options_of (c);
    ls_once_leave (&c->has_options);
  }
  *ret_n = c->options->len;
  return (const LsOption *) (gpointer) c->options->data;
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

/* --- commands.txt --------------------------------------------------------------------------------- */

GResource *commands_get_resource (void); /* of commands.gresource.xml */

static const struct {
  const char *word;
  gsize at;
} switches[] = {
  { "positional", offsetof (LsOption, is_positional) },
  { "repeated", offsetof (LsOption, is_repeated) },
  { "rare", offsetof (LsOption, is_rare) },
  { "json", offsetof (LsOption, takes_json) },
};
/* By LsWrites. */
static const char *const writes[] = { "", "file", "picture", "named", "drawing" };

/* A word behind an option. */
static void
take_word (Command *c, LsOption *o, const char *word)
{
  if (*word == '-')
    o->letter = word[1];
  for (guint i = 0; i < G_N_ELEMENTS (switches); i++)
    if (strcmp (switches[i].word, word) == 0)
      G_STRUCT_MEMBER (gboolean, o, switches[i].at) = TRUE;
  for (guint i = 0; i < G_N_ELEMENTS (writes); i++)
    if (strcmp (writes[i], word) == 0)
      o->writes = (LsWrites) i;
  if (strcmp (word, "set") == 0)
    g_ptr_array_add (c->set, (gpointer) o->key);
  if (strcmp (word, "job") == 0)
    g_ptr_array_add (c->job_too, (gpointer) o->key);
}

static LsOption
read_option (Command *c, const Command *shared, const char *line)
{
  g_auto (GStrv) words = g_strsplit (line, " ", -1);
  gboolean is_shared = *line == '+';
  char *argument = strchr (words[0], '=');
  if (argument)
    *argument++ = '\0';
  LsOption o = { .usually = "" };
  const char *key = g_intern_string (words[0] + is_shared);
  for (guint i = 0; is_shared && i < shared->own->len; i++)
    if (g_array_index (shared->own, LsOption, i).key == key)
      o = g_array_index (shared->own, LsOption, i);
  o.key = o.flag = key;
  o.argument = argument ? g_intern_string (argument) : o.argument;
  for (char **word = words + 1; *word; word++)
    take_word (c, &o, *word);
  o.takes_json = o.takes_json || names_file (o.argument);
  return o;
}

static void
read_options (Command *c, const Command *shared, const char *text)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (char **line = lines; *line; line++) {
    if (**line != ' ') {
      LsOption option = read_option (c, shared, *line);
      g_array_append_val (c->own, option);
      continue;
    }
    LsOption *o = &g_array_index (c->own, LsOption, c->own->len - 1);
    g_autofree char *meaning
        = o->meaning ? g_strconcat (o->meaning, *line + 1, NULL) : g_strdup (g_strchug (*line));
    o->meaning = g_intern_string (meaning);
  }
  g_ptr_array_add (c->set, NULL);
  g_ptr_array_add (c->job_too, NULL);
}

/* "NAME taken can-stop without=FLAG,...", and what it does. */
static Command *
command_new (const char *head, const char *line)
{
  static const char without[] = "without=";
  g_auto (GStrv) words = g_strsplit (head, " ", -1);
  Command *c = g_new0 (Command, 1);
  c->shown = (LsCommand) { .name = g_intern_string (words[0]), .line = g_intern_string (line) };
  c->own = g_array_new (FALSE, FALSE, sizeof (LsOption));
  c->set = g_ptr_array_new ();
  c->job_too = g_ptr_array_new ();
  for (char **word = words + 1; *word; word++)
    if (g_str_has_prefix (*word, without))
      c->without = g_strsplit (*word + strlen (without), ",", -1);
    else if (strcmp (*word, "can-stop") == 0)
      c->shown.can_stop = TRUE;
    else
      c->shown.job = strcmp (*word, "shown") == 0 ? LS_JOB_SHOWN : LS_JOB_TAKEN;
  return c;
}

/* A part of commands.txt that begins with "@". */
static void
read_part (GPtrArray *commands, const char *head, const char *text)
{
  Command *last = commands->len > 0 ? commands->pdata[commands->len - 1] : NULL;
  if (strcmp (head, "options") == 0)
    read_options (last, commands->pdata[0], text);
  else if (strcmp (head, "rules") == 0)
    last->rules = g_strsplit (text, "\n", -1);
  else if (strcmp (head, "usage") == 0)
    last->shown.usage = g_intern_string (text);
  else if (strcmp (head, "summary") == 0)
    last->shown.summary = g_intern_string (text);
  else if (strcmp (head, "examples") == 0)
    last->shown.examples = g_intern_string (text);
  else
    g_ptr_array_add (commands, command_new (head, text));
}

GPtrArray *
commands_read (void)
{
  g_autoptr (GBytes) bytes = g_resource_lookup_data (commands_get_resource (), "/lockstep/api/commands.txt",
                                                     G_RESOURCE_LOOKUP_FLAGS_NONE, NULL);
  g_assert (bytes);
  gsize size;
  const char *text = g_bytes_get_data (bytes, &size);
  g_autofree char *all = g_strndup (text, size);
  g_auto (GStrv) parts = g_strsplit (all, "\n@", -1);
  GPtrArray *commands = g_ptr_array_new ();
  for (char **part = parts + 1; *part; part++) {
    char *end = *part + strcspn (*part, "\n");
    g_autofree char *head = g_strndup (*part, (gsize) (end - *part));
    read_part (commands, head, g_strstrip (end));
  }
  return commands;
}

/* --- what is refused ------------------------------------------------------------------------------ */

gboolean
ls_request_refuse (const char *why, GError **error)
{
  return ls_fail (error, LS_ERROR_USAGE, "%s", why);
}

gboolean
ls_request_refuse_word (const char *flag, const char *const *words, const char *got, GError **error)
{
  g_autofree char *known = g_strjoinv ("\", \"", (char **) words);
  g_autofree char *typed = got ? g_strdup_printf ("; got \"%s\"", got) : g_strdup ("");
  g_autofree char *meant = got ? ls_did_you_mean (got, words) : g_strdup ("");
  return ls_fail (error, LS_ERROR_USAGE, "%s%sexpected one of \"%s\"%s%s", flag ? flag : "", flag ? ": " : "",
                  known, typed, meant);
}
