/* data/python/python_parts.h — what the parts of the reader of Python share, from words to expressions
 * (private to python/). */
#ifndef LS_DATA_PYTHON_PYTHON_PARTS_H
#define LS_DATA_PYTHON_PYTHON_PARTS_H

#include <stdbool.h>

#include "data/python/python.h"

typedef enum { PYTHON_NAME, PYTHON_NUMBER, PYTHON_TEXT, PYTHON_MARK, PYTHON_END } PythonTokenKind;

typedef struct {
  PythonTokenKind kind;
  const char *at;
  gsize n;
  guint line;
  guint inner;    /* of f"{a}": the first token of its expressions; 0: they are not known */
  bool is_passed; /* what begins here is among those that are not followed */
} PythonToken;

/* A logical line: brackets hold their lines together, and what stands behind ";" or behind "if a:" is one
 * of its own. */
typedef struct {
  guint first, n, indent, module;
} PythonLine;

/* A file. */
typedef struct {
  char *path;
  GHashTable *values;  /* name -> cJSON *: what it sets                   */
  GHashTable *imports; /* name -> what it is imported for                 */
  GPtrArray *imported; /* char *: a.b.c, of "from a.b.c import"           */
} PythonModule;

/* A statement that is not followed, or a part of one. */
typedef struct {
  guint first, module; /* a token, and its file */
} PythonPassed;

/* Of the first file, from a line on. */
typedef struct {
  guint line, from;
  char *path;
} PythonPasted;

/* A loop that is left, or goes on with its next round; open: one of them, or neither. */
typedef enum { PYTHON_STAYS, PYTHON_BREAK, PYTHON_CONTINUE, PYTHON_OPEN_LEAP } PythonLeap;

/* What a function returns that is called from a file; NULL: nothing. arguments: an object by name and place,
 * of which some are taken; NULL: there are none. */
typedef cJSON *PythonCall (LsPython *python, guint module, const char *name, cJSON *arguments, guint line);

/* What objects of a class of the files have, by name; NULL: there is none, or that is not known. The caller
 * frees it. */
typedef cJSON *PythonMembers (LsPython *python, guint module, const char *name);

struct LsPython {
  GArray *modules;        /* of PythonModule */
  GArray *pasted;         /* of PythonPasted */
  GPtrArray *file_passed; /* char * */
  GArray *tokens;         /* of PythonToken; a line ends with PYTHON_END */
  GArray *lines;          /* of PythonLine  */
  GPtrArray *functions;
  /* Of the value that is being found: */
  guint n_items, n_rounds, depth;
  guint n_classes;            /* whose bodies are being read, one within the other */
  GArray *passed;             /* of PythonPassed: what is not followed */
  guint n_open;               /* blocks that are not followed, and return something */
  guint n_unknown;            /* what is not known, and may raise an exception */
  guint n_tries, raise;       /* "try" around what is run; the token of a "raise" in it that is run, or 0 */
  guint n_loops;              /* around what is run */
  PythonLeap leap;            /* out of the innermost of them */
  bool is_statement;          /* a call for what it does is read */
  bool is_called;             /* its arguments fitted the function */
  PythonCall *call;           /* python_call(), which runs statements */
  PythonMembers *members;     /* python_members_of(), which does, too */
  GArray *running;            /* of guint: the lines in which functions begin that are called */
  GPtrArray *frames;          /* GHashTable *: the names of each function that is called */
  int n_objects;              /* numbers of them, of python_identity.c */
  LsPythonVariable *variable; /* of the environment; NULL: nobody knows it */
  gpointer variable_data;
  GHashTable *usual;          /* "TOKEN" of a parameter -> cJSON *: what it usually is */
  GHashTable *set_variables;  /* name -> cJSON *: what the files set */
  bool is_environment_open;   /* they set some that are not known    */
  bool is_script;             /* the first file is what is started */
  const GPtrArray *arguments; /* char *: words of the command; NULL: they are not known */
  cJSON *options;             /* by their names: what they usually are */
  cJSON *engine;       /* what deepspeed.initialize is handed as its configuration; NULL: it is not called */
  char *why;           /* what is wrong; NULL: nothing is */
  guint where, module; /* a line, of the file that is evaluated */
};

