"""Models without their weights: what a checkpoint's values are changes no memory, so none are read, on the host large
tensors stay pages that nobody touched, and where a configuration cannot be had either, Lockstep's own list of published
models is asked. Loaded by sitecustomize.py; install() adds what is done after modules are imported."""

import copy
import json
import os
import socket
import urllib.parse
import warnings

NOTES = []  # lines of the answer
LARGE = 1 << 20  # bytes: smaller tensors are drawn as they are
HELP = ("; where the network is, `hf download NAME --include '*.json' '*.model' '*.txt' --local-dir FOLDER` gets its configuration "
        "and tokenizer, no weights: FOLDER then goes in the place of NAME, and data in that of a data set")


def note(text):
    if text not in NOTES:
        NOTES.append(text)


def explained(kind, value):
    """The error's first line, and what to do where it is the hub that is not reached."""
    text = f"{kind.__name__}: {value}".strip().split("\n")[0]
    lost = any(word in str(value) for word in ("huggingface.co", "the Hub", "HF_HUB_OFFLINE", "backend tokenizer")) or "huggingface_hub" in (kind.__module__ or "")
    return text + HELP if lost else text


# --- configurations of published models ---

SHAPES = {"hidden_size": "hidden", "num_hidden_layers": "layers", "num_attention_heads": "heads", "num_key_value_heads": "kv_heads",
          "head_dim": "head_dim", "intermediate_size": "ffn", "vocab_size": "vocab", "max_position_embeddings": "seq",
          "tie_word_embeddings": "tied_embeddings"}
# Of lockstep.model/1, what else may be said for this to be the type: (type, a part of the name, key that is true or None).
TYPES = [("qwen3", "qwen3", "qk_norm"), ("qwen2", "qwen2", "qkv_bias"), ("llama", "llama", None), ("mistral", "mistral", None)]
PLAIN = {"schema", "name", "source", "mlp", "norm", "position", "attention", "window", "linear_bias", "qkv_bias", "qk_norm", "dropout", *SHAPES.values()}


def published(name):
    """A dictionary as config.json has; None: it is not listed, or not as what Transformers can make."""
    path = os.environ.get("LOCKSTEP_CAPTURE_MODELS")
    if not path:
        return None
    with open(path, encoding="utf-8") as file:
        model = next((m["model"] for m in json.load(file)["models"] if name in m["names"]), None)
    if isinstance(model, str) and "#" in model:
        path, member = os.path.join(os.path.dirname(path), "..", model.split("#")[0]), model.split("#")[1]
        with open(path, encoding="utf-8") as file:
            model = json.load(file)["members"][member]
    if not isinstance(model, dict):
        return None
    if "model_type" in model:
        return {"dtype": "float32" if model["model_type"] in ("gpt2", "bert") else "bfloat16", **model}
    said = {key for key, value in model.items() if value not in (False, None)}
    for kind, part, key in TYPES:
        if part in name.lower() and said <= PLAIN and (key is None or key in said) and model.get("mlp") == "swiglu":
            return {"model_type": kind, "dtype": "bfloat16", **{k: model[v] for k, v in SHAPES.items() if v in model}}
    return None


def after_configuration(module):
    kind = getattr(module, "PreTrainedConfig", None) or module.PretrainedConfig
    original = kind.get_config_dict.__func__

    def get_config_dict(cls, name, **more):
        kept = copy.deepcopy(more)
        try:
            return original(cls, name, **more)
        except OSError:
            found = published(str(name))
            if found is None:
                raise
            from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as classes
            if found["model_type"] in classes:
                found["architectures"] = [classes[found["model_type"]]]
            note(f"{name}: its config.json could not be read; its sizes are those of Lockstep's models, in {found['dtype']}")
            of_hub = ("cache_dir", "force_download", "proxies", "token", "local_files_only", "revision", "subfolder", "trust_remote_code")
            return found, {k: v for k, v in kept.items() if k not in of_hub and not k.startswith("_")}

    kind.get_config_dict = classmethod(get_config_dict)


# --- models of Transformers ---


def wanted_dtype(torch, config, given):
    if isinstance(given, str) and given != "auto":
        given = getattr(torch, given)
    return given if isinstance(given, torch.dtype) else getattr(config, "dtype", None) or getattr(config, "torch_dtype", None)


