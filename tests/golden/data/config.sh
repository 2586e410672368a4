MODEL_ARGS=(
  --num-layers 32 # Llama 3.1 8B
  --hidden-size 4096
  --ffn-hidden-size 14336
  --num-attention-heads 32
  --group-query-attention --num-query-groups 8
  --seq-length $SEQ --max-position-embeddings $SEQ
  --normalization RMSNorm --swiglu --disable-bias-linear
  --position-embedding-type rope --untie-embeddings-and-output-weights
  --attention-dropout 0.0 --hidden-dropout 0.0
  --vocab-size 128256
)
