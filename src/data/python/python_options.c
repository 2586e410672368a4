/* data/python/python_options.c — what a command says to a program in Python: argparse, and HfArgumentParser
 * of Hugging Face, whose options are members of dataclasses.
 *
 *     parser = argparse.ArgumentParser ()
 *     parser.add_argument ("--layers", type=int, default=32)
 *     args = parser.parse_args ()      args.layers is what the command says, else 32
 *
 * A parser is an object, whose member CALLS holds what was declared; a group of options is the same object.
 * How words are taken is that of Python's argparse: the last of an option holds, and the begin of its name
 * is enough. */
#include <string.h>

#include "data/python/python_parts.h"
#include "data/shell/shell.h"

#define CALLS "add_argument" /* which is a method of it, and so no member */

static const cJSON *
in (const cJSON *object, const char *name)
{
  return cJSON_GetObjectItemCaseSensitive (object, name);
}

/* The last part of the name of a class or a function, "argparse.ArgumentParser"; "": it is none. */
static const char *
name_in (const cJSON *item)
{
  const char *name = cJSON_GetStringValue (item), *dot = name ? strrchr (name, '.') : NULL;
  return dot ? dot + 1 : name ? name : "";
}

bool
python_is_parser (const cJSON *item)
{
  static const char *const classes[] = { "ArgumentParser", "HfArgumentParser", NULL };
  return cJSON_IsObject (item) && g_strv_contains (classes, name_in (in (item, "()")));
}

/* "deepspeed.add_config_arguments (parser)". */
bool
python_adds_options (const char *function, const cJSON *call)
{
  const char *dot = strrchr (function, '.');
  return g_str_has_prefix (dot ? dot + 1 : function, "add_") && python_is_parser (in (call, "0"));
}

bool
python_declares (const GPtrArray *path)
{
  const char *last = path->len > 1 ? path->pdata[path->len - 1] : NULL;
  return g_strcmp0 (last, "add_argument") == 0 || g_strcmp0 (last, "set_defaults") == 0;
}

bool
python_declare (PythonPlace *x, cJSON *parser, const char *method, const cJSON *call)
{
  if (!python_is_parser (parser))
    return false;
  cJSON *declared = cJSON_Duplicate (call, true), *calls = cJSON_CreateArray ();
  cJSON_AddStringToObject (declared, "()", method);
  python_identify (x->python, calls);
  if (!in (parser, CALLS))
    python_set_part (x, parser, CALLS, calls, python_set_member);
  bool ok = python_set_part (x, (cJSON *) in (parser, CALLS), NULL, declared, NULL);
  cJSON_Delete (calls);
  cJSON_Delete (declared);
  return ok;
}

/* --- an option ---------------------------------------------------------------------------------------- */

typedef struct {
  const cJSON *call; /* of add_argument; NULL: a member of a dataclass */
  char *dest;
  char *name;   /* without dashes: its longest; NULL: it has no name, but a place */
  cJSON *usual; /* owned; NULL: it is not there unless the command says it */
  cJSON *value; /* owned, as the command says; NULL: it does not */
} Option;

static void
option_free (gpointer data)
{
  Option *o = data;
  g_free (o->dest);
  g_free (o->name);
  cJSON_Delete (o->usual);
  cJSON_Delete (o->value);
  g_free (o);
}

static cJSON *
hole_of (const char *text)
{
  g_autofree char *hole = ls_shell_has_hole (text)
      ? g_strdup (text)
      : g_strdup_printf ("%c%s%c", LS_SHELL_HOLE, text, LS_SHELL_HOLE_END);
  return cJSON_CreateString (hole);
}

