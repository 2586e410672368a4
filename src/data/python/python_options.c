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

static PythonValue *
hole (LsPython *p, const char *text)
{
  return python_called (p, PYTHON_IS_HOLE, text);
}

/* A hole where two of them differ. */
static void
add_option (LsPython *p, const char *name, const PythonValue *usual)
{
  cJSON *item = python_json (p, usual), *other = cJSON_GetObjectItemCaseSensitive (p->found.options, name);
  if (!other) {
    cJSON_AddItemToObject (p->found.options, name, item);
    return;
  }
  if (!cJSON_Compare (item, other, true))
    cJSON_ReplaceItemInObjectCaseSensitive (p->found.options, name, python_json (p, hole (p, name)));
  cJSON_Delete (item);
}

/* --- argparse and click ------------------------------------------------------------------------------- */

/* What an option is that a command does not say; of a type that is not known here a text is not known. */
static PythonValue *
usual_of (LsPython *p, const PythonValue *call)
{
  PythonValue *usual = python_get (call, "default");
  const char *action = last_name (python_get (call, "action")), *type = last_name (python_get (call, "type"));
  if (!usual)
    return g_str_has_prefix (action, "store_")
        ? python_scalar (p, PYTHON_IS_BOOL, strcmp (action, "store_false") == 0, false)
        : python_new (p, PYTHON_IS_NONE);
  if (usual->kind != PYTHON_IS_TEXT || *type == '\0' || strcmp (type, "str") == 0)
    return usual;
  bool is_float = strcmp (type, "float") == 0;
  PythonValue *made = is_float || strcmp (type, "int") == 0 ? python_converted (p, is_float, usual) : NULL;
  return made ? made : hole (p, usual->text);
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

/* "add_argument (" or "option (" behind a dot, in a line; an option has its longest name. */
static void
declare (LsPython *p, guint i, const PythonValue *call, bool is_click)
{
  const char *said = NULL;
  for (guint k = 0; k < python_n (call); k++) {
    const PythonValue *item = call->items->pdata[k];
    bool is_name = g_ascii_isdigit (*(char *) call->keys->pdata[k]) && item->kind == PYTHON_IS_TEXT
        && *item->text == '-';
    if (is_name && (!said || (g_str_has_prefix (item->text, "--") && !g_str_has_prefix (said, "--"))))
      said = item->text;
  }
  const PythonValue *usual = is_click && !python_get (call, "default") ? NULL : usual_of (p, call);
  if (!said || p->why || !usual || strcmp (last_name (usual), "SUPPRESS") == 0)
    return;
  g_autofree char *name = g_strdup (said + strspn (said, "-"));
  if (is_click)
    g_strdelimit (name, "-", '_');
  add_option (p, name, is_conditional (p, i) ? hole (p, name) : usual);
}

/* "set_defaults (a=1)": of options that were declared in front. */
static void
set_usual (LsPython *p, guint i, const PythonValue *call)
{
  for (guint k = 0; k < python_n (call); k++) {
    g_autofree char *name = g_strdelimit (g_strdup (call->keys->pdata[k]), "_", '-');
    const char *own = cJSON_HasObjectItem (p->found.options, name) ? name : call->keys->pdata[k];
    cJSON_DeleteItemFromObjectCaseSensitive (p->found.options, own);
    add_option (p, own, is_conditional (p, i) ? hole (p, own) : call->items->pdata[k]);
  }
}

/* --- functions and classes ---------------------------------------------------------------------------- */

/* Each class or function that is named in the brackets behind a token. */
static void
add_members (LsPython *p, PythonPlace x)
{
  PythonPlace end = x;
  python_pass_to (&end, ")");
  for (; x.at < end.at; x.at++) {
    const PythonToken *t = python_token (&x);
    const PythonValue *of = t->kind == PYTHON_NAME ? python_lookup (&x, t->word) : NULL;
    bool has_usual = of && of->kind >= PYTHON_IS_FUNCTION;
    for (guint i = 0; has_usual && i < python_n (of); i++)
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
note_engine (LsPython *p, PythonPlace x)
{
  PythonPlace end = x;
  const PythonValue *call = python_arguments (&end, "deepspeed.initialize"),
                    *config = python_get (call, "config");
  config = config ? config : python_get (call, "config_params");
  while (
      x.at < end.at
      && !(python_is (python_token (&x), "config config_params") && python_is (python_token (&x) + 1, "=")))
    x.at++;
  x.at += 2;
  const PythonToken *t = python_token (&x);
  bool is_open = config && x.at < end.at && t->kind == PYTHON_NAME && is_used (p, t->word);
  if (p->found.engine && (!config || !cJSON_IsNull (p->found.engine)))
    return;
  cJSON_Delete (p->found.engine);
  p->found.engine = is_open ? python_json (p, hole (p, t->word))
      : config              ? python_json (p, config)
                            : cJSON_CreateNull ();
}

/* --- lines -------------------------------------------------------------------------------------------- */

/* What a call declares, whose name stands at a token of line i, k words from its begin. */
static void
read_call (LsPython *p, guint i, const PythonToken *t, guint k)
{
  const PythonLine *line = python_line (p, i);
  PythonPlace x = { .python = p, .module = line->module, .at = line->first + k + 2 };
  bool is_method = k > 1 && python_is (t - 1, "."),
       is_start = python_is (t, "HfArgumentParser TrlParser")
      || (is_method && python_is (t, "Fire") && python_is (t - 2, "fire"))
      || (is_method && python_is (t, "run") && python_is (t - 2, "typer"))
      || (is_method && python_is (t, "cli") && python_is (t - 2, "tyro"));
  bool is_click = is_method && python_is (t, "option") && python_is (t - 2, "click");
  if (is_click || (is_method && python_is (t, "add_argument")))
    declare (p, i, python_arguments (&x, t->word), is_click);
  else if (is_method && python_is (t, "set_defaults"))
    set_usual (p, i, python_arguments (&x, t->word));
  else if (is_method && python_is (t, "initialize") && python_is (t - 2, "deepspeed"))
    note_engine (p, x);
  else if (is_start)
    add_members (p, x);
}

void
ls_python_start (LsPython *p)
{
  for (guint m = p->modules->len; m-- > 0;)
    python_run_module (p, m);
  for (guint i = 0; i < p->lines->len; i++) {
    const PythonLine *line = python_line (p, i);
    const PythonToken *t = python_first (p, line);
    g_clear_pointer (&p->why, g_free);
    p->depth = 0;
    for (guint k = 0; k + 1 < line->n; k++)
      if (t[k].kind == PYTHON_NAME && python_is (t + k + 1, "("))
        read_call (p, i, t + k, k);
    if (line->n > 1 && line->indent > 0 && python_is (t, "os") && python_is (t + 2, "environ"))
      python_open_lines (p, i, i + 1);
  }
  python_move_passed (p, NULL);
  g_clear_pointer (&p->why, g_free);
}
