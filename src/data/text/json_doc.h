/* data/text/json_doc.h — a JSON document that can say where each of its nodes stands.
 *
 * cJSON keeps no positions. A node is found again by counting, as the text is read once more (json_pull.h),
 * only when a diagnostic is printed: a good file pays nothing for it.
 *
 * Infinity and -Infinity, which Python writes, are null. A document that loads has no duplicate keys, no NUL
 * bytes, valid UTF-8 and at most LS_JSON_MAX_DEPTH levels; every diagnostic is LS_ERROR_INPUT. */
#ifndef LS_DATA_TEXT_JSON_DOC_H
#define LS_DATA_TEXT_JSON_DOC_H

#include <cjson/cJSON.h>
#include <glib.h>
#include <stdbool.h>

#include "data/text/json_pull.h"
#include "data/text/text_place.h"

typedef struct LsJsonDoc LsJsonDoc;

/* NULL and at least one diagnostic on failure. Duplicate keys are all reported. */
LsJsonDoc *ls_json_doc_load (const char *path, LsDiagList *diags);

/* The same for a file that is asked for many times, such as one of facts: it is parsed once as long as it
 * stays as it is. member: of its object "members" only that one is read, if it is there; NULL: all. */
LsJsonDoc *ls_json_doc_load_kept (const char *path, const char *member, LsDiagList *diags);

/* The same for n bytes of memory; name stands for the path in diagnostics and
 * gives the stem. The text is copied. */
LsJsonDoc *ls_json_doc_parse (const char *text, size_t n, const char *name, LsDiagList *diags);

/* The same, as that dialect has it; ls_json_doc_parse() reads LS_JSON_PYTHON. */
LsJsonDoc *ls_json_doc_parse_as (const char *text, size_t n, const char *name, LsJsonDialect dialect,
                                 LsDiagList *diags);

/* What is given in place of a path or name may be the JSON itself: then it begins with '{'. */
bool ls_json_is_given (const char *text);
/* The same for such a text. name: what stands for it in diagnostics, and gives the stem. */
LsJsonDoc *ls_json_doc_parse_given (const char *text, const char *name, LsDiagList *diags);
bool ls_json_doc_is_given (const LsJsonDoc *doc);
/* Of a path, or given. */
LsJsonDoc *ls_json_doc_load_or_given (const char *path, const char *name, LsDiagList *diags);

/* A document does not change: it may be of several, also of several threads, each of which frees it. */
LsJsonDoc *ls_json_doc_ref (const LsJsonDoc *doc);
void ls_json_doc_free (LsJsonDoc *doc); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsJsonDoc, ls_json_doc_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (cJSON, cJSON_Delete)

/* The document that one of its objects is, with the same places. name: of it; NULL: the same. */
LsJsonDoc *ls_json_doc_part (const LsJsonDoc *doc, const cJSON *node, const char *name);
const cJSON *ls_json_doc_root (const LsJsonDoc *doc); /* borrowed, never NULL */
const char *ls_json_doc_name (const LsJsonDoc *doc);  /* path or name, borrowed */

char *ls_json_doc_sha256 (const LsJsonDoc *doc); /* of its text, newly allocated */

/* "a100" of "topologies/gpu/a100.json", "l40s" of "topologies/gpu/workstation.set.json#l40s"; newly
 * allocated. */
char *ls_json_doc_stem (const LsJsonDoc *doc);

typedef enum { LS_JSON_AT_VALUE, LS_JSON_AT_KEY } LsJsonPlace;

/* 1-based line and column (in code points) of a node of this document or of its
 * key; nodes without a key give their value. */
void ls_json_doc_locate (const LsJsonDoc *doc, const cJSON *node, LsJsonPlace place, int *ret_line,
                         int *ret_col);

/* The same of all elements of a list, in one walk. */
typedef struct {
  int line, col;
} LsJsonSpot;
void ls_json_doc_locate_all (const LsJsonDoc *doc, const cJSON *list, LsJsonSpot *ret_spots);

/* JSON Pointer (RFC 6901), newly allocated; "" for the root. */
char *ls_json_doc_pointer (const LsJsonDoc *doc, const cJSON *node);

/* Appends a diagnostic that points at node; the root is shown as "/". hint may be
 * NULL. Returns false, as what complains does. */
bool ls_json_doc_diag (const LsJsonDoc *doc, const cJSON *node, LsJsonPlace place, LsDiagList *diags,
                       const char *hint, const char *format, ...) G_GNUC_PRINTF (6, 7);

/* The same at the value, without a hint. */
bool ls_json_doc_wrong (const LsJsonDoc *doc, const cJSON *node, LsDiagList *diags, const char *format, ...)
    G_GNUC_PRINTF (4, 5);

/* The same of a value that is not what is expected: "expected WHAT; got a list". */
bool ls_json_doc_unexpected (const LsJsonDoc *doc, const cJSON *node, LsDiagList *diags,
                             const char *expected);

/* The same with a hint, and another code than LS_ERROR_INPUT. */
bool ls_json_doc_diag_code (const LsJsonDoc *doc, LsErrorCode code, const cJSON *node, LsDiagList *diags,
                            const char *hint, const char *format, ...) G_GNUC_PRINTF (6, 7);

/* A document that is looked at for mistakes of this kind. */
typedef struct {
  const LsJsonDoc *doc;
  LsDiagList *diags;
  guint n_wrong;
} LsJsonCheck;
void ls_json_complain (LsJsonCheck *check, const cJSON *node, const char *format, ...) G_GNUC_PRINTF (3, 4);

/* The document with another text in place of a value, or with members more at the front
 * of an object (`"key": value, ...`). Takes doc: frees it. NULL and diagnostics if the result is no
 * document. */
LsJsonDoc *ls_json_doc_replace (LsJsonDoc *doc, const cJSON *node, const char *text, LsDiagList *diags);
LsJsonDoc *ls_json_doc_insert (LsJsonDoc *doc, const cJSON *object, const char *members, LsDiagList *diags);

/* The document without one key of an object. Takes doc; NULL and diagnostics as above. */
LsJsonDoc *ls_json_doc_remove (LsJsonDoc *doc, const cJSON *node, LsDiagList *diags);

/* What keys with dots between lead to, "node.nics.link", of a list numbers, "rows.0.time_us", from the root
 * or from an object, which may be NULL; NULL: it is not there. */
const cJSON *ls_json_doc_at (const LsJsonDoc *doc, const char *path);
const cJSON *ls_json_at (const cJSON *object, const char *path);

/* Of a member of an object; NULL: it is not there, or no text. */
const char *ls_json_text (const cJSON *object, const char *key);

/* What a node is, for "...; got %s": `the number 400`, `"abc"` (cut at 40
 * characters), `an object`. Newly allocated. */
char *ls_json_describe (const cJSON *node);

#endif
