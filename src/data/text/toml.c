#include "data/text/toml.h"

#include <string.h>

#include "data/text/json_scan.h"
#include "data/text/text_place.h"
#include "data/text/toml_parts.h"

/* How a table or an array came to be, which says what may still be added to it. */
typedef enum {
  IMPLICIT = 1, /* in front of another in "[a.b]"         */
  HEADER,       /* "[a]", and the text itself             */
  DOTTED,       /* "a.b = 1"                              */
  CLOSED,       /* "{...}", "[1, 2]"                      */
  TABLES,       /* an array of tables, "[[a]]"            */
} Kind;

typedef struct {
  TomlScan scan;
  GHashTable *kinds; /* cJSON * -> Kind */
  GHashTable *items; /* Place * -> cJSON *: a table of many keys is searched as fast */
} Toml;

typedef struct {
  const cJSON *table;
  const char *key; /* of the item */
} Place;

static guint
place_hash (gconstpointer place)
{
  const Place *p = place;
  return g_direct_hash (p->table) * 31 + g_str_hash (p->key);
}

static gboolean
place_equal (gconstpointer a, gconstpointer b)
{
  const Place *p = a, *q = b;
  return p->table == q->table && strcmp (p->key, q->key) == 0;
}

static Kind
kind_of (const Toml *t, const cJSON *item)
{
  return (Kind) GPOINTER_TO_INT (g_hash_table_lookup (t->kinds, item));
}

static void
set_kind (Toml *t, cJSON *item, Kind kind)
{
  g_hash_table_insert (t->kinds, item, GINT_TO_POINTER (kind));
}

static cJSON *
find (const Toml *t, const cJSON *table, const char *key)
{
  return g_hash_table_lookup (t->items, &(Place) { table, key });
}

/* Takes item, which may be NULL; returns it. */
static cJSON *
add (Toml *t, cJSON *table, const char *key, cJSON *item)
{
  if (!item)
    return NULL;
  cJSON_AddItemToObject (table, key, item);
  Place *place = g_new (Place, 1);
  *place = (Place) { table, item->string };
  g_hash_table_insert (t->items, place, item);
  return item;
}

/* --- keys ------------------------------------------------------------------------------------------ */

/* The parts of a key: char *, owned by the array. NULL: there is none. */
static GPtrArray *
read_key (Toml *t, guint depth)
{
  TomlScan *s = &t->scan;
  g_autoptr (GPtrArray) parts = g_ptr_array_new_with_free_func (g_free);
  for (;;) {
    toml_skip_blanks (s);
    char *part = toml_key_part (s);
    if (!part)
      return NULL;
    g_ptr_array_add (parts, part);
    if (depth + parts->len >= LS_JSON_MAX_DEPTH) {
      toml_fail (s, s->at, "nested deeper than %d", LS_JSON_MAX_DEPTH);
      return NULL;
    }
    toml_skip_blanks (s);
    if (*s->at != '.')
      return g_steal_pointer (&parts);
    s->at++;
  }
}

static cJSON *
new_table (Toml *t, cJSON *table, const char *key, Kind kind)
{
  cJSON *item = add (t, table, key, toml_count (&t->scan, cJSON_CreateObject ()));
  if (item)
    set_kind (t, item, kind);
  return item;
}

/* --- values ---------------------------------------------------------------------------------------- */

static bool read_pair (Toml *t, cJSON *table, guint depth);
static cJSON *read_value (Toml *t, guint depth);

static bool
fill_array (Toml *t, cJSON *array, guint depth)
{
  TomlScan *s = &t->scan;
  for (;;) {
    if (!toml_skip_lines (s))
      return false;
    if (*s->at == ']')
      return true;
    cJSON *item = read_value (t, depth);
    if (!item)
      return false;
    cJSON_AddItemToArray (array, item);
    if (!toml_skip_lines (s))
      return false;
    if (*s->at != ',')
      return *s->at == ']' || toml_fail (s, s->at, "expected ',' or ']'");
    s->at++;
  }
}

