/* data/python/python_options.c — options that a program in Python declares, wherever it does:
 *
 *     parser.add_argument ("--layers", type=int, default=32)
 *     HfArgumentParser ((A, B)), tyro.cli (A)       the members of dataclasses
 *     fire.Fire (train), typer.run (train)          the parameters of train
 *     @click.option ("--layers", default=32)        that option
 *
 * with what each is where the command does not say it. What is declared under a condition, or twice in two
 * ways, is not known; neither is what the program computes of it. */
#include <string.h>

#include "data/python/python_parts.h"
#include "data/shell/shell.h"

/* The last part of the name of a class or a function, "argparse.ArgumentParser"; "": it is none. */
static const char *
last_name (const PythonValue *v)
{
  const char *name = v && v->text ? v->text : "", *dot = strrchr (name, '.');
  return dot ? dot + 1 : name;
}

/* A hole where two of them differ. */
static void
add_option (LsPython *p, const char *name, const PythonValue *usual)
{
  cJSON *item = python_json (p, usual), *other = cJSON_GetObjectItemCaseSensitive (p->options, name);
  bool is_same = other && cJSON_Compare (item, other, true);
  g_autofree char *hole = g_strdup_printf ("%c%s%c", LS_SHELL_HOLE, name, LS_SHELL_HOLE_END);
  if (other && !is_same)
    cJSON_ReplaceItemInObjectCaseSensitive (p->options, name, cJSON_CreateString (hole));
  if (other)
    cJSON_Delete (item);
  else
    cJSON_AddItemToObject (p->options, name, item);
}

/* --- argparse and click ------------------------------------------------------------------------------- */

/* The longest name of an option, without dashes; NULL: it has a place and no name. The caller frees it. */
static char *
option_name (const PythonValue *call)
{
  const char *name = NULL;
  for (guint i = 0; call->items && i < call->items->len; i++) {
    const PythonValue *item = call->items->pdata[i];
    bool is_name = g_ascii_isdigit (*(char *) call->keys->pdata[i]) && item->kind == PYTHON_IS_TEXT
        && *item->text == '-';
    if (is_name && (!name || (g_str_has_prefix (item->text, "--") && !g_str_has_prefix (name, "--"))))
      name = item->text;
  }
  return name ? g_strdup (name + strspn (name, "-")) : NULL;
}

/* A text as its type makes a value of it; of a type that is not known here it is not known. */
static PythonValue *
converted (LsPython *p, const PythonValue *usual, const char *type)
{
  char *end;
  double number = g_ascii_strtod (usual->text, &end);
  bool is_number = *usual->text && *end == '\0';
  if (*type == '\0' || strcmp (type, "str") == 0)
    return python_text (p, usual->text);
  if (is_number && (strcmp (type, "float") == 0 || strcmp (type, "int") == 0))
    return python_number (p, number, *type == 'f');
  return python_called (p, PYTHON_IS_HOLE, usual->text);
}

/* What an option is that a command does not say. */
static PythonValue *
usual_of (LsPython *p, const PythonValue *call)
{
  PythonValue *usual = python_get (call, "default");
  const char *action = last_name (python_get (call, "action")), *type = last_name (python_get (call, "type"));
  if (usual && usual->kind == PYTHON_IS_TEXT && *type)
    return converted (p, usual, type);
  if (usual)
    return usual;
  return g_str_has_prefix (action, "store_") ? python_bool (p, strcmp (action, "store_false") == 0)
                                             : python_new (p, PYTHON_IS_NONE);
}

/* Whether a line stands in a block that is perhaps not run. */
static bool
is_conditional (const LsPython *p, guint i)
{
  guint indent = python_line (p, i)->indent;
  for (; i-- > 0 && indent > 0;) {
    const PythonLine *line = python_line (p, i);
    if (line->indent >= indent)
      continue;
    const PythonToken *t = python_first (p, line);
    indent = line->indent;
    if (python_is_block (p, i) && !python_is (t + 1, "__name__"))
      return true;
  }
  return false;
}

/* "add_argument (" or "option (" behind a dot, in a line. */
static void
declare (LsPython *p, guint i, guint at, bool is_click)
{
  PythonPlace x = { .python = p, .module = python_line (p, i)->module, .at = at };
  PythonValue *call = python_called (p, PYTHON_IS_CALL, "add_argument");
  python_arguments (&x, call);
  g_autofree char *name = option_name (call);
  PythonValue *usual = is_click && !python_get (call, "default") ? NULL : usual_of (p, call);
  if (!name || p->why || !usual || strcmp (last_name (usual), "SUPPRESS") == 0)
    return;
  if (is_click)
    g_strdelimit (name, "-", '_');
  add_option (p, name, is_conditional (p, i) ? python_called (p, PYTHON_IS_HOLE, name) : usual);
}

/* "set_defaults (a=1)": of options that were declared in front. */
static void
set_usual (LsPython *p, guint i, guint at)
{
  PythonPlace x = { .python = p, .module = python_line (p, i)->module, .at = at };
  PythonValue *call = python_called (p, PYTHON_IS_CALL, "set_defaults");
  python_arguments (&x, call);
  for (guint k = 0; call->items && k < call->items->len; k++) {
    g_autofree char *name = g_strdelimit (g_strdup (call->keys->pdata[k]), "_", '-');
    const char *own = cJSON_HasObjectItem (p->options, name) ? name : call->keys->pdata[k];
    cJSON_DeleteItemFromObjectCaseSensitive (p->options, own);
    add_option (p, own,
                is_conditional (p, i) ? python_called (p, PYTHON_IS_HOLE, own) : call->items->pdata[k]);
  }
}

