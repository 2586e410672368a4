#include "data/jobs/hf_family.h"

#include <string.h>

#include "base/handover.h"
#include "base/suggest.h"
#include "data/datadir.h"
#include "data/jobs/job_files.h"

/* --- what all parts of the reader ask ------------------------------------------------ */

const cJSON *
hf_get (const LsJsonDoc *doc, const char *key)
{
  return cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), key);
}

double
hf_number (const cJSON *object, const char *key, double otherwise)
{
  const cJSON *number = cJSON_GetObjectItemCaseSensitive (object, key);
  return cJSON_IsNumber (number) ? number->valuedouble : otherwise;
}

bool
hf_refuse (const LsJsonDoc *doc, const cJSON *node, LsDiagList *diags, const char *reason)
{
  return ls_json_doc_diag_code (doc, LS_ERROR_UNSUPPORTED, node, diags, NULL, "%s", reason);
}

/* --- a type, from its file ---------------------------------------------------------- */

static const LsEnumName experts[] = {
  { "none", HF_DENSE },
  { "every", HF_EVERY },
  { "stepped", HF_STEPPED },
  { "after", HF_AFTER },
  { "interleaved", HF_INTERLEAVED },
  { NULL },
};

static const LsEnumName windows[] = {
  { "behind", HF_WINDOWS_BEHIND },
  { "all", HF_WINDOWS_ALL },
  { "second", HF_WINDOWS_SECOND },
  { "unrotated", HF_WINDOWS_UNROTATED },
  { "listed", HF_WINDOWS_LISTED },
  { "first_half", HF_WINDOWS_FIRST_HALF },
  { NULL },
};

#define BOOL(key_)                                                                                           \
  {                                                                                                          \
#key_, LS_FIELD_BOOL, offsetof(HfFamily, key_)                                                           \
  }

static const LsField family_fields[] = {
  { "type", LS_FIELD_STRING, offsetof (HfFamily, model_type), .required = true },
  { "experts", LS_FIELD_ENUM, offsetof (HfFamily, experts), .names = experts },
  { "windows", LS_FIELD_ENUM, offsetof (HfFamily, windows), .names = windows },
  BOOL (experts_are_optional),
  BOOL (one_is_dense),
  BOOL (latent),
  BOOL (heads_are_experts),
  BOOL (latent_queries),
  BOOL (compressed),
  BOOL (slides),
  BOOL (unrotated_full),
  BOOL (dense_is_shared),
  BOOL (ffn_is_shared),
  BOOL (halves_ffn),
  BOOL (qkv_bias_alone),
  BOOL (kv_by_flag),
  BOOL (first_of_lists),
  BOOL (halves),
  BOOL (layers_are_patterns),
  BOOL (encoder),
  { "least_rank", LS_FIELD_UINT, offsetof (HfFamily, least_rank), .max = 65536 },
  { "own_behind_half", LS_FIELD_UINT, offsetof (HfFamily, own_behind_half), .max = 65536 },
  { "mixer_key_share", LS_FIELD_DOUBLE, offsetof (HfFamily, mixer_key_share), .max = 64 },
  BOOL (own_tables),
  { NULL },
};

/* What a type says beside: read where it is used, by the keys of a file of that program. */
typedef struct {
  HfFamily family;
  char *like, *class, *source, *unsupported, **defaults, **class_defaults;
  GArray *notes, *classes, *variants;
} TypeEntry;

typedef struct {
  char *like;
} Variant;

static const LsField variant_fields[] = {
  { "like", LS_FIELD_STRING, offsetof (Variant, like), .required = true },
  { "where", LS_FIELD_IGNORED, .required = true, .expected = "object" },
  { .table = "model-types.variants" },
};

