#include "data/text/yaml.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <yaml.h>

#include "base/printable.h"
#include "data/text/json_doc.h"
#include "data/text/read_file.h"
#include "data/text/text_place.h"

#define YAML_PREFIX "tag:yaml.org,2002:"
#define MAX_NOTES   1000

/* --- what a plain scalar is ----------------------------------------------------------------------- */

#define MAX_WHOLE 9007199254740992.0 /* 2^53: beyond it a double is not exact */

/* 'n', 't' or 'f' of null, true or false; '\0': it is another word. */
static char
word_kind (const char *text)
{
  static const char *const words[]
      = { "n:",     "n:~",     "n:null",  "n:Null",  "n:NULL", "t:yes", "t:Yes", "t:YES",
          "t:true", "t:True",  "t:TRUE",  "t:on",    "t:On",   "t:ON",  "f:no",  "f:No",
          "f:NO",   "f:false", "f:False", "f:FALSE", "f:off",  "f:Off", "f:OFF" };
  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    if (strcmp (words[i] + 2, text) == 0)
      return *words[i];
  return '\0';
}

/* --- numbers -------------------------------------------------------------------------------------- */

static bool
is_sign (char c)
{
  return c == '-' || c == '+';
}

/* Digits of a base, and '_' between them. */
static bool
read_digits (const char *text, int base, double *ret_value)
{
  bool has_digit = false;
  for (*ret_value = 0; *text; text++) {
    const int digit = g_ascii_xdigit_value (*text);
    if (*text != '_' && (digit < 0 || digit >= base))
      return false;
    *ret_value = *text == '_' ? *ret_value : *ret_value * base + digit;
    has_digit = has_digit || digit >= 0;
  }
  return has_digit;
}

/* "1:30:00": 5400. */
static bool
read_sexagesimal (const char *text, double *ret_value)
{
  g_auto (GStrv) parts = g_strsplit (text, ":", 16);
  guint n = g_strv_length (parts);
  double part;
  if (n < 2 || n >= 16 || !read_digits (parts[0], 10, ret_value) || text[0] < '1' || text[0] > '9')
    return false;
  for (guint i = 1; i < n; i++) {
    gsize length = strlen (parts[i]);
    if (length > 2 || !read_digits (parts[i], 10, &part) || (length == 2 && parts[i][0] > '5')
        || strchr (parts[i], '_'))
      return false;
    *ret_value = *ret_value * 60 + part;
  }
  return true;
}

/* Without its sign. */
static bool
read_whole (const char *text, double *ret_value)
{
  bool is_binary = g_str_has_prefix (text, "0b"), is_hex = g_str_has_prefix (text, "0x"),
       is_octal = !is_binary && !is_hex && text[0] == '0' && text[1];
  const int n_prefix = is_binary || is_hex ? 2 : is_octal,
            base = is_binary ? 2
      : is_hex               ? 16
      : is_octal             ? 8
                             : 10;
  return g_ascii_isdigit (text[0])
      && (read_digits (text + n_prefix, base, ret_value) || read_sexagesimal (text, ret_value));
}

/* Without its sign: digits, a point, digits, and an exponent with a sign. */
static bool
is_float (const char *text)
{
  gsize before = strspn (text, "0123456789_");
  if (text[before] != '.' || text[0] == '_' || (before == 0 && !g_ascii_isdigit (text[1])))
    return false;
  text += before + 1;
  text += strspn (text, "0123456789_");
  if ((*text == 'e' || *text == 'E') && is_sign (text[1]) && text[2])
    text += 2 + strspn (text + 2, "0123456789");
  return *text == '\0';
}

/* NULL: it is none, or none that a double holds. */
static cJSON *
number_node (const char *text)
{
  const char *bare = text + is_sign (text[0]);
  double value;
  if (read_whole (bare, &value))
    return value <= MAX_WHOLE ? cJSON_CreateNumber (text[0] == '-' ? -value : value) : NULL;
  g_autoptr (GString) plain = g_string_new (text);
  g_string_replace (plain, "_", "", 0);
  value = is_float (bare) ? g_ascii_strtod (plain->str, NULL) : INFINITY;
  return isfinite (value) ? cJSON_CreateNumber (value) : NULL;
}

