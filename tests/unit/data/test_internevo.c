/* Pins what configurations of InternEvo mean. */
#include "ls_test.h"

#include "import_check.h"

#define MODEL                                                                                                \
  "SEQ_LEN = 2048\nRATIO = 8 / 3\nmodel_type = \"INTERNLM2_PUBLIC\"\n"                                       \
  "model = dict(\n    checkpoint=False,  # a remark\n    num_layers=32,\n    hidden_size=4096,\n"            \
  "    num_attention_heads=32,\n    num_kv_attention_heads=8,\n    vocab_size=92544,\n"                      \
  "    mlp_ratio=RATIO,\n"                                                                                   \
  "    no_bias=True,\n    dtype=\"torch.bfloat16\",\n    norm_type=\"rmsnorm\",\n    rope_base=2 * 500,\n)\n"
#define DATA                                                                                                 \
  "data = dict(seq_len=SEQ_LEN, micro_num=4, micro_bsz=2, pack_sample_into_one=True, total_steps=9)\n"       \
  "lr_scheduler = dict(total_steps=data[\"total_steps\"], init_steps=0)\n"
#define ZERO                                                                                                 \
  "hybrid_zero_optimizer = dict(overlap_sync_grad=True, reduce_bucket_size=512 * 1024, clip_grad_norm=1.0)\n"

/* All copies shard the optimizer; norms are computed again where layers are kept. */
static void
configurations_are_read (void)
{
  check_read (
      "InternEvo",
      MODEL DATA ZERO "parallel = dict(zero1=dict(size=-1), tensor=dict(size=1, mode=\"mtp\"),\n"
                      "    pipeline=dict(size=1, interleaved_overlap=True), weight=dict(size=1))\n",
      "layers=32; hidden=4096; heads=32; kv_heads=8; ffn=11008; vocab=92544; seq=2048; qkv_bias; "
      "tied_embeddings=false; tp=1; pp=1; zero=1; dp_kind=deepspeed; dp_overlap=true; reduce_bucket=524288; "
      "micro_batch=2; gpus; global_batch; recompute=selective; recompute_parts=norm; dtype=bf16; "
      "grad_norm=true; attention=flash; software=internevo-0.3; lengths; ?how many GPUs; ?micro_bsz x 4; "
      "-model.rope_base; -lr_scheduler.init_steps");
  check_read (
      "InternEvo",
      "parallel = dict(zero1=4, tensor=2, pipeline=2)\n"
      "data = dict(seq_len=128, micro_bsz=1)\n"
      "model = dict(num_layers=8, checkpoint=0.4, dropout_selective_checkpoint=False, num_chunks=2)\n",
      "layers=8; hidden=2048; heads=32; kv_heads=32; vocab=50304; ffn=8192; qkv_bias=true; "
      "tp=2; sp=false; pp=2; "
      "vpp=2; schedule=interleaved-1f1b; zero=1@4; dp_overlap=false; recompute=none; dtype=fp16; "
      "grad_norm=false; !without interleaved_overlap; ?lengths; ~dtype fp16; ~micro_num 1");
}

/* What a function gives is not as if nothing was said. */
static void
calls_are_open (void)
{
  check_read ("InternEvo",
              "model = dict(num_layers=8)\ndata = dict(seq_len=128, micro_bsz=max(1, n))\n"
              "parallel = dict(zero1=4, tensor=dict(size=max(1, n)))\n",
              "layers=8; ?micro_bsz: its value is max(1, n); ?tensor.size: its value is max(1, n)");
}

static void
recomputation_is_read (void)
{
  check_read (
      "InternEvo",
      MODEL DATA
      "model_type = \"INTERNLM\"\nparallel = dict(zero1=dict(size=1), tensor=dict(size=4, mode=\"msp\"))\n"
      "model = dict(num_layers=10, hidden_size=512, mlp_ratio=4, checkpoint=0.25)\n",
      "recompute=full; recompute_method=block; recompute_layers=2; zero=0; tp=4; sp=true; layers=10");
  check_read ("InternEvo",
              MODEL DATA
              "parallel = dict(zero1=dict(size=8), tensor=dict(size=1))\n"
              "model = dict(num_layers=10, hidden_size=512, mlp_ratio=4, checkpoint=0.25, no_bias=True)\n",
              "recompute_layers=3; zero=1@8");
  check_read ("InternEvo",
              MODEL DATA "parallel = dict(zero1=8)\nmodel = dict(checkpoint=True, num_layers=4)\n",
              "recompute=full; recompute_method; layers=4");
  check_read ("InternEvo", MODEL DATA "parallel = dict(zero1=8)\nmodel = dict(checkpoint=1.5)\n",
              "!a part of all");
}

