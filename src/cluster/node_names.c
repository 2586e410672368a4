/* cluster/node_names.c — names of nodes: lists as SLURM writes them, and the node that each name stands for.
 * */
#include <string.h>

#include "cluster/allocation.h"

#define MAX_BRACKETS 8   /* in a name */
#define MAX_NAME     255 /* characters of a host: RFC 1123, 2.1 */

/* --- names of a list ------------------------------------------------------------------------------- */

/* A list on the way. */
typedef struct {
  GPtrArray *names;
  char **why;
} Names;

static bool
fail (const Names *n, const char *text, const char *what)
{
  *n->why = g_strdup_printf ("\"%s\": %s", text, what);
  return false;
}

static bool
is_number (const char *text, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (!g_ascii_isdigit (text[i]))
      return false;
  return n > 0 && n <= 9;
}

static bool expand (const Names *n, const char *before, const char *rest);

/* The numbers of "001-064" or "072" between what stands before and behind. */
static bool
expand_range (const Names *n, const char *before, const char *range, const char *behind)
{
  const char *dash = strchr (range, '-');
  size_t width = dash ? (size_t) (dash - range) : strlen (range);
  const char *last = dash ? dash + 1 : range;
  if (!is_number (range, width) || !is_number (last, strlen (last)))
    return fail (n, range, "expected a number or a range such as 001-064");
  guint64 from = g_ascii_strtoull (range, NULL, 10), to = g_ascii_strtoull (last, NULL, 10);
  if (from > to)
    return fail (n, range, "the range ends before it begins");
  for (guint64 i = from; i <= to; i++) {
    g_autofree char *name = g_strdup_printf ("%s%0*" G_GUINT64_FORMAT, before, (int) width, i);
    if (!expand (n, name, behind))
      return false;
  }
  return true;
}

/* What follows a name that is spelt out so far. */
static bool
expand (const Names *n, const char *before, const char *rest)
{
  const char *open = strchr (rest, '['), *close = open ? strchr (open, ']') : NULL;
  if (!open && strchr (rest, ']'))
    return fail (n, rest, "expected [ before ]");
  if (open && !close)
    return fail (n, rest, "expected ] after [");
  if (!open) {
    if (n->names->len == LS_ALLOCATION_MAX_NODES)
      return fail (n, before, "more than 2^20 nodes");
    if (strlen (before) + strlen (rest) > MAX_NAME)
      return fail (n, before, "a name of more than 255 characters");
    g_ptr_array_add (n->names, g_strconcat (before, rest, NULL));
    return true;
  }
  g_autofree char *head = g_strdup_printf ("%s%.*s", before, (int) (open - rest), rest);
  g_autofree char *inside = g_strndup (open + 1, (gsize) (close - open - 1));
  g_auto (GStrv) ranges = g_strsplit (inside, ",", -1);
  if (!ranges[0])
    return fail (n, rest, "expected numbers between [ and ]");
  for (char **range = ranges; *range; range++)
    if (!expand_range (n, head, *range, close + 1))
      return false;
  return true;
}

static guint
count_brackets (const char *item)
{
  guint n = 0;
  for (; *item; item++)
    n += *item == '[';
  return n;
}

static bool
expand_item (const Names *n, const char *item)
{
  const char *dash = strchr (item, '-');
  if (count_brackets (item) > MAX_BRACKETS)
    return fail (n, item, "more than 8 brackets in a name");
  if (*item == '\0')
    return fail (n, item, "expected a name of a node between commas");
  if (dash && is_number (item, (size_t) (dash - item)))
    return expand_range (n, "", item, "");
  return expand (n, "", item);
}

