#include "data/text/json_doc.h"

#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/handover.h"
#include "base/printable.h"
#include "data/text/json_pull.h"
#include "data/text/json_scan.h"
#include "data/text/lookalikes.h"
#include "data/text/read_file.h"
#include "data/text/text_place.h"

struct LsJsonDoc {
  gint n_refs;
  char *name;
  char *text; /* NUL-terminated */
  cJSON *root;
  LsJsonDoc *whole; /* that it is a part of, which has its text and its nodes; NULL: it is whole */
  bool is_given;    /* in place of a file */
};

/* --- finding a node again ----------------------------------------------------- */

typedef struct {
  int n;
  int child[LS_JSON_MAX_DEPTH];
} Path;

/* Depth is bounded: the text was scanned before cJSON saw it. */
static bool
find_path (const cJSON *at, const cJSON *node, Path *path)
{
  if (at == node)
    return true;
  int depth = path->n++, k = 0;
  for (const cJSON *c = at->child; c; c = c->next, k++) {
    path->child[depth] = k;
    if (find_path (c, node, path))
      return true;
  }
  path->n--;
  return false;
}

static const char *
skip_blanks (const char *p)
{
  return p + strspn (p, " \t\r\n");
}

static const char *
skip_string (const char *p)
{
  for (p++; *p != '"'; p++)
    if (*p == '\\')
      p++;
  return p + 1;
}

static const char *
skip_value (const char *p)
{
  int depth = 0;
  do {
    if (*p == '"') {
      p = skip_string (p);
    } else if (*p == '{' || *p == '[') {
      depth++;
      p++;
    } else if (*p == '}' || *p == ']') {
      depth--;
      p++;
    } else {
      p += depth > 0 ? 1 : strcspn (p, ",]} \t\r\n");
    }
  } while (depth > 0);
  return p;
}

/* The k-th child of the container at p; *ret_key its key or NULL. */
static const char *
step_into (const char *p, int k, const char **ret_key)
{
  bool is_object = *p == '{';
  for (p = skip_blanks (p + 1);; p = skip_blanks (p + 1)) { /* past '{', '[' or ',' */
    *ret_key = is_object ? p : NULL;
    if (is_object)
      p = skip_blanks (skip_blanks (skip_string (p)) + 1); /* past ':' */
    if (k-- == 0)
      return p;
    p = skip_blanks (skip_value (p));
  }
}

static size_t
offset_of (const LsJsonDoc *doc, const cJSON *node, LsJsonPlace place)
{
  Path path = { 0 };
  if (!find_path (doc->whole ? doc->whole->root : doc->root, node, &path))
    g_error ("json: a node of another document");
  const char *p = skip_blanks (doc->text), *key = NULL;
  for (int d = 0; d < path.n; d++)
    p = step_into (p, path.child[d], &key);
  return (size_t) ((place == LS_JSON_AT_KEY && key ? key : p) - doc->text);
}

void
ls_json_doc_locate (const LsJsonDoc *doc, const cJSON *node, LsJsonPlace place, int *ret_line, int *ret_col)
{
  ls_text_place (doc->text, offset_of (doc, node, place), ret_line, ret_col);
}

void
ls_json_doc_locate_all (const LsJsonDoc *doc, const cJSON *list, LsJsonSpot *ret_spots)
{
  const char *key, *at = doc->text, *p = step_into (at + offset_of (doc, list, LS_JSON_AT_VALUE), 0, &key);
  LsJsonSpot spot = { 1, 1 };
  for (const cJSON *c = list->child; c; c = c->next, p = skip_blanks (skip_blanks (skip_value (p)) + 1)) {
    ls_text_advance (at, (size_t) (p - at), &spot.line, &spot.col);
    *ret_spots++ = spot;
    at = p;
  }
}

static void
append_escaped (GString *pointer, const char *key)
{
  for (; *key; key++) {
    if (*key == '~' || *key == '/')
      g_string_append (pointer, *key == '~' ? "~0" : "~1");
    else
      g_string_append_c (pointer, *key);
  }
}