static const LsField other_fields[] = {
  { "like", LS_FIELD_STRING, offsetof (TypeEntry, like) },
  { "variants", LS_FIELD_ARRAY, offsetof (TypeEntry, variants), .fields = variant_fields,
    .element_size = sizeof (Variant) },
  { "defaults", LS_FIELD_SETTINGS, offsetof (TypeEntry, defaults) },
  { "class_defaults", LS_FIELD_SETTINGS, offsetof (TypeEntry, class_defaults) },
  { "class", LS_FIELD_STRING, offsetof (TypeEntry, class) },
  { "classes", LS_FIELD_ARRAY, offsetof (TypeEntry, classes), LS_FIELD_TEXTS },
  { "unsupported", LS_FIELD_STRING, offsetof (TypeEntry, unsupported) },
  { "keys", LS_FIELD_IGNORED, .expected = "object" },
  { "notes", LS_FIELD_ARRAY, offsetof (TypeEntry, notes), LS_FIELD_TEXTS },
  { "refused", LS_FIELD_SOURCES },
  { "source", LS_FIELD_STRING, offsetof (TypeEntry, source), .required = true },
  { NULL },
};

/* As long as all tables together, their ends included. */
static LsField type_fields[192];

/* Keys of a model, but of those that every file begins with: all of a type may have them. As the model comes
 * first in a type, places are the same. */
static void
add_model_fields (guint n)
{
  for (const LsField *f = ls_model_fields; f->key; f++) {
    if (f->root_only || ls_field_find (family_fields, f->key))
      continue;
    g_assert (n < G_N_ELEMENTS (type_fields) - 1);
    type_fields[n] = *f;
    type_fields[n].required = false;
    type_fields[n].default_text = ls_field_default (f);
    type_fields[n++].meaning = ls_field_meaning (f);
  }
  type_fields[n].table = "model-types.types";
}

typedef struct {
  char *name, *source;
  GArray *lists, *ignored, *types;
} TypesFile;

static const LsField file_fields[] = {
  LS_FIELDS_HEADER (TypesFile),
  { "keys", LS_FIELD_IGNORED, .expected = "object" },
  { "layer_letters", LS_FIELD_IGNORED, .expected = "object" },
  { "half_letters", LS_FIELD_IGNORED, .expected = "object" },
  { "sees_all", LS_FIELD_IGNORED, .expected = "object" },
  { "lists", LS_FIELD_ARRAY, offsetof (TypesFile, lists), LS_FIELD_TEXTS },
  { "ignored", LS_FIELD_ARRAY, offsetof (TypesFile, ignored), LS_FIELD_TEXTS },
  { "told", LS_FIELD_SOURCES },
  { "types", LS_FIELD_ARRAY, offsetof (TypesFile, types), .required = true, .fields = type_fields,
    .element_size = sizeof (TypeEntry) },
  { .table = "model-types" },
};
G_STATIC_ASSERT (offsetof (HfFamily, model) == 0 && offsetof (TypeEntry, family) == 0);

const LsField *
ls_model_types_fields (void)
{
  static gsize is_made;
  if (!ls_once_enter (&is_made))
    return file_fields;
  guint n_own = G_N_ELEMENTS (family_fields) - 1, n_others = G_N_ELEMENTS (other_fields) - 1;
  memcpy (type_fields, family_fields, n_own * sizeof (LsField));
  memcpy (type_fields + n_own, other_fields, n_others * sizeof (LsField));
  add_model_fields (n_own + n_others);
  ls_once_leave (&is_made);
  return file_fields;
}

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

const cJSON *
hf_find_type (const LsJsonDoc *types, const char *name)
{
  const cJSON *type;
  cJSON_ArrayForEach (type, hf_get (types, "types")) {
    const cJSON *own = ls_json_at (type, "type");
    if (cJSON_IsString (own) && strcmp (own->valuestring, name) == 0)
      return type;
  }
  return NULL;
}

static bool
has_value (const cJSON *own, const cJSON *value)
{
  bool is_there = own && !cJSON_IsNull (own);
  return cJSON_IsNull (value) ? !is_there : is_there && cJSON_Compare (own, value, true);
}

/* Whether a file has all the keys that a variant has. */
static bool
is_variant (const LsJsonDoc *doc, const cJSON *variant)
{
  const cJSON *key, *value;
  cJSON_ArrayForEach (key, ls_json_at (variant, "where")) {
    const cJSON *own = hf_get (doc, key->string);
    bool has = !cJSON_IsArray (key) && has_value (own, key);
    cJSON_ArrayForEach (value, key)
      has = has || has_value (own, value);
    if (!has)
      return false;
  }
  return true;
}

