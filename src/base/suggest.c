#include "base/suggest.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/diag.h"

#define MAX_TYPED       128 /* longer is no typing mistake; also bounds the work */
#define LEAST_BEGINNING 4   /* letters of the beginning of a word that tell it */

static bool
same (char a, char b)
{
  return g_ascii_tolower (a) == g_ascii_tolower (b);
}

/* Rows of the usual table: d[j] = distance of a[0..i) and b[0..j), with the two
 * rows before it, for the swaps. */
size_t
ls_edit_distance (const char *a, const char *b)
{
  size_t n_a = strlen (a), n_b = strlen (b);
  g_autofree size_t *rows = g_new0 (size_t, 3 * (n_b + 1));
  size_t *before = rows, *last = rows + n_b + 1, *row = rows + 2 * (n_b + 1);
  for (size_t j = 0; j <= n_b; j++)
    row[j] = j;

  for (size_t i = 1; i <= n_a; i++) {
    size_t *oldest = before;
    before = last;
    last = row;
    row = oldest;
    row[0] = i;
    for (size_t j = 1; j <= n_b; j++) {
      size_t change = last[j - 1] + !same (a[i - 1], b[j - 1]);
      row[j] = MIN (change, MIN (last[j], row[j - 1]) + 1);
      if (i > 1 && j > 1 && same (a[i - 1], b[j - 2]) && same (a[i - 2], b[j - 1]))
        row[j] = MIN (row[j], before[j - 2] + 1);
    }
  }
  return row[n_b];
}

/* Whether text is there as whole words between dashes: "h100" in "dgx-h100". */
static bool
has_words (const char *name, const char *text)
{
  size_t n = strlen (text);
  for (const char *at = name; n > 0 && (at = strstr (at, text)); at++)
    if ((at == name || at[-1] == '-') && (at[n] == '\0' || at[n] == '-'))
      return true;
  return false;
}

static const char *
behind_dashes (const char *text)
{
  return text + strspn (text, "-_");
}

/* What a word has behind what was typed, dashes in either left out; NULL: it has that not in front. */
static const char *
rest_of (const char *word, const char *typed)
{
  while (*(typed = behind_dashes (typed))) {
    word = behind_dashes (word);
    if (!same (*word++, *typed++))
      return NULL;
  }
  return word;
}

static bool
goes_on_number (const char *rest)
{
  return rest && (*rest == '.' || g_ascii_isdigit (*rest));
}

/* How far a word is from what was typed; SIZE_MAX: that is not it. */
typedef size_t Distance (const char *typed, const char *word);

/* The first of the nearest. */
static const char *
nearest (Distance *distance, const char *typed, const char *const *words)
{
  const char *best = NULL;
  size_t least = SIZE_MAX;
  for (; *words; words++) {
    const size_t far = distance (typed, *words);
    best = far < least ? *words : best;
    least = MIN (far, least);
  }
  return best;
}

/* The shortest word that begins with what was typed, whose last number is whole there: "gpt3-175b" for
 * "gpt-3", not "gpt-3.6b". */
static size_t
of_number (const char *typed, const char *word)
{
  const size_t n = strlen (typed);
  const char *rest = n >= 2 && g_ascii_isdigit (typed[n - 1]) ? rest_of (word, typed) : NULL;
  return rest && !goes_on_number (rest) ? strlen (word) : SIZE_MAX;
}

/* The shortest word that continues what was typed, or has it between dashes. */
static size_t
of_longer (const char *typed, const char *word)
{
  const size_t n = strlen (typed);
  bool is_it = n >= 2 && (g_ascii_strncasecmp (word, typed, n) == 0 || has_words (word, typed));
  return is_it ? strlen (word) : SIZE_MAX;
}

static size_t
of_similar (const char *typed, const char *word)
{
  const size_t distance = ls_edit_distance (typed, word), n = strlen (word);
  return distance <= MAX (n / 3, 1) && distance < n ? distance : SIZE_MAX;
}

/* The longest word that what was typed begins with, up to a dash. */
static size_t
of_shorter (const char *typed, const char *word)
{
  const size_t n = strlen (word);
  bool is_it = n > 2 && g_ascii_strncasecmp (word, typed, n) == 0 && (typed[n] == '-' || typed[n] == '_');
  return is_it ? SIZE_MAX - n : SIZE_MAX;
}

/* The word whose beginning, up to a dash or a number, is nearest: "mixtral-8x7b" for "mixtrl", "fsdp1" for
 * "fdsp"; of equals the shortest. At most a quarter of that beginning would change. */
static size_t
of_beginning (const char *typed, const char *word)
{
  const size_t n_word = strlen (word);
  size_t least = SIZE_MAX;
  for (size_t n = LEAST_BEGINNING; n < n_word; n++) {
    if (!strchr ("-_", word[n]) && !(g_ascii_isdigit (word[n]) && g_ascii_isalpha (word[n - 1])))
      continue;
    g_autofree char *beginning = g_strndup (word, n);
    const size_t distance = ls_edit_distance (typed, beginning);
    if (distance <= n / 4)
      least = MIN (least, (distance << 32) + n_word);
  }
  return least;
}

const char *
ls_suggest (const char *typed, const char *const *words)
{
  if (strlen (typed) > MAX_TYPED)
    return NULL;
  static Distance *const others[] = { of_similar, of_shorter, of_beginning };
  const char *word = nearest (of_longer, typed, words),
             *whole
      = word && goes_on_number (rest_of (word, typed)) ? nearest (of_number, typed, words) : NULL;
  for (gsize i = 0; i < G_N_ELEMENTS (others) && !word; i++)
    word = nearest (others[i], typed, words);
  return whole ? whole : word;
}

/* --- words that have values ----------------------------------------------------------------------- */

static char *
head_of (const char *text)
{
  return g_strndup (text, strcspn (text, ":="));
}

/* The word, with its value, that was probably meant; NULL: none, or it is one as it should be. */
static const char *
whole_word (const char *typed, const char *const *words, const char *const *heads)
{
  g_autofree char *head = head_of (typed);
  for (guint i = 0; words[i]; i++)
    if (g_str_equal (head, heads[i])) /* its value is missing, or what is wrong is the value */
      return typed[strlen (head)] == '\0' && words[i][strlen (head)] != '\0' ? words[i] : NULL;
  const char *near = ls_suggest (head, heads);
  for (guint i = 0; near; i++)
    if (heads[i] == near)
      return words[i];
  return NULL;
}

char *
ls_did_you_mean (const char *typed, const char *const *words)
{
  g_autoptr (GPtrArray) heads = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; words[i]; i++)
    g_ptr_array_add (heads, head_of (words[i]));
  g_ptr_array_add (heads, NULL);
  g_auto (GStrv) items = g_strsplit (typed, ",", -1);
  for (char **item = items; *item; item++) {
    const char *word = whole_word (*item, words, (const char *const *) heads->pdata);
    if (word)
      return g_strdup_printf ("; did you mean \"%s\"?", word);
  }
  return g_strdup ("");
}

gboolean
ls_fail_word (GError **error, const char *flag, const char *typed, const char *const *words)
{
  g_autoptr (GString) list = g_string_new (NULL);
  for (guint i = 0; words[i]; i++)
    g_string_append_printf (list, "%s\"%s\"", i > 0 ? ", " : "", words[i]);
  g_autofree char *hint = ls_did_you_mean (typed, words);
  return ls_fail (error, LS_ERROR_USAGE, "%s: expected one of %s; got \"%s\"%s", flag, list->str, typed,
                  hint);
}
