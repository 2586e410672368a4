/* data/traces/chakra_manifest.c — a folder with a file for each role: what ranks are, in manifest.json. */
#include <string.h>

#include "data/text/read_file.h"
#include "data/traces/chakra_read.h"
#include "data/traces/chakra_write.h"

/* --- writing -------------------------------------------------------------------------------------- */

uint32_t
chakra_first_of_role (const LsPlan *plan, uint32_t role)
{
  uint32_t rank = 0;
  while (rank < plan->n_ranks && ls_plan_role (plan, rank) != role)
    rank++;
  return rank;
}

static void
write_groups (LsJsonOut *w, const LsPlan *plan)
{
  ls_json_out_begin_object (w, "groups");
  for (uint32_t c = 0; c < plan->n_comms; c++) {
    char name[16];
    g_snprintf (name, sizeof name, "%u", c + 1);
    ls_json_out_begin_object (w, name);
    ls_json_out_string (w, "axis", ls_axis_name (ls_plan_communicator (plan, c).axis));
    if (ls_plan_communicator (plan, c).spans_stages)
      ls_json_out_bool (w, "spans_stages", true);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_object (w);
}

static void
write_rank (LsJsonOut *w, const LsPlan *plan, uint32_t rank)
{
  const LsBinding b = ls_plan_binding (plan, rank);
  ls_json_out_begin_object (w, NULL);
  ls_json_out_uint (w, "role", b.role);
  ls_json_out_uint (w, "gpu", ls_plan_gpu (plan, rank));
  for (int s = 0; s < LS_SLOT_PREV; s++)
    if (b.comm[s] != UINT32_MAX) {
      char name[16];
      g_snprintf (name, sizeof name, "%u", b.comm[s] + 1);
      ls_json_out_string (w, ls_slot_name ((LsSlot) s), name);
    }
  for (int side = 0; side < 2; side++)
    if (b.peer[side] != UINT32_MAX)
      ls_json_out_uint (w, ls_slot_name ((LsSlot) (LS_SLOT_PREV + side)), b.peer[side]);
  ls_json_out_end_object (w);
}

char *
chakra_manifest_text (const LsPlan *plan)
{
  GString *text = g_string_new (NULL);
  LsJsonOut w;
  ls_json_out_init (&w, text, 0);
  ls_json_out_begin_object (&w, NULL);
  ls_json_out_string (&w, "schema", CHAKRA_MANIFEST_SCHEMA);
  ls_json_out_begin_array (&w, "roles");
  for (uint32_t role = 0; role < plan->n_roles; role++) {
    g_autofree char *file = g_strdup_printf ("trace.%u.et", chakra_first_of_role (plan, role));
    ls_json_out_string (&w, NULL, file);
  }
  ls_json_out_end_array (&w);
  write_groups (&w, plan);
  ls_json_out_begin_array (&w, "ranks");
  for (uint32_t rank = 0; rank < plan->n_ranks; rank++)
    write_rank (&w, plan, rank);
  ls_json_out_end_array (&w);
  ls_json_out_end_object (&w);
  return g_string_free (g_string_append_c (text, '\n'), FALSE);
}

/* --- reading -------------------------------------------------------------------------------------- */

static bool
complain (const LsJsonDoc *doc, const cJSON *node, LsDiagList *diags, const char *expected)
{
  ls_json_doc_diag (doc, node, LS_JSON_AT_VALUE, diags, NULL, "expected %s", expected);
  return false;
}

static const cJSON *
list_of (const LsJsonDoc *doc, const char *key)
{
  const cJSON *list = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), key);
  return cJSON_IsArray (list) ? list : NULL;
}

static bool
is_file_name (const cJSON *item)
{
  return cJSON_IsString (item) && g_str_has_suffix (item->valuestring, ".et")
      && !strpbrk (item->valuestring, "/\\");
}

