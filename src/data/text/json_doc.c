#include "data/text/json_doc.h"

#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/handover.h"
#include "base/printable.h"
#include "data/text/lookalike.h"
#include "data/text/read_file.h"

struct LsJsonDoc {
  gint n_refs;
  char *name;
  char *text; /* NUL-terminated */
  cJSON *root;
  LsJsonDoc *whole; /* that it is a part of, which has its text and its nodes; NULL: it is whole */
  bool is_given;    /* in place of a file */
  LsJsonDialect dialect;
};

/* --- finding a node again ----------------------------------------------------- */

/* How many nodes stand in front of one; false: it is not there. */
static bool
count_to (const cJSON *at, const cJSON *node, guint *n)
{
  if (at == node)
    return true;
  for (const cJSON *c = at->child; c; c = c->next) {
    ++*n;
    if (count_to (c, node, n))
      return true;
  }
  return false;
}

/* Reads the text again, up to a node, whose first token *ret_token is; *ret_key: where its key stands, or the
 * node itself. */
static LsJsonPull *
pull_to (const LsJsonDoc *doc, const cJSON *node, LsJsonToken *ret_token, LsJsonWhere *ret_key)
{
  guint n = 0;
  if (!count_to (doc->whole ? doc->whole->root : doc->root, node, &n))
    g_error ("json: a node of another document");
  LsJsonPull *p = ls_json_pull_of_text (doc->text, doc->dialect);
  LsJsonToken before = LS_TOKEN_END;
  for (;; before = *ret_token) {
    *ret_token = ls_json_pull_next (p);
    if (before != LS_TOKEN_KEY)
      *ret_key = ls_json_pull_where (p);
    bool is_end = *ret_token == LS_TOKEN_OBJECT_END || *ret_token == LS_TOKEN_ARRAY_END;
    if (*ret_token != LS_TOKEN_KEY && !is_end && n-- == 0)
      return p;
  }
}

/* Bytes of the text: where a node and its key begin, and where it ends. */
typedef struct {
  size_t key, at, end;
} Span;

static Span
span_of (const LsJsonDoc *doc, const cJSON *node)
{
  LsJsonToken token;
  LsJsonWhere key;
  g_autoptr (LsJsonPull) p = pull_to (doc, node, &token, &key);
  Span span = { key.offset, ls_json_pull_where (p).offset };
  ls_json_pull_skip (p, token);
  span.end = ls_json_pull_behind (p);
  return span;
}

static LsJsonWhere
where_is (const LsJsonDoc *doc, const cJSON *node, LsJsonPlace place)
{
  LsJsonToken token;
  LsJsonWhere key;
  g_autoptr (LsJsonPull) p = pull_to (doc, node, &token, &key);
  return place == LS_JSON_AT_KEY ? key : ls_json_pull_where (p);
}

void
ls_json_doc_locate (const LsJsonDoc *doc, const cJSON *node, LsJsonPlace place, int *ret_line, int *ret_col)
{
  LsJsonWhere where = where_is (doc, node, place);
  *ret_line = where.line;
  *ret_col = where.col;
}

void
ls_json_doc_locate_all (const LsJsonDoc *doc, const cJSON *list, LsJsonSpot *ret_spots)
{
  LsJsonToken token;
  LsJsonWhere key;
  g_autoptr (LsJsonPull) p = pull_to (doc, list, &token, &key);
  for (const cJSON *c = list->child; c; c = c->next) {
    token = ls_json_pull_next (p);
    token = token == LS_TOKEN_KEY ? ls_json_pull_next (p) : token;
    LsJsonWhere where = ls_json_pull_where (p);
    *ret_spots++ = (LsJsonSpot) { where.line, where.col };
    ls_json_pull_skip (p, token);
  }
}