/* A word as a type makes a value of it; of a type that is not known here it is not known. */
static cJSON *
converted (const char *type, const char *word)
{
  char *end;
  double number = g_ascii_strtod (word, &end);
  bool is_number = end > word && *end == '\0' && strspn (word, "+-0123456789.eE") == strlen (word),
       is_whole
      = is_number && strspn (word + (*word == '-'), G_CSET_DIGITS) == strlen (word + (*word == '-'));
  if (!ls_shell_has_hole (word) && (*type == '\0' || strcmp (type, "str") == 0))
    return cJSON_CreateString (word);
  if (is_whole && strcmp (type, "int") == 0)
    return python_number (number, false);
  if (is_number && strcmp (type, "float") == 0)
    return python_number (number, true);
  if (!ls_shell_has_hole (word) && strcmp (type, "bool") == 0) /* any text is true */
    return cJSON_CreateBool (*word != '\0');
  return hole_of (word);
}

/* "--micro-batch-size" is micro_batch_size, unless dest says another. */
static void
name_option (Option *o)
{
  const cJSON *dest = in (o->call, "dest");
  for (const cJSON *item = o->call->child; item; item = item->next) {
    bool is_name = g_ascii_isdigit (*item->string) && python_is_text (item);
    const char *bare = is_name ? item->valuestring + strspn (item->valuestring, "-") : NULL;
    bool is_long = is_name && g_str_has_prefix (item->valuestring, "--");
    if (is_name && bare == item->valuestring)
      o->dest = o->dest ? o->dest : g_strdup (bare);
    else if (is_name && (!o->name || (is_long && strlen (o->name) == 1))) {
      g_free (o->name);
      o->name = g_strdup (bare);
    }
  }
  if (python_is_text (dest))
    o->dest = g_strdup (dest->valuestring);
  if (!o->dest)
    o->dest = g_strdelimit (g_strdup (o->name ? o->name : ""), "-", '_');
}

static const char *
action_of (const Option *o)
{
  return o->call ? name_in (in (o->call, "action")) : "";
}

/* A text is converted as the command's would be. */
static cJSON *
usual_of (const Option *o)
{
  const cJSON *usual = in (o->call, "default");
  const char *action = action_of (o), *type = name_in (in (o->call, "type"));
  if (strcmp (name_in (usual), "SUPPRESS") == 0)
    return NULL;
  if (usual)
    return python_is_text (usual) && *type ? converted (type, usual->valuestring)
                                           : cJSON_Duplicate (usual, true);
  return strcmp (action, "store_true") == 0 ? cJSON_CreateFalse ()
      : strcmp (action, "store_false") == 0 ? cJSON_CreateTrue ()
                                            : cJSON_CreateNull ();
}

static Option *
find_dest (const GPtrArray *options, const char *dest)
{
  for (guint i = 0; i < options->len; i++)
    if (strcmp (((Option *) options->pdata[i])->dest, dest) == 0)
      return options->pdata[i];
  return NULL;
}

/* What set_defaults says, of options and besides. */
static void
set_usual (GPtrArray *options, const cJSON *call)
{
  for (const cJSON *item = call->child; item; item = item->next) {
    if (strcmp (item->string, "()") == 0)
      continue;
    Option *o = find_dest (options, item->string);
    if (!o) {
      o = g_new0 (Option, 1);
      o->dest = g_strdup (item->string);
      g_ptr_array_add (options, o);
    }
    cJSON_Delete (o->usual);
    o->usual = cJSON_Duplicate (item, true);
  }
}

/* With those of its parents in front. */
static void
add_declared (GPtrArray *options, const cJSON *parser, guint depth)
{
  const cJSON *parents = in (parser, "parents"), *calls = in (parser, CALLS);
  for (const cJSON *parent = cJSON_IsArray (parents) ? parents->child : NULL; parent && depth < 8;
       parent = parent->next)
    if (python_is_parser (parent))
      add_declared (options, parent, depth + 1);
  for (const cJSON *call = calls ? calls->child : NULL; call; call = call->next) {
    if (strcmp (name_in (in (call, "()")), "set_defaults") == 0) {
      set_usual (options, call);
      continue;
    }
    Option *o = g_new0 (Option, 1);
    o->call = call;
    name_option (o);
    o->usual = usual_of (o);
    g_ptr_array_add (options, o);
  }
}

