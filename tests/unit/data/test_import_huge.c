/* Pins: degrees and batches that no machine has, whose product no number holds, are no crash: they are a
 * contradiction, or left open. */
#include "ls_test.h"

#include "import_check.h"

#define HUGE_MODEL                                                                                           \
  "  tensor_model_parallel_size: 2147483648\n  pipeline_model_parallel_size: 2147483648\n"                   \
  "  context_parallel_size: 4\n"
#define TITAN "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[parallelism]\n"

/* What is given behind the name; what a line says then, as of check_one(). */
static const struct {
  const char *name, *given, *text, *expected;
} files[] = {
  { "a.json", "gpus=1",
    "{\"train_batch_size\": 64, \"train_micro_batch_size_per_gpu\": 32, "
    "\"gradient_accumulation_steps\": 576460752303423488}",
    "!train_batch_size 64 is no multiple of" },
  { "b.json", "gpus=32", "{\"train_batch_size\": 64, \"gradient_accumulation_steps\": 576460752303423488}",
    "micro_batch" },
  { "c.yaml", "layers=8",
    "trainer: {devices: 8}\nmodel:\n  num_layers: 8\n  hidden_size: 64\n  num_attention_heads: 4\n"
    "  optim: {name: distributed_fused_adam}\n" HUGE_MODEL,
    "!tensor_model_parallel_size" },
  { "d.toml", "gpus=8",
    TITAN "tensor_parallel_degree = 1048576\npipeline_parallel_degree = 1048576\n"
          "context_parallel_degree = 1048576\ndata_parallel_replicate_degree = 16\n",
    "!8 GPUs are not tp 1048576" },
  { "f.toml", "gpus=8,global_batch=8",
    TITAN "pipeline_parallel_degree = 2\nnum_pp_microbatches = 2147483648\n[training]\n"
          "num_tokens_per_microbatch_per_dp_rank = 2147483648\nseq_len = 1\n",
    "!a batch of 8 is no multiple of" },
  { "g.yml", "gpus=8",
    "base_config: base.yml\nbase_emb_dim: 64\nper_device_batch_size: 1\nici_data_parallelism: 2\n"
    "ici_fsdp_parallelism: -1\nici_tensor_parallelism: 65536\nici_tensor_transpose_parallelism: 65536\n"
    "ici_tensor_sequence_parallelism: 65536\nici_context_parallelism: 65536\n",
    "!is no value for tp" },
  { "h.sh", "seq=2048",
    "export DGXNNODES=2\nexport DGXNGPU=8\nexport MINIBS=4\nexport MODEL_SIZE=405b\n"
    "export TENSOR_MODEL_PARALLEL=4194304\nexport PIPELINE_MODEL_PARALLEL=2097152\n"
    "export CONTEXT_PARALLEL=2097152\nexport MICRO_BATCH_SIZE=1\n",
    "!is no value for tp" },
  { "j.sh", "gpus=2",
    "#SBATCH --nodes=2\ntorchrun --nproc_per_node=1 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
    "--num-attention-heads 32 --seq-length 2048 --tensor-model-parallel-size 8 --micro-batch-size 1 "
    "--global-batch-size 128\n",
    "!2 GPUs do not hold tp 8" },
};

static void
no_product_is_zero (void)
{
  g_autofree char *folder = g_dir_make_tmp ("ls-huge-XXXXXX", NULL);
  for (guint i = 0; i < G_N_ELEMENTS (files); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autofree char *path = g_build_filename (folder, files[i].name, NULL),
                    *asked = g_strconcat (path, ":", files[i].given, NULL);
    const char *const paths[] = { asked, NULL };
    LsImport import;
    LS_CHECK (g_file_set_contents (path, files[i].text, -1, NULL));
    bool ok = ls_import_load (paths, &import, diags);
    g_autofree char *said = ls_diag_list_format (diags);
    ls_check_impl (ok, __FILE__, __LINE__, "%s: %s", files[i].name, said);
    if (ok)
      check_one (&import, files[i].expected, files[i].name);
    if (ok)
      ls_import_clear (&import);
    remove (path);
  }
  remove (folder);
}

LS_TEST_SUITE (LS_TEST (no_product_is_zero))