/* --- scalars -------------------------------------------------------------------------------------- */

cJSON *
ls_yaml_scalar (const char *text)
{
  char kind = word_kind (text);
  if (kind)
    return kind == 'n' ? cJSON_CreateNull () : cJSON_CreateBool (kind == 't');
  cJSON *number = number_node (text);
  return number ? number : cJSON_CreateString (text);
}

/* The value of a scalar with a tag of YAML itself ("int", "float", "bool", "null"; any other is text). */
static cJSON *
tagged_scalar (const char *type, const char *text)
{
  cJSON *node = NULL;
  char kind = word_kind (text);
  if (strcmp (type, "null") == 0)
    node = cJSON_CreateNull ();
  else if (strcmp (type, "bool") == 0 && (kind == 't' || kind == 'f'))
    node = cJSON_CreateBool (kind == 't');
  else if (strcmp (type, "int") == 0)
    node = number_node (text);
  else if (strcmp (type, "float") == 0) {
    char *end;
    double value = g_ascii_strtod (text, &end); /* "1e9" is a float here */
    node = end > text && !*end && isfinite (value) ? cJSON_CreateNumber (value) : NULL;
  }
  return node ? node : cJSON_CreateString (text);
}

/* --- a tree on the way ------------------------------------------------------------------------------ */

typedef struct {
  const char *text, *name;
  yaml_parser_t parser;
  yaml_mark_t mark; /* of the latest event */
  LsDiagList *diags;
  GPtrArray *notes;
  GHashTable *anchors;     /* char * -> cJSON *, of what is at its end */
  GPtrArray *kept;         /* cJSON *: no part of the tree, but an anchor may name a part of them */
  guint n_nodes, n_copied; /* n_copied: of them, by aliases */
  gsize n_copied_bytes;
} Build;

/* A mapping that is not at its end. */
typedef struct {
  cJSON *node;
  GHashTable *keys;  /* char * -> cJSON * */
  GPtrArray *merged; /* cJSON *, in the order of <<; owned by Build.kept */
} Mapping;

/* --- faults --------------------------------------------------------------------------------------- */

/* offset: in code points, as libyaml counts. */
static void
fault_at (const Build *b, gsize offset, const char *message)
{
  const char *at
      = g_utf8_offset_to_pointer (b->text, (glong) MIN (offset, (gsize) g_utf8_strlen (b->text, -1)));
  ls_text_diag (LS_ERROR_INPUT, b->name, b->text, (size_t) (at - b->text), b->diags, NULL, NULL, message);
}

static bool G_GNUC_PRINTF (3, 4) fault (const Build *b, yaml_mark_t mark, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  fault_at (b, mark.index, message);
  return false;
}

static bool
parser_fault (const Build *b)
{
  const yaml_parser_t *p = &b->parser;
  const char *problem = p->problem ? p->problem : "it cannot be read";
  if (p->error == YAML_READER_ERROR) {
    gsize byte = MIN (p->problem_offset, strlen (b->text));
    return fault (b, (yaml_mark_t) { .index = (gsize) g_utf8_strlen (b->text, (gssize) byte) }, "no YAML: %s",
                  problem);
  }
  return fault (b, p->problem_mark, "no YAML: %s%s%s", problem, p->context ? ", " : "",
                p->context ? p->context : "");
}

/* --- members -------------------------------------------------------------------------------------- */

/* False: the tree is as large as it may be. */
static bool
count (Build *b, guint n_nodes, yaml_mark_t mark)
{
  if (n_nodes > LS_YAML_MAX_NODES - b->n_nodes)
    return fault (b, mark, "more than %u values", LS_YAML_MAX_NODES);
  b->n_nodes += n_nodes;
  return true;
}

