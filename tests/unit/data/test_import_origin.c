/* Pins which keys of a strategy the words of a launch file say, and which only rules of its program, for programs
 * of each way to say options: what a user says beside the file goes before the latter. */
#include <glib/gstdio.h>

#include "import_check.h"

#include "data/jobs/job_files.h"
#include "data/text/field.h"

/* expected: the keys that give way to another program, with blanks between them, in the order of the fields. */
static void
check_rules (const char *text, const char *expected)
{
  LsImport import;
  if (!read_text (text, &import))
    return;
  GString *found = g_string_new (NULL);
  for (const LsField *f = ls_strategy_fields; f->key; f++)
    if (ls_import_gives_way (&import, f))
      g_string_append_printf (found, "%s%s", found->len > 0 ? " " : "", f->key);
  ls_check_impl (g_str_equal (found->str, expected), __FILE__, __LINE__, "%s\nexpected %s\nfound    %s", text,
                 expected, found->str);
  g_string_free (found, TRUE);
  ls_import_clear (&import);
}

#define MEGATRON                                                                                             \
  "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 512 --num-attention-heads 8 "    \
  "--seq-length 512 --vocab-size 1000 --micro-batch-size 1 --swiglu "

static void
options_of_megatron_say_their_keys (void)
{
  check_rules (MEGATRON, "sp dp_kind zero recompute dtype grad_dtype attention dp_overlap");
  check_rules (MEGATRON "--bf16 --use-distributed-optimizer --sequence-parallel --overlap-grad-reduce",
               "dp_kind recompute grad_dtype attention gather_overlap");
  check_rules (MEGATRON
               "--bf16 --accumulate-allreduce-grads-in-fp32 --use-flash-attn --recompute-activations",
               "sp dp_kind zero recompute_parts dp_overlap");
  check_rules (MEGATRON
               "--fp16 --recompute-granularity full --recompute-method block --recompute-num-layers 1",
               "sp dp_kind zero grad_dtype attention dp_overlap");
  check_rules (MEGATRON "--bf16 --fp8-hybrid --use-torch-fsdp2",
               "sp recompute grad_dtype fp8_recipe attention reshard_after_forward");
}

#define TORCHTITAN                                                                                           \
  "[model]\nname = 'llama3'\nflavor = '8B'\n[training]\nlocal_batch_size = 1\nseq_len = 8192\n"

static void
a_configuration_of_torchtitan_says_its_keys (void)
{
  check_rules (TORCHTITAN,
               "sp dp_kind zero recompute recompute_method recompute_layers dtype grad_dtype attention");
  check_rules (TORCHTITAN "mixed_precision_param = 'bfloat16'\nmixed_precision_reduce = 'float32'\n"
                          "[compile]\nenable = true\n[activation_checkpoint]\nmode = 'full'\n"
                          "[parallelism]\ndata_parallel_shard_degree = 8\ntensor_parallel_degree = 2\n",
               "sp dp_kind attention kernels");
}

/* An option that is off is said too. */
static void
a_configuration_of_deepspeed_says_its_keys (void)
{
  check_rules ("{\"train_micro_batch_size_per_gpu\": 1, \"zero_optimization\": {\"stage\": 3}}",
               "dp_kind dtype dp_overlap grad_norm");
  check_rules (
      "{\"train_micro_batch_size_per_gpu\": 1, \"zero_optimization\": {\"stage\": 2, \"overlap_comm\": "
      "false, \"offload_optimizer\": {\"device\": \"cpu\"}}, \"bf16\": {\"enabled\": true}, "
      "\"gradient_clipping\": 1.0}",
      "dp_kind");
}

#define TRAINER                                                                                              \
  "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-1.5B --output_dir o "              \
  "--per_device_train_batch_size 1 "

/* In which format a Trainer steps on weights is its habit, also where the file says in which they are loaded. */
static void
options_of_a_trainer_say_their_keys (void)
{
  check_rules (TRAINER "--bf16 --torch_dtype bfloat16", "dp_kind recompute master");
  check_rules (TRAINER "--bf16 --fsdp 'full_shard auto_wrap' --gradient_checkpointing True "
                       "--attn_implementation flash_attention_2",
               "dp_kind window_mask");
}

/* Words that a reader puts where its program has them by itself are no words of the file. */
static void
defaults_in_words_of_another_program_are_rules (void)
{
  static const char axolotl[]
      = "base_model: Qwen/Qwen3-8B\nmicro_batch_size: 1\ngradient_accumulation_steps: 1\n"
        "sequence_len: 2048\ndatasets:\n  - path: x\n    type: alpaca\n";
  g_autofree char *said = g_strconcat (axolotl, "bf16: true\ngradient_checkpointing: true\n", NULL);
  check_rules (axolotl, "dp_kind recompute dtype master");
  check_rules (said, "dp_kind master");
}

/* Files beside a script that are read for it, its program and what that imports among them, are the job's; what
 * DeepSpeed's own file says of the number format no other program's rule replaces. */
