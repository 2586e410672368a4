/* What variables that a script sets for its processes change of a job, whatever program it starts. */
#include <string.h>

#include "data/launch/launch_script.h"

/* What a script sets, and what of that processes see. */
typedef struct {
  GHashTable *variables; /* name -> text */
  GHashTable *exported;  /* a set of names */
} Environment;

/* The value; NULL: it is not set, or left open, which is told. */
static const char *
value_of (const Environment *e, const char *name, LsImport *import)
{
  const char *value = g_hash_table_lookup (e->variables, name);
  if (!value || !*value)
    return NULL;
  import_note_word (import, name, NULL);
  if (!ls_shell_has_hole (value))
    return value;
  g_autofree char *names = ls_shell_hole_names (value);
  import_unknown (import, "%s: its value is %s, which is not said here", name, names);
  return NULL;
}

/* Whether processes see a variable that would matter; that they do not is told. */
static bool
is_seen (const Environment *e, const char *name, LsImport *import)
{
  bool is_exported = g_hash_table_contains (e->exported, name);
  if (!is_exported)
    import_unknown (import, "%s: it is set and not exported; processes are taken not to see it", name);
  return is_exported;
}

/* CUDA's name, and HIP's. */
static void
set_blocking (const Environment *e, LsImport *import)
{
  static const char *const names[] = { "CUDA_LAUNCH_BLOCKING", "HIP_LAUNCH_BLOCKING" };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    const char *value = value_of (e, names[i], import);
    if (value && strcmp (value, "0") != 0 && is_seen (e, names[i], import))
      import_set_strategy (import, "launch_blocking", "1", names[i]);
  }
}

/* PyTorch's, by its names since 2021, those of ROCm, and that of 2.9 and later. */
static void
set_allocator (const Environment *e, LsImport *import)
{
  static const char *const names[]
      = { "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF" };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    const char *value = value_of (e, names[i], import);
    if (value && strstr (value, "expandable_segments:True") && is_seen (e, names[i], import))
      import_set_strategy (import, "cuda_allocator", "expandable", names[i]);
  }
}

static bool
is_set_to (const Environment *e, const char *name, const char *wanted, LsImport *import)
{
  const char *value = value_of (e, name, import);
  return value && strcmp (value, wanted) == 0 && is_seen (e, name, import);
}

/* Transformer Engine takes the other fused attention where one is off (its docs, "Environment Variables";
 * transformer_engine/pytorch/attention/dot_product_attention/utils.py, get_attention_backend). On AMD's
 * GPUs the fused one is Composable Kernel's or AOTriton's, in that order (ROCm/TransformerEngine, README.rst,
 * "Fused Attention Backends on ROCm"). With none of them attention is in parts, which readers of its
 * programs see. */
static void
set_te_attention (const Environment *e, LsImport *import)
{
  bool has_ck = !is_set_to (e, "NVTE_FUSED_ATTN_CK", "0", import),
       has_aotriton = !is_set_to (e, "NVTE_FUSED_ATTN_AOTRITON", "0", import),
       has_fused = !is_set_to (e, "NVTE_FUSED_ATTN", "0", import) && (has_ck || has_aotriton),
       has_flash = !is_set_to (e, "NVTE_FLASH_ATTN", "0", import);
  if (has_fused && !has_ck)
    import_set_strategy (import, "attention_kernel", "aotriton", "NVTE_FUSED_ATTN_CK");
  else if (has_fused != has_flash)
    import_set_strategy (import, "attention_kernel", has_fused ? "cudnn" : "fa2",
                         has_fused ? "NVTE_FLASH_ATTN" : "NVTE_FUSED_ATTN");
}

/* On AMD's GPUs PyTorch takes AOTriton's kernels, or those of Composable Kernel, as flash-attention does
 * there (torch.backends.cuda.preferred_rocm_fa_library). */
static void
set_torch_attention (const Environment *e, LsImport *import)
{
  if (is_set_to (e, "TORCH_ROCM_FA_PREFER_CK", "1", import))
    import_set_strategy (import, "attention_kernel", "fa2", "TORCH_ROCM_FA_PREFER_CK");
}

/* docs.nvidia.com/deeplearning/nccl, "Environment Variables": what chooses among paths and algorithms; of
 * RCCL, whether it runs kernels of MSCCL and MSCCL++ (rocm.docs.amd.com/projects/rccl, "RCCL usage tips"). */
