def _dispatch_get_all_op_names():
    return []