static const cJSON *
find_variant (const LsJsonDoc *doc, const cJSON *type)
{
  const cJSON *variant;
  cJSON_ArrayForEach (variant, ls_json_at (type, "variants"))
    if (is_variant (doc, variant))
      return variant;

  return NULL;
}

#define MOST_LIKE 8 /* types, one like the other */

/* The types that it is like are set first. */
static bool
add_type (HfFamily *f, const cJSON *type, guint depth, LsDiagList *diags)
{
  const cJSON *variant = f->config ? find_variant (f->config, type) : NULL, *node;
  const cJSON *like = ls_json_at (variant ? variant : type, "like");
  const cJSON *base = cJSON_IsString (like) ? hf_find_type (f->doc, like->valuestring) : NULL;
  if ((like && !base) || depth == MOST_LIKE)
    return ls_json_doc_wrong (f->doc, like ? like : type, diags, "expected a type of this file");
  if (base && !add_type (f, base, depth + 1, diags))
    return false;
  g_ptr_array_add (f->chain, (gpointer) type);
  cJSON_ArrayForEach (node, type)
    if (!ls_field_find (other_fields, node->string) && !set_key (f, node, diags))
      return false;

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

/* Takes types. config: the file that is of the type. */
static HfFamily *
family_new (LsJsonDoc *types, const cJSON *type, const LsJsonDoc *config, LsDiagList *diags)
{
  g_autoptr (HfFamily) f = g_new0 (HfFamily, 1);
  f->doc = types;
  f->config = config;
  f->chain = g_ptr_array_new ();
  bool ok = add_type (f, type, 0, diags);
  f->config = NULL;
  return ok ? g_steal_pointer (&f) : NULL;
}

bool
hf_is_off (const cJSON *node)
{
  return !node || cJSON_IsNull (node) || cJSON_IsFalse (node)
      || (cJSON_IsNumber (node) && node->valuedouble == 0) || (cJSON_IsArray (node) && !node->child);
}

/* Of several keys with one note it is told once. */
static void
tell_keys (const LsJsonDoc *doc, const HfFamily *f, GPtrArray *notes)
{
  const cJSON *told;
  cJSON_ArrayForEach (told, hf_get (f->doc, "told")) {
    bool is_said = g_ptr_array_find_with_equal_func (notes, told->valuestring, g_str_equal, NULL);
    if (!hf_is_off (hf_get (doc, told->string)) && !is_said)
      g_ptr_array_add (notes, g_strdup (told->valuestring));
  }
}

void
hf_note_omissions (const LsJsonDoc *doc, const HfFamily *f, GPtrArray *notes)
{
  for (guint i = 0; i < f->chain->len; i++) {
    const cJSON *note;
    cJSON_ArrayForEach (note, ls_json_at (f->chain->pdata[i], "notes"))
      g_ptr_array_add (notes, g_strdup (note->valuestring));
  }
  tell_keys (doc, f, notes);
}

bool
hf_is_simulated (const LsJsonDoc *doc, const HfFamily *f, LsDiagList *diags)
{
  const cJSON *own = hf_get (doc, "model_type"); /* NULL: known by its class, or by the whole that it is of */
  if (ls_json_at (f->chain->pdata[0], "variants")) /* it is like none */
    return hf_refuse (doc, own ? own : ls_json_doc_root (doc), diags,
                      "a type of several kinds, and the file has the keys of none that "
                      "models/types/huggingface.json has");
  for (guint i = 0; i < f->chain->len; i++) {
    const cJSON *reason = ls_json_at (f->chain->pdata[i], "unsupported");
    if (reason)
      return hf_refuse (doc, own ? own : ls_json_doc_root (doc), diags, reason->valuestring);
    cJSON_ArrayForEach (reason, ls_json_at (f->chain->pdata[i], "refused")) {
      const cJSON *node = hf_get (doc, reason->string);
      if (!hf_is_off (node))
        return hf_refuse (doc, node, diags, reason->valuestring);
    }
  }
  return true;
}

/* --- which it is ------------------------------------------------------------------------ */

/* Of a class of transformers, such as DeepseekV3ForCausalLM: what stands before "ForCausalLM" without
 * its capitals is the model_type without its underscores; or one that a type names. */
static const cJSON *
type_of_class (const LsJsonDoc *types, const char *class_name)
{
  const cJSON *type, *own;
  cJSON_ArrayForEach (type, hf_get (types, "types")) {
    const char *name = cJSON_GetStringValue (ls_json_at (type, "type"));
    cJSON_ArrayForEach (own, ls_json_at (type, "classes"))
      if (strcmp (own->valuestring, class_name) == 0)
        return type;

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
  cJSON_ArrayForEach (name, hf_get (doc, "architectures")) {
    const cJSON *type = cJSON_IsString (name) ? type_of_class (types, name->valuestring) : NULL;
    if (!type)
      continue;
    if (notes)
      ls_note (notes, "model_type %s is not known; read as %s, which its architecture %s is",
               cJSON_IsString (own) ? own->valuestring : "(none)",
               cJSON_GetStringValue (ls_json_at (type, "type")), name->valuestring);
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
    g_ptr_array_add (names, cJSON_GetStringValue (ls_json_at (type, "type")));
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
  const cJSON *type = cJSON_IsString (own) ? hf_find_type (types, own->valuestring) : NULL;
  if (!type && (!own || cJSON_IsString (own)))
    type = type_of_classes (types, doc, notes);
  if (!type) {
    refuse_type (types, doc, diags);
    return NULL;
  }
  return family_new (g_steal_pointer (&types), type, doc, diags);
}

/* --- the file as a whole ------------------------------------------------------------------------- */

/* What each variant is like is there, and says for itself whether it is right. */
static bool
check_variants (const LsJsonDoc *doc, const cJSON *type, LsDiagList *diags)
{
  const cJSON *variant;
  bool ok = true;
  cJSON_ArrayForEach (variant, ls_json_at (type, "variants")) {
    const cJSON *like = ls_json_at (variant, "like"), *other = hf_find_type (doc, like->valuestring);
    if (other && !ls_json_at (other, "variants"))
      continue;
    ok = ls_json_doc_wrong (doc, like, diags, "expected a type of this file, of one kind");
  }
  return ok;
}

/* The type whose class it has gives values, and has no other's itself. */
static bool
check_class (const LsJsonDoc *doc, const cJSON *type, LsDiagList *diags)
{
  const cJSON *class = ls_json_at (type, "class"),
              *other = class ? hf_find_type (doc, class->valuestring) : NULL;
  if (!class || (cJSON_HasObjectItem (other, "class_defaults") && !cJSON_HasObjectItem (other, "class")))
    return true;
  return ls_json_doc_wrong (doc, class, diags,
                            "expected a type of this file with class_defaults and no class of another");
}

/* Its values, and those of what it is like. */
static bool
check_type (const LsJsonDoc *doc, const cJSON *type, LsDiagList *diags)
{
  HfFamily f = { .doc = (LsJsonDoc *) doc }; /* borrowed */
  g_autoptr (GPtrArray) chain = f.chain = g_ptr_array_new ();
  bool ok
      = add_type (&f, type, 0, diags) && check_variants (doc, type, diags) && check_class (doc, type, diags);
  g_free (f.model_type);
  ls_model_clear (&f.model);
  return ok;
}

guint
ls_model_types_check (const LsJsonDoc *doc, LsDiagList *diags)
{
  const LsField *fields = ls_model_types_fields ();
  TypesFile file = { NULL };
  bool ok = ls_fields_read_file (fields, "model-types", doc, &file, diags);
  ls_fields_clear (fields, &file);
  if (!ok)
    return 0;
  guint n = 0;
  const cJSON *type;
  cJSON_ArrayForEach (type, hf_get (doc, "types")) {
    const cJSON *name = ls_json_at (type, "type");
    ok = (hf_find_type (doc, name->valuestring) == type
          || ls_json_doc_wrong (doc, name, diags, "expected a type that comes once"))
        && check_type (doc, type, diags) && ok;
    n++;
  }
  return ok ? n : 0;
}
