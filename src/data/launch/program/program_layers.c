/* Functions of expressions and rules about layers, and the chunks of a pipeline that they are cut into. */
#include <math.h>
#include <string.h>

#include "data/jobs/job_files.h"
#include "data/launch/program/program_map.h"
#include "data/text/field.h"
#include "schedules/sched.h"
#include "strategy/shard.h"
#include "strategy/strategy.h"

#define MOST_LAYERS 65536

static ProgramValue
taken_text (GString *text)
{
  return program_taken (g_string_free (text, FALSE));
}

/* --- of a job ------------------------------------------------------------------------------------------ */

/* Which layers have experts, "[0]*3+[1]*58": so many of a kind after each other. */
static ProgramValue
f_expert_layers (ProgramRun *run, const ProgramArgument *a)
{
  const LsModel *m = &run->job->import->model;
  GString *layers = g_string_new (NULL);
  for (uint32_t layer = 0, n; layer < m->n_layers; layer += n) {
    bool has = ls_model_has_experts (m, layer);
    for (n = 1; layer + n < m->n_layers && ls_model_has_experts (m, layer + n) == has;)
      n++;
    g_string_append_printf (layers, "%s[%d]*%u", layer > 0 ? "+" : "", has, n);
  }
  return taken_text (layers);
}

/* "t*3|t||t*2": layers of each chunk of the pipeline, each a letter; none: it is not to be cut so. */
static ProgramValue
f_chunks (ProgramRun *run, const ProgramArgument *a)
{
  const LsStrategy *s = &run->job->import->strategy;
  uint32_t n = s->pp * s->vpp;
  g_autofree uint32_t *layers = g_new0 (uint32_t, n);
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  if (!ls_chunk_layers (s, &run->job->import->model, layers, none))
    return program_none ();
  GString *text = g_string_new (NULL);
  for (uint32_t i = 0; i < n; i++) {
    g_string_append_printf (text, "%s%s", i > 0 ? "|" : "", layers[i] > 0 ? a->word : "");
    if (layers[i] > 1)
      g_string_append_printf (text, "*%u", layers[i]);
  }
  return taken_text (text);
}

/* Whether ranks of the job are numbered as by that order. */
PROGRAM_NUMBER (f_is_ordered,
                a->value.text != NULL && ls_strategy_is_ordered (&run->job->import->strategy, a->value.text))

/* --- patterns ------------------------------------------------------------------------------------------ */

/* A text so many times. */
static ProgramValue
f_repeated (ProgramRun *run, const ProgramArgument *a)
{
  GString *text = g_string_new (NULL);
  for (double i = 0; a->value.text && i < fmin (a[1].value.number, MOST_LAYERS); i++)
    g_string_append (text, a->value.text);
  return taken_text (text);
}

/* What "NAME=OTHER" of a list has for a name; NULL: nothing. */
static const char *
other_of (char *const *pairs, const char *name)
{
  const char *other = NULL;
  for (; *pairs && !other; pairs++)
    other = program_pair_value (*pairs, name);
  return other;
}

/* "maade" of "MA*-E" by "M=m A=a *=a -=d E=e", a letter each; none: a letter has no other, or there are too
 * many. */
static ProgramValue
f_spelled (ProgramRun *run, const ProgramArgument *a)
{
  g_auto (GStrv) pairs = program_words (a[1].value.text, " ");
  g_autoptr (GString) text = g_string_new (NULL);
  for (const char *p = a->value.text ? a->value.text : ""; *p; p++) {
    const char *other = other_of (pairs, (const char[]) { *p, '\0' });
    if (!other || text->len >= MOST_LAYERS)
      return program_none ();
    g_string_append (text, other);
  }
  return program_text (text->str);
}

/* Puts a letter at even distances in place of "m": behind `section` of these each. */
static void
space_out (char *pattern, char letter, double section)
{
  double x = section;
  for (char *p = pattern; *p; p++)
    if (*p == 'm') {
      bool is_its = x < 0.5;
      *p = is_its ? letter : 'm';
      x += is_its ? section : -1;
    }
}

/* So many layers "m", of which shares are "a" and "d", evenly spaced; none: there are no layers. */
static ProgramValue
f_spaced (ProgramRun *run, const ProgramArgument *a)
{
  double n = fmin (a->value.number, MOST_LAYERS), n_attention = rint (n * CLAMP (a[1].value.number, 0, 1)),
         n_mlp = rint (n * CLAMP (a[2].value.number, 0, 1));
  if (!(n > 0))
    return program_none ();
  char *pattern = g_strnfill ((gsize) n, 'm');
  space_out (pattern, 'a', (n - n_attention) / (n_attention + 1));
  if (n_mlp > 0)
    space_out (pattern, 'd', (n - n_attention - n_mlp) / n_mlp);
  return program_taken (pattern);
}

/* --- which layers have experts ------------------------------------------------------------------------- */

/* "Et*3|(t|)*2" as "Ettt|t|t|", "[0]*2+[1]" as "00+1": a character, a list or what stands in parentheses as
 * often as "*n" behind it says. Newly allocated; NULL: it is too long. */
