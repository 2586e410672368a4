/* What variables that a script sets for its processes change of a job, whatever program it starts. */
#include <string.h>

#include "data/launch/launch_script.h"

/* The value; NULL: it is not set, or left open, which is told. */
static const char *
value_of (GHashTable *variables, const char *name, LsImport *import)
{
  const char *value = g_hash_table_lookup (variables, name);
  if (!value || !*value)
    return NULL;
  import_note_word (import, name, NULL);
  if (!ls_shell_has_hole (value))
    return value;
  g_autofree char *names = ls_shell_hole_names (value);
  import_unknown (import, "%s: its value is %s, which is not said here", name, names);
  return NULL;
}

/* PyTorch's, by its names since 2021, those of ROCm, and that of 2.9 and later. */
static void
set_allocator (GHashTable *variables, LsImport *import)
{
  static const char *const names[]
      = { "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF" };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    const char *value = value_of (variables, names[i], import);
    if (value && strstr (value, "expandable_segments:True"))
      import_set_strategy (import, "cuda_allocator", "expandable", names[i]);
  }
}

/* docs.nvidia.com/deeplearning/nccl, "Environment Variables": what chooses among paths and algorithms. */
static const struct {
  const char *name, *value; /* NULL: any */
} choices[] = {
  { "NCCL_ALGO", NULL },          { "NCCL_PROTO", NULL },          { "NCCL_NVLS_ENABLE", "0" },
  { "NCCL_P2P_DISABLE", "1" },    { "NCCL_SHM_DISABLE", "1" },     { "NCCL_IB_DISABLE", "1" },
  { "NCCL_NET_GDR_LEVEL", "0" },  { "NCCL_NET_GDR_LEVEL", "LOC" }, { "NCCL_COLLNET_ENABLE", "1" },
  { "NCCL_MIN_NCHANNELS", NULL }, { "NCCL_MAX_NCHANNELS", NULL },  { "NCCL_MIN_CTAS", NULL },
  { "NCCL_MAX_CTAS", NULL },      { "NCCL_NTHREADS", NULL },
};

static void
tell_nccl (GHashTable *variables, LsImport *import)
{
  for (guint i = 0; i < G_N_ELEMENTS (choices); i++) {
    const char *value = value_of (variables, choices[i].name, import);
    if (value && (!choices[i].value || strcmp (value, choices[i].value) == 0))
      import_unknown (import, "%s %s: NCCL is taken to choose as it does by itself", choices[i].name, value);
  }
}

void
launch_environment (GHashTable *variables, LsImport *import)
{
  const char *blocking = value_of (variables, "CUDA_LAUNCH_BLOCKING", import);
  if (blocking && strcmp (blocking, "0") != 0)
    import_set_strategy (import, "launch_blocking", "1", "CUDA_LAUNCH_BLOCKING");
  set_allocator (variables, import);
  tell_nccl (variables, import);
}