bool
chakra_check_manifest (const LsJsonDoc *doc, uint32_t *ret_n_ranks, LsDiagList *diags)
{
  const cJSON *root = ls_json_doc_root (doc), *schema = cJSON_GetObjectItemCaseSensitive (root, "schema"),
              *item;
  const cJSON *roles = list_of (doc, "roles"), *ranks = list_of (doc, "ranks");
  if (!cJSON_IsString (schema) || strcmp (schema->valuestring, CHAKRA_MANIFEST_SCHEMA) != 0)
    return complain (doc, schema ? schema : root, diags, "\"schema\": \"" CHAKRA_MANIFEST_SCHEMA "\"");
  if (!roles || !ranks)
    return complain (doc, root, diags, "a list \"roles\" of files, and a list \"ranks\"");
  cJSON_ArrayForEach (item, roles) if (!is_file_name (item)) return complain (
      doc, item, diags, "the name of a file in this folder, NAME.R.et");
  int n = cJSON_GetArraySize (ranks);
  if (n < 1 || n > LS_CHAKRA_MAX_RANKS)
    return complain (doc, ranks, diags, "1 to 65536 ranks");
  if (cJSON_GetArraySize (roles) > n)
    return complain (doc, roles, diags, "no more roles than ranks");
  *ret_n_ranks = (uint32_t) n;
  return true;
}

const cJSON *
chakra_manifest_roles (const LsJsonDoc *doc)
{
  return list_of (doc, "roles")->child;
}

const cJSON *
chakra_manifest_ranks (const LsJsonDoc *doc)
{
  return list_of (doc, "ranks")->child;
}

/* What the file of a role says of the groups of its first rank only. */
bool
chakra_read_axes (ChakraReading *all, const LsJsonDoc *doc)
{
  const cJSON *groups = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "groups"), *said;
  cJSON_ArrayForEach (said, groups)
  {
    const cJSON *axis = cJSON_GetObjectItemCaseSensitive (said, "axis");
    ChakraGroup *g = said->string ? chakra_group (all, said->string) : NULL;
    if (!g)
      return complain (doc, said, all->diags, "a process group of " CHAKRA_GROUPS);
    for (LsAxis a = 0; a < LS_N_AXES && cJSON_IsString (axis) && !g->axis; a++)
      if (strcmp (ls_axis_name (a), axis->valuestring) == 0)
        g->axis = g_strdup (axis->valuestring);
    if (!g->axis)
      return complain (doc, axis ? axis : said, all->diags, "\"axis\", one of ours");
    g->spans_stages = cJSON_IsTrue (cJSON_GetObjectItemCaseSensitive (said, "spans_stages"));
  }
  return true;
}

/* A whole number up to max; false: with a complaint. */
static bool
number_of (const LsJsonDoc *doc, const cJSON *item, double max, uint64_t *dest, LsDiagList *diags)
{
  if (!cJSON_IsNumber (item) || !(item->valuedouble >= 0 && item->valuedouble <= max)
      || item->valuedouble != (double) (uint64_t) item->valuedouble)
    return complain (doc, item, diags, "a whole number, of a role, GPU or rank that there is");
  *dest = (uint64_t) item->valuedouble;
  return true;
}

static bool
read_key (RankReading *x, const LsJsonDoc *doc, const cJSON *item)
{
  ChakraReading *all = x->all;
  if (strcmp (item->string, "role") == 0)
    return number_of (doc, item, cJSON_GetArraySize (list_of (doc, "roles")) - 1, &x->role, all->diags);
  if (strcmp (item->string, "gpu") == 0)
    return number_of (doc, item, UINT32_MAX - 1, &x->gpu, all->diags);
  for (int side = 0; side < 2; side++)
    if (strcmp (item->string, ls_slot_name ((LsSlot) (LS_SLOT_PREV + side))) == 0)
      return number_of (doc, item, all->n_ranks - 1, &x->peer[side], all->diags);
  for (int s = 0; s < LS_SLOT_PREV; s++)
    if (strcmp (item->string, ls_slot_name ((LsSlot) s)) == 0) {
      x->slots[s] = cJSON_IsString (item) ? chakra_group (all, item->valuestring) : NULL;
      return x->slots[s] || complain (doc, item, all->diags, "a process group of " CHAKRA_GROUPS);
    }
  return complain (doc, item, all->diags, "role, gpu, prev, next or a slot");
}

bool
chakra_read_listed (RankReading *x, const LsJsonDoc *doc, const cJSON *said)
{
  const cJSON *item;
  x->role = x->gpu = x->peer[0] = x->peer[1] = LS_TRACE_ABSENT;
  if (!cJSON_IsObject (said))
    return complain (doc, said, x->all->diags, "a rank: {\"role\": 0, \"gpu\": 0, ...}");
  cJSON_ArrayForEach (item, said) if (!read_key (x, doc, item)) return false;
  return (x->role != LS_TRACE_ABSENT && x->gpu != LS_TRACE_ABSENT)
      || complain (doc, said, x->all->diags, "a rank with \"role\" and \"gpu\"");
}
