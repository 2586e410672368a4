#include "data/traces/chakra_node.h"

#include <string.h>

const ChakraAttr *
chakra_find (ChakraAttr *const *attrs, size_t n, const char *name)
{
  for (size_t i = 0; i < n; i++)
    if (strcmp (attrs[i]->name, name) == 0)
      return attrs[i];
  return NULL;
}

bool
chakra_uint (const ChakraAttr *attr, uint64_t *ret_value)
{
  switch (attr->value_case) { /* members of one type are one member */
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_INT32_VAL:
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_SINT32_VAL:
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_SFIXED32_VAL:
    *ret_value = (uint64_t) attr->int32_val;
    return attr->int32_val >= 0;
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_INT64_VAL:
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_SINT64_VAL:
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_SFIXED64_VAL:
    *ret_value = (uint64_t) attr->int64_val;
    return attr->int64_val >= 0;
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_UINT32_VAL:
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_FIXED32_VAL:
    *ret_value = attr->uint32_val;
    return true;
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_UINT64_VAL:
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_FIXED64_VAL:
    *ret_value = attr->uint64_val;
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
chakra_is_attribute (const char *key)
{
  static const char *const others[]
      = { "op", "name", "kernel", "coll", "bytes", "after", "stream", "transfers", "buffers", NULL };
  return !g_strv_contains (others, key);
}

const LsField *
chakra_attribute (const char *name)
{
  for (const LsField *f = ls_trace_op_fields; f->key; f++)
    if (strcmp (f->key, name) == 0)
      return chakra_is_attribute (name) ? f : NULL;
  return NULL;
}