static char *
expanded (const char *text)
{
  g_autoptr (GString) all = g_string_new (NULL);
  for (const char *p = text; *p;) {
    const char *end = *p == '[' ? strchr (p, ']') : *p == '(' ? strchr (p, ')') : NULL;
    bool is_group = end && (*p == '[' || end[1] == '*');
    g_autofree char *piece = g_strndup (p + is_group, is_group ? (gsize) (end - p - 1) : 1),
                    *inner = is_group ? expanded (piece) : g_strdup (piece);
    p = is_group ? end + 1 : p + 1;
    guint64 times = *p == '*' ? g_ascii_strtoull (p + 1, (char **) &p, 10) : 1;
    if (!inner || times > MOST_LAYERS || strlen (inner) * times + all->len > MOST_LAYERS)
      return NULL;
    for (; times > 0; times--)
      g_string_append (all, inner);
  }
  return g_strdup (all->str);
}

/* Of "([0]*3+[1]*58)", "[0,1]*24" a 0 or 1 for each layer, newly allocated; NULL: it is none such. */
static char *
layers_of (const char *text)
{
  bool is_list = text && strchr (text, '[') && text[strspn (text, G_CSET_DIGITS "[,]()+* ")] == '\0';
  g_autofree char *all = is_list ? expanded (text) : NULL;
  if (!all || all[strspn (all, "01,()+ ")] || !strpbrk (all, "01"))
    return NULL;
  char *to = all;
  for (const char *p = all; *p; p++)
    if (g_ascii_isdigit (*p))
      *to++ = *p;
  *to = '\0';
  return g_steal_pointer (&all);
}

/* Layers without experts at the start, and that of every so many behind them the last has some, of such a
 * list: "3 1". None: they lie otherwise. */
static ProgramValue
f_expert_places (ProgramRun *run, const ProgramArgument *a)
{
  g_autofree char *layers = layers_of (a->value.text);
  if (!layers)
    return program_none ();
  const char *first = strchr (layers, '1'), *second = first ? strchr (first + 1, '1') : NULL;
  gsize every = second ? (gsize) (second - first) : 1, n_before = first ? (gsize) (first - layers) : 0,
        n_dense = n_before >= every - 1 ? n_before - (every - 1) : 0;
  bool is_so = first != NULL;
  for (gsize i = 0; layers[i]; i++)
    is_so = is_so && (i >= n_dense && (i - n_dense + 1) % every == 0) == (layers[i] == '1');
  return is_so ? program_taken (g_strdup_printf ("%" G_GSIZE_FORMAT " %" G_GSIZE_FORMAT, n_dense, every))
               : program_none ();
}

/* --- chunks of a pipeline ------------------------------------------------------------------------------ */

/* "Ett|t*3|ttL": layers of each chunk, in model order, "2,3,2". None: it has other parts, or not so many
 * blocks of multi-token prediction, all in the last chunk. */
static ProgramValue
f_layout_chunks (ProgramRun *run, const ProgramArgument *a)
{
  g_autoptr (GString) list = g_string_new (NULL);
  g_autofree char *all = expanded (a->value.text ? a->value.text : "");
  g_auto (GStrv) chunks = g_strsplit (all ? all : "", "|", LS_MAX_CHUNKS + 1);
  bool is_read = all != NULL;
  for (char **chunk = chunks; *chunk && is_read; chunk++) {
    guint n_layers = 0, n_blocks = 0;
    for (const char *p = *chunk; *p; p++) {
      n_layers += *p == 't';
      n_blocks += *p == 'm';
      is_read = is_read && strchr ("EtmL, ", *p); /* commas are for the eye */
    }
    is_read = is_read && (n_blocks == 0 || n_blocks == (chunk[1] ? 0 : a[1].value.number));
    g_string_append_printf (list, "%s%u", chunk > chunks ? "," : "", n_layers);
  }
  return is_read ? program_taken (g_strdup (list->str)) : program_none ();
}

/* Whether a schedule of ours says itself how many chunks a stage has. */
static ProgramValue
f_fixes_chunks (ProgramRun *run, const ProgramArgument *a)
{
  const LsSched *sched = a->value.text ? ls_sched_find (a->value.text) : NULL;
  return program_number (sched && ls_sched_fixes_chunks (sched));
}

/* --- rules -------------------------------------------------------------------------------------------- */

/* { "unset": "a b" }: numbers of the model are as if nothing set them. */
void
program_unset (ProgramRun *run, ProgramAct *a)
{
  LsImport *import = run->job->import;
  g_auto (GStrv) keys = g_strsplit (a->what->valuestring, " ", -1);
  for (char **key = keys; *key; key++) {
    const LsField *f = ls_field_find_value (ls_model_fields, *key);
    if (!f || f->kind != LS_FIELD_UINT)
      continue;
    g_hash_table_remove (import->model_said, f->key);
    *(uint32_t *) (gpointer) ((char *) &import->model + f->offset) = 0;
  }
}

/* --- the table ----------------------------------------------------------------------------------------- */

const ProgramFunction program_layer_functions[] = {
  { "expert_layers", "", f_expert_layers },
  { "chunks", "w", f_chunks },
  { "fixes_chunks", "v", f_fixes_chunks, true },
  { "is_ordered", "v", f_is_ordered },
  { "repeated", "vv", f_repeated, true },
  { "spelled", "vv", f_spelled, true },
  { "spaced", "vvv", f_spaced, true },
  { "expert_places", "v", f_expert_places, true },
  { "layout_chunks", "vv", f_layout_chunks, true },
  { NULL, NULL, NULL },
};