char *
ls_json_doc_pointer (const LsJsonDoc *doc, const cJSON *node)
{
  Path path = { 0 };
  if (!find_path (doc->root, node, &path))
    g_error ("json: a node of another document");
  GString *pointer = g_string_new (NULL);
  const cJSON *at = doc->root;
  for (int d = 0; d < path.n; d++) {
    at = cJSON_GetArrayItem (at, path.child[d]); /* works for objects too */
    g_string_append_c (pointer, '/');
    if (at->string)
      append_escaped (pointer, at->string);
    else
      g_string_append_printf (pointer, "%d", path.child[d]);
  }
  return g_string_free (pointer, FALSE);
}

/* --- diagnostics -------------------------------------------------------------- */

/* Beyond what is ever shown, a place is not worth a walk through the file: a
 * million mistakes must not cost a million walks. */
static void
add_diag (const LsJsonDoc *doc, LsErrorCode code, const cJSON *node, LsJsonPlace place, LsDiagList *diags,
          const char *hint, const char *message)
{
  if (ls_diag_list_n (diags) >= LS_DIAG_MAX_SHOWN) {
    ls_diag_add (diags, code, doc->name, 0, 0, NULL, NULL, hint, "%s", message);
    return;
  }
  g_autofree char *pointer = ls_json_doc_pointer (doc, node);
  ls_text_diag (code, doc->name, doc->text, offset_of (doc, node, place), diags, *pointer ? pointer : "/",
                hint, message);
}

bool
ls_json_doc_diag (const LsJsonDoc *doc, const cJSON *node, LsJsonPlace place, LsDiagList *diags,
                  const char *hint, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  add_diag (doc, LS_ERROR_INPUT, node, place, diags, hint, message);
  return false;
}

void
ls_json_doc_diag_code (const LsJsonDoc *doc, LsErrorCode code, const cJSON *node, LsJsonPlace place,
                       LsDiagList *diags, const char *hint, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  add_diag (doc, code, node, place, diags, hint, message);
}

const cJSON *
ls_json_at (const cJSON *object, const char *path)
{
  g_auto (GStrv) keys = g_strsplit (path, ".", -1);
  for (char **key = keys; *key && object; key++)
    object = cJSON_GetObjectItemCaseSensitive (object, *key);
  return object;
}

const cJSON *
ls_json_doc_at (const LsJsonDoc *doc, const char *path)
{
  return ls_json_at (ls_json_doc_root (doc), path);
}

const char *
ls_json_text (const cJSON *object, const char *key)
{
  return cJSON_GetStringValue (cJSON_GetObjectItemCaseSensitive (object, key));
}

#define MAX_QUOTED 40

char *
ls_json_describe (const cJSON *node)
{
  if (cJSON_IsNumber (node)) {
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    return g_strconcat ("the number ", g_ascii_formatd (number, sizeof number, "%.15g", node->valuedouble),
                        NULL);
  }
  if (cJSON_IsString (node)) {
    if (g_utf8_strlen (node->valuestring, -1) <= MAX_QUOTED)
      return g_strdup_printf ("\"%s\"", node->valuestring);
    g_autofree char *cut = g_utf8_substring (node->valuestring, 0, MAX_QUOTED);
    return g_strdup_printf ("\"%s...\"", cut);
  }
  return g_strdup (cJSON_IsObject (node)      ? "an object"
                       : cJSON_IsArray (node) ? "an array"
                       : cJSON_IsTrue (node)  ? "true"
                       : cJSON_IsFalse (node) ? "false"
                                              : "null");
}

/* --- loading ------------------------------------------------------------------ */

