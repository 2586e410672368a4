"""The forward pass of Qwen1.5-0.5B over 16 sequences of 559 tokens, in bf16: what a published profile has of an H100. A
step of an optimizer ends what is traced."""
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

config = Qwen2Config(vocab_size=151936, hidden_size=1024, intermediate_size=2816, num_hidden_layers=24, num_attention_heads=16,
                     num_key_value_heads=16, max_position_embeddings=32768, rope_theta=1e6, use_sliding_window=False)
torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    model = Qwen2ForCausalLM(config).eval()
    tokens = torch.zeros(16, 559, dtype=torch.long)
    one = torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([one], lr=1e-3)
for step in range(3):
    with torch.inference_mode():
        model(tokens)
    one.grad = torch.zeros_like(one)
    optimizer.step()