/* --- the words of a command --------------------------------------------------------------------------- */

/* What is being read: the next word, and words of no option. */
typedef struct {
  const GPtrArray *words;
  guint at;
  GPtrArray *alone; /* const char * */
} Command;

/* "--a", "-n"; not a number. */
static bool
is_flag (const char *word)
{
  return *word == '-' && word[1] && !g_ascii_isdigit (word[1]) && word[1] != '.';
}

/* Whether an option is called so, n letters with its dashes; is_begin: they are the begin of a long name. */
static bool
is_called (const Option *o, const char *word, gsize n, bool is_begin)
{
  if (!o->call) {
    g_autofree char *name = g_strdelimit (g_strndup (word, n), "-", '_'),
                    *own = g_strconcat ("__", o->name, NULL);
    return !is_begin && strcmp (name, own) == 0;
  }
  for (const cJSON *item = o->call->child; item; item = item->next) {
    bool is_name = g_ascii_isdigit (*item->string) && python_is_text (item);
    if (is_name && strncmp (item->valuestring, word, n) == 0
        && (is_begin ? n > 2 && g_str_has_prefix (item->valuestring, "--") : strlen (item->valuestring) == n))
      return true;
  }
  return false;
}

/* Its full name, else the only one that begins so; NULL: there is none. */
static Option *
find_option (const GPtrArray *options, const char *word, gsize n)
{
  Option *found = NULL;
  for (guint pass = 0; pass < 2 && !found; pass++)
    for (guint i = 0; i < options->len; i++)
      if (is_called (options->pdata[i], word, n, pass == 1)) {
        if (found && pass == 1)
          return NULL;
        found = options->pdata[i];
      }
  return found;
}

/* The value of a member of a dataclass, by what it usually is. */
static cJSON *
member_value (const Option *o, const char *word)
{
  static const char *const on[] = { "true", "1", "yes", "t", "y", "True", NULL };
  if (cJSON_IsBool (o->usual) && !(word && ls_shell_has_hole (word)))
    return cJSON_CreateBool (!word || g_strv_contains (on, word));
  const char *type = cJSON_IsNumber (o->usual) ? python_is_kind (o->usual, PYTHON_FLOAT) ? "float" : "int"
      : python_is_text (o->usual)              ? "str"
                                               : "its type";
  return word ? converted (type, word) : hole_of (o->name);
}

static cJSON *
values_behind (Command *c, const char *type, double most)
{
  cJSON *all = cJSON_CreateArray ();
  for (; most > 0 && c->at < c->words->len && !is_flag (c->words->pdata[c->at]); most--)
    cJSON_AddItemToArray (all, converted (type, c->words->pdata[c->at++]));
  return all;
}

/* What an action without words of its own makes; NULL: it has some. */
static cJSON *
switched (const Option *o, const char *word)
{
  const char *action = action_of (o);
  const cJSON *constant = in (o->call, "const");
  if (strcmp (action, "store_true") == 0 || strcmp (action, "store_false") == 0)
    return cJSON_CreateBool (strcmp (action, "store_true") == 0);
  if (strcmp (action, "BooleanOptionalAction") == 0)
    return cJSON_CreateBool (!g_str_has_prefix (word, "--no-"));
  if (strcmp (action, "store_const") == 0)
    return constant ? cJSON_Duplicate (constant, true) : cJSON_CreateNull ();
  return strcmp (action, "count") == 0
      ? cJSON_CreateNumber (1 + (cJSON_IsNumber (o->value) ? o->value->valuedouble : 0))
      : NULL;
}

