/* Pins what files of others are that say less than they seem to: scripts that start a command through another
 * one, jobs that train no decoder on the next token, a tokenizer that is not what its class is called. */
#include "ls_test.h"

#include "import_check.h"

#define GPT "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --tokenizer-type Llama2Tokenizer "

/* Llama2Tokenizer reads any model of SentencePiece. */
static void
a_tokenizer_is_known_by_its_file (void)
{
  check (GPT, "vocab=32000");
  check (GPT "--tokenizer-model $TOKENIZER", "vocab=32000");
  check (GPT "--tokenizer-model /data/tokenizer.model", "vocab=32000");
  check (GPT "--tokenizer-model /data/Llama-2/sp.model",
         "vocab=32000; ~vocab 32000: the vocabulary of Llama 2");
  check (GPT "--tokenizer-model $DIR/v4_alpha_1.0.model", "vocab; ?how many words --tokenizer-model has");
  check (GPT "--tokenizer-model x/v4.model --vocab-extra-ids 8 --padded-vocab-size 99584", "vocab=99584");
  check (GPT "--tokenizer-model x/v4.model --vocab-size 99574", "vocab=99574");
}

#define MAXTEXT "base_config: base.yml\nmodel_name: mixtral-8x7b\nhardware: gpu\nper_device_batch_size: 1\n"

/* Of a model that is known by its name too; sorted tokens, the default, have none. */
static void
a_capacity_of_experts_is_heeded (void)
{
  check_read ("MaxText", MAXTEXT "sparse_matmul: false\ncapacity_factor: 1.25\n",
              "experts=8; expert_capacity=1.25");
  check_read ("MaxText", MAXTEXT "megablox: false\ncapacity_factor: 2\n", "expert_capacity=2");
  check_read ("MaxText", MAXTEXT "megablox: false\nsparse_matmul: true\ncapacity_factor: 2\n",
              "expert_capacity; ~capacity_factor: it has no effect with sparse_matmul");
  check_read ("MaxText", MAXTEXT "capacity_factor: 2\n",
              "expert_capacity; ~capacity_factor: it has no effect");
  check_read ("MaxText", MAXTEXT "sparse_matmul: false\n",
              "expert_capacity; ?sparse_matmul is off, and capacity_factor not given");
  check_read ("MaxText", MAXTEXT, "expert_capacity; experts=8");
}

/* As many lines as real ones have, each of which holds those before it. */
static void
long_lists_of_data_are_read (void)
{
  GString *text = g_string_new ("D=\"\"\n");
  for (int i = 0; i < 300; i++)
    g_string_append_printf (text, "D=\"${D} 855056046544 ${ROOT}/en_fineweb-rescored_score_%04d_document\"\n",
                            i);
  g_string_append (text, "torchrun --nproc_per_node 8 pretrain_gpt.py " GPT "--data-path $D\n");
  check (text->str, "gpus=8; layers=24");
  g_string_free (text, TRUE);
}

LS_TEST_SUITE (LS_TEST (a_tokenizer_is_known_by_its_file), LS_TEST (a_capacity_of_experts_is_heeded),
               LS_TEST (long_lists_of_data_are_read))
