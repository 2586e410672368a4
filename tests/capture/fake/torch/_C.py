def _activate_gpu_trace():
    pass
