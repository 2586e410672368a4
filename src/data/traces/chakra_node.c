#include "data/traces/chakra_node.h"

#include <string.h>

#include <cjson/cJSON.h>

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