#define PYTHON_MAX_ROUNDS 1000   /* of all loops of a value */
#define PYTHON_MAX_ITEMS  100000 /* that it makes */

/* Where one stands, and what names mean there. */
typedef struct {
  LsPython *python;
  GHashTable *names; /* name -> cJSON * of the function; NULL: of the file */
  guint module;
  guint at; /* a token */
} PythonPlace;

/* item NULL: a name that means nothing here, which may be called. */
typedef struct {
  cJSON *item;
  char *name;
} PythonValue;

/* NULL, a name that means nothing here, and what was not evaluated are open: neither true nor false. */
typedef enum { PYTHON_FALSE, PYTHON_TRUE, PYTHON_OPEN } PythonTruth;

/* --- python_tokens.c ------------------------------------------------------------------------------- */

const PythonToken *python_token (const PythonPlace *x);
bool python_is (const PythonToken *t, const char *text);
bool python_take (PythonPlace *x, const char *text);
/* Letters in front of a quote, r"", f'', rb""; 0: there are none, or no text begins so. */
gsize python_text_prefix (const char *at);
/* Whether a text has the letter in front, in either case. */
bool python_has_prefix (const PythonToken *t, char letter);
/* What a text says, without its quotes; a part of it of n letters; how many letters its quotes have. */
void python_append_text (GString *out, const PythonToken *t);
void python_append_part (GString *out, const PythonToken *t, const char *at, gsize n);
gsize python_text_quotes (const PythonToken *t);
/* Passes over the rest in brackets, up to the one that ends it. */
void python_pass_to (PythonPlace *x, const char *end);
/* n letters, without marks of control and letters that are not ASCII; the caller frees it. */
char *python_shown (const char *at, gsize n);
/* Adds the lines of a text of n bytes, of the last file. False: python_fail() was called. */
bool python_scan (LsPython *p, const char *text, gsize n);

/* --- python_lines.c -------------------------------------------------------------------------------- */

const PythonLine *python_line (const LsPython *p, guint i);
/* Whether a line begins with one of these words. */
bool python_starts (const LsPython *p, const PythonLine *line, const char *const *words);
/* Whether it is "if", "for" or the like. */
bool python_is_block (const LsPython *p, const PythonLine *line);
/* Behind line i and what is further in. */
guint python_block_end (const LsPython *p, guint i);
/* Whether line i or one of those further in begins with one of these words. */
bool python_block_has (const LsPython *p, guint i, const char *const *words);
/* Whether line i is of the same block as an earlier one, and begins with one of these words. */
bool python_goes_on (const LsPython *p, guint i, const PythonLine *first, const char *const *words);

/* --- python_passed.c ------------------------------------------------------------------------------- */

/* Expressions and calls within each other; false behind the last: python_fail() was called. */
bool python_enter (LsPython *p, guint line);
/* A fault if it has made too much. */
void python_check_items (LsPython *p, guint line);
/* The first fault counts. */
void python_fail (LsPython *p, guint line, const char *why);
GArray *python_pasted_new (void);
/* What begins with a token is not followed; once for each token. */
void python_pass (LsPython *p, guint module, guint first);
/* Forgets all but the first n of these. */
void python_forget_passed (LsPython *p, guint n);
/* Appends all of these, char *; keeps them as those of the files. */
void python_add_passed (const LsPython *p, GPtrArray *passed);
void python_keep_passed (LsPython *p);
/* What is wrong, once. */
void python_refuse (LsPython *p, LsDiagList *diags);

/* --- python_values.c ------------------------------------------------------------------------------- */

bool python_is_open (const cJSON *item);
/* Whether some of what it holds is: it is neither like nor unlike another. */
bool python_holds_open (const cJSON *item);
/* A text that is known, not the name of something. */
bool python_is_text (const cJSON *item);
/* Whether nothing is known of what it is: what is open, a name that means nothing here, and what a function
 * returns that is not here. What a class makes is true, and not None. */
