/* What rules of maps name that is in C. */
#include <string.h>

#include "data/launch/deepspeed_rules.h"
#include "data/launch/megatron/megatron_rules.h"
#include "data/launch/program/program_map.h"

/* --- calculations -------------------------------------------------------------------------------------- */

/* Of the program's own options. */
static const struct {
  const char *name;
  void (*of) (LaunchJob *job);
} calls[] = {
  { "deepspeed_pipeline_shards", deepspeed_pipeline_shards },
  { "megatron_formats", megatron_formats },
};

bool
program_call (ProgramRun *run, const char *name)
{
  guint i = 0;
  while (i < G_N_ELEMENTS (calls) && strcmp (calls[i].name, name) != 0)
    i++;
  if (run && i < G_N_ELEMENTS (calls))
    calls[i].of (run->job);
  return i < G_N_ELEMENTS (calls);
}

#define MOST_LETTERS 65536

/* --- patterns of layers -------------------------------------------------------------------------------- */

/* "flash=A mamba=m": the letter of a kind of layer; '\0': it has none. */
static char
letter_of (char *const *letters, const cJSON *kind)
{
  for (; cJSON_IsString (kind) && *letters; letters++) {
    const char *equals = strchr (*letters, '=');
    gsize n = equals ? (gsize) (equals - *letters) : 0;
    if (equals && strlen (kind->valuestring) == n && strncmp (kind->valuestring, *letters, n) == 0)
      return equals[1];
  }
  return '\0';
}

/* Appends those of a list, so many times; false: a kind has none. */
static bool
add_letters (GString *text, const cJSON *kinds, guint times, char *const *letters)
{
  const cJSON *kind;
  for (guint i = 0; i < times && text->len < MOST_LETTERS; i++)
    cJSON_ArrayForEach (kind, kinds)
    {
      char letter = letter_of (letters, kind);
      if (!letter)
        return false;
      g_string_append_c (text, letter);
    }
  return true;
}

char *
program_letters (const cJSON *chunks, const char *letters)
{
  g_auto (GStrv) all = program_words (letters, " ");
  GString *text = g_string_new (NULL);
  bool is_read = cJSON_IsArray (chunks) && chunks->child;
  for (const cJSON *chunk = is_read ? chunks->child : NULL; chunk && is_read; chunk = chunk->next) {
    g_string_append (text, chunk == chunks->child ? "" : "|");
    is_read = cJSON_IsArray (chunk) && add_letters (text, chunk, 1, all);
  }
  return g_string_free (text, !is_read);
}

char *
program_pattern (const cJSON *parts, const char *letters)
{
  g_auto (GStrv) all = program_words (letters, " ");
  GString *pattern = g_string_new (NULL);
  bool is_read = cJSON_IsArray (parts);
  for (const cJSON *part = is_read ? parts->child : NULL; part && is_read; part = part->next) {
    const cJSON *times = cJSON_GetArrayItem (part, 1);
    guint n = cJSON_IsNumber (times) ? (guint) CLAMP (times->valuedouble, 0, 4096) : 1;
    is_read = add_letters (pattern, cJSON_GetArrayItem (part, 0), n, all);
  }
  return g_string_free (pattern, !is_read || pattern->len == 0);
}
