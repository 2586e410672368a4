/* data/text/json_pull.h — JSON (RFC 8259) read front to back, a token at a time, from a file that need not
 * fit into memory, or from a text: strict, and exact about where and why not.
 *
 *     while ((token = ls_json_pull_next (p)) != LS_TOKEN_END && token != LS_TOKEN_BAD) ...
 *
 * What is kept is one token and a bit for each open container. cJSON, for comparison, takes
 * some 64 bytes for each value, and the whole text besides. */
#ifndef LS_DATA_TEXT_JSON_PULL_H
#define LS_DATA_TEXT_JSON_PULL_H

#include <stdbool.h>

#include "data/text/read_file.h"

typedef enum {
  LS_TOKEN_OBJECT,
  LS_TOKEN_OBJECT_END,
  LS_TOKEN_ARRAY,
  LS_TOKEN_ARRAY_END,
  LS_TOKEN_KEY, /* its value comes next */
  LS_TOKEN_STRING,
  LS_TOKEN_NUMBER,
  LS_TOKEN_WORD, /* true, false, null    */
  LS_TOKEN_END,  /* of the document      */
  LS_TOKEN_BAD,  /* for good; ls_json_pull_complain() says why */
} LsJsonToken;

#define LS_JSON_MAX_DEPTH     64
#define LS_JSON_PULL_MAX_TEXT ((size_t) 16 << 20) /* bytes of a string */

typedef struct LsJsonPull LsJsonPull;

/* Takes input. name: of the file, in diagnostics. */
LsJsonPull *ls_json_pull_new (LsInput *input, const char *name);
void ls_json_pull_free (LsJsonPull *p); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsJsonPull, ls_json_pull_free)

LsJsonToken ls_json_pull_next (LsJsonPull *p);
/* Of a key, string (without quotes and escapes), number or word; until the next token. What is
 * no UTF-8 has become U+FFFD. */
const char *ls_json_pull_text (LsJsonPull *p);
/* Passes over a value of which `token` is the first; false: what comes is bad. */
bool ls_json_pull_skip (LsJsonPull *p, LsJsonToken token);

/* "the number 3", "an object": for "...; got %s". Newly allocated. */
char *ls_json_pull_describe (LsJsonPull *p, LsJsonToken token);

/* Where the last token began; lines and columns (code points) from 1. */
typedef struct {
  int line, col;
  size_t offset; /* of a text */
} LsJsonWhere;
LsJsonWhere ls_json_pull_where (const LsJsonPull *p);

/* Adds a diagnostic of LS_ERROR_INPUT at a place. hint may be NULL. */
void ls_json_pull_diag (const LsJsonPull *p, LsJsonWhere where, LsDiagList *diags, const char *hint,
                        const char *format, ...) G_GNUC_PRINTF (5, 6);
/* Why the last token was bad. */
void ls_json_pull_complain (const LsJsonPull *p, LsDiagList *diags);

/* --- texts --------------------------------------------------------------------------------------------- */

typedef enum {
  LS_JSON_STRICT,
  LS_JSON_PYTHON, /* Infinity and -Infinity, which Python writes where it has one, are null */
  /* Comments ("//", "#", of C) and commas behind the last item are passed over, as Hjson does, which
   * DeepSpeed loads; words without quotes (BATCH_SIZE, ${MICRO}) are texts "${BATCH_SIZE}", "${MICRO}" */
  LS_JSON_BY_HAND,
} LsJsonDialect;

/* text: NUL-terminated valid UTF-8, borrowed. */
LsJsonPull *ls_json_pull_of_text (const char *text, LsJsonDialect dialect);
/* Behind the last token of a text, in bytes. */
size_t ls_json_pull_behind (const LsJsonPull *p);

/* Why the last token of a text was bad; borrowed. */
typedef struct {
  size_t offset;              /* of the offending byte */
  const char *message, *hint; /* hint: NULL if there is none */
} LsJsonFault;
LsJsonFault ls_json_pull_fault (const LsJsonPull *p);

#endif