bool python_is_unknown (const cJSON *item);
PythonTruth python_truth_of (const cJSON *item);
/* a == b. */
PythonTruth python_is_same (const cJSON *a, const cJSON *b);
/* What Python tells apart and JSON does not: marks in cJSON's type, which it copies and has no use for. */
typedef enum { PYTHON_FLOAT = 1 << 12, PYTHON_TUPLE = 1 << 13, PYTHON_SET = 1 << 14 } PythonKind;
bool python_is_kind (const cJSON *item, PythonKind kind);
cJSON *python_number (double value, bool is_float);
/* Whether an object is a dictionary, and not what an unknown function makes. */
bool python_is_dictionary (const cJSON *item);
/* A key as the name of a member: a text as it is, else as "(8)" and "(\"a\",1)", which no argument of a call
 * has. NULL: it is not known, or is no key. The caller frees it. */
char *python_key_of (const cJSON *key);
/* Whether a dictionary has a key; open: it is none. */
PythonTruth python_has_key (const cJSON *dictionary, const cJSON *key);
/* Sets a member as the last, or what stands under a key in its place; item is taken. */
void python_set_member (cJSON *object, const char *name, cJSON *item);
void python_set_key (cJSON *dictionary, const char *key, cJSON *item);
/* A member of an object, which is taken. */
cJSON *python_taken (cJSON *object, const char *name);
/* What stands in a list under a key as python_key_of() has it, "(-1)"; NULL: nothing. */
cJSON *python_item_at (const cJSON *list, const char *key);
/* Sets that; item is taken. */
void python_set_item (cJSON *list, const char *key, cJSON *item);
typedef enum { PYTHON_KEYS, PYTHON_VALUES, PYTHON_PAIRS } PythonDictionaryPart;
/* An array of them, which the caller frees; NULL: it has keys that are not texts, or arguments without a
 * name. */
cJSON *python_parts_of (const cJSON *dictionary, PythonDictionaryPart part);

/* --- python_modules.c ------------------------------------------------------------------------------ */

guint python_add_module (LsPython *p, const char *path);
PythonModule *python_module (const LsPython *p, guint i);
void python_module_clear (gpointer module);
/* Of a line "from a.b.c import f as g". */
void python_add_imports (LsPython *p, const PythonLine *line);
/* The file that a name comes from in the end, of those that have it; *name is what it is called there. n:
 * it is none of them. */
guint python_follow (const LsPython *p, guint module, const char **name,
                     bool has (const LsPython *, guint, const char *));
/* The line in which a function begins that has this name in a file; n lines: there is none. */
guint python_find_function (const LsPython *p, guint module, const char *name);
/* What a name was set to, for a file; NULL: to nothing. */
cJSON *python_imported_value (const LsPython *p, guint module, const char *name);
/* The name of a function that begins in this line, newly allocated, if it can be called without an argument;
 * NULL: none does, or it cannot. */
char *python_function_of (LsPython *p, const PythonLine *line);
bool python_has_function (const LsPython *p, guint module, const char *name);
/* In that file itself; the line, the last of that name. */
bool python_defines (const LsPython *p, guint module, const char *name);
guint python_function_line (const LsPython *p, guint module, const char *name);
/* Behind the "(" of the parameters of a function, a token, where one begins in this line; 0: none does. */
guint python_parameters_of (const LsPython *p, const PythonLine *line);
/* Passes over a parameter's type, or over its usual value. */
void python_pass_type (PythonPlace *x);

/* --- python_identity.c ----------------------------------------------------------------------------- */

/* Gives an object, an array or a hole a number that its copies keep; a name likewise, which is a
 * text. */
void python_identify (LsPython *p, cJSON *item);
void python_identify_name (LsPython *p, cJSON *item);
/* Whether a name or a member of one is the same object. */
bool python_is_shared (const LsPython *p, const cJSON *item);
/* Sets a member of an object, or, without `set`, adds to an array, in all copies of it; item is copied.
 * False: item holds it. */
bool python_set_part (PythonPlace *x, cJSON *holder, const char *name, cJSON *item,
                      void set (cJSON *, const char *, cJSON *));
/* Makes a text and its copies an object that is called so; makes what may be shared and its copies a hole. */
void python_make_object (LsPython *p, cJSON *text);
void python_make_hole (LsPython *p, cJSON *item, const cJSON *hole);

/* --- python_expression.c --------------------------------------------------------------------------- */