/* Whether the bytes can be a JSON text at all. */
static bool
check_bytes (const char *text, size_t n, const char *name, LsDiagList *diags)
{
  if (!ls_text_check (text, n, name, "JSON text", diags))
    return false;
  if (text[strspn (text, " \t\r\n")] == '\0') {
    ls_diag_add (diags, LS_ERROR_INPUT, name, 1, 1, NULL, NULL, NULL, "empty file; expected a JSON object");
    return false;
  }
  return true;
}

static bool
check_syntax (const char *text, const char *name, LsDiagList *diags)
{
  LsJsonFault fault;
  if (ls_json_scan (text, &fault))
    return true;
  const char *hint = text[strspn (text, " \t\r\n")] != '{' ? ls_lookalike_hint (text) : NULL;
  ls_text_diag (LS_ERROR_INPUT, name, text, fault.offset, diags, NULL, hint ? hint : fault.hint,
                fault.message);
  g_free (fault.message);
  return false;
}

static void
report_duplicate (const LsJsonDoc *doc, const cJSON *first, const cJSON *again, LsDiagList *diags)
{
  if (ls_diag_list_n (diags) >= LS_DIAG_MAX_SHOWN) {
    ls_json_doc_diag (doc, again, LS_JSON_AT_KEY, diags, NULL, "duplicate key");
    return;
  }
  int line, col;
  ls_json_doc_locate (doc, first, LS_JSON_AT_KEY, &line, &col);
  ls_json_doc_diag (doc, again, LS_JSON_AT_KEY, diags, NULL, "duplicate key; first defined at %d:%d", line,
                    col);
}

static void
check_duplicates (const LsJsonDoc *doc, const cJSON *node, LsDiagList *diags)
{
  g_autoptr (GHashTable) seen = cJSON_IsObject (node) ? g_hash_table_new (g_str_hash, g_str_equal) : NULL;
  for (const cJSON *c = node->child; c; c = c->next) {
    const cJSON *first = seen ? g_hash_table_lookup (seen, c->string) : NULL;
    if (first)
      report_duplicate (doc, first, c, diags);
    else if (seen)
      g_hash_table_insert (seen, c->string, (gpointer) c);
    check_duplicates (doc, c, diags);
  }
}

/* All strings and keys; places are found by counting, not by name. */
static void
make_printable (cJSON *node)
{
  for (cJSON *c = node; c; c = c->next) {
    ls_make_printable (c->string);
    ls_make_printable (c->valuestring);
    make_printable (c->child);
  }
}

static bool
build_tree (LsJsonDoc *doc, LsDiagList *diags)
{
  const char *end = NULL;
  doc->root = cJSON_ParseWithLengthOpts (doc->text, strlen (doc->text) + 1, &end, 1);
  if (!doc->root) {
    ls_text_diag (LS_ERROR_INPUT, doc->name, doc->text, end ? (size_t) (end - doc->text) : 0, diags, NULL,
                  NULL, "cannot parse from here");
    return false;
  }
  guint n_before = ls_diag_list_n (diags);
  check_duplicates (doc, doc->root, diags);
  make_printable (doc->root);
  return ls_diag_list_n (diags) == n_before;
}

LsJsonDoc *
ls_json_doc_parse (const char *text, size_t n, const char *name, LsDiagList *diags)
{
  if (n > LS_MAX_INPUT_BYTES) {
    ls_diag_add (diags, LS_ERROR_INPUT, name, 0, 0, NULL, NULL, NULL,
                 "larger than %zu MiB; expected a smaller file", LS_MAX_INPUT_BYTES >> 20);
    return NULL;
  }
  g_autoptr (LsJsonDoc) doc = g_new0 (LsJsonDoc, 1);
  doc->n_refs = 1;
  doc->name = g_strdup (name);
  doc->text = g_malloc (n + 1);
  if (n > 0)
    memcpy (doc->text, text, n);
  doc->text[n] = '\0';
  if (!check_bytes (doc->text, n, name, diags))
    return NULL;
  ls_json_blank_infinities (doc->text);
  if (!check_syntax (doc->text, name, diags) || !build_tree (doc, diags))
    return NULL;
  return g_steal_pointer (&doc);
}

