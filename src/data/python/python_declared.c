/* data/python/python_declared.c — options that packages make of functions and classes:
 *
 *     fire.Fire (train), typer.run (train)       the parameters of train
 *     @click.option ("--layers", default=32)     that option
 *     tyro.cli (Config)                          the members of Config
 *
 * They are found wherever they stand in the file that is started; so is the configuration that
 * deepspeed.initialize is handed. */
#include <string.h>

#include "data/python/python_run.h"

/* "--a-b" of such packages is a_b. */
static void
add_option (LsPython *p, const char *name, const cJSON *usual)
{
  g_autofree char *own = g_strdup (name + strspn (name, "-"));
  g_strdelimit (own, "-", '_');
  if (usual && !cJSON_GetObjectItemCaseSensitive (p->options, own))
    python_set_key (p->options, own, cJSON_Duplicate (usual, true));
}

static void
add_members (LsPython *p, const char *name)
{
  cJSON *members = p->members (p, 0, name);
  for (const cJSON *member = members ? members->child : NULL; member; member = member->next)
    add_option (p, member->string, member);
  cJSON_Delete (members);
}

static void
add_parameters (LsPython *p, const char *name)
{
  cJSON *usual = python_usual_of_function (p, 0, name);
  for (const cJSON *one = usual ? usual->child : NULL; one; one = one->next)
    add_option (p, one->string, one);
  cJSON_Delete (usual);
}

/* "fire . Fire ( NAME" from a token on. */
static void
read_start (LsPython *p, guint i)
{
  static const char *const functions[][2] = { { "fire", "Fire" }, { "typer", "run" }, { "tyro", "cli" } };
  PythonPlace x = { .python = p, .at = i };
  for (guint k = 0; k < G_N_ELEMENTS (functions); k++) {
    PythonPlace at = x;
    bool is_it = python_take (&at, functions[k][0]) && python_take (&at, ".")
        && python_take (&at, functions[k][1]) && python_take (&at, "(");
    const PythonToken *t = python_token (&at);
    if (!is_it || t->kind != PYTHON_NAME)
      continue;
    g_autofree char *name = g_strndup (t->at, t->n);
    if (python_has_function (p, 0, name))
      add_parameters (p, name);
    else
      add_members (p, name);
  }
}

/* "@click.option ("-l", "--layers", default=32)": of its names the one with two dashes. */
static void
read_decorator (LsPython *p, const PythonLine *line)
{
  PythonPlace x = { .python = p, .module = line->module, .at = line->first };
  if (!python_take (&x, "@") || !python_take (&x, "click") || !python_take (&x, ".")
      || !python_take (&x, "option") || !python_take (&x, "("))
    return;
  cJSON *call = cJSON_CreateObject ();
  python_arguments (&x, call);
  for (const cJSON *name = call->child; name && !p->why; name = name->next)
    if (g_ascii_isdigit (*name->string) && cJSON_IsString (name)
        && g_str_has_prefix (name->valuestring, "--"))
      add_option (p, name->valuestring, cJSON_GetObjectItemCaseSensitive (call, "default"));
  g_clear_pointer (&p->why, g_free);
  cJSON_Delete (call);
}

/* --- DeepSpeed ---------------------------------------------------------------------------------------- */

/* Where what calls it was not followed: "deepspeed . initialize (" from a token on. */
static void
read_engine (LsPython *p, guint i)
{
  PythonPlace x = { .python = p, .at = i };
  if (!python_take (&x, "deepspeed") || !python_take (&x, ".") || !python_take (&x, "initialize")
      || !python_take (&x, "(") || p->engine)
    return;
  cJSON *call = cJSON_CreateObject ();
  python_arguments (&x, call);
  python_note_engine (p, "deepspeed.initialize", call);
  cJSON_Delete (call);
}

void
python_read_declared (LsPython *p)
{
  g_clear_pointer (&p->why, g_free);
  for (guint i = 0; i < p->lines->len; i++) {
    const PythonLine *line = python_line (p, i);
    if (line->module != 0)
      continue;
    read_decorator (p, line);
    for (guint k = 0; k + 4 < line->n; k++) {
      read_start (p, line->first + k);
      read_engine (p, line->first + k);
    }
    g_clear_pointer (&p->why, g_free);
  }
}