/* Appends the way from one node to another; false: it does not lead there. */
static bool
append_way (GString *pointer, const cJSON *at, const cJSON *node)
{
  int k = 0;
  for (const cJSON *c = at == node ? NULL : at->child; c; c = c->next, k++) {
    const gsize n = pointer->len;
    g_string_append_c (pointer, '/');
    for (const char *key = c->string; key && *key; key++)
      g_string_append_printf (pointer, *key == '~' ? "~0" : *key == '/' ? "~1" : "%c", *key);
    if (!c->string)
      g_string_append_printf (pointer, "%d", k);
    if (append_way (pointer, c, node))
      return true;
    g_string_truncate (pointer, n);
  }
  return at == node;
}

char *
ls_json_doc_pointer (const LsJsonDoc *doc, const cJSON *node)
{
  GString *pointer = g_string_new (NULL);
  if (!append_way (pointer, doc->root, node))
    g_error ("json: a node of another document");
  return g_string_free (pointer, FALSE);
}

/* --- diagnostics -------------------------------------------------------------- */

/* Beyond what is ever shown, a place is not worth a walk through the file: a
 * million mistakes must not cost a million walks. */
G_GNUC_PRINTF (7, 0)
static void
add_diag (const LsJsonDoc *doc, LsErrorCode code, const cJSON *node, LsJsonPlace place, LsDiagList *diags,
          const char *hint, const char *format, va_list args)
{
  g_autofree char *message = g_strdup_vprintf (format, args);
  if (ls_diag_list_n (diags) >= LS_DIAG_MAX_SHOWN) {
    ls_file_diag (diags, code, doc->name, hint, "%s", message);
    return;
  }
  g_autofree char *pointer = ls_json_doc_pointer (doc, node);
  ls_text_diag (code, doc->name, doc->text, where_is (doc, node, place).offset, diags,
                *pointer ? pointer : "/", hint, message);
}

bool
ls_json_doc_diag (const LsJsonDoc *doc, const cJSON *node, LsJsonPlace place, LsDiagList *diags,
                  const char *hint, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  add_diag (doc, LS_ERROR_INPUT, node, place, diags, hint, format, args);
  va_end (args);
  return false;
}

bool
ls_json_doc_wrong (const LsJsonDoc *doc, const cJSON *node, LsDiagList *diags, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  add_diag (doc, LS_ERROR_INPUT, node, LS_JSON_AT_VALUE, diags, NULL, format, args);
  va_end (args);
  return false;
}

bool
ls_json_doc_diag_code (const LsJsonDoc *doc, LsErrorCode code, const cJSON *node, LsDiagList *diags,
                       const char *hint, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  add_diag (doc, code, node, LS_JSON_AT_VALUE, diags, hint, format, args);
  va_end (args);
  return false;
}

void
ls_json_complain (LsJsonCheck *check, const cJSON *node, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  add_diag (check->doc, LS_ERROR_INPUT, node, LS_JSON_AT_VALUE, check->diags, NULL, format, args);
  va_end (args);
  check->n_wrong++;
}