LsJsonDoc *
ls_json_doc_parse_given (const char *text, const char *name, LsDiagList *diags)
{
  LsJsonDoc *doc = ls_json_doc_parse (text, strlen (text), name, diags);
  if (doc)
    doc->is_given = true;
  return doc;
}

LsJsonDoc *
ls_json_doc_load (const char *path, LsDiagList *diags)
{
  size_t n = 0;
  g_autofree char *text = ls_read_file (path, LS_MAX_INPUT_BYTES, &n, diags);
  return text ? ls_json_doc_parse (text, n, path, diags) : NULL;
}

bool
ls_json_is_given (const char *text)
{
  return *text == '{';
}

LsJsonDoc *
ls_json_doc_load_or_given (const char *path, const char *name, LsDiagList *diags)
{
  return ls_json_is_given (path) ? ls_json_doc_parse_given (path, name, diags)
                                 : ls_json_doc_load (path, diags);
}

bool
ls_json_doc_is_given (const LsJsonDoc *doc)
{
  return doc->is_given;
}

LsJsonDoc *
ls_json_doc_part (const LsJsonDoc *doc, const cJSON *node, const char *name)
{
  LsJsonDoc *part = g_new (LsJsonDoc, 1), *whole = ls_json_doc_ref (doc->whole ? doc->whole : doc);
  *part = (LsJsonDoc) { 1,           g_strdup (name ? name : doc->name),
                        whole->text, (cJSON *) node,
                        whole,       doc->is_given };
  return part;
}

/* --- changing ----------------------------------------------------------------- */

/* Its text; of a part blank up to there, so that places are those of the whole. */
static char *
own_text (const LsJsonDoc *doc)
{
  if (!doc->whole)
    return g_strdup (doc->text);
  size_t from = offset_of (doc, doc->root, LS_JSON_AT_VALUE);
  char *text = g_strndup (doc->text, (gsize) (skip_value (doc->text + from) - doc->text));
  for (char *p = text; p < text + from; p++)
    *p = *p == '\n' ? '\n' : ' ';
  return text;
}

/* With `text` in place of n bytes at `at`. */
static LsJsonDoc *
splice (LsJsonDoc *doc, size_t at, size_t n, const char *text, LsDiagList *diags)
{
  g_autofree char *own = own_text (doc);
  g_autoptr (GString) all = g_string_new_len (own, (gssize) at);
  g_string_append (all, text);
  g_string_append (all, own + at + n);
  LsJsonDoc *changed = ls_json_doc_parse (all->str, all->len, doc->name, diags);
  if (changed)
    changed->is_given = doc->is_given;
  ls_json_doc_free (doc);
  return changed;
}

LsJsonDoc *
ls_json_doc_replace (LsJsonDoc *doc, const cJSON *node, const char *text, LsDiagList *diags)
{
  size_t at = offset_of (doc, node, LS_JSON_AT_VALUE);
  return splice (doc, at, (size_t) (skip_value (doc->text + at) - doc->text) - at, text, diags);
}

LsJsonDoc *
ls_json_doc_insert (LsJsonDoc *doc, const cJSON *object, const char *members, LsDiagList *diags)
{
  g_autofree char *text = g_strconcat (members, object->child ? ", " : "", NULL);
  return splice (doc, offset_of (doc, object, LS_JSON_AT_VALUE) + 1, 0, text, diags);
}

LsJsonDoc *
ls_json_doc_remove (LsJsonDoc *doc, const cJSON *node, LsDiagList *diags)
{
  const char *key = doc->text + offset_of (doc, node, LS_JSON_AT_KEY),
             *end = skip_blanks (skip_value (doc->text + offset_of (doc, node, LS_JSON_AT_VALUE)));
  if (*end == ',')
    end++;
  else /* the last: with the comma before it, if it has one */
    while (key > doc->text && *key != '{' && *key != ',')
      key--;
  if (*key == '{')
    key++;
  return splice (doc, (size_t) (key - doc->text), (size_t) (end - key), "", diags);
}