/* On one line, without a comma behind the last pair. */
static bool
fill_inline (Toml *t, cJSON *table, guint depth)
{
  TomlScan *s = &t->scan;
  toml_skip_blanks (s);
  if (*s->at == '}')
    return true;
  for (;;) {
    if (!read_pair (t, table, depth))
      return false;
    toml_skip_blanks (s);
    if (*s->at != ',')
      return *s->at == '}' || toml_fail (s, s->at, "expected ',' or '}'");
    s->at++;
  }
}

/* All tables within a value are complete with it. */
static void
close_tables (Toml *t, cJSON *item)
{
  for (cJSON *c = item->child; c; c = c->next)
    close_tables (t, c);
  if (cJSON_IsObject (item) || cJSON_IsArray (item))
    set_kind (t, item, CLOSED);
}

static cJSON *
read_container (Toml *t, guint depth)
{
  TomlScan *s = &t->scan;
  bool is_array = *s->at == '[';
  if (depth + 1 >= LS_JSON_MAX_DEPTH) {
    toml_fail (s, s->at, "nested deeper than %d", LS_JSON_MAX_DEPTH);
    return NULL;
  }
  s->at++;
  cJSON *item = toml_count (s, is_array ? cJSON_CreateArray () : cJSON_CreateObject ());
  if (item && !is_array)
    set_kind (t, item, DOTTED);
  if (!item || !(is_array ? fill_array (t, item, depth + 1) : fill_inline (t, item, depth + 1))) {
    cJSON_Delete (item);
    return NULL;
  }
  s->at++;
  return item;
}

static cJSON *
read_value (Toml *t, guint depth)
{
  TomlScan *s = &t->scan;
  if (*s->at == '[' || *s->at == '{')
    return read_container (t, depth);
  if (*s->at == '\0' || strchr ("\r\n#,]}", *s->at)) {
    toml_fail (s, s->at, "expected a value");
    return NULL;
  }
  cJSON *item = toml_scalar (s);
  return item ? toml_count (s, item) : NULL;
}

/* The table that the front of a dotted key names, within that of its section; NULL: it cannot be. */
static cJSON *
descend_pair (Toml *t, cJSON *table, const GPtrArray *parts, const char *where)
{
  for (guint i = 0; table && i + 1 < parts->len; i++) {
    cJSON *next = find (t, table, parts->pdata[i]);
    if (next && kind_of (t, next) != DOTTED) {
      toml_fail (&t->scan, where, "\"%s\" is defined already, and not by such keys",
                 (const char *) parts->pdata[i]);
      return NULL;
    }
    table = next ? next : new_table (t, table, parts->pdata[i], DOTTED);
  }
  return table;
}

static bool
read_pair (Toml *t, cJSON *table, guint depth)
{
  TomlScan *s = &t->scan;
  toml_skip_blanks (s);
  const char *where = s->at;
  g_autoptr (GPtrArray) parts = read_key (t, depth);
  if (!parts)
    return false;
  if (*s->at != '=')
    return toml_fail (s, s->at, "expected '=' behind a key");
  s->at++;
  cJSON *target = descend_pair (t, table, parts, where);
  const char *key = parts->pdata[parts->len - 1];
  if (!target)
    return false;
  if (find (t, target, key))
    return toml_fail (s, where, "\"%s\" is defined already", key);
  toml_skip_blanks (s);
  cJSON *value = read_value (t, depth + parts->len);
  if (!value)
    return false;
  close_tables (t, value);
  add (t, target, key, value);
  return true;
}

/* --- sections -------------------------------------------------------------------------------------- */

/* The table in front of the last part of a header; NULL: it cannot be. */
static cJSON *
descend_header (Toml *t, cJSON *table, const GPtrArray *parts, const char *where)
{
  for (guint i = 0; table && i + 1 < parts->len; i++) {
    cJSON *next = find (t, table, parts->pdata[i]);
    Kind kind = next ? kind_of (t, next) : IMPLICIT;
    if (kind == CLOSED || kind == 0) {
      toml_fail (&t->scan, where, "\"%s\" is defined already, and no table", (const char *) parts->pdata[i]);
      return NULL;
    }
    if (kind == TABLES)
      next = next->child->prev; /* the last */
    table = next ? next : new_table (t, table, parts->pdata[i], IMPLICIT);
  }
  return table;
}

