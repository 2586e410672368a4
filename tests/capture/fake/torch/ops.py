class aten:
    pass