/* Items between commas that are not in brackets; char *, owned. */
static GPtrArray *
items_of (const char *text)
{
  GPtrArray *items = g_ptr_array_new_with_free_func (g_free);
  int depth = 0;
  const char *from = text;
  for (const char *at = text;; at++) {
    depth += (*at == '[') - (*at == ']');
    if (*at != '\0' && (*at != ',' || depth > 0))
      continue;
    char *item = g_strndup (from, (gsize) (at - from));
    g_ptr_array_add (items, g_strstrip (item));
    from = at + 1;
    if (*at == '\0')
      return items;
  }
}

GPtrArray *
ls_node_list_names (const char *text, char **reterr_why)
{
  g_autoptr (GPtrArray) items = items_of (text);
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  const Names n = { names, reterr_why };
  for (guint i = 0; i < items->len; i++)
    if (!expand_item (&n, items->pdata[i]))
      return NULL;
  return g_steal_pointer (&names);
}

/* --- numbers of names ------------------------------------------------------------------------------ */

/* Where the number at the end of a name begins. */
static size_t
number_at (const char *name)
{
  size_t at = strlen (name);
  while (at > 0 && g_ascii_isdigit (name[at - 1]))
    at--;
  return at;
}

static bool
number_by_end (const char *name, const char *first, uint32_t *ret, char **reterr_why)
{
  size_t at = number_at (name);
  if (!is_number (name + at, strlen (name + at))) {
    *reterr_why = g_strdup_printf ("\"%s\" does not end in a number: say which nodes the cluster has, as "
                                   "NODES:ALL-NODES",
                                   name);
    return false;
  }
  if (at != number_at (first) || strncmp (name, first, at) != 0) {
    *reterr_why = g_strdup_printf ("\"%s\" and \"%s\" begin differently: say which nodes the cluster has, as "
                                   "NODES:ALL-NODES",
                                   first, name);
    return false;
  }
  *ret = (uint32_t) g_ascii_strtoull (name + at, NULL, 10);
  return true;
}

/* Name > place + 1; all_names NULL: empty. NULL: a name is there twice. */
static GHashTable *
places_of (const GPtrArray *all_names, char **reterr_why)
{
  g_autoptr (GHashTable) places = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; all_names && i < all_names->len; i++)
    if (!g_hash_table_insert (places, all_names->pdata[i], GUINT_TO_POINTER (i + 1))) {
      *reterr_why = g_strdup_printf ("\"%s\" is twice among all nodes of the cluster",
                                     (const char *) all_names->pdata[i]);
      return NULL;
    }
  return g_steal_pointer (&places);
}

/* Numbers without a name are those of the cluster. */
static LsNodesFrom
count_names (const char *first, uint32_t *numbers, guint n)
{
  uint32_t least = number_at (first) > 0 ? UINT32_MAX : 0;
  for (guint i = 0; i < n; i++)
    least = MIN (least, numbers[i]);
  for (guint i = 0; i < n && least == 1; i++)
    numbers[i]--;
  return least == 0 ? LS_NODES_FROM_0 : least == 1 ? LS_NODES_FROM_1 : LS_NODES_FROM_UNKNOWN;
}

bool
ls_node_numbers (const GPtrArray *names, const GPtrArray *all_names, uint32_t *ret_numbers,
                 LsNodesFrom *ret_from, guint *reterr_at, char **reterr_why)
{
  g_autoptr (GHashTable) places = places_of (all_names, reterr_why);
  *reterr_at = 0;
  for (guint i = 0; places && i < names->len; i++) {
    const char *name = names->pdata[i];
    guint place = GPOINTER_TO_UINT (g_hash_table_lookup (places, name));
    *reterr_at = i;
    if (all_names && place == 0) {
      *reterr_why = g_strdup_printf ("\"%s\" is none of the cluster's %u nodes", name, all_names->len);
      return false;
    }
    if (!all_names && !number_by_end (name, names->pdata[0], &ret_numbers[i], reterr_why))
      return false;
    if (all_names)
      ret_numbers[i] = place - 1;
  }
  *ret_from = places && !all_names ? count_names (names->pdata[0], ret_numbers, names->len) : LS_NODES_SAID;
  return places != NULL;
}
