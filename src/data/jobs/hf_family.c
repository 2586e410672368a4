#include "data/jobs/hf_family.h"

#include <string.h>

#include "base/suggest.h"
#include "data/datadir.h"
#include "data/jobs/read_model.h"

/* --- a type, from its file ---------------------------------------------------------- */

static const LsEnumName experts[] = {
  { "none", HF_DENSE },
  { "every", HF_EVERY },
  { "stepped", HF_STEPPED },
  { "after", HF_AFTER },
  { "interleaved", HF_INTERLEAVED },
  { NULL },
};

#define BOOL(key_)                                                                                           \
  {                                                                                                          \
#key_, LS_FIELD_BOOL, offsetof(HfFamily, key_)                                                           \
  }

static const LsField family_fields[] = {
  { "type", LS_FIELD_STRING, offsetof (HfFamily, model_type) },
  { "experts", LS_FIELD_ENUM, offsetof (HfFamily, experts), .names = experts },
  BOOL (experts_are_optional),
  BOOL (latent),
  BOOL (slides),
  BOOL (unrotated_full),
  BOOL (dense_is_shared),
  BOOL (halves_ffn),
  BOOL (qkv_bias_alone),
  BOOL (kv_by_flag),
  BOOL (halves),
  BOOL (encoder),
  { NULL },
};

static const char *const others[] = { "like", "defaults", "keys", "notes", "refused", "source", NULL };

static bool
set_key (HfFamily *f, const cJSON *node, LsDiagList *diags)
{
  bool is_own = ls_field_find (family_fields, node->string) != NULL;
  g_autofree char *text = cJSON_IsString (node) ? g_strdup (node->valuestring) : NULL;
  char *printed = text ? NULL : cJSON_PrintUnformatted (node);
  bool ok = ls_field_set_text (is_own ? family_fields : ls_model_fields,
                               is_own ? (gpointer) f : (gpointer) &f->model, node->string,
                               text ? text : printed, diags);
  cJSON_free (printed);
  return ok;
}

static const cJSON *
find_type (const LsJsonDoc *types, const char *name)
{
  const cJSON *type;
  cJSON_ArrayForEach (type, hf_get (types, "types"))
  {
    const cJSON *own = cJSON_GetObjectItemCaseSensitive (type, "type");
    if (cJSON_IsString (own) && strcmp (own->valuestring, name) == 0)
      return type;
  }
  return NULL;
}

#define MOST_LIKE 8 /* types, one like the other */

/* The types that it is like are set first. */
static bool
add_type (HfFamily *f, const cJSON *type, guint depth, LsDiagList *diags)
{
  const cJSON *like = cJSON_GetObjectItemCaseSensitive (type, "like"), *node;
  const cJSON *base = cJSON_IsString (like) ? find_type (f->doc, like->valuestring) : NULL;
  if ((like && !base) || depth == MOST_LIKE) {
    ls_json_doc_diag (f->doc, like ? like : type, LS_JSON_AT_VALUE, diags, NULL,
                      "expected a type of this file");
    return false;
  }
  if (base && !add_type (f, base, depth + 1, diags))
    return false;
  g_ptr_array_add (f->chain, (gpointer) type);
  cJSON_ArrayForEach (node, type)
  {
    if (!g_strv_contains (others, node->string) && !set_key (f, node, diags))
      return false;
  }
  return true;
}

void
hf_family_free (HfFamily *f)
{
  if (!f)
    return;
  g_free (f->model_type);
  ls_model_clear (&f->model);
  ls_json_doc_free (f->doc);
  g_ptr_array_unref (f->chain);
  g_free (f);
}

/* Takes types. */
static HfFamily *
family_new (LsJsonDoc *types, const cJSON *type, LsDiagList *diags)
{
  g_autoptr (HfFamily) f = g_new0 (HfFamily, 1);
  f->doc = types;
  f->chain = g_ptr_array_new ();
  return add_type (f, type, 0, diags) ? g_steal_pointer (&f) : NULL;
}

void
hf_note_omissions (const HfFamily *f, GPtrArray *notes)
{
  for (guint i = 0; i < f->chain->len; i++) {
    const cJSON *note;
    cJSON_ArrayForEach (note, cJSON_GetObjectItemCaseSensitive (f->chain->pdata[i], "notes"))
        g_ptr_array_add (notes, g_strdup (note->valuestring));
  }
}

