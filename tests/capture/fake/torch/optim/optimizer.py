from ..cuda import Tensor

_before, _after = [], []
register_optimizer_step_pre_hook = _before.append
register_optimizer_step_post_hook = _after.append


class Adam:
    def __init__(self, parameters):
        self.param_groups, self.state = [{"params": parameters}], {}

    def step(self):
        for hook in _before:
            hook(self, (), {})
        for p in self.param_groups[0]["params"]:
            if p not in self.state:
                self.state[p] = [Tensor(p.size), Tensor(p.size)]
        for hook in _after:
            hook(self, (), {})
