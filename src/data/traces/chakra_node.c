#include "data/traces/chakra_node.h"

#include <string.h>

#include <cjson/cJSON.h>

/* --- making --- */

static void
attr_free (gpointer attr)
{
  ChakraAttr *a = attr;
  if (a->value_case == CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_STRING_LIST) {
    g_free (a->string_list->values);
    g_free (a->string_list);
  }
  g_free (a);
}

void
chakra_attrs_init (ChakraAttrs *a)
{
  *a = (ChakraAttrs) { g_ptr_array_new_with_free_func (attr_free), g_string_chunk_new (4096) };
}

void
chakra_attrs_reset (ChakraAttrs *a)
{
  g_ptr_array_set_size (a->list, 0);
  g_string_chunk_clear (a->texts);
}

void
chakra_attrs_clear (ChakraAttrs *a)
{
  g_ptr_array_unref (a->list);
  g_string_chunk_free (a->texts);
}

static ChakraAttr *
add (ChakraAttrs *a, const char *name, ChakraProtoMsg__AttributeProto__ValueCase type)
{
  ChakraAttr *attr = g_new (ChakraAttr, 1);
  chakra_proto_msg__attribute_proto__init (attr);
  attr->name = g_string_chunk_insert (a->texts, name);
  attr->value_case = type;
  g_ptr_array_add (a->list, attr);
  return attr;
}

void
chakra_add_int64 (ChakraAttrs *a, const char *name, int64_t value)
{
  add (a, name, CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_INT64_VAL)->int64_val = value;
}

void
chakra_add_uint64 (ChakraAttrs *a, const char *name, uint64_t value)
{
  add (a, name, CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_UINT64_VAL)->uint64_val = value;
}

void
chakra_add_int32 (ChakraAttrs *a, const char *name, int32_t value)
{
  add (a, name, CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_INT32_VAL)->int32_val = value;
}

void
chakra_add_double (ChakraAttrs *a, const char *name, double value)
{
  add (a, name, CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_DOUBLE_VAL)->double_val = value;
}

void
chakra_add_bool (ChakraAttrs *a, const char *name, bool value)
{
  add (a, name, CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_BOOL_VAL)->bool_val = value;
}

void
chakra_add_string (ChakraAttrs *a, const char *name, const char *value)
{
  add (a, name, CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_STRING_VAL)->string_val
      = g_string_chunk_insert (a->texts, value);
}

void
chakra_add_strings (ChakraAttrs *a, const char *name, const GPtrArray *values)
{
  ChakraProtoMsg__StringList *list = g_new (ChakraProtoMsg__StringList, 1);
  chakra_proto_msg__string_list__init (list);
  list->n_values = values->len;
  list->values = g_new (char *, MAX (1, values->len));
  for (guint i = 0; i < values->len; i++)
    list->values[i] = g_string_chunk_insert (a->texts, values->pdata[i]);
  add (a, name, CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_STRING_LIST)->string_list = list;
}

/* --- finding --- */

const ChakraAttr *
chakra_find (ChakraAttr *const *attrs, size_t n, const char *name)
{
  for (size_t i = 0; i < n; i++)
    if (strcmp (attrs[i]->name, name) == 0)
      return attrs[i];
  return NULL;
}

static bool
from_signed (int64_t value, uint64_t *ret_value)
{
  *ret_value = (uint64_t) value;
  return value >= 0;
}

bool
chakra_uint (const ChakraAttr *attr, uint64_t *ret_value)
{
  switch (attr->value_case) {
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_INT32_VAL:
    return from_signed (attr->int32_val, ret_value);
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_SINT32_VAL:
    return from_signed (attr->sint32_val, ret_value);
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_SFIXED32_VAL:
    return from_signed (attr->sfixed32_val, ret_value);
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_INT64_VAL:
    return from_signed (attr->int64_val, ret_value);
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_SINT64_VAL:
    return from_signed (attr->sint64_val, ret_value);
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_SFIXED64_VAL:
    return from_signed (attr->sfixed64_val, ret_value);
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_UINT32_VAL:
    *ret_value = attr->uint32_val;
    return true;
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_FIXED32_VAL:
    *ret_value = attr->fixed32_val;
    return true;
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_UINT64_VAL:
    *ret_value = attr->uint64_val;
    return true;
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_FIXED64_VAL:
    *ret_value = attr->fixed64_val;
    return true;
  default:
    return false;
  }
}

const char *
chakra_text (const ChakraAttr *attr)
{
  return attr && attr->value_case == CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_STRING_VAL ? attr->string_val
                                                                                         : NULL;
}

bool
chakra_is_json_object (const char *text)
{
  cJSON *json = cJSON_ParseWithOpts (text, NULL, TRUE);
  bool is_object = cJSON_IsObject (json);
  cJSON_Delete (json);
  return is_object;
}
