#include "validate/refusals.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Every run of digits that stands by itself becomes "#"; in words, such as "1f1b", they stay. */
static char *
without_numbers (const char *reason)
{
  GString *out = g_string_new (NULL);
  for (const char *c = reason; *c;) {
    size_t n = strspn (c, "0123456789");
    bool is_in_word
        = n == 0 || (c > reason && (g_ascii_isalpha (c[-1]) || c[-1] == '_')) || g_ascii_isalpha (c[n]);
    if (is_in_word)
      g_string_append_len (out, c, (gssize) MAX (n, 1));
    else
      g_string_append_c (out, '#');
    c += MAX (n, 1);
  }
  return g_string_free (out, FALSE);
}

static void
refusal_clear (gpointer data)
{
  g_free (((LsRefusal *) data)->reason);
}

static void
add (GArray *refusals, const LsScoreRow *row)
{
  g_autofree char *pattern = without_numbers (row->reason);
  for (guint i = 0; i < refusals->len; i++) {
    LsRefusal *r = &g_array_index (refusals, LsRefusal, i);
    g_autofree char *same = without_numbers (r->reason);
    if (!g_str_equal (pattern, same))
      continue;
    r->n++;
    if (!g_str_equal (r->reason, row->reason)) {
      g_free (r->reason);
      r->reason = g_steal_pointer (&pattern);
    }
    return;
  }
  LsRefusal first = { g_strdup (row->reason), 1, row->id };
  g_array_append_val (refusals, first);
}

/* Stable: few reasons, many rows. */
static void
sort (GArray *refusals)
{
  for (guint i = 1; i < refusals->len; i++) {
    LsRefusal moved = g_array_index (refusals, LsRefusal, i);
    guint at = i;
    for (; at > 0 && g_array_index (refusals, LsRefusal, at - 1).n < moved.n; at--)
      g_array_index (refusals, LsRefusal, at) = g_array_index (refusals, LsRefusal, at - 1);
    g_array_index (refusals, LsRefusal, at) = moved;
  }
}

GArray *
ls_refusals (const LsScoreRow *rows, guint n_rows)
{
  GArray *refusals = g_array_new (FALSE, FALSE, sizeof (LsRefusal));
  g_array_set_clear_func (refusals, refusal_clear);
  for (guint i = 0; i < n_rows; i++)
    if (isnan (rows[i].predicted_s) && rows[i].reason)
      add (refusals, &rows[i]);
  sort (refusals);
  return refusals;
}
