/* data/traces/captured_groups.c — groups of ranks that a captured program made, as the communicators of all
 * ranks. */
#include "data/traces/captured_read.h"

#include <string.h>

#define MOST_MEMBERS (1 << 26) /* of all groups that a program makes */

GArray *
captured_ranks (CapturedReading *x, const char *file, const cJSON *run)
{
  const cJSON *list = cJSON_IsObject (run) ? cJSON_GetObjectItemCaseSensitive (run, "ranks") : NULL, *each;
  g_autoptr (GArray) ranks = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  double first = cJSON_GetNumberValue (cJSON_GetArrayItem (run, 0)),
         n = cJSON_GetNumberValue (cJSON_GetArrayItem (run, 1)),
         apart = cJSON_GetNumberValue (cJSON_GetArrayItem (run, 2));
  bool is_run = cJSON_IsArray (run) && first >= 0 && n >= 1 && apart >= 1 && apart <= x->world
      && first + (n - 1) * apart < x->world;
  x->n_members += is_run ? (uint64_t) n : (uint64_t) cJSON_GetArraySize (list);
  if (x->n_members > MOST_MEMBERS) {
    captured_complain (x, file, "groups of more than %d ranks together", MOST_MEMBERS);
    return NULL;
  }
  for (uint32_t i = 0; is_run && i < (uint32_t) n; i++) {
    uint32_t rank = (uint32_t) first + i * (uint32_t) apart;
    g_array_append_val (ranks, rank);
  }
  cJSON_ArrayForEach (each, list)
  {
    uint32_t rank = cJSON_IsNumber (each) && each->valuedouble >= 0 && each->valuedouble < x->world
        ? (uint32_t) each->valuedouble
        : UINT32_MAX;
    if (rank != UINT32_MAX)
      g_array_append_val (ranks, rank);
  }
  if (ranks->len > 0 && (is_run || ranks->len == (guint) cJSON_GetArraySize (list)))
    return g_steal_pointer (&ranks);
  captured_complain (x, file,
                     "a group: expected [FIRST, HOW MANY, HOW FAR APART] or {\"ranks\": [...]}, below %u",
                     x->world);
  return NULL;
}

void
captured_group_free (gpointer group)
{
  CapturedGroup *g = group;
  g_free (g->name);
  g_array_unref (g->ranks);
  g_free (g);
}

/* --- slots ---------------------------------------------------------------------------------------------- */

/* By words of names that programs give: "mesh_dp_shard", "TENSOR_MODEL_PARALLEL_GROUP". The first holds. */
static const struct {
  const char *word;
  LsAxis axis;
} axes[] = {
  { "expert_data", LS_AXIS_DP }, { "expert_tensor", LS_AXIS_TP },
  { "expert_dp", LS_AXIS_DP },   { "expert", LS_AXIS_EP },
  { "ep", LS_AXIS_EP },          { "pipeline", LS_AXIS_PP },
  { "embedding", LS_AXIS_PP },   { "pp", LS_AXIS_PP },
  { "data", LS_AXIS_DP },        { "dp", LS_AXIS_DP },
  { "instance", LS_AXIS_DP },    { "tensor", LS_AXIS_TP },
  { "tp", LS_AXIS_TP },          { "model_parallel", LS_AXIS_TP },
  { "context", LS_AXIS_CP },     { "cp", LS_AXIS_CP },
};

static bool
is_named (const CapturedGroup *g)
{
  return *g->name && strcmp (g->name, "undefined") != 0;
}

static uint32_t
apart_of (const GArray *ranks)
{
  return ranks->len > 1 ? g_array_index (ranks, uint32_t, 1) - g_array_index (ranks, uint32_t, 0) : 1;
}

/* Neighbours without a name are taken for tensor parallelism, all ranks and others for data parallelism. */
static LsAxis
axis_of (const CapturedReading *x, const CapturedGroup *g)
{
  g_autofree char *name = g_ascii_strdown (g->name, -1);
  for (guint i = 0; is_named (g) && i < G_N_ELEMENTS (axes); i++)
    if (strstr (name, axes[i].word))
      return axes[i].axis;
  return g->ranks->len < x->world && apart_of (g->ranks) == 1 && !is_named (g) ? LS_AXIS_TP : LS_AXIS_DP;
}

static uint8_t
free_slot (uint32_t taken, LsAxis axis)
{
  static const LsSlot first[LS_N_AXES] = { [LS_AXIS_TP] = LS_SLOT_TP,
                                           [LS_AXIS_DP] = LS_SLOT_DP,
                                           [LS_AXIS_PP] = LS_SLOT_EMBEDDING,
                                           [LS_AXIS_CP] = LS_SLOT_CP,
                                           [LS_AXIS_EP] = LS_SLOT_EP };
  if (!(taken >> first[axis] & 1))
    return (uint8_t) first[axis];
  for (uint8_t slot = LS_SLOT_PREV; slot > 0; slot--) /* those with a meaning of their own come first */
    if (!(taken >> (slot - 1) & 1))
      return slot - 1;
  return LS_N_SLOTS;
}

