/* data/python/python_parts.h — what the parts of the reader of Python share (private to python/). */
#ifndef LS_DATA_PYTHON_PYTHON_PARTS_H
#define LS_DATA_PYTHON_PYTHON_PARTS_H

#include <stdbool.h>

#include "base/list.h"
#include "data/python/python.h"

typedef enum { PYTHON_NAME, PYTHON_NUMBER, PYTHON_TEXT, PYTHON_MARK, PYTHON_END } PythonTokenKind;

/* Where something is written. */
typedef struct {
  const char *path;
  guint line;
} PythonSpot;

typedef struct {
  PythonTokenKind kind;
  const char *at;
  gsize n;
  const char *word; /* all of it, owned by the reader; "": at the end */
  PythonSpot spot;
  guint passed;              /* the round in which what begins here was not followed last */
  bool is_raw, is_formatted; /* of a text: r"", f"" */
  const char *inside;        /* of a text: behind its quotes */
  gsize n_inside;
} PythonToken;

/* A logical line: brackets hold their lines together, and what stands behind ";" or behind "if a:" is one
 * of its own. */
typedef struct {
  guint first, n, indent, module;
} PythonLine;

/* What is open is a hole, a name that means nothing here, or what is called that is not here. */
typedef enum {
  PYTHON_IS_NONE,
  PYTHON_IS_BOOL,
  PYTHON_IS_NUMBER,
  PYTHON_IS_TEXT,
  PYTHON_IS_NAME,
  PYTHON_IS_HOLE,
  PYTHON_IS_LIST,
  PYTHON_IS_TUPLE,
  PYTHON_IS_DICTIONARY,
  PYTHON_IS_CALL, /* what a class makes, or a function that is not here */
  PYTHON_IS_FUNCTION,
  PYTHON_IS_CLASS
} PythonKind;

/* Names and members may be the same value: what is changed of it is so in all. Its texts are the reader's. */
typedef struct {
  PythonKind kind;
  bool is_float;    /* of a number */
  bool is_held;     /* by a name, or by another value */
  double number;    /* of a truth 0 or 1 */
  const char *text; /* of a text; a name; how a hole is written; what is called; how a function is called */
  GPtrArray *items; /* PythonValue *: of a list, members, arguments, usual parameters; NULL: there are none */
  GPtrArray *keys;  /* char *, of members and arguments, "0" without a name */
  guint line;       /* of a function or a class: where it begins */
} PythonValue;

/* A file. */
typedef struct {
  const char *path;
  GHashTable *values;  /* name -> PythonValue *: what it sets */
  GHashTable *imports; /* name -> what it is imported for     */
  GPtrArray *imported; /* char *: a.b.c, of "from a.b.c import" */
  guint first_line, end_line;
  bool is_run;
} PythonModule;

struct LsPython {
  GStringChunk *texts; /* all that are not of the files themselves */
  GArray *modules;     /* of PythonModule */
  GArray *tokens;      /* of PythonToken; a line ends with PYTHON_END */
  GArray *lines;       /* of PythonLine  */
  GPtrArray *values;   /* PythonValue *: all that are made */
  /* Of the value that is being found: */
  guint n_items, depth;
  PythonSpot spot;
  GPtrArray *passed;         /* char *: places of what is not followed */
  guint round;               /* of finding what is not followed */
  GHashTable *set_variables; /* name -> PythonValue *: what the files set of the environment */
  LsPythonFound found;
  char *why; /* what is wrong; NULL: nothing is */
  PythonSpot where;
};

#define PYTHON_MAX_ITEMS 100000 /* that it makes */

/* Where one stands, and what names mean there. */
typedef struct {
  LsPython *python;
  GHashTable *names; /* name -> PythonValue * of the function; NULL: of the file */
  guint module;
  guint at; /* a token */
} PythonPlace;

/* --- python.c -------------------------------------------------------------------------------------- */

const PythonToken *python_token (const PythonPlace *x);
/* One of these words and marks, with blanks between; passes over it. */
bool python_is (const PythonToken *t, const char *words);
bool python_take (PythonPlace *x, const char *words);
/* Where one of these marks stands next, outside of the brackets that open before; the end of the line: there
 * is none. */
guint python_next (const PythonPlace *x, const char *ends);
/* n letters, without marks of control and letters that are not ASCII; the caller frees it. */
char *python_shown (const char *at, gsize n);

