/* data/traces/chakra_read_groups.c — process groups of Chakra traces: those of the folder's file, and those
 * that nodes of PyTorch's process_group:init name. */
#include <string.h>

#include "data/traces/chakra_read.h"

/* --- process groups ------------------------------------------------------------------------ */

static bool
is_member_list (const cJSON *ranks)
{
  const cJSON *rank;
  if (!cJSON_IsArray (ranks))
    return false;
  cJSON_ArrayForEach (rank, ranks) if (!cJSON_IsNumber (rank) || rank->valuedouble < 0
                                       || rank->valuedouble >= LS_CHAKRA_MAX_RANKS
                                       || rank->valuedouble != (double) rank->valueint) return false;
  return true;
}

/* [0,1,2]; no members are all ranks, as PyTorch has it. */
static char *
members_text (const ChakraReading *all, const cJSON *ranks)
{
  GString *text = g_string_new ("[");
  const cJSON *rank;
  cJSON_ArrayForEach (rank, ranks)
      g_string_append_printf (text, "%s%d", text->len > 1 ? "," : "", rank->valueint);
  for (uint32_t i = 0; !ranks->child && i < all->n_ranks; i++)
    g_string_append_printf (text, "%s%u", i > 0 ? "," : "", i);
  return g_string_free (g_string_append_c (text, ']'), FALSE);
}

void
chakra_group_free (gpointer group)
{
  ChakraGroup *g = group;
  g_free (g->name);
  g_free (g->members);
  g_free (g->axis);
  g_free (g);
}

ChakraGroup *
chakra_group (ChakraReading *all, const char *name)
{
  for (guint i = 0; i < all->groups->len; i++)
    if (strcmp (((ChakraGroup *) all->groups->pdata[i])->name, name) == 0)
      return all->groups->pdata[i];
  return NULL;
}

/* NULL: it is there, with other members. */
ChakraGroup *
chakra_add_group (ChakraReading *all, const char *name, const cJSON *ranks)
{
  g_autofree char *members = members_text (all, ranks);
  ChakraGroup *g = chakra_group (all, name);
  if (g)
    return strcmp (g->members, members) == 0 ? g : NULL;
  g = g_new0 (ChakraGroup, 1);
  g->index = all->groups->len;
  g->name = g_strdup (name);
  g->members = g_steal_pointer (&members);
  g_ptr_array_add (all->groups, g);
  return g;
}

bool
chakra_read_groups_file (ChakraReading *all, const char *text)
{
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), CHAKRA_GROUPS, all->diags);
  const cJSON *group, *root = doc ? ls_json_doc_root (doc) : NULL;
  if (!doc)
    return false;
  cJSON_ArrayForEach (group, root) if (!group->string || !is_member_list (group))
  {
    ls_json_doc_diag (doc, group, LS_JSON_AT_VALUE, all->diags, NULL,
                      "expected a list of ranks below %d for each name of a process group",
                      LS_CHAKRA_MAX_RANKS);
    return false;
  }
  else chakra_add_group (all, group->string, group);
  return true;
}

/* What PyTorch puts around JSON: a list of one text, as Python writes it. */
static cJSON *
parse_groups (const char *values)
{
  size_t n = strlen (values);
  return n > 4 && values[0] == '[' && values[n - 1] == ']' ? cJSON_ParseWithLength (values + 2, n - 4) : NULL;
}

static void
read_group (RankReading *x, const ChakraNode *node, const cJSON *said)
{
  const cJSON *name = cJSON_GetObjectItemCaseSensitive (said, "pg_name"),
              *ranks = cJSON_GetObjectItemCaseSensitive (said, "ranks");
  if (!cJSON_IsString (name) || !is_member_list (ranks)) {
    chakra_complain (x, node, "expected process groups with \"pg_name\" and \"ranks\" below %d",
                     LS_CHAKRA_MAX_RANKS);
    return;
  }
  ChakraGroup *g = chakra_add_group (x->all, name->valuestring, ranks);
  if (!g) {
    chakra_complain (x, node, "process group %s has other members here", name->valuestring);
    return;
  }
  chakra_bind_group (x, node, g);
}

void
chakra_read_groups (RankReading *x, const ChakraNode *node)
{
  const char *values = node->inputs ? node->inputs->values : "";
  cJSON *list = parse_groups (values);
  const cJSON *said;
  if (!cJSON_IsArray (list))
    chakra_complain (x, node, "expected process groups as a list in inputs.values");
  cJSON_ArrayForEach (said, list) read_group (x, node, said);
  cJSON_Delete (list);
}

/* --- slots of a rank --- */

static void
bind_slot (RankReading *x, const ChakraNode *node, const char *slot, const ChakraGroup *group)
{
  for (int s = 0; s < LS_SLOT_PREV; s++)
    if (strcmp (ls_slot_name ((LsSlot) s), slot) == 0) {
      if (x->slots[s] && x->slots[s] != group)
        chakra_complain (x, node, "slot %s is that of another process group", slot);
      x->slots[s] = group;
      return;
    }
  chakra_complain (x, node, "slots: \"%.40s\" is none", slot);
}

const char *
chakra_slot_of (const RankReading *x, const ChakraGroup *group)
{
  for (int s = 0; s < LS_SLOT_PREV; s++)
    if (x->slots[s] == group)
      return ls_slot_name ((LsSlot) s);
  return NULL;
}

/* Slots are only names: a group of others takes the next. */
void
chakra_bind_next_slot (RankReading *x, const ChakraNode *node, const ChakraGroup *group)
{
  for (int s = 0; s < LS_SLOT_PREV && !chakra_slot_of (x, group); s++)
    if (!x->slots[s])
      x->slots[s] = group;
  if (!chakra_slot_of (x, group))
    chakra_complain (x, node, "a rank in more than %d process groups", LS_SLOT_PREV);
}

void
chakra_bind_group (RankReading *x, const ChakraNode *node, ChakraGroup *group)
{
  const ChakraAttr *slots = chakra_attr (node, "slots");
  const char *axis = chakra_text_of (node, "axis");
  if (!x->is_ours || !axis)
    return;
  for (LsAxis a = 0; a < LS_N_AXES; a++)
    if (strcmp (ls_axis_name (a), axis) == 0 && !group->axis)
      group->axis = g_strdup (axis);
  if (g_strcmp0 (group->axis, axis) != 0)
    chakra_complain (x, node, "axis: another than before, or none of ours");
  group->spans_stages |= chakra_is_on (node, "spans_stages");
  if (!slots || slots->value_case != CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_STRING_LIST)
    return;
  for (size_t i = 0; i < slots->string_list->n_values; i++)
    bind_slot (x, node, slots->string_list->values[i], group);
}