/* "[a.b]" */
static cJSON *
open_table (Toml *t, cJSON *parent, const char *key, const char *where)
{
  cJSON *item = find (t, parent, key);
  if (!item)
    return new_table (t, parent, key, HEADER);
  if (kind_of (t, item) != IMPLICIT) {
    toml_fail (&t->scan, where, "\"%s\" is defined already", key);
    return NULL;
  }
  set_kind (t, item, HEADER);
  return item;
}

/* "[[a.b]]" */
static cJSON *
open_item (Toml *t, cJSON *parent, const char *key, const char *where)
{
  cJSON *array = find (t, parent, key);
  if (array && kind_of (t, array) != TABLES) {
    toml_fail (&t->scan, where, "\"%s\" is defined already, and no array of tables", key);
    return NULL;
  }
  if (!array) {
    array = add (t, parent, key, toml_count (&t->scan, cJSON_CreateArray ()));
    if (!array)
      return NULL;
    set_kind (t, array, TABLES);
  }
  cJSON *item = toml_count (&t->scan, cJSON_CreateObject ());
  if (item) {
    cJSON_AddItemToArray (array, item);
    set_kind (t, item, HEADER);
  } else if (!array->child)
    set_kind (t, array, CLOSED);
  return item;
}

/* The table that the lines below belong to. */
static cJSON *
read_header (Toml *t, cJSON *root)
{
  TomlScan *s = &t->scan;
  bool is_item = s->at[1] == '[';
  s->at += is_item ? 2 : 1;
  const char *where = s->at;
  g_autoptr (GPtrArray) parts = read_key (t, is_item ? 1 : 0);
  if (!parts)
    return NULL;
  if (s->at[0] != ']' || (is_item && s->at[1] != ']')) {
    toml_fail (s, s->at, is_item ? "expected ']]'" : "expected ']'");
    return NULL;
  }
  s->at += is_item ? 2 : 1;
  cJSON *parent = descend_header (t, root, parts, where);
  const char *key = parts->pdata[parts->len - 1];
  cJSON *table = !parent ? NULL
      : is_item          ? open_item (t, parent, key, where)
                         : open_table (t, parent, key, where);
  return table && toml_end_line (s) ? table : NULL;
}

static bool
read_text (Toml *t, cJSON *root)
{
  cJSON *table = root;
  while (toml_skip_lines (&t->scan) && *t->scan.at) {
    if (*t->scan.at == '[')
      table = read_header (t, root);
    else if (!read_pair (t, table, 1) || !toml_end_line (&t->scan))
      return false;
    if (!table)
      return false;
  }
  return t->scan.why == NULL;
}

/* --- the whole ------------------------------------------------------------------------------------- */

static bool
check_bytes (const char *text, size_t n, const char *name, LsDiagList *diags)
{
  const char *nul = memchr (text, '\0', n), *end = NULL;
  bool is_utf8 = nul || g_utf8_validate (text, (gssize) n, &end);
  if (nul || !is_utf8)
    ls_text_diag (LS_ERROR_INPUT, name, text, (size_t) ((nul ? nul : end) - text), diags, NULL, NULL,
                  nul ? "a NUL byte; expected TOML" : "invalid UTF-8; expected TOML");
  return !nul && is_utf8;
}

cJSON *
ls_toml_parse (const char *text, size_t n, const char *name, LsDiagList *diags)
{
  g_autofree char *copy = g_malloc (n + 1);
  memcpy (copy, text, n);
  copy[n] = '\0';
  if (!check_bytes (copy, n, name, diags))
    return NULL;
  Toml t = { .scan = { .text = copy, .at = copy } };
  t.kinds = g_hash_table_new (g_direct_hash, g_direct_equal);
  t.items = g_hash_table_new_full (place_hash, place_equal, g_free, NULL);
  cJSON *root = cJSON_CreateObject ();
  set_kind (&t, root, HEADER);
  bool ok = read_text (&t, root);
  g_hash_table_unref (t.items);
  g_hash_table_unref (t.kinds);
  if (ok)
    return root;
  ls_text_diag (LS_ERROR_INPUT, name, copy, t.scan.fault, diags, NULL, NULL, t.scan.why);
  g_free (t.scan.why);
  cJSON_Delete (root);
  return NULL;
}
