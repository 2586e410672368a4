/* What programs around a Trainer of Hugging Face are told, in options of that Trainer. */
#include <string.h>

#include "data/launch/hf_rules.h"

static bool
has_item (const char *list, const char *item)
{
  g_auto (GStrv) items = g_strsplit (list, " ", -1);
  return g_strv_contains ((const char *const *) items, item);
}

/* "swift sft" among "swift sft swift pt". */
static bool
has_command (const char *list, const char *script)
{
  const char *at = strstr (list, script);
  return at && (at == list || at[-1] == ' ') && (at[strlen (script)] == ' ' || !at[strlen (script)]);
}

/* As it is written; NULL: none of the list is on. */
static const char *
first_of (const LaunchWords *words, const char *list)
{
  g_auto (GStrv) names = g_strsplit (list, " ", -1);
  for (char **name = names; *name; name++) {
    const LaunchOption *o = launch_words_find (words, *name);
    if (o)
      return o->written;
  }
  return NULL;
}

static bool
has_any (const LaunchWords *words, const char *list)
{
  g_auto (GStrv) names = g_strsplit (list, " ", -1);
  for (char **name = names; *name; name++)
    if (**name && (launch_words_find (words, *name) || g_hash_table_contains (words->off, *name)))
      return true;
  return false;
}

/* Options that only releases of it for transformers 4 have go before what it pins today. */
HfRelease
hf_dialect_release (const HfDialect *d, const LaunchWords *words)
{
  const char *word = d->old ? first_of (words, d->old) : NULL;
  return word ? (HfRelease) { HF_RELEASE_4, word, true } : (HfRelease) { d->release, d->pins, false };
}

/* Options that it alone has go first: two trainers of a program may have one command. */
const HfDialect *
hf_dialect_of (const char *script, const LaunchWords *words)
{
  for (const HfDialect *d = hf_dialects; d->name; d++)
    if (has_any (words, d->marks))
      return d;
  for (const HfDialect *d = hf_dialects; script && d->name; d++) {
    bool is_other = d->lacks && !strchr (script, ' ') && has_any (words, d->lacks);
    if (d->prefix && has_command (d->commands, script) && !is_other)
      return d;
  }
  for (const HfDialect *d = hf_dialects; script && d->name; d++)
    if (d->prefix && g_str_has_prefix (script, d->prefix))
      return d;
  return NULL;
}

bool
hf_dialect_check (const HfDialect *d, const char *script, const LaunchWords *words, const char *path,
                  LsDiagList *diags)
{
  bool is_other
      = script && d->prefix && g_str_has_prefix (script, d->prefix) && !has_command (d->commands, script);
  const LaunchOption *kind = launch_words_find (words, "rlhf_type");
  g_autofree char *name = g_strndup (d->tasks, strcspn (d->tasks, "="));
  const char *text = launch_words_text (words, name);
  g_autofree char *pair = text ? g_strconcat (name, "=", text, NULL) : NULL;
  const char *trains = d->trains ? d->trains : "do_train";
  const char *other = launch_words_find (words, trains) ? NULL : first_of (words, d->others);
  const char *learns = !script && d->learns ? first_of (words, d->learns) : NULL;
  if (other)
    return import_refuse_task (path, diags, "%s without %s", other, trains);
  if (learns)
    return import_refuse_task (path, diags, "%s", learns);
  if (!is_other && !kind && (!pair || has_item (d->tasks, pair)))
    return true;
  return import_refuse_task (path, diags, "%s", is_other ? script : kind ? kind->written : pair);
}

static bool
is_text_of (const LaunchJob *own, const char *option, const char *value)
{
  const char *text = option_text (own, option);
  return value ? text && g_ascii_strcasecmp (text, value) == 0 : option_is_on (own, option);
}

/* What values of its options mean. One that means nothing is told, but of an option that a Trainer has. */
static void
say_words (const HfDialect *d, const LaunchJob *own, LaunchWords *to)
{
  g_autoptr (GHashTable) known = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < d->n_words; i++)
    if (is_text_of (own, d->words[i].option, d->words[i].value)) {
      launch_words_add_value (to, d->words[i].says, d->words[i].as);
      g_hash_table_add (known, (gpointer) d->words[i].option);
    }
  for (guint i = 0; i < d->n_words; i++) {
    const char *name = d->words[i].option, *text = option_text (own, name);
    const OptionRow *row = option_find (own->table, name);
    if (text && d->words[i].value && !row->key && g_hash_table_add (known, (gpointer) name))
      import_unknown (own->import, "%s %s", name, text);
  }
}

static void
say_defaults (const HfDialect *d, const LaunchJob *own, LaunchWords *to)
{
  for (guint i = 0; i < d->n_defaults; i++) {
    const HfDefault *w = &d->defaults[i];
    if (has_any (to, w->says) || has_any (own->words, w->unless)
        || (w->with && !launch_words_find (to, w->with)))
      continue;
    launch_words_add_by (to, false, w->says, w->as);
    if (w->why)
      import_infer (own->import, "%s %s: %s", w->says, w->as, w->why);
    else
      import_infer (own->import, "%s %s: the default of %s", w->says, w->as, d->name);
  }
}

static guint64
gpus_of (const LaunchJob *own)
{
  return import_is_given (own->import, "gpus") ? own->import->strategy.gpus : own->gpus;
}

/* As many micro-batches as make up the least batch on all ranks. */
static void
say_steps (const HfDialect *d, const LaunchJob *own, LaunchWords *to)
{
  const LaunchJob job = { .import = own->import, .words = to };
  guint64 micro = MAX (1, option_number (&job, "per_device_train_batch_size"));
  guint64 gpus = gpus_of (own);
  if (d->least_batch == 0 || gpus == 0 || has_any (to, "gradient_accumulation_steps"))
    return;
  guint64 at_once = import_times (micro, gpus),
          steps = d->least_batch / at_once + (d->least_batch % at_once > 0);
  g_autofree char *text = g_strdup_printf ("%" G_GUINT64_FORMAT, steps);
  launch_words_add_by (to, false, "gradient_accumulation_steps", text);
  import_infer (own->import,
                "gradient_accumulation_steps %s: as many as make up %u sequences, the default of %s", text,
                d->least_batch, d->name);
}

LaunchWords *
hf_dialect_words (const HfDialect *d, const LaunchWords *words, guint64 gpus, LsImport *import)
{
  LaunchWords *to = launch_words_new ();
  const LaunchJob own = { .import = import, .words = words, .table = &d->options, .gpus = gpus };
  option_translate (&own, to);
  say_words (d, &own, to);
  if (d->say)
    d->say (&own, gpus_of (&own), to);
  say_defaults (d, &own, to);
  if (d->freezes && launch_words_find (to, "use_peft") && !option_is_on (&own, d->freezes))
    import_unknown (import, "without %s all but linear layers is trained too; it is taken to be frozen",
                    d->freezes);
  say_steps (d, &own, to);
  return to;
}

const char *
hf_dialect_file (const HfDialect *d, const char *name)
{
  for (guint i = 0; d && i < d->n_files; i++)
    if (strcmp (d->files[i].name, name) == 0)
      return d->files[i].text;
  return NULL;
}