/* As python_take(), and a fault if it is not there. */
bool python_expect (PythonPlace *x, const char *text);
PythonValue python_value_of (PythonPlace *x, cJSON *item);
/* Takes v; the caller frees it. */
cJSON *python_item_of (PythonPlace *x, PythonValue v);
void python_drop (PythonValue v);
/* In the place of v, which is taken, from a token on. */
PythonValue python_hole_of (PythonPlace *x, PythonValue v, guint first);
/* A value with its members and calls. */
PythonValue python_operand (PythonPlace *x);
/* Of a call, behind "(", up to behind ")". How many are names that mean nothing here. */
guint python_arguments (PythonPlace *x, cJSON *call);

/* --- python_containers.c ---------------------------------------------------------------------------- */

/* A copy is counted. */
PythonValue python_copy_of (PythonPlace *x, const cJSON *item);
/* The members of a dictionary, "**kwargs", as arguments by name or members. */
void python_spread (PythonPlace *x, cJSON *to, const cJSON *object);
/* "a" or "*b" of a list. False: b is not known, and left out. */
bool python_add_item (PythonPlace *x, cJSON *list);
/* "f (a) for a in b if a > 1", of which f (a), or "k: v" of a dictionary, begins at a token and "for" stands
 * here, up to `end`: an array or an object. NULL: it is not known, and nothing is passed over. n_passed: how
 * many statements were named before the body. */
cJSON *python_made_of_each (PythonPlace *x, guint body, const char *end, bool is_dictionary, guint n_passed);
/* Of [ ], ( ) and { } without keys, behind the bracket. */
PythonValue python_items (PythonPlace *x, const char *end, bool is_tuple);
/* Behind "{". Keys are texts, numbers, tuples, True, False and None. */
PythonValue python_dictionary (PythonPlace *x);
/* What stands in v under a key, behind "["; takes v, which begins with a token. */
PythonValue python_subscript (PythonPlace *x, PythonValue v, guint first);
/* Behind "[", up to behind "]"; NULL: it is not known. The caller frees it. */
cJSON *python_key (PythonPlace *x);

/* --- python_operators.c ---------------------------------------------------------------------------- */

/* With all operators. */
PythonValue python_any (PythonPlace *x);
/* The same without "a if b else c". */
PythonValue python_either (PythonPlace *x);
/* a and b with a mark between them, from a token on. Takes both. */
PythonValue python_arithmetic (PythonPlace *x, const PythonToken *mark, PythonValue a, PythonValue b,
                               guint first);
/* What an expression is; after python_fail() anything. The caller frees it. */
cJSON *python_expression (PythonPlace *x);
/* The same, of "a, b" without brackets an array. */
cJSON *python_tuple (PythonPlace *x);
/* Takes item, which stands from a token on. */
cJSON *python_hole (PythonPlace *x, cJSON *item, guint first);
/* Whether an expression is; *ret_is_open: that is not known. */
bool python_is_true (PythonPlace *x, bool *ret_is_open);

/* --- python_builtins.c ----------------------------------------------------------------------------- */

/* getattr, hasattr, isinstance (x, str), int, float, str, bool, max, min, range, those of python_sequences.c,
 * and os.environ.get where the environment is known: what a call of it gives, with its arguments, of which
 * n_names are names that mean nothing here; NULL: that is not known. */
bool python_is_builtin (const LsPython *p, const char *name);
cJSON *python_answer (const LsPython *p, const char *name, const cJSON *call, guint n_names);
/* The same of a method of a text or a dictionary: "lower", "get". */
cJSON *python_method (const cJSON *of, const char *name, const cJSON *call);

/* --- python_texts.c -------------------------------------------------------------------------------- */

/* What a method of a text gives; NULL: that is not known. The caller frees it. */
cJSON *python_text_method (const char *text, const char *name, const cJSON *call);

/* --- python_format.c ------------------------------------------------------------------------------- */

/* What str () makes of a value; as a format has it, "03d", "" for none. NULL: that is not known. The caller
 * frees it. */
char *python_written (const cJSON *of);
char *python_formatted (const cJSON *of, const char *format);
/* "%s" % a. As above. */
cJSON *python_percent (const char *text, const cJSON *of);

