"""Models without their weights: what a checkpoint's values are changes no memory, so none are read, on the host large
tensors stay pages that nobody touched, and where a configuration cannot be had either, Lockstep's own list of published
models is asked. Loaded by sitecustomize.py; install() adds what is done after modules are imported."""

import contextlib
import copy
import functools
import json
import os
import re
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


NO_DEEP_EP = "DeepEP is not emulated: choose the exchange of experts' tokens by all-to-all"


def explained(kind, value):
    """The error's first line with a word, and what to do where it is the hub that is not reached."""
    text = f"{kind.__name__}: " + next((line.strip() for line in str(value).split("\n") if line.strip()), "")
    lost = any(word in str(value) for word in ("huggingface.co", "the Hub", "HF_HUB_OFFLINE", "backend tokenizer")) or "huggingface_hub" in (kind.__module__ or "")
    return text + HELP if lost else f"{text} ({NO_DEEP_EP})" if re.search("deep_?ep", text, re.I) else text


# --- configurations of published models ---

SHAPES = {"hidden_size": "hidden", "num_hidden_layers": "layers", "num_attention_heads": "heads", "num_key_value_heads": "kv_heads",
          "head_dim": "head_dim", "intermediate_size": "ffn", "vocab_size": "vocab", "max_position_embeddings": "seq",
          "tie_word_embeddings": "tied_embeddings"}
# Of lockstep.model/1, what else may be said for this to be the type: (type, a part of the name, key that is true or None, more
# of its shapes).
TYPES = [("qwen3_moe", "qwen3", "experts", {"num_experts": "experts", "num_experts_per_tok": "top_k", "moe_intermediate_size": "expert_ffn"}),
         ("mixtral", "mixtral", "experts", {"num_local_experts": "experts", "num_experts_per_tok": "top_k", "intermediate_size": "expert_ffn"}),
         ("qwen3", "qwen3", "qk_norm", {}), ("qwen2", "qwen2", "qkv_bias", {}), ("llama", "llama", None, {}), ("mistral", "mistral", None, {})]
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
    for kind, part, key, more in TYPES:
        if part in name.lower() and said <= PLAIN | set(more.values()) and (key is None or key in said) and model.get("mlp") == "swiglu":
            return {"model_type": kind, "dtype": "bfloat16", **{k: model[v] for k, v in {**SHAPES, **more}.items() if v in model}}
    return None


def after_configuration(module):
    kind = getattr(module, "PreTrainedConfig", None) or module.PretrainedConfig
    original = kind.get_config_dict.__func__

    def get_config_dict(cls, pretrained_model_name_or_path, **more):
        name, kept = pretrained_model_name_or_path, copy.deepcopy(more)
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

    def from_pretrained(cls, pretrained_model_name_or_path, *arguments, config=None, **more):
        name = pretrained_model_name_or_path
        from transformers.configuration_utils import PretrainedConfig
        if name is None or more.get("state_dict") is not None or more.get("gguf_file") or cls.config_class is None:
            return original(cls, name, *arguments, config=config, **more)
        if not isinstance(config, PretrainedConfig):
            keys = ("cache_dir", "force_download", "local_files_only", "token", "revision", "subfolder")
            named = {k: v for k, v in more.items() if not (isinstance(v, str) and v == "auto")}
            config, _ = cls.config_class.from_pretrained(config or name, return_unused_kwargs=True, **named)
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
                made = torch.empty(value.shape, dtype=dtype if value.is_floating_point() else value.dtype, device="cpu")
                state[key] = leave(made) if is_large(made) else made.zero_()
            held.add(id(value))
        made = original(cls, None, *arguments, config=config, state_dict=state, **more)
        model = made[0] if isinstance(made, tuple) else made
        model.name_or_path = model.config._name_or_path = str(name)
        note(f"{name}: made by its configuration; its weights were not read, as no memory depends on their values")
        return made

    kind.from_pretrained = classmethod(from_pretrained)

    def quiet(initialize):
        @functools.wraps(initialize)
        def call(*arguments, **more):
            with nothing_drawn(torch):
                return initialize(*arguments, **more)

        return call

    for name in ("init_weights", "initialize_weights", "_initialize_weights"):
        if hasattr(kind, name):
            setattr(kind, name, quiet(getattr(kind, name)))


# --- large tensors of the host, whose pages nobody touches: a storage says so ---


def is_large(tensor):
    return tensor.device.type == "cpu" and str(tensor.layout) == "torch.strided" and tensor.nbytes > LARGE


def leave(tensor):
    tensor.untyped_storage().untouched = True
    return tensor


# Not torch.Tensor's methods, which compilers look through: what initializes, and the dispatcher's copies.


def plain(tensor):
    import torch
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) and is_large(tensor)


def unless_plain(original):
    @functools.wraps(original)
    def draw(tensor, *arguments, **more):
        if not plain(tensor):
            return original(tensor, *arguments, **more)
        note("weights of more than 1 MiB that are made on the host are not drawn")
        return leave(tensor)

    return draw


@contextlib.contextmanager
def nothing_drawn(torch):
    """While a model of Transformers initializes itself, which may call methods of tensors."""
    kept = {name: getattr(torch.Tensor, name) for name in ("normal_", "uniform_", "erfinv_")}
    for name, original in kept.items():
        setattr(torch.Tensor, name, unless_plain(original))
    try:
        yield
    finally:
        for name, original in kept.items():
            setattr(torch.Tensor, name, original)


def after_torch(torch):
    for name in ("normal_", "uniform_", "trunc_normal_", "xavier_normal_", "xavier_uniform_", "kaiming_normal_", "kaiming_uniform_",
                 "_no_grad_normal_", "_no_grad_uniform_", "_no_grad_trunc_normal_"):
        if hasattr(torch.nn.init, name):
            setattr(torch.nn.init, name, unless_plain(getattr(torch.nn.init, name)))

    def to_copy(tensor, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None):
        if not isinstance(tensor, torch.Tensor):  # a number that Python gave
            return torch.tensor(tensor, dtype=dtype, device=device)
        made = torch.ops.aten.empty_like.default(tensor, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory, memory_format=memory_format)
        is_left = is_large(made) and hasattr(tensor.untyped_storage(), "untouched")
        return leave(made) if is_left else made.copy_(tensor, non_blocking)

    global KERNELS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        KERNELS = torch.library.Library("aten", "IMPL")
        KERNELS.impl("_to_copy", to_copy, "CPU")
        KERNELS.impl("clone", lambda tensor, *, memory_format=None: to_copy(tensor, memory_format=memory_format), "CPU")


KERNELS = None  # keeps what is registered


def before_hub():
    """Where the hub cannot be reached, its library would try for minutes without HF_HUB_OFFLINE."""
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