const cJSON *
ls_json_at (const cJSON *object, const char *path)
{
  g_auto (GStrv) keys = g_strsplit (path, ".", -1);
  for (char **key = keys; *key && object; key++)
    object = !cJSON_IsArray (object) ? cJSON_GetObjectItemCaseSensitive (object, *key)
        : g_ascii_isdigit (**key)    ? cJSON_GetArrayItem (object, atoi (*key))
                                     : NULL;
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

/* What begins with a token; NULL: it is bad. */
static cJSON *
build (LsJsonPull *p, LsJsonToken token)
{
  bool is_object = token == LS_TOKEN_OBJECT;
  if (token == LS_TOKEN_STRING)
    return cJSON_CreateString (ls_json_pull_text (p));
  if (token == LS_TOKEN_NUMBER)
    return cJSON_CreateNumber (g_ascii_strtod (ls_json_pull_text (p), NULL));
  if (token == LS_TOKEN_WORD) {
    const char first = *ls_json_pull_text (p);
    return first == 'n' ? cJSON_CreateNull () : cJSON_CreateBool (first == 't');
  }
  if (!is_object && token != LS_TOKEN_ARRAY)
    return NULL;
  cJSON *node = is_object ? cJSON_CreateObject () : cJSON_CreateArray ();
  while ((token = ls_json_pull_next (p)) != LS_TOKEN_OBJECT_END && token != LS_TOKEN_ARRAY_END) {
    g_autofree char *key = token == LS_TOKEN_KEY ? g_strdup (ls_json_pull_text (p)) : NULL;
    cJSON *item = build (p, key ? ls_json_pull_next (p) : token);
    if (!item) {
      cJSON_Delete (node);
      return NULL;
    }
    if (key)
      cJSON_AddItemToObject (node, key, item);
    else
      cJSON_AddItemToArray (node, item);
  }
  return node;
}

static bool
build_tree (LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (LsJsonPull) p = ls_json_pull_of_text (doc->text, doc->dialect);
  doc->root = build (p, ls_json_pull_next (p));
  if (doc->root && ls_json_pull_next (p) == LS_TOKEN_END)
    return true;
  const LsJsonFault fault = ls_json_pull_fault (p);
  const char *hint = doc->text[strspn (doc->text, " \t\r\n")] != '{' ? ls_lookalike_hint (doc->text) : NULL;
  ls_text_diag (LS_ERROR_INPUT, doc->name, doc->text, fault.offset, diags, NULL, hint ? hint : fault.hint,
                fault.message);
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

LsJsonDoc *
ls_json_doc_parse_as (const char *text, size_t n, const char *name, LsJsonDialect dialect, LsDiagList *diags)
{
  if (n > LS_MAX_INPUT_BYTES) {
    ls_file_diag (diags, LS_ERROR_INPUT, name, NULL, "larger than %zu MiB; expected a smaller file",
                  LS_MAX_INPUT_BYTES >> 20);
    return NULL;
  }
  g_autoptr (LsJsonDoc) doc = g_new0 (LsJsonDoc, 1);
  doc->n_refs = 1;
  doc->dialect = dialect;
  doc->name = g_strdup (name);
  doc->text = g_strndup (n > 0 ? text : "", n);
  if (!check_bytes (doc->text, n, name, diags) || !build_tree (doc, diags))
    return NULL;
  const guint n_before = ls_diag_list_n (diags);
  check_duplicates (doc, doc->root, diags);
  return ls_diag_list_n (diags) == n_before ? g_steal_pointer (&doc) : NULL;
}

LsJsonDoc *
ls_json_doc_parse (const char *text, size_t n, const char *name, LsDiagList *diags)
{
  return ls_json_doc_parse_as (text, n, name, LS_JSON_PYTHON, diags);
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
  *part = (LsJsonDoc) {
    1, g_strdup (name ? name : doc->name), whole->text, (cJSON *) node, whole, doc->is_given, doc->dialect
  };
  return part;
}

/* --- changing ----------------------------------------------------------------- */

/* Its text; of a part blank up to there, so that places are those of the whole. */
static char *
own_text (const LsJsonDoc *doc)
{
  if (!doc->whole)
    return g_strdup (doc->text);
  const Span span = span_of (doc, doc->root);
  char *text = g_strndup (doc->text, span.end);
  for (char *p = text; p < text + span.at; p++)
    *p = *p == '\n' ? '\n' : ' ';
  return text;
}

/* With `text` in place of what stands from one byte to another. */
static LsJsonDoc *
splice (LsJsonDoc *doc, size_t from, size_t to, const char *text, LsDiagList *diags)
{
  g_autofree char *own = own_text (doc);
  g_autoptr (GString) all = g_string_new_len (own, (gssize) from);
  g_string_append (all, text);
  g_string_append (all, own + to);
  LsJsonDoc *changed = ls_json_doc_parse_as (all->str, all->len, doc->name, doc->dialect, diags);
  if (changed)
    changed->is_given = doc->is_given;
  ls_json_doc_free (doc);
  return changed;
}

LsJsonDoc *
ls_json_doc_replace (LsJsonDoc *doc, const cJSON *node, const char *text, LsDiagList *diags)
{
  const Span span = span_of (doc, node);
  return splice (doc, span.at, span.end, text, diags);
}

LsJsonDoc *
ls_json_doc_insert (LsJsonDoc *doc, const cJSON *object, const char *members, LsDiagList *diags)
{
  g_autofree char *text = g_strconcat (members, object->child ? ", " : "", NULL);
  const size_t at = span_of (doc, object).at + 1;
  return splice (doc, at, at, text, diags);
}

LsJsonDoc *
ls_json_doc_remove (LsJsonDoc *doc, const cJSON *node, LsDiagList *diags)
{
  Span span = span_of (doc, node);
  span.end += strspn (doc->text + span.end, " \t\r\n");
  if (doc->text[span.end] == ',')
    span.end++;
  else /* the last: with the comma before it, if it has one */
    while (doc->text[span.key] != '{' && doc->text[span.key] != ',')
      span.key--;
  span.key += doc->text[span.key] == '{';
  return splice (doc, span.key, span.end, "", diags);
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
  return ls_json_doc_wrong (doc, node, diags, "expected %s; got %s", expected, got);
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

/* Behind a string, object or list that begins there. */
static char *
after_value (char *at)
{
  int depth = 0;
  do {
    if (*at == '"')
      for (at++; *(at += strcspn (at, "\"\\")) == '\\';)
        at += at[1] ? 2 : 1;
    depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
    at += *at != '\0';
    at += depth > 0 ? strcspn (at, "\"{}[]") : 0;
  } while (*at && depth > 0);
  return at;
}

/* Of blanks and commas the blanks, of other text the ends of lines: so places are right. */
static char *
copy_blanks (char *out, const char *from, const char *to, const char *which)
{
  while ((from += strcspn (from, which)) < to)
    *out++ = *from++;
  return out;
}

/* Takes all members of "members" but one, an object, out of a text, so that they need not be parsed. NULL,
 * and some of it is gone: it is not there. */
static char *
leave_member (char *text, const char *member)
{
  const char *const blanks = " \t\r\n,:", *quoted = "\"members\"";
  char *at = strstr (text, quoted), *found = NULL;
  at = at ? at + strlen (quoted) + strspn (at + strlen (quoted), blanks) : NULL;
  char *out = at && *at == '{' ? ++at : NULL;
  while (out) {
    char *key = at + strspn (at, blanks), *end = after_value (key), *value = end + strspn (end, blanks);
    if (*key != '"' || *value != '{')
      break;
    char *next = after_value (value);
    bool is_it
        = (gsize) (end - key) == strlen (member) + 2 && strncmp (key + 1, member, strlen (member)) == 0;
    out = copy_blanks (out, at, key, " \t\r\n");
    if (is_it)
      found = memmove (out, key, (gsize) (next - key));
    out = is_it ? out + (next - key) : copy_blanks (out, key, next, "\n");
    at = next;
  }
  if (!found)
    return NULL;
  memmove (out, at, strlen (at) + 1);
  return text;
}

/* member: NULL: of the whole. */
static LsJsonDoc *
load_member (const char *path, const char *member, LsDiagList *diags)
{
  g_autofree char *text = NULL;
  bool is_one = member && g_file_get_contents (path, &text, NULL, NULL) && leave_member (text, member);
  return is_one ? ls_json_doc_parse (text, strlen (text), path, diags) : ls_json_doc_load (path, diags);
}

LsJsonDoc *
ls_json_doc_load_kept (const char *path, const char *member, LsDiagList *diags)
{
  g_autofree char *key = member ? g_strconcat (path, "#", member, NULL) : g_strdup (path);
  static GMutex lock;
  static GHashTable *all; /* path to Kept */
  struct stat now;
  if (stat (path, &now) != 0)
    return load_member (path, member, diags);
  g_mutex_lock (&lock);
  LS_TAKE_OVER (&lock);
  if (!all)
    all = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, kept_free);
  const Kept *kept = g_hash_table_lookup (all, key);
  bool is_kept = kept && is_unchanged (&kept->of, &now);
  LsJsonDoc *doc = is_kept ? ls_json_doc_ref (kept->doc) : load_member (path, member, diags);
  if (doc && !is_kept)
    keep (all, key, &now, doc);
  LS_HAND_OVER (&lock);
  g_mutex_unlock (&lock);
  return doc;
}