/* The same of what an alias repeats. */
static bool
count_copy (Build *b, guint n_nodes, gsize n_bytes, yaml_mark_t mark)
{
  if (n_nodes > LS_YAML_MAX_COPIED - b->n_copied)
    return fault (b, mark, "aliases repeat more than %u values", LS_YAML_MAX_COPIED);
  if (n_bytes > LS_YAML_MAX_COPIED_BYTES - b->n_copied_bytes)
    return fault (b, mark, "aliases repeat more than %zu MiB of text", LS_YAML_MAX_COPIED_BYTES >> 20);
  b->n_copied += n_nodes;
  b->n_copied_bytes += n_bytes;
  return count (b, n_nodes, mark);
}

static void
tell_repeated (Build *b, const yaml_event_t *key)
{
  if (!b->notes || b->notes->len >= MAX_NOTES)
    return;
  g_autofree char *text = ls_printable ((const char *) key->data.scalar.value);
  g_ptr_array_add (b->notes,
                   g_strdup_printf ("line %d: \"%s\" again; of equal keys the last holds",
                                    (int) key->start_mark.line + 1, text));
}

/* Takes node. */
static bool
add_member (Build *b, Mapping *m, const yaml_event_t *key, cJSON *node)
{
  const char *text = (const char *) key->data.scalar.value;
  cJSON *before = g_hash_table_lookup (m->keys, text);
  if (before) {
    tell_repeated (b, key);
    g_ptr_array_add (b->kept, cJSON_DetachItemViaPointer (m->node, before));
  }
  g_hash_table_replace (m->keys, g_strdup (text), node);
  return cJSON_AddItemToObject (m->node, text, node);
}

/* Takes node. */
static bool
add_merged (Build *b, Mapping *m, cJSON *node)
{
  g_ptr_array_add (b->kept, node);
  const cJSON *item = cJSON_IsArray (node) ? node->child : node;
  for (; item; item = cJSON_IsArray (node) ? item->next : NULL) {
    if (!cJSON_IsObject (item))
      return fault (b, b->mark, "expected a mapping, or a list of them, after <<");
    g_ptr_array_add (m->merged, (gpointer) item);
  }
  return true;
}

/* --- events --------------------------------------------------------------------------------------- */

/* "!!python/name:x" of its long form; NULL: no tag. */
static char *
tag_text (const yaml_char_t *tag)
{
  const char *t = (const char *) tag;
  if (!t || strcmp (t, "!") == 0)
    return NULL;
  return g_str_has_prefix (t, YAML_PREFIX) ? g_strconcat ("!!", t + strlen (YAML_PREFIX), NULL)
                                           : g_strdup (t);
}

/* The type of YAML itself that a tag names; NULL: another tag, or none. */
static const char *
core_type (const char *tag)
{
  static const char *const types[] = { "null",  "bool",      "int",    "float", "str", "map", "seq",
                                       "merge", "timestamp", "binary", "omap",  "set", NULL };
  return tag && g_str_has_prefix (tag, "!!") && g_strv_contains (types, tag + 2) ? tag + 2 : NULL;
}

static cJSON *
scalar_node (const yaml_event_t *e)
{
  const char *text = (const char *) e->data.scalar.value;
  g_autofree char *tag = tag_text (e->data.scalar.tag);
  const char *type = core_type (tag);
  if (type)
    return tagged_scalar (type, text);
  if (tag)
    return cJSON_CreateString (*text ? text : tag);
  bool is_plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && !e->data.scalar.tag;
  return is_plain ? ls_yaml_scalar (text) : cJSON_CreateString (text);
}

static bool
has_no_nul (const Build *b, const yaml_event_t *e)
{
  return strlen ((const char *) e->data.scalar.value) == e->data.scalar.length
      || fault (b, e->start_mark, "a NUL byte in this text");
}

/* Depth, nodes and bytes of a tree; stops counting beyond what may be. */
static void
measure (const cJSON *node, guint depth, guint *deepest, guint *n_nodes, gsize *n_bytes)
{
  *deepest = MAX (*deepest, depth);
  *n_bytes
      += (node->valuestring ? strlen (node->valuestring) : 0) + (node->string ? strlen (node->string) : 0);
  if (++*n_nodes > LS_YAML_MAX_NODES)
    return;
  for (const cJSON *child = node->child; child; child = child->next)
    measure (child, depth + 1, deepest, n_nodes, n_bytes);
}

