class ExecutionTraceObserver:
    """Of operators there are none."""

    def register_callback(self, path):
        self.path = path

    def start(self):
        pass

    def stop(self):
        pass

    def unregister_callback(self):
        with open(self.path, "w", encoding="utf-8") as out:
            out.write('{"nodes": []}')
