"""python -m lockstep.dump PROGRAM MODULE:NAME > job.json: what a configuration in Python comes to, as JSON that lockstep import
reads. It is run where the program is installed; nothing is trained.

    torchtitan MODULE:FUNCTION       a configuration of a registry, torchtitan.models.llama3.config_registry:llama3_8b
    megatron-bridge MODULE:FUNCTION  a recipe, megatron.bridge.recipes.llama.llama3:llama3_8b_pretrain_config
    trainer MODULE:NAME              arguments of a Trainer of Hugging Face, the Trainer, or a list of such dataclasses
    axolotl FILE.yaml                a configuration of axolotl

MODULE may be a file, ./recipe.py. NAME is called if it can be."""

import contextlib
import dataclasses
import enum
import importlib
import importlib.util
import inspect
import json
import math
import sys
import tempfile
from pathlib import Path


def plain(value):
    """As JSON. Members of a dataclass, with what makes it as "()"; what else there is by its name."""
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        members = {field.name: plain(getattr(value, field.name, None)) for field in dataclasses.fields(value)}
        return {"()": type(value).__qualname__, **members}
    if type(value).__name__ == "dtype" or isinstance(value, Path):
        return str(value)
    return getattr(value, "__qualname__", type(value).__qualname__)


def module_of(name):
    if not name.endswith(".py"):
        sys.path.insert(0, "")
        return importlib.import_module(name)
    path = Path(name).resolve()
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def made(target):
    """What MODULE:NAME is, or returns, and the module."""
    module, _, name = target.rpartition(":")
    if not module:
        sys.exit(f"lockstep.dump: {target}: say MODULE:NAME")
    module = module_of(module)
    if not hasattr(module, name):
        sys.exit(f"lockstep.dump: {target}: it sets no such name")
    value = getattr(module, name)
    return value() if inspect.isfunction(value) else value


def torchtitan(target):
    """The model by what its registry was asked for, as its own configuration is that of each layer."""
    module = module_of(target.rpartition(":")[0])
    registry, asked = getattr(module, "model_registry", None), {}

    def noted(*arguments, **named):
        spec = registry(*arguments, **named)
        bound = inspect.signature(registry).bind(*arguments, **named)
        asked[id(spec)] = (spec, plain(bound.arguments))  # with the object, so that no other has its number
        return spec

    if registry:
        module.model_registry = noted
    config = getattr(module, target.rpartition(":")[2])()
    tree = plain(dataclasses.replace(config, model_spec=None))
    spec = config.model_spec
    optimizer = tree.get("optimizer")
    groups = optimizer.get("param_groups", []) if isinstance(optimizer, dict) else []
    names = {group.get("optimizer_name") for group in groups}
    if len(names) == 1:
        optimizer["name"] = names.pop()
        del optimizer["param_groups"]
    tree["model_spec"] = {**asked.get(id(spec), (spec, {}))[1], "()": "model_registry", "name": spec.name, "flavor": spec.flavor}
    return tree


def megatron_bridge(target):
    """As the program writes run_config.yaml."""
    import yaml

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run_config.yaml"
        made(target).to_yaml(str(path))
        return plain(yaml.safe_load(path.read_text()))


def flat(arguments):
    return arguments if isinstance(arguments, dict) else {key: item for key, item in plain(arguments).items() if key != "()"}


def trainer(target):
    """What is set, of all parts together, with the model's name where they have one."""
    value, tree = made(target), {}
    for part in value if isinstance(value, (list, tuple)) else [value]:
        model = getattr(getattr(part, "model", None), "config", None)
        if model is not None:
            tree["model_name_or_path"] = model._name_or_path
        tree.update(flat(getattr(part, "args", part)))
    return {key: item for key, item in tree.items() if item is not None}


def axolotl(target):
    from axolotl.cli.config import load_cfg

    return plain(load_cfg(target).to_dict())


PROGRAMS = {"torchtitan": torchtitan, "megatron-bridge": megatron_bridge, "trainer": trainer, "axolotl": axolotl}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in PROGRAMS:
        sys.exit(__doc__)
    with contextlib.redirect_stdout(sys.stderr):  # what programs print is no configuration
        tree = PROGRAMS[sys.argv[1]](sys.argv[2])
    print(json.dumps(tree, indent=1))


if __name__ == "__main__":
    main()