static cJSON *
build_alias (Build *b, const yaml_event_t *e, guint depth)
{
  const char *name = (const char *) e->data.alias.anchor;
  const cJSON *node = g_hash_table_lookup (b->anchors, name);
  guint deepest = 0, n_nodes = 0;
  gsize n_bytes = 0;
  if (!node)
    return fault (b, e->start_mark, "*%s: no value with the anchor &%s ends before it", name, name), NULL;
  measure (node, 1, &deepest, &n_nodes, &n_bytes);
  if (depth + deepest > LS_JSON_MAX_DEPTH)
    return fault (b, e->start_mark, "more than %d levels, with those of *%s", LS_JSON_MAX_DEPTH, name), NULL;
  return count_copy (b, n_nodes, n_bytes, e->start_mark) ? cJSON_Duplicate (node, true) : NULL;
}

static cJSON *build_node (Build *b, const yaml_event_t *e, guint depth);

/* The next event, which the caller deletes; false: it is none. */
static bool
next (Build *b, yaml_event_t *e)
{
  if (!yaml_parser_parse (&b->parser, e))
    return parser_fault (b);
  b->mark = e->start_mark;
  return true;
}

/* All up to the end of a sequence. */
static bool
fill_sequence (Build *b, cJSON *items, guint depth)
{
  for (yaml_event_t e; next (b, &e);) {
    bool is_end = e.type == YAML_SEQUENCE_END_EVENT;
    cJSON *item = is_end ? NULL : build_node (b, &e, depth);
    yaml_event_delete (&e);
    if (is_end || !item)
      return is_end;
    cJSON_AddItemToArray (items, item);
  }
  return false;
}

/* Keys of the mapping itself hold; of those merged, the first. */
static bool
merge (Build *b, const Mapping *m, yaml_mark_t mark)
{
  for (guint i = 0; i < m->merged->len; i++)
    for (const cJSON *c = ((const cJSON *) m->merged->pdata[i])->child; c; c = c->next) {
      guint depth = 0, n_nodes = 0;
      gsize n_bytes = 0;
      if (g_hash_table_contains (m->keys, c->string))
        continue;
      measure (c, 1, &depth, &n_nodes, &n_bytes);
      if (!count_copy (b, n_nodes, n_bytes, mark))
        return false;
      cJSON *node = cJSON_Duplicate (c, true);
      g_hash_table_insert (m->keys, g_strdup (c->string), node);
      cJSON_AddItemToObject (m->node, c->string, node);
    }
  return true;
}

/* A key and its value. */
static bool
read_member (Build *b, Mapping *m, const yaml_event_t *key, guint depth)
{
  yaml_event_t e;
  if (key->type != YAML_SCALAR_EVENT)
    return fault (b, key->start_mark,
                  key->type == YAML_ALIAS_EVENT ? "an alias as a key" : "a key that is no scalar");
  if (!has_no_nul (b, key) || !next (b, &e))
    return false;
  bool is_merge = key->data.scalar.style == YAML_PLAIN_SCALAR_STYLE
      && strcmp ((const char *) key->data.scalar.value, "<<") == 0;
  cJSON *node = build_node (b, &e, depth);
  bool ok = node && (is_merge ? add_merged (b, m, node) : add_member (b, m, key, node));
  yaml_event_delete (&e);
  return ok;
}

/* The same of a mapping. */
static bool
fill_mapping (Build *b, cJSON *node, guint depth)
{
  g_autoptr (GHashTable) keys = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (GPtrArray) merged = g_ptr_array_new ();
  Mapping m = { node, keys, merged };
  for (yaml_event_t e; next (b, &e);) {
    bool is_end = e.type == YAML_MAPPING_END_EVENT;
    bool ok = is_end ? merge (b, &m, e.start_mark) : read_member (b, &m, &e, depth);
    yaml_event_delete (&e);
    if (is_end || !ok)
      return ok;
  }
  return false;
}