/* --- python_sequences.c ---------------------------------------------------------------------------- */

/* What a call gives, with its arguments; NULL: that is not known. The caller frees it. */
typedef cJSON *PythonMake (const cJSON *call);
/* zip, sorted, dict and others of that name; NULL: it is none of them. */
PythonMake *python_sequence_function (const char *name);
/* What a list, a tuple or a dictionary holds in its order, an array; NULL: it is none of them. The caller
 * frees it. */
cJSON *python_list_of (const cJSON *of);

/* --- python_options.c ------------------------------------------------------------------------------ */

/* Whether an object takes the words of a command apart. */
bool python_is_parser (const cJSON *item);
/* Whether a function that is not here adds options to its first argument, which it returns. */
bool python_adds_options (const char *function, const cJSON *call);
/* Whether the last step of a path is a method that declares options. */
bool python_declares (const GPtrArray *path);
/* A call of such a method, with its arguments. False: it is another object. */
bool python_declare (PythonPlace *x, cJSON *parser, const char *method, const cJSON *call);
/* What another method of it gives, in an expression that begins with a token; NULL: that is not known.
 * Where the command is not known, what options usually are, and the expression is named. */
cJSON *python_parse (const PythonPlace *x, const cJSON *parser, const char *method, const cJSON *call,
                     guint first);

/* A call of what is not here: keeps the configuration if it is deepspeed.initialize. */
void python_note_engine (LsPython *p, const char *function, const cJSON *call);

/* --- python_environment.c -------------------------------------------------------------------------- */

/* Whether a name is that of the environment, os.environ, and that is known. */
bool python_is_environment (const LsPython *p, const char *name);
/* Whether it is os.environ.get or os.getenv. */
bool python_asks_environment (const LsPython *p, const char *name);
/* How many of the first n steps of a path are os.environ; 0: it is something else. */
guint python_environment_in (const GPtrArray *path, guint n);
/* A variable is set to a text, to null, which is nothing, or to what is not known; value is taken. name NULL:
 * it is not known which one. */
void python_set_variable (LsPython *p, const char *name, cJSON *value);
void python_forget_variables (LsPython *p);
/* A variable of it; NULL: it is not set, or not known. */
cJSON *python_variable (const LsPython *p, const cJSON *name);
PythonTruth python_has_variable (const LsPython *p, const cJSON *name);
/* What os.environ.get gives; NULL: that is not known. */
cJSON *python_variable_or (const LsPython *p, const cJSON *call);

/* --- python_paths.c -------------------------------------------------------------------------------- */

/* 'c.training.options["a"]': char *, a name, then members and keys; NULL is a key that is not known. */

/* Adds what stands here to a path. False: it is none. evaluates: keys are; else they are known where they are
 * written as a text or a number. */
bool python_read_path (PythonPlace *x, GPtrArray *path, bool evaluates);
/* A key as a step of it; the caller frees it. */
char *python_step_of_key (const char *key);
/* The names among which one is: of the function, or of the file where that has none or says "global". */
GHashTable *python_names_with (const PythonPlace *x, const char *name);
/* "global a, b" in a function. */
void python_add_globals (PythonPlace *x);
/* Whether its name was set, here or in a file. */
bool python_is_set (const PythonPlace *x, const GPtrArray *path);
/* What stands there after n of its steps, borrowed; NULL: nothing, or that is not known. */
cJSON *python_at_path (const PythonPlace *x, const GPtrArray *path, guint n);
/* Puts item, which is taken, there. What is between is made where there was none. If it is not known what is
 * set, the statement that begins at the token `start` is named, and what it is a part of is a hole. */
void python_set_path (PythonPlace *x, const GPtrArray *path, guint n, cJSON *item, guint start);

/* What n of its steps lead to is a hole; if it has more, all that is the same object. */
void python_open_path (PythonPlace *x, const GPtrArray *path, guint n, const cJSON *hole, guint start);
/* Whether its last step is a method that changes what it is called of. */
bool python_is_change (const GPtrArray *path);
/* What that is called of is a hole from now on, and the statement named that begins at the token `start`. */
void python_open_change (PythonPlace *x, const GPtrArray *path, guint start);

#endif
