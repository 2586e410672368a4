"""Pins what lockstep.dump prints of programs, with stand-ins of a few lines for them, and what lockstep import reads of that.
Usage: dump.py LOCKSTEP, with PYTHONPATH in the environment."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = os.path.realpath(sys.argv[1])
FOLDER = tempfile.TemporaryDirectory()
HERE = Path(FOLDER.name)

FILES = {
    "registry.py": '''
from dataclasses import dataclass
class Trainer:
    @dataclass
    class Config:
        model_spec: object
        training: object
        activation_checkpoint: object
        optimizer: object = None
@dataclass
class Optimizers:
    param_groups: list
class FullAC:
    @dataclass
    class Config:
        debug: bool = False
@dataclass
class Spec:
    name: str
    flavor: str
    parallelize: object = print
@dataclass
class Training:
    local_batch_size: int = 1
    seq_len: int = 2048
    dtype: str = "float32"
def model_registry(flavor, attn_backend="flex"):
    return Spec("llama3", flavor)
def big() -> Trainer.Config:
    print("a note")
    training = Training()
    for n in [1, 2, 4]:
        training.local_batch_size *= n
    return Trainer.Config(model_registry("8B", attn_backend="varlen"), training, FullAC.Config(),
                          Optimizers([{"optimizer_name": "AdamW"}]))
''',
    "recipe.py": '''
class ConfigContainer:
    def to_yaml(self, path):
        open(path, "w").write("""
_target_: megatron.bridge.training.config.ConfigContainer
train: {micro_batch_size: 2, global_batch_size: 32}
model: {_target_: megatron.bridge.models.GPTModelProvider, num_layers: 4, hidden_size: 256, num_attention_heads: 4,
        vocab_size: 1024, seq_length: 128, tensor_model_parallel_size: 2}
""")
def job_config():
    for n in [1]:
        config = ConfigContainer()
    return config
''',
    "train.py": '''
from dataclasses import dataclass
import enum
class Strategy(enum.Enum):
    NO = "no"
@dataclass
class Arguments:
    model_name_or_path: str = "Qwen/Qwen2.5-1.5B"
    hub_token: str = None
@dataclass
class Training:
    output_dir: str = "out"
    per_device_train_batch_size: int = 2 + 1
    bf16: bool = True
    save_strategy: Strategy = Strategy.NO
args = [Arguments(), Training(), {"gradient_accumulation_steps": 2}]
''',
    "axolotl/cli/config.py": '''
class Config(dict):
    def to_dict(self):
        return dict(self)
def load_cfg(path):
    return Config(base_model="NousResearch/Llama-3.2-1B", micro_batch_size=3, sequence_len=1024, datasets=[], adapter=None)
''',
    "loop.py": '''
from megatron.bridge.training.config import ConfigContainer
def job_config():
    for n in [1]:
        config = ConfigContainer()
    return config
''',
    "job.sh": "accelerate launch --num_processes 4 train.py trainer.json\n",
}


def run(*command, exits=0):
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    assert done.returncode == exits, (command, done.stdout, done.stderr)
    return done.stdout if exits == 0 else done.stderr


def check(program, target, expected, reads=None):
    text = run(sys.executable, "-m", "lockstep.dump", program, target)
    (HERE / f"{program}.json").write_text(text)
    assert json.loads(text), text
    job = json.loads(run(PROGRAM, "import", reads or f"{program}.json", "--json"))
    found = {key: job[part][key] for part in ("model", "strategy") for key in expected if key in job[part]}
    assert found == expected, (program, found, expected)


for name, text in FILES.items():
    (HERE / name).parent.mkdir(parents=True, exist_ok=True)
    (HERE / name).write_text(text.lstrip())

check("torchtitan", "registry:big", {"micro_batch": 8, "layers": 32, "seq": 2048, "recompute": "full"})
check("trainer", "./train.py:args", {"gpus": 4, "micro_batch": 3, "global_batch": 24, "dtype": "bf16", "layers": 28}, "job.sh")
check("axolotl", "a.yaml", {"micro_batch": 3, "layers": 16, "seq": 1024})
if importlib.util.find_spec("yaml"):
    check("megatron-bridge", "recipe.py:job_config", {"tp": 2, "layers": 4, "global_batch": 32})

# Of a program that is not run the message says how.
said = run(PROGRAM, "import", "loop.py", exits=4)
assert "it computes its configuration: loop.py:2" in said and "python -m lockstep.dump megatron-bridge MODULE:FUNCTION" in said, said
said = run(sys.executable, "-m", "lockstep.dump", "trainer", "train:nothing", exits=1)
assert "it sets no such name" in said, said
assert "PROGRAM MODULE:NAME" in run(sys.executable, "-m", "lockstep.dump", exits=1)