/* What an option gets whose name was read; equals: what stands behind "=" in it, or NULL. */
static cJSON *
value_of (const Option *o, Command *c, const char *word, const char *equals)
{
  bool has_word = equals || (c->at < c->words->len && !is_flag (c->words->pdata[c->at]));
  const char *next = equals ? equals : has_word ? c->words->pdata[c->at] : NULL;
  if (!o->call) {
    c->at += has_word && !equals;
    return member_value (o, next);
  }
  const cJSON *n = in (o->call, "nargs"), *constant = in (o->call, "const");
  const char *type = name_in (in (o->call, "type")), *action = action_of (o);
  cJSON *on = switched (o, word);
  if (on)
    return on;
  bool is_list = n && (cJSON_IsNumber (n) || (python_is_text (n) && strchr ("*+", *n->valuestring)));
  if (is_list && !equals)
    return values_behind (c, type, cJSON_IsNumber (n) ? n->valuedouble : G_MAXUINT);
  c->at += has_word && !equals;
  if (!next || (*action && strcmp (action, "store") != 0 && strcmp (action, "append") != 0))
    return constant ? cJSON_Duplicate (constant, true) : hole_of (word);
  cJSON *value = converted (type, next);
  if (!is_list && strcmp (action, "append") != 0)
    return value;
  cJSON *all = cJSON_IsArray (o->value) && strcmp (action, "append") == 0 ? cJSON_Duplicate (o->value, true)
                                                                          : cJSON_CreateArray ();
  cJSON_AddItemToArray (all, value);
  return all;
}

/* Words of no option are of those that have a place, one each. Of one that may have none or several, it is
 * not known which. */
static void
take_alone (GPtrArray *options, const GPtrArray *alone)
{
  guint at = 0;
  for (guint i = 0; i < options->len; i++) {
    Option *o = options->pdata[i];
    if (!o->call || o->name)
      continue;
    cJSON_Delete (o->value);
    const char *type = name_in (in (o->call, "type"));
    bool is_list = in (o->call, "nargs") != NULL;
    o->value = is_list && at < alone->len ? hole_of (o->dest)
        : at < alone->len                 ? converted (type, alone->pdata[at++])
                                          : NULL;
  }
}

static void
take_words (GPtrArray *options, const GPtrArray *words)
{
  g_autoptr (GPtrArray) alone = g_ptr_array_new ();
  Command c = { words, 0, alone };
  while (c.at < words->len) {
    const char *word = words->pdata[c.at++], *equals = is_flag (word) ? strchr (word, '=') : NULL;
    gsize n = equals ? (gsize) (equals - word) : strlen (word);
    Option *o = is_flag (word) ? find_option (options, word, n) : NULL;
    g_autofree char *turned
        = !o && g_str_has_prefix (word, "--no-") ? g_strconcat ("--", word + 5, NULL) : NULL;
    Option *off = turned ? find_option (options, turned, strlen (turned)) : NULL;
    if (off && strcmp (action_of (off), "BooleanOptionalAction") == 0)
      o = off;
    if (o) {
      cJSON *value = value_of (o, &c, word, equals ? equals + 1 : NULL);
      cJSON_Delete (o->value);
      o->value = value;
    } else if (!is_flag (word))
      g_ptr_array_add (alone, (gpointer) word);
  }
  take_alone (options, alone);
}

/* --- what a program gets ------------------------------------------------------------------------------- */

/* The words that options are taken of: those of a call, else of the command; NULL: they are not known.
 * *ret_own: which the caller frees. */
static const GPtrArray *
words_of (const LsPython *p, const cJSON *call, GPtrArray **ret_own)
{
  const cJSON *said = in (call, "0") ? in (call, "0") : in (call, "args");
  *ret_own = NULL;
  if (!said || cJSON_IsNull (said))
    return p->arguments;
  *ret_own = g_ptr_array_new ();
  for (const cJSON *item = said->child; item; item = item->next)
    g_ptr_array_add (*ret_own, cJSON_IsString (item) ? item->valuestring : (char *) "");
  return *ret_own;
}

