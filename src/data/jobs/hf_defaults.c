/* What a config.json leaves out: values that the type has, and those of its configuration class. */
#include "data/jobs/hf_family.h"

static const cJSON *
of (const HfFamily *f, guint i, const char *key)
{
  return cJSON_GetObjectItemCaseSensitive (f->chain->pdata[i], key);
}

/* Null in the file is a value: no default counts then. */
static bool
read_values (const HfFamily *f, const LsJsonDoc *doc, const LsField *fields, const cJSON *values, HfConfig *c,
             LsDiagList *diags)
{
  cJSON *left = cJSON_Duplicate (values, true);
  const cJSON *value;
  cJSON_ArrayForEach (value, values)
  {
    if (cJSON_IsNull (hf_get (doc, value->string)))
      cJSON_DeleteItemFromObjectCaseSensitive (left, value->string);
  }
  bool ok = !left || ls_fields_read (fields, f->doc, left, c, NULL, diags);
  cJSON_Delete (left);
  return ok;
}

static bool
is_same (const LsField *f, const LsField *other)
{
  return f && other && f->kind == other->kind && f->offset == other->offset;
}

/* Whether an object of the file has it, by the names that the type gives there. */
static bool
is_said_in (const cJSON *object, const cJSON *names, const LsField *fields, const LsField *own)
{
  const cJSON *name;
  cJSON_ArrayForEach (name, names)
  {
    const char *other = cJSON_GetStringValue (name);
    if (other && is_same (ls_field_find (fields, other), own)
        && cJSON_GetObjectItemCaseSensitive (object, name->string))
      return true;
  }
  return false;
}

/* Whether the file has a value of a key, by any of its names. */
static bool
is_said (const HfFamily *t, const LsJsonDoc *doc, const LsField *fields, const char *key)
{
  const LsField *own = ls_field_find (fields, key);
  const cJSON *section;
  for (const LsField *f = fields; f->key; f++)
    if (is_same (f, own) && hf_get (doc, f->key))
      return true;
  for (guint i = 0; i < t->chain->len; i++)
    cJSON_ArrayForEach (section, of (t, i, "keys"))
    {
      const cJSON *object = cJSON_IsObject (section) ? hf_get (doc, section->string) : NULL;
      if (object && is_said_in (object, section, fields, own))
        return true;
    }
  return false;
}

static double
number_of (const LsJsonDoc *doc, const cJSON *own, const char *key)
{
  const cJSON *said = hf_get (doc, key), *value = said ? said : cJSON_GetObjectItemCaseSensitive (own, key);
  return cJSON_IsNumber (value) ? value->valuedouble : 0;
}

/* expand x hidden_size / head_dim; 0: no such widths, or heads do not divide them. */
static uint32_t
widths_over_head (const LsJsonDoc *doc, const cJSON *own)
{
  double inner = number_of (doc, NULL, "expand") * number_of (doc, own, "hidden_size"),
         width = number_of (doc, own, "head_dim"), n = width > 0 ? inner / width : 0;
  return n >= 1 && n <= 1 << 20 && n == (uint32_t) n ? (uint32_t) n : 0;
}

/* Heads of mamba2: as widths of the file say, where the class has another number. 0: as the class has it. */
static uint32_t
heads_of_widths (const HfFamily *f, const LsJsonDoc *doc, const LsField *fields, const cJSON *values,
                 const cJSON *value)
{
  const LsField *own = ls_field_find (fields, value->string);
  bool is_heads = own && own->kind == LS_FIELD_UINT && own->offset == offsetof (HfConfig, mixer_heads);
  uint32_t n = is_heads && f->model.mixer.kind == LS_MIXER_MAMBA2 && !is_said (f, doc, fields, value->string)
      ? widths_over_head (doc, values)
      : 0;
  return n == value->valuedouble ? 0 : n;
}

static void
note_heads (const cJSON *value, uint32_t n, GPtrArray *notes)
{
  if (notes)
    ls_note (notes, "%s: %u, as expand x hidden_size / head_dim says, not the class's %.0f", value->string, n,
             value->valuedouble);
}

/* Of its class, which are changed: what the file leaves out is told, but for what is off. */
static bool
read_class (const HfFamily *f, const LsJsonDoc *doc, const LsField *fields, cJSON *values, HfConfig *c,
            GString *told, GPtrArray *notes, LsDiagList *diags)
{
  cJSON *value;
  cJSON_ArrayForEach (value, values)
  {
    uint32_t n = heads_of_widths (f, doc, fields, values, value);
    if (n > 0) {
      note_heads (value, n, notes);
      cJSON_SetNumberValue (value, n);
      continue;
    }
    char *printed = is_said (f, doc, fields, value->string) || hf_is_off (value)
        ? NULL
        : cJSON_PrintUnformatted (value);
    if (printed)
      g_string_append_printf (told, "%s%s %s", told->len > 0 ? ", " : "", value->string, printed);
    cJSON_free (printed);
  }
  return read_values (f, doc, fields, values, c, diags);
}

/* Of a class that is not known, the nearest known one tells what it may have otherwise than is usual. */
static bool
is_guessed (const HfFamily *f, const LsJsonDoc *doc, const LsField *fields, const HfConfig *c,
            LsDiagList *diags)
{
  const cJSON *near = NULL;
  for (guint i = f->chain->len; i-- > 0 && !near;)
    near = of (f, i, "class_defaults");
  const struct {
    const char *key;
    uint32_t usual; /* of all of the type */
  } widths[] = { { "num_key_value_heads", c->kv_heads }, { "head_dim", c->head_dim } };
  for (guint i = 0; i < G_N_ELEMENTS (widths) && !f->latent; i++) {
    const char *key = widths[i].key;
    if (widths[i].usual > 0 || !cJSON_GetObjectItemCaseSensitive (near, key) || is_said (f, doc, fields, key))
      continue;
    ls_json_doc_diag (doc, ls_json_doc_root (doc), LS_JSON_AT_VALUE, diags, NULL,
                      "missing key \"%s\"; what the class of %s takes without it is not known", key,
                      f->model_type);
    return true;
  }
  return false;
}

bool
hf_read_defaults (const HfFamily *f, const LsJsonDoc *doc, const LsField *fields, HfConfig *c,
                  GPtrArray *notes, LsDiagList *diags)
{
  for (guint i = 0; i < f->chain->len; i++)
    if (!read_values (f, doc, fields, of (f, i, "defaults"), c, diags))
      return false;
  g_autoptr (GString) told = g_string_new (NULL);
  const char *class = cJSON_GetStringValue (of (f, f->chain->len - 1, "class")); /* its own alone */
  const cJSON *base = class ? hf_find_type (f->doc, class) : NULL;
  if (!class && !of (f, f->chain->len - 1, "class_defaults"))
    return !is_guessed (f, doc, fields, c, diags);
  cJSON *of_base = cJSON_Duplicate (cJSON_GetObjectItemCaseSensitive (base, "class_defaults"), true),
        *own = cJSON_Duplicate (of (f, f->chain->len - 1, "class_defaults"), true);
  bool ok = read_class (f, doc, fields, of_base, c, told, notes, diags)
      && read_class (f, doc, fields, own, c, told, notes, diags);
  cJSON_Delete (of_base);
  cJSON_Delete (own);
  if (notes && told->len > 0)
    ls_note (notes, "the file leaves out what its class has defaults of: %s", told->str);
  return ok;
}