static void
files_that_are_found_are_of_the_job (void)
{
  static const char *const texts[][2] = {
    { "job.sh",
      "#!/bin/bash\ndeepspeed --num_gpus 8 train.py --deepspeed ds.json --per_device_train_batch_size 2 "
      "--model_name_or_path Qwen/Qwen3-0.6B\n" },
    { "train.py",
      "import argparse\nfrom more import add\np = argparse.ArgumentParser()\nadd(p)\np.parse_args()\n" },
    { "more.py", "def add(p):\n  p.add_argument('--max_seq_length', type=int, default=2048)\n" },
    { "ds.json", "{\"zero_optimization\": {\"stage\": 2}, \"bf16\": {\"enabled\": true}}" }
  };
  g_autofree char *folder = g_dir_make_tmp ("lockstep-XXXXXX", NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  char *paths[G_N_ELEMENTS (texts)];
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++) {
    paths[i] = g_build_filename (folder, texts[i][0], NULL);
    LS_CHECK (g_file_set_contents (paths[i], texts[i][1], -1, NULL));
  }
  LsImport import;
  if (LS_CHECK (ls_import_load ((const char *const[]) { paths[0], NULL }, &import, diags))) {
    check_one (&import, "seq=2048", "job.sh");
    check_one (&import, "zero=2", "job.sh");
    LS_CHECK_INT (import.files->len, ==, G_N_ELEMENTS (texts));
    for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
      LS_CHECK (g_ptr_array_find_with_equal_func (import.files, paths[i], g_str_equal, NULL));
    LS_CHECK (!g_hash_table_contains (import.by_rule, ls_field_find (ls_strategy_fields, "dtype")->key));
    ls_import_clear (&import);
  }
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++) {
    g_unlink (paths[i]);
    g_free (paths[i]);
  }
  g_rmdir (folder);
}

/* A program is started in a folder above its script's as well: "conf/ds.json" is from there. */
static void
files_are_found_from_folders_above (void)
{
  static const char job[] = "#!/bin/bash\ndeepspeed --num_gpus 8 train.py --deepspeed conf/ds.json "
                            "--per_device_train_batch_size 2 --model_name_or_path Qwen/Qwen3-0.6B\n";
  g_autofree char *top = g_dir_make_tmp ("lockstep-XXXXXX", NULL),
                  *conf = g_build_filename (top, "conf", NULL),
                  *deep = g_build_filename (top, "a", "b", NULL), *above = g_build_filename (top, "a", NULL),
                  *script = g_build_filename (deep, "job.sh", NULL),
                  *ds = g_build_filename (conf, "ds.json", NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (g_mkdir_with_parents (deep, 0700) == 0 && g_mkdir (conf, 0700) == 0);
  LS_CHECK (g_file_set_contents (script, job, -1, NULL)
            && g_file_set_contents (ds, "{\"zero_optimization\": {\"stage\": 2}}", -1, NULL));
  LsImport import;
  if (LS_CHECK (ls_import_load ((const char *const[]) { script, NULL }, &import, diags))) {
    check_one (&import, "zero=2", "job.sh");
    ls_import_clear (&import);
  }
  const char *const all[] = { script, ds, deep, above, conf, top };
  for (guint i = 0; i < G_N_ELEMENTS (all); i++)
    LS_CHECK (g_remove (all[i]) == 0);
}

/* A model's folder is called as the model: by its last two parts, in a cache of the hub, or by the last alone
 * where no other model is called so; what stands in front of it need not be known. */
static void
folders_name_models (void)
{
#define AT "torchrun train.py --bf16 --per_device_train_batch_size 1 --model_name_or_path "
  check (AT "/data/models/Qwen/Qwen3-32B/", "layers=64; hidden=5120; ~taken for Qwen/Qwen3-32B, as the end");
  check (AT "./Qwen3-32B", "layers=64; ~as the end of its path says");
  check (AT "~/hub/models--Qwen--Qwen3-32B/snapshots/1a2b", "layers=64; ~taken for Qwen3-32B, as");
  check (AT "$HOME/models/Qwen/Qwen3-32B", "layers=64; ~taken for Qwen/Qwen3-32B; ?its value is $HOME");
  check (AT "/data/Meta-Llama-3.1-405B-Instruct", "layers=126");
  check (AT "/data/8B", "layers; ?model /data/8B: its dimensions are in no file here");
  check (AT "/data/mine/Mistral-7B-v0.2x", "layers; ?its dimensions are in no file here");
  check (AT "$HOME-32B", "layers; ?its value is $HOME");
#undef AT
}

/* A model by its name has as many parameters as the file that is written of it, layer by layer. */
static void
models_of_names_are_whole (void)
{
  static const char *const names[] = { "nvidia/Llama-3_3-Nemotron-Super-49B-v1", "google/gemma-4-E2B",
                                       "moonshotai/Kimi-Linear-48B-A3B-Instruct", "Qwen/Qwen3-30B-A3B" };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *text
        = g_strconcat ("torchrun train.py --bf16 --per_device_train_batch_size 1 --max_seq_length "
                       "512 --model_name_or_path ",
                       names[i], NULL);
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsModel own = { 0 }, written = { 0 };
    bool is_decoder;
    LsImport import;
    if (!LS_CHECK (ls_model_of_name (names[i], &own, &is_decoder)) || !read_text (text, &import))
      continue;
    g_autoptr (LsJsonDoc) doc = ls_import_model (&import, "whole", diags);
    if (LS_CHECK (doc && ls_model_read (doc, &written, NULL, diags)))
      LS_CHECK_INT (ls_model_params (&written, written.vocab), ==, ls_model_params (&own, own.vocab));
    ls_model_clear (&written);
    ls_model_clear (&own);
    ls_import_clear (&import);
  }
}

LS_TEST_SUITE (LS_TEST (models_of_names_are_whole), LS_TEST (folders_name_models),
               LS_TEST (files_are_found_from_folders_above),
               LS_TEST (a_configuration_of_deepspeed_says_its_keys),
               LS_TEST (a_configuration_of_torchtitan_says_its_keys),
               LS_TEST (defaults_in_words_of_another_program_are_rules),
               LS_TEST (options_of_a_trainer_say_their_keys), LS_TEST (options_of_megatron_say_their_keys),
               LS_TEST (files_that_are_found_are_of_the_job))
