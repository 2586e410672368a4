/* data/python/python.h — configurations in Python: what a file sets a name to, or a function returns.
 *
 * Some programs are configured in Python: "def big (): c = small (); c.training.steps = 2 * 8; return c" and
 * "trainer = Config (training=Training (steps=16))". That much is read; nothing is run.
 *
 *     Config (steps=16)      an object of the arguments by name; "()" is what is called, "0", "1" are
 *                            arguments without a name. replace (x, a=1) is x with another a
 *     [1, 2], (1, *a), {1}   arrays; {"a": 1}, dict (a=1) an object; numbers, texts, True, False and None are
 *                            themselves
 *     2 * 8, "a" "b"         + - * / // % ** of numbers, + of texts; == != of both; f"{a.b}" of
 *                            names that are known
 *     a[-1], d["a"]          what is in that place, or under that key
 *     c.training.steps = 16  a member is set, and made where there was none; d["a"] = 1 of a dictionary;
 *                            n += 1
 *     a, b.c = f ()          each gets its part; of what is not known, a part that is not known
 *     c.a = a; a.n = 1       names, members and items may be one object: what is changed in it is so in all
 *     big (), big (2)        what that function returns whose body assigns, calls and returns
 *     Small (n=1), Small.n   of a class of the files, with what its body and its bases declare, also by
 *                            field (default_factory=lambda: [1])
 *     x, x.y                 what it was set to in the function or in the file, else its name as a text
 *     Path (__file__).with_name ("a")   a file beside the one that this stands in, as a text
 *     os.environ["A"] = "1"  the environment is set, and never asked: what it says is not known
 *
 * What takes more (other functions of Python, other conditions, comprehensions, what is not known) is a text
 * that is one hole, as of data/shell/shell.h, with its first words and what names in it were set to, and
 * decides nothing. Statements that are not followed (blocks of a file, what is set in other ways than above,
 * methods that change what is known, calls of unknown functions with an object that has a name) are named
 * with their places, and what they set is a hole; unless they only import or raise. A function with control
 * flow is a program, which is to be run, not read. */
#ifndef LS_DATA_PYTHON_PYTHON_H
#define LS_DATA_PYTHON_PYTHON_H

#include <cjson/cJSON.h>
#include <glib.h>
#include <stdbool.h>

#include "base/diag.h"

typedef struct LsPython LsPython;

/* Begins a line of a text behind which stands another file, from its first line on: its path up to the end
 * of the line. Places are named so. */
#define LS_PYTHON_FILE "#\001file "

/* n bytes; name stands for the path in diagnostics. NULL and a diagnostic (LS_ERROR_INPUT) for a text or a
 * bracket that does not end. text outlives it. */
LsPython *ls_python_new (const char *text, gsize n, const char *name, LsDiagList *diags);
/* One more file, that those before it may import from: "from a.b.c import f" means the one whose path ends
 * most like a/b/c.py, of those that have f. False and a diagnostic as above; text outlives it. */
bool ls_python_add (LsPython *python, const char *text, gsize n, const char *name, LsDiagList *diags);
void ls_python_free (LsPython *python); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsPython, ls_python_free)

/* What the file of that number imports from, "a.b.c", in its order; char *, owned by it. */
const GPtrArray *ls_python_imports (const LsPython *python, guint file);
/* What is found in files; owned by the reader.
 * functions: char *, those of the first file that can be called without an argument, in its order.
 * program: the place of a function that was called last and is a program, of which nothing was followed;
 * NULL: none was. Of such a one ls_python_value() gives no diagnostic.
 * file_passed: char *, what of the statements at the start of lines was not followed when it was last
 * evaluated; as what ls_python_value() adds.
 * options: those that ls_python_start() found declared, by their names without dashes, with what each is
 * where the command does not say it.
 * engine: the file that it hands to deepspeed.initialize as its configuration, a hole where it makes one,
 * null where it hands over none; NULL: it does not call that. */
typedef struct {
  GPtrArray *functions, *file_passed;
  char *program;
  cJSON *options, *engine;
} LsPythonFound;

const LsPythonFound *ls_python_found (const LsPython *python);

/* What a function of the first file returns; the caller frees it with cJSON_Delete(). passed: to which is
 * added, char *, what was not followed, each place once, as PATH:LINE "STATEMENT"; NULL: it is not asked for.
 * NULL and a diagnostic (LS_ERROR_INPUT) if it returns nothing, is malformed, calls itself, or makes too
 * much. */
cJSON *ls_python_value (LsPython *python, const char *function, GPtrArray *passed, LsDiagList *diags);
/* The same of what the first file sets a name to, its statements one after the other; NULL and a diagnostic
 * if it sets no such name. */
cJSON *ls_python_name (LsPython *python, const char *name, GPtrArray *passed, LsDiagList *diags);

/* Reads the first file as a program: its options, and what it sets at the start of lines. */
void ls_python_start (LsPython *python);
/* What it set of the environment when it was last evaluated, names to texts, which are replaced or removed; a
 * value that is not known is a hole. */
void ls_python_add_variables (const LsPython *python, GHashTable *variables);

#endif
