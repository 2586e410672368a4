_callbacks = []
register_callback_for_memory_allocation = _callbacks.append
