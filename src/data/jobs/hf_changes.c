/* Changes behind the name of a config.json. Its keys are its own, in the spelling of its type, and a part of
 * it may be what is read: a change goes where its key is read, and one that nobody reads is refused. */
#include <string.h>

#include "data/jobs/hf_family.h"
#include "data/jobs/job_files.h"
#include "data/text/override.h"

/* The file that is changed: what of it is read, by which keys. */
typedef struct {
  const LsJsonDoc *doc;
  const LsJsonDoc *part; /* what is read: doc, or the part of it that reads text */
  const HfFamily *family;
  const LsField *fields; /* keys that are read of part */
  char *way;             /* to the part, with its dots; "": it is doc */
} Changed;

/* Keys of a model of ours that mean the same in a file of a decoder. Widths of MLPs and what is of experts do
 * not: a type has its own idea of them. */
static const struct {
  const char *own, *theirs;
} alike[] = {
  { "layers", "num_hidden_layers" },     { "hidden", "hidden_size" }, { "heads", "num_attention_heads" },
  { "kv_heads", "num_key_value_heads" }, { "vocab", "vocab_size" },   { "seq", "max_position_embeddings" },
};

/* The key of a file that means the same as this one of ours; NULL: none. */
static const char *
theirs_of (const char *own)
{
  for (size_t i = 0; i < G_N_ELEMENTS (alike); i++)
    if (strcmp (alike[i].own, own) == 0)
      return alike[i].theirs;
  return NULL;
}

/* Layers of an encoder are others than those of its decoder, and layers that tokens pass again count anew. */
static const char *
spelled (const Changed *of, const char *key)
{
  bool is_plain = !of->family->encoder && !hf_has_sides (of->doc) && !hf_get (of->part, "total_ut_steps");
  bool is_theirs = ls_field_find (of->fields, key) != NULL;
  return is_plain && !is_theirs && theirs_of (key) ? theirs_of (key) : key;
}

static bool
has_key (const LsJsonDoc *doc, const char *key)
{
  return hf_get (doc, key) != NULL;
}

/* The keys of the part that say the same as this one, in other spellings: char *, borrowed. */
static GPtrArray *
spellings (const Changed *of, const LsField *field)
{
  GPtrArray *keys = g_ptr_array_new ();
  for (const LsField *f = of->fields; f->key; f++) {
    bool is_same = f->kind == field->kind && f->kind != LS_FIELD_IGNORED && f->offset == field->offset;
    if (is_same && has_key (of->part, f->key) && !g_ptr_array_find (keys, f->key, NULL))
      g_ptr_array_add (keys, (gpointer) f->key);
  }
  return keys;
}

static bool
refuse (const Changed *of, const char *key, const char *change, LsDiagList *diags)
{
  const char *near = theirs_of (key) ? NULL : ls_field_suggest (of->fields, key);
  g_autofree char *hint = near
      ? g_strdup_printf ("did you mean \"%s\"?", near)
      : g_strdup ("expected a key of config.json, such as num_hidden_layers or intermediate_size");
  ls_json_doc_diag (of->doc, ls_json_doc_root (of->doc), LS_JSON_AT_VALUE, diags, hint,
                    "%s: \"%s\" is not read of a config.json of %s", change, key, of->family->model_type);
  return false;
}

/* Where a key of the part is spelled otherwise in the file, that one is changed. */
static void
add_of_part (const Changed *of, const LsField *field, const char *key, const char *rest, GPtrArray *ret_list)
{
  g_autoptr (GPtrArray) keys = spellings (of, field);
  if (*rest != '=' || keys->len == 0 || has_key (of->part, key)) {
    g_ptr_array_add (ret_list, g_strconcat (of->way, key, rest, NULL));
    return;
  }
  for (guint i = 0; i < keys->len; i++)
    g_ptr_array_add (ret_list, g_strconcat (of->way, keys->pdata[i], rest, NULL));
}

/* One change, as it is made in the file: once, or in the file and in its part. */
static bool
place (const Changed *of, const char *change, GPtrArray *ret_list, LsDiagList *diags)
{
  gsize n = strcspn (change, ".=");
  g_autofree char *asked = g_strndup (change, n);
  const char *key = spelled (of, asked);
  const LsField *field = ls_field_find (of->fields, key);
  bool is_whole = of->part == of->doc, is_outside = !is_whole && has_key (of->doc, key);
  bool is_inside = is_whole || !is_outside || has_key (of->part, key);
  if (is_outside)
    g_ptr_array_add (ret_list, g_strconcat (key, change + n, NULL));
  if (!is_inside && !(field && field->kind != LS_FIELD_IGNORED))
    return true; /* of the file around the part: its type, its other parts */
  if (!field)
    return refuse (of, asked, change, diags);
  add_of_part (of, field, key, change + n, ret_list);
  return true;
}

/* "text_config." of the node that this is, or "thinker_config.text_config."; newly allocated. */
static char *
way_to (const LsJsonDoc *doc, const cJSON *part)
{
  g_autofree char *pointer = ls_json_doc_pointer (doc, part);
  g_autofree char *dotted = g_strdelimit (g_strdup (pointer + 1), "/", '.');
  return g_strconcat (dotted, ".", NULL);
}

/* As ls_override_apply() takes them; NULL: one is refused. What is no change stays, for that to refuse. */
static char *
placed (const Changed *of, const char *changes, LsDiagList *diags)
{
  g_autoptr (GPtrArray) asked = ls_override_split (changes), list = g_ptr_array_new_with_free_func (g_free);
  gsize n = 0;
  bool ok = true;
  for (guint i = 0; i < asked->len; i++) {
    ok = place (of, asked->pdata[i], list, diags) && ok;
    n += strlen (asked->pdata[i]) + 1;
  }
  if (n <= strlen (changes))
    g_ptr_array_add (list, g_strdup (changes + n));
  g_ptr_array_add (list, NULL);
  return ok ? g_strjoinv (",", (char **) list->pdata) : NULL;
}

LsJsonDoc *
ls_hf_change (LsJsonDoc *doc, const char *changes, LsDiagList *diags)
{
  const cJSON *text = hf_text_part (doc);
  g_autoptr (LsJsonDoc) inner = text ? ls_json_doc_part (doc, text, NULL) : NULL;
  g_autoptr (LsDiagList) unknown = ls_diag_list_new ();
  g_autoptr (HfFamily) of_part = hf_find_family (inner ? inner : doc, NULL, unknown);
  g_autoptr (HfFamily) of_doc = of_part ? NULL : hf_find_family (doc, NULL, unknown);
  HfFamily *family = of_part ? of_part : of_doc;
  if (!family) /* a change may say the type; else it is refused when it is read */
    return ls_override_apply (doc, changes, diags);
  g_autofree LsField *fields = hf_fields_of (family, NULL);
  g_autofree char *way = text ? way_to (doc, text) : g_strdup ("");
  Changed of = { doc, inner ? inner : doc, family, fields, way };
  g_autofree char *list = placed (&of, changes, diags);
  if (list)
    return ls_override_apply (doc, list, diags);
  ls_json_doc_free (doc);
  return NULL;
}