const PythonLine *python_line (const LsPython *p, guint i);
const PythonToken *python_first (const LsPython *p, const PythonLine *line);
/* Whether it is "if", "for" or the like. */
bool python_is_block (const LsPython *p, guint i);
/* Behind line i and what is further in. */
guint python_block_end (const LsPython *p, guint i);
/* Whether lines from i to `end` only import, refuse or tell; those of a function may also return, and set
 * names of its own, others stand under conditions. */
bool python_only_tells (const LsPython *p, guint i, guint end, bool is_function);
/* Whether a function that begins in line i has control flow, or what else is not followed; the first one is
 * noted. */
bool python_is_program (LsPython *p, guint i);
/* Behind the "(" of the parameters of a function, a token, where one begins in this line; 0: none does. */
guint python_parameters_of (const LsPython *p, const PythonLine *line);

/* Expressions and calls within each other; false behind the last: python_fail() was called. */
bool python_enter (LsPython *p, PythonSpot spot);
/* The first fault counts. */
void python_fail (LsPython *p, PythonSpot spot, const char *why);
/* What begins with a token is not followed; once in each round. */
void python_pass (LsPython *p, guint first);

PythonModule *python_module (const LsPython *p, guint i);
/* What a name means; NULL: nothing here. */
PythonValue *python_lookup (const PythonPlace *x, const char *name);

/* --- python_expression.c --------------------------------------------------------------------------- */

/* text: of a text, a name, a hole, or what is called so, else NULL. */
PythonValue *python_new (LsPython *p, PythonKind kind, const char *text);
/* A number, or a truth. */
PythonValue *python_scalar (LsPython *p, PythonKind kind, double number, bool is_float);
/* How many items or members it has; NULL allowed. */
guint python_n (const PythonValue *of);
/* A member, an argument or an item by its key; NULL: there is none. */
PythonValue *python_get (const PythonValue *of, const char *key);
/* Sets an item under a key of the reader's; one that is there is replaced in its place, or, to_end, is the
 * last then. */
void python_set (PythonValue *to, const char *key, PythonValue *item, bool to_end);
/* Those of another value, from one on. */
void python_merge (PythonValue *to, const PythonValue *from, guint first, bool to_end);
/* It is a hole from now on. */
void python_open (LsPython *p, PythonValue *v, const char *text);
bool python_is_list (const PythonValue *v);
/* A list, a dictionary or an object, which can be changed. */
bool python_is_mutable (const PythonValue *v);
/* The caller frees it; python_fail() may be called. */
cJSON *python_json (LsPython *p, const PythonValue *v);

/* What stands from a token on, up to here. */
PythonValue *python_hole (PythonPlace *x, guint first);
const char *python_hole_text (const PythonPlace *x, guint first, guint end);
/* A call of what is called so, behind "(", up to behind ")". */
PythonValue *python_arguments (PythonPlace *x, const char *callee);
/* With all operators. */
PythonValue *python_expression (PythonPlace *x);
/* The same, of "a, b" without brackets a tuple. */
PythonValue *python_several (PythonPlace *x);
/* Of "+" and its kin; NULL: that is not known. */
PythonValue *python_arithmetic (LsPython *p, const char *mark, const PythonValue *a, const PythonValue *b);

/* A parameter, from its mark on. */
typedef struct {
  const char *name;   /* NULL: "*", "/" */
  bool is_all;        /* "*a", "**a"    */
  bool is_named;      /* "**a"          */
  bool has_usual;     /* "a=1"          */
  PythonValue *usual; /* NULL: it has none, or that is not asked for */
} PythonParameter;

/* False: there is none, or none that is followed. */
bool python_read_parameter (PythonPlace *x, bool asks_usual, PythonParameter *ret);
/* What a function gives; NULL: the arguments do not fit. */
PythonValue *python_run_function (LsPython *p, const PythonValue *function, const PythonValue *call);
/* int, float of a number or of a text that is one; NULL: it is not known. */
PythonValue *python_converted (LsPython *p, bool is_float, const PythonValue *of);

/* --- python_statements.c --------------------------------------------------------------------------- */

/* The lines from one on, up to another: what they return, NULL: nothing. names: of a function; NULL: of the
 * file. */
PythonValue *python_run_lines (LsPython *p, guint first, guint end, GHashTable *names);
/* The statements of a file, once. */
void python_run_module (LsPython *p, guint module);

#endif