bool
captured_give_slots (CapturedReading *x)
{
  g_autoptr (GHashTable) slots = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL); /* slot + 1 */
  uint32_t taken = 0;
  for (guint i = 0; i < x->roles->len; i++) {
    CapturedRole *role = x->roles->pdata[i];
    g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
    for (guint k = 0; k < role->groups->len; k++) {
      CapturedGroup *g = role->groups->pdata[k];
      if (!g->is_used)
        continue;
      char *kind
          = g_strdup_printf ("%s %u %u", is_named (g) ? g->name : "", g->ranks->len, apart_of (g->ranks));
      guint n = GPOINTER_TO_UINT (g_hash_table_lookup (seen, kind));
      g_autofree char *key = g_strdup_printf ("%s %u", kind, n);
      g_hash_table_replace (seen, kind, GUINT_TO_POINTER (n + 1));
      g->axis = (uint8_t) axis_of (x, g);
      guint slot = GPOINTER_TO_UINT (g_hash_table_lookup (slots, key));
      g->slot = slot > 0 ? (uint8_t) (slot - 1) : free_slot (taken, (LsAxis) g->axis);
      if (g->slot == LS_N_SLOTS)
        return captured_complain (x, LS_CAPTURED_MANIFEST,
                                  "its ranks send in more than %d groups each, which a trace cannot say",
                                  LS_SLOT_PREV);
      taken |= 1u << g->slot;
      g_hash_table_replace (slots, g_steal_pointer (&key), GUINT_TO_POINTER (g->slot + 1u));
    }
  }
  return true;
}

/* --- ranks ---------------------------------------------------------------------------------------------- */

typedef struct {
  GArray **groups_of; /* of each rank, places in x->every, in order */
  GHashTable *number; /* of x->every's: communicator + 1 */
  GString *communicators;
  guint n;
} Binding;

static guint
communicator (CapturedReading *x, Binding *b, guint place, const CapturedGroup *g)
{
  guint number = GPOINTER_TO_UINT (g_hash_table_lookup (b->number, GUINT_TO_POINTER (place)));
  if (number > 0)
    return number - 1;
  const GArray *ranks = x->every->pdata[place];
  bool spans = false;
  g_string_append_printf (b->communicators, "%s{\"axis\":\"%s\",\"ranks\":[", b->n > 0 ? ",\n" : "\n",
                          ls_axis_name ((LsAxis) g->axis));
  for (guint i = 0; i < ranks->len; i++) {
    uint32_t rank = g_array_index (ranks, uint32_t, i);
    g_string_append_printf (b->communicators, "%s%u", i > 0 ? "," : "", rank);
    spans |= g_array_index (x->role_of, uint32_t, rank)
        != g_array_index (x->role_of, uint32_t, g_array_index (ranks, uint32_t, 0));
  }
  g_string_append (b->communicators, spans ? "],\"spans_stages\":true}" : "]}");
  g_hash_table_insert (b->number, GUINT_TO_POINTER (place), GUINT_TO_POINTER (++b->n));
  return b->n - 1;
}

static void
append_peers (GString *out, const GArray *ranks, uint32_t rank)
{
  guint n = ranks->len, i = 0;
  while (i < n && g_array_index (ranks, uint32_t, i) != rank)
    i++;
  g_string_append_printf (out, ",\"prev\":%u,\"next\":%u", g_array_index (ranks, uint32_t, (i + n - 1) % n),
                          g_array_index (ranks, uint32_t, (i + 1) % n));
}

/* The kth group that the program made with the rank, as with the one that stands for it. */
static bool
append_rank (CapturedReading *x, Binding *b, uint32_t rank, GString *out)
{
  uint32_t number = g_array_index (x->role_of, uint32_t, rank);
  const CapturedRole *role = x->roles->pdata[number];
  g_string_append_printf (out, "%s{\"role\":%u", rank > 0 ? ",\n" : "\n", number);
  for (guint k = 0; k < role->groups->len; k++) {
    const CapturedGroup *g = role->groups->pdata[k];
    bool is_bound = g->slot != LS_N_SLOTS && g->ranks->len > 1, is_pipe = (int) k == role->pipe;
    if (!is_bound && !is_pipe)
      continue;
    guint place = k < b->groups_of[rank]->len ? g_array_index (b->groups_of[rank], guint, k) : 0;
    const GArray *ranks = k < b->groups_of[rank]->len ? x->every->pdata[place] : NULL;
    if (!ranks || ranks->len != g->ranks->len)
      return captured_complain (
          x, LS_CAPTURED_MANIFEST,
          "rank %u is in other groups than rank %u, which stands for it: capture it too (--ranks LIST)", rank,
          role->rank);
    if (is_bound)
      g_string_append_printf (out, ",\"%s\":%u", ls_slot_name ((LsSlot) g->slot),
                              communicator (x, b, place, g));
    if (is_pipe)
      append_peers (out, ranks, rank);
  }
  g_string_append_c (out, '}');
  return true;
}

char *
captured_ranks_text (CapturedReading *x)
{
  Binding b = { g_new (GArray *, x->world), g_hash_table_new (NULL, NULL), g_string_new (NULL), 0 };
  g_autoptr (GString) ranks = g_string_new (NULL);
  bool ok = true;
  for (uint32_t rank = 0; rank < x->world; rank++)
    b.groups_of[rank] = g_array_new (FALSE, FALSE, sizeof (guint));
  for (guint place = 0; place < x->every->len; place++) {
    const GArray *members = x->every->pdata[place];
    for (guint i = 0; i < members->len; i++)
      g_array_append_val (b.groups_of[g_array_index (members, uint32_t, i)], place);
  }
  for (uint32_t rank = 0; ok && rank < x->world; rank++)
    ok = append_rank (x, &b, rank, ranks);
  char *text = ok
      ? g_strdup_printf ("\"communicators\":[%s],\"ranks\":[%s]", b.communicators->str, ranks->str)
      : NULL;
  for (uint32_t rank = 0; rank < x->world; rank++)
    g_array_unref (b.groups_of[rank]);
  g_free (b.groups_of);
  g_hash_table_unref (b.number);
  g_string_free (b.communicators, TRUE);
  return text;
}