static cJSON *
build_container (Build *b, const yaml_event_t *e, const yaml_char_t *long_tag, guint depth)
{
  bool is_mapping = e->type == YAML_MAPPING_START_EVENT;
  g_autofree char *tag = tag_text (long_tag);
  if (depth >= LS_JSON_MAX_DEPTH)
    return fault (b, e->start_mark, "more than %d levels", LS_JSON_MAX_DEPTH), NULL;
  if (!count (b, tag ? 3 : 1, e->start_mark))
    return NULL;
  bool is_told = tag && !core_type (tag);
  cJSON *node = is_mapping || is_told ? cJSON_CreateObject () : cJSON_CreateArray (), *items = node;
  if (is_told)
    cJSON_AddStringToObject (node, LS_YAML_TAG, tag);
  if (is_told && !is_mapping)
    items = cJSON_AddArrayToObject (node, LS_YAML_ITEMS);
  if (is_mapping ? fill_mapping (b, node, depth + 1) : fill_sequence (b, items, depth + 1))
    return node;
  cJSON_Delete (node);
  return NULL;
}

/* What begins with an event; NULL: a fault has been told. */
static cJSON *
build_node (Build *b, const yaml_event_t *e, guint depth)
{
  cJSON *node = NULL;
  const yaml_char_t *anchor = NULL;
  if (e->type == YAML_ALIAS_EVENT)
    return build_alias (b, e, depth);
  if (e->type == YAML_SCALAR_EVENT) {
    anchor = e->data.scalar.anchor;
    node = has_no_nul (b, e) && count (b, 1, e->start_mark) ? scalar_node (e) : NULL;
  } else if (e->type == YAML_SEQUENCE_START_EVENT) {
    anchor = e->data.sequence_start.anchor;
    node = build_container (b, e, e->data.sequence_start.tag, depth);
  } else {
    anchor = e->data.mapping_start.anchor;
    node = build_container (b, e, e->data.mapping_start.tag, depth);
  }
  if (node && anchor)
    g_hash_table_replace (b->anchors, g_strdup ((const char *) anchor), node);
  return node;
}

/* --- documents ------------------------------------------------------------------------------------ */

/* The only document; NULL: a fault has been told. */
static cJSON *
build (Build *b)
{
  cJSON *root = NULL;
  bool ok = true;
  for (yaml_event_t e; ok && (ok = next (b, &e));) {
    bool is_end = e.type == YAML_STREAM_END_EVENT;
    if (e.type == YAML_DOCUMENT_START_EVENT && root)
      ok = fault (b, e.start_mark, "a second document; expected one in a file");
    else if (e.type >= YAML_ALIAS_EVENT)
      ok = (root = build_node (b, &e, 0)) != NULL;
    yaml_event_delete (&e);
    if (is_end)
      return root ? root : cJSON_CreateNull ();
  }
  cJSON_Delete (root);
  return NULL;
}

cJSON *
ls_yaml_parse (const char *text, gsize n, const char *name, GPtrArray *notes, LsDiagList *diags)
{
  if (n > LS_MAX_INPUT_BYTES) {
    ls_file_diag (diags, LS_ERROR_INPUT, name, NULL, "too large; expected 64 MiB of YAML at most");
    return NULL;
  }
  gsize n_mark = n >= 3 && memcmp (text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
  g_autofree char *copy = g_strndup (text + n_mark, n - n_mark);
  if (!ls_text_check (copy, n - n_mark, name, "YAML", diags))
    return NULL;
  g_autoptr (GHashTable) anchors = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (GPtrArray) kept = g_ptr_array_new_with_free_func ((GDestroyNotify) cJSON_Delete);
  Build b = { .text = copy, .name = name, .diags = diags, .notes = notes, .anchors = anchors, .kept = kept };
  if (!yaml_parser_initialize (&b.parser))
    g_error ("yaml: no memory");
  yaml_parser_set_encoding (&b.parser, YAML_UTF8_ENCODING);
  yaml_parser_set_input_string (&b.parser, (const unsigned char *) copy, strlen (copy));
  cJSON *root = build (&b);
  yaml_parser_delete (&b.parser);
  return root;
}
