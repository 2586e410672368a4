/* Patterns of layers as files of programs write them. */
#include <string.h>

#include "data/launch/program/program_map.h"

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

char *
program_letters (const cJSON *chunks, const char *letters)
{
  g_auto (GStrv) all = g_strsplit (letters, " ", -1);
  GString *text = g_string_new (NULL);
  bool is_read = cJSON_IsArray (chunks) && chunks->child;
  for (const cJSON *chunk = is_read ? chunks->child : NULL, *kind; chunk; chunk = chunk->next) {
    is_read = is_read && cJSON_IsArray (chunk);
    g_string_append (text, chunk == chunks->child ? "" : "|");
    cJSON_ArrayForEach (kind, chunk)
    {
      char letter = letter_of (all, kind);
      is_read = is_read && letter;
      g_string_append_c (text, letter ? letter : ' ');
    }
  }
  return g_string_free (text, !is_read);
}

char *
program_pattern (const cJSON *parts, const char *letters)
{
  g_auto (GStrv) all = g_strsplit (letters, " ", -1);
  GString *pattern = g_string_new (NULL);
  bool is_read = cJSON_IsArray (parts) && parts->child;
  for (const cJSON *part = is_read ? parts->child : NULL; part && is_read; part = part->next) {
    const cJSON *kinds = cJSON_GetArrayItem (part, 0), *times = cJSON_GetArrayItem (part, 1), *kind;
    double n = cJSON_IsNumber (times) ? CLAMP (times->valuedouble, 0, 4096) : 1;
    for (guint i = 0; i < (guint) n && is_read && pattern->len < 65536; i++)
      cJSON_ArrayForEach (kind, kinds)
      {
        char letter = letter_of (all, kind);
        is_read = is_read && letter;
        g_string_append_c (pattern, letter ? letter : ' ');
      }
  }
  return g_string_free (pattern, !is_read || pattern->len == 0);
}