bool
hf_is_simulated (const LsJsonDoc *doc, const HfFamily *f, LsDiagList *diags)
{
  for (guint i = 0; i < f->chain->len; i++) {
    const cJSON *reason;
    cJSON_ArrayForEach (reason, cJSON_GetObjectItemCaseSensitive (f->chain->pdata[i], "refused"))
    {
      const cJSON *node = hf_get (doc, reason->string);
      bool is_off = !node || cJSON_IsNull (node) || cJSON_IsFalse (node)
          || (cJSON_IsNumber (node) && node->valuedouble == 0);
      if (!is_off)
        return hf_refuse (doc, node, diags, reason->valuestring);
    }
  }
  return true;
}

/* --- which it is ------------------------------------------------------------------------ */

/* Of a class of transformers, such as DeepseekV3ForCausalLM: what stands before "ForCausalLM" without
 * its capitals is the model_type without its underscores. */
static const cJSON *
type_of_class (const LsJsonDoc *types, const char *class_name)
{
  const cJSON *type;
  cJSON_ArrayForEach (type, hf_get (types, "types"))
  {
    const char *name = cJSON_GetStringValue (cJSON_GetObjectItemCaseSensitive (type, "type"));
    g_auto (GStrv) words = g_strsplit (name, "_", -1);
    g_autofree char *joined = g_strjoinv ("", words), *expected = g_strconcat (joined, "ForCausalLM", NULL);
    if (g_ascii_strcasecmp (class_name, expected) == 0)
      return type;
  }
  return NULL;
}

/* A model_type of somebody's own over an architecture that is known. NULL: it has no such class. */
static const cJSON *
type_of_classes (const LsJsonDoc *types, const LsJsonDoc *doc, GPtrArray *notes)
{
  const cJSON *own = hf_get (doc, "model_type"), *name;
  cJSON_ArrayForEach (name, hf_get (doc, "architectures"))
  {
    const cJSON *type = cJSON_IsString (name) ? type_of_class (types, name->valuestring) : NULL;
    if (!type)
      continue;
    if (notes)
      g_ptr_array_add (
          notes,
          g_strdup_printf ("model_type %s is not known; read as %s, which its architecture %s is",
                           cJSON_IsString (own) ? own->valuestring : "(none)",
                           cJSON_GetStringValue (cJSON_GetObjectItemCaseSensitive (type, "type")),
                           name->valuestring));
    return type;
  }
  return NULL;
}

/* The nearest name, borrowed; NULL: none is near. */
static const char *
nearest_type (const LsJsonDoc *types, const char *typed)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  const cJSON *type;
  cJSON_ArrayForEach (type, hf_get (types, "types"))
      g_ptr_array_add (names, cJSON_GetStringValue (cJSON_GetObjectItemCaseSensitive (type, "type")));
  g_ptr_array_add (names, NULL);
  return typed ? ls_suggest (typed, (const char *const *) names->pdata) : NULL;
}

static void
refuse_type (const LsJsonDoc *types, const LsJsonDoc *doc, LsDiagList *diags)
{
  const cJSON *own = hf_get (doc, "model_type");
  const char *near = nearest_type (types, cJSON_GetStringValue (own));
  g_autofree char *got = own ? ls_json_describe (own) : g_strdup ("no key \"model_type\"");
  g_autofree char *meant = near ? g_strdup_printf ("; did you mean \"%s\"?", near) : g_strdup ("");
  g_autofree char *reason = g_strdup_printf (
      "expected a type of decoder that models/types/huggingface.json has; got %s%s", got, meant);
  hf_refuse (doc, own ? own : ls_json_doc_root (doc), diags, reason);
}

HfFamily *
hf_find_family (const LsJsonDoc *doc, GPtrArray *notes, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) types = ls_data_load (LS_DATA_MODEL_TYPES, "huggingface", diags);
  if (!types)
    return NULL;
  const cJSON *own = hf_get (doc, "model_type");
  const cJSON *type = cJSON_IsString (own) ? find_type (types, own->valuestring) : NULL;
  if (!type && (!own || cJSON_IsString (own)))
    type = type_of_classes (types, doc, notes);
  if (!type) {
    refuse_type (types, doc, diags);
    return NULL;
  }
  return family_new (g_steal_pointer (&types), type, diags);
}