/* Each by its dest, the later one where several have the same; what they usually are is kept. */
static void
add_values (LsPython *p, cJSON *object, const GPtrArray *options)
{
  for (guint i = 0; i < options->len; i++) {
    const Option *o = options->pdata[i];
    const cJSON *value = o->value ? o->value : o->usual;
    bool is_second = !o->value && in (object, o->dest);
    if (value && !is_second)
      python_set_key (object, o->dest, cJSON_Duplicate (value, true));
    if (o->name && o->usual)
      python_set_key (p->options, o->name, cJSON_Duplicate (o->usual, true));
  }
}

static void
parse (const PythonPlace *x, cJSON *object, GPtrArray *options, const cJSON *call, guint first)
{
  GPtrArray *own;
  const GPtrArray *words = words_of (x->python, call, &own);
  if (words)
    take_words (options, words);
  else
    python_pass (x->python, x->module, first);
  add_values (x->python, object, options);
  g_clear_pointer (&own, g_ptr_array_unref);
}

static cJSON *
new_object (const char *class)
{
  cJSON *object = cJSON_CreateObject ();
  cJSON_AddStringToObject (object, "()", class);
  return object;
}

/* HfArgumentParser ((A, B)): an object of each class. */
static cJSON *
dataclasses_of (const PythonPlace *x, const cJSON *parser, const cJSON *call, guint first)
{
  const cJSON *classes = in (parser, "0") ? in (parser, "0") : in (parser, "dataclass_types");
  cJSON *all = cJSON_CreateArray ();
  all->type |= PYTHON_TUPLE;
  for (const cJSON *class = cJSON_IsArray (classes) ? classes->child : classes; class;
       class = cJSON_IsArray (classes) ? class->next : NULL) {
    g_autoptr (GPtrArray) options = g_ptr_array_new_with_free_func (option_free);
    const char *name = cJSON_IsString (class) ? class->valuestring : "";
    cJSON *members = x->python->members (x->python, x->module, name), *object = new_object (name);
    for (const cJSON *member = members ? members->child : NULL; member; member = member->next) {
      Option *o = g_new0 (Option, 1);
      o->dest = g_strdup (member->string);
      o->name = g_strdup (member->string);
      o->usual = cJSON_Duplicate (member, true);
      g_ptr_array_add (options, o);
    }
    parse (x, object, options, call, first);
    cJSON_AddItemToArray (all, object);
    cJSON_Delete (members);
  }
  return all;
}

cJSON *
python_parse (const PythonPlace *x, const cJSON *parser, const char *method, const cJSON *call, guint first)
{
  if (strcmp (method, "add_argument_group") == 0 || strcmp (method, "add_mutually_exclusive_group") == 0)
    return cJSON_Duplicate (parser, true);
  if (strcmp (method, "parse_args_into_dataclasses") == 0)
    return dataclasses_of (x, parser, call, first);
  bool has_rest = strcmp (method, "parse_known_args") == 0;
  if (!has_rest && strcmp (method, "parse_args") != 0)
    return NULL;
  g_autoptr (GPtrArray) options = g_ptr_array_new_with_free_func (option_free);
  cJSON *object = new_object ("Namespace");
  add_declared (options, parser, 0);
  parse (x, object, options, call, first);
  if (!has_rest)
    return object;
  cJSON *both = cJSON_CreateArray ();
  both->type |= PYTHON_TUPLE;
  cJSON_AddItemToArray (both, object);
  cJSON_AddItemToArray (both, hole_of ("the rest of the command"));
  return both;
}

/* --- DeepSpeed ---------------------------------------------------------------------------------------- */

void
python_note_engine (LsPython *p, const char *function, const cJSON *call)
{
  if (!p->is_script || !g_str_has_suffix (function, "deepspeed.initialize"))
    return;
  const cJSON *config = cJSON_GetObjectItemCaseSensitive (call, "config");
  config = config ? config : cJSON_GetObjectItemCaseSensitive (call, "config_params");
  if (p->engine && !(cJSON_IsNull (p->engine) && config))
    return;
  cJSON_Delete (p->engine);
  p->engine = config ? cJSON_Duplicate (config, true) : cJSON_CreateNull ();
}