/* Sequences are cut and weights gathered; experts are as many ranks as there are, if there are as many. */
static void
other_axes_are_read (void)
{
  check_read ("InternEvo",
              MODEL DATA
              "parallel = dict(zero1=-1, tensor=dict(size=2, mode=\"isp\"), weight=dict(size=4))\n",
              "tp=1; cp=2; cp_kind=ulysses; zero=3@4; ?ZeRO-3 in groups");
  check_read ("InternEvo", MODEL DATA "parallel = dict(zero1=dict(size=8, fsdp=True), tensor=dict(size=1))\n",
              "dp_kind=fsdp1; zero=3@8; reduce_bucket; dp_overlap");
  check_read (
      "InternEvo",
      MODEL DATA
      "parallel = dict(zero1=-1, pipeline=2, weight=dict(size=4))\nmodel_type = \"INTERNLM_MoE\"\n"
      "model = dict(num_layers=4, hidden_size=512, mlp_ratio=2, num_experts=4, moe_type=\"MegaBlock\")\n"
      "moe = dict(top_k=2, capacity_factor=1.5, drop_tokens=True, min_capacity=4)\n",
      "experts=4; top_k=2; expert_ffn=1024; expert_capacity=1.5; expert_padding=capacity; ep; "
      "?products with masks; ?taken for GShard; ?ep: as many as copies; !parallel.weight without; "
      "-moe.min_capacity");
}

/* What InternEvo refuses, and what is not told in silence. */
static void
contradictions_are_told (void)
{
  check_read (
      "InternEvo",
      MODEL DATA
      "parallel = dict(zero1=dict(size=8, fsdp=True), pipeline=2)\n"
      "model = dict(num_layers=4, use_flash_attn=False, deepnorm=True, a_new_key=3, drop_rate=0.1)\n"
      "model[\"checkpoint\"] = True\nmine = dict(x=1)\nmine += [1]\nif OTHER:\n    mine = 3\n",
      "!fsdp with a pipeline; !use_packed_dataset differ; ?model.deepnorm; ?model.a_new_key; dropout=true; "
      "attention=unfused; recompute=full; ? \"if OTHER:\"; ?what if OTHER stands for");
  check_read ("InternEvo",
              "with read_base():\n    from configs._base_.nothing import *\n" MODEL DATA
              "parallel = dict(zero1=8)\nmodel_type = \"OTHER\"\n",
              "?what configs._base_.nothing sets; ?model_type OTHER; qkv_bias=true");
  check_read (NULL, MODEL DATA "parallel = dict(zero1=8)\nmodel = dict(is_reward=True)\n",
              "is_reward: another task");
  check_read (NULL, MODEL DATA "parallel = dict(zero1=(8)\n", "error");
}

/* The GPUs, of a script that writes its configuration. */
static void
scripts_are_read (void)
{
  const char *written = "cat > seven.py <<END\n" MODEL DATA "parallel = dict(zero1=8, tensor=2)\nEND\n";
  g_autofree char *srun
      = g_strconcat (written,
                     "srun -N 2 -n 16 --ntasks-per-node=8 --gpus-per-task=1 python train.py "
                     "--config ./seven.py --launcher slurm\n",
                     NULL),
      *odd = g_strconcat (written, "torchrun --nproc_per_node 3 train.py --config=seven.py\n", NULL);
  check_read ("InternEvo", srun, "gpus=16; tp=2; micro_batch=2; global_batch=64; layers=32");
  check_read ("InternEvo", odd, "!3 GPUs are no multiple of 2");
  check_read ("InternEvo",
              "cat > one.py <<END\n" MODEL
              "parallel = dict(zero1=8, tensor=2, **more)\nEND\ncat > two.py <<END\n"
              "with read_base():\n    from configs._base_.models.one import *\n\n"
              "SEQ_LEN = 64\nSEQ_LEN *= 2  # of both\n" DATA
              "x = dict(**other)\nEND\ntorchrun --nproc_per_node 4 train.py --config two.py\n",
              "layers=32; tp=2; gpus=4; seq=128; global_batch=16; ?two.py does besides is not followed: "
              "configs/_base_/models/one.py:17 \"**more)\", two.py:8 \"**other)\"");
  check_read (NULL, "torchrun --nproc_per_node 8 train.py --config configs/no.py\n",
              "whose configuration configs/no.py is not here");
  check_read (NULL, "echo a = 3 > o.py\ntorchrun --nproc_per_node 8 train.py --config o.py\n",
              "it is no configuration of InternEvo");
}

LS_TEST_SUITE (LS_TEST (configurations_are_read), LS_TEST (calls_are_open), LS_TEST (recomputation_is_read),
               LS_TEST (other_axes_are_read), LS_TEST (contradictions_are_told), LS_TEST (scripts_are_read))