static const struct {
  const char *name, *value; /* NULL: any */
} choices[] = {
  { "NCCL_ALGO", NULL },          { "NCCL_PROTO", NULL },          { "NCCL_NVLS_ENABLE", "0" },
  { "NCCL_P2P_DISABLE", "1" },    { "NCCL_P2P_LEVEL", NULL },      { "NCCL_SHM_DISABLE", "1" },
  { "NCCL_IB_DISABLE", "1" },     { "NCCL_NET_GDR_LEVEL", "0" },   { "NCCL_NET_GDR_LEVEL", "LOC" },
  { "NCCL_COLLNET_ENABLE", "1" }, { "NCCL_MIN_NCHANNELS", NULL },  { "NCCL_MAX_NCHANNELS", NULL },
  { "NCCL_MIN_CTAS", NULL },      { "NCCL_MAX_CTAS", NULL },       { "NCCL_NTHREADS", NULL },
  { "RCCL_MSCCL_ENABLE", NULL },  { "RCCL_MSCCLPP_ENABLE", NULL }, { "NCCL_NET", NULL },
};

static void
tell_nccl (const Environment *e, LsImport *import)
{
  for (guint i = 0; i < G_N_ELEMENTS (choices); i++) {
    const char *value = value_of (e, choices[i].name, import);
    if (value && (!choices[i].value || strcmp (value, choices[i].value) == 0)
        && is_seen (e, choices[i].name, import))
      import_unknown (import, "%s %s: NCCL is taken to choose as it does by itself", choices[i].name, value);
  }
}

/* Of nodes of 8 GPUs most have as many NICs: who names fewer may leave some out. */
#define USUAL_NICS 8

/* mlx5_0, rdma1, bnxt_re3:1, rocep105s0, and not mlx5_ or bnxt_re, with which the names of several begin. */
static bool
is_one_nic (const char *name)
{
  gsize n = strcspn (name, ":");
  const char *parts = memchr (name, '_', n);
  return n > 0 && g_ascii_isdigit (name[n - 1]) && (parts || !g_str_has_prefix (name, "mlx"));
}

/* Names of NICs, with commas, "=" before them if they are whole names; behind a "^" stand those that are
 * left out. */
static void
tell_nics (const Environment *e, LsImport *import)
{
  const char *value = value_of (e, "NCCL_IB_HCA", import);
  if (!value || !is_seen (e, "NCCL_IB_HCA", import))
    return;
  g_auto (GStrv) names = g_strsplit (value + strspn (value, "^="), ",", -1);
  guint n = 0;
  bool are_whole = true;
  for (guint i = 0; names[i]; i++)
    if (*names[i]) {
      n++;
      are_whole = are_whole && is_one_nic (names[i]);
    }
  if (*value != '^' && are_whole && n > 0 && n < USUAL_NICS)
    import_unknown (import,
                    "NCCL_IB_HCA %s: jobs of several nodes use all NICs of these; of %u: "
                    "--cluster NAME:node.nics.count=%u,fabric.rails=%u",
                    value, n, n, n);
}

/* A flag is on by either of its names; openxla/xla, xla/debug_options_flags.cc, renamed some in 2025. */
static bool
has_flag (const char *flags, const char *name, const char *later)
{
  g_autofree char *on = g_strconcat ("--", name, "=true", NULL);
  return strstr (flags, on) || (later && strstr (flags, later));
}

/* What XLA on GPUs is told of its loop over layers; what else its flags hold may be open. */
static void
set_xla_loop (const Environment *e, LsImport *import)
{
  const char *flags = g_hash_table_lookup (e->variables, "XLA_FLAGS");
  if (!flags || !has_flag (flags, "xla_gpu_enable_latency_hiding_scheduler", NULL)
      || !is_seen (e, "XLA_FLAGS", import))
    return;
  import_note_word (import, "XLA_FLAGS", NULL);
  bool is_pipelined
      = has_flag (flags, "xla_gpu_enable_pipelined_all_gather", "--xla_gpu_pipeline_all_gather=on"),
      is_doubled = has_flag (flags, "xla_gpu_enable_while_loop_double_buffering", NULL);
  import_set_strategy (import, "loop_overlap", is_pipelined ? "pipelined" : "turn", "XLA_FLAGS");
  if (is_pipelined && !is_doubled)
    import_set_strategy (import, "loop_copies", "weights", "XLA_FLAGS");
}

/* XLA on TPUs. */
static void
tell_libtpu (const Environment *e, LsImport *import)
{
  if (value_of (e, "LIBTPU_INIT_ARGS", import))
    import_unknown (import,
                    "LIBTPU_INIT_ARGS: what communicates beside what is taken to be as its recipes ask");
}

void
launch_environment (bool has_te, GHashTable *variables, GHashTable *exported, LsImport *import)
{
  const Environment e = { variables, exported };
  set_blocking (&e, import);
  set_allocator (&e, import);
  if (has_te)
    set_te_attention (&e, import);
  else
    set_torch_attention (&e, import);
  set_xla_loop (&e, import);
  tell_nccl (&e, import);
  tell_nics (&e, import);
  tell_libtpu (&e, import);
}