/* --- functions and classes ---------------------------------------------------------------------------- */

/* Each class or function that is named in the brackets behind a token. */
static void
add_members (LsPython *p, guint module, guint at)
{
  PythonPlace x = { .python = p, .module = module, .at = at }, end = x;
  python_pass_to (&end, ")");
  for (; x.at < end.at; x.at++) {
    g_autofree char *name = python_token (&x)->kind == PYTHON_NAME ? python_word (python_token (&x)) : NULL;
    const PythonValue *of = name ? python_lookup (&x, name) : NULL;
    bool has_usual = of && of->kind >= PYTHON_IS_FUNCTION;
    for (guint i = 0; has_usual && of->items && i < of->items->len; i++)
      add_option (p, of->keys->pdata[i], of->items->pdata[i]);
  }
}

/* --- DeepSpeed ---------------------------------------------------------------------------------------- */

/* Whether a name stands in a function otherwise than as the configuration of a call. */
static bool
is_used (const LsPython *p, const char *name)
{
  for (guint i = 0; i < p->lines->len; i++) {
    const PythonLine *line = python_line (p, i);
    for (guint k = 0; k < line->n && (line->indent > 0 || python_is_block (p, i)); k++) {
      const PythonToken *t = python_first (p, line) + k;
      if (python_is (t, name) && !(k > 1 && python_is (t - 1, "=")))
        return true;
    }
  }
  return false;
}

/* "deepspeed.initialize (": what is written there, or a name that the file alone sets, is its configuration;
 * another is not known. */
static void
note_engine (LsPython *p, guint module, guint at)
{
  PythonPlace x = { .python = p, .module = module, .at = at }, value = x;
  PythonValue *call = python_called (p, PYTHON_IS_CALL, "deepspeed.initialize");
  python_arguments (&x, call);
  const PythonValue *config = python_get (call, "config");
  config = config ? config : python_get (call, "config_params");
  while (
      value.at < x.at
      && !((python_is (python_token (&value), "config") || python_is (python_token (&value), "config_params"))
           && python_is (python_token (&value) + 1, "=")))
    value.at++;
  value.at += 2;
  g_autofree char *name = value.at < x.at && python_token (&value)->kind == PYTHON_NAME
      ? python_word (python_token (&value))
      : NULL;
  bool is_open = config && name && is_used (p, name);
  if (p->engine && (!config || !cJSON_IsNull (p->engine)))
    return;
  cJSON_Delete (p->engine);
  p->engine = is_open ? python_json (p, python_called (p, PYTHON_IS_HOLE, name))
      : config        ? python_json (p, config)
                      : cJSON_CreateNull ();
}

/* --- lines -------------------------------------------------------------------------------------------- */

/* What a call declares, whose name stands at a token of line i, k words from its begin. */
static void
read_call (LsPython *p, guint i, const PythonToken *t, guint k)
{
  static const char *const classes[] = { "HfArgumentParser", "TrlParser", NULL };
  static const char *const starts[][2] = { { "fire", "Fire" }, { "typer", "run" }, { "tyro", "cli" } };
  const PythonLine *line = python_line (p, i);
  const guint at = line->first + k + 2;
  bool is_method = k > 1 && python_is (t - 1, "."), is_start = python_is_one (t, classes);
  for (guint s = 0; s < G_N_ELEMENTS (starts) && is_method; s++)
    is_start = is_start || (python_is (t - 2, starts[s][0]) && python_is (t, starts[s][1]));
  if (is_method && python_is (t, "add_argument"))
    declare (p, i, at, false);
  else if (is_method && python_is (t, "option") && python_is (t - 2, "click"))
    declare (p, i, at, true);
  else if (is_method && python_is (t, "set_defaults"))
    set_usual (p, i, at);
  else if (is_method && python_is (t, "initialize") && python_is (t - 2, "deepspeed"))
    note_engine (p, line->module, at);
  else if (is_start)
    add_members (p, line->module, at);
}

void
ls_python_start (LsPython *p)
{
  for (guint m = p->modules->len; m-- > 0;)
    python_run_module (p, m);
  for (guint i = 0; i < p->lines->len; i++) {
    const PythonLine *line = python_line (p, i);
    g_clear_pointer (&p->why, g_free);
    p->depth = 0;
    for (guint k = 0; k + 1 < line->n; k++) {
      const PythonToken *t = python_first (p, line) + k;
      if (t->kind == PYTHON_NAME && python_is (t + 1, "("))
        read_call (p, i, t, k);
      bool is_set = line->indent > 0 && k == 0 && python_is (t, "os") && python_is (t + 2, "environ");
      if (is_set)
        python_open_lines (p, i, i + 1);
    }
  }
  python_move_passed (p, NULL);
  g_clear_pointer (&p->why, g_free);
}

const cJSON *
ls_python_options (const LsPython *p)
{
  return p->options;
}

const cJSON *
ls_python_engine (const LsPython *p)
{
  return p->engine;
}