def after_models(module):
    import torch
    kind = module.PreTrainedModel
    original = kind.from_pretrained.__func__

    def from_pretrained(cls, name, *arguments, config=None, **more):
        from transformers.configuration_utils import PretrainedConfig
        if name is None or more.get("state_dict") is not None or more.get("gguf_file") or cls.config_class is None:
            return original(cls, name, *arguments, config=config, **more)
        if not isinstance(config, PretrainedConfig):
            keys = ("cache_dir", "force_download", "local_files_only", "token", "revision", "subfolder")
            config, more = cls.config_class.from_pretrained(config or name, return_unused_kwargs=True, **more), more
            config = config[0]
            more = {k: v for k, v in more.items() if not hasattr(config, k) or k in (*keys, "dtype", "torch_dtype", "quantization_config")}
        dtype = wanted_dtype(torch, config, more.get("dtype", more.get("torch_dtype")))
        if dtype is None:  # as a checkpoint has it
            dtype = torch.float32
            note(f"{name}: no dtype is named, float32 is assumed")
        with torch.device("meta"):
            shapes = cls(copy.deepcopy(config), *arguments)
        held, state = set(), {}
        for key, value in shapes.state_dict(keep_vars=True).items():
            if id(value) not in held:
                state[key] = leave(torch.empty(value.shape, dtype=dtype if value.is_floating_point() else value.dtype, device="cpu"))
            held.add(id(value))
        model = original(cls, None, *arguments, config=config, state_dict=state, **more)
        model.name_or_path = model.config._name_or_path = str(name)
        note(f"{name}: made by its configuration; its weights were not read, as no memory depends on their values")
        return model

    kind.from_pretrained = classmethod(from_pretrained)


# --- large tensors of the host, whose pages nobody touches: a storage says so ---


def is_large(tensor):
    return tensor.device.type == "cpu" and tensor.nbytes > LARGE and not tensor.is_sparse


def leave(tensor):
    tensor.untyped_storage().untouched = True
    return tensor


def after_torch(torch):
    if not hasattr(torch.nn, "init"):
        return

    def drawn(name):
        original = getattr(torch.Tensor, name)

        def draw(self, *arguments, **more):
            return leave(self) if type(self) in (torch.Tensor, torch.nn.Parameter) and is_large(self) else original(self, *arguments, **more)

        setattr(torch.Tensor, name, draw)

    def copied(name):
        original = getattr(torch.Tensor, name)

        def make(self, *arguments, **more):
            if type(self) not in (torch.Tensor, torch.nn.Parameter) or not is_large(self) or not hasattr(self.untyped_storage(), "untouched"):
                return original(self, *arguments, **more)
            made = original(torch.empty_like(self, device="meta") if name == "clone" else self[:0], *arguments, **more)
            if made.device.type not in ("cpu", "meta") or (name != "clone" and made.dtype == self.dtype):
                return original(self, *arguments, **more)
            made = leave(torch.empty_like(self, dtype=made.dtype))
            return made.requires_grad_() if self.requires_grad and torch.is_grad_enabled() else made

        setattr(torch.Tensor, name, make)

    for name in ("normal_", "uniform_", "erfinv_"):
        drawn(name)
    for name in ("to", "float", "half", "bfloat16", "clone"):
        copied(name)
    original = torch.nn.init._no_grad_trunc_normal_

    def trunc_normal(tensor, *arguments, **more):
        return leave(tensor) if is_large(tensor) else original(tensor, *arguments, **more)

    torch.nn.init._no_grad_trunc_normal_ = trunc_normal
    select_all(torch)


OF_ALL = None  # keeps what is registered


def select_all(torch):
    """How many elements are not zero is a value of the GPU: all, so that what a program selects by a mask is the most it can be."""
    global OF_ALL

    def nonzero(tensor):
        note("a program selects elements on the GPU by their values: all are taken, the most that there can be")
        return torch.empty((tensor.dim(), tensor.numel()), dtype=torch.int64, device=tensor.device).t()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        OF_ALL = torch.library.Library("aten", "IMPL")
        OF_ALL.impl("nonzero", nonzero, "CUDA")


def before_hub():
    """Where the hub cannot be reached, its library would try for minutes: it is told so."""
    if "HF_HUB_OFFLINE" in os.environ or any(name in os.environ for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        return
    place = urllib.parse.urlsplit(os.environ.get("HF_ENDPOINT", "https://huggingface.co"))
    try:
        socket.create_connection((place.hostname, place.port or (80 if place.scheme == "http" else 443)), 5).close()
    except OSError:
        os.environ["HF_HUB_OFFLINE"] = "1"


def install(before, after):
    before["huggingface_hub.constants"] = before_hub
    after["transformers.configuration_utils"] = after_configuration
    after["transformers.modeling_utils"] = after_models
