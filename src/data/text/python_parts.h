/* data/text/python_parts.h — what the parts of the reader of Python share (private to text/). */
#ifndef LS_DATA_TEXT_PYTHON_PARTS_H
#define LS_DATA_TEXT_PYTHON_PARTS_H

#include <stdbool.h>

#include "data/text/python_config.h"

typedef enum { PYTHON_NAME, PYTHON_NUMBER, PYTHON_TEXT, PYTHON_MARK, PYTHON_END } PythonTokenKind;

typedef struct {
  PythonTokenKind kind;
  const char *at;
  gsize n;
  guint line;
} PythonToken;

/* A logical line: brackets hold their lines together. */
typedef struct {
  guint first, n, indent;
} PythonLine;

struct LsPython {
  char *path;
  GArray *tokens; /* of PythonToken; a line ends with PYTHON_END */
  GArray *lines;  /* of PythonLine  */
  GPtrArray *functions;
  GHashTable *values;  /* name -> cJSON *: what the file sets */
  GHashTable *aliases; /* name -> char *: the one that it is imported for */
  /* Of the value that is being found: */
  guint n_items, n_passed, depth;
  bool is_statement; /* a call for what it does to its first argument is read */
  cJSON *first;      /* what the last call made of its first argument; NULL: it had none */
  char *why;         /* what is wrong; NULL: nothing is */
  guint where;
};

/* Where one stands, and what names mean there. */
typedef struct {
  LsPython *python;
  GHashTable *names; /* name -> cJSON * of the function; NULL: of the file */
  guint at;          /* a token */
} PythonPlace;

/* Expressions and calls within each other; false behind the last: python_fail() was called. */
bool python_enter (LsPython *p, guint line);

/* The first fault counts. */
void python_fail (LsPython *p, guint line, const char *why);

/* --- python_expression.c --------------------------------------------------------------------------- */

const PythonToken *python_token (const PythonPlace *x);
bool python_is (const PythonToken *t, const char *text);
bool python_take (PythonPlace *x, const char *text);
/* Letters in front of a quote, r"", f'', rb""; 0: there are none, or no text begins so. */
gsize python_text_prefix (const char *at);
/* Passes over the rest in brackets, up to the one that ends it. */
void python_pass_to (PythonPlace *x, const char *end);
/* What an expression is; after python_fail() anything. The caller frees it. */
cJSON *python_expression (PythonPlace *x);
/* Takes item, which stands from a token on. */
cJSON *python_hole (PythonPlace *x, cJSON *item, guint first);
void python_set_member (cJSON *object, const char *name, cJSON *item);

/* --- python_config.c ------------------------------------------------------------------------------- */

extern const char *const python_blocks[]; /* what begins a statement that decides, to a NULL */

const PythonLine *python_line (const LsPython *p, guint i);
/* Whether a line begins with one of these words. */
bool python_starts (const LsPython *p, const PythonLine *line, const char *const *words);
/* What a statement returns; NULL: it does not. names: those of the function; NULL: of the file. */
cJSON *python_statement (LsPython *p, const PythonLine *line, GHashTable *names);

/* --- python_functions.c ---------------------------------------------------------------------------- */

/* The name of a function that begins in this line, newly allocated, if it can be called without an argument;
 * NULL: none does, or it cannot. */
char *python_function_of (const LsPython *p, const PythonLine *line);
bool python_has_function (const LsPython *p, const char *name);
/* Whether a call of it is followed: as a statement always, else if nothing in it is decided, or it takes
 * nothing. */
bool python_is_followed (const LsPython *p, const char *name, bool is_bare, bool is_statement);
/* What a function returns; NULL: nothing. arguments: an object by name and place, of which some are taken;
 * NULL: there are none. */
cJSON *python_call (LsPython *p, const char *name, cJSON *arguments, guint line);
/* replace (x, a=1): what a call of it is, which is taken. */
cJSON *python_replaced (cJSON *call);

#endif
