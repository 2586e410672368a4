/* Programs around a Trainer of Hugging Face: whose command or configuration it is. Each is a map in
 * strategies/programs/. */
#include <string.h>

#include "data/launch/hf_rules.h"

const OptionTable *
hf_options (void)
{
  static const OptionTable none;
  const ProgramMap *trainer = program_map_get ("trainer");
  return trainer ? &trainer->table : &none;
}

typedef struct {
  GPtrArray *maps; /* const ProgramMap * */
  guint n_own;     /* the first of them: a user's own */
} Dialects;

static void
add_map (const char *name, bool is_own, gpointer dialects)
{
  Dialects *d = dialects;
  const ProgramMap *map = program_map_get (name);
  if (!map || !map->is_around || g_ptr_array_find (d->maps, map, NULL))
    return;
  d->n_own += is_own;
  g_ptr_array_add (d->maps, (gpointer) map);
}

static const Dialects *
all_dialects (void)
{
  static Dialects all;
  static gsize is_made;
  if (g_once_init_enter (&is_made)) {
    all.maps = g_ptr_array_new ();
    import_maps_each (add_map, &all);
    g_once_init_leave (&is_made, 1);
  }
  return &all;
}

bool
hf_dialect_is_own (const ProgramMap *d)
{
  guint i;
  return g_ptr_array_find (all_dialects ()->maps, d, &i) && i < all_dialects ()->n_own;
}

/* --- whose it is --------------------------------------------------------------------------------------- */

/* "swift sft" among "swift sft swift pt"; list NULL: it is not. */
static bool
is_listed (const char *list, const char *item)
{
  g_autofree char *all = g_strdup_printf (" %s ", list ? list : ""), *one = g_strdup_printf (" %s ", item);
  return strstr (all, one) != NULL;
}

const char *
hf_dialect_old (const ProgramMap *d, const LaunchWords *words)
{
  return launch_words_first (words, d->around.old);
}

/* Its commands begin as this one does. */
static bool
begins (const ProgramAround *a, const char *script)
{
  return script && a->commands_of && g_str_has_prefix (script, a->commands_of);
}

/* It has no option that this program lacks. */
static bool
is_command (const ProgramAround *a, const char *script, const LaunchWords *words)
{
  return a->commands_of && is_listed (a->commands, script)
      && (strchr (script, ' ') || !launch_words_has_any (words, a->lacks));
}

/* Options that it alone has go first: two trainers of a program may have one command. */
const ProgramMap *
hf_dialect_of (const char *script, const LaunchWords *words)
{
  const GPtrArray *all = all_dialects ()->maps;
  for (guint i = 0; i < all->len; i++)
    if (launch_words_has_any (words, ((const ProgramMap *) all->pdata[i])->around.marks))
      return all->pdata[i];
  for (guint i = 0; i < all->len && script; i++)
    if (is_command (&((const ProgramMap *) all->pdata[i])->around, script, words))
      return all->pdata[i];
  for (guint i = 0; i < all->len; i++)
    if (begins (&((const ProgramMap *) all->pdata[i])->around, script))
      return all->pdata[i];
  return NULL;
}

bool
hf_dialect_check (const ProgramMap *d, const char *script, const LaunchWords *words, const char *path,
                  LsDiagList *diags)
{
  const ProgramAround *a = &d->around;
  bool is_other = begins (a, script) && !is_listed (a->commands, script);
  const LaunchOption *kind = launch_words_find (words, "rlhf_type");
  g_autofree char *name = a->tasks ? g_strndup (a->tasks, strcspn (a->tasks, "=")) : g_strdup ("");
  const char *text = launch_words_text (words, name);
  g_autofree char *pair = text ? g_strconcat (name, "=", text, NULL) : NULL;
  const char *trains = a->trains ? a->trains : "do_train";
  const char *other = launch_words_find (words, trains) ? NULL : launch_words_first (words, a->others);
  const char *learns = script ? NULL : launch_words_first (words, a->learns);
  if (other)
    return import_refuse_task (path, diags, "%s without %s", other, trains);
  if (learns)
    return import_refuse_task (path, diags, "%s", learns);
  if (!is_other && !kind && (!pair || is_listed (a->tasks, pair)))
    return true;
  return import_refuse_task (path, diags, "%s", is_other ? script : kind ? kind->written : pair);
}

/* --- how its commands are known ------------------------------------------------------------------------- */

bool
hf_knows (const char *name)
{
  const OptionRow *row = option_find (hf_options (), name);
  const GPtrArray *all = all_dialects ()->maps;
  for (guint i = 0; i < all->len && !(row && row->kind != OPTION_IGNORED); i++) {
    const OptionRow *own = option_find (&((const ProgramMap *) all->pdata[i])->table, name);
    row = own && *own->option != '*' ? own : row;
  }
  return row && row->kind != OPTION_IGNORED;
}

/* A program of nobody here may be told no more than a configuration of DeepSpeed, which its script names or
 * writes. */
bool
hf_needs_one (const ImportFiles *files)
{
  const ImportFile *file = &files->files[0];
  return strstr (file->text, "--deepspeed")
      && (strstr (file->text, ".json") || strstr (file->text, "zero_optimization")
          || strstr (file->text, "--deepspeed_config"));
}