LsJsonDoc *
ls_json_doc_ref (const LsJsonDoc *doc)
{
  LsJsonDoc *same = (LsJsonDoc *) doc;
  g_atomic_int_inc (&same->n_refs);
  return same;
}

void
ls_json_doc_free (LsJsonDoc *doc)
{
  if (!doc || !g_atomic_int_dec_and_test (&doc->n_refs))
    return;
  if (doc->whole)
    ls_json_doc_free (doc->whole);
  else {
    cJSON_Delete (doc->root);
    g_free (doc->text);
  }
  g_free (doc->name);
  g_free (doc);
}

const cJSON *
ls_json_doc_root (const LsJsonDoc *doc)
{
  return doc->root;
}

bool
ls_json_doc_unexpected (const LsJsonDoc *doc, const cJSON *node, LsDiagList *diags, const char *expected)
{
  g_autofree char *got = ls_json_describe (node);
  return ls_json_doc_diag (doc, node, LS_JSON_AT_VALUE, diags, NULL, "expected %s; got %s", expected, got);
}

const char *
ls_json_doc_name (const LsJsonDoc *doc)
{
  return doc->name;
}

char *
ls_json_doc_sha256 (const LsJsonDoc *doc)
{
  g_autofree char *own = own_text (doc);
  return g_compute_checksum_for_string (G_CHECKSUM_SHA256, own, -1);
}

char *
ls_json_doc_stem (const LsJsonDoc *doc)
{
  const char *member = strrchr (doc->name, '#');
  g_autofree char *base = member ? g_strdup (member + 1) : g_path_get_basename (doc->name);
  if (g_str_has_suffix (base, ".json"))
    base[strlen (base) - strlen (".json")] = '\0';
  return ls_printable (base);
}

/* --- files that are kept for who asks again ------------------------------------------------------------- */

#define MAX_KEPT       64
#define MAX_KEPT_BYTES (1 << 20)
#define SETTLED_S      2 /* a file that was written so lately may change again without another time */

typedef struct {
  struct stat of;
  LsJsonDoc *doc;
} Kept;

static void
kept_free (gpointer kept)
{
  ls_json_doc_free (((Kept *) kept)->doc);
  g_free (kept);
}

static bool
is_unchanged (const struct stat *a, const struct stat *b)
{
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size
      && a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void
keep (GHashTable *all, const char *path, const struct stat *of, LsJsonDoc *doc)
{
  bool is_settled = time (NULL) - of->st_mtim.tv_sec > SETTLED_S;
  if (!is_settled || !S_ISREG (of->st_mode) || of->st_size > MAX_KEPT_BYTES)
    return;
  Kept *kept = g_new (Kept, 1);
  *kept = (Kept) { *of, ls_json_doc_ref (doc) };
  if (g_hash_table_size (all) >= MAX_KEPT)
    g_hash_table_remove_all (all);
  g_hash_table_replace (all, g_strdup (path), kept);
}

LsJsonDoc *
ls_json_doc_load_kept (const char *path, LsDiagList *diags)
{
  static GMutex lock;
  static GHashTable *all; /* path to Kept */
  struct stat now;
  if (stat (path, &now) != 0)
    return ls_json_doc_load (path, diags);
  g_mutex_lock (&lock);
  LS_TAKE_OVER (&lock);
  if (!all)
    all = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, kept_free);
  const Kept *kept = g_hash_table_lookup (all, path);
  bool is_kept = kept && is_unchanged (&kept->of, &now);
  LsJsonDoc *doc = is_kept ? ls_json_doc_ref (kept->doc) : ls_json_doc_load (path, diags);
  if (doc && !is_kept)
    keep (all, path, &now, doc);
  LS_HAND_OVER (&lock);
  g_mutex_unlock (&lock);
  return doc;
}
