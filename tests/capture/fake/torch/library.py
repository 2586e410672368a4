class Library:
    def __init__(self, *more):
        pass

    def impl(self, *more):
        pass
